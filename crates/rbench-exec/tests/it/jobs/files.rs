//! Tests names, lengths and lifetimes of files, and command lines of published evaluations with
//! smaller sizes.

use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use rbench_testfs::Kind;

use super::*;

fn names(all: &[(&str, u64)]) -> BTreeMap<String, u64> {
    all.iter().map(|(n, l)| ((*n).to_owned(), *l)).collect()
}

/// Runs a command line in an empty directory; checks the files and (reads, bytes read, writes,
/// bytes written).
fn check(line: &str, files: BTreeMap<String, u64>, counted: (u64, u64, u64, u64)) {
    let dir = tempdir();
    let outcome = run_well(dir.path(), line);
    assert_eq!(counts(&outcome), counted, "{line}");
    assert_eq!(listing(dir.path()), files, "{line}");
}

#[test]
fn files_that_must_be_there_are_not_made() {
    let dir = tempdir();
    for rw in ["read", "write"] {
        let line = format!("--name=x --rw={rw} --bs=4k --size=64k --allow_file_create=0");
        let why = refusal(dir.path(), &line);
        assert!(
            why.contains("x.0.0") && why.contains("ENOENT"),
            "{line}: {why}"
        );
        assert!(listing(dir.path()).is_empty(), "{line}");
    }
    run_well(
        dir.path(),
        "--name=x --rw=write --bs=4k --size=64k --write_hint=long",
    );
    let again = "--name=x --rw=write --bs=4k --size=64k --allow_file_create=0 --create_fsync=0";
    assert_eq!(counts(&run_well(dir.path(), again)).2, 16);
}

#[test]
fn a_file_that_may_not_be_made_is_not_made_longer_either() {
    for (rw, name) in [("read", "x.0.0"), ("write", "f"), ("randrw", "x.1.0")] {
        let dir = tempdir();
        for name in ["x.0.0", "x.1.0", "f"] {
            fs::write(dir.path().join(name), vec![b'o'; 16_384]).expect("written");
        }
        let before = listing(dir.path());
        let shared = if name == "f" { "--filename=f" } else { "" };
        let line =
            format!("--name=x --numjobs=2 --rw={rw} --size=64k --allow_file_create=0 {shared}");
        match job(&[0], dir.path(), &line).go() {
            Err(ExecError::SetUp(told)) => {
                assert!(told.contains("16384 of 65536 bytes"), "{told}");
            }
            Err(other) => panic!("{line}: {other}"),
            Ok(outcome) => {
                assert_eq!(counts(&outcome), (0, 0, 0, 0), "{line}");
                assert!(outcome.jobs.iter().all(|job| job.error != 0), "{line}");
            }
        }
        assert_eq!(listing(dir.path()), before, "{line}");
        let content = data(dir.path(), name);
        assert!(content.iter().all(|byte| *byte == b'o'), "{line}");
    }
}

#[test]
fn directories_in_a_name_are_made() {
    for line in [
        "--name=sub/dir/j --rw=write --size=64k",
        "--name=j --filename=sub/dir/j.0.0 --rw=read --size=64k",
        "--name=j --filename_format=sub/dir/$jobname.$jobnum.$filenum --rw=randwrite --size=64k",
    ] {
        let dir = tempdir();
        run_well(dir.path(), line);
        let file = dir.path().join("sub/dir/j.0.0");
        assert_eq!(fs::metadata(file).expect(line).len(), 64 * KIB, "{line}");
    }
}

#[test]
fn a_file_that_is_read_at_random_is_made_once_and_every_block_of_it_read_once() {
    let dir = tempdir();
    let mut first = None;
    for (size, blocks) in [("4k", 256), ("16k", 64), ("64k", 16), ("256k", 4)] {
        for pre_read in ["", "--pre_read=1"] {
            let line = format!(
                "--name=big-file-rand-read --directory=. --rw=randread --refill_buffers --size=1M \
                 --filename=randread.bin --bs={size} {pre_read}"
            );
            let outcome = run_well(dir.path(), &line);
            assert_eq!(counts(&outcome), (blocks, MIB, 0, 0), "{line}");
            assert_eq!(listing(dir.path()), names(&[("randread.bin", MIB)]));
            let meta = fs::metadata(dir.path().join("randread.bin")).expect("there");
            let now = (meta.ino(), meta.mtime_nsec(), meta.blocks() * 512);
            // Data instead of holes, and laid out only once.
            assert!(now.2 >= MIB, "{now:?}");
            assert_eq!(*first.get_or_insert(now), now, "{line}");
        }
    }
}

