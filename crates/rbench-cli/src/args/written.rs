//! The files of results that the native commands write.

use std::path::PathBuf;

use clap::Args as ClapArgs;

/// Where results go. The name of the group that `--overwrite` needs is the type's.
#[derive(Debug, ClapArgs)]
pub struct Written {
    /// Write the result to FILE (JSON)
    ///
    /// During the run, finished phases are in FILE.journal. If FILE is a directory, the
    /// file in it is named after the run.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Write an HdrHistogram interval log of all ranks' latencies to FILE during the run
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub hlog: Option<PathBuf>,
}
