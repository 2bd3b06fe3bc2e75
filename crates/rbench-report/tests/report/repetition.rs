//! Tests iterations until the rates are precise enough.

use rbench_core::{Nanos, OpKind};
use rbench_report::repetition::{PRECISION_MISSED, enough};
use rbench_report::schema::{Enough, RepetitionResult};
use rbench_report::{PhaseResult, RunResult, finish, journal, text};

use crate::fixtures::DETAILS;
use crate::fixtures::{Made, empty_run};

/// A run of phases with these rates in each iteration, in thousands of items a second.
fn of(rows: &[(&str, &[f64])], rule: RepetitionResult) -> RunResult {
    let mut run = empty_run();
    run.repetition = Some(rule);
    for (name, rates) in rows {
        for (iteration, rate) in rates.iter().enumerate() {
            let mut phase = Made::solo(1000, 0, 100_000).phase(name, name, OpKind::Stat);
            phase.iteration = iteration as u32;
            let mut phase = PhaseResult::from(&phase);
            phase.rate = rate * 1000.0;
            run.phases.push(phase);
        }
    }
    run
}

fn rule(precision: f64) -> RepetitionResult {
    RepetitionResult {
        precision,
        max_iterations: 5,
        max_time_ns: Some(60_000_000_000),
        not_awaited: vec!["tree-create".to_owned()],
        enough: None,
        missed: Vec::new(),
    }
}

const SOON: Nanos = Nanos(1_000_000_000);

fn check(rows: &[(&str, &[f64])], precision: f64, elapsed: Nanos, expect: Option<Enough>) {
    let mut run = of(rows, rule(precision));
    assert_eq!(enough(&mut run, elapsed), expect.is_some(), "{rows:?}");
    assert_eq!(run.repetition.and_then(|rule| rule.enough), expect);
}

/// Three samples at e^-0.01, 1 and e^0.01: s = 0.01, s/√3 = 0.005774. Student's t with two degrees
/// of freedom is 4.3027 at 95 %: e^0.02484 − 1 = 2.515 %. Tested after each iteration, it is 6.9646
/// at 98 %: e^0.04021 − 1 = 4.103 %.
const NEAR: [f64; 3] = [0.990_049_834, 1.0, 1.010_050_167];

#[test]
fn the_precision_of_a_row_is_half_of_students_interval() {
    let mut run = of(&[("a", &NEAR)], rule(0.03));
    for (rule, expected) in [(Some(rule(0.03)), 0.041_029), (None, 0.025_153)] {
        run.repetition = rule;
        finish(&mut run);
        let precision = run.summary[0].precision.expect("three samples");
        assert!((precision - expected).abs() < 2e-6, "{precision}");
    }
    run.phases.truncate(2);
    finish(&mut run);
    assert_eq!(run.summary[0].precision, None);
}

#[test]
fn iterations_are_enough_when_every_rate_is_known_or_at_a_limit() {
    let far = [1.0, 1.5, 0.7];
    check(&[("a", &NEAR)], 0.042, SOON, Some(Enough::Precision));
    check(&[("a", &NEAR)], 0.04, SOON, None);
    // Two iterations are never enough.
    check(&[("a", &NEAR[..2])], 0.5, SOON, None);
    check(&[("a", &NEAR), ("b", &far)], 0.042, SOON, None);
    let tree = [("a", &NEAR[..]), ("tree-create", &far[..])];
    check(&tree, 0.042, SOON, Some(Enough::Precision));
    let late = Nanos(60_000_000_000);
    check(&[("a", &far)], 0.03, late, Some(Enough::MaxTime));
    let five = [1.0, 1.5, 0.7, 1.0, 2.0];
    check(&[("a", &five)], 0.03, SOON, Some(Enough::MaxIterations));
    check(&[("a", &five[..4])], 0.03, SOON, None);
    // A rate of 0 has no interval.
    check(&[("a", &[0.0, 1.0, 1.0])], 0.5, SOON, None);
}

#[test]
fn a_run_that_nobody_asked_ends() {
    let mut run = of(&[("a", &[1.0])], rule(0.03));
    run.repetition = None;
    assert!(enough(&mut run, SOON));
}

#[test]
fn rows_that_missed_the_precision_are_named() {
    let far = [1.0, 1.5, 0.7, 1.0, 2.0];
    let near = [1.0, 1.001, 0.999, 1.0, 1.001];
    let mut run = of(&[("near", &near), ("far", &far)], rule(0.03));
    assert!(enough(&mut run, SOON));
    finish(&mut run);
    let missed = |run: &RunResult| run.repetition.as_ref().map(|rule| rule.missed.clone());
    assert_eq!(missed(&run), Some(vec!["far".to_owned()]));
    let warnings = |run: &RunResult| -> Vec<String> {
        let all = run.warnings.iter().filter(|w| w.code == PRECISION_MISSED);
        all.map(|w| w.message.clone()).collect()
    };
    let messages = warnings(&run);
    assert_eq!(messages.len(), 1);
    assert!(
        messages[0].contains("far (±") && !messages[0].contains("near"),
        "{messages:?}"
    );
    // Reported once, even if finished several times.
    finish(&mut run);
    assert_eq!(warnings(&run), messages);
    assert!(text::render(&run, DETAILS).contains("95% within"));
    // A stopped run did not complete its iterations.
    let mut stopped = of(&[("far", &far)], rule(0.03));
    finish(&mut stopped);
    assert_eq!(warnings(&stopped), Vec::<String>::new());
    assert_eq!(missed(&stopped), Some(vec!["far".to_owned()]));
}

#[test]
fn the_journal_has_the_rule() {
    let run = of(&[], rule(0.03));
    let read = journal::read(journal::header_line(&run).as_bytes()).expect("a journal");
    assert_eq!(read.repetition, run.repetition);
}
