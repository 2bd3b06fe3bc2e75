//! The options as they were typed. An option that was not given is `None`, or has its default if
//! nothing is to be decided. Every command line, native or foreign, ends up here. These types define the native commands: clap reads names,
//! values and help from them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rbench_core::operations::OpsRow;
use rbench_core::steady::Criterion;
use rbench_core::{Bytes, Nanos};

use crate::arrival::Arrival;
use crate::find::SizeTest;
use crate::io::{FsyncRule, Layout as IoLayout, Rw};
use crate::jobs::Distribution;
use crate::meta::{Backend, Layout as TreeLayout, Packet, PhaseKind};
use crate::mix::profile;
use crate::mix::sizes::Sizes;
use crate::trace::Format;
use crate::tree::ItemKind;
use crate::values;

pub mod fio;
mod ior;

pub use crate::given::Split;
pub use fio::Fio;
pub use ior::{Ior, Segments};

/// Options that all workloads share.
#[derive(Debug, Clone, PartialEq, Default, Args)]
#[command(next_help_heading = "Run")]
pub struct Common {
    /// Directory to test [default: RBENCH_DIR, else a built-in in-memory file system as a
    /// demo]
    #[arg(long, value_name = "DIR", value_parser = values::directory())]
    pub dir: Option<PathBuf>,
    /// Worker threads per rank [default: 1]
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// Pin each worker to its own CPU, if there are enough CPUs
    #[arg(long)]
    pub pin: bool,
    /// Make rank r work on the items that rank r-N created [default: 0, its own items]
    ///
    /// If ranks are placed host by host, N on each, no host stats or reads what it created. The
    /// next phase uses the items of rank r-2N, and so on.
    #[arg(long, value_name = "N")]
    pub shift: Option<u32>,
    /// Drop the kernel's caches on every host before each phase that reads,
    /// stats or lists (needs root)
    #[arg(long)]
    pub drop_caches: bool,
    /// Keep the run's directory instead of removing it at the end
    #[arg(long)]
    pub keep: bool,
    /// Checks of the target to be skipped.
    #[command(flatten)]
    pub leave: Leave,
    /// Limits that end the run by itself.
    #[command(flatten)]
    pub limits: LimitOptions,
    /// Commands around each phase.
    #[command(flatten)]
    pub commands: CommandOptions,
    /// Seed of all random choices [default: random, recorded in the result]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Interval of the timeline [default: 1s]
    ///
    /// With --out, each interval is added to FILE.journal as soon as it ends.
    #[arg(long, value_name = "TIME", help_heading = "Output")]
    pub interval: Option<Nanos>,
    /// Write the start and duration of each operation to PREFIX-RANK.csv on each rank's
    /// host
    #[arg(long, value_name = "PREFIX", help_heading = "Output")]
    pub log: Option<PathBuf>,
    /// `--iterations N`
    #[arg(skip)]
    pub iterations: Option<u32>,
    /// `--iterations auto`, and what belongs to it.
    #[arg(skip)]
    pub auto: AutoIterations,
}

/// Iterations until their rates are known well enough.
#[derive(Debug, Clone, Copy, PartialEq, Default, Args)]
pub struct AutoIterations {
    /// `--iterations auto`
    #[arg(skip)]
    pub wanted: bool,
    /// With --iterations auto: allowed error of each rate [default: 3%]
    #[arg(long, value_name = "PERCENT", value_parser = values::precision)]
    pub precision: Option<f64>,
    /// With --iterations auto: maximum number of iterations [default: 30]
    #[arg(long, value_name = "N")]
    pub max_iterations: Option<u32>,
    /// With --iterations auto: start no further iteration after this time (s) [default: no
    /// limit]
    #[arg(long, value_name = "TIME")]
    pub max_time: Option<Nanos>,
}

