//! What a phase is: its rows, its workers and what surrounds it.

use std::ops::Range;

use rbench_core::outcome::OpStats;
use rbench_core::residency::Share;
use rbench_core::{Nanos, OpKind};
use rbench_plan::jobs::Framing;

use crate::meter::empty_lane;
use crate::worker::MakeRunner;

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
}

/// A phase to run. The same on every rank but for `make`.
pub struct Phase {
    /// The pass over all phases, from 0.
    pub iteration: u32,
    /// For people, while it runs.
    pub label: String,
    /// A row of the report for each kind of operation.
    pub lanes: Vec<OpRow>,
    /// Whether intended starts are given.
    pub open_loop: bool,
    /// Stop issuing after this time.
    pub deadline: Option<Nanos>,
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

impl Phase {
    /// The numbers of the lanes that a worker of a rank has.
    pub fn own_lanes(&self, worker: usize) -> Range<usize> {
        let all = 0..self.lanes.len();
        self.lanes_of.get(worker).cloned().unwrap_or(all)
    }

    /// An empty lane for each of those with these numbers, not to be recorded
    /// into; its timeline is of that interval.
    pub fn empty_lanes(&self, interval: Nanos, numbers: Range<usize>) -> Vec<OpStats> {
        let empty = |info: &OpRow| {
            let mut lane = empty_lane(info.op, self.open_loop, interval);
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

/// What a rank does before a phase, untimed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Before {
    /// A pause.
    pub pause: Nanos,
    /// A shell command of the user's.
    pub command: Option<String>,
}
