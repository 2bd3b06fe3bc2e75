//! Tests phases that end when the rate of all ranks together is steady.

use rbench_core::outcome::PhaseOutcome;
use rbench_core::steady::{Criterion, Steadiness};
use rbench_core::{Bytes, Nanos};
use rbench_plan::io::{FsyncRule, Rw};
use rbench_plan::spec::{Io, SteadyOptions};

use crate::group::{Outcome, Run, check_adds_up};

const MS: u64 = 1_000_000;
/// The interval of the timelines.
const INTERVAL: u64 = 50 * MS;
/// Maximum duration of each phase unless it is steady before: longer than any test waits.
const TIME: u64 = 60_000 * MS;

/// 2000 operations per second on three ranks of two hosts; values of 100 ms, windows of half a
/// second.
fn run(limit: f64, io: Io, stepped: bool) -> Outcome {
    let dir = tempfile::tempdir().expect("temporary directory");
    let criterion = Criterion {
        bandwidth: false,
        slope: false,
        limit,
        percent: true,
    };
    let io = Io {
        block: Some(Bytes(4096)),
        size: Some(Bytes(64 << 10)),
        time: io.time.or(Some(Nanos(TIME))),
        rate: Some(2000.0),
        steady: SteadyOptions {
            criterion: Some(criterion),
            duration: Some(Nanos(500 * MS)),
            every: Some(Nanos(100 * MS)),
            ..io.steady
        },
        ..io
    };
    let mut run = Run::io(&[0, 0, 1], dir.path(), io);
    run.common.threads = Some(2);
    run.common.interval = Some(Nanos(INTERVAL));
    if stepped {
        run = run.stepped(1_000);
    }
    let outcome = run.go().expect("runs");
    outcome.rows.iter().for_each(check_adds_up);
    outcome
}

/// Checks that the 100 ms values equal the sums of these rows' timelines exactly: no rank is
/// missing.
fn check_window(steady: &Steadiness, rows: &[&PhaseOutcome]) {
    let from = steady.window_from.expect("a window");
    for (n, value) in (0..).zip(&steady.window) {
        let (begin, end) = (from.0 + n * 100 * MS, from.0 + (n + 1) * 100 * MS);
        let mut items = 0;
        for line in rows.iter().map(|row| &row.timeline) {
            assert!(line.power() <= 0, "bins lie within intervals");
            let bins = line.bins().iter().enumerate();
            let inside = bins.filter(|(i, _)| (begin..end).contains(&line.start(*i).0));
            items += inside.map(|(_, bin)| bin.items).sum::<u64>();
        }
        assert!((value.ios - items as f64 * 10.0).abs() < 1e-6, "{value:?}");
        assert!((value.bytes - value.ios * 4096.0).abs() < 1e-3, "{value:?}");
    }
}

#[test]
fn a_phase_of_all_ranks_is_steady_as_soon_as_their_rate_together_is() {
    for (rw, fsync) in [(Rw::RandWrite, Some(FsyncRule::End)), (Rw::RandRead, None)] {
        let io = Io {
            rw: Some(vec![rw]),
            time: Some(Nanos(2000 * MS)),
            fsync,
            ..Io::default()
        };
        // All values are equal.
        let outcome = run(0.01, io, true);
        assert!(outcome.complete && outcome.trouble.is_none());
        let row = &outcome.rows[0];
        let steady = row.steady.as_ref().expect("judged");
        assert_eq!(steady.attained_at, Some(Nanos(500 * MS)), "{}", row.name);
        assert_eq!(steady.window_from, Some(Nanos(0)), "{}", row.name);
        assert!(steady.value.is_some_and(|value| value <= 0.01));
        check_window(steady, &[row]);
        assert!(row.complete && row.elapsed.0 >= 500 * MS - MS);
        assert_eq!(outcome.rows.len(), 1 + usize::from(fsync.is_some()));
        for other in &outcome.rows[1..] {
            // Any free worker of a rank takes the next start; a worker without writes does not
            // sync.
            assert!(
                (3..=6).contains(&other.items),
                "{}: {}",
                other.name,
                other.items
            );
            assert_eq!(other.steady, None, "{}", other.name);
        }
    }
}

#[test]
fn a_phase_ends_when_it_is_steady() {
    // Independent of the rate of a busy machine.
    let outcome = run(
        1e9,
        Io {
            rw: Some(vec![Rw::RandWrite, Rw::RandRead]),
            time: Some(Nanos(3_600_000 * MS)),
            ..Io::default()
        },
        false,
    );
    assert!(outcome.complete && outcome.trouble.is_none());
    for name in ["randwrite", "randread"] {
        let row = outcome.row(name);
        let steady = row.steady.as_ref().expect("judged");
        let at = steady.attained_at.expect("steady");
        assert_eq!(steady.window_from, Some(Nanos(at.0 - 500 * MS)));
        check_window(steady, &[row]);
        assert!(row.complete && row.elapsed.0 < 3_600_000 * MS);
    }
}

