//! Parts of the outcome of a phase: those of hosts and ranks, the state of caches, lateness, and
//! totals of replays.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hist::Hist;
use crate::latency::Latency;
use crate::timeline::Gap;
use crate::units::{Nanos, Rank, seconds};

/// State of the client's caches towards the operations of a phase, by the measurements around it
/// ([`crate::residency::Residency::verdict`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// The host had not used the items, or its caches were empty.
    Cold,
    /// The host's memory answered. Or the host had created or used the items earlier in the run,
    /// and no measurement shows that its memory did not answer.
    Warm,
    /// Hosts, parts of the items or periods differ.
    Mixed,
}

impl Cache {
    /// The name in reports and result files.
    pub fn name(self) -> &'static str {
        match self {
            Cache::Cold => "cold",
            Cache::Warm => "warm",
            Cache::Mixed => "mixed",
        }
    }
}

/// Time spans of opens, transfers and closes over all ranks: IOR's times. Each starts with the
/// first such operation of any rank, and ends with the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Span of the opens.
    pub open: Nanos,
    /// Span of the transfers and of the syncs after them.
    pub transfer: Nanos,
    /// Span of the closes.
    pub close: Nanos,
    /// Span from the start of the first open to the end of the last close.
    pub total: Nanos,
}

/// Entries that a search of a tree visited, each once, over all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Found {
    /// Entries that are not directories.
    pub files: u64,
    /// Directories, including the first one.
    pub directories: u64,
    /// Entries of both kinds that pass all tests.
    pub matches: u64,
}

/// One host's part in a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostOutcome {
    /// Its name.
    pub host: String,
    /// Items done without error.
    pub items: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Failed operations.
    pub errors: u64,
    /// Time during which its own operations were measured.
    pub elapsed: Nanos,
    /// Service times of its workers.
    pub service: Latency,
    /// Response times of its workers, only in an open loop.
    pub response: Option<Latency>,
    /// The longest time without a finished operation of its workers, from the start of measuring
    /// to the last end. Failed operations count.
    pub gap: Option<Gap>,
}

/// The rank with the longest time without a finished operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankGap {
    /// The rank.
    pub rank: Rank,
    /// Its host.
    pub host: String,
    /// Time from the start of measuring, or from its last finished operation, to its next one.
    pub gap: Gap,
}

/// One rank's part in a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RankResult")]
pub struct RankOutcome {
    /// Its number.
    pub rank: Rank,
    /// Its host.
    pub host: String,
    /// Operations done without error.
    pub items: u64,
    /// Failed operations.
    pub errors: u64,
    /// The time in which its own operations were measured, s.
    #[serde(rename = "elapsed_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub elapsed: Nanos,
    /// Median service time, ns.
    #[serde(rename = "p50_ns")]
    pub p50: Nanos,
    /// 99th percentile of the service time, ns.
    #[serde(rename = "p99_ns")]
    pub p99: Nanos,
    /// Longest service time, ns.
    #[serde(rename = "max_ns")]
    pub max: Nanos,
    /// CPU time, user and system, that its process used, s.
    // From the start of the phase's set-up to the end of the phase.
    #[serde(rename = "cpu_s", default, with = "seconds")]
    #[schemars(with = "f64")]
    pub cpu: Nanos,
}

/// Lateness of operations: how long after its intended start each one started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lateness {
    /// Operations with an intended start.
    pub operations: u64,
    /// Sum of their actual starts minus their intended starts, in nanoseconds.
    pub sum: u128,
    /// The largest lateness.
    pub max: Nanos,
}

impl Lateness {
    /// Records the lateness of an operation.
    #[inline]
    pub fn record(&mut self, late: Nanos) {
        self.operations += 1;
        self.sum += u128::from(late.0);
        self.max = self.max.max(late);
    }

    /// Adds that of other workers.
    pub fn merge(&mut self, other: Lateness) {
        merge!(self, &other => Lateness { add: operations sum; most: max; });
    }

    /// The mean; 0 without operations.
    pub fn mean(&self) -> Nanos {
        let mean = self.sum.checked_div(u128::from(self.operations));
        Nanos(u64::try_from(mean.unwrap_or(0)).unwrap_or(u64::MAX))
    }
}

/// The recorded results of the operations of a row of a replay, and the differences from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReplayedResult")]
pub struct Replayed {
    /// Operations of that kind in the traces, of all copies.
    pub wanted: u64,
    /// Their recorded times, of one copy, failed ones included; absent where the traces do not have
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Hist>,
    /// Results that differ from the recorded ones.
    pub differ: Differ,
    /// Operations that were not done, as their file was not open in the replay.
    pub unopened: u64,
}

