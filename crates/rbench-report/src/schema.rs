//! The types of the result file, schema `rbench.result/1`, and how they are made
//! from the outcomes of a phase.
//!
//! Fields may be added, never renamed. Reading ignores fields it does not
//! know. What the fields mean is in docs/reference/result-file.md.

mod cell;
mod check;
mod client;
mod client_cost;
mod dead_mounts;
mod effort;
mod fio;
mod forms;
mod io500;
mod knee;
mod live;
mod marks;
mod phase;
mod probe;
mod repetition;
mod residency;
mod series;
mod settings;
mod steady;
mod surroundings;
mod timeline;

use std::collections::BTreeMap;

use rbench_core::outcome::ReplayTotals;
use rbench_core::timeline::{BINS, SLICE_BINS};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};

pub use rbench_core::surroundings::{
    ClientProgram, FuseSettings, HostMount, NtpState, Surroundings,
};

pub use cell::{CellResult, CellValue};
pub use check::{
    BetweenResult, CHECK_SCHEMA, CheckLoadResult, CheckResult, HostChecksResult, PairResult,
    PromiseResult, PromiseVerdict, SeenAfterResult,
};
pub use client::{CLIENT_WORK, ClientCounters, ClientWork};
pub use client_cost::{ClientCostResult, HostClientResult};
pub use dead_mounts::{DeadMountResult, DeadMountRow};
pub use effort::GivenUpResult;
pub use fio::{FioEntry, FioForm, FioSteady, FioTarget};
pub use forms::{Forms, Kinds, MdtestForm, Print};
pub use io500::{Io500Phase, Io500Result};
pub(crate) use knee::BEHIND;
pub use knee::{KneeFigure, KneeLimit, KneeObjective, KneeResult, KneeRow, KneeStep};
pub use live::{
    CURVE_MAX, FINISHED_MAX, HOSTS_MAX, LIVE_SCHEMA, LiveFigures, LiveFinished, LiveHost,
    LiveProgress, LiveResult, LiveRow, LiveState, NOTES_MAX,
};
pub(crate) use marks::IN_A_ROW;
pub use marks::{MarkCommand, MarkCost, MarkResult, PhaseMark, StandstillResult};
pub use phase::{
    AccessResult, ErrorExample, FoundResult, HostResult, LatencyResult, LatenessResult, PhaseResult,
};
pub use probe::{
    AbilityResult, AbilityVerdict, HostProbeResult, PROBE_SCHEMA, ProbeResult, SightResult,
};
pub use rbench_core::job::FioShown;
pub use repetition::{Enough, RepetitionResult};
pub use residency::{
    CacheResult, CameRoundResult, EvidenceResult, FetchedResult, OwnResult, PagesResult,
    RequestsResult, ResidencyResult,
};
pub use series::{Launched, LeftOut, SERIES_SCHEMA, SeriesKey, SeriesResult, SeriesStep};
pub use settings::{IterationResult, SettingResult};
pub use steady::SteadyResult;
pub use surroundings::remarks;
pub(crate) use surroundings::some_of;
pub use timeline::{GapResult, SliceTimes, TimelineRow};

/// The name of the schema that this version writes.
pub const SCHEMA: &str = "rbench.result/1";

/// Most rows of [`PhaseResult::timeline`].
pub const TIMELINE_ROWS: usize = BINS / SLICE_BINS;

/// Everything that a run yields.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// The name and version of this schema; reading refuses other major versions.
    #[serde(deserialize_with = "read_schema")]
    #[schemars(regex(pattern = r"^rbench\.result/1(\..+)?$"))]
    pub schema: String,
    /// Identification of the run.
    pub run: Run,
    /// Hosts and ranks that took part.
    pub world: World,
    /// The measured target.
    pub target: Target,
    /// The cost of measuring.
    pub calibration: Calibration,
    /// The settings of the run by name, for people.
    pub spec: Map<String, Value>,
    /// The file system's clients' counters of their own work over the run, of each cache whose
    /// client reports them; empty unless they were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_counters: Vec<ClientCounters>,
    /// The settings with their values in base units; empty in older files.
    #[serde(default)]
    pub settings: BTreeMap<String, SettingResult>,
    /// With `--iterations auto`: what was asked for, and why there are as many as there
    /// are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition: Option<RepetitionResult>,
    /// Moments that have a name (`--event`, SIGUSR1), in the order in which they were set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<MarkResult>,
    /// Mounts that no longer answered, at most one of each host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dead_mounts: Vec<DeadMountResult>,
    /// Each pass over the traces of a replay as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replays: Vec<ReplayTotals>,
    /// The phases in the order of execution.
    pub phases: Vec<PhaseResult>,
    /// Statistics over the iterations.
    pub summary: Vec<SummaryRow>,
    /// Warnings on the numbers for the reader.
    pub warnings: Vec<Warning>,
    /// True if every phase of the run reached its end.
    pub complete: bool,
    /// Further values for mdtest's and fio's outputs of the run.
    #[serde(default, skip_serializing_if = "Forms::is_empty")]
    pub forms: Forms,
}

