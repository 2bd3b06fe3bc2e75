//! IO500's score and whether it would be valid, computed from the cells of its series
//! alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CellResult, PhaseResult};

const GIB: f64 = 1_073_741_824.0;

/// Result of a rehearsal of IO500.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Io500Result {
    /// Time for which phases that write were to go on, s.
    pub stonewall_s: u64,
    /// Least time of these phases by the rules, s.
    pub required_s: u64,
    /// Reasons why it would not be valid whatever is measured: clauses.
    pub foretold: Vec<String>,
    /// All phases in their order, those that are not run included.
    pub phases: Vec<Io500Phase>,
    /// Geometric mean of the scored phases that moved bytes and have a value, GiB/s; `None`
    /// if none has.
    pub bandwidth: Option<f64>,
    /// Geometric mean of the other scored phases that have a value, thousands a second;
    /// `None` if none has.
    pub metadata: Option<f64>,
    /// √(`bandwidth` · `metadata`); `None` if one of them is missing.
    pub total: Option<f64>,
    /// True if there is no reason against it: none in `foretold`, and none of any phase.
    pub valid: bool,
}

/// A phase, and what it measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Io500Phase {
    /// Its name.
    pub name: String,
    /// The number of its cell; `None`: it was not to be run.
    pub cell: Option<u32>,
    /// The row of that cell's result which is its figure.
    pub row: String,
    /// The figure of the row: `access` (`access.bandwidth`, over `access.total_s`), `rate` (`rate`,
    /// over `elapsed_s`), `found` (`found.files_per_s`, over `elapsed_s`).
    pub figure: String,
    /// The unit of `value`: `GiB/s`, `kIOPS` (thousands a second).
    pub unit: String,
    /// True if it is part of the score.
    pub scored: bool,
    /// True if it writes, and so has to take `required_s`.
    pub writes: bool,
    /// The figure, in `unit`; `None` if it was not measured to its end.
    pub value: Option<f64>,
    /// The time over which that was measured, s.
    pub time_s: Option<f64>,
    /// Reasons why it is not valid: clauses; empty: it is.
    pub invalid: Vec<String>,
}

impl Io500Result {
    /// Computes everything again that follows from the cells.
    pub(super) fn update(&mut self, cells: &[CellResult]) {
        for phase in &mut self.phases {
            let cell = phase.cell;
            let cell = cells.iter().find(|other| Some(other.index) == cell);
            phase.update(cell, self.required_s);
        }
        let of = |unit: &str| {
            let phases = self.phases.iter();
            let phases = phases.filter(|phase| phase.scored && phase.unit == unit);
            geometric_mean(phases.filter_map(|phase| phase.value))
        };
        self.bandwidth = of("GiB/s");
        self.metadata = of("kIOPS");
        self.total = self
            .bandwidth
            .zip(self.metadata)
            .map(|(bandwidth, metadata)| (bandwidth * metadata).sqrt());
        let good = |phase: &Io500Phase| phase.invalid.is_empty();
        self.valid = self.foretold.is_empty() && self.phases.iter().all(good);
    }

    /// Every reason why it would not be valid, those that were known before first.
    pub fn reasons(&self) -> Vec<String> {
        let measured = self.phases.iter().filter(|phase| phase.cell.is_some());
        let measured = measured.flat_map(|phase| {
            let named = |why: &String| format!("{}: {why}", phase.name);
            phase.invalid.iter().map(named)
        });
        self.foretold.iter().cloned().chain(measured).collect()
    }
}

/// Geometric mean of positive values, like in IO500: other values are left out; `None` without any.
fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> = values.filter(|value| *value > 0.0).map(f64::ln).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

impl Io500Phase {
    fn update(&mut self, cell: Option<&CellResult>, required_s: u64) {
        (self.value, self.time_s, self.invalid) = (None, None, Vec::new());
        if self.cell.is_none() {
            self.invalid.push("it is not run".to_owned());
            return;
        }
        let Some(cell) = cell.filter(|cell| cell.is_complete()) else {
            self.invalid.push("it did not finish".to_owned());
            return;
        };
        let row = self.row_of(cell).cloned();
        let Some((value, time_s)) = row.as_ref().and_then(|row| self.measured(row)) else {
            self.invalid.push("it measured nothing".to_owned());
            return;
        };
        (self.value, self.time_s) = (Some(value), Some(time_s));
        let phases = cell.result.iter().flat_map(|result| &result.phases);
        let failed = phases
            .map(PhaseResult::error_count)
            .fold(0, u64::saturating_add);
        match failed {
            0 => {}
            1 => self.invalid.push("an operation failed".to_owned()),
            n => self.invalid.push(format!("{n} operations failed")),
        }
        if value <= 0.0 {
            self.invalid.push("its value is 0".to_owned());
        }
        if self.writes && time_s < required_s as f64 {
            self.invalid.push(format!(
                "it took {time_s:.3} s, but must take {required_s} s"
            ));
        }
        if row
            .and_then(|row| row.found)
            .is_some_and(|found| found.matches == 0)
        {
            self.invalid.push("nothing was found".to_owned());
        }
    }

    /// The row that is its figure, of its cell.
    pub fn row_of<'c>(&self, cell: &'c CellResult) -> Option<&'c PhaseResult> {
        let phases = &cell.result.as_ref()?.phases;
        phases.iter().find(|phase| phase.name == self.row)
    }

    /// Value and time of a row.
    fn measured(&self, row: &PhaseResult) -> Option<(f64, f64)> {
        match self.figure.as_str() {
            "access" => {
                let access = row.access?;
                Some((access.bandwidth / GIB, access.total_s))
            }
            "found" => Some((row.found?.files_per_s / 1e3, row.elapsed_s)),
            _ => Some((row.rate / 1e3, row.elapsed_s)),
        }
    }
}
