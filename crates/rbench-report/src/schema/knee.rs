//! The result of `rbench knee`, computed from the cells of its series alone.

use rbench_core::hist::HistError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CellResult, PhaseResult};

/// Share of the operations that were due, above which those that did not start mean
/// that the rate was not kept up.
pub(crate) const BEHIND: f64 = 0.01;
/// Above this share nobody need look twice.
const FAR_BEHIND: f64 = 0.1;
/// Share of the operations that a rate and a time make due, below which the workload
/// had another rate or too few items.
const DUE: f64 = 0.9;

/// Kinds of operation of a mix's rows that represent all of it: its rounds, or all its operations.
const WHOLE: [&str; 2] = ["round", "mixed"];

/// The highest rate at which an objective holds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct KneeResult {
    /// The objective.
    pub objective: KneeObjective,
    /// The lowest rate that was allowed, operations a second; `None`: any.
    pub from: Option<f64>,
    /// The highest one; `None`: any.
    pub to: Option<f64>,
    /// Largest distance of `held` and `failed`, as a part of the rate.
    pub precision: f64,
    /// The least time of a step, s.
    pub time_s: f64,
    /// Distribution of the intended starts: `uniform`, `poisson`.
    pub arrival: String,
    /// The steps in the order in which they ran.
    pub steps: Vec<KneeStep>,
    /// The highest rate at which the objective held, operations a second of the whole
    /// group: that of the confirming window where there is one, or else of a step of
    /// the search. `None`: it held nowhere.
    pub held: Option<f64>,
    /// The lowest rate above `held` at which it did not; `None`: there was none.
    pub failed: Option<f64>,
    /// True if `held` held in the longer window, too.
    pub confirmed: bool,
    /// Reason why the search could not go on; `None`: it could.
    pub trouble: Option<String>,
}

/// Objective for every row that is judged.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct KneeObjective {
    /// Limits of the response time.
    pub limits: Vec<KneeLimit>,
    /// Share of the operations that may fail, 0 to 1.
    pub errors: f64,
    /// The name of the row that is judged; `None`: all that have intended starts.
    pub row: Option<String>,
}

/// A limit of the response time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KneeLimit {
    /// `mean`, `max`, or a percentile such as `p99`.
    pub figure: String,
    /// The percentile, 0 to 100; `None` for `mean` and `max`.
    pub percentile: Option<f64>,
    /// The longest time that is allowed, ns.
    pub most_ns: u64,
}

/// A rate that was kept up for a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KneeStep {
    /// The number of its cell.
    pub cell: u32,
    /// Its purpose: `closed` (one operation after the other), `search`, `confirm`.
    pub stage: String,
    /// Operations a second that were to start; `None` for `closed`.
    pub rate: Option<f64>,
    /// Length, s.
    pub window_s: f64,
    /// True if the objective held in every row that is judged; `None` for `closed` and where it
    /// cannot be decided.
    pub held: Option<bool>,
    /// True if a row's backlog was so large that the step was not tried again.
    pub far_behind: bool,
    /// The violated parts of the objective in any row: the figures that were above their limits,
    /// `errors`, `behind`; empty if everything held.
    pub reasons: Vec<String>,
    /// The rows that are judged.
    pub rows: Vec<KneeRow>,
}

/// One row of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KneeRow {
    /// Name of the phase for machines.
    pub name: String,
    /// Name of the phase for people.
    pub label: String,
    /// The kind of operation.
    #[serde(default)]
    pub op: String,
    /// Operations a second that ended without error.
    pub rate: f64,
    /// Operations done without error.
    pub items: u64,
    /// Failed operations.
    pub errors: u64,
    /// Operations that were due and never started.
    pub unissued: u64,
    /// Operations of a mix that were due and found no file to work on.
    #[serde(default)]
    pub missed: u64,
    /// Figures of the response time: mean, percentiles ascending, maximum; empty for
    /// `closed`.
    pub figures: Vec<KneeFigure>,
}

/// A figure of the response time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KneeFigure {
    /// `mean`, `max`, or a percentile such as `p99`.
    pub name: String,
    /// Its value, ns.
    pub ns: f64,
}

impl KneeRow {
    /// The value of a figure, ns.
    pub fn figure(&self, name: &str) -> Option<f64> {
        let found = self.figures.iter().find(|figure| figure.name == name)?;
        Some(found.ns)
    }

    fn due(&self) -> u64 {
        let all = [self.items, self.errors, self.unissued, self.missed];
        all.into_iter().fold(0, u64::saturating_add)
    }

