//! Timing of a worker: the common start, intended starts, the deadline, and the request to stop.

mod exits;
mod flow;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rbench_core::{Clock, CpuClock, Nanos};
use rbench_plan::arrival::Schedule;

pub use exits::Exits;
pub use flow::{Flow, FlowShare, RampBytes};

/// Time before an instant at which a worker stops sleeping and spins: the kernel wakes a thread
/// that much late on a busy machine.
const SPIN: Nanos = Nanos(100_000);

/// Longest sleep of a waiting worker between checks for a stop.
const NAP: Nanos = Nanos(50_000_000);

/// Waits until `at`: sleeps until shortly before, then spins.
pub fn wait_until(clock: CpuClock, at: Nanos) {
    loop {
        let left = at.since(clock.now());
        if left.0 == 0 {
            return;
        }
        if left > SPIN {
            clock.sleep(Nanos(left.0 - SPIN.0));
        } else {
            std::hint::spin_loop();
        }
    }
}

/// The group's request to end the phase at the next operation, or at an instant; clones share it.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<Flag>);

#[derive(Debug)]
struct Flag {
    /// Instant by the host's clock from which on no operation starts: [`Flag::NEVER`] without a
    /// request, [`Flag::AT_ONCE`] once the flag is raised.
    from: AtomicU64,
    /// Set if nothing more is to be done on the target.
    abandoned: AtomicBool,
    /// The flag that it follows.
    of_all: Option<StopFlag>,
    /// Flags raised with it.
    followers: Mutex<Vec<Weak<Flag>>>,
}

impl Flag {
    const NEVER: u64 = u64::MAX;
    const AT_ONCE: u64 = 0;
}

impl Default for Flag {
    fn default() -> Flag {
        Flag {
            from: AtomicU64::new(Flag::NEVER),
            abandoned: AtomicBool::new(false),
            of_all: None,
            followers: Mutex::default(),
        }
    }
}

impl StopFlag {
    /// Requests a stop.
    pub fn raise(&self) {
        self.0.from.store(Flag::AT_ONCE, Ordering::Relaxed);
        self.each_follower(StopFlag::raise);
    }

    fn each_follower(&self, act: fn(&StopFlag)) {
        let followers = self.0.followers.lock();
        let followers = followers.unwrap_or_else(PoisonError::into_inner);
        let followers = followers.iter().filter_map(Weak::upgrade);
        followers.for_each(|follower| act(&StopFlag(follower)));
    }

    /// Requests a stop of this flag and its followers. Nothing more is to be done on the target,
    /// not even the steps at the end of the work.
    pub fn abandon(&self) {
        self.0.abandoned.store(true, Ordering::Relaxed);
        self.each_follower(StopFlag::abandon);
        self.raise();
    }

    /// Returns whether a stop was requested.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.0.from.load(Ordering::Relaxed) == Flag::AT_ONCE
    }

    /// Requests an end in time, like a deadline: operations due before it are done, and so are the
    /// steps at the end of the work. Does not affect followers.
    pub fn end_at(&self, at: Nanos) {
        let at = at.0.max(Flag::AT_ONCE + 1);
        self.0.from.fetch_min(at, Ordering::Relaxed);
    }

    /// Returns whether no operation may start at `now`.
    #[inline]
    fn is_over(&self, now: Nanos) -> bool {
        now.0 >= self.0.from.load(Ordering::Relaxed)
    }

    /// Returns the requested end; `None`: none.
    fn end(&self) -> Option<Nanos> {
        let from = self.0.from.load(Ordering::Relaxed);
        (from != Flag::NEVER).then_some(Nanos(from))
    }

    /// Returns the flag that this one follows, or itself.
    pub fn of_all(&self) -> StopFlag {
        self.0.of_all.clone().unwrap_or_else(|| self.clone())
    }

    /// Returns whether the stop concerns all, not only this flag, or the target was abandoned.
    pub fn is_of_all(&self) -> bool {
        self.0.abandoned.load(Ordering::Relaxed)
            || self.0.of_all.as_ref().unwrap_or(self).is_raised()
    }

    /// Creates a flag that is raised with this one, and can be raised by itself.
    pub fn follower(&self) -> StopFlag {
        let follower = StopFlag(Arc::new(Flag {
            of_all: Some(self.clone()),
            ..Flag::default()
        }));
        let followers = self.0.followers.lock();
        let mut followers = followers.unwrap_or_else(PoisonError::into_inner);
        followers.retain(|other| other.strong_count() > 0);
        followers.push(Arc::downgrade(&follower.0));
        drop(followers);
        if self.is_raised() {
            follower.raise();
        }
        follower
    }
}

/// The worker's account of its waits, which are not part of the tool's time; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Waits(Arc<Account>);

#[derive(Debug, Default)]
struct Account {
    /// Sum in ns.
    waited: AtomicU64,
    /// Last reported instant at which the worker was at work or waited.
    until: AtomicU64,
}

