//! The I/O workload: files laid out where a phase needs them, then phase
//! after phase.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use rbench_comm::Combine;
use rbench_core::outcome::{Details, PhaseOutcome};
use rbench_core::{Failure, Nanos, OpKind, Rank};
use rbench_plan::cache::Seen;
use rbench_plan::io::{FsyncRule, Round, Rw, small_paths, worker_number};
use rbench_plan::jobs::{Framing, JobPlan};
use rbench_plan::meta::ItemOwner;
use rbench_plan::{IoPlan, Plan, shift};
use rbench_sys::engine::{self, EngineInfo};
use rbench_sys::residency::Part;

use crate::ack::journal::journal_path;
use crate::ack::{self, Header, Journal, Log};
use crate::blocks::{self, Failures, Iologs, Kept, Lanes, Others, WorkerContext};
use crate::caches::drop_caches;
use crate::extents;
use crate::group::{ExecError, Group};
use crate::phase::{Before, Looking, OpRow, Phase, Starts, SteadyEnd};
use crate::residency;
use crate::round::{self, PhaseEnd};
use crate::target::{Target, Workspace as _};
use crate::verify::{Headers, STEP_BITS, Stamps, WRITE_BITS};
use crate::worker::{Idle, MakeRunner};
use crate::workload::{Listener, Pass};

mod scene;
mod small;

use scene::SmallContext;
pub(crate) use scene::over_nothing;

/// The pass with the number `iteration`; `run_key` is what stamps say of the
/// run.
pub(crate) fn pass<'p>(plan: &'p Plan, io: &IoPlan, run_key: u64, iteration: u32) -> IoPass<'p> {
    IoPass {
        plan,
        io: Arc::new(io.clone()),
        // Plans only name engines of the table.
        engine: engine::find(&io.engine).unwrap_or(&engine::ENGINES[0]),
        run_key,
        iteration,
        prefix: iteration.to_string(),
        covered: (0..plan.threads)
            .map(|_| Arc::new(AtomicU64::new(0)))
            .collect(),
        generations: 0..=0,
        logs: Vec::new(),
        unmade: Failures::default(),
        seen: Seen::default(),
    }
}

/// One pass over the phases.
pub(crate) struct IoPass<'p> {
    plan: &'p Plan,
    io: Arc<IoPlan>,
    engine: &'static EngineInfo,
    run_key: u64,
    iteration: u32,
    prefix: String,
    /// For each worker of this rank: bytes of its part (or small files) that are there
    /// from the first on.
    covered: Vec<Arc<AtomicU64>>,
    /// Generations that blocks may have now.
    generations: RangeInclusive<u64>,
    /// The journal of each worker of this rank, with `--ack-journal`.
    logs: Vec<Log>,
    /// Parts that could not be laid out, of all workers.
    unmade: Failures,
    seen: Seen,
}

impl IoPass<'_> {
    /// Directories that a rank's workers have for small files, below the
    /// pass's own.
    fn small_dirs(&self, rank: Rank) -> Vec<String> {
        let Some(small) = self.io.small else {
            return Vec::new();
        };
        (0..self.plan.threads)
            .map(|thread| {
                let worker = worker_number(rank, thread, self.plan.threads);
                small_paths("", worker, small.files)
                    .node(0)
                    .to_string_lossy()
                    .into_owned()
            })
            .collect()
    }
}