    /// Returns true if none of its operations had an intended start, or none was due.
    fn says_nothing(&self) -> bool {
        let other = [self.errors, self.unissued, self.missed];
        self.figures.is_empty() && other == [0; 3]
    }
}

impl KneeStep {
    /// The share of the operations that the rarest judged row had; `None` where too many did not
    /// start, which are counted with one row.
    pub fn rarest_share(&self) -> Option<f64> {
        let all = self.rate? * self.window_s;
        let rows = self.rows.iter().filter(|row| !row.says_nothing());
        let behind = |row: &KneeRow| row.unissued as f64 > BEHIND * row.due() as f64;
        if self.rows.iter().any(behind) || all <= 0.0 {
            return None;
        }
        let shares = rows.map(|row| row.due() as f64 / all);
        shares.reduce(f64::min).filter(|share| *share > 0.0)
    }
}

impl KneeObjective {
    /// The percentiles that are shown: the usual ones and those that have a limit.
    fn percentiles(&self) -> Vec<f64> {
        let own = self.limits.iter().filter_map(|limit| limit.percentile);
        let mut all: Vec<f64> = [50.0, 99.0].into_iter().chain(own).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }

    fn figures(&self, phase: &PhaseResult) -> Result<Vec<KneeFigure>, HistError> {
        let Some(response) = phase.latency.response.as_ref().filter(|h| h.count > 0) else {
            return Ok(Vec::new());
        };
        let decoded = response.latency()?;
        let figure = |name: String, ns: f64| KneeFigure { name, ns };
        let mut all = vec![figure("mean".to_owned(), response.mean_ns)];
        all.extend(self.percentiles().into_iter().map(|percent| {
            let ns = decoded.value_at_percentile(percent) as f64;
            figure(format!("p{percent}"), ns)
        }));
        all.push(figure("max".to_owned(), response.max_ns as f64));
        Ok(all)
    }

    /// Returns true if a row is judged: in an open loop it has response times.
    fn judges(&self, phase: &PhaseResult, closed: bool) -> bool {
        let named = self.row.as_ref().is_none_or(|row| *row == phase.name);
        let follows = matches!(phase.op.as_str(), "fsync" | "close");
        named && (closed && !follows || phase.latency.response.is_some())
    }

    /// The violated parts of the objective in a row.
    fn broken(&self, row: &KneeRow, workers: u64) -> Vec<String> {
        let mut reasons = Vec::new();
        for limit in &self.limits {
            match row.figure(&limit.figure) {
                Some(ns) if ns <= limit.most_ns as f64 => {}
                // Where no operation ended, no limit holds.
                _ => reasons.push(limit.figure.clone()),
            }
        }
        let tried = row.items.saturating_add(row.errors);
        if row.errors as f64 > self.errors * tried as f64 {
            reasons.push("errors".to_owned());
        }
        let behind = row.unissued as f64 / row.due().max(1) as f64;
        // Operations that wait at the end, one for each worker, are not a backlog.
        if behind > BEHIND && row.unissued > workers {
            reasons.push("behind".to_owned());
        }
        // Operations that were passed over were no load on the target.
        if row.missed as f64 > BEHIND * row.due() as f64 {
            reasons.push("missed".to_owned());
        }
        reasons
    }
}

