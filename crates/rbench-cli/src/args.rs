//! The commands, and the options of the native ones.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Args as ClapArgs, CommandFactory as _, FromArgMatches as _};
use clap::{Parser, Subcommand, ValueEnum};
use rbench_core::client::Watch;
use rbench_core::event::Event;
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
mod ops;
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

/// Load generator for mounted file systems: metadata and I/O, on one machine or across MPI
/// ranks, with latency percentiles merged exactly
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
    /// Show what a mount is like; the same as `rbench DIR`
    Overview(OverviewArgs),
    /// Measure metadata rates: trees, directories and small files
    Meta(Meta),
    /// Measure each metadata operation through its own system call
    Ops(ops::Ops),
    /// Measure reads and writes of large and small files
    Io(Box<Io>),
    /// Print the table of juicefs bench: big and small files, and the mount's own counters
    Quick(QuickArgs),
    /// Run one workload with every combination of the given option values
    Sweep(SweepArgs),
    /// Run NNBench's operations with more and more workers to find where they stop scaling
    Nn(NnArgs),
    /// Find the highest rate at which response times meet an objective
    Knee(KneeArgs),
    /// Search a directory tree like find, with all ranks
    Find(find::FindArgs),
    /// Run a mix of operations on sets of files: weights, lists of steps or named profiles
    Mix(Box<mix::MixArgs>),
    /// Replay a trace: a log of fio, JuiceFS, strace, Darshan DXT or rbench record
    Replay(replay::ReplayArgs),
    /// Run a named, versioned sequence of runs, such as those of published evaluations
    Suite(SuiteArgs),
    /// Report what a mount supports on every host: O_DIRECT, mmap, locks, names …
    Probe(probe::ProbeArgs),
    /// Test one by one whether a mount keeps the promises of POSIX and Linux
    Check(check::CheckArgs),
    /// Run a program on a directory and record its file operations for rbench replay
    Record(record::RecordArgs),
    /// Mount the built-in FUSE file system in the foreground
    Testfs(testfs::TestfsArgs),
    /// Watch a run that was started with --serve
    Watch(serve::WatchArgs),
    /// Print the reports of result files or of the journals of unfinished runs
    Show(results::Show),
    /// Write a self-contained HTML page of results with charts
    Report(results::Report),
    /// Compare runs with each other or with published figures
    Compare(compare::CompareArgs),
    /// Print the version, the build and the MPI library
    Version,
    /// Check after a crash the writes that --ack-journal of rbench io or fio recorded
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
    /// Directory to test [default: RBENCH_DIR, else a built-in in-memory file system as a
    /// demo]
    #[arg(long, value_name = "DIR", value_parser = values::directory(), help_heading = "Run")]
    dir: Option<PathBuf>,
    /// Worker threads per rank [default: 1]
    #[arg(long, value_name = "N", help_heading = "Run")]
    threads: Option<u32>,
    /// Pin each worker to its own CPU, if there are enough CPUs
    #[arg(long, help_heading = "Run")]
    pin: bool,
    /// Make rank r work on the items that rank r-N created [default: 0, its own items]
    ///
    /// The distance differs in each phase, so that no rank uses its own items.
    #[arg(long, value_name = "N", help_heading = "Run")]
    shift: Option<u32>,
    /// Drop the kernel's caches on every host before each phase that reads,
    /// stats or lists (needs root)
    #[arg(long, help_heading = "Run")]
    drop_caches: bool,
    /// Keep the run's directory instead of removing it at the end
    #[arg(long, help_heading = "Run")]
    keep: bool,
    /// Allow each host its own file system at the target; otherwise all hosts must see the
    /// same one
    #[arg(long, help_heading = "Run")]
    private_dirs: bool,
    /// Start even if the target has less free space than the run writes
    #[arg(long, help_heading = "Run")]
    overfill: bool,
    /// Skip the initial test of the file system features that the run needs
    #[arg(long, help_heading = "Run")]
    untried: bool,
    #[command(flatten)]
    limits: limits::LimitArgs,
    #[command(flatten)]
    commands: commands::CommandArgs,
    /// Seed of all random choices [default: random, recorded in the result]
    #[arg(long, value_name = "N", help_heading = "Run")]
    seed: Option<u64>,
    /// Do not measure the round trip to the file system at the start
    #[arg(long, help_heading = "Run")]
    no_round_trip: bool,
    /// Size of the file system client's own cache on each host
    ///
    /// Reading less than twice this much distinct data gives a warning.
    #[arg(long, value_name = "SIZE", value_parser = values::bytes, help_heading = "Run")]
    client_cache: Option<Bytes>,
    /// Report a JuiceFS client's own counters for the run: requests, metadata updates,
    /// objects
    ///
    /// They are read from the file .stats of the mount.
    #[arg(long, help_heading = "Run")]
    client_counters: bool,
    /// Report CPU time and memory of the file system's client for each phase [default: the
    /// processes that serve the FUSE mount, if found]
    ///
    /// PID is one process; NAME is all processes with that name. Both apply to every host.
    #[arg(long, value_name = "PID|NAME", value_parser = values::watch, help_heading = "Run")]
    watch: Option<Watch>,
    /// Run COMMAND on rank 0's host and set the mark NAME, TIME after the first phase
    /// starts [default: 10s]; may be repeated
    ///
    /// NAME=SIGUSR1 names the marks that are set by sending SIGUSR1 to rank 0. The report
    /// gives the cost of each mark: docs/reference/marks.md.
    #[arg(long, value_name = "NAME[@TIME]=COMMAND", value_parser = values::event, help_heading = "Run")]
    event: Vec<Event>,
    #[command(flatten)]
    start: StartArgs,
    #[command(flatten)]
    written: written::Written,
    /// Replace the files of --out and --hlog if rbench wrote them; other files are never
    /// replaced
    #[arg(long, requires = "Written", help_heading = "Output")]
    overwrite: bool,
    /// Interval of the timeline [default: 1s]
    ///
    /// With --out, each interval is added to FILE.journal as soon as it ends.
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = "Output")]
    interval: Option<Nanos>,
    /// Write the start and duration of each operation to PREFIX-RANK.csv on each rank's
    /// host
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
    /// Show everything in the text report: each iteration, host and rank, all percentiles,
    /// and whether caches answered
    ///
    /// The report is as wide as COLUMNS or the terminal, but at least 80 columns.
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
    /// Each rank has its own tree
    Unique,
    /// All ranks put their items into the directories of one tree
    Shared,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Without options, each rank creates a tree of 4 directories, each with 100 directories and \
    100 empty files, and runs every phase once. Sizes: k, m, g, t, p are powers of 1024. Counts: k, m, g are \
    powers of 1000. Times: 500us, 30s; a bare number is in seconds.\n\nExamples:\n  mpirun -np 12 --hostfile \
    myhost rbench meta --dir /mnt/fs --out meta.json\n  rbench meta --dir /mnt/fs --files-only --write 100k \
    --items 1000 --depth 0"
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
    /// Test files only (the tree itself is always created)
    #[arg(long)]
    files_only: bool,
    /// Test directories only
    #[arg(long)]
    dirs_only: bool,
    /// Bytes to write to each file, in one call [default: 0]
    #[arg(long, value_name = "SIZE", value_parser = values::bytes)]
    write: Option<Bytes>,
    /// Bytes to read from each file, in one call; 0: only open and close it [default: same
    /// as --write]
    #[arg(long, value_name = "SIZE", value_parser = values::bytes)]
    read: Option<Bytes>,
    /// Call fsync after each write
    #[arg(long)]
    fsync: bool,
    /// Run only these phases, separated by commas [default: mdtest's phases]
    ///
    /// Creation and other phases that they need are added. An unknown name prints the list
    /// of phases; docs/reference/ops.md describes each.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::phase)]
    phases: Option<Vec<PhaseKind>>,
    /// Stat, read, rename, link and remove in random order
    #[arg(long)]
    random_order: bool,
    /// Stop creation, stat, listing and read after this time (s)
    ///
    /// After creation is stopped, all workers catch up with the one that created most.
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    stonewall: Option<Nanos>,
    /// Run all phases N times first, without recording them [default: 0]
    #[arg(long, value_name = "N")]
    warmup: Option<u32>,
    /// Instead of --threads: total number of workers of all ranks
    ///
    /// If it is not a multiple of the number of ranks, some ranks have one worker fewer.
    #[arg(long, value_name = "N", value_parser = values::amount::<u32>)]
    workers: Option<u32>,
    /// Run each phase for this time (s)
    ///
    /// Phases that read or change items repeat over the same items. Phases that create or
    /// remove items continue with new ones; with --items, they end when those are used up.
    /// Everything that a phase needs is prepared untimed.
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    time: Option<Nanos>,
    /// Open loop: start this many operations per second over all workers
    ///
    /// Operations start on schedule, however slow the target is. The report also has
    /// response times, which count from the intended start.
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

