//! The commands, and the options of the native ones.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Args as ClapArgs, CommandFactory as _, FromArgMatches as _};
use clap::{Parser, Subcommand, ValueEnum};
use rbench_core::client::Watch;
use rbench_core::event::Event;
use rbench_core::operations::OpsRow;
use rbench_core::steady::Criterion;
use rbench_core::{Bytes, Nanos};
use rbench_plan::arrival::Arrival;
use rbench_plan::io::{FsyncRule, Layout as IoLayout, Rw};
use rbench_plan::jobs::Distribution;
use rbench_plan::meta::{Layout as TreeLayout, PhaseKind};
use rbench_plan::spec::{self, Spec, Workload};

use crate::{Communicator, Format, Invocation, Output, Progress, Start, Stop};
use crate::{fio, invocation, ior, letters, mdtest, values};

mod after;
mod arrival;
mod check;
mod commands;
mod compare;
mod find;
mod foreign;
mod help;
mod in_flight;
mod limits;
mod mix;
mod probe;
mod record;
mod repeats;
mod replay;
mod results;
mod series;
mod serve;
mod start;
mod testfs;
mod written;

pub use arrival::ArrivalArg;
pub use mix::profile_file;
use series::{KneeArgs, NnArgs, OverviewArgs, QuickArgs, SuiteArgs, SweepArgs};
pub use serve::ServeArgs;
pub use start::StartArgs;

/// Load generator for mounted file systems: metadata and I/O, on one machine
/// or over MPI ranks, with latency percentiles merged exactly.
#[derive(Debug, Parser)]
#[command(
    name = "rbench",
    version,
    max_term_width = 100,
    override_usage = "rbench DIR | rbench COMMAND [OPTIONS]"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// What a mount is like, in about a minute: `rbench DIR` is the same
    Overview(OverviewArgs),
    /// Metadata rates: trees, directories and small files
    Meta(Meta),
    /// The per-operation table: each metadata operation by its own system call
    Ops(Ops),
    /// Data rates: reads and writes of large and small files
    Io(Box<Io>),
    /// The table of juicefs bench: big and small files, and the mount's own counters
    Quick(QuickArgs),
    /// One workload with every combination of some values, from one launch
    Sweep(SweepArgs),
    /// NNBench's operations at more and more workers, and where they stop scaling
    Nn(NnArgs),
    /// The highest rate at which response times meet an objective
    Knee(KneeArgs),
    /// Search a tree as find does, over all ranks
    Find(find::FindArgs),
    /// A mix of operations on sets of files: weights, lists of steps, named profiles
    Mix(Box<mix::MixArgs>),
    /// Replay a trace: a log of fio, JuiceFS, strace, Darshan DXT, or rbench record
    Replay(replay::ReplayArgs),
    /// A named and versioned sequence of runs, such as those of published evaluations
    Suite(SuiteArgs),
    /// What a mount is and can do, on every host: O_DIRECT, mmap, locks, names …
    Probe(probe::ProbeArgs),
    /// Whether a mount keeps the promises of POSIX and Linux, one by one
    Check(check::CheckArgs),
    /// Run a program on a directory and record what it does there, for rbench replay
    Record(record::RecordArgs),
    /// Mount the built-in FUSE file system in the foreground
    Testfs(testfs::TestfsArgs),
    /// Watch a run that goes on with --serve
    Watch(serve::WatchArgs),
    /// Print the reports of result files, or of unfinished runs' journals
    Show(results::Show),
    /// Write a page of results, with charts, that needs no network
    Report(results::Report),
    /// Compare runs with each other, or with published figures
    Compare(compare::CompareArgs),
    /// Print the version, how this program was built, and its MPI library
    Version,
    /// After a crash, check the writes that --ack-journal of rbench io or fio recorded
    Verify(after::VerifyArgs),
    /// Remove directories left behind by interrupted runs
    Clean(after::CleanArgs),
    /// Print completions for a shell
    Completions(results::Completions),
    /// Print the man page, or write one for each command
    Man(results::Man),
}

