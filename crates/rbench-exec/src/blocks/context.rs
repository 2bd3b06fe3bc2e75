//! The job of a worker, and its surroundings.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use nix::errno::Errno;
use nix::time::{ClockId, clock_gettime};
use rbench_core::job::{JobLog, JobOutcome};
use rbench_core::memory::Memory;
use rbench_core::{Direction, Failure, Nanos, OpKind, Rank, errno_of};
use rbench_plan::arrival::{Schedule, Workers};
use rbench_plan::jobs::{FileLock, JobPlan, Verify};
use rbench_plan::pattern::{Part, Steps, file_path, file_size};
use rbench_sys::engine::{self, EngineConfig, EngineInfo};
use rbench_sys::{AlignedBuffer, BlockMemory, Engine, Fs};

use super::arrivals::Arrivals;
use super::checkers::Checkers;
use super::checks::Source;
use super::handles::{Handles, Opening};
use super::iolog::{Iolog, Iologs, Replayed, placed};
use super::many;
use super::order::Order;
use super::others::{Others, Ramp};
use super::priorities::Draws;
use super::process;
use super::progress::{Progress, State};
use super::recorder::Recorder;
use super::renewal::Renewal;
use super::stats::JobStats;
use super::stats::error_code;
use super::trims::Trims;
use super::unwritten::Unwritten;
use super::{Accounts, BlockRunner, Checks, Ended, Pattern, Requests, Since, mark};
use crate::ack::{self, Log};
use crate::data::Data;
use crate::live::LiveStats;
use crate::queue::Queue;
use crate::verify::{Marks, Stamps, file_key};
use crate::worker::{Prepared, Runner};

/// The rows of a worker.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lanes {
    /// Row of reads.
    pub read: Option<usize>,
    /// Row of writes.
    pub write: Option<usize>,
    /// Row of trims.
    pub trim: Option<usize>,
    /// Row of fsync and fdatasync.
    pub sync: Option<usize>,
    /// Row of opens, where they are timed.
    pub open: Option<usize>,
    /// Row of closes, where they are timed.
    pub close: Option<usize>,
    /// Row of closes that are not timed.
    pub closing: Option<usize>,
    /// Row of syncs that only belong to the end of a file's or the job's writes.
    pub flushing: Option<usize>,
}

impl Lanes {
    /// The row of one direction.
    #[inline(always)]
    pub fn of(&self, direction: Direction) -> Option<usize> {
        match direction {
            Direction::Read => self.read,
            Direction::Write => self.write,
            Direction::Trim => self.trim,
        }
    }
}

/// Outcomes of this rank's workers, as they finish.
pub type Sink = Arc<Mutex<Vec<(JobOutcome, JobLog)>>>;

/// Recipient of fio's report of a job.
#[derive(Debug, Clone)]
pub struct Report {
    /// Its position among all jobs of the plan.
    pub index: u32,
    /// Workers of the jobs before it.
    pub before: u64,
    /// Takes what was done.
    pub sink: Sink,
    /// Takes intermediate results.
    pub live: Option<Arc<LiveStats>>,
    /// Directory for states and dumps of verified jobs.
    pub aux: PathBuf,
}

impl Report {
    pub(super) fn put(&self, outcome: JobOutcome, log: JobLog) {
        if let Some(live) = &self.live {
            live.put(outcome.clone());
        }
        if let Ok(mut all) = self.sink.lock() {
            all.push((outcome, log));
        }
    }
}

/// Failures that stopped workers, by the worker's number.
pub type Failures = Arc<Mutex<BTreeMap<u64, Failure>>>;

/// The files of a pass of `rbench io`, which are its own.
#[derive(Clone)]
pub struct Kept {
    /// The run's own directory, below which its files are opened; the same as a file system.
    pub directory: Arc<OwnedFd>,
    /// See `directory`.
    pub fs: Arc<dyn Fs>,
    /// With `--verify`: what blocks carry.
    pub stamps: Option<Stamps>,
    /// Takes for each worker of this rank how many bytes of its part are there from the
    /// first on; empty where the phase does not write them in this order.
    pub covered: Vec<Arc<AtomicU64>>,
    /// Bytes of each part (or small files) that were there before.
    pub there: u64,
    /// Takes why a worker failed, by number.
    pub failed: Option<Failures>,
}

