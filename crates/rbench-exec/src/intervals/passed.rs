//! Progress of workers and ranks: the interval before which all their operations are known.

use std::collections::BTreeMap;

use rbench_core::Rank;

/// Workers and ranks that pass their intervals to this rank, with the progress of each.
#[derive(Debug, Default)]
pub struct Passed {
    /// The first interval of each worker that may not be handed over in full; the largest
    /// number once it has ended.
    workers: Vec<u64>,
    /// Like `workers`, for other ranks, each with all that pass intervals to it.
    others: BTreeMap<u32, u64>,
    /// The last reported progress of all of them.
    told: u64,
}

impl Passed {
    /// The workers of this rank, and other ranks.
    pub fn of(workers: u32, others: impl IntoIterator<Item = Rank>) -> Passed {
        Passed {
            workers: vec![0; workers as usize],
            others: others.into_iter().map(|rank| (rank.0, 0)).collect(),
            told: 0,
        }
    }

    /// A worker has handed over all that it did before that interval.
    pub fn worker(&mut self, worker: u32, interval: u64) {
        if let Some(known) = self.workers.get_mut(worker as usize) {
            *known = interval.max(*known);
        }
    }

    /// A rank has passed on all that was done before that interval.
    pub fn rank(&mut self, rank: Rank, interval: u64) {
        if let Some(known) = self.others.get_mut(&rank.0) {
            *known = interval.max(*known);
        }
    }

    /// All of them are as far as that.
    pub fn all(&self) -> u64 {
        let known = self.workers.iter().chain(self.others.values());
        known.copied().min().unwrap_or(u64::MAX)
    }

    /// The progress of all, if it is new; intervals from `held` on are still to be passed on.
    pub fn news(&self, held: Option<u64>) -> Option<u64> {
        let upto = held.map_or(self.all(), |held| held.min(self.all()));
        (upto > self.told).then_some(upto)
    }

    /// Notes that this progress was reported.
    pub fn tell(&mut self, upto: u64) {
        self.told = upto;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_as_far_as_the_one_that_is_behind() {
        let mut passed = Passed::of(2, [Rank(3), Rank(5)]);
        passed.worker(0, 4);
        passed.worker(1, 6);
        passed.rank(Rank(3), 9);
        assert_eq!((passed.all(), passed.news(None)), (0, None));
        passed.rank(Rank(5), 5);
        // Nobody waits for who does not pass on to this rank.
        passed.rank(Rank(7), 1);
        passed.worker(9, 1);
        assert_eq!((passed.all(), passed.news(None)), (4, Some(4)));
        assert_eq!(passed.news(Some(3)), Some(3), "a part of it is held");
        passed.tell(4);
        assert_eq!((passed.news(None), passed.news(Some(3))), (None, None));
        // One has come to its end.
        passed.worker(0, u64::MAX);
        passed.worker(1, 5);
        assert_eq!(passed.news(None), Some(5), "none goes back");
    }
}
