//! Figures of a series as a whole: the result of `rbench knee`, the scores of `rbench suite io500`.

use schemars::JsonSchema;
use serde::Serialize;

use super::{SeriesRun, Verdict};
use crate::json::ten_digits;
use crate::schema::{Io500Result, KneeResult};
use crate::stats::logarithms;

/// A figure that a condition may name.
#[derive(Debug, PartialEq)]
pub struct WholeFigure {
    /// Name for machines, and in conditions.
    pub name: &'static str,
    /// Name for people.
    pub label: &'static str,
    /// Its unit: `ops/s`, `GiB/s`, `kIOPS`; empty for the total score.
    pub unit: &'static str,
}

const fn figure(name: &'static str, label: &'static str, unit: &'static str) -> WholeFigure {
    WholeFigure { name, label, unit }
}

/// The highest rate at which a knee's objective held.
pub static HELD: WholeFigure = figure("held", "held rate", "ops/s");

/// Reads a score from the result.
type Score = fn(&Io500Result) -> Option<f64>;

/// The scores of a rehearsal of IO500.
static SCORES: [(WholeFigure, Score); 3] = [
    (figure("score", "score", ""), |result| result.total),
    (
        figure("score-bandwidth", "score, bandwidth", "GiB/s"),
        |result| result.bandwidth,
    ),
    (
        figure("score-metadata", "score, metadata", "kIOPS"),
        |result| result.metadata,
    ),
];

/// All figures of series.
pub fn figures() -> impl Iterator<Item = &'static WholeFigure> {
    std::iter::once(&HELD).chain(SCORES.iter().map(|(figure, _)| figure))
}

/// A side's values of a figure of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(rename = "ComparedBracket")]
pub struct Bracket {
    /// The figure; of several searches the lowest. `None`: there is none.
    #[serde(serialize_with = "ten_digits")]
    pub value: Option<f64>,
    /// For `held` the lowest rate above it at which the objective did not hold; for several
    /// searches the highest. `None`: there is none.
    #[serde(rename = "failed", serialize_with = "ten_digits")]
    pub below: Option<f64>,
}

/// A figure of a series as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ComparedWhole")]
pub struct Whole {
    /// Its name: `held`; `score`, `score-bandwidth`, `score-metadata`, or a phase of IO500.
    pub name: String,
    /// Name for people.
    #[serde(skip)]
    pub label: String,
    /// Its unit: `ops/s`, `GiB/s`, `kIOPS`; of the score none.
    pub unit: String,
    /// Values of BASE.
    pub base: Bracket,
    /// Values of NEW.
    pub new: Bracket,
    /// NEW / BASE of the values; `None` where they say nothing of each other.
    #[serde(serialize_with = "ten_digits")]
    pub ratio: Option<f64>,
    /// For `held` the lowest ratio of the limits that fits: NEW's `value` / BASE's `failed`.
    #[serde(rename = "ratio_low", serialize_with = "ten_digits")]
    pub low: Option<f64>,
    /// The highest one: NEW's `failed` / BASE's `value`.
    #[serde(rename = "ratio_high", serialize_with = "ten_digits")]
    pub high: Option<f64>,
    /// Like `ComparedRow::verdict`; `None`: the figure comes without its uncertainty.
    #[schemars(with = "Option<String>")]
    pub verdict: Option<Verdict>,
}

