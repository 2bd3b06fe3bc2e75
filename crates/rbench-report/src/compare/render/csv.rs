//! CSV, for tables: a line for each figure of each operation.

use csv::Writer;
use rbench_core::plain;

use super::digits;
use crate::compare::{Comparison, Outcome, Row};

const TITLES: [&str; 12] = [
    "operation",
    "label",
    "figure",
    "unit",
    "base",
    "new",
    "ratio",
    "ratio_low",
    "ratio_high",
    "level",
    "p",
    "verdict",
];

/// The figures; the verdict stands in the line of the figure that it is about.
pub fn render(comparison: &Comparison) -> String {
    let mut writer = Writer::from_writer(Vec::new());
    let lines = comparison
        .rows
        .iter()
        .flat_map(|row| row.figures.iter().map(move |outcome| line(row, outcome)));
    let titles = TITLES.map(str::to_owned);
    for record in std::iter::once(titles).chain(lines) {
        writer
            .write_record(&record)
            .expect("memory takes every line");
    }
    let bytes = writer.into_inner().expect("memory takes every line");
    String::from_utf8(bytes).expect("every cell is UTF-8")
}

fn line(row: &Row, outcome: &Outcome) -> [String; 12] {
    let number = |value: Option<f64>| value.map_or_else(String::new, |v| digits(v).to_string());
    let interval = outcome.interval;
    let verdict = if outcome.figure == row.judged_by {
        row.verdict.words()
    } else {
        ""
    };
    [
        plain(&row.name).into_owned(),
        plain(&row.label).into_owned(),
        outcome.figure.name.to_owned(),
        outcome.figure.unit.name().to_owned(),
        digits(outcome.base).to_string(),
        digits(outcome.new).to_string(),
        digits(outcome.ratio).to_string(),
        number(interval.map(|i| i.low)),
        number(interval.map(|i| i.high)),
        number(interval.map(|i| i.level)),
        number(interval.map(|i| i.p)),
        verdict.to_owned(),
    ]
}
