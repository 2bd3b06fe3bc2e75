//! The state of a run while it goes on: a line of the stream that `rbench watch` reads.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::read_name_of;

/// The name and version of these lines.
pub const LIVE_SCHEMA: &str = "rbench.live/1";

/// Most hosts of a line: those that wait longest.
pub const HOSTS_MAX: usize = 64;

/// Most finished rows of a line: the last ones.
pub const FINISHED_MAX: usize = 64;

/// Most notes of a line: the last ones.
pub const NOTES_MAX: usize = 8;

/// Intervals of a curve.
pub const CURVE_MAX: usize = 120;

/// The state of a run while it goes on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LiveResult {
    /// The name and version of this schema; reading refuses other major versions.
    #[serde(deserialize_with = "read_schema")]
    #[schemars(regex(pattern = r"^rbench\.live/1(\..+)?$"))]
    pub schema: String,
    /// Unique name of the run, of a series that of the present cell; empty as long as none has
    /// started.
    pub run: String,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// The directory that is tested.
    pub target: String,
    /// Its file system's type, where it is known.
    pub fs_type: Option<String>,
    /// Ranks that take part.
    pub ranks: u32,
    /// Hosts that they are on.
    pub hosts_total: u64,
    /// State of the run.
    pub state: LiveState,
    /// The phase that runs, or what is done around phases.
    pub label: String,
    /// True if that is a phase, whose operations are counted.
    pub phase: bool,
    /// Progress of the phase; `None` as long as its workers have not started.
    pub progress: Option<LiveProgress>,
    /// Length of the intervals of rows, hosts and curves, s.
    pub interval_s: f64,
    /// The rows of the phase that runs.
    pub rows: Vec<LiveRow>,
    /// Its hosts, those that wait longest first; of many only the first.
    pub hosts: Vec<LiveHost>,
    /// The last rows of phases that have ended, in their order.
    pub finished: Vec<LiveFinished>,
    /// The first operation that failed: rank, host, operation, path and error.
    pub first_error: Option<String>,
    /// The last other notes of trouble.
    pub notes: Vec<String>,
    /// Reason why it ended early, if it did: the sentence that the run itself ends with.
    pub failed: Option<String>,
    /// Processors that the ranks keep busy, over the last seconds.
    pub tool_cpus: Option<f64>,
    /// Processors that the file system's client keeps busy on all hosts, where it is
    /// watched.
    pub client_cpus: Option<f64>,
}

/// States of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LiveState {
    /// Phases run, or what surrounds them.
    #[default]
    Running,
    /// A stop was asked for.
    Stopping,
    /// Nothing more will come.
    Ended,
}

/// Progress of a phase: all of its operations together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveProgress {
    /// Time since the common start, s.
    pub elapsed_s: f64,
    /// Time until the end, s, where it is known.
    pub left_s: Option<f64>,
    /// Operations done without error.
    pub items: u64,
    /// Operations planned; `None` when time decides, or nobody knows.
    pub total: Option<u64>,
    /// Operations that failed.
    pub failed: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Operations without error a second since the start.
    pub rate: f64,
    /// Bytes a second since the start.
    pub bandwidth: f64,
    /// In an open loop whose rate is known: operations that were due and are not done.
    pub backlog: Option<u64>,
}

/// Figures of a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LiveFigures {
    /// Operations done without error.
    pub items: u64,
    /// Operations that failed.
    pub errors: u64,
    /// `items` a second.
    pub rate: f64,
    /// Bytes moved a second.
    pub bandwidth: f64,
    /// Median, ns; up to 1.6 % too high, as all of these.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// 99.9th percentile, ns.
    pub p999_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
}

/// A row of the phase that runs, over all hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveRow {
    /// Name for machines: `file-create`.
    pub name: String,
    /// Name for people.
    pub label: String,
    /// True if times count from the intended start (response times).
    pub response: bool,
    /// The last interval that is over.
    pub last: LiveFigures,
    /// Since the common start.
    pub all: LiveFigures,
    /// The longest time in which nothing of it ended, s, where that is longer than an
    /// interval.
    pub longest_gap_s: Option<f64>,
    /// Rate in each of the last intervals, the last one at the end.
    pub rates: Vec<f64>,
    /// 99th percentile in each of them, ns; 0 where nothing ended.
    pub p99s_ns: Vec<u64>,
}

/// A host of the phase that runs, over all rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveHost {
    /// Its name.
    pub host: String,
    /// The last interval that is over.
    pub last: LiveFigures,
    /// Since the common start.
    pub all: LiveFigures,
    /// For how long nothing of it has ended, s; also of a host that has nothing left to do.
    pub silent_s: f64,
    /// Processors that its ranks keep busy.
    pub tool_cpus: Option<f64>,
    /// Processors that the file system's client keeps busy there, where it is watched.
    pub client_cpus: Option<f64>,
}

/// A row of a phase that has ended, as the report has it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LiveFinished {
    /// The iteration, from 0.
    pub iteration: u32,
    /// Name for machines.
    pub name: String,
    /// Name for people.
    pub label: String,
    /// True if the phase reached its end.
    pub complete: bool,
    /// True if times count from the intended start (response times).
    pub response: bool,
    /// No worker had more than one of these operations: they have no rate.
    pub one_each: bool,
    /// All of it.
    pub all: LiveFigures,
    /// The longest time in which a rank finished nothing, s.
    pub longest_gap_s: Option<f64>,
    /// The cache that answered, in a word: `cold`, `memory`; `None` where the question has no
    /// meaning.
    pub cache: Option<String>,
}

fn read_schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    read_name_of(LIVE_SCHEMA, deserializer)
}
