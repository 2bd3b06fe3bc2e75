//! Intended starts of the operations of a worker with a rate.

use std::sync::Arc;

use rbench_core::random::Stream;
use rbench_core::{Direction, Nanos};
use rbench_plan::arrival::Schedule;
use rbench_plan::jobs::{Each, Pace};
use rbench_plan::pattern::Part;

/// The intended starts of a worker's operations, from its start on.
#[derive(Debug, Clone)]
pub enum Arrivals {
    /// One operation follows the other.
    Closed,
    /// By a rate for each direction that has one.
    Each(Box<Each<Option<RateSchedule>>>),
    /// By one rate for all directions and all workers; those of a rank share it.
    Together(Arc<Schedule>),
}

/// An operation that was drawn and has not started.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// Direction of the operation.
    pub direction: Direction,
    /// Bytes.
    pub length: u64,
    /// Intended start.
    pub intended: Option<Nanos>,
}

impl Arrivals {
    /// Arrivals of a worker of a job whose random draws belong to `seed`; `together`: the schedule
    /// of all workers of the rank, if the job has one.
    pub fn of(pace: &Pace, seed: u64, part: Part, together: Option<&Arc<Schedule>>) -> Arrivals {
        if let Some(schedule) = together {
            return Arrivals::Together(Arc::clone(schedule));
        }
        match RateSchedule::of(pace, [seed, part.worker]) {
            Each {
                read: None,
                write: None,
                trim: None,
            } => Arrivals::Closed,
            each => Arrivals::Each(Box::new(each)),
        }
    }

    /// With a rate for reads and one for writes, which is due first. With a rate for one of them,
    /// the other as long as that one is not due; `now` counts from the worker's start.
    #[inline(always)]
    pub fn first(&self, now: impl Fn() -> Nanos) -> Option<Direction> {
        let Arrivals::Each(each) = self else {
            return None;
        };
        match (&each.read, &each.write) {
            (Some(read), Some(write)) => Some(match write.is_before(read) {
                true => Direction::Write,
                false => Direction::Read,
            }),
            (Some(read), None) if !read.is_due(now()) => Some(Direction::Write),
            (None, Some(write)) if !write.is_due(now()) => Some(Direction::Read),
            _ => None,
        }
    }

    /// The intended start of the next operation, if it has one, which moves `length`
    /// bytes.
    #[inline(always)]
    pub fn next(&mut self, direction: Direction, length: u64) -> Option<Nanos> {
        match self {
            Arrivals::Closed => None,
            Arrivals::Each(each) => {
                let due = each.of_mut(direction).as_mut();
                due.map(|due| due.next(length))
            }
            Arrivals::Together(schedule) => Some(schedule.next_start()),
        }
    }

    /// Delays all next arrivals by the length of a pause.
    pub fn put_off(&mut self, pause: Nanos) {
        if let Arrivals::Each(each) = self {
            for due in each.all_mut().into_iter().flatten() {
                due.at += pause.as_secs_f64();
            }
        }
    }

    /// Counts the operations of one direction that were due before `deadline` and were not started,
    /// with the one that waits; starts count from `start`. With one rate for all directions, all
    /// count for the first of the worker's rows (`is_first`), up to `left`.
    pub fn missed(
        &mut self,
        (start, deadline): (Nanos, Nanos),
        (direction, is_first): (Direction, bool),
        waiting: Option<Waiting>,
        left: u64,
    ) -> u64 {
        match self {
            Arrivals::Closed => 0,
            Arrivals::Each(each) => {
                let due = each.of(direction);
                let length = waiting.map_or(0, |waiting| waiting.length);
                let waits = waiting.is_some_and(|waiting| {
                    waiting.direction == direction
                        && waiting.intended.is_some_and(|at| at < deadline)
                });
                let span = deadline.since(start);
                due.as_ref()
                    .map_or(0, |due| due.left_before(span, length) + u64::from(waits))
            }
            Arrivals::Together(schedule) if is_first => {
                let waiting = waiting.and_then(|waiting| waiting.intended);
                let waits = u64::from(waiting.is_some_and(|at| at < deadline)).min(left);
                waits + schedule.take_before(deadline.since(start), left - waits)
            }
            Arrivals::Together(_) => 0,
        }
    }
}

/// The intended starts of one direction of a worker, from its start on: the space
/// after each depends on its length when bytes are limited.
#[derive(Debug, Clone)]
pub struct RateSchedule {
    /// Seconds after the start; rounding stays below 1e-7 of it over 1e9
    /// operations.
    at: f64,
    per_operation: f64,
    per_byte: f64,
    /// The mean gap at the latest operation, in seconds.
    gap: f64,
    /// Random gaps for Poisson arrivals.
    gaps: Option<Stream>,
}

