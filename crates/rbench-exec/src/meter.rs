//! Records of a worker's operations, written outside the two clock readings.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::pace::{Gate, StopFlag};
use rbench_core::effort::Effort;
use rbench_core::outcome::{DAMAGED_MAX, Details, Measured, OpStats, OpTime, Retries};
use rbench_core::timeline::{HandOver, INTERVAL, Timeline, TimelineRecorder};
use rbench_core::{Failure, FailureKind, Nanos, OpKind, Rank};
use rbench_sys::engine::RetriesByTransfer;

/// A worker's running count for the progress display, on a cache line of its own so that workers do
/// not slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Tally {
    items: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
    /// Completed work that counts as neither.
    others: AtomicU64,
    /// The worker's thread, once it runs.
    thread: AtomicI32,
}

impl Tally {
    /// Returns the operations done until now.
    pub fn items(&self) -> u64 {
        self.items.load(Ordering::Relaxed)
    }

    /// Returns the operations that failed until now.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Returns the bytes that operations have moved until now.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Registers the calling thread as the worker's.
    pub fn is_here(&self) {
        let number = rbench_sys::waiting::this_thread();
        self.thread.store(number, Ordering::Relaxed);
    }

    /// Returns the worker's thread, by the kernel's number.
    pub fn thread(&self) -> Option<i32> {
        Some(self.thread.load(Ordering::Relaxed)).filter(|number| *number > 0)
    }

    /// Returns a value that changes with every operation, counted or not.
    pub fn progress(&self) -> u64 {
        let others = self.others.load(Ordering::Relaxed);
        self.items()
            .wrapping_add(self.failed())
            .wrapping_add(others)
    }
}

/// Limit of failed operations, and the action beyond it.
#[derive(Debug, Clone, Default)]
pub struct ErrorBudget {
    /// More errors than this of this worker alone end the group's phase.
    pub errors: Option<u64>,
    /// Raised at the limit; rank 0 is informed.
    pub stop: StopFlag,
}

/// Intended start, start and end of an operation.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// The intended start; in an open loop only.
    pub intended: Option<Nanos>,
    /// The actual start.
    pub start: Nanos,
    /// The end.
    pub end: Nanos,
}

impl Span {
    /// Creates the span of an operation without intended start.
    #[inline]
    pub fn new(start: Nanos, end: Nanos) -> Span {
        Span::due(None, start, end)
    }

    /// Creates the span of an operation that was to start at `intended`.
    #[inline]
    pub fn due(intended: Option<Nanos>, start: Nanos, end: Nanos) -> Span {
        Span {
            intended,
            start,
            end,
        }
    }
}

/// Returns whether operations of this kind only follow others, without an intended start.
pub fn follows(op: OpKind) -> bool {
    matches!(op, OpKind::Fsync | OpKind::Close)
}

/// Returns whether a row of such operations is derived from other rows.
pub fn is_of_others(op: OpKind) -> bool {
    matches!(op, OpKind::Round | OpKind::Mixed)
}

/// Creates an empty lane of `op`, with response times or without.
pub fn empty_lane(op: OpKind, responses: bool, interval: Nanos) -> OpStats {
    OpStats {
        timeline: Timeline::new(interval),
        ..OpStats::new(op, responses)
    }
}

/// Description of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneKind {
    /// Its operation.
    pub op: OpKind,
    /// Set if its operations belong to no other lane's time: [`Meter::aside`].
    pub aside: bool,
    /// Set if its operations have intended starts, and so response times.
    pub starts: bool,
}

impl LaneKind {
    /// Creates a lane of operations without intended start, timed with the others.
    pub fn plain(op: OpKind) -> LaneKind {
        LaneKind {
            op,
            aside: false,
            starts: false,
        }
    }
}

/// A lane while it is recorded.
#[derive(Debug)]
struct Lane {
    /// Statistics, whose timeline is still empty.
    stats: OpStats,
    line: TimelineRecorder,
    /// Its operations belong to no other lane's time.
    aside: bool,
}