impl Waits {
    /// Adds a wait. Only the worker itself writes here.
    pub fn add(&self, from: Nanos, until: Nanos) {
        let before = self.0.waited.load(Ordering::Relaxed);
        let waited = before + until.since(from).0;
        self.0.waited.store(waited, Ordering::Relaxed);
        self.at_work_until(until);
    }

    /// Records that the worker was at work until then.
    pub fn at_work_until(&self, until: Nanos) {
        self.0.until.store(until.0, Ordering::Relaxed);
    }

    /// Takes the time waited since the last call, and the last instant at which the worker was
    /// known to be at work; zero without reports.
    pub fn take(&self) -> (Nanos, Nanos) {
        let take = |word: &AtomicU64| Nanos(word.swap(0, Ordering::Relaxed));
        (take(&self.0.waited), take(&self.0.until))
    }
}

/// Timing limits of a running worker.
#[derive(Debug, Clone)]
pub struct Gate {
    /// The clock of all timing.
    pub clock: CpuClock,
    /// The common start on this clock.
    pub start: Nanos,
    /// Stop issuing at this instant.
    pub deadline: Option<Nanos>,
    /// Stop issuing when raised, or at the instant that it names.
    pub stop: StopFlag,
    /// Account of its waits.
    pub waits: Waits,
}

impl Gate {
    /// Creates the gate of a worker that nothing stops and that has not waited.
    pub fn new(clock: CpuClock, start: Nanos) -> Gate {
        Gate {
            clock,
            start,
            deadline: None,
            stop: StopFlag::default(),
            waits: Waits::default(),
        }
    }

    /// Waits for the common start, waking up in between to check for a stop; returns how late it
    /// was met, in ns. An earlier stop ends the wait; that counts as met.
    pub fn wait_for_start(&self) -> i64 {
        loop {
            let now = self.clock.now();
            let left = self.start.since(now);
            if left.0 == 0 {
                return i64::try_from(now.since(self.start).0).unwrap_or(i64::MAX);
            }
            if self.stop.is_raised() {
                return 0;
            }
            wait_until(self.clock, self.start.min(Nanos(now.0 + NAP.0)));
        }
    }

    /// Returns whether no further operation may start at `now`.
    #[inline]
    pub fn closed(&self, now: Nanos) -> bool {
        self.stop.is_over(now) || self.deadline.is_some_and(|d| now >= d)
    }

    /// Returns the instant from which on none starts: the deadline, or an earlier requested end.
    pub fn end(&self) -> Option<Nanos> {
        self.deadline.into_iter().chain(self.stop.end()).min()
    }

    /// Returns the end of the time, if it is over and nothing else has ended the work. An open loop
    /// covers all of this time, however early its last operation was.
    pub fn end_of_time(&self) -> Option<Nanos> {
        let end = self.end().filter(|_| !self.stop.is_raised())?;
        (self.clock.now() >= end).then_some(end)
    }

    /// Returns the operations that were due before the deadline and not started: the one with the
    /// intended start `waiting`, and those that no worker has taken from the schedule. At most
    /// `left`. Zero without a deadline and after a stop.
    pub fn missed(&self, schedule: &Schedule, waiting: Option<Nanos>, left: u64) -> u64 {
        match self.end() {
            Some(end) if !self.stop.is_raised() => {
                let waits = u64::from(waiting.is_some_and(|at| at < end)).min(left);
                waits + schedule.take_before(end.since(self.start), left - waits)
            }
            _ => 0,
        }
    }

    /// Waits until `at`, at most until the deadline, waking up in between to check for a stop.
    /// Returns whether an operation may start then.
    pub fn wait(&self, at: Nanos) -> bool {
        self.pass(at, |until| wait_until(self.clock, until))
    }

    /// Waits the same way without spinning, where nobody measures the end: it may be late by the
    /// kernel's time to wake a thread.
    pub fn nap_until(&self, at: Nanos) -> bool {
        self.pass(at, |until| {
            self.clock.sleep(until.since(self.clock.now()));
        })
    }

