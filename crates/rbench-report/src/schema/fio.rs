//! Data of fio's outputs: the jobs of `rbench fio` as they are reported, with the exact sums from
//! which means and deviations follow. [`crate::fio`] makes the outputs.

use rbench_core::Nanos;
use rbench_core::job::{FioShown, JobOutcome};
use rbench_core::machine::HostUse;
use rbench_core::steady::Criterion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Output of `rbench fio`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FioForm {
    /// Printed formats, in this order: `normal`, `terse`, `json`, `json+`.
    pub formats: Vec<String>,
    /// The version shown as fio's.
    pub version: String,
    /// Options of the section `global`, as they were typed.
    pub global_options: Vec<(String, String)>,
    /// In the order of jobs and workers.
    pub entries: Vec<FioEntry>,
    /// Activity of devices and processors of the hosts meanwhile.
    pub hosts: Vec<HostUse>,
    /// Idle processors are shown each by itself.
    pub each_cpu: bool,
}

/// One entry of fio's report: a worker, or the workers of a group of jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FioEntryResult")]
pub struct FioEntry {
    /// Name of the job; of the first one in a group.
    pub name: String,
    /// Its group (`groupid`), from 0.
    pub group: u32,
    /// True if it covers all workers of its group.
    pub group_reporting: bool,
    /// Host of the worker, where a run has several and each worker an entry.
    pub host: Option<String>,
    /// Options of the job, as they were typed.
    pub options: Vec<(String, String)>,
    /// `iodepth`
    pub depth: u32,
    /// Display of its numbers.
    pub shown: FioShown,
    /// Search of `latency_target`.
    pub target: Option<FioTarget>,
    /// Result of `steadystate`.
    pub steady: Option<FioSteady>,
    /// Results of the workers.
    pub outcome: JobOutcome,
}

/// `latency_target`, `latency_window`, `latency_percentile`
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FioTargetResult")]
pub struct FioTarget {
    /// Latency to keep, ns.
    #[serde(rename = "latency_ns")]
    pub latency: Nanos,
    /// Over windows of this length, ns.
    #[serde(rename = "window_ns")]
    pub window: Nanos,
    /// Percentage of operations that must keep it.
    pub percentile: f64,
}

/// Result of `steadystate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FioSteadyResult")]
pub struct FioSteady {
    /// The criterion.
    #[serde(flatten)]
    pub criterion: Criterion,
    /// Length of the window, ns.
    #[serde(rename = "duration_ns")]
    pub duration: Nanos,
    /// True if the limit was kept.
    pub attained: bool,
    /// IOPS of each second of the last window.
    pub iops: Vec<u64>,
    /// Bytes per second in each.
    pub bytes_per_s: Vec<u64>,
}
