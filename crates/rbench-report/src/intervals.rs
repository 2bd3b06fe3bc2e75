//! Intervals of a phase that has not come to its end, as lines of the journal, and the
//! row of such a phase.

use std::collections::BTreeMap;

use rbench_core::coarse::CoarseLatency;
use rbench_core::effort::Effort;
use rbench_core::failure::Failures;
use rbench_core::outcome::{HostOutcome, Lateness, PhaseOutcome, Retries};
use rbench_core::timeline::{Bin, Gap, IntervalPart, Latencies, Timeline};
use rbench_core::{Nanos, OpKind};
use serde::{Deserialize, Serialize};

use crate::schema::{MarkResult, PhaseMark, PhaseResult, Warning};

/// What all workers did in an interval of a phase, or a part of it: parts with the same
/// phase and number are to be added up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntervalLine {
    /// The iteration, from 0.
    pub iteration: u32,
    /// Name of the row for machines.
    pub name: String,
    /// Name of the row for people.
    pub label: String,
    /// The kind of operation.
    pub op: String,
    /// Length of an interval, ns.
    pub interval_ns: u64,
    /// The interval, from 0 at the common start.
    pub number: u64,
    /// Operations that ended in it without error.
    pub items: u64,
    /// Bytes that these moved.
    pub bytes: u64,
    /// Operations that failed.
    pub errors: u64,
    /// When the first operation in it ended, ns after the common start.
    pub first_ns: u64,
    /// When the last one did.
    pub last_ns: u64,
    /// Service times.
    pub service: CoarseLatency,
    /// Response times; in an open loop only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<CoarseLatency>,
}

/// What belongs to all intervals of a row.
#[derive(Debug, Clone, Copy)]
pub struct IntervalOf<'r> {
    /// The iteration, from 0.
    pub iteration: u32,
    /// Name of the row for machines.
    pub name: &'r str,
    /// Name of the row for people.
    pub label: &'r str,
    /// The kind of operation.
    pub op: &'r str,
    /// Whether there are response times.
    pub open_loop: bool,
    /// Length of an interval.
    pub interval: Nanos,
}

impl IntervalLine {
    /// The line of a part.
    pub fn of(row: IntervalOf<'_>, part: &IntervalPart) -> IntervalLine {
        let IntervalPart {
            number,
            bin,
            latencies: Latencies { service, response },
        } = part;
        let Bin {
            items,
            bytes,
            errors,
            first,
            last,
        } = *bin;
        IntervalLine {
            iteration: row.iteration,
            name: row.name.to_owned(),
            label: row.label.to_owned(),
            op: row.op.to_owned(),
            interval_ns: row.interval.0,
            number: *number,
            items,
            bytes,
            errors,
            first_ns: first.0,
            last_ns: last.0,
            service: service.clone(),
            response: row.open_loop.then(|| response.clone()),
        }
    }

    /// What it says of its row.
    fn of_row(&self) -> IntervalOf<'_> {
        IntervalOf {
            iteration: self.iteration,
            name: &self.name,
            label: &self.label,
            op: &self.op,
            open_loop: self.response.is_some(),
            interval: Nanos(self.interval_ns),
        }
    }

    fn part(&self) -> IntervalPart {
        IntervalPart {
            number: self.number,
            bin: Bin {
                items: self.items,
                bytes: self.bytes,
                errors: self.errors,
                first: Nanos(self.first_ns),
                last: Nanos(self.last_ns),
            },
            latencies: Latencies {
                service: self.service.clone(),
                response: self.response.clone().unwrap_or_default(),
            },
        }
    }
}

/// The phases that have begun and not ended, from their intervals.
#[derive(Debug, Default)]
pub struct Unfinished {
    /// In the order of their first intervals.
    rows: Vec<(u32, String)>,
    lines: BTreeMap<(u32, String), Vec<IntervalLine>>,
}

impl Unfinished {
    /// Adds a line of the journal.
    pub fn add(&mut self, line: IntervalLine) {
        let row = (line.iteration, line.name.clone());
        if !self.rows.contains(&row) {
            self.rows.push(row.clone());
        }
        self.lines.entry(row).or_default().push(line);
    }

    /// The row has come to its end: it is known whole.
    pub fn ended(&mut self, iteration: u32, name: &str) {
        self.rows.retain(|row| *row != (iteration, name.to_owned()));
        self.lines.remove(&(iteration, name.to_owned()));
    }

    /// The rows as far as they are known, with what `marks` of the run cost them, and what
    /// is to be said of them.
    pub fn phases(mut self, marks: &[MarkResult]) -> (Vec<PhaseResult>, Option<Warning>) {
        let rows = std::mem::take(&mut self.rows);
        let lines = rows.into_iter().filter_map(|row| self.lines.remove(&row));
        let phases: Vec<PhaseResult> = lines.filter_map(|lines| phase(&lines, marks)).collect();
        let told = phases.iter().map(|phase| {
            let known = rbench_core::units::human_nanos(phase.elapsed_s * 1e9);
            format!("{} ({known})", phase.label)
        });
        let told: Vec<String> = told.collect();
        let warning = (!told.is_empty()).then(|| Warning {
            code: "unfinished-phase".to_owned(),
            message: format!(
                "the run ended during a phase; its figures come from its intervals: {}. Percentiles are up to 1.6 % \
                 too high, and figures by host and rank are missing",
                told.join(", ")
            ),
        });
        (phases, warning)
    }
}