/// Data that the workers of one job on a rank share.
#[derive(Clone)]
pub struct WorkerContext {
    /// The job.
    pub job: Arc<JobPlan>,
    /// Its engine.
    pub engine: &'static EngineInfo,
    /// Its rows.
    pub lanes: Lanes,
    /// A job of its group has a rate: then every operation needs an intended start.
    pub open_loop: bool,
    /// The intended starts of all its workers on this rank, where it has one rate for them.
    pub together: Option<Arc<Schedule>>,
    /// Directory that relative paths start from.
    pub base: PathBuf,
    /// Number of the run in headers of blocks.
    pub run: u64,
    /// Position of the job's first worker of this rank among all on the host.
    pub first_on_host: u32,
    /// This rank.
    pub rank: Rank,
    /// Ranks of the run.
    pub ranks: u32,
    /// `None`: nobody asks for more than rows.
    pub report: Option<Report>,
    /// `None`: files are the user's.
    pub kept: Option<Kept>,
    /// The journal of each worker of this rank, with `--ack-journal`.
    pub logs: Vec<Log>,
    /// Logs of I/O that its workers replay and write.
    pub iologs: Iologs,
    /// Workers whose files could not be made ready, and why: who uses these does
    /// nothing but fail.
    pub unmade: Arc<BTreeMap<u64, Failure>>,
    /// Connections of its workers to those of other jobs.
    pub others: Others,
}

/// Random stream of the gaps between intended starts; rates of one direction have streams 11, 12
/// and 14.
const STREAM_TOGETHER: u64 = 13;

/// The intended starts of all workers of a job on a rank, where it has one rate for them.
pub fn together(job: &JobPlan, rank: Rank, ranks: u32) -> Option<Arc<Schedule>> {
    let open = job.pace.together?;
    let workers = Workers::of_rank(rank, ranks, job.numjobs);
    let seed = [job.pattern.seed, u64::from(rank.0), STREAM_TOGETHER];
    Some(Arc::new(Schedule::new(
        open.arrival,
        open.rate,
        workers,
        &seed,
    )))
}

impl WorkerContext {
    /// A context on one of `ranks` ranks, without connections to other jobs.
    pub fn new(job: JobPlan, lanes: Lanes, base: PathBuf, (rank, ranks): (Rank, u32)) -> Self {
        WorkerContext {
            engine: engine_of(&job.engine),
            job: Arc::new(job),
            lanes,
            open_loop: false,
            together: None,
            base,
            run: 0,
            first_on_host: 0,
            rank,
            ranks,
            report: None,
            kept: None,
            logs: Vec::new(),
            iologs: Iologs::default(),
            unmade: Arc::default(),
            others: Others::default(),
        }
    }

    /// The `clone`-th worker on this rank among all of its job, and whose files it
    /// uses.
    pub(super) fn part(&self, clone: u32) -> Part {
        let numjobs = u64::from(self.job.numjobs);
        let number = |rank: Rank| u64::from(rank.0) * numjobs + u64::from(clone);
        Part {
            worker: number(self.rank),
            owner: number(self.job.files.owner(self.rank, self.ranks)),
            workers: u64::from(self.ranks) * numjobs,
        }
    }

    /// Notes the first failure of a worker, where that is asked for.
    pub(super) fn note_failed(&self, worker: u64, failure: &Failure) {
        let failed = self.kept.as_ref().and_then(|kept| kept.failed.as_ref());
        if let Some(Ok(mut all)) = failed.map(|failed| failed.lock()) {
            all.entry(worker).or_insert_with(|| failure.clone());
        }
    }

    /// The state that is kept in a file of what a worker of a job writes and verifies, if any is.
    fn progress(&self, part: Part, depth: usize) -> Result<Option<Box<Progress>>, Failure> {
        let (Some(verify), Some(report)) = (&self.job.verify, &self.report) else {
            return Ok(None);
        };
        // A job that only verifies has no new state to save.
        let (saves, loads) = (verify.save_state && !verify.only, verify.load_state);
        if !(saves || loads) {
            return Ok(None);
        }
        let now = State {
            depth: u32::try_from(depth).unwrap_or(u32::MAX),
            files: u32::try_from(self.job.files.count).unwrap_or(u32::MAX),
            index: report.before + part.worker,
            name: self.job.name.clone(),
            ..State::default()
        };
        let made = Progress::new(&report.aux, now, saves, (loads, verify.synced_only));
        made.map(|made| Some(Box::new(made)))
            .map_err(|(path, error)| {
                let errno = errno_of(&error, Errno::EINVAL);
                let failure = Failure::new(OpKind::Open, path.to_string_lossy(), errno);
                failure.with(format!("the state of a verified job: {error}"))
            })
    }

