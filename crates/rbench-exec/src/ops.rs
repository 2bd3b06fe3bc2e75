//! The metadata operations: one file each, and the table of them.
//!
//! An operation is aimed outside the timer (path bytes patched, buffer
//! filled), acted inside it, and checked after it. The loop around it is the
//! same for all (`single.rs`): `Items` is its program.

use std::any::Any;
use std::ffi::CStr;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use rbench_core::outcome::Retries;
use rbench_core::residency::Pages;
use rbench_core::{
    Call, Clock as _, Failure, FailureKind, Nanos, OpKind, OpenFlags, Progress, Rank,
};
use rbench_plan::arrival::{Schedule, Workers};
use rbench_plan::meta::{Calls, ItemOwner, Layout, PhaseInfo, PhaseKind, PhasePlan, Showing};
use rbench_plan::permutation::Permutation;
use rbench_plan::tree::{Forest, ItemKind, Paths};
use rbench_plan::{MetaPlan, shift};
use rbench_sys::residency::Resident;
use rbench_sys::{AlignedBuffer, Fs, NullFs, Operands, PosixFs, fs};

use crate::hooks::After;
use crate::in_flight::InFlight;
use crate::meter::{Meter, Span};
use crate::pace::Gate;
use crate::single::{Next, Program, one_by_one};
use crate::worker::{Prepared, Runner};

mod files;
mod fill;
mod in_flight;
mod places;
mod plain;
#[cfg(test)]
mod queueing;
mod rename;

use places::Tree;

pub use places::Places;

/// Suffix of the names of items after the native rename phase.
const RENAMED: &str = ".r";

/// Stream of the random gaps between intended starts.
const STREAM_STARTS: u64 = 15;

/// Creates the runner of one worker of a phase.
///
/// # Errors
/// When there is not the memory, or no ring.
pub fn make(scene: &OpContext, thread: u32) -> Prepared {
    match scene.info.op {
        OpKind::Create | OpKind::WriteFile | OpKind::WriteSync => files::make_writer(scene, thread),
        OpKind::ReadFile | OpKind::Read => files::make_reader(scene, thread),
        OpKind::Rename => rename::make(scene, thread),
        OpKind::Fill | OpKind::Empty => fill::make(scene, thread),
        _ => plain::make(scene, thread),
    }
}

/// Kind of a failure, with details.
pub type Why = (FailureKind, String);

/// Fails because of wrong data.
fn mismatch<T>(told: String) -> Result<T, Why> {
    Err((FailureKind::Mismatch, told))
}

/// One kind of operation on items that are known by their index: operands of its calls ([`Calls`]),
/// and checks of their results.
pub trait ItemOp {
    /// Sets the paths of the item. Untimed.
    fn aim(&mut self, index: u64);

    /// Path and second path of the current item.
    fn paths(&self) -> (&CStr, &CStr);

    /// Fills `data` with the data of the current item. Untimed.
    fn load(&mut self, _data: &mut [u8]) {}

    /// Returns true if the prepared operation may be done; if not, the worker ends.
    fn may_act(&self) -> bool {
        true
    }

    /// Performs the operation itself, if it is more than its calls; bytes moved. Timed.
    ///
    /// # Errors
    /// Kind of the failure.
    fn own<F: Fs + ?Sized>(&mut self, _fs: &F) -> Option<Result<u64, FailureKind>> {
        None
    }

    /// True if [`ItemOp::settle`] compares with the current item.
    fn looks(&self) -> bool {
        false
    }

    /// Checks the results of calls that succeeded; bytes to count. Untimed.
    ///
    /// # Errors
    /// The failure, with details.
    fn settle(&mut self, _data: &mut [u8], progress: &Progress) -> Result<u64, Why> {
        Ok(progress.moved())
    }

    /// Checks the file system by calls of its own. Untimed; not called with several operations in
    /// flight.
    ///
    /// # Errors
    /// The failure, with details.
    fn check(&mut self, _fs: &dyn Fs, _data: &[u8]) -> Result<(), Why> {
        Ok(())
    }

