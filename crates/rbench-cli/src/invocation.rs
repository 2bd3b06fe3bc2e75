//! What a command line asks for.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap_complete::Shell;
use rbench_core::{Bytes, Nanos};
use rbench_plan::Spec;
use rbench_plan::jobs::Checksum;

use crate::live::WatchAt;
use crate::output::{Format, Output, Stop};
use crate::series::Series;

/// The directory that `RBENCH_DIR` names: only one, even if its name contains `@`.
///
/// # Errors
/// When the variable is set and empty.
pub fn env_dir(value: Option<&OsStr>) -> Result<Option<PathBuf>, Stop> {
    match value {
        Some(name) if name.is_empty() => Err(Stop {
            text: "error: RBENCH_DIR is set but empty: name a directory, or unset it\n".to_owned(),
            code: 2,
        }),
        value => Ok(value.map(PathBuf::from)),
    }
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Invocation {
    /// A workload.
    Run(Box<Spec>, Output),
    /// Several workloads, one after the other.
    Series(Box<Series>),
    /// The built-in file system in the foreground.
    Testfs(Testfs),
    /// `rbench record`
    Record(Record),
    /// What the file system of a directory can do.
    Probe(Probe),
    /// Which promises the file system of a directory keeps.
    Check(Check),
    /// Hold a lock of a file until the standard input ends: for a check.
    HoldLock {
        /// Which kind, by its name.
        kind: String,
        /// The file.
        path: PathBuf,
    },
    /// What became of acknowledged writes.
    Verify(Verify),
    /// Removal of what interrupted runs left behind.
    Clean(Clean),
    /// What fio does beside running jobs.
    Fio(FioTool),
    /// Watch a run that goes on.
    Watch(WatchAt),
    /// Print the reports of result files or journals.
    Show(Show),
    /// Write a page of results.
    Report(Page),
    /// Print the completions of a shell.
    Completions(Shell),
    /// Print or write the man pages.
    Man {
        /// `--out`: the directory for them; `None`: the one of the program is printed.
        out: Option<PathBuf>,
    },
    /// Runs against each other or against published figures.
    Compare(Compare),
    /// Print the version, how the program was built, and its MPI library.
    Version,
}

/// `rbench report`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Result files or journals, at least one.
    pub files: Vec<PathBuf>,
    /// `--html`
    pub html: PathBuf,
    /// `--overwrite`: a page of rbench may be replaced.
    pub overwrite: bool,
}

/// `rbench compare`
#[derive(Debug, Clone, PartialEq)]
pub struct Compare {
    /// BASE and NEW; with `published` only NEW.
    pub files: Vec<PathBuf>,
    /// `--base`: further runs of BASE.
    pub more_bases: Vec<PathBuf>,
    /// `--published`, unparsed: `SET/COLUMN` or `list`.
    pub published: Option<String>,
    /// `--min-effect`, as a share.
    pub min_effect: Option<f64>,
    /// `--confidence`, as a share below 1.
    pub confidence: Option<f64>,
    /// `--fail-if`, unparsed, in the order given.
    pub fail_if: Vec<String>,
    /// `--even-if-different`
    pub even_if_different: bool,
    /// `--format`
    pub format: CompareFormat,
}

/// The format of a comparison on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum CompareFormat {
    /// Tables for people
    #[default]
    Text,
    /// Tables for a pull request
    Md,
    /// Everything, for programs
    Json,
    /// A line for each figure
    Csv,
}

/// `rbench probe`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The directory.
    pub dir: PathBuf,
    /// `--format`
    pub format: Format,
    /// `--quiet`: no progress on stderr.
    pub quiet: bool,
}

/// `rbench check`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Check {
    /// `--dir`, else `RBENCH_DIR`: mounts of one file system, one for each rank of a host in
    /// turn; none where nothing was given.
    pub dirs: Vec<PathBuf>,
    /// `--hosts`: how many hosts take part; `None`: all.
    pub hosts: Option<u32>,
    /// `--under-load`: beside other work.
    pub under_load: bool,
    /// `--only`: patterns of names; empty: all.
    pub only: Vec<String>,
    /// `--list`: print what there is, and try nothing.
    pub list: bool,
    /// `--expect`: a file, or the name of a preset.
    pub expect: Option<PathBuf>,
    /// `--seed`
    pub seed: Option<u64>,
    /// `--time-limit`: of one promise.
    pub time_limit: Option<Nanos>,
    /// `--format`
    pub format: CheckFormat,
    /// `--quiet`: no progress on stderr.
    pub quiet: bool,
}

/// The format of what `rbench check` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum CheckFormat {
    /// Tables for people
    #[default]
    Text,
    /// Everything, for programs
    Json,
    /// JUnit's XML
    Junit,
    /// The Test Anything Protocol
    Tap,
}

