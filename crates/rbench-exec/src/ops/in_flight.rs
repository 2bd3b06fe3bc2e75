//! Several operations of one worker in flight: the loop that keeps a ring of names filled.
//!
//! Like the loop of blocks in flight it works on a [`Queue`] of slots: what may start is prepared
//! in a free one, all that was prepared starts at one reading of the clock, and an operation
//! ends at the first reading behind the call that brought its completion. Items, intended
//! starts, limits and what is looked at are those of the loop of one at a time
//! ([`ItemRunner`]), which only lends its way of performing them.

use nix::errno::Errno;
use rbench_core::residency::Pages;
use rbench_core::{Call, Clock as _, Failure, FailureKind, Nanos, Part};
use rbench_sys::engine::{Completion, NamesInFlight};

use super::{ItemOp, ItemRunner, Why};
use crate::meter::{Meter, Span};
use crate::pace::Gate;
use crate::queue::{MUCH, Queue, Wait};
use crate::worker::Runner;

/// How far an operation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its slot is free.
    Free,
    /// What comes before it is under way, or about to be.
    Before,
    /// It is itself.
    Timed,
    /// What comes behind it is.
    After,
}

/// An operation's place.
#[derive(Debug, Clone)]
struct Place {
    stage: Stage,
    index: u64,
    intended: Option<Nanos>,
    /// When the stage began.
    start: Nanos,
    /// How the operation itself went, while what comes behind it is under way: a file whose
    /// closing fails makes it fail.
    ended: Option<(Span, Result<u64, Why>)>,
}

impl Place {
    const FREE: Place = Place {
        stage: Stage::Free,
        index: 0,
        intended: None,
        start: Nanos(0),
        ended: None,
    };
}

/// Why nothing further starts now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    /// All slots are taken.
    Full,
    /// The next one is to start then.
    Early(Nanos),
    /// The next one waits for one in flight.
    Behind,
    /// There is no further one.
    End,
    /// No further one may start.
    Closed,
}

/// Runs one kind of operation over a worker's items, several at a time.
pub struct RingRunner<O> {
    /// Goes before the file system to whose directory its paths are relative.
    ring: NamesInFlight,
    items: ItemRunner<O>,
    opening: Vec<Part>,
    queue: Queue,
    places: Vec<Place>,
    /// Slots that are to be submitted next.
    pending: Vec<usize>,
    /// The slot of the next operation, which is prepared and has not started.
    held: Option<usize>,
}

impl<O: ItemOp> RingRunner<O> {
    /// A runner that does what `items` would do, up to `depth` at a time.
    ///
    /// # Errors
    /// What the ring says; `ENOSYS` where there is no real directory.
    pub fn new(items: ItemRunner<O>, depth: u32) -> Result<RingRunner<O>, Failure> {
        let (depth, calls) = (depth as usize, &items.calls);
        let made = match items.fs.directory() {
            Some(directory) => {
                NamesInFlight::new(directory, depth, calls.data as usize, calls.longest())
            }
            None => Err(Errno::ENOSYS),
        };
        let ring = made.map_err(|errno| Failure {
            detail: format!("making a ring for {depth} operations in flight"),
            ..Failure::new(items.op.op(), "", errno)
        })?;
        let opening = items.calls.opens.map(|flags| Part::once(Call::Open(flags)));
        Ok(RingRunner {
            ring,
            items,
            opening: opening.into_iter().collect(),
            queue: Queue::new(depth),
            places: vec![Place::FREE; depth],
            pending: Vec::with_capacity(depth),
            held: None,
        })
    }

    /// Does what is left until there is nothing more or the gate is closed; nothing is in flight
    /// then.
    fn keep_filled(&mut self, gate: &Gate, meter: &mut Meter) {
        loop {
            let pause = self.fill(gate);
            self.commit(gate);
            match pause {
                Pause::Full | Pause::Behind => self.reap(gate, meter, Wait::Least(1)),
                Pause::Early(at) => {
                    let wait = Wait::For(at.since(gate.clock.now()));
                    self.reap(gate, meter, wait);
                }
                Pause::End | Pause::Closed => break,
            }
        }
        self.put_back();
        while !self.queue.is_idle() || !self.pending.is_empty() {
            self.commit(gate);
            self.reap(gate, meter, Wait::Least(1));
        }
    }

