//! The I/O workload: files laid out where a phase needs them, then phase
//! after phase.

use std::ffi::CString;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rbench_comm::Combine;
use rbench_core::outcome::Cache;
use rbench_core::random::{DataStream, Stream};
use rbench_core::{Failure, FailureKind, OpKind, Rank};
use rbench_plan::arrival::Schedule;
use rbench_plan::cache::Seen;
use rbench_plan::io::{FsyncRule, Order, Rw, small_shape, worker_number};
use rbench_plan::meta::Who;
use rbench_plan::permutation::Permutation;
use rbench_plan::tree::{Forest, ItemKind, NATIVE, Paths, Private};
use rbench_plan::{IoPlan, Plan, shift};
use rbench_sys::engine::{self, EngineConfig, EngineInfo};
use rbench_sys::fs::OpenMode;
use rbench_sys::{Completion, Engine, Fs, Request};

use crate::group::{ExecError, Group};
use crate::ops::{ItemRunner, Visit};
use crate::phase::{self, Before, LaneInfo, Phase};
use crate::run::{Listener, Pass, drop_caches};
use crate::target::{Ground as _, Target};
use crate::worker::Prepared;

pub mod blocks;
mod layout;
mod small;

use blocks::{BlockRunner, Blocks, Lanes, PASS_BITS, Stamps};
use layout::LayoutRunner;
use small::SmallFile;

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
        // Iterations write generations of their own.
        step: iteration << 16,
        generations: 0..=0,
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
    /// For each worker of this rank: blocks (or small files) that are there
    /// from the first on.
    covered: Vec<Arc<AtomicU64>>,
    /// Number of the phase, layouts included, from 1.
    step: u32,
    /// Generations that blocks may have now.
    generations: RangeInclusive<u64>,
    seen: Seen,
}

/// What the workers of a rank need to make their runners.
#[derive(Clone)]
struct Scene {
    io: Arc<IoPlan>,
    engine: &'static EngineInfo,
    fs: Arc<dyn Fs>,
    prefix: String,
    rank: Rank,
    owner: Rank,
    threads: u32,
    workers: u64,
    /// (seed, iteration, phase)
    seed: [u64; 3],
    stamps: Option<Stamps>,
    covered: Vec<Arc<AtomicU64>>,
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

    async fn run(
        &mut self,
        group: &Group<'_>,
        target: &mut Target,
        listener: &mut dyn Listener,
    ) -> Result<bool, ExecError> {
        target
            .make_dirs(group, &self.prefix, &self.small_dirs(group.rank()))
            .await?;
        if self.io.layout.shared() && self.engine.moves_data {
            let name = format!("{}/{}", self.prefix, self.io.file_name(0));
            target.make_file(group, &name).await?;
        }
        let io = Arc::clone(&self.io);
        let mut behind_first = 0;
        for (nth, rw) in io.phases.iter().copied().enumerate() {
            if rw.needs_files() && self.engine.moves_data && self.lay_out(group, target).await? {
                return Ok(true);
            }
            // Each phase that reads goes one step further round the ranks.
            behind_first += u32::from(!rw.writes());
            let ahead = if rw.writes() {
                0
            } else {
                shift::ahead(self.plan.shift, behind_first, self.plan.ranks)
            };
            let cache = self.cache(group, rw, ahead).await?;
            let phase = self.phase(group, target, nth, rw, ahead, cache);
            let end = phase::run(group, &phase).await?;
            end.rows.into_iter().for_each(|row| listener.row(row));
            if end.stopped {
                return Ok(true);
            }
            if rw.writes() {
                self.wrote(end.covered);
            }
        }
        Ok(false)
    }
}