/// Permissions without which a run is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Args)]
pub struct Leave {
    /// Allow each host its own file system at the target; otherwise all hosts must see the
    /// same one
    #[arg(long)]
    pub private_dirs: bool,
    /// Start even if the target has less free space than the run writes
    #[arg(long)]
    pub overfill: bool,
    /// Skip the initial test of the file system features that the run needs
    #[arg(long)]
    pub untried: bool,
}

/// Limits that end a run by itself.
#[derive(Debug, Clone, PartialEq, Default, Args)]
pub struct LimitOptions {
    /// What to do after a failed operation [default: continue]
    #[arg(long, value_name = "continue|stop", value_parser = on_error)]
    pub on_error: Option<OnError>,
    /// End the run after more than N failed operations [default: no limit]
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    pub max_errors: Option<u64>,
    /// Give up on an operation that takes longer than this (s) [default: never]
    ///
    /// The run then ends and reports what was measured.
    #[arg(long, value_name = "TIME")]
    pub op_timeout: Option<Nanos>,
    /// What to do when a mount no longer answers on a host [default: stop]
    ///
    /// stop ends the run when the other hosts have finished the phase; continue goes on.
    #[arg(long, value_name = "stop|continue", value_parser = on_error)]
    pub on_dead_mount: Option<OnError>,
}

/// Commands around each phase.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
pub struct CommandOptions {
    /// Run COMMAND (sh -c) on every host before each phase, untimed
    ///
    /// The environment names the phase (RBENCH_PHASE and others: docs/reference/hooks.md).
    /// If the command fails, the run ends.
    #[arg(id = "before_phase", long = "before-phase", value_name = "COMMAND")]
    pub before: Option<String>,
    /// Run COMMAND (sh -c) on every host after each phase, untimed
    ///
    /// The environment is that of --before-phase. If the command fails, the result has a
    /// warning.
    #[arg(id = "after_phase", long = "after-phase", value_name = "COMMAND")]
    pub after: Option<String>,
    /// Time limit of --before-phase and --after-phase, for each phase (s) [default: 60s]
    #[arg(id = "hook_timeout", long = "hook-timeout", value_name = "TIME")]
    pub timeout: Option<Nanos>,
}

impl CommandOptions {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.before.is_none() && self.after.is_none()
    }

    /// Time limit of each command.
    pub fn patience(&self) -> Nanos {
        self.timeout.unwrap_or(Nanos(60_000_000_000))
    }
}

/// `--on-error`, `--on-dead-mount`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// Count it and go on.
    Continue,
    /// End the run.
    Stop,
}

/// `--on-error`, `--on-dead-mount`
///
/// # Errors
/// A clause that says what it must be.
pub fn on_error(text: &str) -> Result<OnError, String> {
    match text {
        "continue" => Ok(OnError::Continue),
        "stop" => Ok(OnError::Stop),
        _ => Err("it must be continue or stop".to_owned()),
    }
}

