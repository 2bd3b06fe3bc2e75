//! Tests jobs that end others, hold a ratio or record late; the memory of their buffers; and offloaded and serialised
//! requests.

use std::time::Instant;

use nix::errno::Errno;
use rbench_core::Nanos;

use super::pace::{MS, US, run_stepped};
use super::*;

/// Sum of the reads and writes of each job, by its position.
fn ios(outcome: &Outcome) -> Vec<u64> {
    let jobs = outcome.jobs.iter().map(|job| job.job).max().unwrap_or(0);
    let of = |n: u32| {
        let all = outcome.jobs.iter().filter(move |job| job.job == n);
        all.map(|job| job.read.ios + job.write.ios).sum()
    };
    (0..=jobs).map(of).collect()
}

/// Elapsed time of the longest worker of a job.
fn longest(outcome: &Outcome, job: u32) -> Nanos {
    let all = outcome.jobs.iter().filter(|outcome| outcome.job == job);
    all.map(|job| job.elapsed).max().unwrap_or_default()
}

/// Checks that nothing was measured, and that a warning about this job reports it.
pub fn check_ramp_only(outcome: &Outcome, job: &str) {
    assert!(outcome.rows.iter().all(|row| row.items == 0), "{job}");
    // The disk may be nearly full.
    let mut warnings = outcome
        .warnings
        .iter()
        .filter(|(code, _)| *code == "ramp-only");
    let (Some((_, message)), None) = (warnings.next(), warnings.next()) else {
        panic!("{job}: {:?}", outcome.warnings);
    };
    assert!(message.starts_with(&format!("{job}: ")), "{message}");
}

/// A job that does not end by itself within the test's time.
const ENDLESS: &str = "--rw=read --size=64k --time_based --runtime=10m";

#[test]
fn the_end_of_a_worker_ends_the_others_of_its_group_on_all_ranks() {
    let dir = tempdir();
    let line = format!("--exitall --name=a --rw=read --size=64k --name=b {ENDLESS}");
    for hosts in [&[0][..], &[0, 0, 1]] {
        let outcome = run_on(hosts, dir.path(), &line);
        check_sound(&outcome, &line);
        assert_eq!(outcome.jobs.len(), 2 * hosts.len());
        assert!(longest(&outcome, 1) < Nanos(300_000_000_000), "{line}");
    }
}

#[test]
fn rows_of_jobs_of_one_name_are_told_apart_in_all_groups_and_alike_in_all_iterations() {
    let dir = tempdir();
    let line = "--iterations=2 --name=t --rw=write --size=64k --name=t --stonewall --rw=randread --size=64k \
                --name=u --rw=read --size=64k";
    let outcome = run(dir.path(), line);
    let ends = |name: &str| ["-read", "-write"].iter().any(|end| name.ends_with(end));
    let mut names: Vec<(u32, &str)> = outcome
        .rows
        .iter()
        .map(|row| (row.iteration, row.name.as_str()))
        .collect();
    names.retain(|(_, name)| ends(name));
    let once = ["t-1-write", "t-2-read", "u-read"];
    let all: Vec<(u32, &str)> = (0..2)
        .flat_map(|iteration| once.map(|name| (iteration, name)))
        .collect();
    assert_eq!(names, all);
}

#[test]
fn only_the_rank_whose_worker_ends_has_to_for_all_to_end() {
    let dir = tempdir();
    // The file of rank 1 has an end; rank 0 does not reach its end in time.
    let sizes = [(0, 4 << 20), (1, 4096)];
    for (rank, bytes) in sizes {
        let name = dir.path().join(format!("a.{rank}.0"));
        std::fs::write(name, vec![1; bytes]).expect("written");
    }
    let line = "--name=a --rw=read --bs=4k --rate_iops=1 --exitall";
    let outcome = run_on(&[0, 1], dir.path(), line);
    let by_worker: Vec<u64> = outcome.jobs.iter().map(|job| job.read.ios).collect();
    assert_eq!(by_worker[1], 1);
    assert!(by_worker[0] < 1024, "{by_worker:?}");
}

