//! Values that fio reports of a job and its rows do not have: with them it makes a [`JobOutcome`].
//! They come from the same clock readings.

mod logged;
mod rates;

use nix::errno::Errno;
use rbench_core::job::{DirectionOutcome, JobLog, JobOutcome, Series};
use rbench_core::outcome::{Measured, OpStats};
use rbench_core::steady::{Rates, SteadyWatch};
use rbench_core::{Direction, FailureKind, IoPriority, Latency, Nanos};
use rbench_plan::jobs::{Each, JobPlan, Logs};

use rates::{LeastRates, Sampling, Steadiness};

use super::moving::Moving;
use super::priorities::Split;
use super::search::{DepthSearch, Stage};
use super::stretch::{Kind, Stretches};
use crate::meter::Span;

/// Entries for which per-operation logs have room from the start; more make them grow, outside the
/// timer.
const LOG_ROOM: u64 = 1 << 20;

/// The times of one operation.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// The intended start, where a rate is given.
    pub intended: Option<Nanos>,
    /// Ready to be submitted.
    pub start: Nanos,
    /// Handed to the kernel; the same as `start` with synchronous engines.
    pub submitted: Nanos,
    /// Complete.
    pub end: Nanos,
    /// Operations in flight when it was submitted, itself included.
    pub depth: usize,
}

impl Times {
    /// From submission, and from preparation, to completion.
    #[inline(always)]
    pub fn latencies(&self) -> (Nanos, Nanos) {
        (self.end.since(self.submitted), self.end.since(self.start))
    }
}

/// The rows of reads, writes and trims, as far as the worker has them: every operation that
/// is noted here is noted there as well.
pub type Rows<'m> = [Option<&'m OpStats>; 3];

/// One operation that ended without error.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    /// Its direction.
    pub direction: Direction,
    /// Its offset.
    pub offset: u64,
    /// Bytes asked for.
    pub length: u64,
    /// Bytes moved.
    pub moved: u64,
    /// Its priority; the default is that of the job.
    pub priority: IoPriority,
}

/// One direction.
#[derive(Debug, Clone, Default)]
struct Side {
    ios: u64,
    bytes: u64,
    short: u64,
    /// The last end in this stretch.
    last_end: Nanos,
    slat: Option<Latency>,
    /// Without a submission latency, it is the whole latency.
    clat: Option<Latency>,
    /// `None`: that of the row, which begins at the same time.
    lat: Option<Latency>,
    response: Option<Latency>,
    /// Latencies by priority, if there are several.
    by_priority: Option<Split>,
    bw: Series,
    iops: Series,
    /// Operations and bytes when the last sample was taken, and at the last
    /// full second.
    sampled: [u64; 2],
    at_second: (u64, u64),
    /// At the last look at the least rates.
    at_check: (u64, u64),
    window: Window,
    histogram: Option<Latency>,
    block_max: u64,
}

/// The operations of a log's averaging interval.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    ios: u64,
    bytes: u64,
    block: u64,
    offset: u64,
    slat: u64,
    clat: u64,
    lat: u64,
    max: [Nanos; 3],
    /// Operations and bytes since the last sample of rates in it, and the highest rates until now.
    part: [u64; 2],
    max_rates: [u64; 2],
}

/// A reason to stop that only the rates tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The rate is steady.
    Steady,
    /// The depth that keeps the latency is found, and was shown.
    Found,
    /// It is below the least one allowed.
    TooSlow,
    /// An operation took longer than any may.
    TooLate,
}

/// The logs of a worker.
#[derive(Debug, Default)]
pub(super) struct Logging {
    logs: Logs,
    /// Operations are logged, alone or in averages.
    samples: bool,
    /// From when on times in logs count: the end of the ramp, as in fio.
    pub(super) logs_from: Nanos,
    next_window: Nanos,
    /// Samples of rates within a window: when the next one of each ends.
    next_parts: [Nanos; 2],
    next_histogram: Nanos,
    log: JobLog,
}

/// The statistics of one worker.
#[derive(Debug)]
pub struct JobStats {
    /// Start of recording: after the ramp, and again after a search.
    from: Nanos,
    /// The end of the ramp.
    measures_from: Nanos,
    stretches: Stretches,
    sides: Each<Side>,
    sync: Latency,
    /// Several requests may be in flight.
    overlaps: bool,
    depths: [u64; 7],
    latency_max: Nanos,
    /// The job's own priority, for logs.
    own_priority: IoPriority,
    /// The earliest of the next sample and the next check of the least rates.
    next_look: Nanos,
    sampling: Sampling,
    least: LeastRates,
    steadiness: Steadiness,
    pub(super) logging: Logging,
    search: Option<DepthSearch>,
    /// Bytes moved over time, if the job asks for them.
    moving: Option<Moving>,
    verdict: Option<Verdict>,
    /// Statistics of the ramp: like in fio they are reported where the work ends with it.
    in_ramp: Option<Box<JobStats>>,
}

