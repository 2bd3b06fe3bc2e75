//! The report as Markdown, for a pull request or a ticket: the workload, the table, warnings.

use std::fmt::Write as _;

use crate::figures::Row;
use crate::schema::RunResult;
use crate::table::{NONE, printable};
use crate::text::operations::{CELLS, lines};
use crate::text::{header, iterations, marks, steady};

/// The report of a run.
pub fn render(result: &RunResult) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "### rbench {}\n", words(&result.run.id));
    if result.target.embedded {
        out.push_str(
            "**Demonstration** on rbench's built-in file system in memory, not your storage.\n\n",
        );
    }
    if !result.complete {
        out.push_str("**The run is incomplete**: it ended before all phases were done.\n\n");
    }
    for warning in &result.warnings {
        let _ = writeln!(
            out,
            "- **{}**: {}",
            words(&warning.code),
            words(&warning.message)
        );
    }
    if !result.warnings.is_empty() {
        out.push('\n');
    }
    let command = header::command(result);
    let fence = "`".repeat(longest_run_of_ticks(&command).max(2) + 1);
    let _ = writeln!(out, "{fence}sh\n{command}\n{fence}\n");
    for (name, text) in header::facts(result) {
        let _ = writeln!(out, "- {name}: {}", words(&text));
    }
    out.push('\n');
    table(&mut out, result);
    for (i, line) in marks::lines(result).iter().enumerate() {
        let above = if i == 0 { "\n" } else { "" };
        let _ = writeln!(out, "{above}- {}", words(line));
    }
    for line in steady::lines(result) {
        let _ = write!(out, "\nSteady state of {}\n", words(&line));
    }
    out
}

fn table(out: &mut String, result: &RunResult) {
    let titles: Vec<&str> = ["Operation"]
        .into_iter()
        .chain(CELLS.iter().map(|cell| cell.alone))
        .collect();
    let several = iterations(result) > 1;
    let rows: Vec<Vec<String>> = result
        .phases
        .iter()
        .map(|phase| {
            let mut cells = lines(&Row::of(vec![phase])).swap_remove(0);
            if several {
                let nth = phase.iteration.saturating_add(1);
                cells[0] = format!("{} (iteration {nth})", cells[0]);
            }
            cells
        })
        .collect();
    if rows.is_empty() {
        out.push_str("No phase has finished.\n");
        return;
    }
    let has_value = |i: &usize| i == &0 || rows.iter().any(|cells| cells[*i] != NONE);
    let kept: Vec<usize> = (0..titles.len()).filter(has_value).collect();
    let line = |out: &mut String, cell: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = kept.iter().map(|i| cell(*i)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    };
    line(out, &|i| titles[i].to_owned());
    line(out, &|i| if i == 0 { "---" } else { "--:" }.to_owned());
    for cells in &rows {
        line(out, &|i| words(&cells[i]));
    }
}

/// Escapes text for Markdown and HTML.
fn words(text: &str) -> String {
    let mut out = String::new();
    for c in printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '~' | '!' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

fn longest_run_of_ticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