impl Lane {
    fn new(kind: LaneKind, interval: Nanos) -> Lane {
        let stats = empty_lane(kind.op, kind.starts, interval);
        Lane {
            line: TimelineRecorder::new(interval, stats.response.is_some()),
            stats,
            aside: kind.aside,
        }
    }

    fn end(self) -> OpStats {
        let Lane {
            mut stats,
            line,
            aside: _,
        } = self;
        stats.timeline = line.finish();
        stats.shrink();
        stats
    }
}

/// Calls of a worker that has many requests in flight at a time.
#[derive(Debug, Clone, Copy)]
pub struct Calls {
    /// Time since when at least one is in flight; [`Calls::NONE`]: none is.
    since: Nanos,
    /// Time with at least one in flight, up to `since`.
    under_way: Nanos,
    /// Sum of their durations.
    durations: Nanos,
}

impl Default for Calls {
    fn default() -> Calls {
        Calls {
            since: Calls::NONE,
            under_way: Nanos(0),
            durations: Nanos(0),
        }
    }
}

impl Calls {
    /// Not an instant of any clock.
    const NONE: Nanos = Nanos(u64::MAX);

    /// Records a request submitted at `now`, not before any that is in flight.
    #[inline]
    pub fn begun(&mut self, now: Nanos) {
        self.since = self.since.min(now);
    }

    /// Records that none is in flight any more.
    #[inline]
    pub fn idle(&mut self, now: Nanos) {
        // Adds nothing if none was.
        self.under_way.0 += now.since(self.since).0;
        self.since = Calls::NONE;
    }

    /// Records the duration of an operation.
    #[inline]
    pub fn took(&mut self, duration: Nanos) {
        self.durations.0 += duration.0;
    }
}

type FailureReceiver = Box<dyn FnMut(&Failure) + Send>;

/// Records the operations of one worker in one phase.
pub struct Meter {
    rank: Rank,
    host: String,
    common_start: Nanos,
    lanes: Vec<Lane>,
    last_end: Nanos,
    tally: Arc<Tally>,
    done: u64,
    moved: u64,
    others: u64,
    /// Receiver of the first failed operation, and of the first that indicates a lost mount.
    first_failure: Option<FailureReceiver>,
    /// Set if it has reported one that indicates a lost mount.
    told_of_loss: bool,
    details: Details,
    logs: bool,
    failed: u64,
    /// Failed operations that were timed.
    failed_timed: u64,
    patience: ErrorBudget,
    /// Time of failed operations, which is in no lane.
    failed_for: Nanos,
    active: Nanos,
    waited: Nanos,
    /// With several requests at a time: their account, and the depth.
    many: Option<(Calls, u64)>,
    /// Receiver of the interval before which all work was handed over.
    passes: Option<Box<dyn FnMut(u64) + Send>>,
}

impl Meter {
    /// Creates a meter with these lanes. Its timelines are of that interval.
    pub fn new(
        rank: Rank,
        host: &str,
        lanes: &[LaneKind],
        interval: Nanos,
        tally: Arc<Tally>,
        patience: ErrorBudget,
    ) -> Meter {
        Meter {
            rank,
            host: host.to_owned(),
            common_start: Nanos(0),
            lanes: lanes
                .iter()
                .map(|kind| Lane::new(*kind, interval))
                .collect(),
            last_end: Nanos(0),
            tally,
            done: 0,
            moved: 0,
            others: 0,
            first_failure: None,
            told_of_loss: false,
            details: Details::default(),
            logs: false,
            failed: 0,
            failed_timed: 0,
            patience,
            failed_for: Nanos(0),
            active: Nanos(0),
            waited: Nanos(0),
            many: None,
            passes: None,
        }
    }

