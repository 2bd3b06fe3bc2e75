//! Time as a parameter: the monotonic clock of the machine, the same read from
//! the processor's counter, and one that a test moves by hand.

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

/// The processor's counter of time at an instant of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
struct Reading {
    ticks: u64,
    at: Nanos,
}

impl Reading {
    /// Reads both at the same time, as nearly as can be: of several tries the
    /// one whose readings of the counter lie closest around the kernel's.
    fn take() -> Option<Reading> {
        let tries = (0..8).filter_map(|_| {
            let before = ticks()?;
            let at = MonotonicClock.now();
            let took = ticks()?.wrapping_sub(before);
            let ticks = before.wrapping_add(took / 2);
            Some((took, Reading { ticks, at }))
        });
        tries.min_by_key(|(took, _)| *took).map(|(_, best)| best)
    }
}

/// The counter that runs at a constant rate on all processors (the TSC).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ticks() -> Option<u64> {
    // SAFETY: reading the counter touches no memory.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

/// Elsewhere the kernel's clock is read.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn ticks() -> Option<u64> {
    None
}

/// The processor's counter of time as it is, for comparing those of several processors;
/// `None` where there is none that can be read.
pub fn counter() -> Option<u64> {
    settle();
    ticks()
}

/// Keeps the processor busy for so many ticks of its counter; where there is none that
/// can be read, for as many turns of a loop.
pub fn spin_cycles(cycles: u64) {
    let Some(begun) = ticks() else {
        (0..cycles).for_each(|_| std::hint::spin_loop());
        return;
    };
    while cycles > 0 && ticks().is_some_and(|now| now.wrapping_sub(begun) < cycles) {
        std::hint::spin_loop();
    }
}

/// Waits until the counter is not read before what comes earlier in the
/// program is done. A system call does that by itself.
#[inline(always)]
pub fn settle() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a fence touches no memory.
    unsafe {
        core::arch::x86_64::_mm_lfence();
    }
}

/// Measures how fast the processor's counter runs, from its making on.
#[derive(Debug, Clone, Copy)]
pub struct Counter(Option<Reading>);

impl Counter {
    /// From so long on the rate is known well enough: each of the two readings
    /// that it comes from is true to about 30 ns, so the rate to 3 in a million.
    pub const ENOUGH: Nanos = Nanos(20_000_000);

    /// Begins; with `kept` false (the kernel does not keep its own time by the
    /// counter, so it may differ between processors or stand still) there will
    /// only be the kernel's clock.
    pub fn begin(kept: bool) -> Counter {
        Counter(if kept { Reading::take() } else { None })
    }

    /// The clock for what begins now: set by the kernel's at this moment, with
    /// the rate that was measured since the beginning. Before
    /// [`Counter::ENOUGH`] has passed it is the kernel's clock itself.
    pub fn clock(&self) -> CpuClock {
        let now = self.0.and_then(|begun| Some((begun, Reading::take()?)));
        now.and_then(|(begun, now)| CpuClock::between(begun, now))
            .unwrap_or(CpuClock::KERNEL)
    }

    /// The same; sleeps until the rate is known.
    pub fn clock_in_a_moment(&self) -> CpuClock {
        if let Some(begun) = self.0 {
            let left = Self::ENOUGH
                .0
                .saturating_sub(MonotonicClock.now().since(begun.at).0);
            std::thread::sleep(Nanos(left).into());
        }
        self.clock()
    }
}

/// `CLOCK_MONOTONIC` as workers read it: from the processor's counter, at a
/// third of the cost of asking the kernel's code, or else from that.
///
/// It is true to 30 ns where it was set and moves away from the kernel's clock
/// by a few millionths, so one is made for each phase.
#[derive(Debug, Clone, Copy)]
pub struct CpuClock {
    set: Reading,
    /// ns for each tick, times 2^32; 0: the kernel's clock is read.
    rate: u64,
}

impl CpuClock {
    /// The kernel's clock.
    pub const KERNEL: CpuClock = CpuClock {
        set: Reading {
            ticks: 0,
            at: Nanos(0),
        },
        rate: 0,
    };

    /// `None` when the readings lie too close together or make no sense.
    fn between(begun: Reading, now: Reading) -> Option<CpuClock> {
        let passed = now.at.since(begun.at);
        let ticks = now.ticks.checked_sub(begun.ticks).filter(|n| *n > 0)?;
        let rate = (u128::from(passed.0) << 32) / u128::from(ticks);
        // From 100 MHz to 100 GHz.
        let sound = passed >= Counter::ENOUGH && (1 << 32) / 100 < rate && rate < 10 << 32;
        sound.then_some(CpuClock {
            set: now,
            rate: rate as u64,
        })
    }
}

impl Clock for CpuClock {
    #[inline(always)]
    fn now(&self) -> Nanos {
        if self.rate == 0 {
            return MonotonicClock.now();
        }
        // Another processor's counter may be a few ticks behind the one that
        // the clock was set by.
        let passed = ticks().unwrap_or(0).saturating_sub(self.set.ticks);
        let ns = (u128::from(passed) * u128::from(self.rate)) >> 32;
        Nanos(self.set.at.0 + ns as u64)
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
    fn the_rate_of_a_counter_is_known_in_a_moment() {
        let counter = Counter::begin(true);
        assert!(counter.clock().rate == 0, "the rate is not known yet");
        let clock = counter.clock_in_a_moment();
        assert_eq!(clock.rate != 0, cfg!(target_arch = "x86_64"));
    }

    #[test]
    fn a_counter_that_the_kernel_does_not_trust_is_not_read() {
        assert_eq!(Counter::begin(false).clock_in_a_moment().rate, 0);
    }

    #[test]
    fn the_rate_is_that_between_the_two_readings() {
        let reading = |ticks, ms: u64| Reading {
            ticks,
            at: Nanos(ms * 1_000_000),
        };
        let rate = |begun, now| CpuClock::between(begun, now).map(|clock| clock.rate);
        // 2 GHz.
        let check = |begun, now, expect| assert_eq!(rate(begun, now), expect);
        check(reading(0, 5), reading(200_000_000, 105), Some(1 << 31));
        // Too short, standing still, going back.
        check(reading(0, 5), reading(2_000_000, 6), None);
        check(reading(7, 5), reading(7, 105), None);
        check(reading(7, 5), reading(6, 105), None);
        // 10 kHz.
        check(reading(0, 5), reading(1_000, 105), None);
    }

    #[test]
    fn clones_of_a_manual_clock_share_the_time() {
        let clock = ManualClock::default();
        let other = clock.clone();
        clock.advance(Nanos(5));
        assert_eq!(other.now(), Nanos(5));
    }

    mod timing {
        use super::*;

        #[test]
        fn the_counter_tells_the_kernels_time() {
            let clock = Counter::begin(true).clock_in_a_moment();
            for _ in 0..20 {
                std::thread::sleep(std::time::Duration::from_millis(5));
                let (before, mine, after) =
                    (MonotonicClock.now(), clock.now(), MonotonicClock.now());
                // 100 ms at some millionths; setting it is true to less than 1 us.
                let early = before.since(mine);
                let late = mine.since(after);
                assert!(early.0.max(late.0) < 20_000, "{early} early, {late} late");
            }
        }
    }
}
