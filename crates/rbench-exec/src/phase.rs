//! Description of a phase: its rows, its workers and the steps around it.

use std::ops::Range;

use rbench_core::outcome::{OpStats, PhaseOutcome};
use rbench_core::residency::Share;
use rbench_core::steady::{Steadiness, SteadyRule};
use rbench_core::{Nanos, OpKind};
use rbench_plan::jobs::Framing;

use crate::intervals::{IntervalRow, Judge};
use crate::meter::{empty_lane, follows};
use crate::worker::MakeRunner;

/// Share of the workers' time from which on operations set aside have a row.
const ASIDE_SHARE: f64 = 0.01;

/// Operations set aside that took no longer, all workers together, have no row: it is 1 % of ten
/// seconds.
const ASIDE_LEAST: Nanos = Nanos(100_000_000);

/// Returns whether operations set aside took long enough for a row: their time and the remaining
/// time of the workers, both summed over the workers.
fn took_long(aside: Nanos, others: Nanos) -> bool {
    let all = others.0.saturating_add(aside.0);
    aside > ASIDE_LEAST && aside.0 as f64 > ASIDE_SHARE * all as f64
}

/// Description of a lane's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpRow {
    /// Its operation.
    pub op: OpKind,
    /// For machines: `file-create`.
    pub name: String,
    /// For people: `File creation`.
    pub label: String,
    /// Set if its writes stay unsynced: nothing in the phase brings them to stable storage.
    pub unsynced: bool,
    /// Set if its operations belong to no other row's time and rate, such as the closes at the end:
    /// the row is only shown if they took long.
    pub aside: bool,
    /// Rule for intended starts in an open loop.
    pub starts: Starts,
}

/// Rule for intended starts of operations in an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Starts {
    /// By kind: kinds that only follow others, such as closes and syncs, have none.
    #[default]
    ByKind,
    /// None: they are operations of a round, which alone has one.
    InRound,
    /// All have one: a trace has recorded them.
    Recorded,
}

/// A phase to run. The same on every rank except for `make`.
pub struct Phase {
    /// The pass over all phases, from 0.
    pub iteration: u32,
    /// For people, while it runs.
    pub label: String,
    /// Set if its rows are reported.
    pub shown: bool,
    /// A row of the report for each kind of operation.
    pub lanes: Vec<OpRow>,
    /// Set if there are intended starts.
    pub open_loop: bool,
    /// Operations due per second, of all workers together. `None` without intended starts, and if
    /// other operations count too (those of a ramp, syncs).
    pub offered: Option<f64>,
    /// Stop issuing after this time.
    pub deadline: Option<Nanos>,
    /// End before the deadline once the rate of all workers together is steady.
    pub steady: Option<SteadyEnd>,
    /// After the deadline top up to the worker with the most. In an open loop, later phases only
    /// work on items that every worker reached.
    pub wear_out: bool,
    /// Treatment of opens and closes.
    pub framing: Framing,
    /// Cache state before it and observations around it; `None`: none of its rows asks for them.
    pub cache: Option<Looking>,
    /// Operations of all workers; `None` if time decides.
    pub total: Option<u64>,
    /// Workers of each rank.
    pub threads: u32,
    /// Rows of each worker of a rank, numbered from 0; empty if each has all.
    pub lanes_of: Vec<Range<usize>>,
    /// Set if start and duration of each operation are kept.
    pub log_operations: bool,
    /// Untimed steps before it.
    pub before: Before,
    /// Creates each worker's runner.
    pub make: MakeRunner,
}

/// Early end of a phase with a steady rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyEnd {
    /// Definition of steady.
    pub rule: SteadyRule,
    /// Start of recording, after the common start.
    pub from: Nanos,
}

impl OpRow {
    /// Creates a row of operations that are timed with the others, and need no sync.
    pub fn new(op: OpKind, name: impl Into<String>, label: impl Into<String>) -> OpRow {
        OpRow {
            op,
            name: name.into(),
            label: label.into(),
            unsynced: false,
            aside: false,
            starts: Starts::ByKind,
        }
    }

    /// Creates the row of files that are created before phases that need them.
    pub fn layout(op: OpKind) -> OpRow {
        OpRow {
            unsynced: true,
            ..OpRow::new(op, "layout", "Layout")
        }
    }

    /// Returns whether its operations have response times.
    pub fn has_responses(&self, open_loop: bool) -> bool {
        open_loop
            && match self.starts {
                Starts::ByKind => !follows(self.op),
                Starts::InRound => false,
                Starts::Recorded => true,
            }
    }

    /// Returns whether its operations count for the steady rate: they move data, and do not only
    /// follow others.
    fn is_of_the_rate(&self) -> bool {
        use OpKind::{Read, ReadFile, Write, WriteFile};
        matches!(self.op, Read | Write | ReadFile | WriteFile)
    }
}

impl Phase {
    /// Creates a phase of `threads` workers on each rank, created by `make`. It ends with their
    /// work and is reported; each worker has all rows.
    pub fn new(
        label: impl Into<String>,
        lanes: Vec<OpRow>,
        threads: u32,
        make: MakeRunner,
    ) -> Phase {
        Phase {
            iteration: 0,
            label: label.into(),
            shown: true,
            lanes,
            open_loop: false,
            offered: None,
            deadline: None,
            steady: None,
            wear_out: false,
            framing: Framing::Untimed,
            cache: None,
            total: None,
            threads,
            lanes_of: Vec::new(),
            log_operations: false,
            before: Before::default(),
            make,
        }
    }

