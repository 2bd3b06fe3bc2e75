//! What a replay of traces was, and how it differs from them.

use rbench_core::hist::Hist;
use rbench_core::outcome::{Differ, LATE_LIMITS, Late, ReplayTotals, Replayed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Of a row of a replay: what the traces say of these operations, and how it came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayedResult {
    /// Operations of that kind in the traces, of all copies.
    pub wanted: u64,
    /// How long they took when they were recorded, of one copy, failed ones included;
    /// absent where the traces do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Hist>,
    /// Results that differ from the recorded ones.
    pub differ: Differ,
    /// Operations that were not done, as their file was not open in the replay.
    pub unopened: u64,
}

impl From<&Replayed> for ReplayedResult {
    fn from(replayed: &Replayed) -> ReplayedResult {
        let Replayed {
            wanted,
            recorded,
            differ,
            unopened,
        } = replayed;
        ReplayedResult {
            wanted: *wanted,
            recorded: recorded.as_ref().map(Hist::from),
            differ: *differ,
            unopened: *unopened,
        }
    }
}

/// A trace that was replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceResult {
    /// Its file.
    pub path: String,
    /// Its form: `iolog`, `juicefs`, `strace`, `dxt`, `rbench`.
    pub format: String,
}

/// What of the traces was not replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutResult {
    /// Why.
    pub why: String,
    /// Operations of one copy.
    pub operations: u64,
}

/// How late operations of a replay started, after their recorded times at the speed asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LateResult {
    /// For each of `up_to_s` so many operations were later than the one before it, and no later
    /// than that; one more for those that were later still.
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
            up_to_s: LATE_LIMITS
                .iter()
                .map(|limit| limit.as_secs_f64())
                .collect(),
            within_1ms: late.within(LATE_LIMITS[2]),
            max_s: late.max.as_secs_f64(),
        }
    }
}

/// A pass over the traces as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayResult {
    /// The pass, from 0.
    pub iteration: u32,
    /// The traces, in the order given.
    pub traces: Vec<TraceResult>,
    /// Operations in the traces: `wanted` and what is left out.
    pub found: u64,
    /// Operations to be replayed, of one copy.
    pub wanted: u64,
    /// Copies side by side.
    pub copies: u32,
    /// Operations that were done, of all copies; failed ones included.
    pub done: u64,
    /// What was left out, of one copy, and why.
    pub left_out: Vec<LeftOutResult>,
    /// JuiceFS: uses of open files whose open is missing, which tells of lines that were lost.
    pub gaps: u64,
    /// Processes (or threads) of one copy.
    pub processes: u64,
    /// Groups of processes that share open files, of one copy: each is replayed by one worker.
    pub groups: u64,
    /// From the first recorded start to the last one, at the speed asked for, s.
    pub span_s: f64,
    /// Files, directories and links that were made beforehand, of one copy.
    pub prepared: u64,
    /// Their bytes.
    pub prepared_bytes: u64,
    /// How late operations started; absent with `--as-fast-as-possible`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateResult>,
}

impl From<ReplayTotals> for ReplayResult {
    fn from(totals: ReplayTotals) -> ReplayResult {
        let ReplayTotals {
            iteration,
            traces,
            found,
            wanted,
            copies,
            done,
            left_out,
            gaps,
            processes,
            groups,
            span,
            prepared,
            prepared_bytes,
            late,
        } = totals;
        let traces = traces.into_iter();
        let left_out = left_out.into_iter();
        ReplayResult {
            iteration,
            traces: traces
                .map(|(path, format)| TraceResult { path, format })
                .collect(),
            found,
            wanted,
            copies,
            done,
            left_out: left_out
                .map(|(why, operations)| LeftOutResult { why, operations })
                .collect(),
            gaps,
            processes,
            groups,
            span_s: span.as_secs_f64(),
            prepared,
            prepared_bytes,
            late: late.map(LateResult::from),
        }
    }
}
