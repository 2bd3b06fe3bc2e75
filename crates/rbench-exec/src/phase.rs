//! What a phase is: its rows, its workers and what surrounds it.

use std::ops::Range;

use rbench_core::outcome::{OpStats, PhaseOutcome};
use rbench_core::residency::Share;
use rbench_core::steady::{Steadiness, SteadyRule};
use rbench_core::{Nanos, OpKind};
use rbench_plan::jobs::Framing;

use crate::intervals::{IntervalRow, Judge};
use crate::meter::{empty_lane, follows};
use crate::worker::MakeRunner;

/// Share of the workers' time from which on what was done aside has a row.
const ASIDE_SHARE: f64 = 0.01;

/// What took no longer than this, all workers together, has none: it is 1 % of ten seconds.
const ASIDE_LEAST: Nanos = Nanos(100_000_000);

/// Whether what was done aside is worth a row: how long it took beside the time of the workers
/// without it, both added up over the workers.
fn took_long(aside: Nanos, others: Nanos) -> bool {
    let all = others.0.saturating_add(aside.0);
    aside > ASIDE_LEAST && aside.0 as f64 > ASIDE_SHARE * all as f64
}

/// What a lane is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpRow {
    /// Its operation.
    pub op: OpKind,
    /// For machines: `file-create`.
    pub name: String,
    /// For people: `File creation`.
    pub label: String,
    /// Whether what it writes stays unsynced: nothing in the phase brings it to
    /// stable storage.
    pub unsynced: bool,
    /// Whether its operations belong to no other's time and rate, such as the closes at the end:
    /// the row is only shown when they took long.
    pub aside: bool,
    /// Whether they have intended starts in an open loop.
    pub starts: Starts,
}

/// Whether operations have intended starts in an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Starts {
    /// Unless their kind only follows others, as closes and syncs do.
    #[default]
    ByKind,
    /// No: they are operations of a round, which alone has one.
    InRound,
    /// Yes, whatever they are: a trace has recorded them.
    Recorded,
}

/// A phase to run. The same on every rank but for `make`.
pub struct Phase {
    /// The pass over all phases, from 0.
    pub iteration: u32,
    /// For people, while it runs.
    pub label: String,
    /// Whether its rows are reported.
    pub shown: bool,
    /// A row of the report for each kind of operation.
    pub lanes: Vec<OpRow>,
    /// Whether intended starts are given.
    pub open_loop: bool,
    /// Operations of all workers together that are due in a second; `None` without
    /// intended starts, and where others count too (those of a ramp, syncs).
    pub offered: Option<f64>,
    /// Stop issuing after this time.
    pub deadline: Option<Nanos>,
    /// End before the deadline when the rate of all workers together is steady.
    pub steady: Option<SteadyEnd>,
    /// After the deadline top up to the worker with the most; in an open loop later
    /// phases only work on what every worker came to.
    pub wear_out: bool,
    /// Whether opens and closes are part of it.
    pub framing: Framing,
    /// What is known of the caches and looked at around it; `None`: nothing of
    /// it asks for what is there.
    pub cache: Option<Looking>,
    /// Operations of all workers; `None` when time decides.
    pub total: Option<u64>,
    /// Workers of each rank.
    pub threads: u32,
    /// Which of the lanes each worker of a rank has, and numbers from 0 on;
    /// empty when all have all.
    pub lanes_of: Vec<Range<usize>>,
    /// Whether start and duration of each operation are kept.
    pub log_operations: bool,
    /// What comes first, untimed.
    pub before: Before,
    /// Makes each worker's runner.
    pub make: MakeRunner,
}

/// When a phase ends because its rate is steady.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyEnd {
    /// What counts as steady.
    pub rule: SteadyRule,
    /// When recording begins, after the common start.
    pub from: Nanos,
}

impl OpRow {
    /// A row of operations that are timed with the others, and need no sync.
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

    /// The row of files that are made before phases that need them.
    pub fn layout(op: OpKind) -> OpRow {
        OpRow {
            unsynced: true,
            ..OpRow::new(op, "layout", "Layout")
        }
    }

