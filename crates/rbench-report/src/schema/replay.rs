//! Differences between the operations of a replay and those of the traces.

use rbench_core::hist::Hist;
use rbench_core::outcome::{Differ, Replayed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The recorded results of the operations of a row of a replay, and the differences from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayedResult {
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
