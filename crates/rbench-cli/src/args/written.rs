//! The files of results that the native commands write.

use std::path::PathBuf;

use clap::Args as ClapArgs;

/// Where results go. The name of the group that `--overwrite` needs is the type's.
#[derive(Debug, ClapArgs)]
pub struct Written {
    /// Write the result to FILE (JSON); during the run, finished phases are in
    /// FILE.journal. In a directory the file is named after the run
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Write the latencies of each interval of all ranks to FILE while the run goes on, as
    /// an interval log of HdrHistogram
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub hlog: Option<PathBuf>,
}
