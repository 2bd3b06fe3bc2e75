//! Many requests in flight: what may start is filled and submitted, what is complete
//! is noted.

use std::os::fd::RawFd;

use rbench_core::{Clock as _, Nanos};

use super::extras::{Bare, Extras, Full, Pause};
use super::stats::Times;
use super::{BlockRunner, Interlude, Kind, Planned, Source};
use crate::meter::Meter;
use crate::pace::Gate;
use crate::queue::Wait;

/// A request's place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) what: Planned,
    fd: RawFd,
    start: Nanos,
    submitted: Nanos,
    /// Slots in use when it was submitted, its own included.
    depth: usize,
}

/// `depth` slots, all free.
pub(super) fn slots(depth: usize) -> Vec<Slot> {
    let idle = Slot {
        what: Planned::default(),
        fd: -1,
        start: Nanos(0),
        submitted: Nanos(0),
        depth: 0,
    };
    vec![idle; depth]
}

/// For how long completions are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Not past the start of the next operation.
    Next,
    /// Until there is one.
    Done,
    /// Not longer than [`A_WHILE`].
    Later,
}

/// Time for which completions are waited for before the log that is replayed is read again.
const A_WHILE: Nanos = Nanos(100_000);

impl BlockRunner {
    /// Does what the source gives, several operations at a time; none is in flight
    /// then. Whether the gate is still open.
    pub(super) fn pump_many(&mut self, gate: &Gate, meter: &mut Meter) -> bool {
        let fd = self.files.open_one();
        match self.how.bare && matches!(self.pattern.source, Source::Work) {
            true => self.pump_together(Bare { fd }, gate, meter),
            false => self.pump_together(Full, gate, meter),
        }
    }

    fn pump_together<E: Extras>(&mut self, extras: E, gate: &Gate, meter: &mut Meter) -> bool {
        loop {
            match self.issue(extras, gate, meter) {
                Pause::Early => self.reap::<E>(gate, meter, Until::Next),
                Pause::Unread => self.reap::<E>(gate, meter, Until::Later),
                Pause::Overlap if self.requests.queue.is_idle() => self.let_others_end(),
                Pause::Overlap => self.reap::<E>(gate, meter, Until::Done),
                Pause::Full => {
                    self.reap::<E>(gate, meter, Until::Next);
                    while self.requests.queue.taken() > self.how.low {
                        self.reap::<E>(gate, meter, Until::Next);
                    }
                }
                // Like fio: requests in flight go on, unless the flow sleeps.
                Pause::Before(Interlude::Flow) if self.flows_on() => {
                    self.reap::<E>(gate, meter, Until::Next);
                }
                Pause::Before(interlude) => {
                    self.drain(gate, meter);
                    self.take_time_for(interlude, gate, meter);
                }
                Pause::End => {
                    self.drain(gate, meter);
                    return true;
                }
                Pause::Closed => {
                    self.put_back();
                    self.drain(gate, meter);
                    return false;
                }
            }
        }
    }

    /// Prepares and submits what may start now.
    fn issue<E: Extras>(&mut self, extras: E, gate: &Gate, meter: &mut Meter) -> Pause {
        let (at_once, batch) = (self.how.at_once, self.how.batch);
        // Requests with a start each read the clock when they are ready.
        let mut now = match at_once {
            true => gate.clock.now(),
            false => Nanos(0),
        };
        let pause = loop {
            if self.accounts.over {
                break Pause::Closed;
            }
            let slot = match self.requests.held {
                Some(slot) => slot,
                None => match self.ready(extras, gate, meter) {
                    Ok(slot) => slot,
                    Err(pause) => break pause,
                },
            };
            if !at_once {
                now = gate.clock.now();
            }
            if gate.closed(now) {
                break Pause::Closed;
            }
            if let Some(at) = E::due(&self.requests.slots[slot].what)
                && at > now
            {
                if !(self.requests.queue.is_idle() && self.requests.pending.is_empty()) {
                    break Pause::Early;
                }
                if !gate.wait(at) {
                    break Pause::Closed;
                }
                now = gate.clock.now();
            }
            if E::asks(self.requests.order.is_some())
                && !self.take_block(&self.requests.slots[slot].what.clone())
            {
                break Pause::Overlap;
            }
            if E::asks(self.checks.log.is_some()) {
                let what = self.requests.slots[slot].what;
                if !self.announce(what) {
                    self.leave_block(&what);
                    break Pause::Closed;
                }
                now = gate.clock.now();
            }
            let order = self.requests.order.as_ref();
            if E::asks(order.is_some_and(|order| order.locks())) {
                self.start_locked(slot, gate);
                continue;
            }
            self.line_up(slot, now);
            if self.how.careful {
                self.commit::<E>(gate);
                self.poll(gate);
            } else if self.requests.pending.len() >= batch {
                self.commit::<E>(gate);
            }
        };
        self.commit::<E>(gate);
        pause
    }

