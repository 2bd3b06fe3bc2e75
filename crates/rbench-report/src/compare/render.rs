//! A comparison as text: for people, for a pull request, for machines.

mod csv;
mod json;
mod md;
mod text;

use rbench_core::units::human_rate;

use super::{
    Basis, Bracket, Comparison, Interval, Outcome, Row, SeriesPart, Verdict, Whole, within,
};
use crate::table::{NONE, or_none};
use crate::view::View;

pub use json::COMPARE_SCHEMA;
pub(crate) use json::ComparisonResult;

/// One format of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The name that `--format` takes.
    pub name: &'static str,
    /// Renders text for people in this view; ends with a newline.
    pub render: fn(&Comparison, View) -> String,
}

/// Every format; the first is the default.
pub const FORMATS: &[Format] = &[
    format("text", text::render),
    format("md", |comparison, _| md::render(comparison)),
    format("json", |comparison, _| json::render(comparison)),
    format("csv", |comparison, _| csv::render(comparison)),
];

const fn format(name: &'static str, render: fn(&Comparison, View) -> String) -> Format {
    Format { name, render }
}

/// The value of NEW with its ratio to BASE in brackets.
fn with_ratio(outcome: &Outcome) -> String {
    let new = outcome.figure.unit.show(outcome.new);
    format!("{new} ({})", ratio(outcome.ratio))
}

/// A ratio that shows a difference of 1 %; small ones with two digits.
pub(crate) fn ratio(ratio: f64) -> String {
    match ratio {
        tiny if tiny < 0.0995 => {
            let zeros = -tiny.max(1e-9).log10().floor();
            format!("{tiny:.*}", zeros as usize + 1)
        }
        small if small < 9.995 => format!("{small:.2}"),
        middle if middle < 99.95 => format!("{middle:.1}"),
        large => format!("{large:.0}"),
    }
}

/// A change in per cent, with its sign; near -100 % with two decimals.
fn change(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    match percent {
        large if large >= 999.5 => "over +1000%".to_owned(),
        middle if middle >= 99.95 => format!("{middle:+.0}%"),
        _ if ratio < 0.0001 => "under -99.99%".to_owned(),
        _ if ratio < 0.00995 => format!("{percent:+.2}%"),
        _ => format!("{percent:+.1}%"),
    }
}

/// From where to where the change may be.
pub(crate) fn interval(interval: Option<Interval>) -> String {
    let ends = interval.map(|interval| [interval.low, interval.high].map(change));
    or_none(ends.map(|[low, high]| match low == high {
        true => low,
        false => format!("{low} to {high}"),
    }))
}

/// The samples of both sides.
fn samples(row: &Row) -> String {
    match (row.base, row.base == row.new) {
        (Basis::Published, _) => row.new.words(),
        (_, true) => format!("{} each", row.base.words()),
        (_, false) => format!("{}, {}", row.base.words(), row.new.words()),
    }
}

/// Explains intervals and verdicts.
fn meaning(comparison: &Comparison) -> String {
    let options = &comparison.options;
    let chance = percent(1.0 - options.confidence);
    let within_runs = |row: &Row| {
        row.base != Basis::Published
            && [row.base, row.new]
                .iter()
                .any(|basis| matches!(basis, Basis::Iterations(_)))
            && matches!(row.verdict, Verdict::Slower | Verdict::Faster)
    };
    let alternate = match comparison.rows.iter().any(within_runs) {
        true => {
            " What lasts for a whole run, such as load of other programs, counts as a difference as well: to exclude \
             it, run both alternately, at least 4 times each."
        }
        false => "",
    };
    format!(
        "All operations are judged together: if nothing differs, at most {chance}% of comparisons show a difference \
         anywhere. Changes below {}% do not count.{alternate}",
        percent(options.min_effect)
    )
}

/// A share in per cent, in the shortest exact form.
fn percent(share: f64) -> String {
    let rounded = (share * 1e8).round() / 1e6;
    format!("{rounded}")
}

/// The cells of an operation: its label, the judged figure, its values, the change, the verdict, and
/// the samples.
fn verdict_cells(row: &Row) -> [String; 7] {
    let none = || std::array::from_fn(|_| NONE.to_owned());
    let [figure, base, new, change] = row.judged().map_or_else(none, figure_cells);
    let label = row.label.clone();
    [label, figure, base, new, change, marked(row), samples(row)]
}

