//! Many requests under way: what may start is filled and submitted together,
//! what is complete is noted together.

use nix::errno::Errno;
use rbench_core::{Clock as _, Nanos};
use rbench_plan::pattern::Step;
use rbench_sys::engine::Completion;
use rbench_sys::{Request, Transfer};

use super::{BlockRunner, Slot};
use crate::ack::Kind;
use crate::meter::{Meter, Span};
use crate::pace::Gate;

impl BlockRunner {
    /// Issues all operations, many at a time.
    pub(super) fn run_many(&mut self, gate: &Gate, meter: &mut Meter) {
        while !self.broken {
            let more = self.issue(gate);
            if self.wants_sync() {
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
        while !self.broken && !self.free.is_empty() && !self.wants_sync() {
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
            if early && (self.in_flight > 0 || !self.landed.is_empty() || !self.ready.is_empty()) {
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
                self.harvest(gate);
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
            self.in_flight += 1;
        }
        self.calls.begun(start);
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
        self.free.append(&mut self.ready);
    }

    fn prepare(&mut self, step: Step, intended: Option<Nanos>) -> usize {
        let slot = self.free.pop().unwrap_or_default();
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
        self.free.push(slot);
        if self.slots[slot].transfer == Transfer::Write {
            self.writes_since_sync -= 1;
        }
        self.unaim(self.slots[slot]);
    }

    /// Takes in what is complete, without waiting.
    fn harvest(&mut self, gate: &Gate) {
        if self.in_flight > 0 {
            let polled = self.work.engine.poll(&mut self.done);
            self.land(gate, polled);
        }
    }

    /// Reads the end of what has just completed.
    fn land(&mut self, gate: &Gate, waited: Result<(), Errno>) {
        let end = gate.clock.now();
        self.in_flight -= self.done.len();
        self.landed
            .extend(self.done.drain(..).map(|completion| (completion, end)));
        if let Err(errno) = waited {
            // The engine itself fails: nothing under way will complete.
            self.broken = true;
            self.in_flight = 0;
            let busy = (0..self.slots.len()).filter(|slot| !self.free.contains(slot));
            let busy: Vec<usize> = busy
                .filter(|s| !self.landed.iter().any(|(c, _)| c.slot == *s))
                .collect();
            self.landed.extend(busy.into_iter().map(|slot| {
                (
                    Completion {
                        slot,
                        result: Err(errno),
                    },
                    end,
                )
            }));
        }
        if self.in_flight == 0 {
            self.calls.idle(end);
        }
    }

    /// Waits for completions and notes them; in an open loop not past the next
    /// intended start, but when `draining`.
    fn reap(&mut self, gate: &Gate, meter: &mut Meter, draining: bool) {
        if self.landed.is_empty() && self.in_flight > 0 {
            let waited = match self.next_intended {
                Some(at) if !draining && !self.free.is_empty() => {
                    let left = at.since(gate.clock.now());
                    self.work.engine.wait_for(&mut self.done, left)
                }
                _ => self.work.engine.wait(&mut self.done),
            };
            self.land(gate, waited);
        }
        while let Some((completion, end)) = self.landed.pop_front() {
            self.free.push(completion.slot);
            self.complete(completion, end, meter);
            if self.careful {
                self.harvest(gate);
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
        while self.in_flight > 0 || !self.landed.is_empty() {
            self.reap(gate, meter, true);
        }
    }
}
