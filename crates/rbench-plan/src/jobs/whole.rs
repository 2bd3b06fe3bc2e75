//! What is asked for of the whole run, beside its jobs.

use std::path::PathBuf;

use rbench_core::Nanos;

/// Switches of fio's command line that change what is done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Whole {
    /// `--idle-prof`: how long processors have nothing to do is reported.
    pub idle: bool,
    /// `--bandwidth-log`: what all workers move together is logged.
    pub rates: bool,
    /// `--aux-path`: where states and dumps of verified jobs go; empty: the working directory.
    pub aux: PathBuf,
    /// `--trigger` and its like.
    pub trigger: Trigger,
    /// After so long no further iteration begins.
    pub time_max: Option<Nanos>,
}

/// What ends the run early, and is done then.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trigger {
    /// `--trigger-file`: when rank 0 sees this file; it is removed.
    pub file: Option<PathBuf>,
    /// `--trigger-timeout`: so long after the first job has begun.
    pub after: Option<Nanos>,
    /// `--trigger`: what rank 0 runs when all workers have stopped.
    pub command: Option<String>,
    /// `--trigger-remote`: what one rank of each other host runs then.
    pub remote: Option<String>,
}

impl Trigger {
    /// Whether anything can set it off.
    pub fn is_set(&self) -> bool {
        self.file.is_some() || self.after.is_some()
    }
}
