//! Tests the report of `rbench knee`, and its computation from the cells.

use rbench_core::effort::Effort;
use rbench_core::{Latency, Nanos, OpKind};
use rbench_report::schema::{
    CellResult, CellValue, KneeLimit, KneeObjective, KneeResult, SERIES_SCHEMA, SeriesResult,
};
use rbench_report::series::{journal, render, render_json};
use rbench_report::{Document, View, page};
use serde_json::json;

use crate::fixtures::{Made, empty_run, run, words};
use crate::golden::check;
use crate::valid;

const MS: u64 = 1_000_000;

/// A cell with `done` operations, their response time in ms, and the number of due operations that
/// were not started.
pub fn cell(
    index: u32,
    (stage, rate): (&str, f64),
    (items, ms, unissued): (u64, u64, u64),
) -> CellResult {
    let mut phase = Made::solo(items, 4096, 2 * MS).phase("randread", "Random read", OpKind::Read);
    let closed = stage == "closed";
    if !closed {
        let mut response = Latency::default();
        (0..items).for_each(|i| response.record(Nanos(ms * MS + i * 1000)));
        phase.response = Some(response);
        phase.unissued = unissued;
    }
    let value = |key: &str, value: String| CellValue {
        key: key.to_owned(),
        value,
    };
    let mut values = vec![value("stage", stage.to_owned())];
    if !closed {
        values.push(value("rate", rate.to_string()));
    }
    let long = if stage == "confirm" { 3 } else { 1 };
    values.push(value("window_s", long.to_string()));
    let mut result = run(1, 1, json!({}), vec![phase]);
    result.warnings.clear();
    CellResult {
        index,
        name: format!("rate={rate}"),
        values,
        wall_s: 1.0,
        dir: None,
        error: None,
        result: Some(result),
    }
}

pub fn series(cells: Vec<CellResult>) -> SeriesResult {
    let mut run = empty_run().run;
    run.command = words("rbench knee --slo p99=10ms -- io --rw randread --dir /mnt/fs");
    let mut series = SeriesResult {
        schema: SERIES_SCHEMA.to_owned(),
        kind: "knee".to_owned(),
        suite: None,
        scale: 1.0,
        run,
        ranks: 1,
        hosts: vec!["client1".to_owned()],
        keys: Vec::new(),
        planned: None,
        dir: None,
        embedded: false,
        launched: None,
        left_out: Vec::new(),
        steps: Vec::new(),
        cells: Vec::new(),
        complete: true,
        check: None,
        knee: Some(KneeResult {
            objective: KneeObjective {
                limits: vec![KneeLimit {
                    figure: "p99".to_owned(),
                    percentile: Some(99.0),
                    most_ns: 10 * MS,
                }],
                errors: 0.0,
                row: None,
            },
            from: None,
            to: None,
            precision: 0.05,
            time_s: 1.0,
            arrival: "uniform".to_owned(),
            steps: Vec::new(),
            held: None,
            failed: None,
            confirmed: false,
            trouble: None,
        }),
        io500: None,
    };
    cells.into_iter().for_each(|cell| series.put(cell));
    valid::check(&render_json(&series));
    series
}

/// A complete search.
pub fn found_one() -> SeriesResult {
    series(whole())
}

pub fn whole() -> Vec<CellResult> {
    vec![
        cell(0, ("closed", 0.0), (4000, 0, 0)),
        cell(1, ("search", 1000.0), (1000, 3, 0)),
        // Too slow, although all operations were started.
        cell(2, ("search", 2000.0), (2000, 12, 0)),
        cell(3, ("search", 2000.0), (2000, 13, 0)),
        // Fast enough, but too many operations were not started.
        cell(4, ("search", 1500.0), (1300, 4, 200)),
        cell(5, ("search", 1250.0), (1230, 9, 20)),
        cell(6, ("search", 1250.0), (1250, 5, 0)),
        cell(7, ("confirm", 1250.0), (3750, 11, 0)),
        cell(8, ("confirm", 1187.0), (3561, 5, 0)),
    ]
}

/// The cell of a mix: one row per operation, and one for all.
fn mixed(rate: f64, rows: &[(&str, OpKind, u64, u64)]) -> CellResult {
    let mut cell = cell(1, ("search", rate), (1, 3, 0));
    let row = |(name, op, items, missed): &(&str, OpKind, u64, u64)| {
        let mut phase = Made::solo((*items).max(1), 4096, 2 * MS).phase(name, name, *op);
        let mut response = Latency::default();
        (0..*items).for_each(|i| response.record(Nanos(3 * MS + i * 1000)));
        phase.response = Some(response);
        phase.missed = *missed;
        phase
    };
    let mut result = run(1, 1, json!({}), rows.iter().map(row).collect());
    for (phase, (_, _, items, _)) in result.phases.iter_mut().zip(rows) {
        phase.items = *items;
    }
    result.warnings.clear();
    cell.result = Some(result);
    cell
}

