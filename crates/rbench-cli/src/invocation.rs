//! Results of reading a command line.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap_complete::Shell;
use rbench_plan::Spec;
use rbench_plan::jobs::Checksum;

use crate::live::WatchAt;
use crate::output::{Output, Stop};
use crate::series::Series;

mod after;
mod check;
mod results;
mod testfs;

pub use after::{Clean, Verify};
pub use check::{Check, CheckFormat, Probe};
pub use results::{Compare, CompareFormat, Page, Show, ShowFormat};
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
    /// The built-in file system in the foreground.
    Testfs(Testfs),
    /// `rbench record`
    Record(Record),
    /// Probe the abilities of a directory's file system.
    Probe(Probe),
    /// Check the promises of a directory's file system.
    Check(Check),
    /// Hold a lock of a file until the standard input ends; a check uses it.
    HoldLock {
        /// The kind of lock, by its name.
        kind: String,
        /// The file.
        path: PathBuf,
    },
    /// Check acknowledged writes after a crash.
    Verify(Verify),
    /// Remove directories that interrupted runs left behind.
    Clean(Clean),
    /// Run one of fio's tools instead of jobs.
    Fio(FioTool),
    /// Watch a running run.
    Watch(WatchAt),
    /// Print the reports of result files or journals.
    Show(Show),
    /// Write a page of results.
    Report(Page),
    /// Print the completions of a shell.
    Completions(Shell),
    /// Print or write the man pages.
    Man {
        /// `--out`: the directory to write to; `None`: print the program's man page.
        out: Option<PathBuf>,
    },
    /// Compare runs with each other or with published figures.
    Compare(Compare),
    /// Print the version, how the program was built, and its MPI library.
    Version,
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
