//! Workers that were given up.

use rbench_core::Nanos;
use rbench_core::effort::Effort;
use rbench_core::outcome::PhaseOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Workers that were given up (`--op-timeout`), and what was lost with them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GivenUpResult {
    /// Number of workers.
    pub workers: u64,
    /// Out of this many that had such operations.
    pub of: u64,
    /// Time at which the first of them was given up, s after the common start.
    pub at_s: f64,
    /// Operations that they had done without error: in no other number.
    pub lost: u64,
    /// lost / (lost + items): the share of the rate that is lost with them; 0
    /// where nothing was done.
    pub share: f64,
}

impl GivenUpResult {
    /// The given-up workers of a row; `None` where there are none.
    pub(super) fn of(outcome: &PhaseOutcome) -> Option<GivenUpResult> {
        let Effort {
            workers,
            given_up,
            lost,
            ..
        } = outcome.effort;
        let all = lost.saturating_add(outcome.items);
        (given_up > 0).then(|| GivenUpResult {
            workers: given_up,
            of: workers,
            at_s: outcome.given_up_at.unwrap_or(Nanos(0)).as_secs_f64(),
            lost,
            share: if all > 0 {
                lost as f64 / all as f64
            } else {
                0.0
            },
        })
    }
}
