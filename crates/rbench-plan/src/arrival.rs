//! Open loop: intended starts of operations that do not depend on the target's speed.

use std::sync::atomic::{AtomicU64, Ordering};

use rbench_core::random::{key, mix};
use rbench_core::{Nanos, Rank};

use crate::refusal::PlanError;

/// The distribution of intended starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Arrival {
    /// Equal gaps
    #[default]
    Uniform,
    /// Exponential gaps
    Poisson,
}

impl Arrival {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Arrival::Uniform => "uniform",
            Arrival::Poisson => "poisson",
        }
    }
}

/// An open loop: operations at a given rate, however fast the target is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpenLoop {
    /// Operations per second of all workers.
    pub rate: f64,
    /// Distribution of their starts.
    pub arrival: Arrival,
}

/// Checks operations per second.
///
/// # Errors
/// A sentence that names the option.
pub fn check_rate(flag: &str, rate: f64) -> Result<(), PlanError> {
    refuse_if! {
        !(1e-3..=1e9).contains(&rate) =>
            "{flag} {rate} is not a number of operations a second between 0.001 and 1,000,000,000";
    }
    Ok(())
}

/// The intended starts of the operations of all workers of a rank, counted from the common start.
/// Any free worker takes the next one, without a lock.
///
/// Uniform: start k of all W workers is at k / rate, and each rank has those of its own workers.
/// Poisson: each rank runs a Poisson process with its workers' share of the rate; their
/// superposition has the whole rate. Each gap follows from the seed and the previous start. So the
/// starts do not depend on which worker takes which.
#[derive(Debug)]
pub struct Schedule {
    arrival: Arrival,
    /// Operations per second of all workers of all ranks.
    rate: f64,
    workers: Workers,
    seed: u64,
    /// Uniform: the number of starts taken. Poisson: the latest one, in units of 1 / [`TICK_NS`]
    /// ns.
    taken: AtomicU64,
}

/// Range of a rank's workers among those of all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers {
    /// Number of the first one.
    pub first: u64,
    /// Number of the rank's workers.
    pub own: u64,
    /// Number of all ranks' workers.
    pub all: u64,
}

impl Workers {
    /// The workers of a rank, with `threads` on each rank.
    pub fn of_rank(rank: Rank, ranks: u32, threads: u32) -> Workers {
        let threads = u64::from(threads);
        Workers {
            first: u64::from(rank.0) * threads,
            own: threads,
            all: u64::from(ranks) * threads,
        }
    }
}

/// Resolution of Poisson starts, in parts of a nanosecond: 200 days fit.
const TICK_NS: f64 = 1024.0;
/// Most starts that are counted one by one at the end of a phase. The rest is estimated by its
/// expected number.
const COUNTED_MAX: u64 = 1 << 20;

impl Schedule {
    /// Creates the schedule of a rank's workers at `rate` operations per second over all workers
    /// of all ranks. Random gaps derive from `seed`.
    pub fn new(arrival: Arrival, rate: f64, workers: Workers, seed: &[u64]) -> Schedule {
        Schedule {
            arrival,
            rate,
            workers,
            seed: key(seed),
            taken: AtomicU64::new(0),
        }
    }

    /// Takes the next intended start.
    #[inline]
    pub fn next_start(&self) -> Nanos {
        match self.arrival {
            Arrival::Uniform => self.uniform_start(self.taken.fetch_add(1, Ordering::Relaxed)),
            Arrival::Poisson => {
                let mut latest = self.taken.load(Ordering::Relaxed);
                loop {
                    let next = self.poisson_after(latest);
                    let order = Ordering::Relaxed;
                    match self.taken.compare_exchange_weak(latest, next, order, order) {
                        Ok(_) => return ticks_to_nanos(next),
                        Err(now) => latest = now,
                    }
                }
            }
        }
    }

