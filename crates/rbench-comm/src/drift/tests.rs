//! Tests the error bounds of offsets with simulated clocks.

use super::*;

const SECOND: u64 = 1_000_000_000;

/// A clock that runs `ppm` millionths faster than rank 0's, and is ahead by `ahead_ns` when rank
/// 0's clock shows 0.
#[derive(Clone, Copy)]
struct Made {
    ppm: f64,
    ahead_ns: i64,
}

impl Made {
    /// Rank 0's clock minus this one.
    fn offset_ns(self, at: Nanos) -> i64 {
        -(self.ahead_ns + (at.0 as f64 * self.ppm / 1e6) as i64)
    }

    /// A comparison with an error of `off_ns` and an error bound of 20 us.
    fn compared(self, at_s: u64, off_ns: i64) -> Comparison {
        let at = Nanos(at_s * SECOND);
        Comparison {
            at,
            offset: ClockOffset {
                offset_ns: self.offset_ns(at) + off_ns,
                error_ns: 20_000,
            },
        }
    }
}

fn made(ppm: f64, ahead_ns: i64) -> Made {
    Made { ppm, ahead_ns }
}

/// Two ranks with one clock each.
fn two(found: &[Comparison]) -> Clocks {
    let mut clocks = Clocks::new(vec![0, 1]);
    for comparison in found {
        clocks.learn(&[*comparison], Nanos(0));
    }
    clocks
}

/// Checks that the true offset is within the error bound, and the bound at most `most_ns`.
fn check(clocks: &Clocks, clock: Made, at_s: u64, most_ns: u64) {
    let at = Nanos(at_s * SECOND);
    let said = clocks.offset(Rank(1), at);
    let wrong_by = said.offset_ns.abs_diff(clock.offset_ns(at));
    assert!(wrong_by <= said.error_ns, "{said:?} is wrong by {wrong_by}");
    assert!(said.error_ns <= most_ns, "{said:?} at {at_s} s");
    assert_eq!(clocks.error(at).0, said.error_ns);
    assert_eq!(clocks.offset(Rank(0), at), ClockOffset::default());
}

#[test]
fn one_comparison_tells_nothing_of_the_drift() {
    for ppm in [-190.0, 0.0, 100.0, 190.0] {
        let clock = made(ppm, 3_600_000_000_000);
        let clocks = two(&[clock.compared(100, 15_000)]);
        check(&clocks, clock, 100, 20_000);
        check(&clocks, clock, 110, 20_000 + 2_000_000);
        check(&clocks, clock, 90, 20_000 + 2_000_000);
        assert_eq!(clocks.drift(Rank(1)), None);
    }
}

#[test]
fn two_comparisons_tell_the_offset_between_them_and_afterwards() {
    for (ppm, off) in [(100.0, 19_000), (-100.0, -19_000), (20.0, 0)] {
        let clock = made(ppm, -77);
        let clocks = two(&[clock.compared(0, off), clock.compared(60, -off)]);
        check(&clocks, clock, 60, 20_000);
        check(&clocks, clock, 30, 20_000 + 150_000);
        // A minute later: 40 us in 60 s and the unknown change of the rate.
        check(&clocks, clock, 120, 20_000 + 40_000 + 300_001);
        let drift = clocks.drift(Rank(1)).expect("two comparisons");
        assert!((drift.ppm - ppm).abs() <= drift.error_ppm, "{drift:?}");
        assert!(drift.error_ppm < 0.7, "{drift:?}");
    }
}

#[test]
fn the_rate_is_taken_from_comparisons_that_lie_far_apart() {
    let clock = made(50.0, 0);
    let samples = [(0, 0), (60, 0), (61, 20_000)];
    let clocks = two(&samples.map(|(at, off)| clock.compared(at, off)));
    check(&clocks, clock, 70, 80_000);
    // Comparisons at nearly the same moment do not give a rate.
    let clocks = two(&[clock.compared(0, 20_000), clock.compared(0, 0)]);
    check(&clocks, clock, 10, 2_020_000);
}

#[test]
fn a_rate_that_was_seen_to_change_widens_what_is_said() {
    let slow = made(0.0, 0);
    let fast = made(80.0, -4_800_000);
    // At 60 s both clocks show the same.
    let comparisons = [
        slow.compared(0, 0),
        slow.compared(60, 0),
        fast.compared(120, 0),
    ];
    let clocks = two(&comparisons);
    let before = two(&comparisons[..2]).error(Nanos(180 * SECOND));
    let after = clocks.error(Nanos(180 * SECOND));
    assert!(after.0 > 78 * 60_000, "{after} now, {before} before");
    // The bound covers either rate.
    check(&clocks, fast, 180, 10_000_000);
}

#[test]
fn a_start_in_the_past_was_missed_by_what_came_out_later() {
    let clock = made(100.0, 0);
    let first = clock.compared(0, 0);
    let at = Nanos(10 * SECOND);
    let known = two(&[first]);
    assert_eq!(known.missed_by(at), Nanos(2_020_000), "nothing new");
    let later = two(&[first, clock.compared(100, 0)]).missed_by(at);
    let truth = 1_000_000;
    assert!(later.0 >= truth && later.0 < truth + 100_000, "{later}");
    assert!(later <= known.error(at), "what was said holds");
}

#[test]
fn ranks_of_one_clock_need_no_comparison() {
    let clocks = Clocks::one(3);
    assert_eq!(clocks.others(), []);
    assert!(!clocks.is_due(Nanos(u64::MAX)));
    assert_eq!(clocks.error(Nanos(u64::MAX)), Nanos(0));
    assert_eq!(clocks.offset(Rank(2), Nanos(7)), ClockOffset::default());
    assert_eq!(clocks.drift(Rank(2)), None);
    assert_eq!(
        Clocks::new(vec![0, 1, 0, 2, 1]).others(),
        [Rank(1), Rank(3)]
    );
}

#[test]
fn comparing_is_due_once_a_minute_and_seldom_where_it_takes_long() {
    let clock = made(0.0, 0);
    let due = |found: &[u64], took_s: u64, now_s: u64| {
        let mut clocks = two(&[]);
        for at in found {
            clocks.learn(&[clock.compared(*at, 0)], Nanos(took_s * SECOND));
        }
        clocks.is_due(Nanos(now_s * SECOND))
    };
    assert!(due(&[], 0, 0));
    assert!(!due(&[5], 0, 14) && due(&[5], 0, 15));
    assert!(!due(&[5, 15], 0, 74) && due(&[5, 15], 0, 75));
    let mut clocks = two(&[clock.compared(5, 0)]);
    assert!(clocks.pays(Nanos(5 * SECOND)));
    clocks.learn(&[clock.compared(5, 0)], Nanos(SECOND));
    assert!(!clocks.pays(Nanos(24 * SECOND)) && clocks.pays(Nanos(25 * SECOND)));
    assert!(!due(&[5, 15], 6, 134) && due(&[5, 15], 6, 135));
}
