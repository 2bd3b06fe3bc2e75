//! Tests several ranks and hosts, groups of jobs, stops and errors.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use rbench_testfs::Kind;

use super::*;
use crate::group::{At, Signal};

/// Job and worker of every outcome.
fn who(outcome: &Outcome) -> Vec<(u32, u64)> {
    outcome.jobs.iter().map(|j| (j.job, j.worker)).collect()
}

#[test]
fn outcomes_of_all_workers_come_to_rank_0_by_job_and_worker() {
    let dir = tempdir();
    let line = "--name=a --rw=write --size=64k --numjobs=2 --name=b --rw=randread --size=32k";
    let outcome = run_on(&[0, 0, 1, 1], dir.path(), line);
    check_sound(&outcome, line);
    let expect: Vec<(u32, u64)> = (0..8)
        .map(|worker| (0, worker))
        .chain((0..4).map(|worker| (1, worker)))
        .collect();
    assert_eq!(who(&outcome), expect);
    for job in &outcome.jobs {
        let expect = if job.job == 0 { (0, 16) } else { (8, 0) };
        assert_eq!((job.read.ios, job.write.ios), expect, "{:?}", job.worker);
        assert_eq!(job.workers, 1);
    }
    // jobnum counts over all ranks, so no file is shared.
    let mut names: Vec<String> = (0..8).map(|n| format!("a.{n}.0")).collect();
    names.extend((0..4).map(|n| format!("b.{n}.0")));
    assert_eq!(listing(dir.path()).into_keys().collect::<Vec<_>>(), names);
    let row = outcome.row("a-write");
    assert_eq!((row.items, row.hosts.len(), row.ranks.len()), (128, 2, 4));
}

#[test]
fn every_iteration_has_rows_and_outcomes_of_its_own() {
    let dir = tempdir();
    let line = "--name=a --rw=write --size=64k --stonewall --name=b --rw=randread --size=32k \
                --unlink=1 --iterations=3";
    let outcome = run_on(&[0, 1], dir.path(), line);
    check_sound(&outcome, line);
    let rows: Vec<(u32, &str, u64)> = outcome
        .rows
        .iter()
        .map(|row| (row.iteration, row.name.as_str(), row.items))
        .collect();
    let expect: Vec<(u32, &str, u64)> = (0..3)
        .flat_map(|n| [(n, "a-write", 32), (n, "b-read", 16)])
        .collect();
    assert_eq!(rows, expect);
    let jobs: Vec<(u32, u64)> = outcome
        .jobs
        .iter()
        .map(|j| (j.job, j.read.ios + j.write.ios))
        .collect();
    let expect: Vec<(u32, u64)> = (0..3)
        .flat_map(|n| [(2 * n, 16), (2 * n, 16), (2 * n + 1, 8), (2 * n + 1, 8)])
        .collect();
    assert_eq!(jobs, expect);
    // The files of a job that removes them itself are gone.
    let left: Vec<String> = listing(dir.path()).into_keys().collect();
    assert_eq!(left, ["a.0.0", "a.1.0"]);
}

#[test]
fn a_group_has_one_outcome_for_each_rank() {
    let dir = tempdir();
    let line = "--name=a --rw=write --size=64k --numjobs=3 --group_reporting";
    let outcome = run_on(&[0, 1], dir.path(), line);
    assert_eq!(who(&outcome), [(0, 0), (0, 3)]);
    for job in &outcome.jobs {
        assert_eq!((job.workers, job.write.ios), (3, 48));
        assert_eq!(job.write.clat.count(), 48);
        assert_eq!(job.depths[0], 48);
    }
}