#[test]
fn the_rows_of_a_mix_are_judged_together_and_nothing_in_a_ramp_is() {
    let outcome = run(
        0.01,
        Io {
            rw: Some(vec![Rw::RandRw]),
            mix: Some(98),
            time: Some(Nanos(2000 * MS)),
            ramp: Some(Nanos(120 * MS)),
            steady: SteadyOptions {
                ramp: Some(Nanos(210 * MS)),
                ..SteadyOptions::default()
            },
            ..Io::default()
        },
        true,
    );
    let [reads, writes] = ["randrw-read", "randrw-write"].map(|name| outcome.row(name));
    let steady = reads.steady.as_ref().expect("judged");
    assert_eq!(reads.steady, writes.steady);
    // From the first interval after 330 ms.
    assert_eq!(steady.attained_at, Some(Nanos(850 * MS)));
    assert_eq!(steady.window_from, Some(Nanos(350 * MS)));
    check_window(steady, &[reads, writes]);
}

#[test]
fn a_rate_that_does_not_become_steady_has_all_the_time() {
    let outcome = run(
        0.000_001,
        Io {
            rw: Some(vec![Rw::RandRead]),
            time: Some(Nanos(1000 * MS)),
            // Operations in bursts: no two values are equal.
            arrival: Some(rbench_plan::arrival::Arrival::Poisson),
            ..Io::default()
        },
        true,
    );
    let row = outcome.row("randread");
    let steady = row.steady.as_ref().expect("judged");
    assert_eq!(steady.attained_at, None);
    assert!(outcome.complete && row.complete);
    assert!(
        row.elapsed.0.abs_diff(1000 * MS) < 10 * MS,
        "{}",
        row.elapsed
    );
    assert_eq!(steady.window.len(), 5);
    check_window(steady, &[row]);
}

mod timing {
    use super::*;
    use crate::clock::tried_again;

    #[test]
    fn a_phase_of_all_ranks_ends_when_their_rate_together_is_steady() {
        tried_again(|| {
            let rows = [Rw::RandWrite, Rw::RandRead];
            let outcome = run(
                30.0,
                Io {
                    rw: Some(rows.to_vec()),
                    fsync: Some(FsyncRule::End),
                    ..Io::default()
                },
                false,
            );
            assert!(outcome.complete && outcome.trouble.is_none());
            for name in ["randwrite", "randread"] {
                let row = outcome.row(name);
                let steady = row.steady.as_ref().expect("judged");
                let at = steady.attained_at.expect("steady");
                assert_eq!(steady.window_from, Some(Nanos(at.0 - 500 * MS)));
                assert!(steady.value.is_some_and(|value| value <= 30.0));
                check_window(steady, &[row]);
                assert!(row.complete && row.elapsed >= at, "{at}");
                assert!(row.elapsed.0 < TIME / 2, "{}", row.elapsed);
                // Operations that were due before the end and did not start are reported, like at a
                // deadline.
                let due = row.elapsed.as_secs_f64() * 2000.0;
                let known = (row.items + row.unissued) as f64;
                assert!((known - due).abs() < 0.2 * due, "{known} of {due}");
            }
            let syncs = outcome.row("randwrite-fsync");
            assert_eq!((syncs.items, &syncs.steady), (6, &None));
        });
    }

    #[test]
    fn the_rows_of_a_mix_are_judged_together_and_nothing_in_a_ramp_is() {
        tried_again(|| {
            let outcome = run(
                40.0,
                Io {
                    rw: Some(vec![Rw::RandRw]),
                    mix: Some(98),
                    ramp: Some(Nanos(120 * MS)),
                    steady: SteadyOptions {
                        ramp: Some(Nanos(210 * MS)),
                        ..SteadyOptions::default()
                    },
                    ..Io::default()
                },
                false,
            );
            let [reads, writes] = ["randrw-read", "randrw-write"].map(|name| outcome.row(name));
            let steady = reads.steady.as_ref().expect("judged");
            assert_eq!(reads.steady, writes.steady);
            assert!(steady.attained_at.is_some());
            // From the first interval after 330 ms.
            assert!(steady.window_from >= Some(Nanos(350 * MS)));
            check_window(steady, &[reads, writes]);
        });
    }
}
