//! Rules about who answered. They do not judge: the verdict comes from the
//! measurements.

use rbench_core::residency::Reason;
use rbench_core::units::human_count;

use super::{Finding, seconds};
use crate::schema::{EvidenceResult, PhaseResult, ResidencyResult, RunResult};

/// How operations of a kind are counted.
fn noun(op: &str) -> &'static str {
    match op {
        "stat" => "stats",
        "list" => "listings",
        "read-file" => "files read",
        "read" => "reads",
        _ => "operations",
    }
}

/// The strongest measure in words: `4,800 stats, 0 requests`.
fn measure(phase: &PhaseResult, residency: &ResidencyResult) -> String {
    let EvidenceResult {
        resident_before,
        requests,
        fetched,
        ..
    } = &residency.total;
    if residency.ground == "memory" {
        return residency.reason.clone();
    }
    if let Some(requests) = requests.as_ref().filter(|r| r.operations > 0) {
        return format!(
            "{} {}, {} requests",
            human_count(requests.operations),
            noun(&phase.op),
            human_count(requests.answering)
        );
    }
    if let Some(fetched) = fetched {
        return format!(
            "{:.1}% of the bytes came from the device",
            100.0 * fetched.per_byte
        );
    }
    match resident_before {
        Some(pages) => format!("{:.1}% of the pages were in memory", 100.0 * pages.share),
        None => residency.reason.clone(),
    }
}

fn found(
    phase: &PhaseResult,
    verdicts: &[&str],
    note: impl Fn(&ResidencyResult) -> (f64, String),
) -> Option<Finding> {
    let residency = phase.residency.as_ref().filter(|_| phase.items > 0)?;
    let told = verdicts.contains(&residency.verdict.as_str());
    told.then(|| {
        let (weight, note) = note(residency);
        Finding { weight, note }
    })
}

/// Memory answered all the time.
pub fn memory_answered(_: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    found(phase, &["memory"], |residency| {
        let asked = residency.total.requests.as_ref();
        let weight = -asked.map_or(0.0, |requests| requests.per_operation);
        (weight, measure(phase, residency))
    })
}

/// Memory could answer after some time.
pub fn came_round(_: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    let verdicts = ["cold-then-memory", "cold-then-perhaps"];
    found(phase, &verdicts, |residency| match residency.came_round {
        Some(round) => (
            round.passes,
            format!(
                "after {}, {:.1} passes",
                seconds(round.after_s),
                round.passes
            ),
        ),
        None => (0.0, String::new()),
    })
}

/// What was compared was in memory, at least in part.
pub fn verified_memory(_: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    let residency = phase.residency.as_ref().filter(|r| r.verifies)?;
    let partly = residency.reason == Reason::Partly.words();
    let verdicts: &[&str] = match partly {
        true => &["memory", "cold-then-memory", "mixed"],
        false => &["memory", "cold-then-memory"],
    };
    found(phase, verdicts, |residency| {
        (1.0, measure(phase, residency))
    })
}

/// Whether writes went over the same blocks again.
pub fn rewritten(_: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    let round = phase.rewritten.as_ref()?;
    let again = 1.0 - round.once as f64 / round.done.max(1) as f64;
    Some(Finding {
        weight: again,
        note: format!(
            "after {}, {:.0}% of the writes",
            seconds(round.after_s),
            again * 100.0
        ),
    })
}