#[test]
fn a_shared_file_is_made_once_and_read_by_all() {
    let dir = tempdir();
    let line = "--name=x --rw=randread --filename=shared --size=256k --numjobs=2";
    let outcome = run_on(&[0, 0, 1], dir.path(), line);
    check_sound(&outcome, line);
    assert_eq!(counts(&outcome), (6 * 64, 6 * 256 * KIB, 0, 0));
    assert_eq!(listing(dir.path()).len(), 1);
    // Each worker has a part of one file; the file is as long as the last part needs.
    let line = "--name=w --rw=write --filename=parts --size=64k --offset_increment=64k --numjobs=2 \
                --verify=crc32c";
    let outcome = run_on(&[0, 0, 1], dir.path(), line);
    check_sound(&outcome, line);
    assert_eq!(listing(dir.path())["parts"], 6 * 64 * KIB);
}

#[test]
fn a_signal_in_the_middle_leaves_what_was_done() {
    let dir = tempdir();
    let line = "--rw=write --size=64M --thinktime=10ms --bs=4k --fallocate=none --name=a --numjobs=2 \
                --name=b --name=never --stonewall";
    let folder = dir.path().to_owned();
    let all_have_written = move || {
        let written = listing(&folder).into_values().filter(|length| *length > 0);
        written.count() == 9
    };
    let mut run = job(&[0, 0, 1], dir.path(), line);
    run.signal = Some(Signal {
        rank: 2,
        during: "a, b",
        at: At::Once(Box::new(all_have_written)),
    });
    let outcome = run.go().expect("what was done is told");
    assert!(!outcome.complete && outcome.trouble.is_none());
    let rows: Vec<&str> = outcome.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(rows, ["a-write", "b-write"]);
    assert_eq!(outcome.jobs.len(), 9);
    for job in &outcome.jobs {
        assert!((1..16384).contains(&job.write.ios), "{}", job.write.ios);
        assert_eq!((job.error, job.write.bytes), (0, job.write.ios * 4096));
        // Undisturbed they would think for 160 s.
        assert!(job.elapsed.0 < 160_000_000_000, "{}", job.elapsed);
    }
    for row in &outcome.rows {
        assert!(!row.complete && row.items > 0);
        check_adds_up(row);
    }
}

#[test]
fn a_file_that_ends_early_is_an_error_and_not_a_short_success() {
    let dir = tempdir();
    let line = "--name=x --rw=read --filename=f --size=64k";
    run_well(dir.path(), line);
    // After the layout, like another process.
    let path = dir.path().join("f");
    let mut run = job(
        &[0],
        dir.path(),
        "--name=first --rw=read --filename=g --size=4k --name=x --stonewall --rw=read \
         --filename=f --create_on_open=1 --size=64k",
    );
    run.between = Box::new(|row, _| {
        if row.name == "first-read" {
            let file = fs::OpenOptions::new().write(true).open(&path);
            file.expect("opens").set_len(20_000).expect("cut");
        }
    });
    let outcome = finish(run, line);
    let cut = &outcome.jobs[1];
    assert_eq!(cut.error, Errno::EIO as i32);
    assert_eq!(
        (cut.read.ios, cut.read.bytes, cut.read.short),
        (5, 20_000, 1)
    );
}

#[test]
fn groups_of_jobs_run_one_after_the_other() {
    run_groups();
}

/// Runs groups of jobs and checks their order; returns begin and end of each job in ms.
fn run_groups() -> [(u64, u64); 5] {
    let dir = tempdir();
    let line = "--thinktime=5ms --rw=write --size=40k --name=a --name=b --name=c --stonewall \
                --numjobs=2 --name=d --stonewall --new_group --name=e --wait_for=c";
    let outcome = run_on(&[0, 1], dir.path(), line);
    check_sound(&outcome, line);
    let rows: Vec<&str> = outcome.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(
        rows,
        ["a-write", "b-write", "c-write", "d-write", "e-write"]
    );
    let span = |job: u32| {
        let all = || outcome.jobs.iter().filter(|o| o.job == job);
        let begin = all().map(|o| o.start_ms).min().expect("a worker");
        let end = all().map(|o| o.start_ms + o.elapsed.0 / 1_000_000).max();
        (begin, end.expect("a worker"))
    };
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(span);
    assert!(
        a.1.max(b.1) <= c.0 + 1 && c.1 <= d.0 + 1,
        "{a:?} {b:?} {c:?} {d:?}"
    );
    assert!(e.0 + 1 >= c.1, "{c:?} {e:?}");
    [a, b, c, d, e]
}

