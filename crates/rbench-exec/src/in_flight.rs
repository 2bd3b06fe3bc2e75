//! Several operations of one worker in flight: the loop that keeps a ring of names filled.
//!
//! Like the loop of blocks in flight it works on a [`Queue`] of slots: what may start is prepared
//! in a free one, all that was prepared starts at one reading of the clock, and an operation
//! ends at the first reading after the call that brought its completion. Operations that are to start
//! later (pauses, intended starts) wait beside those in flight. What they are, and what becomes of
//! them, a [`Feed`] says: items of a tree ([`crate::ops`]) or steps of scripts ([`crate::steps`]).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use nix::errno::Errno;
use rbench_core::{Clock as _, Failure, Nanos, OpKind};
use rbench_sys::Fs;
use rbench_sys::engine::{Completion, NamesInFlight};

use crate::meter::Meter;
use crate::pace::Gate;
use crate::queue::{MUCH, Queue, Wait};

/// The next step of a slot.
pub enum Next {
    /// An operation, which is prepared.
    Ready {
        /// It does not start earlier; whether that is an intended start, from which response times
        /// count.
        at: Option<(Nanos, bool)>,
        /// It begins something that has a time of its own: nothing else begins before it.
        begins: bool,
        /// Bytes of data that were filled in for it.
        bytes: usize,
    },
    /// Something else was done in its place: it is to be asked again.
    Again,
    /// Nothing before that instant: then it is to be asked again. Whether it is an intended start.
    At(Nanos, bool),
    /// The slot is free, and nothing begins in it before that instant.
    Free(Option<Nanos>),
    /// The next operation has to wait for one in flight.
    Behind,
    /// Nothing any more, in any slot that is free.
    End,
}

/// The state of a slot after its operation has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Its slot is free.
    Free,
    /// The next operation of the slot follows, unless the time is over.
    Next,
    /// Like `Next`, whatever the time.
    Rest,
}

/// The result of an operation.
#[derive(Clone, Copy)]
pub struct Ended {
    /// Bytes that it moved, or the first error.
    pub result: Result<usize, Errno>,
    /// Its start.
    pub start: Nanos,
    /// Its end.
    pub end: Nanos,
    /// The ring takes nothing more.
    pub is_last: bool,
}

/// The operations of a worker, several at a time.
pub trait Feed {
    /// The state of the operation in a slot.
    type Place: Default;

    /// Prepares what comes next in a slot with nothing in flight. Outside the timer.
    fn next(
        &mut self,
        slot: usize,
        places: &mut [Self::Place],
        ring: &mut NamesInFlight,
        to: (&Gate, &mut Meter),
    ) -> Next;

    /// Returns true if it is done although the time is over, as a part of it was done.
    fn is_amid(&self, _place: &Self::Place) -> bool {
        false
    }

    /// It does not start, and is the first one if the worker goes on.
    fn put_back(&mut self, slot: usize, place: &mut Self::Place);

    /// Starts it; false: there is nothing for the ring to do. Inside the timer.
    fn submit(&self, slot: usize, place: &Self::Place, ring: &mut NamesInFlight) -> bool;

    /// Returns true if it is an operation of a row; otherwise it comes before or after one.
    fn is_timed(&self, _place: &Self::Place) -> bool {
        true
    }

    /// Records what became of it. Outside the timer.
    fn ended(
        &mut self,
        slot: usize,
        place: &mut Self::Place,
        ended: Ended,
        ring: &mut NamesInFlight,
        to: (&Gate, &mut Meter),
    ) -> Then;

    /// Returns true if the next operation is done alone.
    fn is_alone(&self) -> bool {
        false
    }

    /// Returns true if operations have intended starts.
    fn is_paced(&self) -> bool;
}

/// The stage of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing: it is free, or goes no further.
    Idle,
    /// It is to be asked what comes next, at its time.
    Asks,
    /// Nothing begins in it before its time.
    Rests,
    /// An operation is prepared.
    Prepared,
    /// It is in flight since then.
    UnderWay(Nanos),
}

/// The context of a run.
struct Work<'a, F> {
    feed: &'a mut F,
    gate: &'a Gate,
    meter: &'a mut Meter,
}

/// Operations in flight.
pub struct InFlight<P> {
    ring: NamesInFlight,
    queue: Queue,
    stages: Vec<Stage>,
    places: Vec<P>,
    /// Slots whose operations start next.
    pending: Vec<usize>,
    /// Slots that wait for an instant.
    waiting: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// The slot of what was prepared ahead of its time; whether that is an intended start.
    ahead: Option<(usize, bool)>,
    /// There is nothing more to begin.
    over: bool,
}

