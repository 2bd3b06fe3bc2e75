//! Commands on results; none of them measures anything.

use std::path::PathBuf;

use clap::Args;
use rbench_plan::values;

/// `rbench show`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    after_help = "Several files are shown one after the other; in csv and openmetrics they form one table. \
    docs/reference/show.md describes each format.\n\nExamples:\n  rbench show run.json\n  rbench show \
    run.json.journal\n  rbench show --format csv monday.json tuesday.json >both.csv\n  rbench show --format \
    hgrm --only randread run.json >randread.hgrm"
)]
pub struct Show {
    /// Result files written by --out or their journals, or a directory to list its results
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Format of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: ShowFormat,
    /// Show only rows with these names (file-create, randread …), separated by commas
    /// [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub only: Vec<String>,
    /// In text: show everything, not only totals and findings that deserve attention
    #[arg(long)]
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

/// The name of a value on the command line.
pub fn value_name(value: &impl clap::ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// `rbench report`
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(
    after_help = "The page is one file: it loads nothing else, works without scripts, follows the reader's \
    light or dark mode, and includes the results themselves. Several results are shown side by \
    side.\n\nExamples:\n  rbench report run.json --html run.html\n  rbench report old.json new.json --html \
    both.html --overwrite"
)]
pub struct Page {
    /// Result files written by --out or their journals, or directories for all results in them
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Page to write
    #[arg(long, value_name = "FILE", required = true)]
    pub html: PathBuf,
    /// Replace the page if rbench wrote it; other files are never replaced
    #[arg(long)]
    pub overwrite: bool,
}

/// `rbench compare`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    after_help = "A difference is shown only if it is unlikely that chance produced one in any of the \
    operations (--confidence). This needs at least 4 iterations or runs on each side, better 5 (--iterations \
    5); with fewer there is no verdict, and --fail-if is refused.\n\nConditions of --fail-if: \
    [CELL:][OPERATION.]FIGURE>+N% or …FIGURE<-N%. Figures are rate, bandwidth, mean, p50, p90, p99, p99.9 and \
    max; in open loops also response-mean … response-max and lateness; where a result has them, first-done, \
    client-cpu, access-bandwidth, requests, steady-rate, steady-bandwidth and files-rate; for a series as a \
    whole held (knee), score, score-bandwidth and score-metadata (io500). In series (sweep, knee, nn, quick, suite) every cell is \
    compared. A condition applies to all cells, or to the CELL before its colon.\n\nExit code: 1 if a condition \
    is met; 0 if none is, or if the samples do not decide it; 2 if nothing can be compared. docs/reference/compare.md has the \
    formulas.\n\nExamples:\n  rbench compare before.json after.json\n  rbench compare --base b*.json --new \
    a*.json --format md\n  rbench compare before.json after.json --fail-if \
    'file-create.p50>+10%' --fail-if 'rate<-5%'\n  rbench compare old-sweep.json new-sweep.json --fail-if \
    'threads=4 bs=4k: rate<-5%'\n  rbench compare run.json --published juicefs-1.1/redis-always"
)]
pub struct Compare {
    /// BASE is the result of a run or series, followed by one or more NEW results of the
    /// same kind; with --published: only NEW results; with --base and --new: none
    #[arg(value_name = "BASE NEW")]
    pub files: Vec<PathBuf>,
    /// All runs of BASE, for several runs of each side
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "published")]
    pub base: Vec<PathBuf>,
    /// All runs of NEW, with --base
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "published")]
    pub new: Vec<PathBuf>,
    /// Compare with published figures; list: print them all
    #[arg(long, value_name = "SET/COLUMN|list")]
    pub published: Option<String>,
    /// Smallest change that counts as a difference [default: 5%]
    #[arg(long, value_name = "PERCENT", value_parser = values::effect)]
    pub min_effect: Option<f64>,
    /// Confidence that no operation differs by chance alone [default: 95%]
    #[arg(long, value_name = "PERCENT", value_parser = values::confidence)]
    pub confidence: Option<f64>,
    /// Exit with code 1 if this condition is met, such as file-create.p50>+10%; may be
    /// repeated
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<String>,
    /// Also compare runs that did different things, and list the differences
    #[arg(long)]
    pub even_if_different: bool,
    /// Format of the comparison
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
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