    /// Cleans up after the last item. Untimed.
    ///
    /// # Errors
    /// The failure, with details.
    fn finish(&mut self, _fs: &dyn Fs) -> Result<(), Why> {
        Ok(())
    }

    /// True if it reads files through the page cache.
    fn reads_through_cache(&self) -> bool {
        false
    }

    /// System calls until now beyond those that the items needed.
    fn again(&self) -> Retries {
        Retries::default()
    }

    /// True if, with several operations in flight, the item has to wait for the earlier item
    /// `other`.
    fn waits_for(&self, _index: u64, _other: u64) -> bool {
        false
    }
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
    /// Open loop: that of all workers of the rank.
    pub schedule: Option<Arc<Schedule>>,
}

impl Visit {
    #[inline(always)]
    fn index(&self, nth: u64) -> u64 {
        // A pass after the first repeats its order.
        let place = if nth < self.count {
            nth
        } else {
            nth % self.count
        };
        self.first
            + match &self.order {
                None => place,
                Some(order) => order.at(place),
            }
    }
}

/// Runs one kind of operation over a worker's items.
pub struct ItemRunner<O> {
    /// `None`: one item at a time. Dropped before `fs`.
    flight: Option<InFlight<in_flight::Place>>,
    /// The kind, for failures.
    kind: OpKind,
    op: O,
    fs: Arc<dyn Fs>,
    calls: Calls,
    /// The call of an operation that is a single call on a name, without data and open file: it is
    /// made directly, as the loop may not cost more than needed.
    only_name: Option<Call>,
    hand: Hand,
    visit: Visit,
    issued: u64,
    /// Number of operations to issue in this run.
    limit: u64,
    /// The latest reading of the clock.
    now: Nanos,
    failed: bool,
    /// The intended start that was taken from the schedule last, if its
    /// operation was not started.
    due: Option<Nanos>,
    covered: Option<Arc<AtomicU64>>,
    /// Steps after the operations, and the gate at the end of these.
    after: Option<After>,
    ended: Option<Gate>,
}

/// Data and open file of the current item.
struct Hand {
    data: AlignedBuffer,
    /// The open file, or why it could not be opened.
    file: Result<Option<RawFd>, Errno>,
}

impl Hand {
    /// Hands over the open file, which the caller closes.
    fn take(&mut self) -> Option<RawFd> {
        std::mem::replace(&mut self.file, Ok(None)).unwrap_or_default()
    }
}

impl<O: ItemOp> ItemRunner<O> {
    /// A runner of `op`, of that kind, which makes `calls`, over the items of `visit`.
    ///
    /// # Errors
    /// When there is not the memory.
    pub fn new(
        (kind, op): (OpKind, O),
        calls: Calls,
        fs: Arc<dyn Fs>,
        visit: Visit,
    ) -> Result<ItemRunner<O>, Failure> {
        let data = buffer(calls.data, kind)?;
        Ok(ItemRunner {
            flight: None,
            kind,
            op,
            fs,
            only_name: calls.only_name(),
            calls,
            hand: Hand {
                data,
                file: Ok(None),
            },
            visit,
            issued: 0,
            limit: 0,
            now: Nanos(0),
            failed: false,
            due: None,
            covered: None,
            after: None,
            ended: None,
        })
    }

    /// At the end, without a failure, stores in `covered` how many items are
    /// there from the first on.
    pub fn telling(self, covered: Option<Arc<AtomicU64>>) -> ItemRunner<O> {
        ItemRunner { covered, ..self }
    }

    /// Adds steps after the operations.
    fn followed_by(self, after: Option<After>) -> ItemRunner<O> {
        ItemRunner { after, ..self }
    }

    /// Prepares the item: paths, data, open file. Untimed.
    #[inline(always)]
    fn prepare(&mut self, index: u64) {
        if !matches!(self.hand.file, Ok(None)) {
            // Still open after a failure, which has been reported.
            let _ = self.close();
        }
        self.op.aim(index);
        self.op.load(&mut self.hand.data);
        if let Some(flags) = self.calls.opens {
            let opened = self.fs.open(self.op.paths().0, flags);
            self.hand.file = opened.map(Some);
        }
    }

