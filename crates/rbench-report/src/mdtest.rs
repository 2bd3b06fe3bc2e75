//! The report of `rbench mdtest`: lines and columns of mdtest 4.1, in the format that its parsers
//! expect.
//!
//! Facts that mdtest does not print (failed operations, a stopped run) follow the table. `measured`
//! maps phases to rows.

mod csv;
pub(crate) mod head;
mod measured;

pub use csv::rank_details_csv;

use std::fmt::Write as _;

pub use crate::schema::{Kinds, MdtestForm as View, Print};
use crate::schema::{PhaseResult, RunResult};
use crate::summary::{Spread, spread};
use crate::table::printable;
use crate::text::{failure, in_iteration};
use crate::times::local_time;
use measured::{Measured, ROWS, Row, RowOf, Share};

impl Print {
    fn measures(self) -> &'static [Measure] {
        match self {
            Print::Rates => &[Measure::Rate],
            Print::Times => &[Measure::Time],
            Print::Both => &[Measure::Rate, Measure::Time],
        }
    }
}

impl Kinds {
    fn has(self, row: &Row) -> bool {
        match row.of {
            RowOf::Directories => self != Kinds::Files,
            RowOf::Files => self != Kinds::Directories,
            RowOf::Tree => true,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Kinds::Both => "files/directories",
            Kinds::Files => "files",
            Kinds::Directories => "directories",
        }
    }
}

/// The measure of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// Operations per second.
    Rate,
    /// Milliseconds per operation of all ranks together.
    Time,
}

impl Measure {
    fn title(self) -> &'static str {
        match self {
            Measure::Rate => "SUMMARY rate (in ops/sec)",
            Measure::Time => "SUMMARY time (in ms/op)",
        }
    }

    /// Spread over iterations or ranks. Without a successful operation there is no time per
    /// operation.
    fn spread(self, shares: impl Iterator<Item = Share>) -> Spread {
        let rates = shares.map(|share| share.rate);
        let values: Vec<f64> = match self {
            Measure::Rate => rates.collect(),
            Measure::Time => rates.filter(|r| *r > 0.0).map(|r| 1000.0 / r).collect(),
        };
        spread(&values)
    }
}

const COLUMNS: &str = "
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
";

/// Headings with `--showRankStatistics`.
const COLUMNS_WITH_RANKS: &str = "
   Operation         per Rank: Max            Min           Mean       per Iteration: Max            Min           Mean         Std Dev
   ---------                   ---            ---           ----                      ---            ---           ----         -------
";

/// Number of items that every rank has after a stonewall in the creation of files; without one, the
/// maximum over the ranks.
pub fn items_of_each(created: &PhaseResult) -> u64 {
    // Without a stonewall every rank has tried all its items; later phases report missing ones.
    let most = created.ranks.iter().map(|r| r.items).max();
    created
        .stonewall
        .as_ref()
        .map_or(most.unwrap_or(0), |wall| wall.most)
}

/// The report of a run of `rbench mdtest`; `None` for other runs.
pub fn of(result: &RunResult) -> Option<String> {
    let view = result.forms.mdtest.as_ref()?;
    Some(render(result, view))
}

/// The report; ends with a newline.
pub fn render(result: &RunResult, view: &View) -> String {
    let all = measured::all(result);
    let mut out = head::render(result, view);
    if view.verbosity >= 1 {
        out.push_str(&verbose(&all));
    }
    out.push_str(&stonewalls(result));
    let iterations = iterations(result);
    for measure in view.print.measures() {
        if view.all_ranks {
            out.push_str(&ranks(result, &all, *measure));
        }
        let title = measure.title();
        let _ = write!(out, "\n{title}: (of {iterations} iterations)");
        out.push_str(&table(&all, *measure, view));
    }
    push_section(&mut out, &remarks(result));
    if let Some(finished) = &result.run.finished {
        let at = local_time(finished, result.run.utc_offset_s, head::TIME);
        let _ = writeln!(out, "-- finished at {at} --");
    }
    out
}

/// The blank line ends the previous table for parsers.
fn push_section(out: &mut String, section: &str) {
    if !section.is_empty() {
        out.push('\n');
        out.push_str(section);
    }
}

/// Number of iterations that were started.
fn iterations(result: &RunResult) -> u32 {
    let last = result.phases.iter().map(|p| p.iteration).max();
    last.map_or(0, |last| last.saturating_add(1))
}

