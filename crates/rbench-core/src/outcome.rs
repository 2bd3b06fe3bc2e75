//! Plain values that executing a phase yields, and their merge over workers.
//!
//! A phase issues one kind of operation, or a few (reads and writes of a mix,
//! writes and their fsync): each kind is a lane with counts, distributions
//! and a timeline of its own.

pub use crate::parts::{
    Access, Cache, Differ, Found, HostOutcome, LATE_LIMITS, Late, LateResult, Lateness,
    NotReplayed, RankGap, RankOutcome, ReplayTotals, Replayed, TraceName, per_second,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::client::ClientCost;
use crate::effort::Effort;
use crate::failure::{Failure, Failures};
use crate::latency::Latency;
use crate::operations::OpKind;
use crate::residency::{Residency, Round};
use crate::spread::{HostSpread, RankSpread};
use crate::steady::Steadiness;
use crate::timeline::Timeline;
use crate::units::{Nanos, seconds};

/// System calls that transfers took beyond those that a target without trouble
/// needs: no operation failed for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retries {
    /// Interrupted calls (EINTR) that were made again.
    pub interrupted: u64,
    /// Calls that moved only a part, whose rest further calls moved.
    pub continued: u64,
}

impl Retries {
    /// Adds the calls of others.
    pub fn add(&mut self, other: Retries) {
        merge!(self, &other => Retries { add: interrupted continued; });
    }
}

/// The time in which operations were measured: from the first begin of
/// measuring to the last end, both after the common start, less what was set
/// aside for other work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Start of measuring: of several workers the earliest.
    pub from: Nanos,
    /// The end of the last operation, failed ones included, or of what belongs
    /// to them: of several workers the latest.
    pub to: Nanos,
    /// Time in between that other operations had to themselves, as reading back
    /// has between writes: of several workers the least.
    pub aside: Nanos,
}

impl Measured {
    /// The span of a worker that measured nothing.
    pub const NOTHING: Measured = Measured {
        from: Nanos(u64::MAX),
        to: Nanos(0),
        aside: Nanos(u64::MAX),
    };

    /// From the common start to `end`.
    pub fn until(end: Nanos) -> Measured {
        Measured {
            from: Nanos(0),
            to: end,
            aside: Nanos(0),
        }
    }

    /// Returns true if nothing was measured.
    pub fn is_nothing(self) -> bool {
        self.from > self.to
    }

    /// The common span of both, each of one worker or several.
    #[must_use]
    pub fn joined(self, other: Measured) -> Measured {
        Measured {
            from: self.from.min(other.from),
            to: self.to.max(other.to),
            aside: self.aside.min(other.aside),
        }
    }

    /// Divisor of rates; zero when nothing was measured.
    pub fn elapsed(self) -> Nanos {
        match self.is_nothing() {
            true => Nanos(0),
            false => self.to.since(self.from).since(self.aside),
        }
    }
}

/// Results of one kind of operation of one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpStats {
    /// The kind.
    pub op: OpKind,
    /// Operations done without error.
    pub items: u64,
    /// Bytes that these moved.
    pub bytes: u64,
    /// Operations that failed.
    pub failures: Failures,
    /// In an open loop: operations that were due before the deadline and were
    /// never started.
    pub unissued: u64,
    /// Operations of a mix that found no file to work on: none was left, or another worker had been
    /// faster. They are not errors.
    pub missed: u64,
    /// Under verification: blocks that were not read back because their write,
    /// or a later one to the same place, had failed.
    pub unchecked: u64,
    /// Calls beyond the first of an operation.
    pub again: Retries,
    /// From the actual start of an operation to its end; items only.
    pub service: Latency,
    /// From the intended start to the end; in an open loop only.
    pub response: Option<Latency>,
    /// From the intended start to the actual one; in an open loop only.
    pub late: Lateness,
    /// Counts over time since the common start.
    pub timeline: Timeline,
    /// Span in which these operations were measured; `None`: from the common start to the worker's
    /// finish.
    pub measured: Option<Measured>,
    /// The workers' time, by its use.
    pub effort: Effort,
    /// Service times of operations that had started when a stonewall came down, without those that
    /// topped up.
    pub stonewalled: Option<Latency>,
    /// Time at which the first worker was given up, after the common start.
    pub given_up_at: Option<Nanos>,
    /// With a time limit, of workers that do nothing but write: that they had
    /// written everything once and went over it again.
    pub rewritten: Option<Round>,
}