#[derive(Debug, ClapArgs)]
struct Common {
    /// Directory to test [default: RBENCH_DIR, else a built-in file system in
    /// memory, as a demonstration]
    #[arg(long, value_name = "DIR", value_parser = values::directory(), help_heading = "Run")]
    dir: Option<PathBuf>,
    /// Worker threads per rank [default: 1]
    #[arg(long, value_name = "N", help_heading = "Run")]
    threads: Option<u32>,
    /// Pin each worker to a CPU, as far as there are enough CPUs
    #[arg(long, help_heading = "Run")]
    pin: bool,
    /// Rank r works on what rank r-N made, at a different distance in each
    /// phase, so that no rank uses its own items [default: 0, its own]
    #[arg(long, value_name = "N", help_heading = "Run")]
    shift: Option<u32>,
    /// Drop the kernel's caches on every host before each phase that reads,
    /// stats or lists (needs root)
    #[arg(long, help_heading = "Run")]
    drop_caches: bool,
    /// Do not remove the run's directory at the end
    #[arg(long, help_heading = "Run")]
    keep: bool,
    /// Allow each host a file system of its own at the target; otherwise all
    /// hosts must see the same one
    #[arg(long, help_heading = "Run")]
    private_dirs: bool,
    /// Start even when the target's free space is less than the run writes
    #[arg(long, help_heading = "Run")]
    overfill: bool,
    /// Do not try beforehand what the run needs of the file system
    #[arg(long, help_heading = "Run")]
    untried: bool,
    #[command(flatten)]
    limits: limits::LimitArgs,
    #[command(flatten)]
    commands: commands::CommandArgs,
    /// Seed of everything random [default: random, noted in the result]
    #[arg(long, value_name = "N", help_heading = "Run")]
    seed: Option<u64>,
    /// Do not measure the round trip to the file system at the start
    #[arg(long, help_heading = "Run")]
    no_round_trip: bool,
    /// Size of the file system client's own cache on each host: less than twice
    /// as much distinct data read gives a warning
    #[arg(long, value_name = "SIZE", value_parser = values::bytes, help_heading = "Run")]
    client_cache: Option<Bytes>,
    /// Report what a JuiceFS client counted of its own work over the run, by the
    /// file .stats of its mount: requests, updates of metadata, objects
    #[arg(long, help_heading = "Run")]
    client_counters: bool,
    /// Report CPU time and memory of the file system's client for each phase: of this
    /// process, or of all with this name, on every host [default: those that serve the
    /// FUSE mount, where they can be found]
    #[arg(long, value_name = "PID|NAME", value_parser = values::watch, help_heading = "Run")]
    watch: Option<Watch>,
    /// Set the mark NAME and run COMMAND on rank 0's host, this long after the start of the
    /// first phase [default: 10s]; may be repeated. NAME=SIGUSR1 names the marks that SIGUSR1
    /// to rank 0 sets. What it costs is reported: docs/reference/marks.md
    #[arg(long, value_name = "NAME[@TIME]=COMMAND", value_parser = values::event, help_heading = "Run")]
    event: Vec<Event>,
    #[command(flatten)]
    start: StartArgs,
    #[command(flatten)]
    written: written::Written,
    /// Replace the files that --out and --hlog name, if rbench wrote them; nothing else
    /// is ever replaced
    #[arg(long, requires = "Written", help_heading = "Output")]
    overwrite: bool,
    /// Interval of the timeline; with --out, FILE.journal gets what was done in each
    /// interval as soon as it is over [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = "Output")]
    interval: Option<Nanos>,
    /// Write start and duration of each operation to PREFIX-RANK.csv, on each
    /// rank's host
    #[arg(long, value_name = "PREFIX", help_heading = "Output")]
    log: Option<PathBuf>,
    /// Format of the report on stdout
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        help_heading = "Output"
    )]
    format: Format,
    /// The report in text shows everything: each iteration, host and rank, all
    /// percentiles, who answered. It is as wide as COLUMNS or the terminal says,
    /// from 80 columns on
    #[arg(long, help_heading = "Output")]
    details: bool,
    /// Add the label key=value to the result; may be repeated
    #[arg(long, value_name = "K=V", value_parser = values::label, help_heading = "Output")]
    label: Vec<(String, String)>,
    /// How rank 0 shows progress on stderr
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "HOW",
        help_heading = "Output"
    )]
    progress: Progress,
    #[command(flatten)]
    serve: ServeArgs,
    /// Print only the report and errors: no progress, no notes
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum TreeLayoutArg {
    /// Each rank has a tree of its own
    Unique,
    /// All ranks put their items into the directories of one tree
    Shared,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Without options each rank makes a tree of 4 directories with 100 directories and 100 \
    empty files in each, and runs every phase once. Sizes: k, m, g, t, p are powers of 1024. Counts: k, m, g are powers of 1000. Times: \
    500us, 30s; a bare number is in seconds.\n\nExamples:\n  mpirun -np 12 --hostfile myhost rbench meta --dir \
    /mnt/fs --out meta.json\n  rbench meta --dir /mnt/fs --files-only --write 100k --items 1000 --depth 0"
)]
struct Meta {
    /// Branching factor: children of each tree directory [default: 3]
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    branch: Option<u64>,
    /// Depth: levels of the tree below its root [default: 1]
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// Directories and files in each tree directory [default: 100]
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    items: Option<u64>,
    /// Instead of --items: directories and files per rank, spread over its tree
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    items_per_rank: Option<u64>,
    /// Whether ranks share a tree [default: unique]
    #[arg(long, value_enum, value_name = "LAYOUT")]
    layout: Option<TreeLayoutArg>,
    /// Create items only in the lowest level of the tree
    #[arg(long)]
    leaf_only: bool,
    /// Test files only (the tree itself is always made)
    #[arg(long)]
    files_only: bool,
    /// Test directories only
    #[arg(long)]
    dirs_only: bool,
    /// Bytes written to each file, in one call [default: 0]
    #[arg(long, value_name = "SIZE", value_parser = values::bytes)]
    write: Option<Bytes>,
    /// Bytes read from each file, in one call; 0: only open and close [default:
    /// that of --write]
    #[arg(long, value_name = "SIZE", value_parser = values::bytes)]
    read: Option<Bytes>,
    /// Call fsync after each write
    #[arg(long)]
    fsync: bool,
    /// Run only these phases, separated by commas; creation and what else they
    /// need is added. Any name that does not exist lists them all; docs/reference/ops.md
    /// says what each does [default: those that mdtest has]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::phase)]
    phases: Option<Vec<PhaseKind>>,
    /// Stat, read, rename, link and remove in random order
    #[arg(long)]
    random_order: bool,
    /// Stop creation, stat, listing and read after this time (s); in creation
    /// all workers then catch up with the one that made most
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    stonewall: Option<Nanos>,
    /// Run all phases N times before the iterations that count; nothing of that is
    /// in the result [default: 0]
    #[arg(long, value_name = "N")]
    warmup: Option<u32>,
    /// Instead of --threads: workers of all ranks together; where they do not
    /// divide by the ranks, some ranks have one less
    #[arg(long, value_name = "N", value_parser = values::amount::<u32>)]
    workers: Option<u32>,
    /// Run each phase for this time (s): what asks or changes goes over its items
    /// again and again, what makes or removes items goes on to new ones, with
    /// --items until those are used up; what the phases need is prepared untimed
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    time: Option<Nanos>,
    /// Open loop: start this many operations per second over all workers,
    /// whatever the target does, and report response times as well
    #[arg(long, value_name = "OPS", value_parser = values::rate)]
    rate: Option<f64>,
    /// Gaps between the starts of --rate [default: uniform]
    #[arg(long, value_enum, value_name = "HOW")]
    arrival: Option<ArrivalArg>,
    #[command(flatten)]
    in_flight: in_flight::InFlight,
    #[command(flatten)]
    repeats: repeats::Repeats,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Each row of the table is one operation, measured through its own system call. What it works on is \
    prepared before, untimed. The row newchunk is n/a: no system call reaches it. docs/reference/ops.md defines every row.\n\n\
    Examples:\n  rbench ops --dir /mnt/fs\n  rbench ops --dir /mnt/fs --only mkdir,rename,lookup --ops 10000 \
    --drop-caches\n  mpirun -np 12 --hostfile myhost rbench ops --dir /mnt/fs --time 10 --out ops.json"
)]
struct Ops {
    /// Only these rows, separated by commas [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::ops_row)]
    only: Option<Vec<&'static OpsRow>>,
    /// Operations of each row and worker [default: 1000]
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    ops: Option<u64>,
    /// Instead of --ops: stop each row after this time (s), or when all that
    /// was made for it, in as long a time, is used up
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    time: Option<Nanos>,
    #[command(flatten)]
    repeats: repeats::Count,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum IoLayoutArg {
    /// Each worker has a file of its own
    PerWorker,
    /// All workers share one file, each with a segment of it
    Shared,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Without options each worker writes and reads 256 MiB in blocks of 128 KiB. Sizes: k, m, \
    g, t, p are powers of 1024. Counts: k, m, g are powers of 1000. Times: 500us, 30s; a bare number is in seconds.\n\nExamples:\n  rbench io --dir /mnt/fs --bs 4M\n  mpirun -np 12 --hostfile myhost rbench io \
    --dir /mnt/fs --bs 4k --rw randread,randwrite --direct --time 60\n  rbench io --dir /mnt/fs --files \
    1000 --file-size 4k"
)]
struct Io {
    /// Phases to run, in this order: write, read, randwrite, randread, rw,
    /// randrw [default: write,read]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::rw)]
    rw: Option<Vec<Rw>>,
    /// Percentage of reads in rw and randrw [default: 50]
    #[arg(long, value_name = "PERCENT")]
    mix: Option<u32>,
    /// Block size [default: 128k, or the file size if that is less]
    #[arg(long, value_name = "SIZE", value_parser = values::bytes)]
    bs: Option<Bytes>,
    /// Instead of --bs: block sizes in this range, such as 4k-64k, each multiple
    /// of the smallest equally often
    #[arg(long, value_name = "MIN-MAX", value_parser = values::block_range)]
    bs_range: Option<(u64, u64)>,
    /// Instead of --bs: block sizes and the percentage of operations of each,
    /// such as 4k/60:8k/40
    #[arg(long, value_name = "LIST", value_parser = values::block_split)]
    bs_split: Option<values::BlockSplit>,
    /// Distribution of random offsets: random covers every block once before
    /// any repeats; zipf:THETA, pareto:POWER, normal:DEVIATION (percent of the
    /// size) and zoned:ACCESSES/SPACE:... (percentages) prefer some blocks
    /// [default: random]
    #[arg(long, value_name = "HOW", value_parser = values::distribution)]
    random_distribution: Option<Distribution>,
    /// Bytes per worker [default: 256M]
    #[arg(long, value_name = "SIZE", value_parser = values::bytes)]
    size: Option<Bytes>,
    /// Small-file mode: each worker has N files; an operation opens one, reads
    /// or writes all of it and closes it
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    files: Option<u64>,
    /// Bytes per small file
    #[arg(long, value_name = "SIZE", value_parser = values::bytes)]
    file_size: Option<Bytes>,
    /// Whether workers share a file [default: per-worker]
    #[arg(long, value_enum, value_name = "LAYOUT")]
    layout: Option<IoLayoutArg>,
    /// In a shared file, workers take blocks in turn instead of segments
    #[arg(long)]
    interleave: bool,
    /// I/O engine, named as in fio: psync, sync, vsync, pvsync, pvsync2, splice,
    /// mmap, io_uring, libaio, posixaio, null [default: psync]
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
    /// Queue depth: requests in flight per worker (io_uring, libaio, posixaio) [default: 1]
    #[arg(long, visible_alias = "iodepth", value_name = "N")]
    depth: Option<u32>,
    /// Open files with O_DIRECT
    #[arg(long)]
    direct: bool,
    /// When to fsync: end (once, after the last write; with --files, each file
    /// before it is closed), every=N (writes, and at the end), close (only close
    /// the file), never. All of it is timed [default: end]
    #[arg(long, value_name = "RULE", value_parser = values::fsync)]
    fsync: Option<FsyncRule>,
    /// Run each phase for this time (s), repeating the work
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    time: Option<Nanos>,
    /// Run each phase for this time first, without recording anything (s); needs
    /// --time
    #[arg(long, visible_alias = "warmup", value_name = "TIME", value_parser = values::time)]
    ramp: Option<Nanos>,
    /// End each phase before its --time, as soon as the rate of all workers of all
    /// ranks together is steady: iops, bw (largest deviation from the mean) or
    /// iops_slope, bw_slope (regression line), and the limit, such as iops:2% or
    /// bw_slope:0.3%; needs --time and --ss-dur
    #[arg(long, visible_alias = "ss", value_name = "WHAT:LIMIT[%]", value_parser = values::criterion)]
    steadystate: Option<Criterion>,
    /// With --steadystate: over this time the rate is to be steady (s)
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    ss_dur: Option<Nanos>,
    /// With --steadystate: look at nothing before this time (s) [default: 0]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    ss_ramp: Option<Nanos>,
    /// With --steadystate: time between two values, a multiple of --interval (s)
    /// [default: 1s, or --interval if that is longer]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    ss_interval: Option<Nanos>,
    /// Pause for this time after every operation of a worker (s)
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    think: Option<Nanos>,
    /// Open loop: start this many operations per second over all workers,
    /// whatever the target does, and report response times as well
    #[arg(long, value_name = "OPS", value_parser = values::rate)]
    rate: Option<f64>,
    /// Gaps between the starts of --rate [default: uniform]
    #[arg(long, value_enum, value_name = "HOW")]
    arrival: Option<ArrivalArg>,
    /// Stamp every block that is written and check every block that is read
    #[arg(long)]
    verify: bool,
    /// With --verify: check blocks in N extra threads per worker, which reads
    /// on meanwhile; not with io_uring, libaio, posixaio, mmap or --files [default: 0]
    #[arg(long, value_name = "N")]
    verify_threads: Option<u32>,
    /// With --verify: record every write and fsync in FILE.PASS.WORKER, outside
    /// the target, for rbench verify after a crash; implies --keep
    #[arg(long, value_name = "FILE")]
    ack_journal: Option<PathBuf>,
    /// Compressible percentage of the written data [default: 0]
    #[arg(long, value_name = "PERCENT", value_parser = values::percent)]
    compress: Option<u32>,
    /// Percentage of the written blocks that are copies of others [default: 0]
    #[arg(long, value_name = "PERCENT", value_parser = values::percent)]
    dedupe: Option<u32>,
    /// Fill each buffer once and write the same data every time; unrealistic on
    /// file systems that compress, deduplicate or checksum
    #[arg(long)]
    no_refill: bool,
    #[command(flatten)]
    repeats: repeats::Repeats,
    #[command(flatten)]
    common: Common,
}

