//! Tests trims: holes in files, their rows and reports, and reading back.

use std::os::unix::fs::MetadataExt as _;

use nix::errno::Errno;
use rbench_core::OpKind;
use rbench_testfs::Kind;

use super::*;

const BLOCK: u64 = 4 * KIB;

/// Allocated bytes of a file.
fn allocated(dir: &Path, name: &str) -> u64 {
    let metadata = fs::metadata(dir.join(name)).expect("the file is there");
    metadata.blocks() * 512
}

/// (trims, bytes trimmed) of all jobs.
fn trimmed(outcome: &Outcome) -> (u64, u64) {
    let all = outcome.jobs.iter();
    all.fold((0, 0), |sum, job| {
        (sum.0 + job.trim.ios, sum.1 + job.trim.bytes)
    })
}

fn engines() -> impl Iterator<Item = &'static str> {
    let all = rbench_sys::engine::ENGINES.iter();
    all.filter(|info| !info.of_names && info.name != "ftruncate")
        .map(|info| info.name)
}

#[test]
fn a_trim_punches_a_hole_and_leaves_the_rest_of_the_file_as_it_is() {
    for engine in engines() {
        let dir = tempdir();
        fs::write(dir.path().join("f"), vec![7; 256 << 10]).expect("there is space");
        let before = allocated(dir.path(), "f");
        let line = format!(
            "--name=x --filename=f --rw=randtrim --offset=64k --size=128k --bs=4k,4k,16k \
             --ioengine={engine} --iodepth=4"
        );
        let outcome = run_well(dir.path(), &line);
        assert_eq!(trimmed(&outcome), (8, 128 * KIB), "{line}");
        assert_eq!(counts(&outcome), (0, 0, 0, 0), "{line}");
        let row = outcome.row("x-trim");
        assert_eq!((row.op, row.items, row.bytes), (OpKind::Trim, 8, 128 * KIB));
        assert_eq!(outcome.rows.len(), 1, "{line}");
        let holes = if engine == "null" { 0 } else { 128 * KIB };
        let after = data(dir.path(), "f");
        assert_eq!(after.len() as u64, 256 * KIB, "{line}");
        let expect = |at: u64| match (64 * KIB..64 * KIB + holes).contains(&at) {
            true => 0,
            false => 7,
        };
        assert!(
            after.iter().zip(0..).all(|(byte, at)| *byte == expect(at)),
            "{line}"
        );
        assert_eq!(before - allocated(dir.path(), "f"), holes, "{line}");
    }
}

#[test]
fn what_is_only_trimmed_is_laid_out_first() {
    for (more, there) in [
        ("", 0),
        ("--create_only=1", MIB),
        ("--create_only=1 --overwrite=0", 0),
    ] {
        let dir = tempdir();
        let line = format!("--name=x --rw=trim --size=1m --fallocate=none {more}");
        let outcome = run_well(dir.path(), &line);
        let all = if there == 0 && more.is_empty() {
            256
        } else {
            0
        };
        assert_eq!(trimmed(&outcome).0, all, "{line}");
        assert_eq!(allocated(dir.path(), "x.0.0"), there, "{line}");
    }
}

#[test]
fn a_block_is_written_after_it_was_trimmed_with_several_requests_in_flight() {
    for engine in ["io_uring", "libaio", "posixaio"] {
        let dir = tempdir();
        for more in [
            "randtrimwrite",
            "trimwrite --bs=4k,4k,16k",
            "randtrimwrite --norandommap",
        ] {
            let line = format!(
                "--name=x --ioengine={engine} --iodepth=8 --size=256k --verify=crc32c --loops=2 --rw={more}"
            );
            let outcome = run_well(dir.path(), &line);
            let (_, bytes) = trimmed(&outcome);
            let (reads, _, writes, written) = counts(&outcome);
            assert_eq!((bytes, written), (512 * KIB, 512 * KIB), "{line}");
            assert!(reads > 0 && reads <= writes, "{line}");
        }
    }
}

