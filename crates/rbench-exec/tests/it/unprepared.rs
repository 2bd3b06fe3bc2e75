//! Tests workers that cannot be prepared. Each is one failed operation with errno, path and host,
//! and the run ends only if no worker of a phase can work.

use std::fs;
use std::path::Path;

use nix::errno::Errno;
use rbench_core::outcome::PhaseOutcome;
use rbench_core::{Bytes, FailureKind};
use rbench_exec::ExecError;
use rbench_plan::io::{FsyncRule, Layout, Rw};
use rbench_plan::spec::Io;

use crate::group::{Outcome, Run};
use crate::jobs::job;

/// Blocks of each worker.
const BLOCKS: u64 = 16;

fn io(rw: &[Rw]) -> Io {
    Io {
        rw: Some(rw.to_vec()),
        block: Some(Bytes(4096)),
        size: Some(Bytes(BLOCKS * 4096)),
        fsync: Some(FsyncRule::Never),
        ..Io::default()
    }
}

/// Kind, host and path of a row's failures; each occurred once.
fn failures(row: &PhaseOutcome) -> Vec<(FailureKind, String, String)> {
    let all = row.failures.iter().map(|(kind, count, example)| {
        assert_eq!(count, 1, "{kind:?}");
        let path = example.failure.path.clone();
        (kind, example.host.clone(), path)
    });
    all.collect()
}

/// Removes the files below `own` whose names `gone` selects.
fn remove(own: &Path, gone: impl Fn(&str) -> bool) -> usize {
    let below = own.join("0");
    let entries = fs::read_dir(&below).expect("a directory");
    let names = entries.map(|e| e.expect("an entry").file_name().into_string());
    let mut names: Vec<String> = names.map(|n| n.expect("text")).collect();
    names.retain(|name| gone(name));
    for name in &names {
        fs::remove_file(below.join(name)).expect("removed");
    }
    names.len()
}

/// A run that writes, then reads after the removal of those of its three files that `gone` selects.
fn read_without(
    gone: impl Fn(&str) -> bool + Send,
    change: impl Fn(&mut Run<'_>),
) -> Result<Outcome, ExecError> {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut run = Run::io(&[0, 1, 2], dir.path(), io(&[Rw::Write, Rw::Read]));
    change(&mut run);
    run.between = Box::new(move |row, own| {
        if row.name == "write" {
            let removed = remove(own, &gone);
            assert!(removed > 0);
        }
    });
    run.go()
}

#[test]
fn one_host_that_cannot_open_its_file_does_not_keep_the_others_from_reading() {
    let outcome = read_without(|name| name.contains('1'), |_| ()).expect("runs");
    assert!(outcome.complete && outcome.trouble.is_none());
    let row = outcome.row("read");
    assert_eq!(row.items, 2 * BLOCKS);
    let row_failures = failures(row);
    let [(kind, host, path)] = row_failures.as_slice() else {
        panic!("{row_failures:?}");
    };
    assert_eq!((*kind, host.as_str()), (Errno::ENOENT.into(), "host1"));
    assert!(path.contains('1'), "{path}");
}

#[test]
fn a_run_in_which_nobody_can_work_ends() {
    let outcome = read_without(|_| true, |_| ()).expect("what was written is told");
    let trouble = outcome.trouble.clone().expect("it ends");
    assert!(trouble.contains("ENOENT"), "{trouble}");
    assert!(!outcome.complete);
    assert_eq!(outcome.row("write").items, 3 * BLOCKS);
    assert!(outcome.rows.iter().all(|row| row.name != "read"));
}

#[test]
fn who_wants_to_stop_at_an_error_stops_at_this_one() {
    let stop = |run: &mut Run<'_>| run.common.limits.max_errors = Some(0);
    let outcome = read_without(|name| name.contains('1'), stop).expect("what was done is told");
    assert!(!outcome.complete);
    let trouble = outcome.trouble.clone().expect("it ends");
    assert!(trouble.contains("--on-error stop"), "{trouble}");
    assert_eq!(failures(outcome.row("read")).len(), 1);
}

#[test]
fn a_job_that_cannot_open_its_file_fails_by_itself() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let line = "--bs=4k --name=a --rw=write --size=64k --name=b --stonewall --rw=read \
                --filename_format=a.$jobnum.$filenum";
    let mut run = job(&[0, 1], dir.path(), line);
    run.between = Box::new(|row, _| {
        if row.name == "a-write" {
            fs::remove_file(dir.path().join("a.1.0")).expect("removed");
        }
    });
    let outcome = run.go().expect("runs");
    assert!(outcome.complete);
    let row = outcome.row("b-read");
    assert_eq!(row.items, BLOCKS);
    let found = failures(row);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, Errno::ENOENT.into());
    assert_eq!(found[0].1, "host1");
    assert!(found[0].2.ends_with("a.1.0"), "{found:?}");
    let of_job = |job, worker| {
        let mut all = outcome.jobs.iter();
        all.find(|o| (o.job, o.worker) == (job, worker))
            .map(|o| (o.error, o.read.ios))
    };
    assert_eq!(of_job(1, 0), Some((0, BLOCKS)));
    assert_eq!(of_job(1, 1), Some((Errno::ENOENT as i32, 0)));
}

