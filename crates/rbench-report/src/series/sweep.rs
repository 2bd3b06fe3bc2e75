//! The tables of `rbench sweep`: a pivot table for each operation and figure. The values of the
//! last key are the columns, those of the others the rows.

use crate::figures::Row;
use crate::schema::{SeriesKey, SeriesResult};
use crate::table::{Table, distinct, left, or_none, right, sentence};
use crate::view::View;

/// Shows a figure of a row.
type Show = fn(&Row<'_>) -> Option<String>;

/// The figures of a row, with their titles.
const FIGURES: [(&str, Show); 5] = [
    ("operations a second", |row| row.show("rate", "")),
    ("bandwidth", |row| row.show("bandwidth", "")),
    ("mean latency", |row| row.show("service", "mean")),
    ("p50", |row| row.show("service", "p50")),
    ("p99", |row| row.show("service", "p99")),
];

/// A cell's rows.
struct Measured<'s> {
    values: Vec<&'s str>,
    rows: Vec<Row<'s>>,
}

pub fn render(series: &SeriesResult, view: View) -> String {
    let Some((across, down)) = series.keys.split_last() else {
        return String::new();
    };
    let measured = series.cells.iter().filter_map(|cell| {
        let keys = series.keys.iter();
        Some(Measured {
            values: keys.filter_map(|key| cell.value(&key.name)).collect(),
            rows: Row::finished(cell.result.as_ref()?),
        })
    });
    let measured: Vec<Measured> = measured.collect();
    let rows = measured.iter().flat_map(|cell| &cell.rows);
    let mut tables = Vec::new();
    for (name, label) in distinct(rows.map(|row| (row.name(), row.label()))) {
        for (figure, value) in FIGURES {
            let table = pivot(view, &measured, (down, across), |cell| {
                let row = cell.rows.iter().find(|row| row.name() == name)?;
                value(row)
            });
            let title = sentence(view, "", &format!("{label}: {figure}"));
            tables.extend(table.map(|table| title + &table));
        }
    }
    tables.join("\n")
}

/// A table; `None` if no cell has the figure.
fn pivot(
    view: View,
    measured: &[Measured],
    (down, across): (&[SeriesKey], &SeriesKey),
    value: impl Fn(&Measured) -> Option<String>,
) -> Option<String> {
    let outer = down.iter().map(|key| left(key.name.clone()));
    let inner = across.values.iter().enumerate().map(|(i, value)| match i {
        0 => right(format!("{}={value}", across.name)),
        _ => right(value.clone()),
    });
    let mut table = Table::new(outer.chain(inner));
    let mut has_values = false;
    for outer in combinations(measured, down) {
        let mut cells: Vec<String> = outer.iter().map(|v| (*v).to_owned()).collect();
        for inner in &across.values {
            let cell = measured.iter().find(|cell| {
                let (last, first) = cell.values.split_last().unwrap_or((&"", &[]));
                last == inner && first == outer
            });
            let text = cell.and_then(&value);
            has_values |= text.is_some();
            cells.push(or_none(text));
        }
        table.row(cells);
    }
    has_values.then(|| table.render(view))
}

/// All combinations of the rows' keys in measured cells, each once, in the order of the keys'
/// values.
fn combinations<'s>(measured: &[Measured<'s>], down: &[SeriesKey]) -> Vec<Vec<&'s str>> {
    let place = |values: &[&str]| -> Vec<Option<usize>> {
        let places = down.iter().zip(values);
        let of = |(key, value): (&SeriesKey, &&str)| key.values.iter().position(|v| v == value);
        places.map(of).collect()
    };
    let outer = measured.iter().filter_map(|cell| cell.values.split_last());
    let mut all: Vec<Vec<&str>> = outer.map(|(_, outer)| outer.to_vec()).collect();
    all.sort_by_key(|values| place(values));
    all.dedup();
    all.retain(|values| values.len() == down.len());
    all
}