    /// The beginning of the log that a worker replays.
    fn replay(&self, log: Arc<Iolog>) -> Result<Box<Replayed>, Failure> {
        let begun = Replayed::begin(log, self.job.pace.number_ios);
        begun.map(Box::new).map_err(|error| {
            let errno = errno_of(&error, Errno::UnknownErrno);
            let failure = Failure::new(OpKind::Read, "read_iolog", errno);
            failure.with(format!("cannot start a thread to read it: {error}"))
        })
    }

    /// The log that a worker writes of what it does to these files, if it does.
    fn record(&self, clone: u32, files: &[PathBuf]) -> Result<Option<Box<Recorder>>, Failure> {
        let Some(path) = self.iologs.written.get(clone as usize) else {
            return Ok(None);
        };
        let names = files.iter().map(|file| file.display().to_string());
        let begun = Recorder::begin(self.base.join(path), names.collect());
        begun.map(|recorder| Some(Box::new(recorder)))
    }

    /// The memory of the buffers, if the job chooses it.
    fn memory(&self, depth: usize, block: usize) -> Result<Option<BlockMemory>, Failure> {
        let asked = &self.job.memory;
        if asked.is_ordinary() {
            return Ok(None);
        }
        let asked = Memory {
            file: asked.file.as_ref().map(|file| self.base.join(file)),
            ..asked.clone()
        };
        let made = BlockMemory::new(&asked, depth, block);
        made.map(Some).map_err(|(errno, detail)| {
            let path = format!("job '{}': mem={}", self.job.name, asked.kind.name());
            Failure::new(OpKind::Open, path, errno).with(detail)
        })
    }

    pub(super) fn make_engine(
        &self,
        depth: usize,
        block: usize,
    ) -> Result<Box<dyn Engine>, Failure> {
        let name = self.engine.name;
        let config = |depth| -> Result<EngineConfig, Failure> {
            Ok(EngineConfig {
                options: self.job.engine_options,
                memory: self.memory(depth, block)?,
                ..EngineConfig::new(depth, block)
            })
        };
        let made = match self.job.submission.offload {
            true => {
                let configs = (0..depth).map(|_| config(1)).collect::<Result<_, _>>()?;
                engine::offload(self.engine, configs)
            }
            false => (self.engine.make)(config(depth)?),
        };
        made.map_err(|errno| {
            let path = match self.report {
                Some(_) => format!("job '{}': engine {name}", self.job.name),
                None => format!("--engine {name}"),
            };
            Failure::new(OpKind::Open, path, errno).with(match (name, errno) {
                ("libaio", Errno::EAGAIN) => {
                    "/proc/sys/fs/aio-max-nr limits the requests of all processes of the host"
                }
                _ => "",
            })
        })
    }

    /// The threads that check what a worker reads, if any do.
    fn checkers(&self, headers: &Option<Marks>, block: usize) -> Result<Option<Checkers>, Failure> {
        let threads = |verify: &&Verify| verify.threads > 0 && self.lanes.read.is_some();
        let verify = self.job.verify.as_ref().filter(threads);
        let (Some(headers), Some(verify)) = (headers, verify) else {
            return Ok(None);
        };
        // Same length as the engine's own buffers.
        let pages = block.checked_next_multiple_of(AlignedBuffer::ALIGNMENT);
        let made = Checkers::new(verify, pages.unwrap_or(usize::MAX), headers);
        made.map(Some).map_err(|error| {
            let option = match self.report {
                Some(_) => "verify_async",
                None => "--verify-threads",
            };
            let errno = errno_of(&error, Errno::UnknownErrno);
            Failure::new(OpKind::Read, option, errno).with(error.to_string())
        })
    }
}

/// The engine of that name: plans only name those of the table.
pub fn engine_of(name: &str) -> &'static EngineInfo {
    engine::find(name).unwrap_or(&engine::ENGINES[0])
}

/// From this block size on, filling a buffer takes longer than a system call.
const LARGE: usize = 64 << 10;

