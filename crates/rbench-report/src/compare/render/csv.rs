//! CSV, for tables: a line for each figure of each operation. Series also have a line for each
//! figure of the whole, and a first column with the cell.

use rbench_core::plain;

use crate::compare::{Comparison, Outcome, Row, Whole};
use crate::csv::written;
use crate::json::digits;

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

/// Renders the figures; the verdict is in the line of the figure that it judges.
pub fn render(comparison: &Comparison) -> String {
    let series = comparison.series.as_ref();
    let titles = ("cell", TITLES.map(str::to_owned));
    let wholes = series.iter().flat_map(|series| &series.wholes);
    let wholes = wholes.map(|figure| ("", whole(figure)));
    let rows = comparison.rows.iter().flat_map(|row| {
        let cell = row.cell.as_deref().unwrap_or_default();
        let figures = row.figures.iter();
        figures.map(move |outcome| (cell, line(row, outcome)))
    });
    let all = [titles].into_iter().chain(wholes).chain(rows);
    written(all.map(|(cell, line)| {
        let of_series = series.map(|_| plain(cell).into_owned());
        of_series.into_iter().chain(line).collect()
    }))
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |v| digits(v).to_string())
}

fn whole(whole: &Whole) -> [String; 12] {
    let verdict = whole.verdict.map_or("", crate::compare::Verdict::words);
    [
        String::new(),
        plain(&whole.label).into_owned(),
        plain(&whole.name).into_owned(),
        plain(&whole.unit).into_owned(),
        number(whole.base.value),
        number(whole.new.value),
        number(whole.ratio),
        number(whole.low),
        number(whole.high),
        String::new(),
        String::new(),
        verdict.to_owned(),
    ]
}

fn line(row: &Row, outcome: &Outcome) -> [String; 12] {
    let interval = outcome.interval;
    let verdict = if outcome.figure == row.judged_by {
        row.verdict.words()
    } else {
        ""
    };
    [
        plain(&row.name).into_owned(),
        plain(&row.label).into_owned(),
        outcome.figure.name.clone(),
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
