//! Every command line of rbench, read into an [`Invocation`].
//!
//! Pure: nothing here looks at the environment, the file system or the
//! terminal; the caller passes what is needed and prints what comes back.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

pub use args::profile_file;
pub use clap_complete::Shell;
pub use definitions::{completions, man_pages};
use rbench_core::client::Watch;
use rbench_core::event::Event;
use rbench_core::plain::plain_lines;
use rbench_core::{Bytes, Nanos};
use rbench_plan::Spec;
use rbench_plan::jobs::Checksum;

mod args;
mod definitions;
pub mod fio;
pub mod ior;
mod letters;
pub mod live;
mod mdtest;
pub mod series;
mod values;

/// What was asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Invocation {
    /// A workload.
    Run(Box<Spec>, Output),
    /// Several workloads, one after the other.
    Series(Box<series::Series>),
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
    Watch(live::WatchAt),
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
    /// Everything, for machines
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Everything, for machines
    Json,
    /// XML as JUnit writes it
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

/// The format of the report on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// Tables for people
    #[default]
    Text,
    /// The content of the result file
    Json,
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
    /// Percentiles, for HdrHistogram's plotters
    Hgrm,
    /// For Prometheus and its relatives
    Openmetrics,
    /// As mdtest prints it (runs of rbench mdtest)
    Mdtest,
    /// As fio prints it (runs of rbench fio)
    Fio,
    /// As fio prints it with --output-format=json
    FioJson,
}

impl ShowFormat {
    /// Its name on the command line.
    pub fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self);
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// How rank 0 shows progress on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Progress {
    /// A bar on a terminal, otherwise a line every few seconds
    #[default]
    Auto,
    /// A line every few seconds
    Plain,
    /// What rbench watch shows, on a terminal and for one process; keys as there
    Live,
    /// Nothing
    Off,
}

impl Progress {
    /// This, or nothing with `--quiet`.
    fn unless(self, quiet: bool) -> Progress {
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
    pub serve: live::Serve,
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

/// There is nothing to run: help was asked for, or the command line is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// What to print: on stdout when `code` is 0, else on stderr.
    pub text: String,
    /// The exit code: 0 for help and version, 2 for misuse.
    pub code: i32,
}

/// Reads a command line, the program's name first. `env_dir` is the value of
/// `RBENCH_DIR`, which stands in for `--dir` and for mdtest's `-d`. Job files
/// of `rbench fio` are not known here: see [`fio::read`].
///
/// # Errors
/// [`Stop`] when there is nothing to run.
pub fn parse(argv: &[OsString], env_dir: Option<&std::ffi::OsStr>) -> Result<Invocation, Stop> {
    if let Some(words) = words_of("mdtest", argv) {
        return mdtest::read(words, env_dir);
    }
    if let Some(words) = words_of("ior", argv) {
        return ior::read(words);
    }
    // A process that `rbench check` starts; nobody types it, and no help tells of it.
    if let Some([kind, path]) = words_of("hold-lock", argv) {
        return Ok(Invocation::HoldLock {
            kind: kind.to_string_lossy().into_owned(),
            path: PathBuf::from(path),
        });
    }
    if fio::words(argv).is_some() {
        return fio::read(
            argv,
            &fio::Surroundings {
                files: &BTreeMap::new(),
                unreadable: &BTreeMap::new(),
                variable: &|_| None,
                page_size: 4096,
                cpus: 1,
                memory_mib: 1024,
            },
        );
    }
    let args = args::Args::read(argv).map_err(|error| Stop {
        text: plain_lines(&error.render().to_string()).into_owned(),
        code: if error.use_stderr() { 2 } else { 0 },
    })?;
    args.invocation(env_dir)
}

/// How a command line asks ranks to come together: it must be known before rank 0's
/// command line can be. A mistake in it is told later.
pub fn start(argv: &[OsString]) -> Start {
    if let Some(words) = words_of("mdtest", argv) {
        return mdtest::start(words);
    }
    if let Some(words) = words_of("ior", argv) {
        return ior::start(words);
    }
    match fio::words(argv) {
        Some(words) => fio::start(words),
        None => args::Args::read(argv).map_or(Start::default(), |args| args.start()),
    }
}

/// What follows `rbench` and this command.
fn words_of<'a>(name: &str, argv: &'a [OsString]) -> Option<&'a [OsString]> {
    match argv {
        [_, command, words @ ..] if command == name => Some(words),
        _ => None,
    }
}

/// The help texts of the program and each command, for checks of the docs.
pub fn help_texts() -> Vec<(String, String)> {
    let mut command = args::command();
    command.build();
    let mut all = vec![("rbench".to_owned(), command.render_long_help().to_string())];
    for sub in command
        .get_subcommands_mut()
        .filter(|s| s.get_name() != "help")
    {
        all.push((
            sub.get_name().to_owned(),
            sub.render_long_help().to_string(),
        ));
    }
    all
}

#[cfg(test)]
mod tests;
