//! Tests faults of the file system: each is reported once, in the right place, and nothing else is
//! reported.

use nix::errno::Errno;
use rbench_core::{Bytes, FailureKind, OpKind};
use rbench_testfs::{Backing, FaultRecord};

use super::super::*;
use crate::testfs::{Mount, mount};

/// The built-in file system with these faults; each call is one request.
fn faulty(faults: &[&str]) -> Mount {
    mount(|config| {
        let parsed = faults.iter().map(|fault| fault.parse().expect("valid"));
        config.faults = parsed.collect();
        config.direct_io = true;
        config.seed = 7;
    })
}

/// The fired faults with this `action`.
fn fired(target: &Mount, action: &str) -> Vec<FaultRecord> {
    let mut all = target.fs.faults();
    all.retain(|record| record.action == action);
    all
}

/// Number of errors of this kind in all rows.
fn told(outcome: &Outcome, kind: FailureKind) -> u64 {
    let rows = outcome.rows.iter().flat_map(|row| row.failures.iter());
    let of_kind = rows.filter(|(found, _, _)| *found == kind);
    of_kind.map(|(_, count, _)| count).sum()
}

#[test]
fn what_close_says_is_an_error_of_the_job() {
    for (more, nth, op, items) in [
        ("--rw=write", 2, "write", 16),
        ("--rw=write --ioengine=io_uring --iodepth=4", 2, "write", 16),
        ("--rw=write --ioengine=libaio --iodepth=4", 2, "write", 16),
        ("--rw=write --create_on_open=1", 1, "write", 16),
        (
            "--rw=write --nrfiles=4 --file_service_type=sequential",
            6,
            "write",
            16,
        ),
        // In order: the survey before the run, creating the file, filling it, the job.
        ("--rw=read", 3, "read", 16),
    ] {
        let target = faulty(&[&format!("flush:EIO@nth={nth}")]);
        let line = format!("--name=x --bs=4k --size=64k {more} --continue_on_error=none");
        let outcome = run(target.path(), &line);
        assert_eq!(fired(&target, "EIO").len(), 1, "{line}");
        let row = outcome.row(&format!("x-{op}"));
        let examples: Vec<_> = row.failures.iter().collect();
        assert_eq!(examples.len(), 1, "{line}");
        let (kind, count, example) = examples[0];
        assert_eq!((kind, count), (Errno::EIO.into(), 1), "{line}");
        assert_eq!(example.failure.op, OpKind::Close, "{line}");
        assert!(example.failure.path.contains("x.0."), "{line}");
        assert_eq!(only(&outcome).error, Errno::EIO as i32, "{line}");
        // An error between files ends the job; an error at the end has nothing to end.
        assert!(row.items <= items && row.items >= 4, "{line}");
        assert!(!more.contains("nrfiles") || row.items < items, "{line}");
        target.end();
    }
}

#[test]
fn a_file_that_does_not_close_well_was_not_made_ready() {
    for (rw, nth) in [("write", 1), ("read", 1), ("read", 2)] {
        let target = faulty(&[&format!("flush:EIO@nth={nth}")]);
        let line = format!("--name=x --bs=4k --size=64k --rw={rw}");
        let why = refusal(target.path(), &line);
        assert!(why.contains("close ") && why.contains("x.0.0"), "{why}");
        assert!(why.contains("(EIO)"), "{why}");
        target.end();
    }
}

#[test]
fn errors_that_are_listed_do_not_end_a_job_and_others_do() {
    for (listed, errno, goes_on) in [
        (",ENOSPC", "ENOSPC", true),
        (",28", "ENOSPC", true),
        (",EIO:ENOSPC", "ENOSPC", true),
        ("ENOSPC", "ENOSPC", false),
        (",ENOSPC", "EIO", false),
    ] {
        let target = faulty(&[&format!("write:{errno}@nth=3")]);
        let line = format!(
            "--name=x --rw=write --bs=4k --size=64k --fallocate=none --ignore_error={listed}"
        );
        let outcome = run(target.path(), &line);
        assert_eq!(only(&outcome).error == 0, goes_on, "{line}: {errno}");
        let written = if goes_on { 15 } else { 2 };
        assert_eq!(only(&outcome).write.ios, written, "{line}: {errno}");
        target.end();
    }
}