/// The tasks of a worker around its operations.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    /// Operations follow one another on one open file, and nothing but fio's statistics
    /// is to be done around them.
    pub(super) bare: bool,
    /// Nothing is verified or journaled.
    pub(super) plain: bool,
    /// Something depends on how many operations there were: syncs, pauses, checks, or
    /// files that take turns.
    pub(super) counts: bool,
    /// Writes are remembered until they are checked.
    pub(super) remembers: bool,
    /// Files take turns.
    pub(super) turns: bool,
    /// The end of a pass is a point to wait at.
    pub(super) stops_at_pass: bool,
    /// Something follows the end of a pass.
    pub(super) heeds_passes: bool,
    /// Cached pages are dropped before each pass.
    pub(super) renews: bool,
    /// Filling or checking takes long enough for requests to complete meanwhile.
    pub(super) careful: bool,
    /// Requests that are submitted together have one start.
    pub(super) at_once: bool,
    /// Number of requests that are given to the engine together.
    pub(super) batch: usize,
    /// Once all slots were taken, so few are before the next is.
    pub(super) low: usize,
    /// They go to the kernel at once, and not with the next wait.
    pub(super) flushes: bool,
    /// The time when a request reached the kernel is noted separately.
    pub(super) submission: bool,
    /// Fewer bytes than asked for are a failure.
    pub(super) whole: bool,
    /// Operations are on names: there is no data, and rows count no bytes.
    pub(super) names: bool,
    /// Nothing was recorded yet since there is a ramp.
    pub(super) ramps: bool,
}

impl How {
    pub(super) fn new(context: &WorkerContext, depth: usize, block: usize, headed: bool) -> How {
        let job = &context.job;
        let (syncing, pace) = (job.syncing, &job.pace);
        // A file that is opened on the way is closed on the way.
        let turns = job.names.is_some() || job.files.window() < job.files.count;
        let syncs = syncing.fsync > 0
            || syncing.fdatasync > 0
            || syncing.range.is_some()
            || syncing.end_fsync
            || syncing.end_syncfs
            || syncing.fsync_on_close;
        let as_fio = context.report.is_some();
        let renews = Renewal::of(job, context.engine).is_some();
        let asynchronous = context.engine.depth_max > 1 && context.engine.moves_data;
        let careful = depth > 1 && (block >= LARGE || headed);
        let replays = job.replay.as_ref().is_some_and(|replay| replay.stalls);
        let rated = context.open_loop || pace.together.is_some() || replays;
        let orders = job.submission.serialize || job.files.lock != FileLock::None;
        let again = job.files.unlink_each_loop;
        let flows = job.others.flow.is_some();
        let iologs = job.replay.is_some() || job.iolog.is_some();
        let counts =
            turns || again || syncs || flows || pace.thinks() || job.verify.is_some() || iologs;
        let submission = asynchronous && as_fio;
        let plain = !headed && context.logs.is_empty();
        How {
            bare: plain
                && !orders
                && !counts
                && !submission
                && !rated
                && job.priorities.is_none()
                && job.files.count == 1
                && (as_fio || !pace.ramps()),
            plain,
            counts,
            remembers: job
                .verify
                .as_ref()
                .is_some_and(|v| v.backlog.is_some() || v.trims.is_some())
                || job.replay.is_some() && job.verify.is_some()
                || makes_anew_otherwise(job),
            turns,
            stops_at_pass: stops_at_pass(job),
            heeds_passes: stops_at_pass(job) || renews,
            renews,
            careful,
            // Filling a few small buffers takes no time to speak of. With fio each
            // request has its own start.
            at_once: !careful && !rated && !as_fio,
            batch: match rated && !as_fio {
                true => 1,
                false => job.batch_submit as usize,
            },
            low: job.depth_low.map_or(usize::MAX, |low| low as usize),
            flushes: submission || careful || rated && !as_fio,
            submission,
            whole: !as_fio,
            names: job.names.is_some(),
            ramps: pace.ramps(),
        }
    }
}

/// The worker of a job of blocks, see [`super::prepare`].
pub(super) fn prepare(context: &WorkerContext, clone: u32) -> Prepared {
    let stop = &context.others.run_stop;
    let entered = process::enter(
        &context.job,
        context.first_on_host + clone,
        &context.base,
        &|| stop.is_raised(),
    );
    let made = entered.and_then(|locked| {
        let mut runner = runner(context.clone(), clone)?;
        runner.locked = locked;
        runner.join_flow();
        Ok(runner)
    });
    made.inspect_err(|failure| {
        context.note_failed(context.part(clone).worker, failure);
        // A job that cannot begin has ended with an error.
        if let Some(exit) = &context.others.exit {
            exit.exits.end(exit.id);
        }
    })
    .map(|runner| Box::new(runner) as Box<dyn Runner>)
}

