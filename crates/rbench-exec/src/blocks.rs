//! Blocks of files, moved through an engine: the worker of a phase of `rbench io` and of a job,
//! closed loop or open loop, with everything between the operations.
//!
//! This file owns a worker's life: passes over its work, the steps after them, and the end.
//! `context` creates it, `single` performs one request at a time, `many` keeps several in flight.
//! `noting` records results, `syncs` syncs and closes, `checks` draws operations and verifies
//! written data.

use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use nix::errno::Errno;
use rbench_core::job::JobLog;
use rbench_core::residency::Pages;
use rbench_core::{Clock as _, Direction, IoPriority, Nanos};
use rbench_plan::pattern::{Part, Steps};
use rbench_sys::engine::Completion;
use rbench_sys::limits::Usage;
use rbench_sys::{Engine, LockedMemory, Request, Transfer};

use crate::ack::Log;
use crate::data::Data;
use crate::meter::Meter;
use crate::pace::{FlowShare, Gate};
use crate::queue::Queue;
use crate::verify::{BlockHeader, Marks};
use crate::worker::{Prepared, Runner};

mod arrivals;
mod checkers;
mod checks;
mod context;
mod extras;
mod framed;
pub mod handles;
mod iolog;
mod many;
mod moving;
mod nothing;
mod noting;
mod order;
mod others;
mod priorities;
mod process;
mod progress;
mod recorder;
mod renewal;
mod search;
mod single;
mod small;
mod stats;
mod stretch;
mod syncs;
mod trims;
mod unwritten;

use arrivals::Arrivals;
use checkers::Checkers;
use checks::{Source, Written};
use context::{How, epoch_ms};
use extras::Extras;
use framed::Framed;
use handles::Handles;
use iolog::Replayed;
use order::Order;
use others::Ramp;
use priorities::Draws;
use progress::Progress;
use recorder::Recorder;
use stats::JobStats;
use syncs::Interlude;
use trims::Trims;
use unwritten::Unwritten;

pub use context::{
    Failures, Kept, Lanes, Report, Sink, WorkerContext, engine_of, together, unprepared,
};
pub use iolog::{Iolog, Iologs, gcd};
pub(crate) use nothing::{BLOCK, bare_loop, over_nothing};
pub use order::{InFlight, Locks};
pub use others::{Exit, Others};
pub use process::check as check_process;
pub(crate) use small::bare_loop_of_small;

/// Creates the worker with index `clone` of its job on this rank: opens its files, untimed.
///
/// # Errors
/// The reason why it cannot work.
pub fn prepare(context: &WorkerContext, clone: u32) -> Prepared {
    match context.job.small {
        Some(small) => small::prepare(context, clone, small),
        None => context::prepare(context, clone),
    }
}

/// The kind of operation on a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Read,
    Write,
    Trim,
    /// Read and compare.
    Check,
    /// Read a trimmed block: it must be zeros.
    CheckZeros,
}

impl Kind {
    /// Returns the direction of the row that it belongs to.
    #[inline(always)]
    fn direction(self) -> Direction {
        match self {
            Kind::Write => Direction::Write,
            Kind::Trim => Direction::Trim,
            Kind::Read | Kind::Check | Kind::CheckZeros => Direction::Read,
        }
    }
}

/// A planned operation.
#[derive(Debug, Clone, Copy, Default)]
struct Planned {
    kind: Kind,
    file: u64,
    offset: u64,
    length: usize,
    /// Number of a write, or the lowest valid number for a check.
    generation: u64,
    /// Set for the last operation on its file.
    last: bool,
    intended: Option<Nanos>,
    /// The default is that of the job.
    priority: IoPriority,
}

impl Planned {
    fn transfer(&self) -> Transfer {
        match self.kind.direction() {
            Direction::Read => Transfer::Read,
            Direction::Write => Transfer::Write,
            Direction::Trim => Transfer::Trim,
        }
    }

    fn request(&self, fd: RawFd) -> Request {
        Request {
            transfer: self.transfer(),
            fd,
            offset: self.offset,
            length: self.length,
            at: 0,
            priority: self.priority,
        }
    }
}

/// In headers of jobs, the job's position is in the bits above the worker's number.
const JOB_SHIFT: u32 = 40;

/// Returns the mark in the headers of a worker, from its job's position and its number.
pub fn mark(job: u32, worker: u64) -> u64 {
    u64::from(job) << JOB_SHIFT | worker
}

