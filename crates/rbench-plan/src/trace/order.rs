//! Operations in the order of their starts, of traces whose lines stand in that of their ends.

use std::collections::VecDeque;

use rbench_core::Nanos;

use super::Op;

/// So many operations are held back at most, and none longer than so much time of the trace: what
/// comes later still comes late.
const HELD: usize = 1 << 14;
const WINDOW: Nanos = Nanos::SECOND;

/// Operations that are held back.
#[derive(Debug, Default)]
pub struct Order {
    /// In the order of their starts; equal ones as they came.
    held: VecDeque<Op>,
}

impl Order {
    /// Takes one.
    pub fn push(&mut self, op: Op) {
        let place = self.held.partition_point(|held| held.at <= op.at);
        self.held.insert(place, op);
    }

    /// The next one that nothing is expected before any more. `ended`: no more come.
    pub fn pop(&mut self, ended: bool) -> Option<Op> {
        let (first, last) = (self.held.front()?.at, self.held.back()?.at);
        let due = ended || self.held.len() > HELD || last.since(first) > WINDOW;
        due.then(|| self.held.pop_front()).flatten()
    }
}