    /// Readies the next operation in a free slot, or says why there is none now.
    #[inline(always)]
    fn ready<E: Extras>(
        &mut self,
        extras: E,
        gate: &Gate,
        meter: &mut Meter,
    ) -> Result<usize, Pause> {
        let depth = self.requests.slots.len();
        let depth = match &self.accounts.stats {
            None => depth,
            Some(stats) => stats.depth_limit(depth),
        };
        if self.requests.queue.taken() >= depth {
            return Err(Pause::Full);
        }
        let idle = self.requests.queue.is_idle() && self.requests.pending.is_empty();
        let (what, fd) = extras.next(self, idle, gate, meter)?;
        let slot = self.requests.queue.take().unwrap_or_default();
        self.fill::<E>(slot, &what);
        if E::asks(self.how.counts) {
            self.account(&what);
        }
        self.requests.slots[slot] = Slot {
            what,
            fd,
            start: Nanos(0),
            submitted: Nanos(0),
            depth: 0,
        };
        self.requests.held = Some(slot);
        Ok(slot)
    }

    /// Takes back what was readied and will not start now.
    fn put_back(&mut self) {
        let Some(slot) = self.requests.held.take() else {
            return;
        };
        let what = self.requests.slots[slot].what;
        self.requests.queue.give_back(slot);
        self.pattern.next = Some(what);
        if !self.how.counts {
            return;
        }
        self.files.end(what.file, false);
        if matches!(self.pattern.source, Source::Work) {
            self.pattern.pass_steps -= 1;
            let latest = self.checks.backlog.last().map(|written| written.generation);
            if what.kind == Kind::Write && latest == Some(what.generation) {
                self.checks.backlog.pop();
            }
        }
    }

    /// The request of `slot` starts `now`, or with the others that wait.
    #[inline(always)]
    fn line_up(&mut self, slot: usize, now: Nanos) {
        self.requests.held = None;
        self.accounts.submitted += 1;
        let what = self.requests.slots[slot].what;
        if self.how.counts && what.kind == Kind::Write {
            self.files.wrote(what.file);
        }
        let depth = self.requests.queue.taken();
        let place = &mut self.requests.slots[slot];
        (place.start, place.submitted, place.depth) = (now, now, depth);
        self.requests.pending.push(slot);
    }

    /// Gives the engine what has lined up. To the kernel it goes at once where that
    /// is to be timed or something else is done next; else with the next wait.
    #[inline]
    fn commit<E: Extras>(&mut self, gate: &Gate) {
        let Some(first) = self.requests.pending.first() else {
            return;
        };
        let first = match self.how.at_once {
            true => gate.clock.now(),
            false => self.requests.slots[*first].start,
        };
        for slot in &self.requests.pending {
            let place = &mut self.requests.slots[*slot];
            if self.how.at_once {
                (place.start, place.submitted) = (first, first);
            }
            self.engine.submit(*slot, place.what.request(place.fd));
        }
        self.requests
            .queue
            .submitted(self.requests.pending.len(), first);
        if !self.how.flushes {
            self.record_pending::<E>();
            self.requests.pending.clear();
            return;
        }
        let flushed = self.engine.flush();
        let now = match self.how.submission || flushed.is_err() {
            true => gate.clock.now(),
            false => first,
        };
        for slot in &self.requests.pending {
            self.requests.slots[*slot].submitted = now;
        }
        self.record_pending::<E>();
        self.requests.pending.clear();
        if let Err(errno) = flushed {
            self.requests.queue.fail(errno, now, self.requests.held);
            self.accounts.give_up(Some(errno));
        }
    }

