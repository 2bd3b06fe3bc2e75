//! Many requests under way: what may start is filled and submitted together,
//! what is complete is noted together.

use rbench_core::{Clock as _, Nanos};
use rbench_plan::pattern::Step;
use rbench_sys::engine::Completion;
use rbench_sys::{Request, Transfer};

use super::{BlockRunner, Slot};
use crate::ack::Kind;
use crate::meter::{Meter, Span};
use crate::pace::Gate;
use crate::queue::Wait;

impl BlockRunner {
    /// Issues all operations, many at a time.
    pub(super) fn run_many(&mut self, gate: &Gate, meter: &mut Meter) {
        while !self.broken {
            let more = self.issue(gate);
            if self.wants_sync() && !self.broken {
                self.drain(gate, meter);
                self.sync(gate, meter);
            }
            if !more {
                break;
            }
            self.reap(gate, meter, false);
        }
        self.drain(gate, meter);
    }

    /// Fills and submits what may start now. Whether more may follow: there is a
    /// further operation, and the gate is open.
    fn issue(&mut self, gate: &Gate) -> bool {
        let mut more = true;
        // Filling a few small buffers takes no time to speak of.
        let at_once = self.work.schedule.is_none() && !self.careful;
        let mut now = gate.clock.now();
        while !self.broken && self.queue.has_free() && !self.wants_sync() {
            if !at_once {
                now = gate.clock.now();
            }
            if gate.closed(now) {
                more = false;
                break;
            }
            let Some(step) = self.next_step() else {
                more = false;
                break;
            };
            let intended = self.intended(gate);
            let early = intended.is_some_and(|at| at > now);
            if early && !(self.queue.is_idle() && self.ready.is_empty()) {
                self.next = Some(step);
                break;
            }
            // The buffer is filled before the wait, so that the call starts
            // when it was meant to.
            let slot = self.prepare(step, intended);
            if early && !gate.wait(intended.unwrap_or(now)) {
                self.unprepare(slot);
                more = false;
                break;
            }
            if self.careful {
                self.submit_ready(gate);
                self.broken |= self.work.engine.flush().is_err();
                self.poll(gate);
            }
        }
        self.submit_ready(gate);
        more
    }

    fn submit_ready(&mut self, gate: &Gate) {
        self.announce_ready();
        if self.ready.is_empty() {
            return;
        }
        let fd = self.work.fd.unwrap_or(-1);
        let requests = self.ready.len();
        let start = gate.clock.now();
        for slot in self.ready.drain(..) {
            let Slot {
                transfer,
                offset,
                length,
                ..
            } = self.slots[slot];
            self.slots[slot].start = start;
            self.work.engine.submit(
                slot,
                Request {
                    transfer,
                    fd,
                    offset,
                    length,
                    at: 0,
                },
            );
        }
        self.queue.submitted(requests, start);
    }

    /// Takes down which writes are about to start. What cannot be taken down
    /// is not done, and the worker ends.
    fn announce_ready(&mut self) {
        let Some(log) = &self.work.log else {
            return;
        };
        let writes = self.ready.iter().map(|slot| &self.slots[*slot]);
        let mut writes = writes.filter(|slot| slot.transfer == Transfer::Write);
        let file = self.work.file;
        if writes.all(|slot| log.write(Kind::WriteStarted, slot.write(file))) {
            return;
        }
        self.broken = true;
        for slot in self.ready.drain(..) {
            self.dropped += 1;
            self.dropped_bytes += self.slots[slot].length as u64;
            self.queue.give_back(slot);
        }
    }

    fn prepare(&mut self, step: Step, intended: Option<Nanos>) -> usize {
        let slot = self.queue.take().unwrap_or_default();
        self.slots[slot] = self.aim(slot, step, intended);
        self.ready.push(slot);
        if self.slots[slot].transfer == Transfer::Write {
            self.writes_since_sync += 1;
        }
        slot
    }

    /// Takes back what was prepared but will not be submitted.
    fn unprepare(&mut self, slot: usize) {
        self.ready.pop();
        self.queue.give_back(slot);
        if self.slots[slot].transfer == Transfer::Write {
            self.writes_since_sync -= 1;
        }
        self.unaim(self.slots[slot]);
    }

    /// Takes in what is complete, without waiting.
    fn poll(&mut self, gate: &Gate) {
        if self.queue.in_flight() > 0 {
            self.take_in(gate, Wait::Poll);
        }
    }

    /// Takes in what is complete; an engine that fails ends the worker.
    #[inline]
    fn take_in(&mut self, gate: &Gate, wait: Wait) {
        let engine = self.work.engine.as_mut();
        self.broken |= self.queue.reap(engine, gate.clock, wait, None).is_err();
    }

    /// Waits for completions and notes them; in an open loop not past the next
    /// intended start, but when `draining`.
    fn reap(&mut self, gate: &Gate, meter: &mut Meter, draining: bool) {
        if self.queue.all_noted() && self.queue.in_flight() > 0 {
            let wait = match self.next_intended {
                Some(at) if !draining && self.queue.has_free() => {
                    Wait::For(at.since(gate.clock.now()))
                }
                _ => Wait::Least(1),
            };
            self.take_in(gate, wait);
        }
        while let Some((completion, end)) = self.queue.next() {
            self.queue.give_back(completion.slot);
            self.complete(completion, end, meter);
            if self.careful {
                self.poll(gate);
            }
        }
    }

    /// Notes how the request of a slot has ended.
    #[inline(always)]
    fn complete(&mut self, completion: Completion, end: Nanos, meter: &mut Meter) {
        let Slot {
            transfer,
            length,
            intended,
            start,
            ..
        } = self.slots[completion.slot];
        let span = Span {
            intended,
            start,
            end,
        };
        let lane = self.lane(transfer);
        if self.is_plain(completion.result, length) {
            meter.done(lane, span, length as u64);
        } else {
            self.examine(completion, lane, span, meter);
        }
    }

    fn drain(&mut self, gate: &Gate, meter: &mut Meter) {
        while !self.queue.is_idle() {
            self.reap(gate, meter, true);
        }
    }
}
