//! Results as one self-contained page of HTML: it needs no network and no script, and follows the
//! reader's light or dark mode. Warnings come first, then workload and system, tables, charts,
//! hosts and ranks, and the results themselves as data.
//!
//! Text is escaped where it enters the page: by maud, and in the data by `data`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use crate::Document;
use crate::figures::Row;
use crate::schema::{RunResult, SeriesResult};
use crate::table::{grouped, printable};
use crate::text::{failures, header, marks, steady};
use data::Data;

mod charts;
mod compared;
mod curves;
mod data;
mod knee;
mod overview;
mod svg;
mod tables;

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/script.js");

/// Start of a page of rbench, which identifies it when it is to be replaced.
pub const BEGINNING: &str = "<!DOCTYPE html><html lang=\"en\" data-made-by=\"rbench report\">";

/// Sections, and what they are called.
const NAVIGATION: [(&str, &str); 6] = [
    ("run", "What was run"),
    ("overview", "Overview"),
    ("results", "Results"),
    ("charts", "Charts"),
    ("places", "Hosts and ranks"),
    ("data", "Data"),
];

/// The results are in the page as far as it stays below this size, in bytes.
const SIZE_MAX: usize = 990_000;

/// A run on the page.
struct Shown<'d> {
    name: String,
    result: &'d RunResult,
}

/// The page of some files' content: runs side by side, then each series. `files`: their names, as
/// far as they have some.
pub fn render(documents: &[Document], files: &[String]) -> String {
    let runs = runs(documents, files);
    let series: Vec<&SeriesResult> = documents.iter().filter_map(series_of).collect();
    let title = match (runs.as_slice(), series.as_slice()) {
        ([run], []) => format!("rbench: {}", run.name),
        ([], [one]) if one.check.is_some() => format!(
            "What {} is like",
            printable(one.dir.as_deref().unwrap_or("the mount"))
        ),
        ([], [one]) => format!(
            "rbench {}: {}",
            printable(&one.kind),
            printable(&one.run.id)
        ),
        _ => format!("rbench: {} results", runs.len() + series.len()),
    };
    let shown = html! {
        h1 { (title) }
        nav {
            @for (id, name) in NAVIGATION.iter().filter(|_| !runs.is_empty()) { a href=(format!("#{id}")) { (name) } }
        }
        @if !runs.is_empty() { (body(&runs)) }
        @for (i, series) in series.iter().enumerate() { (curves::section(series, i)) }
    };
    let is_run = |document: &&Document| matches!(document, Document::Run(_));
    let of_runs = documents.iter().filter(is_run).zip(&runs).zip(1..);
    let of_runs = of_runs.map(|((document, run), i)| Data {
        id: format!("result-{i}"),
        name: run.name.clone(),
        document,
    });
    let of_series = documents.iter().filter(|document| !is_run(document));
    let of_series = of_series.zip(1..).map(|(document, i)| Data {
        id: format!("series-{i}-data"),
        name: printable(&document.run().id),
        document,
    });
    let data: Vec<Data<'_>> = of_runs.chain(of_series).collect();
    let room = SIZE_MAX.saturating_sub(shown.0.len() + STYLE.len() + 2 * SCRIPT.len());
    let page = html! {
        (DOCTYPE)
        html lang="en" data-made-by="rbench report" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy());
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (shown)
                section id="data" { h2 { "Data" } (data::elements(&data, room)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string() + "\n"
}

/// The runs, each called by its label `name`, else by its file, as briefly as distinguishes it from
/// the others, else by its id.
fn runs<'d>(documents: &'d [Document], files: &[String]) -> Vec<Shown<'d>> {
    let files = files
        .iter()
        .map(String::as_str)
        .chain(std::iter::repeat(""));
    let runs = files
        .zip(documents)
        .filter_map(|(file, document)| match document {
            Document::Run(run) => Some((file, run.as_ref())),
            Document::Series(_) => None,
        });
    let runs: Vec<(&str, &'d RunResult)> = runs.collect();
    let brief = |file: &str| file.rsplit('/').next().unwrap_or(file).to_owned();
    let alike = |file: &str| {
        runs.iter()
            .filter(|(other, _)| brief(other) == brief(file))
            .count()
    };
    let named = |(file, result): &(&str, &'d RunResult)| match result.run.labels.get("name") {
        Some(label) => label.clone(),
        None if file.is_empty() => result.run.id.clone(),
        None if alike(file) > 1 => (*file).to_owned(),
        None => brief(file),
    };
    let shown = runs.iter().map(|run| Shown {
        name: printable(&named(run)),
        result: run.1,
    });
    shown.collect()
}

fn series_of(document: &Document) -> Option<&SeriesResult> {
    match document {
        Document::Series(series) => Some(series),
        Document::Run(_) => None,
    }
}

/// The content policy: loads nothing, and runs only the page's own script.
fn policy() -> String {
    let hash = STANDARD.encode(Sha256::digest(SCRIPT));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"
    )
}

