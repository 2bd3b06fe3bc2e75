//! Time as a parameter: the machine's monotonic clock, the same time read from the processor's
//! counter, and virtual time for tests.

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

/// A reading of the processor's counter, and the instant of `CLOCK_MONOTONIC` at which it was
/// taken.
#[derive(Debug, Clone, Copy)]
struct Reading {
    ticks: u64,
    at: Nanos,
}

impl Reading {
    /// Reads both at nearly the same time. Of several tries, takes the one whose two counter
    /// readings lie closest together.
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

/// Reads the counter that runs at a constant rate on all processors (the TSC).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ticks() -> Option<u64> {
    // SAFETY: reading the counter touches no memory.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

/// Always `None`: on other processors the kernel's clock is read.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn ticks() -> Option<u64> {
    None
}

/// The raw value of the processor's counter, to compare the counters of several processors;
/// `None` if it cannot be read.
pub fn counter() -> Option<u64> {
    settle();
    ticks()
}

/// Keeps the processor busy for `cycles` ticks of its counter. If the counter cannot be read,
/// repeats a loop as many times.
pub fn spin_cycles(cycles: u64) {
    let Some(start) = ticks() else {
        (0..cycles).for_each(|_| std::hint::spin_loop());
        return;
    };
    while cycles > 0 && ticks().is_some_and(|now| now.wrapping_sub(start) < cycles) {
        std::hint::spin_loop();
    }
}

/// Waits until all earlier instructions are complete, so that the counter is not read too early.
/// A system call does that by itself.
#[inline(always)]
pub fn settle() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a fence touches no memory.
    unsafe {
        core::arch::x86_64::_mm_lfence();
    }
}

/// Measures the rate of the processor's counter, from its creation on.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    begun: Option<Reading>,
    /// Set if virtual time replaces the machine's.
    simulated: Option<&'static SimulatedClock>,
}

impl Counter {
    /// Time from which on the rate is accurate enough. Each of its two readings is accurate to
    /// about 30 ns, and so the rate to 3 in a million.
    pub const ENOUGH: Nanos = Nanos(20_000_000);

    /// Starts measuring. `kept` is false if the kernel does not keep its own time by the
    /// counter, which may then differ between processors or stop. There is only the kernel's
    /// clock then.
    pub fn begin(kept: bool) -> Counter {
        Counter {
            begun: if kept { Reading::take() } else { None },
            simulated: None,
        }
    }

    /// The clock for a phase that starts now. It is set from the kernel's clock, with the rate
    /// measured since the start. Before [`Counter::ENOUGH`] has passed it is the kernel's clock
    /// itself.
    pub fn clock(&self) -> CpuClock {
        if let Some(clock) = self.simulated {
            return CpuClock {
                simulated: Some(WorkerTime { clock, worker: 0 }),
                ..CpuClock::KERNEL
            };
        }
        let now = self.begun.and_then(|begun| Some((begun, Reading::take()?)));
        now.and_then(|(begun, now)| CpuClock::between(begun, now))
            .unwrap_or(CpuClock::KERNEL)
    }

    /// Like [`Counter::clock`], but first sleeps until the rate is known.
    pub fn clock_in_a_moment(&self) -> CpuClock {
        if let Some(start) = self.begun {
            let left = Self::ENOUGH
                .0
                .saturating_sub(MonotonicClock.now().since(start.at).0);
            std::thread::sleep(Nanos(left).into());
        }
        self.clock()
    }
}

/// `CLOCK_MONOTONIC` as workers read it: from the processor's counter, at a third of the cost of
/// the kernel's code. Without the counter, the kernel's code is used.
///
/// It is accurate to 30 ns when it is set, and drifts from the kernel's clock by a few
/// millionths. So each phase gets a new one.
#[derive(Debug, Clone, Copy)]
pub struct CpuClock {
    set: Reading,
    /// Nanoseconds per tick, times 2^32. If 0, the kernel's clock or virtual time is read.
    rate: u64,
    /// Only checked if the rate is 0, so that reading the counter costs no test.
    simulated: Option<WorkerTime>,
}

impl CpuClock {
    /// The kernel's clock.
    pub const KERNEL: CpuClock = CpuClock {
        set: Reading {
            ticks: 0,
            at: Nanos(0),
        },
        rate: 0,
        simulated: None,
    };

    /// Returns the clock of this worker of the rank.
    pub fn of_worker(self, worker: u32) -> CpuClock {
        let simulated = self.simulated.map(|time| WorkerTime {
            worker: worker as usize,
            ..time
        });
        CpuClock { simulated, ..self }
    }

    /// Sleeps for `time`.
    pub fn sleep(&self, time: Nanos) {
        match self.simulated {
            None => std::thread::sleep(time.into()),
            Some(own) => own.clock.advance(own.worker, time),
        }
    }

    /// The clock from two readings; `None` if they are too close together or implausible.
    fn between(begun: Reading, now: Reading) -> Option<CpuClock> {
        let passed = now.at.since(begun.at);
        let ticks = now.ticks.checked_sub(begun.ticks).filter(|n| *n > 0)?;
        let rate = (u128::from(passed.0) << 32) / u128::from(ticks);
        // From 100 MHz to 100 GHz.
        let sound = passed >= Counter::ENOUGH && (1 << 32) / 100 < rate && rate < 10 << 32;
        sound.then_some(CpuClock {
            set: now,
            rate: rate as u64,
            simulated: None,
        })
    }
}