impl Pass<Target> for IoPass<'_> {
    fn own_dirs(&self, rank: Rank) -> Vec<String> {
        let below = |name: String| format!("{}/{name}", self.prefix);
        self.small_dirs(rank).into_iter().map(below).collect()
    }

    fn left(&self) -> Option<u64> {
        None
    }

    async fn run(
        &mut self,
        group: &Group<'_>,
        target: &mut Target,
        listener: &mut dyn Listener,
    ) -> Result<bool, ExecError> {
        self.open_journals(group, target).await?;
        target
            .make_dirs(group, &self.prefix, &self.small_dirs(group.rank()))
            .await?;
        if self.io.layout.shared() && self.engine.moves_data {
            let name = format!("{}/{}", self.prefix, self.io.file_name(0));
            target.make_file(group, &name).await?;
        }
        let io = Arc::clone(&self.io);
        let Plan {
            seed,
            shift,
            ranks,
            threads,
            ..
        } = *self.plan;
        let rounds = io.rounds(seed, self.iteration, (shift, ranks), threads);
        for (nth, round) in rounds.into_iter().enumerate() {
            let (rw, ahead) = (round.rw, round.job.files.ahead);
            let step = self.step(round.step);
            // The number before a phase's is that of its layout.
            let needs = rw.needs_files() && self.engine.moves_data;
            if needs && self.lay_out(group, target, &round, step - 1).await? {
                return Ok(true);
            }
            if rw.reads() && self.engine.moves_data && io.small.is_none() {
                let parts = self.parts_read(group, target, ahead);
                extents::look(group, parts, rw.label(), listener).await?;
            }
            let cache = self.cache(group, rw, ahead).await?;
            let phase = self.phase(group, target, nth, round, cache);
            let end = round::run(group, &phase).await?;
            if self.plan.log {
                let rows: Vec<&str> = phase.lanes.iter().map(|row| row.name.as_str()).collect();
                let operations = end.details.operations;
                let damaged = Vec::new();
                let details = Details {
                    operations,
                    damaged,
                };
                listener.details(self.iteration, &rows, details);
            }
            let noted = self.check_journals(group).await;
            for row in end.rows {
                let complete = row.complete && noted.is_ok();
                listener.row(PhaseOutcome { complete, ..row });
            }
            noted?;
            if end.stopped {
                return Ok(true);
            }
            if rw.writes() {
                self.wrote(step, end.covered);
            }
        }
        Ok(false)
    }
}

