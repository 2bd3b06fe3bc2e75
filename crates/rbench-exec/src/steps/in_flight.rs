//! Steps of a script in a ring: the loop that keeps several rounds of one worker in flight.
//!
//! A slot of the queue is a round: its steps follow each other, each as the requests of a ring
//! that make the calls of [`super::StepRunner`], and rounds overlap. As there a step is prepared
//! outside the timer and recorded when it has ended. All that may start does so at one reading of
//! the clock, and a step ends at the first reading behind the call that brought its completion.
//!
//! Steps that are to start later (pauses, intended starts) wait beside those under way. Of rounds
//! that start at times of their own one is prepared ahead.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use nix::errno::Errno;
use rbench_core::random::DataStream;
use rbench_core::script::CALLS_MAX;
use rbench_core::{Call, Clock as _, Failure, Nanos, OpKind};
use rbench_sys::Fs;
use rbench_sys::engine::{Completion, NamesInFlight};

use super::{Account, Coming, Names, Source, Step, buffer_bytes};
use crate::meter::Meter;
use crate::pace::Gate;
use crate::queue::{MUCH, Queue, Wait};
use crate::worker::Runner;

/// What a round is doing.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Nothing: it has not begun, or goes no further.
    Idle,
    /// It is to be asked what comes next, at its time; whether that is an intended start.
    Asks(bool),
    /// No round begins in it before its time.
    Rests,
    /// A step is prepared.
    Prepared(Step),
    /// It is under way since then.
    UnderWay(Step, Nanos),
}

/// Does the steps of a script, with several rounds at a time.
pub struct RingSteps<S> {
    /// Goes before the file system to whose directory its paths are relative.
    ring: NamesInFlight,
    fs: Arc<dyn Fs>,
    account: Account<S>,
    names: Names,
    queue: Queue,
    places: Vec<Stage>,
    /// Slots whose steps start next.
    pending: Vec<usize>,
    /// Slots that wait for an instant.
    waiting: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// The slot whose round was prepared ahead of its time.
    ahead: Option<usize>,
    /// The number of files that steps name.
    files: usize,
    /// There are no further rounds.
    over: bool,
}

impl<S: Source> RingSteps<S> {
    /// A runner of `script`, with so many rounds in flight, whose steps have so many files and calls
    /// of so many bytes at most; what it writes is the data of `data`.
    ///
    /// # Errors
    /// What the ring says; `ENOSYS` where there is no real directory.
    pub fn new(
        source: S,
        fs: Arc<dyn Fs>,
        depth: usize,
        (files, bytes_max): (usize, u64),
        data: DataStream,
    ) -> Result<RingSteps<S>, Failure> {
        let block = buffer_bytes(bytes_max);
        let made = match fs.directory() {
            Some(directory) => NamesInFlight::new(directory, depth, block, CALLS_MAX),
            None => Err(Errno::ENOSYS),
        };
        let ring = made.map_err(|errno| Failure {
            detail: format!("making a ring for {depth} operations in flight"),
            ..Failure::new(OpKind::Open, "", errno)
        })?;
        Ok(RingSteps {
            // A step that opens its file itself has one for its slot.
            ring: ring.with_files(files + depth),
            fs,
            account: Account::new(source, files + depth, data),
            names: Names::default(),
            queue: Queue::new(depth),
            places: vec![Stage::Idle; depth],
            pending: Vec::with_capacity(depth),
            waiting: BinaryHeap::with_capacity(depth),
            ahead: None,
            files,
            over: false,
        })
    }

    /// Does what is to be done until there is nothing more or the gate is closed; nothing is in
    /// flight then.
    fn keep_filled(&mut self, gate: &Gate, meter: &mut Meter) {
        loop {
            let now = gate.clock.now();
            if self.queue.failed().is_some() || gate.closed(now) {
                break;
            }
            self.wake(now, gate, meter);
            self.begin_rounds(gate, meter);
            self.commit(gate);
            let next = self.waiting.peek().map(|Reverse((at, _))| *at);
            match (self.queue.is_idle(), next) {
                (true, None) if self.over || self.queue.taken() > 0 => break,
                (true, Some(_)) if self.over && self.all_rest() => break,
                (true, None) => {}
                // Only an intended start is measured from.
                (true, Some(at)) => {
                    let open = match self.is_measured_from() {
                        true => gate.wait(at),
                        false => gate.nap_until(at),
                    };
                    if !open {
                        break;
                    }
                }
                (false, None) => self.reap(gate, meter, Wait::Least(1)),
                (false, Some(at)) => {
                    let wait = Wait::For(at.since(gate.clock.now()));
                    self.reap(gate, meter, wait);
                }
            }
        }
        self.put_all_back();
        while !self.queue.is_idle() {
            self.reap(gate, meter, Wait::Least(1));
        }
    }

