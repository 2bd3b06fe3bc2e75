//! The journal of a series. The first line holds the series without cells, each further line a
//! finished cell. A crash tears at most the last line.

use serde::{Deserialize, Serialize};

use crate::journal::{Probe, ReadError, line, parse};
use crate::schema::{CellResult, SERIES_SCHEMA, SeriesResult, same_major};

/// Start of the first line of such a journal.
const FIELD: &str = "{\"series\":";

#[derive(Serialize, Deserialize)]
struct Header {
    series: SeriesResult,
}

#[derive(Serialize, Deserialize)]
struct CellLine {
    cell: CellResult,
}

/// The first line, with its newline.
pub fn header_line(series: &SeriesResult) -> String {
    let bare = SeriesResult {
        cells: Vec::new(),
        ..series.clone()
    };
    line(&Header { series: bare })
}

/// The line of a cell, with its newline.
pub fn cell_line(cell: &CellResult) -> String {
    line(&CellLine { cell: cell.clone() })
}

/// Returns true for the file or the journal of a series.
pub fn is_series(bytes: &[u8]) -> bool {
    bytes.starts_with(FIELD.as_bytes())
        || serde_json::from_slice::<Probe>(bytes)
            .ok()
            .and_then(|probe| probe.schema)
            .is_some_and(|schema| same_major(&schema, SERIES_SCHEMA))
}

/// Reads the file or the journal of a series.
///
/// # Errors
/// The mistake and its position.
pub fn read(bytes: &[u8]) -> Result<SeriesResult, ReadError> {
    if bytes.starts_with(FIELD.as_bytes()) {
        return read_journal(bytes);
    }
    let series: SeriesResult = parse(bytes, 1)?;
    checked(series)
}

fn checked(series: SeriesResult) -> Result<SeriesResult, ReadError> {
    match same_major(&series.schema, SERIES_SCHEMA) {
        true => Ok(series),
        false => Err(ReadError::Schema(series.schema)),
    }
}

fn read_journal(bytes: &[u8]) -> Result<SeriesResult, ReadError> {
    let mut lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
    // The part after the last newline is empty or torn.
    lines.pop();
    let Some((first, rest)) = lines.split_first() else {
        return Err(ReadError::TornHeader);
    };
    let header: Header = parse(first, 1)?;
    let mut series = checked(header.series)?;
    for (i, text) in rest.iter().enumerate() {
        let CellLine { cell } = parse(text, i + 2)?;
        series.put(cell);
    }
    series.complete = false;
    Ok(series)
}