/// Writes of a job since the last operation of each kind that may follow them.
#[derive(Debug, Default)]
struct Since {
    fsync: u64,
    datasync: u64,
    /// With `sync_file_range`: writes, and the part of the file that they went to.
    range: u64,
    range_file: u64,
    range_part: (u64, u64),
    think: u64,
    /// End of the last pause, and the latest operation.
    thought: Nanos,
    ended: Nanos,
}

impl Since {
    /// Records the place of a write.
    fn note_range(&mut self, what: &Planned) {
        let end = what.offset.saturating_add(what.length as u64);
        let (from, to) = match self.range > 0 && self.range_file == what.file {
            true => self.range_part,
            false => (what.offset, end),
        };
        (self.range_file, self.range_part) = (what.file, (from.min(what.offset), to.max(end)));
        self.range += 1;
    }
}

/// The end of a worker, and the resources that it used.
#[derive(Debug, Default)]
struct Ended {
    /// errno of the error that ended it; 0: none.
    error: i32,
    /// Errors that did not end it, and errno of the first.
    errors: u64,
    first_error: i32,
    start_ms: u64,
    usage_before: Usage,
    usage: Usage,
    at: Nanos,
}

/// Source of a worker's next operation.
struct Pattern {
    steps: Steps,
    source: Source,
    /// The log of I/O that replaces the pattern.
    replayed: Option<Box<Replayed>>,
    arrivals: Arrivals,
    /// Priorities that requests draw, if they do.
    priorities: Option<Box<Draws>>,
    /// The next operation if it was drawn and is not in a slot.
    next: Option<Planned>,
    /// The number of the latest write, and the highest number.
    generation: u64,
    generation_max: u64,
    pass_over: bool,
    /// The worker has to wait after the finished pass.
    stops: bool,
    /// Schedule of dropping cached pages.
    renewal: renewal::Renewal,
    exhausted: bool,
    /// Operations started in this pass.
    pass_steps: u64,
}

/// A worker's requests in flight.
struct Requests {
    /// Slots, with several requests in flight.
    slots: Vec<many::Slot>,
    queue: Queue,
    /// Ready, but not yet submitted to the engine.
    pending: Vec<usize>,
    /// Completion of a single request.
    done: Vec<Completion>,
    /// The slot with the next operation, ready.
    held: Option<usize>,
    /// Dependencies of its requests.
    order: Option<Box<Order>>,
}

/// Contents of a worker's blocks, and the state of verification.
struct Checks {
    headers: Option<Marks>,
    /// The worker's mark in headers.
    mark: u64,
    checkers: Option<Checkers>,
    /// The journal of its acknowledged writes.
    log: Option<Log>,
    backlog: Vec<Written>,
    /// Blocks of the backlog to check before waiting for the next ones.
    batch_left: u64,
    /// Trims of the worker, if any.
    trims: Option<Box<Trims>>,
    /// Blocks not to check.
    unwritten: Unwritten,
    /// Writes that completed, and the limit of verification.
    progress: Option<Box<Progress>>,
}

/// A worker's progress and its report.
struct Accounts {
    /// Taken in `finish`.
    stats: Option<Box<JobStats>>,
    ended: Ended,
    start: Nanos,
    /// Operations that start earlier are not recorded (ramp).
    records_from: Nanos,
    /// Operations and bytes before recording starts.
    ramp: Ramp,
    since: Since,
    last_written: u64,
    /// Requests started in total, the maximum, and the number planned.
    submitted: u64,
    upto: u64,
    planned: u64,
    /// Set when no further operation starts: after an error, or at a goal.
    over: bool,
}

impl Accounts {
    /// Ends the work for a reason other than a failed operation.
    fn give_up(&mut self, errno: Option<Errno>) {
        self.over = true;
        if let (Some(errno), 0) = (errno, self.ended.error) {
            self.ended.error = errno as i32;
        }
    }

    fn is_sound(&self) -> bool {
        self.ended.error == 0 && self.ended.errors == 0
    }
}

/// One worker.
pub struct BlockRunner {
    context: WorkerContext,
    part: Part,
    how: How,
    engine: Box<dyn Engine>,
    files: Handles,
    data: Data,
    pattern: Pattern,
    requests: Requests,
    checks: Checks,
    accounts: Accounts,
    /// The log of its own I/O.
    recorder: Option<Box<Recorder>>,
    /// Its share of a flow.
    flow: Option<FlowShare>,
    /// Memory kept from others for the life of the worker.
    locked: Option<LockedMemory>,
    /// Rows in which opens and closes are timed.
    framed: Option<Box<Framed>>,
}

