//! Markdown, for a pull request.

use rbench_core::plain::plain_lines;

use super::{
    columns, counted, detailed, headline, interval, marked, meaning, missing, not_compared,
    samples, wholes, with_ratio,
};
use crate::compare::Comparison;
use crate::table::NONE;

/// Renders the whole comparison; figures are folded away.
pub fn render(comparison: &Comparison) -> String {
    let sections = [
        head(comparison),
        as_a_whole(comparison),
        verdicts(comparison),
        conditions(comparison),
        figures(comparison),
        differences(comparison),
        unmeasured(comparison),
        list(&comparison.notes),
    ];
    let filled: Vec<String> = sections.into_iter().filter(|s| !s.is_empty()).collect();
    plain_lines(&filled.join("\n")).into_owned()
}

/// Escapes text so that Markdown leaves it unchanged.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' => {
                out.push('\\');
                out.push(c);
            }
            '\n' | '\r' => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

/// A row of a table.
fn line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// The titles of a table; `-:` marks columns of numbers.
fn titles(columns: &[(&str, &str)]) -> String {
    let names: Vec<String> = columns.iter().map(|(name, _)| escaped(name)).collect();
    let sides: Vec<&str> = columns.iter().map(|(_, side)| *side).collect();
    format!("| {} |\n| {} |\n", names.join(" | "), sides.join(" | "))
}

fn head(comparison: &Comparison) -> String {
    let side = |label: &str, lines: &[String]| {
        let one = |line: &String| format!("- {label} {}\n", escaped(line));
        lines.iter().map(one).collect::<String>()
    };
    format!(
        "**{}**\n\n{}.\n\n{}{}",
        escaped(&headline(comparison, &comparison.new.title)),
        escaped(&counted(comparison)),
        side("BASE", &comparison.base.lines),
        side("NEW", &comparison.new.lines)
    )
}

fn as_a_whole(comparison: &Comparison) -> String {
    let rows: String = wholes(comparison).iter().map(|cells| line(cells)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let [base, new] = columns(comparison);
    let columns = [
        ("As a whole", "-"),
        (&*base, "-:"),
        (&*new, "-:"),
        ("Change", "-:"),
        ("Verdict", "-"),
    ];
    titles(&columns) + &rows
}

fn verdicts(comparison: &Comparison) -> String {
    if comparison.rows.is_empty() {
        return String::new();
    }
    let [base, new] = columns(comparison);
    let cell = comparison.series.as_ref().map(|_| ("cell", "-"));
    let columns = [
        ("operation", "-"),
        ("figure", "-"),
        (&*base, "-:"),
        (&*new, "-:"),
        ("change", "-:"),
        ("verdict", "-"),
        ("samples", "-"),
    ];
    let mut out = titles(&cell.into_iter().chain(columns).collect::<Vec<_>>());
    for row in &comparison.rows {
        let mut cells = vec![NONE.to_owned(); 7];
        cells[0].clone_from(&row.label);
        if let Some(outcome) = row.judged() {
            cells[1] = outcome.figure.label.clone();
            cells[2] = outcome.figure.unit.show(outcome.base);
            cells[3] = with_ratio(outcome);
            cells[4] = interval(outcome.interval);
        }
        cells[5] = marked(row);
        cells[6] = samples(row);
        cells.splice(0..0, row.cell.clone());
        out.push_str(&line(&cells));
    }
    format!("{out}\n{}\n", meaning(comparison))
}

fn conditions(comparison: &Comparison) -> String {
    let one = |judged: &crate::compare::Judged| {
        let mark = if judged.met.is_empty() { "" } else { "**" };
        format!("- {mark}{}{mark}\n", escaped(&judged.to_string()))
    };
    comparison.judged.iter().map(one).collect()
}

fn figures(comparison: &Comparison) -> String {
    let mut rows = String::new();
    for row in detailed(comparison) {
        let others = row.figures.iter().filter(|f| f.figure != row.judged_by);
        for outcome in others {
            rows.push_str(&line(&[
                match &row.cell {
                    Some(cell) => format!("{cell}: {}", row.label),
                    None => row.label.clone(),
                },
                outcome.figure.label.clone(),
                outcome.figure.unit.show(outcome.base),
                with_ratio(outcome),
                interval(outcome.interval),
            ]));
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let [base, new] = columns(comparison);
    let titles = titles(&[
        ("operation", "-"),
        ("figure", "-"),
        (&*base, "-:"),
        (&*new, "-:"),
        ("change", "-:"),
    ]);
    let summary = match comparison.series {
        Some(_) => "Figures of what differs",
        None => "All figures",
    };
    format!("<details><summary>{summary}</summary>\n\n{titles}{rows}\n</details>\n")
}

fn differences(comparison: &Comparison) -> String {
    if comparison.differences.is_empty() {
        return String::new();
    }
    let Comparison { base, new, .. } = comparison;
    let mut out = titles(&[("different", "-"), (&base.title, "-"), (&new.title, "-")]);
    for difference in &comparison.differences {
        let cells = [&difference.what, &difference.base, &difference.new];
        out.push_str(&line(&cells.map(Clone::clone)));
    }
    out
}

fn unmeasured(comparison: &Comparison) -> String {
    let series = comparison.series.as_ref();
    let cells = series.into_iter().flat_map(missing);
    let cells = cells.map(|(cell, why)| [cell.to_owned(), NONE.to_owned(), why.to_owned()]);
    let rows = not_compared(comparison).into_iter().chain(cells);
    let rows: String = rows.map(|cells| line(&cells)).collect();
    if rows.is_empty() {
        return String::new();
    }
    titles(&[("not compared", "-"), ("operation", "-"), ("why", "-")]) + &rows
}

fn list(lines: &[String]) -> String {
    let one = |line: &String| format!("- {}\n", escaped(line));
    lines.iter().map(one).collect()
}