    /// Whether its operations have response times.
    pub fn has_responses(&self, open_loop: bool) -> bool {
        open_loop
            && match self.starts {
                Starts::ByKind => !follows(self.op),
                Starts::InRound => false,
                Starts::Recorded => true,
            }
    }

    /// Whether its operations are those of which a steady rate is one: they move data, and
    /// do not only follow others.
    fn is_of_the_rate(&self) -> bool {
        use OpKind::{Read, ReadFile, Write, WriteFile};
        matches!(self.op, Read | Write | ReadFile | WriteFile)
    }
}

impl Phase {
    /// A phase of `threads` workers on each rank that `make` makes. It ends with their work and
    /// is reported; each worker has all rows.
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

    /// A phase that only prepares others, and is not reported.
    pub fn untimed(what: &str, lane: OpRow, threads: u32, make: MakeRunner) -> Phase {
        Phase {
            shown: false,
            ..Phase::new(format!("{what} (untimed)"), vec![lane], threads, make)
        }
    }

    /// The names of its rows.
    pub fn row_names(&self) -> Vec<&str> {
        self.lanes.iter().map(|row| row.name.as_str()).collect()
    }

    /// Who judges whether it is steady, where that ends it; its timelines are of that
    /// interval.
    pub fn judge(&self, interval: Nanos) -> Option<Judge> {
        let SteadyEnd { rule, from } = self.steady?;
        let counts = self.lanes.iter().map(OpRow::is_of_the_rate).collect();
        Some(Judge::new(rule, interval, from, counts))
    }

    /// Puts what came of that into the rows that it is about.
    pub fn tell_steadiness(&self, rows: &mut [PhaseOutcome], found: Option<Steadiness>) {
        let both = rows.iter_mut().zip(&self.lanes);
        for (row, _) in both.filter(|(_, lane)| lane.is_of_the_rate()) {
            row.steady.clone_from(&found);
        }
    }

    /// Leaves out the rows of what was done aside, unless it took more than `ASIDE_SHARE` of
    /// the time of the workers that did it and more than `ASIDE_LEAST`, or something of it
    /// failed. All rows are there, in order.
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

    /// Its rows, as far as they are reported, for those who hear of intervals.
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

    /// The numbers of the lanes that a worker of a rank has.
    pub fn own_lanes(&self, worker: usize) -> Range<usize> {
        let all = 0..self.lanes.len();
        self.lanes_of.get(worker).cloned().unwrap_or(all)
    }

    /// An empty lane for each of those with these numbers, not to be recorded
    /// into; its timeline is of that interval.
    pub fn empty_lanes(&self, interval: Nanos, numbers: Range<usize>) -> Vec<OpStats> {
        let empty = |info: &OpRow| {
            let mut lane = empty_lane(info.op, info.has_responses(self.open_loop), interval);
            lane.shrink();
            lane
        };
        self.lanes[numbers].iter().map(empty).collect()
    }
}

/// What is known of the caches before a phase that reads, stats or lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Looking {
    /// Whose items each cache works on; `None`: nobody knows who used them.
    pub shares: Option<Vec<Share>>,
    /// The kernel's caches were dropped just before.
    pub dropped: bool,
    /// Files are opened with O_DIRECT.
    pub direct: bool,
    /// Lanes whose reads are compared with what was written.
    pub verifies: Vec<usize>,
    /// Before the operations that are measured come others (ramp): what was counted
    /// around the phase is not theirs alone.
    pub ramps: bool,
    /// Each operation opens its file and closes it, untimed: a counter that does not tell
    /// kinds of requests apart counts these too.
    pub opens: bool,
}

impl Before {
    /// Only the commands of all hosts, which know the phase by `name`.
    pub fn named(name: impl Into<String>) -> Before {
        Before {
            name: Some(name.into()),
            ..Before::default()
        }
    }
}

/// What a rank does before a phase, untimed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Before {
    /// A pause.
    pub pause: Nanos,
    /// A shell command of the user's.
    pub command: Option<String>,
    /// What the commands that all hosts run around it know it by; `None`: they are not run.
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
