//! Intervals of an unfinished phase, as lines of the journal, and the row of such a phase.

use rbench_core::coarse::CoarseLatency;
use rbench_core::outcome::{HostOutcome, PhaseOutcome};
use rbench_core::timeline::{Bin, Gap, IntervalPart, Latencies, Timeline};
use rbench_core::{Nanos, OpKind};
use serde::{Deserialize, Serialize};

use crate::schema::{MarkResult, PhaseMark, PhaseResult, Warning};

/// Operations of all workers in an interval of a phase, or a part of them. Parts with the same
/// phase and number are summed.
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
    /// Number of the interval; 0 starts at the common start.
    pub number: u64,
    /// Operations that ended in it without error.
    pub items: u64,
    /// Bytes moved by these.
    pub bytes: u64,
    /// Operations that failed.
    pub errors: u64,
    /// End of the first operation in it, ns after the common start.
    pub first_ns: u64,
    /// End of the last one, ns.
    pub last_ns: u64,
    /// Service times.
    pub service: CoarseLatency,
    /// Response times; in an open loop only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<CoarseLatency>,
}

/// Properties that all intervals of a row share.
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
    /// True if there are response times.
    pub open_loop: bool,
    /// Length of an interval.
    pub interval: Nanos,
}

impl IntervalLine {
    /// Makes the line of a part.
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

    fn is_of(&self, iteration: u32, name: &str) -> bool {
        (self.iteration, self.name.as_str()) == (iteration, name)
    }

    /// The properties of its row.
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

/// The started and unfinished phases: the lines of each row, in the order of their first intervals.
#[derive(Debug, Default)]
pub struct Unfinished(Vec<Vec<IntervalLine>>);

impl Unfinished {
    /// Adds a line of the journal.
    pub fn add(&mut self, line: IntervalLine) {
        let mut rows = self.0.iter_mut();
        match rows.find(|lines| lines[0].is_of(line.iteration, &line.name)) {
            Some(lines) => lines.push(line),
            None => self.0.push(vec![line]),
        }
    }

    /// Drops the intervals of a row that has finished: its result is complete.
    pub fn ended(&mut self, iteration: u32, name: &str) {
        self.0.retain(|lines| !lines[0].is_of(iteration, name));
    }

    /// Returns the rows as far as they are known, with the cost of the run's `marks`, and a warning
    /// about unfinished phases.
    pub fn phases(self, marks: &[MarkResult]) -> (Vec<PhaseResult>, Option<Warning>) {
        let rows = self.0.iter();
        let phases: Vec<PhaseResult> = rows.filter_map(|lines| phase(lines, marks)).collect();
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

/// Makes a row from its lines.
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

/// The relevant latencies: from the intended start in an open loop, else from the actual start.
pub(crate) fn relevant(latencies: &Latencies, open_loop: bool) -> &CoarseLatency {
    match open_loop {
        true => &latencies.response,
        false => &latencies.service,
    }
}

/// The known part of a row of an unfinished phase.
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
    /// True if there are response times.
    pub open_loop: bool,
    /// All operations until now.
    pub all: Bin,
    /// Their latencies.
    pub latencies: Latencies,
    timeline: Timeline,
}

impl RowSoFar {
    /// A row without any operations yet.
    pub fn new(of: IntervalOf<'_>) -> RowSoFar {
        let mut timeline = Timeline::new(of.interval);
        // Slices as wide as an interval: the data is not finer.
        timeline.widen(-2);
        RowSoFar {
            iteration: of.iteration,
            name: of.name.to_owned(),
            label: of.label.to_owned(),
            op: of.op.to_owned(),
            open_loop: of.open_loop,
            all: Bin::default(),
            latencies: Latencies::default(),
            timeline,
        }
    }

    /// Adds the operations of an interval, or a part of it.
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

    /// The relevant latencies of all operations until now.
    pub fn times(&self) -> &CoarseLatency {
        relevant(&self.latencies, self.open_loop)
    }

    /// The longest time from the common start to `now` without a finished operation. `None` if it
    /// does not exceed the resolution: an interval, later several.
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

    /// The row at `elapsed` after the common start, or at the end of its last known operation if
    /// that is later. `None` for an operation unknown to this version.
    pub fn outcome(&self, elapsed: Nanos) -> Option<PhaseOutcome> {
        let op = OpKind::ALL.iter().find(|op| op.name() == self.op)?;
        Some(PhaseOutcome {
            items: self.all.items,
            bytes: self.all.bytes,
            elapsed: self.all.last.max(elapsed),
            service: self.latencies.service.to_latency(),
            response: (self.open_loop).then(|| self.latencies.response.to_latency()),
            timeline: self.timeline.clone(),
            ..PhaseOutcome::empty(self.iteration, &self.name, &self.label, *op)
        })
    }

    /// Converts an outcome of this row into the form of the result file.
    pub fn result(&self, outcome: &PhaseOutcome, marked: &[PhaseMark]) -> PhaseResult {
        let mut phase = PhaseResult::with_marks(outcome, marked);
        if self.all.errors > 0 {
            phase.errors.insert("UNKNOWN".to_owned(), self.all.errors);
        }
        phase
    }

    /// The row of a host.
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
