//! Jobs on blocks, complete: `rbench io` and `rbench fio` resolve to them. Groups of jobs run
//! one after the other, the jobs of a group at the same time.
//!
//! No value means "default" any more; only the job in `spec::fio::Settings` is not complete yet. A job
//! runs as `numjobs` workers on each rank; worker number `rank·numjobs + clone` is fio's jobnum.

use std::ops::Range;
use std::path::PathBuf;

use rbench_core::memory::Memory;
use rbench_core::operations::NameEngine;
use rbench_core::steady::SteadyRule;
use rbench_core::{Bytes, EngineOptions, IoPriority, Nanos, Rank};

use crate::arrival::OpenLoop;
use crate::iolog::Replay;
use crate::process::Process;

mod course;
mod framing;
mod others;
mod plain;
mod priorities;
mod report;
mod whole;

pub use rbench_core::{Direction, Each, Unified};

pub use crate::verify::{Carries, Checksum, FioLayout, TrimBacklog, Verify, VerifyPattern};
pub use course::{Course, Sequel, Zones};
pub use framing::{Framing, Standing};
pub use others::{Exit, ExitWhat, Flow, Others, Submission};
pub use plain::COMPRESS_CHUNK;
pub use priorities::{Priorities, PriorityShare};
pub use report::{ByPriority, ContinueOn, ErrorOf, Errors, FioReport, LeftOut, Logs, WindowValue};
pub use whole::{Trigger, Whole};

/// All jobs of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct JobsPlan {
    /// Groups of jobs that run together. A group starts when the previous one has ended
    /// (stonewall). Those of the first iteration come first, then those of the next.
    pub rounds: Vec<Vec<JobPlan>>,
    /// Number of iterations, 1 or more.
    pub iterations: u32,
    /// Prefix of the names of the journals of acknowledged writes; `None`: no journals.
    pub ack_journal: Option<PathBuf>,
    /// Options for all jobs, as typed, for the report.
    pub global_options: Vec<(String, String)>,
    /// Options of the run as a whole.
    pub whole: Whole,
}

/// Directions of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Directions {
    /// It reads.
    pub read: bool,
    /// It writes.
    pub write: bool,
    /// It trims. If it also writes, each block is trimmed and then written.
    pub trim: bool,
    /// Offsets are random (for the share `percentage_random`).
    pub random: bool,
}

impl Directions {
    /// Sequential reads.
    pub const READ: Directions = Directions::sequential(true, false, false);
    /// Sequential writes.
    pub const WRITE: Directions = Directions::sequential(false, true, false);
    /// Sequential trims.
    pub const TRIM: Directions = Directions::sequential(false, false, true);
    /// Sequential reads and writes, mixed.
    pub const MIX: Directions = Directions::sequential(true, true, false);
    /// Sequential trims, each followed by a write.
    pub const TRIM_WRITE: Directions = Directions::sequential(false, true, true);

    const fn sequential(read: bool, write: bool, trim: bool) -> Directions {
        Directions {
            read,
            write,
            trim,
            random: false,
        }
    }

    /// The same at random offsets.
    pub const fn at_random(self) -> Directions {
        Directions {
            random: true,
            ..self
        }
    }

    /// True if it changes files.
    pub fn changes(self) -> bool {
        self.write || self.trim
    }
}

/// Sizes of the operations of one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockSizes {
    /// All equal.
    Fixed(u64),
    /// `bsrange`: multiples of the smallest one between both, evenly distributed.
    Range {
        /// Smallest, bytes.
        min: u64,
        /// Largest, bytes.
        max: u64,
    },
    /// `bsrange` with `bs_unaligned`: any number of bytes between both, evenly distributed.
    Unaligned {
        /// Smallest, bytes.
        min: u64,
        /// Largest, bytes.
        max: u64,
    },
    /// `bssplit`: (bytes, percent), percentages add up to 100.
    Split(Vec<(u64, u32)>),
}