/// The commands. `mdtest`, `fio` and `ior` are here for the list of commands and for
/// help: what follows them is not in clap's grammar and never gets here.
pub fn command() -> clap::Command {
    let mdtest = clap::Command::new("mdtest")
        .about("mdtest's command line, phases and summary table")
        .override_help(letters::help::<mdtest::Line>());
    let fio = clap::Command::new("fio")
        .about("fio's command line, job files and reports")
        .override_help(fio::help());
    let ior = clap::Command::new("ior")
        .about("IOR's command line and summary table")
        .override_help(letters::help::<ior::Line>());
    let command = Args::command();
    help::arranged(command.subcommand(mdtest).subcommand(fio).subcommand(ior))
}

/// The command line with the command that a path in its place means.
fn with_command(argv: &[OsString]) -> Vec<OsString> {
    let mut argv = argv.to_vec();
    let is_path = |word: &OsString| {
        let word = word.as_encoded_bytes();
        word == b"." || word == b".." || word.contains(&b'/')
    };
    if argv.get(1).is_some_and(is_path) {
        argv.insert(1, OsString::from("overview"));
    }
    argv
}

impl Args {
    pub fn read(argv: &[OsString]) -> Result<Args, clap::Error> {
        let argv = with_command(argv);
        let name = argv.get(1).and_then(|name| name.to_str());
        let matches = command()
            .try_get_matches_from(foreign::as_long_options(&argv))
            .map_err(|error| foreign::named(name, error))?;
        Args::from_arg_matches(&matches)
    }