    /// Takes the starts before `end`, at most `most`, and returns their number.
    pub fn take_before(&self, end: Nanos, most: u64) -> u64 {
        let mut count = 0;
        let order = Ordering::Relaxed;
        // Starts that others take meanwhile are not counted twice.
        let _ = self.taken.fetch_update(order, order, |taken| {
            let (counted, latest) = match self.arrival {
                Arrival::Uniform => {
                    let left = self.uniform_before(end).saturating_sub(taken).min(most);
                    (left, taken + left)
                }
                Arrival::Poisson => self.poisson_before(taken, end, most),
            };
            count = counted;
            Some(latest)
        });
        count
    }

    /// The `nth` start of the rank.
    fn uniform_start(&self, nth: u64) -> Nanos {
        let Workers { first, own, all } = self.workers;
        let own = own.max(1);
        let slot = (nth / own) * all + first + nth % own;
        // Computed from integers, so that rounding errors do not accumulate.
        Nanos((slot as f64 / self.rate * 1e9).round() as u64)
    }

    /// The number of the rank's starts before `end`.
    fn uniform_before(&self, end: Nanos) -> u64 {
        // Starts are rounded to nanoseconds: one exactly at the end is not before it.
        const HALF_NS: f64 = 0.5e-9;
        let Workers { first, own, all } = self.workers;
        let all = all.max(1);
        let slots = ((end.as_secs_f64() - HALF_NS).max(0.0) * self.rate).ceil() as u64;
        (slots / all) * own + (slots % all).saturating_sub(first).min(own)
    }

    /// Average number of ticks between two starts of the rank.
    fn mean_gap(&self) -> f64 {
        let Workers { own, all, .. } = self.workers;
        1e9 * TICK_NS / self.rate * all as f64 / own.max(1) as f64
    }

