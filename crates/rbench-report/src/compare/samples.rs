//! The repetitions of each row of some runs, which are the samples of a comparison.

use std::collections::{BTreeMap, BTreeSet};

use rbench_core::Latency;
use rbench_core::permutation::SAMPLES_MIN;
use schemars::JsonSchema;
use serde::Serialize;

use super::Refusal;
use super::dist::{merged, read};
use crate::RunResult;
use crate::figures::{self, Output, Value, caches};
use crate::schema::{BEHIND, PhaseResult, ResidencyResult, SeriesResult};

/// A result file with its name in reports.
#[derive(Debug, Clone, Copy)]
pub struct Run<'r> {
    /// Its name.
    pub name: &'r str,
    /// Its content.
    pub result: &'r RunResult,
}

/// The command of a run: `meta`, `io` …
pub fn workload(result: &RunResult) -> &str {
    result.run.command.get(1).map_or("unknown", String::as_str)
}

/// The file of a series with its name in reports.
#[derive(Debug, Clone, Copy)]
pub struct SeriesRun<'r> {
    /// Its name.
    pub name: &'r str,
    /// Its content.
    pub series: &'r SeriesResult,
}

/// All repetitions of one row in the runs of a side.
#[derive(Debug, Clone, Default)]
pub struct RowSamples {
    /// Name for machines.
    pub name: String,
    /// Name for people.
    pub label: String,
    /// The kind of operation.
    pub op: String,
    /// For each run that has the row, its repetitions.
    pub runs: Vec<Vec<Repetition>>,
    /// Failed operations of all repetitions.
    pub errors: u64,
    /// Successful operations of all repetitions.
    pub items: u64,
    /// Bytes that the successful ones moved.
    pub bytes: u64,
    /// Cache verdicts of the repetitions: `cold`, `warm`, `mixed`; `unknown` if requests were
    /// counted, which the file system's client may have answered.
    pub caches: BTreeSet<String>,
    /// In an open loop: due operations of all repetitions that never started.
    pub unissued: u64,
    /// Workers of all repetitions. One waiting operation for each at the end does not count as a
    /// backlog.
    pub workers: u64,
    /// Phases that were excluded because they did not finish.
    pub stopped: u32,
    /// True if repetitions have a time and no rate.
    pub one_each: bool,
    /// True if repetitions are judged by their time.
    pub by_time: bool,
}

/// One phase of one iteration.
#[derive(Debug, Clone, Default)]
pub struct Repetition {
    /// Figures that are numbers, by name.
    pub numbers: BTreeMap<&'static str, f64>,
    /// Figures that are times.
    pub times: BTreeMap<&'static str, Latency>,
}

/// Kind and number of samples.
#[derive(Serialize, JsonSchema)]
pub struct Samples {
    /// `runs`, each with all its iterations; `iterations`; `published`.
    kind: &'static str,
    /// Number of runs or iterations.
    count: u64,
}

impl From<Basis> for Samples {
    fn from(basis: Basis) -> Samples {
        let (kind, count) = match basis {
            Basis::Runs(n) => ("runs", n),
            Basis::Iterations(n) => ("iterations", n),
            Basis::Published => ("published", 1),
        };
        let count = count as u64;
        Samples { kind, count }
    }
}

/// The samples of a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "Samples")]
pub enum Basis {
    /// Runs, each with all its iterations.
    Runs(usize),
    /// Iterations.
    Iterations(usize),
    /// A published figure.
    Published,
}

impl Basis {
    /// Describes the samples, for a table.
    pub fn words(self) -> String {
        let several = |n: usize, what: &str| match n {
            1 => format!("1 {what}"),
            n => format!("{n} {what}s"),
        };
        match self {
            Basis::Runs(n) => several(n, "run"),
            Basis::Iterations(n) => several(n, "iteration"),
            Basis::Published => "published".to_owned(),
        }
    }
}

impl Repetition {
    /// Returns true if its operations had intended starts.
    pub fn is_open_loop(&self) -> bool {
        self.times.contains_key("response")
    }
}

impl RowSamples {
    /// The samples: runs if there are enough of them, otherwise iterations.
    pub fn units(&self) -> Vec<Repetition> {
        if self.runs.len() >= SAMPLES_MIN {
            return self.runs.iter().map(|run| pooled(run)).collect();
        }
        self.runs.iter().flatten().cloned().collect()
    }

    /// The kind and number of [`RowSamples::units`].
    pub fn basis(&self) -> Basis {
        let iterations = self.runs.iter().map(Vec::len).sum();
        match self.runs.len() {
            runs if runs >= SAMPLES_MIN => Basis::Runs(runs),
            _ => Basis::Iterations(iterations),
        }
    }