    /// Whether nothing is waited for but that rounds may begin.
    fn all_rest(&self) -> bool {
        let rests = |slot: usize| matches!(self.places[slot], Stage::Rests);
        self.waiting.iter().all(|Reverse((_, slot))| rests(*slot))
    }

    /// Whether what was prepared ahead has an intended start.
    fn is_measured_from(&self) -> bool {
        match self.ahead.map(|slot| self.places[slot]) {
            Some(Stage::Prepared(step)) => step.intended.is_some(),
            Some(Stage::Asks(intended)) => intended,
            _ => false,
        }
    }

    /// Those whose time has come go on.
    fn wake(&mut self, now: Nanos, gate: &Gate, meter: &mut Meter) {
        while let Some(Reverse((at, slot))) = self.waiting.peek().copied()
            && at <= now
        {
            self.waiting.pop();
            self.ahead = self.ahead.filter(|ahead| *ahead != slot);
            match self.places[slot] {
                Stage::Prepared(_) => self.pending.push(slot),
                Stage::Rests => {
                    self.places[slot] = Stage::Idle;
                    self.queue.give_back(slot);
                }
                _ => self.advance(slot, now, gate, meter),
            }
        }
    }

    /// Begins rounds as long as there is room for them.
    fn begin_rounds(&mut self, gate: &Gate, meter: &mut Meter) {
        while !self.over && self.ahead.is_none() && self.queue.failed().is_none() {
            let taken = self.queue.taken();
            let alone = self.account.source.comes_before_rounds() && taken > 0;
            if alone || taken >= self.places.len() {
                return;
            }
            let now = gate.clock.now();
            if gate.closed(now) {
                return;
            }
            let Some(slot) = self.queue.take() else {
                return;
            };
            self.advance(slot, now, gate, meter);
            // Who is due does not wait while others are prepared.
            if self.account.source.is_paced() {
                self.commit(gate);
                self.take_in(gate, Wait::Poll);
            }
        }
    }

    /// Prepares what comes next in a round, of which nothing is under way.
    #[inline]
    fn advance(&mut self, slot: usize, now: Nanos, gate: &Gate, meter: &mut Meter) {
        self.places[slot] = Stage::Idle;
        loop {
            match self.account.source.next(slot, &mut self.names, gate, meter) {
                Coming::Step(step) => return self.prepare(slot, step, now, gate),
                Coming::Again => {}
                Coming::Later(at) => return self.ask_at(slot, at, false),
                Coming::Due(at) => return self.ask_at(slot, at, true),
                // Another place takes the round that is due meanwhile.
                Coming::RoundOver(Some(at)) if at > now && !self.over => {
                    self.places[slot] = Stage::Rests;
                    return self.wait(slot, at, false);
                }
                Coming::RoundOver(_) => return self.queue.give_back(slot),
                Coming::End => {
                    self.over = true;
                    return self.queue.give_back(slot);
                }
            }
        }
    }

    fn ask_at(&mut self, slot: usize, at: Nanos, intended: bool) {
        self.places[slot] = Stage::Asks(intended);
        let ahead = self.account.source.is_paced();
        self.wait(slot, at, ahead);
    }

    /// Puts names and data of a step into its slot.
    #[inline]
    fn prepare(&mut self, slot: usize, step: Step, now: Nanos, gate: &Gate) {
        self.places[slot] = Stage::Prepared(step);
        if !step.script.needs_open() {
            self.ring.set_path(slot, self.names.path.as_c_str());
        }
        if let Some(Call::Rename(_) | Call::Link | Call::Symlink) = step.script.only() {
            self.ring.set_other(slot, self.names.other.as_c_str());
        }
        self.ring.set_length(slot, step.script.length as usize);
        let bytes = Account::<S>::data_of(&step.script);
        if bytes > 0 {
            self.account.data.fill(&mut self.ring.data(slot)[..bytes]);
        }
        match step.not_before.max(step.intended).filter(|at| *at > now) {
            Some(at) => {
                let ahead = step.begins && self.account.source.is_paced();
                self.wait(slot, at, ahead);
            }
            None => self.pending.push(slot),
        }
        // Nobody waits while much data is filled in.
        if bytes >= MUCH {
            self.commit(gate);
            self.take_in(gate, Wait::Poll);
        }
    }

