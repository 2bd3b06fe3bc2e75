//! Plain text for people, as wide as the reader's view.

use rbench_core::plain::plain_lines;

use super::{
    columns, counted, detailed, headline, interval, marked, meaning, missing, not_compared,
    samples, wholes, with_ratio,
};
use crate::compare::{Comparison, Row};
use crate::table::{Column, NONE, Table, left, right, sentence};
use crate::view::View;

/// Renders the whole comparison; blank lines separate sections.
pub fn render(comparison: &Comparison, view: View) -> String {
    let sections = [
        sides(comparison, view),
        summary(comparison, view),
        as_a_whole(comparison, view),
        verdicts(comparison, view),
        figures(comparison, view),
        differences(comparison, view),
        unmeasured(comparison, view),
        listed(view, "NOTES", comparison.notes.iter().map(String::as_str)),
        conditions(comparison, view),
    ];
    let filled: Vec<String> = sections.into_iter().filter(|s| !s.is_empty()).collect();
    // Names may contain control characters.
    plain_lines(&filled.join("\n")).into_owned()
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
    if table.is_empty() {
        String::new()
    } else {
        table.render(view)
    }
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
        let mut cells = vec![NONE.to_owned(); 8];
        cells[0] = first_of(row, &mut last);
        cells[1].clone_from(&row.label);
        if let Some(outcome) = row.judged() {
            cells[2] = outcome.figure.label.clone();
            cells[3] = outcome.figure.unit.show(outcome.base);
            cells[4] = with_ratio(outcome);
            cells[5] = interval(outcome.interval);
        }
        cells[6] = marked(row);
        cells[7] = samples(row);
        table.row(cells);
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
    for row in detailed(comparison) {
        let label = match &row.cell {
            Some(cell) => format!("{cell}: {}", row.label),
            None => row.label.clone(),
        };
        let mut label = label.as_str();
        let others = row.figures.iter().filter(|f| f.figure != row.judged_by);
        for outcome in others {
            table.row([
                label.to_owned(),
                outcome.figure.label.clone(),
                outcome.figure.unit.show(outcome.base),
                with_ratio(outcome),
                interval(outcome.interval),
            ]);
            label = "";
        }
    }
    if table.is_empty() {
        String::new()
    } else {
        table.render(view)
    }
}

fn differences(comparison: &Comparison, view: View) -> String {
    let [base, new] = [&comparison.base, &comparison.new].map(|side| side.title.clone());
    let mut table = Table::new([left("DIFFERENT"), left(base), left(new)]);
    for difference in &comparison.differences {
        table.row([
            difference.what.clone(),
            difference.base.clone(),
            difference.new.clone(),
        ]);
    }
    if table.is_empty() {
        String::new()
    } else {
        table.render(view)
    }
}

fn unmeasured(comparison: &Comparison, view: View) -> String {
    let lines = not_compared(comparison);
    let lines = lines.iter().map(|words| words.join(": "));
    let cells = comparison.series.iter().flat_map(missing);
    let cells = cells.map(|(cell, why)| format!("{cell}: {why}"));
    let lines: Vec<String> = lines.chain(cells).collect();
    listed(view, "NOT COMPARED", lines.iter().map(String::as_str))
}

fn conditions(comparison: &Comparison, view: View) -> String {
    let lines: Vec<String> = comparison.judged.iter().map(ToString::to_string).collect();
    listed(view, "FAIL IF", lines.iter().map(String::as_str))
}

fn listed<'t>(view: View, title: &str, lines: impl Iterator<Item = &'t str>) -> String {
    let lines: Vec<String> = lines.map(|line| sentence(view, "- ", line)).collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!("{title}\n{}", lines.concat()),
    }
}