#[derive(Debug, Clone, Copy, ValueEnum)]
enum IoLayoutArg {
    /// Each worker has its own file
    PerWorker,
    /// All workers share one file; each has its own segment
    Shared,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Without options, each worker writes and reads 256 MiB in blocks of 128 KiB. Sizes: k, m, g, \
    t, p are powers of 1024. Counts: k, m, g are powers of 1000. Times: 500us, 30s; a bare number is in \
    seconds.\n\nExamples:\n  rbench io --dir /mnt/fs --bs 4M\n  mpirun -np 12 --hostfile myhost rbench io \
    --dir /mnt/fs --bs 4k --rw randread,randwrite --direct --time 60\n  rbench io --dir /mnt/fs --files 1000 \
    --file-size 4k"
)]
struct Io {
    /// Phases to run, in the order given: write, read, randwrite, randread, rw, randrw
    /// [default: write,read]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::rw)]
    rw: Option<Vec<Rw>>,
    /// Percentage of reads in rw and randrw [default: 50]
    #[arg(long, value_name = "PERCENT")]
    mix: Option<u32>,
    /// Block size [default: 128k, or the file size if that is less]
    #[arg(long, value_name = "SIZE", value_parser = values::bytes)]
    bs: Option<Bytes>,
    /// Instead of --bs: random block sizes in this range, such as 4k-64k
    ///
    /// Each multiple of the smallest size is equally likely.
    #[arg(long, value_name = "MIN-MAX", value_parser = values::block_range)]
    bs_range: Option<(u64, u64)>,
    /// Instead of --bs: block sizes with their percentages of operations, such as
    /// 4k/60:8k/40
    #[arg(long, value_name = "LIST", value_parser = values::block_split)]
    bs_split: Option<values::BlockSplit>,
    /// Distribution of random offsets [default: random]
    ///
    /// random covers every block once before any block repeats. zipf:THETA, pareto:POWER,
    /// normal:DEVIATION (percent of the size) and zoned:ACCESSES/SPACE:... (percentages)
    /// prefer some blocks.
    #[arg(long, value_name = "HOW", value_parser = values::distribution)]
    random_distribution: Option<Distribution>,
    /// Bytes per worker [default: 256M]
    #[arg(long, value_name = "SIZE", value_parser = values::bytes)]
    size: Option<Bytes>,
    /// Small-file mode: number of files per worker
    ///
    /// Each operation opens a file, reads or writes all of it, and closes it.
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    files: Option<u64>,
    /// Bytes per small file
    #[arg(long, value_name = "SIZE", value_parser = values::bytes)]
    file_size: Option<Bytes>,
    /// Whether workers share a file [default: per-worker]
    #[arg(long, value_enum, value_name = "LAYOUT")]
    layout: Option<IoLayoutArg>,
    /// In a shared file, let workers take blocks in turn instead of one segment each
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
    /// When to call fsync: end, every=N, close or never [default: end]
    ///
    /// end: once after the last write; with --files, on each file before it is closed.
    /// every=N: after every N writes and at the end. close: only close the file. All of
    /// this is timed.
    #[arg(long, value_name = "RULE", value_parser = values::fsync)]
    fsync: Option<FsyncRule>,
    /// Run each phase for this time (s), repeating the work as needed
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    time: Option<Nanos>,
    /// Run each phase for this time (s) before recording starts; needs --time
    #[arg(long, visible_alias = "warmup", value_name = "TIME", value_parser = values::time)]
    ramp: Option<Nanos>,
    /// End each phase as soon as its total rate is steady; needs --time and --ss-dur
    ///
    /// The rate is that of all workers of all ranks. iops and bw limit its largest
    /// deviation from the mean; iops_slope and bw_slope limit the slope of its regression
    /// line. Examples: iops:2%, bw_slope:0.3%.
    #[arg(long, visible_alias = "ss", value_name = "WHAT:LIMIT[%]", value_parser = values::criterion)]
    steadystate: Option<Criterion>,
    /// With --steadystate: the rate must be steady over this time (s)
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    ss_dur: Option<Nanos>,
    /// With --steadystate: ignore the rate until this time has passed (s) [default: 0]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    ss_ramp: Option<Nanos>,
    /// With --steadystate: time between two samples, a multiple of --interval (s) [default:
    /// 1s, or --interval if that is longer]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    ss_interval: Option<Nanos>,
    /// Pause each worker for this time after every operation (s)
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    think: Option<Nanos>,
    /// Open loop: start this many operations per second over all workers
    ///
    /// Operations start on schedule, however slow the target is. The report also has
    /// response times, which count from the intended start.
    #[arg(long, value_name = "OPS", value_parser = values::rate)]
    rate: Option<f64>,
    /// Gaps between the starts of --rate [default: uniform]
    #[arg(long, value_enum, value_name = "HOW")]
    arrival: Option<ArrivalArg>,
    /// Stamp every written block and check every read block
    #[arg(long)]
    verify: bool,
    /// With --verify: check blocks in N extra threads per worker [default: 0]
    ///
    /// The worker keeps reading meanwhile. Not available with io_uring, libaio, posixaio,
    /// mmap or --files.
    #[arg(long, value_name = "N")]
    verify_threads: Option<u32>,
    /// With --verify: record every write and fsync in FILE.PASS.WORKER for rbench verify
    /// after a crash
    ///
    /// FILE must be outside the target. Implies --keep.
    #[arg(long, value_name = "FILE")]
    ack_journal: Option<PathBuf>,
    /// Compressible percentage of the written data [default: 0]
    #[arg(long, value_name = "PERCENT", value_parser = values::percent)]
    compress: Option<u32>,
    /// Percentage of the written blocks that are copies of other blocks [default: 0]
    #[arg(long, value_name = "PERCENT", value_parser = values::percent)]
    dedupe: Option<u32>,
    /// Fill each buffer once and write the same data every time
    ///
    /// This is unrealistic on file systems that compress, deduplicate or checksum.
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
        .about("Run mdtest's command line, with mdtest's phases and summary table")
        .override_help(letters::help::<mdtest::Line>());
    let fio = clap::Command::new("fio")
        .about("Run fio's command line and job files, with fio's reports")
        .override_help(fio::help());
    let ior = clap::Command::new("ior")
        .about("Run IOR's command line, with IOR's summary table")
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
        let command = command();
        let name = argv.get(1).and_then(|name| name.to_str());
        let sub = name.and_then(|name| command.find_subcommand(name));
        let matches = command
            .clone()
            .try_get_matches_from(foreign::as_long_options(&argv))
            .map_err(|error| foreign::named(&argv, sub, error))?;
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
