//! What a command line asks for.

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

/// The directory that `RBENCH_DIR` names: only one, even if its name contains `@`.
///
/// # Errors
/// When the variable is set and empty.
pub fn env_dir(value: Option<&OsStr>) -> Result<Option<PathBuf>, Stop> {
    match value {
        Some(name) if name.is_empty() => Err(Stop {
            text: "error: RBENCH_DIR is set but empty: name a directory, or unset it\n".to_owned(),
            code: 2,
        }),
        value => Ok(value.map(PathBuf::from)),
    }
}

/// What was asked for.
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
    /// What the file system of a directory can do.
    Probe(Probe),
    /// Which promises the file system of a directory keeps.
    Check(Check),
    /// Hold a lock of a file until the standard input ends: for a check.
    HoldLock {
        /// Which kind, by its name.
        kind: String,
        /// The file.
        path: PathBuf,
    },
    /// What became of acknowledged writes.
    Verify(Verify),
    /// Removal of what interrupted runs left behind.
    Clean(Clean),
    /// What fio does beside running jobs.
    Fio(FioTool),
    /// Watch a run that goes on.
    Watch(WatchAt),
    /// Print the reports of result files or journals.
    Show(Show),
    /// Write a page of results.
    Report(Page),
    /// Print the completions of a shell.
    Completions(Shell),
    /// Print or write the man pages.
    Man {
        /// `--out`: the directory for them; `None`: the one of the program is printed.
        out: Option<PathBuf>,
    },
    /// Runs against each other or against published figures.
    Compare(Compare),
    /// Print the version, how the program was built, and its MPI library.
    Version,
}

/// What `rbench fio` does in place of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FioTool {
    /// Prints this.
    Print(String),
    /// `--inflate-log`: prints a compressed log as text.
    Inflate(PathBuf),
    /// `--crctest`: measures how fast these checksums are, by their names.
    Checksums(Vec<(&'static str, Checksum)>),
    /// `--cpuclock-test`: compares the processors' counters.
    ClockTest,
    /// `--idle-prof=calibrate`: measures how fast processors are.
    Calibrate,
}
