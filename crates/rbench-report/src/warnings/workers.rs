//! Rules about the workers' time: the share outside calls, and the causes of a missed rate.

use rbench_core::effort::Effort;
use rbench_core::units::{human_count, human_nanos};

use super::{Finding, is_torn, seconds};
use crate::schema::{PhaseResult, RunResult};
use crate::summary::is_short;
use crate::table::distinct;

/// Minimum share of the workers' time in calls.
const BUSY_LEAST: f64 = 0.95;
/// Maximum share of due operations that were never started.
const UNISSUED_SHARE: f64 = 0.01;
/// Maximum delay of the median operation, as a share of the phase: half of the final delay if the
/// rate falls short by `UNISSUED_SHARE`.
const LATE_SHARE: f64 = UNISSUED_SHARE / 2.0;
/// Share of their time above which workers count as always busy.
const FULL: f64 = 0.95;

/// Share of their time in calls, of workers that spent too much outside of them.
fn busy(result: &RunResult, phase: &PhaseResult) -> Option<f64> {
    // A replay follows the times of its trace, and reports its own lateness.
    let has_a_rate = phase.replayed.is_none();
    let busy = phase.busy.filter(|busy| *busy < BUSY_LEAST && has_a_rate)?;
    // The null engine runs only the tool's own code.
    let nothing_asked = result.spec.get("engine").and_then(|e| e.as_str()) == Some("null");
    (phase.items > 0 && !phase.one_each && !nothing_asked).then_some(busy)
}

pub(super) fn outside_calls(result: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    let busy = busy(result, phase).filter(|_| !is_short(phase))?;
    Some(Finding::new(-busy, format!("{} in calls", percent(busy))))
}

/// The end of that warning's list: operations that it leaves out only because they are short.
pub(super) fn left_out(result: &RunResult) -> String {
    let phases = result.phases.iter();
    let short = phases.filter(|phase| is_short(phase) && busy(result, phase).is_some());
    let labels = distinct(short.map(|phase| phase.label.as_str()));
    match labels.is_empty() {
        true => ".".to_owned(),
        false => format!(". Not judged under 10 ms: {}.", labels.join(", ")),
    }
}

/// Minimum time without a finished operation to count as a stall, s.
const STALL_S: f64 = 1.0;

/// Finds hosts that stalled: longer than their operations usually take, and with an operation
/// pending all the time. Pauses and waits for intended starts have none pending.
pub(super) fn stalled(_: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    let mut stalls: Vec<(f64, String)> = Vec::new();
    for host in &phase.hosts {
        let Some(gap) = &host.longest_gap else {
            continue;
        };
        let usual_s = host.latency.p50_ns as f64 / 1e9;
        let longest_s = host.latency.max_ns as f64 / 1e9;
        if gap.length_s > STALL_S && usual_s < gap.length_s / 2.0 && longest_s > gap.length_s / 2.0
        {
            let note = format!(
                "{} from {} to {}",
                gap.host,
                seconds(gap.from_s),
                seconds(gap.from_s + gap.length_s)
            );
            stalls.push((gap.length_s, note));
        }
    }
    stalls.sort_by(|a, b| b.0.total_cmp(&a.0));
    let weight = stalls.first()?.0;
    let more = stalls.len().saturating_sub(STALLS_TOLD);
    let mut notes: Vec<String> = stalls.into_iter().map(|(_, note)| note).collect();
    notes.truncate(STALLS_TOLD);
    if more > 0 {
        notes.push(format!("{more} more hosts"));
    }
    Some(Finding::new(weight, notes.join(", ")))
}

/// Maximum number of stalled hosts that are named.
const STALLS_TOLD: usize = 4;

/// Finds open loops that missed their rate, with the cause.
pub(super) fn behind(_: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    if phase.replayed.is_some() {
        return None;
    }
    let done = phase.items.saturating_add(phase.error_count());
    let due = done.saturating_add(phase.unissued);
    let missed = phase.unissued as f64 / due.max(1) as f64;
    let service = phase.latency.service.p50_ns;
    let response = phase.latency.response.as_ref().map_or(0, |h| h.p50_ns);
    let late_s = response.saturating_sub(service) as f64 / 1e9;
    let late = response > service.saturating_mul(2) && late_s > LATE_SHARE * phase.elapsed_s;
    let what = if missed > UNISSUED_SHARE {
        format!(
            "{} due operations ({}) were never started and are not in the response times",
            human_count(phase.unissued),
            percent(missed)
        )
    } else if late {
        format!(
            "the median response time is {}, but the median service time is {}",
            human_nanos(response as f64),
            human_nanos(service as f64)
        )
    } else {
        return None;
    };
    Some(Finding::new(
        missed.max(late_s / phase.elapsed_s.max(f64::MIN_POSITIVE)),
        format!("{what}: {}", culprit(phase.workers.as_ref())),
    ))
}

/// What kept a row from a higher rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Limit {
    /// The target: workers had time to spare.
    Target,
    /// This many workers, which were busy all the time: more of them may do more.
    Workers(u64),
    /// rbench itself, whose workers spent this share of their time outside calls.
    Tool(f64),
}

/// What kept a row from a higher rate; `None` if that is unknown.
pub(crate) fn limit(workers: Option<&Effort>) -> Option<Limit> {
    let workers = workers?;
    let (occupied, outside) = (workers.occupied()?, workers.outside()?);
    Some(match () {
        () if outside > 0.5 => Limit::Tool(outside),
        () if occupied + outside >= FULL => Limit::Workers(workers.workers),
        () => Limit::Target,
    })
}

/// `the only worker was`, `all 16 workers were`
pub(crate) fn all_workers(count: u64) -> String {
    match count {
        1 => "the only worker was".to_owned(),
        n => format!("all {} workers were", human_count(n)),
    }
}

/// The cause of a missed rate.
fn culprit(workers: Option<&Effort>) -> String {
    match limit(workers) {
        Some(Limit::Tool(outside)) => of_the_tool(outside),
        Some(Limit::Workers(count)) => format!(
            "{} busy all the time; more threads or depth may reach a higher rate",
            all_workers(count)
        ),
        Some(Limit::Target) | None => "the target did not keep up".to_owned(),
    }
}

/// The limit of the tool itself, as a clause.
pub(crate) fn of_the_tool(outside: f64) -> String {
    format!(
        "rbench itself was the limit: its workers spent {} of their time outside calls",
        percent(outside)
    )
}

/// Finds workers that were given up: their results are lost.
pub(super) fn given_up(_: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    let gone = phase.given_up.as_ref()?;
    Some(Finding {
        weight: gone.share,
        note: format!(
            "{} of {} workers after {}, with {} operations that are not counted: {} of the rate",
            human_count(gone.workers),
            human_count(gone.of),
            seconds(gone.at_s),
            human_count(gone.lost),
            percent(gone.share)
        ),
    })
}

pub(super) fn first_failed(result: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    let host = phase.first_failed.as_ref()?;
    (!is_torn(result, phase)).then(|| Finding::new(0.0, format!("on {host}")))
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