impl OpStats {
    /// An empty lane; with a response time in an open loop.
    pub fn new(op: OpKind, open_loop: bool) -> OpStats {
        OpStats {
            op,
            items: 0,
            bytes: 0,
            failures: Failures::default(),
            unissued: 0,
            missed: 0,
            unchecked: 0,
            again: Retries::default(),
            service: Latency::new(),
            response: open_loop.then(Latency::new),
            late: Lateness::default(),
            timeline: Timeline::default(),
            measured: None,
            effort: Effort::default(),
            stonewalled: None,
            given_up_at: None,
            rewritten: None,
        }
    }

    /// Lets go of room that nothing more will need.
    pub fn shrink(&mut self) {
        self.service.shrink();
        for latency in [&mut self.response, &mut self.stonewalled]
            .into_iter()
            .flatten()
        {
            latency.shrink();
        }
        self.timeline.shrink();
    }

    /// Operations done or failed.
    pub fn operations(&self) -> u64 {
        self.items.saturating_add(self.failures.total())
    }

    /// Adds everything that `other`, a lane of the same kind, holds.
    pub fn merge(&mut self, other: &OpStats) {
        merge!(self, other => OpStats {
            add: items bytes unissued missed unchecked;
            merge: failures service timeline;
            some: response stonewalled;
            own: op again late measured effort given_up_at rewritten;
        });
        debug_assert_eq!(self.op, *op);
        self.again.add(*again);
        self.late.merge(*late);
        let both = self.measured.into_iter().chain(*measured);
        self.measured = both.reduce(Measured::joined);
        self.effort.add(*effort);
        self.given_up_at = self.given_up_at.into_iter().chain(*given_up_at).min();
        self.rewritten = Round::join(self.rewritten, *rewritten);
    }
}

/// Span of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpTime {
    /// The position of its row among those of the phase.
    pub row: u32,
    /// Its actual start after the common start.
    pub start: Nanos,
    /// Its service time.
    pub service: Nanos,
    /// Bytes that it moved.
    pub bytes: u64,
}

/// Details of a phase that one rank keeps for itself: too much to be gathered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Details {
    /// Every operation done without error, where they are logged.
    pub operations: Vec<OpTime>,
    /// Every item that did not verify, up to [`DAMAGED_MAX`] of a worker.
    pub damaged: Vec<Failure>,
}

/// Most damaged items that a worker keeps by name; all are counted.
pub const DAMAGED_MAX: usize = 10_000;

impl Details {
    /// Returns true if there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.damaged.is_empty()
    }

    /// Adds what `other` holds.
    pub fn append(&mut self, other: Details) {
        let Details {
            operations,
            damaged,
        } = other;
        self.operations.extend(operations);
        self.damaged.extend(damaged);
    }
}

/// Results of one worker in a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerOutcome {
    /// Its actual start in ns after the common start; negative would be
    /// before it.
    pub started_ns: i64,
    /// The end of its last operation after the common start.
    pub finished: Nanos,
    /// It had anything to do: idle workers are not first finishers, and do not count in the start
    /// skew.
    pub busy: bool,
    /// The lanes that it has, a stretch of those of the phase: one for each
    /// kind of operation, but only its own job's where jobs run side by side.
    pub lanes: Vec<OpStats>,
    /// Details that stay with the rank.
    pub details: Details,
    /// The number of the first of its lanes among those of the phase.
    pub first_lane: usize,
}

/// Results until the stonewall's deadline. Like in mdtest and IOR, an operation in flight at the
/// deadline counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StonewallResult")]
pub struct Stonewall {
    /// The deadline, s after the common start.
    #[serde(rename = "deadline_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub deadline: Nanos,
    /// Time at which the last worker had ended its operation, s after the common start.
    #[serde(rename = "stopped_s", default, with = "seconds")]
    #[schemars(with = "f64")]
    pub stopped: Nanos,
    /// Items that the workers together had started by the deadline.
    pub items: u64,
    /// Operations that the worker with the fewest had started by then.
    pub least: u64,
    /// Operations that the worker with the most had started by then.
    // What the others topped up to.
    pub most: u64,
}

/// Results up to the moment the first worker finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FirstDoneResult")]
pub struct FirstDone {
    /// Time of its end, s after measuring began.
    #[serde(rename = "elapsed_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub elapsed: Nanos,
    /// Items of all workers done by then.
    // From the timeline: exact to one of its bins, 1/512 of the phase or 66 us.
    pub items: u64,
    /// items / elapsed_s.
    pub rate: f64,
    /// The host of that worker; empty if unknown.
    #[serde(default)]
    pub host: String,
}