    /// Closes the open file, if any. Untimed.
    #[inline(always)]
    fn close(&mut self) -> Result<(), Why> {
        match self.hand.take() {
            Some(fd) => {
                let closed = self.fs.close(fd);
                closed.map_err(|errno| (errno.into(), "closing it, untimed".to_owned()))
            }
            None => Ok(()),
        }
    }

    /// Checks an operation that succeeded. Untimed.
    #[inline(always)]
    fn settle(&mut self, progress: &Progress) -> Result<u64, Why> {
        let bytes = self.op.settle(&mut self.hand.data, progress)?;
        self.op.check(self.fs.as_ref(), &self.hand.data)?;
        Ok(bytes)
    }
}

impl<O> ItemRunner<O> {
    /// The intended start of the next operation, if there is any.
    #[inline(always)]
    fn intended(&mut self, gate: &Gate) -> Option<Nanos> {
        self.due.take().or_else(|| {
            let schedule = self.visit.schedule.as_ref()?;
            Some(Nanos(gate.start.0.saturating_add(schedule.next_start().0)))
        })
    }

    /// Counts what was due before the deadline and not started.
    fn count_unissued(&mut self, gate: &Gate, meter: &mut Meter) {
        let Some(schedule) = &self.visit.schedule else {
            return;
        };
        let left = self.visit.visits - self.issued;
        meter.unissued(0, gate.missed(schedule, self.due, left));
        if left > 0 && !self.failed {
            meter.extend_to(gate.end_of_time().unwrap_or_default());
        }
    }
}

/// A worker's items as a program, on the runner's file system in the form that the loop knows: the
/// intended start of an operation is all that is known of it besides the item, which is prepared.
struct Items<'r, O, F: ?Sized> {
    runner: &'r mut ItemRunner<O>,
    fs: &'r F,
}

impl<O: ItemOp, F: Fs + ?Sized> Items<'_, O, F> {
    fn second_step(&mut self, gate: &Gate, meter: &mut Meter) {
        let start = gate.clock.now();
        let (calls, paths) = (&self.runner.calls, self.runner.op.paths());
        let of_calls = (calls.length, paths);
        let progress = perform(self.fs, &calls.second, of_calls, &mut self.runner.hand);
        let end = gate.clock.now();
        self.runner.now = end;
        let span = Span::new(start, end);
        match progress.outcome() {
            Ok(_) => meter.done(1, span, 0),
            Err(kind) => {
                let failure = self.runner.failure(None, (kind, String::new()));
                meter.failed(1, span, failure);
            }
        }
    }
}