/// `random_distribution`
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    /// Every offset equally often.
    Uniform,
    /// Zipf distribution with this theta.
    Zipf(f64),
    /// Pareto distribution with this power.
    Pareto(f64),
    /// Normal distribution; deviation in per cent.
    Normal(f64),
    /// (percent of accesses, percent of the space) of each zone.
    Zoned(Vec<(f64, f64)>),
    /// (percent of accesses, bytes) of each zone; the rest of the file is not accessed.
    ZonedBytes(Box<[(f64, u64)]>),
    /// Zipf, Pareto or normal distribution, centred at this share of the file.
    Centred(Box<Distribution>, f64),
    /// The blocks with these numbers, repeated.
    Sequence(Box<[u64]>),
}

/// Pattern of a job's operations.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    /// Directions of the operations.
    pub directions: Directions,
    /// `rwmixread`: percentage of reads in a mix.
    pub mix_read: u32,
    /// Sizes of the operations.
    pub sizes: Each<BlockSizes>,
    /// `blockalign`, bytes: alignment of the offsets of random operations.
    pub align: Each<u64>,
    /// Distribution of random offsets.
    pub distribution: Distribution,
    /// `percentage_random`
    pub random_percent: Each<u32>,
    /// True if random operations may hit a block twice before all were hit (`norandommap`).
    pub repeats: bool,
    /// True if the last block of a part may be shorter than the smallest block. Otherwise the
    /// rest of the part is not visited, like in fio. A skewed distribution draws whole blocks
    /// only.
    pub rest: bool,
    /// True if the reads and writes of a sequential mix share one position, so that a pass
    /// visits each block once. Otherwise each direction has its own, like in fio.
    pub one_position: bool,
    /// Seed of all random numbers of this job.
    pub seed: u64,
    /// Places of the most frequent blocks in a skewed distribution.
    pub favourites: Favourites,
    /// Further rules for the order of offsets.
    pub course: Course,
}

/// Seed of the most frequent blocks in a skewed distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Favourites {
    /// This seed, the same for all workers.
    Same(u64),
    /// This seed and the owner of the part of the files.
    OfPart(u64),
}

/// The files of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Files {
    /// `directory`; empty: the working directory.
    pub directory: PathBuf,
    /// More of them, if names are generated for each worker: worker n takes the n-th, in
    /// turn.
    pub more_directories: Vec<PathBuf>,
    /// Names of the files.
    pub names: FileNames,
    /// Files of each worker.
    pub count: u64,
    /// Most files open at a time.
    pub open: u64,
    /// Bytes of each file after `offset`: the least and the most that it may have (equal for
    /// a fixed size). (0, 0): no size was given; the files must exist, and their length is
    /// used.
    pub size: (u64, u64),
    /// Start of the job's part in each file in bytes; worker n adds n·`offset_increment`.
    pub offset: u64,
    /// See `offset`.
    pub offset_increment: u64,
    /// Rules for a part that depends on the length of files.
    pub shares: Shares,
    /// Each rank uses the files of the rank this many numbers ahead.
    pub ahead: u32,
    /// Seed of a random assignment in which each rank uses another rank's files; `None`: no
    /// such assignment.
    pub drawn: Option<u64>,
    /// Length of the pieces of all workers that alternate in a shared file, bytes; `size` is
    /// then each one's part. 0: parts are contiguous.
    pub interleave: u64,
    /// Choice of the file of an operation.
    pub service: FileService,
    /// Lock that an operation holds on its file.
    pub lock: FileLock,
    /// Reservation of blocks when a file is laid out.
    pub fallocate: Fallocate,
    /// True if missing files are created.
    pub may_create: bool,
    /// True if a layout is synced.
    pub create_fsync: bool,
    /// Hint to the kernel about the lifetime of data (RWH_WRITE_LIFE_…); `None`: no hint.
    pub write_hint: Option<u64>,
    /// True if files are created at their first open instead of before the run.
    pub create_on_open: bool,
    /// True for the layout only.
    pub create_only: bool,
    /// True if missing parts are filled with data before the run, even if the job writes
    /// (`overwrite`).
    pub overwrite: bool,
    /// True if files are read once before the run, untimed.
    pub pre_read: bool,
    /// True for POSIX_FADV_DONTNEED before the run.
    pub invalidate: bool,
    /// Hint to the kernel about the accesses.
    pub advice: Advised,
    /// True if files that are only written are opened for writing only. Otherwise they are
    /// opened for reading, too, like in fio.
    pub write_only: bool,
    /// True if files are removed at the end.
    pub unlink: bool,
    /// True if files are removed before each further pass.
    pub unlink_each_loop: bool,
    /// True if files are written until the file system is full, without an error.
    pub fill: bool,
    /// True if devices are written even if they are in use.
    pub allow_mounted_write: bool,
    /// Files that must exist before the run, and files that stay after it.
    pub standing: Standing,
}

