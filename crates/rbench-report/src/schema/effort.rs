//! How the workers of a row spent their time.

use rbench_core::Nanos;
use rbench_core::effort::Effort;
use rbench_core::outcome::PhaseOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the workers of a row spent their time, summed over them. Workers with
/// operations in several rows have all their time in each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkersResult {
    /// Workers that had such operations, those given up included.
    pub count: u64,
    /// From each worker's actual start to the end of its last operation,
    /// without `waited_s`, s.
    pub active_s: f64,
    /// Waits for intended starts, think time, start delays and calls that only prepare operations, s.
    pub waited_s: f64,
    /// The part of `active_s` in which a timed call was in flight, s.
    pub in_calls_s: f64,
    /// Service times of all their operations, divided by the depth, s.
    pub full_s: f64,
}

impl WorkersResult {
    /// Share of all their time, waits included, in which they could have had no
    /// further request in flight; `None` where no time passed.
    pub fn occupied(&self) -> Option<f64> {
        let all = self.active_s + self.waited_s;
        (all > 0.0).then(|| (self.full_s / all).min(1.0))
    }

    /// Share of all their time, waits included, that was spent outside calls
    /// and waits; `None` where no time passed.
    pub fn outside(&self) -> Option<f64> {
        let all = self.active_s + self.waited_s;
        (all > 0.0).then(|| ((self.active_s - self.in_calls_s) / all).max(0.0))
    }
}

impl From<Effort> for WorkersResult {
    fn from(effort: Effort) -> WorkersResult {
        let Effort {
            workers,
            active,
            waited,
            in_calls,
            full,
            // A row of its own.
            given_up: _,
            lost: _,
        } = effort;
        WorkersResult {
            count: workers,
            active_s: active.as_secs_f64(),
            waited_s: waited.as_secs_f64(),
            in_calls_s: in_calls.as_secs_f64(),
            full_s: full.as_secs_f64(),
        }
    }
}

/// Workers that were given up (`--op-timeout`), and what was lost with them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GivenUpResult {
    /// How many.
    pub workers: u64,
    /// Out of this many that had such operations.
    pub of: u64,
    /// When the first of them was given up, s after the common start.
    pub at_s: f64,
    /// Operations that they had done without error: in no other number.
    pub lost: u64,
    /// lost / (lost + items): the share of the rate that is lost with them; 0
    /// where nothing was done.
    pub share: f64,
}

impl GivenUpResult {
    /// Of a row; `None` where nobody was given up.
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