impl<O: ItemOp, F: Fs + ?Sized> Program for Items<'_, O, F> {
    type Operation = Option<Nanos>;
    type Outcome = Result<Progress, FailureKind>;

    #[inline(always)]
    fn next(&mut self, gate: &Gate, _meter: &mut Meter) -> Next<Option<Nanos>> {
        let runner = &mut *self.runner;
        if runner.issued >= runner.limit || gate.closed(runner.now) {
            return Next::End(runner.issued >= runner.limit);
        }
        let intended = runner.intended(gate);
        let index = runner.visit.index(runner.issued);
        if runner.calls.opens.is_some() {
            let begun = gate.clock.now();
            runner.prepare(index);
            // Opening the file is not part of the worker's time.
            gate.waits.add(begun, gate.clock.now());
        } else {
            runner.prepare(index);
        }
        if !runner.op.may_act() {
            runner.failed = true;
            return Next::End(false);
        }
        Next::Operation(intended)
    }

    #[inline(always)]
    fn may_start(&mut self, intended: &Option<Nanos>, gate: &Gate) -> bool {
        intended.is_none_or(|at| gate.wait(at))
    }

    #[inline(always)]
    fn is_sure(&self, _intended: &Option<Nanos>) -> bool {
        // The gate was checked before it was prepared.
        true
    }

    #[inline(always)]
    fn put_back(&mut self, intended: Option<Nanos>) {
        self.runner.due = intended;
    }

    #[inline(always)]
    fn perform(&mut self, _intended: &Option<Nanos>, _gate: &Gate) -> Self::Outcome {
        let runner = &mut *self.runner;
        if let Some(call) = &runner.only_name {
            let (path, other) = runner.op.paths();
            self.fs.call(call, Operands::paths(path, other))?;
            return Ok(Progress::default());
        }
        if let Some(done) = runner.op.own(self.fs) {
            return done.map(Progress::done);
        }
        let (calls, paths) = (&runner.calls, runner.op.paths());
        let of_calls = (calls.length, paths);
        let progress = perform(self.fs, &calls.timed, of_calls, &mut runner.hand);
        progress.outcome().map(|_| progress)
    }

    #[inline(always)]
    fn ended(
        &mut self,
        intended: Option<Nanos>,
        outcome: Self::Outcome,
        (start, end): (Nanos, Nanos),
        gate: &Gate,
        meter: &mut Meter,
    ) {
        let runner = &mut *self.runner;
        runner.issued += 1;
        runner.now = end;
        let span = Span::due(intended, start, end);
        let mut result = match &outcome {
            Ok(progress) => runner.settle(progress),
            Err(kind) => Err((*kind, String::new())),
        };
        if runner.calls.opens.is_some() {
            let closed = runner.close();
            gate.waits.add(end, gate.clock.now());
            result = result.and_then(|bytes| closed.map(|()| bytes));
        }
        match result {
            Ok(bytes) => meter.done(0, span, bytes),
            Err(why) => {
                let failure = runner.failure(None, why);
                meter.failed(0, span, failure);
            }
        }
        if !runner.calls.second.is_empty() && outcome.is_ok() {
            self.second_step(gate, meter);
        }
    }
}

impl<O: ItemOp> ItemRunner<O> {
    /// A failure on that path; `None`: that of the current item.
    #[cold]
    fn failure(&mut self, path: Option<&CStr>, (kind, detail): Why) -> Failure {
        self.failed = true;
        let path = path.unwrap_or(self.op.paths().0);
        Failure::new(self.kind, path.to_string_lossy(), kind).with(detail)
    }

    /// Runs one operation at a time; returns whether the gate is still open. System calls are made by a
    /// loop of their own, which knows their executor.
    fn one_by_one(&mut self, gate: &Gate, meter: &mut Meter) -> bool {
        let fs = Arc::clone(&self.fs);
        match (fs.as_ref() as &dyn Any).downcast_ref::<PosixFs>() {
            Some(fs) => one_by_one(&mut Items { runner: self, fs }, gate, meter),
            None => {
                let fs = fs.as_ref();
                one_by_one(&mut Items { runner: self, fs }, gate, meter)
            }
        }
    }
}

impl<O: ItemOp> Runner for ItemRunner<O> {
    fn run(&mut self, gate: &Gate, meter: &mut Meter, upto: Option<u64>) {
        self.limit = upto.map_or(self.visit.visits, |u| u.min(self.visit.visits));
        self.now = gate.clock.now();
        if let Some(mut flight) = self.flight.take() {
            flight.run(self, gate, meter);
            self.flight = Some(flight);
        } else {
            self.one_by_one(gate, meter);
        }
        self.count_unissued(gate, meter);
        match &self.after {
            Some(after) if after.tops_up => self.ended = Some(gate.clone()),
            Some(after) if !gate.stop.is_raised() => after.follow(self.fs.as_ref(), gate, meter),
            _ => {}
        }
    }

    fn issued(&self, _meter: &Meter) -> u64 {
        self.issued
    }

    fn planned(&self) -> u64 {
        self.visit.visits
    }

