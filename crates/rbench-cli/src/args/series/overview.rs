//! `rbench DIR`: an overview of a mount.

use clap::Args as ClapArgs;
use rbench_plan::suite::OVERVIEW;

use super::SeriesOptions;
use crate::Invocation;
use crate::series::{Course, Overview, Series, Suite, scale};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "rbench DIR is the same. It checks the promises of POSIX and Linux, runs operations, reads and \
    writes, prints what they say in a few sentences with the tables, and writes a page with charts. Everything that it makes below \
    DIR is removed. Under mpirun all hosts take part.\n\nExamples:\n  rbench /mnt/fs\n  mpirun -np 12 --hostfile myhost rbench \
    /mnt/fs --out overview.json"
)]
pub struct OverviewArgs {
    #[command(flatten)]
    overview: Overview,
    /// Multiply sizes and times by X, for example 0.5; the check of promises takes as long as ever
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = scale)]
    scale: f64,
    #[command(flatten)]
    pub options: SeriesOptions,
}

impl OverviewArgs {
    /// Converts the options into a series.
    pub fn invocation(self) -> Invocation {
        let course = Course::Suite(Suite {
            name: OVERVIEW.to_owned(),
            dir: Some(self.overview.dir.clone()),
            env_dir: None,
            ini: None,
            stonewall: None,
            scale: self.scale,
            dry_run: false,
        });
        Invocation::Series(Box::new(Series {
            overview: Some(self.overview),
            ..self.options.series(course)
        }))
    }
}