    /// Creates a meter of a worker that belongs to no run.
    pub fn alone(ops: &[OpKind]) -> Meter {
        let lanes: Vec<LaneKind> = ops.iter().copied().map(LaneKind::plain).collect();
        Meter::of(&lanes)
    }

    /// Like [`Meter::alone`], with these lanes.
    pub fn of(lanes: &[LaneKind]) -> Meter {
        let (tally, patience) = (Arc::default(), ErrorBudget::default());
        Meter::new(Rank(0), "h", lanes, INTERVAL, tally, patience)
    }

    /// From now on keeps start and duration of each operation, with room for `expected` of them.
    pub fn log_operations(&mut self, expected: u64) {
        self.logs = true;
        // Beyond that it grows on the way, outside the timer.
        let room = usize::try_from(expected).unwrap_or(usize::MAX);
        self.details.operations.reserve(room.min(1 << 20));
    }

    /// From now on hands over each lane's intervals, by the lane's number; without work set aside,
    /// which may be shown or not.
    pub fn hand_over(&mut self, to: impl Fn(usize) -> HandOver) {
        let lanes = self.lanes.iter_mut().enumerate();
        for (number, lane) in lanes.filter(|(_, lane)| !lane.aside) {
            lane.line.hand_over_to(to(number));
        }
    }

    /// From now on reports when all work before an interval was handed over.
    pub fn tell_passes(&mut self, to: impl FnMut(u64) + Send + 'static) {
        self.passes = Some(Box::new(to));
    }

    /// Reports the first failed operation, and the first whose failure indicates a lost mount,
    /// outside the timer.
    pub fn tell_first(&mut self, tell: impl FnMut(&Failure) + Send + 'static) {
        self.first_failure = Some(Box::new(tell));
    }

    /// Sets the common start, the origin of all times.
    pub fn start_at(&mut self, common_start: Nanos) {
        self.common_start = common_start;
        self.last_end = common_start;
    }

    /// Records an operation that moved `bytes` without error.
    #[inline(always)]
    pub fn done(&mut self, lane: usize, span: Span, bytes: u64) {
        let entered = self.record(lane, span, bytes);
        self.extend_to(span.end);
        self.done += 1;
        self.moved += bytes;
        self.tally.items.store(self.done, Ordering::Relaxed);
        self.tally.bytes.store(self.moved, Ordering::Relaxed);
        if entered {
            self.entered(lane);
        }
    }

    /// Records an operation in a derived row: a copy of an operation, or a round of operations with
    /// the bytes of all. It is neither work nor progress.
    #[inline]
    pub fn as_well(&mut self, lane: usize, span: Span, bytes: u64) {
        if self.record(lane, span, bytes) {
            self.entered(lane);
        }
    }

    /// Records an operation whose file no longer existed, or already existed, because another
    /// worker was faster.
    #[cold]
    pub fn missed(&mut self, lane: usize, span: Span) {
        self.failed_for.0 += span.end.since(span.start).0;
        self.extend_to(span.end);
        self.lacked(lane);
    }

    /// Records an operation that found no file to work on, and made no call.
    #[cold]
    pub fn lacked(&mut self, lane: usize) {
        self.lanes[lane].stats.missed += 1;
        self.went_on();
    }

    /// Records it in its row; returns whether the row has entered another interval.
    #[inline(always)]
    fn record(&mut self, lane: usize, span: Span, bytes: u64) -> bool {
        let service = span.end.since(span.start);
        let row = lane as u32;
        let Lane {
            stats: lane, line, ..
        } = &mut self.lanes[lane];
        lane.items += 1;
        lane.bytes += bytes;
        lane.service.record(service);
        let response = span.intended.map(|intended| span.end.since(intended));
        if let (Some(all), Some(response), Some(intended)) =
            (&mut lane.response, response, span.intended)
        {
            all.record(response);
            lane.late.record(span.start.since(intended));
        }
        let at = span.end.since(self.common_start);
        let entered = line.done(at, bytes, service, response);
        if self.logs {
            self.details.operations.push(OpTime {
                row,
                start: span.start.since(self.common_start),
                service,
                bytes,
            });
        }
        entered
    }

