//! Plain values that executing a phase yields, and their merge over workers.
//!
//! A phase issues one kind of operation, or a few (reads and writes of a mix,
//! writes and their fsync): each kind is a lane with counts, distributions
//! and a timeline of its own.

use crate::crowd::{HostCrowd, RankCrowd};
use crate::failure::{Failure, Failures};
use crate::latency::Latency;
use crate::op::OpKind;
use crate::timeline::Timeline;
use crate::units::{Nanos, Rank};

/// Whether the client's caches could answer the operations of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// The host had not touched the items since they were made elsewhere.
    Cold,
    /// The host had made or touched the items earlier in the run.
    Warm,
    /// The caches were dropped just before, or bypassed with O_DIRECT.
    Forced,
}

impl Cache {
    /// The name in reports and result files.
    pub fn name(self) -> &'static str {
        match self {
            Cache::Cold => "cold",
            Cache::Warm => "warm",
            Cache::Forced => "forced",
        }
    }
}

/// System calls that transfers took beyond those that a target without trouble
/// needs: no operation failed for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Again {
    /// Interrupted calls (EINTR) that were made again.
    pub interrupted: u64,
    /// Calls that moved only a part, whose rest further calls moved.
    pub continued: u64,
}

impl Again {
    /// Adds the calls of others.
    pub fn add(&mut self, other: Again) {
        let Again {
            interrupted,
            continued,
        } = other;
        self.interrupted += interrupted;
        self.continued += continued;
    }
}

/// What one kind of operation of one phase did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
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
    /// Under verification: blocks that were not read back because their write,
    /// or a later one to the same place, had failed.
    pub unchecked: u64,
    /// Calls beyond the first of an operation.
    pub again: Again,
    /// From the actual start of an operation to its end; items only.
    pub service: Latency,
    /// From the intended start to the end; in an open loop only.
    pub response: Option<Latency>,
    /// Counts over time since the common start.
    pub timeline: Timeline,
}

impl Lane {
    /// An empty lane; with a response time in an open loop.
    pub fn new(op: OpKind, open_loop: bool) -> Lane {
        Lane {
            op,
            items: 0,
            bytes: 0,
            failures: Failures::default(),
            unissued: 0,
            unchecked: 0,
            again: Again::default(),
            service: Latency::new(),
            response: open_loop.then(Latency::new),
            timeline: Timeline::default(),
        }
    }

    /// Adds everything that `other`, a lane of the same kind, holds.
    pub fn merge(&mut self, other: &Lane) {
        let Lane {
            op,
            items,
            bytes,
            failures,
            unissued,
            unchecked,
            again,
            service,
            response,
            timeline,
        } = other;
        debug_assert_eq!(self.op, *op);
        self.items += items;
        self.bytes += bytes;
        self.failures.merge(failures);
        self.unissued += unissued;
        self.unchecked += unchecked;
        self.again.add(*again);
        self.service.merge(service);
        match (&mut self.response, response) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (None, Some(theirs)) => self.response = Some(theirs.clone()),
            (_, None) => {}
        }
        self.timeline.merge(timeline);
    }
}

/// When one operation ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpTime {
    /// Its actual start after the common start.
    pub start: Nanos,
    /// Its service time.
    pub service: Nanos,
    /// Bytes that it moved.
    pub bytes: u64,
}

/// What one rank keeps of a phase for itself: too much to be gathered.
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

/// What one worker did in a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerOutcome {
    /// Its actual start in ns after the common start; negative would be
    /// before it.
    pub started_ns: i64,
    /// The end of its last operation after the common start.
    pub finished: Nanos,
    /// Whether it had anything to do: idle workers are no first finishers.
    pub busy: bool,
    /// One lane for each kind of operation; the same kinds in the same order
    /// on every worker.
    pub lanes: Vec<Lane>,
    /// What stays with the rank.
    pub details: Details,
}

/// The reached counts when the stonewall came down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stonewall {
    /// The deadline after the common start.
    pub deadline: Nanos,
    /// Items of all workers done by then.
    pub items: u64,
    /// Items of the worker with the fewest.
    pub least: u64,
    /// Items of the worker with the most: what the others topped up to.
    pub most: u64,
}