/// `rbench verify`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verify {
    /// Journals of `--ack-journal`, at least one.
    pub journals: Vec<PathBuf>,
    /// `--dir`: where the runs' directories are now; `None`: where they were.
    pub dir: Option<PathBuf>,
    /// `--format`
    pub format: Format,
}

/// `rbench clean`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clean {
    /// Where the runs worked.
    pub dir: PathBuf,
    /// Also what runs of other hosts left; whether those have ended cannot be
    /// known here.
    pub force: bool,
    /// Also what runs were told to keep.
    pub kept: bool,
    /// Only print what would be removed.
    pub dry_run: bool,
    /// `--threads`: of each rank.
    pub threads: u32,
    /// `--quiet`: no progress on stderr.
    pub quiet: bool,
}

/// `rbench show`
#[derive(Debug, Clone, PartialEq)]
pub struct Show {
    /// The files, at least one.
    pub files: Vec<PathBuf>,
    /// How.
    pub format: ShowFormat,
    /// `--only`: rows by name; empty: all.
    pub only: Vec<String>,
    /// `--details`: text shows everything.
    pub details: bool,
}

/// A form in which `rbench show` prints results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ShowFormat {
    /// Tables for people
    #[default]
    Text,
    /// The content of the result file
    Json,
    /// A row for each operation
    Csv,
    /// A row for each host of each operation
    CsvHosts,
    /// A row for each rank of each operation
    CsvRanks,
    /// A row for each interval of each operation
    CsvIntervals,
    /// A row for each mark of each operation
    CsvMarks,
    /// Markdown
    Md,
    /// Percentiles, for HdrHistogram plotters
    Hgrm,
    /// OpenMetrics, for Prometheus and compatible tools
    Openmetrics,
    /// mdtest's tables (runs of rbench mdtest)
    Mdtest,
    /// fio's report (runs of rbench fio)
    Fio,
    /// fio's report in JSON (--output-format=json)
    FioJson,
}

impl ShowFormat {
    /// Its name on the command line.
    pub fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self);
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// What `rbench fio` does in place of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FioTool {
    /// Prints this.
    Print(String),
    /// `--inflate-log`: prints a compressed log as text.
    Inflate(PathBuf),
    /// `--crctest`: measures how fast these checksums are, by their names.
    Checksums(Vec<(&'static str, Checksum)>),
    /// `--cpuclock-test`: compares the processors' counters.
    ClockTest,
    /// `--idle-prof=calibrate`: measures how fast processors are.
    Calibrate,
}

/// `rbench record`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The directory that is passed through.
    pub folder: PathBuf,
    /// Where.
    pub mountpoint: PathBuf,
    /// `--trace`: the file of the trace.
    pub trace: Option<PathBuf>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

/// `rbench testfs`
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Testfs {
    /// Where to mount.
    pub mountpoint: PathBuf,
    /// `--memory`: most data in memory.
    pub memory: Option<Bytes>,
    /// `--passthrough`: the directory to serve.
    pub passthrough: Option<PathBuf>,
    /// `--latency`, unparsed: the file system reads it.
    pub latency: Option<String>,
    /// `--fault`, unparsed, in the order given.
    pub faults: Vec<String>,
    /// `--broken`, unparsed, in the order given.
    pub broken: Vec<String>,
    /// `--allow-other`: other users are let in, and the kernel checks permissions.
    pub allow_other: bool,
    /// `--attr-timeout`
    pub attr_timeout: Option<Nanos>,
    /// `--entry-timeout`
    pub entry_timeout: Option<Nanos>,
    /// `--threads`
    pub threads: Option<u32>,
    /// `--servers`: requests with a latency that are served at a time.
    pub servers: Option<u32>,
    /// `--stats`
    pub stats: Option<PathBuf>,
    /// `--seed`
    pub seed: Option<u64>,
    /// `--direct-io`: every file bypasses the page cache.
    pub direct_io: bool,
    /// `--quota`: most file data in memory.
    pub quota: Option<Bytes>,
    /// `--fault-log`: the file that gets a line for each fault that fired.
    pub fault_log: Option<PathBuf>,
    /// `--power-cut`: what a power cut leaves; without it there is none.
    pub power_cut: Option<PowerCut>,
    /// End when standard input ends.
    pub watch_parent: bool,
    /// Remove the mount point, which is empty then, behind the mount.
    pub remove_mountpoint: bool,
    /// `--keep-cache`: opening a file keeps its pages.
    pub keep_cache: bool,
    /// `--stats-file`, unparsed.
    pub stats_file: Option<String>,
}

/// What a power cut of the built-in file system leaves of data that was not
/// synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PowerCut {
    /// None of it survives
    Drop,
    /// Each change survives, is lost or is torn, at random by --seed
    Tear,
}
