//! Mounts that no longer answered, with all that failed there.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PhaseResult, RunResult};

/// A mount that no longer answered on a host: one finding, whatever failed there. That it did
/// not is what statfs(2) of it said, which was asked because operations failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeadMountResult {
    /// The host's name.
    pub host: String,
    /// Directory at which it is mounted.
    pub mount: String,
    /// Answer of statfs(2): the name of an error such as `ENOTCONN`, `nothing` (not within 5 s), or
    /// `unmounted` (it is no longer in the kernel's table of mounts).
    pub answer: String,
    /// Time at which rank 0 heard of it: UTC, RFC 3339.
    pub seen: String,
    /// The phase that ran, as it is called for people.
    pub phase: String,
    /// Time from the start of that phase to the first failed operation that led there, s; `None`:
    /// before the start.
    pub after_s: Option<f64>,
    /// The first failed operation.
    pub op: String,
    /// Its path.
    pub path: String,
    /// The name of its error.
    pub error: String,
    /// Operations that failed there in all rows, if that may be the reason: with errors that report
    /// a lost mount (ENOTCONN, ECONNABORTED, ESHUTDOWN, ESTALE), or that clients return without a
    /// server (EIO, ETIMEDOUT and the like), or with ENOENT where it is no longer mounted.
    pub failed: u64,
    /// The rows that they are of, in the order of execution.
    pub rows: Vec<DeadMountRow>,
}

/// Failures of a row on a dead mount. The row counts them among its errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeadMountRow {
    /// The pass over all phases, from 0.
    pub iteration: u32,
    /// The row, for machines.
    pub name: String,
    /// The row, for people.
    pub label: String,
    /// Number of operations, by name of the error.
    pub errors: BTreeMap<String, u64>,
}

impl DeadMountRow {
    /// All of them.
    pub fn failed(&self) -> u64 {
        self.errors.values().copied().fold(0, u64::saturating_add)
    }

    fn is_of(&self, phase: &PhaseResult) -> bool {
        (self.iteration, self.name.as_str()) == (phase.iteration, phase.name.as_str())
    }
}

impl RunResult {
    fn dead_rows(&self, phase: &PhaseResult) -> impl Iterator<Item = &DeadMountRow> {
        let rows = self.dead_mounts.iter().flat_map(|dead| &dead.rows);
        rows.filter(|row| row.is_of(phase))
    }

    /// Operations of a row that failed on dead mounts.
    pub fn failed_on_dead_mounts(&self, phase: &PhaseResult) -> u64 {
        let failed = self.dead_rows(phase).map(DeadMountRow::failed);
        failed.fold(0, u64::saturating_add)
    }

    /// Returns true if all `count` failures of a row with that error were on dead mounts, which are
    /// reported once.
    pub fn is_of_dead_mounts(&self, phase: &PhaseResult, error: &str, count: u64) -> bool {
        let of = |row: &DeadMountRow| row.errors.get(error).copied().unwrap_or(0);
        self.dead_rows(phase).map(of).fold(0, u64::saturating_add) >= count
    }
}