impl Side {
    fn new(asynchronous: bool, rated: bool, (searches, histogram): (bool, bool)) -> Side {
        Side {
            slat: asynchronous.then(Latency::new),
            clat: asynchronous.then(Latency::new),
            lat: searches.then(Latency::new),
            response: rated.then(Latency::new),
            histogram: histogram.then(Latency::new),
            ..Side::default()
        }
    }

    /// Takes a sample of the bandwidth (0) or the operations per second (1), without `next`, which
    /// belongs to the next one.
    fn sample(&mut self, which: usize, span: Nanos, next: u64) {
        let now = [self.bytes, self.ios][which] - next;
        let moved = now - std::mem::replace(&mut self.sampled[which], now);
        if moved == 0 || span.0 == 0 {
            return;
        }
        let rate = moved as f64 / span.as_secs_f64();
        match which {
            0 => self.bw.add(rate / 1024.0),
            _ => self.iops.add(rate),
        }
    }

    fn outcome(self, runtime: Nanos, row: Option<&OpStats>) -> DirectionOutcome {
        let of_row = || row.map_or_else(Latency::new, |row| row.service.clone());
        let lat = self.lat.unwrap_or_else(of_row);
        DirectionOutcome {
            ios: self.ios,
            bytes: self.bytes,
            short: self.short,
            runtime,
            slat: self.slat,
            clat: self.clat.unwrap_or_else(|| lat.clone()),
            lat,
            priorities: self.by_priority.map_or_else(Vec::new, Split::into_all),
            response: self.response,
            bw: self.bw,
            iops: self.iops,
        }
    }
}

impl JobStats {
    /// Statistics of a worker of `job` that has done nothing yet, with up to `depth` requests in
    /// flight. `asynchronous`: submitting is timed separately.
    pub fn new(job: &JobPlan, asynchronous: bool, depth: usize, expected: Option<u64>) -> JobStats {
        let logs = job.logs().cloned().unwrap_or_default();
        let in_ramp = job.pace.ramps().then(|| {
            // No row has its latencies.
            let own = (true, false);
            Box::new(JobStats::with(
                job,
                Logs::default(),
                own,
                (asynchronous, depth),
            ))
        });
        let own = (job.pace.latency_target.is_some(), logs.histogram.is_some());
        let mut stats = JobStats::with(job, logs, own, (asynchronous, depth));
        if stats.logging.samples && stats.logging.logs.average.0 == 0 {
            let room = expected.unwrap_or(LOG_ROOM).min(LOG_ROOM);
            stats.logging.log.samples.reserve(room as usize);
        }
        JobStats { in_ramp, ..stats }
    }

    /// Like `new`, with these logs and `own` distributions: of latencies, and for the log of them.
    fn with(
        job: &JobPlan,
        logs: Logs,
        own: (bool, bool),
        (asynchronous, depth): (bool, usize),
    ) -> JobStats {
        let pace = &job.pace;
        let (iops, bytes) = (&pace.rate_iops, &pace.rate_bytes);
        let rated = |of| iops.of(of).is_some() || bytes.of(of).is_some();
        let side = |of| Side {
            by_priority: Split::new(job, of),
            ..Side::new(asynchronous, rated(of), own)
        };
        let samples = logs.bandwidth.is_some() || logs.iops.is_some() || logs.latency.is_some();
        JobStats {
            from: Nanos(0),
            measures_from: Nanos(0),
            stretches: Stretches::new(job),
            sides: Each {
                read: side(Direction::Read),
                write: side(Direction::Write),
                trim: side(Direction::Trim),
            },
            sync: Latency::new(),
            overlaps: depth > 1,
            depths: [0; 7],
            latency_max: pace.latency_max.unwrap_or(Nanos(u64::MAX)),
            own_priority: job.own_priority(),
            next_look: Nanos(0),
            sampling: Sampling {
                every: job.sampled_every(),
                ..Sampling::default()
            },
            least: LeastRates {
                bytes: pace.rate_min,
                iops: pace.rate_iops_min,
                cycle: match pace.rate_cycle {
                    Nanos(0) => Nanos::SECOND,
                    cycle => cycle,
                },
                next_check: Nanos(0),
                checked_at: Nanos(0),
            },
            steadiness: Steadiness::of(pace.steady),
            logging: Logging {
                logs,
                samples,
                ..Logging::default()
            },
            search: pace
                .latency_target
                .map(|target| DepthSearch::new(target, job.depth)),
            moving: match job.report.as_ref().map(|report| report.moved_every) {
                None | Some(Nanos(0)) => None,
                Some(width) => Some(Moving::of(width)),
            },
            verdict: None,
            in_ramp: None,
        }
    }