mod needs_fuse {
    use super::*;
    use crate::testfs::mount;

    #[test]
    fn an_error_of_one_worker_ends_that_worker_alone() {
        let target = mount(|config| {
            config
                .faults
                .push("read:EIO@nth=50".parse().expect("valid"));
        });
        let line = "--rw=read --bs=4k --size=400k --direct=1 --name=a --numjobs=2 --name=b";
        let outcome = run_on(&[0, 1], target.path(), line);
        assert_eq!(outcome.jobs.len(), 6);
        let failed: Vec<_> = outcome.jobs.iter().filter(|j| j.error != 0).collect();
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0].error, Errno::EIO as i32);
        assert!(failed[0].read.ios < 50);
        for job in outcome.jobs.iter().filter(|j| j.error == 0) {
            assert_eq!(job.read.ios, 100);
        }
        let failures: u64 = outcome.rows.iter().map(|r| r.failures.total()).sum();
        assert_eq!(failures, 1);
        target.end();
    }

    #[test]
    fn errors_of_the_medium_may_be_gone_on_after_and_others_not() {
        let line = "--name=x --bs=4k --size=400k --direct=1";
        let one = |fault: &str, more: &str| {
            let target = mount(|config| config.faults.push(fault.parse().expect("valid")));
            let outcome = run(target.path(), &format!("{line} {more}"));
            let job = only(&outcome).clone();
            target.end();
            (
                job.read.ios + job.write.ios,
                job.error,
                job.errors,
                job.first_error,
            )
        };
        let (eio, full) = (Errno::EIO as i32, Errno::ENOSPC as i32);
        let read = "read:EIO@nth=30";
        assert_eq!(one(read, "--rw=read"), (29, eio, 0, 0));
        assert_eq!(
            one(read, "--rw=read --continue_on_error=read"),
            (99, 0, 1, eio)
        );
        assert_eq!(
            one(read, "--rw=read --continue_on_error=write"),
            (29, eio, 0, 0)
        );
        let write = "write:EIO@nth=30";
        assert_eq!(
            one(write, "--rw=write --continue_on_error=io"),
            (99, 0, 1, eio)
        );
        let space = "write:ENOSPC@nth=30";
        assert_eq!(
            one(space, "--rw=write --continue_on_error=all"),
            (29, full, 0, 0)
        );
        let open = "open:EACCES@nth=1";
        let target = mount(|_| ());
        run_well(target.path(), &format!("{line} --rw=read"));
        target.end();
        let target = mount(|config| config.faults.push(open.parse().expect("valid")));
        let why = refusal(
            target.path(),
            &format!("{line} --rw=write --filename=f --size=4k"),
        );
        assert!(why.contains("EACCES"), "{why}");
        target.end();
    }

    #[test]
    fn a_signal_while_files_are_laid_out_ends_the_run_before_it_begins() {
        let target = mount(|config| config.latency = "write=200ms".parse().expect("valid"));
        let stats = Arc::clone(target.fs.stats());
        let writes = move || stats.snapshot().counts(Kind::Write).requests;
        let line = "--name=a --rw=read --size=64M --numjobs=2";
        let mut run = job(&[0, 1], target.path(), line);
        run.signal = Some(Signal {
            rank: 1,
            during: "laying out files (untimed)",
            at: At::Once(Box::new(move || writes() > 3)),
        });
        let outcome = run.go().expect("ends");
        assert!(!outcome.complete && outcome.rows.is_empty() && outcome.jobs.is_empty());
        target.end();
    }

    #[test]
    fn no_worker_starts_before_all_have_opened_their_files() {
        let target = mount(|config| config.latency = "open=1ms".parse().expect("valid"));
        let line =
            "--name=many --rw=read --filesize=4k --nrfiles=200 --name=one --rw=read --size=4k";
        run_well(target.path(), &format!("{line} --create_only=1"));
        let started_ms = SystemTime::now().duration_since(UNIX_EPOCH);
        let started_ms = started_ms.expect("it is not 1970").as_millis() as u64;
        let outcome = run_on(&[0, 1], target.path(), line);
        // Opening 200 files takes 200 ms.
        let starts: Vec<u64> = outcome.jobs.iter().map(|job| job.start_ms).collect();
        assert!(
            starts.len() == 4 && starts.iter().all(|at| *at >= started_ms + 200),
            "{started_ms}: {starts:?}"
        );
        target.end();
    }
}

