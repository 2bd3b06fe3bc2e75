//! What a workload is to the run: what it needs before anything is made, and passes over
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

/// A run: its ranks, what they are to do, and where.
#[derive(Clone, Copy)]
pub(crate) struct Run<'r> {
    pub group: &'r Group<'r>,
    pub plan: &'r Plan,
    pub place: &'r Place<'r>,
    /// Stands for the run in verified blocks.
    pub key: u64,
}

impl Run<'_> {
    /// The directory of a run that works in one of its own, where that is the user's.
    pub fn own_spot(&self) -> Vec<Spot> {
        let real = !self.plan.embedded() && self.place.recorder.is_none();
        let spot = Spot::of_all(self.place.parent.to_owned(), self.plan.ranks);
        real.then_some(spot).into_iter().collect()
    }
}

/// How a workload is carried out.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Result<RunEnd, ExecError>> + 'a>>;

/// What a run does. All methods but `run` are called before anything is made.
pub(crate) trait Workload {
    /// The directories that it works in; none where nothing reaches a file system of the
    /// user's.
    fn spots(&self, run: Run<'_>) -> Vec<Spot> {
        run.own_spot()
    }

    /// What it needs of the file system beyond reading and writing files in order.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Operations on names that each worker has in flight, where a ring has them.
    fn in_flight(&self) -> Option<NamesInFlight> {
        None
    }

    /// Descriptors that one worker holds at a time.
    fn open_files_each(&self) -> u32 {
        1
    }

    /// What it takes of the room in these directories, each with the ranks that fill it.
    fn demands(&self, run: Run<'_>, spots: Vec<(PathBuf, Vec<u32>)>) -> Demands {
        room::of_plan(run.plan, spots)
    }

    /// The loop of its workers with nothing behind it, for this many operations; `None` where
    /// it cannot be made here (the run will say why).
    fn bare_loop(&self, _operations: u64) -> Option<Box<dyn Runner>> {
        None
    }

    /// Sets up, makes the passes and removes.
    fn run<'a>(&'a self, run: Run<'a>, listener: &'a mut dyn Listener) -> Running<'a>;
}

/// The workload of a plan: the one place where they are told apart.
pub(crate) fn of(work: &Work) -> &dyn Workload {
    match work {
        Work::Meta(work) => work,
        Work::Io(work) => work,
        Work::Jobs(work) => work,
        Work::Find(work) => work,
        Work::Mix(work) => work,
        Work::Replay(work) => work,
    }
}

/// One pass over the phases of a workload, in a directory of its own.
pub(crate) trait Pass<G> {
    /// Directories, from the workspace on, that belong to this rank alone.
    fn own_dirs(&self, _rank: Rank) -> Vec<String> {
        Vec::new()
    }

    /// At rank 0: entries that the phases have made and not removed, as far as that is
    /// known.
    fn left(&self) -> Option<u64> {
        None
    }

    /// Makes what the phases start from, then runs them; whether the group was
    /// stopped.
    async fn run(
        &mut self,
        group: &Group<'_>,
        workspace: &mut G,
        listener: &mut dyn Listener,
    ) -> Result<bool, ExecError>;
}