    /// The worker starts at `start` and records from `from` on.
    pub fn begin(&mut self, start: Nanos, from: Nanos) {
        if let Some(in_ramp) = &mut self.in_ramp {
            in_ramp.begin(start, start);
        }
        if let Some(moving) = &mut self.moving {
            moving.begin(start);
        }
        self.record_from(from);
    }

    fn record_from(&mut self, from: Nanos) {
        (self.logging.logs_from, self.from, self.measures_from) = (from, from, from);
        self.begin_windows(from);
        self.logging.next_histogram = after(from, self.logging.logs.histogram_every);
    }

    /// Recording begins `now`, where a ramp of bytes is over.
    #[cold]
    pub fn end_ramp(&mut self, now: Nanos) {
        self.record_from(now);
        self.stretches.end_ramp(now);
        self.begin_samples(now);
    }

    /// A stretch of operations begins; the one before is over.
    pub fn begin_stretch(&mut self, kind: Kind, now: Nanos) {
        if let Some(in_ramp) = &mut self.in_ramp {
            in_ramp.begin_stretch(kind, now);
        }
        self.stretches.begin(kind, now, self.from);
        self.begin_samples(now.max(self.from));
    }

    /// Takes down what was moved until `now`, where that is asked for.
    fn note_moved(&mut self, now: Nanos) {
        let bytes = [self.sides.read.bytes, self.sides.write.bytes];
        if let Some(moving) = &mut self.moving {
            moving.note(now, bytes);
        }
    }

    /// Samples of the rates begin at `from`.
    fn begin_samples(&mut self, from: Nanos) {
        self.note_moved(from);
        (self.least.checked_at, self.least.next_check) = (from, self.check_after(from));
        self.sampling.at = [from; 2];
        self.sampling.next = self.sampling.every.map(|every| after(from, every));
        (self.steadiness.next_second, self.steadiness.second_at) =
            (after(from, self.steadiness.every), from);
        for side in self.sides.all_mut() {
            side.sampled = [side.bytes, side.ios];
            side.at_second = (side.ios, side.bytes);
            side.at_check = side.at_second;
            side.last_end = Nanos(0);
        }
        self.sampling.due = self.next_due();
        self.next_look = self.sampling.due.min(self.least.next_check);
    }

    /// Time when the next sample is due, or the end of a second that is checked.
    fn next_due(&self) -> Nanos {
        let [bandwidth, iops] = self.sampling.next;
        let second = match self.steadiness.watch {
            Some(_) => self.steadiness.next_second,
            None => Nanos(u64::MAX),
        };
        bandwidth.min(iops).min(second)
    }

    /// The stretch, if there is one, is over at `now`.
    pub fn end_stretch(&mut self, now: Nanos) {
        if let Some(in_ramp) = &mut self.in_ramp {
            in_ramp.end_stretch(now);
        }
        let last_ends = self.sides.all().map(|side| side.last_end);
        self.stretches
            .note_end(last_ends.into_iter().max().unwrap_or_default());
        let did = self.did();
        self.stretches.end(now, did);
    }

    /// Returns true for each direction that has done anything: reads, writes, trims.
    fn did(&self) -> [bool; 3] {
        self.sides.all().map(|side| side.ios > 0)
    }

    /// Covers the time of this stretch up to `end`, without an operation that ended there.
    pub fn cover(&mut self, end: Nanos) {
        self.stretches.note_end(end);
    }

    /// The operations that belong to the writes of this stretch, if there are any, ended at `end`.
    pub fn end_writes(&mut self, end: Nanos) {
        if let Some(in_ramp) = &mut self.in_ramp {
            in_ramp.end_writes(end);
        }
        if self.sides.write.last_end.0 > 0 {
            self.stretches.note_end(end);
        }
    }