impl<P: Default> InFlight<P> {
    /// Makes room for `depth` operations, each of up to `bytes` and `calls`, and for `files` other than
    /// theirs; paths are relative to the directory of `fs`, which is dropped later. `op` is for failures.
    ///
    /// # Errors
    /// What the ring says; `ENOSYS` where there is no real directory.
    pub fn new(
        fs: &dyn Fs,
        op: OpKind,
        depth: usize,
        (bytes, calls, files): (usize, usize, usize),
    ) -> Result<InFlight<P>, Failure> {
        let made = match fs.directory() {
            Some(directory) => NamesInFlight::new(directory, depth, bytes, calls),
            None => Err(Errno::ENOSYS),
        };
        let detail = || format!("making a ring for {depth} operations in flight");
        let ring = made.map_err(|errno| Failure::new(op, "", errno).with(detail()))?;
        Ok(InFlight {
            ring: ring.with_files(files + depth),
            queue: Queue::new(depth),
            stages: vec![Stage::Idle; depth],
            places: (0..depth).map(|_| P::default()).collect(),
            pending: Vec::with_capacity(depth),
            waiting: BinaryHeap::with_capacity(depth),
            ahead: None,
            over: false,
        })
    }

    /// The ring, unless it has failed: what is open in it is closed with it then.
    pub fn ring(&mut self) -> Option<&mut NamesInFlight> {
        self.queue.failed().is_none().then_some(&mut self.ring)
    }

    /// Does what `feed` says until there is nothing more or the gate is closed; nothing is in flight
    /// then.
    pub fn run<F: Feed<Place = P>>(&mut self, feed: &mut F, gate: &Gate, meter: &mut Meter) {
        let work = &mut Work { feed, gate, meter };
        self.over = false;
        loop {
            let now = work.gate.clock.now();
            if self.queue.failed().is_some() || work.gate.closed(now) {
                break;
            }
            self.wake(now, work);
            self.begin(work);
            self.commit(work);
            let next = self.waiting.peek().map(|Reverse((at, _))| *at);
            match (self.queue.is_idle(), next) {
                (true, None) if self.over || self.queue.taken() > 0 => break,
                (true, Some(_)) if self.over && self.only_rests() => break,
                (true, None) => {}
                (true, Some(at)) => {
                    // Only an intended start is measured from.
                    let open = match self.ahead {
                        Some((_, true)) => work.gate.wait(at),
                        _ => work.gate.nap_until(at),
                    };
                    if !open {
                        break;
                    }
                }
                (false, None) => self.reap(work, Wait::Least(1)),
                (false, Some(at)) => {
                    let wait = Wait::For(at.since(work.gate.clock.now()));
                    self.reap(work, wait);
                }
            }
        }
        self.put_back(work.feed);
        while !self.queue.is_idle() || !self.pending.is_empty() {
            self.commit(work);
            self.reap(work, Wait::Least(1));
        }
        self.queue.tell(work.meter);
    }

    /// Returns true if all waiting slots wait to begin something.
    fn only_rests(&self) -> bool {
        let rests = |slot: usize| self.stages[slot] == Stage::Rests;
        self.waiting.iter().all(|Reverse((_, slot))| rests(*slot))
    }

    /// Advances the slots whose time has come.
    fn wake<F: Feed<Place = P>>(&mut self, now: Nanos, work: &mut Work<'_, F>) {
        while let Some(Reverse((at, slot))) = self.waiting.peek().copied()
            && at <= now
        {
            self.waiting.pop();
            self.ahead = self.ahead.filter(|(ahead, _)| *ahead != slot);
            match self.stages[slot] {
                Stage::Prepared => self.pending.push(slot),
                Stage::Rests => self.free(slot),
                _ => {
                    self.advance(slot, now, work);
                }
            }
        }
        self.start_if(work.feed.is_paced(), work);
    }

    /// Begins something in each free slot.
    fn begin<F: Feed<Place = P>>(&mut self, work: &mut Work<'_, F>) {
        while !self.over && self.ahead.is_none() && self.queue.failed().is_none() {
            if self.queue.taken() > 0 && work.feed.is_alone() {
                return;
            }
            let now = work.gate.clock.now();
            let slot = match work.gate.closed(now) {
                true => None,
                false => self.queue.take(),
            };
            let Some(slot) = slot else {
                return;
            };
            if !self.advance(slot, now, work) {
                return;
            }
            self.start_if(work.feed.is_paced(), work);
        }
    }

    /// Starts what is pending `now`: it does not wait while others are prepared.
    #[inline]
    fn start_if<F: Feed<Place = P>>(&mut self, now: bool, work: &mut Work<'_, F>) {
        if now && !self.pending.is_empty() {
            self.commit(work);
            self.take_in(work.gate, Wait::Poll);
        }
    }

