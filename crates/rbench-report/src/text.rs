//! The text report: plain text, aligned, without colours, as wide as the view.
//!
//! docs/reference/report.md explains how to read it.

pub(crate) mod caches;
pub(crate) mod client;
pub(crate) mod details;
pub(crate) mod header;
pub(crate) mod marks;
pub(crate) mod operations;
mod percentiles;
pub(crate) mod replay;
pub(crate) mod steady;

use rbench_core::FailureKind;
use rbench_core::hist::Hist;
use rbench_core::plain::plain_lines;
use rbench_core::units::{human_bandwidth, human_count, human_nanos, human_rate};

use crate::figures::quantity;
use crate::schema::{ErrorExample, PhaseResult, RunResult, SummaryRow};
use crate::summary::BYTES_PER_S;
use crate::table::{NONE, Table, left, or_none, right, sections};
use crate::view::View;

/// The report of a run; blank lines separate sections. Without details: totals, problems, and how
/// far the figures can be trusted.
pub fn render(result: &RunResult, view: View) -> String {
    let details = |section: fn(&RunResult, View) -> String| match view.details {
        true => section(result, view),
        false => String::new(),
    };
    let text = sections([
        header::render(result, view),
        operations::render(result, view),
        steady::render(result, view),
        details(percentiles::render),
        details(operations::more),
        details::found(result, view),
        replay::render(result, view),
        details(caches::render),
        marks::render(result, view),
        client::cost(result, view),
        client::counters(result, view),
        details::by_host(result, view),
        details::ranks(result, view),
        details::stonewalls(result, view),
        details::errors(result, view),
        details::warnings(result, view),
        summary(result, view),
        details::ending(result, view),
    ]);
    // Names may contain control characters.
    plain_lines(&text).into_owned()
}

/// Marks phases that were stopped early.
const STOPPED: &str = " *";

/// Marks phases that wrote data without a sync.
const UNSYNCED: &str = " ~";

/// The name of the phase, marked if it was stopped.
fn label(phase: &PhaseResult) -> String {
    let mark = if phase.complete { "" } else { STOPPED };
    format!("{}{mark}", phase.label)
}

/// Number of iterations, as far as the result holds it.
pub(crate) fn iterations(result: &RunResult) -> u32 {
    let reached = result
        .phases
        .iter()
        .map(|p| p.iteration.saturating_add(1))
        .max();
    let asked = result.spec.get("iterations").and_then(|value| {
        // Settings are stored as text.
        let number = || value.as_str()?.parse().ok();
        value.as_u64().or_else(number)
    });
    reached
        .unwrap_or(0)
        .max(asked.and_then(|n| u32::try_from(n).ok()).unwrap_or(0))
}

/// Adds rows for each phase, under a heading for each iteration if there are several.
fn for_phases(result: &RunResult, table: &mut Table, add: impl Fn(&PhaseResult, &mut Table)) {
    let total = iterations(result);
    let mut current = None;
    for phase in &result.phases {
        heading(table, (phase.iteration, total), &mut current);
        add(phase, table);
    }
}

/// Adds a heading if there are several iterations, and this is not the current one.
fn heading(table: &mut Table, (iteration, total): (u32, u32), current: &mut Option<u32>) {
    if total > 1 && current.replace(iteration) != Some(iteration) {
        let nth = iteration.saturating_add(1);
        table.heading(format!("Iteration {nth} of {total}"));
    }
}

/// ` in iteration 2`, if there are several.
pub(crate) fn in_iteration(phase: &PhaseResult, iterations: u32) -> String {
    match iterations {
        0 | 1 => String::new(),
        _ => format!(" in iteration {}", phase.iteration.saturating_add(1)),
    }
}

/// The meaning of the marks after names of phases, as far as there are any.
fn marks(result: &RunResult) -> String {
    let mut text = String::new();
    if result.phases.iter().any(|p| !p.complete) {
        text.push_str("* stopped early\n");
    }
    if result.phases.iter().any(|p| p.unsynced) {
        text.push_str("~ not synced: some of the data may not have reached storage\n");
    }
    text
}

/// A quantity of some times; a dash where there are too few for it.
pub(crate) fn time(hist: &Hist, of: &str) -> String {
    let ns = quantity(of).filter(|quantity| hist.count >= quantity.least);
    or_none(ns.map(|quantity| human_nanos((quantity.field)(hist))))
}

fn summary(result: &RunResult, view: View) -> String {
    if iterations(result) < 2 {
        return String::new();
    }
    let mut table = Table::new([
        left("SUMMARY"),
        left("Unit"),
        right("Iterations").minor(1),
        right("Max"),
        right("Min"),
        right("Mean"),
        right("Std dev").minor(2),
        right("of mean"),
        right("95% within").optional(),
    ]);
    let no_rate = |name: &str| {
        let mut rows = result.phases.iter().filter(|p| p.name == name);
        rows.all(|phase| phase.one_each)
    };
    for row in result.summary.iter().filter(|row| !no_rate(&row.name)) {
        let (unit, show): (&str, fn(f64) -> String) = if row.unit == BYTES_PER_S {
            ("bandwidth", human_bandwidth)
        } else {
            ("items/s", human_rate)
        };
        let (stddev, share) = match row.iterations {
            0 | 1 => (NONE.to_owned(), NONE.to_owned()),
            _ => (show(row.stddev), share_of_mean(row)),
        };
        table.row([
            row.label.clone(),
            unit.to_owned(),
            row.iterations.to_string(),
            show(row.max),
            show(row.min),
            show(row.mean),
            stddev,
            share,
            or_none(row.precision.map(|known| format!("±{:.1}%", 100.0 * known))),
        ]);
    }
    table.render(view)
}

fn share_of_mean(row: &SummaryRow) -> String {
    if row.mean > 0.0 {
        format!("{:.1}%", 100.0 * row.stddev / row.mean)
    } else {
        NONE.to_owned()
    }
}

/// A kind of failure as a sentence that starts with `place`.
pub(crate) fn failure(place: &str, example: &ErrorExample) -> String {
    let ErrorExample {
        error,
        meaning,
        count,
        op,
        path,
        detail,
        rank,
        host,
    } = example;
    let count = human_count(*count);
    let mut text =
        format!("{place}: {count} x {error}, for example rank {rank} on {host}: {op} {path}");
    for more in [meaning, detail].into_iter().filter(|m| !m.is_empty()) {
        text.push_str(": ");
        text.push_str(more);
    }
    text
}

/// The first failure of each kind of each phase, as sentences. Excludes damaged blocks, which ranks
/// report individually, and failures on dead mounts.
pub fn failures(result: &RunResult) -> Vec<String> {
    let mismatch = FailureKind::Mismatch.name();
    let of = |phase: &PhaseResult| {
        let examples = phase.error_examples.iter();
        let is_reported = |e: &ErrorExample| result.is_of_dead_mounts(phase, &e.error, e.count);
        let others = examples.filter(|e| e.error != mismatch && !is_reported(e));
        others
            .map(|e| failure(&phase.label, e))
            .collect::<Vec<String>>()
    };
    result.phases.iter().flat_map(of).collect()
}

/// Formats a time in s for people.
pub(crate) fn seconds(s: f64) -> String {
    human_nanos(s * 1e9)
}
