//! Decides when there are enough iterations.

use std::collections::BTreeSet;

use rbench_core::Nanos;

use crate::schema::{Enough, RunResult, SummaryRow, Warning};
use crate::summary::{self, Looks, OPS_PER_S};

/// Code of the warning about rates that missed the requested precision.
pub const PRECISION_MISSED: &str = "precision-missed";

/// Judges a run after an iteration, `elapsed` after the start of the first one. Records and returns
/// whether there are enough iterations; without `--iterations auto` there always are.
pub fn enough(result: &mut RunResult, elapsed: Nanos) -> bool {
    let missed = missed(
        result,
        &summary::over_iterations(&result.phases, Looks::EachTime),
    );
    let done: BTreeSet<u32> = result.phases.iter().map(|phase| phase.iteration).collect();
    let Some(rule) = &mut result.repetition else {
        return true;
    };
    let late = rule.max_time_ns.is_some_and(|most| elapsed.0 >= most);
    rule.enough = match (missed.is_empty(), late) {
        (true, _) => Some(Enough::Precision),
        (false, _) if done.len() >= rule.max_iterations as usize => Some(Enough::MaxIterations),
        (false, true) => Some(Enough::MaxTime),
        (false, false) => None,
    };
    rule.enough.is_some()
}

/// The awaited rates that miss the requested precision.
fn missed(result: &RunResult, summary: &[SummaryRow]) -> Vec<String> {
    let Some(rule) = &result.repetition else {
        return Vec::new();
    };
    // Single operations have a time and no rate.
    let rated = |row: &&SummaryRow| {
        let mut phases = result.phases.iter().filter(|p| p.name == row.name);
        row.unit == OPS_PER_S && phases.any(|p| !p.one_each)
    };
    let awaited = |row: &&SummaryRow| rated(row) && !rule.not_awaited.contains(&row.name);
    let wide = |row: &&SummaryRow| row.precision.is_none_or(|known| known > rule.precision);
    let rows = summary.iter().filter(awaited).filter(wide);
    rows.map(|row| row.name.clone()).collect()
}

/// Records the rows that missed the precision, after the summary is computed. Returns the warning
/// about them if iterations ended for another reason.
pub fn conclude(result: &mut RunResult) -> Option<Warning> {
    let missed = missed(result, &result.summary);
    let rule = result.repetition.as_mut()?;
    rule.missed = missed;
    let limit = rule.enough.filter(|why| *why != Enough::Precision)?;
    let rows = result.summary.iter();
    let rows = rows.filter(|row| row.unit == OPS_PER_S && rule.missed.contains(&row.name));
    let words = rows.map(|row| match row.precision {
        Some(known) => format!("{} (±{:.1}%)", row.label, 100.0 * known),
        None => format!("{} (unknown)", row.label),
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| Warning {
        code: PRECISION_MISSED.to_owned(),
        message: format!(
            "The iterations ended {} before these rates were known within ±{}%: {}.",
            limit.words(),
            100.0 * rule.precision,
            words.join(", ")
        ),
    })
}
