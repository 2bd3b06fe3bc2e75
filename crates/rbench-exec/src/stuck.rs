//! Watches the workers of a rank: detects calls that do not return, and decides when to give a
//! worker up.
//!
//! A worker does not announce its next call. Its lack of progress is seen from outside, and the
//! kernel reports the call that it waits for.

use std::cell::{Cell, OnceCell, RefCell};
use std::time::Duration;

use nix::errno::Errno;
use rbench_core::effort::Effort;
use rbench_core::outcome::{Details, WorkerOutcome};
use rbench_core::{Failure, Nanos, OpKind};
use rbench_sys::waiting::{Waiting, waiting, waiting_for_us, waits_for_a_thread};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::group::{Group, StopReason};
use crate::phase::{OpRow, Phase};
use crate::worker::Worker;

/// Calls longer than this are reported to people.
const LONG: Duration = Duration::from_secs(10);

/// State of one worker.
#[derive(Debug, Clone, Default)]
struct Seen {
    progress: u64,
    /// Its call at the last check, and the duration of it by then.
    call: Option<Waiting>,
    span: Duration,
    told: bool,
    /// The call for which it was given up, with its duration.
    given_up: Option<(Waiting, Duration)>,
    /// Time of giving it up.
    given_up_at: Nanos,
}

impl Seen {
    /// Records its current call, `gap` after the last check; returns for how long it has been in
    /// that call without progress. Sleeping does not count, nor do successive calls.
    fn look(&mut self, progress: u64, call: Option<Waiting>, gap: Duration) -> Duration {
        if call.is_some() && (progress, &call) == (self.progress, &self.call) {
            self.span += gap;
        } else {
            (self.progress, self.call) = (progress, call);
            (self.span, self.told) = (Duration::ZERO, false);
        }
        self.span
    }
}

/// The workers of a rank, observed from outside.
#[derive(Debug)]
pub struct StuckDetector {
    workers: RefCell<Vec<Seen>>,
    /// Time of the last check, and the interval of checks.
    looked: Cell<Instant>,
    every: Cell<Duration>,
    /// The common start.
    start: Cell<Nanos>,
}

impl StuckDetector {
    /// Creates a detector of workers that all make progress.
    pub fn new(workers: usize) -> StuckDetector {
        StuckDetector {
            workers: RefCell::new(vec![Seen::default(); workers]),
            looked: Cell::new(Instant::now()),
            every: Cell::new(LONG),
            start: Cell::new(Nanos(0)),
        }
    }

    /// Records the start of the workers.
    pub fn begun(&self, start: Nanos) {
        self.start.set(start);
    }

