//! For people: plain text, as wide as the reader's view.

use rbench_core::plain::plain_lines;

use super::{counted, interval, meaning, not_compared, samples, value, with_ratio};
use crate::compare::Comparison;
use crate::table::{NONE, Table, left, right, wrapped};
use crate::view::View;

/// The whole comparison; sections are a blank line apart.
pub fn render(comparison: &Comparison, view: View) -> String {
    let sections = [
        sides(comparison, view),
        verdicts(comparison, view),
        figures(comparison, view),
        differences(comparison, view),
        unmeasured(comparison, view),
        listed(view, "NOTES", comparison.notes.iter().map(String::as_str)),
        conditions(comparison, view),
    ];
    let filled: Vec<String> = sections.into_iter().filter(|s| !s.is_empty()).collect();
    // Names in it may contain anything.
    plain_lines(&filled.join("\n")).into_owned()
}

fn sides(comparison: &Comparison, view: View) -> String {
    let side = |label: &str, lines: &[String]| -> String {
        let one = |line: &String| {
            let words: Vec<&str> = line.split(' ').collect();
            wrapped(view, label, &words, " ")
        };
        lines.iter().map(one).collect()
    };
    side("BASE  ", &comparison.base.lines) + &side("NEW   ", &comparison.new.lines)
}

fn verdicts(comparison: &Comparison, view: View) -> String {
    if comparison.rows.is_empty() {
        return "NEW measured nothing of it.\n".to_owned();
    }
    let mut table = Table::new([
        left("Operation"),
        left("Figure"),
        right("BASE"),
        right("NEW (ratio)"),
        right("Change"),
        left("Verdict"),
        left("Samples"),
    ]);
    for row in &comparison.rows {
        let mut cells = vec![NONE.to_owned(); 7];
        cells[0].clone_from(&row.label);
        if let Some(outcome) = row.judged() {
            cells[1] = outcome.figure.label.to_owned();
            cells[2] = value(outcome.figure.unit, outcome.base);
            cells[3] = with_ratio(outcome);
            cells[4] = interval(outcome.interval);
        }
        cells[5] = row.verdict.words().to_owned();
        cells[6] = samples(row);
        table.row(cells);
    }
    let words = format!("{}. {}", counted(comparison), meaning(comparison));
    let words: Vec<&str> = words.split(' ').collect();
    table.render(view) + &wrapped(view, "", &words, " ")
}

fn figures(comparison: &Comparison, view: View) -> String {
    let mut table = Table::new([
        left("FIGURES"),
        left("Figure"),
        right("BASE"),
        right("NEW (ratio)"),
        right("Change"),
    ]);
    for row in &comparison.rows {
        let mut label = row.label.as_str();
        let others = row.figures.iter().filter(|f| f.figure != row.judged_by);
        for outcome in others {
            table.row([
                label.to_owned(),
                outcome.figure.label.to_owned(),
                value(outcome.figure.unit, outcome.base),
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
    let mut table = Table::new([left("DIFFERENT"), left("BASE"), left("NEW")]);
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
    let lines: Vec<String> = lines.collect();
    listed(view, "NOT COMPARED", lines.iter().map(String::as_str))
}

fn conditions(comparison: &Comparison, view: View) -> String {
    let lines: Vec<String> = comparison.judged.iter().map(ToString::to_string).collect();
    listed(view, "FAIL IF", lines.iter().map(String::as_str))
}

fn listed<'t>(view: View, title: &str, lines: impl Iterator<Item = &'t str>) -> String {
    let lines: Vec<String> = lines
        .map(|line| wrapped(view, "- ", &line.split(' ').collect::<Vec<&str>>(), " "))
        .collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!("{title}\n{}", lines.concat()),
    }
}