impl FirstDone {
    /// These results, with their rate.
    pub fn new(elapsed: Nanos, items: u64, host: String) -> FirstDone {
        FirstDone {
            elapsed,
            items,
            rate: per_second(items, elapsed),
            host,
        }
    }
}

/// One lane of a phase, merged over all ranks: a row of the report.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseOutcome {
    /// The pass over all phases, from 0.
    pub iteration: u32,
    /// Name for machines: `file-create`.
    pub name: String,
    /// Name for people: `File creation`.
    pub label: String,
    /// The kind of operation.
    pub op: OpKind,
    /// Operations done without error by all workers.
    pub items: u64,
    /// Bytes that these moved.
    pub bytes: u64,
    /// Failed operations by kind.
    pub failures: Failures,
    /// In an open loop: operations that were due before the deadline and were
    /// never started; response times do not know them.
    pub unissued: u64,
    /// Operations of a mix that found no file to work on: none was left, or another worker had been
    /// faster. They are not errors.
    pub missed: u64,
    /// Under verification: blocks that were not read back because their write,
    /// or a later one to the same place, had failed.
    pub unchecked: u64,
    /// Calls beyond the first of an operation.
    pub again: Retries,
    /// The time in which its operations were measured: last end minus
    /// `measured_from` minus `set_aside`.
    pub elapsed: Nanos,
    /// Results when the first worker finished; `None` if none was busy, if no
    /// worker had more than one operation, if most operations of the first one
    /// failed, or if time was set aside.
    pub first_done: Option<FirstDone>,
    /// Spread of the actual starts of the workers that had work; of a single one, its distance from
    /// the common start.
    pub start_skew: Nanos,
    /// Possible effect of caches; `None` where the question has no meaning.
    pub cache: Option<Cache>,
    /// The phase ran to its end (false: stopped by an abort).
    pub complete: bool,
    /// Service times of all workers.
    pub service: Latency,
    /// Response times in an open loop.
    pub response: Option<Latency>,
    /// Lateness of operations in an open loop.
    pub late: Lateness,
    /// Hosts in the order of their first rank; of a crowd those at the ends.
    pub hosts: Vec<HostOutcome>,
    /// Spread of all hosts, when they are more than have rows.
    pub host_crowd: Option<HostSpread>,
    /// Ranks ascending; of a crowd those at the ends.
    pub ranks: Vec<RankOutcome>,
    /// Spread of all ranks, when they are more than have rows.
    pub crowd: Option<RankSpread>,
    /// Counts over time.
    pub timeline: Timeline,
    /// The longest time in which a rank finished nothing; of several the lowest rank's.
    pub longest_gap: Option<RankGap>,
    /// The stonewall, where one came down.
    pub stonewall: Option<Stonewall>,
    /// It wrote data that nothing in the phase synced: neither an fsync nor O_SYNC or O_DSYNC. Part
    /// of it may not have reached storage.
    pub unsynced: bool,
    /// Start of measuring, after the common start: at once, but for jobs with a start delay, a ramp
    /// or data to be written before it is read back.
    pub measured_from: Nanos,
    /// Time after that which other operations had to themselves: no part of
    /// `elapsed`.
    pub set_aside: Nanos,
    /// The workers' time, by its use.
    pub effort: Effort,
    /// Service times of operations that had started when a stonewall came down.
    pub stonewalled: Option<Latency>,
    /// Time at which the first worker was given up, after the common start.
    pub given_up_at: Option<Nanos>,
    /// No worker had more than one of these operations: they took a time, and
    /// have no rate.
    pub one_each: bool,
    /// The host of the worker that finished first, if most of its operations
    /// failed.
    pub first_failed: Option<String>,
    /// With a time limit: that workers had written everything once and wrote
    /// over it from then on.
    pub rewritten: Option<Round>,
    /// Evidence on the cache that answered, around the phase; `None` where the question has no
    /// meaning.
    pub residency: Option<Residency>,
    /// Usage of the file system's client in the phase, whose rows share it; `None`: not observed.
    pub client: Option<ClientCost>,
    /// The common start of all ranks; `None` where each started by itself.
    pub start: Option<CommonStart>,
    /// Total times of transfers between opens and closes that were timed.
    pub access: Option<Access>,
    /// Counts of a search.
    pub found: Option<Found>,
    /// The recorded results of a replay, and the differences from them.
    pub replayed: Option<Replayed>,
    /// Steadiness of a phase that ends when its rate is steady. Its rows share it, except those
    /// that only follow others, such as syncs.
    pub steady: Option<Steadiness>,
}

/// The common start of all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommonStart {
    /// By rank 0's clock.
    pub at: Nanos,
    /// The hosts' own clocks show that instant at most so much earlier or later
    /// than it was, as far as their offsets were known then.
    pub error: Nanos,
}

