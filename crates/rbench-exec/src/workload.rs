//! Interface of a workload to the run: its needs before anything is created, and its passes over
//! phases.

use std::path::PathBuf;
use std::pin::Pin;

use rbench_core::Rank;
use rbench_plan::{Plan, Work};

use crate::group::{ExecError, Group};
use crate::listener::{Listener, RunEnd};
use crate::needs::{NamesInFlight, Needs};
use crate::room::{self, Demands};
use crate::spots::Spot;
use crate::target::Place;
use crate::worker::Runner;

/// A run: its ranks, their work, and its place.
#[derive(Clone, Copy)]
pub(crate) struct Run<'r> {
    pub group: &'r Group<'r>,
    pub plan: &'r Plan,
    pub place: &'r Place<'r>,
    /// Identifies the run in verified blocks.
    pub key: u64,
}

impl Run<'_> {
    /// Returns the directory of a run that works in one of its own, if that is the user's.
    pub fn own_spot(&self) -> Vec<Spot> {
        let real = !self.plan.embedded() && self.place.recorder.is_none();
        let spot = Spot::of_all(self.place.parent.to_owned(), self.plan.ranks);
        real.then_some(spot).into_iter().collect()
    }
}

/// Execution of a workload.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Result<RunEnd, ExecError>> + 'a>>;

/// A workload of a run. All methods except `run` are called before anything is created.
pub(crate) trait Workload {
    /// Returns its directories; none if nothing reaches a file system of the user's.
    fn spots(&self, run: Run<'_>) -> Vec<Spot> {
        run.own_spot()
    }

    /// Returns its needs of the file system beyond reading and writing files in order.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Returns the operations on names that each worker has in flight, if a ring performs them.
    fn in_flight(&self) -> Option<NamesInFlight> {
        None
    }

    /// Returns the descriptors that one worker holds at a time.
    fn open_files_each(&self) -> u32 {
        1
    }

    /// Returns its demand of room in these directories, each with the ranks that fill it.
    fn demands(&self, run: Run<'_>, spots: Vec<(PathBuf, Vec<u32>)>) -> Demands {
        room::of_plan(run.plan, spots)
    }

    /// Creates the loop of its workers without real I/O, for this many operations; `None` if it
    /// cannot be created here (the run will report why).
    fn bare_loop(&self, _operations: u64) -> Option<Box<dyn Runner>> {
        None
    }

    /// Sets up, runs the passes and removes.
    fn run<'a>(&'a self, run: Run<'a>, listener: &'a mut dyn Listener) -> Running<'a>;
}

/// Returns the workload of a plan: the only place that distinguishes them.
pub(crate) fn of(work: &Work) -> &dyn Workload {
    match work {
        Work::Meta(work) => work,
        Work::Io(work) => work.as_ref(),
        Work::Jobs(work) => work,
        Work::Find(work) => work,
        Work::Mix(work) => work,
        Work::Replay(work) => work,
    }
}

/// One pass over the phases of a workload, in a directory of its own.
pub(crate) trait Pass<G> {
    /// Returns the directories, relative to the workspace, that belong to this rank alone.
    fn own_dirs(&self, _rank: Rank) -> Vec<String> {
        Vec::new()
    }

    /// At rank 0: returns the entries that the phases have created and not removed, if known.
    fn left(&self) -> Option<u64> {
        None
    }

    /// Creates the initial state of the phases, then runs them; returns whether the group was
    /// stopped.
    async fn run(
        &mut self,
        group: &Group<'_>,
        workspace: &mut G,
        listener: &mut dyn Listener,
    ) -> Result<bool, ExecError>;
}
