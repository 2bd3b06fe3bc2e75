//! The commands, and the options of the native ones.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Args as ClapArgs, CommandFactory as _, FromArgMatches as _};
use clap::{Parser, Subcommand, ValueEnum};
use rbench_core::{Bytes, Nanos};
use rbench_plan::arrival::Arrival;
use rbench_plan::io::{FsyncRule, Layout as IoLayout, Rw};
use rbench_plan::jobs::Distribution;
use rbench_plan::meta::{Layout as TreeLayout, PhaseKind};
use rbench_plan::spec::{self, OnError, Spec, Workload};

use crate::{Clean, Communicator, Format, Invocation, Output, PowerCut, Progress, Testfs, Verify};
use crate::{fio, mdtest, values};

/// Load generator for mounted file systems: metadata and I/O, on one machine
/// or over MPI ranks, with exactly merged latency percentiles.
#[derive(Debug, Parser)]
#[command(name = "rbench", version, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Metadata rates: trees, directories and small files
    Meta(Meta),
    /// Reads and writes of big and small files
    Io(Box<Io>),
    /// Mount the built-in FUSE file system in the foreground
    Testfs(TestfsArgs),
    /// Show a result file, or the journal of a run that did not end
    Show(Show),
    /// After a crash: what became of the writes of rbench io --ack-journal
    Verify(VerifyArgs),
    /// Remove what runs left that did not end
    Clean(CleanArgs),
}