#[test]
fn what_exit_what_says_ends() {
    let dir = tempdir();
    let short = "--name=a --rw=read --size=64k --exitall";
    let check = |what: &str, line: &str, expect: &dyn Fn(&[u64]) -> bool| {
        let outcome = run(dir.path(), line);
        let done = ios(&outcome);
        assert!(expect(&done), "{what}: {done:?}");
    };
    // Only its group: another group at the same time continues.
    let line = format!(
        "{short} --name=b --new_group --rw=read --size=64k --rate_iops=100 --name=c --stonewall \
         --rw=read --size=64k"
    );
    check("group", &line, &|done| done == [16, 16, 16]);
    // All running jobs, but not later ones.
    let line = format!(
        "{short} --exit_what=stonewall --name=b --new_group {ENDLESS} --name=c --stonewall \
         --rw=read --size=64k"
    );
    check("stonewall", &line, &|done| done[0] == 16 && done[2] == 16);
    let line = format!(
        "{short} --exit_what=all --name=b --new_group {ENDLESS} --name=c --stonewall {ENDLESS}"
    );
    check("all", &line, &|done| done[0] == 16 && done[2] == 0);
}

#[test]
fn jobs_that_wait_are_ended_by_those_of_their_group_on_all_ranks() {
    let dir = tempdir();
    let line = format!("--name=a --rw=read --size=64k --exitall --name=b --wait_for=a {ENDLESS}");
    for hosts in [&[0][..], &[0, 1]] {
        let outcome = run_on(hosts, dir.path(), &line);
        let (done, all) = (ios(&outcome), 16 * hosts.len() as u64);
        // The first to finish also ends its job's workers on other ranks.
        assert!((16..=all).contains(&done[0]) && done[1] == 0, "{done:?}");
    }
}

#[test]
fn an_end_ends_no_others_where_an_error_is_to() {
    let dir = tempdir();
    let line = "--exitall_on_error --name=a --rw=read --size=4k --name=b --rw=read --size=256k";
    assert_eq!(ios(&run_well(dir.path(), line)), [1, 64]);
}

#[test]
fn operations_of_a_flow_are_in_the_ratio_of_its_weights() {
    let dir = tempdir();
    for more in ["", "--ioengine=libaio --iodepth=8", "--flow_sleep=20us"] {
        let line = format!(
            "--rw=randread --size=1m --norandommap --invalidate=0 --exitall {more} --name=a --flow=3"
        );
        // The job that finishes its operations ends the other one, and did not get ahead of it.
        let endless = "--time_based --runtime=1h";
        let ends = format!("{line} {endless} --name=b --flow=1 --io_size=4m");
        let done = ios(&run_well(dir.path(), &ends));
        assert!(
            done[1] == 1024 && done[0] > 9 * 1024 * 3 / 10,
            "{more}: {done:?}"
        );
        let ends = format!("{line} --io_size=12m --name=b --flow=1 {endless}");
        let done = ios(&run_well(dir.path(), &ends));
        assert!(
            done[0] == 3072 && done[1] > 9 * 1024 / 10,
            "{more}: {done:?}"
        );
    }
}

#[test]
fn whoever_is_left_of_a_flow_comes_to_its_end() {
    let dir = tempdir();
    let line = "--rw=read --name=a --size=256k --flow=1 --name=b --size=16k --flow=1 \
                --name=d --stonewall --size=64k --flow=1";
    assert_eq!(ios(&run_well(dir.path(), line)), [64, 4, 16]);
}

#[test]
fn whoever_waits_for_the_others_of_its_flow_ends_in_time() {
    let dir = tempdir();
    // The other job would start in an hour if it were not ended.
    let late = "--name=b --rw=read --size=64k --startdelay=1h";
    for depth in ["", "--ioengine=io_uring --iodepth=4"] {
        let line = format!(
            "--flow=1 --exitall --name=a {depth} --rw=read --size=64k --time_based --runtime=300ms {late}"
        );
        let outcome = run(dir.path(), &line);
        check_sound(&outcome, &line);
        assert_eq!(ios(&outcome)[1], 0);
        assert!(longest(&outcome, 0) >= Nanos(300 * MS), "{line}");
    }
}