    /// Writes down what was just submitted, where that is asked for.
    #[inline(always)]
    fn record_pending<E: Extras>(&mut self) {
        if !E::asks(self.recorder.is_some()) {
            return;
        }
        for at in 0..self.requests.pending.len() {
            let Slot { what, start, .. } = self.requests.slots[self.requests.pending[at]];
            self.record(&what, start);
        }
    }

    /// Takes in what is complete, without waiting.
    fn poll(&mut self, gate: &Gate) {
        if self.requests.queue.in_flight() > 0 {
            self.take_in(gate, Wait::Poll);
        }
    }

    /// Takes in what is complete; an engine that fails ends the work.
    #[inline]
    fn take_in(&mut self, gate: &Gate, wait: Wait) {
        let engine = self.engine.as_mut();
        if let Err(errno) = self
            .requests
            .queue
            .reap(engine, gate.clock, wait, self.requests.held)
        {
            self.accounts.give_up(Some(errno));
        }
    }

    /// Waits for completions `until` then, and notes as many as are replaced at a time: what takes the
    /// place of the first should not wait for the notes on the last.
    fn reap<E: Extras>(&mut self, gate: &Gate, meter: &mut Meter, until: Until) {
        let (job, waiting) = (&self.context.job, self.requests.queue.in_flight());
        let together = job.batch_complete_min.max(job.batch_complete_max);
        let at_a_time = job.batch_submit.max(together).max(1);
        if self.requests.queue.all_noted() && waiting > 0 {
            let next = self
                .requests
                .held
                .and_then(|slot| self.requests.slots[slot].what.intended);
            let wait = match (until, next) {
                (Until::Next, Some(at)) => Wait::For(at.since(gate.clock.now())),
                (Until::Later, _) => Wait::For(A_WHILE),
                _ => Wait::Least((job.batch_complete_min as usize).min(waiting)),
            };
            self.take_in(gate, wait);
        }
        for _ in 0..at_a_time {
            let Some((completion, end)) = self.requests.queue.next() else {
                break;
            };
            let slot = completion.slot;
            let Slot {
                what,
                start,
                submitted,
                depth,
                ..
            } = self.requests.slots[slot];
            let times = Times {
                intended: what.intended,
                start,
                submitted,
                end,
                depth,
            };
            self.complete::<E>(slot, what, times, completion.result, meter);
            if E::asks(self.requests.order.is_some()) {
                self.leave_block(&what);
            }
            self.requests.queue.give_back(slot);
            if E::asks(self.how.counts) {
                self.account_complete(end);
            }
            if E::asks(self.how.counts) && self.files.end(what.file, what.last) {
                self.leave(slot, what.file, gate, meter);
            }
            if self.how.careful {
                self.poll(gate);
            }
        }
    }

    /// Starts the request of `slot` while no other user of its file's lock runs. Like in fio, the
    /// lock is released when the engine has the request: with an asynchronous engine, when it is
    /// handed over.
    #[cold]
    fn start_locked(&mut self, slot: usize, gate: &Gate) {
        let what = self.requests.slots[slot].what;
        self.lock_file(what.file, what.kind, gate);
        self.line_up(slot, gate.clock.now());
        self.commit::<Full>(gate);
        self.unlock_file();
        self.poll(gate);
    }

    /// Returns true if something is in flight, and a flow that is ahead does not sleep.
    fn flows_on(&self) -> bool {
        let sleeps = self.context.job.others.flow.is_some_and(|f| f.sleep.0 > 0);
        !sleeps && !self.requests.queue.is_idle()
    }

    fn drain(&mut self, gate: &Gate, meter: &mut Meter) {
        while !self.requests.queue.is_idle() {
            self.reap::<Full>(gate, meter, Until::Done);
        }
    }
}
