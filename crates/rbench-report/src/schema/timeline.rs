//! The course of a phase, slice by slice.

use rbench_core::coarse::CoarseLatency;
use rbench_core::timeline::{Gap, Latencies, Timeline};
use rbench_core::{Nanos, Rank};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Operations that ended in one slice of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineRow {
    /// Start of the slice, s after the common start.
    pub t_s: f64,
    /// Operations that ended in it without error.
    pub items: u64,
    /// Bytes that these moved.
    pub bytes: u64,
    /// Operations that failed.
    pub errors: u64,
    /// The longest service time among them, ns; exact.
    pub max_ns: u64,
    /// Median service time of the items, ns: up to 1.6 % or 15 ns too high. 0 without
    /// items, and in older files.
    #[serde(default)]
    pub p50_ns: u64,
    /// 99th percentile of the service time, likewise.
    #[serde(default)]
    pub p99_ns: u64,
    /// Response times; in an open loop only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<SliceTimes>,
    /// Service times for a heat map: pairs of a bucket's lowest value in ns and the items
    /// in it, ascending. Four buckets are a factor of two; below 2048 ns each is 256 ns
    /// wide. Empty in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heat: Vec<(u64, u64)>,
}

/// Times of one slice, as far as there were any.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SliceTimes {
    /// Median, ns: up to 1.6 % or 15 ns too high.
    pub p50_ns: u64,
    /// 99th percentile, likewise.
    pub p99_ns: u64,
    /// The longest, ns; exact.
    pub max_ns: u64,
}

impl SliceTimes {
    fn of(latency: &CoarseLatency) -> SliceTimes {
        SliceTimes {
            p50_ns: latency.quantile(0.5).0,
            p99_ns: latency.quantile(0.99).0,
            max_ns: latency.max().0,
        }
    }
}

/// The longest time without a finished operation, failed ones included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GapResult {
    /// Length, s.
    pub length_s: f64,
    /// Since when, s after the common start.
    pub from_s: f64,
    /// The rank that finished nothing; `None`: no worker of the host did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The host.
    pub host: String,
}

impl GapResult {
    pub(super) fn of(gap: Gap, rank: Option<Rank>, host: &str) -> GapResult {
        GapResult {
            length_s: gap.length.as_secs_f64(),
            from_s: gap.from.as_secs_f64(),
            rank: rank.map(|rank| rank.0),
            host: host.to_owned(),
        }
    }
}

/// The share of the bins, from that of `from` to the last one that is not empty, in
/// which no operation ended; `None` without operations.
pub(super) fn empty_share(timeline: &Timeline, from: Nanos) -> Option<f64> {
    let first = Timeline::bin_of(timeline.interval(), timeline.power(), from);
    let bins = timeline.bins().get(first..)?;
    let empty = bins.iter().filter(|bin| bin.operations() == 0).count();
    (!bins.is_empty()).then(|| empty as f64 / bins.len() as f64)
}

/// The rows of a timeline; with response times in an `open_loop`.
pub(super) fn rows(timeline: &Timeline, open_loop: bool) -> Vec<TimelineRow> {
    let rows = timeline.slices().map(|(start, bin, latencies)| {
        let Latencies { service, response } = latencies;
        let SliceTimes {
            p50_ns,
            p99_ns,
            max_ns,
        } = SliceTimes::of(&service);
        TimelineRow {
            t_s: start.as_secs_f64(),
            items: bin.items,
            bytes: bin.bytes,
            errors: bin.errors,
            max_ns,
            p50_ns,
            p99_ns,
            response: open_loop.then(|| SliceTimes::of(&response)),
            heat: service
                .heat()
                .into_iter()
                .map(|(at, n)| (at.0, n))
                .collect(),
        }
    });
    rows.collect()
}