    pub fn start(&self) -> Start {
        match &self.command {
            Command::Meta(meta) => meta.common.start.into(),
            Command::Ops(ops) => ops.common.start.into(),
            Command::Io(io) => io.common.start.into(),
            Command::Overview(overview) => overview.options.start.into(),
            Command::Quick(quick) => quick.options.start.into(),
            Command::Sweep(sweep) => sweep.options.start.into(),
            Command::Knee(knee) => knee.options.start.into(),
            Command::Nn(nn) => nn.options.start.into(),
            Command::Find(find) => find.common.start.into(),
            Command::Mix(mix) => mix.common.start.into(),
            Command::Replay(replay) => replay.common.start.into(),
            Command::Suite(suite) => suite.options.start.into(),
            Command::Probe(probe) => probe.start.into(),
            Command::Check(check) => check.start.into(),
            Command::Clean(clean) => clean.start.into(),
            Command::Testfs(_)
            | Command::Watch(_)
            | Command::Record(_)
            | Command::Show(_)
            | Command::Compare(_)
            | Command::Version
            | Command::Report(_)
            | Command::Verify(_)
            | Command::Completions(_)
            | Command::Man(_) => Start {
                communicator: Communicator::Solo,
                ..Start::default()
            },
        }
    }

    pub fn invocation(self, env_dir: Option<&OsStr>) -> Result<Invocation, Stop> {
        Ok(match self.command {
            Command::Meta(meta) => meta.invocation(env_dir)?,
            Command::Ops(ops) => ops.invocation(env_dir)?,
            Command::Io(io) => io.invocation(env_dir)?,
            Command::Overview(overview) => overview.invocation(),
            Command::Quick(quick) => quick.invocation(env_dir)?,
            Command::Sweep(sweep) => sweep.invocation(),
            Command::Knee(knee) => knee.invocation(),
            Command::Nn(nn) => nn.invocation(),
            Command::Find(find) => find.invocation(env_dir)?,
            Command::Mix(mix) => mix.invocation(env_dir)?,
            Command::Replay(replay) => replay.invocation(env_dir)?,
            Command::Suite(suite) => suite.invocation(env_dir)?,
            Command::Probe(probe) => probe.invocation(),
            Command::Check(check) => check.invocation(env_dir)?,
            Command::Testfs(args) => Invocation::Testfs(args.into()),
            Command::Watch(watch) => watch.invocation(),
            Command::Record(args) => Invocation::Record(args.into()),
            Command::Show(show) => show.invocation(),
            Command::Report(report) => report.invocation(),
            Command::Completions(completions) => completions.invocation(),
            Command::Man(man) => man.invocation(),
            Command::Compare(args) => args.invocation(),
            Command::Version => Invocation::Version,
            Command::Verify(verify) => verify.invocation(),
            Command::Clean(clean) => clean.invocation(),
        })
    }
}

