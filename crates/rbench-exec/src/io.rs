//! The I/O workload: its phases as groups of jobs, in files of the run's own.

use rbench_core::Rank;
use rbench_plan::IoPlan;
use rbench_plan::io::{small_paths, worker_number};
use rbench_plan::jobs::{JobsPlan, Whole};

use crate::blocks::{self, Sink, engine_of};
use crate::group::{ExecError, Group};
use crate::jobs::{AllIologs, Common, JobRound, OwnFiles};
use crate::listener::Listener;
use crate::needs::{Need, Needs};
use crate::passes;
use crate::spots::Spot;
use crate::target::Target;
use crate::worker::Runner;
use crate::workload::{Pass, Run, Running, Workload};

impl Workload for IoPlan {
    fn spots(&self, run: Run<'_>) -> Vec<Spot> {
        match engine_of(&self.job.engine).uses_files {
            true => run.own_spot(),
            false => Vec::new(),
        }
    }

    fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        let maps = self.job.engine == "mmap" && self.phases.iter().any(|rw| rw.writes());
        needs.add(self.job.direct, Need::Direct, "--direct");
        needs.add(maps, Need::SharedMapping, "--engine mmap");
        for rw in self.phases.iter().filter(|rw| rw.writes() && rw.random()) {
            needs.add(true, Need::RandomWrites, &format!("--rw {}", rw.name()));
        }
        needs
    }

    /// Its file, and a ring.
    fn open_files_each(&self) -> u32 {
        2
    }

    fn bare_loop(&self, operations: u64) -> Option<Box<dyn Runner>> {
        if self.job.small.is_some() {
            return blocks::bare_loop_of_small(self, operations);
        }
        let first = self.rounds(0, 0, (0, 1), 1).into_iter().next()?;
        blocks::bare_loop(&first.job, operations)
    }

    fn run<'a>(&'a self, run: Run<'a>, listener: &'a mut dyn Listener) -> Running<'a> {
        let pass = move |iteration| IoPass {
            run,
            io: self,
            iteration,
        };
        Box::pin(passes::in_own_directory(run, listener, pass))
    }
}

/// One pass over the phases.
struct IoPass<'p> {
    run: Run<'p>,
    io: &'p IoPlan,
    iteration: u32,
}

impl IoPass<'_> {
    /// Returns the directories of a rank's workers for small files, below the pass's own.
    fn small_dirs(&self, rank: Rank) -> Vec<String> {
        let threads = self.run.plan.threads;
        let Some(small) = self.io.job.small else {
            return Vec::new();
        };
        let dir = |thread| {
            let worker = worker_number(rank, thread, threads);
            let mut paths = small_paths("", worker, small.files);
            paths.node(0).to_string_lossy().into_owned()
        };
        (0..threads).map(dir).collect()
    }
}

impl Pass<Target> for IoPass<'_> {
    fn own_dirs(&self, rank: Rank) -> Vec<String> {
        let below = |name: String| format!("{}/{name}", self.iteration);
        self.small_dirs(rank).into_iter().map(below).collect()
    }

    async fn run(
        &mut self,
        group: &Group<'_>,
        target: &mut Target,
        listener: &mut dyn Listener,
    ) -> Result<bool, ExecError> {
        let (io, iteration, target) = (self.io, self.iteration, &*target);
        let Run { plan, key, .. } = self.run;
        let ranks = (plan.shift, plan.ranks);
        let rounds = io.rounds(plan.seed, iteration, ranks, plan.threads);
        let jobs = JobsPlan {
            rounds: rounds.iter().map(|r| vec![r.job.clone()]).collect(),
            iterations: 1,
            ack_journal: io.ack_journal.clone(),
            global_options: Vec::new(),
            whole: Whole::default(),
        };
        let mut own = OwnFiles::new(io, key, iteration, plan.threads);
        let first = worker_number(group.rank(), 0, plan.threads);
        let workers = first..first + u64::from(plan.threads);
        let journals = own.open_journals(group, target, workers).await?;
        let prefix = iteration.to_string();
        let small_dirs = self.small_dirs(group.rank());
        target.make_dirs(group, &prefix, &small_dirs).await?;
        if io.layout.shared() && engine_of(&io.job.engine).moves_data {
            let name = format!("{prefix}/{}", io.layout.file_name(0));
            target.make_file(group, &name).await?;
        }
        let (iologs, sink) = (AllIologs::default(), Sink::default());
        let common = Common::new(self.run, target.path(), &journals, &iologs);
        for (number, round) in rounds.iter().enumerate() {
            let stopped = own.lay_out(group, &common, (target, round), listener);
            if stopped.await? {
                return Ok(true);
            }
            let phase = own.before(group, target, round);
            let group_of_one = JobRound::new(&common, &jobs, number, (number as u32, 0));
            let group_of_one = group_of_one.with_own(iteration, phase);
            let end = group_of_one.measure(group, &sink, listener).await?;
            if end.stopped {
                return Ok(true);
            }
            own.ended(round, end.covered);
        }
        Ok(false)
    }
}