/// `rbench meta`
#[derive(Debug, Clone, PartialEq, Default, Args)]
pub struct Meta {
    /// Branching factor: children of each tree directory [default: 3]
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    pub branch: Option<u64>,
    /// Depth: levels of the tree below its root [default: 1]
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
    /// Directories and files in each tree directory [default: 100]
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    pub items: Option<u64>,
    /// Instead of --items: directories and files per rank, spread over its tree
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    pub items_per_rank: Option<u64>,
    /// Whether ranks share a tree [default: unique]
    #[arg(long, value_enum, value_name = "LAYOUT")]
    pub layout: Option<TreeLayout>,
    /// Create items only in the lowest level of the tree
    #[arg(long)]
    pub leaf_only: bool,
    /// Test files only (the tree itself is always created)
    #[arg(long)]
    pub files_only: bool,
    /// Test directories only
    #[arg(long)]
    pub dirs_only: bool,
    /// Bytes to write to each file, in one call [default: 0]
    #[arg(long, value_name = "SIZE")]
    pub write: Option<Bytes>,
    /// Bytes to read from each file, in one call; 0: only open and close it [default: same
    /// as --write]
    #[arg(long, value_name = "SIZE")]
    pub read: Option<Bytes>,
    /// Call fsync after each write
    #[arg(long)]
    pub fsync: bool,
    /// Run only these phases, separated by commas [default: create, stat, list, read, rename
    /// and remove]
    ///
    /// Creation and other phases that they need are added. An unknown name prints the list
    /// of phases; docs/reference/ops.md describes each.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::phase)]
    pub phases: Option<Vec<PhaseKind>>,
    /// Stat, read, rename, link and remove in random order
    #[arg(long)]
    pub random_order: bool,
    /// Stop creation, stat, listing and read after this time (s)
    ///
    /// After creation is stopped, all workers catch up with the one that created most.
    #[arg(long, value_name = "TIME")]
    pub stonewall: Option<Nanos>,
    /// Run all phases N times first, without recording them [default: 0]
    #[arg(long, value_name = "N")]
    pub warmup: Option<u32>,
    /// Instead of --threads: total number of workers of all ranks
    ///
    /// If it is not a multiple of the number of ranks, some ranks have one worker fewer.
    #[arg(long, value_name = "N", value_parser = values::amount::<u32>)]
    pub workers: Option<u32>,
    /// Run each phase for this time (s)
    ///
    /// Phases that read or change items repeat over the same items. Phases that create or
    /// remove items continue with new ones; with --items, they end when those are used up.
    /// Everything that a phase needs is prepared untimed.
    #[arg(long, value_name = "TIME")]
    pub time: Option<Nanos>,
    /// Open loop: start this many operations per second over all workers
    ///
    /// Operations start on schedule, however slow the target is. The report also has
    /// response times, which count from the intended start.
    #[arg(long, value_name = "OPS", value_parser = values::rate)]
    pub rate: Option<f64>,
    /// Gaps between the starts of --rate [default: uniform]
    #[arg(long, value_enum, value_name = "HOW")]
    pub arrival: Option<Arrival>,
    /// Number of operations in flight.
    #[command(flatten)]
    pub in_flight: InFlight,
}

impl Meta {
    /// The kind of items that is not tested.
    pub fn excluded(&self) -> Option<ItemKind> {
        match (self.files_only, self.dirs_only) {
            (true, _) => Some(ItemKind::Dir),
            (_, true) => Some(ItemKind::File),
            _ => None,
        }
    }
}

/// Number of operations on names in flight, and their engine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
pub struct InFlight {
    /// How to issue operations: sync or io_uring [default: sync]
    ///
    /// sync makes one system call after the other; io_uring keeps several operations per
    /// worker in flight (docs/reference/in-flight.md).
    #[arg(long, value_name = "NAME")]
    pub engine: Option<String>,
    /// With --engine io_uring: operations (in rbench mix, rounds) in flight per worker, up
    /// to 4096 [default: 1]
    #[arg(id = "iodepth", long = "iodepth", value_name = "N")]
    pub depth: Option<u32>,
}

/// `rbench ops`
#[derive(Debug, Clone, PartialEq, Default, Args)]
pub struct Ops {
    /// Measure only these rows, separated by commas [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::ops_row)]
    pub only: Option<Vec<&'static OpsRow>>,
    /// Operations per row and worker [default: 1000]
    #[arg(id = "ops", long = "ops", value_name = "N", value_parser = values::amount::<u64>)]
    pub operations: Option<u64>,
    /// Instead of --ops: stop each row after this time (s)
    ///
    /// Before each row, items are created for the same time. A row that uses up its items
    /// ends early when none is left.
    #[arg(long, value_name = "TIME")]
    pub time: Option<Nanos>,
}

/// Block sizes with their percentages; a name of its own, since clap takes a bare list for
/// several values.
pub type Splits = Vec<Split>;