impl Common {
    /// Options of the run, and of its output.
    ///
    /// # Errors
    /// When neither an option nor a non-empty variable names the directory.
    fn split(self, env_dir: Option<&OsStr>) -> Result<(spec::Common, Output), Stop> {
        let dir = match self.dir {
            Some(dir) => Some(dir),
            None => invocation::env_dir(env_dir)?,
        };
        let common = spec::Common {
            dir,
            seed: self.seed,
            threads: self.threads,
            pin: self.pin,
            iterations: None,
            auto: spec::AutoIterations::default(),
            shift: self.shift,
            drop_caches: self.drop_caches,
            interval: self.interval,
            log: self.log,
            keep: self.keep,
            limits: self.limits.into(),
            commands: self.commands.into(),
            leave: spec::Leave {
                private_dirs: self.private_dirs,
                overfill: self.overfill,
                untried: self.untried,
            },
        };
        let output = Output {
            out: self.written.out,
            hlog: self.written.hlog,
            overwrite: self.overwrite,
            format: self.format,
            details: self.details,
            labels: self.label,
            progress: self.progress.unless(self.quiet),
            quiet: self.quiet,
            start: self.start.into(),
            mdtest: None,
            fio: None,
            ior: None,
            no_round_trip: self.no_round_trip,
            client_cache: self.client_cache,
            client_counters: self.client_counters,
            watch: self.watch,
            events: self.event,
            serve: self.serve.into(),
        };
        Ok((common, output))
    }
}