#[test]
fn what_is_checked_in_a_ramp_of_bytes_is_checked_whole() {
    let dir = tempdir();
    for depth in ["", "--ioengine=io_uring --iodepth=4"] {
        let line = format!(
            "--name=a {depth} --rw=write --bs=4k --size=64k --loops=4 --ramp_size=80k --verify=crc32c"
        );
        let outcome = run(dir.path(), &line);
        check_sound(&outcome, &line);
        // The ramp ends within the second pass. The rest of this pass and two more passes are recorded.
        let job = &outcome.jobs[0];
        assert_eq!(job.read.ios, 3 * 16, "{line}");
        // Requests in flight at that point belong to the ramp.
        let rest = 12 + 16 + 16;
        let least = if depth.is_empty() { rest } else { rest - 3 };
        let written = job.write.ios;
        assert!((least..=rest).contains(&written), "{line}: {written}");
    }
}

#[test]
fn nothing_is_recorded_before_so_many_bytes() {
    let dir = tempdir();
    for more in ["", "--ioengine=libaio --iodepth=4"] {
        let line = format!("--name=a --rw=read --size=256k --ramp_size=64k {more}");
        let outcome = run_well(dir.path(), &line);
        let job = only(&outcome);
        // Requests in flight when the ramp ends belong to it.
        assert!(
            (45..=48).contains(&job.read.ios),
            "{more}: {}",
            job.read.ios
        );
        assert_eq!(outcome.row("a-read").items, job.read.ios, "{more}");
        // A job that ends within its ramp is reported with it, like in fio; no row includes it.
        let line = format!("--name=b --rw=read --size=64k --ramp_size=1m {more}");
        let outcome = run_well(dir.path(), &line);
        assert_eq!(only(&outcome).read.ios, 16, "{more}");
        check_ramp_only(&outcome, "b");
    }
    // The run time follows the ramp.
    let line = "--name=c --rw=read --size=64k --rate_iops=200 --time_based --runtime=300ms \
                --ramp_size=160k";
    let outcome = run_stepped(US, dir.path(), line);
    let job = only(&outcome);
    assert_eq!(job.read.ios, 60);
    let runtime = job.read.runtime.0;
    assert!(runtime.abs_diff(300 * MS) < MS, "{runtime} ns");
}

#[test]
fn a_group_ramps_together() {
    let dir = tempdir();
    let of = |more: &str| {
        let line = format!("--name=a --rw=read --size=256k --numjobs=4 --ramp_size=128k {more}");
        let outcome = run_on(&[0, 1], dir.path(), &line);
        check_sound(&outcome, &line);
        ios(&outcome)[0]
    };
    // Each of 8 separately; or all together, half on each rank.
    assert_eq!(of(""), 8 * 32);
    let together = of("--group_reporting");
    assert!(
        (8 * 64 - 2 * 32..=8 * 64 - 2 * 16).contains(&together),
        "{together}"
    );
}

#[test]
fn a_steady_state_is_looked_for_as_often_as_asked() {
    let dir = tempdir();
    let line = "--name=a --ioengine=null --rw=read --size=1m --time_based --runtime=20 \
                --ss=iops:100% --ss_dur=500ms --ss_interval=50ms --rate_iops=1000";
    let outcome = run_stepped(US, dir.path(), line);
    let job = only(&outcome);
    assert_eq!((job.steady, job.steady_window.len()), (Some(true), 10));
    assert!(
        job.elapsed.0.abs_diff(500 * MS) < 60 * MS,
        "{}",
        job.elapsed
    );
}

#[test]
fn other_threads_make_the_requests() {
    let dir = tempdir();
    for engine in ["psync", "libaio", "io_uring", "pvsync", "mmap"] {
        let line = format!(
            "--name=x --rw=randwrite --size=256k --verify=crc32c --ioengine={engine} --iodepth=4 \
             --io_submit_mode=offload --verify_state_save=0"
        );
        let outcome = run_well(dir.path(), &line);
        assert_eq!(counts(&outcome), (64, 256 * KIB, 64, 256 * KIB), "{line}");
    }
}

#[test]
fn data_is_right_in_every_kind_of_memory() {
    let dir = tempdir();
    let map = dir.path().join("map");
    let file = map.display();
    let kinds = ["malloc", "shm", "mmap", "mmapshared"].map(str::to_owned);
    let of_files = [format!("mmap:{file}"), format!("mmapshared:{file}")];
    for kind in kinds.iter().chain(&of_files) {
        for engine in ["psync", "libaio --iodepth=4", "io_uring --iodepth=4"] {
            let line = format!(
                "--name=x --rw=randwrite --size=256k --numjobs=2 --verify=crc32c --mem={kind} \
                 --ioengine={engine} --verify_state_save=0 --lockmem=64k --iomem_align=512"
            );
            let outcome = run_well(dir.path(), &line);
            assert_eq!(counts(&outcome).0, 128, "{line}");
            assert!(!map.exists());
        }
    }
}

