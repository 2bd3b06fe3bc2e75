//! Runs that end by themselves: too many failed operations, an operation that
//! does not return, a rank that is silent.

use std::time::{Duration, Instant};

use rbench_core::{Bytes, Nanos};
use rbench_exec::ExecError;
use rbench_plan::io::Rw;
use rbench_plan::meta::PhaseKind;
use rbench_plan::spec::{Common, Io, LimitOptions, Meta, OnError};
use rbench_testfs::{Config, Mounted};
use tempfile::TempDir;

use crate::group::{Outcome, Run, Signal};

/// A file system with this fault.
fn faulty(fault: &str) -> (Mounted, TempDir) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut config = Config::memory(Bytes(1 << 26)).uncached();
    config.faults = vec![fault.parse().expect("valid")];
    let fs = rbench_testfs::mount(config, dir.path()).expect("the machine can mount FUSE");
    (fs, dir)
}

fn files(items: u64) -> Meta {
    Meta {
        depth: Some(0),
        items: Some(items),
        files_only: true,
        ..Meta::default()
    }
}

fn run(dir: &TempDir, meta: Meta, common: Common) -> Outcome {
    let mut run = Run::meta(&[0, 0, 1], dir.path(), meta);
    run.common = common;
    run.go().expect("what was measured is told")
}

#[test]
fn without_limits_failed_operations_are_counted_and_the_run_goes_on() {
    let (fs, dir) = faulty("create:EIO@p=0.2");
    let outcome = run(&dir, files(200), Common::default());
    assert!(outcome.complete && outcome.trouble.is_none());
    let row = outcome.row("file-create");
    assert!(row.failures.total() > 50 && row.items + row.failures.total() == 600);
    drop(fs);
}

#[test]
fn more_errors_than_may_be_end_the_run_with_what_was_measured() {
    for (common, most, words) in [
        (
            Common {
                limits: LimitOptions {
                    on_error: Some(OnError::Stop),
                    ..LimitOptions::default()
                },
                ..Common::default()
            },
            0,
            "--on-error stop",
        ),
        (
            Common {
                limits: LimitOptions {
                    max_errors: Some(30),
                    ..LimitOptions::default()
                },
                ..Common::default()
            },
            30,
            "--max-errors 30",
        ),
    ] {
        let (fs, dir) = faulty("create:ENOSPC@after=300");
        let outcome = run(&dir, files(200_000), common);
        assert!(!outcome.complete);
        let trouble = outcome.trouble.as_ref().expect("a reason");
        assert!(trouble.contains(words), "{trouble}");
        let row = outcome.row("file-create");
        // One of the first 300 is the marker of the run.
        assert!(row.items == 299 && row.failures.total() > most);
        assert!(row.items + row.failures.total() < 600_000);
        assert_eq!(outcome.left, [""; 0]);
        drop(fs);
    }
}

#[test]
fn errors_below_the_limit_do_not_end_the_run() {
    let (fs, dir) = faulty("create:EIO@nth=5");
    let common = Common {
        limits: LimitOptions {
            max_errors: Some(1),
            ..LimitOptions::default()
        },
        ..Common::default()
    };
    let outcome = run(&dir, files(100), common);
    // One that was not created is missed once, and not removed.
    let failed: u64 = outcome.rows.iter().map(|row| row.failures.total()).sum();
    assert!(failed > 1, "{failed}");
    assert_eq!(outcome.row("file-create").items, 299);
    assert!(outcome.trouble.is_some());
    drop(fs);
}