fn body(runs: &[Shown<'_>]) -> Markup {
    let section = |heading: &str, id: &str, of: &dyn Fn(&RunResult) -> Markup| {
        html! { section id=(id) { h2 { (heading) } (beside(runs, of)) } }
    };
    html! {
        (section("Before you trust the numbers", "warnings", &warnings))
        (section("What was run", "run", &what))
        section id="overview" { h2 { "Overview" } (overview::section(runs)) }
        section id="results" {
            h2 { "Results" }
            @if runs.len() > 1 { (compared::table(runs)) }
            // Below each other: they are too wide for less than the whole page.
            @for Shown { name, result } in runs {
                @if runs.len() > 1 { h4 { (name) } }
                (tables::operations(result)) (list("Steady state", &steady::lines(result))) (tables::summary(result)) (tables::replay(result))
                (list("Marks", &marks::lines(result))) (tables::client(result)) (tables::others(result))
            }
        }
        @let heat = runs.iter().map(|run| run.result.phases.len()).sum::<usize>() <= HEAT_MAPS_MAX;
        section id="charts" {
            h2 { "Charts" }
            p.note { "The percentile axis is logarithmic towards 100%, and each line ends with its largest value. \
                The latency axis is logarithmic. Of several iterations, percentiles are of all together, and charts over \
                time of the one whose rate is the median." }
            @for (name, label) in operations(runs) {
                h3 { (printable(label)) }
                (charts_of(runs, name, heat))
            }
        }
        @let phases: usize = runs.iter().map(|run| run.result.phases.len()).sum();
        @let most = (PLACES_MAX / phases.max(1)).clamp(4, 64);
        (section("Hosts and ranks", "places", &|result| places(result, most)))
    }
}

/// One part for each result, side by side with several.
fn beside(runs: &[Shown<'_>], of: &dyn Fn(&RunResult) -> Markup) -> Markup {
    let class = match runs.len() {
        1 => "runs",
        2 => "runs two",
        _ => "runs more",
    };
    html! { div class=(class) {
        @for Shown { name, result } in runs {
            div { @if runs.len() > 1 { h4 { (name) } } (of(result)) }
        }
    } }
}

fn warnings(result: &RunResult) -> Markup {
    let failed = failures(result);
    let quiet = result.warnings.is_empty() && failed.is_empty() && result.complete;
    html! {
        @if result.target.embedded {
            ul.warnings { li { b { "demonstration: " } "rbench's built-in file system in memory, not your storage." } }
        }
        @if quiet { p.fine { "The run is complete, no operation failed, and there is no warning." } }
        @else { ul.warnings {
            @if !result.complete { li { b { "incomplete: " } "the run ended before all phases were done." } }
            @for warning in &result.warnings { li { b { (printable(&warning.code)) ": " } (printable(&warning.message)) } }
            @for failure in &failed { li { b { "failed: " } (printable(failure)) } }
        } }
    }
}

/// Lines below a title; empty without lines.
fn list(title: &str, lines: &[String]) -> Markup {
    html! { @if !lines.is_empty() {
        h4 { (title) }
        ul { @for line in lines { li { (printable(line)) } } }
    } }
}

fn what(result: &RunResult) -> Markup {
    html! {
        p.note {
            "To repeat it"
            @if result.world.communicator == "mpi" { ", on " (result.world.ranks) " ranks of an MPI launcher such as mpirun -np " (result.world.ranks) }
            ":"
        }
        pre { code { (header::command(result)) } }
        dl {
            dt { "rbench" } dd { (printable(&result.run.version)) }
            @for (name, text) in header::facts(result) { dt { (name) } dd { (printable(&text)) } }
        }
        @if result.world.hosts.len() > 1 { details {
            summary { (result.world.hosts.len()) " hosts" }
            div.wide { table {
                thead { tr { th { "Host" } th { "Ranks" } th { "CPUs" } th.left { "Kernel" } } }
                tbody { @for host in &result.world.hosts { tr {
                    td { (printable(&host.name)) } td { (host.ranks.len()) } td { (host.cpus) } td.left { (printable(&host.kernel)) }
                } } }
            } }
        } }
    }
}

/// Names and labels of all operations, in the order of first appearance.
fn operations<'d>(runs: &[Shown<'d>]) -> Vec<(&'d str, &'d str)> {
    let phases = runs.iter().flat_map(|run| &run.result.phases);
    let all = grouped(phases.map(|phase| (&*phase.name, &*phase.label)));
    all.into_iter()
        .map(|(name, labels)| (name, labels[0]))
        .collect()
}