#[derive(Debug, ClapArgs)]
struct Common {
    /// Directory to test; else RBENCH_DIR, else a built-in file system in
    /// memory (a demonstration)
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    dir: Option<PathBuf>,
    /// Workers of each rank
    #[arg(long, value_name = "N", help_heading = "Run")]
    threads: Option<u32>,
    /// Keep each worker on one processor, as far as there are so many
    #[arg(long, help_heading = "Run")]
    pin: bool,
    /// Passes over all phases
    #[arg(long, value_name = "N", help_heading = "Run")]
    iterations: Option<u32>,
    /// Rank r works on what rank r-N made, a different distance for each
    /// phase, so that no rank meets its own items
    #[arg(long, value_name = "N", help_heading = "Run")]
    shift: Option<u32>,
    /// Drop the kernel's caches on every host before each phase that reads,
    /// stats or lists (needs root)
    #[arg(long, help_heading = "Run")]
    drop_caches: bool,
    /// Leave the run's directory
    #[arg(long, help_heading = "Run")]
    keep: bool,
    /// Each host may have a file system of its own at the target: without this
    /// the run is refused unless all hosts see the same one
    #[arg(long, help_heading = "Run")]
    private_dirs: bool,
    /// Begin even where the target has less room than the run writes
    #[arg(long, help_heading = "Run")]
    overfill: bool,
    /// Whether a failed operation ends the run [default: continue]
    #[arg(long, value_name = "continue|stop", value_parser = values::on_error, help_heading = "Run")]
    on_error: Option<OnError>,
    /// End the run when more than N operations have failed
    #[arg(long, value_name = "N", help_heading = "Run")]
    max_errors: Option<u64>,
    /// Give up waiting for an operation that takes longer: the run ends, and
    /// what was measured is reported
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = "Run")]
    op_timeout: Option<Nanos>,
    /// Everything random derives from it; it is in every result
    #[arg(long, value_name = "N", help_heading = "Run")]
    seed: Option<u64>,
    /// Do not measure at the start what a request to the file system costs
    #[arg(long, help_heading = "Run")]
    no_round_trip: bool,
    /// What the file system's client keeps in a cache of its own on each host,
    /// to be held against the data that is read
    #[arg(long, value_name = "SIZE", value_parser = values::bytes, help_heading = "Run")]
    client_cache: Option<Bytes>,
    /// Whether ranks talk over MPI
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "WHICH",
        help_heading = "Run"
    )]
    communicator: Communicator,
    /// Write the result to this file (JSON); while the run goes on, finished
    /// phases are in FILE.journal
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Form of the report on stdout
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "FORM",
        help_heading = "Output"
    )]
    format: Format,
    /// Note key=value in the result; may be repeated
    #[arg(long, value_name = "K=V", value_parser = values::label, help_heading = "Output")]
    label: Vec<(String, String)>,
    /// What rank 0 shows on stderr while it runs
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "HOW",
        help_heading = "Output"
    )]
    progress: Progress,
    /// No progress and no notes, only the report and errors
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum TreeLayoutArg {
    /// A private tree for each rank
    Unique,
    /// One tree with items of all ranks in each directory
    Shared,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Without options: 4 tree directories for each rank, 100 directories and 100 empty \
    files in each, every phase once.\n\nExamples:\n  mpirun -np 12 --hostfile myhost rbench meta --dir \
    /mnt/fs --out meta.json\n  rbench meta --dir /mnt/fs --files-only --write 100k --items 1000 --depth 0"
)]
struct Meta {
    /// Children of each tree directory [default: 3]
    #[arg(long, value_name = "N")]
    branch: Option<u64>,
    /// Levels of the tree below its root [default: 1]
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// Directories and files in each tree directory [default: 100]
    #[arg(long, value_name = "N")]
    items: Option<u64>,
    /// Directories and files of each rank, spread over its tree
    #[arg(long, value_name = "N")]
    items_per_rank: Option<u64>,
    /// Whether ranks share a tree [default: unique]
    #[arg(long, value_enum, value_name = "LAYOUT")]
    layout: Option<TreeLayoutArg>,
    /// Items only in the lowest level of the tree
    #[arg(long)]
    leaf_only: bool,
    /// No directories as items
    #[arg(long)]
    files_only: bool,
    /// No files
    #[arg(long)]
    dirs_only: bool,
    /// Bytes written to each file, in one call [default: 0]
    #[arg(long, value_name = "SIZE", value_parser = values::bytes)]
    write: Option<Bytes>,
    /// Bytes read from each file, in one call; 0: open and close [default: as
    /// --write]
    #[arg(long, value_name = "SIZE", value_parser = values::bytes)]
    read: Option<Bytes>,
    /// fsync after each write
    #[arg(long)]
    fsync: bool,
    /// Only these phases, by name and separated by commas; creation is added
    /// where it is needed
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::phase)]
    phases: Option<Vec<PhaseKind>>,
    /// Stat, read, rename and remove in random order
    #[arg(long)]
    random_order: bool,
    /// Stop creation, stat, listing and read after this time; creation then
    /// tops up to what the worker with the most has made
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    stonewall: Option<Nanos>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum IoLayoutArg {
    /// A file for each worker
    PerWorker,
    /// One file, a segment for each worker
    Shared,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ArrivalArg {
    /// Equal gaps
    Uniform,
    /// Exponential gaps
    Poisson,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Without options: 256 MiB for each worker are written and read in blocks of \
    128 KiB.\n\nExamples:\n  rbench io --dir /mnt/fs --bs 4M\n  mpirun -np 12 --hostfile myhost rbench io \
    --dir /mnt/fs --bs 4k --rw randread,randwrite --direct --time 60\n  rbench io --dir /mnt/fs --files \
    1000 --file-size 4k"
)]
struct Io {
    /// Phases in this order: write, read, randwrite, randread, rw, randrw
    /// [default: write,read]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::rw)]
    rw: Option<Vec<Rw>>,
    /// Percentage of reads in rw and randrw [default: 50]
    #[arg(long, value_name = "PERCENT")]
    mix: Option<u32>,
    /// Bytes of each operation [default: 128k, or the size of the files when
    /// that is less]
    #[arg(long, value_name = "SIZE", value_parser = values::bytes)]
    bs: Option<Bytes>,
    /// Instead of --bs: the smallest and the largest block, such as 4k-64k;
    /// every multiple of the smallest is as frequent
    #[arg(long, value_name = "MIN-MAX", value_parser = values::block_range)]
    bs_range: Option<(u64, u64)>,
    /// Instead of --bs: sizes and how many percent of the operations have each,
    /// such as 4k/60:8k/40
    #[arg(long, value_name = "LIST", value_parser = values::block_split)]
    bs_split: Option<values::BlockSplit>,
    /// How random operations are spread: random hits every block once before
    /// any again; zipf:THETA, pareto:POWER, normal:DEVIATION (percent of the
    /// size) and zoned:ACCESSES/SPACE:... (percentages) hit some more often
    /// than others [default: random]
    #[arg(long, value_name = "HOW", value_parser = values::distribution)]
    random_distribution: Option<Distribution>,
    /// Bytes of each worker [default: 256M]
    #[arg(long, value_name = "SIZE", value_parser = values::bytes)]
    size: Option<Bytes>,
    /// Small-file form: so many files of each worker, each opened, moved whole
    /// and closed
    #[arg(long, value_name = "N")]
    files: Option<u64>,
    /// Bytes of each small file
    #[arg(long, value_name = "SIZE", value_parser = values::bytes)]
    file_size: Option<Bytes>,
    /// Whether workers share a file [default: per-worker]
    #[arg(long, value_enum, value_name = "LAYOUT")]
    layout: Option<IoLayoutArg>,
    /// In a shared file the workers' blocks alternate
    #[arg(long)]
    interleave: bool,
    /// How blocks are moved: psync, sync, vsync, pvsync, pvsync2, mmap,
    /// io_uring, null [default: psync]
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
    /// Requests under way for each worker [default: 1]
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// O_DIRECT
    #[arg(long)]
    direct: bool,
    /// When written data is synced: end, never, every=N (writes), close; all
    /// but never inside the phase's time. With --files, end means once for
    /// each file, before it is closed [default: end]
    #[arg(long, value_name = "RULE", value_parser = values::fsync)]
    fsync: Option<FsyncRule>,
    /// Loop over the files for this time
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    time: Option<Nanos>,
    /// Open loop: so many operations a second over all workers, whatever the
    /// target does; response times are reported beside service times
    #[arg(long, value_name = "OPS", value_parser = values::rate)]
    rate: Option<f64>,
    /// How intended starts are spread [default: uniform]
    #[arg(long, value_enum, value_name = "HOW")]
    arrival: Option<ArrivalArg>,
    /// Stamp every block that is written, check every block that is read
    #[arg(long)]
    verify: bool,
    /// With --verify: check what is read on N threads beside each worker, which
    /// reads on meanwhile; engines with one request at a time [default: 0]
    #[arg(long, value_name = "N")]
    verify_threads: Option<u32>,
    /// With --verify: note every write and fsync in journals of that name
    /// (FILE.PASS.WORKER), outside the target, for rbench verify after a crash;
    /// implies --keep
    #[arg(long, value_name = "FILE")]
    ack_journal: Option<PathBuf>,
    /// Percentage of the written data that compresses away [default: 0]
    #[arg(long, value_name = "PERCENT", value_parser = values::percent)]
    compress: Option<u32>,
    /// Percentage of the written blocks that are copies of others [default: 0]
    #[arg(long, value_name = "PERCENT", value_parser = values::percent)]
    dedupe: Option<u32>,
    /// Fill each buffer once and write the same data again and again: for file
    /// systems that look at data this is not the cost of writing
    #[arg(long)]
    no_refill: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "A fault is KIND:ACTION@TRIGGER. KIND is a FUSE request (read, write, create, fsync …).\n\
    ACTION is an error (EIO, ENOSPC, EINTR, ESTALE …), stall=TIME, hang (until SIGUSR2), die (the mount\n\
    then answers ENOTCONN); for read and write also short, flip, zero, misdirect, for read stale, for\n\
    write lost. TRIGGER is nth=N, after=N or p=PROBABILITY.\n\nUnmounts itself on SIGINT, SIGTERM and \
    SIGHUP; SIGUSR1 writes the statistics, SIGUSR2 releases\nwhat hangs, SIGPWR cuts the power \
    (--power-cut).\n\nExamples:\n  rbench testfs /mnt/test --memory 1g --latency create=2ms,read=100us \
    --attr-timeout 0 --entry-timeout 0 --stats stats.json\n  rbench testfs /mnt/test --direct-io --fault \
    read:flip@p=0.001 --fault write:ENOSPC@nth=100 --fault-log faults.jsonl"
)]
struct TestfsArgs {
    /// An empty directory
    mountpoint: PathBuf,
    /// Keep data in memory, at most so much [default: a quarter of what is
    /// available]
    #[arg(long, value_name = "SIZE", value_parser = values::bytes, conflicts_with = "passthrough")]
    memory: Option<Bytes>,
    /// Serve this folder instead
    #[arg(long, value_name = "DIR")]
    passthrough: Option<PathBuf>,
    /// Time from the arrival of a request to its reply, at least, by kind:
    /// create=2ms,read=100us
    #[arg(long, value_name = "LIST")]
    latency: Option<String>,
    /// A fault by kind of request, such as read:stall=500ms@nth=100 or
    /// write:EIO@p=0.01 (see below); may be repeated
    #[arg(long, value_name = "FAULT")]
    fault: Vec<String>,
    /// Write a line (JSON) to this file for each fault that fires
    #[arg(long, value_name = "FILE")]
    fault_log: Option<PathBuf>,
    /// Data of all files in memory takes at most so much, in blocks of 4 KiB;
    /// then ENOSPC
    #[arg(long, value_name = "SIZE", value_parser = values::bytes, conflicts_with = "passthrough")]
    quota: Option<Bytes>,
    /// Read and write all files around the page cache, so that each call
    /// reaches the file system; read:short implies it
    #[arg(long)]
    direct_io: bool,
    /// Note what is synced, so that SIGPWR can drop all that is not
    #[arg(long, value_enum, value_name = "HOW", conflicts_with = "passthrough")]
    power_cut: Option<PowerCut>,
    /// How long the kernel may keep attributes; 0: every call asks
    /// [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    attr_timeout: Option<Nanos>,
    /// How long the kernel may keep names; 0: every call asks [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    entry_timeout: Option<Nanos>,
    /// Threads that serve requests
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Write request counts and times to this file, at the end and on SIGUSR1
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,
    /// Let the kernel keep the pages of a file that is opened again
    #[arg(long)]
    keep_cache: bool,
    /// A file .stats at the root with request counts in the form of JuiceFS's:
    /// off, silent (requests for it do not count), counted [default: silent]
    #[arg(long, value_name = "HOW")]
    stats_file: Option<String>,
    /// What faults derive from: which requests, which bytes, what survives
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// End when standard input ends; say "ready" on standard output
    #[arg(long, hide = true)]
    watch_parent: bool,
}