/// Rules for a worker's part of a file that depends on the length of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shares {
    /// `size` in per cent, for files whose size is not given in another way.
    pub size: Option<u32>,
    /// Unit to which such a size is rounded down, bytes.
    pub block: u64,
    /// `offset` in per cent of the file.
    pub offset: Option<u32>,
    /// `offset_increment` in per cent of the file.
    pub increment: Option<u32>,
    /// Unit to which an offset in per cent is rounded up, bytes.
    pub align: u64,
    /// Parts start at the end of the file (`file_append`).
    pub append: bool,
    /// The size is that of the whole file (`filesize`), not from `offset` on.
    pub of_file: bool,
}

/// Receiver of the hint that files are used sequentially or at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advised {
    /// No hint is given.
    Nobody,
    /// An engine that maps files (madvise).
    Mappings,
    /// The kernel, too (POSIX_FADV_SEQUENTIAL or _RANDOM). `Some` overrides the job's own
    /// pattern: true for random.
    Kernel(Option<bool>),
}

/// Names of a job's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileNames {
    /// `filename`: these names, shared by all workers of the job on all ranks.
    Given(Vec<String>),
    /// `filename_format` with $jobname, $jobnum, $filenum; $clientuid is not supported.
    Format(String),
    /// One file for each worker, whatever the directory: the names in turn, then the worker's
    /// number with eight digits, and the suffix.
    Numbered {
        /// The names, at least one.
        names: Vec<PathBuf>,
        /// The suffix.
        end: String,
    },
}

/// `file_service_type`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileService {
    /// The next file after this number of operations.
    RoundRobin(u64),
    /// Any file after this number of operations.
    Random(u64),
    /// The next file when this one is complete.
    Sequential,
}

/// `lockfile`: locks between the workers of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileLock {
    /// No lock.
    #[default]
    None,
    /// An exclusive lock.
    Exclusive,
    /// An exclusive lock for writes and trims, a shared lock for reads.
    ReadWrite,
}

/// `fallocate`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallocate {
    /// None.
    None,
    /// fallocate(2) if it is supported.
    Native,
    /// posix_fallocate(3)
    Posix,
    /// fallocate(2) without changing the size.
    Keep,
    /// ftruncate(2)
    Truncate,
}

/// The content of written blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct Buffers {
    /// True for new data in every write.
    pub refill: bool,
    /// True if a few bytes change with every write.
    pub scramble: bool,
    /// Kind of the data.
    pub content: BufferContent,
    /// Percentage of blocks that are copies of others.
    pub dedupe_percent: u32,
    /// Blocks that are copied (`dedupe_mode=working_set`); `None`: the latest block that is
    /// not a copy.
    pub working_set: Option<WorkingSet>,
}

/// Set of blocks that are copied at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkingSet {
    /// Number of blocks.
    pub blocks: u64,
    /// True if all jobs use the same ones (`dedupe_global`).
    pub shared: bool,
}

/// Kind of the data.
#[derive(Debug, Clone, PartialEq)]
pub enum BufferContent {
    /// Zeros.
    Zero,
    /// These bytes, repeated.
    Pattern(Vec<u8>),
    /// Incompressible, except for `percent` of each `chunk` bytes.
    Random {
        /// Percentage that compresses away.
        percent: u32,
        /// Bytes in which this percentage holds; 0: the block.
        chunk: u64,
        /// Content of the compressible part; empty: zeros.
        pattern: Vec<u8>,
    },
}

