//! Tests the report of `rbench suite io500`, and its score.

use rbench_core::OpKind;
use rbench_core::failure::Failure;
use rbench_report::View;
use rbench_report::schema::{
    AccessResult, CellResult, FoundResult, Io500Phase, Io500Result, SERIES_SCHEMA, SeriesResult,
};
use rbench_report::series::{journal, render, render_json};
use serde_json::json;

use crate::fixtures::{Made, empty_run, fail, no_space, run, words};
use crate::golden::check;

const GIB: f64 = 1_073_741_824.0;

/// Name, row, figure, and value: GiB/s or thousands per second.
const PHASES: [(&str, &str, &str, f64); 5] = [
    ("ior-easy-write", "write", "access", 4.0),
    ("mdtest-easy-write", "file-create", "rate", 2.0),
    ("find", "find-readdir", "found", 8.0),
    ("ior-easy-read", "read", "access", 9.0),
    ("ior-rnd4K-easy-read", "read", "access", 0.5),
];

fn phase(cell: u32) -> Io500Phase {
    let (name, row, figure, _) = PHASES[cell as usize];
    Io500Phase {
        name: name.to_owned(),
        cell: Some(cell),
        row: row.to_owned(),
        figure: figure.to_owned(),
        unit: if figure == "access" { "GiB/s" } else { "kIOPS" }.to_owned(),
        scored: !name.contains("rnd"),
        writes: name.ends_with("write"),
        value: None,
        time_s: None,
        invalid: Vec::new(),
    }
}

/// A cell whose phase took `seconds`.
pub fn cell(index: u32, seconds: f64, failure: Option<Failure>) -> CellResult {
    let (name, row, figure, value) = PHASES[index as usize];
    let mut phase = Made::on(2, 2, 1200, 0, 900_000).phase(row, row, OpKind::Write);
    if let Some(failure) = failure {
        fail(&mut phase, 1, 3, failure);
    }
    let mut result = run(2, 2, json!({}), vec![phase]);
    result.warnings.clear();
    let phase_result = &mut result.phases[0];
    phase_result.elapsed_s = seconds;
    match figure {
        "access" => {
            phase_result.access = Some(AccessResult {
                open_s: 0.1,
                transfer_s: seconds - 0.2,
                close_s: 0.1,
                total_s: seconds,
                bandwidth: value * GIB,
            });
        }
        "found" => {
            phase_result.found = Some(FoundResult {
                files: 9600,
                directories: 7,
                matches: 96,
                files_per_s: value * 1e3,
            });
        }
        _ => phase_result.rate = value * 1e3,
    }
    CellResult {
        index,
        name: name.to_owned(),
        values: Vec::new(),
        wall_s: seconds,
        dir: None,
        error: None,
        result: Some(result),
    }
}

pub fn series() -> SeriesResult {
    let mut run = empty_run().run;
    run.command = words("rbench suite io500 --dir /mnt/fs");
    let mut phases: Vec<Io500Phase> = (0..5).map(phase).collect();
    phases.insert(
        2,
        Io500Phase {
            name: "ior-hard-write".to_owned(),
            cell: None,
            ..phase(0)
        },
    );
    SeriesResult {
        schema: SERIES_SCHEMA.to_owned(),
        kind: "io500".to_owned(),
        suite: Some("io500 1".to_owned()),
        scale: 1.0,
        run,
        ranks: 4,
        hosts: vec!["client1".to_owned(), "client2".to_owned()],
        keys: Vec::new(),
        planned: Some(5),
        dir: Some("/mnt/fs/rbench.1".to_owned()),
        embedded: false,
        launched: None,
        steps: Vec::new(),
        left_out: Vec::new(),
        cells: Vec::new(),
        complete: true,
        check: None,
        knee: None,
        io500: Some(Io500Result {
            stonewall_s: 300,
            required_s: 300,
            foretold: vec!["ior-hard-write is not run".to_owned()],
            phases,
            bandwidth: None,
            metadata: None,
            total: None,
            valid: false,
        }),
    }
}

fn of(series: &SeriesResult) -> &Io500Result {
    series.io500.as_ref().expect("it is of that kind")
}

fn near(figure: Option<f64>, expect: f64) {
    let figure = figure.expect("a figure");
    assert!((figure - expect).abs() < 1e-9, "{figure}, not {expect}");
}

#[test]
fn the_score_is_of_what_was_measured_and_scored() {
    let mut series = series();
    series.put(cell(0, 301.0, None));
    assert_eq!((of(&series).metadata, of(&series).total), (None, None));
    for index in 1..5 {
        series.put(cell(index, 300.5, None));
    }
    let io500 = of(&series);
    // √(4 · 9), √(2 · 8): random reads do not count.
    near(io500.bandwidth, 6.0);
    near(io500.metadata, 4.0);
    near(io500.total, 24.0_f64.sqrt());
    assert!(!io500.valid, "a phase is missing");
    assert_eq!(io500.reasons(), ["ior-hard-write is not run"]);
    let text = render(&series, View::default());
    assert!(
        text.lines().all(|line| line.chars().count() <= 120),
        "{text}"
    );
    check("io500.txt", &text);
    let read = journal::read(render_json(&series).as_bytes());
    assert_eq!(read, Ok(series.clone()));
    // All phases, and no reason against validity.
    let io500 = series.io500.as_mut().expect("it is of that kind");
    io500.foretold.clear();
    io500.phases.remove(2);
    series.put(cell(4, 300.5, None));
    assert!(of(&series).valid && of(&series).reasons().is_empty());
    let text = render(&series, View::default());
    assert!(
        !text.contains("INVALID") && text.starts_with("REHEARSAL"),
        "{text}"
    );
}

#[test]
fn what_speaks_against_a_phase_is_named() {
    let mut series = series();
    let reasons = |series: &SeriesResult, at: usize| of(series).phases[at].invalid.join(", ");
    assert_eq!(reasons(&series, 0), "");
    series.put(cell(0, 299.9, None));
    assert_eq!(
        reasons(&series, 0),
        "it took 299.900 s, but must take 300 s"
    );
    assert_eq!(reasons(&series, 1), "it did not finish");
    assert_eq!(reasons(&series, 2), "it is not run");
    let failure = no_space(OpKind::Write, "/mnt/fs/file");
    series.put(cell(0, 301.0, Some(failure)));
    assert_eq!(reasons(&series, 0), "3 operations failed");
    let mut find_cell = cell(2, 1.0, None);
    if let Some(result) = &mut find_cell.result {
        let row = result.phases[0].found.as_mut().expect("it is a search");
        (row.matches, row.files_per_s) = (0, 0.0);
    }
    series.put(find_cell);
    assert_eq!(reasons(&series, 3), "its value is 0, nothing was found");
    let mut stopped = cell(3, 1.0, None);
    stopped.error = Some("it was interrupted".to_owned());
    series.put(stopped);
    assert_eq!(reasons(&series, 4), "it did not finish");
    assert_eq!(of(&series).phases[4].value, None);
}