    /// Handles a lane that has entered another interval.
    #[cold]
    fn entered(&mut self, lane: usize) {
        self.pass(self.lanes[lane].line.interval());
    }

    /// Hands over all work before that interval, and reports it on request.
    fn pass(&mut self, interval: u64) {
        if let Some(passes) = &mut self.passes {
            self.lanes
                .iter_mut()
                .for_each(|lane| lane.line.pass(interval));
            passes(interval);
        }
    }

    /// Hands over everything: nothing more follows, unless the worker continues.
    pub fn pause(&mut self) {
        self.pass(u64::MAX);
    }

    /// Records progress that is not an item, such as an operation before the measured time or a
    /// close: the worker is not stuck.
    #[inline]
    pub fn went_on(&mut self) {
        self.others += 1;
        self.tally.others.store(self.others, Ordering::Relaxed);
    }

    /// Records a successful operation of a lane that is set aside: it is not an item of the worker,
    /// and moves no end.
    pub fn aside(&mut self, lane: usize, span: Span) {
        let service = span.end.since(span.start);
        let (from, to) = (
            span.start.since(self.common_start),
            span.end.since(self.common_start),
        );
        let Lane { stats, line, .. } = &mut self.lanes[lane];
        stats.items += 1;
        stats.service.record(service);
        line.done(to, 0, service, None);
        let aside = Nanos(0);
        let now = Measured { from, to, aside };
        stats.measured = Some(stats.measured.map_or(now, |known| known.joined(now)));
        self.went_on();
    }

    /// Records an operation that failed.
    #[cold]
    pub fn failed(&mut self, lane: usize, span: Span, failure: Failure) {
        self.note_failed(&failure);
        self.failed_timed += 1;
        self.failed_for.0 += span.end.since(span.start).0;
        let number = lane;
        let lane = &mut self.lanes[number];
        lane.stats.failures.add(self.rank, &self.host, failure);
        let entered = lane.line.failed(span.end.since(self.common_start));
        self.extend_to(span.end);
        if entered {
            self.entered(number);
        }
    }

    /// Records a failure outside the timed part, which does not move its end.
    #[cold]
    pub fn failed_untimed(&mut self, lane: usize, failure: Failure) {
        self.note_failed(&failure);
        let lane = &mut self.lanes[lane].stats;
        lane.failures.add(self.rank, &self.host, failure);
    }

    fn note_failed(&mut self, failure: &Failure) {
        self.failed += 1;
        self.tally.failed.store(self.failed, Ordering::Relaxed);
        let lost = failure.kind.says_the_mount_is_lost();
        let news = self.failed == 1 || lost && !self.told_of_loss;
        if let Some(tell) = self.first_failure.as_mut().filter(|_| news) {
            self.told_of_loss |= lost;
            tell(failure);
        }
        if self.patience.errors.is_some_and(|most| self.failed > most) {
            self.patience.stop.raise();
        }
        let damaged = &mut self.details.damaged;
        if failure.kind == FailureKind::Mismatch && damaged.len() < DAMAGED_MAX {
            damaged.push(failure.clone());
        }
    }

    /// Moves the end of the timed part to `end`: steps after the operations are part of the phase.
    /// A late record does not move it back.
    #[inline]
    pub fn extend_to(&mut self, end: Nanos) {
        self.last_end = self.last_end.max(end);
    }

    /// Sets the time in which the operations of a lane were measured, if it is not the worker's
    /// whole time; on the clock of `start_at`.
    pub fn measured(&mut self, lane: usize, measured: Measured) {
        let start = self.common_start;
        let after_start = match measured.is_nothing() {
            true => measured,
            false => Measured {
                from: measured.from.since(start),
                to: measured.to.since(start),
                aside: measured.aside,
            },
        };
        self.lanes[lane].stats.measured = Some(after_start);
    }

