//! Tests phases with a time or a rate on the machine's own clock.

use super::*;
use crate::clock::tried_again;

#[test]
fn a_timed_phase_loops_and_ends_in_time() {
    tried_again(a_timed_phase_loops_and_ends_in_time_once);
}

fn a_timed_phase_loops_and_ends_in_time_once() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let spec = Io {
        time: Some(Nanos(300_000_000)),
        fsync: Some(FsyncRule::Never),
        ..io(&[Rw::Write, Rw::Read])
    };
    let outcome = Run::io(&[0, 0], dir.path(), spec).go().expect("runs");
    for row in &outcome.rows {
        check_adds_up(row);
        assert!(row.items > 64, "{}", row.items);
        assert!(
            (0.29..1.5).contains(&row.elapsed.as_secs_f64()),
            "{}",
            row.elapsed
        );
    }
}

#[test]
fn what_starts_in_the_ramp_is_not_counted() {
    tried_again(what_starts_in_the_ramp_is_not_counted_once);
}

/// Plausible counts of 800 operations in a ramp and 1000 after it.
const UNRAMPED: std::ops::RangeInclusive<u64> = 200..=1600;

fn what_starts_in_the_ramp_is_not_counted_once() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for (engine, depth, fsync) in [
        ("psync", 1, FsyncRule::End),
        ("io_uring", 4, FsyncRule::Every(100)),
    ] {
        let spec = ramped(Io {
            engine: Some(engine.to_owned()),
            depth: Some(depth),
            fsync: Some(fsync),
            ..io(&[Rw::RandWrite])
        });
        let outcome = Run::io(&[0, 0], dir.path(), spec).go().expect("runs");
        let row = outcome.row("randwrite");
        // 1000 are due after the ramp, 800 in it; a busy machine executes some late.
        assert!(UNRAMPED.contains(&row.items), "{engine}: {}", row.items);
        assert_eq!(row.measured_from, Nanos(400_000_000), "{engine}");
        let syncs = outcome.row("randwrite-fsync").items;
        let of_items = row.items / 100;
        let expect = match depth {
            1 => 2..=2,
            _ => of_items.saturating_sub(2)..=of_items + 3,
        };
        assert!(expect.contains(&syncs), "{engine}: {syncs} syncs");
    }
    // Checking threads must not affect it either.
    for verify_threads in [None, Some(2)] {
        let spec = ramped(Io {
            verify: true,
            verify_threads,
            ..io(&[Rw::RandRead])
        });
        let outcome = Run::io(&[0, 0], dir.path(), spec).go().expect("runs");
        let items = outcome.row("randread").items;
        assert!(UNRAMPED.contains(&items), "{verify_threads:?}: {items}");
    }
}

#[test]
fn an_open_loop_keeps_its_rate_over_all_workers() {
    tried_again(an_open_loop_keeps_its_rate_over_all_workers_once);
}

fn an_open_loop_keeps_its_rate_over_all_workers_once() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for (arrival, engine, depth) in [
        (Arrival::Uniform, "psync", 1),
        (Arrival::Poisson, "psync", 1),
        (Arrival::Uniform, "io_uring", 4),
    ] {
        let spec = Io {
            time: Some(Nanos(1_000_000_000)),
            rate: Some(2000.0),
            arrival: Some(arrival),
            engine: Some(engine.to_owned()),
            depth: Some(depth),
            ..io(&[Rw::RandRead])
        };
        let outcome = Run::io(&[0, 0], dir.path(), spec).go().expect("runs");
        let row = outcome.row("randread");
        check_adds_up(row);
        assert!(
            (1700..2300).contains(&row.items),
            "{} of about 2000",
            row.items
        );
        let response = row.response.as_ref().expect("open loop");
        assert!(response.quantile(0.5) >= row.service.quantile(0.5));
    }
}