#[test]
fn memory_that_cannot_be_had_is_a_sentence_that_names_the_option() {
    let dir = tempdir();
    let file = dir.path().join("there");
    std::fs::write(&file, "of the user's").expect("written");
    let line = |what: &str| format!("--name=x --rw=read --size=64k {what}");
    let check = |what: &str, parts: &[&str]| {
        let why = refusal(dir.path(), &line(what));
        for part in parts {
            assert!(why.contains(part), "{what}: {why}");
        }
    };
    check(
        &format!("--mem=mmap:{}", file.display()),
        &["mem=mmap", "already exists"],
    );
    check(
        &format!("--mem=mmaphuge:{}", dir.path().join("h").display()),
        &["mem=mmaphuge", "hugetlbfs"],
    );
    check("--lockmem=1000t", &["lockmem", "can spare"]);
    // More than any machine has.
    check("--mem=shmhuge --hugepage-size=64t", &["mem=shmhuge"]);
    assert_eq!(std::fs::read(&file).expect("there"), b"of the user's");
}

#[test]
fn whoever_locks_a_file_does_all_its_operations() {
    let dir = tempdir();
    for more in [
        "",
        "--ioengine=libaio --iodepth=8",
        "--ioengine=io_uring --iodepth=8",
    ] {
        let line = format!(
            "--name=x --rw=randrw --size=256k --filename=f --numjobs=3 --lockfile=readwrite {more}"
        );
        assert_eq!(ios(&run_well(dir.path(), &line)), [192], "{line}");
    }
}

mod needs_fuse {
    use super::*;
    use crate::clock::wait_until;
    use crate::testfs::{let_go_when_awaited, mount};
    use rbench_testfs::Kind;

    #[test]
    fn what_another_job_ends_still_syncs_what_it_has_written() {
        let target = mount(|config| {
            config.faults = vec!["read:hang@nth=1".parse().expect("a fault")];
        });
        let line = "--name=a --rw=read --size=64k --exitall --name=b --rw=write --size=64k \
                --time_based --runtime=10m --end_fsync=1 --thinktime=10ms";
        let requests = |kind| target.fs.stats().snapshot().counts(kind).requests;
        let written = || {
            let before = requests(Kind::Write);
            wait_until("a write", || requests(Kind::Write) > before);
        };
        let run = || run_well(target.path(), line);
        let_go_when_awaited(&target.fs, 1, 1, written, run);
        assert!(requests(Kind::Fsync) >= 1);
        target.end();
    }

    /// Twelve writes of each worker. All go to a single block, so they overlap.
    fn one_block(more: &str) -> String {
        format!(
            "--name=x --rw=randwrite --bs=4k --size=4k --direct=1 --norandommap --number_ios=12 --io_size=48k \
         --filename=one --fallocate=none {more}"
        )
    }

    /// Elapsed time of such writes. Each takes 10 ms on the file system, so serialised writes take the sum.
    fn two_at_a_time(more: &str) -> Nanos {
        let target = mount(|config| config.latency = "write=10ms".parse().expect("valid"));
        let outcome = run_well(target.path(), &one_block(more));
        target.end();
        let all: u64 = outcome.jobs.iter().map(|job| job.write.ios).sum();
        assert_eq!(all % 12, 0);
        outcome
            .jobs
            .iter()
            .map(|job| job.elapsed)
            .max()
            .unwrap_or_default()
    }

    #[test]
    fn requests_of_one_place_wait_for_each_other_where_that_was_asked_for() {
        let all = |workers: u64| Nanos(12 * workers * 10_000_000);
        let took = two_at_a_time("--ioengine=libaio --iodepth=4 --serialize_overlap=1");
        assert!(took >= all(1), "{}", took.0);
        let offload = "--iodepth=4 --io_submit_mode=offload --serialize_overlap=1";
        assert!(two_at_a_time(offload) >= all(1));
        // With offload threads, also across workers.
        let took = two_at_a_time(&format!("{offload} --numjobs=2"));
        assert!(took >= all(2), "{}", took.0);
        let took = two_at_a_time("--io_submit_mode=offload --serialize_overlap=1 --numjobs=2");
        assert!(took >= all(2), "{}", took.0);
    }

