//! One request at a time: between two of them there is the clock, and what the last
//! one is noted with.

use nix::errno::Errno;
use rbench_core::{Clock as _, Nanos};
use rbench_sys::Request;

use super::stats::Times;
use super::{BlockRunner, Kind, Planned, Source};
use crate::meter::Meter;
use crate::pace::Gate;

/// The one slot.
const SLOT: usize = 0;

impl BlockRunner {
    /// Does what the source gives, one operation after the other; whether the gate
    /// is still open.
    pub(super) fn pump_single(&mut self, gate: &Gate, meter: &mut Meter) -> bool {
        match self.how.bare && matches!(self.source, Source::Work) {
            true => self.pump_one_by_one::<true>(gate, meter),
            false => self.pump_one_by_one::<false>(gate, meter),
        }
    }

    /// `BARE`: nothing but operations on one open file, with nothing before or after
    /// them ([`super::How::bare`]). The compiler leaves out what they do not need.
    fn pump_one_by_one<const BARE: bool>(&mut self, gate: &Gate, meter: &mut Meter) -> bool {
        let mut fd = match BARE {
            true => self.files.open_one(),
            false => -1,
        };
        while !self.over {
            let drawn = match BARE && self.next.is_none() {
                true => self.draw::<BARE>(),
                false => self.next_operation(meter),
            };
            let Some(what) = drawn else {
                // After the last one as well: its time is the job's, as with fio.
                if !BARE && self.how.counts && self.thinks_now() {
                    self.think(gate);
                    continue;
                }
                return true;
            };
            if !BARE {
                if self.how.counts
                    && let Some(interlude) = self.interlude()
                {
                    self.next = Some(what);
                    self.take_time_for(interlude, gate, meter);
                    continue;
                }
                fd = match self.files.fd(what.file, self.engine.as_mut()) {
                    Ok(fd) => fd,
                    Err(failure) => {
                        self.next = Some(what);
                        self.cannot_open(failure, meter);
                        return false;
                    }
                };
            }
            // The buffer is filled before the wait, so that the call starts when it
            // was meant to.
            self.fill(SLOT, &what);
            if !BARE && !self.may_start(&what, gate) {
                self.next = Some(what);
                return false;
            }
            let start = gate.clock.now();
            // What the journal says is about to be written is written.
            let announced = !BARE && self.log.is_some() && what.kind == Kind::Write;
            if !announced && gate.closed(start) {
                self.next = Some(what);
                return false;
            }
            let request = what.request(fd);
            let (result, submitted, end) = match !BARE && self.how.submission {
                false => {
                    let performed = self.engine.perform(request, &mut self.done);
                    (performed, start, gate.clock.now())
                }
                true => self.perform_in_two(request, gate),
            };
            self.submitted += 1;
            if !BARE && self.how.counts {
                self.account(&what);
                if what.kind == Kind::Write {
                    self.files.wrote(what.file);
                }
            }
            let result = match result {
                Ok(result) => result,
                Err(errno) => self.engine_failed(errno, end),
            };
            let times = Times {
                intended: what.intended,
                start,
                submitted,
                end,
                depth: 1,
            };
            self.complete::<BARE>(SLOT, what, times, result, meter);
            if !BARE && self.how.counts {
                self.account_complete(end);
            }
            if !BARE && self.how.counts && self.files.end(what.file, what.last) {
                self.leave(SLOT, what.file, gate, meter);
            }
        }
        false
    }

    /// Waits for the intended start and records in the journal what is to start.
    /// Whether it may: the gate is open, and the journal took it.
    #[inline(always)]
    fn may_start(&mut self, what: &Planned, gate: &Gate) -> bool {
        if let Some(at) = what.intended
            && !gate.wait(at)
        {
            return false;
        }
        match self.log {
            None => true,
            Some(_) => !gate.closed(gate.clock.now()) && self.announce(*what),
        }
    }

    /// One request, and when it was with the kernel.
    fn perform_in_two(
        &mut self,
        request: Request,
        gate: &Gate,
    ) -> (Result<Result<usize, Errno>, Errno>, Nanos, Nanos) {
        self.engine.submit(SLOT, request);
        let flushed = self.engine.flush();
        let submitted = gate.clock.now();
        let waited = flushed.and_then(|()| self.engine.wait(&mut self.done));
        let end = gate.clock.now();
        let result = self.done.pop().map(|completion| completion.result);
        (waited.map(|()| result.unwrap_or(Ok(0))), submitted, end)
    }

    /// The engine itself has failed: nothing more can be done with it.
    #[cold]
    fn engine_failed(&mut self, errno: Errno, now: Nanos) -> Result<usize, Errno> {
        self.queue.fail(errno, now, Some(SLOT));
        self.give_up(Some(errno));
        Err(errno)
    }
}