/// `rbench io`
#[derive(Debug, Clone, PartialEq, Default, Args)]
pub struct Io {
    /// Phases to run, in the order given: write, read, randwrite, randread, rw, randrw
    /// [default: write,read]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::rw)]
    pub rw: Option<Vec<Rw>>,
    /// Percentage of reads in rw and randrw [default: 50]
    #[arg(long, value_name = "PERCENT")]
    pub mix: Option<u32>,
    /// Block size [default: 128k, or the file size if that is less]
    #[arg(id = "bs", long = "bs", value_name = "SIZE")]
    pub block: Option<Bytes>,
    /// Instead of --bs: random block sizes in this range, such as 4k-64k
    ///
    /// Each multiple of the smallest size is equally likely.
    #[arg(id = "bs_range", long = "bs-range", value_name = "MIN-MAX", value_parser = values::block_range)]
    pub block_range: Option<(u64, u64)>,
    /// Instead of --bs: block sizes with their percentages of operations, such as
    /// 4k/60:8k/40
    #[arg(id = "bs_split", long = "bs-split", value_name = "LIST", value_parser = values::block_split)]
    pub block_split: Option<Splits>,
    /// Distribution of random offsets [default: random]
    ///
    /// random covers every block once before any block repeats. zipf:THETA, pareto:POWER,
    /// normal:DEVIATION (percent of the size) and zoned:ACCESSES/SPACE:... (percentages)
    /// prefer some blocks.
    #[arg(
        id = "random_distribution",
        long = "random-distribution",
        value_name = "HOW",
        value_parser = values::distribution
    )]
    pub distribution: Option<Distribution>,
    /// Bytes per worker [default: 256M]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// Instead of --size: bytes of all workers together, in equal parts of whole blocks
    #[arg(long, value_name = "SIZE")]
    pub total_size: Option<Bytes>,
    /// Small-file mode: number of files per worker
    ///
    /// Each operation opens a file, reads or writes all of it, and closes it.
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    pub files: Option<u64>,
    /// Bytes per small file
    #[arg(long, value_name = "SIZE")]
    pub file_size: Option<Bytes>,
    /// Whether workers share a file [default: per-worker]
    #[arg(long, value_enum, value_name = "LAYOUT")]
    pub layout: Option<IoLayout>,
    /// In a shared file, let workers take blocks in turn instead of one segment each
    #[arg(long)]
    pub interleave: bool,
    /// I/O engine, named as in fio: psync, sync, vsync, pvsync, pvsync2, splice,
    /// mmap, io_uring, libaio, posixaio, null [default: psync]
    #[arg(long, value_name = "NAME")]
    pub engine: Option<String>,
    /// Queue depth: requests in flight per worker (io_uring, libaio, posixaio) [default: 1]
    #[arg(long, visible_alias = "iodepth", value_name = "N")]
    pub depth: Option<u32>,
    /// Open files with O_DIRECT
    #[arg(long)]
    pub direct: bool,
    /// When to call fsync: end, every=N, close or never [default: end]
    ///
    /// end: once after the last write; with --files, on each file before it is closed.
    /// every=N: after every N writes and at the end. close: no fsync; the close is timed and
    /// has a row of its own. never: neither is timed. With --files, the time of a file includes its
    /// close in any case.
    #[arg(long, value_name = "RULE", value_parser = values::fsync)]
    pub fsync: Option<FsyncRule>,
    /// Run each phase for this time (s), repeating the work as needed
    #[arg(long, value_name = "TIME")]
    pub time: Option<Nanos>,
    /// Run each phase for this time (s) before recording starts; needs --time
    #[arg(long, visible_alias = "warmup", value_name = "TIME")]
    pub ramp: Option<Nanos>,
    /// Conditions for an early end of a phase.
    #[command(flatten)]
    pub steady: SteadyOptions,
    /// Pause each worker for this time after every operation (s)
    #[arg(long, value_name = "TIME")]
    pub think: Option<Nanos>,
    /// Open loop: start this many operations per second over all workers
    ///
    /// Operations start on schedule, however slow the target is. The report also has
    /// response times, which count from the intended start.
    #[arg(long, value_name = "OPS", value_parser = values::rate)]
    pub rate: Option<f64>,
    /// Gaps between the starts of --rate [default: uniform]
    #[arg(long, value_enum, value_name = "HOW")]
    pub arrival: Option<Arrival>,
    /// Stamp every written block and check every read block
    #[arg(long)]
    pub verify: bool,
    /// With --verify: check blocks in N extra threads per worker [default: 0]
    ///
    /// The worker keeps reading meanwhile. Not available with io_uring, libaio, posixaio,
    /// mmap or --files.
    #[arg(long, value_name = "N")]
    pub verify_threads: Option<u32>,
    /// With --verify: record every write and fsync in FILE.PASS.WORKER for rbench verify
    /// after a crash
    ///
    /// FILE must be outside the target. Implies --keep.
    #[arg(long, value_name = "FILE")]
    pub ack_journal: Option<PathBuf>,
    /// Compressible percentage of the written data [default: 0]
    #[arg(long, value_name = "PERCENT", value_parser = values::percent)]
    pub compress: Option<u32>,
    /// Percentage of the written blocks that are copies of other blocks [default: 0]
    #[arg(long, value_name = "PERCENT", value_parser = values::percent)]
    pub dedupe: Option<u32>,
    /// Fill each buffer once and write the same data every time
    ///
    /// This is unrealistic on file systems that compress, deduplicate or checksum.
    #[arg(long)]
    pub no_refill: bool,
}