    /// Sets the measured time of all lanes: from `from` up to the last end.
    pub fn measured_from(&mut self, from: Nanos) {
        let to = self.last_end;
        let measured = match to > from {
            true => Measured {
                from,
                to,
                aside: Nanos(0),
            },
            false => Measured::NOTHING,
        };
        for lane in 0..self.lanes.len() {
            if !self.lanes[lane].aside {
                self.measured(lane, measured);
            }
        }
    }

    /// Records operations of an open loop that were due and never started.
    pub fn unissued(&mut self, lane: usize, count: u64) {
        self.lanes[lane].stats.unissued += count;
    }

    /// Records a block that is not verified because it could not be written.
    #[cold]
    pub fn unchecked(&mut self, lane: usize) {
        self.lanes[lane].stats.unchecked += 1;
    }

    /// Records calls beyond the first of an operation.
    pub fn again(&mut self, lane: usize, calls: Retries) {
        self.lanes[lane].stats.again.add(calls);
    }

    /// Records the same for the lanes of reads, writes, trims and syncs; without a lane, syncs
    /// belong to the writes.
    pub fn again_of(&mut self, lanes: [Option<usize>; 4], calls: RetriesByTransfer) {
        let RetriesByTransfer {
            read: reads,
            write: writes,
            trim: trims,
            sync: syncs,
        } = calls;
        let [read, write, trim, sync] = lanes;
        for (lane, calls) in [
            (read, reads),
            (write, writes),
            (trim, trims),
            (sync.or(write), syncs),
        ] {
            if let Some(lane) = lane {
                self.again(lane, calls);
            }
        }
    }

    /// Returns the end of the last operation, after the common start.
    pub fn last_end(&self) -> Nanos {
        self.last_end.since(self.common_start)
    }

    /// Returns the same, on the clock itself.
    pub fn last_end_at(&self) -> Nanos {
        self.last_end
    }

    /// Returns the operations done without error, of all lanes except fsync and close, which only
    /// follow others, and opens of files whose blocks are moved.
    pub fn items(&self) -> u64 {
        let moves = |lane: &OpStats| matches!(lane.op, OpKind::Read | OpKind::Write);
        let moves_blocks = self.stats().any(moves);
        self.stats()
            .filter(|lane| !is_of_others(lane.op))
            .filter(|lane| !(follows(lane.op) || moves_blocks && lane.op == OpKind::Open))
            .map(|lane| lane.items)
            .sum()
    }

    /// Returns the operations that were done or failed, of all lanes that are not derived.
    pub fn attempted(&self) -> u64 {
        self.done + self.failed_timed
    }

    /// Returns whether nothing has failed, timed or not.
    pub fn is_sound(&self) -> bool {
        self.failed == 0
    }

    /// Records that the worker has run since this instant: up to the end of its last operation, or
    /// of a wait after it.
    pub fn ran(&mut self, begun: Nanos, gate: &Gate) {
        let (waited, until) = gate.waits.take();
        let all = self.last_end.max(until).since(begun);
        self.waited.0 += waited.0;
        self.active.0 += all.0.saturating_sub(waited.0);
    }

    /// Records the calls of a worker with up to `depth` requests at a time; without this they are
    /// sequential.
    pub fn overlapped(&mut self, calls: Calls, depth: u64) {
        self.many = Some((calls, depth));
    }

    /// Sets the stonewall: work from now on tops up.
    pub fn stonewall(&mut self) {
        for Lane { stats, .. } in &mut self.lanes {
            stats.stonewalled = Some(stats.service.clone());
        }
    }