fn judged(cell: CellResult) -> (Option<bool>, Vec<String>, Option<String>) {
    let all = series(vec![
        super::knee::cell(0, ("closed", 0.0), (4000, 0, 0)),
        cell,
    ]);
    let knee = all.knee.expect("a knee");
    let step = &knee.steps[1];
    (step.held, step.reasons.clone(), knee.trouble)
}

#[test]
fn rows_of_which_nothing_was_due_are_not_judged() {
    let (read, write) = (OpKind::Read, OpKind::Write);
    let without = mixed(
        1000.0,
        &[("t-read", read, 1000, 0), ("t-write", write, 0, 0)],
    );
    assert_eq!(judged(without), (Some(true), vec![], None));
    // Operations without an intended start do not count towards the rate.
    let mut unpaced = mixed(
        1000.0,
        &[("t-read", read, 1000, 0), ("t-write", write, 100, 0)],
    );
    if let Some(result) = &mut unpaced.result {
        let mut response = result.phases[0].latency.response.clone();
        response.iter_mut().for_each(|hist| hist.count = 0);
        result.phases[1].latency.response = response;
    }
    assert_eq!(judged(unpaced).0, Some(true));
}

#[test]
fn a_row_that_was_asked_for_and_was_not_due_ends_the_search() {
    let rows = [
        ("mix", OpKind::Mixed, 1000, 0),
        ("mix-create", OpKind::Create, 0, 0),
    ];
    let mut all = series(vec![mixed(1000.0, &rows)]);
    let cells = all.cells.clone();
    let knee = all.knee.as_mut().expect("a knee");
    let mut trouble = |row: &str| {
        knee.objective.row = Some(row.to_owned());
        knee.update(&cells);
        knee.trouble.clone().unwrap_or_default()
    };
    assert!(trouble("mix-create").contains("none of its operations was due at 1000 operations"));
    assert!(trouble("mix-other").contains("the workload has no such row"));
}

#[test]
fn the_operations_of_a_mix_count_once_and_those_without_a_file_are_no_load() {
    let (create, all) = (OpKind::Create, OpKind::Mixed);
    let whole = |items, missed| {
        let rows = [
            ("mix-create", create, items, missed),
            ("mix", all, items, missed),
        ];
        judged(mixed(1000.0, &rows))
    };
    assert_eq!(whole(1000, 5), (Some(true), vec![], None));
    assert_eq!(
        whole(600, 400),
        (Some(false), vec!["missed".to_owned()], None)
    );
    let (_, _, trouble) = whole(600, 0);
    assert!(trouble.is_some_and(|why| why.contains("600 were due in 1 s instead of 1000")));
}

fn found(series: &SeriesResult) -> (Option<f64>, Option<f64>, bool) {
    let knee = series.knee.as_ref().expect("a knee");
    (knee.held, knee.failed, knee.confirmed)
}

#[test]
fn the_curve_and_its_limit() {
    let series = series(whole());
    assert_eq!(found(&series), (Some(1187.0), Some(1250.0), true));
    let knee = series.knee.as_ref().expect("a knee");
    let steps: Vec<_> = knee
        .steps
        .iter()
        .map(|step| (step.held, step.far_behind, step.reasons.join(" ")))
        .collect();
    let is = |held, far, reasons: &str| (held, far, reasons.to_owned());
    assert_eq!(
        steps,
        [
            is(None, false, ""),
            is(Some(true), false, ""),
            is(Some(false), false, "p99"),
            is(Some(false), false, "p99"),
            is(Some(false), true, "behind"),
            is(Some(false), false, "behind p99"),
            is(Some(true), false, ""),
            is(Some(false), false, "p99"),
            is(Some(true), false, ""),
        ]
    );
    let text = render(&series, View::default());
    assert!(
        text.lines().all(|line| line.chars().count() <= 120),
        "{text}"
    );
    check("knee.txt", &text);
}

#[test]
fn what_was_found_follows_from_the_cells_so_far() {
    for (cells, expected) in [
        (1, (None, None, false)),
        (2, (Some(1000.0), None, false)),
        (5, (Some(1000.0), Some(1500.0), false)),
        (6, (Some(1000.0), Some(1250.0), false)),
        // It held when it was repeated.
        (7, (Some(1250.0), Some(1500.0), false)),
        // A longer window refuted it.
        (8, (Some(1000.0), Some(1250.0), false)),
    ] {
        let mut all = whole();
        all.truncate(cells);
        assert_eq!(found(&series(all)), expected, "{cells} cells");
    }
}

#[test]
fn a_limit_of_memory_is_no_limit_of_the_mount() {
    let said =
        "This host's memory answered Random read: this is the limit of memory, not of the mount.";
    let mut cells = whole();
    let mut plain = |word: Option<&str>| {
        for result in cells.iter_mut().filter_map(|cell| cell.result.as_mut()) {
            result.phases[0].residency = None;
            result.phases[0].cache = word.map(str::to_owned);
        }
        render(&series(cells.clone()), View::default()).replace('\n', " ")
    };
    assert!(plain(Some("warm")).contains(said));
    assert!(plain(Some("mixed")).contains("answered Random read, wholly or in part."));
    assert!(!plain(Some("cold")).contains("limit of memory"));
    assert!(!plain(None).contains("limit of memory"));
}

