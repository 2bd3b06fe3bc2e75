//! The table of `rbench nn`: NNBench's operations by number of workers, and where they stop
//! scaling.

use rbench_core::units::{counted, human_count, human_nanos, human_rate};

use crate::figures::Row;
use crate::schema::{CellResult, SeriesResult};
use crate::table::{Table, left, or_none, right, sentence};
use crate::view::View;

/// NNBench's name of an operation, its phase, and its number of transactions in NNBench: creating
/// and closing are two.
const OPERATIONS: [(&str, &str, f64); 4] = [
    ("create_write", "file-create", 2.0),
    ("open_read", "file-read", 1.0),
    ("rename", "file-rename", 1.0),
    ("delete", "file-remove", 1.0),
];

/// Minimum relative growth of the rate, as a share of the growth of the workers. An operation stops
/// scaling at the first step below it.
const SCALES: f64 = 0.1;

/// An operation at a given number of workers.
struct Rung<'s> {
    workers: f64,
    figures: Row<'s>,
    /// Spread of the actual starts, s; the maximum over iterations.
    skew_s: f64,
}

pub fn render(series: &SeriesResult, view: View) -> String {
    let mut table = Table::new([
        left("Operation"),
        right("Workers"),
        right("per second"),
        right("NNBench TPS"),
        right("Mean"),
        right("p50"),
        right("p99"),
        right("Errors"),
        right("Start skew"),
        right("Workers/rate"),
        right("Little"),
    ]);
    let mut scaling = String::new();
    for (name, phase, transactions) in OPERATIONS {
        let rungs: Vec<Rung<'_>> = series
            .cells
            .iter()
            .filter_map(|cell| rung(cell, phase))
            .collect();
        for rung in &rungs {
            table.row(cells(name, transactions, rung));
        }
        scaling.push_str(&sentence(view, "- ", &ends_at(name, &rungs)));
    }
    if table.is_empty() {
        return "No number of workers has finished.\n".to_owned();
    }
    format!("{}\nSCALING\n{scaling}", table.render(view))
}

fn rung<'s>(cell: &'s CellResult, phase: &str) -> Option<Rung<'s>> {
    let result = cell.result.as_ref()?;
    let rows = Row::finished(result);
    let of_phase = result.phases.iter().filter(|row| row.name == phase);
    Some(Rung {
        workers: cell.value("workers")?.parse().ok()?,
        figures: rows.into_iter().find(|row| row.name() == phase)?,
        skew_s: of_phase.map(|row| row.start_skew_s).fold(0.0, f64::max),
    })
}

fn cells(name: &str, transactions: f64, rung: &Rung<'_>) -> Vec<String> {
    let Rung {
        workers,
        figures,
        skew_s,
    } = rung;
    let rate = figures.rate().filter(|rate| *rate > 0.0);
    // By Little's law, always busy workers need this time for an operation.
    let each_ns = rate.map(|rate| workers / rate * 1e9);
    let ratio = figures
        .mean_ns()
        .zip(each_ns)
        .map(|(mean, each)| mean / each);
    vec![
        name.to_owned(),
        human_count(*workers as u64),
        or_none(rate.map(human_rate)),
        or_none(rate.map(|rate| human_rate(transactions * rate))),
        figures.text("service", "mean"),
        figures.text("service", "p50"),
        figures.text("service", "p99"),
        figures.text("errors", ""),
        human_nanos(skew_s * 1e9),
        or_none(each_ns.map(human_nanos)),
        or_none(ratio.map(|ratio| format!("{:.0}%", ratio * 100.0))),
    ]
}

/// Describes where an operation stops scaling.
fn ends_at(name: &str, rungs: &[Rung<'_>]) -> String {
    let known: Vec<(f64, f64)> = rungs
        .iter()
        .filter_map(|rung| Some((rung.workers, rung.figures.rate().filter(|r| *r > 0.0)?)))
        .collect();
    let stop = known.windows(2).find(|pair| {
        let [(few, low), (many, high)] = [pair[0], pair[1]];
        high / low - 1.0 < SCALES * (many / few - 1.0)
    });
    match (stop, known.last()) {
        (Some(pair), _) => {
            let [(few, low), (many, high)] = [pair[0], pair[1]];
            format!(
                "{name} stops scaling at {}: from there to {many}, {:.0}% more, the rate changes by \
                 {:+.1}%.",
                counted(few as u64, "worker"),
                (many / few - 1.0) * 100.0,
                (high / low - 1.0) * 100.0
            )
        }
        (None, Some((last, _))) if known.len() > 1 => {
            format!("{name} still scales at {last} workers.")
        }
        _ => format!("{name}: judging whether it scales needs two numbers of workers."),
    }
}
