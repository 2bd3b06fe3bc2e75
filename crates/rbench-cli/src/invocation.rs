//! Results of reading a command line.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::Subcommand;
use clap_complete::Shell;
use rbench_plan::Spec;
use rbench_plan::jobs::Checksum;

use crate::live::{WatchAt, watch_at};
use crate::output::{Output, Stop};
use crate::series::Series;

mod after;
mod check;
mod results;
mod testfs;

pub use after::{Clean, Verify};
pub use check::{Check, CheckFormat, Probe};
pub use results::{Compare, CompareFormat, Page, Show, ShowFormat, value_name};
pub use testfs::{PowerCut, Record, Testfs};

/// Reads the directory in `RBENCH_DIR`: only one, even if its name contains `@`.
///
/// # Errors When the variable is set and empty.
pub fn env_dir(value: Option<&OsStr>) -> Result<Option<PathBuf>, Stop> {
    match value {
        Some(name) if name.is_empty() => Err(Stop::misuse(
            "error: RBENCH_DIR is set but empty: name a directory, or unset it\n".to_owned(),
        )),
        value => Ok(value.map(PathBuf::from)),
    }
}

/// The action that a command line requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Invocation {
    /// A workload.
    Run(Box<Spec>, Output),
    /// Several workloads, one after the other.
    Series(Box<Series>),
    /// Anything else.
    Tool(Tool),
}

/// A command without a workload.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum Tool {
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
    /// Holds a lock of a file until the standard input ends; a check uses it.
    #[command(skip)]
    HoldLock {
        /// The kind of lock, by its name.
        kind: String,
        /// The file.
        path: PathBuf,
    },
    /// Runs one of fio's tools instead of jobs.
    #[command(skip)]
    Fio(FioTool),
}

/// A tool of `rbench fio` that runs instead of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FioTool {
    /// Prints this.
    Print(String),
    /// `--inflate-log`: prints a compressed log as text.
    Inflate(PathBuf),
    /// `--crctest`: measures the speed of these checksums, by their names.
    Checksums(Vec<(&'static str, Checksum)>),
    /// `--cpuclock-test`: compares the processors' counters.
    ClockTest,
    /// `--idle-prof=calibrate`: measures the speed of the processors.
    Calibrate,
}
