//! Iterations until their rates are known well enough.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `--iterations auto`: the options, and the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepetitionResult {
    /// `--precision`: the largest [`super::SummaryRow::precision`] of a rate that is
    /// enough, a share.
    pub precision: f64,
    /// `--max-iterations`
    pub max_iterations: u32,
    /// `--max-time`, ns; `None`: no limit.
    pub max_time_ns: Option<u64>,
    /// Names of rows that were not waited for: each rank makes and removes the few
    /// directories of its tree as fast as chance has it.
    pub not_awaited: Vec<String>,
    /// Reason why no further iteration started; `None` if the run was stopped, and in a journal.
    pub enough: Option<Enough>,
    /// Names of rows whose rate is not known so well, in the order of `summary`.
    pub missed: Vec<String>,
}

/// Reason why there are no more iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Enough {
    /// Every rate is known well enough.
    Precision,
    /// There were as many as there may be.
    MaxIterations,
    /// There was no time for another one.
    MaxTime,
}

impl Enough {
    /// In words that follow "ended".
    pub fn words(self) -> &'static str {
        match self {
            Enough::Precision => "as every rate is known well enough",
            Enough::MaxIterations => "at --max-iterations",
            Enough::MaxTime => "at --max-time",
        }
    }
}
