//! Ranks and hosts that are too many for a row each: the spread of every column
//! over all of them.

use rbench_core::Nanos;
use rbench_core::spread::{HostSpread, Quantiles, RankSpread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a column is spread over ranks or hosts: the quantile q is the ⌈q·n⌉-th
/// smallest value.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct QuantilesResult<T> {
    /// The smallest.
    pub min: T,
    /// 1st percentile.
    pub p1: T,
    /// 5th percentile.
    pub p5: T,
    /// 25th percentile.
    pub p25: T,
    /// Median.
    pub p50: T,
    /// 75th percentile.
    pub p75: T,
    /// 95th percentile.
    pub p95: T,
    /// 99th percentile.
    pub p99: T,
    /// The largest.
    pub max: T,
}

/// All ranks of a phase, when there are too many for a row each; columns as in
/// [`super::RankResult`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrowdResult {
    /// Number of ranks.
    pub ranks: u64,
    /// Those that had something to do.
    pub busy: u64,
    /// Median of the elapsed times of the busy ones, s; 0 if there is none.
    pub busy_elapsed_p50_s: f64,
    /// Operations done without error.
    pub items: QuantilesResult<u64>,
    /// Failed operations.
    pub errors: QuantilesResult<u64>,
    /// The end of the last worker after the common start, s.
    pub elapsed_s: QuantilesResult<f64>,
    /// Median service time, ns.
    pub p50_ns: QuantilesResult<u64>,
    /// 99th percentile of the service time, ns.
    pub p99_ns: QuantilesResult<u64>,
    /// Longest service time, ns.
    pub max_ns: QuantilesResult<u64>,
    /// CPU time, user and system, that the process used, s.
    pub cpu_s: QuantilesResult<f64>,
}

/// All hosts of a phase, when there are too many for a row each; columns as in
/// [`super::HostResult`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostCrowdResult {
    /// Number of hosts.
    pub hosts: u64,
    /// Operations done without error.
    pub items: QuantilesResult<u64>,
    /// Bytes that these moved.
    pub bytes: QuantilesResult<u64>,
    /// Failed operations.
    pub errors: QuantilesResult<u64>,
    /// The end of the last worker after the common start, s.
    pub elapsed_s: QuantilesResult<f64>,
    /// items / elapsed_s of the host.
    pub rate: QuantilesResult<f64>,
    /// Median service time, ns.
    pub p50_ns: QuantilesResult<u64>,
    /// 99th percentile of the service time, ns.
    pub p99_ns: QuantilesResult<u64>,
    /// Longest service time, ns.
    pub max_ns: QuantilesResult<u64>,
}

fn each<T, U>(quantiles: &Quantiles<T>, of: impl Fn(&T) -> U) -> QuantilesResult<U> {
    let Quantiles {
        min,
        p1,
        p5,
        p25,
        p50,
        p75,
        p95,
        p99,
        max,
    } = quantiles;
    QuantilesResult {
        min: of(min),
        p1: of(p1),
        p5: of(p5),
        p25: of(p25),
        p50: of(p50),
        p75: of(p75),
        p95: of(p95),
        p99: of(p99),
        max: of(max),
    }
}

fn count(n: &u64) -> u64 {
    *n
}

fn ns(time: &Nanos) -> u64 {
    time.0
}

impl From<&RankSpread> for CrowdResult {
    fn from(crowd: &RankSpread) -> CrowdResult {
        let RankSpread {
            ranks,
            busy,
            busy_median,
            items,
            errors,
            elapsed,
            p50,
            p99,
            max,
            cpu,
        } = crowd;
        CrowdResult {
            ranks: *ranks,
            busy: *busy,
            busy_elapsed_p50_s: busy_median.as_secs_f64(),
            items: each(items, count),
            errors: each(errors, count),
            elapsed_s: each(elapsed, |t| t.as_secs_f64()),
            p50_ns: each(p50, ns),
            p99_ns: each(p99, ns),
            max_ns: each(max, ns),
            cpu_s: each(cpu, |t| t.as_secs_f64()),
        }
    }
}

impl From<&HostSpread> for HostCrowdResult {
    fn from(crowd: &HostSpread) -> HostCrowdResult {
        let HostSpread {
            hosts,
            items,
            bytes,
            errors,
            elapsed,
            rate,
            p50,
            p99,
            max,
        } = crowd;
        HostCrowdResult {
            hosts: *hosts,
            items: each(items, count),
            bytes: each(bytes, count),
            errors: each(errors, count),
            elapsed_s: each(elapsed, |t| t.as_secs_f64()),
            rate: each(rate, |rate| *rate),
            p50_ns: each(p50, ns),
            p99_ns: each(p99, ns),
            max_ns: each(max, ns),
        }
    }
}
