//! The options of commands that run several workloads in one launch.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr as _;

use clap::Args as ClapArgs;
use rbench_plan::series::Over;

use super::{ServeArgs, StartArgs};
use crate::series::{Course, Series, Sweep};
use crate::{Format, Invocation, Progress, values};

mod knee;
mod nn;
mod overview;
mod quick;
mod suite;

pub use knee::KneeArgs;
pub use nn::NnArgs;
pub use overview::OverviewArgs;
pub use quick::QuickArgs;
pub use suite::SuiteArgs;

/// What all series have in common.
#[derive(Debug, ClapArgs)]
pub struct SeriesOptions {
    /// Write all results to FILE (JSON)
    ///
    /// During the series, finished runs are in FILE.journal. If FILE is a directory, the
    /// file in it is named after the series.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Continue the stopped series in --out: keep finished runs and run the others
    #[arg(long, requires = "out", help_heading = "Output")]
    resume: bool,
    /// Replace the file of --out if rbench wrote it; other files are never replaced
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
    #[arg(long, value_name = "K=V", value_parser = values::label, help_heading = "Output")]
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
    #[command(flatten)]
    serve: ServeArgs,
    /// Print only the report and errors: no progress, no notes
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    pub start: StartArgs,
}

impl SeriesOptions {
    /// A series of these runs.
    pub fn with(self, course: Course) -> Invocation {
        Invocation::Series(Box::new(self.series(course)))
    }

    fn series(self, course: Course) -> Series {
        Series {
            course,
            overview: None,
            out: self.out,
            resume: self.resume,
            overwrite: self.overwrite,
            format: self.format,
            labels: self.label,
            progress: self.progress.unless(self.quiet),
            quiet: self.quiet,
            serve: self.serve.into(),
        }
    }
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "A KEY is an option of the workload without its dashes (bs, iodepth, n), or selects launched \
    ranks: hosts (the first N), ranks-per-host, ranks (spread over the hosts). A switch takes on and off. All \
    combinations of the values are run; the last key changes fastest.\n\nExamples:\n  mpirun -np 12 --hostfile \
    myhost rbench sweep --over hosts=1,2,3 --over threads=1,4 --over bs=4k,128k \\\n    --out sweep.json -- io \
    --dir /mnt/fs --rw randread --time 30\n  rbench sweep --over iodepth=1,4,16 -- fio --name=a --rw=randread \
    --size=1g --ioengine=libaio"
)]
pub struct SweepArgs {
    /// Key to vary and its values; may be repeated
    #[arg(long, required = true, value_name = "KEY=V1,V2,…", value_parser = Over::from_str)]
    over: Vec<Over>,
    /// Workload: io, meta, ops, mdtest or fio, with its options
    #[arg(last = true, required = true, value_name = "WORKLOAD")]
    words: Vec<OsString>,
    #[command(flatten)]
    pub options: SeriesOptions,
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
