//! The commands, and the options of the native ones.

use std::ffi::{OsStr, OsString};
use std::sync::LazyLock;

use clap::{Args as ClapArgs, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use rbench_core::near::nearest;
use rbench_core::plain;
use rbench_plan::quick::Quick;
use rbench_plan::spec::{self, Spec, Workload};

use crate::invocation::Tool;
use crate::series::{Course, Knee, Sweep};
use crate::{Communicator, Invocation, Output, Start, Stop};
use crate::{fio, invocation, ior, letters, mdtest};

mod find;
mod foreign;
mod help;
mod mix;
mod repeats;
mod series;

use find::FindArgs;
pub use foreign::{mistake, sentence};
use mix::MixArgs;
pub use mix::profile_file;
use repeats::{Count, Repeated, Repeats};
use series::{OverviewArgs, Runs, SuiteArgs};

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
    /// How the ranks start.
    #[arg(skip)]
    pub start: Start,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what a mount is like; the same as `rbench DIR`
    Overview(OverviewArgs),
    /// Measure metadata rates: trees, directories and small files
    #[command(
        after_help = "Without options, each rank creates a tree of 4 directories, each with 100 directories and \
        100 empty files, and runs every phase once. Sizes: k, m, g, t, p are powers of 1024. Counts: k, m, g are \
        powers of 1000. Times: 500us, 30s; a bare number is in seconds.\n\nExamples:\n  mpirun -np 12 --hostfile \
        myhost rbench meta --dir /mnt/fs --out meta.json\n  rbench meta --dir /mnt/fs --files-only --write 100k \
        --items 1000 --depth 0"
    )]
    Meta(Box<Run<spec::Meta>>),
    /// Measure each metadata operation through its own system call
    #[command(
        after_help = "Each row of the table is one operation, measured through its own system call. The items it \
        works on are prepared before, untimed. The row newchunk is always n/a: no system call triggers it. \
        docs/reference/ops.md defines every row.\n\nExamples:\n  rbench ops --dir /mnt/fs\n  rbench ops --dir \
        /mnt/fs --only mkdir,rename,lookup --ops 10000 --drop-caches\n  mpirun -np 12 --hostfile myhost rbench ops \
        --dir /mnt/fs --time 10 --out ops.json"
    )]
    Ops(Box<Run<spec::Ops, Count>>),
    /// Measure reads and writes of large and small files
    #[command(
        after_help = "Without options, each worker writes and reads 256 MiB in blocks of 128 KiB. Sizes: k, m, g, \
        t, p are powers of 1024. Counts: k, m, g are powers of 1000. Times: 500us, 30s; a bare number is in \
        seconds.\n\nExamples:\n  rbench io --dir /mnt/fs --bs 4M\n  mpirun -np 12 --hostfile myhost rbench io \
        --dir /mnt/fs --bs 4k \\\n    --rw randread,randwrite --direct --time 60\n  rbench io --dir /mnt/fs --files 1000 \
        --file-size 4k"
    )]
    Io(Box<Run<spec::Io>>),
    /// Print the table of juicefs bench: big and small files, and the mount's own counters
    #[command(
        after_help = "Prints the table of juicefs bench for any mounted file system, from one worker or all ranks. \
        Each worker writes and reads a big file, then writes, stats and reads small ones. With several workers, \
        the figures are those of all workers together. docs/reference/quick.md defines every \
        row.\n\nExamples:\n  rbench quick /mnt/jfs -p 4\n  mpirun -np 12 --hostfile myhost rbench quick /mnt/jfs \
        --big-file-size 0 --out quick.json"
    )]
    Quick(Runs<Quick>),
    /// Run one workload with every combination of the given option values
    #[command(
        after_help = "A KEY is an option of the workload without its dashes (bs, iodepth, n), or selects launched \
        ranks: hosts (the first N), ranks-per-host, ranks (spread over the hosts). A switch takes on and off. All \
        combinations of the values are run; the last key changes fastest.\n\nExamples:\n  mpirun -np 12 --hostfile \
        myhost rbench sweep --over hosts=1,2,3 --over threads=1,4 \\\n    --over bs=4k,128k --out sweep.json -- io \
        --dir /mnt/fs --rw randread --time 30\n  rbench sweep --over iodepth=1,4,16 -- fio --name=a --rw=randread \
        --size=1g --ioengine=libaio"
    )]
    Sweep(Runs<Sweep>),
    /// Run NNBench's operations with more and more workers to find where they stop scaling
    #[command(
        after_help = "Each number of workers is a separate run in new directories, one per worker: create_write \
        (create a file, write its bytes, close it), open_read (open, read all, close), rename, delete. Workers are \
        spread over the launched ranks as evenly as possible; ranks without a worker are idle. \
        docs/reference/nn.md defines every figure.\n\nExamples:\n  rbench nn --dir /mnt/fs --ladder \
        1,2,4,8,16\n  mpirun -np 12 --hostfile myhost rbench nn --dir /mnt/fs --out nn.json"
    )]
    Nn(Runs<rbench_plan::nn::Asked>),
    /// Find the highest rate at which response times meet an objective
    #[command(
        after_help = "Operations of all ranks together start at a target rate, however slow the target is, and \
        response times count from the intended start. The rate doubles until the objective fails; then the gap \
        between the last rates is halved repeatedly. A window three times as long confirms the highest rate that \
        held. A rate also fails if more than 1% of its operations could not be started. Give enough --threads: an \
        operation that is due waits for a free worker. docs/reference/knee.md has the \
        details.\n\nExamples:\n  mpirun -np 12 --hostfile myhost rbench knee --slo p99=10ms --out knee.json \
        \\\n    -- io --dir /mnt/fs --rw randread --bs 4k --direct --threads 16\n  rbench knee --slo p99=5ms --slo \
        mean=1ms -- meta --dir /mnt/fs --phases file-create --threads 16"
    )]
    Knee(Runs<Knee>),
    /// Search a directory tree like find, with all ranks
    Find(Box<Run<FindArgs, Count>>),
    /// Run a mix of operations on sets of files: weights, lists of steps or named profiles
    Mix(Box<Run<MixArgs>>),
    /// Replay a trace: a log of fio, JuiceFS, strace, Darshan DXT or rbench record
    #[command(
        after_help = "Files that existed before the trace are created first, untimed, with their sizes. Then the \
        operations of each process run in order, at the recorded times, in the run's own directory; all names of \
        the trace are placed below it, whatever they are. Processes are spread over the workers of all ranks. With \
        one worker (the default), all operations run in the order of their recorded starts. \
        docs/reference/replay.md describes the formats, the figures and what is left out.\n\nExamples:\n  strace \
        -f -y -ttt -T -s 0 -o clone.strace git clone /srv/repo copy\n  rbench replay clone.strace --dir /mnt/fs --below \
        \"$PWD\"\n  mpirun -np 12 rbench replay app.accesslog --dir /mnt/fs --threads 8 --copies 12 --time-scale 2"
    )]
    Replay(Box<Run<spec::Replay, Count>>),
    /// Run a named, versioned sequence of runs, such as those of published evaluations
    Suite(SuiteArgs),
    #[command(flatten)]
    Tool(Tool),
}

