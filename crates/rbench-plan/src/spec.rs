//! What was asked for, as it was typed: an option that was not given is
//! `None`. Every command line, native or foreign, ends up here.

use std::ffi::OsString;
use std::path::PathBuf;

use rbench_core::operations::OpsRow;
use rbench_core::steady::Criterion;
use rbench_core::{Bytes, Nanos};

use crate::arrival::Arrival;
use crate::find::SizeTest;
use crate::io::{FsyncRule, Layout as IoLayout, Rw};
use crate::jobs::Distribution;
use crate::meta::{Backend, Layout as TreeLayout, Packet, PhaseKind};
use crate::mix::sizes::Sizes;
use crate::trace::Format;

pub mod fio;
mod ior;

pub use fio::{Fio, Split};
pub use ior::{Ior, Segments};

/// What all workloads have in common.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Common {
    /// `--dir`, or `RBENCH_DIR`; `None`: the built-in file system.
    pub dir: Option<PathBuf>,
    /// `--seed`
    pub seed: Option<u64>,
    /// `--threads`: workers of each rank.
    pub threads: Option<u32>,
    /// `--pin`: each worker stays on one processor.
    pub pin: bool,
    /// `--iterations N`
    pub iterations: Option<u32>,
    /// `--iterations auto`, and what belongs to it.
    pub auto: AutoIterations,
    /// `--shift`: rank r works on what rank r − N·k made.
    pub shift: Option<u32>,
    /// `--drop-caches`
    pub drop_caches: bool,
    /// `--interval`: of the timeline, and of what the journal gets while a phase runs.
    pub interval: Option<Nanos>,
    /// `--log`: the beginning of the names of files with every operation.
    pub log: Option<PathBuf>,
    /// `--keep`: leave the run's directory.
    pub keep: bool,
    /// When the run ends by itself.
    pub limits: LimitOptions,
    /// What is run around each phase.
    pub commands: CommandOptions,
    /// What the target may be.
    pub leave: Leave,
}

/// Iterations until their rates are known well enough.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AutoIterations {
    /// `--iterations auto`
    pub wanted: bool,
    /// `--precision`: a share, 0.03 is 3 %.
    pub precision: Option<f64>,
    /// `--max-iterations`
    pub max_iterations: Option<u32>,
    /// `--max-time`: after it no further iteration begins.
    pub max_time: Option<Nanos>,
}

/// What is refused unless it is said to be meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leave {
    /// `--private-dirs`: hosts may have file systems of their own at the
    /// target.
    pub private_dirs: bool,
    /// `--overfill`: the run may need more room than there is.
    pub overfill: bool,
    /// `--untried`: what the run needs of the file system is not tried before it.
    pub untried: bool,
}

/// When a run ends by itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LimitOptions {
    /// `--on-error`
    pub on_error: Option<OnError>,
    /// `--max-errors`: failed operations of all ranks.
    pub max_errors: Option<u64>,
    /// `--op-timeout`: longest time of one operation.
    pub op_timeout: Option<Nanos>,
    /// `--on-dead-mount`
    pub on_dead_mount: Option<OnError>,
}

/// Commands around each phase.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandOptions {
    /// `--before-phase`
    pub before: Option<String>,
    /// `--after-phase`
    pub after: Option<String>,
    /// `--hook-timeout`: the longest time of one.
    pub timeout: Option<Nanos>,
}

/// `--on-error`, `--on-dead-mount`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// Count it and go on.
    Continue,
    /// End the run.
    Stop,
}

/// `rbench meta`
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Meta {
    /// `--branch`: children of each tree directory.
    pub branch: Option<u64>,
    /// `--depth`: levels below the root.
    pub depth: Option<u32>,
    /// `--items`: per tree directory, of each kind.
    pub items: Option<u64>,
    /// `--items-per-rank`: instead of `--items`.
    pub items_per_rank: Option<u64>,
    /// `--layout`
    pub layout: Option<TreeLayout>,
    /// `--leaf-only`
    pub leaf_only: bool,
    /// `--files-only`
    pub files_only: bool,
    /// `--dirs-only`
    pub dirs_only: bool,
    /// `--write`: bytes written to each created file.
    pub write: Option<Bytes>,
    /// `--read`: bytes read from each file.
    pub read: Option<Bytes>,
    /// `--fsync`: after each write.
    pub fsync: bool,
    /// `--phases`
    pub phases: Option<Vec<PhaseKind>>,
    /// `--random-order`
    pub random_order: bool,
    /// `--stonewall`
    pub stonewall: Option<Nanos>,
    /// `--warmup`: iterations before those that count.
    pub warmup: Option<u32>,
    /// `--workers`: of all ranks together, instead of `--threads`.
    pub workers: Option<u32>,
    /// `--time`: of each phase.
    pub time: Option<Nanos>,
    /// `--rate`: operations a second over all workers, in each phase.
    pub rate: Option<f64>,
    /// `--arrival`
    pub arrival: Option<Arrival>,
    /// `--engine`, `--iodepth`
    pub in_flight: InFlight,
}

/// How operations on names are made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InFlight {
    /// `--engine`
    pub engine: Option<String>,
    /// `--iodepth`: operations of a worker under way at a time.
    pub depth: Option<u32>,
}