mod needs_fuse {
    use super::*;
    use crate::testfs::mount;

    #[test]
    fn a_part_that_cannot_be_laid_out_keeps_only_its_reader_from_working() {
        for (layout, shift, kind) in [
            (Layout::PerWorker, 0, Errno::EIO),
            // Missing data of a shared file would be a hole.
            (Layout::SharedSegmented, 0, Errno::EIO),
            // The reading rank is not the one that failed to write.
            (Layout::PerWorker, 1, Errno::ENODATA),
        ] {
            let target = mount(|config| {
                // The first write is the run's marker.
                config.faults = vec!["write:EIO@nth=2".parse().expect("valid")];
                config.direct_io = true;
            });
            let spec = Io {
                layout: Some(layout),
                ..io(&[Rw::Read])
            };
            let mut run = Run::io(&[0, 1, 2], target.path(), spec);
            run.common.shift = Some(shift);
            let outcome = run.go().expect("runs");
            let row = outcome.row("read");
            assert_eq!(row.items, 2 * BLOCKS, "{layout:?}");
            let found = failures(row);
            assert_eq!(found.len(), 1, "{layout:?}: {found:?}");
            assert_eq!(found[0].0, kind.into(), "{layout:?}");
            assert!(outcome.complete, "{layout:?}");
            target.end();
        }
    }

    #[test]
    fn a_part_that_was_written_since_is_read_by_everybody() {
        let target = mount(|config| {
            // The first write is the run's marker.
            config.faults = vec!["write:EIO@nth=2".parse().expect("valid")];
            config.direct_io = true;
        });
        let spec = io(&[Rw::RandRead, Rw::Write, Rw::Read]);
        let outcome = Run::io(&[0, 1, 2], target.path(), spec).go().expect("runs");
        assert_eq!(failures(outcome.row("randread")).len(), 1);
        assert_eq!(outcome.row("write").items, 3 * BLOCKS);
        let last = outcome.row("read");
        assert_eq!((last.items, failures(last).len()), (3 * BLOCKS, 0));
        target.end();
    }

    #[test]
    fn a_job_whose_file_cannot_be_made_ready_fails_by_itself() {
        let target = mount(|config| {
            config.faults = vec!["write:EIO@nth=1".parse().expect("valid")];
            config.direct_io = true;
        });
        let line = "--name=x --bs=4k --size=64k --rw=read";
        let outcome = job(&[0, 1], target.path(), line).go().expect("runs");
        assert!(outcome.complete);
        assert_eq!(outcome.row("x-read").items, BLOCKS);
        assert_eq!(failures(outcome.row("x-read")).len(), 1);
        let mut errors: Vec<i32> = outcome.jobs.iter().map(|o| o.error).collect();
        errors.sort_unstable();
        assert_eq!(errors, [0, Errno::EIO as i32]);
        target.end();
    }
}