    /// Returns how the worker spent its time.
    fn effort(&self) -> Effort {
        let own = |lane: &&Lane| !lane.aside && !is_of_others(lane.stats.op);
        let own = self.lanes.iter().filter(own);
        let done = own.map(|lane| lane.stats.service.total());
        let recorded = Nanos(done.fold(self.failed_for.0, |sum, lane| sum + lane.0));
        let (in_calls, full) = match self.many {
            None => (recorded, recorded),
            Some((calls, depth)) => {
                let durations = calls.durations;
                // Sequential calls last as long as the time with any in flight.
                match depth {
                    0 | 1 => (durations, durations),
                    _ => (calls.under_way, Nanos(durations.0 / depth)),
                }
            }
        };
        Effort {
            workers: 1,
            active: self.active,
            waited: self.waited,
            in_calls,
            full,
            given_up: 0,
            lost: 0,
        }
    }

    fn stats(&self) -> impl Iterator<Item = &OpStats> {
        self.lanes.iter().map(|lane| &lane.stats)
    }

    /// Returns the records of a lane, without its timeline.
    pub fn lane(&self, lane: usize) -> &OpStats {
        &self.lanes[lane].stats
    }

    /// Returns the lanes, and the details that stay with the rank.
    pub fn into_parts(mut self) -> (Vec<OpStats>, Details) {
        let effort = self.effort();
        for lane in &mut self.lanes {
            let stats = &mut lane.stats;
            let total = stats.service.total();
            stats.effort = match (stats.operations(), lane.aside) {
                (0, _) => Effort::default(),
                (_, false) => effort,
                (_, true) => Effort {
                    workers: 1,
                    active: total,
                    in_calls: total,
                    full: total,
                    ..Effort::default()
                },
            };
        }
        let lanes = self.lanes.into_iter().map(Lane::end).collect();
        (lanes, self.details)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rbench_core::{CpuClock, Latency};

    fn gate() -> Gate {
        Gate::new(CpuClock::KERNEL, Nanos(0))
    }

    fn span(start: u64, end: u64) -> Span {
        Span::new(Nanos(start), Nanos(end))
    }

    fn failure() -> Failure {
        Failure::new(OpKind::Read, "f", FailureKind::Short)
    }

    /// Returns workers, active, waited, in calls, full.
    fn told(lane: &OpStats) -> [u64; 5] {
        let words = lane.effort.to_words();
        [words[0], words[1], words[2], words[3], words[4]]
    }

    #[test]
    fn a_workers_time_is_in_calls_in_waits_or_outside_of_both() {
        let (gate, mut meter) = (
            gate(),
            Meter::alone(&[OpKind::Read, OpKind::Write, OpKind::Fsync]),
        );
        meter.start_at(Nanos(1_000));
        meter.done(0, span(1_100, 1_150), 1);
        gate.waits.add(Nanos(1_160), Nanos(1_360));
        meter.failed(0, span(1_360, 1_390), failure());
        meter.done(1, span(1_400, 1_420), 1);
        meter.ran(Nanos(1_050), &gate);
        // A stonewall: the pause before topping up belongs to no time.
        meter.stonewall();
        meter.done(0, span(9_010, 9_050), 1);
        meter.ran(Nanos(9_000), &gate);
        let (lanes, _) = meter.into_parts();
        let expect = [1, 370 - 200 + 50, 200, 50 + 30 + 20 + 40, 140];
        assert_eq!((told(&lanes[0]), told(&lanes[1])), (expect, expect));
        assert_eq!(told(&lanes[2]), [0; 5], "it had nothing to sync");
        let early = |lane: &OpStats| lane.stonewalled.as_ref().map(Latency::count);
        assert_eq!((early(&lanes[0]), early(&lanes[1])), (Some(1), Some(1)));
        assert_eq!(lanes[0].service.count(), 2);
    }

    #[test]
    fn what_is_done_aside_moves_nobodys_end_and_is_in_nobodys_time() {
        let closes = LaneKind {
            aside: true,
            ..LaneKind::plain(OpKind::Close)
        };
        let lanes = [LaneKind::plain(OpKind::Write), closes];
        let (gate, mut meter) = (gate(), Meter::of(&lanes));
        meter.start_at(Nanos(1_000));
        meter.done(0, span(1_100, 1_150), 1);
        meter.ran(Nanos(1_000), &gate);
        meter.aside(1, span(2_000, 2_300));
        meter.aside(1, span(2_400, 2_500));
        meter.measured_from(Nanos(1_100));
        assert_eq!((meter.last_end(), meter.items()), (Nanos(150), 1));
        let (lanes, _) = meter.into_parts();
        assert_eq!(told(&lanes[0]), [1, 150, 0, 50, 50]);
        assert_eq!(told(&lanes[1]), [1, 400, 0, 400, 400]);
        let measured = lanes[1].measured.map(|m| (m.from, m.to));
        assert_eq!(measured, Some((Nanos(1_000), Nanos(1_500))));
        assert_eq!((lanes[1].items, lanes[1].service.count()), (2, 2));
    }

    #[test]
    fn a_wait_that_no_operation_follows_is_a_wait_and_no_more() {
        let (gate, mut meter) = (gate(), Meter::alone(&[OpKind::Read]));
        meter.start_at(Nanos(0));
        meter.done(0, span(10, 90), 1);
        gate.waits.add(Nanos(100), Nanos(1_000));
        meter.ran(Nanos(0), &gate);
        let (lanes, _) = meter.into_parts();
        assert_eq!(told(&lanes[0]), [1, 100, 900, 80, 80]);
    }

    #[test]
    fn a_worker_says_how_far_it_has_handed_over_all_of_its_lanes() {
        use std::sync::Mutex;
        let told = Arc::new(Mutex::new(Vec::new()));
        let mut meter = Meter::alone(&[OpKind::Read, OpKind::Write]);
        let (parts, passes) = (Arc::clone(&told), Arc::clone(&told));
        let note = |told: &Mutex<Vec<[u64; 3]>>, what| told.lock().expect("no panic").push(what);
        meter.hand_over(|lane| {
            let parts = Arc::clone(&parts);
            Box::new(move |part| note(&parts, [lane as u64, part.number, part.bin.operations()]))
        });
        meter.tell_passes(move |upto| note(&passes, [9, upto, 0]));
        meter.start_at(Nanos(0));
        let second = INTERVAL.0;
        meter.done(0, span(1, 2), 1);
        meter.done(1, span(3, 4), 1);
        // The reads do not know of the elapsed time.
        meter.done(1, span(5, second), 1);
        meter.failed(1, span(second, 3 * second), failure());
        meter.pause();
        let expect = [
            [1, 0, 1],
            [0, 0, 1],
            [9, 1, 0],
            [1, 1, 1],
            [9, 3, 0],
            [1, 3, 1],
            [9, u64::MAX, 0],
        ];
        assert_eq!(*told.lock().expect("no panic"), expect);
    }

    #[test]
    fn of_overlapping_calls_the_time_with_any_under_way_counts() {
        let (gate, mut meter) = (gate(), Meter::alone(&[OpKind::Read]));
        meter.start_at(Nanos(0));
        let mut calls = Calls::default();
        calls.begun(Nanos(10));
        calls.begun(Nanos(20));
        calls.idle(Nanos(60));
        calls.idle(Nanos(70));
        calls.begun(Nanos(80));
        calls.idle(Nanos(100));
        calls.took(Nanos(30 + 50 + 20));
        meter.done(0, span(20, 50), 1);
        meter.done(0, span(10, 60), 1);
        meter.done(0, span(80, 100), 1);
        meter.ran(Nanos(0), &gate);
        meter.overlapped(calls, 2);
        let (lanes, _) = meter.into_parts();
        assert_eq!(told(&lanes[0]), [1, 100, 0, 70, 50]);
    }
}