/// Returns true if this version reads a result file of schema `name`: the same major version, any
/// minor one (`rbench.result/1`, `rbench.result/1.4`).
pub fn reads_schema(name: &str) -> bool {
    same_major(name, SCHEMA)
}

pub(crate) fn same_major(name: &str, schema: &str) -> bool {
    name.strip_prefix(schema)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn read_schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    read_name_of(SCHEMA, deserializer)
}

/// Reads the name of a schema; refuses other major versions than that of `schema`.
fn read_name_of<'de, D: Deserializer<'de>>(
    schema: &str,
    deserializer: D,
) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    match same_major(&name, schema) {
        true => Ok(name),
        false => Err(de::Error::custom(format_args!(
            "the schema is '{name}', but this version of rbench reads {schema}"
        ))),
    }
}

/// Identification of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Unique name of the run.
    pub id: String,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// Version of rbench.
    pub version: String,
    /// The build of that program; `None` in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// Start: UTC, RFC 3339.
    pub started: String,
    /// End: UTC, RFC 3339; `None` in a journal.
    pub finished: Option<String>,
    /// Offset of the time zone of rank 0 to the east of UTC, s.
    #[serde(default)]
    pub utc_offset_s: i32,
    /// Seed of everything random.
    pub seed: u64,
    /// `--label` name and value.
    pub labels: BTreeMap<String, String>,
}

/// The build of the program of rank 0, and the libraries with which it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// The commit of its sources, 12 digits, as of the last one before it was
    /// built; `None` outside of a repository.
    pub commit: Option<String>,
    /// Features that were built in: `mpi`, `testfs`.
    pub features: Vec<String>,
    /// The MPI library as it calls itself; `None` without `mpi`.
    pub mpi_library: Option<String>,
}

/// Hosts and ranks that took part.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct World {
    /// Communication of the ranks: `solo`, `threads`, `mpi`.
    pub communicator: String,
    /// Number of ranks.
    pub ranks: u32,
    /// Worker threads of each rank.
    pub threads_per_rank: u32,
    /// Hosts in the order of their first rank.
    pub hosts: Vec<Host>,
}

/// One machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The ranks on it, ascending.
    pub ranks: Vec<u32>,
    /// Its kernel: name and release.
    pub kernel: String,
    /// CPUs that the ranks may use.
    pub cpus: u32,
    /// Its clock minus that of rank 0's host, ns, as estimated at the start.
    pub clock_offset_ns: i64,
    /// Uncertainty of that estimate, ns, to either side.
    pub clock_error_ns: u64,
    /// The clock that it reads, and its drift; `None` in older files.
    #[serde(default)]
    pub clock: Option<HostClock>,
    /// Numbers of the caches that its ranks go through, ascending, from 0 in
    /// the order of their first ranks: a kernel's own for each file system.
    /// Empty in older files.
    #[serde(default)]
    pub caches: Vec<u32>,
    /// The environment of the run there; `None` in older files.
    #[serde(default)]
    pub surroundings: Option<Surroundings>,
}

/// The clock of a host; of its lowest rank, should its ranks read several.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostClock {
    /// Its number, from 0 in the order of first ranks: hosts with the same one
    /// read the same clock.
    pub number: u32,
    /// The boot id of the host's kernel.
    pub boot: String,
    /// Rate relative to rank 0's clock, in millionths above it, from its first comparison to its
    /// last; `None` for that one itself and where it was compared only once.
    pub drift_ppm: Option<f64>,
    /// Uncertainty of that, to either side.
    pub drift_error_ppm: Option<f64>,
}

