//! One request at a time: between two of them there is the clock, and what
//! the last one is noted with.

use rbench_core::Clock as _;
use rbench_sys::engine::Completion;
use rbench_sys::{Request, Transfer};

use super::BlockRunner;
use crate::ack::Kind;
use crate::meter::Meter;
use crate::pace::Gate;

/// The one slot.
const SLOT: usize = 0;

impl BlockRunner {
    /// Issues up to `limit` operations in all, one after the other.
    pub(super) fn run_singly(&mut self, gate: &Gate, meter: &mut Meter, limit: u64) {
        let mut now = gate.clock.now();
        while !self.broken && self.issued < limit && !gate.closed(now) {
            let intended = self.intended(gate);
            // The buffer is filled before the wait, so that the call starts
            // when it was meant to.
            self.aim(SLOT);
            self.slots[SLOT].intended = intended;
            self.next_intended = None;
            if let Some(at) = intended
                && !gate.wait(at)
            {
                self.unaim(SLOT, intended);
                return;
            }
            let slot = &self.slots[SLOT];
            let request = Request {
                transfer: slot.transfer,
                fd: self.work.fd.unwrap_or(-1),
                offset: slot.offset,
                length: slot.length,
                at: 0,
            };
            let writes = request.transfer == Transfer::Write;
            if writes && !self.announce(SLOT) {
                return;
            }
            let start = gate.clock.now();
            let performed = self.work.engine.perform(request, &mut self.done);
            now = gate.clock.now();
            self.slots[SLOT].start = start;
            self.broken |= performed.is_err();
            self.writes_since_sync += u64::from(writes);
            let completion = Completion {
                slot: SLOT,
                result: performed.unwrap_or_else(Err),
            };
            self.complete(completion, now, meter);
            if self.wants_sync() {
                self.sync(gate, meter);
                now = gate.clock.now();
            }
        }
    }

    /// Takes down that the write of `slot` is about to start. What cannot be
    /// taken down is not done, and the worker ends.
    fn announce(&mut self, slot: usize) -> bool {
        let Some(log) = &self.work.log else {
            return true;
        };
        if log.write(Kind::WriteStarted, self.slots[slot].write(self.work.file)) {
            return true;
        }
        self.broken = true;
        self.unaim(slot, None);
        false
    }
}