impl BlockRunner {
    /// The gate with the worker's own start, deadline and stop.
    fn own_gate(&self, gate: &Gate) -> Gate {
        let pace = &self.context.job.pace;
        let start = gate.start.0.saturating_add(pace.delay.0);
        let end = |runtime: Nanos| start.saturating_add(pace.ramp.0).saturating_add(runtime.0);
        let stop = self.context.others.stop.as_ref().unwrap_or(&gate.stop);
        Gate {
            clock: gate.clock,
            start: Nanos(start),
            // Without an end of the ramp, the rest has none either.
            deadline: pace
                .runtime
                .filter(|_| !self.accounts.ramp.goes_on())
                .map(|runtime| Nanos(end(runtime))),
            stop: stop.clone(),
            waits: gate.waits.clone(),
        }
    }

    /// Runs pass after pass, each with the steps after it.
    fn passes(&mut self, gate: &Gate, meter: &mut Meter) {
        let mut gate = gate.clone();
        let gate = &mut gate;
        let (reads_back, only_checks) = (self.reads_back(), self.only_checks());
        let mut first = true;
        while !self.pattern.exhausted && !self.accounts.over {
            if !std::mem::take(&mut first) {
                self.begin_again(meter);
            }
            let before = reads_back.then(|| (self.pattern.steps.clone(), self.pattern.generation));
            (
                self.pattern.pass_over,
                self.pattern.stops,
                self.pattern.pass_steps,
            ) = (false, false, 0);
            if let Some(stats) = &mut self.accounts.stats {
                let kind = match only_checks {
                    true => stretch::Kind::ReadBack,
                    false => stretch::Kind::Work,
                };
                stats.begin_stretch(kind, gate.clock.now());
            }
            let mut open = self.pump(gate, meter);
            if self.end_ramp(gate) {
                open = self.pump(gate, meter);
            }
            if !open {
                self.cover_time(gate, meter);
            }
            if self.framed.is_none() {
                self.end_writes(gate, meter);
            }
            if let Some((steps, generation)) = before
                && self.pattern.pass_steps > 0
            {
                self.read_back(steps, generation, gate, meter);
            }
            self.rest_of_backlog(gate, meter);
            if !open {
                break;
            }
            if let Some(time) = self.context.job.pace.time_min {
                // From here on time decides.
                gate.deadline = Some(Nanos(self.accounts.start.0.saturating_add(time.0)));
            }
        }
        self.note_missed(gate, meter);
    }

    /// Performs the operations of the source, to its end or to the end of the pass. Returns whether
    /// the gate is still open.
    fn pump(&mut self, gate: &Gate, meter: &mut Meter) -> bool {
        let open = match self.requests.slots.len() {
            1 => self.pump_single(gate, meter),
            _ => self.pump_many(gate, meter),
        };
        self.note_checked(meter, true);
        open
    }

    /// Covers all of the time that ended an open loop, however early the last operation was.
    fn cover_time(&mut self, gate: &Gate, meter: &mut Meter) {
        let next = self.pattern.next.as_ref();
        let is_paced = !matches!(self.pattern.arrivals, Arrivals::Closed)
            || next.is_some_and(|next| next.intended.is_some());
        let end = gate
            .end_of_time()
            .filter(|_| is_paced && !self.accounts.over && !self.pattern.exhausted);
        if let Some(end) = end {
            meter.extend_to(end);
            if let Some(stats) = &mut self.accounts.stats {
                stats.cover(end);
            }
        }
    }