/// The measured target.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// The directory.
    pub path: String,
    /// Type of the file system as the kernel names it; `None` if unknown.
    pub fs_type: Option<String>,
    /// Source of the mount; `None` if unknown.
    pub mount_source: Option<String>,
    /// Directory at which it is mounted; `None` if unknown.
    #[serde(default)]
    pub mount_point: Option<String>,
    /// Options of the mount, comma-separated; `None` if unknown.
    pub mount_options: Option<String>,
    /// True if it is rbench's own file system in memory, a demonstration.
    pub embedded: bool,
    /// True if all hosts see the same name space; `None` if not tested.
    pub shared: Option<bool>,
    /// Size of the file system at the start; `None` if unknown.
    #[serde(default)]
    pub space: Option<Space>,
    /// The cost of a request that no cache answers, by host, before the first
    /// phase; hosts without a measurement are absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub round_trip: Vec<RoundTrip>,
    /// The data that each host's ranks read, and the host's memory; empty when
    /// nothing is read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_sizes: Vec<DataSize>,
}

/// The data that is read on a host, and the memory that may hold it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DataSize {
    /// The host's name.
    pub host: String,
    /// Bytes that its ranks read in the iteration with the most, each byte once: at most those of
    /// the files, taking all ranks' shares as equal.
    pub read_bytes: u64,
    /// The host's memory, or the limit of the control group where that is less;
    /// `None` if unknown.
    pub memory_bytes: Option<u64>,
    /// `--client-cache`: size of the file system client's cache.
    pub client_cache_bytes: Option<u64>,
}

/// One host's round trip to the file system: one call at a time on the target
/// directory, while this run's ranks on that host do nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoundTrip {
    /// The host's name.
    pub host: String,
    /// The call: `statx` (with AT_STATX_FORCE_SYNC), `statfs` or `getxattr` (of
    /// a missing name).
    pub call: String,
    /// The median, ns.
    pub median_ns: u64,
    /// Number of calls.
    pub calls: u64,
    /// True if the file system's own counter of requests saw them arrive; also false without such a
    /// counter.
    pub seen: bool,
}

/// Capacity of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Space {
    /// Size in bytes.
    pub bytes_total: u64,
    /// Bytes that are not in use.
    pub bytes_free: u64,
    /// Inodes; 0 where the file system does not count them.
    pub inodes_total: u64,
    /// Inodes that are not in use.
    pub inodes_free: u64,
}

/// The cost of measuring itself, determined at the start of the run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// One reading of the clock, ns.
    pub clock_ns: f64,
    /// Recording one latency, ns.
    pub record_ns: f64,
    /// One operation of the run's loop that does nothing, ns.
    pub null_op_ns: f64,
    /// Calibration of each host, with several; the fields above are of the host of rank 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostCalibration>,
}

/// The cost of measuring on one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostCalibration {
    /// Its name.
    pub host: String,
    /// One reading of the clock, ns.
    pub clock_ns: f64,
    /// Recording one latency, ns.
    pub record_ns: f64,
    /// One operation of the run's loop that does nothing, ns.
    pub null_op_ns: f64,
}

/// One phase over the iterations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryRow {
    /// Name of the phase for machines.
    pub name: String,
    /// Name of the phase for people.
    pub label: String,
    /// `ops/s` or `bytes/s`.
    pub unit: String,
    /// Number of iterations that are included.
    pub iterations: u32,
    /// The highest of them.
    pub max: f64,
    /// The lowest of them.
    pub min: f64,
    /// Their arithmetic mean.
    pub mean: f64,
    /// Their sample standard deviation; 0 for one iteration.
    pub stddev: f64,
    /// Half of the 95 % confidence interval of their geometric mean, the larger one, as
    /// a share of it; `None` for fewer than 3 iterations, or if one is 0, and in older
    /// files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// Each of them, in the order of execution; empty in older files.
    #[serde(default)]
    pub each: Vec<IterationResult>,
}

/// Something to know before trusting the numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Name for machines, such as `tool-cost`.
    pub code: String,
    /// A sentence or two.
    pub message: String,
}

impl Warning {
    /// A warning with its name for machines.
    pub fn new(code: &str, message: String) -> Warning {
        Warning {
            code: code.to_owned(),
            message,
        }
    }
}
