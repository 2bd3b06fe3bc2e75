//! Tests the report of `rbench nn`.

use rbench_core::OpKind;
use rbench_report::View;
use rbench_report::schema::{CellResult, CellValue, SERIES_SCHEMA, SeriesKey, SeriesResult};
use rbench_report::series::render;
use serde_json::json;

use crate::fixtures::{Made, empty_run, run, words};
use crate::golden::check;

/// A cell in which each operation has this rate.
fn cell(index: u32, workers: u32, rate: f64) -> CellResult {
    let template = Made::on(1, workers, 200, 0, 900_000);
    let phases = [
        ("tree-create", OpKind::Mkdir),
        ("file-create", OpKind::Create),
        ("file-read", OpKind::ReadFile),
        ("file-rename", OpKind::Rename),
        ("file-remove", OpKind::Unlink),
    ];
    let phases = phases.map(|(name, op)| template.phase(name, name, op));
    let mut result = run(1, workers, json!({}), phases.to_vec());
    result.warnings.clear();
    for phase in &mut result.phases {
        phase.rate = rate;
    }
    CellResult {
        index,
        name: format!("workers={workers}"),
        values: vec![CellValue {
            key: "workers".to_owned(),
            value: workers.to_string(),
        }],
        wall_s: 1.0,
        dir: None,
        error: None,
        result: Some(result),
    }
}

/// A ladder without cells.
fn bare() -> SeriesResult {
    let mut run = empty_run().run;
    run.command = words("rbench nn --ladder 2,4,8 --dir /mnt/fs");
    let values = ["2", "4", "8"].map(str::to_owned).to_vec();
    SeriesResult {
        schema: SERIES_SCHEMA.to_owned(),
        kind: "nn".to_owned(),
        suite: None,
        scale: 1.0,
        run,
        ranks: 8,
        hosts: vec!["client1".to_owned()],
        keys: vec![SeriesKey {
            name: "workers".to_owned(),
            values,
        }],
        planned: Some(3),
        dir: None,
        embedded: false,
        launched: None,
        left_out: Vec::new(),
        steps: Vec::new(),
        cells: Vec::new(),
        complete: true,
        check: None,
        knee: None,
        io500: None,
    }
}

/// A ladder of three rungs.
pub fn ladder() -> SeriesResult {
    let mut series = bare();
    let rungs = [(0, 2, 2000.0), (1, 4, 3900.0), (2, 8, 4000.0)];
    let cells = rungs.map(|(index, workers, rate)| cell(index, workers, rate));
    series.cells.extend(cells);
    series
}

#[test]
fn advice_names_options_of_the_command_that_ran() {
    let advice = |kind: &str, cell_of: &str, spec: serde_json::Value| {
        let mut series = bare();
        series.kind = kind.to_owned();
        series.run.command = words(&format!("rbench {kind}"));
        series.embedded = true;
        let mut short = Made::on(1, 2, 20, 0, 900_000).phase("file-create", "x", OpKind::Create);
        short.elapsed.0 = 1_000_000;
        let mut cell = cell(0, 2, 1600.0);
        let mut result = run(1, 2, spec, vec![short]);
        result.run.command = words(&format!("rbench {cell_of}"));
        result.warnings.clear();
        rbench_report::finish(&mut result);
        cell.result = Some(result);
        series.put(cell);
        let text = render(&series, View::default());
        text.split_whitespace().collect::<Vec<&str>>().join(" ")
    };
    let items = || json!({"items": "30"});
    let check = |text: &str, part: &str| assert!(text.contains(part), "{text}");
    let nn = advice("nn", "meta", items());
    check(&nn, "(1.00 ms). Use more items: --files 1000.");
    check(&nn, "choose a directory with --dir.");
    let quick = advice("quick", "meta", items());
    check(&quick, "Use more items: --small-file-count 1000.");
    check(
        &quick,
        "not your storage: name a directory: rbench quick PATH.",
    );
    let big = advice("quick", "io", json!({"size": "64KiB"}));
    check(&big, "Use more items: --big-file-size 2M.");
    let suite = advice("suite", "meta", items());
    assert!(!suite.contains("Use more items"), "{suite}");
    let sweep = advice("sweep", "meta", items());
    check(&sweep, "Use more items: --items 1000, or --time 1.");
}

#[test]
fn operations_by_workers_and_where_they_stop_scaling() {
    let mut series = bare();
    series.put(cell(0, 2, 1600.0));
    assert!(render(&series, View::default()).contains("needs two numbers of workers"));
    series.put(cell(1, 4, 3100.0));
    assert!(render(&series, View::default()).contains("rename still scales at 4 workers"));
    // 9% of the growth of the workers.
    series.put(cell(2, 8, 3100.0 * 1.09));
    let text = render(&series, View::default());
    assert!(
        text.lines().all(|line| line.chars().count() <= 120),
        "{text}"
    );
    check("nn.txt", &text);
    series.put(cell(2, 8, 3100.0 * 1.11));
    assert!(render(&series, View::default()).contains("rename still scales at 8 workers"));
}
