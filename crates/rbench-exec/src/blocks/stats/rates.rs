//! Rates of a job that are sampled, and the least rates that it must have; both are checked at
//! intervals.

use rbench_core::steady::{Rates, SteadyRule, SteadyWatch};
use rbench_core::{Direction, Nanos};
use rbench_plan::jobs::Each;

use super::{Done, JobStats, Verdict, after};

/// Samples of the bandwidth, and of the operations per second.
#[derive(Debug, Default)]
pub(super) struct Sampling {
    /// Interval of the samples of each, time of the next one, and of the last one.
    pub(super) every: [Nanos; 2],
    pub(super) next: [Nanos; 2],
    pub(super) at: [Nanos; 2],
    /// The earliest of all next samples and of the ends of seconds that are checked.
    pub(super) due: Nanos,
    /// A sample was taken.
    pub(super) sampled: bool,
}

/// The least rates that a job may have.
#[derive(Debug)]
pub(super) struct LeastRates {
    pub(super) bytes: Each<Option<u64>>,
    pub(super) iops: Each<Option<u64>>,
    /// The time over which they hold; the next check of them, and the last.
    pub(super) cycle: Nanos,
    pub(super) next_check: Nanos,
    pub(super) checked_at: Nanos,
}

/// Times of the checks of a rate that is to become steady.
#[derive(Debug)]
pub(super) struct Steadiness {
    pub(super) watch: Option<SteadyWatch>,
    pub(super) every: Nanos,
    /// Time of the first value, after the start of recording.
    pub(super) from: Nanos,
    pub(super) next_second: Nanos,
    pub(super) second_at: Nanos,
}

impl Steadiness {
    pub(super) fn of(rule: Option<SteadyRule>) -> Steadiness {
        Steadiness {
            watch: rule.map(SteadyWatch::new),
            every: rule.map_or(Nanos::SECOND, |steady| steady.every),
            // Like in fio: a value after the ramp lies completely after it.
            from: rule.map_or(Nanos(0), |steady| match steady.ramp.0 {
                0 => Nanos(0),
                ramp => Nanos(ramp.saturating_add(steady.every.0)),
            }),
            next_second: Nanos(0),
            second_at: Nanos(0),
        }
    }
}

impl JobStats {
    /// Takes a sample and checks the least rates, where it is time to. `due`: the latest operation, if
    /// it had an intended start.
    #[cold]
    pub(super) fn look(&mut self, now: Nanos, due: Option<Done>) {
        if now >= self.sampling.due {
            self.sample(now, due);
        }
        if now >= self.least.next_check {
            self.check_rates(now);
        }
        self.next_look = self.sampling.due.min(self.least.next_check);
    }

    /// Time of the next check of the least rates; never without any.
    pub(super) fn check_after(&self, now: Nanos) -> Nanos {
        let (bytes, iops) = (self.least.bytes, self.least.iops);
        let mut any = bytes.all().into_iter().chain(iops.all());
        match any.any(Option::is_some) {
            true => after(now, self.least.cycle),
            false => Nanos(u64::MAX),
        }
    }

    /// A cycle has passed over which the least rates hold.
    fn check_rates(&mut self, now: Nanos) {
        let seconds = now.since(self.least.checked_at).as_secs_f64();
        (self.least.checked_at, self.least.next_check) = (now, self.check_after(now));
        let (all_bytes, all_iops) = (self.least.bytes, self.least.iops);
        for direction in Direction::ALL {
            let side = self.sides.of_mut(direction);
            let (bytes, iops) = (*all_bytes.of(direction), *all_iops.of(direction));
            let moved = (side.bytes - side.at_check.1) as f64 / seconds;
            let done = (side.ios - side.at_check.0) as f64 / seconds;
            side.at_check = (side.ios, side.bytes);
            let below =
                |least: Option<u64>, rate: f64| least.is_some_and(|least| rate < least as f64);
            // A direction that this stretch has none of is not slow.
            if side.last_end.0 > 0 && (below(bytes, moved) || below(iops, done)) {
                self.verdict = Some(Verdict::TooSlow);
            }
        }
    }

    /// Takes the samples that are due. In a closed loop the latest operation took the end of their time.
    /// In an open loop (`due`) its own time follows: the first one starts with the time.
    fn sample(&mut self, now: Nanos, due: Option<Done>) {
        self.note_moved(now);
        for which in 0..2 {
            if now < self.sampling.next[which] {
                continue;
            }
            let span = now.since(std::mem::replace(&mut self.sampling.at[which], now));
            for direction in Direction::ALL {
                let next = due.filter(|done| done.direction == direction);
                let next = next.map_or(0, |done| [done.moved, 1][which]);
                self.sides.of_mut(direction).sample(which, span, next);
            }
            self.sampling.next[which] = after(now, self.sampling.every[which]);
        }
        self.sampling.sampled = true;
        if now >= self.steadiness.next_second {
            self.second(now);
        }
        self.sampling.due = self.next_due();
    }

    /// A second of recording has passed, or how often else values are taken.
    fn second(&mut self, now: Nanos) {
        let seconds = now.since(self.steadiness.second_at).as_secs_f64();
        (self.steadiness.second_at, self.steadiness.next_second) =
            (now, after(now, self.steadiness.every));
        let (mut ios, mut bytes) = (0.0, 0.0);
        for side in self.sides.all_mut() {
            ios += (side.ios - side.at_second.0) as f64 / seconds;
            bytes += (side.bytes - side.at_second.1) as f64 / seconds;
            side.at_second = (side.ios, side.bytes);
        }
        if let Some(steady) = &mut self.steadiness.watch
            && now.since(self.from) >= self.steadiness.from
            && steady.note(Rates { ios, bytes })
        {
            self.verdict = self.verdict.or(Some(Verdict::Steady));
        }
    }
}