    /// Mean number of bytes of an operation.
    pub fn bytes_each(&self) -> f64 {
        self.bytes as f64 / self.items.max(1) as f64
    }
}

/// The iterations of a run as one sample: numbers by their geometric mean, times merged; those
/// that all iterations have.
fn pooled(run: &[Repetition]) -> Repetition {
    let (first, others) = run.split_at(run.len().min(1));
    let mut pooled = first.first().cloned().unwrap_or_default();
    pooled.numbers.retain(|name, number| {
        let others: Option<Vec<f64>> = others
            .iter()
            .map(|r| r.numbers.get(name).copied())
            .collect();
        let Some(others) = others else { return false };
        let logs = std::iter::once(*number).chain(others).map(f64::ln);
        *number = (logs.sum::<f64>() / run.len() as f64).exp();
        true
    });
    pooled.times.retain(|name, times| {
        let all: Option<Vec<&Latency>> = run.iter().map(|r| r.times.get(name)).collect();
        all.map(|all| *times = merged(all)).is_some()
    });
    pooled
}

/// The rows of some runs, in the order of first appearance.
///
/// # Errors A distribution that cannot be read.
pub fn gather(runs: &[Run<'_>]) -> Result<Vec<RowSamples>, Refusal> {
    let mut rows: Vec<RowSamples> = Vec::new();
    for run in runs {
        for row in &mut rows {
            row.runs.push(Vec::new());
        }
        for phase in &run.result.phases {
            let place = rows.iter().position(|row| row.name == phase.name);
            let place = place.unwrap_or_else(|| {
                rows.push(RowSamples::new(phase));
                rows.len() - 1
            });
            rows[place].add(run.name, phase)?;
            // The rate of ops includes untimed opening and closing.
            rows[place].by_time |= workload(run.result) == "ops";
        }
    }
    for row in &mut rows {
        row.runs.retain(|run| !run.is_empty());
    }
    Ok(rows)
}

impl RowSamples {
    fn new(phase: &PhaseResult) -> RowSamples {
        RowSamples {
            name: phase.name.clone(),
            label: phase.label.clone(),
            op: phase.op.clone(),
            runs: vec![Vec::new()],
            one_each: true,
            ..RowSamples::default()
        }
    }

    /// Returns true if more than 1 % of due operations never started, the limit of `rbench knee`.
    pub(super) fn is_starved(&self) -> bool {
        let due = self
            .items
            .saturating_add(self.errors)
            .saturating_add(self.unissued);
        self.unissued as f64 > BEHIND * due as f64 && self.unissued > self.workers
    }

    /// Returns true if operations had intended starts.
    pub(super) fn is_open_loop(&self) -> bool {
        let mut all = self.runs.iter().flatten();
        all.any(Repetition::is_open_loop)
    }

    /// Adds the phase as a repetition of the last run.
    fn add(&mut self, run: &str, phase: &PhaseResult) -> Result<(), Refusal> {
        if !phase.complete {
            self.stopped += 1;
            return Ok(());
        }
        self.errors = self.errors.saturating_add(phase.error_count());
        self.unissued = self.unissued.saturating_add(phase.unissued);
        let workers = phase.workers.as_ref().map_or(0, |workers| workers.workers);
        self.workers = self.workers.saturating_add(workers);
        if phase.items == 0 {
            return Ok(());
        }
        self.items = self.items.saturating_add(phase.items);
        self.bytes = self.bytes.saturating_add(phase.bytes);
        let asked = |found: &ResidencyResult| {
            let requests = found.total.requests.as_ref();
            requests.is_some_and(|counted| counted.operations > 0)
        };
        let unknown = phase.residency.as_ref().filter(|found| asked(found));
        let unknown = unknown.map(|_| caches::UNKNOWN.to_owned());
        self.caches.extend(phase.cache.clone().or(unknown));
        self.one_each &= phase.one_each;
        let mut repetition = Repetition::default();
        for (figure, _) in figures::listed(Output::Compare) {
            match figure.of(phase) {
                Some(Value::Times(hist)) => {
                    let times = read(hist).map_err(|error| Refusal::Unreadable {
                        run: run.to_owned(),
                        row: phase.name.clone(),
                        error,
                    })?;
                    repetition.times.insert(figure.name, times);
                }
                Some(value) => repetition
                    .numbers
                    .extend(Some(figure.name).zip(value.number(None))),
                None => {}
            }
        }
        if let Some(last) = self.runs.last_mut() {
            last.push(repetition);
        }
        Ok(())
    }
}
