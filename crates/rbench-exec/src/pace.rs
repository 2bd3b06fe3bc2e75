//! When a worker acts: the common start, intended starts, the deadline, and
//! the request to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rbench_core::{Clock, CpuClock, Nanos};
use rbench_plan::arrival::Schedule;

/// How long before an instant a worker stops sleeping and spins: the kernel
/// wakes a thread that much late on a busy machine.
const SPIN: Nanos = Nanos(100_000);

/// Waits until `at`: sleeps until shortly before, then spins.
pub fn wait_until(clock: CpuClock, at: Nanos) {
    loop {
        let left = at.since(clock.now());
        if left.0 == 0 {
            return;
        }
        if left > SPIN {
            std::thread::sleep(Duration::from(Nanos(left.0 - SPIN.0)));
        } else {
            std::hint::spin_loop();
        }
    }
}

/// The group's request to end the phase at the next operation; clones share
/// it.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Asks.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a worker keeps to while it runs.
#[derive(Debug, Clone)]
pub struct Gate {
    /// The clock of all timing.
    pub clock: CpuClock,
    /// The common start on this clock.
    pub start: Nanos,
    /// Stop issuing at this instant.
    pub deadline: Option<Nanos>,
    /// Stop issuing when raised.
    pub stop: StopFlag,
}

impl Gate {
    /// Whether no further operation may start at `now`.
    #[inline]
    pub fn closed(&self, now: Nanos) -> bool {
        self.stop.is_raised() || self.deadline.is_some_and(|d| now >= d)
    }

    /// Operations that were due before the deadline, from the intended start
    /// `next` on, and were not started: at most `left`. Zero without a
    /// deadline and after a stop.
    pub fn missed(&self, schedule: &Schedule, next: Nanos, left: u64) -> u64 {
        match self.deadline {
            Some(deadline) if next < deadline && !self.stop.is_raised() => {
                schedule.starts_within(Nanos(deadline.0 - next.0)).min(left)
            }
            _ => 0,
        }
    }

    /// Waits until `at`, at most until the deadline, waking up in between to
    /// see a stop. Whether an operation may start then.
    pub fn wait(&self, at: Nanos) -> bool {
        const NAP: Nanos = Nanos(50_000_000);
        let target = self.deadline.map_or(at, |d| d.min(at));
        loop {
            let now = self.clock.now();
            if self.closed(now) {
                return false;
            }
            if now >= target {
                return true;
            }
            wait_until(self.clock, target.min(Nanos(now.0 + NAP.0)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_at_the_instant_and_not_before() {
        let clock = CpuClock::KERNEL;
        let late = || {
            let at = Nanos(clock.now().0 + 5_000_000);
            wait_until(clock, at);
            let now = clock.now();
            assert!(now >= at);
            now.since(at)
        };
        // What else the machine does may make it late now and then.
        assert!((0..50).any(|_| late() < Nanos(100_000_000)), "always late");
    }

    #[test]
    fn a_raised_stop_ends_the_wait_early() {
        let clock = CpuClock::KERNEL;
        let gate = Gate {
            clock,
            start: clock.now(),
            deadline: None,
            stop: StopFlag::default(),
        };
        let stop = gate.stop.clone();
        let before = clock.now();
        std::thread::scope(|s| {
            s.spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                stop.raise();
            });
            assert!(!gate.wait(Nanos(before.0 + 600_000_000_000)));
        });
        assert!(clock.now().since(before) < Nanos(300_000_000_000));
    }
}