    /// Records the operations that were due before the deadline and never started.
    fn note_missed(&mut self, gate: &Gate, meter: &mut Meter) {
        let closed = gate
            .end()
            .filter(|_| !self.accounts.over && !gate.stop.is_raised());
        let Some(deadline) = closed.filter(|_| !self.pattern.exhausted) else {
            return;
        };
        let lanes = self.context.lanes;
        let left = self
            .accounts
            .planned
            .saturating_sub(self.accounts.submitted);
        let waiting = self.pattern.next.map(|what| arrivals::Waiting {
            direction: what.kind.direction(),
            length: what.length as u64,
            intended: what.intended,
        });
        let mut is_first = true;
        for direction in Direction::ALL {
            if let Some(lane) = lanes.of(direction) {
                let which = (direction, std::mem::take(&mut is_first));
                let time = (gate.start, deadline);
                let missed = match &self.pattern.replayed {
                    Some(replayed) => {
                        let span = deadline.since(self.accounts.start);
                        let waits = waiting.is_some_and(|waiting| {
                            waiting.direction == direction
                                && waiting.intended.is_some_and(|at| at < deadline)
                        });
                        replayed.missed(direction, span) + u64::from(waits)
                    }
                    None => self.pattern.arrivals.missed(time, which, waiting, left),
                };
                meter.unissued(lane, missed);
            }
        }
    }

    /// Fills the slot's buffer with the data of a write.
    #[inline(always)]
    fn fill<E: Extras>(&mut self, slot: usize, what: &Planned) {
        if E::asks(self.how.names) {
            return;
        }
        match what.kind {
            Kind::Write => {}
            Kind::Trim => return,
            Kind::Read | Kind::Check | Kind::CheckZeros => {
                self.data.spoil(slot);
                return;
            }
        }
        let block = &mut self.engine.buffer(slot)[..what.length];
        match &self.checks.headers {
            None => self.data.fill(slot, block),
            Some(headers) => headers.stamp(
                block,
                &BlockHeader {
                    run: self.context.run,
                    file: self.files.key(what.file),
                    offset: what.offset,
                    generation: what.generation,
                    worker: self.checks.mark,
                },
            ),
        }
    }

    /// Counts an operation that starts.
    #[inline(always)]
    fn account(&mut self, what: &Planned) {
        let write = what.kind == Kind::Write;
        self.files.begin(what.file);
        if !matches!(self.pattern.source, Source::Work) {
            return;
        }
        self.pattern.pass_steps += 1;
        self.accounts.since.think += u64::from(self.context.job.pace.think_by_issue);
        if write {
            self.accounts.last_written = what.file;
            self.accounts.since.fsync += 1;
            self.accounts.since.datasync += 1;
            if self.context.job.syncing.range.is_some() {
                self.accounts.since.note_range(what);
            }
            if self.how.remembers {
                self.checks.backlog.push(Written::of(what, false));
            }
        }
    }

    /// Counts an operation that is complete.
    #[inline(always)]
    fn account_complete(&mut self, end: Nanos) {
        if matches!(self.pattern.source, Source::Work) {
            self.accounts.since.think += u64::from(!self.context.job.pace.think_by_issue);
            self.accounts.since.ended = end;
        }
    }

    /// Returns the bytes of started operations.
    fn started_bytes(&self) -> u64 {
        let waiting = self.pattern.next.map_or(0, |what| what.length as u64);
        self.pattern.steps.bytes().saturating_sub(waiting)
    }

    /// Returns whether the worker covered its part in full, and each block at least once.
    fn went_everywhere(&self) -> bool {
        self.pattern.steps.covers() && self.started_bytes() >= self.pattern.steps.total()
    }
}

impl Runner for BlockRunner {
    fn run(&mut self, gate: &Gate, meter: &mut Meter, upto: Option<u64>) {
        let own = self.own_gate(gate);
        if let Some(upto) = upto {
            self.top_up(upto, own, meter);
            return;
        }
        (self.accounts.start, self.accounts.ended.at) = (own.start, own.start);
        let pace = &self.context.job.pace;
        let from = match self.accounts.ramp.goes_on() {
            // In this case bytes decide.
            true => Nanos(u64::MAX),
            false => Nanos(own.start.0.saturating_add(pace.ramp.0)),
        };
        self.accounts.records_from = from;
        (self.accounts.since.thought, self.accounts.since.ended) = (own.start, own.start);
        let used = self.used();
        if let Some(stats) = &mut self.accounts.stats {
            self.accounts.ended.usage_before = used;
            self.accounts.ended.start_ms = epoch_ms();
            stats.begin(own.start, from);
        }
        if pace.delay.0 > 0 {
            let waits = Gate {
                deadline: None,
                ..own.clone()
            };
            if !waits.wait(own.start) {
                self.end_others(gate);
                return;
            }
            self.accounts.ended.start_ms = epoch_ms();
        }
        if self.only_checks() && self.pattern.replayed.is_none() {
            self.verify_only(&own, meter);
        } else if !self.context.job.files.create_only {
            let begun = gate.clock.now();
            self.passes(&own, meter);
            match self.framed {
                Some(_) => self.transferred(begun, meter),
                None => self.close_timed(&own, meter),
            }
        }
        self.end_others(gate);
        if self.accounts.stats.is_some() {
            self.accounts.ended.at = gate.clock.now();
            gate.waits.at_work_until(self.accounts.ended.at);
            self.accounts.ended.usage = self.used().since(self.accounts.ended.usage_before);
        }
    }