#[test]
fn the_limit_is_said_to_be_of_the_workers_or_of_the_file_system() {
    let mut cells = whole();
    // The workers' time in ms: in calls, outside calls, waiting.
    let mut limited = |[in_calls, outside, waited]: [u64; 3]| {
        for result in cells.iter_mut().filter_map(|cell| cell.result.as_mut()) {
            result.phases[0].workers = Some(Effort {
                workers: 16,
                active: Nanos((in_calls + outside) * MS),
                waited: Nanos(waited * MS),
                in_calls: Nanos(in_calls * MS),
                full: Nanos(in_calls * MS),
                ..Effort::default()
            });
        }
        render(&series(cells.clone()), View::default()).replace('\n', " ")
    };
    let target = limited([60, 3, 37]);
    let words = "At 1,250, the workers were not busy all the time, but operations may have waited";
    assert!(target.contains(words), "{target}");
    let workers = limited([97, 3, 0]);
    let words =
        "At 1,250, all 16 workers were busy all the time: the limit may be that of the workers.";
    assert!(workers.contains(words), "{workers}");
    let tool = limited([30, 70, 0]);
    let words =
        "At 1,250, rbench itself was the limit: its workers spent 70.0% of their time outside";
    assert!(tool.contains(words), "{tool}");
    // The page says the same.
    let documents = [Document::Series(Box::new(series(cells)))];
    let page = page::render(&documents, &[]);
    assert!(page.contains(words), "{page}");
}

#[test]
fn arrivals_that_are_drawn_are_said_to_vary() {
    let mut drawn = series(whole());
    let varies =
        |series: &SeriesResult| render(series, View::default()).contains("drawn at random");
    assert!(!varies(&drawn));
    if let Some(knee) = &mut drawn.knee {
        knee.arrival = "poisson".to_owned();
    }
    assert!(varies(&drawn));
}

#[test]
fn steps_of_one_rate_that_disagree_are_explained() {
    let disagree = |cells: Vec<CellResult>| {
        let text = render(&series(cells), View::default()).replace('\n', " ");
        text.contains("Steps of the same rate disagree: in the search one success is enough")
    };
    let mut cells = whole();
    assert!(disagree(cells.clone()));
    cells.truncate(6);
    assert!(!disagree(cells));
}

#[test]
fn a_search_that_was_stopped_at_once_has_tried_no_rate() {
    let mut stopped = series(vec![cell(0, ("closed", 0.0), (4000, 0, 0))]);
    stopped.complete = false;
    let text = render(&stopped, View::default());
    for line in [
        "Stopped before any rate was judged.",
        "Stopped early: 1 cell is complete.",
    ] {
        assert!(text.lines().any(|l| l == line), "{text}");
    }
}

#[test]
fn a_journal_yields_the_same_as_the_file() {
    let whole_series = series(whole());
    let mut text = journal::header_line(&whole_series);
    whole_series
        .cells
        .iter()
        .for_each(|cell| text.push_str(&journal::cell_line(cell)));
    let read = journal::read(text.as_bytes()).expect("a journal");
    assert_eq!(read.knee, whole_series.knee);
}

#[test]
fn failed_operations_and_missing_ones_are_no_rate_that_held() {
    let mut failing = cell(1, ("search", 1000.0), (1000, 3, 0));
    if let Some(result) = &mut failing.result {
        result.phases[0].errors.insert("EIO".to_owned(), 1);
        result.phases[0].workers = Some(Effort {
            workers: 16,
            active: Nanos(MS),
            in_calls: Nanos(MS),
            full: Nanos(MS),
            ..Effort::default()
        });
    }
    let closed = || cell(0, ("closed", 0.0), (4000, 0, 0));
    let series_of = |other: CellResult| series(vec![closed(), other]);
    let step = |series: &SeriesResult| series.knee.as_ref().expect("a knee").steps[1].clone();
    let failed = series_of(failing);
    assert_eq!(step(&failed).reasons, ["errors"]);
    // They have shown no limit, although all workers were busy.
    let text = render(&failed, View::default());
    assert!(!text.contains("busy all the time"), "{text}");
    // A tenth of the due operations.
    let short = series_of(cell(1, ("search", 10_000.0), (1000, 3, 0)));
    let trouble = short.knee.as_ref().and_then(|knee| knee.trouble.clone());
    assert!(trouble.is_some_and(|why| why.contains("too few items")));
    let mut closed_loop = cell(1, ("search", 1000.0), (1000, 3, 0));
    if let Some(result) = &mut closed_loop.result {
        result.phases[0].latency.response = None;
    }
    let trouble = series_of(closed_loop).knee.and_then(|knee| knee.trouble);
    assert!(trouble.is_some_and(|why| why.contains("does not support a target rate")));
}