    /// Creates a phase that only prepares others, and is not reported.
    pub fn untimed(what: &str, lane: OpRow, threads: u32, make: MakeRunner) -> Phase {
        Phase {
            shown: false,
            ..Phase::new(format!("{what} (untimed)"), vec![lane], threads, make)
        }
    }

    /// Returns the names of its rows.
    pub fn row_names(&self) -> Vec<&str> {
        self.lanes.iter().map(|row| row.name.as_str()).collect()
    }

    /// Creates the judge of its steady end, if it has one; its timelines are of that interval.
    pub fn judge(&self, interval: Nanos) -> Option<Judge> {
        let SteadyEnd { rule, from } = self.steady?;
        let counts = self.lanes.iter().map(OpRow::is_of_the_rate).collect();
        Some(Judge::new(rule, interval, from, counts))
    }

    /// Puts the verdict into the rows of the rate.
    pub fn tell_steadiness(&self, rows: &mut [PhaseOutcome], found: Option<Steadiness>) {
        let both = rows.iter_mut().zip(&self.lanes);
        for (row, _) in both.filter(|(_, lane)| lane.is_of_the_rate()) {
            row.steady.clone_from(&found);
        }
    }

    /// Leaves out rows set aside, unless they took more than `ASIDE_SHARE` of their workers' time
    /// and more than `ASIDE_LEAST`, or had a failure. `rows` has all rows, in order.
    pub fn drop_asides(&self, rows: &mut Vec<PhaseOutcome>) {
        let whole = 0..self.lanes.len();
        let counts = |number: usize, row: &PhaseOutcome, rows: &[PhaseOutcome]| {
            if !self.lanes[number].aside || row.failures.total() > 0 {
                return true;
            }
            let own = self.lanes_of.iter().find(|own| own.contains(&number));
            let job = &rows[own.unwrap_or(&whole).clone()];
            // Each of the other rows has all of the workers' time.
            let others = job.iter().zip(&self.lanes[own.unwrap_or(&whole).clone()]);
            let others = others
                .filter(|(_, lane)| !lane.aside)
                .map(|(row, _)| row.effort);
            let time = others.map(|effort| effort.active.0.saturating_add(effort.waited.0));
            took_long(row.service.total(), Nanos(time.max().unwrap_or(0)))
        };
        if rows.len() != self.lanes.len() || !self.lanes.iter().any(|lane| lane.aside) {
            return;
        }
        let kept: Vec<bool> = rows
            .iter()
            .enumerate()
            .map(|(number, row)| counts(number, row, rows))
            .collect();
        let mut kept = kept.into_iter();
        rows.retain(|_| kept.next().unwrap_or(true));
    }

    /// Returns its reported rows, for observers of intervals.
    pub fn interval_rows(&self) -> Vec<IntervalRow> {
        let lanes = self.lanes.iter().filter(|_| self.shown);
        let row = |info: &OpRow| IntervalRow {
            iteration: self.iteration,
            name: info.name.clone(),
            label: info.label.clone(),
            op: info.op.name(),
            open_loop: info.has_responses(self.open_loop),
            aside: info.aside,
        };
        lanes.map(row).collect()
    }

    /// Returns the numbers of the lanes that a worker of a rank has.
    pub fn own_lanes(&self, worker: usize) -> Range<usize> {
        let all = 0..self.lanes.len();
        self.lanes_of.get(worker).cloned().unwrap_or(all)
    }

    /// Creates an empty lane for each of these numbers, not to be recorded into; its timeline is of
    /// that interval.
    pub fn empty_lanes(&self, interval: Nanos, numbers: Range<usize>) -> Vec<OpStats> {
        let empty = |info: &OpRow| {
            let mut lane = empty_lane(info.op, info.has_responses(self.open_loop), interval);
            lane.shrink();
            lane
        };
        self.lanes[numbers].iter().map(empty).collect()
    }
}

/// Cache state before a phase that reads, stats or lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Looking {
    /// Owner of the items that each cache works on; `None`: their users are unknown.
    pub shares: Option<Vec<Share>>,
    /// The kernel's caches were dropped just before.
    pub dropped: bool,
    /// Files are opened with O_DIRECT.
    pub direct: bool,
    /// Lanes whose reads are verified.
    pub verifies: Vec<usize>,
    /// Other operations run before the measured ones (ramp): counts around the phase include
    /// theirs.
    pub ramps: bool,
    /// Each operation opens and closes its file, untimed: a counter that does not distinguish kinds
    /// of requests counts these too.
    pub opens: bool,
}

impl Before {
    /// Creates the steps with only the commands of all hosts, which know the phase by `name`.
    pub fn named(name: impl Into<String>) -> Before {
        Before {
            name: Some(name.into()),
            ..Before::default()
        }
    }
}

/// Untimed steps of a rank before a phase.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Before {
    /// A pause.
    pub pause: Nanos,
    /// A shell command of the user's.
    pub command: Option<String>,
    /// Name of the phase for the commands that all hosts run around it; `None`: they are not run.
    pub name: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_aside_has_a_row_when_it_took_more_than_one_percent_and_a_tenth_of_a_second() {
        let ms = |n: u64| Nanos(n * 1_000_000);
        for (aside, others, expect) in [
            (0, 0, false),
            (100, 0, false),
            (101, 0, true),
            (101, 9_900, true),
            (101, 10_100, false),
            (5_000, 400_000, true),
            (3_000, 400_000, false),
        ] {
            let found = took_long(ms(aside), ms(others));
            assert_eq!(found, expect, "{aside} ms beside {others} ms");
        }
    }
}
