//! Plain text for people, as wide as the reader's view.

use rbench_core::plain::plain_lines;

use super::{
    columns, counted, headline, meaning, missing, not_compared, other_figures, verdict_cells,
    wholes,
};
use crate::compare::{Comparison, Row};
use crate::table::{Column, NONE, Table, left, right, sections, sentence, titled};
use crate::view::View;

/// Renders the whole comparison; blank lines separate sections.
pub fn render(comparison: &Comparison, view: View) -> String {
    let text = sections([
        sides(comparison, view),
        summary(comparison, view),
        as_a_whole(comparison, view),
        verdicts(comparison, view),
        figures(comparison, view),
        differences(comparison, view),
        unmeasured(comparison, view),
        listed(view, "NOTES", &comparison.notes),
        conditions(comparison, view),
    ]);
    // Names may contain control characters.
    plain_lines(&text).into_owned()
}

fn sides(comparison: &Comparison, view: View) -> String {
    let side = |label: &str, lines: &[String]| -> String {
        let one = |line: &String| sentence(view, label, line);
        lines.iter().map(one).collect()
    };
    side("BASE  ", &comparison.base.lines) + &side("NEW   ", &comparison.new.lines)
}

/// The first lines: the result in a sentence, and for series the number of operations that differ.
fn summary(comparison: &Comparison, view: View) -> String {
    let counted = comparison
        .series
        .iter()
        .map(|_| format!("{}. {}", counted(comparison), meaning(comparison)));
    let lines = std::iter::once(headline(comparison, &comparison.new.title)).chain(counted);
    let lines = lines.filter(|line| !line.is_empty());
    lines.map(|line| sentence(view, "", &line)).collect()
}

fn as_a_whole(comparison: &Comparison, view: View) -> String {
    let [base, new] = columns(comparison);
    let columns = [
        left("As a whole"),
        right(base),
        right(new),
        right("Change"),
        left("Verdict"),
    ];
    let mut table = Table::new(columns.map(Column::optional));
    for cells in wholes(comparison) {
        table.row(cells);
    }
    table.render(view)
}

fn verdicts(comparison: &Comparison, view: View) -> String {
    if comparison.rows.is_empty() {
        return match comparison.series {
            Some(_) => String::new(),
            None => format!("{} measured nothing of it.\n", comparison.new.title),
        };
    }
    let [base, new] = columns(comparison);
    let mut table = Table::new([
        left("Cell").optional(),
        left("Operation"),
        left("Figure"),
        right(base),
        right(new),
        right("Change"),
        left("Verdict"),
        left("Samples"),
    ]);
    let mut last = None;
    for row in &comparison.rows {
        let first = first_of(row, &mut last);
        table.row([first].into_iter().chain(verdict_cells(row)));
    }
    if comparison.series.is_some() {
        return table.render(view);
    }
    let words = format!("{}. {}", counted(comparison), meaning(comparison));
    table.render(view) + &sentence(view, "", &words)
}

/// The name of a row's cell in its first row; `-` when runs are compared.
fn first_of<'r>(row: &'r Row, last: &mut Option<&'r str>) -> String {
    let Some(cell) = row.cell.as_deref() else {
        return NONE.to_owned();
    };
    match last.replace(cell) == Some(cell) {
        true => String::new(),
        false => cell.to_owned(),
    }
}

fn figures(comparison: &Comparison, view: View) -> String {
    let [base, new] = columns(comparison);
    let mut table = Table::new([
        left("FIGURES"),
        left("Figure"),
        right(base),
        right(new),
        right("Change"),
    ]);
    for (mut label, lines) in other_figures(comparison) {
        for [figure, base, new, change] in lines {
            table.row([std::mem::take(&mut label), figure, base, new, change]);
        }
    }
    table.render(view)
}

fn differences(comparison: &Comparison, view: View) -> String {
    let [base, new] = [&comparison.base, &comparison.new].map(|side| side.title.clone());
    let mut table = Table::new([left("DIFFERENT"), left(base), left(new)]);
    for cells in super::differences(comparison) {
        table.row(cells);
    }
    table.render(view)
}

fn unmeasured(comparison: &Comparison, view: View) -> String {
    let lines = not_compared(comparison);
    let lines = lines.iter().map(|words| words.join(": "));
    let cells = comparison.series.iter().flat_map(missing);
    let cells = cells.map(|(cell, why)| format!("{cell}: {why}"));
    let lines: Vec<String> = lines.chain(cells).collect();
    listed(view, "NOT COMPARED", &lines)
}

fn conditions(comparison: &Comparison, view: View) -> String {
    let lines: Vec<String> = comparison.judged.iter().map(ToString::to_string).collect();
    listed(view, "FAIL IF", &lines)
}

fn listed(view: View, title: &str, lines: &[String]) -> String {
    titled(title, lines.iter().map(|line| sentence(view, "- ", line)))
}
