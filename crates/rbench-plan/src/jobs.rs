//! Jobs on blocks, complete: what `rbench io` and `rbench fio` resolve to. Groups of
//! jobs run one after the other, the jobs of a group at the same time.
//!
//! Nothing here means "default" any more. A job runs as `numjobs` workers on
//! each rank; worker number `rank·numjobs + clone` is what fio calls jobnum.

use std::ops::Range;
use std::path::PathBuf;

use rbench_core::memory::Memory;
use rbench_core::operations::NameEngine;
use rbench_core::steady::SteadyRule;
use rbench_core::{Bytes, EngineOptions, Nanos, Rank};

use crate::arrival::OpenLoop;
use crate::iolog::Replay;
use crate::process::Process;

mod course;
mod framing;
mod others;
mod plain;
mod report;
mod whole;

pub use rbench_core::{Direction, Each, Unified};

pub use crate::verify::{Carries, Checksum, FioLayout, TrimBacklog, Verify, VerifyPattern};
pub use course::{Course, Sequel, Zones};
pub use framing::{Framing, Standing};
pub use others::{Exit, ExitWhat, Flow, Others, Submission};
pub use plain::COMPRESS_CHUNK;
pub use report::{ContinueOn, ErrorOf, Errors, FioReport, LeftOut, Logs, WindowValue};
pub use whole::{Trigger, Whole};

/// Everything that is to be done.
#[derive(Debug, Clone, PartialEq)]
pub struct JobsPlan {
    /// Groups of jobs that run together; a group starts when the one before
    /// it has ended (stonewall). Those of the first iteration, then those of the next.
    pub rounds: Vec<Vec<JobPlan>>,
    /// How often all of it is done, 1 or more.
    pub iterations: u32,
    /// Beginning of the names of the journals of acknowledged writes; `None`: there are
    /// none.
    pub ack_journal: Option<PathBuf>,
    /// Options that hold for all jobs as they were typed, for the report.
    pub global_options: Vec<(String, String)>,
    /// What is asked for beside them.
    pub whole: Whole,
}

/// Directions of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Directions {
    /// It reads.
    pub read: bool,
    /// It writes.
    pub write: bool,
    /// It trims; where it writes as well, each block is written when it was trimmed.
    pub trim: bool,
    /// Offsets are random (as far as `percentage_random` says).
    pub random: bool,
}

impl Directions {
    /// Whether it changes files.
    pub fn changes(self) -> bool {
        self.write || self.trim
    }
}

/// Sizes of the operations of one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockSizes {
    /// All the same.
    Fixed(u64),
    /// `bsrange`: any multiple of the smallest between both, evenly.
    Range {
        /// Smallest, bytes.
        min: u64,
        /// Largest, bytes.
        max: u64,
    },
    /// `bsrange` with `bs_unaligned`: any number of bytes between both, evenly.
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
    /// Every offset as often as any other.
    Uniform,
    /// Zipf with this theta.
    Zipf(f64),
    /// Pareto with this power.
    Pareto(f64),
    /// Normal, deviation in percent.
    Normal(f64),
    /// (percent of accesses, percent of the space) of each zone.
    Zoned(Vec<(f64, f64)>),
    /// (percent of accesses, bytes) of each zone; what lies behind them is not accessed.
    ZonedBytes(Box<[(f64, u64)]>),
    /// Zipf, Pareto or normal with its favourite at this share of the file.
    Centred(Box<Distribution>, f64),
    /// The blocks with these numbers again and again.
    Sequence(Box<[u64]>),
}

/// Where a job's operations go.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    /// What it does.
    pub directions: Directions,
    /// `rwmixread`: percentage of reads in a mix.
    pub mix_read: u32,
    /// Sizes.
    pub sizes: Each<BlockSizes>,
    /// `blockalign`, bytes: offsets of random operations are multiples of it.
    pub align: Each<u64>,
    /// How random offsets are spread.
    pub distribution: Distribution,
    /// `percentage_random`
    pub random_percent: Each<u32>,
    /// Whether random operations may hit a block twice before all were hit
    /// (`norandommap`).
    pub repeats: bool,
    /// Whether the last block of a part may be shorter than the smallest; else
    /// what is left of the part is not visited, as with fio. A skewed distribution
    /// draws whole blocks only.
    pub rest: bool,
    /// Whether the reads and writes of a sequential mix have one position, so
    /// that a pass visits each block once; else each direction has its own, as
    /// with fio.
    pub one_position: bool,
    /// Everything random of this job derives from it.
    pub seed: u64,
    /// Where the favourites of a skewed distribution lie.
    pub favourites: Favourites,
    /// What its places follow besides.
    pub course: Course,
}