impl Clock for CpuClock {
    #[inline(always)]
    fn now(&self) -> Nanos {
        if self.rate == 0 {
            return match self.simulated {
                None => MonotonicClock.now(),
                Some(own) => own.clock.read(own.worker),
            };
        }
        // The counter of another processor may lag a few ticks after the one that set the clock.
        let passed = ticks().unwrap_or(0).saturating_sub(self.set.ticks);
        let ns = (u128::from(passed) * u128::from(self.rate)) >> 32;
        Nanos(self.set.at.0 + ns as u64)
    }
}

/// Virtual time for tests: what workers do by the clock depends on nothing else.
///
/// Each worker of a rank has its own time, and all have the same origin. A reading advances it
/// by a step, a sleep by its length.
#[derive(Debug)]
pub struct SimulatedClock {
    step: Nanos,
    /// The time of each worker, ns.
    times: [AtomicU64; SimulatedClock::WORKERS],
    /// An instant and a delay: the reading or sleep that passes the instant ends this much
    /// later.
    stall: Option<(Nanos, Nanos)>,
}

/// A worker's own virtual time.
#[derive(Debug, Clone, Copy)]
struct WorkerTime {
    clock: &'static SimulatedClock,
    worker: usize,
}

impl SimulatedClock {
    /// Origin of every worker's time.
    pub const ORIGIN: Nanos = Nanos(1_000_000_000);
    /// Most workers of a rank.
    const WORKERS: usize = 64;

    /// Creates a clock that is never freed, so that workers can copy it.
    pub fn new(step: Nanos) -> &'static SimulatedClock {
        SimulatedClock::make(step, None)
    }

    /// Creates a clock of a machine that stalls: a worker's reading or sleep that passes `at`
    /// ends later by `by`.
    pub fn stalling(step: Nanos, at: Nanos, by: Nanos) -> &'static SimulatedClock {
        SimulatedClock::make(step, Some((at, by)))
    }

    fn make(step: Nanos, stall: Option<(Nanos, Nanos)>) -> &'static SimulatedClock {
        let times = std::array::from_fn(|_| AtomicU64::new(SimulatedClock::ORIGIN.0));
        Box::leak(Box::new(SimulatedClock { step, times, stall }))
    }

    /// The counter that gives workers this clock.
    pub fn counter(&'static self) -> Counter {
        Counter {
            begun: None,
            simulated: Some(self),
        }
    }

    /// Advances a worker's time by `by`.
    pub fn advance(&self, worker: usize, by: Nanos) {
        self.pass(worker, by);
    }

    /// Reads a worker's time.
    #[cold]
    fn read(&self, worker: usize) -> Nanos {
        self.pass(worker, self.step)
    }

    fn pass(&self, worker: usize, by: Nanos) -> Nanos {
        let passed = |before: u64| {
            let after = before + by.0;
            let stall = self.stall.filter(|(at, _)| before < at.0 && at.0 <= after);
            after + stall.map_or(0, |(_, late)| late.0)
        };
        let moved = self.times[worker].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
            Some(passed(now))
        });
        // The update always succeeds.
        let (Ok(before) | Err(before)) = moved;
        Nanos(passed(before))
    }
}

/// Reads the latest time of all workers, without advancing any.
impl Clock for &'static SimulatedClock {
    fn now(&self) -> Nanos {
        let times = self.times.iter().map(|time| time.load(Ordering::Relaxed));
        Nanos(times.max().unwrap_or(SimulatedClock::ORIGIN.0))
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
        // Too short, without progress, backwards.
        check(reading(0, 5), reading(2_000_000, 6), None);
        check(reading(7, 5), reading(7, 105), None);
        check(reading(7, 5), reading(6, 105), None);
        // 10 kHz.
        check(reading(0, 5), reading(1_000, 105), None);
    }

    #[test]
    fn virtual_time_moves_with_the_readings_and_sleeps_of_its_own_worker() {
        let simulated = SimulatedClock::new(Nanos(10));
        let after = |now: Nanos| now.since(SimulatedClock::ORIGIN).0;
        let [one, two] = [0, 1].map(|n| simulated.counter().clock().of_worker(n));
        assert_eq!([one.now(), one.now(), two.now()].map(after), [10, 20, 10]);
        two.sleep(Nanos(1_000_000_000_000));
        assert_eq!([one.now(), two.now()].map(after), [30, 1_000_000_000_020]);
        let latest = [simulated.now(), simulated.now()].map(after);
        assert_eq!(latest, [1_000_000_000_020; 2], "the group moves no time");
        simulated.advance(0, Nanos(5));
        assert_eq!(after(one.now()), 45);
    }

    #[test]
    fn a_stall_lies_between_the_readings_around_its_instant() {
        let at = Nanos(SimulatedClock::ORIGIN.0 + 25);
        let clock = SimulatedClock::stalling(Nanos(10), at, Nanos(100));
        let clock = clock.counter().clock();
        let readings = [(); 4].map(|()| clock.now().since(SimulatedClock::ORIGIN).0);
        assert_eq!(readings, [10, 20, 130, 140]);
        let clock = SimulatedClock::stalling(Nanos(10), at, Nanos(100));
        clock.counter().clock().sleep(Nanos(30));
        assert_eq!(clock.now().since(SimulatedClock::ORIGIN), Nanos(130));
    }

    mod timing {
        use super::*;

        #[test]
        fn the_counter_tells_the_kernels_time() {
            let clock = Counter::begin(true).clock_in_a_moment();
            for _ in 0..20 {
                std::thread::sleep(std::time::Duration::from_millis(5));
                let (before, now, after) =
                    (MonotonicClock.now(), clock.now(), MonotonicClock.now());
                // The clock runs for 100 ms and drifts by some millionths; it was set to within
                // 1 us.
                let early = before.since(now);
                let late = now.since(after);
                assert!(early.0.max(late.0) < 20_000, "{early} early, {late} late");
            }
        }
    }
}
