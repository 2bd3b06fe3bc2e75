//! Blocks of files, moved through an engine: the worker of a phase of
//! `rbench io` and of a job, closed loop or at given times, with everything that
//! happens between the operations.
//!
//! This file owns a worker's life: passes over its work, what follows them, the end.
//! `context` makes it, `single` performs one request at a time, `many` keeps several
//! in flight; `noting` says what becomes of one, `syncs` syncs and closes, `checks` draws the operations and reads
//! back what was written.

use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use nix::errno::Errno;
use rbench_core::job::JobLog;
use rbench_core::residency::Pages;
use rbench_core::{Clock as _, Direction, Nanos};
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

/// Makes the worker that is the `clone`-th of its job on this rank: opens its
/// files, untimed.
///
/// # Errors
/// Why it cannot do anything.
pub fn prepare(context: &WorkerContext, clone: u32) -> Prepared {
    match context.job.small {
        Some(small) => small::prepare(context, clone, small),
        None => context::prepare(context, clone),
    }
}

/// What is done with a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Trim,
    /// Read and compared.
    Check,
    /// Read where it was trimmed: it must be zeros.
    CheckZeros,
}

impl Kind {
    /// Of the row that it belongs to.
    #[inline(always)]
    fn direction(self) -> Direction {
        match self {
            Kind::Write => Direction::Write,
            Kind::Trim => Direction::Trim,
            Kind::Read | Kind::Check | Kind::CheckZeros => Direction::Read,
        }
    }
}

/// An operation to do.
#[derive(Debug, Clone, Copy)]
struct Planned {
    kind: Kind,
    file: u64,
    offset: u64,
    length: usize,
    /// Of a write: its number. Of a check: the earliest it may have.
    generation: u64,
    /// Whether the file is done after it.
    last: bool,
    intended: Option<Nanos>,
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
        }
    }
}

/// In headers of jobs, the job's position stands above the worker's number.
const JOB_SHIFT: u32 = 40;

/// What headers say of a worker of the job with that position.
pub fn mark(job: u32, worker: u64) -> u64 {
    u64::from(job) << JOB_SHIFT | worker
}

/// Writes of a job since the last of each that may follow them.
#[derive(Debug, Default)]
struct Since {
    fsync: u64,
    datasync: u64,
    /// With `sync_file_range`: writes, and which part of which file they went to.
    range: u64,
    range_file: u64,
    range_part: (u64, u64),
    think: u64,
    /// When the last pause was over, and the latest operation.
    thought: Nanos,
    ended: Nanos,
}

impl Since {
    /// Notes where a write went.
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

/// How a worker ended, and what it used.
#[derive(Debug, Default)]
struct Ended {
    /// errno of what ended it; 0: nothing did.
    error: i32,
    /// Errors that did not, and errno of the first.
    errors: u64,
    first_error: i32,
    start_ms: u64,
    usage_before: Usage,
    usage: Usage,
    at: Nanos,
}

/// Where a worker's next operation comes from.
struct Pattern {
    steps: Steps,
    source: Source,
    /// The log of I/O that takes the place of the pattern.
    replayed: Option<Box<Replayed>>,
    arrivals: Arrivals,
    /// The next operation, where it was drawn and is not in a slot.
    next: Option<Planned>,
    /// The number of the latest write, and the last there is.
    generation: u64,
    generation_max: u64,
    pass_over: bool,
    /// The pass that is over is to be waited for.
    stops: bool,
    /// When cached pages are dropped.
    renewal: renewal::Renewal,
    exhausted: bool,
    /// Operations of this pass that were started.
    pass_steps: u64,
}

/// A worker's requests in flight.
struct Requests {
    /// With several requests in flight: their slots.
    slots: Vec<many::Slot>,
    queue: Queue,
    /// Ready, and not yet given to the engine.
    pending: Vec<usize>,
    /// The completion of one request.
    done: Vec<Completion>,
    /// The slot in which the next operation is ready.
    held: Option<usize>,
    /// What its requests wait for.
    order: Option<Box<Order>>,
}

/// What a worker's blocks carry, and what is to be checked of them.
struct Checks {
    headers: Option<Marks>,
    /// What headers say of the worker.
    mark: u64,
    checkers: Option<Checkers>,
    /// The journal of its acknowledged writes.
    log: Option<Log>,
    backlog: Vec<Written>,
    /// Blocks of the backlog that are to be checked before the next ones are waited for.
    batch_left: u64,
    /// What of it is to be trimmed.
    trims: Option<Box<Trims>>,
    /// What is not to be checked.
    unwritten: Unwritten,
    /// Which writes completed, and how far to verify.
    progress: Option<Box<Progress>>,
}

/// How far a worker is, and what it reports.
struct Accounts {
    /// Taken in `finish`.
    stats: Option<Box<JobStats>>,
    ended: Ended,
    start: Nanos,
    /// What starts earlier is not recorded (ramp).
    records_from: Nanos,
    /// What is moved before anything is recorded.
    ramp: Ramp,
    since: Since,
    last_written: u64,
    /// Requests started in all, the most there may be, and how many are planned.
    submitted: u64,
    upto: u64,
    planned: u64,
    /// No further operation: an error, or a goal was reached.
    over: bool,
}

impl Accounts {
    /// Ends the work for a reason that is no failed operation.
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
    /// Its part in a flow.
    flow: Option<FlowShare>,
    /// What it keeps from others as long as it is there.
    locked: Option<LockedMemory>,
    /// Where opens and closes are timed.
    framed: Option<Box<Framed>>,
}

impl BlockRunner {
    /// The worker's own start, deadline and stop.
    fn own_gate(&self, gate: &Gate) -> Gate {
        let pace = &self.context.job.pace;
        let start = gate.start.0.saturating_add(pace.delay.0);
        let end = |runtime: Nanos| start.saturating_add(pace.ramp.0).saturating_add(runtime.0);
        let stop = self.context.others.stop.as_ref().unwrap_or(&gate.stop);
        Gate {
            clock: gate.clock,
            start: Nanos(start),
            // Where the ramp has no end yet, neither has the rest.
            deadline: pace
                .runtime
                .filter(|_| !self.accounts.ramp.goes_on())
                .map(|runtime| Nanos(end(runtime))),
            stop: stop.clone(),
            waits: gate.waits.clone(),
        }
    }