/// A line for each phase, below a heading for each iteration.
fn verbose(all: &[Measured]) -> String {
    let mut out = String::new();
    let mut current = None;
    for one in all {
        if current != Some(one.iteration()) {
            current = Some(one.iteration());
            let _ = writeln!(
                out,
                "V-1: main: * iteration {} *",
                one.iteration().saturating_add(1)
            );
        }
        let place = match one.row.of {
            RowOf::Tree => " main",
            RowOf::Directories | RowOf::Files => "",
        };
        let name = one.row.label;
        let Share {
            elapsed_s: seconds,
            rate,
            ..
        } = one.whole();
        let _ = writeln!(
            out,
            "V-1:{place}   {name:<18}:{seconds:>15.3} sec, {rate:>14.3} ops/sec"
        );
    }
    out
}

fn table(all: &[Measured], measure: Measure, view: &View) -> String {
    let columns = match view.rank_statistics {
        true => COLUMNS_WITH_RANKS,
        false => COLUMNS,
    };
    let mut out = columns.to_owned();
    for row in ROWS.iter().filter(|row| view.kinds.has(row)) {
        let of_row = || all.iter().filter(|one| one.row == row);
        let _ = write!(out, "   {:<22}", row.label);
        if view.rank_statistics {
            let over = measure.spread(of_row().flat_map(Measured::by_rank));
            let _ = write!(
                out,
                "{:>15.3}{:>15.3}{:>15.3}    ",
                over.max, over.min, over.mean
            );
        }
        let over = measure.spread(of_row().map(Measured::whole));
        let Spread {
            max,
            min,
            mean,
            stddev,
        } = over;
        let _ = writeln!(out, "{max:>15.3}{min:>15.3}{mean:>15.3}{stddev:>15.3}");
    }
    out
}

/// With `-W`: the ranks' progress at the deadline, a line for each creation of files.
fn stonewalls(result: &RunResult) -> String {
    let ranks = f64::from(result.world.ranks.max(1));
    let walls = result.phases.iter();
    let walls = walls.filter_map(|phase| phase.stonewall.as_ref());
    walls.fold(String::new(), |mut out, wall| {
        let average = wall.items as f64 / ranks;
        let (least, most) = (wall.least, wall.most);
        let _ = writeln!(
            out,
            "Continue stonewall hit min: {least} max: {most} avg: {average:.1} "
        );
        out
    })
}

/// `--print-all-procs`: for each iteration a line for each test, with a value for each rank.
fn ranks(result: &RunResult, all: &[Measured], measure: Measure) -> String {
    let name = match measure {
        Measure::Rate => "rate",
        Measure::Time => "time",
    };
    let mut out = format!("\nPer process result ({name}):\n");
    for iteration in 0..iterations(result) {
        let _ = writeln!(out, "iteration: {iteration}");
        for one in all.iter().filter(|one| one.iteration() == iteration) {
            let _ = write!(out, "Test {}", one.row.label);
            for rank in 0..result.world.ranks {
                let share = one.of_rank(rank);
                let value = match measure {
                    Measure::Rate => share.rate,
                    Measure::Time => share.elapsed_s,
                };
                let sign = if rank == 0 { ' ' } else { ',' };
                let _ = write!(out, "{sign}{}", csv::exponential(value, 6));
            }
            out.push('\n');
        }
    }
    out
}

/// Failures, and where the run was stopped.
pub(crate) fn remarks(result: &RunResult) -> String {
    let mut out = String::new();
    let total = iterations(result);
    let place = |phase: &PhaseResult| phase.label.clone() + &in_iteration(phase, total);
    for phase in &result.phases {
        let examples = phase.error_examples.iter();
        for example in examples.filter(|e| !result.is_of_dead_mounts(phase, &e.error, e.count)) {
            let text = failure(&place(phase), example);
            let _ = writeln!(out, "rbench: {}", printable(&text));
        }
    }
    let stopped: Vec<&PhaseResult> = result.phases.iter().filter(|p| !p.complete).collect();
    for phase in &stopped {
        let _ = writeln!(out, "rbench: stopped during {}", place(phase));
    }
    if stopped.is_empty() && !result.complete {
        out.push_str("rbench: ended before all phases were done\n");
    }
    out
}