/// Conditions for an early end of a phase of `rbench io`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Args)]
pub struct SteadyOptions {
    /// End each phase as soon as its total rate is steady; needs --time and --ss-dur
    ///
    /// The rate is that of all workers of all ranks. iops and bw limit its largest
    /// deviation from the mean; iops_slope and bw_slope limit the slope of its regression
    /// line. Examples: iops:2%, bw_slope:0.3%.
    #[arg(
        id = "steadystate",
        long = "steadystate",
        visible_alias = "ss",
        value_name = "WHAT:LIMIT[%]",
        value_parser = values::criterion
    )]
    pub criterion: Option<Criterion>,
    /// With --steadystate: the rate must be steady over this time (s)
    #[arg(id = "ss_dur", long = "ss-dur", value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// With --steadystate: ignore the rate until this time has passed (s) [default: 0]
    #[arg(id = "ss_ramp", long = "ss-ramp", value_name = "TIME")]
    pub ramp: Option<Nanos>,
    /// With --steadystate: time between two samples, a multiple of --interval (s) [default:
    /// 1s, or --interval if that is longer]
    #[arg(id = "ss_interval", long = "ss-interval", value_name = "TIME")]
    pub every: Option<Nanos>,
}

/// Assignment of the sets to ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SetLayout {
    /// Each rank has its own sets
    Unique,
    /// All ranks work on the same sets
    Shared,
}

