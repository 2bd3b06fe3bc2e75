//! Results that are derived from the phases of a whole run.

use crate::schema::RunResult;
use crate::{repetition, summary, warnings};

/// Computes `summary` and `warnings` from the phases. Keeps warnings that the run itself added
/// (codes that no rule of [`warnings`] uses), so that finishing twice changes nothing.
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