    fn look(&mut self, ended: bool) -> Pages {
        let mut all = Pages::default();
        // Opening a file changes what the cache has of its name and, on FUSE, of its content: only
        // a few of all items are checked, and only before the phase.
        let count = self.visit.count;
        let wanted = match self.op.reads_through_cache() && !ended {
            true => sample(count),
            false => 0,
        };
        for nth in 0..wanted {
            let index = self.visit.first + spread(nth, wanted, count);
            self.op.aim(index);
            match peek(self.fs.as_ref(), self.op.paths().0) {
                Some(pages) => all.add(pages),
                None => return all,
            }
        }
        if wanted > 0 {
            all.of = count;
        }
        all
    }

    fn once(&self) -> Option<u64> {
        let Visit { count, visits, .. } = self.visit;
        (visits > count).then_some(count)
    }

    fn covered(&self, _meter: &Meter) -> bool {
        !self.failed && self.issued >= self.visit.count.min(self.visit.visits)
    }

    fn finish(&mut self, meter: &mut Meter) {
        let ended = self.ended.take().filter(|gate| !gate.stop.is_raised());
        if let Some((after, gate)) = self.after.as_ref().zip(ended) {
            after.follow(self.fs.as_ref(), &gate, meter);
        }
        let closed = self.close();
        if let Err(why) = closed.and_then(|()| self.op.finish(self.fs.as_ref())) {
            let failure = self.failure(None, why);
            meter.failed_untimed(0, failure);
        }
        meter.again(0, self.op.again());
        if let Some(covered) = self.covered.as_ref().filter(|_| !self.failed) {
            let there = self.visit.first + self.issued.min(self.visit.count);
            covered.fetch_max(there, Ordering::Relaxed);
        }
    }
}

/// Most items that a worker checks before a phase.
const SAMPLE_MOST: u64 = 8;
/// One of this many items is checked.
const SAMPLE_EVERY: u64 = 64;

/// Number of items, of `count`, that are checked before a phase: none of few, as the check opens
/// them, and an opened file is not cold any more.
fn sample(count: u64) -> u64 {
    (count / SAMPLE_EVERY).min(SAMPLE_MOST)
}

/// The place of the `nth` of `wanted` ones, evenly among `count`.
fn spread(nth: u64, wanted: u64, count: u64) -> u64 {
    (u128::from(nth) * u128::from(count) / u128::from(wanted.max(1))) as u64
}

/// Opens `path` for reading, counts its pages in the page cache, and closes it; `None` where they
/// cannot be counted.
fn peek(fs: &dyn Fs, path: &CStr) -> Option<Pages> {
    // Without a real directory, calls are only recorded.
    fs.directory()?;
    let fd = fs.open(path, OpenFlags::READ).ok()?;
    let found = fs.resident(fd);
    // The phase will find an error of the file.
    let _ = fs.close(fd);
    found.map(|Resident { pages, cached }| Pages {
        files: 1,
        of: 1,
        pages,
        cached,
    })
}

/// A buffer for a worker of a phase of `op`.
fn buffer(length: u64, op: OpKind) -> Result<AlignedBuffer, Failure> {
    AlignedBuffer::new(length as usize).map_err(|errno| Failure::new(op, "", errno))
}

/// Makes the calls of an operation. Timed.
#[inline(always)]
fn perform<F: Fs + ?Sized>(
    fs: &F,
    parts: &[rbench_core::Part],
    (length, paths): (u64, (&CStr, &CStr)),
    hand: &mut Hand,
) -> Progress {
    match &mut hand.file {
        Ok(file) => fs::perform(fs, (parts, length as usize), paths, &mut hand.data, file),
        Err(errno) => Progress::failed(*errno),
    }
}