#[derive(Debug, ClapArgs)]
struct Show {
    /// A result file of --out, or its journal
    file: PathBuf,
    /// Form of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    format: Format,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Every block that the journals speak of is read, and is as acknowledged, allowed (it was in \
    flight, or never synced), untouched, lost (it was synced), corrupt or unreadable. --format json has \
    counts, findings and notes of its own. Exit code: 0 when nothing is lost, corrupt or unreadable, else \
    1.\n\nExample:\n  rbench io --dir /mnt/fs --bs 4k --rw randwrite --fsync every=100 \
    --time 60 --verify --ack-journal /var/tmp/acks\n  (the file system crashes, and is mounted again)\n  \
    rbench verify /var/tmp/acks.*"
)]
struct VerifyArgs {
    /// Journals of --ack-journal
    #[arg(required = true, value_name = "FILE")]
    journals: Vec<PathBuf>,
    /// The directory that was tested, where it lies now [default: where it lay]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Form of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    format: Format,
}

#[derive(Debug, ClapArgs)]
struct CleanArgs {
    /// The directory that was tested
    dir: PathBuf,
    /// Remove what runs of other hosts left as well: make sure first that
    /// they have ended
    #[arg(long)]
    force: bool,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
}

/// The commands. `mdtest` and `fio` are there to be listed and helped with: what
/// follows them is not in clap's grammar and never gets here.
pub fn command() -> clap::Command {
    let mdtest = clap::Command::new("mdtest")
        .about("mdtest's command line, tree and table")
        .override_help(mdtest::help())
        .display_order(1);
    let fio = clap::Command::new("fio")
        .about("fio's command line, job files and reports")
        .override_help(fio::help())
        .display_order(2);
    Args::command().subcommand(mdtest).subcommand(fio)
}

