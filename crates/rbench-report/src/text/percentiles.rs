//! All percentiles of the phases, for those who ask for details.

use rbench_core::units::human_nanos;

use super::{for_phases, label, percentile, time_of};
use crate::hist::Hist;
use crate::schema::RunResult;
use crate::table::{Table, left, right};
use crate::view::View;

/// A row for each distribution.
pub fn render(result: &RunResult, view: View) -> String {
    let mut table = Table::new([
        left("PERCENTILES"),
        right("Min"),
        right("Mean"),
        right("Std dev"),
        right("p50"),
        right("p90"),
        right("p95"),
        right("p99"),
        right("p99.9"),
        right("p99.99"),
        right("Max"),
    ]);
    for_phases(result, &mut table, |phase, table| {
        table.row(cells(label(phase), &phase.latency.service));
        if let Some(response) = &phase.latency.response {
            table.row(cells("  response time".to_owned(), response));
        }
    });
    match table.is_empty() {
        true => String::new(),
        false => table.render(view),
    }
}

fn cells(name: String, hist: &Hist) -> Vec<String> {
    let spread = if hist.count > 1 {
        human_nanos(hist.stddev_ns)
    } else {
        crate::table::NONE.to_owned()
    };
    vec![
        name,
        time_of(hist, hist.min_ns as f64),
        time_of(hist, hist.mean_ns),
        spread,
        percentile(hist, hist.p50_ns, 2),
        percentile(hist, hist.p90_ns, 10),
        percentile(hist, hist.p95_ns, 20),
        percentile(hist, hist.p99_ns, 100),
        percentile(hist, hist.p999_ns, 1000),
        percentile(hist, hist.p9999_ns, 10_000),
        time_of(hist, hist.max_ns as f64),
    ]
}
