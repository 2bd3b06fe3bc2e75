//! Items with several operations in flight: items, intended starts, limits and checks are those of one at
//! a time ([`ItemRunner`]). An item whose file is opened before the operation, and closed after it, keeps
//! its slot for all three.

use nix::errno::Errno;
use rbench_core::{Call, Failure, FailureKind, Nanos, Part};
use rbench_sys::engine::NamesInFlight;

use super::{ItemOp, ItemRunner, Why};
use crate::in_flight::{Ended, Feed, InFlight, Next, Then};
use crate::meter::{Meter, Span};
use crate::pace::Gate;

/// The next stage of an operation, or the one in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// Nothing: its slot is free.
    #[default]
    Free,
    /// The file is opened before it.
    Before,
    /// The operation itself.
    Timed,
    /// The file is closed after it.
    After,
}

/// An operation's place.
#[derive(Debug, Default)]
pub struct Place {
    stage: Stage,
    index: u64,
    intended: Option<Nanos>,
    /// Result of the operation itself, while its file is closed: if that fails, so does the
    /// operation.
    ended: Option<(Span, Result<u64, Why>)>,
}

impl<O: ItemOp> ItemRunner<O> {
    /// Changes the runner to up to `depth` items at a time.
    ///
    /// # Errors
    /// See `InFlight::new`.
    pub fn together(mut self, depth: u32) -> Result<ItemRunner<O>, Failure> {
        let (op, calls) = (self.kind, &self.calls);
        let room = (calls.data as usize, calls.longest(), 0);
        self.flight = Some(InFlight::new(self.fs.as_ref(), op, depth as usize, room)?);
        Ok(self)
    }

    /// Checks what an operation delivered.
    #[inline]
    fn delivered(&mut self, slot: usize, index: u64, ring: &mut NamesInFlight) -> Result<u64, Why> {
        let progress = ring.progress(slot);
        if let Err(kind) = progress.outcome() {
            return Err((kind, String::new()));
        }
        if self.op.looks() {
            // Others were prepared since.
            self.op.aim(index);
        }
        self.op.settle(ring.data(slot), &progress)
    }
}

impl<O: ItemOp> Feed for ItemRunner<O> {
    type Place = Place;

    #[inline]
    fn next(
        &mut self,
        slot: usize,
        places: &mut [Place],
        ring: &mut NamesInFlight,
        (gate, _): (&Gate, &mut Meter),
    ) -> Next {
        if places[slot].stage != Stage::Free {
            return Next::Ready {
                at: None,
                begins: false,
                bytes: 0,
            };
        }
        if self.issued >= self.limit {
            return Next::End;
        }
        let index = self.visit.index(self.issued);
        let waits =
            |place: &Place| place.stage != Stage::Free && self.op.waits_for(index, place.index);
        if places.iter().any(waits) {
            return Next::Behind;
        }
        // Only an operation that has a slot takes the next intended start.
        let intended = self.intended(gate);
        self.op.aim(index);
        let (path, other) = self.op.paths();
        ring.set_path(slot, path);
        ring.set_other(slot, other);
        ring.set_length(slot, self.calls.length as usize);
        self.op.load(ring.data(slot));
        self.issued += 1;
        places[slot] = Place {
            stage: match self.calls.opens {
                None => Stage::Timed,
                Some(_) => Stage::Before,
            },
            index,
            intended,
            ended: None,
        };
        Next::Ready {
            at: intended.map(|at| (at, true)),
            begins: true,
            bytes: self.calls.data as usize,
        }
    }

    fn is_amid(&self, place: &Place) -> bool {
        match place.stage {
            Stage::Before | Stage::Free => false,
            Stage::Timed => self.calls.opens.is_some(),
            Stage::After => true,
        }
    }

    fn put_back(&mut self, _slot: usize, place: &mut Place) {
        // They are those that were issued last, and where starts are intended it is one.
        self.issued -= 1;
        self.due = place.intended;
        place.stage = Stage::Free;
    }