/// Compares the figures of whole series, with notes on them.
pub fn of(
    base: &[SeriesRun<'_>],
    new: &[SeriesRun<'_>],
    min_effect: f64,
) -> (Vec<Whole>, Vec<String>) {
    let mut wholes = Vec::new();
    let mut notes = Vec::new();
    let knees = |side: &[SeriesRun<'_>]| side.iter().all(|run| run.series.knee.is_some());
    if knees(base) && knees(new) {
        wholes.push(held(base, new, min_effect));
        for (side, runs) in [("BASE", base), ("NEW", new)] {
            notes.extend(runs.iter().filter_map(|run| unsettled(side, run)));
        }
        if base.len().min(new.len()) == 1 {
            notes.push(
                "held rate: its range comes from one search and has no confidence level: it does not include how \
                 much the limit varies between searches"
                    .to_owned(),
            );
        }
    }
    let scored = |side: &[SeriesRun<'_>]| side.iter().all(|run| run.series.io500.is_some());
    if scored(base) && scored(new) {
        for (figure, value) in &SCORES {
            wholes.push(score(base, new, (figure, *value), &mut notes));
        }
        wholes.extend(phases(base, new));
    }
    (wholes, notes)
}

fn knee_of<'r>(run: &SeriesRun<'r>) -> Option<&'r KneeResult> {
    run.series.knee.as_ref()
}

/// Returns true if a search located the limit.
fn is_settled(run: &SeriesRun<'_>) -> bool {
    knee_of(run).is_some_and(|knee| {
        let found = knee.held.is_some() || knee.failed.is_some();
        let sure = knee.held.is_none() || knee.confirmed;
        run.series.complete && knee.trouble.is_none() && found && sure
    })
}

/// The reason why a search did not locate the limit.
fn unsettled(side: &str, run: &SeriesRun<'_>) -> Option<String> {
    let why = match knee_of(run)? {
        _ if is_settled(run) => return None,
        KneeResult {
            trouble: Some(trouble),
            ..
        } => trouble.clone(),
        _ if !run.series.complete => "it was stopped early".to_owned(),
        KneeResult { held: Some(_), .. } => {
            "its rate was not confirmed by a longer window".to_owned()
        }
        _ => "no rate was tried".to_owned(),
    };
    Some(format!(
        "the search of {side} in {} is inconclusive: {why}",
        run.name
    ))
}

/// Compares limits, each between two rates. They differ if one side lies entirely beyond the other,
/// by at least `min_effect`.
fn held(base: &[SeriesRun<'_>], new: &[SeriesRun<'_>], min_effect: f64) -> Whole {
    let bracket = |side: &[SeriesRun<'_>]| {
        let all: Option<Vec<f64>> = side.iter().map(|run| knee_of(run)?.held).collect();
        let above: Option<Vec<f64>> = side.iter().map(|run| knee_of(run)?.failed).collect();
        Bracket {
            value: all.and_then(|all| all.into_iter().reduce(f64::min)),
            below: above.and_then(|all| all.into_iter().reduce(f64::max)),
        }
    };
    let (old, young) = (bracket(base), bracket(new));
    let (low, high) = (ratio(old.below, young.value), ratio(old.value, young.below));
    let settled = base.iter().chain(new).all(is_settled);
    Whole {
        name: HELD.name.to_owned(),
        label: HELD.label.to_owned(),
        unit: HELD.unit.to_owned(),
        base: old,
        new: young,
        ratio: ratio(old.value, young.value),
        low,
        high,
        verdict: Some(match (low, high) {
            _ if !settled => Verdict::TooFew,
            (_, Some(high)) if high <= 1.0 - min_effect => Verdict::Slower,
            (Some(low), _) if low >= 1.0 + min_effect => Verdict::Faster,
            _ => Verdict::NoDifference,
        }),
    }
}

/// A score: the geometric mean over several files. A score over other phases is a different score.
fn score(
    base: &[SeriesRun<'_>],
    new: &[SeriesRun<'_>],
    (figure, value): (&WholeFigure, Score),
    notes: &mut Vec<String>,
) -> Whole {
    let over = |run: &SeriesRun<'_>| -> Vec<String> {
        let phases = run.series.io500.iter().flat_map(|result| &result.phases);
        let counts = phases.filter(|phase| {
            let of_unit = figure.unit.is_empty() || phase.unit == figure.unit;
            phase.scored && of_unit && phase.value.is_some()
        });
        counts.map(|phase| phase.name.clone()).collect()
    };
    let all: Vec<Vec<String>> = base.iter().chain(new).map(over).collect();
    let same = all.windows(2).all(|pair| pair[0] == pair[1]);
    let side =
        |runs: &[SeriesRun<'_>]| mean(runs.iter().map(|run| value(run.series.io500.as_ref()?)));
    let (old, young) = (side(base), side(new));
    if !same {
        let some = |name: &&String| !all.iter().all(|phases| phases.contains(name));
        let mut missing: Vec<&String> = all.iter().flatten().filter(some).collect();
        missing.sort();
        missing.dedup();
        let names: Vec<&str> = missing.into_iter().map(String::as_str).collect();
        notes.push(format!(
            "{}: not compared, since only one side has {}",
            figure.label,
            names.join(", ")
        ));
    }
    let whole = without_interval((figure.name, figure.label, figure.unit), old, young);
    Whole {
        ratio: whole.ratio.filter(|_| same),
        ..whole
    }
}

/// The values of the phases that both sides have.
fn phases(base: &[SeriesRun<'_>], new: &[SeriesRun<'_>]) -> Vec<Whole> {
    let Some(first) = base.first().and_then(|run| run.series.io500.as_ref()) else {
        return Vec::new();
    };
    let side = |runs: &[SeriesRun<'_>], name: &str| {
        let of = |run: &SeriesRun<'_>| {
            let phases = run.series.io500.as_ref()?.phases.iter();
            phases.into_iter().find(|phase| phase.name == name)?.value
        };
        mean(runs.iter().map(of))
    };
    let both = first.phases.iter().filter_map(|phase| {
        let (old, young) = (side(base, &phase.name)?, side(new, &phase.name)?);
        let words = (&*phase.name, &*phase.name, &*phase.unit);
        Some(without_interval(words, Some(old), Some(young)))
    });
    both.collect()
}

/// A figure without known uncertainty.
fn without_interval(
    (name, label, unit): (&str, &str, &str),
    base: Option<f64>,
    new: Option<f64>,
) -> Whole {
    let bracket = |value| Bracket { value, below: None };
    Whole {
        name: name.to_owned(),
        label: label.to_owned(),
        unit: unit.to_owned(),
        base: bracket(base),
        new: bracket(new),
        ratio: ratio(base, new),
        low: None,
        high: None,
        verdict: None,
    }
}

/// The geometric mean of a side's values; `None` if one of them is missing.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Option<Vec<f64>> = values.collect();
    let logs = logarithms(values?)?;
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

fn ratio(base: Option<f64>, new: Option<f64>) -> Option<f64> {
    let ratio = base.zip(new).map(|(base, new)| new / base);
    ratio.filter(|ratio| ratio.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_a_name_of_its_own() {
        let names: Vec<&str> = figures().map(|figure| figure.name).collect();
        assert_eq!(
            names,
            ["held", "score", "score-bandwidth", "score-metadata"]
        );
        let rows = super::super::FIGURES.iter().map(|figure| &*figure.name);
        assert!(rows.into_iter().all(|name| !names.contains(&name)));
    }
}