impl IoPass<'_> {
    /// The files that this rank reads; a shared one is the business of the first
    /// rank of each host.
    fn parts_read(&self, group: &Group<'_>, target: &Target, ahead: u32) -> Vec<Part> {
        let owner = shift::owner(group.rank(), ahead, self.plan.ranks);
        let shared = self.io.layout.shared();
        let threads = match (shared, group.is_leader()) {
            (true, false) => 0,
            (true, true) => 1,
            (false, _) => self.plan.threads,
        };
        let part = |thread| {
            let worker = worker_number(owner, thread, self.plan.threads);
            let name = self.io.file_name(worker);
            Part {
                path: target.held_path().join(&self.prefix).join(name),
                from: 0,
                to: u64::MAX,
            }
        };
        (0..threads).map(part).collect()
    }

    /// With `--ack-journal`: makes the journal of each worker of this rank, in
    /// this pass.
    async fn open_journals(&mut self, group: &Group<'_>, target: &Target) -> Result<(), ExecError> {
        let Some(base) = self.io.ack_journal.clone() else {
            return Ok(());
        };
        let made = ack::check_place(&base, target.path()).and_then(|()| {
            (0..self.plan.threads).try_for_each(|thread| {
                let worker = worker_number(group.rank(), thread, self.plan.threads);
                let header = Header {
                    run: self.run_key,
                    directory: target.path().to_owned(),
                    pass: self.iteration,
                    worker,
                    workers: self.plan.workers(),
                    block: self.io.block(),
                    size: self.io.size.0,
                    layout: self.io.layout,
                    small: self.io.small,
                    named: Vec::new(),
                    mark: 0,
                };
                let path = journal_path(&base, self.iteration, worker);
                self.logs.push(Log::new(Journal::create(path, &header)?));
                Ok(())
            })
        });
        let agreed = group.agree(made).await;
        if agreed.is_err() {
            self.logs.drain(..).for_each(Log::discard);
        }
        agreed
    }

    /// With `--ack-journal`: ends the run when a journal is not complete.
    async fn check_journals(&self, group: &Group<'_>) -> Result<(), ExecError> {
        if self.io.ack_journal.is_none() {
            return Ok(());
        }
        let trouble = self.logs.iter().find_map(Log::trouble);
        group.agree(trouble.map_or(Ok(()), Err)).await
    }

    /// A phase's number, or that of a layout, among those of all iterations: each
    /// writes generations of its own.
    fn step(&self, step: u32) -> u64 {
        u64::from(self.iteration) << STEP_BITS | u64::from(step)
    }

    /// Notes which generations blocks may have after the phase `step`, which wrote.
    fn wrote(&mut self, step: u64, everything: bool) {
        let newest = step << WRITE_BITS;
        let last = newest | u64::from(u32::MAX);
        let oldest = if everything {
            newest
        } else {
            *self.generations.start()
        };
        self.generations = oldest..=last;
    }

    /// Writes what phases need and is not there yet; whether it was stopped.
    async fn lay_out(
        &mut self,
        group: &Group<'_>,
        target: &Target,
        round: &Round,
        step: u64,
    ) -> Result<bool, ExecError> {
        let needed = self.io.whole();
        let there: Vec<u64> = self
            .covered
            .iter()
            .map(|c| c.load(Ordering::Relaxed))
            .collect();
        let missing = u64::from(there.iter().any(|n| *n < needed));
        let some_there = u64::from(there.iter().any(|n| *n > 0));
        let any = group
            .quietly(
                group
                    .world
                    .all_reduce(Combine::Max, vec![missing, some_there]),
            )
            .await?;
        // What could not be laid out then may have been written since.
        self.unmade = Failures::default();
        if any[0] == 0 {
            return Ok(false);
        }
        let (op, total, make): (_, _, MakeRunner) = match self.io.small {
            Some(_) => {
                let scene = self.scene(group, target, step, 0);
                let make = move |thread| scene.layout(thread);
                (OpKind::WriteFile, needed, Arc::new(make))
            }
            None => {
                let pieces = needed.div_ceil(self.io.layout_piece());
                (
                    OpKind::Write,
                    pieces,
                    self.layout(group, target, round, step),
                )
            }
        };
        let phase = Phase {
            iteration: self.iteration,
            label: "laying out files (untimed)".to_owned(),
            shown: false,
            lanes: vec![OpRow {
                op,
                name: "layout".to_owned(),
                label: "Layout".to_owned(),
                unsynced: true,
                aside: false,
                starts: Starts::ByKind,
            }],
            open_loop: false,
            offered: None,
            deadline: None,
            steady: None,
            wear_out: false,
            framing: Framing::Untimed,
            cache: None,
            total: Some(total * self.plan.workers()),
            threads: self.plan.threads,
            lanes_of: Vec::new(),
            log_operations: false,
            before: Before::default(),
            make,
        };
        let end = round::run(group, &phase).await?;
        self.check_journals(group).await?;
        if end.stopped {
            // A layout has no row that would tell why.
            group.agree(unmade_because(&end)).await?;
            return Ok(true);
        }
        if end.failed && self.share_unmade(group).await? {
            group.agree(unmade_because(&end)).await?;
        }
        // What was there before keeps the generation it was written as.
        self.wrote(step, end.covered && any[1] == 0);
        let own = ItemOwner::Each { ahead: 0 };
        self.seen.make(residency::caches(group), own);
        Ok(false)
    }

    /// Makes the workers that write what each one's part lacks.
    fn layout(&self, group: &Group<'_>, target: &Target, round: &Round, step: u64) -> MakeRunner {
        let (io, round, workers) = (Arc::clone(&self.io), round.clone(), self.plan.workers());
        let covered = self.covered.clone();
        let lanes = Lanes {
            write: Some(0),
            ..Lanes::default()
        };
        let kept = Kept {
            failed: Some(Arc::clone(&self.unmade)),
            ..self.kept(target, step)
        };
        let job = Arc::new(round.job.clone());
        let context = self.context(group, target, job, (lanes, kept));
        Arc::new(move |thread| {
            let there = covered[thread as usize].load(Ordering::Relaxed);
            if there >= io.whole() {
                return Ok(Box::new(Idle));
            }
            // Whole blocks: what was begun of the next one is written again.
            let there = there - there % io.block();
            let mut context = context.clone();
            context.job = Arc::new(io.layout(&round, there, workers));
            context.engine = engine::find(&context.job.engine).unwrap_or(&engine::ENGINES[0]);
            context.open_loop = false;
            if let Some(kept) = &mut context.kept {
                kept.there = there;
            }
            blocks::prepare(&context, thread)
        })
    }

    /// Tells every rank which parts could not be laid out; whether none could.
    async fn share_unmade(&self, group: &Group<'_>) -> Result<bool, ExecError> {
        let workers = self.plan.workers();
        let own = self.unmade.lock().map_or_else(
            |_| BTreeSet::new(),
            |unmade| unmade.keys().copied().collect(),
        );
        // A bit for each worker, which only its own rank sets.
        let mut bits = vec![0_u64; workers.div_ceil(64) as usize];
        own.iter()
            .for_each(|w| bits[(w / 64) as usize] |= 1 << (w % 64));
        let all = group.world.all_reduce(Combine::Sum, bits);
        let bits = group.quietly(all).await?;
        let is_unmade = |w: &u64| bits[(w / 64) as usize] >> (w % 64) & 1 == 1;
        let others = (0..workers).filter(|w| is_unmade(w) && !own.contains(w));
        for owner in others {
            let name = format!("{}/{}", self.prefix, self.io.file_name(owner));
            let failure = Failure {
                detail: "the rank that owns it could not lay it out".to_owned(),
                ..Failure::new(OpKind::Read, name, Errno::ENODATA)
            };
            if let Ok(mut unmade) = self.unmade.lock() {
                unmade.insert(owner, failure);
            }
        }
        Ok((0..workers).all(|w| is_unmade(&w)))
    }

    /// Drops the caches if asked for; what is known of them for a phase that
    /// reads.
    async fn cache(
        &mut self,
        group: &Group<'_>,
        rw: Rw,
        ahead: u32,
    ) -> Result<Option<Looking>, ExecError> {
        if self.plan.drop_caches && rw.reads() {
            drop_caches(group).await?;
        }
        let (caches, who) = (residency::caches(group), ItemOwner::Each { ahead });
        let shares = self.seen.visit(caches, who);
        if rw.writes() {
            self.seen.make(caches, who);
        }
        Ok((rw.reads() && self.engine.moves_data).then_some(Looking {
            shares: Some(shares),
            dropped: self.plan.drop_caches,
            direct: self.io.direct,
            ramps: self.io.ramp.0 > 0,
            opens: false,
            verifies: if self.io.verify { vec![0] } else { Vec::new() },
        }))
    }

    fn stamps(&self, step: u64) -> Option<Stamps> {
        self.io.verify.then(|| Stamps {
            headers: Headers::every(self.io.block()),
            run: self.run_key,
            writes: step << WRITE_BITS,
            reads: self.generations.clone(),
        })
    }

    fn scene(&self, group: &Group<'_>, target: &Target, step: u64, ahead: u32) -> SmallContext {
        SmallContext {
            io: Arc::clone(&self.io),
            engine: self.engine,
            fs: target.fs(),
            prefix: self.prefix.clone(),
            rank: group.rank(),
            owner: shift::owner(group.rank(), ahead, self.plan.ranks),
            threads: self.plan.threads,
            workers: self.plan.workers(),
            seed: [self.plan.seed, step],
            stamps: self.stamps(step),
            covered: self.covered.clone(),
            logs: self.logs.clone(),
        }
    }

    /// What is known of the pass's files before the phase with that number, which
    /// writes from the first block on.
    fn kept(&self, target: &Target, step: u64) -> Kept {
        Kept {
            directory: target.directory(),
            stamps: self.stamps(step),
            covered: self.covered.clone(),
            there: 0,
            failed: None,
        }
    }

    /// What the workers of a phase of blocks have in common.
    fn context(
        &self,
        group: &Group<'_>,
        target: &Target,
        job: Arc<JobPlan>,
        (lanes, kept): (Lanes, Kept),
    ) -> WorkerContext {
        WorkerContext {
            together: blocks::together(&job, group.rank(), self.plan.ranks),
            job,
            engine: self.engine,
            lanes,
            open_loop: self.io.open_loop.is_some(),
            base: target.path().to_owned(),
            run: self.run_key,
            first_on_host: 0,
            rank: group.rank(),
            ranks: self.plan.ranks,
            report: None,
            kept: Some(kept),
            logs: self.logs.clone(),
            iologs: Iologs::default(),
            unmade: Arc::default(),
            others: Others::default(),
        }
    }

    /// Makes the workers of a phase of blocks.
    fn blocks(&self, group: &Group<'_>, target: &Target, round: Round) -> MakeRunner {
        let rw = round.rw;
        let write = rw.writes().then_some(usize::from(rw.reads()));
        let behind = |wanted: bool| write.filter(|_| wanted).map(|lane| lane + 1);
        let closes = self.io.fsync == FsyncRule::Close;
        let closing = lanes(&self.io, 0, rw, self.engine).len() - 1;
        let lanes = Lanes {
            read: rw.reads().then_some(0),
            write,
            sync: behind(!closes && self.io.fsync != FsyncRule::Never),
            close: behind(closes),
            closing: (self.engine.uses_files && behind(closes).is_none()).then_some(closing),
            ..Lanes::default()
        };
        let mut kept = self.kept(target, self.step(round.step));
        if rw != Rw::Write {
            kept.covered.clear();
        }
        let unmade = self.unmade.lock().ok().filter(|_| rw.needs_files());
        let context = WorkerContext {
            unmade: Arc::new(unmade.map_or_else(Default::default, |unmade| unmade.clone())),
            ..self.context(group, target, Arc::new(round.job), (lanes, kept))
        };
        Arc::new(move |thread| blocks::prepare(&context, thread))
    }

    /// Operations that are due in a second, where nothing else is counted with them.
    fn offered(&self, rw: Rw) -> Option<f64> {
        let rare = matches!(self.io.fsync, FsyncRule::Never | FsyncRule::End);
        let syncs = rw.writes() && !rare;
        let alone = !syncs && self.io.small.is_none() && self.io.ramp == Nanos(0);
        self.io.open_loop.filter(|_| alone).map(|open| open.rate)
    }

    fn phase(
        &self,
        group: &Group<'_>,
        target: &Target,
        nth: usize,
        round: Round,
        cache: Option<Looking>,
    ) -> Phase {
        let rw = round.rw;
        let (time, workers) = (self.io.time, self.plan.workers());
        let until = |time: Nanos| Nanos(self.io.ramp.0.saturating_add(time.0));
        let make: MakeRunner = match self.io.small {
            Some(_) => {
                let ahead = round.job.files.ahead;
                let scene = self.scene(group, target, self.step(round.step), ahead);
                let schedule = scene.schedule();
                Arc::new(move |thread| scene.small(rw, thread, schedule.clone()))
            }
            None => self.blocks(group, target, round),
        };
        Phase {
            iteration: self.iteration,
            label: rw.label().to_owned(),
            shown: true,
            lanes: lanes(&self.io, nth, rw, self.engine),
            open_loop: self.io.open_loop.is_some(),
            offered: self.offered(rw),
            deadline: time.map(until),
            steady: self.io.steady.map(|rule| SteadyEnd {
                rule,
                from: self.io.ramp,
            }),
            wear_out: false,
            framing: Framing::Untimed,
            cache,
            total: time.is_none().then(|| self.io.operations() * workers),
            threads: self.plan.threads,
            lanes_of: Vec::new(),
            log_operations: self.plan.log,
            before: Before {
                name: Some(names(&self.io, nth, rw).0),
                ..Before::default()
            },
            make,
        }
    }
}

