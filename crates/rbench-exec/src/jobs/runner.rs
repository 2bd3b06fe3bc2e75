//! The worker of a job: its operations through an engine, closed loop or at
//! given times, with everything that fio lets happen in between.
//!
//! This file owns a worker's life: start, passes, verification behind them,
//! the end. [`flow`] issues and reaps, [`syncs`] syncs and closes,
//! [`checks`] reads back.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use nix::errno::Errno;
use nix::time::{ClockId, clock_gettime};
use rbench_core::job::{JobLog, JobOutcome};
use rbench_core::residency::Pages;
use rbench_core::{Clock as _, Failure, FailureKind, Nanos, OpKind, Rank};
use rbench_plan::jobs::{Each, JobPlan};
use rbench_plan::pattern::{Steps, file_path, file_size};
use rbench_sys::Engine;
use rbench_sys::engine::{EngineConfig, EngineCounts, EngineInfo};
use rbench_sys::limits::{Usage, thread_usage};

use super::book::Book;
use super::due::Due;
use super::handles::{Handles, Opening};
use super::stretch;
use super::unwritten::Unwritten;
use super::verify::Marks;
use crate::data::Filler;
use crate::live::LiveStats;
use crate::meter::{Calls, Meter, Span};
use crate::pace::{Gate, StopFlag};
use crate::queue::Queue;
use crate::worker::{Prepared, Runner};

mod checks;
mod flow;
mod syncs;

use checks::{Source, Written};

/// The lanes of a job.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lanes {
    /// Of reads.
    pub read: Option<usize>,
    /// Of writes.
    pub write: Option<usize>,
    /// Of fsync and fdatasync.
    pub sync: Option<usize>,
}

/// Outcomes of this rank's workers, as they finish.
pub type Sink = Arc<Mutex<Vec<(JobOutcome, JobLog)>>>;

/// What the workers of one job on a rank have in common.
#[derive(Clone)]
pub struct Scene {
    /// The job.
    pub job: Arc<JobPlan>,
    /// Its position among all jobs of the plan.
    pub index: u32,
    /// Its engine.
    pub engine: &'static EngineInfo,
    /// Its lanes.
    pub lanes: Lanes,
    /// Whether any job of its group has a rate: then every operation needs an
    /// intended start.
    pub open_loop: bool,
    /// What relative paths are below.
    pub base: PathBuf,
    /// What headers say of the run.
    pub run: u64,
    /// This rank.
    pub rank: Rank,
    /// Takes what was done.
    pub sink: Sink,
    /// Takes what was done so far.
    pub board: Option<Arc<LiveStats>>,
    /// Files that could not be made ready, and why.
    pub unmade: Arc<BTreeMap<PathBuf, Failure>>,
}

/// What is done with a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    /// Read and compared.
    Check,
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
    /// Whether the file is done behind it.
    last: bool,
    intended: Option<Nanos>,
}

/// A request's place.
#[derive(Debug, Clone, Copy)]
struct Slot {
    what: Planned,
    fd: RawFd,
    start: Nanos,
    submitted: Nanos,
    /// Slots in use when it was submitted, its own included.
    depth: usize,
}

const IDLE: Slot = Slot {
    what: Planned {
        kind: Kind::Read,
        file: 0,
        offset: 0,
        length: 0,
        generation: 0,
        last: false,
        intended: None,
    },
    fd: -1,
    start: Nanos(0),
    submitted: Nanos(0),
    depth: 0,
};

/// In headers, the job's position stands above jobnum.
const JOB_SHIFT: u32 = 40;

/// From this block size on, filling a buffer takes longer than a system call.
const LARGE: u64 = 64 << 10;

