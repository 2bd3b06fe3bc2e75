//! JSON, for machines, schema `rbench.compare/1`. Numbers are in base units with ten digits, ratios
//! NEW / BASE.

use rbench_core::plain;
use schemars::JsonSchema;
use serde::Serialize;

use super::headline;
use crate::compare::published::Unmeasured;
use crate::compare::{Comparison, Difference, Judged, Row, SeriesPart};
use crate::json::pretty;

/// The name of the schema.
pub const COMPARE_SCHEMA: &str = "rbench.compare/1";

/// A comparison of runs, of series, or of runs with published figures.
#[derive(Serialize, JsonSchema)]
pub struct ComparisonResult<'c> {
    /// The name and version of this schema.
    #[schemars(regex(pattern = r"^rbench\.compare/1(\..+)?$"))]
    schema: &'static str,
    /// The files of BASE, or the published column.
    base: &'c [String],
    /// The files of NEW.
    new: &'c [String],
    /// `--confidence`: the probability that no operation differs by chance, where nothing
    /// does; below 1.
    confidence: f64,
    /// `--min-effect`: the least change that counts, as a share of BASE.
    min_effect: f64,
    /// Further results where series are compared; absent where runs are.
    #[serde(skip_serializing_if = "Option::is_none")]
    series: &'c Option<SeriesPart>,
    /// Conclusion, in one sentence.
    summary: String,
    /// The operations that both sides have, in the order of BASE; of a series, of each cell.
    rows: &'c [Row],
    /// Further differences of the runs, which are compared all the same; with published figures the
    /// set-ups.
    differences: &'c [Difference],
    /// Published figures that the runs did not measure.
    not_compared: &'c [Unmeasured],
    /// Notes for the reader: sentences.
    notes: &'c [String],
    /// The conditions of `--fail-if`.
    conditions: &'c [Judged],
    /// True if one of them is met.
    fails: bool,
}

/// Renders the whole comparison.
pub fn render(comparison: &Comparison) -> String {
    let Comparison {
        base,
        new,
        options,
        series,
        rows,
        differences,
        unmeasured,
        notes,
        judged,
    } = comparison;
    pretty(&ComparisonResult {
        schema: COMPARE_SCHEMA,
        base: &base.names,
        new: &new.names,
        confidence: options.confidence,
        min_effect: options.min_effect,
        series,
        summary: plain(&headline(comparison, "NEW")).into_owned(),
        rows,
        differences,
        not_compared: unmeasured,
        notes,
        conditions: judged,
        fails: comparison.fails(),
    })
}
