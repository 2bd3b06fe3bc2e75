//! One operation at a time: the shortest way between two readings of the clock. What the
//! operations are, and what becomes of them, the program says: items of a tree
//! ([`crate::ops`]) or blocks of files ([`crate::blocks`]).

use rbench_core::{Clock as _, Nanos};

use crate::meter::Meter;
use crate::pace::Gate;

/// What a program has to do next.
pub enum Next<T> {
    /// This.
    Operation(T),
    /// Something else was done in its place: it is to be asked again.
    Again,
    /// Nothing; whether the gate is still open.
    End(bool),
}

/// What a worker does, one operation after the other.
pub trait Program {
    /// An operation.
    type Operation: Copy;
    /// What its calls said.
    type Outcome;

    /// The next operation, with all that it needs. Outside the timer.
    fn next(&mut self, gate: &Gate, meter: &mut Meter) -> Next<Self::Operation>;

    /// Waits for its intended start. Whether it may start; if not, it is put back.
    fn may_start(&mut self, what: &Self::Operation, gate: &Gate) -> bool;

    /// Whether it is done even where the time is over when it is to start: it was looked
    /// at that before, or somebody was told that it is done. Inside the timer.
    fn is_sure(&self, what: &Self::Operation) -> bool;

    /// It does not start, and is the first one if the program goes on.
    fn put_back(&mut self, what: Self::Operation);

    /// Does it. Inside the timer.
    fn perform(&mut self, what: &Self::Operation, gate: &Gate) -> Self::Outcome;

    /// Looks at what became of it, and records it. Outside the timer.
    fn ended(
        &mut self,
        what: Self::Operation,
        outcome: Self::Outcome,
        time: (Nanos, Nanos),
        gate: &Gate,
        meter: &mut Meter,
    );
}

/// Does what `program` says until it ends or the gate is closed; whether the gate is
/// still open.
#[inline(always)]
pub fn one_by_one<P: Program>(program: &mut P, gate: &Gate, meter: &mut Meter) -> bool {
    loop {
        let what = match program.next(gate, meter) {
            Next::Operation(what) => what,
            Next::Again => continue,
            Next::End(open) => return open,
        };
        if !program.may_start(&what, gate) {
            program.put_back(what);
            return false;
        }
        let start = gate.clock.now();
        if !program.is_sure(&what) && gate.closed(start) {
            program.put_back(what);
            return false;
        }
        let outcome = program.perform(&what, gate);
        let end = gate.clock.now();
        program.ended(what, outcome, (start, end), gate, meter);
    }
}