/// One worker.
pub struct JobRunner {
    scene: Scene,
    jobnum: u64,
    /// What headers say of the worker.
    mark: u64,
    engine: Box<dyn Engine>,
    asynchronous: bool,
    /// Filling or checking takes so long that requests complete meanwhile.
    careful: bool,
    /// Whether the end of a pass has to be waited for.
    stops_at_pass: bool,
    files: Handles,
    steps: Steps,
    source: Source,
    filler: Filler,
    marks: Option<Marks>,
    due: Each<Option<Due>>,
    /// Taken in `finish`.
    book: Option<Book>,
    slots: Vec<Slot>,
    queue: Queue,
    /// Submitted and not yet handed to the kernel.
    pending: Vec<usize>,
    /// The next operation, and the slot in which it is ready.
    next: Option<Planned>,
    held: Option<usize>,
    /// Writes issued so far.
    generation: u64,
    backlog: Vec<Written>,
    /// What is not to be checked.
    unwritten: Unwritten,
    /// The run that wrote what is verified, once it is known.
    run_found: Option<u64>,
    last_written: u64,
    since_fsync: u64,
    since_datasync: u64,
    since_think: u64,
    pass_over: bool,
    exhausted: bool,
    /// Operations of this pass that were submitted.
    pass_steps: u64,
    /// Requests submitted in all.
    submitted: u64,
    /// No further operation: an error, or a goal was reached.
    over: bool,
    error: i32,
    errors: u64,
    /// errno of the first that did not end the job.
    first_error: i32,
    start: Nanos,
    ended: Nanos,
    start_ms: u64,
    usage_before: Usage,
    usage: Usage,
    /// Nothing was recorded yet since there is a ramp.
    ramps: bool,
}

/// Makes the worker that is the `clone`-th of its job on this rank: opens its
/// files, untimed.
pub fn prepare(scene: Scene, clone: u32) -> Prepared {
    let job = Arc::clone(&scene.job);
    let jobnum = jobnum(&scene, clone);
    let own = |file| scene.base.join(file_path(&job, jobnum, file));
    let unmade = |file| scene.unmade.get(&own(file));
    if !scene.unmade.is_empty()
        && let Some(failure) = (0..job.files.count).find_map(unmade)
    {
        return Err(failure.clone());
    }
    let refused = |text: String| Failure {
        op: OpKind::Open,
        path: format!("job '{}'", job.name),
        kind: Errno::EINVAL.into(),
        detail: text,
    };
    let depth = job.depth.clamp(1, scene.engine.depth_max as u32) as usize;
    let config = EngineConfig {
        depth,
        block: (Steps::length_max(&job) as usize).max(1),
    };
    let mut engine = (scene.engine.make)(config).map_err(|errno| Failure {
        op: OpKind::Open,
        path: format!("job '{}': engine {}", job.name, scene.engine.name),
        kind: errno.into(),
        detail: String::new(),
    })?;
    let window = super::window(&job);
    let turns = window < job.files.count;
    let opening = Opening::of(&job, scene.engine.moves_data, scene.engine.mapped, turns);
    let mut files = Handles::new(&job, jobnum, &scene.base, opening);
    let runs = !job.files.create_only;
    let regions = if runs {
        regions(&job, jobnum, &mut files, engine.as_mut())?
    } else {
        Vec::new()
    };
    if runs && !turns {
        files.open_all(engine.as_mut())?;
    }
    let steps = Steps::new(&job, jobnum, |file| {
        regions.get(file as usize).copied().unwrap_or(0)
    });
    if runs && !steps.has_work() {
        let text = "there is nothing to do: give size or filesize, since no file has room for a \
                    block behind offset";
        return Err(refused(text.to_owned()));
    }
    let marks = Marks::new(&job).map_err(refused)?;
    let asynchronous = scene.engine.depth_max > 1 && scene.engine.moves_data;
    let book = Book::new(&job, asynchronous, steps.expected());
    let seed = job.pattern.seed;
    let backlog = job.verify.as_ref().and_then(|v| v.backlog).unwrap_or(0);
    Ok(Box::new(JobRunner {
        asynchronous,
        careful: depth > 1 && (config.block as u64 >= LARGE || marks.is_some()),
        stops_at_pass: stops_at_pass(&job),
        filler: Filler::new(&job.buffers, depth, &[seed, jobnum, 20]),
        marks,
        due: Due::of(&job.pace, [seed, jobnum]),
        book: Some(book),
        slots: vec![IDLE; depth],
        queue: Queue::new(depth, Calls::told()),
        pending: Vec::with_capacity(depth),
        backlog: Vec::with_capacity(backlog as usize),
        unwritten: Unwritten::default(),
        source: Source::Work,
        mark: (u64::from(scene.index) << JOB_SHIFT) | jobnum,
        scene,
        jobnum,
        engine,
        files,
        steps,
        next: None,
        held: None,
        generation: 0,
        run_found: None,
        last_written: 0,
        since_fsync: 0,
        since_datasync: 0,
        since_think: 0,
        pass_over: false,
        exhausted: false,
        pass_steps: 0,
        submitted: 0,
        over: false,
        error: 0,
        errors: 0,
        first_error: 0,
        start: Nanos(0),
        ended: Nanos(0),
        start_ms: 0,
        usage_before: Usage::default(),
        usage: Usage::default(),
        ramps: job.pace.ramp.0 > 0,
    }))
}

