//! The report of `rbench ior`: lines and columns of IOR 4.0, in the format that its parsers expect.
//!
//! Facts that IOR does not print (failed operations, a stopped run) follow the table.

mod summary;

pub use summary::{csv_ranks, csv_summary, json_summary};

use std::fmt::Write as _;

use crate::mdtest::head::{command_line, file_system};
use crate::mdtest::remarks;
use crate::schema::{AccessResult, PhaseResult, RunResult};
use crate::summary::{Spread, spread};
use crate::table::printable;
use crate::times::{CTIME, local_time};

/// The version of IOR that prints this format.
const VERSION: &str = "4.0.0";

const KIB: f64 = 1024.0;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Options that appear in the report.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// The files of `-o`, as typed.
    pub files: Vec<String>,
    /// `-F`
    pub file_per_process: bool,
    /// `-z`, counted.
    pub random: u32,
    /// `-Q`, with `-C`.
    pub task_offset: Option<u32>,
    /// The seed of `-Z`.
    pub random_reorder: Option<i32>,
    /// `-i`
    pub repetitions: u32,
    /// `-s`; `None`: until the end of the files.
    pub segments: Option<u64>,
    /// `-b`, bytes.
    pub block: u64,
    /// `-t`, bytes.
    pub transfer: u64,
    /// `-D`, whole seconds; 0 means no limit.
    pub deadline_s: u64,
    /// `-O stoneWallingWearOut=1`
    pub wear_out: bool,
    /// `-v`, counted.
    pub verbosity: u32,
}

impl View {
    /// Bytes of all ranks; `None`: the size of the files.
    fn aggregate(&self, ranks: u32) -> Option<u64> {
        let each = self.segments?.saturating_mul(self.block);
        Some(each.saturating_mul(u64::from(ranks)))
    }
}

/// A line of the table: a phase with IOR's figures.
struct Line<'r> {
    phase: &'r PhaseResult,
    access: AccessResult,
}

impl Line<'_> {
    /// Transfers per second, without opens and closes.
    fn iops(&self) -> f64 {
        match self.access.transfer_s {
            seconds if seconds > 0.0 => self.phase.items as f64 / seconds,
            _ => 0.0,
        }
    }

    /// Mean time of a transfer of one rank, s.
    fn latency(&self, ranks: u32) -> f64 {
        match self.phase.items {
            0 => 0.0,
            items => self.access.transfer_s * f64::from(ranks) / items as f64,
        }
    }

    /// Its figures in the order of the columns, by their keys in summary files.
    fn figures(&self, view: &View, ranks: u32) -> [(&'static str, f64); 9] {
        let access = &self.access;
        [
            ("bwMiB", access.bandwidth / MIB as f64),
            ("iops", self.iops()),
            ("latency", self.latency(ranks)),
            ("blockKiB", view.block as f64 / KIB),
            ("xferKiB", view.transfer as f64 / KIB),
            ("openTime", access.open_s),
            ("wrRdTime", access.transfer_s),
            ("closeTime", access.close_s),
            ("totalTime", access.total_s),
        ]
    }
}

/// The lines of the table.
fn lines(result: &RunResult) -> Vec<Line<'_>> {
    let phases = result.phases.iter();
    let shown = phases.filter(|phase| OPERATIONS.iter().any(|(name, _)| phase.name == *name));
    shown
        .filter_map(|phase| {
            Some(Line {
                phase,
                access: phase.access?,
            })
        })
        .collect()
}

