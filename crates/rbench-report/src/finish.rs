//! What follows from the phases of a whole result.

use crate::schema::RunResult;
use crate::{repetition, summary, warnings};

/// Computes `summary` and `warnings` from the phases. Warnings that the run
/// itself put there (codes that no rule of [`warnings`] uses) are kept, so
/// that finishing twice changes nothing.
pub fn finish(result: &mut RunResult) {
    let looks = match result.repetition {
        Some(_) => summary::Looks::EachTime,
        None => summary::Looks::Once,
    };
    result.summary = summary::over_iterations(&result.phases, looks);
    let found_here =
        |code: &str| warnings::is_rule_code(code) || code == repetition::PRECISION_MISSED;
    result.warnings.retain(|w| !found_here(&w.code));
    let found = warnings::find(result);
    result.warnings.extend(found);
    let missed = repetition::conclude(result);
    result.warnings.extend(missed);
}