/// Up to this number of phases on a page, each has a heat map; of more, those of median iterations.
const HEAT_MAPS_MAX: usize = 48;

fn charts_of(runs: &[Shown<'_>], name: &str, heat: bool) -> Markup {
    let sides = runs.iter().map(|run| charts::Side {
        name: if runs.len() > 1 { &run.name } else { "" },
        phases: run
            .result
            .phases
            .iter()
            .filter(|phase| phase.name == name)
            .collect(),
    });
    let sides: Vec<charts::Side<'_>> = sides.filter(|side| !side.phases.is_empty()).collect();
    let charts::Charts { main, each } = charts::all(&sides, heat);
    html! {
        @if main.is_empty() { p.note { "Too few operations for a chart." } }
        @else { div.charts { @for chart in &main { (figure(chart)) } } }
        @for (name, charts) in &each { details {
            summary { "Each iteration" @if !name.is_empty() { " of " (name) } }
            div.charts { @for chart in charts { (figure(chart)) } }
        } }
    }
}

/// The class of the key of the line with that number.
fn key_class(line: usize) -> String {
    format!("key {}", svg::class(line))
}

fn figure(chart: &charts::Chart) -> Markup {
    html! { figure role="group" aria-label=(chart.title) {
        figcaption { (chart.title) }
        (PreEscaped(&chart.svg))
        figcaption {
            @for (line, key) in &chart.keys { span class=(key_class(*line)) { (printable(key)) } " " }
            @if chart.heat { span.legend title="the share of a slice's operations that took this long" {
                @for share in [0.01, 0.1, 0.5, 1.0] {
                    i style=(format!("opacity:{:.2}", charts::darkness(share))) {} (share * 100.0) "% "
                }
                "of a slice"
            } }
        }
    } }
}

/// Most rows of tables of hosts and of ranks on a page; of more only outliers are shown.
const PLACES_MAX: usize = 600;

fn places(result: &RunResult, most: usize) -> Markup {
    let several = result.world.hosts.len() > 1 || result.world.ranks > 1;
    html! {
        @if !several { p.note { "A single rank." } }
        @else { @for phases in Row::all(result).iter().map(|row| &row.phases) {
            @let late: usize = phases.iter().map(|phase| tables::stragglers(phase)).sum();
            details open[late > 0] {
                summary {
                    (printable(&phases[0].label))
                    @if late > 0 { ": " b { (late) " far slower than the median" } }
                }
                (tables::places(result, phases, most))
            }
        } }
    }
}
