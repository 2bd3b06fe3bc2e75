//! Tests verification: all damage done between runs is found, and nothing else.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;

use nix::errno::Errno;
use rbench_core::{Direction, FailureKind, Nanos};

use super::*;

const BLOCK: u64 = 4 * KIB;

/// All checksum types.
const SUMS: [&str; 14] = [
    "crc32c", "crc64", "crc32", "crc16", "crc7", "xxhash", "md5", "sha1", "sha256", "sha512",
    "sha3-224", "sha3-256", "sha3-384", "sha3-512",
];

/// Runs a command line with this run key, without any failure.
fn run_as(key: u64, dir: &Path, line: &str) -> Outcome {
    let mut run = job(&[0], dir, line);
    run.key = key;
    let outcome = finish(run, line);
    check_sound(&outcome, line);
    outcome
}

/// Runs a command line with this run key. Returns the job's outcome and the damage found, prefixed
/// with the file's name.
fn verdict(key: u64, dir: &Path, line: &str) -> (JobOutcome, Vec<String>) {
    let mut run = job(&[0], dir, line);
    run.key = key;
    let outcome = finish(run, line);
    let failures: u64 = outcome.rows.iter().map(|row| row.failures.total()).sum();
    let all = outcome.details.iter().flat_map(|(_, _, d)| &d.damaged);
    let reports: Vec<String> = all
        .map(|failure| {
            assert_eq!(failure.kind, FailureKind::Mismatch, "{line}");
            let name = Path::new(&failure.path).file_name().expect("a name");
            format!("{} {}", name.to_string_lossy(), failure.detail)
        })
        .collect();
    assert_eq!(reports.len() as u64, failures, "{line}");
    (only(&outcome).clone(), reports)
}

fn change(dir: &Path, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = data(dir, name);
    change(&mut bytes);
    fs::write(dir.join(name), bytes).expect("written");
}

fn block(bytes: &[u8], number: u64) -> &[u8] {
    &bytes[(number * BLOCK) as usize..][..BLOCK as usize]
}

fn put(bytes: &mut [u8], number: u64, block: &[u8]) {
    bytes[(number * BLOCK) as usize..][..BLOCK as usize].copy_from_slice(block);
}

/// A change of a file, given also its content from an earlier run, and the expected starts of all
/// reports.
type Damage = (fn(&mut Vec<u8>, &[u8]), &'static [&'static str]);

const DAMAGES: [Damage; 8] = [
    (|_, _| (), &[]),
    (
        |now, _| now[5 * 4096 + 1000] ^= 0x10,
        &["f at offset 20480: flipped: 1 bit, the first in byte 1000; found 0x"],
    ),
    // In the header.
    (
        |now, _| now[7 * 4096 + 33] ^= 0x01,
        &["f at offset 28672: flipped: 1 bit, the first in byte 33; found 0x"],
    ),
    (
        |now, _| put(now, 3, &[0; 4096]),
        &["f at offset 12288: zeroed"],
    ),
    (
        |now, _| {
            let (two, nine) = (block(now, 2).to_vec(), block(now, 9).to_vec());
            put(now, 2, &nine);
            put(now, 9, &two);
        },
        &[
            "f at offset 36864: misplaced: found the block of offset 8192, expected that of 36864",
            "f at offset 8192: misplaced: found the block of offset 36864, expected that of 8192",
        ],
    ),
    (
        |now, _| now.truncate(54_000),
        &[
            "f truncated: expected 4096 bytes at offset 53248, but the file ends at 54000",
            "f truncated: expected 4096 bytes at offset 57344, but the file ends at 57344",
            "f truncated: expected 4096 bytes at offset 61440, but the file ends at 61440",
        ],
    ),
    // Blocks of an earlier run are indistinguishable, like with fio.
    (|now, before| put(now, 6, block(before, 6)), &[]),
    (|now, before| put(now, 0, block(before, 0)), &[]),
];

fn check_told(told: Vec<String>, expect: &[&str], what: &str) {
    let mut told = told;
    told.sort_unstable();
    assert_eq!(told.len(), expect.len(), "{what}: {told:?}");
    for (told, expect) in told.iter().zip(expect) {
        assert!(told.starts_with(expect), "{what}: {told}, not {expect}");
    }
}