#[test]
fn of_a_trimmed_block_the_log_has_direction_two() {
    let dir = tempdir();
    let line = "--name=x --rw=trimwrite --size=16k --bs=4k,4k,8k --write_lat_log=l --log_offset=1";
    let outcome = run_well(dir.path(), line);
    let samples = outcome.logs[0].samples.iter();
    let got: Vec<(u8, u64, u64)> = samples
        .map(|s| (s.direction.number(), s.offset / KIB, s.block / KIB))
        .collect();
    let expect = [
        (2, 0, 8),
        (1, 0, 4),
        (1, 4, 4),
        (2, 8, 8),
        (1, 8, 4),
        (1, 12, 4),
    ];
    assert_eq!(got, expect);
}

#[test]
fn some_of_the_verified_blocks_are_trimmed_and_read_back_as_zeros() {
    let dir = tempdir();
    let line = "--name=x --rw=write --size=64k --bs=4k --verify=crc32c --trim_percentage=100 \
                --trim_backlog=4 --write_lat_log=l --log_offset=1";
    for (more, trims, reads) in [
        // No write followed the last four, so they are not trimmed.
        ("", 12, 16),
        ("--trim_verify_zero=0", 12, 4),
        ("--trim_backlog_batch=1", 3, 16),
        ("--trim_backlog_batch=1 --trim_verify_zero=0", 3, 13),
        ("--verify_async=2", 12, 16),
        ("--trim_percentage=0", 0, 16),
    ] {
        let line = format!("{line} {more}");
        let outcome = run_well(dir.path(), &line);
        assert_eq!(trimmed(&outcome).0, trims, "{line}");
        assert_eq!(
            counts(&outcome),
            (reads, reads * BLOCK, 16, 64 * KIB),
            "{line}"
        );
        let blocks = data(dir.path(), "x.0.0");
        let zeros = blocks
            .chunks(4096)
            .filter(|block| block.iter().all(|byte| *byte == 0));
        assert_eq!(zeros.count() as u64, trims, "{line}");
        if more.is_empty() {
            let order: Vec<u8> = (outcome.logs[0].samples.iter())
                .map(|sample| sample.direction.number())
                .collect();
            let [write, trim] = [vec![1; 4], vec![2; 4]];
            let expect = [&write, &trim, &write, &trim, &write, &trim, &write];
            assert_eq!(order[..28], expect.map(Vec::as_slice).concat());
        }
    }
    // With several requests in flight the order varies.
    let line = format!("{line} --ioengine=io_uring --iodepth=4");
    let outcome = run_well(dir.path(), &line);
    let (trims, _) = trimmed(&outcome);
    assert!((4..=16).contains(&trims), "{trims}");
    assert_eq!(counts(&outcome), (16, 64 * KIB, 16, 64 * KIB));
    // Half of the blocks, the same ones in every run.
    let line = "--name=y --rw=randwrite --size=4m --bs=4k --verify=crc32c --trim_percentage=50 \
                --trim_backlog=16 --verify_backlog=64";
    let outcome = run_well(dir.path(), line);
    let (trims, _) = trimmed(&outcome);
    assert!((400..600).contains(&trims), "{trims}");
    assert_eq!(trimmed(&run_well(dir.path(), line)).0, trims);
}

#[test]
fn trims_of_all_ranks_are_in_the_report() {
    let dir = tempdir();
    let line = "--name=a --rw=trimwrite --size=64k --numjobs=2";
    let outcome = run_on(&[0, 0, 1], dir.path(), line);
    check_sound(&outcome, line);
    assert_eq!(outcome.jobs.len(), 6);
    for job in &outcome.jobs {
        assert_eq!((job.trim.ios, job.write.ios, job.read.ios), (16, 16, 0));
        assert_eq!(job.trim.clat.count(), 16);
        assert!(job.trim.runtime.0 > 0 && job.trim.runtime == job.write.runtime);
    }
    assert_eq!(
        (outcome.row("a-trim").items, outcome.row("a-write").items),
        (96, 96)
    );
    let line = format!("{line} --group_reporting");
    let merged = run_on(&[0, 0, 1], dir.path(), &line);
    assert_eq!(trimmed(&merged), (96, 96 * BLOCK));
}

