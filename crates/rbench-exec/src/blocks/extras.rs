//! The tasks around a worker's operations, as a type: [`Full`] does all that jobs may ask for,
//! [`Bare`] none. The loops are compiled once for each, so that a plain job pays for nothing that
//! it does not need.

use std::os::fd::RawFd;

use rbench_core::{Clock as _, Failure, Nanos};

use super::iolog::Ahead;
use super::syncs::Interlude;
use super::{BlockRunner, Planned, Source};
use crate::meter::Meter;
use crate::pace::Gate;

/// The reason why issuing pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// The queue depth is reached.
    Full,
    /// The next one is not due yet.
    Early,
    /// Something has to come before the next one, with nothing in flight.
    Before(Interlude),
    /// The log that is replayed was not read to this point, and requests are in flight.
    Unread,
    /// Its block overlaps with that of a request in flight.
    Overlap,
    /// There is no further operation in this pass.
    End,
    /// No further operation may start.
    Closed,
}

/// The tasks around operations.
pub(super) trait Extras: Copy {
    /// Returns true if a task is done that a job may ask for (`asked`).
    fn asks(asked: bool) -> bool;

    /// The intended start of an operation.
    fn due(what: &Planned) -> Option<Nanos>;

    /// The next operation with the descriptor of its file, or why there is none now. `idle`:
    /// nothing is in flight.
    // A large value that is passed through memory costs as much as the whole loop: all of it is
    // inlined.
    fn next(
        self,
        runner: &mut BlockRunner,
        idle: bool,
        gate: &Gate,
        meter: &mut Meter,
    ) -> Result<(Planned, RawFd), Pause>;
}

/// All of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Full;

/// Nothing: operations of the pattern follow one another on one open file
/// ([`super::How::bare`]).
#[derive(Debug, Clone, Copy)]
pub(super) struct Bare {
    /// The file.
    pub(super) fd: RawFd,
}

impl Extras for Bare {
    #[inline(always)]
    fn asks(_: bool) -> bool {
        false
    }

    #[inline(always)]
    fn due(_: &Planned) -> Option<Nanos> {
        None
    }

    #[inline(always)]
    fn next(
        self,
        runner: &mut BlockRunner,
        _: bool,
        _: &Gate,
        _: &mut Meter,
    ) -> Result<(Planned, RawFd), Pause> {
        let next = match runner.pattern.next.is_none() {
            true => runner.draw_bare(),
            false => runner.pattern.next.take(),
        };
        next.map(|what| (what, self.fd)).ok_or(Pause::End)
    }
}

impl Extras for Full {
    #[inline(always)]
    fn asks(asked: bool) -> bool {
        asked
    }

    #[inline(always)]
    fn due(what: &Planned) -> Option<Nanos> {
        what.intended
    }

    #[inline(always)]
    fn next(
        self,
        runner: &mut BlockRunner,
        idle: bool,
        gate: &Gate,
        meter: &mut Meter,
    ) -> Result<(Planned, RawFd), Pause> {
        // Neither who waits for a log nor who is ahead of its flow has anything else that would
        // see the end.
        let unless_closed = |pause| match gate.closed(gate.clock.now()) {
            true => Err(Pause::Closed),
            false => Err(pause),
        };
        match runner.ahead(idle, gate, meter) {
            Ahead::Operation => {}
            Ahead::Event => return unless_closed(Pause::Before(Interlude::Event)),
            Ahead::Unread => return unless_closed(Pause::Unread),
        }
        let next = match runner.pattern.source {
            Source::Work if runner.pattern.next.is_none() => runner.draw(gate),
            _ => runner.next_other(meter),
        };
        let counts = runner.how.counts;
        let Some(what) = next else {
            let after = counts.then(|| runner.after_last()).flatten();
            return Err(after.map_or(Pause::End, Pause::Before));
        };
        if counts && let Some(interlude) = runner.interlude() {
            runner.pattern.next = Some(what);
            return match interlude {
                Interlude::Flow => unless_closed(Pause::Before(interlude)),
                _ => Err(Pause::Before(interlude)),
            };
        }
        runner.opened(&what, meter).map(|fd| (what, fd))
    }
}

impl BlockRunner {
    /// The descriptor of an operation's file, which is opened before any clock is read.
    #[inline(always)]
    fn opened(&mut self, what: &Planned, meter: &mut Meter) -> Result<RawFd, Pause> {
        let opened = self.files.fd(what.file, self.engine.as_mut());
        opened.map_err(|failure| self.cannot_start(*what, failure, meter))
    }

    #[cold]
    fn cannot_start(&mut self, what: Planned, failure: Failure, meter: &mut Meter) -> Pause {
        self.pattern.next = Some(what);
        self.cannot_open(failure, None, meter);
        Pause::Closed
    }
}