/// `sync_file_range`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeSync {
    /// Number of writes between two calls.
    pub every: u64,
    /// SYNC_FILE_RANGE_WAIT_BEFORE: waits for writes already in progress.
    pub wait_before: bool,
    /// SYNC_FILE_RANGE_WRITE: starts to write dirty pages.
    pub write: bool,
    /// SYNC_FILE_RANGE_WAIT_AFTER: waits for these writes.
    pub wait_after: bool,
}

/// Rules for syncing written data to stable storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Syncing {
    /// fsync after this number of writes; 0: never.
    pub fsync: u64,
    /// fdatasync after this number of writes; 0: never.
    pub fdatasync: u64,
    /// fsync when all writes are done, within the run time.
    pub end_fsync: bool,
    /// Like `end_fsync`, by one syncfs per file system.
    pub end_syncfs: bool,
    /// sync_file_range on written data, after a number of writes.
    pub range: Option<RangeSync>,
    /// fsync on each file before it is closed.
    pub fsync_on_close: bool,
    /// Files are closed within the run time, and the closes are timed.
    pub close: bool,
    /// The flag with which files are opened.
    pub opens: SyncMode,
}

/// `sync`: a flag of open(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncMode {
    /// No flag.
    #[default]
    None,
    /// O_SYNC
    Sync,
    /// O_DSYNC
    Dsync,
}

impl Syncing {
    /// True if anything syncs written data.
    pub fn any(&self) -> bool {
        let Syncing {
            fsync,
            fdatasync,
            end_fsync,
            end_syncfs,
            // The kernel makes no promises about it.
            range: _,
            fsync_on_close,
            // Closing alone makes nothing stable.
            close: _,
            opens,
        } = *self;
        let synced = fsync > 0 || fdatasync > 0 || end_fsync || end_syncfs || fsync_on_close;
        synced || opens != SyncMode::None
    }
}

/// Duration and speed of a job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pace {
    /// Latest end.
    pub runtime: Option<Nanos>,
    /// Starts over until `runtime` has passed.
    pub time_based: bool,
    /// Time in which nothing is recorded, in addition to `runtime`.
    pub ramp: Nanos,
    /// Or the number of bytes that are moved first without being recorded; for jobs that are
    /// reported as a group, by all of it.
    pub ramp_bytes: u64,
    /// Pause before the start.
    pub delay: Nanos,
    /// Number of passes over the work.
    pub loops: u64,
    /// Number of operations after which it ends.
    pub number_ios: Option<u64>,
    /// Bytes to move in total; `None`: the size of the files.
    pub io_size: Option<u64>,
    /// Share of the size of the files to move in per cent, if the size is not known before.
    pub io_share: Option<u32>,
    /// Most bytes per second.
    pub rate_bytes: Each<Option<u64>>,
    /// Most operations per second.
    pub rate_iops: Each<Option<u64>>,
    /// Least bytes per second, below which the job fails.
    pub rate_min: Each<Option<u64>>,
    /// Least operations per second, below which the job fails.
    pub rate_iops_min: Each<Option<u64>>,
    /// Period over which the least rates must hold; 0: a second.
    pub rate_cycle: Nanos,
    /// True if pauses postpone the intended starts.
    pub rate_ignores_think: bool,
    /// True for Poisson arrivals instead of evenly spaced ones.
    pub poisson: bool,
    /// One rate for all workers of the job together, in both directions.
    pub together: Option<OpenLoop>,
    /// Pause after every `think_blocks` operations.
    pub think: Nanos,
    /// Part of `think` that is spent busy (CPU).
    pub think_spin: Nanos,
    /// Number of operations between two pauses; 0: no such pauses.
    pub think_blocks: u64,
    /// True if operations count when they are issued, false when they are complete.
    pub think_by_issue: bool,
    /// Time after which there is a pause, too.
    pub think_after: Option<Nanos>,
    /// Cycles of the processor's counter for which it is busy before each pause, or in its
    /// place.
    pub think_cycles: u64,
    /// Search of the queue depth that keeps this latency.
    pub latency_target: Option<LatencyTarget>,
    /// Longest operation; the job fails if one takes longer.
    pub latency_max: Option<Nanos>,
    /// Rule by which it ends when the rate is steady.
    pub steady: Option<SteadyRule>,
    /// Each worker continues after `runtime` until it has started as many operations as the one
    /// that had started most by then.
    pub wear_out: bool,
    /// Starts over until this much time has passed, but does all of the work once.
    pub time_min: Option<Nanos>,
    /// Limits operations to the number that `wear_out` left to the workers of an earlier
    /// round.
    pub as_many_as_written: bool,
    /// Pause before the round, untimed.
    pub pause: Nanos,
}

