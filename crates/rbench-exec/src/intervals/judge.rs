//! Judges at rank 0 whether the total rate of all workers of all ranks has become steady.
//!
//! Only whole intervals are judged: those for which every worker has handed over all its
//! operations. A worker whose operation takes long delays the judgement, which never covers a part
//! of an interval.

use std::collections::BTreeMap;

use rbench_core::Nanos;
use rbench_core::steady::{Rates, Steadiness, SteadyRule, SteadyWatch};
use rbench_core::timeline::Bin;

/// Judges the totals of all ranks.
#[derive(Debug)]
pub struct Judge {
    rule: SteadyRule,
    watch: SteadyWatch,
    /// The rows of the phase that count: those that move data.
    counts: Vec<bool>,
    /// The interval of the timeline; each value of the rate covers `each` of them.
    interval: Nanos,
    each: u64,
    /// The first interval that no value has yet.
    next: u64,
    /// Operations and bytes of each interval from `next` on.
    sums: BTreeMap<u64, (u64, u64)>,
    /// The end of the last operation, after the common start.
    last: Nanos,
    attained_at: Option<Nanos>,
}

impl Judge {
    /// Nothing seen yet. Recording begins at `from` after the common start; `counts` tells
    /// the rows that count. The rule's values are multiples of `interval`.
    pub fn new(rule: SteadyRule, interval: Nanos, from: Nanos, counts: Vec<bool>) -> Judge {
        let interval = Nanos(interval.0.max(1));
        let first = from.0.saturating_add(rule.ramp.0).div_ceil(interval.0);
        Judge {
            rule,
            watch: SteadyWatch::new(rule),
            counts,
            interval,
            each: (rule.every.0 / interval.0).max(1),
            next: first,
            sums: BTreeMap::new(),
            last: Nanos(0),
            attained_at: None,
        }
    }

    /// Adds what was done in an interval, or a part of it.
    pub fn add(&mut self, row: u64, number: u64, bin: &Bin) {
        let counts = usize::try_from(row)
            .ok()
            .and_then(|row| self.counts.get(row));
        self.last = self.last.max(bin.last);
        if counts == Some(&true) && number >= self.next && self.attained_at.is_none() {
            let (ios, bytes) = self.sums.entry(number).or_default();
            *ios += bin.items;
            *bytes += bin.bytes;
        }
    }

    /// All is known of the intervals before `end`. Whether the rate is steady by that, for
    /// the first time.
    pub fn complete(&mut self, end: u64) -> bool {
        while self.attained_at.is_none() && end >= self.next.saturating_add(self.each) {
            let after = self.next + self.each;
            let (mut ios, mut bytes) = (0, 0);
            for (_, sum) in self.sums.extract_if(..after, |_, _| true) {
                (ios, bytes) = (ios + sum.0, bytes + sum.1);
            }
            let seconds = Nanos(self.interval.0 * self.each).as_secs_f64();
            let rates = Rates {
                ios: ios as f64 / seconds,
                bytes: bytes as f64 / seconds,
            };
            self.next = after;
            if self.watch.note(rates) {
                self.attained_at = Some(self.begin_of(after));
                return true;
            }
        }
        false
    }

    /// The phase is over, and all is known of it; where nobody stopped it, it went on up to
    /// its `deadline`, after the common start.
    pub fn end(&mut self, deadline: Option<Nanos>) {
        // An operation that would have ended after it may not have started any more.
        let whole = deadline.filter(|at| at.0 <= self.last.0.saturating_add(self.interval.0));
        let until = whole.map_or(self.last, |at| at.max(self.last));
        self.complete(until.0 / self.interval.0);
    }

    /// The first instant of an interval.
    fn begin_of(&self, number: u64) -> Nanos {
        Nanos(self.interval.0.saturating_mul(number))
    }