mod needs_root {
    use super::*;

    #[test]
    fn with_a_shift_workers_that_only_read_use_the_files_of_other_ranks() {
        let dir = tempdir();
        // Files of different lengths: the amount read identifies the file.
        for (rank, blocks) in [(0, 1), (1, 2), (2, 3)] {
            let name = dir.path().join(format!("a.{rank}.0"));
            std::fs::write(name, vec![1; blocks * 4096]).expect("written");
        }
        let line = "--name=a --rw=read --stonewall --name=b --rw=write --size=64k --stonewall \
                --name=c --rw=randread --size=8k --filename_format=a.$jobnum.0";
        let line = &format!("{line} --shift=1 --drop-caches");
        let outcome = run_on(&[0, 0, 1], dir.path(), line);
        check_sound(&outcome, line);
        let ios = |job| {
            let of = outcome.jobs.iter().filter(|outcome| outcome.job == job);
            of.map(|job| job.read.ios + job.write.ios)
                .collect::<Vec<_>>()
        };
        // Rank r reads the file of rank r − 1 and, in the next group of readers, of r − 2.
        assert_eq!(ios(0), [3, 1, 2]);
        assert_eq!(ios(1), [16; 3]);
        assert!(ios(2) == [2; 3], "{:?}", ios(2));
        let names: Vec<String> = listing(dir.path()).into_keys().collect();
        let expect = ["a.0.0", "a.1.0", "a.2.0", "b.0.0", "b.1.0", "b.2.0"];
        assert_eq!(names, expect, "nobody's file was made for another");
        assert_eq!(
            listing(dir.path())["a.2.0"],
            3 * 4096,
            "none was made shorter"
        );
    }
}

mod timing {
    use super::*;
    use crate::clock::tried_again;
    use crate::testfs::mount;

    #[test]
    fn all_workers_start_together_whatever_they_have_to_open() {
        tried_again(all_workers_start_together_whatever_they_have_to_open_once);
    }

    fn all_workers_start_together_whatever_they_have_to_open_once() {
        let target = mount(|config| config.latency = "open=1ms".parse().expect("valid"));
        // Opening 200 files takes 200 ms.
        let line =
            "--name=many --rw=read --filesize=4k --nrfiles=200 --name=one --rw=read --size=4k";
        run_well(target.path(), &format!("{line} --create_only=1"));
        let outcome = run_on(&[0, 1], target.path(), line);
        let starts: Vec<u64> = outcome.jobs.iter().map(|job| job.start_ms).collect();
        let (first, last) = (starts.iter().min(), starts.iter().max());
        let apart = last.expect("a start") - first.expect("a start");
        assert!(starts.len() == 4 && apart < 100, "{starts:?}");
        target.end();
    }

    #[test]
    fn groups_of_jobs_run_one_after_the_other() {
        tried_again(groups_of_jobs_run_one_after_the_other_once);
    }

    fn groups_of_jobs_run_one_after_the_other_once() {
        let [a, b, _, d, e] = run_groups();
        assert!(a.0.abs_diff(b.0) < 40, "{a:?} {b:?}");
        // The third job, c, ends before the group of d starts, so e does not have to wait for d.
        assert!(d.0.abs_diff(e.0) < 40, "{d:?} {e:?}");
    }
}
