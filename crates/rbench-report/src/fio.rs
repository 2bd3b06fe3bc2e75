//! The outputs of `rbench fio` in the formats of fio 3.33: normal, terse, JSON, and the lines of
//! its logs.
//!
//! Everything is a pure function of a [`FioRun`]. Facts that fio does not report (response times,
//! hosts, the slowest rank) are in rbench's own report. Where fio's numbers are wrong ours are
//! right: no percentile exceeds the maximum, and none is cut off at 17 s.

pub mod compressed;
mod form;
mod json;
pub mod logs;
mod machine;
mod measured;
mod normal;
mod numbers;
pub mod rates;
mod terse;
mod tree;

use jiff::Timestamp;
use rbench_core::steady;

use crate::schema::{FioEntry, FioSteady};
use crate::times::{CTIME, local};
use numbers::Form;

pub use form::render;
pub use json::json;
pub use machine::{Machine, calibration};
pub use normal::normal;
pub use terse::terse;

/// The default version of the terse output.
pub const TERSE_VERSION: u8 = 3;

/// A run of `rbench fio`, or its state during the run (`status-interval`).
#[derive(Debug, Clone, PartialEq)]
pub struct FioRun {
    /// The version shown as fio's, such as `fio-3.33`.
    pub version: String,
    /// Version of the terse output, 2 to 5.
    pub terse_version: u8,
    /// Start of the program, ms since the epoch.
    pub started_ms: u64,
    /// End of the run, or now, ms since the epoch.
    pub ended_ms: u64,
    /// Offset of times of day from UTC, seconds east.
    pub utc_offset_s: i32,
    /// Options of the section `global`, as typed.
    pub global_options: Vec<(String, String)>,
    /// Entries in the order of jobs and workers, as [`add`] builds them.
    pub entries: Vec<FioEntry>,
    /// The use of devices and processors during the run.
    pub machine: Machine,
}

impl FioSteady {
    /// The values that the criterion judges, one for each second.
    fn values(&self) -> impl ExactSizeIterator<Item = f64> + Clone {
        let values = match self.criterion.bandwidth {
            true => &self.bytes_per_s,
            false => &self.iops,
        };
        values.iter().map(|value| *value as f64)
    }

    /// The value that is compared with the limit.
    fn reached(&self) -> f64 {
        self.criterion.measure(self.values()).unwrap_or(0.0)
    }
}

/// The mean; 0 without values.
fn mean(values: &[u64]) -> f64 {
    steady::mean(values.iter().map(|value| *value as f64))
}

/// Adds an entry, or merges it into the last one if both are of a group that is reported as one.
pub fn add(entries: &mut Vec<FioEntry>, entry: FioEntry) {
    let grouped = |one: &FioEntry| one.group_reporting.then_some(one.group);
    let together = |last: &FioEntry| grouped(last).is_some() && grouped(last) == grouped(&entry);
    match entries.last_mut() {
        Some(last) if together(last) => last.outcome.merge(&entry.outcome),
        _ => entries.push(entry),
    }
}

impl FioEntry {
    /// The format of numbers in the normal output.
    fn form(&self) -> Form {
        Form {
            figures: self.shown.significant_figures.clamp(1, 10) as usize,
            bits: self.shown.bits,
        }
    }

    /// Latency limit (ns), window (us), percentile; fio's values without a target.
    fn target_fields(&self) -> (u64, u64, f64) {
        self.target.map_or((0, 0, 100.0), |target| {
            (target.latency.0, target.window.0 / 1000, target.percentile)
        })
    }

    /// The depth that kept the target, or the configured one.
    fn depth_reached(&self) -> u32 {
        match (self.target, self.outcome.latency_depth) {
            (Some(_), found) if found > 0 => found,
            _ => self.depth,
        }
    }
}

impl FioRun {
    /// `description` of an entry's job, or of all jobs if it has none.
    fn description<'r>(&'r self, entry: &'r FioEntry) -> Option<&'r str> {
        let mut all = entry.options.iter().chain(&self.global_options);
        let (_, text) = all.find(|(name, _)| name == "description")?;
        Some(text.as_str()).filter(|text| !text.is_empty())
    }

    /// The end as `Sat Nov 21 07:44:02 2026`.
    fn date(&self) -> String {
        let at = i64::try_from(self.ended_ms).ok();
        at.and_then(|ms| Timestamp::from_millisecond(ms).ok())
            .and_then(|at| local(at, self.utc_offset_s, CTIME))
            .unwrap_or_else(|| format!("{} ms", self.ended_ms))
    }
}
