//! Markdown, for a pull request.

use rbench_core::plain::plain_lines;

use super::{
    columns, counted, headline, meaning, missing, not_compared, other_figures, verdict_cells,
    wholes,
};
use crate::compare::Comparison;
use crate::table::{NONE, sections};

/// Renders the whole comparison; figures are folded away.
pub fn render(comparison: &Comparison) -> String {
    let text = sections([
        head(comparison),
        as_a_whole(comparison),
        verdicts(comparison),
        conditions(comparison),
        figures(comparison),
        differences(comparison),
        unmeasured(comparison),
        list(&comparison.notes),
    ]);
    plain_lines(&text).into_owned()
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

/// A table; empty without rows. `-:` marks columns of numbers.
fn table<R: AsRef<[String]>>(
    columns: &[(&str, &str)],
    rows: impl IntoIterator<Item = R>,
) -> String {
    let rows: String = rows.into_iter().map(|cells| line(cells.as_ref())).collect();
    if rows.is_empty() {
        return rows;
    }
    let names: Vec<String> = columns.iter().map(|(name, _)| escaped(name)).collect();
    let sides: Vec<&str> = columns.iter().map(|(_, side)| *side).collect();
    let (names, sides) = (names.join(" | "), sides.join(" | "));
    format!("| {names} |\n| {sides} |\n{rows}")
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
    let [base, new] = columns(comparison);
    let columns = [
        ("As a whole", "-"),
        (&*base, "-:"),
        (&*new, "-:"),
        ("Change", "-:"),
        ("Verdict", "-"),
    ];
    table(&columns, wholes(comparison))
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
    let columns: Vec<_> = cell.into_iter().chain(columns).collect();
    let rows = comparison.rows.iter().map(|row| {
        let cells = row.cell.clone().into_iter().chain(verdict_cells(row));
        cells.collect::<Vec<String>>()
    });
    let table = table(&columns, rows);
    format!("{table}\n{}\n", meaning(comparison))
}

fn conditions(comparison: &Comparison) -> String {
    let one = |judged: &crate::compare::Judged| {
        let mark = if judged.met.is_empty() { "" } else { "**" };
        format!("- {mark}{}{mark}\n", escaped(&judged.to_string()))
    };
    comparison.judged.iter().map(one).collect()
}

fn figures(comparison: &Comparison) -> String {
    let [base, new] = columns(comparison);
    let columns = [
        ("operation", "-"),
        ("figure", "-"),
        (&*base, "-:"),
        (&*new, "-:"),
        ("change", "-:"),
    ];
    let rows = other_figures(comparison).flat_map(|(label, lines)| {
        let cells = move |[figure, base, new, change]: [String; 4]| {
            [label.clone(), figure, base, new, change]
        };
        lines.into_iter().map(cells)
    });
    let table = table(&columns, rows);
    if table.is_empty() {
        return table;
    }
    let summary = match comparison.series {
        Some(_) => "Figures of what differs",
        None => "All figures",
    };
    format!("<details><summary>{summary}</summary>\n\n{table}\n</details>\n")
}

fn differences(comparison: &Comparison) -> String {
    let Comparison { base, new, .. } = comparison;
    let columns = [("different", "-"), (&*base.title, "-"), (&*new.title, "-")];
    table(&columns, super::differences(comparison))
}

fn unmeasured(comparison: &Comparison) -> String {
    let series = comparison.series.as_ref();
    let cells = series.into_iter().flat_map(missing);
    let cells = cells.map(|(cell, why)| [cell.to_owned(), NONE.to_owned(), why.to_owned()]);
    let columns = [("not compared", "-"), ("operation", "-"), ("why", "-")];
    table(&columns, not_compared(comparison).into_iter().chain(cells))
}

fn list(lines: &[String]) -> String {
    let one = |line: &String| format!("- {}\n", escaped(line));
    lines.iter().map(one).collect()
}