    #[inline]
    fn poisson_after(&self, latest: u64) -> u64 {
        // In (0, 1], so that the logarithm is finite.
        let unit = ((mix(self.seed ^ mix(latest)) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        let gap = (-unit.ln() * self.mean_gap()).round() as u64;
        // A gap of zero would be followed by the same gap forever.
        latest.saturating_add(gap.max(1))
    }

    /// The number of starts after `latest` and before `end`, at most `most`, and the last one.
    fn poisson_before(&self, mut latest: u64, end: Nanos, most: u64) -> (u64, u64) {
        let mut count = 0;
        while count < most.min(COUNTED_MAX) {
            let next = self.poisson_after(latest);
            if ticks_to_nanos(next) >= end {
                return (count, latest);
            }
            (latest, count) = (next, count + 1);
        }
        let left = (end.0 as f64 * TICK_NS - latest as f64).max(0.0);
        let rest = ((left / self.mean_gap()).round() as u64).min(most - count);
        let passed = rest as f64 * self.mean_gap();
        (count + rest, latest.saturating_add(passed as u64))
    }
}

fn ticks_to_nanos(ticks: u64) -> Nanos {
    Nanos((ticks as f64 / TICK_NS).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_rank(arrival: Arrival, rate: f64, rank: u64, (threads, ranks): (u64, u64)) -> Schedule {
        let workers = Workers::of_rank(Rank(rank as u32), ranks as u32, threads as u32);
        Schedule::new(arrival, rate, workers, &[9, rank])
    }

    /// The first starts of some ranks, in order.
    fn starts(arrival: Arrival, rate: f64, shape: (u64, u64), each: usize) -> Vec<u64> {
        let mut all: Vec<u64> = (0..shape.1)
            .flat_map(|rank| {
                let schedule = of_rank(arrival, rate, rank, shape);
                (0..each).map(move |_| schedule.next_start().0)
            })
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_start_at_the_end_of_a_span_is_not_before_it() {
        for starts in 1..2000 {
            let end = Nanos(starts * 5_000_000);
            let schedule = || of_rank(Arrival::Uniform, 200.0, 0, (1, 1));
            assert_eq!(schedule().take_before(end, u64::MAX), starts);
            let later = Nanos(end.0 + 2);
            assert_eq!(schedule().take_before(later, u64::MAX), starts + 1);
        }
        let schedule = of_rank(Arrival::Uniform, 200.0, 0, (1, 1));
        assert_eq!(schedule.take_before(Nanos(0), u64::MAX), 0);
    }

    #[test]
    fn uniform_starts_of_all_ranks_keep_equal_gaps() {
        for shape in [(1, 4), (4, 1), (3, 2)] {
            let all = starts(Arrival::Uniform, 1000.0, shape, 60);
            let expected: Vec<u64> = (0..60 * shape.1).map(|k| k * 1_000_000).collect();
            assert_eq!(all, expected, "{shape:?}");
        }
    }

    #[test]
    fn what_is_taken_and_what_is_left_are_all_starts() {
        for arrival in [Arrival::Uniform, Arrival::Poisson] {
            for taken in [0, 1, 7, 300] {
                let end = Nanos(1_000_000_000);
                let schedule = of_rank(arrival, 1000.0, 1, (2, 3));
                let before = (0..taken).filter(|_| schedule.next_start() < end).count() as u64;
                // Two workers count the remaining starts; one of them has few items left.
                let left = schedule.take_before(end, 5) + schedule.take_before(end, u64::MAX);
                let all = of_rank(arrival, 1000.0, 1, (2, 3)).take_before(end, u64::MAX);
                assert_eq!(before + left, all, "{arrival:?} {taken}");
                assert_eq!(schedule.take_before(end, u64::MAX), 0);
            }
        }
    }

    #[test]
    fn a_backlog_of_hours_is_counted_at_once() {
        let schedule = of_rank(Arrival::Poisson, 1e6, 0, (1, 1));
        let day = Nanos(86_400_000_000_000);
        let count = schedule.take_before(day, u64::MAX) as f64;
        assert!((count / 8.64e10 - 1.0).abs() < 1e-4, "{count}");
        assert!(schedule.take_before(day, u64::MAX) <= 1);
    }

    #[test]
    fn poisson_starts_keep_the_rate_up_to_a_million_a_second() {
        for rate in [1e3, 3e5, 1e6] {
            let each = 100_000;
            let all = starts(Arrival::Poisson, rate, (2, 4), each);
            let span = all[all.len() * 9 / 10] as f64 / 1e9;
            let got = (all.len() as f64 * 0.9) / span;
            assert!((got / rate - 1.0).abs() < 0.02, "{got} for {rate}");
        }
    }

    #[test]
    fn poisson_gaps_vary_as_much_as_their_mean_and_do_not_follow_each_other() {
        let all = starts(Arrival::Poisson, 1e4, (8, 1), 50_000);
        let gaps: Vec<f64> = all.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let relative = variance.sqrt() / mean;
        assert!((relative - 1.0).abs() < 0.02, "{relative}");
        let neighbours = gaps.windows(2).map(|w| (w[0] - mean) * (w[1] - mean));
        let correlation = neighbours.sum::<f64>() / gaps.len() as f64 / variance;
        assert!(correlation.abs() < 0.02, "{correlation}");
    }

    #[test]
    fn starts_do_not_depend_on_which_thread_takes_them() {
        for arrival in [Arrival::Uniform, Arrival::Poisson] {
            let schedule = of_rank(arrival, 1e6, 0, (4, 1));
            let mut all: Vec<u64> = std::thread::scope(|scope| {
                let take = || [(); 5000].map(|()| schedule.next_start().0);
                let threads = [(); 4].map(|()| scope.spawn(take));
                let taken = threads.map(|thread| thread.join().expect("no panic"));
                taken.concat()
            });
            all.sort_unstable();
            assert_eq!(all, starts(arrival, 1e6, (4, 1), 20_000), "{arrival:?}");
        }
    }
}