/// What the favourites of a skewed distribution derive from: blocks that are hit most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Favourites {
    /// This: all workers have the same.
    Same(u64),
    /// This and whose part of the files it is.
    OfPart(u64),
}

/// The files of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Files {
    /// `directory`; empty: the working directory.
    pub directory: PathBuf,
    /// More of them, if names are made for each worker: worker n takes the n-th, in turns.
    pub more_directories: Vec<PathBuf>,
    /// How they are named.
    pub names: FileNames,
    /// Files of each worker.
    pub count: u64,
    /// Files open at a time.
    pub open: u64,
    /// Bytes of each file behind `offset`: the smallest and the largest it may
    /// have (the same: all equal). (0, 0): nothing was asked for, the files
    /// must be there and are taken as large as they are.
    pub size: (u64, u64),
    /// Where in each file the job's part starts, bytes; worker n adds
    /// n·`offset_increment`.
    pub offset: u64,
    /// See `offset`.
    pub offset_increment: u64,
    /// What of it follows from how long files are.
    pub shares: Shares,
    /// Workers use the files of the rank so many numbers further on.
    pub ahead: u32,
    /// `Some`: each rank uses the files of another one, drawn with this seed.
    pub drawn: Option<u64>,
    /// Length of the pieces of all workers that alternate in a file that they share,
    /// bytes; `size` is each one's part then. 0: parts lie one behind the other.
    pub interleave: u64,
    /// Which file an operation goes to.
    pub service: FileService,
    /// Whom an operation keeps from the file as long as it lasts.
    pub lock: FileLock,
    /// How blocks are reserved when a file is laid out.
    pub fallocate: Fallocate,
    /// Files that are not there are made.
    pub may_create: bool,
    /// What is laid out is synced.
    pub create_fsync: bool,
    /// What the kernel is told of how long data lives (RWH_WRITE_LIFE_…); `None`: nothing.
    pub write_hint: Option<u64>,
    /// Made when first opened instead of before the run.
    pub create_on_open: bool,
    /// Layout only.
    pub create_only: bool,
    /// Fill with data before the run what is not there yet, for jobs that write
    /// too (`overwrite`).
    pub overwrite: bool,
    /// Read once before the run, untimed.
    pub pre_read: bool,
    /// POSIX_FADV_DONTNEED before the run.
    pub invalidate: bool,
    /// What is told of the accesses to come.
    pub advice: Advised,
    /// Whether files that are only written are opened for writing only; else they
    /// may be read as well, as with fio.
    pub write_only: bool,
    /// Removed at the end.
    pub unlink: bool,
    /// Removed before each further pass.
    pub unlink_each_loop: bool,
    /// Written until the file system is full, which is no error.
    pub fill: bool,
    /// Whether devices are written to although they are in use.
    pub allow_mounted_write: bool,
    /// What of them must be there before the run, and is left behind.
    pub standing: Standing,
}

/// How the part of a file that a worker uses follows from the file's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shares {
    /// `size`, per cent, of files for which nothing else says how large they are.
    pub size: Option<u32>,
    /// What such a size is rounded down to a multiple of, bytes.
    pub block: u64,
    /// `offset`, per cent of the file.
    pub offset: Option<u32>,
    /// `offset_increment`, per cent of the file.
    pub increment: Option<u32>,
    /// What a beginning in per cent is rounded up to a multiple of, bytes.
    pub align: u64,
    /// Parts begin behind the end of the file (`file_append`).
    pub append: bool,
    /// The size is that of the file (`filesize`), not of what lies behind `offset`.
    pub of_file: bool,
}

/// Who is told whether files are used sequentially or at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advised {
    /// Nobody.
    Nobody,
    /// An engine that maps files (madvise).
    Mappings,
    /// The kernel as well (POSIX_FADV_SEQUENTIAL or _RANDOM): `Some`: that they are
    /// used at random, or not, whatever the job does.
    Kernel(Option<bool>),
}