impl Meta {
    fn invocation(self, env_dir: Option<&OsStr>) -> Result<Invocation, Stop> {
        let (mut common, output) = self.common.split(env_dir)?;
        self.repeats.tell(&mut common);
        let meta = spec::Meta {
            branch: self.branch,
            depth: self.depth,
            items: self.items,
            items_per_rank: self.items_per_rank,
            layout: self.layout.map(|layout| match layout {
                TreeLayoutArg::Unique => TreeLayout::Unique,
                TreeLayoutArg::Shared => TreeLayout::Shared,
            }),
            leaf_only: self.leaf_only,
            files_only: self.files_only,
            dirs_only: self.dirs_only,
            write: self.write,
            read: self.read,
            fsync: self.fsync,
            phases: self.phases,
            random_order: self.random_order,
            stonewall: self.stonewall,
            warmup: self.warmup,
            workers: self.workers,
            time: self.time,
            rate: self.rate,
            arrival: self.arrival.map(Arrival::from),
            in_flight: self.in_flight.into(),
        };
        let workload = Workload::Meta(meta);
        Ok(Invocation::Run(Box::new(Spec { common, workload }), output))
    }
}

impl Ops {
    fn invocation(self, env_dir: Option<&OsStr>) -> Result<Invocation, Stop> {
        let (mut common, output) = self.common.split(env_dir)?;
        self.repeats.tell(&mut common);
        let ops = spec::Ops {
            only: self.only,
            operations: self.ops,
            time: self.time,
        };
        let workload = Workload::Ops(ops);
        Ok(Invocation::Run(Box::new(Spec { common, workload }), output))
    }
}

