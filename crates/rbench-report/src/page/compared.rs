//! Runs beside each other: their figures, and what `rbench compare` says of them.

use maud::{Markup, html};

use super::Shown;
use crate::compare::{Comparison, Options, Run, compare, headline, interval, marked, ratio};
use crate::figures::{Row, about};
use crate::table::{NONE, printable};

/// The operations of several runs, each beside the first run.
pub fn table(runs: &[Shown<'_>]) -> Markup {
    let Some((first, others)) = runs.split_first() else {
        return html! {};
    };
    let rows: Vec<Vec<Row<'_>>> = runs.iter().map(|run| Row::all(run.result)).collect();
    let options = Options {
        even_if_different: true,
        ..Options::default()
    };
    let against: Vec<Result<Comparison, String>> = others
        .iter()
        .map(|other| {
            let [base, new] = [first, other].map(|run| Run {
                name: &run.name,
                result: run.result,
            });
            compare(&[base], &[new], &options).map_err(|refusal| refusal.to_string())
        })
        .collect();
    let figures = [
        ("Items/s", "rate", ""),
        ("p50", "service", "p50"),
        ("p99", "service", "p99"),
    ];
    html! {
        @for (other, comparison) in others.iter().zip(&against) { (summary(first, other, comparison)) }
        div.wide { table.beside {
            thead {
                tr {
                    th rowspan="2" { "Operation" }
                    @for run in runs { th.group colspan="3" { (run.name) } }
                    @for other in others { th.group colspan="3" title=(format!("{} compared with {}", other.name, first.name)) { (other.name) " / " (first.name) } }
                }
                tr {
                    @for _ in runs { @for (title, figure, of) in figures { th title=(about(figure, of)) { (title) } } }
                    @for _ in others {
                        th title="of the figure that the verdict is about: the rate, or the time where there is no rate" { "Ratio" }
                        th title="the interval in which the change lies" { "Change" }
                        th.left title="faster, slower: shown beyond chance, and at least 5%" { "Verdict" }
                    }
                }
            }
            tbody { @for (name, label) in super::operations(runs) { tr {
                td { (printable(label)) }
                @for rows in &rows {
                    @let row = rows.iter().find(|row| row.name() == name);
                    @for (_, figure, of) in figures { td { (row.map_or_else(|| NONE.to_owned(), |row| row.text(figure, of))) } }
                }
                @for comparison in &against { (verdict(comparison.as_ref().ok(), name)) }
            } } }
        } }
    }
}

/// The summary of a comparison over all operations.
fn summary(
    first: &Shown<'_>,
    other: &Shown<'_>,
    comparison: &Result<Comparison, String>,
) -> Markup {
    html! {
        p { b { (other.name) " (NEW) against " (first.name) " (BASE): " } @match comparison {
            Ok(comparison) => (printable(&headline(comparison, &comparison.new.title))),
            Err(refusal) => (printable(refusal)),
        } }
        @if let Ok(Comparison { differences, notes, .. }) = comparison {
            @if !differences.is_empty() { ul.warnings { @for difference in differences {
                li { b { "different: " } (printable(&difference.to_string())) }
            } } }
            @if !notes.is_empty() { details {
                summary { (notes.len()) " notes" }
                ul { @for note in notes { li { (printable(note)) } } }
            } }
        }
    }
}

/// Ratio, change and verdict of an operation.
fn verdict(comparison: Option<&Comparison>, name: &str) -> Markup {
    let row = comparison.and_then(|comparison| comparison.rows.iter().find(|row| row.name == name));
    let judged = row.and_then(|row| Some((row, row.judged()?)));
    let class = row.map_or("", |row| row.verdict.words());
    html! { @match judged {
        Some((row, outcome)) => {
            td title=(outcome.figure.label) { (ratio(outcome.ratio)) }
            td { (interval(outcome.interval)) }
            td.left.held[class == "faster"].failed[class == "slower"] { (printable(&marked(row))) }
        },
        None => { @for _ in 0..3 { td { (NONE) } } },
    } }
}
