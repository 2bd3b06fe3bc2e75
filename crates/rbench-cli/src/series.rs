//! Several workloads in one launch: which runs, and where their results go.

use std::ffi::OsString;
use std::path::PathBuf;

use rbench_plan::knee::Asked;
use rbench_plan::quick::Quick;
use rbench_plan::series::Over;

use crate::live::Serve;
use crate::output::{Format, Progress};

/// Several runs from one launch, and where their results go.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Which runs.
    pub course: Course,
    /// `rbench DIR`: what is done beside the runs.
    pub overview: Option<Overview>,
    /// `--out`
    pub out: Option<PathBuf>,
    /// `--resume`: go on where the series in `out` was stopped.
    pub resume: bool,
    /// `--overwrite`: what rbench has written at `out` may be replaced.
    pub overwrite: bool,
    /// `--format`
    pub format: Format,
    /// `--label`, in the order given.
    pub labels: Vec<(String, String)>,
    /// `--progress`; `Off` with `--quiet`.
    pub progress: Progress,
    /// `--quiet`: no notes on stderr.
    pub quiet: bool,
    /// Where the present run can be watched.
    pub serve: Serve,
}

/// `rbench DIR`: the promises of the directory's file system are checked, and a page is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    /// The directory.
    pub dir: PathBuf,
    /// `--html`; `None`: a file of the working directory that is named after the series.
    pub html: Option<PathBuf>,
}

/// Which runs a series has.
#[derive(Debug, Clone, PartialEq)]
pub enum Course {
    /// `rbench sweep`
    Sweep(Sweep),
    /// `rbench knee`
    Knee(Knee),
    /// `rbench nn`
    Nn(rbench_plan::nn::Asked),
    /// `rbench quick`; caches are dropped unless that is not wanted.
    Quick(Quick),
    /// `rbench suite`
    Suite(Suite),
}

/// `rbench sweep`: a workload with every combination of some values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// `--over`, in the order given.
    pub over: Vec<Over>,
    /// The workload and its options.
    pub words: Vec<OsString>,
}

/// `rbench knee`
#[derive(Debug, Clone, PartialEq)]
pub struct Knee {
    /// Its options.
    pub asked: Asked,
    /// The workload and its options.
    pub words: Vec<OsString>,
}

/// `rbench suite`
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// A built-in suite, or a file (see [`is_file`]).
    pub name: String,
    /// `--dir`
    pub dir: Option<PathBuf>,
    /// `RBENCH_DIR`
    pub env_dir: Option<PathBuf>,
    /// `--ini`, of `io500` only.
    pub ini: Option<PathBuf>,
    /// `--stonewall`, in whole seconds from 1 on; of `io500` only.
    pub stonewall_s: Option<u64>,
    /// `--scale`: above 0, at most 1.
    pub scale: f64,
    /// `--dry-run`: the cells are only printed.
    pub dry_run: bool,
}

/// Whether a suite is named by its file.
pub fn is_file(name: &str) -> bool {
    name.ends_with(".toml") || name.contains('/')
}
