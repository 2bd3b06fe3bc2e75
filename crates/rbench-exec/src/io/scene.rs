//! The workers of phases of small files, and of their layout.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rbench_core::{Failure, OpKind, Rank};
use rbench_plan::IoPlan;
use rbench_plan::arrival::{Schedule, Workers};
use rbench_plan::io::{Rw, SmallFiles, small_paths, worker_number};
use rbench_plan::jobs::Buffers;
use rbench_plan::meta::Calls;
use rbench_plan::permutation::Permutation;
use rbench_sys::engine::{self, EngineConfig, EngineInfo};
use rbench_sys::{Engine, Fs, NullFs};

use super::small::SmallFile;
use crate::ack::Log;
use crate::data::Data;
use crate::ops::{ItemRunner, Visit};
use crate::verify::Stamps;
use crate::worker::Prepared;

/// What the workers of a rank need to make their runners.
#[derive(Clone)]
pub(super) struct SmallContext {
    pub(super) io: Arc<IoPlan>,
    pub(super) engine: &'static EngineInfo,
    pub(super) fs: Arc<dyn Fs>,
    pub(super) prefix: String,
    pub(super) rank: Rank,
    pub(super) owner: Rank,
    pub(super) threads: u32,
    pub(super) workers: u64,
    /// (seed, number of the phase among those of all iterations)
    pub(super) seed: [u64; 2],
    pub(super) stamps: Option<Stamps>,
    pub(super) covered: Vec<Arc<AtomicU64>>,
    /// The journal of each worker, with `--ack-journal`.
    pub(super) logs: Vec<Log>,
}

/// Reads of so many small files that are none: the loop of small files with
/// nothing behind it.
///
/// # Errors
/// When there is not the memory.
pub(crate) fn over_nothing(plan: &IoPlan, files: u64) -> Prepared {
    let mut io = plan.clone();
    io.small = io.small.map(|small| SmallFiles { files, ..small });
    (io.engine, io.depth, io.verify) = ("null".to_owned(), 1, false);
    (io.ack_journal, io.open_loop, io.time) = (None, None, None);
    let scene = SmallContext {
        io: Arc::new(io),
        engine: engine::find("null").unwrap_or(&engine::ENGINES[0]),
        fs: Arc::new(NullFs),
        prefix: String::new(),
        rank: Rank(0),
        owner: Rank(0),
        threads: 1,
        workers: 1,
        seed: [0; 2],
        stamps: None,
        covered: vec![Arc::default()],
        logs: Vec::new(),
    };
    scene.small(Rw::Read, 0, None)
}

impl SmallContext {
    fn worker(&self, rank: Rank, thread: u32) -> u64 {
        worker_number(rank, thread, self.threads)
    }

    fn parts(&self, thread: u32, what: u64) -> [u64; 4] {
        let [seed, step] = self.seed;
        [seed, step, self.worker(self.rank, thread), what]
    }

    /// With `refill` false the data of a buffer stays where the plan has it so.
    fn data(&self, thread: u32, refill: bool) -> Data {
        let slots = self.io.depth as usize;
        let buffers = Buffers {
            refill: refill || self.io.buffers.refill,
            ..self.io.buffers.clone()
        };
        Data::new(&buffers, slots, &self.parts(thread, 1))
    }

    fn engine(&self, depth: usize, block: u64) -> Result<Box<dyn Engine>, Failure> {
        (self.engine.make)(EngineConfig::new(depth, block as usize)).map_err(|errno| Failure {
            op: OpKind::Open,
            path: format!("--engine {}", self.engine.name),
            kind: errno.into(),
            detail: String::new(),
        })
    }

    /// The intended starts of all workers of this rank, where there is a rate.
    pub(super) fn schedule(&self) -> Option<Arc<Schedule>> {
        let open = self.io.open_loop?;
        let ranks = self.workers / u64::from(self.threads.max(1));
        let workers = Workers::of_rank(self.rank, ranks as u32, self.threads);
        let schedule = Schedule::new(open.arrival, open.rate, workers, &self.parts(0, 2));
        Some(Arc::new(schedule))
    }

    fn small_file(
        &self,
        write: bool,
        owner: u64,
        thread: u32,
        direct: bool,
    ) -> Result<SmallFile, Failure> {
        let (size, files) = self.io.small.map_or((0, 0), |s| (s.size.0, s.files));
        Ok(SmallFile {
            write,
            paths: small_paths(&self.prefix, owner, files),
            engine: self.engine(1, size)?,
            size,
            block: self.io.block(),
            direct,
            mapped: self.engine.mapped,
            fsync: self.io.fsync,
            data: self.data(thread, true),
            refill: self.io.buffers.refill,
            stamps: self.stamps.clone(),
            log: self.logs.get(thread as usize).filter(|_| write).cloned(),
            written: 0,
            announced: true,
            owner,
            index: 0,
            done: Vec::with_capacity(1),
        })
    }

    pub(super) fn small(&self, rw: Rw, thread: u32, schedule: Option<Arc<Schedule>>) -> Prepared {
        let owner = self.worker(self.owner, thread);
        let op = self.small_file(rw.writes(), owner, thread, self.io.direct)?;
        let count = self.io.whole();
        let order = rw
            .random()
            .then(|| Permutation::new(count, &self.parts(thread, 4)));
        let visits = if self.io.time.is_some() {
            u64::MAX
        } else {
            count
        };
        let visit = Visit {
            first: 0,
            count,
            visits,
            order,
            schedule,
        };
        let calls = Calls::default();
        let runner = ItemRunner::new(op, calls, Arc::clone(&self.fs), visit)?;
        let sequential_write = rw == Rw::Write;
        let covered = sequential_write.then(|| Arc::clone(&self.covered[thread as usize]));
        Ok(Box::new(runner.telling(covered)))
    }

    /// The layout of the files that this worker lacks.
    pub(super) fn layout(&self, thread: u32) -> Prepared {
        let owner = self.worker(self.rank, thread);
        let covered = Arc::clone(&self.covered[thread as usize]);
        let there = covered.load(Ordering::Relaxed);
        let op = self.small_file(true, owner, thread, false)?;
        let count = self.io.whole() - there;
        let visit = Visit {
            first: there,
            count,
            visits: count,
            order: None,
            schedule: None,
        };
        let calls = Calls::default();
        let runner = ItemRunner::new(op, calls, Arc::clone(&self.fs), visit)?;
        Ok(Box::new(runner.telling(Some(covered))))
    }
}