#[test]
fn small_files_are_read_and_written_by_each_job_in_its_own() {
    for rw in ["read", "write"] {
        for jobs in [1, 2, 4] {
            let line = format!(
                "--name=small-file-seq-{rw} --directory=. --rw={rw} --file_service_type=sequential \
                 --bs=4k --filesize=4k --nrfiles=50 --numjobs={jobs}"
            );
            let name = |job, file| (format!("small-file-seq-{rw}.{job}.{file}"), 4 * KIB);
            let files = (0..jobs).flat_map(|job| (0..50).map(move |file| name(job, file)));
            let (ios, bytes) = (50 * jobs, 50 * jobs * 4 * KIB);
            let counted = match rw {
                "read" => (ios, bytes, 0, 0),
                _ => (0, 0, ios, bytes),
            };
            check(&line, files.collect(), counted);
        }
    }
}

#[test]
fn one_large_file_for_each_job_in_every_order() {
    for (name, rw, bs, jobs) in [
        ("big-file-multi-read", "read", 256, 4),
        ("big-file-multi-write", "write", 256, 4),
        ("big-file-sequential-read", "read", 256, 1),
        ("big-file-sequential-write", "write", 256, 1),
        ("big-file-random-write", "randwrite", 4, 1),
        ("big-file-random-write", "randwrite", 64, 1),
    ] {
        let line =
            format!("--name={name} --directory=. --rw={rw} --bs={bs}k --size=1M --numjobs={jobs}");
        let files = (0..jobs).map(|n| (format!("{name}.{n}.0"), MIB));
        let (ios, bytes) = (jobs * 1024 / bs, jobs * MIB);
        let counted = match rw {
            "read" => (ios, bytes, 0, 0),
            _ => (0, 0, ios, bytes),
        };
        check(&line, files.collect(), counted);
    }
}

#[test]
fn sizes_are_divided_and_budgets_kept_as_fio_does() {
    // Each line with the files and counts of fio 3.33.
    let three = [("x.0.0", 34133), ("x.0.1", 34133), ("x.0.2", 34133)];
    check(
        "--name=x --rw=write --size=100k --nrfiles=3",
        names(&three),
        (0, 0, 24, 98304),
    );
    check(
        "--name=x --rw=write --size=1M --offset=64k --offset_increment=100k --numjobs=3",
        names(&[("x.0.0", 1114112), ("x.1.0", 1216512), ("x.2.0", 1318912)]),
        (0, 0, 768, 3 * MIB),
    );
    check(
        "--name=x --rw=write --size=1M --io_size=100k",
        names(&[("x.0.0", MIB)]),
        (0, 0, 25, 100 * KIB),
    );
    check(
        "--name=x --rw=read --size=1M --io_size=1500k",
        names(&[("x.0.0", MIB)]),
        (375, 1500 * KIB, 0, 0),
    );
    check(
        "--name=x --rw=write --size=1M --number_ios=10 --loops=3",
        names(&[("x.0.0", MIB)]),
        (0, 0, 30, 30 * 4 * KIB),
    );
    check(
        "--name=x --rw=randread --size=40k --number_ios=25",
        names(&[("x.0.0", 40 * KIB)]),
        (10, 40 * KIB, 0, 0),
    );
    check(
        "--name=x --rw=randwrite --bs=16k --size=64k --loops=5 --filename=one:two",
        names(&[("one", 32 * KIB), ("two", 32 * KIB)]),
        (0, 0, 20, 320 * KIB),
    );
    check(
        "--name=x --rw=write --size=64k --filename=shared --numjobs=3",
        names(&[("shared", 64 * KIB)]),
        (0, 0, 48, 192 * KIB),
    );
    check(
        "--name=x --rw=write --size=64k --filename_format=f-$jobname-$filenum-$jobnum --nrfiles=2",
        names(&[("f-x-0-0", 32 * KIB), ("f-x-1-0", 32 * KIB)]),
        (0, 0, 16, 64 * KIB),
    );
}

#[test]
fn how_far_a_file_reaches_before_it_is_written_depends_on_fallocate_as_with_fio() {
    // After three blocks, and when files are only created.
    for (how, written, made) in [
        ("none", 12 * KIB, 0),
        ("native", MIB, MIB),
        ("posix", MIB, MIB),
        ("keep", 12 * KIB, 0),
        ("truncate", MIB, MIB),
    ] {
        let line = format!("--name=x --rw=write --size=1M --fallocate={how}");
        let three = format!("{line} --number_ios=3");
        check(&three, names(&[("x.0.0", written)]), (0, 0, 3, 12 * KIB));
        let only = format!("{line} --create_only=1");
        check(&only, names(&[("x.0.0", made)]), (0, 0, 0, 0));
    }
    let opened = "--name=x --rw=write --size=1M --create_on_open=1 --number_ios=3";
    check(opened, names(&[("x.0.0", 12 * KIB)]), (0, 0, 3, 12 * KIB));
}

