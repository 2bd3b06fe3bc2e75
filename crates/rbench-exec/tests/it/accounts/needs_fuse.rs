//! Tests that mount the file system themselves; ranks are threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rbench_core::outcome::PhaseOutcome;
use rbench_core::{Latency, Nanos};
use rbench_testfs::{Kind, Snapshot};

use crate::group::{Outcome, Run, check_adds_up};
use crate::testfs::{Mount, mount};

mod closing;
mod ops;
mod runs;
mod timing;

/// One millisecond, in ns.
const MS: u64 = 1_000_000;

/// Mounts the file system with this latency, in the syntax of the command line.
fn slow(latency: &str) -> Mount {
    mount(|config| config.latency = latency.parse().expect("valid"))
}

/// Runs without failures, and checks that all rows add up.
fn sound(run: Run<'_>) -> Outcome {
    let outcome = run.go().expect("runs");
    assert!(outcome.complete && outcome.trouble.is_none() && outcome.left.is_empty());
    for row in &outcome.rows {
        assert!(row.failures.is_empty(), "{}: {:?}", row.name, row.failures);
        check_adds_up(row);
    }
    outcome
}

/// Snapshots of the file system's figures at the start of a phase and when its row arrives.
struct Account {
    before: Snapshot,
    after: Snapshot,
}

impl Account {
    /// Number of requests in between, and the sum of their times.
    fn of(&self, kind: Kind) -> (u64, Nanos) {
        let total = |snapshot: &Snapshot| match snapshot.kind(kind) {
            Some(stats) => (stats.counts.requests, stats.latency.total()),
            None => (0, Nanos(0)),
        };
        let (before, after) = (total(&self.before), total(&self.after));
        (after.0 - before.0, after.1.since(before.1))
    }
}

/// Like [`sound`], with the file system's figures for each row.
fn accounted(mount: &Mount, run: Run<'_>) -> (Outcome, BTreeMap<String, Account>) {
    let stats = Arc::clone(mount.fs.stats());
    let before = Arc::new(Mutex::new(stats.snapshot()));
    let accounts = Mutex::new(BTreeMap::new());
    let run = Run {
        began: Some(Arc::new({
            let (stats, before) = (Arc::clone(&stats), Arc::clone(&before));
            move |_: &str| *before.lock().expect("no panic") = stats.snapshot()
        })),
        between: Box::new(|row: &PhaseOutcome, _| {
            let account = Account {
                before: before.lock().expect("no panic").clone(),
                after: stats.snapshot(),
            };
            let mut all = accounts.lock().expect("no panic");
            all.insert(row.name.clone(), account);
        }),
        ..run
    };
    let outcome = sound(run);
    (outcome, accounts.into_inner().expect("no panic"))
}

/// Number of values of at least `least`; the bucket of `least` counts.
fn at_least(latency: &Latency, least: Nanos) -> u64 {
    let long = latency.ranges().filter(|(_, highest, _)| *highest >= least);
    long.map(|(_, _, count)| count).sum::<u64>() + latency.above()
}
