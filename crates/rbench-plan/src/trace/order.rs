//! Sorts operations by their starts, for traces whose lines are in the order of their ends.

use std::collections::VecDeque;

use rbench_core::Nanos;

use super::{Op, Out};

/// Most operations that are held back, and the longest time of the trace: later ones stay late.
const HELD: usize = 1 << 14;
const WINDOW: Nanos = Nanos::SECOND;

/// Operations that are held back.
#[derive(Debug, Default)]
pub struct Order {
    /// The operations in the order of their starts; equal ones in the order of their arrival.
    held: VecDeque<Op>,
}

impl Order {
    /// Adds an operation.
    pub fn push(&mut self, op: Op) {
        let index = self.held.partition_point(|held| held.at <= op.at);
        self.held.insert(index, op);
    }

    /// Hands over the operations before which no other one is expected any more. `ended` is true
    /// at the end of the trace.
    pub fn hand_over(&mut self, ended: bool, out: &mut Out) {
        while let Some(op) = self.pop(ended) {
            out.push(op);
        }
    }

    /// The next operation, if no earlier one is expected any more.
    pub fn pop(&mut self, ended: bool) -> Option<Op> {
        let (first, last) = (self.held.front()?.at, self.held.back()?.at);
        let due = ended || self.held.len() > HELD || last.since(first) > WINDOW;
        due.then(|| self.held.pop_front()).flatten()
    }
}