impl RateSchedule {
    /// Intended starts for each direction that has a rate.
    pub fn of(pace: &Pace, parts: [u64; 2]) -> Each<Option<RateSchedule>> {
        let due = |iops: Option<u64>, bytes: Option<u64>, direction: u64| {
            (iops.is_some() || bytes.is_some()).then(|| RateSchedule {
                at: 0.0,
                gap: 0.0,
                per_operation: iops.map_or(0.0, |n| 1.0 / n as f64),
                per_byte: bytes.map_or(0.0, |n| 1.0 / n as f64),
                gaps: pace
                    .poisson
                    .then(|| Stream::new(&[parts[0], parts[1], direction])),
            })
        };
        Each {
            read: due(pace.rate_iops.read, pace.rate_bytes.read, 11),
            write: due(pace.rate_iops.write, pace.rate_bytes.write, 12),
            trim: due(pace.rate_iops.trim, pace.rate_bytes.trim, 14),
        }
    }

    /// The intended start of the next operation, which moves `length` bytes.
    #[inline]
    pub fn next(&mut self, length: u64) -> Nanos {
        let gap = self.per_operation.max(self.per_byte * length as f64);
        self.gap = gap;
        let at = match &mut self.gaps {
            None => {
                let at = self.at;
                self.at += gap;
                at
            }
            Some(stream) => {
                self.at += gap * stream.exponential();
                self.at
            }
        };
        Nanos((at * 1e9).round() as u64)
    }

    /// Returns true if its next operation is due before the one of `other`.
    #[inline]
    pub fn is_before(&self, other: &RateSchedule) -> bool {
        self.at < other.at
    }

    /// Returns true if its next operation, as long as the latest one, is due at `now`.
    fn is_due(&self, now: Nanos) -> bool {
        let gap = |gaps: &Stream| self.gap * gaps.clone().exponential();
        self.at + self.gaps.as_ref().map_or(0.0, gap) <= now.as_secs_f64()
    }

    /// Operations of `length` bytes that are still due before `end`, counted
    /// from the start like their own times: exact when evenly spaced, the
    /// expected number otherwise.
    pub fn left_before(&self, end: Nanos, length: u64) -> u64 {
        let gap = self.per_operation.max(self.per_byte * length as f64);
        let left = end.as_secs_f64() - self.at;
        if gap <= 0.0 || left <= 0.0 {
            return 0;
        }
        match self.gaps {
            // The next one is at the beginning of what is left.
            None => (left / gap - 1e-6).ceil() as u64,
            Some(_) => (left / gap).round() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(iops: Option<u64>, bytes: Option<u64>, poisson: bool) -> Pace {
        Pace {
            rate_iops: Each {
                read: iops,
                ..Each::default()
            },
            rate_bytes: Each {
                read: bytes,
                ..Each::default()
            },
            poisson,
            ..Pace::default()
        }
    }

    fn last_start(pace: &Pace, lengths: &[u64], count: usize) -> f64 {
        let mut due = RateSchedule::of(pace, [1, 2])
            .read
            .expect("a rate is given");
        let mut last = Nanos(0);
        for i in 0..count {
            last = due.next(lengths[i % lengths.len()]);
        }
        last.as_secs_f64()
    }

    #[test]
    fn evenly_spaced_starts_keep_the_rate_exactly() {
        let last = last_start(&pace(Some(1_000_000), None, false), &[1], 3_000_001);
        assert!((last - 3.0).abs() < 1e-6, "{last}");
    }

    #[test]
    fn a_rate_of_bytes_counts_the_length_of_each() {
        let last = last_start(&pace(None, Some(8192), false), &[4096, 12288], 1001);
        assert!((last - 1000.0).abs() < 1e-6, "{last}");
    }

    #[test]
    fn poisson_starts_keep_the_rate_on_average() {
        for rate in [1000, 300_000, 1_000_000] {
            let last = last_start(&pace(Some(rate), None, true), &[1], 300_000);
            let got = 300_000.0 / last;
            assert!((got / rate as f64 - 1.0).abs() < 0.01, "{got} for {rate}");
        }
    }

    #[test]
    fn what_was_taken_is_not_due_any_more() {
        let second = Nanos::SECOND;
        for poisson in [false, true] {
            for taken in [0, 1, 400, 1000] {
                let mut due = RateSchedule::of(&pace(Some(1000), None, poisson), [1, 2])
                    .read
                    .expect("a rate is given");
                let last = (0..taken).map(|_| due.next(1)).last().unwrap_or_default();
                let left = due.left_before(second, 1);
                let expect = if poisson {
                    ((1.0 - last.as_secs_f64()).max(0.0) * 1000.0).round() as u64
                } else {
                    1000 - taken
                };
                assert_eq!(left, expect, "{poisson} {taken}");
            }
        }
    }

    #[test]
    fn without_a_rate_nothing_is_due() {
        let each = RateSchedule::of(&pace(None, None, true), [1, 2]);
        assert!(each.all().into_iter().all(Option::is_none));
    }
}