    /// The result.
    pub fn found(&self) -> Steadiness {
        let full = self.watch.is_full();
        let window = self.watch.window();
        let begin = || {
            let intervals = window.len() as u64 * self.each;
            self.begin_of(self.next.saturating_sub(intervals))
        };
        Steadiness {
            rule: self.rule,
            attained_at: self.attained_at,
            window_from: full.then(begin),
            value: self.watch.measure(),
            window: match full {
                true => window.clone().collect(),
                false => Vec::new(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rbench_core::steady::Criterion;

    const SECOND: u64 = 1_000_000_000;

    fn judge(limit: f64, every: u64, ramp: u64, from: u64) -> Judge {
        let rule = SteadyRule {
            criterion: Criterion {
                bandwidth: false,
                slope: false,
                limit,
                percent: true,
            },
            duration: Nanos(4 * SECOND),
            every: Nanos(every),
            ramp: Nanos(ramp),
        };
        Judge::new(rule, Nanos(SECOND / 2), Nanos(from), vec![true, false])
    }

    fn bin(number: u64, items: u64) -> Bin {
        let at = Nanos(number * SECOND / 2 + 7);
        Bin {
            items,
            bytes: items * 10,
            errors: 1,
            first: at,
            last: at,
        }
    }

    /// Gives it a part of each of two ranks, interval by interval; after how many it is
    /// steady.
    fn steady_after(judge: &mut Judge, rates: impl IntoIterator<Item = u64>) -> Option<u64> {
        (0..).zip(rates).find_map(|(number, items)| {
            judge.add(0, number, &bin(number, items / 4));
            // Belongs to a row that does not count.
            judge.add(1, number, &bin(number, number * 1000));
            assert!(!judge.complete(number), "a part of it is not known yet");
            judge.add(0, number, &bin(number, items - items / 4));
            judge.complete(number + 1).then_some(number + 1)
        })
    }

    #[test]
    fn the_totals_of_all_ranks_are_judged_interval_by_interval() {
        let mut constant = judge(0.1, SECOND / 2, 0, 0);
        assert_eq!(steady_after(&mut constant, [100; 20]), Some(8));
        let found = constant.found();
        assert_eq!(found.attained_at, Some(Nanos(4 * SECOND)));
        assert_eq!(found.window_from, Some(Nanos(0)));
        assert_eq!((found.value, found.window.len()), (Some(0.0), 8));
        let rates = Rates {
            ios: 200.0,
            bytes: 2000.0,
        };
        assert!(found.window.iter().all(|value| *value == rates));
    }

    #[test]
    fn a_rate_that_falls_into_place_is_steady_a_window_later_and_a_drift_never() {
        let falls = || [900, 700, 500, 101].into_iter().chain([100; 20]);
        // The 101 is outside of 0.1 % of the mean.
        assert_eq!(
            steady_after(&mut judge(0.1, SECOND / 2, 0, 0), falls()),
            Some(12)
        );
        // Values of a second: of (500, 101) and so on.
        let mut coarse = judge(0.1, SECOND, 0, 0);
        assert_eq!(steady_after(&mut coarse, falls()), Some(12));
        assert_eq!(coarse.found().window_from, Some(Nanos(2 * SECOND)));
        let mut drifts = judge(2.0, SECOND / 2, 0, 0);
        assert_eq!(
            steady_after(&mut drifts, (0..60).map(|i| 1000 + 10 * i)),
            None
        );
        let found = drifts.found();
        assert_eq!((found.attained_at, found.window.len()), (None, 8));
        assert_eq!(found.window_from, Some(Nanos(26 * SECOND)));
        assert!(found.value.is_some_and(|value| value > 2.0));
    }

    #[test]
    fn what_lies_in_a_ramp_is_in_no_window() {
        // 1 s that is not recorded, and 1.2 s more: from the sixth interval on.
        let mut late = judge(0.1, SECOND / 2, SECOND + SECOND / 5, SECOND);
        assert_eq!(steady_after(&mut late, [100; 20]), Some(5 + 8));
        assert_eq!(late.found().window_from, Some(Nanos(5 * SECOND / 2)));
    }

    #[test]
    fn the_last_intervals_are_judged_at_the_end_as_far_as_they_are_whole() {
        let end = |intervals: u64, deadline: u64| {
            let mut judge = judge(0.1, SECOND / 2, 0, 0);
            (0..intervals).for_each(|number| judge.add(0, number, &bin(number, 100)));
            judge.end(Some(Nanos(deadline)));
            judge.found().attained_at
        };
        assert_eq!(end(8, 4 * SECOND), Some(Nanos(4 * SECOND)));
        // Workers that came to their end earlier have left a part of an interval.
        assert_eq!(end(8, 9 * SECOND), None);
        assert_eq!(end(9, 9 * SECOND), Some(Nanos(4 * SECOND)));
        let mut none = judge(0.1, SECOND / 2, 0, 0);
        none.end(Some(Nanos(9 * SECOND)));
        assert_eq!(none.found().window_from, None);
    }
}
