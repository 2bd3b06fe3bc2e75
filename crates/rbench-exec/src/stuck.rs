//! Watches the workers of a rank: detects calls that do not return, and decides when to give a
//! worker up.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use nix::errno::Errno;
use rbench_core::effort::Effort;
use rbench_core::outcome::{Details, WorkerOutcome};
use rbench_core::{Failure, Nanos, OpKind};
use rbench_sys::waiting::{waiting, waiting_for_us, waits_for_a_thread};
use tokio::time::Interval;

use crate::group::Group;
use crate::meter::Tally;
use crate::overdue::{Checks, Observed, Overdue};
use crate::phase::{OpRow, Phase};
use crate::worker::Worker;

/// State of one worker.
#[derive(Debug, Clone, Default)]
struct Seen {
    observed: Observed,
    /// The call for which it was given up.
    given_up: Option<Overdue>,
    /// Time of giving it up.
    given_up_at: Nanos,
}

/// The workers of a rank, observed from outside.
#[derive(Debug)]
pub struct StuckDetector {
    tallies: Vec<Arc<Tally>>,
    workers: RefCell<Vec<Seen>>,
    checks: RefCell<Checks>,
    /// The common start.
    start: Cell<Nanos>,
}

impl StuckDetector {
    /// Creates a detector of workers that all make progress.
    pub fn new(workers: &[Worker]) -> StuckDetector {
        let tallies = workers.iter().map(|worker| Arc::clone(&worker.tally));
        StuckDetector {
            tallies: tallies.collect(),
            workers: RefCell::new(vec![Seen::default(); workers.len()]),
            checks: RefCell::new(Checks::start(None)),
            start: Cell::new(Nanos(0)),
        }
    }

    /// Records the start of the workers.
    pub fn begun(&self, start: Nanos) {
        self.start.set(start);
    }

    /// Returns the timer of the checks.
    pub fn pace(&self, group: &Group<'_>) -> Interval {
        let checks = Checks::start(group.operation_limit());
        let timer = checks.timer();
        self.checks.replace(checks);
        // Earlier calls were not operations of theirs.
        let mut workers = self.workers.borrow_mut();
        workers
            .iter_mut()
            .for_each(|seen| seen.observed.call = None);
        timer
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
    pub fn look(&self, group: &Group<'_>, waits: impl Fn(usize) -> bool) {
        let limit = group.operation_limit();
        let gap = self.checks.borrow_mut().gap();
        let mut all = self.workers.borrow_mut();
        // Helper threads of the C library perform the calls of workers that wait for them; looked
        // up once for all.
        let helpers = OnceCell::new();
        let in_helper = |thread| {
            waits_for_a_thread(thread).then(|| helpers.get_or_init(waiting_for_us).clone())?
        };
        for (number, (seen, tally)) in all.iter_mut().zip(&self.tallies).enumerate() {
            if seen.given_up.is_some() {
                continue;
            }
            let progress = tally.progress();
            let call = match waits(number) && progress == seen.observed.progress {
                true => {
                    let thread = tally.thread();
                    thread.and_then(|thread| waiting(thread).or_else(|| in_helper(thread)))
                }
                false => None,
            };
            seen.observed.look(progress, call, gap);
            let Some(overdue) = seen.observed.overdue(limit) else {
                continue;
            };
            group.tell_overdue(&format!("worker {number} of "), &overdue);
            if overdue.over {
                seen.given_up = Some(overdue);
                seen.given_up_at = group.now();
            }
        }
    }

    /// Returns the outcome of a worker that was given up: its call, as a failure. Its earlier
    /// results are lost.
    pub fn outcome(&self, group: &Group<'_>, worker: usize, phase: &Phase) -> WorkerOutcome {
        let own = phase.own_lanes(worker);
        let mut lanes = phase.empty_lanes(group.interval(), own.clone());
        let Seen {
            given_up,
            given_up_at,
            ..
        } = self.workers.borrow()[worker].clone();
        let lane = given_up
            .as_ref()
            .and_then(|given_up| lane_of(given_up.call.call, &phase.lanes[own.clone()]))
            .and_then(|lane| lanes.get_mut(lane));
        if let (Some(Overdue { call, span, .. }), Some(lane)) = (given_up, lane) {
            let path = call
                .path
                .map_or_else(String::new, |p| p.display().to_string());
            let done = self.tallies[worker].items();
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