    #[inline]
    fn submit(&self, slot: usize, place: &Place, ring: &mut NamesInFlight) -> bool {
        match (place.stage, self.calls.opens) {
            (Stage::Before, Some(flags)) => ring.submit(slot, &[Part::once(Call::Open(flags))]),
            (Stage::After, _) => ring.submit(slot, &[Part::once(Call::Close)]),
            _ => ring.submit(slot, &self.calls.timed),
        }
    }

    fn is_timed(&self, place: &Place) -> bool {
        place.stage == Stage::Timed
    }

    #[inline]
    fn ended(
        &mut self,
        slot: usize,
        place: &mut Place,
        ended: Ended,
        ring: &mut NamesInFlight,
        (_, meter): (&Gate, &mut Meter),
    ) -> Then {
        let Ended {
            result,
            start,
            end,
            is_last,
        } = ended;
        let why = |detail: &'static str| {
            move |errno: Errno| (FailureKind::from(errno), detail.to_owned())
        };
        let is_timed = place.stage == Stage::Timed;
        if place.stage == Stage::Before && result.is_ok() {
            place.stage = Stage::Timed;
            meter.went_on();
            return Then::Rest;
        }
        let (span, outcome) = match place.ended.take() {
            // Its file was closed.
            Some((span, outcome)) => {
                let closed = result.map_err(why("closing it, untimed"));
                (span, outcome.and_then(|bytes| closed.map(|_| bytes)))
            }
            None => {
                let start = if is_timed { start } else { end };
                let span = Span::due(place.intended, start, end);
                let delivered = |_| self.delivered(slot, place.index, ring);
                let outcome = result.map_err(why("")).and_then(delivered);
                // It counts as soon as the file that it works on is closed.
                if is_timed && ring.has_file(slot) && !is_last {
                    (place.stage, place.ended) = (Stage::After, Some((span, outcome)));
                    meter.went_on();
                    return Then::Rest;
                }
                (span, outcome)
            }
        };
        place.stage = Stage::Free;
        match outcome {
            Ok(bytes) => meter.done(0, span, bytes),
            Err(why) => {
                let failure = self.failure(Some(ring.path(slot)), why);
                meter.failed(0, span, failure);
            }
        }
        Then::Free
    }

    fn is_paced(&self) -> bool {
        self.visit.schedule.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::sync::Arc;

    use rbench_core::{By, CpuClock, OpKind};
    use rbench_plan::meta::Calls;
    use rbench_sys::PosixFs;

    use super::super::Visit;
    use super::*;
    use crate::pace::StopFlag;
    use crate::worker::Runner as _;

    /// Asks for the end while that item is prepared.
    struct Ends {
        at: u64,
        stop: StopFlag,
    }

    impl ItemOp for Ends {
        fn aim(&mut self, index: u64) {
            if index == self.at {
                self.stop.raise();
            }
        }

        fn paths(&self) -> (&CStr, &CStr) {
            (c".", c"")
        }
    }

    #[test]
    fn what_is_prepared_when_the_end_comes_does_not_start() {
        let stop = StopFlag::default();
        let fs = PosixFs::open_directory(&std::env::temp_dir()).expect("it opens");
        let visit = Visit {
            first: 0,
            count: 20,
            visits: 20,
            order: None,
            schedule: None,
        };
        let op = Ends {
            at: 2,
            stop: stop.clone(),
        };
        let (op, calls) = ((OpKind::Stat, op), Calls::of(Call::Stat(By::Link)));
        let items = ItemRunner::new(op, calls, Arc::new(fs), visit);
        let items = items.unwrap_or_else(|failure| panic!("{failure}"));
        let Ok(mut runner) = items.together(4) else {
            #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
            return eprintln!("skipped: no ring");
        };
        let mut meter = Meter::alone(&[OpKind::Stat]);
        let mut gate = Gate {
            stop,
            ..Gate::new(CpuClock::KERNEL, Nanos(0))
        };
        runner.run(&gate, &mut meter, None);
        assert_eq!((runner.issued(&meter), meter.items()), (0, 0));
        // All the others are there for who goes on.
        gate.stop = StopFlag::default();
        runner.op.at = 20;
        runner.run(&gate, &mut meter, None);
        assert_eq!((runner.issued(&meter), meter.items()), (20, 20));
    }
}