#[test]
fn files_of_a_range_of_sizes_hold_what_was_moved() {
    let dir = tempdir();
    let outcome = run_well(
        dir.path(),
        "--name=x --rw=write --filesize=8k-64k --nrfiles=20 --numjobs=2",
    );
    let files = listing(dir.path());
    assert_eq!(files.len(), 40);
    for (name, length) in &files {
        let whole = length % (4 * KIB) == 0;
        assert!(
            whole && (8 * KIB..=64 * KIB).contains(length),
            "{name}: {length}"
        );
    }
    let total: u64 = files.values().sum();
    assert_eq!(counts(&outcome), (0, 0, total / (4 * KIB), total));
    let different: std::collections::BTreeSet<_> = files.values().collect();
    assert!(different.len() > 5, "{different:?}");
}

#[test]
fn a_file_that_is_longer_is_written_over_and_never_cut() {
    for rw in ["write", "randwrite", "randrw"] {
        for more in ["", "--overwrite=1", "--fallocate=truncate", "--offset=64k"] {
            let dir = tempdir();
            fs::write(dir.path().join("old"), vec![b'o'; 300_000]).expect("written");
            let line = format!(
                "--name=x --rw={rw} --size=64k --filename=old --buffer_pattern=0x6e {more}"
            );
            run_well(dir.path(), &line);
            let after = data(dir.path(), "old");
            assert_eq!(after.len(), 300_000, "{line}");
            let start = if more.starts_with("--offset") {
                65536
            } else {
                0
            };
            let inside = &after[start..start + 65536];
            let written = inside.iter().filter(|b| **b == b'n').count();
            assert_eq!(written % 4096, 0, "{line}");
            let all = if rw == "randrw" {
                4096..=61440
            } else {
                65536..=65536
            };
            assert!(all.contains(&written), "{line}: {written}");
            let outside = after[..start].iter().chain(&after[start + 65536..]);
            assert!(outside.copied().all(|b| b == b'o'), "{line}");
        }
    }
}

#[test]
fn a_file_that_is_too_short_is_continued_with_data() {
    for line in [
        "--name=x --rw=read --size=64k --filename=old",
        "--name=x --rw=write --size=64k --filename=old --overwrite=1 --number_ios=1 --offset=4k \
         --size=60k",
    ] {
        let dir = tempdir();
        fs::write(dir.path().join("old"), vec![b'o'; 1000]).expect("written");
        run_well(dir.path(), line);
        let after = data(dir.path(), "old");
        assert_eq!(after.len(), 65536, "{line}");
        assert!(after[..1000].iter().all(|b| *b == b'o'), "{line}");
        let empty = after.chunks(4096).filter(|c| c.iter().all(|b| *b == 0));
        assert_eq!(empty.count(), 0, "{line}: holes");
    }
}

#[test]
fn without_a_size_files_are_as_long_as_they_are_and_must_hold_something() {
    let dir = tempdir();
    fs::write(dir.path().join("there"), vec![b'o'; 41_000]).expect("written");
    fs::write(dir.path().join("empty"), []).expect("written");
    let outcome = run_well(dir.path(), "--name=x --rw=read --filename=there");
    assert_eq!(counts(&outcome), (10, 40_960, 0, 0));
    let outcome = run_well(dir.path(), "--name=x --rw=randwrite --filename=there");
    assert_eq!(counts(&outcome), (0, 0, 10, 40_960));
    for line in [
        "--name=x --rw=read --filename=empty",
        "--name=x --rw=write --filename=empty",
        "--name=x --rw=write --filename=there --offset=1M",
        "--name=x --rw=write --ioengine=null",
    ] {
        let why = refusal(dir.path(), line);
        assert!(
            why.contains("job 'x'") && why.contains("size"),
            "{line}: {why}"
        );
    }
    for rw in ["read", "write"] {
        let why = refusal(
            dir.path(),
            &format!("--name=x --rw={rw} --filename=missing"),
        );
        assert!(why.contains("missing") && why.contains("ENOENT"), "{why}");
    }
    assert_eq!(
        listing(dir.path()),
        names(&[("empty", 0), ("there", 41_000)])
    );
    let why = refusal(
        dir.path(),
        "--name=x --rw=write --size=4k --directory=nowhere",
    );
    assert!(why.contains("nowhere") && why.contains("job 'x'"), "{why}");
}