#[test]
fn each_kind_of_damage_is_found_by_each_checksum_and_nothing_else() {
    let check = |more: &str| {
        for kind in SUMS {
            let dir = tempdir();
            let line = format!("--name=v --filename=f --bs=4k --size=64k --verify={kind} {more}");
            let write = format!("{line} --do_verify=0");
            run_as(1, dir.path(), &write);
            let before = data(dir.path(), "f");
            let outcome = run_as(2, dir.path(), &write);
            assert_eq!(counts(&outcome), (0, 0, 16, 64 * KIB));
            let now = data(dir.path(), "f");
            let blocks = || (0..16).map(|n| block(&now, n) != block(&before, n));
            assert!(blocks().all(|differs| differs), "{line}: the same data");
            for (index, (damage, expect)) in DAMAGES.iter().enumerate() {
                let mut bytes = now.clone();
                damage(&mut bytes, &before);
                fs::write(dir.path().join("f"), &bytes).expect("written");
                let (job, reports) = verdict(3, dir.path(), &format!("{line} --verify_only"));
                let what = format!("{line}: damage {index}");
                check_told(reports, expect, &what);
                let error = if expect.is_empty() {
                    0
                } else {
                    Errno::EILSEQ as i32
                };
                assert_eq!(job.error, error, "{what}");
                let right = 16 - expect.len() as u64;
                // The writes count as if they had been made.
                assert_eq!((job.read.ios, job.write.ios), (right, 16), "{what}");
                assert_eq!(data(dir.path(), "f"), bytes, "{what}: the file was changed");
            }
        }
    };
    // In parallel: a run mostly waits.
    std::thread::scope(|scope| {
        for more in [
            "--rw=write",
            "--rw=randwrite",
            "--rw=randwrite --ioengine=io_uring --iodepth=8",
        ] {
            scope.spawn(move || check(more));
        }
    });
}

#[test]
fn found_and_expected_are_the_bytes_themselves() {
    let dir = tempdir();
    let line = "--name=v --filename=f --rw=write --bs=4k --size=16k --verify=md5";
    run_as(1, dir.path(), &format!("{line} --do_verify=0"));
    let right = data(dir.path(), "f")[9000];
    change(dir.path(), "f", |bytes| bytes[9000] ^= 0x84);
    let (_, reports) = verdict(2, dir.path(), &format!("{line} --verify_only"));
    let expect = format!(
        "f at offset 8192: flipped: 2 bits, the first in byte 808; found {:#04x} there, expected \
         {right:#04x}",
        right ^ 0x84
    );
    assert_eq!(reports, [expect]);
}

#[test]
fn a_pattern_shows_every_damage_but_an_older_copy_of_itself() {
    let dir = tempdir();
    let line = "--name=v --filename=f --rw=randwrite --bs=4k --size=64k --verify=pattern \
                --verify_pattern=0x616263";
    run_as(1, dir.path(), &format!("{line} --do_verify=0"));
    let now = data(dir.path(), "f");
    // The pattern restarts with each block, like with fio.
    let right = || b"abc".iter().cycle().take(4096);
    assert!(now.chunks(4096).all(|block| block.iter().eq(right())));
    for (index, (damage, expect)) in DAMAGES.iter().enumerate() {
        let mut bytes = now.clone();
        damage(&mut bytes, &now);
        fs::write(dir.path().join("f"), &bytes).expect("written");
        let (_, reports) = verdict(2, dir.path(), &format!("{line} --verify_only"));
        // A pattern has no identity: all blocks are equal.
        let expect: Vec<String> = match index {
            4 | 6 | 7 => Vec::new(),
            _ => expect.iter().map(|text| (*text).to_owned()).collect(),
        };
        let expect: Vec<&str> = expect.iter().map(String::as_str).collect();
        check_told(reports, &expect, &format!("damage {index}"));
    }
}

