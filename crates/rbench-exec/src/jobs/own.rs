//! Files of jobs that are the run's own, like those of `rbench io`: each worker has a part of them,
//! whose state is known from phase to phase.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use rbench_core::residency::Share;
use rbench_core::{Failure, OpKind};
use rbench_plan::IoPlan;
use rbench_plan::cache::Seen;
use rbench_plan::io::Round;
use rbench_plan::jobs::JobPlan;
use rbench_plan::meta::ItemOwner;
use rbench_plan::pattern::file_path;

use super::{Common, Journals, expected, find, why_unmade};
use crate::ack::{self, Header};
use crate::blocks::{self, Failures, Kept, Lanes, WorkerContext};
use crate::group::{ExecError, Group};
use crate::listener::Listener;
use crate::phase::{OpRow, Phase};
use crate::residency;
use crate::round;
use crate::target::{Target, Workspace as _};
use crate::verify::{Headers, STEP_BITS, Stamps, WRITE_BITS};
use crate::worker::{Idle, MakeRunner};

/// The state of a phase whose files are the run's own.
pub(crate) struct OwnPhase {
    pub(super) kept: Kept,
    /// Workers whose files could not be laid out, and why.
    pub(super) unmade: Arc<BTreeMap<u64, Failure>>,
    /// The ranks whose items each cache works on.
    pub(super) shares: Vec<Share>,
    /// Directory that relative paths start from, by a descriptor.
    pub(super) held: PathBuf,
}

/// The state of the files of a pass that are the run's own.
pub(crate) struct OwnFiles<'p> {
    io: &'p IoPlan,
    run: u64,
    iteration: u32,
    /// For each worker of this rank: bytes of its part (or small files) that are there
    /// from the first on.
    covered: Vec<Arc<AtomicU64>>,
    /// Generations that blocks may have now.
    generations: RangeInclusive<u64>,
    /// Parts that could not be laid out, of all workers.
    unmade: Failures,
    seen: Seen,
}