impl Args {
    pub fn read(argv: &[OsString]) -> Result<Args, clap::Error> {
        let matches = command().try_get_matches_from(argv)?;
        Args::from_arg_matches(&matches)
    }

    pub fn communicator(&self) -> Communicator {
        match &self.command {
            Command::Meta(meta) => meta.common.communicator,
            Command::Io(io) => io.common.communicator,
            Command::Testfs(_) | Command::Show(_) | Command::Verify(_) | Command::Clean(_) => {
                Communicator::Solo
            }
        }
    }

    pub fn invocation(self, env_dir: Option<&OsStr>) -> Invocation {
        match self.command {
            Command::Meta(meta) => meta.invocation(env_dir),
            Command::Io(io) => io.invocation(env_dir),
            Command::Testfs(args) => Invocation::Testfs(args.into()),
            Command::Show(Show { file, format }) => Invocation::Show { file, format },
            Command::Verify(VerifyArgs {
                journals,
                dir,
                format,
            }) => Invocation::Verify(Verify {
                journals,
                dir,
                format,
            }),
            Command::Clean(CleanArgs {
                dir,
                force,
                dry_run,
            }) => Invocation::Clean(Clean {
                dir,
                force,
                dry_run,
            }),
        }
    }
}

impl Common {
    fn split(self, env_dir: Option<&OsStr>) -> (spec::Common, Output) {
        let common = spec::Common {
            dir: self.dir.or_else(|| values::env_dir(env_dir)),
            seed: self.seed,
            threads: self.threads,
            pin: self.pin,
            iterations: self.iterations,
            shift: self.shift,
            drop_caches: self.drop_caches,
            keep: self.keep,
            limits: spec::LimitOptions {
                on_error: self.on_error,
                max_errors: self.max_errors,
                op_timeout: self.op_timeout,
            },
            leave: spec::Leave {
                private_dirs: self.private_dirs,
                overfill: self.overfill,
            },
        };
        let output = Output {
            out: self.out,
            format: self.format,
            labels: self.label,
            progress: self.progress.unless(self.quiet),
            quiet: self.quiet,
            communicator: self.communicator,
            mdtest: None,
            fio: None,
            no_round_trip: self.no_round_trip,
            client_cache: self.client_cache,
        };
        (common, output)
    }
}

