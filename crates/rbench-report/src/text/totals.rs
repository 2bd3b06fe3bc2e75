//! The table of several iterations: each operation over all of them.

use rbench_core::units::{human_bandwidth, human_count, human_nanos, human_rate};

use super::{STOPPED, UNSYNCED, marks};
use crate::figures::Figures;
use crate::schema::RunResult;
use crate::table::{NONE, Table, left, right};
use crate::view::View;

/// A row for each operation: rates are means over the iterations, times those of all
/// operations together.
pub fn render(result: &RunResult, view: View) -> String {
    let open_loop = result.phases.iter().any(|p| p.latency.response.is_some());
    let time = if open_loop { "Service time" } else { "Latency" };
    let mut table = Table::new([
        left("All iterations"),
        right("Items"),
        right("Items/s"),
        right("Bandwidth").optional(),
        right("Mean").under(time),
        right("p50").under(time),
        right("p99").under(time),
        right("p99.9").under(time).minor(1),
        right("Max").under(time),
        right("Errors"),
        left("Cache").optional(),
    ]);
    let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    for row in Figures::of(result) {
        let mut same = result.phases.iter().filter(|p| p.name == row.name);
        let stopped = same.clone().any(|p| !p.complete);
        let unsynced = same.any(|p| p.unsynced);
        let mut cells = vec![
            format!(
                "{}{}{}",
                row.label,
                if stopped { STOPPED } else { "" },
                if unsynced { UNSYNCED } else { "" }
            ),
            or_none((row.items > 0).then(|| human_count(row.items))),
            or_none(row.rate.map(human_rate)),
            or_none(row.bandwidth.map(human_bandwidth)),
        ];
        cells.extend(times(row.service.as_ref()));
        cells.push(human_count(row.errors));
        cells.push(or_none(row.cache));
        table.row(cells);
        if let Some(response) = &row.response {
            let mut cells = vec![String::new(); 4];
            cells[0] = "  response time".to_owned();
            cells.extend(times(Some(response)));
            cells.extend([String::new(), String::new()]);
            table.row(cells);
        }
    }
    match table.is_empty() {
        true => "No phase has finished.\n".to_owned(),
        false => table.render(view) + &marks(result),
    }
}

/// Mean, p50, p99, p99.9 and maximum, dashes where there are too few values.
fn times(all: Option<&hdrhistogram::Histogram<u64>>) -> [String; 5] {
    let of = |value: f64, least: u64| match all {
        Some(all) if all.len() >= least => human_nanos(value),
        _ => NONE.to_owned(),
    };
    let at = |quantile: f64| all.map_or(0.0, |all| all.value_at_quantile(quantile) as f64);
    [
        of(all.map_or(0.0, hdrhistogram::Histogram::mean), 1),
        of(at(0.5), 2),
        of(at(0.99), 100),
        of(at(0.999), 1000),
        of(at(1.0), 1),
    ]
}
