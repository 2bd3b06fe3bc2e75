//! One request at a time: between two of them there is the clock, and what
//! the last one is noted with.

use rbench_core::Clock as _;
use rbench_sys::engine::Completion;
use rbench_sys::{Request, Transfer};

use super::{BlockRunner, Slot};
use crate::ack::Kind;
use crate::meter::{Meter, Span};
use crate::pace::Gate;

/// The one slot.
const SLOT: usize = 0;

impl BlockRunner {
    /// Issues all operations, one after the other.
    pub(super) fn run_singly(&mut self, gate: &Gate, meter: &mut Meter) {
        let mut now = gate.clock.now();
        while !self.broken
            && !gate.closed(now)
            && let Some(step) = self.next_step()
        {
            let intended = self.intended(gate);
            // The buffer is filled before the wait, so that the call starts
            // when it was meant to.
            let slot = self.aim(SLOT, step, intended);
            if let Some(at) = intended
                && !gate.wait(at)
            {
                self.unaim(slot);
                return;
            }
            let request = Request {
                transfer: slot.transfer,
                fd: self.work.fd.unwrap_or(-1),
                offset: slot.offset,
                length: slot.length,
                at: 0,
            };
            let writes = request.transfer == Transfer::Write;
            if writes && !self.announce(slot) {
                return;
            }
            let start = gate.clock.now();
            let performed = self.work.engine.perform(request, &mut self.done);
            now = gate.clock.now();
            self.broken |= performed.is_err();
            self.writes_since_sync += u64::from(writes);
            let result = performed.unwrap_or_else(Err);
            let (lane, span) = (
                self.lane(slot.transfer),
                Span {
                    intended,
                    start,
                    end: now,
                },
            );
            if self.is_plain(result, slot.length) {
                meter.done(lane, span, slot.length as u64);
            } else {
                self.slots[SLOT] = slot;
                self.examine(Completion { slot: SLOT, result }, lane, span, meter);
            }
            if self.wants_sync() {
                self.sync(gate, meter);
                now = gate.clock.now();
            }
        }
    }

    /// Takes down that the write of `slot` is about to start. What cannot be
    /// taken down is not done, and the worker ends.
    fn announce(&mut self, slot: Slot) -> bool {
        let Some(log) = &self.work.log else {
            return true;
        };
        if log.write(Kind::WriteStarted, slot.write(self.work.file)) {
            return true;
        }
        self.broken = true;
        self.unaim(slot);
        false
    }
}