#[test]
fn what_is_to_be_unlinked_goes_unless_the_user_had_it_before() {
    check(
        "--name=x --rw=write --size=64k --nrfiles=3 --numjobs=2 --unlink=1",
        names(&[]),
        (0, 0, 30, 120 * KIB),
    );
    let dir = tempdir();
    fs::write(dir.path().join("mine"), b"mine").expect("written");
    run_well(
        dir.path(),
        "--name=x --rw=write --size=64k --filename=mine:new --unlink=1",
    );
    assert_eq!(listing(dir.path()), names(&[("mine", 32 * KIB)]));
}

#[test]
fn fsyncs_come_after_so_many_writes_and_are_counted_apart() {
    let dir = tempdir();
    // No sync follows the last write, like with fio, unless that write closes its file.
    for (more, syncs) in [
        ("--fsync=1", 15),
        ("--fsync=4", 3),
        ("--fsync=5", 3),
        ("--fdatasync=3", 5),
        ("--fsync=4 --ioengine=io_uring --iodepth=8", 3),
        ("--fsync=4 --ioengine=libaio --iodepth=8", 3),
        ("--fdatasync=4 --ioengine=posixaio --iodepth=8", 3),
        ("--fsync=4 --ioengine=splice", 3),
        ("--fsync=8 --nrfiles=4 --file_service_type=sequential", 2),
    ] {
        let line = format!("--name=x --rw=write --size=64k {more}");
        let outcome = run_well(dir.path(), &line);
        assert_eq!(only(&outcome).sync.count(), syncs, "{line}");
        assert_eq!(counts(&outcome), (0, 0, 16, 64 * KIB), "{line}");
    }
}

#[test]
fn the_last_write_before_a_rest_that_is_shorter_than_a_block_is_synced() {
    // Results of fio 3.33: writes, syncs.
    for (more, expect) in [
        ("--bs=2300 --size=22k --fsync=1", (9, 9)),
        ("--bs=2300 --size=22k --fsync=2", (9, 4)),
        ("--bs=2300 --size=22k --fsync=3", (9, 3)),
        ("--bs=2300 --size=22k --fsync=1 --rw=randwrite", (9, 9)),
        ("--bs=4k --size=62k --fsync=1", (15, 15)),
        ("--bs=3000 --size=64k --nrfiles=4 --fsync=1", (20, 20)),
        ("--bs=4k --size=64k --fsync=1 --number_ios=5", (5, 4)),
        ("--bs=4k --size=64k --fsync=1 --io_size=20k", (5, 4)),
        (
            "--bs=2300 --size=22k --fsync=1 --ioengine=libaio --iodepth=4",
            (9, 9),
        ),
        ("--bs=2300 --size=22k --fsync=1 --end_fsync=1", (9, 9)),
    ] {
        let dir = tempdir();
        let line = format!("--name=x --rw=write {more}");
        let outcome = run_well(dir.path(), &line);
        let job = only(&outcome);
        assert_eq!((job.write.ios, job.sync.count()), expect, "{line}");
    }
}

mod needs_fuse {
    use super::super::pace::{MS, run_stepped};
    use super::*;
    use crate::testfs::{Mount, let_go_when_awaited, mount};

    #[test]
    fn large_files_are_written_side_by_side_and_synced_within_the_run_time() {
        let target = mount(|config| config.latency = "fsync=80ms".parse().expect("valid"));
        let line = "--name=big-write --directory=. --rw=write --refill_buffers --bs=4M --size=8M \
                --numjobs=4 --end_fsync=1 --group_reporting";
        let outcome = run_well(target.path(), line);
        let all = only(&outcome);
        assert_eq!(
            (all.workers, all.write.ios, all.write.bytes),
            (4, 8, 32 * MIB)
        );
        let expect: Vec<String> = (0..4).map(|n| format!("big-write.{n}.0")).collect();
        let expect: Vec<(&str, u64)> = expect.iter().map(|n| (n.as_str(), 8 * MIB)).collect();
        assert_eq!(listing(target.path()), names(&expect));
        // The fsync counts towards run time and bandwidth, but not as a latency.
        assert!(all.write.runtime.0 >= 80_000_000, "{}", all.write.runtime);
        assert!(all.write.clat.max() < all.write.runtime);
        assert_eq!((all.write.clat.count(), all.sync.count()), (8, 0));
        target.end();
    }

