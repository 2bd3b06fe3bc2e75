//! Results as one page of HTML that needs nothing but itself: no network, no
//! script to be read, the reader's light or dark mode. Warnings come first, then
//! what was run on what, tables, charts, hosts and ranks, and the results
//! themselves as data.
//!
//! Every text is escaped where it enters the page: by maud, and in the data by
//! `page/data.rs`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use crate::schema::{PhaseResult, RunResult, SeriesResult};
use crate::table::printable;
use crate::text::{failures, header, marks};
use crate::{Document, json};

mod charts;
mod curves;
mod knee;
mod svg;
mod tables;

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/script.js");

/// How a page of rbench begins: by this it is recognised when it is to be replaced.
pub const BEGINNING: &str = "<!DOCTYPE html><html lang=\"en\" data-made-by=\"rbench report\">";

/// The page of some files' content: runs side by side, then each series.
pub fn render(documents: &[Document]) -> String {
    let results: Vec<RunResult> = documents.iter().filter_map(run).collect();
    let series: Vec<&SeriesResult> = documents.iter().filter_map(series_of).collect();
    let names = names(&results);
    let title = match (names.as_slice(), series.as_slice()) {
        ([name], []) => format!("rbench: {name}"),
        ([], [one]) => format!(
            "rbench {}: {}",
            printable(&one.kind),
            printable(&one.run.id)
        ),
        _ => format!("rbench: {} results", names.len() + series.len()),
    };
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
                h1 { (title) }
                @if !results.is_empty() { (body(&results, &names)) }
                @for (i, series) in series.iter().enumerate() { (curves::section(series, i)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string() + "\n"
}

fn run(document: &Document) -> Option<RunResult> {
    match document {
        Document::Run(run) => Some(run.as_ref().clone()),
        Document::Series(_) => None,
    }
}

fn series_of(document: &Document) -> Option<&SeriesResult> {
    match document {
        Document::Series(series) => Some(series),
        Document::Run(_) => None,
    }
}

/// Nothing is loaded, and no script runs but the page's own.
fn policy() -> String {
    let hash = STANDARD.encode(Sha256::digest(SCRIPT));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"
    )
}

/// What the results are called: the label `name`, else the run's id.
fn names(results: &[RunResult]) -> Vec<String> {
    let name = |result: &RunResult| {
        let run = &result.run;
        printable(run.labels.get("name").unwrap_or(&run.id))
    };
    results.iter().map(name).collect()
}

fn body(results: &[RunResult], names: &[String]) -> Markup {
    let section = |heading: &str, id: &str, of: &dyn Fn(&RunResult) -> Markup| {
        html! { section id=(id) { h2 { (heading) } (beside(results, names, of)) } }
    };
    html! {
        nav {
            @for (id, name) in [("run", "What was run"), ("results", "Results"), ("charts", "Charts"), ("places", "Hosts and ranks"), ("data", "Data")] {
                a href=(format!("#{id}")) { (name) }
            }
        }
        (section("Before you trust the numbers", "warnings", &warnings))
        (section("What was run", "run", &what))
        section id="results" {
            h2 { "Results" }
            @if results.len() > 1 { (tables::beside(results, names)) }
            // Below each other: they are too wide for less than the whole page.
            @for (result, name) in results.iter().zip(names) {
                @if results.len() > 1 { h4 { (name) } }
                (tables::operations(result)) (tables::steady(result)) (tables::summary(result)) (tables::replay(result)) (marked(result)) (tables::client(result)) (tables::others(result))
            }
        }
        section id="charts" {
            h2 { "Charts" }
            p.note { "The percentile axis is logarithmic towards 100%, and each line ends with its largest value. \
                The latency axis is logarithmic." }
            @for (name, label) in operations(results) {
                h3 { (printable(label)) }
                @let all: Vec<&PhaseResult> = results.iter().flat_map(|result| named(result, name)).collect();
                @let bounds = charts::Bounds::of(&all);
                (beside(results, names, &|result| charts_of(result, name, &bounds)))
            }
        }
        (section("Hosts and ranks", "places", &places))
        section id="data" {
            h2 { "Data" }
            p.note { "This page contains the results as script elements of the type application/json: "
                "their fields are described in docs/reference/result-file.md of rbench." }
            @for (i, (result, name)) in results.iter().zip(names).enumerate() {
                (data(&format!("result-{}", i + 1), name, &json::render(result)))
            }
        }
    }
}

/// The same of each result, side by side with several.
fn beside(results: &[RunResult], names: &[String], of: &dyn Fn(&RunResult) -> Markup) -> Markup {
    let class = match results.len() {
        1 => "runs",
        2 => "runs two",
        _ => "runs more",
    };
    html! { div class=(class) {
        @for (result, name) in results.iter().zip(names) {
            div { @if results.len() > 1 { h4 { (name) } } (of(result)) }
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

/// What each mark cost.
fn marked(result: &RunResult) -> Markup {
    let lines = marks::lines(result);
    html! {
        @if !lines.is_empty() {
            h4 { "Marks" }
            ul { @for line in &lines { li { (printable(line)) } } }
        }
    }
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
fn operations(results: &[RunResult]) -> Vec<(&str, &str)> {
    let mut all: Vec<(&str, &str)> = Vec::new();
    for phase in results.iter().flat_map(|result| &result.phases) {
        if !all.iter().any(|(name, _)| *name == phase.name) {
            all.push((&phase.name, &phase.label));
        }
    }
    all
}

fn named<'r>(result: &'r RunResult, name: &'r str) -> impl Iterator<Item = &'r PhaseResult> {
    result.phases.iter().filter(move |phase| phase.name == name)
}

fn charts_of(result: &RunResult, name: &str, bounds: &charts::Bounds) -> Markup {
    let same: Vec<&PhaseResult> = named(result, name).collect();
    let percentiles = charts::percentiles(&same, bounds);
    let first: Vec<charts::Chart> = same
        .first()
        .map_or_else(Vec::new, |p| charts::over_time(p, bounds));
    html! {
        @if percentiles.is_none() && first.is_empty() { p.note { "Too few operations for a chart." } }
        @else {
            div.charts { @for chart in percentiles.iter().chain(&first) { (figure(chart)) } }
            @for phase in same.iter().skip(1) {
                @let more = charts::over_time(phase, bounds);
                @if !more.is_empty() { details {
                    summary { "Over time in iteration " (phase.iteration.saturating_add(1)) }
                    div.charts { @for chart in &more { (figure(chart)) } }
                } }
            }
        }
    }
}

/// How the key of the line with that number looks.
fn key_class(line: usize) -> String {
    let dashed = if svg::is_dashed(line) { " dashed" } else { "" };
    format!("key k{}{dashed}", line % svg::LINES.len())
}

fn figure(chart: &charts::Chart) -> Markup {
    html! { figure role="group" aria-label=(chart.title) {
        figcaption { (chart.title) }
        (PreEscaped(&chart.svg))
        figcaption {
            @for (line, key) in &chart.keys { span class=(key_class(*line)) { (printable(key)) } " " }
        }
    } }
}

/// Most hosts and ranks of an operation with a row each; of more only the slowest.
const RANKS_MAX: usize = 64;

fn places(result: &RunResult) -> Markup {
    let several = result.world.hosts.len() > 1 || result.world.ranks > 1;
    html! {
        @if !several { p.note { "A single rank." } }
        @else { @for phase in &result.phases {
            @let late = tables::stragglers(phase);
            details open[late > 0] {
                summary {
                    (printable(&phase.label))
                    @if crate::text::iterations(result) > 1 { ", iteration " (phase.iteration.saturating_add(1)) }
                    @if late > 0 { ": " b { (late) " far slower than the median" } }
                }
                (tables::places(result, &[phase], RANKS_MAX))
            }
        } }
    }
}

/// JSON as an element `script`, in which nothing ends the element or begins a
/// comment, and a button that saves it.
fn data(id: &str, name: &str, json: &str) -> Markup {
    html! {
        p { button hidden data-result=(id) data-name=(format!("{}.json", file_name(name))) { "Save " (name) } }
        script type="application/json" id=(id) { (PreEscaped(json.replace('<', "\\u003c"))) }
    }
}

/// A name without what file systems mind.
fn file_name(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '_'
        }
    };
    name.chars().map(plain).collect()
}
