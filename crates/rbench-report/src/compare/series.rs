//! Comparison of series: cells are matched by their keys, and each pair is compared like two runs.

use rbench_core::plain::plain;
use schemars::JsonSchema;
use serde::Serialize;

use super::whole::{self, Whole};
use super::{
    Comparison, Difference, Missing, Options, Paired, Refusal, Run, SeriesRun, Side, even, paired,
    within,
};
use crate::schema::{CellResult, KneeResult, SeriesResult};
use crate::table::{distinct, grouped};

/// Results of series besides the rows of their cells.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ComparedSeries")]
pub struct SeriesPart {
    /// The command of BASE: `sweep`, `knee`, `nn`, `quick`, `suite`, `io500`.
    pub kind: String,
    /// The cells of BASE, then those that only NEW has; of `knee` the one without a rate.
    pub cells: Vec<Cell>,
    /// Figures of the series as a whole: the rate that `knee` found, the scores and phases
    /// of `io500`; empty for others.
    pub wholes: Vec<Whole>,
}

/// A cell of a series.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ComparedCell")]
pub struct Cell {
    /// Its name, which its rows have as `cell`.
    pub name: String,
    /// Reason why it is not compared: a clause; `None`: it is.
    pub why_not: Option<String>,
}

/// Compares the series of NEW with those of BASE; several files of a side are its samples.
///
/// # Errors A sentence that says why they are not compared.
pub fn compare_series(
    base: &[SeriesRun<'_>],
    new: &[SeriesRun<'_>],
    options: &Options,
) -> Result<Comparison, Refusal> {
    let mut all = Paired {
        differences: of_series(base, new),
        ..Paired::default()
    };
    let mut cells: Vec<Cell> = Vec::new();
    let mut found: Vec<(String, Difference)> = Vec::new();
    for (key, name) in keys(base, new) {
        let (old, young) = (runs(base, &key), runs(new, &key));
        let before = all.pairs.len();
        if !old.is_empty() && !young.is_empty() {
            let one = paired(&old, &young, options.even_if_different)?;
            found.extend(one.differences.into_iter().map(|d| (name.clone(), d)));
            let named = |note: String| within(Some(&name), &note);
            all.notes.extend(one.notes.into_iter().map(named));
            let warned = all.warned.iter_mut().zip(one.warned);
            warned.for_each(|(all, one)| all.extend(one));
            all.gone.extend(one.gone.into_iter().map(|gone| Missing {
                cell: Some(name.clone()),
                ..gone
            }));
            all.pairs.extend(one.pairs.into_iter().map(|mut pair| {
                pair.row.cell = Some(name.clone());
                pair
            }));
        } else if !options.even_if_different {
            all.gone
                .extend(measured(&old).into_iter().map(|row| Missing {
                    cell: Some(name.clone()),
                    row,
                }));
        }
        let is_compared = all.pairs.len() > before;
        let why_not = (!is_compared).then(|| why_not((base, &old), (new, &young), &key));
        cells.push(Cell { name, why_not });
    }
    let compared = cells.iter().filter(|cell| cell.why_not.is_none()).count();
    all.differences.extend(together(found, compared));
    if !all.differences.is_empty() && !options.even_if_different {
        return Err(Refusal::Uneven(all.differences));
    }
    let (wholes, notes) = whole::of(base, new, options.min_effect);
    if all.pairs.is_empty() && wholes.is_empty() {
        let names = |side: &[SeriesRun<'_>]| -> String {
            let names: Vec<&str> = side.iter().map(|run| run.name).collect();
            names.join(", ")
        };
        return Err(Refusal::NothingInCommon {
            base: names(base),
            new: names(new),
            keys: keys_that_differ(base, new),
        });
    }
    all.notes.extend(notes);
    all.notes.extend(troubles("BASE", base));
    all.notes.extend(troubles("NEW", new));
    let kind = base.first().map_or("", |run| run.series.kind.as_str());
    all.series = Some(SeriesPart {
        kind: kind.to_owned(),
        cells,
        wholes,
    });
    all.judged(Side::of_series(base, new), options)
}

/// Identifies a cell within its series: in a sweep by the values of its keys in any order,
/// otherwise by its name.
type Key = Vec<String>;

fn key(series: &SeriesResult, cell: &CellResult) -> Key {
    if series.kind != "sweep" || cell.values.is_empty() {
        return vec![cell.name.clone()];
    }
    let values = cell.values.iter();
    let mut all: Key = values.map(|v| format!("{}={}", v.key, v.value)).collect();
    all.sort();
    all
}

/// The keys of sweeps that prevent any match: keys that only one side varies, or that have other
/// values. Words after a colon, or empty.
fn keys_that_differ(base: &[SeriesRun<'_>], new: &[SeriesRun<'_>]) -> String {
    let sides = [("BASE", values(base)), ("NEW", values(new))];
    let names = sides.iter().flat_map(|(_, keys)| keys);
    let names: Vec<&str> = distinct(names.map(|(name, _)| *name));
    let told = names.into_iter().filter_map(|name| {
        let of = |keys: &[(&str, Vec<&str>)]| {
            let found = keys.iter().find(|(known, _)| *known == name)?;
            Some(found.1.join(","))
        };
        let [(base, old), (new, young)] = &sides;
        match (of(old), of(young)) {
            (Some(old), Some(young)) if old == young => None,
            (Some(old), Some(young)) => {
                Some(format!("{name} is {old} in {base} and {young} in {new}"))
            }
            (Some(_), None) => Some(format!("only {base} varies {name}")),
            (None, _) => Some(format!("only {new} varies {name}")),
        }
    });
    let told: Vec<String> = told.collect();
    match told.is_empty() {
        true => String::new(),
        false => format!(": {}", plain(&told.join("; "))),
    }
}

/// The keys of a side's sweeps with their values, sorted, each once.
fn values<'r>(side: &[SeriesRun<'r>]) -> Vec<(&'r str, Vec<&'r str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    let sweeps = side.iter().filter(|run| run.series.kind == "sweep");
    for value in sweeps
        .flat_map(|run| &run.series.cells)
        .flat_map(|cell| &cell.values)
    {
        let at = all.iter().position(|(key, _)| *key == value.key);
        let at = at.unwrap_or_else(|| {
            all.push((&value.key, Vec::new()));
            all.len() - 1
        });
        let values = &mut all[at].1;
        if let Err(place) = values.binary_search(&value.value.as_str()) {
            values.insert(place, &value.value);
        }
    }
    all
}

