//! Watching the workers of a rank: which of them is in a call that does not
//! return, and when to give it up.
//!
//! A worker says nothing of the call it is about to make. That it makes no
//! progress is seen from outside, and what it waits for is asked of the kernel.

use std::cell::RefCell;
use std::time::Duration;

use nix::errno::Errno;
use rbench_core::outcome::{Details, Lane, WorkerOutcome};
use rbench_core::{Failure, Nanos};
use rbench_sys::waiting::{Waiting, waiting};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::group::{Group, StopReason};
use crate::phase::Phase;
use crate::worker::Worker;

/// From this time on people are told of a call.
const LONG: Duration = Duration::from_secs(10);

/// What is known of one worker.
#[derive(Debug, Clone)]
struct Seen {
    progress: u64,
    since: Instant,
    told: bool,
    /// Why it is waited for no longer, and how long it was.
    given_up: Option<(Waiting, Duration)>,
}

/// The workers of a rank, as they are seen from outside.
#[derive(Debug)]
pub struct Watch(RefCell<Vec<Seen>>);

impl Watch {
    /// All make progress.
    pub fn new(workers: usize) -> Watch {
        let seen = Seen {
            progress: 0,
            since: Instant::now(),
            told: false,
            given_up: None,
        };
        Watch(RefCell::new(vec![seen; workers]))
    }

    /// How often to look.
    pub fn pace(&self, group: &Group<'_>) -> Interval {
        let least = operation_limit(group).map_or(LONG, |limit| limit.min(LONG));
        let every = (least / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
        let mut pace = interval(every);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pace.reset();
        let now = Instant::now();
        // What came before was no operation of theirs.
        self.0.borrow_mut().iter_mut().for_each(|s| s.since = now);
        pace
    }

    /// Whether this worker is waited for no longer.
    pub fn gave_up(&self, worker: usize) -> bool {
        self.0.borrow()[worker].given_up.is_some()
    }

    /// Whether any is.
    pub fn gave_up_any(&self) -> bool {
        self.0.borrow().iter().any(|seen| seen.given_up.is_some())
    }

    /// Looks at the workers for which `waits` holds.
    pub fn look(&self, group: &Group<'_>, workers: &[Worker], waits: impl Fn(usize) -> bool) {
        let limit = operation_limit(group);
        for (number, (seen, worker)) in self.0.borrow_mut().iter_mut().zip(workers).enumerate() {
            let progress = worker.tally.progress();
            if progress != seen.progress {
                (seen.progress, seen.since, seen.told) = (progress, Instant::now(), false);
                continue;
            }
            let span = seen.since.elapsed();
            let over = limit.is_some_and(|limit| span >= limit);
            if seen.given_up.is_some() || !waits(number) || !(over || span >= LONG && !seen.told) {
                continue;
            }
            // Asleep until an intended start, or between two calls.
            let Some(call) = worker.tally.thread().and_then(waiting) else {
                continue;
            };
            let place = format!(
                "worker {number} of rank {} on {}",
                group.rank().0,
                group.host_name()
            );
            let (what, seconds) = (text(&call), span.as_secs_f64());
            if over {
                group.trouble(&format!(
                    "{place}: {what} has not returned for {seconds:.1} s (--op-timeout): it is waited for no longer"
                ));
                seen.given_up = Some((call, span));
                group.ask_to_stop(StopReason::Stuck);
            } else {
                group.trouble(&format!(
                    "{place}: {what} has not returned for {seconds:.0} s"
                ));
                seen.told = true;
            }
        }
    }

    /// What is left of a worker that was given up: the call that it is in, as
    /// a failure. What it did before went with it.
    pub fn outcome(
        &self,
        group: &Group<'_>,
        worker: usize,
        phase: &Phase,
        workers: &[Worker],
    ) -> WorkerOutcome {
        let mut lanes: Vec<Lane> = phase
            .lanes
            .iter()
            .map(|info| Lane::new(info.op, phase.open_loop))
            .collect();
        let given_up = self.0.borrow()[worker].given_up.clone();
        if let (Some((call, span)), Some(lane)) = (given_up, lanes.first_mut()) {
            let path = call
                .path
                .map_or_else(String::new, |p| p.display().to_string());
            let done = workers[worker].tally.items();
            let failure = Failure {
                op: lane.op,
                path,
                kind: Errno::ETIMEDOUT.into(),
                detail: format!(
                    "{} has not returned for {:.1} s; {done} operations that its worker did before are not counted",
                    call.call,
                    span.as_secs_f64()
                ),
            };
            lane.failures.add(group.rank(), group.host_name(), failure);
        }
        WorkerOutcome {
            started_ns: 0,
            finished: Nanos(0),
            busy: true,
            lanes,
            details: Details::default(),
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