/// Spreads of MiB and of transfers per second over repetitions.
fn spreads(lines: &[&Line<'_>], view: &View) -> [Spread; 2] {
    [MIB, view.transfer.max(1)].map(|unit| {
        let all = lines.iter().map(|line| line.access.bandwidth);
        spread_by_n(&all.map(|rate| rate / unit as f64).collect::<Vec<f64>>())
    })
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    spread(&values.collect::<Vec<f64>>()).mean
}

/// Spread over repetitions. The standard deviation divides by their number, like IOR's.
fn spread_by_n(values: &[f64]) -> Spread {
    let over = spread(values);
    let n = values.len().max(1) as f64;
    Spread {
        stddev: over.stddev * ((n - 1.0) / n).sqrt(),
        ..over
    }
}

/// The report; ends with a newline.
pub fn render(result: &RunResult, view: &View) -> String {
    let mut out = head(result);
    out.push_str(&options(result, view));
    let lines = lines(result);
    out.push_str(COLUMNS);
    for line in &lines {
        out.push_str(&row(line, view, result.world.ranks));
    }
    for (name, title) in OPERATIONS {
        let of = lines.iter().filter(|line| line.phase.name == name);
        let best = of.map(|line| line.access.bandwidth).reduce(f64::max);
        if let Some(best) = best {
            let (mib, mb) = (best / MIB as f64, best / 1e6);
            let _ = writeln!(out, "{title}{mib:.2} MiB/sec ({mb:.2} MB/sec)");
        }
    }
    out.push_str(SUMMARY);
    for (name, _) in OPERATIONS {
        let of: Vec<&Line<'_>> = lines
            .iter()
            .filter(|line| line.phase.name == name)
            .collect();
        if !of.is_empty() {
            out.push_str(&summary(name, &of, view, result));
        }
    }
    let remarks = remarks(result);
    if !remarks.is_empty() {
        out.push('\n');
        out.push_str(&remarks);
    }
    if let Some(finished) = &result.run.finished {
        let at = local_time(finished, result.run.utc_offset_s, CTIME);
        let _ = writeln!(out, "Finished            : {at}");
    }
    out
}

/// The rows of the table, and the labels of their maximum bandwidth.
const OPERATIONS: [(&str, &str); 2] = [("write", "Max Write: "), ("read", "Max Read:  ")];

const COLUMNS: &str = "
Results: 

access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----
";

const SUMMARY: &str = "
Summary of all tests:
Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs)     StdDev    \
Mean(s) Stonewall(s) Stonewall(MiB) Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt   \
blksiz    xsize aggs(MiB)   API RefNum
";

fn head(result: &RunResult) -> String {
    let run = &result.run;
    let version = printable(&run.version);
    let began = local_time(&run.started, run.utc_offset_s, CTIME);
    let host = result.world.hosts.first();
    let host = host.map_or("", |host| host.name.as_str());
    let path = printable(&result.target.path);
    let mut out = format!("IOR-{VERSION}+rbench-{version}: MPI Coordinated Test of Parallel I/O\n");
    let _ = writeln!(out, "Began               : {began}");
    let command = command_line("ior", &run.command);
    let _ = writeln!(out, "Command line        : {command}");
    let _ = writeln!(out, "Machine             : Linux {}", printable(host));
    let _ = writeln!(out, "TestID              : 0");
    let _ = writeln!(out, "StartTime           : {began}");
    let _ = writeln!(out, "Path                : {path}");
    if let Some(space) = &result.target.space {
        out.push_str(&file_system(space));
    }
    out
}

/// The section of options, one per line.
fn options(result: &RunResult, view: &View) -> String {
    let mut out = "\nOptions: \n".to_owned();
    for (name, value) in option_lines(result, view) {
        let _ = writeln!(out, "{name:<20}: {value}");
    }
    out
}

/// The options under IOR's names.
fn option_lines(result: &RunResult, view: &View) -> Vec<(&'static str, String)> {
    let ranks = result.world.ranks;
    let mut lines: Vec<(&str, String)> = vec![
        ("api", "POSIX".to_owned()),
        ("apiVersion", String::new()),
        ("test filename", printable(&view.files.join("@"))),
        (
            "access",
            match view.file_per_process {
                true => "file-per-process".to_owned(),
                false => "single-shared-file".to_owned(),
            },
        ),
        ("type", "independent".to_owned()),
        (
            "segments",
            view.segments.map_or("-1".to_owned(), |n| n.to_string()),
        ),
        (
            "ordering in a file",
            if view.random > 0 {
                "random"
            } else {
                "sequential"
            }
            .to_owned(),
        ),
        (
            "ordering inter file",
            match (view.task_offset, view.random_reorder) {
                (_, Some(_)) => "random task offset".to_owned(),
                (Some(_), None) => "constant task offset".to_owned(),
                (None, None) => "no tasks offsets".to_owned(),
            },
        ),
    ];
    lines.extend(
        view.task_offset
            .map(|offset| ("task offset", offset.to_string())),
    );
    lines.extend(
        view.random_reorder
            .map(|seed| ("reorder random seed", seed.to_string())),
    );
    lines.extend([
        ("nodes", result.world.hosts.len().to_string()),
        ("tasks", ranks.to_string()),
        ("clients per node", per_node(result).to_string()),
        ("repetitions", view.repetitions.to_string()),
        ("xfersize", size(view.transfer)),
        ("blocksize", size(view.block)),
        (
            "aggregate filesize",
            view.aggregate(ranks)
                .map_or("as in the files".to_owned(), size),
        ),
    ]);
    if view.deadline_s > 0 {
        lines.push(("stonewallingTime", view.deadline_s.to_string()));
        lines.push(("stoneWallingWearOut", u8::from(view.wear_out).to_string()));
    }
    lines
}

