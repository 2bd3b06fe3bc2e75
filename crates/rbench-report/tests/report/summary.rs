//! Tests statistics over the iterations.

use rbench_core::{Nanos, OpKind, Rank};
use rbench_report::PhaseResult;
use rbench_report::schema::{SummaryRow, TimelineRow};
use rbench_report::summary::{Looks, Spread, over_iterations, over_time, slowest_rank, spread};

use crate::fixtures::{Made, fail, no_space};

/// A phase of 1000 items in `ms` milliseconds: its rate is 1e6 / ms.
fn phase(name: &str, iteration: u32, ms: u64, bytes: u64) -> PhaseResult {
    let mut outcome = Made::solo(1000, bytes, 100_000).phase(name, "Phase", OpKind::Write);
    outcome.iteration = iteration;
    outcome.elapsed = Nanos(ms * 1_000_000);
    PhaseResult::from(&outcome)
}

#[test]
fn the_spread_over_iterations_is_maximum_minimum_mean_and_sample_deviation() {
    // 2000, 4000, 5000 a second: mean 11000/3, Σ(x−m)² = 14e6/3, s = √(7e6/3).
    let phases = [
        phase("a", 0, 500, 0),
        phase("a", 1, 250, 0),
        phase("a", 2, 200, 0),
    ];
    let rows = over_iterations(&phases, Looks::Once);
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!((row.unit.as_str(), row.iterations), ("ops/s", 3));
    assert_eq!((row.max, row.min), (5000.0, 2000.0));
    assert!((row.mean - 11_000.0 / 3.0).abs() < 1e-9);
    assert!(
        (row.stddev - (7e6_f64 / 3.0).sqrt()).abs() < 1e-9,
        "{}",
        row.stddev
    );
}

#[test]
fn a_spread_that_no_number_expresses_is_left_out() {
    let mut phases = [phase("write", 0, 1, 0), phase("write", 1, 1, 0)];
    phases.iter_mut().for_each(|phase| phase.rate = 1.7e308);
    assert_eq!(over_iterations(&phases, Looks::Once), []);
}

#[test]
fn one_iteration_has_no_deviation() {
    let rows = over_iterations(&[phase("a", 0, 500, 0)], Looks::Once);
    assert_eq!(
        (rows[0].iterations, rows[0].stddev, rows[0].mean),
        (1, 0.0, 2000.0)
    );
}

#[test]
fn phases_that_move_bytes_have_a_second_row() {
    let rows = over_iterations(
        &[phase("b", 0, 500, 4096), phase("a", 0, 500, 0)],
        Looks::Once,
    );
    let seen: Vec<(&str, &str)> = rows
        .iter()
        .map(|r| (r.name.as_str(), r.unit.as_str()))
        .collect();
    assert_eq!(seen, [("b", "ops/s"), ("b", "bytes/s"), ("a", "ops/s")]);
    assert_eq!(rows[1].mean, 4096.0 * 2000.0);
}

#[test]
fn stopped_phases_do_not_enter() {
    let mut stopped = phase("a", 1, 100, 0);
    stopped.complete = false;
    let rows = over_iterations(&[phase("a", 0, 500, 0), stopped.clone()], Looks::Once);
    assert_eq!((rows[0].iterations, rows[0].max), (1, 2000.0));
    assert_eq!(
        over_iterations(&[stopped], Looks::Once),
        Vec::<SummaryRow>::new()
    );
}

#[test]
fn an_iteration_that_only_failed_enters_with_zero_and_one_without_work_not_at_all() {
    let mut outcome = Made::solo(10, 0, 100_000).phase("a", "Phase", OpKind::Create);
    fail(&mut outcome, 0, 10, no_space(OpKind::Create, "f"));
    let failed = PhaseResult::from(&outcome);
    let idle = PhaseResult::from(&Made::solo(0, 0, 1).phase("a", "Phase", OpKind::Create));
    let rows = over_iterations(&[phase("a", 0, 500, 0), failed, idle], Looks::Once);
    assert_eq!(
        (rows[0].iterations, rows[0].min, rows[0].mean),
        (2, 0.0, 1000.0)
    );
}

#[test]
fn the_slowest_rank_is_found_among_those_that_worked() {
    let mut outcome = Made::on(1, 4, 10, 0, 100_000).phase("a", "Phase", OpKind::Create);
    for (rank, ms) in outcome.ranks.iter_mut().zip([4, 9, 9, 2]) {
        rank.elapsed = Nanos(ms * 1_000_000);
    }
    outcome.ranks[3].items = 0;
    let phase = PhaseResult::from(&outcome);
    let (rank, median) = slowest_rank(&phase).expect("three were busy");
    assert_eq!((rank.rank, median), (Rank(1), 0.009));
    outcome.ranks[3].items = 1;
    let (_, median) = slowest_rank(&PhaseResult::from(&outcome))
        .map(|(r, m)| (r.rank, m))
        .expect("busy");
    assert!((median - 0.0065).abs() < 1e-12);
}

#[test]
fn nothing_has_no_spread_and_no_infinities() {
    assert_eq!(spread(&[]), Spread::default());
}

/// A phase with these numbers of items in the rows of its timeline.
fn over(rows: &[u64]) -> PhaseResult {
    let mut phase = phase("a", 0, 500, 0);
    phase.timeline = rows
        .iter()
        .map(|items| TimelineRow {
            t_s: 0.0,
            items: *items,
            bytes: 0,
            errors: 0,
            max_ns: 0,
            p50_ns: 0,
            p99_ns: 0,
            response: None,
            heat: Vec::new(),
        })
        .collect();
    phase
}

#[test]
fn a_rate_varies_by_the_deviation_of_ten_stretches_of_time() {
    let check = |rows: &[u64], expect: Option<f64>| {
        let deviation = over_time(&over(rows));
        let near = match (deviation, expect) {
            (Some(deviation), Some(expect)) => (deviation - expect).abs() < 1e-9,
            (deviation, expect) => deviation == expect,
        };
        assert!(near, "{rows:?}: {deviation:?}, not {expect:?}");
    };
    // The last row, cut short by the end of the phase, is excluded.
    check(&[&[200; 20][..], &[1]].concat(), Some(0.0));
    // 300 and 100 alternating, in stretches of two rows: even again.
    check(&[&[300, 100].repeat(10)[..], &[1]].concat(), Some(0.0));
    // 300 in the first half, 100 in the second: √(10 · 100² / 9) relative to 200.
    let halves = [&[300; 5][..], &[100; 5], &[1]].concat();
    check(&halves, Some((1e5_f64 / 9.0).sqrt() / 200.0));
    // Too few items, too few rows, no rows.
    check(&[&[10; 20][..], &[1]].concat(), None);
    check(&[1000; 10], None);
    check(&[], None);
}