#[test]
fn an_operation_that_does_not_return_is_named_and_given_up() {
    let (fs, dir) = faulty("create:stall=6s@nth=100");
    let begun = Instant::now();
    let outcome = run(
        &dir,
        files(1_000_000),
        Common {
            limits: LimitOptions {
                op_timeout: Some(Nanos(500_000_000)),
                ..LimitOptions::default()
            },
            ..Common::default()
        },
    );
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    assert!(!outcome.complete);
    assert!(
        outcome
            .trouble
            .is_some_and(|why| why.contains("--op-timeout"))
    );
    let told: Vec<&String> = outcome
        .troubles
        .iter()
        .filter(|t| t.contains("openat"))
        .collect();
    assert_eq!(told.len(), 1, "{:?}", outcome.troubles);
    let row = outcome
        .rows
        .iter()
        .find(|row| row.name == "file-create")
        .expect("a row");
    assert!(!row.complete && row.items > 0);
    let (_, count, example) = row.failures.iter().next().expect("a failure");
    assert_eq!(count, 1);
    let path = dir.path().join("rbench.test").display().to_string();
    assert!(
        example.failure.path.starts_with(&path),
        "{}",
        example.failure.path
    );
    assert!(
        example
            .failure
            .detail
            .contains("openat has not returned for 0.")
    );
    assert!(outcome.left.iter().any(|left| left.contains("rbench.test")));
    // The stalled request ends, and so does its thread, before the mount does.
    std::thread::sleep(Duration::from_secs(6).saturating_sub(begun.elapsed()));
    drop(fs);
}

#[test]
fn reads_in_a_ring_that_do_not_return_are_given_up_too() {
    let (fs, dir) = faulty("read:stall=4s@after=50");
    let begun = Instant::now();
    let mut run = Run::io(
        &[0, 0],
        dir.path(),
        Io {
            rw: Some(vec![Rw::RandRead]),
            block: Some(Bytes(4096)),
            size: Some(Bytes(1 << 20)),
            engine: Some("io_uring".into()),
            depth: Some(8),
            direct: true,
            time: Some(Nanos(20_000_000_000)),
            ..Io::default()
        },
    );
    run.common.limits.op_timeout = Some(Nanos(700_000_000));
    let outcome = run.go().expect("what was measured is told");
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    assert!(
        outcome
            .trouble
            .is_some_and(|why| why.contains("--op-timeout"))
    );
    std::thread::sleep(Duration::from_secs(5).saturating_sub(begun.elapsed()));
    drop(fs);
}

#[test]
fn a_rank_that_is_silent_is_noticed_within_ten_seconds() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut run = Run::io(
        &[0, 0, 1],
        dir.path(),
        Io {
            rw: Some(vec![Rw::Read]),
            size: Some(Bytes(1 << 20)),
            time: Some(Nanos(60_000_000_000)),
            ..Io::default()
        },
    );
    run.signal = Some(Signal {
        rank: 2,
        during: "Sequential read",
        after: Duration::from_millis(100),
    });
    run.freeze = Some(Duration::from_secs(12));
    let begun = Instant::now();
    let error = run.go().err().expect("a rank is lost");
    let ExecError::Lost(text) = error else {
        panic!("{error}");
    };
    assert!(
        text.starts_with("rank 2 on host1 has not been heard of for 7 s"),
        "{text}"
    );
    assert!(begun.elapsed() < Duration::from_secs(24));
}

#[test]
fn what_is_said_to_be_left_behind_is_left_behind() {
    let (mut said, mut runs) = (0, 0);
    for fault in ["opendir:EIO@nth=", "readdir:EIO@nth=", "unlink:EIO@nth="] {
        for nth in 1..8 {
            let (fs, dir) = faulty(&format!("{fault}{nth}"));
            let mut meta = files(3);
            // Left to the end of the pass.
            meta.phases = Some(vec![PhaseKind::TreeCreate, PhaseKind::FileCreate]);
            let result = Run::meta(&[0, 1], dir.path(), meta).go();
            // The fault may have waited for this: it comes once.
            let list = || std::fs::read_dir(dir.path());
            let there = list().or_else(|_| list()).expect("listing").count();
            if let Ok(outcome) = result {
                runs += 1;
                said += u32::from(!outcome.left.is_empty());
                let told = !outcome.left.is_empty();
                assert_eq!(told, there > 0, "{fault}{nth}: {:?}", outcome.left);
            }
            drop(fs);
        }
    }
    assert!(runs > 10 && said > 0, "{said} of {runs}");
}
