//! What a job looks for while it runs: the depth that keeps a latency, and a
//! steady rate.

use std::collections::VecDeque;

use rbench_core::Nanos;
use rbench_plan::jobs::{LatencyTarget, Steady};

/// How far the search of a depth has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It goes on; it never ends where not even one request holds.
    Searching,
    /// The depth is found with this operation. It is kept for one window more,
    /// which shows what it gives.
    Found,
    /// That window is over.
    Over,
}

/// Search of the largest depth whose latency stays within a target, window by
/// window: doubled while it holds, then halved in between.
#[derive(Debug, Clone)]
pub struct DepthSearch {
    target: LatencyTarget,
    depth: u32,
    /// The largest depth that is known to hold, and the smallest that is not.
    holds: u32,
    fails: u32,
    most: u32,
    window: Option<Nanos>,
    operations: u64,
    late: u64,
    settled: bool,
}

impl DepthSearch {
    /// Starts with one request under way; `most` is the job's depth.
    pub fn new(target: LatencyTarget, most: u32) -> DepthSearch {
        DepthSearch {
            target,
            depth: 1,
            holds: 0,
            fails: most + 1,
            most,
            window: None,
            operations: 0,
            late: 0,
            settled: false,
        }
    }

    /// Requests to keep under way now.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether the search is to go on when a depth is found (`latency_run`).
    pub fn goes_on(&self) -> bool {
        self.target.goes_on
    }

    /// Searches again, from the depth that was found on.
    pub fn again(&mut self) {
        *self = DepthSearch {
            depth: self.depth,
            ..DepthSearch::new(self.target, self.most)
        };
    }

    /// The largest depth that held so far.
    pub fn found(&self) -> u32 {
        self.holds
    }

    /// Takes an operation that ended at `now`. One that began before the window
    /// belongs to the depth before.
    pub fn note(&mut self, now: Nanos, latency: Nanos) -> Stage {
        let begun = Nanos(now.0.saturating_sub(latency.0));
        let window = *self.window.get_or_insert(begun);
        if begun < window {
            return Stage::Searching;
        }
        self.operations += 1;
        self.late += u64::from(latency > self.target.target);
        if now.since(window) < self.target.window {
            return Stage::Searching;
        }
        if self.settled {
            return if self.holds > 0 {
                Stage::Over
            } else {
                Stage::Searching
            };
        }
        self.judge();
        self.window = Some(now);
        (self.operations, self.late) = (0, 0);
        if self.settled && self.holds > 0 {
            Stage::Found
        } else {
            Stage::Searching
        }
    }

    fn judge(&mut self) {
        let within = (self.operations - self.late) as f64 * 100.0;
        if within >= self.target.percentile * self.operations as f64 {
            self.holds = self.holds.max(self.depth);
        } else {
            self.fails = self.fails.min(self.depth);
        }
        if self.holds + 1 >= self.fails {
            self.settled = true;
            self.depth = self.holds.max(1);
        } else if self.fails > self.most {
            self.depth = (self.holds * 2).clamp(1, self.most);
        } else {
            self.depth = (self.holds + self.fails) / 2;
        }
    }
}

/// Watches whether the rate has become steady.
#[derive(Debug, Clone)]
pub struct SteadyWatch {
    rule: Steady,
    values: VecDeque<(f64, f64)>,
    room: usize,
    reached: bool,
}

impl SteadyWatch {
    /// Nothing seen yet. The window holds as many values as are taken in its time.
    pub fn new(rule: Steady) -> SteadyWatch {
        let room = (rule.duration.0 / rule.every.0.max(1)).max(2) as usize;
        SteadyWatch {
            rule,
            values: VecDeque::with_capacity(room),
            room,
            reached: false,
        }
    }

    /// Operations and bytes per second, second by second.
    pub fn window(&self) -> Vec<(u64, u64)> {
        let whole = |(ios, bytes): &(f64, f64)| (ios.round() as u64, bytes.round() as u64);
        self.values.iter().map(whole).collect()
    }

    /// Whether it was steady.
    pub fn reached(&self) -> bool {
        self.reached
    }

    /// Takes operations and bytes per second in the second that ended
    /// `elapsed` after the start of recording; whether the rate is steady now.
    pub fn note(&mut self, elapsed: Nanos, rates: (f64, f64)) -> bool {
        if elapsed < self.rule.ramp {
            return false;
        }
        if self.values.len() == self.room {
            self.values.pop_front();
        }
        self.values.push_back(rates);
        if self.values.len() == self.room {
            self.reached |= self.measure() <= self.rule.limit;
        }
        self.reached
    }

