//! The metadata operations: one file each, and the table of them.
//!
//! An operation is aimed outside the timer (path bytes patched, buffer
//! filled), acted inside it, and checked after it. The loop around it is the
//! same for all: [`ItemRunner`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rbench_core::{Clock as _, Failure, FailureKind, Nanos, OpKind, Rank};
use rbench_plan::arrival::Schedule;
use rbench_plan::meta::{Layout, PhaseInfo};
use rbench_plan::permutation::Permutation;
use rbench_plan::tree::{ItemKind, Paths};
use rbench_plan::{MetaPlan, shift};
use rbench_sys::Fs;

use crate::meter::{Meter, Span};
use crate::pace::Gate;
use crate::worker::Runner;

mod create;
mod list;
mod mkdir;
mod read_file;
mod rename;
mod rmdir;
mod stat;
mod unlink;

/// How a metadata operation is made for a worker.
pub struct OpRow {
    /// The operation.
    pub op: OpKind,
    /// Makes the worker's runner.
    pub make: fn(&Scene, u32) -> Box<dyn Runner>,
}

/// Every metadata operation.
pub const OPS: &[OpRow] = &[
    mkdir::ROW,
    rmdir::ROW,
    stat::ROW,
    rename::ROW,
    list::ROW,
    create::ROW,
    read_file::ROW,
    unlink::ROW,
];

/// One kind of operation on items that are known by their index.
pub trait ItemOp {
    /// Gets ready for the item: path and data. Outside the timer.
    fn aim(&mut self, index: u64);

    /// The operation itself; the bytes it moved. Inside the timer.
    ///
    /// # Errors
    /// Why it does not count as done.
    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind>;

    /// Looks at what it delivered. Outside the timer.
    ///
    /// # Errors
    /// What is wrong with it, with details.
    fn check(&mut self) -> Result<(), (FailureKind, String)> {
        Ok(())
    }

    /// The path aimed at, for messages.
    fn path(&mut self) -> String;

    /// The kind, for messages.
    fn op(&self) -> OpKind;
}

/// The items a worker visits, and when.
#[derive(Debug, Clone)]
pub struct Visit {
    /// Index of its first item.
    pub first: u64,
    /// Number of its items.
    pub count: u64,
    /// Visits in total; more than `count`: pass after pass.
    pub visits: u64,
    /// Random order.
    pub order: Option<Permutation>,
    /// Open loop.
    pub schedule: Option<Schedule>,
}

impl Visit {
    #[inline]
    fn index(&self, nth: u64) -> u64 {
        // A pass after the first repeats its order.
        let place = if nth < self.count {
            nth
        } else {
            nth % self.count
        };
        self.first + self.order.as_ref().map_or(place, |order| order.at(place))
    }
}

/// Runs one kind of operation over a worker's items.
pub struct ItemRunner<O> {
    op: O,
    fs: Arc<dyn Fs>,
    visit: Visit,
    issued: u64,
    failed: bool,
    /// The intended start that was taken from the schedule last, if its
    /// operation was not started.
    due: Option<Nanos>,
    covered: Option<Arc<AtomicU64>>,
}

impl<O: ItemOp> ItemRunner<O> {
    /// A runner of `op` over the items of `visit`.
    pub fn new(op: O, fs: Arc<dyn Fs>, visit: Visit) -> ItemRunner<O> {
        ItemRunner {
            op,
            fs,
            visit,
            issued: 0,
            failed: false,
            due: None,
            covered: None,
        }
    }

    /// At the end, without a failure, stores in `covered` how many items are
    /// there from the first on.
    pub fn telling(self, covered: Option<Arc<AtomicU64>>) -> ItemRunner<O> {
        ItemRunner { covered, ..self }
    }
}

impl<O> ItemRunner<O> {
    /// Counts what was due before the deadline and not started.
    fn count_unissued(&mut self, gate: &Gate, meter: &mut Meter) {
        let Some(schedule) = &mut self.visit.schedule else {
            return;
        };
        let next = self
            .due
            .unwrap_or_else(|| Nanos(gate.start.0.saturating_add(schedule.next_start().0)));
        meter.unissued(
            0,
            gate.missed(schedule, next, self.visit.visits - self.issued),
        );
    }
}