/// Results up to the moment the first worker finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstDone {
    /// When that was after the common start.
    pub elapsed: Nanos,
    /// Items of all workers done by then (from the timeline: exact to one of
    /// its bins, 1/512 of the phase or 66 us).
    pub items: u64,
}

/// One host's part in a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct HostOutcome {
    /// Its name.
    pub host: String,
    /// Items done without error.
    pub items: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Failed operations.
    pub errors: u64,
    /// The end of its last worker after the common start.
    pub elapsed: Nanos,
    /// Service times of its workers.
    pub service: Latency,
}

/// One rank's part in a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct RankOutcome {
    /// Its number.
    pub rank: Rank,
    /// Its host.
    pub host: String,
    /// Items done without error.
    pub items: u64,
    /// Failed operations.
    pub errors: u64,
    /// The end of its last worker after the common start.
    pub elapsed: Nanos,
    /// Median service time.
    pub p50: Nanos,
    /// 99th percentile.
    pub p99: Nanos,
    /// Longest service time.
    pub max: Nanos,
    /// CPU time, user and system, that its process used from the start of the
    /// phase's set-up to the end of the phase.
    pub cpu: Nanos,
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
    /// Under verification: blocks that were not read back because their write,
    /// or a later one to the same place, had failed.
    pub unchecked: u64,
    /// Calls beyond the first of an operation.
    pub again: Again,
    /// Last finish minus common start.
    pub elapsed: Nanos,
    /// Results when the first worker finished; `None` if none was busy.
    pub first_done: Option<FirstDone>,
    /// Spread of the actual starts of all workers.
    pub start_skew: Nanos,
    /// What the caches could do; `None` where the question has no meaning.
    pub cache: Option<Cache>,
    /// Whether the phase ran to its end (false: stopped by an abort).
    pub complete: bool,
    /// Service times of all workers.
    pub service: Latency,
    /// Response times in an open loop.
    pub response: Option<Latency>,
    /// Hosts in the order of their first rank; of a crowd those at the ends.
    pub hosts: Vec<HostOutcome>,
    /// How all hosts lie apart, when they are more than have rows.
    pub host_crowd: Option<HostCrowd>,
    /// Ranks ascending; of a crowd those at the ends.
    pub ranks: Vec<RankOutcome>,
    /// How all ranks lie apart, when they are more than have rows.
    pub crowd: Option<RankCrowd>,
    /// Counts over time.
    pub timeline: Timeline,
    /// The stonewall, where one came down.
    pub stonewall: Option<Stonewall>,
    /// When all ranks were to start; `None` where each started by itself.
    pub start: Option<CommonStart>,
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
    /// Items a second: items done without error / (last finish − common
    /// start); zero when no time passed.
    pub fn rate(&self) -> f64 {
        per_second(self.items, self.elapsed)
    }

    /// Bytes a second over the same span.
    pub fn bandwidth(&self) -> f64 {
        per_second(self.bytes, self.elapsed)
    }
}

/// `n` a second over `elapsed`; zero when no time passed.
pub fn per_second(n: u64, elapsed: Nanos) -> f64 {
    if elapsed.0 == 0 {
        0.0
    } else {
        n as f64 / elapsed.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Failure, FailureKind};
    use crate::timeline::Bin;
    use proptest::prelude::*;

    /// (end of the operation, its latency, whether it failed)
    type Op = (u64, u64, bool);

    fn recorded(ops: &[Op]) -> Lane {
        let mut lane = Lane::new(OpKind::Write, true);
        for (at, ns, failed) in ops {
            if *failed {
                lane.failures.add(
                    Rank(0),
                    "h",
                    Failure::new(OpKind::Write, "f", FailureKind::Short),
                );
                lane.unchecked += *ns % 3;
                lane.timeline.record(
                    Nanos(*at),
                    Bin {
                        errors: 1,
                        ..Bin::default()
                    },
                );
            } else {
                lane.items += 1;
                lane.bytes += 4096;
                lane.service.record(Nanos(*ns));
                lane.again.add(Again {
                    interrupted: *ns % 2,
                    continued: *at % 3,
                });
                if let Some(response) = &mut lane.response {
                    response.record(Nanos(*ns + 7));
                }
                lane.timeline.record(
                    Nanos(*at),
                    Bin {
                        items: 1,
                        bytes: 4096,
                        errors: 0,
                        max: Nanos(*ns),
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