/// A workload, its repetitions, and the options of every run.
#[derive(Debug, ClapArgs)]
struct Run<W: ClapArgs, R: ClapArgs = Repeats> {
    #[command(flatten)]
    work: W,
    #[command(flatten)]
    repeats: R,
    #[command(flatten)]
    common: spec::Common,
    #[command(flatten)]
    output: Output,
}

impl<W: ClapArgs, R: ClapArgs + Repeated> Run<W, R> {
    /// Converts the options into an invocation.
    ///
    /// # Errors The text to print when there is nothing to run.
    fn invocation(
        mut self,
        env_dir: Option<&OsStr>,
        workload: impl FnOnce(W, &mut spec::Common) -> Result<Workload, Stop>,
    ) -> Result<Invocation, Stop> {
        let workload = workload(self.work, &mut self.common)?;
        if self.common.dir.is_none() {
            self.common.dir = invocation::env_dir(env_dir)?;
        }
        self.repeats.tell(&mut self.common);
        self.output.progress = self.output.progress.unless(self.output.quiet);
        let common = self.common;
        let spec = Spec { common, workload };
        Ok(Invocation::Run(Box::new(spec), self.output))
    }
}

/// The commands: they take milliseconds to describe, and are needed several times.
static COMMAND: LazyLock<clap::Command> = LazyLock::new(described);