/// Takes down that the `clone`-th worker of a job on this rank did nothing but
/// fail when it was prepared.
pub fn unprepared(scene: &Scene, clone: u32, failure: &Failure) {
    let outcome = JobOutcome {
        job: scene.index,
        worker: jobnum(scene, clone),
        workers: 1,
        pid: std::process::id(),
        error: match failure.kind {
            FailureKind::Errno(code) => code,
            FailureKind::Short | FailureKind::Mismatch | FailureKind::Command => Errno::EIO as i32,
        },
        start_ms: epoch_ms(),
        ..JobOutcome::default()
    };
    if let Some(board) = &scene.board {
        board.put(outcome.clone());
    }
    if let Ok(mut all) = scene.sink.lock() {
        all.push((outcome, JobLog::default()));
    }
}

/// The number of a worker among all of its job.
fn jobnum(scene: &Scene, clone: u32) -> u64 {
    u64::from(scene.rank.0) * u64::from(scene.job.numjobs) + u64::from(clone)
}

/// Whether something follows each pass that needs its operations to be done.
fn stops_at_pass(job: &JobPlan) -> bool {
    let verifies = job
        .verify
        .as_ref()
        .is_some_and(|v| v.read_back || v.backlog.is_some() || v.only);
    let syncs = job.syncing.end_fsync || job.syncing.fsync_on_close;
    verifies || (syncs && !job.pace.time_based)
}

/// Length of the job's part of each file.
fn regions(
    job: &JobPlan,
    jobnum: u64,
    files: &mut Handles,
    engine: &mut dyn Engine,
) -> Result<Vec<u64>, Failure> {
    let start = job.files.start(jobnum);
    (0..job.files.count)
        .map(|file| match file_size(job, jobnum, file) {
            0 => Ok(files.length(file, engine)?.saturating_sub(start)),
            size => Ok(size),
        })
        .collect()
}

impl JobRunner {
    fn book(&mut self) -> &mut Book {
        self.book
            .get_or_insert_with(|| unreachable!("the book is open until the end"))
    }

    /// The worker's own start, deadline and stop.
    fn own_gate(&self, gate: &Gate) -> Gate {
        let pace = &self.scene.job.pace;
        let start = gate.start.0.saturating_add(pace.delay.0);
        let end = |runtime: Nanos| start.saturating_add(pace.ramp.0).saturating_add(runtime.0);
        Gate {
            clock: gate.clock,
            start: Nanos(start),
            deadline: pace.runtime.map(|runtime| Nanos(end(runtime))),
            stop: gate.stop.clone(),
            waits: gate.waits.clone(),
        }
    }

    /// Pass after pass, each with what follows it.
    fn passes(&mut self, gate: &Gate, meter: &mut Meter) {
        let reads_back = self.reads_back();
        while !self.exhausted && !self.over {
            let before = reads_back.then(|| (self.steps.clone(), self.generation));
            (self.pass_over, self.pass_steps) = (false, 0);
            let now = gate.clock.now();
            self.book().begin_stretch(stretch::Kind::Work, now);
            let open = self.pump(gate, meter);
            self.end_writes(gate, meter);
            if let Some((steps, generation)) = before
                && self.pass_steps > 0
            {
                self.read_back(steps, generation, gate, meter);
            }
            self.rest_of_backlog(gate, meter);
            if !open {
                break;
            }
        }
        self.note_missed(gate, meter);
    }