/// `rbench mix`
#[derive(Debug, Clone, PartialEq, Default, Args)]
pub struct Mix {
    /// Text of the mix.
    #[arg(skip)]
    pub text: MixText,
    /// With --ops or --list: number of names in the set, per rank or shared by all
    /// [default: 1000]
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    pub files: Option<u64>,
    /// With --ops or --list: size of files, or gamma:MEAN or exponential:MEAN [default: 4k]
    #[arg(id = "file_size", long = "file-size", value_name = "SIZE", value_parser = profile::sizes)]
    pub sizes: Option<Sizes>,
    /// With --ops or --list: maximum number of entries in a directory [default: all in one]
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    pub width: Option<u64>,
    /// With --ops or --list: percentage of the names that exist at the start [default: 80]
    #[arg(long, value_name = "PERCENT", value_parser = profile::percent)]
    pub prepared: Option<u32>,
    /// Whether ranks share the files [default: unique]
    #[arg(long, value_enum, value_name = "LAYOUT")]
    pub layout: Option<SetLayout>,
    /// Multiply the numbers of files of a profile by X; the result records it [default: 1]
    #[arg(long, value_name = "X")]
    pub scale: Option<f64>,
    /// Multiply the file sizes of a profile by X; the result records it [default: 1]
    #[arg(long, value_name = "X")]
    pub scale_size: Option<f64>,
    /// Run for this time (s) [default: 10, or until --rounds are done]
    #[arg(long, value_name = "TIME")]
    pub time: Option<Nanos>,
    /// End each worker after N rounds of its list, or N operations of --ops
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    pub rounds: Option<u64>,
    /// Pause after each round, or after each operation of --ops (s)
    #[arg(long, value_name = "TIME")]
    pub think: Option<Nanos>,
    /// Open loop: start this many rounds, or operations of --ops, per second over all
    /// workers
    ///
    /// They start on schedule, however slow the target is. The report also has response
    /// times, which count from the intended start.
    #[arg(long, value_name = "N", value_parser = values::rate)]
    pub rate: Option<f64>,
    /// Gaps between the starts of --rate [default: uniform]
    #[arg(long, value_enum, value_name = "HOW")]
    pub arrival: Option<Arrival>,
    /// Number of operations in flight.
    #[command(flatten)]
    pub in_flight: InFlight,
}

impl Mix {
    /// Returns true if all ranks work on the same sets.
    pub fn shared(&self) -> bool {
        self.layout == Some(SetLayout::Shared)
    }
}

/// Source of the operations of a mix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MixText {
    /// `--ops`
    Ops(String),
    /// `--list`
    List(String),
    /// `--profile`
    Profile {
        /// One that is built in, or a file.
        name: String,
        /// Content of the file, as rank 0 has read it, or the reason why it could not; `None`: it
        /// is built in, or was not read yet.
        text: Option<Result<String, String>>,
    },
}

impl Default for MixText {
    fn default() -> MixText {
        MixText::Ops(String::new())
    }
}

/// `rbench find`
#[derive(Debug, Clone, PartialEq, Default, Args)]
pub struct Find {
    /// Find only entries that were modified after FILE
    #[arg(long, value_name = "FILE")]
    pub newer: Option<PathBuf>,
    /// Find only entries of this size, as in find: 3901c, +10k, -1M
    ///
    /// Units: c (1 byte), w (2), b (512), k, M, G; a bare number is in blocks of 512 bytes.
    #[arg(long, value_name = "N", value_parser = values::size_test, allow_hyphen_values = true)]
    pub size: Option<SizeTest>,
    /// Find only names that match this pattern, such as '*01*'
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub name: Option<OsString>,
}

/// A form of traces; `None`: as each says. A name of its own, since clap takes a bare option for one
/// that may be missing.
pub type TraceFormat = Option<Format>;

/// `rbench replay`
#[derive(Debug, Clone, PartialEq, Default, Args)]
pub struct Replay {
    /// Traces; several are replayed together as one load
    #[arg(value_name = "TRACE", required = true)]
    pub traces: Vec<PathBuf>,
    /// Format of all traces
    #[arg(
        id = "form",
        long = "trace-format",
        visible_alias = "from",
        value_name = "FORM",
        default_value = "auto",
        value_parser = values::trace_format()
    )]
    pub format: TraceFormat,
    /// Replay speed: 2 is twice as fast as recorded [default: 1]
    #[arg(long, value_name = "FACTOR")]
    pub time_scale: Option<f64>,
    /// Ignore the recorded times: start each operation when the one before it has ended
    #[arg(long)]
    pub as_fast_as_possible: bool,
    /// Number of parallel copies, each in its own directory [default: 1]
    #[arg(long, value_name = "N")]
    pub copies: Option<u32>,
    /// Unit of the times in fio's logs of version 3 [default: 1us]
    #[arg(long, value_name = "TIME")]
    pub time_unit: Option<Nanos>,
    /// Replay only operations below this directory of the trace
    #[arg(long, value_name = "PATH")]
    pub below: Option<PathBuf>,
    /// strace: directory in which the program was started [default: taken from the trace]
    #[arg(long, value_name = "PATH")]
    pub cwd: Option<PathBuf>,
    /// Refuse a trace with an unreadable line [default: skip and count such lines]
    #[arg(long)]
    pub strict: bool,
}

