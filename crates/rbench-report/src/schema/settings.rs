//! The settings of a run as data, and the figures of its iterations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PhaseResult;

/// One setting of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingResult {
    /// For people, as in `spec`: `128 KiB`.
    pub text: String,
    /// A number in `unit`, true or false, or the text again.
    #[schemars(extend("type" = ["number", "boolean", "string"]))]
    pub value: Value,
    /// `bytes`, `ns`, `1/s` (operations a second), `percent`, `count`; `None` where the value is
    /// not a number.
    pub unit: Option<String>,
}

/// Result of one iteration of a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IterationResult {
    /// The iteration, from 0.
    pub iteration: u32,
    /// Its rate or bandwidth, in the unit of the row.
    pub value: f64,
    /// Mean service time, ns.
    pub mean_ns: f64,
    /// Median service time, ns.
    pub p50_ns: u64,
    /// 95th percentile of the service time, ns.
    pub p95_ns: u64,
    /// 99th percentile of the service time, ns.
    pub p99_ns: u64,
    /// 99.9th percentile of the service time, ns.
    pub p999_ns: u64,
    /// Longest service time, ns.
    pub max_ns: u64,
}

impl IterationResult {
    /// The result of a phase, with its rate or bandwidth.
    pub(crate) fn of(phase: &PhaseResult, value: f64) -> IterationResult {
        let service = &phase.latency.service;
        IterationResult {
            iteration: phase.iteration,
            value,
            mean_ns: service.mean_ns,
            p50_ns: service.p50_ns,
            p95_ns: service.p95_ns,
            p99_ns: service.p99_ns,
            p999_ns: service.p999_ns,
            max_ns: service.max_ns,
        }
    }
}