impl PhaseOutcome {
    /// A row without operations, of a phase that has not reached its end.
    pub fn empty(iteration: u32, name: &str, label: &str, op: OpKind) -> PhaseOutcome {
        PhaseOutcome::of(iteration, name, label, OpStats::new(op, false))
    }

    /// The row of this lane, of a phase that has not reached its end. What a lane does not hold is
    /// empty; so is the time, if its span is `None`.
    pub fn of(iteration: u32, name: &str, label: &str, lane: OpStats) -> PhaseOutcome {
        let measured = lane.measured.unwrap_or(Measured::NOTHING);
        let measures = |time: Nanos| match measured.is_nothing() {
            true => Nanos(0),
            false => time,
        };
        PhaseOutcome {
            iteration,
            name: name.to_owned(),
            label: label.to_owned(),
            op: lane.op,
            items: lane.items,
            bytes: lane.bytes,
            failures: lane.failures,
            unissued: lane.unissued,
            missed: lane.missed,
            unchecked: lane.unchecked,
            again: lane.again,
            elapsed: measured.elapsed(),
            first_done: None,
            start_skew: Nanos(0),
            cache: None,
            complete: false,
            service: lane.service,
            response: lane.response,
            late: lane.late,
            hosts: Vec::new(),
            host_crowd: None,
            ranks: Vec::new(),
            crowd: None,
            timeline: lane.timeline,
            longest_gap: None,
            stonewall: None,
            unsynced: false,
            measured_from: measures(measured.from),
            set_aside: measures(measured.aside),
            effort: lane.effort,
            stonewalled: lane.stonewalled,
            given_up_at: lane.given_up_at,
            one_each: false,
            first_failed: None,
            rewritten: lane.rewritten,
            residency: None,
            client: None,
            start: None,
            access: None,
            found: None,
            replayed: None,
            steady: None,
        }
    }

    /// Items a second: items done without error / `elapsed`; zero when no time
    /// passed.
    pub fn rate(&self) -> f64 {
        per_second(self.items, self.elapsed)
    }

    /// Bytes a second over the same span.
    pub fn bandwidth(&self) -> f64 {
        per_second(self.bytes, self.elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Failure, FailureKind};
    use crate::timeline::Bin;
    use crate::units::Rank;
    use proptest::prelude::*;

    /// (end of the operation, its latency, whether it failed)
    type Op = (u64, u64, bool);

    fn recorded(ops: &[Op]) -> OpStats {
        let mut lane = OpStats::new(OpKind::Write, true);
        for (at, ns, failed) in ops {
            if *failed {
                lane.failures.add(
                    Rank(0),
                    "h",
                    Failure::new(OpKind::Write, "f", FailureKind::Short),
                );
                lane.unchecked += *ns % 3;
                lane.given_up_at = lane.given_up_at.into_iter().chain([Nanos(*at)]).min();
                lane.timeline.record(
                    Nanos(*at),
                    Bin {
                        errors: 1,
                        first: Nanos(*at),
                        last: Nanos(*at),
                        ..Bin::default()
                    },
                );
            } else {
                lane.items += 1;
                lane.bytes += 4096;
                lane.service.record(Nanos(*ns));
                lane.again.add(Retries {
                    interrupted: *ns % 2,
                    continued: *at % 3,
                });
                if let Some(response) = &mut lane.response {
                    response.record(Nanos(*ns + 7));
                    lane.late.record(Nanos(*ns % 5));
                }
                lane.stonewalled
                    .get_or_insert_default()
                    .record(Nanos(*ns / 2));
                lane.effort
                    .add(Effort::from_words([1, *at, 2, *ns, 3, 4, 5]));
                lane.timeline.record(
                    Nanos(*at),
                    Bin {
                        items: 1,
                        bytes: 4096,
                        errors: 0,
                        first: Nanos(*at),
                        last: Nanos(*at),
                    },
                );
            }
        }
        lane
    }

    proptest! {
        #[test]
        fn merging_lanes_equals_recording_all_in_one(
            x in prop::collection::vec((0_u64..5_000_000_000, 0_u64..5_000_000_000, any::<bool>()), 0..40),
            y in prop::collection::vec((0_u64..5_000_000_000, 0_u64..5_000_000_000, any::<bool>()), 0..40),
        ) {
            let mut merged = recorded(&x);
            merged.merge(&recorded(&y));
            let all: Vec<Op> = x.iter().chain(&y).copied().collect();
            prop_assert_eq!(merged, recorded(&all));
        }
    }
}