    /// Slope of the regression line by second, or the largest deviation from
    /// the mean; in per cent of the mean where asked for.
    fn measure(&self) -> f64 {
        let n = self.values.len() as f64;
        let pick = |(ios, bytes): &(f64, f64)| if self.rule.bandwidth { *bytes } else { *ios };
        let rates = || self.values.iter().map(pick);
        let mean = rates().sum::<f64>() / n;
        let value = if self.rule.slope {
            let middle = (n - 1.0) / 2.0;
            let seconds = |i: usize| i as f64 - middle;
            let rise = rates().enumerate().map(|(i, v)| seconds(i) * (v - mean));
            let run = (0..self.values.len()).map(|i| seconds(i) * seconds(i));
            let (rise, run): (f64, f64) = (rise.sum(), run.sum());
            (rise / run).abs()
        } else {
            rates().map(|v| (v - mean).abs()).fold(0.0, f64::max)
        };
        match (self.rule.percent, mean > 0.0) {
            (true, true) => value / mean * 100.0,
            (true, false) => f64::INFINITY,
            (false, _) => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Depth found when every request takes 100 us for each one under way.
    fn found(most: u32, target_us: u64) -> u32 {
        let target = LatencyTarget {
            target: Nanos(target_us * 1000),
            window: Nanos(1_000_000),
            percentile: 99.0,
            goes_on: false,
        };
        let mut search = DepthSearch::new(target, most);
        let (mut now, mut stages) = (10_000_000, Vec::new());
        for _ in 0..20_000 {
            now += 50_000;
            let latency = u64::from(search.depth()) * 100_000;
            let stage = search.note(Nanos(now), Nanos(latency));
            if stage != Stage::Searching {
                stages.push((stage, now));
            }
            if stage == Stage::Over {
                break;
            }
        }
        match stages.as_slice() {
            [(Stage::Found, found), (Stage::Over, over)] => {
                assert!(over - found >= 1_000_000, "{found} {over}");
                assert_eq!(search.depth(), search.found());
            }
            // Nothing holds: there is no end.
            [] => assert_eq!((search.depth(), search.found()), (1, 0)),
            other => panic!("{other:?}"),
        }
        search.found()
    }

    #[test]
    fn the_search_ends_at_the_largest_depth_that_keeps_the_latency() {
        assert_eq!(found(64, 1_000), 10);
        assert_eq!(found(64, 1_650), 16);
        assert_eq!(found(32, 1_000_000), 32);
        assert_eq!(found(64, 50), 0);
    }

    fn rule(slope: bool, limit: f64, percent: bool) -> Steady {
        Steady {
            bandwidth: false,
            slope,
            limit,
            percent,
            duration: Nanos(5_000_000_000),
            every: Nanos::SECOND,
            ramp: Nanos(2_000_000_000),
        }
    }

    fn steady_after(rule: Steady, rates: impl Iterator<Item = f64>) -> Option<u64> {
        let mut watch = SteadyWatch::new(rule);
        (1_u64..)
            .zip(rates)
            .find(|(s, rate)| watch.note(Nanos(s * 1_000_000_000), (*rate, 0.0)))
            .map(|(s, _)| s)
    }

    #[test]
    fn a_constant_rate_is_steady_when_the_first_window_is_full() {
        assert_eq!(
            steady_after(rule(true, 0.3, true), std::iter::repeat_n(100.0, 20)),
            Some(6)
        );
        assert_eq!(
            steady_after(rule(false, 1.0, false), std::iter::repeat_n(100.0, 20)),
            Some(6)
        );
    }

    #[test]
    fn a_rising_rate_is_steady_only_by_a_limit_above_its_slope() {
        let rising = || (0..20).map(|i| 1000.0 + f64::from(i) * 10.0);
        assert_eq!(steady_after(rule(true, 9.9, false), rising()), None);
        assert_eq!(steady_after(rule(true, 10.1, false), rising()), Some(6));
        assert_eq!(steady_after(rule(true, 0.5, true), rising()), None);
        assert_eq!(steady_after(rule(false, 20.1, false), rising()), Some(6));
    }
}
