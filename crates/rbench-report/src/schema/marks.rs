//! Marks of a run, and what each cost: what became of the phase that ran.

use std::borrow::Borrow;

use rbench_core::coarse::CoarseLatency;
use rbench_core::outcome::PhaseOutcome;
use rbench_core::timeline::{Bin, Gap, Latencies};
use rbench_core::{Nanos, Timeline};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GapResult;

/// Fewest intervals with items from which the 99th percentile before a mark is taken.
const LEAST_BEFORE: u64 = 3;

/// Number of intervals in a row that, taken together, have to be as before.
pub const IN_A_ROW: usize = 3;

/// Largest ratio of the 99th percentile to that before at which an interval is as before.
const AS_BEFORE: f64 = 1.1;

/// A moment that has a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MarkResult {
    /// Its name: that of `--event`, or `SIGUSR1` and which one it was.
    pub name: String,
    /// Time at which it was set: UTC, RFC 3339.
    pub at: String,
    /// The iteration of the phase that ran, from 0; `None` while none ran that is
    /// reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// Names of that phase's rows; empty while none ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<String>,
    /// Time at which it was set, s after the common start of that phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_s: Option<f64>,
    /// The command that was started then; `None` of a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<MarkCommand>,
}

impl MarkResult {
    /// Returns true if it was set while the phase of that row ran.
    pub fn is_in(&self, iteration: u32, row: &str) -> bool {
        self.iteration == Some(iteration) && self.rows.iter().any(|name| name == row)
    }
}

/// A command of `--event`. While it runs, and in the journal of a run that died meanwhile,
/// nothing is known of its end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MarkCommand {
    /// Argument of `sh -c`.
    pub command: String,
    /// From its start to its end, s.
    #[serde(default)]
    pub took_s: Option<f64>,
    /// Its exit status; `None` also if a signal ended it, or if it could not be started.
    #[serde(default)]
    pub status: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// If it failed: the first line on its standard error, cut to 200 bytes, or why it could
    /// not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// True if it still ran at the end of the run, and was ended then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
}

/// The effect of a mark on a row. Intervals are those of `--interval`, or rows of the timeline
/// where these are longer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MarkCost {
    /// Name of the mark.
    pub name: String,
    /// Time at which it was set, s after the common start.
    pub t_s: f64,
    /// The row's `longest_gap`, if any of it lies between this mark and the next one;
    /// absent if it lies elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap: Option<GapResult>,
    /// The longest time in which no worker of any rank finished anything, if any part of it lies
    /// between this mark and the next one; failed operations count as finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standstill: Option<StandstillResult>,
    /// Length of an interval, s.
    pub interval_s: f64,
    /// Intervals with items that had ended before the first mark of the phase, without those
    /// before measuring began.
    pub intervals_before: u64,
    /// 99th percentile of all items in them, ns: of response times in an open loop, else of
    /// service times; up to 1.6 % or 15 ns too high. `None` of fewer than 3 intervals.
    pub p99_before_ns: Option<u64>,
    /// Intervals from that of the mark to the end of the phase.
    pub intervals_after: u64,
    /// Time from the mark until the row was as before, s: up to the start of the first interval
    /// whose 99th percentile was at most 1.1 times `p99_before_ns`, and that of it and the next two
    /// together as well; in each of the three items ended, and from there to the next mark no
    /// interval is without items. 0 if that is the interval of the mark. `None`: not within the
    /// phase, or nothing is known of before.
    pub recovered_s: Option<f64>,
}

/// A time in which no worker finished anything.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StandstillResult {
    /// Length, s; exact if longer than half of `timeline_step_s`.
    pub length_s: f64,
    /// Since when, s after the common start.
    pub from_s: f64,
}

/// A mark as a phase sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseMark {
    /// Its name.
    pub name: String,
    /// Time at which it was set, after the common start.
    pub at: Nanos,
}

impl PhaseMark {
    /// Marks that were set while that phase ran, by time.
    pub fn of(marks: &[MarkResult], iteration: u32, row: &str) -> Vec<PhaseMark> {
        let of_row = marks.iter().filter(|mark| mark.is_in(iteration, row));
        let found = of_row.filter_map(|mark| {
            Some(PhaseMark {
                name: mark.name.clone(),
                at: Nanos((mark.t_s?.max(0.0) * 1e9).round() as u64),
            })
        });
        let mut found: Vec<PhaseMark> = found.collect();
        found.sort_by_key(|mark| mark.at);
        found
    }
}

/// An interval: its start, how many items ended in it, and how long they took.
struct Step {
    start: Nanos,
    items: u64,
    times: CoarseLatency,
}