impl IoPass<'_> {
    /// Notes which generations blocks may have after a phase that wrote.
    fn wrote(&mut self, everything: bool) {
        let newest = u64::from(self.step) << PASS_BITS;
        // Passes behind the first only come with --time.
        let last = if self.io.time.is_some() {
            newest | u64::from(u32::MAX)
        } else {
            newest
        };
        let oldest = if everything {
            newest
        } else {
            *self.generations.start()
        };
        self.generations = oldest..=last;
    }

    /// Writes what phases need and is not there yet; whether it was stopped.
    async fn lay_out(&mut self, group: &Group<'_>, target: &Target) -> Result<bool, ExecError> {
        let needed = self.io.blocks();
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
        if any[0] == 0 {
            return Ok(false);
        }
        let scene = self.scene(group, target, 0);
        let small = self.io.small.is_some();
        let op = if small {
            OpKind::WriteFile
        } else {
            OpKind::Write
        };
        let total = if small {
            needed
        } else {
            needed.div_ceil(layout::piece_blocks(&self.io))
        };
        let phase = Phase {
            iteration: self.iteration,
            label: "laying out files (untimed)".to_owned(),
            lanes: vec![LaneInfo {
                op,
                name: "layout".to_owned(),
                label: "Layout".to_owned(),
            }],
            open_loop: false,
            deadline: None,
            wear_out: false,
            cache: None,
            total: Some(total * self.plan.workers()),
            threads: self.plan.threads,
            log_operations: false,
            before: Before::default(),
            make: Arc::new(move |thread| scene.layout(thread)),
        };
        let end = phase::run(group, &phase).await?;
        if end.stopped {
            return Ok(true);
        }
        let failure = end.rows.first().and_then(|row| row.failures.iter().next());
        let failed = failure.map_or(Ok(()), |(_, _, example)| {
            Err(format!(
                "the files could not be laid out: {}",
                example.failure
            ))
        });
        group.agree(failed).await?;
        // What was there before keeps the generation it was written as.
        self.wrote(end.covered && any[1] == 0);
        self.seen.visit(&self.plan.host_of, Who::Each { ahead: 0 });
        Ok(false)
    }

    /// Drops the caches if asked for, and labels the phase.
    async fn cache(
        &mut self,
        group: &Group<'_>,
        rw: Rw,
        ahead: u32,
    ) -> Result<Option<Cache>, ExecError> {
        if self.plan.drop_caches && rw.reads() {
            drop_caches(group).await?;
            self.seen.clear();
        }
        let seen = self.seen.visit(&self.plan.host_of, Who::Each { ahead });
        let forced = self.plan.drop_caches || self.io.direct;
        if !self.engine.moves_data {
            return Ok(None);
        }
        Ok(rw
            .reads()
            .then_some(if forced { Cache::Forced } else { seen }))
    }

    fn scene(&mut self, group: &Group<'_>, target: &Target, ahead: u32) -> Scene {
        self.step += 1;
        let stamps = self.io.verify.then(|| Stamps {
            run: self.run_key,
            writes: u64::from(self.step),
            reads: self.generations.clone(),
        });
        Scene {
            io: Arc::clone(&self.io),
            engine: self.engine,
            fs: target.fs(),
            prefix: self.prefix.clone(),
            rank: group.rank(),
            owner: shift::owner(group.rank(), ahead, self.plan.ranks),
            threads: self.plan.threads,
            workers: self.plan.workers(),
            seed: [
                self.plan.seed,
                u64::from(self.iteration),
                u64::from(self.step),
            ],
            stamps,
            covered: self.covered.clone(),
        }
    }

    fn phase(
        &mut self,
        group: &Group<'_>,
        target: &Target,
        nth: usize,
        rw: Rw,
        ahead: u32,
        cache: Option<Cache>,
    ) -> Phase {
        let scene = self.scene(group, target, ahead);
        let lanes = lanes(&self.io, nth, rw);
        let total = self
            .io
            .time
            .is_none()
            .then(|| self.io.blocks() * self.plan.workers());
        Phase {
            iteration: self.iteration,
            label: rw.label().to_owned(),
            lanes,
            open_loop: self.io.open_loop.is_some(),
            deadline: self.io.time,
            wear_out: false,
            cache,
            total,
            threads: self.plan.threads,
            log_operations: false,
            before: Before::default(),
            make: Arc::new(move |thread| {
                if scene.io.small.is_some() {
                    scene.small(rw, thread)
                } else {
                    scene.blocks(rw, thread)
                }
            }),
        }
    }
}