    /// Returns the timer of the checks.
    pub fn pace(&self, group: &Group<'_>) -> Interval {
        let least = operation_limit(group).map_or(LONG, |limit| limit.min(LONG));
        let every = (least / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
        let mut pace = interval(every);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pace.reset();
        self.every.set(every);
        self.looked.set(Instant::now());
        // Earlier calls were not operations of theirs.
        let mut workers = self.workers.borrow_mut();
        workers.iter_mut().for_each(|seen| seen.call = None);
        pace
    }

    /// Returns whether this worker was given up.
    pub fn gave_up(&self, worker: usize) -> bool {
        self.workers.borrow()[worker].given_up.is_some()
    }

    /// Returns whether any worker was given up.
    pub fn gave_up_any(&self) -> bool {
        let workers = self.workers.borrow();
        workers.iter().any(|seen| seen.given_up.is_some())
    }

    /// Checks the workers for which `waits` holds.
    pub fn look(&self, group: &Group<'_>, workers: &[Worker], waits: impl Fn(usize) -> bool) {
        let limit = operation_limit(group);
        let now = Instant::now();
        let gap = now.saturating_duration_since(self.looked.replace(now));
        // A check this late means that the process was suspended, and the workers with it.
        let gap = gap.min(2 * self.every.get());
        let mut all = self.workers.borrow_mut();
        // Helper threads of the C library perform the calls of workers that wait for them; looked
        // up once for all.
        let helpers = OnceCell::new();
        let in_helper = |thread| {
            waits_for_a_thread(thread).then(|| helpers.get_or_init(waiting_for_us).clone())?
        };
        for (number, (seen, worker)) in all.iter_mut().zip(workers).enumerate() {
            if seen.given_up.is_some() {
                continue;
            }
            let progress = worker.tally.progress();
            let call = match waits(number) && progress == seen.progress {
                true => {
                    let thread = worker.tally.thread();
                    thread.and_then(|thread| waiting(thread).or_else(|| in_helper(thread)))
                }
                false => None,
            };
            let span = seen.look(progress, call, gap);
            let over = limit.is_some_and(|limit| span >= limit);
            let Some(call) = seen.call.as_ref() else {
                continue;
            };
            if !(over || span >= LONG && !seen.told) {
                continue;
            }
            let place = format!(
                "worker {number} of rank {} on {}",
                group.rank().0,
                group.host_name()
            );
            let (what, seconds) = (text(call), span.as_secs_f64());
            if over {
                group.trouble(&format!(
                    "{place}: {what} has not returned for {seconds:.1} s (--op-timeout) and is abandoned"
                ));
                seen.given_up = Some((call.clone(), span));
                seen.given_up_at = group.now();
                group.ask_to_stop(StopReason::Stuck);
            } else {
                group.trouble(&format!(
                    "{place}: {what} has not returned for {seconds:.0} s"
                ));
                seen.told = true;
            }
        }
    }

    /// Returns the outcome of a worker that was given up: its call, as a failure. Its earlier
    /// results are lost.
    pub fn outcome(
        &self,
        group: &Group<'_>,
        worker: usize,
        phase: &Phase,
        workers: &[Worker],
    ) -> WorkerOutcome {
        let own = phase.own_lanes(worker);
        let mut lanes = phase.empty_lanes(group.interval(), own.clone());
        let Seen {
            given_up,
            given_up_at,
            ..
        } = self.workers.borrow()[worker].clone();
        let lane = given_up
            .as_ref()
            .and_then(|(call, _)| lane_of(call.call, &phase.lanes[own.clone()]))
            .and_then(|lane| lanes.get_mut(lane));
        if let (Some((call, span)), Some(lane)) = (given_up, lane) {
            let path = call
                .path
                .map_or_else(String::new, |p| p.display().to_string());
            let done = workers[worker].tally.items();
            let failure = Failure::new(lane.op, path, Errno::ETIMEDOUT).with(format!(
                "{} has not returned for {:.1} s; {done} earlier operations of its worker are not counted",
                call.call,
                span.as_secs_f64()
            ));
            lane.failures.add(group.rank(), group.host_name(), failure);
            lane.given_up_at = Some(given_up_at.since(self.start.get()));
            lane.effort = Effort {
                workers: 1,
                given_up: 1,
                lost: done,
                ..Effort::default()
            };
        }
        WorkerOutcome {
            started_ns: 0,
            finished: Nanos(0),
            // Its finish is unknown: it does not count as the first one.
            busy: false,
            lanes,
            details: Details::default(),
            first_lane: own.start,
        }
    }
}

fn operation_limit(group: &Group<'_>) -> Option<Duration> {
    group.limits().operation.map(Duration::from)
}

fn text(waiting: &Waiting) -> String {
    match &waiting.path {
        Some(path) => format!("{} {}", waiting.call, path.display()),
        None => waiting.call.to_owned(),
    }
}

/// Returns the lane of a call, among those of its worker.
fn lane_of(call: &str, lanes: &[OpRow]) -> Option<usize> {
    let ops: &[OpKind] = match call {
        "fallocate" => &[OpKind::Trim, OpKind::Allocate, OpKind::Write],
        "truncate" | "ftruncate" => &[OpKind::Truncate, OpKind::Write],
        "fsync" | "fdatasync" | "sync" | "syncfs" | "msync" => &[OpKind::Fsync, OpKind::Write],
        "close" => &[OpKind::Close, OpKind::Write],
        "openat" | "open" => &[OpKind::Open, OpKind::Create],
        "newfstatat" | "statx" | "fstat" | "stat" | "lstat" => &[OpKind::Stat],
        "getdents64" => &[OpKind::Readdir, OpKind::List],
        "mkdirat" | "mkdir" => &[OpKind::Mkdir],
        "mknodat" | "mknod" => &[OpKind::Mknod, OpKind::Create],
        "unlinkat" | "unlink" | "rmdir" => &[OpKind::Unlink, OpKind::Rmdir],
        "renameat" | "renameat2" | "rename" => &[OpKind::Rename],
        "linkat" => &[OpKind::Link],
        "copy_file_range" => &[OpKind::Copy],
        "symlinkat" => &[OpKind::Symlink],
        "readlinkat" => &[OpKind::Readlink],
        "fchmodat" | "fchmodat2" | "fchmod" => &[OpKind::Chmod],
        "fchownat" | "fchown" => &[OpKind::Chown],
        "utimensat" => &[OpKind::Utimes],
        "faccessat" | "faccessat2" => &[OpKind::Access],
        "statfs" | "fstatfs" => &[OpKind::Statfs],
        _ if call.ends_with("setxattr") => &[OpKind::Setxattr],
        _ if call.ends_with("getxattr") => &[OpKind::Getxattr],
        _ if call.ends_with("listxattr") => &[OpKind::Listxattr],
        _ if call.ends_with("removexattr") => &[OpKind::Removexattr],
        _ if call.trim_start_matches('p').starts_with("write") => &[OpKind::Write],
        _ => &[OpKind::Read],
    };
    let find = |op: &OpKind| lanes.iter().position(|lane| lane.op == *op && !lane.aside);
    ops.iter()
        .find_map(find)
        .or((!lanes.is_empty()).then_some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(ops: &[OpKind]) -> Vec<OpRow> {
        let lane = |op: &OpKind| OpRow::new(*op, "", "");
        ops.iter().map(lane).collect()
    }

    #[test]
    fn only_the_time_in_one_call_counts() {
        let tick = Duration::from_secs(1);
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let (sender, receiver) = std::sync::mpsc::channel();
        let reads = std::thread::spawn(move || {
            let number = rbench_sys::waiting::this_thread();
            sender.send(number).expect("received");
            std::io::Read::read(&mut reader, &mut [0])
        });
        let thread = receiver.recv().expect("sent");
        let call = loop {
            if let Some(call) = waiting(thread) {
                break Some(call);
            }
            std::thread::yield_now();
        };
        let mut seen = Seen::default();
        let mut spans = |looks: &[(u64, bool)]| -> Vec<u64> {
            let look = |(progress, is_in): &(u64, bool)| {
                let call = call.clone().filter(|_| *is_in);
                seen.look(*progress, call, tick).as_secs()
            };
            looks.iter().map(look).collect()
        };
        // From the first check on; not asleep; not with progress.
        let one = [(5, true), (5, true), (5, true)];
        assert_eq!(spans(&one), [0, 1, 2]);
        let asleep = [(5, false), (5, false), (5, true), (5, true)];
        assert_eq!(spans(&asleep), [0, 0, 0, 1]);
        let done = [(6, true), (7, true), (7, true)];
        assert_eq!(spans(&done), [0, 0, 1]);
        drop(writer);
        assert_eq!(reads.join().expect("ended").ok(), Some(0));
    }

    #[test]
    fn a_call_belongs_to_the_lane_of_its_kind_among_those_of_the_worker() {
        use OpKind::{Close, Copy, Fsync, Mkdir, Read, Write};
        let (first, second) = (lanes(&[Read, Write, Fsync]), lanes(&[Read, Write]));
        for (call, in_first, in_second) in [
            ("pread64", 0, 0),
            ("page fault", 0, 0),
            ("pwrite64", 1, 1),
            ("writev", 1, 1),
            ("fdatasync", 2, 1),
            ("close", 1, 1),
        ] {
            assert_eq!(
                (lane_of(call, &first), lane_of(call, &second)),
                (Some(in_first), Some(in_second)),
                "{call}"
            );
        }
        let mixed = lanes(&[Read, Write, Close]);
        assert_eq!(lane_of("close", &mixed), Some(2));
        assert_eq!(lane_of("copy_file_range", &lanes(&[Read, Copy])), Some(1));
        assert_eq!(lane_of("io_uring_enter", &lanes(&[Write])), Some(0));
        assert_eq!(lane_of("openat", &lanes(&[Mkdir])), Some(0));
        assert_eq!(lane_of("openat", &[]), None);
    }
}