/// `latency_target`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyTarget {
    /// Latency to keep.
    pub target: Nanos,
    /// Length of the windows.
    pub window: Nanos,
    /// Percentage of the operations for which it must hold.
    pub percentile: f64,
    /// True if the search continues after a depth was found.
    pub goes_on: bool,
}

/// The small-file form: many files, each opened, moved whole and closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallFiles {
    /// Files of each worker.
    pub files: u64,
    /// Length of each.
    pub size: Bytes,
}

/// One job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobPlan {
    /// Its name.
    pub name: String,
    /// Name of a phase of `rbench io`, for people. Rows are called by both.
    pub label: Option<String>,
    /// Workers of each rank.
    pub numjobs: u32,
    /// Pattern of its operations.
    pub pattern: Pattern,
    /// Its files.
    pub files: Files,
    /// `Some`: each worker has small files of its own in their place.
    pub small: Option<SmallFiles>,
    /// Name of the engine.
    pub engine: String,
    /// Its engine as one of names, if it is: one operation for each file, and no data.
    pub names: Option<&'static NameEngine>,
    /// Further options of the engine.
    pub engine_options: EngineOptions,
    /// Memory of its buffers.
    pub memory: Memory,
    /// Requests in flight per worker.
    pub depth: u32,
    /// Number of requests submitted at a time, and the least number of completions reaped at
    /// a time (io_uring).
    pub batch_submit: u32,
    /// See `batch_submit`.
    pub batch_complete_min: u32,
    /// Completions that are taken, if available, before new requests are submitted.
    pub batch_complete_max: u32,
    /// With `depth` in flight, no new requests are submitted until only this number is left;
    /// `None`: each is replaced at once.
    pub depth_low: Option<u32>,
    /// The way in which requests get to the engine.
    pub submission: Submission,
    /// Priorities that single requests draw; `None`: all have the job's own.
    pub priorities: Option<Priorities>,
    /// True for O_DIRECT.
    pub direct: bool,
    /// True if opens and closes are timed, too.
    pub framing: Framing,
    /// Rules for syncing data.
    pub syncing: Syncing,
    /// Content of writes.
    pub buffers: Buffers,
    /// Verification.
    pub verify: Option<Verify>,
    /// Duration and speed.
    pub pace: Pace,
    /// Relations to other jobs.
    pub others: Others,
    /// Properties of its threads in the kernel.
    pub process: Process,
    /// Handling of failed operations.
    pub errors: Errors,
    /// `read_iolog`: logs of I/O that its workers replay instead of its pattern.
    pub replay: Option<Replay>,
    /// `write_iolog`: the log of its own I/O. Further workers of the run that name the same
    /// one append a number ([`JobsPlan::iolog_of`]).
    pub iolog: Option<String>,
    /// Its report in fio's form, in addition to its rows. A short operation is then only a
    /// failure if it moves no bytes.
    pub report: Option<FioReport>,
}

/// The name of the n-th log of I/O with this name in a run, from 0.
fn iolog_name(name: &str, number: u64) -> String {
    match number {
        0 => name.to_owned(),
        _ => format!("{name}.{number}"),
    }
}