impl KneeResult {
    /// Computes everything but what was asked for from the cells of the series.
    pub fn update(&mut self, cells: &[CellResult]) {
        self.trouble = None;
        let steps = cells.iter().filter_map(|cell| self.step(cell)).collect();
        self.steps = steps;
        let steps = || self.steps.iter();
        let rates = |held: bool, stage: &'static str| {
            let of_stage = steps().filter(move |step| step.stage == stage);
            let chosen = of_stage.filter(move |step| step.held == Some(held));
            chosen.filter_map(|step| step.rate)
        };
        let confirmed = rates(true, "confirm").reduce(f64::max);
        // A short step says nothing of a rate that a longer window has refuted.
        let refuted = rates(false, "confirm").reduce(f64::min);
        let stands = |rate: &f64| refuted.is_none_or(|refuted| *rate < refuted);
        let low = confirmed.or_else(|| rates(true, "search").filter(stands).reduce(f64::max));
        // A rate that held when it was tried again did hold.
        let held_later = |rate: &f64| rates(true, "search").any(|other| other == *rate);
        let searched = rates(false, "search").filter(|rate| !held_later(rate));
        let all = searched.chain(rates(false, "confirm"));
        let failed = all
            .filter(|rate| low.is_none_or(|low| *rate > low))
            .reduce(f64::min);
        (self.held, self.failed, self.confirmed) = (low, failed, confirmed.is_some());
        self.trouble = steps().find_map(|step| self.trouble_of(step));
    }

    /// The step of a cell; `None` if it has no result.
    fn step(&self, cell: &CellResult) -> Option<KneeStep> {
        let result = cell.result.as_ref().filter(|_| cell.is_complete())?;
        let stage = cell.value("stage")?.to_owned();
        let closed = stage == "closed";
        // The rate of a mix is that of its rounds, or of all its operations.
        let has = |op: &str| result.phases.iter().any(|phase| phase.op == op);
        let unit = WHOLE.into_iter().find(|op| has(op));
        let counts = |phase: &PhaseResult| !closed || unit.is_none_or(|unit| phase.op == unit);
        let judged: Vec<&PhaseResult> = result
            .phases
            .iter()
            .filter(|phase| counts(phase) && self.objective.judges(phase, closed))
            .collect();
        let mut reasons = Vec::new();
        let mut far_behind = false;
        let mut rows = Vec::new();
        for phase in judged {
            let row = KneeRow {
                name: phase.name.clone(),
                label: phase.label.clone(),
                op: phase.op.clone(),
                rate: phase.rate,
                items: phase.items,
                errors: phase.error_count(),
                unissued: phase.unissued,
                missed: phase.missed,
                figures: self.objective.figures(phase).unwrap_or_default(),
            };
            let workers = phase.workers.as_ref().map_or(0, |workers| workers.workers);
            if !closed && !row.says_nothing() {
                far_behind |= row.unissued as f64 > FAR_BEHIND * row.due() as f64;
                reasons.extend(self.objective.broken(&row, workers));
            }
            rows.push(row);
        }
        reasons.sort();
        reasons.dedup();
        Some(KneeStep {
            cell: cell.index,
            stage,
            rate: cell.value("rate").and_then(|rate| rate.parse().ok()),
            window_s: cell.value("window_s").and_then(|s| s.parse().ok())?,
            held: (!closed && !rows.is_empty()).then_some(reasons.is_empty()),
            far_behind,
            reasons,
            rows,
        })
    }

    /// The reason why a step gives no result.
    fn trouble_of(&self, step: &KneeStep) -> Option<String> {
        if let (true, Some(row)) = (step.rows.is_empty(), &self.objective.row) {
            return Some(format!("--row {row}: the workload has no such row"));
        }
        let Some(rate) = step.rate else {
            let some = step.rows.iter().any(|row| row.rate > 0.0);
            return (!some).then(|| "no operation succeeded in the closed-loop step".to_owned());
        };
        if step.rows.iter().all(KneeRow::says_nothing) {
            return Some(match &self.objective.row {
                Some(row) => format!(
                    "--row {row}: none of its operations was due at {rate} operations a second in {} s: use a longer \
                     --time or a higher --from",
                    step.window_s
                ),
                None => "no operation has an intended start: the workload does not support a target rate".to_owned(),
            });
        }
        // A mix has a row of all its operations, or of its rounds, beside that of each.
        let is_whole = |row: &&KneeRow| WHOLE.contains(&row.op.as_str());
        let has_whole = step.rows.iter().any(|row| is_whole(&row));
        let counted = step.rows.iter().filter(|row| !has_whole || is_whole(row));
        let due: u64 = counted.map(KneeRow::due).sum();
        let expected = rate * step.window_s;
        // A judged row among several has only its part of them.
        let part = self.objective.row.is_some();
        (!part && (due as f64) < DUE * expected - 1.0).then(|| {
            format!(
                "at {rate} operations a second, {due} were due in {} s instead of {expected:.0}: the workload has \
                 too few items for that time, or does not use this rate",
                step.window_s
            )
        })
    }

    /// Operations a second, one after the other, of the slowest row that is judged; of all of them where they run `together`.
    pub fn closed_rate(&self, together: bool) -> Option<f64> {
        let closed = self.steps.iter().find(|step| step.stage == "closed")?;
        let rates = closed.rows.iter().map(|row| row.rate);
        let rates = rates.filter(|rate| *rate > 0.0);
        match together {
            true => rates.reduce(|sum, rate| sum + rate),
            false => rates.reduce(f64::min),
        }
    }
}
