//! Requests in flight: the taken slots, completions not yet recorded, and the time with any in
//! flight.

use std::collections::VecDeque;

use nix::errno::Errno;
use rbench_core::{Clock as _, CpuClock, Nanos};
use rbench_sys::Engine;
use rbench_sys::engine::{Completion, NamesInFlight};

use crate::meter::{Calls, Meter};

/// Bytes that take longer to fill in than a call that submits an operation.
pub const MUCH: usize = 16 << 10;

/// Rule for waiting for completions.
#[derive(Debug, Clone, Copy)]
pub enum Wait {
    /// Not at all.
    Poll,
    /// Until this number is complete.
    Least(usize),
    /// Until one is, for at most this time.
    For(Nanos),
}

/// Owner of requests in flight.
pub trait Collect {
    /// Appends completions to `done`, waiting as `wait` says.
    ///
    /// # Errors
    /// When it fails itself.
    fn collect(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), Errno>;

    /// Submits the requests that follow the completed ones, if any. Its time is not part of
    /// requests that have ended before.
    ///
    /// # Errors
    /// When it fails itself.
    #[inline]
    fn hand_over(&mut self) -> Result<(), Errno> {
        Ok(())
    }
}

impl Collect for dyn Engine {
    #[inline]
    fn collect(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), Errno> {
        match wait {
            Wait::Poll => self.poll(done),
            Wait::Least(least) if least > 1 => self.wait_many(least, done),
            Wait::Least(_) => self.wait(done),
            Wait::For(time) => self.wait_for(done, time),
        }
    }
}

impl Collect for NamesInFlight {
    #[inline]
    fn collect(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), Errno> {
        match wait {
            Wait::Poll => self.wait_for(done, Nanos(0)),
            Wait::Least(_) => self.wait(done),
            Wait::For(time) => self.wait_for(done, time),
        }
    }

    #[inline]
    fn hand_over(&mut self) -> Result<(), Errno> {
        NamesInFlight::hand_over(self)
    }
}

/// The slots of a worker.
#[derive(Debug)]
pub struct Queue {
    slots: usize,
    free: Vec<usize>,
    /// Completions from the engine; empty in between.
    done: Vec<Completion>,
    /// Completions, each with its end.
    complete: VecDeque<(Completion, Nanos)>,
    in_flight: usize,
    calls: Calls,
    /// Reason why the engine itself failed: it takes no further request.
    failed: Option<Errno>,
}

impl Queue {
    /// Creates a queue of `slots` slots, all free.
    pub fn new(slots: usize) -> Queue {
        Queue {
            slots,
            free: (0..slots).rev().collect(),
            done: Vec::with_capacity(slots),
            complete: VecDeque::with_capacity(slots),
            in_flight: 0,
            calls: Calls::default(),
            failed: None,
        }
    }

    /// Returns the number of slots.
    #[inline]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Takes a free slot, if any.
    #[inline]
    pub fn take(&mut self) -> Option<usize> {
        self.free.pop()
    }

    /// Returns a taken slot.
    #[inline]
    pub fn give_back(&mut self, slot: usize) {
        self.free.push(slot);
    }

    /// Returns the number of taken slots: in flight, complete and not yet recorded, or being
    /// prepared.
    #[inline]
    pub fn taken(&self) -> usize {
        self.slots - self.free.len()
    }

