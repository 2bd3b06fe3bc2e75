//! Where results go and how a run is shown, of all commands.

use std::path::PathBuf;

use rbench_core::client::Watch;
use rbench_core::event::Event;
use rbench_core::{Bytes, Nanos};

use crate::live::Serve;

/// The format of the report on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// Tables for people
    #[default]
    Text,
    /// The content of the result file
    Json,
}

/// How rank 0 shows progress on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Progress {
    /// A bar on a terminal, otherwise a line every few seconds
    #[default]
    Auto,
    /// A line every few seconds
    Plain,
    /// The display and keys of rbench watch, on a terminal and for one process
    Live,
    /// Nothing
    Off,
}

impl Progress {
    /// This, or nothing with `--quiet`.
    pub fn unless(self, quiet: bool) -> Progress {
        if quiet { Progress::Off } else { self }
    }
}

/// Which communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Communicator {
    /// MPI if started by an MPI launcher, else solo
    #[default]
    Auto,
    /// A single process without MPI
    Solo,
    /// MPI
    Mpi,
}

/// How ranks come together: it must be known before any of them has heard of rank 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Start {
    /// `--communicator`
    pub communicator: Communicator,
    /// `--start-timeout`: after this time without all ranks everybody ends; `None`:
    /// rbench's own choice.
    pub timeout: Option<Nanos>,
}

/// Where a run's results go, and how it is shown.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Output {
    /// `--out`: a file, or a directory in which it is named after the run.
    pub out: Option<PathBuf>,
    /// `--hlog`: the interval log.
    pub hlog: Option<PathBuf>,
    /// `--overwrite`: what rbench has written at `out` and `hlog` may be replaced.
    pub overwrite: bool,
    /// `--format`
    pub format: Format,
    /// `--details`: the report shows everything.
    pub details: bool,
    /// `--label`, in the order given.
    pub labels: Vec<(String, String)>,
    /// `--progress`; `Off` with `--quiet`.
    pub progress: Progress,
    /// `--quiet`: no notes on stderr.
    pub quiet: bool,
    /// How ranks come together.
    pub start: Start,
    /// How `rbench mdtest` prints; `None` for other commands.
    pub mdtest: Option<MdtestView>,
    /// How `rbench fio` prints; `None` for other commands.
    pub fio: Option<FioView>,
    /// How `rbench ior` prints; `None` for other commands.
    pub ior: Option<IorView>,
    /// `--no-round-trip`: the round trip is not measured.
    pub no_round_trip: bool,
    /// `--client-cache`: size of the file system client's cache on each host.
    pub client_cache: Option<Bytes>,
    /// `--client-counters`: what the file system's clients count of their own work
    /// is reported.
    pub client_counters: bool,
    /// `--watch`: the processes of the file system's client on each host; `None`: those
    /// that serve the mount, where they can be found.
    pub watch: Option<Watch>,
    /// `--event`, in the order given.
    pub events: Vec<Event>,
    /// Where the run can be watched.
    pub serve: Serve,
}

impl Output {
    /// Whether rbench's own report is printed.
    pub fn has_report(&self) -> bool {
        match (&self.mdtest, &self.fio, &self.ior) {
            (Some(view), _, _) => view.report,
            (_, Some(view), _) => view.report,
            (_, _, Some(view)) => view.report,
            (None, None, None) => true,
        }
    }
}

/// A form of fio's report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FioFormat {
    /// For people.
    Normal,
    /// One line for each job, version 3.
    Terse,
    /// JSON.
    Json,
    /// JSON with the buckets of each histogram.
    JsonPlus,
}

/// What is reported of idle processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleReport {
    /// All of them together.
    System,
    /// Each of them, too.
    EachCpu,
}

/// What `rbench fio` prints, and where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FioView {
    /// `--output-format`, `--minimal`: at least one, in the order given.
    pub formats: Vec<FioFormat>,
    /// `--terse-version`
    pub terse_version: Option<u8>,
    /// `--output`: the file that takes the place of stdout.
    pub output: Option<PathBuf>,
    /// `--status-interval`: time between reports during the run.
    pub status_interval: Option<Nanos>,
    /// `--eta-newline`, `--eta-interval`: time between lines of progress.
    pub progress_every: Option<Nanos>,
    /// `--rbench-report`: the native report after fio's.
    pub report: bool,
    /// `--parse-only`: the plan is made, and nothing runs.
    pub parse_only: bool,
    /// `--showcmd`: this is printed, and nothing runs.
    pub show: Option<String>,
    /// `--idle-prof`
    pub idle: Option<IdleReport>,
    /// `--debug`: kinds of messages, by fio's names.
    pub debug: Vec<&'static str>,
}

/// Which of mdtest's summary tables are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Print {
    /// Rates.
    #[default]
    Rates,
    /// `-Z`: times.
    Times,
    /// `-P`: rates and times.
    Both,
}

/// What `rbench mdtest` prints on stdout.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MdtestView {
    /// `-Z`, `-P`
    pub print: Print,
    /// `-v`, counted, or `-V`: the level.
    pub verbosity: u32,
    /// `--print-all-procs`: every rank's results.
    pub all_ranks: bool,
    /// `--showRankStatistics`
    pub rank_statistics: bool,
    /// `--rbench-report`: the native report after mdtest's tables.
    pub report: bool,
}

/// What `rbench ior` prints on stdout.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IorView {
    /// `-v`, counted.
    pub verbosity: u32,
    /// `--rbench-report`: the native report after IOR's tables.
    pub report: bool,
    /// `-O summaryFormat`
    pub summary_format: IorSummary,
}

/// The form of IOR's summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IorSummary {
    /// Tables.
    #[default]
    Text,
    /// JSON with IOR's keys.
    Json,
    /// CSV with IOR's columns.
    Csv,
}

/// There is nothing to run: help was asked for, or the command line is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// What to print: on stdout when `code` is 0, else on stderr.
    pub text: String,
    /// The exit code: 0 for help and version, 2 for misuse.
    pub code: i32,
}