/// Names of a job's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileNames {
    /// `filename`: these, shared by all workers of the job on all ranks.
    Given(Vec<String>),
    /// `filename_format` with $jobname, $jobnum, $filenum, $clientuid not
    /// supported.
    Format(String),
    /// One of each worker, whatever directory is given: the names in turn, then the
    /// worker's number with eight digits, and the end.
    Numbered {
        /// The names, at least one.
        names: Vec<PathBuf>,
        /// The end.
        end: String,
    },
}

/// `file_service_type`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileService {
    /// The next file after so many operations.
    RoundRobin(u64),
    /// Any file after so many operations.
    Random(u64),
    /// The next file when this one is done.
    Sequential,
}

/// `lockfile`: between the workers of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileLock {
    /// Nobody.
    #[default]
    None,
    /// Everybody.
    Exclusive,
    /// Everybody if it writes or trims, else those who do.
    ReadWrite,
}

/// `fallocate`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallocate {
    /// Not at all.
    None,
    /// fallocate(2) where it is supported.
    Native,
    /// posix_fallocate(3)
    Posix,
    /// fallocate(2) that keeps the size.
    Keep,
    /// ftruncate(2)
    Truncate,
}

/// The content of written blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct Buffers {
    /// New data for every write.
    pub refill: bool,
    /// A few bytes change with every write.
    pub scramble: bool,
    /// What the data is.
    pub content: BufferContent,
    /// Percentage of blocks that are copies of others.
    pub dedupe_percent: u32,
    /// What is copied (`dedupe_mode=working_set`); `None`: the latest block that is no copy.
    pub working_set: Option<WorkingSet>,
}

/// Blocks of which copies are made, at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkingSet {
    /// How many there are.
    pub blocks: u64,
    /// All jobs have the same ones (`dedupe_global`).
    pub shared: bool,
}

/// What data is made of.
#[derive(Debug, Clone, PartialEq)]
pub enum BufferContent {
    /// Zeros.
    Zero,
    /// These bytes again and again.
    Pattern(Vec<u8>),
    /// Incompressible, but for `percent` of each `chunk` bytes.
    Random {
        /// Percentage that compresses away.
        percent: u32,
        /// Bytes over which that holds; 0: the block.
        chunk: u64,
        /// What stands in the compressible part; empty: zeros.
        pattern: Vec<u8>,
    },
}

/// `sync_file_range`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeSync {
    /// After so many writes.
    pub every: u64,
    /// SYNC_FILE_RANGE_WAIT_BEFORE: waits for what is being written.
    pub wait_before: bool,
    /// SYNC_FILE_RANGE_WRITE: begins to write what is not.
    pub write: bool,
    /// SYNC_FILE_RANGE_WAIT_AFTER: waits for it.
    pub wait_after: bool,
}

/// When written data is brought to stable storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Syncing {
    /// fsync after so many writes; 0: never.
    pub fsync: u64,
    /// fdatasync after so many writes; 0: never.
    pub fdatasync: u64,
    /// fsync when all writes are done, in run time.
    pub end_fsync: bool,
    /// The same by one syncfs for each file system.
    pub end_syncfs: bool,
    /// sync_file_range of what was written, after so many writes.
    pub range: Option<RangeSync>,
    /// fsync of each file before it is closed.
    pub fsync_on_close: bool,
    /// Files are closed in run time, and that is timed.
    pub close: bool,
    /// O_SYNC
    pub o_sync: bool,
    /// O_DSYNC
    pub o_dsync: bool,
}

impl Syncing {
    /// Whether anything syncs what is written.
    pub fn any(&self) -> bool {
        let Syncing {
            fsync,
            fdatasync,
            end_fsync,
            end_syncfs,
            // The kernel promises nothing for it.
            range: _,
            fsync_on_close,
            // Closing makes nothing stable by itself.
            close: _,
            o_sync,
            o_dsync,
        } = *self;
        fsync > 0 || fdatasync > 0 || end_fsync || end_syncfs || fsync_on_close || o_sync || o_dsync
    }
}