/// Stats of items of `plan` without lookups: the loop of all metadata operations one at a time over a
/// file system that does nothing, for this many operations. It costs slightly more than the loop that
/// knows that it makes system calls.
///
/// # Errors
/// When there is not the memory.
pub(crate) fn over_nothing(plan: &MetaPlan, operations: u64) -> Prepared {
    let plan = Arc::new(MetaPlan {
        in_flight: None,
        ..plan.clone()
    });
    let scene = OpContext {
        phase: PhasePlan {
            kind: PhaseKind::FileStat,
            who: ItemOwner::Each { ahead: 0 },
            shuffled: false,
            deadline: None,
            showing: Showing::Phase,
            part: None,
            open_loop: None,
        },
        info: PhaseKind::FileStat.info(),
        fs: Arc::new(NullFs),
        forest: Arc::new(plan.forest(0, 1)),
        rank: Rank(0),
        ranks: 1,
        threads: 1,
        seed: [0; 2],
        made: None,
        renamed: false,
        all_there: true,
        schedule: None,
        after: None,
        plan,
    };
    plain::over_nothing(&scene, operations)
}

/// The context of one metadata phase, the same for all workers of a rank.
#[derive(Clone)]
pub struct OpContext {
    /// The workload.
    pub plan: Arc<MetaPlan>,
    /// The phase.
    pub phase: PhasePlan,
    /// The fixed properties of its kind.
    pub info: &'static PhaseInfo,
    /// The target.
    pub fs: Arc<dyn Fs>,
    /// The trees of this pass.
    pub forest: Arc<Forest>,
    /// This rank.
    pub rank: Rank,
    /// Number of ranks.
    pub ranks: u32,
    /// Workers of each rank.
    pub threads: u32,
    /// (seed, iteration): random orders and data derive from these.
    pub seed: [u64; 2],
    /// After a stonewall: how many items each worker made.
    pub made: Option<u64>,
    /// The items carry the names that the rename phase gave them.
    pub renamed: bool,
    /// Every requested directory exists, so that listings can be checked.
    pub all_there: bool,
    /// Open loop: the intended starts of all workers of this rank.
    pub schedule: Option<Arc<Schedule>>,
    /// Steps after the operations, once for each rank.
    pub after: Option<After>,
}

impl OpContext {
    /// The rank whose items this rank works on, where it works on those of one rank.
    pub fn owner(&self) -> Rank {
        match self.phase.who {
            ItemOwner::Each { ahead } => shift::owner(self.rank, ahead, self.ranks),
            ItemOwner::FirstForAll | ItemOwner::First => self.rank,
        }
    }

    /// Paths of what this phase visits, with the names before or after
    /// renaming.
    fn places(&self, renamed: bool) -> Places {
        self.suffixed(if renamed { RENAMED } else { "" })
    }

    /// The dependencies between the directories that this phase visits, where they are the tree's.
    fn tree(&self) -> Option<Tree> {
        self.info.items.is_none().then_some(Tree {
            nodes: self.plan.nodes,
            branch: self.plan.shape.branch,
        })
    }

    /// Calls of the operation.
    fn calls(&self) -> Calls {
        Calls::of_phase(self.info, &self.plan, self.phase.who)
    }