/// The compared cells. The steps of a search depend on those before, so only the one without a rate
/// is the same in every search.
fn cells(series: &SeriesResult) -> impl Iterator<Item = &CellResult> {
    let searches = series.knee.is_some();
    let same = move |cell: &&CellResult| !searches || cell.value("stage") == Some("closed");
    series.cells.iter().filter(same)
}

/// Keys and names of all cells, each once.
fn keys(base: &[SeriesRun<'_>], new: &[SeriesRun<'_>]) -> Vec<(Key, String)> {
    let all = base.iter().chain(new).flat_map(|run| {
        let cells = cells(run.series);
        cells.map(|cell| (key(run.series, cell), &cell.name))
    });
    let named = grouped(all).into_iter();
    named.map(|(key, names)| (key, names[0].clone())).collect()
}

/// The results of a cell, each with the name of its file.
fn runs<'r>(side: &[SeriesRun<'r>], wanted: &Key) -> Vec<Run<'r>> {
    let of = |run: &SeriesRun<'r>| {
        let SeriesRun { name, series } = *run;
        let cell = cells(series).find(|cell| key(series, cell) == *wanted)?;
        let result = cell.result.as_ref()?;
        Some(Run { name, result })
    };
    side.iter().filter_map(of).collect()
}

/// The operations with a finished phase.
fn measured(runs: &[Run<'_>]) -> Vec<String> {
    let phases = runs.iter().flat_map(|run| &run.result.phases);
    let finished = phases.filter(|phase| phase.complete && phase.items > 0);
    distinct(finished.map(|phase| phase.name.clone()))
}

/// The reason why a cell is not compared.
fn why_not(
    (base, old): (&[SeriesRun<'_>], &[Run<'_>]),
    (new, young): (&[SeriesRun<'_>], &[Run<'_>]),
    wanted: &Key,
) -> String {
    let only = match (old.is_empty(), young.is_empty()) {
        (false, true) => Some(("BASE", "NEW", new)),
        (true, false) => Some(("NEW", "BASE", base)),
        _ => None,
    };
    let Some((has, lacks, side)) = only else {
        return "no operation has finished on both sides".to_owned();
    };
    let own = |run: &SeriesRun<'_>| {
        let cell = cells(run.series).find(|cell| key(run.series, cell) == *wanted);
        let error = cell.and_then(|cell| cell.error.clone());
        let mut left_out = run.series.left_out.iter();
        let left_out = left_out.find(|left| wanted.as_slice() == [left.name.as_str()]);
        error.or_else(|| left_out.map(|left| left.why.clone()))
    };
    match side.iter().find_map(own) {
        Some(why) => format!("only {has} has it ({lacks}: {why})"),
        None => format!("only {has} has it"),
    }
}

