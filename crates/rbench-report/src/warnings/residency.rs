//! Rules about cache verdicts. They only report: the verdicts come from the measurements.

use rbench_core::residency::{LARGEST_REQUEST, Reason};
use rbench_core::units::human_count;

use super::{Finding, seconds};
use crate::schema::{EvidenceResult, PhaseResult, ResidencyResult, RunResult};

/// Noun for counted operations of a kind.
fn noun(op: &str) -> &'static str {
    match op {
        "stat" => "stats",
        "list" => "listings",
        "read-file" => "files read",
        "read" => "reads",
        _ => "operations",
    }
}

/// The strongest evidence in words: `4,800 stats, 0 requests`.
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
    let applies = verdicts.contains(&residency.verdict.as_str());
    applies.then(|| {
        let (weight, note) = note(residency);
        Finding::new(weight, note)
    })
}

/// Finds phases that memory answered entirely.
pub fn memory_answered(_: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    found(phase, &["memory"], |residency| {
        let asked = residency.total.requests.as_ref();
        let weight = -asked.map_or(0.0, |requests| requests.per_operation);
        (weight, measure(phase, residency))
    })
}

/// Finds phases that memory answered in part, by measurement.
pub fn memory_answered_partly(_: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    let residency = phase.residency.as_ref()?;
    let measured = |verdict: &str, reason: &str| {
        verdict == "memory" || verdict == "mixed" && reason == Reason::Partly.words()
    };
    let mut caches = residency.caches.iter();
    let some = caches.any(|cache| measured(&cache.verdict, &cache.reason));
    if !some && !measured(&residency.verdict, &residency.reason) {
        return None;
    }
    found(phase, &["mixed"], |residency| {
        let measure = measure(phase, residency);
        match from_memory(phase, &residency.total) {
            Some((share, at_least)) => {
                let at_least = if at_least { "at least " } else { "" };
                let words = format!("{at_least}{} of it, {measure}", percent(share));
                (share, words)
            }
            None => (0.0, measure),
        }
    })
}

/// The share of a phase's operations that memory answered, and true if it is a lower bound.
fn from_memory(phase: &PhaseResult, total: &EvidenceResult) -> Option<(f64, bool)> {
    let share = |part: f64| (1.0 - part).clamp(0.0, 1.0);
    if let Some(requests) = total.requests.as_ref().filter(|r| r.operations > 0) {
        // In sequential reads, read-ahead fetches data for several operations in one request.
        let reads_ahead = phase.op == "read" && !phase.name.starts_with("rand");
        let bytes_each = total.bytes as f64 / total.operations.max(1) as f64;
        let answered = match reads_ahead && bytes_each > 0.0 {
            true => requests.per_operation * LARGEST_REQUEST as f64 / bytes_each,
            false => requests.per_operation,
        };
        return Some((share(answered), reads_ahead));
    }
    if let Some(fetched) = &total.fetched {
        return Some((share(fetched.per_byte), false));
    }
    let pages = total.resident_before.as_ref()?;
    Some((pages.share, true))
}

/// Formats a share in percent; below 1 % or above 99.5 % with one decimal.
fn percent(share: f64) -> String {
    match 100.0 * share {
        most if most > 99.5 => format!("{:.1}%", most.min(99.9)),
        few if few < 0.95 => format!("{few:.1}%"),
        other => format!("{other:.0}%"),
    }
}

/// Finds phases that memory could answer after some time.
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

/// Finds verifications that compared data in memory, at least in part.
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

/// Finds phases that wrote the same blocks again.
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