    /// Prepares what comes next in a slot with nothing in flight; false: that waits for another one.
    #[inline]
    fn advance<F>(&mut self, slot: usize, now: Nanos, work: &mut Work<'_, F>) -> bool
    where
        F: Feed<Place = P>,
    {
        self.stages[slot] = Stage::Idle;
        loop {
            let to = (work.gate, &mut *work.meter);
            match work.feed.next(slot, &mut self.places, &mut self.ring, to) {
                Next::Ready { at, begins, bytes } => {
                    match at.filter(|(at, _)| *at > now) {
                        None => {
                            self.stages[slot] = Stage::Prepared;
                            self.pending.push(slot);
                        }
                        Some(at) => {
                            self.wait(slot, Stage::Prepared, at, begins && work.feed.is_paced())
                        }
                    }
                    self.start_if(bytes >= MUCH, work);
                }
                Next::Again => continue,
                Next::At(at, is_intended) => {
                    self.wait(slot, Stage::Asks, (at, is_intended), work.feed.is_paced());
                }
                // Another slot takes what is due meanwhile.
                Next::Free(Some(at)) if at > now && !self.over => {
                    self.wait(slot, Stage::Rests, (at, false), false);
                }
                Next::Free(_) => self.free(slot),
                Next::Behind => {
                    self.free(slot);
                    return false;
                }
                Next::End => {
                    self.over = true;
                    self.free(slot);
                }
            }
            return true;
        }
    }

    /// The slot waits until `at`; `ahead`: nothing else begins before.
    fn wait(&mut self, slot: usize, stage: Stage, (at, is_intended): (Nanos, bool), ahead: bool) {
        self.stages[slot] = stage;
        self.waiting.push(Reverse((at, slot)));
        if ahead {
            self.ahead = Some((slot, is_intended));
        }
    }

    fn free(&mut self, slot: usize) {
        self.stages[slot] = Stage::Idle;
        self.queue.give_back(slot);
    }

    /// Starts all that is pending, at one reading of the clock; the kernel hears of it with the
    /// wait that follows.
    #[inline]
    fn commit<F: Feed<Place = P>>(&mut self, work: &mut Work<'_, F>) {
        if self.pending.is_empty() {
            return;
        }
        let now = work.gate.clock.now();
        if self.queue.failed().is_some() || work.gate.closed(now) {
            self.put_back(work.feed);
        }
        for slot in self.pending.drain(..) {
            self.stages[slot] = Stage::UnderWay(now);
            match work.feed.submit(slot, &self.places[slot], &mut self.ring) {
                true => self.queue.submitted(1, now),
                false => {
                    let result = self.ring.progress(slot).result();
                    let result = result.map(|moved| moved as usize);
                    self.queue.ended_at_once(slot, result, now);
                }
            }
        }
    }

    /// The worker ends: prepared operations do not start, unless a part was done.
    fn put_back<F: Feed<Place = P>>(&mut self, feed: &mut F) {
        let waiting = self.waiting.drain().map(|Reverse((_, slot))| slot);
        self.pending.extend(waiting);
        self.pending.retain(|slot| {
            let place = &mut self.places[*slot];
            let stays = feed.is_amid(place);
            if !stays {
                feed.put_back(*slot, place);
                self.stages[*slot] = Stage::Idle;
                self.queue.give_back(*slot);
            }
            stays
        });
        self.ahead = None;
    }

    /// Takes in what is complete, records it, and prepares what follows.
    fn reap<F: Feed<Place = P>>(&mut self, work: &mut Work<'_, F>, wait: Wait) {
        // Started operations go to the kernel now, also when more is to be recorded first.
        let wait = match self.queue.all_noted() {
            true => wait,
            false => Wait::Poll,
        };
        if self.queue.in_flight() > 0 {
            self.take_in(work.gate, wait);
        }
        while let Some((done, end)) = self.queue.next() {
            self.note(done, end, work);
        }
    }

    /// Takes in what is complete. A ring that fails ends the work: all that was in flight has
    /// failed with it.
    #[inline]
    fn take_in(&mut self, gate: &Gate, wait: Wait) {
        // The queue remembers it.
        let _ = self.queue.reap(&mut self.ring, gate.clock, wait, None);
    }

    /// An operation has ended.
    #[inline]
    fn note<F>(&mut self, done: Completion, end: Nanos, work: &mut Work<'_, F>)
    where
        F: Feed<Place = P>,
    {
        let Completion { slot, result } = done;
        // With a failing ring, only operations in flight get a result.
        let Stage::UnderWay(start) = self.stages[slot] else {
            return;
        };
        self.stages[slot] = Stage::Idle;
        let place = &mut self.places[slot];
        match (work.feed.is_timed(place), self.queue.slots()) {
            (true, _) => self.queue.took(end.since(start)),
            (false, 1) => work.gate.waits.add(start, end),
            // With several in flight it is part of the time with any in flight.
            (false, _) => {
                self.queue.took(end.since(start));
                work.gate.waits.at_work_until(end);
            }
        }
        let to = (work.gate, &mut *work.meter);
        let ended = Ended {
            result,
            start,
            end,
            is_last: self.queue.failed().is_some(),
        };
        let then = work.feed.ended(slot, place, ended, &mut self.ring, to);
        let open = !ended.is_last && !work.gate.closed(end);
        if then == Then::Free {
            self.free(slot);
        } else if then == Then::Rest || open {
            self.advance(slot, end, work);
        }
    }
}
