//! IO500's lines, with additional figures: latencies, the balance of hosts, and the cache verdict.

use std::fmt::Write as _;

use rbench_core::units::human_count;

use crate::figures::Row;
use crate::schema::{Io500Phase, Io500Result, PhaseResult, SeriesResult};
use crate::table::{Table, left, right, sections, sentence};
use crate::view::View;

/// The first line of every report.
pub const REHEARSAL: &str =
    "REHEARSAL of IO500 by rbench, not a submission: that needs IO500's own program, unmodified.";

pub fn render(series: &SeriesResult, view: View) -> String {
    let Some(io500) = &series.io500 else {
        return String::new();
    };
    sections([
        lines(io500),
        table(series, io500, view),
        found(series, io500, view),
        verdict(io500, view),
    ])
}

/// Suffix of a line: a mark if it is invalid.
fn mark(valid: bool) -> &'static str {
    if valid { "" } else { " [INVALID]" }
}

/// A phase in IO500's format.
pub fn line(phase: &Io500Phase) -> String {
    let kind = if phase.scored { "RESULT" } else { "      " };
    format!(
        "[{kind}] {:>20} {:>15.6} {} : time {:.3} seconds{}\n",
        phase.name,
        phase.value.unwrap_or(0.0),
        phase.unit,
        phase.time_s.unwrap_or(0.0),
        mark(phase.invalid.is_empty()),
    )
}

/// The lines in IO500's format.
fn lines(io500: &Io500Result) -> String {
    let mut out: String = io500.phases.iter().map(line).collect();
    let _ = writeln!(
        out,
        "[SCORE ] Bandwidth {:.6} GiB/s : IOPS {:.6} kiops : TOTAL {:.6}{}",
        io500.bandwidth.unwrap_or(0.0),
        io500.metadata.unwrap_or(0.0),
        io500.total.unwrap_or(0.0),
        mark(io500.valid),
    );
    out
}

/// The row of each measured phase.
fn rows<'s>(
    series: &'s SeriesResult,
    io500: &'s Io500Result,
) -> impl Iterator<Item = (&'s Io500Phase, &'s PhaseResult, Row<'s>)> {
    io500.phases.iter().filter_map(|phase| {
        let cell = series.done(phase.cell?)?;
        let row = phase.row_of(cell)?;
        let rows = Row::finished(cell.result.as_ref()?);
        let figures = rows.into_iter().find(|other| other.name() == row.name)?;
        Some((phase, row, figures))
    })
}

fn table(series: &SeriesResult, io500: &Io500Result, view: View) -> String {
    let mut table = Table::new([
        left("Phase"),
        right("Operations"),
        right("Mean").under("Latency"),
        right("p50").under("Latency"),
        right("p99").under("Latency"),
        right("p99.9").under("Latency"),
        right("Max").under("Latency"),
        right("Errors"),
        right("Slowest host").optional(),
        left("Cache").optional(),
    ]);
    for (phase, row, figures) in rows(series, io500) {
        table.row([
            phase.name.clone(),
            figures.text("items", ""),
            figures.text("service", "mean"),
            figures.text("service", "p50"),
            figures.text("service", "p99"),
            figures.text("service", "p99.9"),
            figures.text("service", "max"),
            figures.text("errors", ""),
            slowest(row).unwrap_or_default(),
            figures.text("cache", ""),
        ]);
    }
    table.render(view)
}

/// The slowest host, and its rate relative to the fastest one's; `None` with a single host.
fn slowest(row: &PhaseResult) -> Option<String> {
    let hosts = || row.hosts.iter();
    let by_rate = |a: &&crate::schema::HostResult, b: &&crate::schema::HostResult| {
        a.rate().total_cmp(&b.rate())
    };
    let (slow, fast) = hosts().min_by(by_rate).zip(hosts().max_by(by_rate))?;
    let several = row.hosts.len() > 1 && fast.rate() > 0.0;
    several.then(|| format!("{} {:.0}%", slow.host, slow.rate() / fast.rate() * 100.0))
}

/// The number of entries that the search read.
fn found(series: &SeriesResult, io500: &Io500Result, view: View) -> String {
    let found = rows(series, io500).find_map(|(_, row, _)| row.found);
    found.map_or_else(String::new, |found| {
        let (files, directories) = (human_count(found.files), human_count(found.directories));
        let matches = human_count(found.matches);
        let text = format!("{matches} of {files} files and {directories} directories match");
        sentence(view, "FOUND  ", &text)
    })
}

/// The reasons why the result would be invalid.
fn verdict(io500: &Io500Result, view: View) -> String {
    let reasons = io500.reasons();
    if reasons.is_empty() {
        return "It would be valid, except that it is a rehearsal.\n".to_owned();
    }
    let mut out = "INVALID because\n".to_owned();
    for reason in reasons {
        out.push_str(&sentence(view, "- ", &reason));
    }
    out
}
