//! The words for who answered.

use crate::schema::{PhaseResult, ResidencyResult};
use crate::table::{NONE, or_none};

/// The word if the cache was not measured.
pub const UNKNOWN: &str = "unknown";

/// The word of a verdict.
pub fn word(verdict: &str) -> &'static str {
    match verdict {
        "memory" => "warm",
        "cold" => "cold",
        "cold-then-memory" => "cold, then warm",
        "cold-then-perhaps" => "cold, then unknown",
        "mixed" => "mixed",
        "forced" => "forced",
        "perhaps" | "unknown" => UNKNOWN,
        _ => NONE,
    }
}

/// How much of a phase this host's memory answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Nothing, as far as is known.
    None,
    /// A part.
    Part,
    /// All.
    All,
}

/// The part of memory in a phase, by its verdict.
pub fn memory(phase: &PhaseResult) -> Memory {
    match verdict(phase).as_deref() {
        Some("warm") => Memory::All,
        Some(word) if word == "mixed" || word.contains("warm") => Memory::Part,
        _ => Memory::None,
    }
}

/// The word of a verdict, shorter than in CACHES.
fn brief(verdict: &str) -> &'static str {
    match verdict {
        "cold-then-memory" => "cold/warm",
        "cold-then-perhaps" => "cold/unknown",
        other => word(other),
    }
}

/// The word of the verdict on a phase, the same in every report; `None` where no cache has a part.
pub fn verdict(phase: &PhaseResult) -> Option<String> {
    match &phase.residency {
        Some(residency) => Some(brief(&residency.verdict).to_owned()),
        None => phase.cache.clone(),
    }
}

/// The verdict of a phase with its shortest measure: requests for each
/// operation, else the share of resident pages.
pub fn cell(phase: &PhaseResult) -> String {
    let Some(residency) = &phase.residency else {
        // From an earlier version, or without meaning here.
        return or_none(phase.cache.clone());
    };
    let word = brief(&residency.verdict);
    let then = residency.verdict.starts_with("cold-then");
    match short(residency).filter(|_| !then) {
        Some(measure) if word == NONE => measure,
        Some(measure) => format!("{word} {measure}"),
        None => word.to_owned(),
    }
}

fn short(residency: &ResidencyResult) -> Option<String> {
    let evidence = &residency.total;
    let requests = evidence.requests.as_ref().filter(|r| r.operations > 0);
    // Direct I/O bypasses the pages.
    let pages = evidence.resident_before.filter(|_| !residency.direct);
    requests
        .map(|r| format!("{}/op", per_operation(r.per_operation)))
        .or_else(|| pages.map(|pages| percent(pages.share)))
}

/// A number of requests for an operation.
pub fn per_operation(count: f64) -> String {
    match count {
        0.0 => "0".to_owned(),
        few if few < 10.0 => format!("{few:.2}"),
        many => format!("{many:.0}"),
    }
}

/// A share in per cent.
pub fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}