impl Files {
    /// All given directories, in their order.
    pub fn directories(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.directory).chain(&self.more_directories)
    }

    /// The directory of worker `jobnum`.
    pub fn directory_of(&self, jobnum: u64) -> &PathBuf {
        let all = self.more_directories.len() as u64 + 1;
        let mut turns = self.directories().skip((jobnum % all) as usize);
        turns.next().unwrap_or(&self.directory)
    }
}

impl Pace {
    /// True if some of the time is not recorded first.
    pub fn ramps(&self) -> bool {
        self.ramp.0 > 0 || self.ramp_bytes > 0
    }

    /// True if there are pauses.
    pub fn thinks(&self) -> bool {
        self.think.0 > 0 || self.think_cycles > 0
    }
}

impl JobPlan {
    /// Its name for people.
    pub fn title(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.name)
    }

    /// The numbers of its workers on a rank, among all of its workers.
    pub fn workers_of(&self, rank: Rank) -> Range<u64> {
        let numjobs = u64::from(self.numjobs);
        let first = u64::from(rank.0) * numjobs;
        first..first + numjobs
    }

    /// The logs that it writes.
    pub fn logs(&self) -> Option<&Logs> {
        self.report.as_ref().map(|report| &report.logs)
    }

    /// The I/O priority of its threads, which requests without another one have.
    pub fn own_priority(&self) -> IoPriority {
        self.process.io_priority.unwrap_or_default()
    }

    /// Intervals between samples of bandwidth and of operations per second.
    pub fn sampled_every(&self) -> [Nanos; 2] {
        let report = self.report.as_ref();
        report.map_or([Nanos::SECOND; 2], |report| report.sampled_every)
    }
}

impl JobsPlan {
    /// The groups of one iteration.
    pub fn once(&self) -> &[Vec<JobPlan>] {
        &self.rounds[..self.rounds.len() / self.iterations.max(1) as usize]
    }

    /// The log of its own I/O that a worker writes, for the job with this index in a run with
    /// `ranks` ranks.
    pub fn iolog_of(&self, job: u32, worker: u64, ranks: u32) -> Option<String> {
        let all = || self.rounds.iter().flatten();
        let name = all().nth(job as usize)?.iolog.as_deref()?;
        let before = all().take(job as usize);
        let same = before.filter(|job| job.iolog.as_deref() == Some(name));
        let workers = same.map(|job| u64::from(job.numjobs) * u64::from(ranks));
        Some(iolog_name(name, workers.sum::<u64>() + worker))
    }

    /// The iteration of the group with this index, from 0.
    pub fn iteration(&self, number: usize) -> u32 {
        u32::try_from(number / self.once().len().max(1)).unwrap_or(u32::MAX)
    }

    /// Workers of each rank in the largest group of jobs that run together.
    pub fn workers(&self) -> u32 {
        let of = |round: &Vec<JobPlan>| {
            let each = round.iter().map(|job| job.numjobs);
            each.fold(0, u32::saturating_add)
        };
        self.rounds.iter().map(of).max().unwrap_or(0)
    }

    /// Bytes on the target when all files exist, for `ranks` ranks.
    pub fn data_bytes(&self, ranks: u32) -> Bytes {
        let of = |job: &JobPlan| {
            let files = &job.files;
            let empty = |op: &NameEngine| op.makes() || op.of_directories();
            // The number of bytes written until the deadline is unknown.
            if files.fill || job.names.is_some_and(empty) || job.pace.wear_out {
                return 0;
            }
            let workers = match files.names {
                FileNames::Given(_) if files.interleave == 0 => 1,
                FileNames::Given(_) | FileNames::Format(_) | FileNames::Numbered { .. } => {
                    u64::from(ranks) * u64::from(job.numjobs)
                }
            };
            let (_, most) = files.size;
            most.saturating_mul(files.count).saturating_mul(workers)
        };
        let jobs = self.once().iter().flatten();
        Bytes(jobs.map(of).fold(0, u64::saturating_add))
    }
}
