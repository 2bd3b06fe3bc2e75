//! Tests what the reports of all series have in common.

use rbench_core::OpKind;
use rbench_report::schema::{SeriesResult, SeriesStep, Warning};
use rbench_report::series::render;
use rbench_report::{Document, View, page};

use crate::compare::SHIFTS;
use crate::compare_series::sweep;
use crate::fixtures::{Made, meta_spec, run};

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

#[test]
fn few_operations_have_no_percentile_in_the_tables_of_a_sweep_and_a_suite() {
    let of = |kind: &str, items: u64| {
        let mut series = sweep([1000; 4], SHIFTS);
        for cell in &mut series.cells {
            let phase = Made::solo(items, 0, 300_000).phase("p", "A phase", OpKind::Stat);
            cell.result = Some(run(1, 1, meta_spec(), vec![phase]));
        }
        if kind == "suite" {
            series.steps = vec![SeriesStep {
                name: "a step".to_owned(),
                kind: "run".to_owned(),
                keys: Vec::new(),
                first: 0,
                cells: 4,
            }];
        }
        series.kind = kind.to_owned();
        render(&series, View::default().wide(200))
    };
    let has = |items, figure: &str| of("sweep", items).contains(&format!("A phase: {figure}"));
    assert!(has(100, "p99") && !has(99, "p99") && has(99, "p50"));
    assert!(has(1, "mean latency") && !has(1, "p50"));
    let dashes = |items| of("suite", items).matches("  -  ").count();
    assert_eq!((dashes(100), dashes(99)), (0, 4));
}
