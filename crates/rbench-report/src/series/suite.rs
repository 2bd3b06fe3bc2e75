//! The tables of a suite: those of each step, in the form of its kind.

use rbench_core::plain::plain_lines;

use super::{steps, tables};
use crate::figures::Row;
use crate::ops;
use crate::schema::{CellResult, SeriesResult, SeriesStep};
use crate::table::{Table, left, right, sentence};
use crate::view::View;

/// Each step below its name.
pub fn render(series: &SeriesResult, view: View) -> String {
    let shown = |(name, part): (&str, SeriesResult)| {
        let tables = match part.keys.is_empty() {
            true => rows(&part, view),
            false => tables(&part, view),
        };
        let title = format!("STEP {name}");
        format!("{}{tables}", plain_lines(&sentence(view, "", &title)))
    };
    let all: Vec<String> = steps(series).map(shown).collect();
    all.join("\n")
}

/// The step's cells as a series of their own; `None` if none was run.
pub(super) fn part(series: &SeriesResult, step: &SeriesStep) -> Option<SeriesResult> {
    let of_step = step.first..step.first.saturating_add(step.cells);
    let cells = series.cells.iter();
    let cells: Vec<CellResult> = cells
        .filter(|cell| of_step.contains(&cell.index))
        .cloned()
        .collect();
    if cells.is_empty() {
        return None;
    }
    Some(SeriesResult {
        kind: step.kind.clone(),
        suite: None,
        keys: step.keys.clone(),
        planned: Some(step.cells),
        steps: Vec::new(),
        left_out: Vec::new(),
        // The promises belong to the whole suite.
        check: None,
        cells,
        ..series.clone()
    })
}

/// The rows of single runs: one per operation.
fn rows(part: &SeriesResult, view: View) -> String {
    let mut table = Table::new([
        left("Operation"),
        right("Items"),
        right("per second"),
        right("Bandwidth").optional(),
        right("Mean"),
        right("p50"),
        right("p99"),
        right("Errors"),
        left("Cache").optional(),
    ]);
    for result in part.results() {
        for row in Row::finished(result) {
            table.row([
                row.label().to_owned(),
                row.text("items", ""),
                row.text(ops::rate(result), ""),
                row.text("bandwidth", ""),
                row.text("service", "mean"),
                row.text("service", "p50"),
                row.text("service", "p99"),
                row.text("errors", ""),
                row.text("cache", ""),
            ]);
        }
    }
    table.render(view)
}
