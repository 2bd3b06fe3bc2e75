//! Tests what the reports of all series have in common.

use rbench_report::schema::{SeriesResult, Warning};
use rbench_report::series::render;
use rbench_report::{Document, View, page};

use crate::compare::SHIFTS;
use crate::compare_series::sweep;

/// A sweep with a warning in these cells.
fn warned(cells: &[usize]) -> SeriesResult {
    let mut series = sweep([1000; 4], SHIFTS);
    for result in series
        .cells
        .iter_mut()
        .filter_map(|cell| cell.result.as_mut())
    {
        result.warnings.clear();
    }
    for cell in cells {
        let result = series.cells[*cell].result.as_mut().expect("a result");
        let message = format!("Cell {cell} is odd.");
        result.warnings.push(Warning::new("odd", message));
    }
    series
}

#[test]
fn a_warning_names_the_cells_that_have_it() {
    let check = |cells: &[usize], expected: &str| {
        let text = render(&warned(cells), View::default().wide(200));
        let line = text.lines().find(|line| line.ends_with("is odd."));
        assert_eq!(line, Some(expected), "{text}");
    };
    check(&[2], "- threads=4 write=4k: Cell 2 is odd.");
    check(
        &[1, 3],
        "- threads=1 write=64k, threads=4 write=64k, for example threads=1 write=64k: Cell 1 is odd.",
    );
    check(
        &[0, 1, 2, 3],
        "- every cell, for example threads=1 write=4k: Cell 0 is odd.",
    );
}

#[test]
fn on_the_page_of_a_series_warnings_come_before_any_figure() {
    let shown = |series: SeriesResult| page::render(&[Document::Series(Box::new(series))], &[]);
    let page = shown(warned(&[2]));
    let place = |words: &str| page.find(words).unwrap_or_else(|| panic!("{words}"));
    assert!(place("Before you trust the numbers") < place("Cell 2 is odd."));
    assert!(place("Cell 2 is odd.") < place("<figure"));
    let fine = "Every cell is complete, and there is no warning.";
    assert!(!page.contains(fine) && shown(warned(&[])).contains(fine));
}