impl Io {
    fn invocation(self, env_dir: Option<&OsStr>) -> Result<Invocation, Stop> {
        let (mut common, output) = self.common.split(env_dir)?;
        self.repeats.tell(&mut common);
        let io = spec::Io {
            rw: self.rw,
            mix: self.mix,
            block: self.bs,
            block_range: self.bs_range,
            block_split: self.bs_split.map(|split| split.0),
            distribution: self.random_distribution,
            size: self.size,
            files: self.files,
            file_size: self.file_size,
            layout: self.layout.map(|layout| match layout {
                IoLayoutArg::PerWorker => IoLayout::PerWorker,
                IoLayoutArg::Shared => IoLayout::SharedSegmented,
            }),
            interleave: self.interleave,
            engine: self.engine,
            depth: self.depth,
            direct: self.direct,
            fsync: self.fsync,
            time: self.time,
            ramp: self.ramp,
            steady: spec::SteadyOptions {
                criterion: self.steadystate,
                duration: self.ss_dur,
                ramp: self.ss_ramp,
                every: self.ss_interval,
            },
            think: self.think,
            rate: self.rate,
            arrival: self.arrival.map(Arrival::from),
            verify: self.verify,
            verify_threads: self.verify_threads,
            ack_journal: self.ack_journal,
            compress: self.compress,
            dedupe: self.dedupe,
            no_refill: self.no_refill,
        };
        let workload = Workload::Io(Box::new(io));
        Ok(Invocation::Run(Box::new(Spec { common, workload }), output))
    }
}