    /// The ramp is over: what the thread used up to here is no part of the job.
    #[cold]
    fn leave_ramp(&mut self) {
        self.ramps = false;
        self.usage_before = thread_usage();
    }

    /// Takes down a failure and decides whether the job goes on.
    #[cold]
    fn trouble(&mut self, failure: Failure, span: Option<Span>, meter: &mut Meter) {
        if let Some(span) = span {
            self.book().failed(span);
        }
        let go_on = self.scene.job.continue_on;
        let lanes = self.scene.lanes;
        let writes = match failure.op {
            OpKind::Write | OpKind::Fsync => true,
            // What is lost there was written.
            OpKind::Close => lanes.write.is_some(),
            _ => false,
        };
        let wrong = failure.kind == FailureKind::Mismatch;
        let (errno, tolerated) = match failure.kind {
            // No other error is one to go on after, as in fio: a full disk stays full.
            FailureKind::Errno(code) => (
                code,
                code == Errno::EIO as i32 && if writes { go_on.write } else { go_on.read },
            ),
            FailureKind::Mismatch => (Errno::EILSEQ as i32, go_on.verify),
            FailureKind::Short | FailureKind::Command => (
                Errno::EIO as i32,
                if writes { go_on.write } else { go_on.read },
            ),
        };
        let lane = match failure.op {
            OpKind::Fsync => lanes.sync,
            _ if writes => lanes.write,
            _ => lanes.read,
        };
        match (lane.or(lanes.write).or(lanes.read), span) {
            (Some(lane), Some(span)) => meter.failed(lane, span, failure),
            (Some(lane), None) => meter.failed_untimed(lane, failure),
            // A job without operations has no row: its own error tells of it.
            (None, _) => {}
        }
        if tolerated {
            self.errors += 1;
            if self.first_error == 0 {
                self.first_error = errno;
            }
            return;
        }
        if self.error == 0 {
            self.error = errno;
        }
        let fatal = self.scene.job.verify.as_ref().is_some_and(|v| v.fatal);
        self.over |= !wrong || fatal;
    }

    /// Puts what was done so far on the board.
    #[cold]
    fn publish(&mut self, now: Nanos) {
        let counts = self.engine.counts();
        self.usage = thread_usage().since(self.usage_before);
        if let (Some(book), Some(board)) = (&self.book, &self.scene.board) {
            board.put(self.outcome(book.so_far(now), counts));
        }
    }

    /// With who did it, and what the engine knows of it.
    fn outcome(&self, mut outcome: JobOutcome, counts: EngineCounts) -> JobOutcome {
        // Like fio: a transfer that came in parts is short, too.
        outcome.read.short += counts.again.read.continued;
        outcome.write.short += counts.again.write.continued;
        JobOutcome {
            submits: counts.submits,
            completes: counts.completes,
            job: self.scene.index,
            worker: self.jobnum,
            pid: std::process::id(),
            error: self.error,
            errors: self.errors,
            first_error: self.first_error,
            start_ms: self.start_ms,
            cpu_user: self.usage.user,
            cpu_system: self.usage.system,
            switches: self.usage.switches,
            faults_major: self.usage.faults_major,
            faults_minor: self.usage.faults_minor,
            ..outcome
        }
    }

    /// Ends the job for a reason that is no failed operation.
    fn give_up(&mut self, errno: Option<Errno>) {
        self.over = true;
        if let (Some(errno), 0) = (errno, self.error) {
            self.error = errno as i32;
        }
    }