/// Differences between the series besides their cells.
fn of_series(base: &[SeriesRun<'_>], new: &[SeriesRun<'_>]) -> Vec<Difference> {
    even::of_all(base, new, |first, other| {
        let [base, new] = [first, other].map(|run| settings(run.series));
        let both = base.into_iter().zip(new);
        let both = both.map(|((what, base), (_, new))| (what.to_owned(), base, new));
        (other.name, even::differing(both))
    })
}

/// Settings that must be equal: the command, the name of a suite, and the objective of a search.
fn settings(series: &SeriesResult) -> [(&'static str, String); 5] {
    let none = || "-".to_owned();
    let knee = series.knee.as_ref();
    let objective = |knee: &KneeResult| {
        let objective = &knee.objective;
        let limits = objective.limits.iter();
        let mut words: Vec<String> = limits
            .map(|limit| format!("{}={} ns", limit.figure, limit.most_ns))
            .collect();
        words.push(format!("errors={}", objective.errors));
        words.extend(objective.row.iter().map(|row| format!("row {row}")));
        words.join(", ")
    };
    let search =
        |knee: &KneeResult| format!("{} arrivals, steps of {} s", knee.arrival, knee.time_s);
    [
        ("command", series.kind.clone()),
        ("suite", series.suite.clone().unwrap_or_else(none)),
        ("scale", series.scale.to_string()),
        ("objective", knee.map_or_else(none, objective)),
        ("search", knee.map_or_else(none, search)),
    ]
}

/// Combines the differences of the cells: one that every cell has is reported once, others with the
/// first cell's name.
fn together(found: Vec<(String, Difference)>, compared: usize) -> Vec<Difference> {
    let by_difference = found
        .into_iter()
        .map(|(cell, difference)| (difference, cell));
    let named = |(difference, cells): (Difference, Vec<String>)| {
        let Some((first, others)) = cells.split_first() else {
            return difference;
        };
        let what = &difference.what;
        Difference {
            what: match others.len() {
                _ if cells.len() >= compared => what.clone(),
                0 => format!("{what} in {first}"),
                n => format!("{what} in {first} and {n} more"),
            },
            ..difference
        }
    };
    grouped(by_difference).into_iter().map(named).collect()
}

/// Reports cells that did not finish.
fn troubles(side: &str, runs: &[SeriesRun<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    for run in runs {
        let cells = cells(run.series).filter(|cell| !cell.is_complete());
        notes.extend(cells.map(|cell| {
            let why = cell.error.as_deref().unwrap_or("stopped early");
            format!("{}: {why}, in {side} ({})", cell.name, run.name)
        }));
    }
    notes
}
