//! The commands, and the options of the native ones.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Args as ClapArgs, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;
use rbench_plan::spec::{self, Spec, Workload};

use crate::invocation::{Check, Clean, Compare, Page, Probe, Record, Show, Testfs, Verify};
use crate::live::{WatchAt, watch_at};
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
use series::{KneeArgs, NnArgs, OverviewArgs, QuickArgs, SuiteArgs, SweepArgs};

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
    Quick(QuickArgs),
    /// Run one workload with every combination of the given option values
    Sweep(SweepArgs),
    /// Run NNBench's operations with more and more workers to find where they stop scaling
    Nn(NnArgs),
    /// Find the highest rate at which response times meet an objective
    Knee(KneeArgs),
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
    /// Report what a mount supports on every host: O_DIRECT, mmap, locks, names …
    Probe(Probe),
    /// Test one by one whether a mount keeps the promises of POSIX and Linux
    Check(Check),
    /// Run a program on a directory and record its file operations for rbench replay
    Record(Record),
    /// Mount the built-in FUSE file system in the foreground
    Testfs(Testfs),
    /// Watch a run that was started with --serve
    #[command(
        after_help = "Shows a row for each operation and each host of the current phase, the hosts that wait \
        longest first, and curves of the rate and the 99th percentile.\n\nKeys: q quits, and the run continues; s \
        and then y stops the run, which then reports what it has measured.\n\nExample:\n  mpirun -np 12 --hostfile \
        myhost rbench meta --dir /mnt/fs --serve 127.0.0.1:9180\n  rbench watch 127.0.0.1:9180"
    )]
    Watch {
        /// Address given to --serve of the run, as HOST:PORT or unix:PATH
        #[arg(value_name = "ADDR", value_parser = watch_at)]
        at: WatchAt,
    },
    /// Print the reports of result files or of the journals of unfinished runs
    Show(Show),
    /// Write a self-contained HTML page of results with charts
    Report(Page),
    /// Compare runs with each other or with published figures
    Compare(Compare),
    /// Print the version, the build and the MPI library
    Version,
    /// Check after a crash the writes that --ack-journal of rbench io or fio recorded
    Verify(Verify),
    /// Remove directories left behind by interrupted runs
    Clean(Clean),
    /// Print completions for a shell
    #[command(
        after_help = "Examples:\n  rbench completions bash >/etc/bash_completion.d/rbench\n  rbench completions zsh \
        >/usr/local/share/zsh/site-functions/_rbench\n  rbench completions fish >~/.config/fish/completions/rbench.fish"
    )]
    Completions {
        /// Shell to print completions for
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the man page, or write one for each command
    #[command(
        after_help = "Examples:\n  rbench man | man -l -\n  rbench man --out /usr/local/share/man/man1"
    )]
    Man {
        /// Write rbench.1, rbench-io.1 … into this existing directory; existing files are not
        /// replaced
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
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

/// The commands. `mdtest`, `fio` and `ior` are here only for the list of commands and for help:
/// clap does not read their options.
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

/// Returns true if this is a command of a series: one that can be resumed.
pub fn is_series(name: &OsStr) -> bool {
    let command = command();
    let sub = command.find_subcommand(name);
    sub.is_some_and(|sub| sub.get_arguments().any(|arg| arg.get_id() == "resume"))
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
            Command::Meta(run) => run.output.start,
            Command::Ops(run) => run.output.start,
            Command::Io(run) => run.output.start,
            Command::Find(run) => run.output.start,
            Command::Mix(run) => run.output.start,
            Command::Replay(run) => run.output.start,
            Command::Overview(overview) => overview.options.start,
            Command::Quick(quick) => quick.options.start,
            Command::Sweep(sweep) => sweep.options.start,
            Command::Knee(knee) => knee.options.start,
            Command::Nn(nn) => nn.options.start,
            Command::Suite(suite) => suite.options.start,
            Command::Probe(probe) => probe.start,
            Command::Check(check) => check.start,
            Command::Clean(clean) => clean.start,
            Command::Testfs(_)
            | Command::Watch { .. }
            | Command::Record(_)
            | Command::Show(_)
            | Command::Compare(_)
            | Command::Version
            | Command::Report(_)
            | Command::Verify(_)
            | Command::Completions { .. }
            | Command::Man { .. } => Start {
                communicator: Communicator::Solo,
                ..Start::default()
            },
        }
    }

    pub fn invocation(self, env_dir: Option<&OsStr>) -> Result<Invocation, Stop> {
        Ok(match self.command {
            Command::Meta(run) => {
                return run.invocation(env_dir, |meta, _| Ok(Workload::Meta(meta)));
            }
            Command::Ops(run) => {
                return run.invocation(env_dir, |ops, _| Ok(Workload::Ops(ops)));
            }
            Command::Io(run) => {
                return run.invocation(env_dir, |io, _| Ok(Workload::Io(Box::new(io))));
            }
            Command::Find(run) => {
                return run.invocation(env_dir, |args, common| {
                    common.dir = args.start.or(common.dir.take());
                    Ok(Workload::Find(args.find))
                });
            }
            Command::Mix(run) => {
                return run.invocation(env_dir, |args, _| Ok(Workload::Mix(Box::new(args.mix()?))));
            }
            Command::Replay(run) => {
                return run.invocation(env_dir, |replay, _| Ok(Workload::Replay(replay)));
            }
            Command::Overview(overview) => overview.invocation(),
            Command::Quick(quick) => quick.invocation(env_dir)?,
            Command::Sweep(sweep) => sweep.invocation(),
            Command::Knee(knee) => knee.invocation(),
            Command::Nn(nn) => nn.invocation(),
            Command::Suite(suite) => suite.invocation(env_dir)?,
            Command::Probe(probe) => Invocation::Probe(probe),
            Command::Check(mut check) => {
                if check.dirs.is_empty() {
                    check.dirs.extend(invocation::env_dir(env_dir)?);
                }
                Invocation::Check(check)
            }
            Command::Testfs(testfs) => Invocation::Testfs(testfs),
            Command::Watch { at } => Invocation::Watch(at),
            Command::Record(record) => Invocation::Record(record),
            Command::Show(show) => Invocation::Show(show),
            Command::Report(page) => Invocation::Report(page),
            Command::Completions { shell } => Invocation::Completions(shell),
            Command::Man { out } => Invocation::Man { out },
            Command::Compare(compare) => Invocation::Compare(compare),
            Command::Version => Invocation::Version,
            Command::Verify(verify) => Invocation::Verify(verify),
            Command::Clean(clean) => Invocation::Clean(clean),
        })
    }
}
