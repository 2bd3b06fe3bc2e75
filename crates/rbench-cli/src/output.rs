//! Options of all commands on results and progress.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use rbench_core::client::Watch;
use rbench_core::event::Event;
use rbench_core::{Bytes, Nanos};

use rbench_plan::values;

use crate::live::Serve;

/// The format of the report on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// Tables for people
    #[default]
    Text,
    /// The content of the result file
    Json,
}

/// The form of progress on stderr of rank 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
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
    /// Returns `Off` with `--quiet`, otherwise itself.
    pub fn unless(self, quiet: bool) -> Progress {
        if quiet { Progress::Off } else { self }
    }
}

/// The choice of communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Communicator {
    /// MPI if started by an MPI launcher, else solo
    #[default]
    Auto,
    /// A single process without MPI
    Solo,
    /// MPI
    Mpi,
}

/// Start of the ranks: it must be known before any of them has heard of rank 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Args)]
#[command(next_help_heading = "Run")]
pub struct Start {
    /// How ranks communicate
    #[arg(long, value_enum, default_value_t, value_name = "WHICH")]
    pub communicator: Communicator,
    /// Give up if not all ranks have joined after this time; 0: never [default: 120s]
    #[arg(id = "start_timeout", long = "start-timeout", value_name = "TIME")]
    pub timeout: Option<Nanos>,
}

/// Destination of a run's results, and their display.
#[derive(Debug, Clone, PartialEq, Default, Args)]
#[command(group(ArgGroup::new("files of results").args(["out", "hlog"]).multiple(true)))]
pub struct Output {
    /// Do not measure the round trip to the file system at the start
    #[arg(long, help_heading = "Run")]
    pub no_round_trip: bool,
    /// Size of the file system client's own cache on each host
    ///
    /// Reading less than twice this much distinct data gives a warning.
    #[arg(long, value_name = "SIZE", help_heading = "Run")]
    pub client_cache: Option<Bytes>,
    /// Report a JuiceFS client's own counters for the run: requests, metadata updates,
    /// objects
    ///
    /// They are read from the file .stats of the mount.
    #[arg(long, help_heading = "Run")]
    pub client_counters: bool,
    /// Report CPU time and memory of the file system's client for each phase [default: the
    /// processes that serve the FUSE mount, if found]
    ///
    /// PID is one process; NAME is all processes with that name. Both apply to every host.
    #[arg(long, value_name = "PID|NAME", value_parser = values::watch, help_heading = "Run")]
    pub watch: Option<Watch>,
    /// Run COMMAND on rank 0's host and set the mark NAME, TIME after the first phase
    /// starts [default: 10s]; may be repeated
    ///
    /// NAME=SIGUSR1 names the marks that are set by sending SIGUSR1 to rank 0. The report
    /// gives the cost of each mark: docs/reference/marks.md.
    #[arg(
        id = "event",
        long = "event",
        value_name = "NAME[@TIME]=COMMAND",
        value_parser = values::event,
        help_heading = "Run"
    )]
    pub events: Vec<Event>,
    /// Start of the ranks.
    #[command(flatten)]
    pub start: Start,
    /// Write the result to FILE (JSON)
    ///
    /// During the run, finished phases are in FILE.journal. If FILE is a directory, the
    /// file in it is named after the run.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Write an HdrHistogram interval log of all ranks' latencies to FILE during the run
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub hlog: Option<PathBuf>,
    /// Replace the files of --out and --hlog if rbench wrote them; other files are never
    /// replaced
    #[arg(long, requires = "files of results", help_heading = "Output")]
    pub overwrite: bool,
    /// Format of the report on stdout
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        help_heading = "Output"
    )]
    pub format: Format,
    /// Show everything in the text report: each iteration, host and rank, all percentiles,
    /// and whether caches answered
    ///
    /// The report is as wide as COLUMNS or the terminal, but at least 80 columns.
    #[arg(long, help_heading = "Output")]
    pub details: bool,
    /// Add the label key=value to the result; may be repeated
    #[arg(id = "label", long = "label", value_name = "K=V", value_parser = values::label, help_heading = "Output")]
    pub labels: Vec<(String, String)>,
    /// How rank 0 shows progress on stderr
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "HOW",
        help_heading = "Output"
    )]
    pub progress: Progress,
    /// Address at which the run can be watched.
    #[command(flatten)]
    pub serve: Serve,
    /// Print only the report and errors: no progress, no notes
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
    /// Output of `rbench mdtest`; `None` for other commands.
    #[arg(skip)]
    pub mdtest: Option<MdtestView>,
    /// Output of `rbench fio`; `None` for other commands.
    #[arg(skip)]
    pub fio: Option<FioView>,
    /// Output of `rbench ior`; `None` for other commands.
    #[arg(skip)]
    pub ior: Option<IorView>,
}

impl Output {
    /// Returns true if rbench's own report is printed.
    pub fn has_report(&self) -> bool {
        match (&self.mdtest, &self.fio, &self.ior) {
            (Some(view), _, _) => view.report,
            (_, Some(view), _) => view.report,
            (_, _, Some(view)) => view.report,
            (None, None, None) => true,
        }
    }
}

/// The report on idle processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleReport {
    /// All processors together.
    System,
    /// Each processor, too.
    EachCpu,
}

/// Contents and place of the output of `rbench fio`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FioView {
    /// `--output-format`, `--minimal`: normal, terse, json, json+; at least one, in the order given.
    pub formats: Vec<&'static str>,
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
    /// `--parse-only`: only make the plan and run nothing.
    pub parse_only: bool,
    /// `--showcmd`: print this and run nothing.
    pub show: Option<String>,
    /// `--idle-prof`
    pub idle: Option<IdleReport>,
    /// `--debug`: kinds of messages, by fio's names.
    pub debug: Vec<&'static str>,
}

/// The summary tables of mdtest to print.
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

/// Output of `rbench mdtest` on stdout.
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

/// Output of `rbench ior` on stdout.
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

/// A command line with nothing to run: a request for help, or an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// Text to print: on stdout when `code` is 0, else on stderr.
    pub text: String,
    /// The exit code: 0 for help and version, 2 for misuse.
    pub code: i32,
    /// The mistake, if a caller may know more about it.
    pub mistake: Option<Mistake>,
}

/// A word of a command line that rbench does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mistake {
    /// In the place of a command.
    Command(String),
    /// In the place of an option of the command.
    Option {
        /// As typed, with its dashes.
        typed: String,
        /// An option with a similar name.
        near: Option<String>,
    },
}

impl Stop {
    /// Text that was asked for.
    pub fn print(text: String) -> Stop {
        Stop {
            text,
            code: 0,
            mistake: None,
        }
    }

    /// A wrong command line; the first line of the text starts with `error: `.
    pub fn misuse(text: String) -> Stop {
        Stop {
            text,
            code: 2,
            mistake: None,
        }
    }

    /// The error in one line.
    pub fn sentence(&self) -> &str {
        let line = self.text.lines().next().unwrap_or_default();
        line.trim_start_matches("error: ")
    }
}