    /// A runner of `op` over what worker `thread` visits, with several in flight where the plan
    /// says so and a ring performs it.
    fn runner<O: ItemOp + 'static>(&self, op: O, thread: u32) -> Prepared {
        self.runner_over(op, thread, self.visit(thread))
    }

    /// Like [`OpContext::runner`], over these items.
    fn runner_over<O: ItemOp + 'static>(&self, op: O, thread: u32, visit: Visit) -> Prepared {
        // A worker without items needs no ring.
        let in_a_ring = visit.visits > 0 && self.info.in_a_ring();
        let op = (self.info.op, op);
        let runner = ItemRunner::new(op, self.calls(), self.fs.clone(), visit)?;
        let runner = runner.followed_by(self.after.clone().filter(|_| thread == 0));
        match self.plan.in_flight.filter(|_| in_a_ring) {
            Some(depth) => Ok(Box::new(runner.together(depth)?)),
            None => Ok(Box::new(runner)),
        }
    }

    fn suffixed(&self, suffix: &'static str) -> Places {
        let kind = self.info.items.unwrap_or(ItemKind::Dir);
        let for_all = self.phase.who == ItemOwner::FirstForAll;
        Places::new(
            Paths::new(Arc::clone(&self.forest), self.owner(), kind).suffixed(suffix),
            for_all.then(|| self.of_one_owner()),
            self.plan.naming.common.is_some(),
        )
    }

    /// Items or tree directories of one owner that the phase visits.
    fn of_one_owner(&self) -> u64 {
        match (self.info.items, self.made) {
            (None, _) => self.plan.nodes * self.plan.loops,
            (Some(_), None) => self.plan.items_per_rank,
            (Some(_), Some(made)) => made
                .saturating_mul(u64::from(self.threads))
                .min(self.plan.items_per_rank),
        }
    }

    /// The part of worker `thread`: an even, contiguous one of `total`.
    fn share(&self, thread: u32, total: u64) -> (u64, u64) {
        let part = |t: u32| (u128::from(total) * u128::from(t) / u128::from(self.threads)) as u64;
        (part(thread), part(thread + 1) - part(thread))
    }

    /// The items that worker `thread` visits, with their order.
    fn visit(&self, thread: u32) -> Visit {
        let idle = self.rank != Rank(0);
        let (first, all) = match (self.info.items, self.phase.who) {
            (_, ItemOwner::First | ItemOwner::FirstForAll) if idle => (0, 0),
            // Children need their parents: one worker makes a tree.
            (None, _) if thread > 0 => (0, 0),
            (None, ItemOwner::FirstForAll) => (0, self.of_one_owner() * u64::from(self.ranks)),
            (None, _) => (0, self.of_one_owner()),
            (Some(_), ItemOwner::FirstForAll) => {
                self.share(thread, self.of_one_owner() * u64::from(self.ranks))
            }
            (Some(_), _) => self.share(thread, self.plan.items_per_rank),
        };
        let count = match (self.info.items, self.phase.who, self.made) {
            (Some(_), ItemOwner::Each { .. } | ItemOwner::First, Some(made)) => made.min(all),
            _ => all,
        };
        let [seed, iteration] = self.seed;
        let parts = [
            seed,
            iteration,
            u64::from(self.rank.0),
            u64::from(thread),
            self.info.kind as u64,
        ];
        let order = (self.phase.shuffled && count > 0).then(|| Permutation::new(count, &parts));
        let (count, visits) = match self.phase.part {
            None => (count, count),
            Some(part) => {
                let count = part.items.min(count);
                let again = part.again.filter(|_| count > 0);
                (count, again.unwrap_or(count))
            }
        };
        Visit {
            first,
            count,
            visits,
            order,
            schedule: self.schedule.clone(),
        }
    }

    /// The context with intended starts, where the phase has a rate.
    pub fn scheduled(mut self) -> OpContext {
        self.schedule = self.phase.open_loop.map(|open| {
            let workers = Workers::of_rank(self.rank, self.ranks, self.threads);
            let [a, b, c, d, e] = self.data_parts(0);
            let seed = [a, b, c, d, e, STREAM_STARTS];
            Arc::new(Schedule::new(open.arrival, open.rate, workers, &seed))
        });
        self
    }

    /// Operations that all workers of all ranks would issue.
    pub fn total(&self) -> u64 {
        let ranks = u64::from(self.ranks);
        let each = self.of_one_owner();
        let nodes = self.plan.shape.item_nodes();
        let trees = match self.plan.layout {
            Layout::Unique => ranks,
            Layout::Shared => 1,
        };
        if let Some(part) = self.phase.part {
            let workers = ranks * u64::from(self.threads);
            let items = part.items.min(each / u64::from(self.threads));
            return part.again.unwrap_or(items).saturating_mul(workers);
        }
        match (self.info.kind, self.phase.who) {
            (PhaseKind::DirList, _) => (nodes.end - nodes.start) * trees,
            (_, ItemOwner::Each { .. } | ItemOwner::FirstForAll) => each.saturating_mul(ranks),
            (_, ItemOwner::First) => each,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_few_items_none_is_opened_to_look_at_it() {
        let samples = [0, 1, 63, 64, 127, 128, 512, 10_000].map(sample);
        assert_eq!(samples, [0, 0, 0, 1, 1, 2, 8, 8]);
    }
}