/// A row from its lines.
fn phase(lines: &[IntervalLine], marks: &[MarkResult]) -> Option<PhaseResult> {
    let first = lines.first()?;
    let mut row = RowSoFar::new(first.of_row());
    for line in lines
        .iter()
        .filter(|line| line.interval_ns == first.interval_ns)
    {
        row.add(&line.part());
    }
    let outcome = row.outcome(Nanos(0))?;
    let marked = PhaseMark::of(marks, outcome.iteration, &outcome.name);
    Some(row.result(&outcome, &marked))
}

/// What is known of a row of a phase that has not come to its end.
#[derive(Debug, Clone)]
pub struct RowSoFar {
    /// The iteration, from 0.
    pub iteration: u32,
    /// Name of the row for machines.
    pub name: String,
    /// Name of the row for people.
    pub label: String,
    /// The kind of operation.
    pub op: String,
    /// Whether there are response times.
    pub open_loop: bool,
    /// All operations so far.
    pub all: Bin,
    /// Their latencies.
    pub latencies: Latencies,
    timeline: Timeline,
}

impl RowSoFar {
    /// A row of which nothing is known yet.
    pub fn new(of: IntervalOf<'_>) -> RowSoFar {
        let IntervalOf {
            iteration,
            name,
            label,
            op,
            open_loop,
            interval,
        } = of;
        let mut timeline = Timeline::new(interval);
        // Slices as wide as an interval: what is known is no finer.
        timeline.widen(-2);
        RowSoFar {
            iteration,
            name: name.to_owned(),
            label: label.to_owned(),
            op: op.to_owned(),
            open_loop,
            all: Bin::default(),
            latencies: Latencies::default(),
            timeline,
        }
    }

    /// Adds what was done in an interval, or a part of it.
    pub fn add(&mut self, part: &IntervalPart) {
        let IntervalPart {
            number,
            bin,
            latencies,
        } = part;
        let start = Nanos(number.saturating_mul(self.timeline.interval().0));
        self.timeline.record(start, *bin);
        self.timeline.record_latencies(start, latencies);
        self.all.merge(*bin);
        self.latencies.merge(latencies);
    }

    /// The times that count for whoever asks: from the intended start where there is one.
    pub fn times(&self) -> &CoarseLatency {
        match self.open_loop {
            true => &self.latencies.response,
            false => &self.latencies.service,
        }
    }

    /// The longest time from the common start to `now` in which nothing of it ended, where
    /// that is longer than what is told apart: an interval, in the end several.
    pub fn longest_gap(&self, now: Nanos) -> Option<Gap> {
        let last = Gap {
            length: now.since(self.all.last),
            from: self.all.last,
        };
        let before = self.timeline.longest_gap(Nanos(0)).unwrap_or_default();
        let longest = match last.length > before.length {
            true => last,
            false => before,
        };
        let finest = self.timeline.interval().max(self.timeline.width());
        (longest.length > finest).then_some(longest)
    }

    /// The row, `elapsed` after the common start or when its last known operation ended,
    /// whichever is later; `None` where no version of rbench has such operations.
    pub fn outcome(&self, elapsed: Nanos) -> Option<PhaseOutcome> {
        let op = OpKind::ALL.iter().find(|op| op.name() == self.op)?;
        Some(PhaseOutcome {
            iteration: self.iteration,
            name: self.name.clone(),
            label: self.label.clone(),
            op: *op,
            items: self.all.items,
            bytes: self.all.bytes,
            failures: Failures::default(),
            unissued: 0,
            missed: 0,
            unchecked: 0,
            again: Retries::default(),
            elapsed: self.all.last.max(elapsed),
            first_done: None,
            start_skew: Nanos(0),
            cache: None,
            complete: false,
            service: self.latencies.service.to_latency(),
            response: (self.open_loop).then(|| self.latencies.response.to_latency()),
            late: Lateness::default(),
            hosts: Vec::new(),
            host_crowd: None,
            ranks: Vec::new(),
            crowd: None,
            timeline: self.timeline.clone(),
            longest_gap: None,
            stonewall: None,
            unsynced: false,
            measured_from: Nanos(0),
            set_aside: Nanos(0),
            effort: Effort::default(),
            stonewalled: None,
            given_up_at: None,
            one_each: false,
            first_failed: None,
            rewritten: None,
            residency: None,
            client: None,
            access: None,
            found: None,
            replayed: None,
            steady: None,
            start: None,
        })
    }

    /// The same for the result file and other forms, from an outcome of it.
    pub fn result(&self, outcome: &PhaseOutcome, marked: &[PhaseMark]) -> PhaseResult {
        let mut phase = PhaseResult::with_marks(outcome, marked);
        if self.all.errors > 0 {
            phase.errors.insert("UNKNOWN".to_owned(), self.all.errors);
        }
        phase
    }

    /// What a host has done of it.
    pub fn of_host(&self, host: &str, elapsed: Nanos) -> HostOutcome {
        HostOutcome {
            host: host.to_owned(),
            items: self.all.items,
            bytes: self.all.bytes,
            errors: self.all.errors,
            elapsed: self.all.last.max(elapsed),
            service: self.latencies.service.to_latency(),
            response: (self.open_loop).then(|| self.latencies.response.to_latency()),
            gap: None,
        }
    }
}
