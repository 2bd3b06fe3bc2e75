//! Time as a parameter: the monotonic clock of the machine, and one that a
//! test moves by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::units::Nanos;

/// A source of monotonic time in ns from an arbitrary origin.
pub trait Clock: Send + Sync {
    /// The present instant.
    fn now(&self) -> Nanos;
}

/// `CLOCK_MONOTONIC`: the same origin for all processes of a machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    #[inline]
    fn now(&self) -> Nanos {
        let mut ts = nix::libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `ts` is a valid place for a timespec. The call cannot fail:
        // CLOCK_MONOTONIC exists on every Linux.
        unsafe { nix::libc::clock_gettime(nix::libc::CLOCK_MONOTONIC, &raw mut ts) };
        Nanos(ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64)
    }
}

/// A clock that stands still until a test moves it; clones share the time.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// Moves the clock on by `by`.
    pub fn advance(&self, by: Nanos) {
        self.0.fetch_add(by.0, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_never_goes_back() {
        let clock = MonotonicClock;
        let mut last = clock.now();
        for _ in 0..10_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn clones_of_a_manual_clock_share_the_time() {
        let clock = ManualClock::default();
        let other = clock.clone();
        clock.advance(Nanos(5));
        assert_eq!(other.now(), Nanos(5));
    }
}