#[test]
fn blocks_that_could_not_be_written_are_not_said_to_be_wrong() {
    let line = "--name=x --bs=4k --size=1m --verify=crc32c --continue_on_error=all \
                --verify_state_save=0 --rw=";
    for more in [
        "write",
        "randwrite",
        "randwrite --norandommap",
        "randwrite --norandommap --ioengine=io_uring --iodepth=16",
        "write --ioengine=io_uring --iodepth=8",
        "write --loops=3",
        "randwrite --loops=3 --verify_backlog=9",
        "write --verify_backlog=7",
        "randwrite --verify_backlog=16 --ioengine=io_uring --iodepth=8",
        "write --nrfiles=8 --file_service_type=sequential",
        "write --nrfiles=64 --file_service_type=sequential --verify_backlog=5",
        "randwrite --nrfiles=8 --openfiles=3 --ioengine=io_uring --iodepth=8",
    ] {
        let target = faulty(&["write:EIO@p=0.2"]);
        let line = format!("{line}{more}");
        let outcome = run(target.path(), &line);
        let failed = fired(&target, "EIO").len() as u64;
        assert!(failed > 20, "{line}");
        assert_eq!(told(&outcome, Errno::EIO.into()), failed, "{line}");
        assert_eq!(told(&outcome, FailureKind::Mismatch), 0, "{line}");
        let unchecked = outcome.row("x-read").unchecked;
        assert_eq!(outcome.row("x-write").unchecked, 0, "{line}");
        let (reads, _, writes, _) = counts(&outcome);
        if more.contains("--norandommap") {
            // Blocks that were written several times are checked once, like with fio.
            assert!(reads > 0 && reads < writes, "{line}: {reads}");
            assert!(unchecked > 0 && unchecked <= failed, "{line}: {unchecked}");
        } else if more.contains("--loops=3") {
            // Blocks that a later pass wrote again are checked each time.
            assert!(reads > 0 && reads + writes < 6 * 256, "{line}: {reads}");
            assert_eq!(reads + unchecked, writes + failed, "{line}");
        } else {
            assert_eq!((reads, writes + failed), (writes, 256), "{line}");
            assert_eq!(unchecked, failed, "{line}");
        }
        target.end();
    }
}

#[test]
fn blocks_that_were_left_unchecked_are_summed_over_ranks_and_jobs() {
    let target = faulty(&["write:EIO@p=0.2"]);
    let line = "--name=x --bs=4k --size=1m --rw=write --verify=crc32c --continue_on_error=all \
                --verify_state_save=0 --numjobs=2";
    let outcome = run_on(&[0, 0, 1], target.path(), line);
    let failed = fired(&target, "EIO").len() as u64;
    assert!(failed > 100, "{failed}");
    assert_eq!(outcome.row("x-read").unchecked, failed);
    target.end();
}

#[test]
fn blocks_that_are_wrong_are_found_beside_those_that_could_not_be_written() {
    for more in ["", "--verify_backlog=7", "--ioengine=io_uring --iodepth=8"] {
        let target = faulty(&["write:EIO@p=0.1", "write:zero@p=0.1"]);
        let line = format!(
            "--name=x --rw=randwrite --bs=4k --size=1m --verify=crc32c --continue_on_error=all {more}"
        );
        let outcome = run(target.path(), &line);
        let failed = fired(&target, "EIO").len() as u64;
        let wrong = fired(&target, "zero").len() as u64;
        assert!(failed > 10 && wrong > 10, "{line}");
        assert_eq!(told(&outcome, Errno::EIO.into()), failed, "{line}");
        assert_eq!(told(&outcome, FailureKind::Mismatch), wrong, "{line}");
        target.end();
    }
}

#[test]
fn a_failed_sync_belongs_to_the_syncs_with_its_time() {
    for (how, engine) in [("fsync", "psync"), ("fdatasync", "io_uring")] {
        let target = faulty(&["fsync:EIO@nth=2"]);
        let line = format!(
            "--name=x --rw=write --bs=4k --size=256k --{how}=16 --continue_on_error=all --ioengine={engine}"
        );
        let outcome = run(target.path(), &line);
        let row = outcome.row("x-sync");
        assert_eq!((row.items, row.failures.total()), (2, 1), "{line}");
        let timed: u64 = row.timeline.bins().iter().map(|bin| bin.errors).sum();
        assert_eq!(timed, 1, "{line}");
        assert!(outcome.row("x-write").failures.is_empty(), "{line}");
        assert_eq!(only(&outcome).errors, 1, "{line}");
        target.end();
    }
}