#[test]
fn what_is_written_is_read_back_and_counts_as_reads_as_with_fio() {
    let dir = tempdir();
    for (more, reads, writes) in [
        ("", 16, 16),
        ("--loops=2", 32, 32),
        ("--verify_backlog=4", 16, 16),
        ("--verify_backlog=5", 16, 16),
        ("--verify_backlog=4 --loops=2", 32, 32),
        ("--number_ios=5", 5, 5),
        ("--do_verify=0", 0, 16),
        ("--do_verify=0 --verify_backlog=4", 0, 16),
        ("--io_size=96k", 16, 16),
        (
            "--rw=randwrite --norandommap --experimental_verify=1",
            16,
            16,
        ),
        ("--verify_backlog=4 --verify_backlog_batch=3", 16, 16),
        ("--verify_backlog=3 --verify_backlog_batch=7", 16, 16),
        ("--verify_async=2", 16, 16),
        (
            "--verify_async=2 --ioengine=io_uring --iodepth=4 --rw=randwrite",
            16,
            16,
        ),
        ("--bsrange=4k-16k --rw=randwrite --verify_interval=1k", 0, 0),
        ("--ioengine=io_uring --iodepth=4 --rw=randwrite", 16, 16),
        ("--ioengine=io_uring --iodepth=4 --verify_backlog=6", 16, 16),
        ("--ioengine=libaio --iodepth=4 --rw=randwrite", 16, 16),
        (
            "--ioengine=libaio --iodepth=4 --verify_backlog=6 --userspace_reap",
            16,
            16,
        ),
        ("--ioengine=posixaio --iodepth=4 --rw=randwrite", 16, 16),
        ("--ioengine=splice --bs=4k", 16, 16),
        ("--nrfiles=4 --file_service_type=sequential", 16, 16),
        ("--nrfiles=4 --openfiles=2 --verify_backlog=3", 16, 16),
        ("--ioengine=mmap", 16, 16),
        ("--filename=shared --numjobs=3", 48, 48),
        (
            "--numjobs=3 --group_reporting --offset_increment=64k --filename=own",
            48,
            48,
        ),
    ] {
        for kind in ["crc32c", "pattern --verify_pattern=0x0102030405"] {
            let line = format!("--name=v --rw=write --bs=4k --size=64k --verify={kind} {more}");
            let outcome = run_well(dir.path(), &line);
            let (read, read_bytes, written, written_bytes) = counts(&outcome);
            assert_eq!(
                read_bytes,
                if reads == 0 && writes > 0 {
                    0
                } else {
                    written_bytes
                }
            );
            if writes > 0 {
                assert_eq!((read, written), (reads, writes), "{line}");
            } else {
                assert_eq!((read, read_bytes), (written, 64 * KIB), "{line}");
            }
        }
    }
}

#[test]
fn blocks_that_an_earlier_run_wrote_again_in_a_pass_are_checked_once_as_with_fio() {
    for (more, reads, writes) in [
        ("--rw=write --io_size=64k", 8, 8),
        ("--rw=randwrite --io_size=64k", 8, 8),
        ("--rw=write --loops=2", 16, 16),
        ("--rw=randwrite --loops=2", 16, 16),
        ("--rw=write --io_size=128k", 16, 16),
        ("--rw=write --io_size=64k --loops=2", 16, 16),
        ("--rw=randwrite --io_size=64k --loops=2", 16, 16),
    ] {
        let dir = tempdir();
        let line = format!("--name=v --bs=4k --size=32k --verify=crc32c {more}");
        run_well(dir.path(), &format!("{line} --do_verify=0"));
        let outcome = run_well(dir.path(), &format!("{line} --verify_only"));
        let (read, _, written, _) = counts(&outcome);
        assert_eq!((read, written), (reads, writes), "{line}");
    }
    // With random repeats: only blocks that were written, each once.
    let dir = tempdir();
    let line =
        "--name=v --bs=4k --size=32k --verify=crc32c --rw=randwrite --norandommap --number_ios=12";
    run_well(dir.path(), &format!("{line} --io_size=64k --do_verify=0"));
    let outcome = run_well(dir.path(), &format!("{line} --io_size=64k --verify_only"));
    let (read, _, written, _) = counts(&outcome);
    assert!((1..=8).contains(&read), "{read}");
    assert_eq!(written, 12);
    // Half of a block of the first pass may be from the second.
    let dir = tempdir();
    let line = "--name=v --size=64k --verify=crc32c --rw=randwrite --norandommap --bs=8k \
                --blockalign=4k --loops=2";
    run_well(dir.path(), &format!("{line} --do_verify=0"));
    let outcome = run_well(dir.path(), &format!("{line} --verify_only"));
    let (read, ..) = counts(&outcome);
    assert!((1..=16).contains(&read), "{read}");
}