impl Meta {
    fn invocation(self, env_dir: Option<&OsStr>) -> Invocation {
        let (common, output) = self.common.split(env_dir);
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
        };
        Invocation::Run(
            Box::new(Spec {
                common,
                workload: Workload::Meta(meta),
            }),
            output,
        )
    }
}

impl Io {
    fn invocation(self, env_dir: Option<&OsStr>) -> Invocation {
        let (common, output) = self.common.split(env_dir);
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
            rate: self.rate,
            arrival: self.arrival.map(|arrival| match arrival {
                ArrivalArg::Uniform => Arrival::Uniform,
                ArrivalArg::Poisson => Arrival::Poisson,
            }),
            verify: self.verify,
            verify_threads: self.verify_threads,
            ack_journal: self.ack_journal,
            compress: self.compress,
            dedupe: self.dedupe,
            no_refill: self.no_refill,
        };
        Invocation::Run(
            Box::new(Spec {
                common,
                workload: Workload::Io(io),
            }),
            output,
        )
    }
}

impl From<TestfsArgs> for Testfs {
    fn from(args: TestfsArgs) -> Testfs {
        Testfs {
            mountpoint: args.mountpoint,
            memory: args.memory,
            passthrough: args.passthrough,
            latency: args.latency,
            faults: args.fault,
            attr_timeout: args.attr_timeout,
            entry_timeout: args.entry_timeout,
            threads: args.threads,
            stats: args.stats,
            seed: args.seed,
            direct_io: args.direct_io,
            quota: args.quota,
            fault_log: args.fault_log,
            power_cut: args.power_cut,
            watch_parent: args.watch_parent,
            keep_cache: args.keep_cache,
            stats_file: args.stats_file,
        }
    }
}