    /// Prepares what may start now.
    fn fill(&mut self, gate: &Gate) -> Pause {
        loop {
            let now = gate.clock.now();
            if self.queue.failed().is_some() || gate.closed(now) {
                return Pause::Closed;
            }
            let slot = match self.held.take() {
                Some(slot) => slot,
                None => match self.prepare(gate) {
                    Ok(slot) => slot,
                    Err(pause) => return pause,
                },
            };
            let intended = self.places[slot].intended.filter(|at| *at > now);
            if let Some(at) = intended {
                self.held = Some(slot);
                if !(self.queue.is_idle() && self.pending.is_empty()) {
                    return Pause::Early(at);
                }
                // Who has nothing in flight meets the instant as one at a time does.
                if !gate.wait(at) {
                    return Pause::Closed;
                }
                self.held = None;
            }
            self.items.issued += 1;
            self.pending.push(slot);
            // Who is due does not wait while others are prepared, nor does anyone while much
            // data is filled in.
            if self.items.visit.schedule.is_some() || self.items.calls.data as usize >= MUCH {
                self.commit(gate);
                self.take_in(gate, Wait::Poll);
            }
        }
    }

    /// Prepares the next operation in a free slot, or says why there is none.
    #[inline]
    fn prepare(&mut self, gate: &Gate) -> Result<usize, Pause> {
        let items = &mut self.items;
        if items.issued >= items.limit {
            return Err(Pause::End);
        }
        let slot = self.queue.take().ok_or(Pause::Full)?;
        let index = items.visit.index(items.issued);
        let in_flight = |place: &&Place| place.stage != Stage::Free;
        let others = self.places.iter().filter(in_flight);
        if others
            .into_iter()
            .any(|place| items.op.waits_for(index, place.index))
        {
            self.queue.give_back(slot);
            return Err(Pause::Behind);
        }
        // Only an operation that has a slot takes the next intended start.
        let intended = items.intended(gate);
        items.op.aim(index);
        let (path, other) = items.op.paths();
        self.ring.set_path(slot, path);
        self.ring.set_other(slot, other);
        self.ring.set_length(slot, items.calls.length as usize);
        items.op.load(self.ring.data(slot));
        self.places[slot] = Place {
            stage: match self.opening.is_empty() {
                true => Stage::Timed,
                false => Stage::Before,
            },
            index,
            intended,
            ..Place::FREE
        };
        Ok(slot)
    }

    /// What was prepared and does not start is the first one if the worker goes on.
    fn put_back(&mut self) {
        if let Some(slot) = self.held.take() {
            self.items.due = self.places[slot].intended;
            self.free(slot);
        }
    }

    fn free(&mut self, slot: usize) {
        self.places[slot].stage = Stage::Free;
        self.queue.give_back(slot);
    }

    /// Starts all that is pending, at one reading of the clock; the kernel hears of it with the
    /// wait that follows. Of operations that may not begin any more the first one is the next if
    /// the worker goes on.
    #[inline]
    fn commit(&mut self, gate: &Gate) {
        if self.pending.is_empty() {
            return;
        }
        let now = gate.clock.now();
        let closed = gate.closed(now);
        for slot in self.pending.drain(..) {
            let place = &mut self.places[slot];
            let begins = match place.stage {
                Stage::Before => true,
                Stage::Timed => self.opening.is_empty(),
                Stage::After | Stage::Free => false,
            };
            if closed && begins {
                // They are those that were issued last, and where starts are intended it is one.
                self.items.issued -= 1;
                self.items.due = place.intended;
                place.stage = Stage::Free;
                self.queue.give_back(slot);
                continue;
            }
            place.start = now;
            let parts = match place.stage {
                Stage::Before => &*self.opening,
                Stage::After => &[Part::once(Call::Close)],
                Stage::Timed | Stage::Free => &*self.items.calls.timed,
            };
            match self.ring.submit(slot, parts) {
                true => self.queue.submitted(1, now),
                false => {
                    let result = self.ring.progress(slot).result();
                    let result = result.map(|moved| moved as usize);
                    self.queue.ended_at_once(slot, result, now);
                }
            }
        }
    }