    /// Notes the end of an operation that failed.
    #[cold]
    pub fn failed(&mut self, span: Span) {
        if self.records(span.start) {
            self.stretches.note_end(span.end);
        }
    }

    /// Measured spans of operations: reads, writes, trims.
    pub fn measured(&self) -> [Measured; 3] {
        self.stretches.measured()
    }

    /// Returns true if an operation that starts at `start` is recorded.
    #[inline]
    pub fn records(&self, start: Nanos) -> bool {
        start >= self.from
    }

    /// Returns true if an operation that took this long ends the job.
    #[inline]
    pub fn is_too_late(&self, took: Nanos) -> bool {
        took > self.latency_max
    }

    /// Requests that may be under way now.
    #[inline]
    pub fn depth_limit(&self, depth: usize) -> usize {
        match &self.search {
            Some(search) => depth.min(search.depth as usize),
            None => depth,
        }
    }

    /// Notes an operation that is not recorded, since the ramp goes on.
    #[cold]
    pub fn done_in_ramp(&mut self, done: Done, times: Times) {
        if let Some(in_ramp) = &mut self.in_ramp {
            in_ramp.done_at_priority((done.direction, done.priority), times.latencies());
            in_ramp.done(done, times);
        }
    }

    /// Counts a write that `verify_only` leaves out, as fio does: it took no time.
    #[cold]
    pub fn would_write(&mut self, bytes: u64) {
        let side = &mut self.sides.write;
        side.ios += 1;
        side.bytes += bytes;
    }

    /// Notes a sync that is not recorded.
    #[cold]
    pub fn synced_in_ramp(&mut self, span: Span) {
        if let Some(in_ramp) = &mut self.in_ramp {
            in_ramp.synced(span);
        }
    }

    /// Notes the latencies of an operation at its priority, before [`JobStats::done`].
    // Numbers in registers: other jobs must not write theirs to memory for this call.
    #[inline(never)]
    pub fn done_at_priority(
        &mut self,
        (direction, priority): (Direction, IoPriority),
        (clat, lat): (Nanos, Nanos),
    ) {
        if let Some(split) = &mut self.sides.of_mut(direction).by_priority {
            split.record(priority, clat, lat);
        }
    }

    /// Notes an operation; whether [`JobStats::verdict`] or [`JobStats::sampled`] has
    /// something to say.
    #[inline(always)]
    pub fn done(&mut self, done: Done, times: Times) -> bool {
        let Times {
            intended,
            start,
            submitted,
            end,
            depth,
        } = times;
        if self.overlaps {
            let bucket = (usize::BITS - 1 - depth.max(1).leading_zeros()).min(6);
            self.depths[bucket as usize] += 1;
        }
        let side = self.sides.of_mut(done.direction);
        let lat = end.since(start);
        side.ios += 1;
        side.bytes += done.moved;
        side.short += u64::from(done.moved < done.length);
        side.last_end = end;
        if let Some(own) = &mut side.lat {
            own.record(lat);
        }
        if let (Some(slat), Some(clat)) = (&mut side.slat, &mut side.clat) {
            slat.record(submitted.since(start));
            clat.record(end.since(submitted));
        }
        if let (Some(response), Some(intended)) = (&mut side.response, intended) {
            response.record(end.since(intended));
        }
        if self.logging.samples || self.logging.logs.histogram.is_some() {
            self.log(done, times);
        }
        if end >= self.next_look {
            self.look(end, intended.map(|_| done));
        }
        if let Some(search) = &mut self.search {
            match search.note(end, lat) {
                Stage::Searching => {}
                Stage::Found => self.restart(end),
                Stage::Over if search.goes_on() => search.again(),
                Stage::Over => self.verdict = self.verdict.or(Some(Verdict::Found)),
            }
        }
        if self.is_too_late(lat) {
            self.verdict = Some(Verdict::TooLate);
        }
        self.sampling.sampled || self.verdict.is_some()
    }

    /// Begins the statistics again at `now`: those of a search are of many
    /// depths. Logs go on.
    #[cold]
    fn restart(&mut self, now: Nanos) {
        self.note_moved(now);
        if let Some(moving) = &mut self.moving {
            moving.restart();
        }
        for side in self.sides.all_mut() {
            let (asynchronous, rated) = (side.slat.is_some(), side.response.is_some());
            let mut by_priority = side.by_priority.take();
            by_priority.iter_mut().for_each(Split::clear);
            *side = Side {
                window: side.window,
                histogram: side.histogram.take(),
                block_max: side.block_max,
                by_priority,
                ..Side::new(asynchronous, rated, (true, false))
            };
        }
        self.sync = Latency::new();
        self.depths = [0; 7];
        self.from = now;
        self.stretches.restart(now);
        self.begin_samples(now);
    }