    /// Waits until `at` like `wait`: piece by piece, each until an instant.
    fn pass(&self, at: Nanos, wait: impl Fn(Nanos)) -> bool {
        let target = self.deadline.map_or(at, |d| d.min(at));
        let mut now = self.clock.now();
        let begun = now;
        loop {
            let closed = self.closed(now);
            if closed || now >= target {
                self.waits.add(begun, now);
                return !closed;
            }
            wait(target.min(Nanos(now.0 + NAP.0)));
            now = self.clock.now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use rbench_core::{Rank, SimulatedClock};
    use rbench_plan::arrival::{Arrival, Workers};

    #[test]
    fn waiting_ends_at_the_instant_and_not_before() {
        let simulated = SimulatedClock::new(Nanos(1_000));
        for clock in [simulated.counter().clock(), CpuClock::KERNEL] {
            let at = Nanos(clock.now().0 + 5_000_000);
            wait_until(clock, at);
            assert!(clock.now() >= at);
        }
        // Includes the reading that sees it, and the one after it.
        let clock = simulated.counter().clock();
        let at = Nanos(clock.now().0 + 5_000_000);
        wait_until(clock, at);
        assert!(clock.now().since(at) <= Nanos(2_000));
    }

    #[test]
    fn a_raised_stop_ends_the_wait_for_a_start_that_is_an_hour_away() {
        let clock = CpuClock::KERNEL;
        let gate = Gate::new(clock, Nanos(clock.now().0 + 3_600_000_000_000));
        let stop = gate.stop.clone();
        std::thread::scope(|s| {
            let waits = s.spawn(|| gate.wait_for_start());
            stop.raise();
            assert_eq!(waits.join().expect("no panic"), 0, "not early");
        });
        assert!(clock.now() < gate.start);
    }

    #[test]
    fn the_wait_for_a_start_tells_how_late_it_is() {
        let clock = CpuClock::KERNEL;
        let passed = Gate::new(clock, Nanos(clock.now().0 - 5_000_000));
        assert!(passed.wait_for_start() >= 5_000_000);
        let soon = Gate::new(clock, Nanos(clock.now().0 + 1_000_000));
        assert!(soon.wait_for_start() >= 0 && clock.now() >= soon.start);
    }

    #[test]
    fn a_flag_is_raised_with_the_one_that_it_follows_and_not_the_other_way() {
        let all = StopFlag::default();
        let [one, two] = [all.follower(), all.follower()];
        one.raise();
        assert!(one.is_raised() && !one.is_of_all());
        assert!(!two.is_raised() && !all.is_raised());
        all.raise();
        assert!(two.is_raised() && two.is_of_all() && one.is_of_all());
        let job = StopFlag::default().follower();
        let worker = job.follower();
        job.abandon();
        assert!(job.is_raised() && job.is_of_all());
        assert!(worker.is_raised() && worker.is_of_all());
        assert!(all.follower().is_raised());
    }

    #[test]
    fn an_end_that_was_asked_for_is_a_deadline_and_no_stop() {
        let all = StopFlag::default();
        let gate = Gate {
            deadline: Some(Nanos(900)),
            stop: all.follower(),
            ..Gate::new(CpuClock::KERNEL, Nanos(100))
        };
        assert_eq!(gate.end(), Some(Nanos(900)));
        gate.stop.end_at(Nanos(500));
        gate.stop.end_at(Nanos(700));
        assert!(!gate.closed(Nanos(499)) && gate.closed(Nanos(500)));
        assert_eq!(gate.end(), Some(Nanos(500)), "the earliest holds");
        assert!(!gate.stop.is_raised() && !all.is_raised());
        assert_eq!(all.end(), None, "others go on");
        // One per nanosecond, starting at 100.
        let one = Workers::of_rank(Rank(0), 1, 1);
        let schedule = || Schedule::new(Arrival::Uniform, 1e9, one, &[1]);
        assert_eq!(gate.missed(&schedule(), Some(Nanos(500)), 10), 10);
        assert_eq!(gate.missed(&schedule(), Some(Nanos(500)), 10_000), 400);
        assert_eq!(gate.missed(&schedule(), Some(Nanos(499)), 10_000), 401);
        assert_eq!(gate.missed(&schedule(), None, 0), 0);
        gate.stop.of_all().raise();
        assert!(gate.stop.is_raised() && gate.closed(Nanos(0)));
        assert_eq!(gate.missed(&schedule(), Some(Nanos(400)), 10_000), 0);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "procfs is not a target")]
    fn a_nap_gives_the_processor_away_however_short_it_is() {
        let clock = CpuClock::KERNEL;
        let gate = Gate::new(clock, clock.now());
        let given_away = || -> u64 {
            let status = std::fs::read_to_string("/proc/thread-self/status").expect("it is there");
            let line = |line: &str| {
                line.strip_prefix("voluntary_ctxt_switches:")?
                    .trim()
                    .parse()
                    .ok()
            };
            status.lines().find_map(line).expect("every Linux tells")
        };
        let before = given_away();
        // If another thread runs in between, the time is over before it naps.
        let begun = std::time::Instant::now();
        while given_away() < before + 10 {
            assert!(begun.elapsed() < Duration::from_secs(120), "it spins");
            let at = Nanos(clock.now().0 + SPIN.0 * 9 / 10);
            assert!(gate.nap_until(at) && clock.now() >= at);
        }
    }

    #[test]
    fn a_raised_stop_ends_the_wait_early() {
        let clock = CpuClock::KERNEL;
        let gate = Gate::new(clock, clock.now());
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