    /// Takes in what is complete and notes it.
    fn reap(&mut self, gate: &Gate, meter: &mut Meter, wait: Wait) {
        if self.queue.all_noted() && self.queue.in_flight() > 0 {
            self.take_in(gate, wait);
        }
        while let Some((completion, end)) = self.queue.next() {
            self.note(completion, end, gate, meter);
        }
    }

    /// Takes in what is complete. A ring that fails ends the work: all that was in flight has
    /// failed with it.
    #[inline]
    fn take_in(&mut self, gate: &Gate, wait: Wait) {
        let ring = &mut self.ring;
        // The queue remembers it.
        let _ = self.queue.reap(ring, gate.clock, wait, self.held);
    }

    /// One of the sequences of an operation has ended.
    #[inline]
    fn note(&mut self, completion: Completion, end: Nanos, gate: &Gate, meter: &mut Meter) {
        let Completion { slot, result } = completion;
        let place = &mut self.places[slot];
        let (stage, start) = (place.stage, place.start);
        match (stage, self.queue.slots()) {
            (Stage::Timed, _) => self.queue.took(end.since(start)),
            (_, 1) => gate.waits.add(start, end),
            // With several in flight it is part of the time with any under way.
            _ => {
                self.queue.took(end.since(start));
                gate.waits.at_work_until(end);
            }
        }
        let result = result.map_err(FailureKind::from);
        match (stage, result) {
            (Stage::Before, Ok(_)) => {
                place.stage = Stage::Timed;
                self.pending.push(slot);
                meter.went_on();
            }
            (Stage::Before, Err(kind)) => {
                let outcome = Err((kind, String::new()));
                self.ended(slot, (end, end), outcome, meter);
            }
            (Stage::Timed, result) => {
                let outcome = match result {
                    Ok(_) => self.settle(slot),
                    Err(kind) => Err((kind, String::new())),
                };
                self.ended(slot, (start, end), outcome, meter);
            }
            (Stage::After, result) => {
                if let Some((span, outcome)) = place.ended.take() {
                    let closed = result.map_err(|kind| (kind, "closing it, untimed".to_owned()));
                    let outcome = outcome.and_then(|bytes| closed.map(|_| bytes));
                    self.count(slot, span, outcome, meter);
                }
                self.free(slot);
            }
            (Stage::Free, _) => {}
        }
    }

    /// Looks at what an operation delivered.
    #[inline]
    fn settle(&mut self, slot: usize) -> Result<u64, Why> {
        let (index, progress) = (self.places[slot].index, self.ring.progress(slot));
        if let Err(kind) = progress.outcome() {
            return Err((kind, String::new()));
        }
        let op = &mut self.items.op;
        if op.looks() {
            // Others were prepared since.
            op.aim(index);
        }
        op.settle(self.ring.data(slot), &progress)
    }

    /// The operation itself has ended. It counts as soon as the file that it works on is
    /// closed.
    #[inline]
    fn ended(
        &mut self,
        slot: usize,
        (start, end): (Nanos, Nanos),
        outcome: Result<u64, Why>,
        meter: &mut Meter,
    ) {
        let place = &mut self.places[slot];
        let intended = place.intended;
        let span = Span {
            intended,
            start,
            end,
        };
        if self.ring.has_file(slot) && self.queue.failed().is_none() {
            place.stage = Stage::After;
            place.ended = Some((span, outcome));
            self.pending.push(slot);
            return meter.went_on();
        }
        self.count(slot, span, outcome, meter);
        self.free(slot);
    }

