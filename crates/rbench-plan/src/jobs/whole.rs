//! Options of the whole run, in addition to its jobs.

use std::path::PathBuf;

use rbench_core::Nanos;

/// Options of fio's command line that affect the run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Whole {
    /// `--idle-prof`: the idle time of processors is reported.
    pub idle: bool,
    /// `--bandwidth-log`: the bytes that all workers move are logged.
    pub rates: bool,
    /// `--aux-path`: the directory for states and dumps of verified jobs; empty: the working
    /// directory.
    pub aux: PathBuf,
    /// `--trigger` and related options.
    pub trigger: Trigger,
    /// Time after which no further iteration starts.
    pub time_max: Option<Nanos>,
}

/// Condition that ends the run early, and the commands that are run then.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trigger {
    /// `--trigger-file`: rank 0 ends the run when this file exists, and removes it.
    pub file: Option<PathBuf>,
    /// `--trigger-timeout`: time after the start of the first job.
    pub after: Option<Nanos>,
    /// `--trigger`: the command that rank 0 runs when all workers have stopped.
    pub command: Option<String>,
    /// `--trigger-remote`: the command that one rank of each other host runs then.
    pub remote: Option<String>,
}

impl Trigger {
    /// True if it has a condition.
    pub fn is_set(&self) -> bool {
        self.file.is_some() || self.after.is_some()
    }
}
