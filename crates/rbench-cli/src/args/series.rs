//! The options of commands that run several workloads in one launch.

use std::ffi::OsString;
use std::str::FromStr as _;

use clap::Args as ClapArgs;
use rbench_plan::series::Over;

use crate::Invocation;
use crate::series::{Course, Series, SeriesOptions, Sweep};

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

impl SeriesOptions {
    /// Combines the options with these runs.
    pub fn with(self, course: Course) -> Invocation {
        Invocation::Series(Box::new(self.series(course)))
    }

    fn series(mut self, course: Course) -> Series {
        self.progress = self.progress.unless(self.quiet);
        Series {
            course,
            overview: None,
            options: self,
        }
    }
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "A KEY is an option of the workload without its dashes (bs, iodepth, n), or selects launched \
    ranks: hosts (the first N), ranks-per-host, ranks (spread over the hosts). A switch takes on and off. All \
    combinations of the values are run; the last key changes fastest.\n\nExamples:\n  mpirun -np 12 --hostfile \
    myhost rbench sweep --over hosts=1,2,3 --over threads=1,4 \\\n    --over bs=4k,128k --out sweep.json -- io \
    --dir /mnt/fs --rw randread --time 30\n  rbench sweep --over iodepth=1,4,16 -- fio --name=a --rw=randread \
    --size=1g --ioengine=libaio"
)]
pub struct SweepArgs {
    /// Key to vary and its values; may be repeated
    #[arg(long, required = true, value_name = "KEY=V1,V2,…", value_parser = Over::from_str)]
    over: Vec<Over>,
    /// Workload: io, meta, mix, ops, mdtest or fio, with its options
    #[arg(last = true, required = true, value_name = "WORKLOAD")]
    words: Vec<OsString>,
    #[command(flatten)]
    pub options: SeriesOptions,
}

impl SweepArgs {
    /// Converts the options into an invocation.
    pub fn invocation(self) -> Invocation {
        self.options.with(Course::Sweep(Sweep {
            over: self.over,
            words: self.words,
        }))
    }
}