/// Ranks of the first host.
fn per_node(result: &RunResult) -> usize {
    result
        .world
        .hosts
        .first()
        .map_or(0, |host| host.ranks.len())
}

/// Formats a size like IOR: whole MiB or GiB if exact, otherwise bytes.
fn size(bytes: u64) -> String {
    for (unit, name) in [(GIB, "GiB"), (MIB, "MiB")] {
        if bytes >= unit {
            return match bytes.is_multiple_of(unit) {
                true => format!("{} {name}", bytes / unit),
                false => format!("{:.2} {name}", bytes as f64 / unit as f64),
            };
        }
    }
    format!("{bytes} bytes")
}

/// Formats a number like IOR's table.
fn number(value: f64) -> String {
    match value {
        _ if value < 1.0 => format!("{value:.6}"),
        _ if value < 3600.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

fn row(line: &Line<'_>, view: &View, ranks: u32) -> String {
    let mut out = format!("{:<10}", line.phase.name);
    for (key, value) in line.figures(view, ranks) {
        let width = if key == "latency" { 12 } else { 11 };
        let _ = write!(out, "{:<width$}", number(value));
    }
    let _ = writeln!(out, "{:<4}", line.phase.iteration);
    out
}

/// The summary line over all repetitions.
fn summary(name: &str, lines: &[&Line<'_>], view: &View, result: &RunResult) -> String {
    let mut out = format!("{name:<9} ");
    for over in spreads(lines, view) {
        let Spread {
            max,
            min,
            mean,
            stddev,
        } = over;
        let _ = write!(out, "{max:>10.2} {min:>10.2} {mean:>10.2} {stddev:>10.2} ");
    }
    let seconds = mean(lines.iter().map(|line| line.access.total_s));
    let _ = write!(out, "{seconds:>10.5} ");
    let walls = lines
        .iter()
        .filter_map(|line| line.phase.stonewall.as_ref());
    let walls: Vec<_> = walls.collect();
    match walls.is_empty() {
        true => {
            let _ = write!(out, "{:>10} {:>13} ", "NA", "NA");
        }
        false => {
            let time = mean(walls.iter().map(|wall| wall.stopped.as_secs_f64()));
            let moved = |items: u64| items as f64 * view.transfer as f64 / MIB as f64;
            let data = mean(walls.iter().map(|wall| moved(wall.items)));
            let _ = write!(out, "{time:>10.2} {data:>13.2} ");
        }
    }
    let ranks = result.world.ranks;
    let moved = lines.first().map_or(0, |line| line.phase.bytes);
    let _ = writeln!(
        out,
        "{:>5} {ranks:>6} {:>3} {:>4} {:>3} {:>5} {:>8} {:>9} {:>4} {:>6} {:>8} {:>8} {:>9.1} {:>3} {:>6}",
        0,
        per_node(result),
        view.repetitions,
        u8::from(view.file_per_process),
        u8::from(view.task_offset.is_some()),
        view.task_offset.unwrap_or(1),
        u8::from(view.random_reorder.is_some()),
        view.random_reorder.unwrap_or(0),
        view.segments.map_or("-1".to_owned(), |n| n.to_string()),
        view.block,
        view.transfer,
        moved as f64 / MIB as f64,
        "POSIX",
        0,
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_sizes_are_those_of_ior() {
        let check = |value: f64, expect: &str| assert_eq!(number(value), expect);
        check(0.000_648, "0.000648");
        check(1299.23, "1299.23");
        check(5429.4, "5429");
        check(10_485_760.0, "10485760");
        check(70.62, "70.62");
        assert_eq!(size(262_144), "262144 bytes");
        assert_eq!(size(MIB), "1 MiB");
        assert_eq!(size(3 << 29), "1.50 GiB");
        assert_eq!(
            local_time("2026-11-01T12:00:00Z", 3600, CTIME),
            "Sun Nov  1 13:00:00 2026"
        );
    }

    #[test]
    fn the_deviation_over_repetitions_is_by_their_number() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(spread_by_n(&[1.0, 3.0]).stddev, 1.0));
        assert!(close(
            spread_by_n(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).stddev,
            2.0
        ));
        assert!(close(spread_by_n(&[5.0]).stddev, 0.0));
    }
}