/// Why files could not be laid out, at rank 0, should some not have been.
fn unmade_because(end: &PhaseEnd) -> Result<(), String> {
    let failure = end.rows.first().and_then(|row| row.failures.iter().next());
    failure.map_or(Ok(()), |(_, _, example)| {
        Err(format!(
            "the files could not be laid out: {}",
            example.failure
        ))
    })
}

/// What a phase is called, for machines and for people. Phases that stand more than once in
/// `--rw` carry their position.
fn names(io: &IoPlan, nth: usize, rw: Rw) -> (String, String) {
    let twice = io.phases.iter().filter(|other| **other == rw).count() > 1;
    if !twice {
        return (rw.name().to_owned(), rw.label().to_owned());
    }
    (
        format!("{}-{}", rw.name(), nth + 1),
        format!("{} ({})", rw.label(), nth + 1),
    )
}

/// The rows of a phase.
fn lanes(io: &IoPlan, nth: usize, rw: Rw, engine: &EngineInfo) -> Vec<OpRow> {
    let (name, label) = names(io, nth, rw);
    let mixed = rw.reads() && rw.writes();
    let lane = |op: OpKind, suffix: &str, words: &str| {
        let writes = matches!(op, OpKind::Write | OpKind::WriteFile);
        let unsynced = writes && engine.moves_data && !io.fsync.syncs();
        if suffix.is_empty() {
            OpRow {
                op,
                name: name.clone(),
                label: label.clone(),
                unsynced,
                aside: false,
                starts: Starts::ByKind,
            }
        } else {
            OpRow {
                op,
                name: format!("{name}-{suffix}"),
                label: format!("{label}: {words}"),
                unsynced,
                aside: false,
                starts: Starts::ByKind,
            }
        }
    };
    if io.small.is_some() {
        let op = if rw.writes() {
            OpKind::WriteFile
        } else {
            OpKind::ReadFile
        };
        return vec![lane(op, "", "")];
    }
    let mut lanes = Vec::new();
    if rw.reads() {
        lanes.push(lane(OpKind::Read, if mixed { "read" } else { "" }, "reads"));
    }
    if rw.writes() {
        lanes.push(lane(
            OpKind::Write,
            if mixed { "write" } else { "" },
            "writes",
        ));
        match io.fsync {
            FsyncRule::End | FsyncRule::Every(_) => {
                lanes.push(lane(OpKind::Fsync, "fsync", "fsync"))
            }
            FsyncRule::Close => lanes.push(lane(OpKind::Close, "close", "close")),
            FsyncRule::Never => {}
        }
    }
    // The last one: closes that are not timed with the writes.
    if engine.uses_files && !(rw.writes() && io.fsync == FsyncRule::Close) {
        lanes.push(OpRow {
            aside: true,
            ..lane(OpKind::Close, "closing", "closing")
        });
    }
    lanes
}
