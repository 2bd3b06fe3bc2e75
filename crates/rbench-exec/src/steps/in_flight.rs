//! Steps of a script in a ring. A slot is a round: its steps follow each other, each as the requests of a
//! ring that make the calls of [`StepRunner`], and rounds overlap.

use rbench_core::script::CALLS_MAX;
use rbench_core::{Call, Failure, OpKind};
use rbench_sys::engine::NamesInFlight;

use super::{Account, Coming, Source, Step, StepRunner, buffer_bytes};
use crate::in_flight::{Ended, Feed, InFlight, Next, Then};
use crate::meter::Meter;
use crate::pace::Gate;

impl<S: Source> StepRunner<S> {
    /// Changes the runner to up to `depth` rounds at a time, whose steps have calls of up to
    /// `bytes_max`.
    ///
    /// # Errors
    /// See `InFlight::new`.
    pub fn together(mut self, depth: usize, bytes_max: u64) -> Result<StepRunner<S>, Failure> {
        // A step that opens its file itself has one for its slot.
        let room = (buffer_bytes(bytes_max), CALLS_MAX, self.hand.files.len());
        let flight = InFlight::new(self.hand.fs.as_ref(), OpKind::Open, depth, room)?;
        self.flight = Some(flight);
        Ok(self)
    }
}

impl<S: Source> Feed for StepRunner<S> {
    type Place = Option<Step>;

    #[inline]
    fn next(
        &mut self,
        slot: usize,
        places: &mut [Option<Step>],
        ring: &mut NamesInFlight,
        (gate, meter): (&Gate, &mut Meter),
    ) -> Next {
        let names = &mut self.names;
        let step = match self.account.source.next(slot, names, gate, meter) {
            Coming::Step(step) => step,
            Coming::Again => return Next::Again,
            Coming::Later(at) => return Next::At(at, false),
            Coming::Due(at) => return Next::At(at, true),
            Coming::RoundOver(at) => return Next::Free(at),
            Coming::End => return Next::End,
        };
        if !step.script.needs_open() {
            ring.set_path(slot, names.path.as_c_str());
        }
        if let Some(Call::Rename(_) | Call::Link | Call::Symlink) = step.script.only() {
            ring.set_other(slot, names.other.as_c_str());
        }
        ring.set_length(slot, step.script.length as usize);
        let bytes = Account::<S>::data_of(&step.script);
        if bytes > 0 {
            self.account.data.fill(&mut ring.data(slot)[..bytes]);
        }
        places[slot] = Some(step);
        let is_intended = step.intended.is_some();
        let at = step.not_before.max(step.intended);
        Next::Ready {
            at: at.map(|at| (at, is_intended)),
            begins: step.begins,
            bytes,
        }
    }

    fn put_back(&mut self, slot: usize, _place: &mut Option<Step>) {
        self.account.source.put_back(slot);
    }

    #[inline]
    fn submit(&self, slot: usize, place: &Option<Step>, ring: &mut NamesInFlight) -> bool {
        let Some(step) = place else {
            return false;
        };
        let script = &step.script;
        let file = match script.needs_open() || script.leaves_open() {
            true => step.slot,
            false => self.hand.files.len() + slot,
        };
        // Writing all of an empty file takes no call.
        script.with_parts(|parts| ring.submit_on(slot, file, parts))
    }

    #[inline]
    fn ended(
        &mut self,
        slot: usize,
        place: &mut Option<Step>,
        ended: Ended,
        ring: &mut NamesInFlight,
        to: (&Gate, &mut Meter),
    ) -> Then {
        let outcome = match ended.result {
            Ok(_) => ring.progress(slot).outcome(),
            Err(errno) => Err(errno.into()),
        };
        if let Some(step) = place {
            let (time, path) = ((ended.start, ended.end), || ring.path(slot));
            self.account.ended(step, outcome, time, path, to);
        }
        match self.account.source.ends_round(slot) {
            true => Then::Rest,
            false => Then::Next,
        }
    }

    fn is_alone(&self) -> bool {
        self.account.source.comes_before_rounds()
    }

    fn is_paced(&self) -> bool {
        self.account.source.is_paced()
    }
}
