//! JSON, for machines: numbers in base units, ratios as new / base.

use rbench_core::plain;

use super::{digits, headline};
use crate::compare::{
    Basis, Bracket, Comparison, Difference, Interval, Judged, Outcome, Row, SeriesPart, Whole,
};
use crate::json::pretty;
use crate::schema::{
    COMPARE_SCHEMA, ComparedBracket, ComparedCell, ComparedCondition, ComparedDifference,
    ComparedFigure, ComparedInterval, ComparedMet, ComparedRow, ComparedSeries, ComparedUndecided,
    ComparedWhole, ComparisonResult, NotCompared, Samples,
};

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
    let differences = differences.iter().map(difference);
    let not_compared = unmeasured.iter().map(|u| NotCompared {
        workload: u.workload.clone(),
        operation: u.operation.clone(),
        reason: u.reason.clone(),
    });
    pretty(&ComparisonResult {
        schema: COMPARE_SCHEMA.to_owned(),
        base: base.names.clone(),
        new: new.names.clone(),
        confidence: options.confidence,
        min_effect: options.min_effect,
        series: series.as_ref().map(of_series),
        summary: plain(&headline(comparison, "NEW")).into_owned(),
        rows: rows.iter().map(row).collect(),
        differences: differences.collect(),
        not_compared: not_compared.collect(),
        notes: notes.clone(),
        conditions: judged.iter().map(condition).collect(),
        fails: comparison.fails(),
    })
}

fn of_series(series: &SeriesPart) -> ComparedSeries {
    let cell = |cell: &crate::compare::Cell| ComparedCell {
        name: cell.name.clone(),
        why_not: cell.why_not.clone(),
    };
    ComparedSeries {
        kind: series.kind.clone(),
        cells: series.cells.iter().map(cell).collect(),
        wholes: series.wholes.iter().map(whole).collect(),
    }
}

fn whole(whole: &Whole) -> ComparedWhole {
    let bracket = |bracket: Bracket| ComparedBracket {
        value: bracket.value.map(digits),
        failed: bracket.below.map(digits),
    };
    ComparedWhole {
        name: whole.name.clone(),
        unit: whole.unit.clone(),
        base: bracket(whole.base),
        new: bracket(whole.new),
        ratio: whole.ratio.map(digits),
        ratio_low: whole.low.map(digits),
        ratio_high: whole.high.map(digits),
        verdict: whole.verdict.map(|verdict| verdict.words().to_owned()),
    }
}

fn row(row: &Row) -> ComparedRow {
    ComparedRow {
        cell: row.cell.clone(),
        name: row.name.clone(),
        label: row.label.clone(),
        verdict: row.verdict.words().to_owned(),
        judged_by: row.judged_by.name.clone(),
        base_samples: samples(row.base),
        new_samples: samples(row.new),
        unlike: row.unlike.iter().map(difference).collect(),
        figures: row.figures.iter().map(figure).collect(),
    }
}

fn difference(difference: &Difference) -> ComparedDifference {
    ComparedDifference {
        what: difference.what.clone(),
        base: difference.base.clone(),
        new: difference.new.clone(),
    }
}

/// The kind and number of the samples.
fn samples(basis: Basis) -> Samples {
    let (kind, count) = match basis {
        Basis::Runs(n) => ("runs", n),
        Basis::Iterations(n) => ("iterations", n),
        Basis::Published => ("published", 1),
    };
    Samples {
        kind: kind.to_owned(),
        count: count as u64,
    }
}

fn figure(outcome: &Outcome) -> ComparedFigure {
    let interval = |interval: Interval| ComparedInterval {
        low: digits(interval.low),
        high: Some(interval.high)
            .filter(|high| high.is_finite())
            .map(digits),
        level: digits(interval.level),
        p: digits(interval.p),
    };
    ComparedFigure {
        figure: outcome.figure.name.clone(),
        unit: outcome.figure.unit.name().to_owned(),
        base: digits(outcome.base),
        new: digits(outcome.new),
        ratio: digits(outcome.ratio),
        interval: outcome.interval.map(interval),
    }
}

fn condition(judged: &Judged) -> ComparedCondition {
    let met = judged.met.iter().map(|met| ComparedMet {
        cell: met.cell.clone(),
        name: met.row.clone(),
        change: digits(met.change),
        by_interval: met.shown,
    });
    let undecided = judged.undecided.iter().map(|open| ComparedUndecided {
        cell: open.cell.clone(),
        name: open.row.clone(),
        low: digits(open.low),
        high: Some(open.high).filter(|high| high.is_finite()).map(digits),
    });
    ComparedCondition {
        condition: judged.text.clone(),
        met: met.collect(),
        undecided: undecided.collect(),
    }
}