/// Returns a copy of the commands, to be changed or to read a command line with.
pub fn command() -> clap::Command {
    COMMAND.clone()
}

/// Describes the commands. `mdtest`, `fio` and `ior` are here only for the list of commands and for
/// help: clap does not read their options.
fn described() -> clap::Command {
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

/// Returns true if this is a command of a series: one that can be resumed.
pub fn is_series(name: &OsStr) -> bool {
    let sub = COMMAND.find_subcommand(name);
    sub.is_some_and(|sub| sub.get_arguments().any(|arg| arg.get_id() == "resume"))
}

/// The error about a name that is not built in; `all` prints those that are.
fn unknown<'n>(what: &str, name: &str, names: impl Iterator<Item = &'n str>, all: &str) -> String {
    let near = nearest(name, names);
    let near = near.map_or_else(String::new, |near| format!(" (nearest: {near})"));
    let name = plain(name);
    format!("error: unknown {what} '{name}'{near}; {all} prints all\n")
}

/// Inserts the command that a path in the command's place means.
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
        let matches = command().try_get_matches_from(foreign::as_long_options(&argv));
        let matches = matches.map_err(|error| {
            let name = argv.get(1).and_then(|name| name.to_str());
            let sub = name.and_then(|name| COMMAND.find_subcommand(name));
            foreign::named(&argv, sub, error)
        })?;
        let start = match matches.subcommand() {
            // Only a program with debug assertions has an error for an unknown name.
            Some((_, sub)) if matches!(sub.try_contains_id("communicator"), Ok(true)) => {
                Start::from_arg_matches(sub)?
            }
            // A command of one process.
            _ => Start {
                communicator: Communicator::Solo,
                ..Start::default()
            },
        };
        let args = Args::from_arg_matches(&matches)?;
        Ok(Args { start, ..args })
    }

    pub fn invocation(self, env_dir: Option<&OsStr>) -> Result<Invocation, Stop> {
        match self.command {
            Command::Meta(run) => run.invocation(env_dir, |meta, _| Ok(Workload::Meta(meta))),
            Command::Ops(run) => run.invocation(env_dir, |ops, _| Ok(Workload::Ops(ops))),
            Command::Io(run) => run.invocation(env_dir, |io, _| Ok(Workload::Io(Box::new(io)))),
            Command::Find(run) => run.invocation(env_dir, |args, common| {
                common.dir = args.start.or(common.dir.take());
                Ok(Workload::Find(args.find))
            }),
            Command::Mix(run) => {
                run.invocation(env_dir, |args, _| Ok(Workload::Mix(Box::new(args.mix()?))))
            }
            Command::Replay(run) => {
                run.invocation(env_dir, |replay, _| Ok(Workload::Replay(replay)))
            }
            Command::Overview(overview) => Ok(overview.invocation()),
            Command::Quick(Runs {
                course: mut quick,
                options,
            }) => {
                if quick.dir.is_none() {
                    quick.dir = invocation::env_dir(env_dir)?;
                }
                Ok(options.with(Course::Quick(quick)))
            }
            Command::Sweep(sweep) => Ok(sweep.options.with(Course::Sweep(sweep.course))),
            Command::Knee(knee) => Ok(knee.options.with(Course::Knee(knee.course))),
            Command::Nn(nn) => Ok(nn.options.with(Course::Nn(nn.course))),
            Command::Suite(suite) => suite.invocation(env_dir),
            Command::Tool(Tool::Check(mut check)) => {
                if check.dirs.is_empty() {
                    check.dirs.extend(invocation::env_dir(env_dir)?);
                }
                Ok(Invocation::Tool(Tool::Check(check)))
            }
            Command::Tool(tool) => Ok(Invocation::Tool(tool)),
        }
    }
}
