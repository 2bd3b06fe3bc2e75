//! Tests the number of requests in flight.

use super::*;

#[test]
fn below_the_low_mark_all_is_submitted_anew() {
    let line = "--name=x --rw=randread --bs=4k --size=4M --ioengine=null --iodepth=32";
    let dir = tempdir();
    for (more, deepest) in [
        ("", 1.0),
        ("--iodepth_low=32", 1.0),
        ("--iodepth_low=8", 0.1),
    ] {
        let outcome = run_well(dir.path(), &format!("{line} {more}"));
        let job = only(&outcome);
        assert_eq!(job.read.ios, 1024, "{more}");
        // Within a round, each depth from 8 to 32 occurs once.
        let share = job.depths[5] as f64 / job.read.ios as f64;
        assert!((share - deepest).abs() < 0.1, "{more}: {:?}", job.depths);
    }
}

mod needs_fuse {
    use super::*;
    use crate::testfs::{let_go, mount};

    /// Random reads that hang until the expected number hangs; it must be `depth` each time.
    fn held(depth: u64, requests: u64, more: &str) -> JobOutcome {
        let target = mount(|config| config.faults = vec!["read:hang@p=1".parse().expect("valid")]);
        let line = format!(
            "--name=x --rw=randread --bs=4k --size=16M --direct=1 --iodepth={depth} \
             --number_ios={requests} {more}"
        );
        let outcome = let_go(&target.fs, depth, requests, || {
            run_well(target.path(), &line)
        });
        let job = only(&outcome).clone();
        assert_eq!(job.read.ios, requests);
        target.end();
        job
    }

    #[test]
    fn as_many_requests_are_kept_under_way_as_may_be() {
        let one = held(1, 5, "--ioengine=io_uring");
        assert_eq!(one.depths[1..], [0; 6]);
        let many = held(32, 320, "--ioengine=io_uring");
        assert_eq!(many.depths[6], 0, "{:?}", many.depths);
        // With offload threads that make the requests, for any engine.
        for engine in ["psync", "libaio", "io_uring", "pvsync"] {
            held(
                4,
                64,
                &format!("--ioengine={engine} --io_submit_mode=offload"),
            );
        }
    }

    #[test]
    fn requests_are_submitted_and_reaped_in_batches_where_asked_for() {
        let batches = "--iodepth_batch=16 --iodepth_batch_complete_min=16";
        let job = held(16, 320, &format!("--ioengine=io_uring {batches}"));
        // Each call submits 9 to 16 requests, and none waits for fewer.
        assert_eq!((job.submits[3], job.submits.iter().sum()), (20, 20));
        assert_eq!(job.completes[1..3], [0, 0], "{:?}", job.completes);
    }
}

mod timing {
    use super::*;
    use crate::testfs::mount;

    /// Random reads from a file system with a read latency of 1 ms.
    fn at_depth(depth: u32, more: &str) -> JobOutcome {
        let target = mount(|config| config.latency = "read=1ms".parse().expect("valid"));
        let line = format!(
            "--name=x --rw=randread --bs=4k --size=16M --direct=1 --ioengine=io_uring \
         --iodepth={depth} --time_based --runtime=2 {more}"
        );
        let outcome = run_well(target.path(), &line);
        let job = only(&outcome).clone();
        target.end();
        let rate = job.read.ios as f64 / job.read.runtime.as_secs_f64();
        let mean = job.read.lat.mean_ns();
        // Little's law gives the mean number in flight from times only.
        let under_way = rate * mean / 1e9;
        eprintln!(
            "depth {depth} {more}: {rate:.0} reads/s, mean latency {mean:.0} ns, {under_way:.1} under way, \
         depths {:?}, submits {:?}, completes {:?}",
            job.depths, job.submits, job.completes
        );
        job
    }

    fn rate(job: &JobOutcome) -> f64 {
        job.read.ios as f64 / job.read.runtime.as_secs_f64()
    }

    #[test]
    fn thirty_two_requests_are_kept_under_way() {
        crate::clock::tried_again(thirty_two_requests_are_kept_under_way_once);
    }

    fn thirty_two_requests_are_kept_under_way_once() {
        let one = at_depth(1, "");
        assert_eq!(one.depths[1..], [0; 6]);
        assert!(rate(&one) <= 1000.0, "{}", rate(&one));
        let many = at_depth(32, "");
        let share = many.depths[5] as f64 / many.read.ios as f64;
        assert!(share >= 0.9, "{:?}", many.depths);
        let under_way = rate(&many) * many.read.lat.mean_ns() / 1e9;
        assert!((24.0..=33.0).contains(&under_way), "{under_way}");
        assert!(rate(&many) <= 32_000.0);
        assert!(
            rate(&many) > 10.0 * rate(&one),
            "{} {}",
            rate(&many),
            rate(&one)
        );
        assert!(many.read.lat.min().0 >= 1_000_000);
    }

    #[test]
    fn requests_are_submitted_and_reaped_in_batches_where_asked_for() {
        crate::clock::tried_again(
            requests_are_submitted_and_reaped_in_batches_where_asked_for_once,
        );
    }

    fn requests_are_submitted_and_reaped_in_batches_where_asked_for_once() {
        let job = at_depth(
            32,
            "--iodepth_batch=16 --iodepth_batch_complete_min=16 --runtime=500ms",
        );
        // Nearly every call submits 9 to 16 requests.
        let calls: u64 = job.submits.iter().sum();
        assert!(
            job.submits[3] as f64 > 0.8 * calls as f64,
            "{:?}",
            job.submits
        );
        assert!(calls < job.read.ios / 8, "{calls} calls");
        // Most waits end with at least 16 requests.
        let few: u64 = job.completes[1..3].iter().sum();
        let all: u64 = job.completes[1..].iter().sum();
        assert!((few as f64) < 0.2 * all as f64, "{:?}", job.completes);
    }
}
