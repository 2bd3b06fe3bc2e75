//! Bars of rates and times by operation, before any detail.

use maud::{Markup, html};
use rbench_core::units::{human_nanos, human_rate};

use super::svg::WIDE;
use super::{Shown, key_class};
use crate::figures::Row;
use crate::ops;
use crate::table::{NONE, printable};

/// An operation in all runs: a bar each.
struct Bars<'r> {
    label: &'r str,
    rows: Vec<Option<Row<'r>>>,
}

/// Median and 99th percentile: of the response times, if there are any.
fn times(row: &Row<'_>) -> [Option<f64>; 2] {
    let of = if row.has("response") {
        "response"
    } else {
        "service"
    };
    [row.number(of, "p50"), row.number(of, "p99")]
}

/// The bars of all operations.
pub fn section(runs: &[Shown<'_>]) -> Markup {
    let rows: Vec<Vec<Row<'_>>> = runs.iter().map(|run| Row::all(run.result)).collect();
    let bars: Vec<Bars<'_>> = super::operations(runs)
        .into_iter()
        .map(|(name, label)| Bars {
            label,
            rows: rows
                .iter()
                .map(|rows| rows.iter().find(|row| row.name() == name).cloned())
                .collect(),
        })
        .collect();
    let rate = |run: usize, row: &Row<'_>| {
        row.number(ops::rate(runs[run].result), "")
            .filter(|_| row.number("items", "") > Some(0.0))
    };
    let all = || bars.iter().flat_map(|bars| &bars.rows).flatten();
    let open_loop = all().any(|row| row.has("response"));
    // Rows without intended starts have service times beside the response times of others.
    let which = |row: &Row<'_>| match (open_loop, row.has("response")) {
        (false, _) => "",
        (true, true) => " (response time)",
        (true, false) => " (service time)",
    };
    let of_runs = || bars.iter().flat_map(|bars| bars.rows.iter().enumerate());
    let rates = || of_runs().filter_map(|(run, row)| rate(run, row.as_ref()?).filter(|r| *r > 0.0));
    let (slowest, fastest) = (
        rates().fold(f64::INFINITY, f64::min),
        rates().fold(0.0, f64::max),
    );
    let wide = fastest > WIDE * slowest;
    // Length of a rate's bar in per cent; on a logarithmic scale the shortest is not nothing.
    let length = |rate: f64| match wide {
        true => 100.0 * (2.0 * rate / slowest).max(1.0).ln() / (2.0 * fastest / slowest).ln(),
        false => 100.0 * rate / fastest.max(f64::MIN_POSITIVE),
    };
    let ns = || all().flat_map(times).flatten().map(|ns| ns.max(1.0));
    let (low, high) = (ns().fold(f64::INFINITY, f64::min), ns().fold(1.0, f64::max));
    // Place of a time on a logarithmic scale, in per cent.
    let place = |ns: f64| match high > low {
        true => (100.0 * (ns.max(1.0) / low).ln() / (high / low).ln()).clamp(0.0, 100.0),
        false => 0.0,
    };
    html! {
        @if runs.len() > 1 { p { @for (i, run) in runs.iter().enumerate() { span class=(key_class(i)) { (run.name) } " " } } }
        div.wide { table.bars {
            thead { tr {
                th { "Operation" }
                th.left title="operations without error / elapsed time (in the table of rbench ops, the workers' own time); of several iterations the mean" { "Items per second" @if wide { ", logarithmic" } }
                th.left title="the bar goes from the median to the 99th percentile, on a logarithmic scale; response times in an open loop" { "Latency, p50 to p99, logarithmic" }
            } }
            tbody { @for bars in &bars { tr {
                td { (printable(bars.label)) }
                td.left { @for (i, row) in bars.rows.iter().enumerate() {
                    @let rate = row.as_ref().and_then(|row| rate(i, row));
                    (bar(i, 0.0, rate.map(length), &rate.map_or(NONE.to_owned(), human_rate)))
                } }
                td.left { @for (i, row) in bars.rows.iter().enumerate() {
                    @let [p50, p99] = row.as_ref().map_or([None; 2], times);
                    @let words = [p50, p99].map(|ns| ns.map_or(NONE.to_owned(), human_nanos)).join(" to ");
                    @let words = words + row.as_ref().map_or("", which);
                    (bar(i, p50.map_or(0.0, place), p50.map(|p50| place(p99.unwrap_or(p50)) - place(p50)), &words))
                } }
            } } }
        } }
    }
}

/// A bar in the colour of a run, and its value.
fn bar(run: usize, from: f64, length: Option<f64>, words: &str) -> Markup {
    html! { div.b {
        i { @if let Some(length) = length { span class=(format!("k{}", run % super::svg::COLOURS)) style=(format!("margin-left:{from:.1}%;width:{length:.1}%")) {} } }
        (words)
    } }
}