#[test]
fn a_backlog_is_checked_between_the_writes() {
    let dir = tempdir();
    let line = "--name=v --rw=write --bs=4k --size=48k --verify=xxhash --verify_backlog=4 \
                --write_lat_log=x --log_offset=1";
    let outcome = run_well(dir.path(), line);
    let order = |write: bool, from: u64| (from..from + 4).map(move |n| (write, n * BLOCK));
    let expect: Vec<(bool, u64)> = [0, 4, 8]
        .into_iter()
        .flat_map(|from| order(true, from).chain(order(false, from)))
        .collect();
    let samples = outcome.logs[0].samples.iter();
    let got: Vec<(bool, u64)> = samples
        .map(|s| (s.direction == Direction::Write, s.offset))
        .collect();
    assert_eq!(got, expect);
}

#[test]
fn a_block_that_an_earlier_job_wrote_is_as_good_as_a_later_one_to_who_only_verifies() {
    let dir = tempdir();
    let line = "--filename=f --rw=write --bs=4k --size=64k --verify=crc32c --do_verify=0 \
                --name=first --name=second --stonewall";
    let path = dir.path().join("f");
    let mut earlier = Vec::new();
    let mut run = job(&[0], dir.path(), line);
    run.between = Box::new(|row, _| {
        if row.name == "first-write" {
            earlier = fs::read(&path).expect("there");
        }
    });
    finish(run, line);
    assert_eq!(earlier.len(), 65536);
    let only = "--filename=f --rw=write --bs=4k --size=64k --verify=crc32c --verify_only --name=v";
    let (counted, reports) = verdict(2, dir.path(), only);
    assert_eq!(reports, [""; 0]);
    // Like with fio, writes that were left out count, but take no time.
    let written = &counted.write;
    assert_eq!((written.ios, written.bytes), (16, 65536));
    assert_eq!((written.runtime, written.lat.count()), (Nanos(0), 0));
    change(dir.path(), "f", |now| put(now, 11, block(&earlier, 11)));
    let (_, reports) = verdict(2, dir.path(), only);
    // Like with fio, blocks of an earlier run are indistinguishable.
    check_told(reports, &[], only);
}

#[test]
fn the_first_wrong_block_ends_the_job_when_it_is_fatal_and_no_error_when_it_may_go_on() {
    let dir = tempdir();
    let line = "--name=v --filename=f --rw=write --bs=4k --size=64k --verify=sha256";
    run_as(1, dir.path(), &format!("{line} --do_verify=0"));
    change(dir.path(), "f", |bytes| {
        put(bytes, 4, &[0; 4096]);
        put(bytes, 8, &[0; 4096]);
    });
    let check = |more: &str, reads, found, error, errors| {
        let (job, reports) = verdict(2, dir.path(), &format!("{line} --verify_only {more}"));
        assert_eq!(reports.len(), found, "{more}");
        assert_eq!(
            (job.read.ios, job.error, job.errors),
            (reads, error, errors),
            "{more}"
        );
    };
    let wrong = Errno::EILSEQ as i32;
    check("", 14, 2, wrong, 0);
    check("--verify_fatal=1", 4, 1, wrong, 0);
    check("--continue_on_error=verify", 14, 2, 0, 2);
    check("--continue_on_error=read", 14, 2, wrong, 0);
}