/// `rbench mdtest`: its options by the letters of mdtest's command line. What
/// is left out is mdtest's default.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mdtest {
    /// `-d a@b`: rank r works in directory r modulo their number; empty:
    /// `./out`.
    pub dirs: Vec<PathBuf>,
    /// `-n`: items of each rank and kind.
    pub items: Option<u64>,
    /// `-I`: items of each tree directory.
    pub items_per_dir: Option<u64>,
    /// `-b`
    pub branch: Option<u64>,
    /// `-z`
    pub depth: Option<u32>,
    /// `-L`
    pub leaf_only: bool,
    /// `-u`
    pub unique_dir: bool,
    /// `-F`
    pub files_only: bool,
    /// `-D`
    pub dirs_only: bool,
    /// `-C`
    pub create: bool,
    /// `-T`
    pub stat: bool,
    /// `-E`
    pub read: bool,
    /// `-r`
    pub remove: bool,
    /// `-U`
    pub rename: bool,
    /// `-w`
    pub write_bytes: Option<Bytes>,
    /// `-e`
    pub read_bytes: Option<Bytes>,
    /// `-y`
    pub fsync: bool,
    /// `-Y`
    pub sync: bool,
    /// `-i`
    pub iterations: Option<u32>,
    /// `-N`
    pub stride: Option<u32>,
    /// `-R`
    pub random: bool,
    /// `--random-seed`, or the number attached to `-R`.
    pub seed: Option<u64>,
    /// `-S`
    pub shared: bool,
    /// `-c`
    pub collective: bool,
    /// `-B`
    pub no_barriers: bool,
    /// `-p`
    pub pause: Option<Nanos>,
    /// `-k`
    pub mknod: bool,
    /// `-W`
    pub stonewall: Option<Nanos>,
    /// `-x`
    pub status_file: Option<PathBuf>,
    /// `-X`, `--verify-read`
    pub verify_read: bool,
    /// `--verify-write`
    pub verify_write: bool,
    /// `-G`
    pub data_seed: Option<i32>,
    /// `--dataPacketType`
    pub packet: Option<Packet>,
    /// `-f`
    pub first: Option<u32>,
    /// `-l`
    pub last: Option<u32>,
    /// `-s`
    pub task_stride: Option<u32>,
    /// `--run-cmd-before-phase`
    pub before: Option<String>,
    /// `--run-cmd-after-phase`
    pub after: Option<String>,
    /// `--saveRankPerformanceDetails`, as the binary writes it.
    pub save_ranks: Option<PathBuf>,
    /// `--savePerOpDataCSV`: the beginning of the files' names.
    pub save_operations: Option<PathBuf>,
    /// `--warningAsErrors`
    pub warnings_are_errors: bool,
    /// `-a`
    pub backend: Backend,
    /// `--engine`, `--iodepth`
    pub in_flight: InFlight,
    /// `--posix.odirect`
    pub direct: bool,
}

/// A workload with its options.
#[derive(Debug, Clone, PartialEq)]
pub enum Workload {
    /// `rbench meta`
    Meta(Meta),
    /// `rbench ops`
    Ops(Ops),
    /// `rbench mdtest`
    Mdtest(Box<Mdtest>),
    /// `rbench io`
    Io(Box<Io>),
    /// `rbench fio`
    Fio(Box<Fio>),
    /// `rbench ior`
    Ior(Box<Ior>),
    /// `rbench find`
    Find(Find),
    /// `rbench mix`
    Mix(Box<Mix>),
    /// `rbench replay`
    Replay(Replay),
}

/// All that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Options that all workloads share.
    pub common: Common,
    /// The workload.
    pub workload: Workload,
}