/// `rbench ops`
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ops {
    /// `--only`: rows of the table; all of them when it is not given.
    pub only: Option<Vec<&'static OpsRow>>,
    /// `--ops`: operations of each row and worker.
    pub operations: Option<u64>,
    /// `--time`: of each row, instead of a number of operations.
    pub time: Option<Nanos>,
}

/// `rbench io`
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Io {
    /// `--rw`: phases in that order.
    pub rw: Option<Vec<Rw>>,
    /// `--mix`: percentage of reads in `rw` and `randrw`.
    pub mix: Option<u32>,
    /// `--bs`
    pub block: Option<Bytes>,
    /// `--bs-range`: the smallest and the largest block, bytes.
    pub block_range: Option<(u64, u64)>,
    /// `--bs-split`
    pub block_split: Option<Vec<Split>>,
    /// `--random-distribution`
    pub distribution: Option<Distribution>,
    /// `--size`: per worker.
    pub size: Option<Bytes>,
    /// `--files`: the small-file form, files per worker.
    pub files: Option<u64>,
    /// `--file-size`: of each small file.
    pub file_size: Option<Bytes>,
    /// `--layout`
    pub layout: Option<IoLayout>,
    /// `--interleave`: blocks of the workers alternate in the shared file.
    pub interleave: bool,
    /// `--engine`
    pub engine: Option<String>,
    /// `--depth`: requests under way per worker.
    pub depth: Option<u32>,
    /// `--direct`
    pub direct: bool,
    /// `--fsync`
    pub fsync: Option<FsyncRule>,
    /// `--time`: loop until then.
    pub time: Option<Nanos>,
    /// `--ramp`: before it nothing is recorded.
    pub ramp: Option<Nanos>,
    /// `--steadystate` and what belongs to it.
    pub steady: SteadyOptions,
    /// `--think`: idle after every operation.
    pub think: Option<Nanos>,
    /// `--rate`: operations a second over all workers.
    pub rate: Option<f64>,
    /// `--arrival`
    pub arrival: Option<Arrival>,
    /// `--verify`
    pub verify: bool,
    /// `--verify-threads`
    pub verify_threads: Option<u32>,
    /// `--ack-journal`: the beginning of the journals' names.
    pub ack_journal: Option<PathBuf>,
    /// `--compress`: percentage of written data that compresses away.
    pub compress: Option<u32>,
    /// `--dedupe`: percentage of written blocks that are copies of others.
    pub dedupe: Option<u32>,
    /// `--no-refill`: buffers are filled once.
    pub no_refill: bool,
}

/// When a phase of `rbench io` ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SteadyOptions {
    /// `--steadystate`
    pub criterion: Option<Criterion>,
    /// `--ss-dur`: the window.
    pub duration: Option<Nanos>,
    /// `--ss-ramp`: what comes before the first window.
    pub ramp: Option<Nanos>,
    /// `--ss-interval`: how often a value is taken.
    pub every: Option<Nanos>,
}

/// `rbench mix`
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mix {
    /// What is done.
    pub text: MixText,
    /// `--files`: names of the set.
    pub files: Option<u64>,
    /// `--file-size`
    pub sizes: Option<Sizes>,
    /// `--width`: entries of a directory at most.
    pub width: Option<u64>,
    /// `--prepared`: percentage of the names that are there at the start.
    pub prepared: Option<u32>,
    /// `--layout shared`: all ranks work on the same sets.
    pub shared: bool,
    /// `--scale`: part of a profile's numbers of files.
    pub scale: Option<f64>,
    /// `--scale-size`: part of its sizes.
    pub scale_size: Option<f64>,
    /// `--time`
    pub time: Option<Nanos>,
    /// `--rounds`: of each worker.
    pub rounds: Option<u64>,
    /// `--think`
    pub think: Option<Nanos>,
    /// `--rate`: rounds, or operations drawn, a second over all workers.
    pub rate: Option<f64>,
    /// `--arrival`
    pub arrival: Option<Arrival>,
    /// `--engine`, `--iodepth`
    pub in_flight: InFlight,
}

/// Which operations a mix is of.
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
        /// What the file says, as rank 0 has read it, or why it could not; `None`: it is
        /// built in, or was not read yet.
        text: Option<Result<String, String>>,
    },
}

impl Default for MixText {
    fn default() -> MixText {
        MixText::Ops(String::new())
    }
}

/// `rbench find`
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Find {
    /// `--newer`
    pub newer: Option<PathBuf>,
    /// `--size`
    pub size: Option<SizeTest>,
    /// `--name`
    pub name: Option<OsString>,
}

/// `rbench replay`
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Replay {
    /// The traces.
    pub traces: Vec<PathBuf>,
    /// `--format`; `None`: as each says.
    pub format: Option<Format>,
    /// `--time-scale`: the speed.
    pub time_scale: Option<f64>,
    /// `--as-fast-as-possible`
    pub as_fast_as_possible: bool,
    /// `--copies`
    pub copies: Option<u32>,
    /// `--time-unit`
    pub time_unit: Option<Nanos>,
    /// `--below`
    pub below: Option<PathBuf>,
    /// `--cwd`
    pub cwd: Option<PathBuf>,
    /// `--strict`
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
    /// What all workloads have in common.
    pub common: Common,
    /// The workload.
    pub workload: Workload,
}