    /// Notes an fsync or fdatasync.
    pub fn synced(&mut self, span: Span) {
        self.sync.record(span.end.since(span.start));
        self.stretches.note_end(span.end);
    }

    /// A reason to stop, once.
    pub fn verdict(&mut self) -> Option<Verdict> {
        self.verdict.take()
    }

    /// Returns true if a sample of the rates was taken since the last call.
    pub fn sampled(&mut self) -> bool {
        std::mem::take(&mut self.sampling.sampled)
    }

    /// The outcome until `now`, without the logs.
    pub fn so_far(&self, now: Nanos, rows: Rows<'_>) -> JobOutcome {
        let [read, write, trim] = self.stretches.runtimes(now, self.did());
        JobOutcome {
            read: self.sides.read.clone().outcome(read, rows[0]),
            write: self.sides.write.clone().outcome(write, rows[1]),
            trim: self.sides.trim.clone().outcome(trim, rows[2]),
            sync: self.sync.clone(),
            ..self.rest(now)
        }
    }

    /// Number of operations by the number of others in flight.
    fn depths(&self) -> [u64; 7] {
        if self.overlaps {
            return self.depths;
        }
        let mut alone = [0; 7];
        alone[0] = self.sides.all().iter().map(|side| side.ios).sum();
        alone
    }

    /// The part of the outcome that does not belong to one direction.
    fn rest(&self, end: Nanos) -> JobOutcome {
        let steady = self.steadiness.watch.as_ref();
        JobOutcome {
            workers: 1,
            elapsed: end.since(self.measures_from),
            elapsed_sum: end.since(self.measures_from),
            depths: self.depths(),
            latency_depth: self.search.as_ref().map_or(0, DepthSearch::found),
            steady: steady.map(SteadyWatch::reached),
            steady_window: steady.map_or_else(Vec::new, |steady| {
                let whole = |rates: Rates| (rates.ios.round() as u64, rates.bytes.round() as u64);
                steady.window().map(whole).collect()
            }),
            moved: self.moving.as_ref().map(Moving::moved).unwrap_or_default(),
            ..JobOutcome::default()
        }
    }

    /// The final outcome and the logs; `end`: the time when the worker was done.
    pub fn finish(mut self, end: Nanos, rows: Rows<'_>) -> (JobOutcome, JobLog) {
        let nothing = self.did() == [false; 3];
        if let Some(in_ramp) = self.in_ramp.take().filter(|_| nothing)
            && in_ramp.did() != [false; 3]
        {
            return in_ramp.finish(end, [None; 3]);
        }
        if self.logging.logs.average.0 > 0 {
            // The last interval is as long as was left of it.
            let whole = self.logging.logs.average;
            let begun = Nanos(self.logging.next_window.0.saturating_sub(whole.0));
            let last = end.max(self.from);
            let span = last.since(begun).clamp(Nanos(1), whole);
            self.close_window(last, span);
        }
        if self.logging.logs.histogram.is_some() {
            self.logging.next_histogram = end.max(self.from);
            self.close_histograms(end);
        }
        self.note_moved(end);
        let rest = self.rest(end);
        let [read, write, trim] = self.stretches.runtimes(end, self.did());
        let mut outcome = JobOutcome {
            read: self.sides.read.outcome(read, rows[0]),
            write: self.sides.write.outcome(write, rows[1]),
            trim: self.sides.trim.outcome(trim, rows[2]),
            sync: self.sync,
            ..rest
        };
        outcome.shrink();
        (outcome, self.logging.log)
    }
}

fn after(at: Nanos, span: Nanos) -> Nanos {
    Nanos(at.0.saturating_add(span.0))
}

/// The first end of an interval of `width` that is later than `now`, counted from `at`.
fn next_multiple(at: Nanos, width: Nanos, now: Nanos) -> Nanos {
    let passed = now.since(at).0 / width.0.max(1) + 1;
    after(at, Nanos(passed.saturating_mul(width.0)))
}

/// The errno that fio's report has for a failure.
pub(super) fn error_code(kind: FailureKind) -> i32 {
    match kind {
        FailureKind::Errno(code) => code,
        FailureKind::Mismatch => Errno::EILSEQ as i32,
        FailureKind::Short | FailureKind::Command => Errno::EIO as i32,
    }
}