    /// Pass after pass, each with what follows it.
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
                // From now on time decides.
                gate.deadline = Some(Nanos(self.accounts.start.0.saturating_add(time.0)));
            }
        }
        self.note_missed(gate, meter);
    }

    /// Does what the source gives, to its end or to the end of the pass; whether
    /// the gate is still open.
    fn pump(&mut self, gate: &Gate, meter: &mut Meter) -> bool {
        let open = match self.requests.slots.len() {
            1 => self.pump_single(gate, meter),
            _ => self.pump_many(gate, meter),
        };
        self.note_checked(meter, true);
        open
    }

    /// Notes what was due before the deadline and never started.
    fn note_missed(&mut self, gate: &Gate, meter: &mut Meter) {
        let closed = gate
            .end()
            .filter(|_| !self.accounts.over && !gate.stop.is_raised());
        let Some(deadline) = closed.filter(|_| !self.pattern.exhausted) else {
            return;
        };
        if matches!(self.pattern.arrivals, Arrivals::Together(_)) {
            meter.extend_to(gate.end_of_time().unwrap_or_default());
        }
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

    /// Puts the data of a write into the slot's buffer.
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

    /// Bytes of the operations that were started.
    fn started_bytes(&self) -> u64 {
        let waiting = self.pattern.next.map_or(0, |what| what.length as u64);
        self.pattern.steps.bytes().saturating_sub(waiting)
    }

    /// Whether the worker's part was gone over in full, and each block once or more.
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
            // When that is, bytes will tell.
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

    fn issued(&self) -> u64 {
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
        // What comes before the ramp's end is not counted, and what a job checks was
        // just written.
        let plain = !job.pace.ramps() && (job.verify.is_none() || self.accounts.stats.is_none());
        let plain = plain && self.pattern.replayed.is_none();
        // Each pass begins with the pages of what it reads dropped, but for those that are mapped.
        let directions = job.pattern.directions;
        let drops = self.how.renews && !self.context.engine.mapped;
        let renews = drops && directions.read && !directions.write;
        let plain = plain && !renews;
        plain.then(|| self.pattern.steps.once()).flatten()
    }

    fn covered(&self) -> bool {
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
        // What was lost by the time of closing is not there.
        if let Some(kept) = &self.context.kept
            && let Some(covered) = kept.covered.get(self.own_thread())
            && self.accounts.is_sound()
        {
            let bytes = self.started_bytes().min(self.pattern.steps.total());
            covered.fetch_max(kept.there + bytes, Ordering::Relaxed);
        }
        let counts = self.engine.counts();
        let Lanes {
            read,
            write,
            trim,
            sync,
            open: _,
            close: _,
            closing: _,
            flushing: _,
        } = self.context.lanes;
        self.tell_framed(meter);
        meter.again_of([read, write, trim, sync], counts.again);
        self.requests.queue.tell(meter);
        let Some(stats) = self.accounts.stats.take() else {
            if self.how.ramps {
                meter.measured_from(self.accounts.records_from);
            }
            return;
        };
        let [reads, writes, trims] = stats.measured();
        let rows = [
            (read, reads),
            (write, writes),
            (trim, trims),
            (sync, writes),
        ];
        for (lane, measured) in rows {
            if let Some(lane) = lane {
                meter.measured(lane, measured);
            }
        }
        let ramp = stats.logs_from().since(self.accounts.start);
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
    /// Goes on, whatever the time, until so many operations were started in all. Only
    /// one may be under way at a time.
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

    /// Its number on this rank.
    fn own_thread(&self) -> usize {
        (self.part.worker % u64::from(self.context.job.numjobs.max(1))) as usize
    }
}
