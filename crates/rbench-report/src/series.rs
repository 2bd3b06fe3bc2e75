//! The report of a series: its cells as tables, in the form of the command.

mod io500;
pub mod journal;
pub(crate) mod knee;
mod nn;
mod overview;
mod quick;
mod suite;
mod sweep;

use rbench_core::plain::plain_lines;
use rbench_core::units::counted;

use crate::json;
use crate::schema::{RunResult, SeriesResult, some_of};
use crate::table::{sections, sentence, wrapped};
use crate::text::header::demonstration;
use crate::view::View;
use crate::warnings::in_a_series;

pub use io500::{REHEARSAL, line as io500_line};

/// Renders the tables of a series.
type Render = fn(&SeriesResult, View) -> String;

/// The kinds of series, and their renderers.
const KINDS: &[(&str, Render)] = &[
    ("io500", io500::render),
    ("knee", knee::render),
    ("nn", nn::render),
    ("sweep", sweep::render),
    ("quick", quick::render),
    ("suite", suite::render),
];

/// Kinds whose tables have colours; their renderers keep them free of other control characters.
const COLOURED: [&str; 2] = ["quick", "suite"];

/// The report for people; blank lines separate sections.
pub fn render(series: &SeriesResult, view: View) -> String {
    // Names may contain control characters.
    let plain = |text: String| plain_lines(&text).into_owned();
    let notes = notes(series)
        .iter()
        .map(|line| sentence(view, "- ", line))
        .collect::<String>();
    sections([
        plain(header(series, view)),
        tables(series, view),
        plain(notes + &stopped(series)),
    ])
}

/// The tables for the series' kind; those of a sweep if it is unknown.
fn tables(series: &SeriesResult, view: View) -> String {
    // Only `rbench DIR` checks promises.
    if series.check.is_some() {
        return overview::render(series, view);
    }
    let own = KINDS.iter().find(|(kind, _)| *kind == series.kind);
    let tables = own.map_or(sweep::render as Render, |(_, render)| *render)(series, view);
    match COLOURED.contains(&&*series.kind) {
        true => tables,
        false => plain_lines(&tables).into_owned(),
    }
}

/// The conclusions of `rbench DIR`, a sentence each; none for other series.
pub fn conclusions(series: &SeriesResult) -> Vec<String> {
    match &series.check {
        Some(_) => overview::sentences(series),
        None => Vec::new(),
    }
}

/// The measured steps of a suite, each as a series of its own, with their names.
pub fn steps(series: &SeriesResult) -> impl Iterator<Item = (&str, SeriesResult)> {
    let steps = series.steps.iter();
    steps.filter_map(|step| Some((step.name.as_str(), suite::part(series, step)?)))
}

/// The result file of a series.
pub fn render_json(series: &SeriesResult) -> String {
    json::pretty(series)
}

/// The command, its hosts and its target.
fn header(series: &SeriesResult, view: View) -> String {
    let mut out = String::new();
    if series.io500.is_some() {
        out.push_str(&sentence(view, "", REHEARSAL));
        out.push('\n');
    }
    if series.embedded || series.results().any(|result| result.target.embedded) {
        out.push_str(&sentence(view, "", &demonstration(&series.run.command)));
        out.push('\n');
    }
    let what = match &series.suite {
        Some(suite) if suite.starts_with(&series.kind) => format!("suite {suite}"),
        Some(suite) => format!("{} {suite}", series.kind),
        None => series.kind.clone(),
    };
    out.push_str(&wrapped(
        view,
        "rbench ",
        &[format!("{}: {what}", series.run.version)],
        "",
    ));
    let command: Vec<String> = series.run.command.clone();
    out.push_str(&wrapped(view, "Command  ", &command, " "));
    let hosts = series.hosts.len();
    let ranks = format!(
        "{} on {hosts} {}",
        series.ranks,
        if hosts == 1 { "host" } else { "hosts" }
    );
    out.push_str(&wrapped(view, "Ranks    ", &[ranks], ""));
    if series.scale < 1.0 {
        let scale = format!(
            "{} of the full size: its figures do not compare with those of the full size",
            series.scale
        );
        out.push_str(&wrapped(view, "Scale    ", &[scale], ""));
    }
    out
}

/// Missing cells, and the warnings of the cells: the first of each code, with the names of the cells
/// that have it.
pub(crate) fn notes(series: &SeriesResult) -> Vec<String> {
    let left_out = series.left_out.iter();
    let left_out = left_out.map(|left| format!("left out: {}: {}", left.name, left.why));
    let failed = series.cells.iter().filter_map(|cell| {
        let error = cell.error.as_ref()?;
        Some(format!("{}: {error}", cell.name))
    });
    let mut out: Vec<String> = left_out.chain(failed).collect();
    let mut codes: Vec<&str> = Vec::new();
    let results = || {
        let cells = series.cells.iter();
        cells.filter_map(|cell| Some((cell.name.as_str(), cell.result.as_ref()?)))
    };
    let warnings =
        results().flat_map(|(name, r)| r.warnings.iter().map(move |warning| (name, r, warning)));
    for (first, result, warning) in warnings {
        // Every step above the limit has this warning, and the table shows it.
        let expected = series.knee.is_some() && warning.code == "open-loop-behind";
        if expected || codes.contains(&warning.code.as_str()) {
            continue;
        }
        codes.push(&warning.code);
        let has = |result: &RunResult| result.warnings.iter().any(|w| w.code == warning.code);
        let own: Vec<&str> = results()
            .filter_map(|(name, result)| has(result).then_some(name))
            .collect();
        let cells = match own.len() {
            1 => String::new(),
            all if all == series.cells.len() => "every cell, for example ".to_owned(),
            _ => format!("{}, for example ", some_of(&own)),
        };
        let message = in_a_series(&series.kind, result, warning);
        out.push(format!("{cells}{first}: {message}"));
    }
    out
}

/// A line if not every cell reached its end.
fn stopped(series: &SeriesResult) -> String {
    if series.complete {
        return String::new();
    }
    let done = series.cells.iter().filter(|cell| cell.is_complete());
    let done = done.count() as u64;
    let cells = match series.planned {
        Some(planned) => format!("{done} of {}", counted(planned.into(), "cell")),
        None => counted(done, "cell"),
    };
    let are = if done == 1 { "is" } else { "are" };
    format!("Stopped early: {cells} {are} complete.\n")
}
