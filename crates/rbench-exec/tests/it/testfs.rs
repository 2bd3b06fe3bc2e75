//! Mounts the built-in file system for a test.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rbench_core::outcome::PhaseOutcome;
use rbench_core::{Bytes, Latency};
use rbench_testfs::{Config, Counts, Kind, Mounted};

use crate::children::{self, NoChildren};
use crate::clock::PATIENCE;
use crate::group::{Outcome, Run};

/// The built-in file system on a temporary directory.
pub struct Mount {
    pub fs: Mounted,
    dir: tempfile::TempDir,
    alone: NoChildren,
}

/// Mounts it with a configuration changed by `change`.
pub fn mount(change: impl FnOnce(&mut Config)) -> Mount {
    let alone = children::none();
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut config = Config::memory(Bytes(1 << 30)).uncached();
    change(&mut config);
    let fs = rbench_testfs::mount(config, dir.path())
        .expect("the machine can mount FUSE")
        .waiting_for_users();
    Mount { fs, dir, alone }
}

impl Mount {
    pub fn path(&self) -> &std::path::Path {
        self.dir.path()
    }

    pub fn end(self) {
        let Mount { fs, dir, alone } = self;
        fs.unmount().expect("unmounts");
        drop((dir, alone));
    }

    pub fn times(&self, kind: Kind) -> Latency {
        self.fs
            .stats()
            .snapshot()
            .kind(kind)
            .map(|k| k.latency.clone())
            .unwrap_or_default()
    }

    /// Executes a run; also returns the requests of each of its rows.
    pub fn count(&self, run: Run<'_>) -> (Outcome, BTreeMap<String, BTreeMap<Kind, Counts>>) {
        let stats = self.fs.stats();
        let seen = Mutex::new((stats.snapshot(), BTreeMap::new()));
        let run = Run {
            between: Box::new(|row: &PhaseOutcome, _| {
                let now = stats.snapshot();
                let mut seen = seen.lock().expect("no panic");
                let counts = now.since(&seen.0);
                seen.1.insert(row.name.clone(), counts);
                seen.0 = now;
            }),
            ..run
        };
        let outcome = run.go().expect("runs");
        (outcome, seen.into_inner().expect("no panic").1)
    }
}

/// Runs `work`, which makes `requests` hanging requests, `depth` at a time. Releases them whenever
/// that many, or all remaining ones, are waiting. Panics if others were released.
pub fn let_go<T>(fs: &Mounted, depth: u64, requests: u64, work: impl FnOnce() -> T) -> T {
    let_go_when_awaited(fs, depth, requests, || (), work)
}

/// Like `let_go`, and calls `look` before each release.
pub fn let_go_when_awaited<T>(
    fs: &Mounted,
    depth: u64,
    requests: u64,
    look: impl Fn() + Sync,
    work: impl FnOnce() -> T,
) -> T {
    let over = AtomicBool::new(false);
    let release = || {
        let (mut left, mut groups, mut started) = (requests, Vec::new(), Instant::now());
        while !over.load(Ordering::SeqCst) {
            let together = depth.min(left) as usize;
            let all_there = left > 0 && fs.hanging() >= together;
            // If they never come, releases the others, so that the work ends anyway.
            if all_there || started.elapsed() > PATIENCE {
                look();
                let released = fs.release_hangs();
                left = left.saturating_sub(released as u64);
                groups.push((released, together));
                started = Instant::now();
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        (left, groups)
    };
    let (done, (left, groups)) = std::thread::scope(|scope| {
        let releaser = scope.spawn(release);
        let done = std::panic::catch_unwind(AssertUnwindSafe(work));
        over.store(true, Ordering::SeqCst);
        (done, releaser.join().expect("no panic"))
    });
    let done = done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let in_time = groups
        .iter()
        .all(|(released, together)| released == together);
    assert!(
        left == 0 && in_time,
        "{left} left; let go, and to be: {groups:?}"
    );
    done
}
