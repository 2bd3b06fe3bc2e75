//! Notes of a comparison for the reader.

use rbench_core::permutation;

use super::samples::RowSamples;
use super::{Basis, Options, Row, Verdict, Warned};
use crate::schema::some_of;
use crate::table::distinct;

/// Notes on excluded and failed operations.
pub(super) fn of_side(side: &str, rows: &[RowSamples]) -> Vec<String> {
    let mut notes = Vec::new();
    for row in rows {
        if row.errors > 0 {
            notes.push(format!(
                "{}: {} of {} operations failed in {side}; no figure includes them",
                row.name,
                row.errors,
                row.errors.saturating_add(row.items)
            ));
        }
        if row.unissued > 0 {
            notes.push(format!(
                "{}: {} due operations were never started in {side}; response times do not include them",
                row.name, row.unissued
            ));
        }
        if row.stopped > 0 {
            notes.push(format!(
                "{}: {} of its phases did not finish in {side} and are left out",
                row.name, row.stopped
            ));
        }
    }
    notes
}

/// Names the warnings of a side of this many files, each with the files that have it if others do
/// not.
pub(super) fn of_warnings(side: &str, warned: &[Warned], files: usize) -> Option<String> {
    let codes = distinct(warned.iter().map(|one| one.code.as_str()));
    let words = codes.iter().map(|code| {
        let own = warned.iter().filter(|one| one.code == *code);
        let own = distinct(own.map(|one| one.file.as_str()));
        match own.len() == files {
            true => (*code).to_owned(),
            false => format!("{code} ({})", some_of(&own)),
        }
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| {
        let words = words.join(", ");
        format!("{side} has warnings about what is compared: {words}; rbench show prints them")
    })
}

/// Names the rows that only one side has.
pub(super) fn one_sided(side: &str, own: &[RowSamples], other: &[RowSamples]) -> Option<String> {
    let has = |rows: &[RowSamples], name: &str| {
        rows.iter()
            .any(|row| row.name == name && !row.runs.is_empty())
    };
    let only = own.iter().map(|row| row.name.as_str());
    let only: Vec<&str> = only
        .filter(|name| has(own, name) && !has(other, name))
        .collect();
    (!only.is_empty()).then(|| format!("only {side} has {}", only.join(", ")))
}

/// From this many samples of each side on, a difference in every sample is shown in most comparisons.
pub(super) const SAMPLES_ENOUGH: usize = 6;

/// A note if rows without a verdict differ in every sample.
pub(super) fn undecided(rows: &[Row], apart: &[bool]) -> Option<String> {
    let rows = rows.iter().zip(apart);
    // A difference may be shown and too small to count (--min-effect).
    let hidden = |row: &Row| row.judged().is_some_and(|outcome| !outcome.is_shown());
    let found =
        rows.filter(|(row, apart)| **apart && row.verdict == Verdict::NoDifference && hidden(row));
    let names: Vec<String> = found.map(|(row, _)| row.full_name()).collect();
    if names.is_empty() {
        return None;
    }
    let all = names.join(", ");
    Some(format!(
        "{all}: every sample of one side is above all of the other, but so few samples do not rule out chance in \
         any of the operations; repeat both with at least {SAMPLES_ENOUGH} iterations, or {SAMPLES_ENOUGH} runs of each"
    ))
}

/// Notes about rows for the reader.
pub(super) fn row_notes(rows: &[Row], options: &Options) -> Vec<String> {
    let unlike = rows.iter().flat_map(|row| {
        let name = row.full_name();
        row.unlike.iter().map(move |difference| {
            format!("{name}: {difference}: its ratio reflects this difference, not the file system alone")
        })
    });
    let mut notes: Vec<String> = unlike.collect();
    if rows.iter().any(Row::lacks_samples) {
        let least = match rows.iter().any(|row| row.base == Basis::Published) {
            true => permutation::SAMPLES_MIN,
            false => permutation::fewest(1.0 - options.confidence),
        };
        notes.push(format!(
            "too few samples: a verdict needs at least {least} iterations or runs of each side, to know how much \
             they vary; repeat with --iterations {}",
            least.max(5)
        ));
    }
    notes
}