    #[inline]
    fn count(&mut self, slot: usize, span: Span, outcome: Result<u64, Why>, meter: &mut Meter) {
        match outcome {
            Ok(bytes) => meter.done(0, span, bytes),
            Err(why) => {
                let failure = self.failure(slot, why);
                meter.failed(0, span, failure);
            }
        }
    }

    #[cold]
    fn failure(&mut self, slot: usize, (kind, detail): Why) -> Failure {
        self.items.failed = true;
        Failure {
            op: self.items.op.op(),
            path: self.ring.path(slot).to_string_lossy().into_owned(),
            kind,
            detail,
        }
    }
}

impl<O: ItemOp> Runner for RingRunner<O> {
    fn run(&mut self, gate: &Gate, meter: &mut Meter, upto: Option<u64>) {
        let visits = self.items.visit.visits;
        self.items.limit = upto.map_or(visits, |upto| upto.min(visits));
        self.keep_filled(gate, meter);
        self.items.count_unissued(gate, meter);
        self.queue.tell(meter);
    }

    fn issued(&self) -> u64 {
        self.items.issued()
    }

    fn planned(&self) -> u64 {
        self.items.planned()
    }

    fn look(&mut self, ended: bool) -> Pages {
        self.items.look(ended)
    }

    fn once(&self) -> Option<u64> {
        self.items.once()
    }

    fn covered(&self) -> bool {
        self.items.covered()
    }

    fn finish(&mut self, meter: &mut Meter) {
        self.items.finish(meter);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::sync::Arc;

    use rbench_core::timeline::INTERVAL;
    use rbench_core::{By, CpuClock, OpKind, Rank};
    use rbench_plan::meta::Calls;
    use rbench_sys::PosixFs;

    use super::super::Visit;
    use super::*;
    use crate::meter::{ErrorBudget, Tally};
    use crate::pace::{StopFlag, Waits};

    /// Asks for the end while that item is prepared.
    struct Ends {
        at: u64,
        stop: StopFlag,
    }

    impl ItemOp for Ends {
        fn op(&self) -> OpKind {
            OpKind::Stat
        }

        fn aim(&mut self, index: u64) {
            if index == self.at {
                self.stop.raise();
            }
        }

        fn paths(&self) -> (&CStr, &CStr) {
            (c".", c"")
        }
    }

    #[test]
    fn what_is_prepared_when_the_end_comes_does_not_start() {
        let stop = StopFlag::default();
        let fs = PosixFs::open_directory(&std::env::temp_dir()).expect("it opens");
        let visit = Visit {
            first: 0,
            count: 20,
            visits: 20,
            order: None,
            schedule: None,
        };
        let op = Ends {
            at: 2,
            stop: stop.clone(),
        };
        let items = ItemRunner::new(op, Calls::of(Call::Stat(By::Link)), Arc::new(fs), visit);
        let items = items.unwrap_or_else(|failure| panic!("{failure}"));
        let Ok(mut runner) = RingRunner::new(items, 4) else {
            #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
            return eprintln!("skipped: no ring");
        };
        let mut meter = Meter::new(
            Rank(0),
            "h",
            &[OpKind::Stat],
            false,
            INTERVAL,
            Arc::new(Tally::default()),
            ErrorBudget::default(),
        );
        let mut gate = Gate {
            clock: CpuClock::KERNEL,
            start: Nanos(0),
            deadline: None,
            stop,
            waits: Waits::default(),
        };
        runner.run(&gate, &mut meter, None);
        assert_eq!((runner.issued(), meter.items()), (0, 0));
        // All the others are there for who goes on.
        gate.stop = StopFlag::default();
        runner.items.op.at = 20;
        runner.run(&gate, &mut meter, None);
        assert_eq!((runner.issued(), meter.items()), (20, 20));
    }
}