/// How long and how fast.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pace {
    /// End after this time at the latest.
    pub runtime: Option<Nanos>,
    /// Start over until `runtime` has passed.
    pub time_based: bool,
    /// Before it nothing is recorded; added to `runtime`.
    pub ramp: Nanos,
    /// Or until so many bytes are moved; where jobs are reported as a group, by all of it.
    pub ramp_bytes: u64,
    /// Wait before the start.
    pub delay: Nanos,
    /// Passes over the work.
    pub loops: u64,
    /// End after so many operations.
    pub number_ios: Option<u64>,
    /// Bytes to move in all; `None`: the size of the files.
    pub io_size: Option<u64>,
    /// Per cent of the size of the files to move, where that is not known before.
    pub io_share: Option<u32>,
    /// Most bytes a second.
    pub rate_bytes: Each<Option<u64>>,
    /// Most operations a second.
    pub rate_iops: Each<Option<u64>>,
    /// The job fails when it is slower than so many bytes a second.
    pub rate_min: Each<Option<u64>>,
    /// The job fails when it does fewer operations a second.
    pub rate_iops_min: Each<Option<u64>>,
    /// Over so long the least rates hold; 0: a second.
    pub rate_cycle: Nanos,
    /// Pauses put off what is due.
    pub rate_ignores_think: bool,
    /// Poisson arrivals instead of evenly spaced ones.
    pub poisson: bool,
    /// One rate for all workers of the job together, in both directions.
    pub together: Option<OpenLoop>,
    /// Idle after every `think_blocks` operations.
    pub think: Nanos,
    /// Busy (CPU) for this part of `think`.
    pub think_spin: Nanos,
    /// See `think`; 0: not after a number of operations.
    pub think_blocks: u64,
    /// Operations count when they are issued (else when they are complete).
    pub think_by_issue: bool,
    /// Idle also after so long.
    pub think_after: Option<Nanos>,
    /// Busy for so many cycles of the processor's counter before each pause, or in its
    /// place.
    pub think_cycles: u64,
    /// Search of the depth that keeps this latency.
    pub latency_target: Option<LatencyTarget>,
    /// The job fails when an operation takes longer.
    pub latency_max: Option<Nanos>,
    /// End when the rate is steady.
    pub steady: Option<SteadyRule>,
    /// When `runtime` is over, everybody goes on until he has started as many operations
    /// as the worker that had started most by then.
    pub wear_out: bool,
    /// Start over until so much time has passed, but do all of the work once.
    pub time_min: Option<Nanos>,
    /// No more operations than the workers of an earlier round were left with by
    /// `wear_out`.
    pub as_many_as_written: bool,
    /// Idle before the round, untimed.
    pub pause: Nanos,
}

/// `latency_target`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyTarget {
    /// Latency to keep.
    pub target: Nanos,
    /// Over windows of this length.
    pub window: Nanos,
    /// For so many percent of the operations.
    pub percentile: f64,
    /// The search goes on when a depth is found.
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
    /// Of a phase of `rbench io`: its name for people. Rows are called by both.
    pub label: Option<String>,
    /// Workers of each rank.
    pub numjobs: u32,
    /// Where operations go.
    pub pattern: Pattern,
    /// Its files.
    pub files: Files,
    /// `Some`: each worker has small files of its own in their place.
    pub small: Option<SmallFiles>,
    /// Name of the engine.
    pub engine: String,
    /// The same as one of names, if it is: one operation for each file, and no data.
    pub names: Option<&'static NameEngine>,
    /// What else is asked of the engine.
    pub engine_options: EngineOptions,
    /// What its buffers lie in.
    pub memory: Memory,
    /// Requests under way per worker.
    pub depth: u32,
    /// Submit so many at a time; reap at least so many (io_uring).
    pub batch_submit: u32,
    /// See `batch_submit`.
    pub batch_complete_min: u32,
    /// Before new requests are submitted, so many complete ones are taken in, where
    /// there are as many.
    pub batch_complete_max: u32,
    /// Once `depth` are under way, no new ones are submitted until so few are left;
    /// `None`: each is replaced at once.
    pub depth_low: Option<u32>,
    /// How requests come to the engine.
    pub submission: Submission,
    /// O_DIRECT
    pub direct: bool,
    /// Whether opens and closes are part of what is timed.
    pub framing: Framing,
    /// When data is synced.
    pub syncing: Syncing,
    /// What is written.
    pub buffers: Buffers,
    /// Verification.
    pub verify: Option<Verify>,
    /// How long and how fast.
    pub pace: Pace,
    /// What binds it to other jobs.
    pub others: Others,
    /// What its threads are to the kernel.
    pub process: Process,
    /// What becomes of it when an operation fails.
    pub errors: Errors,
    /// `read_iolog`: logs of I/O that its workers replay, whatever its pattern says.
    pub replay: Option<Replay>,
    /// `write_iolog`: the log of its own I/O; further workers of the run that name the same
    /// one add a number to it ([`JobsPlan::iolog_of`]).
    pub iolog: Option<String>,
    /// What is reported of it as fio does, beside its rows. Fewer bytes than asked for
    /// are a failure then only if there are none at all.
    pub report: Option<FioReport>,
}