/// The cells of a figure: its label, its values, and the change.
fn figure_cells(outcome: &Outcome) -> [String; 4] {
    [
        outcome.figure.label.clone(),
        outcome.figure.unit.show(outcome.base),
        with_ratio(outcome),
        interval(outcome.interval),
    ]
}

/// The figures that no verdict judges, by row: of series only those of the rows that differ.
fn other_figures(comparison: &Comparison) -> impl Iterator<Item = (String, Vec<[String; 4]>)> {
    let series = comparison.series.is_some();
    let differs = |row: &&Row| matches!(row.verdict, Verdict::Faster | Verdict::Slower);
    let rows = comparison.rows.iter();
    let rows = rows.filter(move |row| !series || differs(row));
    rows.map(|row| {
        let others = row.figures.iter().filter(|f| f.figure != row.judged_by);
        let label = within(row.cell.as_deref(), &row.label);
        (label, others.map(figure_cells).collect())
    })
}

/// The cells of each difference: the property, and its values.
fn differences(comparison: &Comparison) -> impl Iterator<Item = [String; 3]> {
    let all = comparison.differences.iter();
    all.map(|one| [&one.what, &one.base, &one.new].map(String::clone))
}

/// The number of each verdict.
fn counted(comparison: &Comparison) -> String {
    use Verdict::{Faster, NoDifference, Slower, TooFew};
    let of = |verdict| {
        comparison
            .rows
            .iter()
            .filter(|r| r.verdict == verdict)
            .count()
    };
    let found =
        [Slower, Faster, NoDifference, TooFew].map(|verdict| (of(verdict), verdict.words()));
    let found = found.iter().filter(|(n, _)| *n > 0);
    let found: Vec<String> = found.map(|(n, words)| format!("{n} {words}")).collect();
    let rows = match comparison.rows.len() {
        0 => "No operation to compare".to_owned(),
        1 => format!("1 operation: {}", found.join(", ")),
        n => format!("{n} operations: {}", found.join(", ")),
    };
    match &comparison.series {
        Some(series) => in_cells(series, &rows),
        None => rows,
    }
}

