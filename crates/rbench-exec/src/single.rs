//! One operation at a time: the shortest way between two readings of the clock. A program defines
//! the operations and the treatment of their results: items of a tree ([`crate::ops`]) or blocks of
//! files ([`crate::blocks`]).

use rbench_core::{Clock as _, Nanos};

use crate::meter::Meter;
use crate::pace::Gate;

/// The next action of a program.
pub enum Next<T> {
    /// This operation.
    Operation(T),
    /// Something else was done in its place: ask again.
    Again,
    /// End of the program; true if the gate is still open.
    End(bool),
}

/// A worker's work, one operation after the other.
pub trait Program {
    /// An operation.
    type Operation: Copy;
    /// Result of its calls.
    type Outcome;

    /// Returns the next operation, fully prepared. Outside the timer.
    fn next(&mut self, gate: &Gate, meter: &mut Meter) -> Next<Self::Operation>;

    /// Waits for its intended start. Returns whether it may start; if not, it is put back.
    fn may_start(&mut self, what: &Self::Operation, gate: &Gate) -> bool;

    /// Returns whether it is performed even if the time is over at its start: because the gate was
    /// checked before, or the operation was already announced. Inside the timer.
    fn is_sure(&self, what: &Self::Operation) -> bool;

    /// Puts back an operation that does not start: it is the first one if the program continues.
    fn put_back(&mut self, what: Self::Operation);

    /// Performs it. Inside the timer.
    fn perform(&mut self, what: &Self::Operation, gate: &Gate) -> Self::Outcome;

    /// Checks its result, and records it. Outside the timer.
    fn ended(
        &mut self,
        what: Self::Operation,
        outcome: Self::Outcome,
        time: (Nanos, Nanos),
        gate: &Gate,
        meter: &mut Meter,
    );
}

/// Runs `program` until it ends or the gate is closed; returns whether the gate is still open.
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