/// The name of a log of I/O that is the n-th of this name in a run, from 0 on.
fn iolog_name(name: &str, number: u64) -> String {
    match number {
        0 => name.to_owned(),
        _ => format!("{name}.{number}"),
    }
}

impl Files {
    /// All directories that were given, in their order.
    pub fn directories(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.directory).chain(&self.more_directories)
    }

    /// The directory of worker `jobnum`.
    pub fn directory_of(&self, jobnum: u64) -> &PathBuf {
        let all = self.more_directories.len() as u64 + 1;
        let turn = (jobnum % all) as usize;
        let more = turn
            .checked_sub(1)
            .and_then(|n| self.more_directories.get(n));
        more.unwrap_or(&self.directory)
    }
}

impl Pace {
    /// Whether something comes before the part that is recorded.
    pub fn ramps(&self) -> bool {
        self.ramp.0 > 0 || self.ramp_bytes > 0
    }

    /// Whether there are pauses.
    pub fn thinks(&self) -> bool {
        self.think.0 > 0 || self.think_cycles > 0
    }
}

impl JobPlan {
    /// What it is called for people.
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

    /// How often bandwidth and operations per second are sampled.
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

    /// The log of its I/O that a worker writes, of the job with that position among all, in a
    /// run of so many ranks.
    pub fn iolog_of(&self, job: u32, worker: u64, ranks: u32) -> Option<String> {
        let mut all = self.rounds.iter().flatten();
        let before = all.by_ref().take(job as usize);
        let before: Vec<&JobPlan> = before.collect();
        let name = all.next()?.iolog.as_deref()?;
        let same = before
            .iter()
            .filter(|job| job.iolog.as_deref() == Some(name));
        let workers = same.map(|job| u64::from(job.numjobs) * u64::from(ranks));
        Some(iolog_name(name, workers.sum::<u64>() + worker))
    }

    /// The iteration of the group with that position, from 0 on.
    pub fn iteration(&self, number: usize) -> u32 {
        u32::try_from(number / self.once().len().max(1)).unwrap_or(u32::MAX)
    }

    /// Workers of each rank in the largest group of jobs that run together.
    pub fn workers(&self) -> u32 {
        let of = |round: &Vec<JobPlan>| {
            round
                .iter()
                .fold(0_u32, |sum, job| sum.saturating_add(job.numjobs))
        };
        self.rounds.iter().map(of).max().unwrap_or(0)
    }

    /// Bytes on the target when all files are there, for `ranks` ranks.
    pub fn data_bytes(&self, ranks: u32) -> Bytes {
        let of = |job: &JobPlan| {
            if job.files.fill {
                return 0;
            }
            if job
                .names
                .is_some_and(|op| op.makes() || op.of_directories())
            {
                return 0;
            }
            // Nobody knows what is written until the deadline.
            if job.pace.wear_out {
                return 0;
            }
            let workers = match job.files.names {
                FileNames::Given(_) if job.files.interleave == 0 => 1,
                FileNames::Given(_) | FileNames::Format(_) | FileNames::Numbered { .. } => {
                    u64::from(ranks) * u64::from(job.numjobs)
                }
            };
            job.files
                .size
                .1
                .saturating_mul(job.files.count)
                .saturating_mul(workers)
        };
        Bytes(
            self.once()
                .iter()
                .flatten()
                .map(of)
                .fold(0, u64::saturating_add),
        )
    }
}