    #[test]
    fn who_waits_for_a_block_of_another_worker_sleeps() {
        let target = mount(|config| config.latency = "write=10ms".parse().expect("valid"));
        let line = "--iodepth=4 --io_submit_mode=offload --serialize_overlap=1 --numjobs=2";
        let begun = Instant::now();
        // Each reading of the clock takes 1 ns.
        let outcome = run_stepped(1, target.path(), &one_block(line));
        let took = begun.elapsed().as_micros();
        target.end();
        for job in &outcome.jobs {
            // One reading before each sleep, which takes at least 50 us.
            let readings = u128::from(job.elapsed.0);
            assert!(readings < took / 20, "{readings} in {took} us");
        }
    }

    #[test]
    fn who_locks_a_file_is_alone_with_it() {
        let all = |workers: u64| Nanos(12 * workers * 10_000_000);
        let took = two_at_a_time("--lockfile=exclusive --numjobs=3");
        assert!(took >= all(3), "{}", took.0);
        let took = two_at_a_time("--lockfile=readwrite --numjobs=2 --fsync=4");
        assert!(took >= all(2), "{}", took.0);
    }

    #[test]
    fn an_error_ends_the_others_where_that_was_asked_for() {
        let target = mount(|config| {
            config.faults = vec!["read:EIO@nth=3".parse().expect("a fault")];
        });
        let line = "--direct=1 --exitall_on_error --name=a --rw=read --size=64k --name=b --rw=write \
                --size=64k --time_based --runtime=10m";
        let outcome = run(target.path(), line);
        let errors: Vec<i32> = outcome.jobs.iter().map(|job| job.error).collect();
        assert_eq!(errors, [Errno::EIO as i32, 0]);
        target.end();
    }
}

mod timing {
    use super::*;
    use crate::clock::tried_again;
    use crate::testfs::mount;

    #[test]
    fn operations_of_a_flow_are_in_the_ratio_of_its_weights() {
        let dir = tempdir();
        for more in ["", "--ioengine=libaio --iodepth=8", "--flow_sleep=20us"] {
            let line = format!(
                "--rw=randread --size=1m --norandommap --invalidate=0 --time_based --runtime=500ms {more} \
             --name=a --flow=3 --name=b --flow=1 --name=c --flow_id=7 --flow=1"
            );
            let done = ios(&run_well(dir.path(), &line));
            assert!(done[1] > 20, "{more}: {done:?}");
            let ratio = done[0] as f64 / done[1] as f64;
            // The last one to finish may have done slightly more.
            assert!((2.5..3.5).contains(&ratio), "{more}: {done:?}");
            assert!(done[2] > 0);
        }
    }

    #[test]
    fn whoever_waits_for_the_others_of_its_flow_ends_in_time() {
        let dir = tempdir();
        let late = "--name=b --rw=read --size=64k --startdelay=2";
        for depth in ["", "--ioengine=io_uring --iodepth=4"] {
            let line = format!(
                "--flow=1 --name=a {depth} --rw=read --size=64k --time_based --runtime=300ms {late}"
            );
            let outcome = run(dir.path(), &line);
            check_sound(&outcome, &line);
            // It no longer waits once the other one has finished its part.
            assert!(longest(&outcome, 0) < Nanos(1_500_000_000), "{line}");
            assert_eq!(ios(&outcome)[1], 16);
        }
    }

    #[test]
    fn as_many_requests_as_asked_for_are_in_flight() {
        tried_again(other_threads_once);
    }

    fn other_threads_once() {
        // Four at a time on a file system with a known read latency.
        let target = mount(|config| config.latency = "read=5ms".parse().expect("valid"));
        let line = |depth| {
            format!(
                "--name=y --rw=randread --size=1m --direct=1 --number_ios=64 --iodepth={depth} \
             --io_submit_mode=offload"
            )
        };
        let took = |depth| {
            let outcome = run_well(target.path(), &line(depth));
            assert_eq!(only(&outcome).read.ios, 64);
            only(&outcome).read.runtime
        };
        let (one, four) = (took(1), took(4));
        target.end();
        assert!(one >= Nanos(64 * 5_000_000), "{}", one.0);
        assert!(four >= Nanos(16 * 5_000_000), "{}", four.0);
        assert!(four.0 * 2 < one.0, "{} {}", four.0, one.0);
    }
}
