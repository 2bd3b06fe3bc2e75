//! The search of a job while it runs: for the depth that keeps a latency.

use rbench_core::Nanos;
use rbench_plan::jobs::LatencyTarget;

/// Progress of the search of a depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It goes on; it never ends where not even one request holds.
    Searching,
    /// The depth is found with this operation. It is kept for one window more,
    /// which shows what it gives.
    Found,
    /// The window after `Found` is over.
    Over,
}

/// Search of the largest depth whose latency stays within a target, window by
/// window: doubled while it holds, then halved in between.
#[derive(Debug, Clone)]
pub struct DepthSearch {
    target: LatencyTarget,
    /// Requests to keep under way now.
    pub depth: u32,
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

    /// Returns true if the search is to go on when a depth is found (`latency_run`).
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

    /// The largest depth that has held until now.
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
            let latency = u64::from(search.depth) * 100_000;
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
                assert_eq!(search.depth, search.found());
            }
            // Nothing holds: there is no end.
            [] => assert_eq!((search.depth, search.found()), (1, 0)),
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
}