/// Like [`prepare`].
pub(super) fn runner(context: WorkerContext, clone: u32) -> Result<BlockRunner, Failure> {
    let job = Arc::clone(&context.job);
    let part = context.part(clone);
    if let Some(failure) = context.unmade.get(&part.owner) {
        return Err(failure.clone());
    }
    let depth = match job.submission.offload {
        true => job.depth.max(1),
        false => job.depth.clamp(1, context.engine.depth_max as u32),
    } as usize;
    let block = (Steps::length_max(&job) as usize).max(1);
    let mut engine = context.make_engine(depth, block)?;
    let headers = Marks::new(&job, part.owner);
    let how = How::new(&context, depth, block, headers.is_some());
    let renewal = Renewal::of(&job, context.engine);
    let own = context.kept.as_ref();
    let own = own.map(|kept| Arc::clone(&kept.directory));
    let is_own = own.is_some();
    let opening = Opening::of(&job, part, context.engine, how.turns, own);
    let numbered = context.kept.is_some().then(|| job.files.number(part.owner));
    let replayed = context.iologs.replayed.get(clone as usize).cloned();
    let named: Vec<PathBuf> = match &replayed {
        Some(log) => {
            let place = |name: &String| placed(&job.files.directory, name);
            log.names.iter().map(place).collect()
        }
        None => (0..job.files.count)
            .map(|file| file_path(&job, part.owner, file))
            .collect(),
    };
    let paths = named.iter().map(|path| {
        let path = match is_own {
            true => path.clone(),
            false => context.base.join(path),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let key = match numbered {
            Some(number) => number,
            None if !context.logs.is_empty() => ack::format::number_of(&path),
            None => file_key(&name),
        };
        (path, key)
    });
    let mut files = Handles::new(opening, paths);
    if job.names.is_some() {
        let named = engine.name_files(&mut files.paths());
        named.map_err(|errno| Failure::new(OpKind::Open, files.path(0), errno))?;
    }
    let runs = !job.files.create_only;
    let patterned = runs && replayed.is_none();
    let (starts, regions) = match patterned {
        true => parts(&job, part.owner, &mut files, engine.as_mut())?,
        false => Default::default(),
    };
    if patterned && !how.turns && !job.framing.is_timed() {
        files.open_all(engine.as_mut())?;
    }
    let steps = Steps::of(&job, part, |file| {
        regions.get(file as usize).copied().unwrap_or(0)
    });
    let steps = match job.files.begins_by_length() {
        true => steps.beginning_at(starts),
        false => steps,
    };
    if patterned && !steps.has_work() {
        let refused = Failure::new(OpKind::Open, format!("job '{}'", job.name), Errno::EINVAL);
        return Err(refused.with(
            "nothing to do: no file has room for a block after offset; give size or filesize",
        ));
    }
    let kept = context.kept.as_ref();
    let stamps = kept.and_then(|kept| kept.stamps.as_ref());
    let log = context.logs.get(clone as usize).cloned();
    let log = log.filter(|_| job.pattern.directions.write);
    if let Some(log) = &log {
        // If it cannot be recorded, neither can the writes.
        (0..files.count()).for_each(|file| {
            log.file(ack::Kind::Opened, files.key(file));
        });
    }
    let own = job.submission.serialize.then(Default::default);
    let lock = |path| context.others.locks.of(path);
    let locks = match job.files.lock {
        FileLock::None => Vec::new(),
        _ => files.paths().map(lock).collect(),
    };
    let order = Order::of(context.others.blocks.clone().or(own), job.files.lock, locks);
    let seed = job.pattern.seed;
    let expected = match &job.replay {
        None => steps.expected(),
        Some(replay) => replay.found.and_then(|found| found.operations),
    };
    let replayed = replayed.map(|log| context.replay(log)).transpose()?;
    let recorder = context.record(clone, &named)?;
    let report = context.report.as_ref();
    let pattern = Pattern {
        source: Source::Work,
        arrivals: Arrivals::of(&job.pace, seed, part, context.together.as_ref()),
        generation: stamps.map_or(0, |stamps| stamps.writes),
        generation_max: stamps.map_or(u64::MAX, |stamps| stamps.generation(u64::MAX)),
        steps,
        replayed,
        next: None,
        pass_over: false,
        stops: false,
        renewal,
        priorities: Draws::of(&job, part.worker),
        exhausted: false,
        pass_steps: 0,
    };
    let requests = Requests {
        slots: many::slots(depth),
        queue: Queue::new(depth),
        pending: Vec::with_capacity(depth),
        done: Vec::with_capacity(1),
        held: None,
        order,
    };
    let checks = Checks {
        mark: report.map_or(0, |r| mark(r.index, part.worker)),
        checkers: context.checkers(&headers, block)?,
        headers,
        log,
        backlog: Vec::new(),
        batch_left: 0,
        trims: Trims::of(&job, part.worker),
        unwritten: Unwritten::default(),
        progress: context.progress(part, depth)?,
    };
    let accounts = Accounts {
        stats: report.map(|_| Box::new(JobStats::new(&job, how.submission, depth, expected))),
        ended: Ended::default(),
        start: Nanos(0),
        records_from: Nanos(0),
        ramp: Ramp::of(job.pace.ramp_bytes, &context.others),
        since: Since::default(),
        last_written: 0,
        submitted: 0,
        upto: u64::MAX,
        planned: expected.unwrap_or(u64::MAX),
        over: false,
    };
    Ok(BlockRunner {
        data: Data::new(&job.buffers, depth, &[seed, part.worker, 20]),
        context,
        part,
        how,
        engine,
        files,
        pattern,
        requests,
        checks,
        accounts,
        recorder,
        flow: None,
        locked: None,
        framed: job.framing.is_timed().then(Default::default),
    })
}

/// Notes for fio's report that the `clone`-th worker of a job on this rank did
/// nothing but fail when it was prepared.
pub fn unprepared(context: &WorkerContext, clone: u32, failure: &Failure) {
    let Some(report) = &context.report else {
        return;
    };
    let outcome = JobOutcome {
        job: report.index,
        worker: context.part(clone).worker,
        workers: 1,
        pid: std::process::id(),
        error: error_code(failure.kind),
        start_ms: epoch_ms(),
        ..JobOutcome::default()
    };
    report.put(outcome, JobLog::default());
}

/// Returns true if the writes of a pass do not follow from the pattern alone: in a mix, rates
/// decide which operation is next.
fn makes_anew_otherwise(job: &JobPlan) -> bool {
    let (directions, pace) = (job.pattern.directions, &job.pace);
    let rates = [
        pace.rate_bytes.read,
        pace.rate_bytes.write,
        pace.rate_iops.read,
        pace.rate_iops.write,
    ];
    directions.read
        && directions.write
        && rates.iter().any(Option::is_some)
        && job.verify.as_ref().is_some_and(|v| v.read_back)
}

/// Returns true if something follows each pass that needs its operations to be done.
fn stops_at_pass(job: &JobPlan) -> bool {
    let verifies = job
        .verify
        .as_ref()
        .is_some_and(|v| v.read_back || v.backlog.is_some() || v.only);
    let syncing = job.syncing;
    let syncs = syncing.end_fsync || syncing.end_syncfs || syncing.fsync_on_close;
    let lasts = job.pace.time_min.is_some();
    verifies || lasts || job.files.unlink_each_loop || (syncs && !job.pace.time_based)
}

/// Start and length of the part of the worker `owner` in each of its files.
fn parts(
    job: &JobPlan,
    owner: u64,
    files: &mut Handles,
    engine: &mut dyn Engine,
) -> Result<(Vec<u64>, Vec<u64>), Failure> {
    let mut part = |file| {
        let given = file_size(job, owner, file);
        let there = match given == 0 || job.files.begins_by_length() {
            true => files.length(file, engine)?,
            false => 0,
        };
        Ok(job.files.part(owner, given, there))
    };
    (0..job.files.count).map(&mut part).collect()
}

/// Milliseconds since the epoch, by this host's clock: the report says when a
/// job began.
pub(super) fn epoch_ms() -> u64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |now| {
        let (seconds, nanos) = (now.tv_sec(), now.tv_nsec());
        u64::try_from(seconds * 1000 + nanos / 1_000_000).unwrap_or(0)
    })
}
