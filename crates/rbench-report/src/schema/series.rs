//! The types of a series' file, schema `rbench.series/1`: what several runs of
//! one launch yield together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CellResult, CheckResult, Io500Result, KneeResult, Run, RunResult};

/// The name of the schema that this version writes.
pub const SERIES_SCHEMA: &str = "rbench.series/1";

/// Result of a series of runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SeriesResult {
    /// The name and version of this schema; reading refuses other major versions.
    #[schemars(regex(pattern = r"^rbench\.series/1(\..+)?$"))]
    pub schema: String,
    /// The command: `sweep`, `knee`, `nn`, `quick`, `suite`, `io500`.
    pub kind: String,
    /// Name and version of a suite, such as `cubefs 1`; `None` for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// The part of the full size that it was run at (1: all of it).
    pub scale: f64,
    /// The launch. Its seed is that of the first cell unless one was given.
    pub run: Run,
    /// Launched ranks.
    pub ranks: u32,
    /// Names of the hosts, in the order of their first ranks.
    pub hosts: Vec<String>,
    /// The keys that were varied, in the order given, or the settings, each of one value.
    pub keys: Vec<SeriesKey>,
    /// Number of cells in the series; `None` where each depends on those before.
    pub planned: Option<u32>,
    /// The directory that the suite's commands work in; `None` where each cell has its
    /// own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// True if that is rbench's own file system in memory, a demonstration.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub embedded: bool,
    /// Place of the launch, on which the directories of its cells may depend; `None` in older
    /// files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launched: Option<Launched>,
    /// Steps of a suite, in order; empty for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<SeriesStep>,
    /// Cells that cannot be run on what was launched, and so are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// Cells that were run, in the order of their start.
    pub cells: Vec<CellResult>,
    /// True if every cell reached its end.
    pub complete: bool,
    /// Result of `knee`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee: Option<KneeResult>,
    /// Result of the check of `rbench DIR`: the promises of POSIX and Linux that its file system
    /// keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckResult>,
    /// Result of `io500`: the score, and whether it would be valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io500: Option<Io500Result>,
}

/// Place where a series was launched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Launched {
    /// The working directory, where relative paths start.
    pub cwd: String,
    /// The directory that `RBENCH_DIR` named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rbench_dir: Option<String>,
}

/// A step of a suite: some of the cells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesStep {
    /// Its name.
    pub name: String,
    /// Kind as which its cells are shown: `sweep`, `quick`.
    pub kind: String,
    /// Like [`SeriesResult::keys`], of these cells.
    pub keys: Vec<SeriesKey>,
    /// The number of its first cell.
    pub first: u32,
    /// Number of its cells.
    pub cells: u32,
}

/// A cell of a suite that is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// Reason: a clause.
    pub why: String,
}

/// A key that was varied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesKey {
    /// Its name.
    pub name: String,
    /// Its values, in the order given.
    pub values: Vec<String>,
}

impl SeriesResult {
    /// Puts a cell in its place, where one of the same number may be already, and updates all
    /// results that follow from the cells.
    pub fn put(&mut self, cell: CellResult) {
        self.cells.retain(|other| other.index != cell.index);
        let place = self.cells.partition_point(|other| other.index < cell.index);
        self.cells.insert(place, cell);
        if let Some(knee) = &mut self.knee {
            knee.update(&self.cells);
        }
        if let Some(io500) = &mut self.io500 {
            io500.update(&self.cells);
        }
    }

    /// The results of its cells.
    pub fn results(&self) -> impl Iterator<Item = &RunResult> + Clone {
        self.cells.iter().filter_map(|cell| cell.result.as_ref())
    }

    /// The complete cell of that number.
    pub fn done(&self, index: u32) -> Option<&CellResult> {
        self.cells
            .iter()
            .find(|cell| cell.index == index && cell.is_complete())
    }
}