/// Submits one request in slot 0 and waits for it; fewer bytes than asked for
/// are a failure. `done` is empty before and after.
fn one_request(
    engine: &mut dyn Engine,
    done: &mut Vec<Completion>,
    request: Request,
) -> Result<(), FailureKind> {
    engine.submit(0, request);
    engine.wait(done)?;
    let got = done.pop().map_or(Ok(0), |c| c.result)?;
    if got < request.length {
        Err(FailureKind::Short)
    } else {
        Ok(())
    }
}

/// Paths of the small files of a worker.
fn small_paths(prefix: &str, worker: u64, files: u64) -> Paths {
    let forest = Forest {
        shape: small_shape(files),
        naming: NATIVE,
        prefixes: vec![prefix.to_owned()],
        numbered: None,
        // The trees are the workers' here.
        private: Some(Private {
            ahead: 0,
            ranks: u32::MAX,
        }),
    };
    Paths::new(Arc::new(forest), Rank(worker as u32), ItemKind::File)
}

/// The rows of a phase. Phases that stand more than once in `--rw` carry
/// their position.
fn lanes(io: &IoPlan, nth: usize, rw: Rw) -> Vec<LaneInfo> {
    let twice = io.phases.iter().filter(|other| **other == rw).count() > 1;
    let (name, label) = if twice {
        (
            format!("{}-{}", rw.name(), nth + 1),
            format!("{} ({})", rw.label(), nth + 1),
        )
    } else {
        (rw.name().to_owned(), rw.label().to_owned())
    };
    let mixed = rw.reads() && rw.writes();
    let lane = |op: OpKind, suffix: &str, words: &str| {
        if suffix.is_empty() {
            LaneInfo {
                op,
                name: name.clone(),
                label: label.clone(),
            }
        } else {
            LaneInfo {
                op,
                name: format!("{name}-{suffix}"),
                label: format!("{label}: {words}"),
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
    lanes
}

impl Scene {
    fn worker(&self, rank: Rank, thread: u32) -> u64 {
        worker_number(rank, thread, self.threads)
    }

    fn parts(&self, thread: u32, what: u64) -> [u64; 5] {
        let [seed, iteration, step] = self.seed;
        [seed, iteration, step, self.worker(self.rank, thread), what]
    }

    fn data(&self, thread: u32) -> DataStream {
        DataStream::new(&self.parts(thread, 1))
    }

    fn engine(&self, depth: usize, block: u64) -> Result<Box<dyn Engine>, Failure> {
        (self.engine.make)(EngineConfig {
            depth,
            block: block as usize,
        })
        .map_err(|errno| Failure {
            op: OpKind::Open,
            path: format!("--engine {}", self.engine.name),
            kind: errno.into(),
            detail: String::new(),
        })
    }

    /// Opens the file that holds the blocks of `owner`; its path and number.
    fn open(
        &self,
        owner: u64,
        mode: OpenMode,
        direct: bool,
    ) -> Result<(i32, String, u64), Failure> {
        let path = format!("{}/{}", self.prefix, self.io.file_name(owner));
        let failed = |errno: nix::errno::Errno| Failure::new(OpKind::Open, path.as_str(), errno);
        let name = CString::new(path.as_str()).map_err(|_| failed(nix::errno::Errno::EINVAL))?;
        let fd = self.fs.open(&name, mode, direct).map_err(failed)?;
        let file = if self.io.layout.shared() { 0 } else { owner };
        Ok((fd, path, file))
    }

    fn schedule(&self, thread: u32) -> Option<Schedule> {
        self.io.open_loop.map(|open| {
            let worker = self.worker(self.rank, thread);
            let stream = Stream::new(&self.parts(thread, 2));
            Schedule::new(open.arrival, open.rate, worker, self.workers, stream)
        })
    }

    fn blocks(&self, rw: Rw, thread: u32) -> Prepared {
        let owner = self.worker(self.owner, thread);
        let engine = self.engine(self.io.depth as usize, self.io.block.0)?;
        let mode = match (rw.reads(), rw.writes()) {
            (true, false) => OpenMode::Read,
            (false, _) => OpenMode::Write,
            _ => OpenMode::ReadWrite,
        };
        let (fd, path, file) = if self.engine.moves_data {
            let (fd, path, file) = self.open(owner, mode, self.io.direct)?;
            (Some(fd), path, file)
        } else {
            (None, String::new(), owner)
        };
        let mixed = rw.reads() && rw.writes();
        let write_lane = rw.writes().then_some(usize::from(mixed));
        let lanes = Lanes {
            read: rw.reads().then_some(0),
            write: write_lane,
            sync: write_lane
                .filter(|_| self.io.fsync != FsyncRule::Never)
                .map(|lane| lane + 1),
        };
        let [seed, iteration, step] = self.seed;
        let order_parts = [
            seed,
            (iteration << 32) | step,
            self.worker(self.rank, thread),
        ];
        Ok(Box::new(BlockRunner::new(Blocks {
            plan: Arc::clone(&self.io),
            rw,
            lanes,
            engine,
            fs: Arc::clone(&self.fs),
            fd,
            path,
            file,
            owner: (owner, self.workers),
            order: Order::new(self.io.blocks(), rw.random(), order_parts),
            planned: if self.io.time.is_some() {
                u64::MAX
            } else {
                self.io.blocks()
            },
            schedule: self.schedule(thread),
            chooser: Stream::new(&self.parts(thread, 3)),
            data: self.data(thread),
            stamps: self.stamps.clone(),
            covered: (rw == Rw::Write).then(|| Arc::clone(&self.covered[thread as usize])),
        })))
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
            block: self.io.block.0,
            direct,
            fsync: self.io.fsync,
            data: self.data(thread),
            stamps: self.stamps.clone(),
            owner,
            index: 0,
            done: Vec::with_capacity(1),
        })
    }

    fn small(&self, rw: Rw, thread: u32) -> Prepared {
        let owner = self.worker(self.owner, thread);
        let op = self.small_file(rw.writes(), owner, thread, self.io.direct)?;
        let count = self.io.blocks();
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
            schedule: self.schedule(thread),
        };
        let runner = ItemRunner::new(op, Arc::clone(&self.fs), visit);
        let sequential_write = rw == Rw::Write;
        let covered = sequential_write.then(|| Arc::clone(&self.covered[thread as usize]));
        Ok(Box::new(runner.telling(covered)))
    }

    /// The layout of what this worker's own part misses.
    fn layout(&self, thread: u32) -> Prepared {
        let owner = self.worker(self.rank, thread);
        let covered = Arc::clone(&self.covered[thread as usize]);
        let there = covered.load(Ordering::Relaxed);
        if self.io.small.is_some() {
            let op = self.small_file(true, owner, thread, false)?;
            let count = self.io.blocks() - there;
            let visit = Visit {
                first: there,
                count,
                visits: count,
                order: None,
                schedule: None,
            };
            return Ok(Box::new(
                ItemRunner::new(op, Arc::clone(&self.fs), visit).telling(Some(covered)),
            ));
        }
        let piece = layout::piece_blocks(&self.io) * self.io.block.0;
        let engine = (engine::ENGINES[0].make)(EngineConfig {
            depth: 1,
            block: piece as usize,
        })
        .map_err(|errno| Failure::new(OpKind::Open, "the layout's buffer", errno))?;
        let (fd, path, file) = self.open(owner, OpenMode::Write, false)?;
        Ok(Box::new(LayoutRunner {
            plan: Arc::clone(&self.io),
            engine,
            fs: Arc::clone(&self.fs),
            fd,
            path,
            file,
            owner: (owner, self.workers),
            data: self.data(thread),
            stamps: self.stamps.clone(),
            covered,
            next: there,
            issued: 0,
            failed: false,
            done: Vec::with_capacity(1),
        }))
    }
}
