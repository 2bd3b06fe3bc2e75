//! Tests priorities of single requests (`cmdprio_percentage` and its like).

use rbench_core::IoPriority;
use rbench_core::job::DirectionOutcome;
use rbench_core::latency::Latency;

use super::*;

/// Priorities that need no right.
const LOW: &str = "--cmdprio_class=2 --cmdprio=7";

/// Random reads and writes with the engine.
fn mixed(engine: &str, more: &str) -> Outcome {
    let dir = tempdir();
    let line = format!(
        "--name=x --rw=randrw --bs=4k --size=4M --ioengine={engine} --iodepth=8 --group_reporting {more}"
    );
    run_well(dir.path(), &line)
}

/// Number of operations of each priority.
fn counts_of(direction: &DirectionOutcome) -> Vec<(IoPriority, u64)> {
    let all = direction.priorities.iter();
    all.map(|one| (one.priority, one.latency.count())).collect()
}

/// Checks that the latencies of all priorities together are those of the direction.
fn check_sum(direction: &DirectionOutcome, all: &Latency) {
    let mut sum = Latency::default();
    for one in &direction.priorities {
        sum.merge(&one.latency);
    }
    assert_eq!(&sum, all);
    assert_eq!(sum.count(), direction.ios);
}

#[test]
fn each_request_has_a_priority_and_a_latency_of_it() {
    let (own, low) = (IoPriority::default(), IoPriority::new(2, 7, 0));
    for engine in ["libaio", "io_uring"] {
        let outcome = mixed(
            engine,
            &format!("--numjobs=2 --cmdprio_percentage=25,75 {LOW}"),
        );
        let job = only(&outcome);
        for (direction, percent) in [(&job.read, 25), (&job.write, 75)] {
            check_sum(direction, &direction.clat);
            let [(first, others), (second, drawn)] = counts_of(direction)[..] else {
                panic!("{:?}", counts_of(direction));
            };
            assert_eq!((first, second), (own, low), "{engine}");
            // The seed is fixed, and about 1000 are drawn: 14 is the standard deviation.
            let share = drawn * 100 / (drawn + others);
            assert!(
                share.abs_diff(percent) < 6,
                "{engine}: {share}%, not {percent}%"
            );
        }
        assert_eq!(counts_of(&job.trim), [(own, 0)]);
    }
}

#[test]
fn a_job_draws_the_same_priorities_again() {
    let counts = |engine: &str, more: &str| {
        let outcome = mixed(engine, &format!("--cmdprio_percentage=50 {LOW} {more}"));
        counts_of(&only(&outcome).read)
    };
    let first = counts("libaio", "");
    assert_eq!(first, counts("io_uring", "--iodepth=1"));
    assert_ne!(first, counts("libaio", "--randseed=1"));
}

#[test]
fn sizes_have_priorities_of_their_own_beside_that_of_the_job() {
    let outcome = mixed(
        "libaio",
        "--prio=3 --lat_percentiles=1 --bssplit=4k/50:8k/50 \
         --cmdprio_bssplit=8k/60/2/5:8k/40/2/6,4k/0",
    );
    let job = only(&outcome);
    let at = |level| IoPriority::new(2, level, 0);
    let reads = counts_of(&job.read);
    assert_eq!(
        reads.iter().map(|(p, _)| *p).collect::<Vec<_>>(),
        [at(3), at(5), at(6)]
    );
    assert!(reads.iter().all(|(_, count)| *count > 0), "{reads:?}");
    // Blocks of 8 KiB all have one of theirs.
    let large = job.read.bytes / 4096 - job.read.ios;
    assert_eq!(reads[1].1 + reads[2].1, large);
    assert_eq!(counts_of(&job.write), [(at(3), job.write.ios)]);
    check_sum(&job.read, &job.read.lat);
    check_sum(&job.write, &job.write.lat);
}

#[test]
fn what_only_verification_reads_has_the_priority_of_the_job() {
    let dir = tempdir();
    let line = format!(
        "--name=x --rw=write --bs=4k --size=1M --ioengine=libaio --iodepth=4 --verify=crc32c \
         --cmdprio_percentage=100 {LOW}"
    );
    let outcome = run_well(dir.path(), &line);
    let job = only(&outcome);
    let (own, low) = (IoPriority::default(), IoPriority::new(2, 7, 0));
    assert_eq!(counts_of(&job.read), [(own, 256)]);
    assert_eq!(counts_of(&job.write), [(own, 0), (low, 256)]);
    // Reads of verification draw where the job has reads.
    let outcome = mixed(
        "libaio",
        &format!("--verify=crc32c --cmdprio_percentage=100,0 {LOW}"),
    );
    let job = only(&outcome);
    assert_eq!(counts_of(&job.read), [(own, 0), (low, job.read.ios)]);
    assert!(
        job.read.ios > job.write.ios && job.read.ios >= 1024,
        "{}",
        job.read.ios
    );
}

#[test]
fn logs_have_the_priority_of_each_operation() {
    let dir = tempdir();
    let line = format!(
        "--name=x --rw=randread --bs=4k --size=1M --ioengine=io_uring --iodepth=4 --prio=3 \
         --write_lat_log=l --cmdprio_percentage=40 {LOW}"
    );
    let outcome = run_well(dir.path(), &line);
    let reads = counts_of(&only(&outcome).read);
    let [log] = &outcome.logs[..] else {
        panic!("{} logs", outcome.logs.len());
    };
    for (priority, count) in reads {
        let same = log.samples.iter().filter(|one| one.priority == priority);
        assert_eq!(same.count() as u64, count, "{priority:?}");
    }
}

mod needs_root {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_priority_without_the_right_is_an_error_of_the_request() {
        for engine in ["libaio", "io_uring"] {
            let dir = tempdir();
            let everybody = fs::Permissions::from_mode(0o777);
            fs::set_permissions(dir.path(), everybody).expect("opened");
            // Another user has no right to the real-time class, the default.
            let line = format!(
                "--name=x --rw=write --bs=4k --size=64k --ioengine={engine} --uid=1234 \
                 --create_on_open=1 --cmdprio_percentage=100"
            );
            let outcome = run(dir.path(), &line);
            let job = only(&outcome);
            let found = (job.error, job.write.ios);
            assert_eq!(found, (nix::libc::EPERM, 0), "{engine}");
        }
    }
}
