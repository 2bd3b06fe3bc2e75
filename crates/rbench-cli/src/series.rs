//! Several workloads in one launch: the runs, and the place of their results.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr as _;

use clap::Args;
use rbench_plan::knee::Asked;
use rbench_plan::quick::Quick;
use rbench_plan::series::Over;
use rbench_plan::values;

use crate::live::Serve;
use crate::output::{Format, Progress, Start};

/// Several runs from one launch, and the place of their results.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The runs.
    pub course: Course,
    /// `rbench DIR`: work besides the runs.
    pub overview: Option<Overview>,
    /// The place of its results.
    pub options: SeriesOptions,
}

/// Options that all series share.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "Output")]
pub struct SeriesOptions {
    /// Write all results to FILE (JSON)
    ///
    /// During the series, finished runs are in FILE.journal. If FILE is a directory, the
    /// file in it is named after the series.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Continue the stopped series in --out: keep finished runs and run the others
    ///
    /// rbench --resume FILE, with nothing else, takes the command line from FILE.
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Replace the file of --out if rbench wrote it; other files are never replaced
    #[arg(long, requires = "out", conflicts_with = "resume")]
    pub overwrite: bool,
    /// Format of the report on stdout
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Add the label key=value to the result; may be repeated
    #[arg(id = "label", long = "label", value_name = "K=V", value_parser = values::label)]
    pub labels: Vec<(String, String)>,
    /// How rank 0 shows progress on stderr
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub progress: Progress,
    /// Address at which the present run can be watched.
    #[command(flatten)]
    pub serve: Serve,
    /// Print only the report and errors: no progress, no notes
    #[arg(long, short)]
    pub quiet: bool,
    /// Start of the ranks.
    #[command(flatten)]
    pub start: Start,
}

/// `rbench DIR`: checks the promises of the directory's file system, and writes a page.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Overview {
    /// Directory to test
    #[arg(value_name = "DIR", value_parser = values::directory())]
    pub dir: PathBuf,
    /// Write the page to FILE [default: rbench-RUN.html in the working directory]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
}

/// The runs of a series.
#[derive(Debug, Clone, PartialEq)]
pub enum Course {
    /// `rbench sweep`
    Sweep(Sweep),
    /// `rbench knee`
    Knee(Knee),
    /// `rbench nn`
    Nn(rbench_plan::nn::Asked),
    /// `rbench quick`; drops caches unless an option forbids it.
    Quick(Quick),
    /// `rbench suite`
    Suite(Suite),
}

/// `rbench sweep`: one workload with every combination of some values.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Sweep {
    /// Key to vary and its values; may be repeated
    #[arg(long, required = true, value_name = "KEY=V1,V2,…", value_parser = Over::from_str)]
    pub over: Vec<Over>,
    /// Workload: io, meta, mix, ops, mdtest or fio, with its options
    #[arg(last = true, required = true, value_name = "WORKLOAD")]
    pub words: Vec<OsString>,
}

/// `rbench knee`
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Knee {
    /// Its options.
    #[command(flatten)]
    pub asked: Asked,
    /// Workload: io, meta, mix or fio, with its options except rate and time
    #[arg(last = true, required = true, value_name = "WORKLOAD")]
    pub words: Vec<OsString>,
}

/// `rbench suite`
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Suite {
    /// A built-in suite, or a file (see [`is_file`]).
    #[arg(skip)]
    pub name: String,
    /// Directory to test [default: RBENCH_DIR, else a built-in in-memory file system as a
    /// demo]
    #[arg(long, value_name = "DIR", value_parser = values::directory())]
    pub dir: Option<PathBuf>,
    /// `RBENCH_DIR`
    #[arg(skip)]
    pub env_dir: Option<PathBuf>,
    /// Multiply the numbers, sizes and times that the suite marks as variable by X, such as
    /// 0.1; the result records it
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = scale)]
    pub scale: f64,
    /// io500 only: read settings from this file, in IO500's format (--show io500 prints
    /// all)
    #[arg(long, value_name = "FILE", help_heading = "io500")]
    pub ini: Option<PathBuf>,
    /// io500 only: duration of phases that write (s) [default: that of --ini, or 300]
    #[arg(long, value_name = "TIME", value_parser = whole_seconds, help_heading = "io500")]
    pub stonewall: Option<u64>,
    /// Print the cells and an estimate of the time without running anything
    #[arg(long)]
    pub dry_run: bool,
}

/// Returns true if this names a suite or a profile by its file.
pub fn is_file(name: &str) -> bool {
    name.ends_with(".toml") || name.contains('/')
}

fn whole_seconds(text: &str) -> Result<u64, String> {
    let time = values::time(text)?.0;
    match time.is_multiple_of(SECOND) && time > 0 {
        true => Ok(time / SECOND),
        false => Err(format!(
            "'{text}' is not a whole number of seconds (at least 1)"
        )),
    }
}

/// A second, ns.
const SECOND: u64 = 1_000_000_000;

pub(crate) fn scale(text: &str) -> Result<f64, String> {
    let scale = text.parse().ok();
    scale
        .filter(|scale| *scale > 0.0 && *scale <= 1.0)
        .ok_or_else(|| format!("'{text}' is not a number above 0 and at most 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_a_part() {
        assert_eq!(scale("0.01"), Ok(0.01));
        for wrong in ["0", "-1", "1.5", "x", "nan"] {
            assert!(scale(wrong).is_err(), "{wrong}");
        }
    }
}