    /// The slot waits until `at`; `ahead`: no other round begins before.
    fn wait(&mut self, slot: usize, at: Nanos, ahead: bool) {
        self.waiting.push(Reverse((at, slot)));
        if ahead {
            self.ahead = Some(slot);
        }
    }

    /// Starts all that is pending, at one reading of the clock; the kernel hears of it with the
    /// wait that follows.
    #[inline]
    fn commit(&mut self, gate: &Gate) {
        if self.pending.is_empty() {
            return;
        }
        let now = gate.clock.now();
        if self.queue.failed().is_some() || gate.closed(now) {
            return self.put_all_back();
        }
        for slot in self.pending.drain(..) {
            let Stage::Prepared(step) = self.places[slot] else {
                continue;
            };
            self.places[slot] = Stage::UnderWay(step, now);
            let script = &step.script;
            let file = match script.needs_open() || script.leaves_open() {
                true => step.slot,
                false => self.files + slot,
            };
            let submit = |parts: &[_]| self.ring.submit_on(slot, file, parts);
            match script.with_parts(submit) {
                true => self.queue.submitted(1, now),
                // Writing all of an empty file takes no call.
                false => {
                    let result = self.ring.progress(slot).result();
                    let result = result.map(|moved| moved as usize);
                    self.queue.ended_at_once(slot, result, now);
                }
            }
        }
    }

    /// What was prepared does not start: the worker ends.
    fn put_all_back(&mut self) {
        let waiting = self.waiting.drain().map(|Reverse((_, slot))| slot);
        for slot in self.pending.drain(..).chain(waiting) {
            self.places[slot] = Stage::Idle;
            self.account.source.put_back(slot);
        }
    }

    /// Takes in what is complete, notes it, and prepares what follows.
    fn reap(&mut self, gate: &Gate, meter: &mut Meter, wait: Wait) {
        // What has started goes to the kernel now, also when more is to be noted first.
        let wait = match self.queue.all_noted() {
            true => wait,
            false => Wait::Poll,
        };
        if self.queue.in_flight() > 0 {
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
        // The queue remembers it.
        let _ = self.queue.reap(&mut self.ring, gate.clock, wait, None);
    }

    /// A step has ended.
    #[inline]
    fn note(&mut self, completion: Completion, end: Nanos, gate: &Gate, meter: &mut Meter) {
        let Completion { slot, result } = completion;
        // Of a ring that fails nothing else hears than what was under way.
        let Stage::UnderWay(step, start) = self.places[slot] else {
            return;
        };
        self.places[slot] = Stage::Idle;
        self.queue.took(end.since(start));
        let outcome = match result {
            Ok(_) => self.ring.progress(slot).outcome(),
            Err(errno) => Err(errno.into()),
        };
        let path = || self.ring.path(slot);
        let to = (gate, &mut *meter);
        self.account.ended(&step, outcome, (start, end), path, to);
        let goes_on = self.queue.failed().is_none() && !gate.closed(end);
        if goes_on || self.account.source.ends_round(slot) {
            self.advance(slot, end, gate, meter);
        }
    }
}

impl<S: Source> Runner for RingSteps<S> {
    fn run(&mut self, gate: &Gate, meter: &mut Meter, _upto: Option<u64>) {
        self.keep_filled(gate, meter);
        self.account.source.over(gate, meter);
        self.queue.tell(meter);
    }

    fn issued(&self) -> u64 {
        self.account.issued
    }

    fn planned(&self) -> u64 {
        self.account.source.planned()
    }

    fn covered(&self) -> bool {
        !self.account.failed
    }

    /// Closes what the script left open.
    fn finish(&mut self, meter: &mut Meter) {
        // What a ring that has failed still has is closed with it.
        if self.queue.failed().is_some() {
            return;
        }
        for file in 0..self.files {
            if let Some(fd) = self.ring.take_file(file) {
                let result = self.fs.close(fd);
                self.account.closed(file, result, meter);
            }
        }
    }
}
