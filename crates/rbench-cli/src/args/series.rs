//! The options of commands that run several workloads in one launch.

use clap::Args as ClapArgs;

use crate::Invocation;
use crate::series::{Course, Series, SeriesOptions};

mod overview;
mod suite;

pub use overview::OverviewArgs;
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

/// The runs of a series, and the options that all series share.
#[derive(Debug, ClapArgs)]
pub struct Runs<C: ClapArgs> {
    #[command(flatten)]
    pub course: C,
    #[command(flatten)]
    pub options: SeriesOptions,
}
