//! The per-operation table of `rbench ops`: one row for each operation, in the order of the table,
//! with its system calls.

use std::collections::BTreeSet;

use rbench_core::operations::{OPS_ROWS, OpsRow};
use rbench_core::plain::plain_lines;
use rbench_core::units::{human_count, human_rate};

use crate::figures::{self, caches};
use crate::schema::{PhaseResult, RunResult};
use crate::table::{NONE, Table, left, or_none, right, sections, sentence};
use crate::text::{details, header, iterations};
use crate::view::View;

/// The setting that names the rows; only the per-operation table has it.
const ROWS: &str = "rows";

/// Shown in a row that no system call reaches.
const NOT_AVAILABLE: &str = "n/a";

/// Returns true if the run was for the per-operation table.
pub fn is_table(result: &RunResult) -> bool {
    result.spec.contains_key(ROWS)
}

/// The figure that is the rate of the run's operations: in the per-operation table, each worker
/// counts by its own time.
pub fn rate(result: &RunResult) -> &'static str {
    match is_table(result) {
        true => "active_rate",
        false => "rate",
    }
}

/// The report of a run; sections are a blank line apart.
pub fn render(result: &RunResult, view: View) -> String {
    let text = sections([
        header::render(result, view),
        table(result, view),
        details::errors(result, view),
        details::warnings(result, view),
        details::ending(result, view),
    ]);
    // Names may contain control characters.
    plain_lines(&text).into_owned()
}

/// The rows of the table.
fn rows(result: &RunResult) -> impl Iterator<Item = &'static OpsRow> {
    let asked: Vec<&str> = match result.spec.get(ROWS).and_then(|value| value.as_str()) {
        Some(names) => names.split(',').collect(),
        None => Vec::new(),
    };
    OPS_ROWS.iter().filter(move |row| asked.contains(&row.name))
}

fn table(result: &RunResult, view: View) -> String {
    const TIME: &str = "Microseconds";
    let mut table = Table::new([
        left("Operation"),
        left("System calls"),
        right("Operations"),
        right("Mean").under(TIME),
        right("p50").under(TIME).minor(1),
        right("p99").under(TIME),
        right("Max").under(TIME),
        right("per second"),
        right("Errors"),
        left("Cache"),
    ]);
    let (mut notes, mut known) = (Vec::new(), false);
    let total = iterations(result);
    // Only iterations with phases: the file may claim any number.
    let reached: BTreeSet<u32> = result.phases.iter().map(|p| p.iteration).collect();
    for iteration in reached {
        if total > 1 {
            let nth = iteration.saturating_add(1);
            table.heading(format!("Iteration {nth} of {total}"));
        }
        for row in rows(result) {
            let mut phases = result.phases.iter();
            let phase = phases.find(|p| p.iteration == iteration && p.name == row.name);
            match (phase, row.out_of_reach) {
                (Some(phase), _) => {
                    let forgot = phase.residency.as_ref().is_some_and(|seen| seen.dropped);
                    known |= matches!(row.name, "lookup" | "resolve")
                        && phase.cache.as_deref() != Some("cold")
                        && !forgot;
                    table.row(cells(row, phase));
                }
                (None, Some(reason)) => {
                    let mut cells = vec![NONE.to_owned(); 10];
                    cells[0] = row.name.to_owned();
                    cells[1] = NOT_AVAILABLE.to_owned();
                    table.row(cells);
                    let note = format!("{}: n/a, {reason}\n", row.name);
                    if !notes.contains(&note) {
                        notes.push(note);
                    }
                }
                // Not reached.
                (None, None) => {}
            }
        }
    }
    if table.is_empty() {
        return "No row has finished.\n".to_owned();
    }
    if known {
        notes.push(
            "lookup and resolve: the client may have cached the names; --drop-caches (as root) empties that cache\n"
                .to_owned(),
        );
    }
    let meaning = "per second: the sum over all workers, each by its own time, without untimed opening and closing\n";
    notes.insert(0, meaning.to_owned());
    let notes = notes.iter().map(|note| sentence(view, "", note.trim_end()));
    table.render(view) + &notes.collect::<String>()
}

fn cells(row: &OpsRow, phase: &PhaseResult) -> Vec<String> {
    let times = &phase.latency.service;
    let micros = |ns: f64, one_in: u64| match times.count >= one_in {
        true => format!("{:.1}", ns / 1000.0),
        false => NONE.to_owned(),
    };
    let stopped = if phase.complete { "" } else { " *" };
    vec![
        format!("{}{stopped}", row.name),
        row.calls(),
        human_count(phase.items),
        micros(times.mean_ns, 1),
        micros(times.p50_ns as f64, 2),
        micros(times.p99_ns as f64, 100),
        micros(times.max_ns as f64, 1),
        or_none(figures::active_rate(phase).map(human_rate)),
        human_count(phase.error_count()),
        caches::cell(phase),
    ]
}