/// Results of a replay that are not those of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DifferResult")]
pub struct Differ {
    /// Failed, and had worked; also among the row's errors.
    pub failed: u64,
    /// Succeeded in the replay, but not in the trace.
    pub worked: u64,
    /// Failed with another error; also among the row's errors.
    pub error: u64,
    /// Reads and writes that moved another number of bytes.
    pub length: u64,
}

impl Differ {
    /// The sum of all kinds.
    pub fn total(self) -> u64 {
        let Differ {
            failed,
            worked,
            error,
            length,
        } = self;
        failed + worked + error + length
    }
}

/// Upper bounds of lateness, by which operations of a replay are counted.
pub const LATE_LIMITS: [Nanos; 6] = [
    Nanos(10_000),
    Nanos(100_000),
    Nanos(1_000_000),
    Nanos(10_000_000),
    Nanos(100_000_000),
    Nanos(1_000_000_000),
];

/// Histogram of the lateness of a replay's operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Late {
    /// Operations up to each of [`LATE_LIMITS`], and those above the last.
    pub counts: [u64; 7],
    /// The largest lateness.
    pub max: Nanos,
}

impl Late {
    /// Counts an operation that started this late.
    #[inline]
    pub fn record(&mut self, late: Nanos) {
        let index = LATE_LIMITS.iter().position(|limit| late <= *limit);
        self.counts[index.unwrap_or(LATE_LIMITS.len())] += 1;
        self.max = self.max.max(late);
    }

    /// Adds that of other workers.
    pub fn merge(&mut self, other: &Late) {
        merge!(self, other => Late { each: counts; most: max; });
    }

    /// Number of operations.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The share of operations with at most this lateness, one of [`LATE_LIMITS`]; 1 without
    /// operations.
    pub fn within(&self, limit: Nanos) -> f64 {
        let pairs = LATE_LIMITS.iter().zip(&self.counts);
        let within: u64 = pairs
            .filter(|(at, _)| **at <= limit)
            .map(|(_, count)| count)
            .sum();
        match self.total() {
            0 => 1.0,
            total => within as f64 / total as f64,
        }
    }
}

/// A trace that was replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TraceResult")]
pub struct TraceName {
    /// Its file.
    pub path: String,
    /// Its form: `iolog`, `juicefs`, `strace`, `dxt`, `rbench`.
    pub format: String,
}

/// Lines of the traces that were not replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LeftOutResult")]
pub struct NotReplayed {
    /// The reason.
    pub why: String,
    /// Operations of one copy.
    pub operations: u64,
}

/// Lateness of operations of a replay, after their recorded times at the requested speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LateResult {
    /// For each of `up_to_s`, the number of operations that were later than the one before it, and
    /// not later than that; one more for those that were later still.
    pub counts: Vec<u64>,
    /// Limits, s, ascending.
    pub up_to_s: Vec<f64>,
    /// The share that was at most 1 ms late.
    pub within_1ms: f64,
    /// The latest, s.
    pub max_s: f64,
}

impl From<Late> for LateResult {
    fn from(late: Late) -> LateResult {
        LateResult {
            counts: late.counts.to_vec(),
            up_to_s: LATE_LIMITS.map(Nanos::as_secs_f64).to_vec(),
            within_1ms: late.within(LATE_LIMITS[2]),
            max_s: late.max.as_secs_f64(),
        }
    }
}

/// A pass over the traces as a whole.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReplayResult")]
pub struct ReplayTotals {
    /// The pass, from 0.
    pub iteration: u32,
    /// The traces, in the order given.
    pub traces: Vec<TraceName>,
    /// Operations in the traces: `wanted` and what is left out.
    pub found: u64,
    /// Operations to be replayed, of one copy.
    pub wanted: u64,
    /// Copies side by side.
    pub copies: u32,
    /// Operations that were done, of all copies; failed ones included.
    pub done: u64,
    /// Operations that were left out, of one copy, and the reason.
    pub left_out: Vec<NotReplayed>,
    /// JuiceFS: uses of open files whose open is missing, which shows that lines were lost.
    pub gaps: u64,
    /// Processes (or threads) of one copy.
    pub processes: u64,
    /// Groups of processes that share open files, of one copy: each is replayed by one worker.
    pub groups: u64,
    /// From the first recorded start to the last one, at the speed asked for, s.
    #[serde(rename = "span_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub span: Nanos,
    /// Files, directories and links that were made beforehand, of one copy.
    pub prepared: u64,
    /// Their bytes.
    pub prepared_bytes: u64,
    /// Lateness of operations; absent with `--as-fast-as-possible`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateResult>,
}

/// `n` per second over `elapsed`; zero if no time passed.
pub fn per_second(n: u64, elapsed: Nanos) -> f64 {
    if elapsed.0 == 0 {
        0.0
    } else {
        n as f64 / elapsed.as_secs_f64()
    }
}
