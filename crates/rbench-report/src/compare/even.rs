//! Differences in what runs did, besides the figures.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::samples::{RowSamples, Run, workload};
use crate::RunResult;

/// A difference between both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ComparedDifference")]
pub struct Difference {
    /// The property that differs.
    pub what: String,
    /// In BASE.
    pub base: String,
    /// In NEW.
    pub new: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { what, base, new } = self;
        write!(f, "{what} ({base} against {new})")
    }
}

/// Settings on place, repetition and care, which do not change what is done.
const INDIFFERENT: &[&str] = &[
    "threads",
    "iterations",
    "precision",
    "max-iterations",
    "max-time",
    "keep",
    "directories",
    "data-seed",
    "ack-journal",
    "private-dirs",
    "overfill",
    "untried",
];

/// Settings that hold options of jobs.
const OPTIONS: &[&str] = &["options", "job-options"];

/// Settings whose file name does not matter, only whether a file is given.
const FILES: &[&str] = &["newer"];

/// Options of jobs that do not matter either.
const INDIFFERENT_OPTIONS: &[&str] = &["directory", "filename", "name", "output", "title"];

const NONE: &str = "-";

/// Differences in settings and environment of the runs, each compared with the first of BASE.
pub fn of_runs(base: &[Run<'_>], new: &[Run<'_>]) -> Vec<Difference> {
    of_all(base, new, |first, other| {
        (other.name, between(first.result, other.result))
    })
}

/// Differences of several files from the first of BASE; `between` returns the name of the other file
/// as well.
pub(super) fn of_all<'r, R>(
    base: &'r [R],
    new: &'r [R],
    between: impl Fn(&'r R, &'r R) -> (&'r str, Vec<Difference>),
) -> Vec<Difference> {
    let Some((first, others)) = base.split_first() else {
        return Vec::new();
    };
    let several = base.len() + new.len() > 2;
    let found = others.iter().chain(new).flat_map(|other| {
        let (name, mut found) = between(first, other);
        for difference in found.iter_mut().filter(|_| several) {
            difference.what = format!("{} of {name}", difference.what);
        }
        found
    });
    found.collect()
}

/// Those of some properties that differ.
pub(super) fn differing(all: impl Iterator<Item = (String, String, String)>) -> Vec<Difference> {
    let differ = all.filter(|(_, base, new)| base != new);
    let differ = differ.map(|(what, base, new)| Difference { what, base, new });
    differ.collect()
}

fn between(base: &RunResult, new: &RunResult) -> Vec<Difference> {
    type Of = fn(&RunResult) -> String;
    let places: [(&str, Of); 4] = [
        ("workload", |run| workload(run).to_owned()),
        ("ranks", |run| run.world.ranks.to_string()),
        ("hosts", |run| run.world.hosts.len().to_string()),
        ("threads of each rank", |run| {
            run.world.threads_per_rank.to_string()
        }),
    ];
    let places = places.map(|(what, of)| (what.to_owned(), of(base), of(new)));
    let names: BTreeSet<&String> = base.spec.keys().chain(new.spec.keys()).collect();
    let settings = names
        .into_iter()
        .filter(|name| !INDIFFERENT.contains(&name.as_str()))
        .map(|name| (name.clone(), setting(base, name), setting(new, name)));
    differing(places.into_iter().chain(settings))
}

/// A setting as text.
fn setting(result: &RunResult, name: &str) -> String {
    match result.spec.get(name) {
        None => NONE.to_owned(),
        Some(_) if FILES.contains(&name) => "a file".to_owned(),
        Some(Value::String(text)) if OPTIONS.contains(&name) => {
            let options = text.split(", ").filter(|option| {
                let key = option.split('=').next().unwrap_or(option);
                !INDIFFERENT_OPTIONS.contains(&key)
            });
            options.collect::<Vec<&str>>().join(", ")
        }
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Differences between the measurements of a row: the cache verdict, and the size of an operation.
/// They are results, not settings: the row is compared and marked.
pub fn of_rows(base: &RowSamples, new: &RowSamples) -> Vec<Difference> {
    let mut found = Vec::new();
    let unknown = base.caches.is_empty() || new.caches.is_empty();
    // A single iteration may differ from the others.
    if !unknown && base.caches.is_disjoint(&new.caches) {
        found.push(Difference {
            what: "cache".to_owned(),
            base: words(&base.caches),
            new: words(&new.caches),
        });
    }
    // The mean varies if sizes are drawn at random.
    let (a, b) = (base.bytes_each(), new.bytes_each());
    if base.items > 0 && new.items > 0 && (a - b).abs() > 0.1 * a.max(b) {
        found.push(Difference {
            what: "bytes of an operation".to_owned(),
            base: format!("{a:.0}"),
            new: format!("{b:.0}"),
        });
    }
    found
}

fn words(set: &BTreeSet<String>) -> String {
    let all: Vec<&str> = set.iter().map(String::as_str).collect();
    all.join(" and ")
}