impl<O: ItemOp> Runner for ItemRunner<O> {
    fn run(&mut self, gate: &Gate, meter: &mut Meter, upto: Option<u64>) {
        let limit = upto.map_or(self.visit.visits, |u| u.min(self.visit.visits));
        let mut now = gate.clock.now();
        while self.issued < limit && !gate.closed(now) {
            let index = self.visit.index(self.issued);
            let intended = self.due.take().or_else(|| {
                let schedule = self.visit.schedule.as_mut()?;
                Some(Nanos(gate.start.0.saturating_add(schedule.next_start().0)))
            });
            self.op.aim(index);
            if let Some(at) = intended
                && !gate.wait(at)
            {
                self.due = intended;
                break;
            }
            let start = gate.clock.now();
            let result = self.op.act(self.fs.as_ref());
            let end = gate.clock.now();
            self.issued += 1;
            now = end;
            let span = Span {
                intended,
                start,
                end,
            };
            let result = match result {
                Ok(bytes) => self.op.check().map(|()| bytes),
                Err(kind) => Err((kind, String::new())),
            };
            match result {
                Ok(bytes) => meter.done(0, span, bytes),
                Err((kind, detail)) => {
                    self.failed = true;
                    let (op, path) = (self.op.op(), self.op.path());
                    meter.failed(
                        0,
                        span,
                        Failure {
                            op,
                            path,
                            kind,
                            detail,
                        },
                    );
                }
            }
        }
        self.count_unissued(gate, meter);
    }

    fn issued(&self) -> u64 {
        self.issued
    }

    fn planned(&self) -> u64 {
        self.visit.visits
    }

    fn covered(&self) -> bool {
        !self.failed && self.issued >= self.visit.count.min(self.visit.visits)
    }

    fn finish(&mut self, _meter: &mut Meter) {
        if let Some(covered) = self.covered.as_ref().filter(|_| !self.failed) {
            let there = self.visit.first + self.issued.min(self.visit.count);
            covered.fetch_max(there, Ordering::Relaxed);
        }
    }
}

/// What one metadata phase works on, the same for all workers of a rank.
#[derive(Clone)]
pub struct Scene {
    /// The workload.
    pub plan: Arc<MetaPlan>,
    /// What is fixed for the phase.
    pub info: &'static PhaseInfo,
    /// The target, relative to the run's directory.
    pub fs: Arc<dyn Fs>,
    /// Directory of the iteration, relative to the run's directory.
    pub prefix: String,
    /// This rank.
    pub rank: Rank,
    /// Number of ranks.
    pub ranks: u32,
    /// Workers of each rank.
    pub threads: u32,
    /// The rank whose items it works on is so far away.
    pub distance: u32,
    /// (seed, iteration): random orders and data derive from these.
    pub seed: [u64; 2],
    /// After a stonewall: how many items each worker made.
    pub made: Option<u64>,
    /// Whether the items carry the names that the rename phase gave them.
    pub renamed: bool,
    /// Whether every directory that was asked for is there, so that listings
    /// can be checked.
    pub all_there: bool,
}

impl Scene {
    /// Whose items this rank works on.
    pub fn owner(&self) -> Rank {
        shift::owner(self.rank, self.distance, self.ranks)
    }

    /// Paths of the owner's items, with the names before or after renaming.
    fn paths(&self, renamed: bool) -> Paths {
        let kind = self.info.items.unwrap_or(ItemKind::Dir);
        let private = self.plan.layout == Layout::Unique;
        Paths::new(
            self.plan.shape,
            self.plan.naming,
            &self.prefix,
            private,
            self.owner(),
            kind,
            renamed,
        )
    }

    /// The items of worker `thread`: an even, contiguous part of `total`.
    fn share(&self, thread: u32, total: u64) -> (u64, u64) {
        let part = |t: u32| (u128::from(total) * u128::from(t) / u128::from(self.threads)) as u64;
        (part(thread), part(thread + 1) - part(thread))
    }

    /// The items that worker `thread` visits; `shuffled` where the phase
    /// follows `--random-order`.
    fn visit(&self, thread: u32, shuffled: bool) -> Visit {
        let (first, all) = self.share(thread, self.plan.items_per_rank);
        let count = self.made.map_or(all, |made| made.min(all));
        let [seed, iteration] = self.seed;
        let parts = [
            seed,
            iteration,
            u64::from(self.rank.0),
            u64::from(thread),
            self.info.kind as u64,
        ];
        let order = (shuffled && self.plan.random_order && count > 0)
            .then(|| Permutation::new(count, &parts));
        Visit {
            first,
            count,
            visits: count,
            order,
            schedule: None,
        }
    }

    /// The nodes of the tree, all by the first worker of the tree's owner:
    /// children need their parents.
    fn tree_visit(&self, thread: u32) -> Visit {
        let mine = thread == 0 && (self.plan.layout == Layout::Unique || self.rank == Rank(0));
        let count = if mine { self.plan.nodes } else { 0 };
        Visit {
            first: 0,
            count,
            visits: count,
            order: None,
            schedule: None,
        }
    }

    /// A stream of its own for each worker, phase and iteration.
    fn data_parts(&self, thread: u32) -> [u64; 5] {
        let [seed, iteration] = self.seed;
        [
            seed,
            iteration,
            u64::from(self.rank.0),
            u64::from(thread),
            !(self.info.kind as u64),
        ]
    }
}