    /// Returns the number of requests in the engine.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns whether nothing is in flight and nothing is to be recorded.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.complete.is_empty()
    }

    /// Returns whether calls overlap: with one slot they are sequential and need no account.
    #[inline]
    fn overlaps(&self) -> bool {
        self.slots > 1
    }

    /// Returns whether all completions have been recorded.
    #[inline]
    pub fn all_noted(&self) -> bool {
        self.complete.is_empty()
    }

    /// Returns why the engine can take no further request, if it cannot: it may still hold requests
    /// that ended with its failure.
    pub fn failed(&self) -> Option<Errno> {
        self.failed
    }

    /// Records that the engine received `requests` requests at `now`.
    #[inline]
    pub fn submitted(&mut self, requests: usize, now: Nanos) {
        self.in_flight += requests;
        if self.overlaps() {
            self.calls.begun(now);
        }
    }

    /// Records that the operation in a slot has ended at `end` without any request.
    pub fn ended_at_once(&mut self, slot: usize, result: Result<usize, Errno>, end: Nanos) {
        self.complete.push_back((Completion { slot, result }, end));
    }

    /// Records the duration of an operation, for the account of those in no row.
    #[inline]
    pub fn took(&mut self, duration: Nanos) {
        self.calls.took(duration);
    }

    /// Records a call besides the queue, while nothing is in flight.
    pub fn called(&mut self, start: Nanos, end: Nanos) {
        self.calls.begun(start);
        self.calls.idle(end);
        self.calls.took(end.since(start));
    }

    /// Returns the next completion, with its end.
    #[inline]
    pub fn next(&mut self) -> Option<(Completion, Nanos)> {
        self.complete.pop_front()
    }

    /// Asks the engine, or the ring of names, for completions; all of them have ended by the clock
    /// reading after it.
    ///
    /// # Errors
    /// When the engine itself fails: see [`Queue::fail`].
    #[inline]
    pub fn reap<S: Collect + ?Sized>(
        &mut self,
        engine: &mut S,
        clock: CpuClock,
        wait: Wait,
        held: Option<usize>,
    ) -> Result<(), Errno> {
        let waited = engine.collect(wait, &mut self.done);
        let end = clock.now();
        let waited = waited.and_then(|()| engine.hand_over());
        self.in_flight -= self.done.len();
        let done = self.done.drain(..).map(|completion| (completion, end));
        self.complete.extend(done);
        if let Err(errno) = waited {
            self.fail(errno, end, held);
        }
        if self.overlaps() && self.in_flight == 0 {
            self.calls.idle(end);
        }
        waited
    }

    /// Waits for the request of `slot`; other completions meanwhile are recorded later with their
    /// own ends.
    pub fn reap_slot(
        &mut self,
        engine: &mut dyn Engine,
        clock: CpuClock,
        slot: usize,
    ) -> (Result<usize, Errno>, Nanos) {
        let (result, end) = loop {
            let waited = engine.wait(&mut self.done);
            let end = clock.now();
            let mine = self.done.iter().position(|c| c.slot == slot);
            let mine = mine.map(|at| self.done.swap_remove(at).result);
            self.in_flight -= self.done.len();
            self.complete.extend(self.done.drain(..).map(|c| (c, end)));
            match (mine, waited) {
                (Some(result), _) => break (result, end),
                (None, Err(errno)) => {
                    self.fail(errno, end, Some(slot));
                    return (Err(errno), end);
                }
                (None, Ok(())) => {}
            }
        };
        self.in_flight -= 1;
        if self.in_flight == 0 {
            self.calls.idle(end);
        }
        (result, end)
    }

    /// Handles a failure of the engine itself at `end`: nothing in flight will complete, so all of
    /// it ends with that error. `held`: a slot that is prepared and was not submitted.
    #[cold]
    pub fn fail(&mut self, errno: Errno, end: Nanos, held: Option<usize>) {
        self.in_flight = 0;
        self.failed = self.failed.or(Some(errno));
        self.calls.idle(end);
        let known = |slot: &usize| {
            self.free.contains(slot)
                || held == Some(*slot)
                || self.complete.iter().any(|(c, _)| c.slot == *slot)
        };
        let lost: Vec<usize> = (0..self.slots).filter(|slot| !known(slot)).collect();
        let result = Err(errno);
        let lost = lost.into_iter().map(|slot| Completion { slot, result });
        self.complete
            .extend(lost.map(|completion| (completion, end)));
    }

    /// Hands the account of calls to the worker's meter.
    pub fn tell(&self, meter: &mut Meter) {
        meter.overlapped(self.calls, self.slots as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Remembers the time of the submit request.
    struct Follows(Option<Nanos>);

    impl Collect for Follows {
        fn collect(&mut self, _wait: Wait, done: &mut Vec<Completion>) -> Result<(), Errno> {
            let result = Ok(7);
            done.push(Completion { slot: 0, result });
            Ok(())
        }

        fn hand_over(&mut self) -> Result<(), Errno> {
            self.0 = Some(CpuClock::KERNEL.now());
            Err(Errno::EBADF)
        }
    }

    #[test]
    fn what_has_ended_is_not_longer_by_what_follows_and_ends_well_where_that_fails() {
        let (mut queue, mut ring) = (Queue::new(2), Follows(None));
        assert_eq!((queue.take(), queue.take()), (Some(0), Some(1)));
        queue.submitted(2, CpuClock::KERNEL.now());
        let reaped = queue.reap(&mut ring, CpuClock::KERNEL, Wait::Least(1), None);
        let ended = [queue.next(), queue.next()].map(|next| next.expect("both have ended"));
        assert_eq!(ended.map(|(c, _)| c.result), [Ok(7), Err(Errno::EBADF)]);
        assert!(ring.0.is_some_and(|asked| ended[0].1 <= asked), "it was");
        assert_eq!(
            (reaped, queue.failed()),
            (Err(Errno::EBADF), Some(Errno::EBADF))
        );
        assert!(queue.is_idle());
    }
}
