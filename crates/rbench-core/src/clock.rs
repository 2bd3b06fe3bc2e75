//! Time as a parameter: the monotonic clock of the machine, the same read from
//! the processor's counter, and virtual time for tests.

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
pub struct Counter {
    begun: Option<Reading>,
    /// Instead of the machine's time.
    simulated: Option<&'static SimulatedClock>,
}

impl Counter {
    /// From so long on the rate is known well enough: each of the two readings
    /// that it comes from is true to about 30 ns, so the rate to 3 in a million.
    pub const ENOUGH: Nanos = Nanos(20_000_000);

    /// Begins; with `kept` false (the kernel does not keep its own time by the
    /// counter, so it may differ between processors or stand still) there will
    /// only be the kernel's clock.
    pub fn begin(kept: bool) -> Counter {
        Counter {
            begun: if kept { Reading::take() } else { None },
            simulated: None,
        }
    }

    /// The clock for what begins now: set by the kernel's at this moment, with
    /// the rate that was measured since the beginning. Before
    /// [`Counter::ENOUGH`] has passed it is the kernel's clock itself.
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

    /// The same; sleeps until the rate is known.
    pub fn clock_in_a_moment(&self) -> CpuClock {
        if let Some(begun) = self.begun {
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
    /// ns for each tick, times 2^32; 0: the kernel's clock is read, or virtual time.
    rate: u64,
    /// Only looked at where the rate is 0: the counter is read without asking.
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

    /// The same clock as this worker of the rank reads it.
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
        // Another processor's counter may be a few ticks behind the one that
        // the clock was set by.
        let passed = ticks().unwrap_or(0).saturating_sub(self.set.ticks);
        let ns = (u128::from(passed) * u128::from(self.rate)) >> 32;
        Nanos(self.set.at.0 + ns as u64)
    }
}

/// Virtual time for tests: what workers do by the clock then depends on nothing else.
///
/// Each worker of a rank has a time of its own, from the same origin on. A reading moves it on
/// by a step, and a sleep to its end.
#[derive(Debug)]
pub struct SimulatedClock {
    step: Nanos,
    /// The time of each worker, ns.
    times: [AtomicU64; SimulatedClock::WORKERS],
    /// What passes the first instant, a reading or a sleep, ends later by the second.
    stall: Option<(Nanos, Nanos)>,
}

/// A worker's own virtual time.
#[derive(Debug, Clone, Copy)]
struct WorkerTime {
    clock: &'static SimulatedClock,
    worker: usize,
}

impl SimulatedClock {
    /// Where the time of all workers begins.
    pub const ORIGIN: Nanos = Nanos(1_000_000_000);
    /// Workers of a rank, at most.
    const WORKERS: usize = 64;

    /// A clock that is never freed: workers copy it freely.
    pub fn new(step: Nanos) -> &'static SimulatedClock {
        SimulatedClock::make(step, None)
    }

    /// The same on a machine that stands still for a time: the reading or sleep of a worker that
    /// passes `at` ends later by `by`.
    pub fn stalling(step: Nanos, at: Nanos, by: Nanos) -> &'static SimulatedClock {
        SimulatedClock::make(step, Some((at, by)))
    }

    fn make(step: Nanos, stall: Option<(Nanos, Nanos)>) -> &'static SimulatedClock {
        let times = std::array::from_fn(|_| AtomicU64::new(SimulatedClock::ORIGIN.0));
        Box::leak(Box::new(SimulatedClock { step, times, stall }))
    }

    /// What workers read it by.
    pub fn counter(&'static self) -> Counter {
        Counter {
            begun: None,
            simulated: Some(self),
        }
    }

    /// Moves a worker's time on by `by`: what it does then has taken as long.
    pub fn advance(&self, worker: usize, by: Nanos) {
        self.pass(worker, by);
    }

    /// A worker's reading.
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
        // It is always moved.
        let (Ok(before) | Err(before)) = moved;
        Nanos(passed(before))
    }
}

/// The latest time of any worker; this reading moves none.
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
        // Too short, standing still, going back.
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