/// The 99th percentile of intervals taken together.
fn p99<S: Borrow<Step>>(steps: &[S]) -> Nanos {
    let mut all = CoarseLatency::default();
    steps
        .iter()
        .for_each(|step| all.merge(&step.borrow().times));
    all.quantile(0.99)
}

/// The course of a row around its marks.
struct Course<'o> {
    outcome: &'o PhaseOutcome,
    steps: Vec<Step>,
    before: u64,
    p99_before: Option<Nanos>,
}

impl Course<'_> {
    fn of(outcome: &PhaseOutcome, first_mark: Nanos) -> Course<'_> {
        let open_loop = outcome.response.is_some();
        let times = |latencies: Latencies| match open_loop {
            true => latencies.response,
            false => latencies.service,
        };
        let step = |(start, bin, latencies): (Nanos, Bin, Latencies)| Step {
            start,
            items: bin.items,
            times: times(latencies),
        };
        let steps: Vec<Step> = outcome.timeline.intervals().into_iter().map(step).collect();
        let ends = steps.iter().skip(1).map(|step| step.start);
        let before = steps.iter().zip(ends).filter(|(step, end)| {
            step.start >= outcome.measured_from && *end <= first_mark && step.items > 0
        });
        let before: Vec<&Step> = before.map(|(step, _)| step).collect();
        Course {
            outcome,
            before: before.len() as u64,
            p99_before: (before.len() as u64 >= LEAST_BEFORE).then(|| p99(&before)),
            steps,
        }
    }

    /// The interval of an instant, as far as there are intervals.
    fn of_mark(&self, at: Nanos) -> usize {
        let before = self.steps.iter().rposition(|step| step.start <= at);
        before.unwrap_or(0)
    }

    /// Time from `at` until the row was as before.
    fn recovered(&self, at: Nanos, next_mark: Nanos) -> Option<Nanos> {
        let bound = self.p99_before?.0 as f64 * AS_BEFORE;
        let as_before = |steps: &[Step]| p99(steps).0 as f64 <= bound;
        let of_mark = self.of_mark(at);
        let mut from = of_mark;
        for (i, step) in self.steps.iter().enumerate().skip(of_mark) {
            if step.items == 0 && step.start < next_mark {
                from = i + 1;
            }
        }
        let mut rows = self.steps.get(from..)?.windows(IN_A_ROW);
        let found = rows.find(|row| {
            row.iter().all(|step| step.items > 0) && as_before(&row[..1]) && as_before(row)
        })?;
        Some(found[0].start.since(at))
    }

    fn cost(&self, mark: &PhaseMark, next_mark: Nanos) -> MarkCost {
        let timeline: &Timeline = &self.outcome.timeline;
        let measured_from = self.outcome.measured_from;
        let standstill = timeline.longest_gap_between(measured_from, mark.at, next_mark);
        let touches = |gap: Gap| gap.end() > mark.at && gap.from < next_mark;
        let longest = self.outcome.longest_gap.as_ref();
        MarkCost {
            name: mark.name.clone(),
            t_s: mark.at.as_secs_f64(),
            longest_gap: longest
                .filter(|longest| touches(longest.gap))
                .map(|longest| GapResult::of(longest.gap, Some(longest.rank), &longest.host)),
            standstill: standstill.map(|gap| StandstillResult {
                length_s: gap.length.as_secs_f64(),
                from_s: gap.from.as_secs_f64(),
            }),
            interval_s: timeline.interval_width_s(),
            intervals_before: self.before,
            p99_before_ns: self.p99_before.map(|p99| p99.0),
            intervals_after: (self.steps.len() - self.of_mark(mark.at)) as u64,
            recovered_s: self
                .recovered(mark.at, next_mark)
                .map(|after| after.as_secs_f64()),
        }
    }
}

/// The cost of each of the marks, by time, to the row; marks after its last operation cost nothing,
/// and a row with an operation for each worker has no course.
pub(super) fn costs(outcome: &PhaseOutcome, marks: &[PhaseMark]) -> Vec<MarkCost> {
    let Some(first) = marks.first().filter(|_| !outcome.one_each) else {
        return Vec::new();
    };
    let course = Course::of(outcome, first.at);
    let last = outcome.timeline.bins().iter().map(|bin| bin.last).max();
    let next = marks.iter().skip(1).map(|mark| mark.at);
    let next = next.chain(std::iter::once(Nanos(u64::MAX)));
    let within = marks
        .iter()
        .zip(next)
        .filter(|(mark, _)| last.is_some_and(|last| mark.at < last));
    within.map(|(mark, next)| course.cost(mark, next)).collect()
}
