//! JSON, for machines: numbers in base units, ratios as new / base.

use serde_json::{Value, json};

use super::digits;
use crate::compare::{Basis, Comparison, Judged, Outcome, Row};
use crate::json::pretty;

/// The name of the schema.
const SCHEMA: &str = "rbench.compare/1";

/// The whole comparison.
pub fn render(comparison: &Comparison) -> String {
    let Comparison {
        base,
        new,
        options,
        rows,
        differences,
        unmeasured,
        notes,
        judged,
    } = comparison;
    pretty(&json!({
        "schema": SCHEMA,
        "base": base.names,
        "new": new.names,
        "confidence": options.confidence,
        "min_effect": options.min_effect,
        "rows": rows.iter().map(row).collect::<Vec<Value>>(),
        "differences": differences
            .iter()
            .map(|d| json!({"what": d.what, "base": d.base, "new": d.new}))
            .collect::<Vec<Value>>(),
        "not_compared": unmeasured
            .iter()
            .map(|u| json!({"workload": u.workload, "operation": u.operation, "reason": u.reason}))
            .collect::<Vec<Value>>(),
        "notes": notes,
        "conditions": judged.iter().map(condition).collect::<Vec<Value>>(),
        "fails": comparison.fails(),
    }))
}

fn row(row: &Row) -> Value {
    json!({
        "name": row.name,
        "label": row.label,
        "verdict": row.verdict.words(),
        "judged_by": row.judged_by.name,
        "base_samples": samples(row.base),
        "new_samples": samples(row.new),
        "figures": row.figures.iter().map(figure).collect::<Vec<Value>>(),
    })
}

/// What the samples are, and how many.
fn samples(basis: Basis) -> Value {
    let (kind, count) = match basis {
        Basis::Runs(n) => ("runs", n),
        Basis::Iterations(n) => ("iterations", n),
        Basis::Slices(n) => ("slices", n),
        Basis::Published => ("published", 1),
    };
    json!({"kind": kind, "count": count})
}

fn figure(outcome: &Outcome) -> Value {
    let interval = outcome.interval.map(|interval| {
        json!({
            "low": digits(interval.low),
            "high": digits(interval.high),
            "level": digits(interval.level),
            "p": digits(interval.p),
        })
    });
    json!({
        "figure": outcome.figure.name,
        "unit": outcome.figure.unit.name(),
        "base": digits(outcome.base),
        "new": digits(outcome.new),
        "ratio": digits(outcome.ratio),
        "interval": interval,
    })
}

fn condition(judged: &Judged) -> Value {
    let met = judged.met.iter().map(
        |met| json!({"name": met.row, "change": digits(met.change), "by_interval": met.shown}),
    );
    json!({
        "condition": judged.text,
        "met": met.collect::<Vec<Value>>(),
    })
}