/// The number of cells, before the verdicts of all operations.
fn in_cells(series: &SeriesPart, rows: &str) -> String {
    let (all, only) = (series.cells.len(), missing(series).count());
    let cells = match (all, only) {
        (1, 0) => "1 cell".to_owned(),
        (n, 0) => format!("{n} cells"),
        (n, only) => format!("{} of {n} cells", n - only),
    };
    format!("{cells}, {rows}")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The cells that are not compared, with the reasons.
fn missing(series: &SeriesPart) -> impl Iterator<Item = (&str, &str)> {
    let cells = series.cells.iter();
    cells.filter_map(|cell| Some((cell.name.as_str(), cell.why_not.as_deref()?)))
}

/// Maximum number of operations that a summary names.
const NAMED: usize = 12;

/// The result in one sentence, which calls NEW by this title; of series after those about the whole.
pub(crate) fn headline(comparison: &Comparison, new: &str) -> String {
    let wholes = comparison.series.iter().flat_map(|series| &series.wholes);
    let judged = wholes.filter_map(|whole| Some((&whole.label, whole.verdict?)));
    let mut sentences: Vec<String> = judged
        .map(|(label, verdict)| format!("{}: {}.", capital(label), verdict.words()))
        .collect();
    let rows = &comparison.rows;
    let of = |verdict| rows.iter().filter(move |row| row.verdict == verdict);
    let several = rows
        .windows(2)
        .any(|pair| pair[0].judged_by != pair[1].judged_by);
    let (none, too_few) = (
        of(Verdict::NoDifference).count(),
        of(Verdict::TooFew).count(),
    );
    let differing = [Verdict::Slower, Verdict::Faster]
        .into_iter()
        .filter_map(|verdict| {
            let changes: Vec<String> = of(verdict).map(|row| changed(row, several)).collect();
            let named = &changes[..changes.len().min(NAMED)];
            let more = match changes.len() - named.len() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            let count = match (changes.len(), rows.len()) {
                (1, 1) => String::new(),
                (n, 1..) => format!(" in {n} of {} operations", rows.len()),
                (_, 0) => return None,
            };
            let words = format!("{}{count}: {}{more}", verdict.words(), named.join(", "));
            (!changes.is_empty()).then_some(words)
        });
    let differing: Vec<String> = differing.collect();
    if !differing.is_empty() {
        let others = match none {
            0 => String::new(),
            n => format!("; no difference is shown in {n}"),
        };
        sentences.push(format!("{new} is {}{others}.", differing.join("; ")));
    } else if none > 0 {
        let others = match (none, too_few) {
            (1, 0) => String::new(),
            (n, 0) => format!(" in any of {n} operations"),
            (n, _) => format!(" in {n} of {} operations", rows.len()),
        };
        sentences.push(format!("No difference is shown{others}."));
    } else if too_few > 0 && sentences.is_empty() {
        sentences.push(
            "There are too few samples for a verdict: repeat both with --iterations 5.".to_owned(),
        );
    }
    sentences.join(" ")
}

/// An operation with its change: `File creation (-16.2%)`, `mkdir (mean +30.0%)`. With `named`, a
/// rate is named, too.
fn changed(row: &Row, named: bool) -> String {
    let label = within(row.cell.as_deref(), &row.label);
    let words = row.judged().map(|outcome| {
        let change = change(outcome.ratio);
        match outcome.figure.more_is_better() && !named {
            true => change,
            false => format!("{} {change}", outcome.figure.label),
        }
    });
    let unlike = row.unlike.iter().map(ToString::to_string);
    let words: Vec<String> = words.into_iter().chain(unlike).collect();
    format!("{label} ({})", words.join("; "))
}

/// The verdict of a row, marked with what was measured otherwise.
pub(crate) fn marked(row: &Row) -> String {
    let unlike = row.unlike.iter().map(ToString::to_string);
    let words: Vec<String> = std::iter::once(row.verdict.words().to_owned())
        .chain(unlike)
        .collect();
    words.join("; ")
}

/// The titles of the columns of both sides.
fn columns(comparison: &Comparison) -> [String; 2] {
    let Comparison { base, new, .. } = comparison;
    [base.title.clone(), format!("{} (ratio)", new.title)]
}

/// The figures of the whole: what, both sides, change, verdict.
fn wholes(comparison: &Comparison) -> Vec<[String; 5]> {
    let all = comparison.series.iter().flat_map(|series| &series.wholes);
    all.map(|whole| {
        [
            whole.label.clone(),
            bracket(whole, whole.base),
            match whole.ratio {
                Some(value) => format!("{} ({})", bracket(whole, whole.new), ratio(value)),
                None => bracket(whole, whole.new),
            },
            span(whole),
            or_none(whole.verdict.map(|verdict| verdict.words().to_owned())),
        ]
    })
    .collect()
}

/// A figure of one side; for a knee the two rates around the limit.
fn bracket(whole: &Whole, bracket: Bracket) -> String {
    let number = |value: f64| match whole.unit.as_str() {
        "ops/s" => human_rate(value),
        "" => format!("{value:.6}"),
        unit => format!("{value:.6} {unit}"),
    };
    let searched = whole.verdict.is_some();
    match (bracket.value, bracket.below) {
        (Some(value), Some(below)) => format!("{} to {}", number(value), number(below)),
        (Some(value), None) if searched => format!("above {}", number(value)),
        (Some(value), None) => number(value),
        (None, Some(below)) => format!("below {}", number(below)),
        (None, None) => NONE.to_owned(),
    }
}

/// The bounds of the change of a limit.
fn span(whole: &Whole) -> String {
    match (whole.low, whole.high) {
        (Some(low), Some(high)) => format!("{} to {}", change(low), change(high)),
        (Some(low), None) => format!("above {}", change(low)),
        (None, Some(high)) => format!("below {}", change(high)),
        (None, None) => NONE.to_owned(),
    }
}

/// Published figures that were not measured, with the reason: a line for each reason of each
/// workload.
fn not_compared(comparison: &Comparison) -> Vec<[String; 3]> {
    let mut lines: Vec<[String; 3]> = Vec::new();
    for row in &comparison.unmeasured {
        let same = |line: &&mut [String; 3]| line[0] == row.workload && line[2] == row.reason;
        match lines.iter_mut().find(same) {
            Some([_, operations, _]) => {
                operations.push_str(", ");
                operations.push_str(&row.operation);
            }
            None => lines.push([
                row.workload.clone(),
                row.operation.clone(),
                row.reason.clone(),
            ]),
        }
    }
    lines
}