    /// Notes what was due before the deadline and never started.
    fn note_missed(&mut self, gate: &Gate, meter: &mut Meter) {
        let closed = gate
            .deadline
            .filter(|_| !self.over && !gate.stop.is_raised());
        let Some(deadline) = closed.filter(|_| !self.exhausted) else {
            return;
        };
        let span = deadline.since(gate.start);
        let waiting = self.next;
        let length = waiting.map_or(0, |what| what.length as u64);
        let lanes = self.scene.lanes;
        for (due, lane, write) in [
            (&self.due.read, lanes.read, false),
            (&self.due.write, lanes.write, true),
        ] {
            if let (Some(due), Some(lane)) = (due, lane) {
                let next = waiting.filter(|what| {
                    (what.kind == Kind::Write) == write
                        && what.intended.is_some_and(|at| at < deadline)
                });
                let missed = due.left_before(span, length) + u64::from(next.is_some());
                meter.unissued(lane, missed);
            }
        }
    }
}

/// Milliseconds since the epoch, by this host's clock: the report says when a
/// job began.
fn epoch_ms() -> u64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |now| {
        let (seconds, nanos) = (now.tv_sec(), now.tv_nsec());
        u64::try_from(seconds * 1000 + nanos / 1_000_000).unwrap_or(0)
    })
}

impl Runner for JobRunner {
    fn run(&mut self, gate: &Gate, meter: &mut Meter, _upto: Option<u64>) {
        self.usage_before = thread_usage();
        let own = self.own_gate(gate);
        let waits = Gate {
            deadline: None,
            ..own.clone()
        };
        (self.start, self.ended) = (own.start, own.start);
        let from = Nanos(own.start.0.saturating_add(self.scene.job.pace.ramp.0));
        self.book().begin(own.start, from);
        self.start_ms = epoch_ms();
        if self.scene.job.pace.delay.0 > 0 {
            if !waits.wait(own.start) {
                return;
            }
            self.start_ms = epoch_ms();
        }
        if self.scene.job.verify.as_ref().is_some_and(|v| v.only) {
            self.verify_only(&own, meter);
        } else if !self.scene.job.files.create_only {
            self.passes(&own, meter);
        }
        self.ended = gate.clock.now();
        gate.waits.at_work_until(self.ended);
        self.usage = thread_usage().since(self.usage_before);
    }

    fn issued(&self) -> u64 {
        // Checks of what an earlier run wrote are no steps of this one.
        self.steps.issued().max(self.submitted)
    }

    fn planned(&self) -> u64 {
        self.steps.expected().unwrap_or(u64::MAX)
    }

    fn look(&mut self, _ended: bool) -> Pages {
        self.files.resident()
    }

    fn once(&self) -> Option<u64> {
        let job = &self.scene.job;
        // What comes before the ramp's end is not counted, and what is checked
        // was just written.
        let plain = job.pace.ramp == Nanos(0) && job.verify.is_none();
        plain.then(|| self.steps.once()).flatten()
    }

    fn covered(&self) -> bool {
        self.error == 0 && self.errors == 0
    }

    fn finish(&mut self, meter: &mut Meter) {
        (0..self.files.count()).for_each(|file| self.close(file, meter));
        let Some(book) = self.book.take() else {
            return;
        };
        let counts = self.engine.counts();
        let Lanes { read, write, sync } = self.scene.lanes;
        meter.again_of([read, write, sync], counts.again);
        let [reads, writes] = book.measured();
        for (lane, measured) in [(read, reads), (write, writes), (sync, writes)] {
            if let Some(lane) = lane {
                meter.measured(lane, measured);
            }
        }
        self.queue.tell(meter);
        let (outcome, log) = book.finish(self.ended);
        let outcome = self.outcome(outcome, counts);
        if let Some(board) = &self.scene.board {
            board.put(outcome.clone());
        }
        let log = JobLog {
            job: self.scene.index,
            worker: self.jobnum,
            ..log
        };
        if let Ok(mut all) = self.scene.sink.lock() {
            all.push((outcome, log));
        }
    }
}

/// A gate without a deadline: what was written is checked to the end.
fn unhurried(gate: &Gate) -> Gate {
    let stop: StopFlag = gate.stop.clone();
    Gate {
        clock: gate.clock,
        start: gate.start,
        deadline: None,
        stop,
        waits: gate.waits.clone(),
    }
}
