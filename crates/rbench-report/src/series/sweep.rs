//! The tables of `rbench sweep`: a pivot table for each operation and figure. The values of the
//! last key are the columns, those of the others the rows.

use rbench_core::units::human_nanos;

use crate::figures::Row;
use crate::schema::{SeriesKey, SeriesResult};
use crate::table::{Column, NONE, Table, left, right, sentence};
use crate::view::View;

/// A figure of a row, and its formatting.
struct Figure {
    title: &'static str,
    value: fn(&Row<'_>) -> Option<String>,
}

const FIGURES: [Figure; 5] = [
    Figure {
        title: "operations a second",
        value: |row| row.show("rate", ""),
    },
    Figure {
        title: "bandwidth",
        value: |row| row.show("bandwidth", ""),
    },
    Figure {
        title: "mean latency",
        value: |row| row.show("service", "mean"),
    },
    Figure {
        title: "p50",
        value: |row| row.quantile_ns(0.5).map(human_nanos),
    },
    Figure {
        title: "p99",
        value: |row| row.quantile_ns(0.99).map(human_nanos),
    },
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
    let measured: Vec<Measured> = series
        .cells
        .iter()
        .filter_map(|cell| {
            let keys = series.keys.iter();
            Some(Measured {
                values: keys.filter_map(|key| cell.value(&key.name)).collect(),
                rows: Row::finished(cell.result.as_ref()?),
            })
        })
        .collect();
    let mut operations: Vec<(&str, &str)> = Vec::new();
    for row in measured.iter().flat_map(|cell| &cell.rows) {
        if !operations.contains(&(row.name(), row.label())) {
            operations.push((row.name(), row.label()));
        }
    }
    let mut tables = Vec::new();
    for (name, label) in operations {
        for figure in &FIGURES {
            let table = pivot(view, &measured, (down, across), |cell| {
                let row = cell.rows.iter().find(|row| row.name() == name)?;
                (figure.value)(row)
            });
            let title = sentence(view, "", &format!("{label}: {}", figure.title));
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
    let mut columns: Vec<Column> = down.iter().map(|key| left(key.name.clone())).collect();
    columns.extend(across.values.iter().enumerate().map(|(i, value)| match i {
        0 => right(format!("{}={value}", across.name)),
        _ => right(value.clone()),
    }));
    let mut table = Table::new(columns);
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
            cells.push(text.unwrap_or_else(|| NONE.to_owned()));
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
