//! A series on the page: its cells as curves over the values of a key.

use maud::{Markup, html};
use rbench_core::units::human_nanos;

use super::charts::{Chart, short};
use super::svg::{Axis, Content};
use super::{Shown, figure, knee, overview};
use crate::figures::Row;
use crate::schema::SeriesResult;
use crate::series::{self, knee::conclusion};
use crate::table::{distinct, printable};
use crate::view::View;

/// Renders the `i`-th series of the page.
pub fn section(all: &SeriesResult, i: usize) -> Markup {
    let id = format!("series-{}", i + 1);
    html! { section id=(id) {
        h2 { "Series: " (printable(&all.kind)) " " (printable(&all.run.id)) }
        @let conclusions = series::conclusions(all);
        @if !conclusions.is_empty() { ul { @for text in &conclusions { li { (printable(text)) } } } }
        @if let Some(found) = &all.knee { p { (printable(&conclusion(all, found))) } }
        h3 { "Before you trust the numbers" }
        (warnings(all))
        @if let Some(found) = &all.knee { (knee::section(found)) }
        @else if all.steps.is_empty() { (drawn("", all)) }
        @else { @for (name, part) in series::steps(all) {
            @if part.keys.is_empty() { (bars(name, &part)) } @else { (drawn(name, &part)) }
        } }
        h3 { "As text" }
        div.wide { pre.table { (series::render(all, View::default())) } }
    } }
}

/// What the text report says above and below the tables.
fn warnings(all: &SeriesResult) -> Markup {
    let notes = series::notes(all);
    let demonstrates = demonstrates(all);
    // Notes leave out warnings of steps that are meant to be too fast.
    let warned = all.results().any(|result| !result.warnings.is_empty());
    html! {
        @if notes.is_empty() && all.complete && !demonstrates {
            p.fine { "Every cell is complete" @if !warned { ", and there is no warning" } "." }
        } @else { ul.warnings {
            @if demonstrates { li { b { "demonstration: " } "rbench's built-in file system in memory, not your storage." } }
            @if !all.complete { li { b { "incomplete: " } "not every cell reached its end." } }
            @for note in &notes { li { (printable(note)) } }
        } }
    }
}

/// The curves of all operations of a series, or of a step of it.
fn drawn(step: &str, all: &SeriesResult) -> Markup {
    html! { @for (name, label) in operations(all) {
        @let charts = curves(all, name);
        @if !charts.is_empty() {
            h3 { @if !step.is_empty() { (printable(step)) ": " } (printable(label)) }
            div.charts.pair { @for chart in &charts { (figure(chart)) } }
        }
    } }
}

/// A bar for each operation of a step without keys.
fn bars(step: &str, part: &SeriesResult) -> Markup {
    let shown = |result| Shown {
        name: printable(step),
        result,
    };
    let runs: Vec<Shown<'_>> = part.results().map(shown).collect();
    html! { @if !runs.is_empty() { h3 { (printable(step)) } (overview::section(&runs)) } }
}

/// Returns true if figures are those of the built-in file system.
fn demonstrates(all: &SeriesResult) -> bool {
    all.embedded || all.results().any(|result| result.target.embedded)
}

/// A measured cell: its position on the axis, its line, and its figures.
struct Cell<'s> {
    at: usize,
    line: String,
    rows: Vec<Row<'s>>,
}

fn cells(all: &SeriesResult) -> Vec<Cell<'_>> {
    let Some((across, others)) = all.keys.split_last() else {
        return Vec::new();
    };
    let cells = all.cells.iter().filter_map(|cell| {
        let value = cell.value(&across.name)?;
        let at = across.values.iter().position(|known| known == value)?;
        let line = others.iter().filter_map(|key| {
            let value = cell.value(&key.name)?;
            Some(format!("{} {value}", key.name))
        });
        Some(Cell {
            at,
            line: line.collect::<Vec<String>>().join(", "),
            rows: Row::finished(cell.result.as_ref()?),
        })
    });
    cells.collect()
}

/// Names and labels of all operations, in the order of first appearance.
fn operations(all: &SeriesResult) -> Vec<(&str, &str)> {
    let phases = all.results().flat_map(|result| &result.phases);
    distinct(phases.map(|phase| (phase.name.as_str(), phase.label.as_str())))
}

/// Rate and p99 of an operation over the values of the last key, with a line for each combination
/// of the others.
fn curves(all: &SeriesResult, operation: &str) -> Vec<Chart> {
    let cells = cells(all);
    let names = distinct(cells.iter().map(|cell| cell.line.as_str()));
    let lines = |value: fn(&Row<'_>) -> Option<f64>| {
        let line = |(n, name): (usize, &&str)| {
            let on = cells.iter().filter(|cell| cell.line == **name);
            let points = on.filter_map(|cell| {
                let row = cell.rows.iter().find(|row| row.name() == operation)?;
                Some((cell.at as f64, value(row)?))
            });
            let mut points: Vec<(f64, f64)> = points.collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            (n, points)
        };
        names.iter().enumerate().map(line).collect::<Vec<_>>()
    };
    let Some(across) = all.keys.last() else {
        return Vec::new();
    };
    let keys: Vec<(usize, String)> = match names.as_slice() {
        [""] => Vec::new(),
        several => several
            .iter()
            .enumerate()
            .map(|(n, &name)| (n, name.to_owned()))
            .collect(),
    };
    let draw = |title: String, lines: Vec<(usize, Vec<(f64, f64)>)>, log: bool| {
        let values = || {
            lines
                .iter()
                .flat_map(|(_, points)| points)
                .map(|(_, value)| *value)
        };
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(0.0, f64::max);
        let y = match log {
            true => Axis::log(low, high, human_nanos),
            false => Axis::from_zero(high, short),
        };
        let scaled = |points: Vec<(f64, f64)>| match log {
            true => points
                .into_iter()
                .map(|(x, v)| (x, v.max(1.0).log10()))
                .collect(),
            false => points,
        };
        values().next()?;
        let content = Content {
            lines: lines
                .into_iter()
                .map(|(n, points)| (n, scaled(points)))
                .collect(),
            dots: true,
            ..Content::default()
        };
        let axes = [&values_axis(&across.values), &y];
        Some(Chart::new(title, keys.clone(), axes, &content))
    };
    let over = printable(&across.name);
    let rate = draw(
        format!("Operations per second over {over}"),
        lines(|row| row.rate()),
        false,
    );
    let p99 = draw(
        format!("p99 over {over}"),
        lines(|row| row.number("service", "p99")),
        true,
    );
    rate.into_iter().chain(p99).collect()
}

/// The values of a key, evenly spaced in the order given.
fn values_axis(values: &[String]) -> Axis {
    let names: Vec<String> = values.iter().map(|value| printable(value)).collect();
    let last = names.len().saturating_sub(1).max(1) as f64;
    Axis {
        range: -0.1 * last..1.1 * last,
        ticks: (0..names.len()).map(|i| i as f64).collect(),
        label: Box::new(move |at| names.get(at.round() as usize).cloned().unwrap_or_default()),
    }
}
