//! All percentiles of the phases, for reports with details.

use rbench_core::hist::Hist;

use super::{for_phases, label, time};
use crate::figures::{QUANTITIES, Quantity};
use crate::schema::RunResult;
use crate::table::{Table, left, right};
use crate::view::View;

/// All but the number of values.
fn quantities() -> impl Iterator<Item = &'static Quantity> {
    QUANTITIES.iter().filter(|quantity| quantity.least > 0)
}

/// A row for each distribution.
pub fn render(result: &RunResult, view: View) -> String {
    let columns = quantities().map(|quantity| right(quantity.title));
    let mut table = Table::new([left("PERCENTILES")].into_iter().chain(columns));
    for_phases(result, &mut table, |phase, table| {
        table.row(cells(label(phase), &phase.latency.service));
        if let Some(response) = &phase.latency.response {
            table.row(cells("  response time".to_owned(), response));
        }
    });
    table.render(view)
}

fn cells(name: String, hist: &Hist) -> impl Iterator<Item = String> {
    let times = quantities().map(|quantity| time(hist, quantity.name));
    [name].into_iter().chain(times)
}