    fn open(&mut self, gate: &Gate, meter: &mut Meter) {
        if self.framed.is_some() {
            self.open_framed(gate, meter);
        }
    }

    fn close(&mut self, gate: &Gate, meter: &mut Meter) {
        self.close_framed(gate, meter);
    }

    fn issued(&self, _meter: &Meter) -> u64 {
        self.accounts.submitted
    }

    fn planned(&self) -> u64 {
        self.accounts.planned
    }

    fn look(&mut self, _ended: bool) -> Pages {
        self.files.resident()
    }

    fn once(&self) -> Option<u64> {
        let job = &self.context.job;
        // Operations before the end of the ramp are not counted, and data that a job verifies was
        // just written.
        let plain = !job.pace.ramps() && (job.verify.is_none() || self.accounts.stats.is_none());
        let plain = plain && self.pattern.replayed.is_none();
        // Each pass starts with the pages that it reads dropped, unless they are mapped.
        let directions = job.pattern.directions;
        let drops = self.how.renews && !self.context.engine.mapped;
        let renews = drops && directions.read && !directions.write;
        let plain = plain && !renews;
        plain.then(|| self.pattern.steps.once()).flatten()
    }

    fn covered(&self, _meter: &Meter) -> bool {
        let everything = match self.pattern.replayed {
            Some(_) => self.pattern.exhausted,
            None => self.went_everywhere(),
        };
        self.accounts.is_sound() && everything
    }

    fn finish(&mut self, meter: &mut Meter) {
        for file in 0..self.files.count() {
            self.record_close(file, self.accounts.ended.at);
            self.close(file, meter);
        }
        self.end_record(meter);
        self.locked = None;
        let stop = &self.context.others.run_stop;
        process::leave(&self.context.job, &self.context.base, &|| stop.is_raised());
        self.save_progress(meter);
        // Pages lost by the time of closing are absent.
        if let Some(kept) = &self.context.kept
            && let Some(covered) = kept.covered.get(self.own_thread())
            && self.accounts.is_sound()
        {
            let bytes = self.started_bytes().min(self.pattern.steps.total());
            covered.fetch_max(kept.there + bytes, Ordering::Relaxed);
        }
        let counts = self.engine.counts();
        let lanes = self.context.lanes;
        let lanes = [lanes.read, lanes.write, lanes.trim, lanes.sync];
        self.tell_framed(meter);
        meter.again_of(lanes, counts.again);
        self.requests.queue.tell(meter);
        let Some(stats) = self.accounts.stats.take() else {
            if self.how.ramps {
                meter.measured_from(self.accounts.records_from);
            }
            return;
        };
        let [reads, writes, trims] = stats.measured();
        for (lane, measured) in lanes.into_iter().zip([reads, writes, trims, writes]) {
            if let Some(lane) = lane {
                meter.measured(lane, measured);
            }
        }
        let ramp = stats.logging.logs_from.since(self.accounts.start);
        let (outcome, log) = stats.finish(self.accounts.ended.at, self.rows(meter));
        let outcome = self.outcome(outcome, counts);
        let log = JobLog {
            job: outcome.job,
            worker: outcome.worker,
            start_ms: outcome.start_ms + ramp.0 / 1_000_000,
            ..log
        };
        if let Some(report) = &self.context.report {
            report.put(outcome, log);
        }
    }
}

impl BlockRunner {
    /// Continues, whatever the time, until `upto` operations were started in total. Only one may be
    /// in flight at a time.
    fn top_up(&mut self, upto: u64, own: Gate, meter: &mut Meter) {
        self.accounts.upto = upto;
        let gate = Gate {
            deadline: None,
            ..own
        };
        let begun = gate.clock.now();
        self.passes(&gate, meter);
        self.transferred(begun, meter);
    }

    /// Returns its number on this rank.
    fn own_thread(&self) -> usize {
        (self.part.worker % u64::from(self.context.job.numjobs.max(1))) as usize
    }
}
