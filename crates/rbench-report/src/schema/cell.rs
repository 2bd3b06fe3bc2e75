//! One run of a series, in the file of the series.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RunResult;

/// One run of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellResult {
    /// Its number in the series, from 0.
    pub index: u32,
    /// Name that distinguishes it from the others, such as `hosts=2 bs=4k`.
    pub name: String,
    /// The value of each key, in the order of `SeriesResult::keys`; of `knee`:
    /// `stage`, `rate` (operations a second; not of the stage `closed`), `window_s`.
    pub values: Vec<CellValue>,
    /// Time from the decision to run it to its result, preparation and removal
    /// included, s.
    pub wall_s: f64,
    /// `SeriesResult::dir` when it was run: a later launch mounts the built-in file
    /// system elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// Reason why there is no complete result; `None` if there is one.
    pub error: Option<String>,
    /// Its result; `None` if it did not get that far.
    pub result: Option<RunResult>,
}

/// The value that a key had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellValue {
    /// The key.
    pub key: String,
    /// Its value, as it was given.
    pub value: String,
}

impl CellResult {
    /// Returns true if it was run to its end, so that it need not be run again.
    pub fn is_complete(&self) -> bool {
        self.error.is_none() && self.result.as_ref().is_some_and(|result| result.complete)
    }

    /// Returns true if operations failed in it.
    pub fn has_failures(&self) -> bool {
        self.result
            .iter()
            .flat_map(|result| &result.phases)
            .any(|phase| phase.error_count() > 0)
    }

    /// The value of a key; `None` if it has none.
    pub fn value(&self, key: &str) -> Option<&str> {
        let found = self.values.iter().find(|value| value.key == key)?;
        Some(&found.value)
    }
}
