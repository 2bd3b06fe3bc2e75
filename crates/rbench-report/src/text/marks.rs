//! The cost of each mark, in a line.

use rbench_core::units::{human_count, human_nanos};

use super::{iterations, seconds};
use crate::schema::{
    GapResult, IN_A_ROW, MarkCost, MarkResult, PhaseResult, RunResult, StandstillResult,
};
use crate::table::{sentence, titled};
use crate::view::View;

/// A line for each mark and each row of its phase.
pub fn render(result: &RunResult, view: View) -> String {
    let lines = lines(result);
    titled("MARKS", lines.iter().map(|line| sentence(view, "- ", line)))
}

/// Lines on the marks, for other report formats.
pub(crate) fn lines(result: &RunResult) -> Vec<String> {
    let of = |mark: &MarkResult| -> Vec<String> {
        let Some(t_s) = mark.t_s.filter(|_| !mark.rows.is_empty()) else {
            let MarkResult { name, at, .. } = mark;
            return vec![format!("{name} (mark at {at}): no phase was running.")];
        };
        let rows = || {
            result
                .phases
                .iter()
                .filter(|phase| mark.is_in(phase.iteration, &phase.name))
        };
        if rows().next().is_none() {
            let place = place(result, mark, mark.iteration, &mark.rows.join(", "), t_s);
            return vec![format!("{place}: there is no data about the phase.")];
        }
        // A row with one operation per worker has no course over time.
        rows()
            .filter(|phase| !phase.one_each)
            .map(|phase| {
                let place = place(result, mark, Some(phase.iteration), &phase.label, t_s);
                let cost = phase.marks.iter().find(|cost| cost.name == mark.name);
                match cost {
                    Some(cost) => format!("{place}: {}.", cost_of(phase, cost)),
                    None => format!("{place}: no operation finished after it."),
                }
            })
            .collect()
    };
    result.marks.iter().flat_map(of).collect()
}

fn place(
    result: &RunResult,
    mark: &MarkResult,
    iteration: Option<u32>,
    phase: &str,
    t_s: f64,
) -> String {
    let iteration = match (iterations(result), iteration) {
        (0 | 1, _) | (_, None) => String::new(),
        (_, Some(iteration)) => format!(", iteration {}", iteration.saturating_add(1)),
    };
    let name = &mark.name;
    format!("{name} (mark at {} of {phase}{iteration})", seconds(t_s))
}

fn cost_of(phase: &PhaseResult, cost: &MarkCost) -> String {
    let parts = [
        nothing_finished(phase, cost),
        phase
            .empty_share
            .map(|share| format!("{:.0}% of slices empty", 100.0 * share)),
        Some(recovery(phase, cost)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

/// The time in which nothing was finished, by a rank and by all.
fn nothing_finished(phase: &PhaseResult, cost: &MarkCost) -> Option<String> {
    let anywhere = cost.standstill.map(|StandstillResult { length_s, .. }| {
        let alone = phase.rank_count() == 1;
        (seconds(length_s), !alone)
    });
    match (&cost.longest_gap, anywhere) {
        (Some(gap), anywhere) => {
            let GapResult {
                length_s,
                rank,
                host,
                ..
            } = gap;
            let rank = rank.map_or_else(String::new, |rank| format!(", rank {rank}"));
            let length = seconds(*length_s);
            let by_all = match anywhere {
                Some((anywhere, true)) => format!(" and for {anywhere} on any rank"),
                Some((_, false)) | None => String::new(),
            };
            let op = &phase.op;
            Some(format!(
                "nothing finished for {length} ({host}{rank}, {op}){by_all}"
            ))
        }
        (None, Some((anywhere, _))) => Some(format!("nothing finished for {anywhere} on any rank")),
        (None, None) => None,
    }
}

/// The time at which the 99th percentile was back to normal.
fn recovery(phase: &PhaseResult, cost: &MarkCost) -> String {
    let p99 = match phase.latency.response {
        Some(_) => "p99 of response times",
        None => "p99",
    };
    let Some(before) = cost.p99_before_ns else {
        let known = intervals(cost.intervals_before, cost.interval_s);
        return format!("{p99} before it is not known ({known})");
    };
    let before = human_nanos(before as f64);
    match cost.recovered_s {
        Some(0.0) => format!("{p99} stayed within 10% of {before}"),
        Some(after) => format!("{p99} back within 10% of {before} after {}", seconds(after)),
        None if cost.intervals_after < IN_A_ROW as u64 => {
            let known = intervals(cost.intervals_after, cost.interval_s);
            format!("{p99} after it is not known ({known})")
        }
        None => format!("{p99} not back within 10% of {before} in the phase"),
    }
}

fn intervals(n: u64, interval_s: f64) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!(
        "{} interval{plural} of {}",
        human_count(n),
        seconds(interval_s)
    )
}