#[test]
fn a_rate_of_trims_holds_for_trims() {
    let dir = tempdir();
    let line = "--name=x --rw=trim --size=64k --ioengine=null --rate_iops=1,1,100";
    let outcome = run_well(dir.path(), line);
    let row = outcome.row("x-trim");
    // The last of 16 is due after 150 ms.
    let response = row.response.as_ref().map(|response| response.count());
    assert_eq!(response, Some(16));
    assert!(only(&outcome).elapsed.0 >= 150_000_000);
}

mod needs_fuse {
    use super::*;
    use crate::testfs::mount;

    #[test]
    fn trims_come_to_the_file_system_one_by_one() {
        let target = mount(|config| config.direct_io = true);
        let line =
            "--name=x --rw=randtrimwrite --size=64k --bs=4k --fallocate=none --verify=crc32c";
        let outcome = run_well(target.path(), line);
        assert_eq!(trimmed(&outcome), (16, 64 * KIB));
        assert_eq!(counts(&outcome), (16, 64 * KIB, 16, 64 * KIB));
        let counted = target.fs.stats().snapshot();
        assert_eq!(counted.counts(Kind::Fallocate).requests, 16);
        for name in ["x-trim", "x-write", "x-read"] {
            assert_eq!(outcome.row(name).items, 16, "{name}");
        }
        target.end();
    }

    #[test]
    fn what_was_trimmed_and_is_not_zero_is_damage() {
        let target = mount(|config| {
            config.direct_io = true;
            config.faults = vec!["read:flip@nth=1".parse().expect("valid")];
        });
        let line = "--name=x --rw=write --size=16k --bs=4k --fallocate=none --verify=crc32c \
                --trim_percentage=100 --trim_backlog=2";
        let outcome = run(target.path(), line);
        assert_eq!(only(&outcome).error, Errno::EILSEQ as i32);
        let all: Vec<String> = (outcome.details.iter())
            .flat_map(|(_, _, details)| &details.damaged)
            .map(|failure| failure.detail.clone())
            .collect();
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(
            all[0].starts_with("at offset 0: the block was trimmed"),
            "{all:?}"
        );
        target.end();
    }

    #[test]
    fn where_no_holes_can_be_punched_the_trim_fails_and_says_so() {
        let refusing = |more: &str, errors: (i32, u64)| {
            let target = mount(|config| {
                config.faults = vec!["fallocate:EOPNOTSUPP@after=0".parse().expect("valid")];
            });
            let line = format!("--name=x --rw=trim --size=16k --bs=4k --fallocate=none {more}");
            let outcome = run(target.path(), &line);
            let job = only(&outcome);
            assert_eq!((job.error, job.errors), errors, "{line}");
            let row = outcome.row("x-trim");
            let examples: Vec<_> = row.failures.iter().collect();
            let (kind, count, example) = examples[0];
            assert_eq!(kind, Errno::EOPNOTSUPP.into());
            assert_eq!(count, errors.1.max(1), "{line}");
            assert_eq!(example.failure.op, OpKind::Trim);
            let detail = &example.failure.detail;
            assert_eq!(
                detail,
                "at offset 0: holes cannot be punched there (fallocate)"
            );
            target.end();
        };
        let errno = Errno::EOPNOTSUPP as i32;
        for engine in ["psync", "io_uring", "libaio", "posixaio", "mmap"] {
            refusing(&format!("--ioengine={engine}"), (errno, 0));
        }
        refusing("--ignore_error=,95", (0, 4));
        // It is a write error, like with fio.
        refusing("--ignore_error=95", (errno, 0));
    }
}
