//! One request at a time: between two of them there is the clock, and what the last
//! one is noted with.

use std::os::fd::RawFd;

use nix::errno::Errno;
use rbench_core::{Clock as _, Nanos};

use super::extras::{Bare, Extras, Full, Pause};
use super::stats::Times;
use super::{BlockRunner, Kind, Planned, Source};
use crate::meter::Meter;
use crate::pace::Gate;
use crate::single::{Next, Program, one_by_one};

/// The one slot.
const SLOT: usize = 0;

/// A worker's blocks as a program, with what is done around them.
struct Blocks<'r, E> {
    runner: &'r mut BlockRunner,
    extras: E,
    /// The file of the operation.
    fd: RawFd,
}

/// The result of a request, if the engine knows it, and the time when it reached the kernel, if
/// that is noted separately.
type Outcome = (Result<Result<usize, Errno>, Errno>, Option<Nanos>);

impl BlockRunner {
    /// Does what the source gives, one operation after the other; whether the gate
    /// is still open.
    pub(super) fn pump_single(&mut self, gate: &Gate, meter: &mut Meter) -> bool {
        let fd = self.files.open_one();
        match self.how.bare && matches!(self.pattern.source, Source::Work) {
            true => self.blocks(Bare { fd }, gate, meter),
            false => self.blocks(Full, gate, meter),
        }
    }

    fn blocks<E: Extras>(&mut self, extras: E, gate: &Gate, meter: &mut Meter) -> bool {
        let (runner, fd) = (self, -1);
        let mut blocks = Blocks { runner, extras, fd };
        one_by_one(&mut blocks, gate, meter)
    }

    /// Waits for the intended start and records in the journal what is to start.
    /// Whether it may: the gate is open, and the journal took it.
    #[inline(always)]
    fn may_start<E: Extras>(&mut self, what: &Planned, gate: &Gate) -> bool {
        if let Some(at) = E::due(what)
            && !gate.wait(at)
        {
            return false;
        }
        if E::asks(self.requests.order.is_some()) && !self.take_its_turn(what, gate) {
            return false;
        }
        !E::asks(self.checks.log.is_some())
            || !gate.closed(gate.clock.now()) && self.announce(*what)
    }

    /// The engine itself has failed: nothing more can be done with it.
    #[cold]
    fn engine_failed(&mut self, errno: Errno, now: Nanos) -> Result<usize, Errno> {
        self.requests.queue.fail(errno, now, Some(SLOT));
        self.accounts.give_up(Some(errno));
        Err(errno)
    }
}

impl<E: Extras> Program for Blocks<'_, E> {
    type Operation = Planned;
    type Outcome = Outcome;

    #[inline(always)]
    fn next(&mut self, gate: &Gate, meter: &mut Meter) -> Next<Planned> {
        let runner = &mut *self.runner;
        if runner.accounts.over || runner.accounts.submitted >= runner.accounts.upto {
            return Next::End(false);
        }
        let (what, fd) = match self.extras.next(runner, true, gate, meter) {
            Ok(next) => next,
            Err(Pause::Before(interlude)) => {
                runner.take_time_for(interlude, gate, meter);
                return Next::Again;
            }
            Err(pause) => return Next::End(pause == Pause::End),
        };
        self.fd = fd;
        // The buffer is filled before the wait, so that the call starts when it
        // was meant to.
        runner.fill::<E>(SLOT, &what);
        Next::Operation(what)
    }

    #[inline(always)]
    fn may_start(&mut self, what: &Planned, gate: &Gate) -> bool {
        self.runner.may_start::<E>(what, gate)
    }

    #[inline(always)]
    fn is_sure(&self, what: &Planned) -> bool {
        // Write-ahead: a write that the journal announces is carried out.
        E::asks(self.runner.checks.log.is_some()) && what.kind == Kind::Write
    }

    #[inline(always)]
    fn put_back(&mut self, what: Planned) {
        if E::asks(self.runner.requests.order.is_some()) {
            self.runner.end_its_turn(&what);
        }
        self.runner.pattern.next = Some(what);
    }

    #[inline(always)]
    fn perform(&mut self, what: &Planned, gate: &Gate) -> Outcome {
        let runner = &mut *self.runner;
        let request = what.request(self.fd);
        if !E::asks(runner.how.submission) {
            return (
                runner.engine.perform(request, &mut runner.requests.done),
                None,
            );
        }
        runner.engine.submit(SLOT, request);
        let flushed = runner.engine.flush();
        let submitted = gate.clock.now();
        let waited = flushed.and_then(|()| runner.engine.wait(&mut runner.requests.done));
        (waited.map(|()| Ok(0)), Some(submitted))
    }

    #[inline(always)]
    fn ended(
        &mut self,
        what: Planned,
        (result, submitted): Outcome,
        (start, end): (Nanos, Nanos),
        gate: &Gate,
        meter: &mut Meter,
    ) {
        let runner = &mut *self.runner;
        runner.accounts.submitted += 1;
        if E::asks(runner.requests.order.is_some()) {
            runner.end_its_turn(&what);
        }
        if E::asks(runner.how.counts) {
            runner.account(&what);
            runner.record(&what, start);
            if what.kind == Kind::Write {
                runner.files.wrote(what.file);
            }
        }
        let result = match result {
            // A request with a separate wait is in the list of completions.
            Ok(result) if submitted.is_none() => result,
            Ok(_) => runner.requests.done.pop().map_or(Ok(0), |done| done.result),
            Err(errno) => runner.engine_failed(errno, end),
        };
        let times = Times {
            intended: what.intended,
            start,
            submitted: submitted.unwrap_or(start),
            end,
            depth: 1,
        };
        runner.complete::<E>(SLOT, what, times, result, meter);
        if E::asks(runner.how.counts) {
            runner.account_complete(end);
            if runner.files.end(what.file, what.last) {
                runner.leave(SLOT, what.file, gate, meter);
            }
        }
    }
}
