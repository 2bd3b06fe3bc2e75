//! Trims of a verified job among its writes: some of the blocks that it wrote, chosen at
//! random, are trimmed later, in batches.

use std::collections::VecDeque;

use rbench_core::random::Stream;
use rbench_plan::jobs::{JobPlan, TrimBacklog};

use super::checks::{Source, Written};
use super::{BlockRunner, Planned};
use crate::meter::Meter;
use crate::pace::Gate;

/// Stream of the choice of blocks, beside seed and worker.
const CHOICE: u64 = 21;

/// The blocks of a worker that are to be trimmed.
#[derive(Debug)]
pub(super) struct Trims {
    plan: TrimBacklog,
    stream: Stream,
    /// The earliest first.
    chosen: VecDeque<Written>,
    /// Writes that no batch has followed yet.
    writes: u64,
}

impl Trims {
    /// The trims of a worker, where its job has any.
    pub(super) fn of(job: &JobPlan, worker: u64) -> Option<Box<Trims>> {
        let plan = job.verify.as_ref()?.trims?;
        Some(Box::new(Trims {
            plan,
            stream: Stream::new(&[job.pattern.seed, worker, CHOICE]),
            chosen: VecDeque::new(),
            writes: 0,
        }))
    }

    /// Returns true if it is time for a batch.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.writes >= self.plan.every && !self.chosen.is_empty()
    }

    /// A write is complete.
    fn wrote(&mut self, what: &Planned) {
        self.writes += 1;
        if self.stream.below(100) < u64::from(self.plan.percent) {
            self.chosen.push_back(Written::of(what, true));
        }
    }
}

impl BlockRunner {
    /// Trims a batch; nothing is in flight.
    pub(super) fn trim_batch(&mut self, gate: &Gate, meter: &mut Meter) {
        let Some(trims) = &mut self.checks.trims else {
            return;
        };
        trims.writes = trims.writes.saturating_sub(trims.plan.every);
        let waiting = self.pattern.next.take();
        self.pattern.source = Source::Trims(trims.plan.batch);
        self.pump(gate, meter);
        self.pattern.source = Source::Work;
        self.pattern.next = waiting;
    }

    /// The next block of the batch.
    pub(super) fn draw_trim(&mut self) -> Option<Planned> {
        let Source::Trims(left) = &mut self.pattern.source else {
            return None;
        };
        *left = left.checked_sub(1)?;
        let chosen = self.checks.trims.as_mut()?.chosen.pop_front()?;
        Some(chosen.trim())
    }

    /// A write of a verified job is complete.
    pub(super) fn may_be_trimmed(&mut self, what: &Planned) {
        if let Some(trims) = &mut self.checks.trims {
            trims.wrote(what);
        }
    }

    /// A block of a batch was trimmed, and is to be checked as such.
    pub(super) fn note_trimmed(&mut self, what: &Planned) {
        if matches!(self.pattern.source, Source::Trims(_)) {
            self.checks.backlog.push(Written::of(what, true));
        }
    }
}
