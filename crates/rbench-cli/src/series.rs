//! Commands that run several workloads in one launch.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr as _;

use clap::Args as ClapArgs;
use rbench_plan::quick::Quick;
use rbench_plan::series::Over;

use crate::args::StartArgs;
use crate::{Format, Invocation, Progress};

mod knee;
mod nn;

pub use knee::Knee;
pub(crate) use knee::KneeArgs;
pub(crate) use nn::NnArgs;
mod quick;
mod suite;

pub(crate) use quick::QuickArgs;
pub(crate) use suite::SuiteArgs;
pub use suite::{Suite, is_file};

/// Several runs from one launch, and where their results go.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Which runs.
    pub course: Course,
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

/// What all series have in common.
#[derive(Debug, ClapArgs)]
pub(crate) struct SeriesOptions {
    /// Write all results to FILE (JSON), or into a directory under the name of the
    /// series; during the series, finished runs are in FILE.journal
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Go on with the series in --out that was stopped: finished runs are kept,
    /// the others run
    #[arg(long, requires = "out", help_heading = "Output")]
    resume: bool,
    /// Replace what rbench itself has written at --out, and nothing else
    #[arg(
        long,
        requires = "out",
        conflicts_with = "resume",
        help_heading = "Output"
    )]
    overwrite: bool,
    /// Format of the report on stdout
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        help_heading = "Output"
    )]
    format: Format,
    /// Add the label key=value to the result; may be repeated
    #[arg(long, value_name = "K=V", value_parser = crate::values::label, help_heading = "Output")]
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
    /// Print only the report and errors: no progress, no notes
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    pub start: StartArgs,
}

impl SeriesOptions {
    /// A series of these runs.
    pub fn with(self, course: Course) -> Invocation {
        Invocation::Series(Box::new(Series {
            course,
            out: self.out,
            resume: self.resume,
            overwrite: self.overwrite,
            format: self.format,
            labels: self.label,
            progress: self.progress.unless(self.quiet),
            quiet: self.quiet,
        }))
    }
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "A KEY is an option of the workload without its dashes (bs, iodepth, n), or selects among \
    the launched ranks: hosts (the first so many), ranks-per-host, ranks (spread over the hosts). A switch \
    takes on and off. Every combination of the values is run, the last key's changing fastest.\n\nExamples:\n  \
    mpirun -np 12 --hostfile myhost rbench sweep --over hosts=1,2,3 --over threads=1,4 --over bs=4k,128k \\\n    \
    --out sweep.json -- io --dir /mnt/fs --rw randread --time 30\n  rbench sweep --over iodepth=1,4,16 -- fio \
    --name=a --rw=randread --size=1g --ioengine=libaio"
)]
pub(crate) struct SweepArgs {
    /// What to vary and its values; may be repeated
    #[arg(long, required = true, value_name = "KEY=V1,V2,…", value_parser = Over::from_str)]
    over: Vec<Over>,
    /// The workload: io, meta, ops, mdtest or fio, with its options
    #[arg(last = true, required = true, value_name = "WORKLOAD")]
    words: Vec<OsString>,
    #[command(flatten)]
    pub(crate) options: SeriesOptions,
}

impl SweepArgs {
    /// What it asks for.
    pub fn invocation(self) -> Invocation {
        self.options.with(Course::Sweep(Sweep {
            over: self.over,
            words: self.words,
        }))
    }
}
