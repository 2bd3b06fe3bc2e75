//! Output of `rbench compare --format json`, schema `rbench.compare/1`. Numbers are in base units
//! with ten digits, ratios NEW / BASE.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the schema.
pub const COMPARE_SCHEMA: &str = "rbench.compare/1";

/// A comparison of runs, of series, or of runs with published figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonResult {
    /// The name and version of this schema.
    #[schemars(regex(pattern = r"^rbench\.compare/1(\..+)?$"))]
    pub schema: String,
    /// The files of BASE, or the published column.
    pub base: Vec<String>,
    /// The files of NEW.
    pub new: Vec<String>,
    /// `--confidence`: the probability that no operation differs by chance, where nothing
    /// does; below 1.
    pub confidence: f64,
    /// `--min-effect`: the least change that counts, as a share of BASE.
    pub min_effect: f64,
    /// Further results where series are compared; absent where runs are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<ComparedSeries>,
    /// Conclusion, in one sentence.
    pub summary: String,
    /// The operations that both sides have, in the order of BASE; of a series, of each cell.
    pub rows: Vec<ComparedRow>,
    /// Further differences of the runs, which are compared all the same; with published figures the
    /// set-ups.
    pub differences: Vec<ComparedDifference>,
    /// Published figures that the runs did not measure.
    pub not_compared: Vec<NotCompared>,
    /// Notes for the reader: sentences.
    pub notes: Vec<String>,
    /// The conditions of `--fail-if`.
    pub conditions: Vec<ComparedCondition>,
    /// True if one of them is met.
    pub fails: bool,
}

/// Results of series besides the rows of their cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedSeries {
    /// The command of BASE: `sweep`, `knee`, `nn`, `quick`, `suite`, `io500`.
    pub kind: String,
    /// The cells of BASE, then those that only NEW has; of `knee` the one without a rate.
    pub cells: Vec<ComparedCell>,
    /// Figures of the series as a whole: the rate that `knee` found, the scores and phases
    /// of `io500`; empty for others.
    pub wholes: Vec<ComparedWhole>,
}

/// A cell of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedCell {
    /// Its name, which its rows have as `cell`.
    pub name: String,
    /// Reason why it is not compared: a clause; `None`: it is.
    pub why_not: Option<String>,
}

/// A figure of a series as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedWhole {
    /// Its name: `held`; `score`, `score-bandwidth`, `score-metadata`, or a phase of IO500.
    pub name: String,
    /// Its unit: `ops/s`, `GiB/s`, `kIOPS`; of the score none.
    pub unit: String,
    /// Values of BASE.
    pub base: ComparedBracket,
    /// Values of NEW.
    pub new: ComparedBracket,
    /// NEW / BASE of the values; `None` where they say nothing of each other.
    pub ratio: Option<f64>,
    /// For `held` the lowest ratio of the limits that fits: NEW's `value` / BASE's `failed`.
    pub ratio_low: Option<f64>,
    /// The highest one: NEW's `failed` / BASE's `value`.
    pub ratio_high: Option<f64>,
    /// Like [`ComparedRow::verdict`]; `None`: the figure comes without its uncertainty.
    pub verdict: Option<String>,
}

/// A side's values of a figure of the whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedBracket {
    /// The figure; of several searches the lowest. `None`: there is none.
    pub value: Option<f64>,
    /// For `held` the lowest rate above it at which the objective did not hold; for several
    /// searches the highest. `None`: there is none.
    pub failed: Option<f64>,
}

/// An operation on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRow {
    /// Its cell, of a series; absent where runs are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// Its name for machines.
    pub name: String,
    /// Its name for people.
    pub label: String,
    /// `faster`, `slower`, `no difference shown`, `too few samples`.
    pub verdict: String,
    /// The figure that the verdict is about.
    pub judged_by: String,
    /// The samples of BASE.
    pub base_samples: Samples,
    /// The samples of NEW.
    pub new_samples: Samples,
    /// Differences between the measurements of both sides: another cache, other sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlike: Vec<ComparedDifference>,
    /// The figures that both sides have.
    pub figures: Vec<ComparedFigure>,
}

/// Kind and number of samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Samples {
    /// `runs`, each with all its iterations; `iterations`; `published`.
    pub kind: String,
    /// Number of runs or iterations.
    pub count: u64,
}

/// A figure of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedFigure {
    /// Its name: `rate`, `bandwidth`, `mean`, `p50` … `max`, `response-mean` …, and others of docs/reference/figures.md.
    pub figure: String,
    /// Its unit: `ops/s`, `bytes/s`, `ns`, `us`; empty for a ratio.
    pub unit: String,
    /// Value of BASE.
    pub base: f64,
    /// Value of NEW.
    pub new: f64,
    /// NEW / BASE.
    pub ratio: f64,
    /// The ratios that fit the samples; `None` where there are too few of them.
    pub interval: Option<ComparedInterval>,
}

/// The ratios that fit the samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedInterval {
    /// The lowest.
    pub low: f64,
    /// The highest; `None`: beyond any number.
    pub high: Option<f64>,
    /// The level of significance at which `p` shows a difference.
    pub level: f64,
    /// The probability of such a difference in any operation if there is none.
    pub p: f64,
}

/// A difference between both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedDifference {
    /// The property that differs.
    pub what: String,
    /// In BASE.
    pub base: String,
    /// In NEW.
    pub new: String,
}

/// A published figure that was not measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotCompared {
    /// The published workload.
    pub workload: String,
    /// Its operation.
    pub operation: String,
    /// Reason why it was not measured.
    pub reason: String,
}

/// Result of a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedCondition {
    /// The condition as it was typed.
    pub condition: String,
    /// The operations that meet it; empty: it is not met.
    pub met: Vec<ComparedMet>,
    /// The operations in which it is not met, but the samples leave room for a change beyond its
    /// limit.
    #[serde(default)]
    pub undecided: Vec<ComparedUndecided>,
}

/// An operation or figure that meets a condition or not: the samples do not show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedUndecided {
    /// The cell, of a series; absent where runs are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// The operation, or the figure of the whole.
    pub name: String,
    /// The lowest change that fits the samples: NEW / BASE − 1.
    pub low: f64,
    /// The highest; `None` if nothing bounds it.
    pub high: Option<f64>,
}

/// An operation or figure that meets a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedMet {
    /// The cell, of a series; absent where runs are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// The operation, or the figure of the whole.
    pub name: String,
    /// NEW / BASE − 1.
    pub change: f64,
    /// True if an interval or the brackets show that it is not chance; a score has neither.
    pub by_interval: bool,
}