#[test]
fn a_job_that_reads_checks_what_another_wrote() {
    let dir = tempdir();
    let common = "--filename=f --bs=4k --size=64k --verify=crc64";
    run_as(1, dir.path(), &format!("{common} --name=w --rw=randwrite"));
    let ways = [
        "read",
        "randread",
        "read --verify_only",
        "randread --verify_only",
    ];
    for rw in ways {
        let line = format!("{common} --name=r --rw={rw}");
        let (job, reports) = verdict(2, dir.path(), &line);
        assert_eq!((job.read.ios, reports), (16, Vec::new()), "{line}");
    }
    change(dir.path(), "f", |bytes| bytes[50_000] ^= 1);
    for rw in ways {
        let line = format!("{common} --name=r --rw={rw}");
        let (job, reports) = verdict(2, dir.path(), &line);
        check_told(reports, &["f at offset 49152: flipped: 1 bit"], &line);
        assert_eq!(job.error, Errno::EILSEQ as i32, "{line}");
    }
}

#[test]
fn intervals_within_blocks_are_named_by_their_own_offsets() {
    let dir = tempdir();
    let line = "--name=v --filename=f --rw=randwrite --bs=8k --size=64k --verify=crc32c \
                --verify_interval=512";
    run_as(1, dir.path(), &format!("{line} --do_verify=0"));
    change(dir.path(), "f", |bytes| bytes[512 * 77 + 100] ^= 0x40);
    let (_, reports) = verdict(2, dir.path(), &format!("{line} --verify_only"));
    let expect = "f at offset 39424: flipped: 1 bit, the first in byte 100; found 0x";
    check_told(reports, &[expect], line);
}

#[test]
fn every_damaged_block_of_many_workers_is_found() {
    let dir = tempdir();
    let line = "--name=v --rw=randwrite --bs=4k --size=256k --nrfiles=2 --numjobs=3 \
                --verify=crc32c --ioengine=io_uring --iodepth=16";
    run_as(1, dir.path(), &format!("{line} --do_verify=0"));
    let mut expect = Vec::new();
    for worker in 0..3_u64 {
        for file in 0..2 {
            let name = format!("v.{worker}.{file}");
            for block in [worker, 10 + worker, 20 + file] {
                change(dir.path(), &name, |bytes| {
                    bytes[(block * BLOCK) as usize + 999] ^= 1;
                });
                expect.push(format!(
                    "{name} at offset {}: flipped: 1 bit",
                    block * BLOCK
                ));
            }
        }
    }
    expect.sort_unstable();
    let expect: Vec<&str> = expect.iter().map(String::as_str).collect();
    let line = format!("{line} --verify_only --group_reporting");
    let (_, reports) = verdict(2, dir.path(), &line);
    check_told(reports, &expect, &line);
}

mod needs_fuse {
    use super::*;
    use crate::clock::wait_until;
    use crate::testfs::mount;

    #[test]
    fn damage_between_writing_and_reading_back_is_found_in_the_same_run() {
        // 16 blocks are all written; the first read back hangs.
        let target =
            mount(|config| config.faults = vec!["read:hang@nth=1".parse().expect("valid")]);
        let path = target.path().join("f");
        std::thread::scope(|scope| {
            let damage = scope.spawn(|| {
                wait_until("a read hangs", || target.fs.hanging() == 1);
                let file = OpenOptions::new().read(true).write(true).open(&path);
                let file = file.expect("opens");
                let mut byte = [0];
                file.read_exact_at(&mut byte, 5 * BLOCK + 2000)
                    .expect("read");
                file.write_all_at(&[byte[0] ^ 2], 5 * BLOCK + 2000)
                    .expect("written");
                target.fs.release_hangs();
            });
            let line = "--name=v --filename=f --rw=write --bs=4k --size=64k --verify=crc32c \
                        --fallocate=none --direct=1";
            let (job, reports) = verdict(1, target.path(), line);
            damage.join().expect("damaged");
            check_told(
                reports,
                &["f at offset 20480: flipped: 1 bit, the first in byte 2000; found 0x"],
                line,
            );
            assert_eq!((job.error, job.write.ios), (Errno::EILSEQ as i32, 16));
            assert_eq!(job.read.ios, 15);
        });
        target.end();
    }
}