impl<'p> OwnFiles<'p> {
    /// No file exists yet, for this number of workers of this rank.
    pub(crate) fn new(io: &'p IoPlan, run: u64, iteration: u32, threads: u32) -> OwnFiles<'p> {
        OwnFiles {
            io,
            run,
            iteration,
            covered: (0..threads).map(|_| Arc::default()).collect(),
            generations: 0..=0,
            unmade: Failures::default(),
            seen: Seen::default(),
        }
    }

    /// With `--ack-journal`: makes the journals of this rank's workers, in this pass.
    ///
    /// # Errors
    /// When one cannot be made on some rank.
    pub(crate) async fn open_journals(
        &self,
        group: &Group<'_>,
        target: &Target,
        workers: Range<u64>,
    ) -> Result<Journals, ExecError> {
        let Some(name) = &self.io.ack_journal else {
            return Ok(Journals::default());
        };
        let all = u64::from(group.world.size()) * (workers.end - workers.start);
        let header = |worker| Header {
            run: self.run,
            directory: target.path().to_owned(),
            pass: self.iteration,
            worker,
            workers: all,
            block: self.io.block(),
            size: self.io.size.0,
            layout: self.io.layout,
            small: self.io.job.small,
            named: Vec::new(),
            mark: 0,
        };
        let (base, path) = (name.clone(), target.path().to_owned());
        let placed = group.agree_on_target(move || ack::check_place(&base, &path));
        placed.await?;
        Journals::make(group, name, vec![workers.map(header).collect()]).await
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
        let oldest = match everything {
            true => newest,
            false => *self.generations.start(),
        };
        self.generations = oldest..=last;
    }

    /// The phase has ended; `everything`: it has covered all parts.
    pub(crate) fn ended(&mut self, round: &Round, everything: bool) {
        if round.rw.writes() {
            self.wrote(self.step(round.step), everything);
        }
    }

    /// The state before the phase with that number, which writes from the first block on.
    fn kept(&self, target: &Target, step: u64) -> Kept {
        Kept {
            directory: target.directory(),
            fs: target.fs(),
            stamps: self.io.job.verify.is_some().then(|| Stamps {
                headers: Headers::every(self.io.block()),
                run: self.run,
                writes: step << WRITE_BITS,
                reads: self.generations.clone(),
            }),
            covered: self.covered.clone(),
            there: 0,
            failed: None,
        }
    }

    /// The state before `round`.
    pub(crate) fn before(&mut self, group: &Group<'_>, target: &Target, round: &Round) -> OwnPhase {
        let caches = residency::caches(group);
        let ahead = round.job.files.ahead;
        let shares = self.seen.visit(caches, ItemOwner::Each { ahead });
        if round.rw.writes() {
            self.seen.make(caches, ItemOwner::Each { ahead });
        }
        let mut kept = self.kept(target, self.step(round.step));
        if !round.rw.writes() || round.rw.needs_files() {
            kept.covered.clear();
        }
        let unmade = self.unmade.lock().ok().filter(|_| round.rw.needs_files());
        OwnPhase {
            kept,
            unmade: Arc::new(unmade.map_or_else(Default::default, |unmade| unmade.clone())),
            shares,
            held: target.held_path(),
        }
    }

    /// Writes what `round`, the only job of its group, needs and is not there yet; whether it
    /// was stopped. Its row is reported if it ends the run.
    pub(crate) async fn lay_out(
        &mut self,
        group: &Group<'_>,
        common: &Common<'_>,
        (target, round): (&Target, &Round),
        listener: &mut dyn Listener,
    ) -> Result<bool, ExecError> {
        if !(round.rw.needs_files() && find(&round.job).moves_data) {
            return Ok(false);
        }
        let needed = self.io.whole();
        let covered = self.covered.iter();
        let there: Vec<u64> = covered.map(|c| c.load(Ordering::Relaxed)).collect();
        let missing = there.iter().any(|n| *n < needed);
        let some = there.iter().any(|n| *n > 0);
        let any = vec![u64::from(missing), u64::from(some)];
        let any = group.largest(any).await?;
        // A part that could not be laid out then may have been written since.
        self.unmade = Failures::default();
        if any[0] == 0 {
            return Ok(false);
        }
        // The number before a phase's is that of its layout.
        let step = self.step(round.step - 1);
        let workers = u64::from(round.job.numjobs) * u64::from(group.world.size());
        let phase = self.layout(group, common, (target, round, step), workers);
        let mut end = round::run(group, &phase).await?;
        common.journals.check(group).await?;
        if end.stopped || end.failed && self.share_unmade(group, &round.job, workers).await? {
            let why = why_unmade(&end, "laid out");
            end.tell_failures(listener);
            group.agree(why).await?;
            return Ok(true);
        }
        // Data that was there before keeps the generation it was written as.
        self.wrote(step, end.covered && any[1] == 0);
        let own = ItemOwner::Each { ahead: 0 };
        self.seen.make(residency::caches(group), own);
        Ok(false)
    }

    /// The phase in which workers write what each one's part lacks.
    fn layout(
        &self,
        group: &Group<'_>,
        common: &Common<'_>,
        (target, round, step): (&Target, &Round, u64),
        workers: u64,
    ) -> Phase {
        let job = self.io.layout(&round.job, 0, workers);
        let row = match job.small {
            Some(_) => OpKind::WriteFile,
            None => OpKind::Write,
        };
        let kept = Kept {
            failed: job.small.is_none().then(|| Arc::clone(&self.unmade)),
            ..self.kept(target, step)
        };
        let (threads, ranks) = (job.numjobs, group.world.size());
        let total = expected(&job).map(|each| each.saturating_mul(u64::from(ranks)));
        let lanes = Lanes {
            write: Some(0),
            ..Lanes::default()
        };
        let ranks = (group.rank(), group.world.size());
        let context = WorkerContext {
            run: self.run,
            kept: Some(kept),
            logs: common.journals.of(0),
            ..WorkerContext::new(job, lanes, common.base.to_owned(), ranks)
        };
        let (io, job) = (self.io.clone(), round.job.clone());
        let make: MakeRunner = Arc::new(move |thread| {
            let mut context = context.clone();
            if let Some(kept) = &mut context.kept {
                let there = kept.covered[thread as usize].load(Ordering::Relaxed);
                if there >= io.whole() {
                    return Ok(Box::new(Idle));
                }
                // Whole blocks: a block that was written in part is written again.
                let block = io.job.small.map_or(io.block(), |_| 1);
                kept.there = there - there % block;
                context.job = Arc::new(io.layout(&job, kept.there, workers));
            }
            blocks::prepare(&context, thread)
        });
        Phase {
            iteration: self.iteration,
            total,
            ..Phase::untimed("laying out files", OpRow::layout(row), threads, make)
        }
    }

    /// Tells every rank which parts could not be laid out; whether none could.
    async fn share_unmade(
        &self,
        group: &Group<'_>,
        job: &JobPlan,
        workers: u64,
    ) -> Result<bool, ExecError> {
        let own: BTreeSet<u64> = match self.unmade.lock() {
            Ok(unmade) => unmade.keys().copied().collect(),
            Err(_) => BTreeSet::new(),
        };
        // A bit for each worker, which only its own rank sets.
        let mut bits = vec![0_u64; workers.div_ceil(64) as usize];
        own.iter()
            .for_each(|w| bits[(w / 64) as usize] |= 1 << (w % 64));
        let bits = group.sums(bits).await?;
        let is_unmade = |w: &u64| bits[(w / 64) as usize] >> (w % 64) & 1 == 1;
        let others = (0..workers).filter(|w| is_unmade(w) && !own.contains(w));
        if let Ok(mut unmade) = self.unmade.lock() {
            unmade.extend(others.map(|owner| {
                let name = file_path(job, owner, 0);
                let failure = Failure::new(OpKind::Read, name.to_string_lossy(), Errno::ENODATA);
                (
                    owner,
                    failure.with("the rank that owns it could not lay it out"),
                )
            }));
        }
        Ok((0..workers).all(|w| is_unmade(&w)))
    }
}