#[test]
fn a_file_is_written_until_it_is_full_where_its_blocks_could_not_be_reserved() {
    let full = || mount(|config| config.quota = Some(Bytes(MIB)));
    let line = "--overfill --name=x --rw=write --bs=4k --size=2m";
    for how in ["native", "posix"] {
        let target = full();
        let outcome = run(target.path(), &format!("{line} --fallocate={how}"));
        let row = outcome.row("x-write");
        assert_eq!((row.items, row.failures.total()), (256, 1), "{how}");
        assert_eq!(only(&outcome).error, Errno::ENOSPC as i32, "{how}");
        let said = outcome.troubles.join("\n");
        assert!(
            said.starts_with("fallocate ") && said.contains("x.0.0"),
            "{said}"
        );
        assert!(said.contains("(ENOSPC)"), "{said}");
        target.end();
    }
    let target = full();
    let why = refusal(target.path(), &format!("{line} --fallocate=keep"));
    assert!(
        why.contains("fallocate ") && why.contains("ENOSPC"),
        "{why}"
    );
    target.end();
    let target = faulty(&["fallocate:EIO@nth=1"]);
    let why = refusal(target.path(), line);
    assert!(why.contains("fallocate ") && why.contains("EIO"), "{why}");
    target.end();
}

#[test]
fn calls_that_were_made_again_are_counted_one_by_one() {
    let line = "--name=x --bs=16k --size=1m --fsync=8 --verify=crc32c --numjobs=2";
    for (fault, kind, row) in [
        ("read:EINTR@p=0.1", "EINTR", "x-read"),
        ("write:EINTR@p=0.1", "EINTR", "x-write"),
        ("fsync:EINTR@p=0.5", "EINTR", "x-sync"),
        ("read:short@p=0.1", "short", "x-read"),
        ("write:short@p=0.1", "short", "x-write"),
    ] {
        for engine in [
            "psync",
            "sync",
            "vsync",
            "pvsync",
            "libaio --iodepth=8",
            "io_uring --iodepth=8",
        ] {
            if fault.starts_with("write:short") && engine.ends_with("--iodepth=8") {
                // With asynchronous FUSE requests, the kernel turns it into EIO.
                continue;
            }
            let target = faulty(&[fault]);
            let line = format!("{line} --rw=write --ioengine={engine}");
            let outcome = finish(job(&[0, 1], target.path(), &line), &line);
            check_sound(&outcome, &line);
            let count = fired(&target, kind).len() as u64;
            assert!(count > 5, "{line}: {fault}");
            let mut short = 0;
            for found in &outcome.rows {
                let expect = if found.name == row { count } else { 0 };
                let (interrupted, continued) = (found.again.interrupted, found.again.continued);
                short += continued;
                assert_eq!(
                    interrupted + continued,
                    expect,
                    "{line}: {fault}: {}",
                    found.name
                );
                assert_eq!(
                    interrupted > 0,
                    found.name == row && kind == "EINTR",
                    "{line}"
                );
            }
            let in_fio = outcome
                .jobs
                .iter()
                .map(|job| job.read.short + job.write.short);
            assert_eq!(in_fio.sum::<u64>(), short, "{line}: {fault}");
            target.end();
        }
    }
}

#[test]
fn without_faults_no_call_is_made_again() {
    let target = mount(|config| {
        config.backing = Backing::Memory {
            cap: Bytes(64 * MIB),
        };
    });
    for engine in [
        "psync",
        "splice",
        "io_uring --iodepth=8",
        "libaio --iodepth=8",
        "posixaio --iodepth=8",
        "mmap",
    ] {
        let line = format!("--name=x --rw=randrw --bs=4k --size=1m --fsync=8 --ioengine={engine}");
        let outcome = run_well(target.path(), &line);
        assert!(
            outcome
                .rows
                .iter()
                .all(|row| row.again == Default::default()),
            "{line}"
        );
    }
    target.end();
}