    #[test]
    fn files_are_synced_before_they_are_closed_where_asked_for() {
        let line =
            "--name=x --rw=write --filesize=16k --nrfiles=8 --fsync_on_close=1 --fallocate=none";
        for more in [
            "",
            "--file_service_type=sequential",
            "--file_service_type=sequential --ioengine=io_uring --iodepth=8",
            "--openfiles=3 --ioengine=io_uring --iodepth=8",
            "--file_service_type=sequential --ioengine=libaio --iodepth=8",
            "--openfiles=3 --ioengine=posixaio --iodepth=8",
        ] {
            let target = mount(|config| config.latency = "fsync=2ms".parse().expect("valid"));
            let outcome = run_well(target.path(), &format!("{line} {more}"));
            assert_eq!(counts(&outcome), (0, 0, 32, 128 * KIB), "{more}");
            let stats = target.fs.stats().snapshot();
            assert_eq!(stats.counts(Kind::Fsync).requests, 8, "{more}");
            assert_eq!(stats.counts(Kind::Write).bytes, 128 * KIB, "{more}");
            target.end();
        }
    }

    #[test]
    fn files_that_do_not_fit_are_an_error_before_anything_runs() {
        let target = mount(|config| {
            config.backing = rbench_testfs::Backing::Memory {
                cap: rbench_core::Bytes(MIB),
            };
        });
        for more in ["", "--fallocate=none", "--numjobs=2 --fallocate=truncate"] {
            let line = format!("--overfill --name=x --rw=read --size=4M {more}");
            let why = refusal(target.path(), &line);
            assert!(
                why.contains("ENOSPC") && why.contains("x."),
                "{line}: {why}"
            );
            for name in listing(target.path()).keys() {
                fs::remove_file(target.path().join(name)).expect("removed");
            }
        }
        target.end();
    }

    #[test]
    fn timed_direct_jobs_go_over_their_files_again_and_again() {
        let target = mount(|_| ());
        for (rw, block, jobs) in [
            ("read", 128, 1),
            ("write", 128, 4),
            ("randread", 4, 4),
            ("randwrite", 4, 1),
        ] {
            let line = format!(
                "-directory=. -ioengine=psync -rw={rw} -bs={block}k -direct=1 -group_reporting=1 \
             -fallocate=none -time_based=1 -runtime=300ms -name=test_file_{rw} -numjobs={jobs} \
             -nrfiles=1 -size=256k"
            );
            // A block every 2 ms of each job's time.
            let side = match only(&run_stepped(MS, target.path(), &line)) {
                all if rw.ends_with("read") => all.read.clone(),
                all => all.write.clone(),
            };
            assert_eq!(side.bytes, side.ios * block * KIB, "{line}");
            assert!(
                (140 * jobs..=150 * jobs).contains(&side.ios),
                "{line}: {}",
                side.ios
            );
            assert!(
                side.runtime.0.abs_diff(300 * MS) < 10 * MS,
                "{line}: {}",
                side.runtime
            );
            for job in 0..jobs {
                let name = format!("test_file_{rw}.{job}.0");
                assert_eq!(listing(target.path()).get(&name), Some(&(256 * KIB)));
            }
        }
        target.end();
    }

    /// Maximum number of `target`'s files that this process has open while both workers of `line`
    /// are in a read.
    fn most_open(target: &Mount, line: &str) -> usize {
        let most = AtomicUsize::new(0);
        let count = || {
            let all = fs::read_dir("/proc/self/fd").expect("descriptors");
            let open = all
                .filter_map(|fd| fs::read_link(fd.ok()?.path()).ok())
                .filter(|path| path.starts_with(target.path()) && path != target.path())
                // The file of the counters is held by the test.
                .filter(|path| path.file_name().is_some_and(|name| name != ".stats"));
            most.fetch_max(open.count(), Ordering::SeqCst);
        };
        let_go_when_awaited(&target.fs, 2, 2 * 48, count, || {
            run_well(target.path(), line)
        });
        most.into_inner()
    }

    #[test]
    fn files_served_in_sequence_are_open_one_at_a_time() {
        let target = mount(|config| config.faults = vec!["read:hang@p=1".parse().expect("valid")]);
        let line = "--name=x --rw=read --direct=1 --bs=4k --filesize=32k --nrfiles=6 --numjobs=2";
        run_well(target.path(), &format!("{line} --create_only=1"));
        let most = |more: &str| most_open(&target, &format!("{line} {more}"));
        assert_eq!(most("--file_service_type=sequential"), 2);
        assert_eq!(most(""), 12);
        assert_eq!(most("--openfiles=3"), 6);
        assert_eq!(most("--openfiles=3 --file_service_type=random"), 6);
        target.end();
    }
}
