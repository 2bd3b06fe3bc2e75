//! What is done around a worker's operations, as a type: with [`Full`] all that jobs ask for,
//! with [`Bare`] nothing of it. The loops are compiled once for each, so that a plain job pays
//! for nothing that it does not need.

use std::os::fd::RawFd;

use rbench_core::{Failure, Nanos};

use super::context::How;
use super::iolog::Ahead;
use super::syncs::Interlude;
use super::{BlockRunner, Kind, Planned, Source};
use crate::meter::Meter;
use crate::pace::Gate;

/// What is done around operations.
pub(super) trait Extras: Copy {
    /// What comes next in the log that is replayed.
    #[inline(always)]
    fn ahead(runner: &mut BlockRunner, idle: bool, gate: &Gate, meter: &mut Meter) -> Ahead {
        runner.ahead(idle, gate, meter)
    }

    /// The next operation; `None` when the pass or the source is at its end.
    // A large value that is passed through memory costs as much as the whole loop: the
    // usual way is inlined.
    #[inline(always)]
    fn next(runner: &mut BlockRunner, meter: &mut Meter) -> Option<Planned> {
        match runner.pattern.source {
            Source::Work if runner.pattern.next.is_none() => runner.draw(),
            _ => runner.next_other(meter),
        }
    }

    /// What has to come before the next operation.
    #[inline(always)]
    fn interlude(runner: &mut BlockRunner) -> Option<Interlude> {
        match runner.how.counts {
            true => runner.interlude(),
            false => None,
        }
    }

    /// What has to come after the last operation of a pass.
    #[inline(always)]
    fn after_last(runner: &BlockRunner) -> Option<Interlude> {
        match runner.how.counts {
            true => runner.after_last(),
            false => None,
        }
    }

    /// The descriptor of a file, which is opened if it is not.
    ///
    /// # Errors
    /// When it cannot be opened.
    #[inline(always)]
    fn fd(self, runner: &mut BlockRunner, file: u64) -> Result<RawFd, Failure> {
        runner.files.fd(file, runner.engine.as_mut())
    }

    /// The intended start of an operation.
    #[inline(always)]
    fn due(what: &Planned) -> Option<Nanos> {
        what.intended
    }

    /// The same for the meter, of one that started at `start`. A loop that is open only for
    /// others has its start as intended.
    #[inline(always)]
    fn intended(runner: &BlockRunner, what: &Planned, start: Nanos) -> Option<Nanos> {
        what.intended.or(runner.context.open_loop.then_some(start))
    }

    /// Whether requests wait for those of others.
    #[inline(always)]
    fn orders(runner: &BlockRunner) -> bool {
        runner.requests.order.is_some()
    }

    /// Whether writes are announced in a journal.
    #[inline(always)]
    fn announces(runner: &BlockRunner) -> bool {
        runner.checks.log.is_some()
    }

    /// Whether the log of its own I/O is written.
    #[inline(always)]
    fn records(runner: &BlockRunner) -> bool {
        runner.recorder.is_some()
    }

    /// Whether something depends on how many operations there were.
    #[inline(always)]
    fn counts(how: &How) -> bool {
        how.counts
    }

    /// Whether nothing is verified or journaled.
    #[inline(always)]
    fn is_plain(how: &How) -> bool {
        how.plain
    }

    /// Whether operations are on names.
    #[inline(always)]
    fn names(how: &How) -> bool {
        how.names
    }

    /// Whether submission is noted on its own.
    #[inline(always)]
    fn submission(how: &How) -> bool {
        how.submission
    }

    /// Whether an operation that started then is not recorded, as there is a ramp.
    #[inline(always)]
    fn ramps(runner: &BlockRunner, start: Nanos) -> bool {
        start < runner.accounts.records_from
    }

    /// Waits for the intended start, and for others, and announces a write. Whether the
    /// operation may start.
    #[inline(always)]
    fn may_start(runner: &mut BlockRunner, what: &Planned, gate: &Gate) -> bool {
        runner.may_start(what, gate)
    }

    /// Whether an operation is done for sure: what a journal says is about to be written is
    /// written.
    #[inline(always)]
    fn is_sure(runner: &BlockRunner, what: &Planned) -> bool {
        Self::announces(runner) && what.kind == Kind::Write
    }
}

/// All of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Full;

impl Extras for Full {}

/// Nothing: operations of the pattern follow one another on one open file ([`How::bare`]).
#[derive(Debug, Clone, Copy)]
pub(super) struct Bare {
    /// The file.
    pub(super) fd: RawFd,
}

impl Extras for Bare {
    #[inline(always)]
    fn ahead(_: &mut BlockRunner, _: bool, _: &Gate, _: &mut Meter) -> Ahead {
        Ahead::Operation
    }

    #[inline(always)]
    fn next(runner: &mut BlockRunner, _: &mut Meter) -> Option<Planned> {
        match runner.pattern.next.is_none() {
            true => runner.draw_bare(),
            false => runner.pattern.next.take(),
        }
    }

    #[inline(always)]
    fn interlude(_: &mut BlockRunner) -> Option<Interlude> {
        None
    }

    #[inline(always)]
    fn after_last(_: &BlockRunner) -> Option<Interlude> {
        None
    }

    #[inline(always)]
    fn fd(self, _: &mut BlockRunner, _: u64) -> Result<RawFd, Failure> {
        Ok(self.fd)
    }

    #[inline(always)]
    fn due(_: &Planned) -> Option<Nanos> {
        None
    }

    #[inline(always)]
    fn intended(_: &BlockRunner, _: &Planned, _: Nanos) -> Option<Nanos> {
        None
    }

    #[inline(always)]
    fn orders(_: &BlockRunner) -> bool {
        false
    }

    #[inline(always)]
    fn announces(_: &BlockRunner) -> bool {
        false
    }

    #[inline(always)]
    fn records(_: &BlockRunner) -> bool {
        false
    }

    #[inline(always)]
    fn counts(_: &How) -> bool {
        false
    }

    #[inline(always)]
    fn is_plain(_: &How) -> bool {
        true
    }

    #[inline(always)]
    fn names(_: &How) -> bool {
        false
    }

    #[inline(always)]
    fn submission(_: &How) -> bool {
        false
    }

    #[inline(always)]
    fn ramps(_: &BlockRunner, _: Nanos) -> bool {
        false
    }

    #[inline(always)]
    fn may_start(_: &mut BlockRunner, _: &Planned, _: &Gate) -> bool {
        true
    }
}
