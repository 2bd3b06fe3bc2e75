//! Open loop: when operations are meant to start, whatever the target does.

use rbench_core::Nanos;
use rbench_core::random::Stream;

/// How intended starts are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arrival {
    /// Equal gaps over all workers.
    #[default]
    Uniform,
    /// A Poisson process over all workers.
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

/// The intended starts of one worker's operations, counted from the common
/// start.
///
/// Uniform: worker w of W starts operation k at (k·W + w) / rate, so that all
/// together keep equal gaps. Poisson: each worker runs a Poisson process of
/// rate / W; their superposition is one of the whole rate. Times are
/// accumulated in f64 seconds from integers or exponential gaps, so no
/// rounding builds up (below 1 ns in a week at any rate).
#[derive(Debug, Clone)]
pub struct Schedule {
    arrival: Arrival,
    per_worker: f64,
    first: f64,
    issued: u64,
    clock_s: f64,
    stream: Stream,
}

impl Schedule {
    /// The schedule of worker `worker` of `workers` at `rate` operations a
    /// second over all of them.
    pub fn new(arrival: Arrival, rate: f64, worker: u64, workers: u64, stream: Stream) -> Schedule {
        Schedule {
            arrival,
            per_worker: rate / workers as f64,
            first: worker as f64 / rate,
            issued: 0,
            clock_s: 0.0,
            stream,
        }
    }

    /// Starts within `span` behind a start, that one included: exact when
    /// uniform, the expected number otherwise.
    pub fn starts_within(&self, span: Nanos) -> u64 {
        // Starts are rounded to nanoseconds: one at the very end of the span is not within it.
        const HALF_NS: f64 = 0.5e-9;
        ((span.as_secs_f64() - HALF_NS).max(0.0) * self.per_worker).ceil() as u64
    }

    /// The next intended start.
    #[inline]
    pub fn next_start(&mut self) -> Nanos {
        let at_s = match self.arrival {
            Arrival::Uniform => self.first + self.issued as f64 / self.per_worker,
            Arrival::Poisson => {
                self.clock_s += self.stream.exponential() / self.per_worker;
                self.clock_s
            }
        };
        self.issued += 1;
        Nanos((at_s * 1e9).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_at_the_end_of_a_span_is_not_within_it() {
        let schedule = Schedule::new(Arrival::Uniform, 200.0, 0, 1, Stream::new(&[7]));
        for starts in 1..2000 {
            let span = Nanos(starts * 5_000_000);
            assert_eq!(schedule.starts_within(span), starts);
            assert_eq!(schedule.starts_within(Nanos(span.0 + 2)), starts + 1);
        }
        assert_eq!(schedule.starts_within(Nanos(0)), 0);
    }

    fn starts(arrival: Arrival, rate: f64, workers: u64, each: usize) -> Vec<u64> {
        let mut all: Vec<u64> = (0..workers)
            .flat_map(|w| {
                let mut s = Schedule::new(arrival, rate, w, workers, Stream::new(&[9, w]));
                (0..each).map(move |_| s.next_start().0)
            })
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn uniform_starts_of_all_workers_keep_equal_gaps() {
        let all = starts(Arrival::Uniform, 1000.0, 4, 100);
        assert_eq!(all, (0..400).map(|k| k * 1_000_000).collect::<Vec<u64>>());
    }

    #[test]
    fn the_starts_within_a_span_are_counted() {
        let schedule = Schedule::new(Arrival::Uniform, 1000.0, 0, 2, Stream::new(&[1]));
        assert_eq!(schedule.starts_within(Nanos(1_000_000_000)), 500);
        assert_eq!(schedule.starts_within(Nanos(1)), 1);
    }

    #[test]
    fn poisson_starts_keep_the_rate_up_to_a_million_a_second() {
        for rate in [1e3, 3e5, 1e6] {
            let each = 100_000;
            let all = starts(Arrival::Poisson, rate, 4, each);
            let span = all[all.len() * 9 / 10] as f64 / 1e9;
            let got = (all.len() as f64 * 0.9) / span;
            assert!((got / rate - 1.0).abs() < 0.02, "{got} for {rate}");
        }
    }

    #[test]
    fn poisson_gaps_vary_as_much_as_their_mean() {
        let all = starts(Arrival::Poisson, 1e4, 1, 50_000);
        let gaps: Vec<f64> = all.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let sd = (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((sd / mean - 1.0).abs() < 0.02, "{}", sd / mean);
    }
}
