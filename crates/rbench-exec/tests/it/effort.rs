//! Compares the rows' figures about their workers' time with the recorded latencies and with the
//! file system's own figures.

use std::future::Future;
use std::pin::Pin;

use rbench_comm::{Clocks, threads};
use rbench_core::effort::Effort;
use rbench_core::outcome::{Details, OpStats, PhaseOutcome, WorkerOutcome};
use rbench_core::spread::RowLimits;
use rbench_core::{Bytes, Failure, FailureKind, Latency, Nanos, OpKind, Rank};
use rbench_exec::calibrate::on_each_host;
use rbench_exec::{Calibration, Group};
use rbench_plan::io::{FsyncRule, Rw};
use rbench_plan::meta::PhaseKind;
use rbench_plan::spec::{Io, Meta};
use rbench_testfs::Kind;

use crate::crowd::{Quiet, host_name, in_turn, reduced_of};
use crate::group::{Outcome, Run};
use crate::jobs::job;

fn io(rw: &[Rw]) -> Io {
    Io {
        rw: Some(rw.to_vec()),
        block: Some(Bytes(4096)),
        size: Some(Bytes(1 << 20)),
        ..Io::default()
    }
}

fn done(io: Io) -> Outcome {
    let dir = tempfile::tempdir().expect("temporary directory");
    Run::io(&[0, 0], dir.path(), io).go().expect("runs")
}

/// Checks that the parts are consistent with the total, for rows with `workers` workers.
fn check_parts(row: &PhaseOutcome, workers: u64) -> Effort {
    let (name, effort) = (&row.name, row.effort);
    assert_eq!(effort.workers, workers, "{name}");
    assert!(effort.in_calls.0 > 0, "{name}");
    assert!(effort.in_calls <= effort.active, "{name}: {effort:?}");
    assert!(effort.full <= effort.in_calls, "{name}: {effort:?}");
    let all = effort.active.0 + effort.waited.0;
    let (most, elapsed) = (row.elapsed.0 * workers, row.elapsed);
    assert!(all <= most, "{name}: {effort:?} in {elapsed}");
    effort
}

/// The sum of these rows' service times.
fn recorded(rows: &[&PhaseOutcome]) -> Nanos {
    Nanos(rows.iter().map(|row| row.service.total().0).sum())
}

#[test]
fn one_call_after_the_other_the_time_in_calls_is_that_of_the_latencies() {
    for verify in [false, true] {
        let outcome = done(Io {
            verify,
            fsync: Some(FsyncRule::Never),
            ..io(&[Rw::Write, Rw::Read])
        });
        for name in ["write", "read"] {
            let row = outcome.row(name);
            let effort = check_parts(row, 2);
            assert_eq!(effort.in_calls, recorded(&[row]), "{name}");
            assert_eq!(effort.full, effort.in_calls, "{name}");
        }
    }
}

#[test]
fn rows_that_share_workers_have_all_their_time() {
    let outcome = done(Io {
        fsync: Some(FsyncRule::Every(16)),
        ..io(&[Rw::Rw])
    });
    let rows: Vec<&PhaseOutcome> = outcome.rows.iter().collect();
    assert_eq!(rows.len(), 3);
    for row in &rows {
        assert_eq!(
            check_parts(row, 2).in_calls,
            recorded(&rows),
            "{}",
            row.name
        );
    }
}

#[test]
fn with_many_requests_under_way_their_time_is_counted_once() {
    for engine in ["io_uring", "psync"] {
        let depth = if engine == "psync" { 1 } else { 8 };
        let outcome = done(Io {
            engine: Some(engine.to_owned()),
            depth: Some(depth),
            fsync: Some(FsyncRule::Every(64)),
            ..io(&[Rw::Write, Rw::RandRead])
        });
        let read = outcome.row("randread");
        let effort = check_parts(read, 2);
        assert!(effort.in_calls >= read.service.max(), "{effort:?}");
        // Each worker's sum is divided and truncated separately.
        let sum = recorded(&[read]).0 / u64::from(depth);
        assert!(sum - effort.full.0 <= 2, "{engine}: {effort:?}");
        check_parts(outcome.row("write"), 2);
    }
}

#[test]
fn waits_for_intended_starts_are_no_time_of_the_tool() {
    for depth in [1, 4] {
        let engine = if depth > 1 { "io_uring" } else { "psync" };
        let io = Io {
            engine: Some(engine.to_owned()),
            depth: Some(depth),
            rate: Some(400.0),
            size: Some(Bytes(40 * 4096)),
            ..io(&[Rw::Write, Rw::Read])
        };
        let dir = tempfile::tempdir().expect("temporary directory");
        let run = Run::io(&[0, 0], dir.path(), io).stepped(1_000);
        let outcome = run.go().expect("runs");
        let read = outcome.row("read");
        let effort = check_parts(read, 2);
        // Each rank starts 40 operations 5 ms apart, the first within 5 ms.
        let (least, most) = (2 * 38 * 5_000_000, 2 * 40 * 5_000_000);
        let waited = effort.waited.0;
        assert!(
            (least..=most).contains(&waited),
            "depth {depth}: {effort:?}"
        );
        assert!(effort.active.0 < 2_000_000, "depth {depth}: {effort:?}");
    }
}

/// A job with a delay, a ramp and thinking, and one without.
const THINKING: &str = "--name=a --rw=randrw --bs=4k --size=256k --time_based --runtime=300ms \
    --ramp_time=100ms --startdelay=200ms --thinktime=5ms --thinktime_spin=1ms \
    --fsync=8 --name=b --rw=write --bs=4k --size=64k --ioengine=io_uring --iodepth=4";

/// Checks the times of jobs of [`THINKING`]; returns those of the first.
fn check_thinking(outcome: &Outcome) -> Effort {
    let own: Vec<&PhaseOutcome> = ["a-read", "a-write", "a-sync"]
        .iter()
        .map(|name| outcome.row(name))
        .collect();
    let effort = own[0].effort;
    assert!(own.iter().all(|row| row.effort == effort));
    assert_eq!(effort.workers, 1);
    assert!(effort.in_calls <= effort.active, "{effort:?}");
    // Includes operations before recording started.
    assert!(effort.in_calls > recorded(&own), "{effort:?}");
    let operations: u64 = own[..2].iter().map(|row| row.items).sum();
    let waited = 200_000_000 + 5_000_000 * operations;
    assert!(effort.waited.0 >= waited, "{effort:?} {waited}");
    let other = outcome.row("b-write").effort;
    assert_eq!(other.workers, 1, "it is none of the other job's");
    assert_eq!(other.waited, Nanos(0));
    assert!(other.full <= other.in_calls && other.in_calls <= other.active);
    effort
}

#[test]
fn a_jobs_time_has_its_ramp_and_is_without_its_delay_and_its_thinking() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let run = job(&[0], dir.path(), THINKING).stepped(1_000);
    let effort = check_thinking(&run.go().expect("runs"));
    // From start to end it waits, except for some microseconds.
    assert!(
        effort.waited.0.abs_diff(600_000_000) < 1_000_000,
        "{effort:?}"
    );
}

#[test]
fn behind_a_stonewall_the_latencies_by_then_are_those_of_the_items_by_then() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let meta = Meta {
        depth: Some(0),
        items: Some(500_000),
        files_only: true,
        stonewall: Some(Nanos(1_000_000)),
        phases: Some(vec![PhaseKind::FileRemove]),
        ..Meta::default()
    };
    let hosts = [0, 0, 1];
    let run = Run::meta(&hosts, dir.path(), meta).stepped(2_000);
    let outcome = run.go().expect("runs");
    let create = outcome.row("file-create");
    let wall = create.stonewall.expect("a stonewall");
    let early = create.stonewalled.as_ref().expect("its latencies");
    assert_eq!(early.count(), wall.items);
    assert_eq!(create.service.count(), 3 * wall.most);
    assert!(early.total() <= create.service.total());
    check_parts(create, 3);
    assert_eq!(outcome.row("file-remove").stonewalled, None);
}

#[test]
fn a_row_of_one_operation_for_each_worker_has_no_rate_and_no_first_finisher() {
    let outcome = done(Io {
        fsync: Some(FsyncRule::End),
        ..io(&[Rw::Write])
    });
    let sync = outcome.row("write-fsync");
    assert!(sync.one_each && sync.first_done.is_none());
    assert_eq!((sync.items, &sync.first_failed), (2, &None));
    let write = outcome.row("write");
    assert!(!write.one_each);
    assert!(
        write
            .first_done
            .as_ref()
            .is_some_and(|f| !f.host.is_empty())
    );
}

/// Rank 1 finishes first; `failed` of its 10 operations failed.
fn early(rank: u32, failed: u64) -> WorkerOutcome {
    let mut lane = OpStats::new(OpKind::Stat, false);
    let failed = if rank == 1 { failed } else { 0 };
    for _ in 0..failed {
        let failure = Failure::new(OpKind::Stat, "f", FailureKind::Short);
        lane.failures.add(Rank(rank), &host_name(rank), failure);
    }
    lane.items = 10 - failed;
    lane.service = Latency::new();
    WorkerOutcome {
        started_ns: 0,
        finished: Nanos(if rank == 1 { 1_000 } else { 1_000_000 }),
        busy: true,
        lanes: vec![lane],
        first_lane: 0,
        details: Details::default(),
    }
}

#[test]
fn the_first_finisher_is_named_and_is_none_where_most_of_its_operations_failed() {
    let row = |outcome| reduced_of(3, RowLimits::default(), None, outcome);
    for healthy in [
        row(|rank| early(rank, 0)),
        // Half is not a majority.
        row(|rank| early(rank, 5)),
    ] {
        let first = healthy.first_done.expect("a first finisher");
        assert_eq!(first.elapsed, Nanos(1_000));
        assert_eq!((first.host, healthy.first_failed), (host_name(1), None));
    }
    let broken = row(|rank| early(rank, 6));
    assert_eq!(broken.first_done, None);
    assert_eq!(broken.first_failed, Some(host_name(1)));
}

/// The worker of `rank` starts this late, with work or without.
fn late(rank: u32, ns: i64, busy: bool) -> WorkerOutcome {
    WorkerOutcome {
        started_ns: ns,
        busy,
        ..early(rank, 0)
    }
}

#[test]
fn workers_without_work_have_no_part_in_the_start_skew() {
    let skew = |outcome| reduced_of(3, RowLimits::default(), None, outcome).start_skew;
    let several = skew(|rank| late(rank, [100, 9_000, 400][rank as usize], rank != 1));
    assert_eq!(several, Nanos(300));
    let only = skew(|rank| late(rank, [100, 700, 9_000][rank as usize], rank == 1));
    assert_eq!(only, Nanos(700), "from the common start");
    assert_eq!(skew(|rank| late(rank, 700, false)), Nanos(0));
}

/// Measuring costs on each of two hosts before `run`.
fn costs(run: &Run<'_>) -> Vec<Calibration> {
    let work = run.plan().expect("it can be done").work;
    let world = threads::world(3);
    let runtime = crate::runtime();
    let _entered = runtime.enter();
    let ranks = world.iter().map(|comm| {
        let work = &work;
        let one = async move {
            let names = vec!["one".to_owned(), "two".to_owned()];
            let group = Group::form(comm, names, vec![0, 0, 1], Clocks::one(3), &Quiet, &Quiet);
            let group = group.await.expect("formed");
            on_each_host(&group, work).await.expect("measured")
        };
        Box::pin(one) as Pin<Box<dyn Future<Output = Vec<Calibration>>>>
    });
    let mut all = in_turn(ranks.collect());
    assert!(all[1..].iter().all(Vec::is_empty), "at other ranks");
    all.swap_remove(0)
}

#[test]
fn the_tool_measures_the_loop_of_each_workload_on_every_host_and_touches_nothing() {
    let nowhere = std::path::Path::new("/does/not/exist");
    let hosts = [0, 0, 1];
    let deep = Io {
        engine: Some("io_uring".to_owned()),
        depth: Some(512),
        verify: true,
        time: Some(Nanos(1_000_000_000)),
        rate: Some(1.0),
        ..io(&[Rw::Write])
    };
    let small = Io {
        files: Some(3),
        file_size: Some(Bytes(12_288)),
        size: None,
        verify: true,
        ..io(&[Rw::Write, Rw::Read])
    };
    let meta = Meta {
        items: Some(1),
        ..Meta::default()
    };
    let jobs = "--directory=/does/not/exist --name=a --rw=randwrite --bs=4k --size=4k --direct=1 \
                --rate_iops=1 --verify=crc32c --fsync=1 --thinktime=1s --write_lat_log=x \
                --name=b --rw=read --size=8k";
    for run in [
        Run::io(&hosts, nowhere, io(&[Rw::Write])),
        Run::io(&hosts, nowhere, deep),
        Run::io(&hosts, nowhere, small),
        Run::meta(&hosts, nowhere, meta),
        job(&hosts, nowhere, jobs),
    ] {
        let costs = costs(&run);
        assert_eq!(costs.len(), 2);
        for cost in costs {
            let all = [cost.clock_ns, cost.record_ns, cost.null_op_ns];
            assert!(all.iter().all(|ns| *ns > 0.0), "{cost:?}");
        }
    }
}

mod needs_fuse {
    use super::*;
    use crate::testfs::mount;

    #[test]
    fn the_time_of_closing_is_in_the_calls() {
        let slow = mount(|config| config.latency = "flush=40ms".parse().expect("valid"));
        let spec = Io {
            fsync: Some(FsyncRule::Close),
            ..io(&[Rw::Write])
        };
        let outcome = Run::io(&[0], slow.path(), spec).go().expect("runs");
        slow.end();
        let (write, close) = (outcome.row("write"), outcome.row("write-close"));
        assert!(
            close.service.min() >= Nanos(40_000_000),
            "{}",
            close.service.min()
        );
        let effort = check_parts(write, 1);
        assert_eq!(effort.in_calls, recorded(&[write, close]));
    }

    #[test]
    fn the_file_systems_own_time_is_within_the_calls() {
        let slow = mount(|config| config.latency = "read=3ms".parse().expect("valid"));
        let spec = Io {
            direct: true,
            size: Some(Bytes(20 * 4096)),
            ..io(&[Rw::Write, Rw::Read])
        };
        let outcome = Run::io(&[0, 0], slow.path(), spec).go().expect("runs");
        let snapshot = slow.fs.stats().snapshot();
        let truth = snapshot.kind(Kind::Read).map(|k| &k.latency);
        let truth = truth.expect("it has read");
        // Searching for the run's marker also reads.
        let others = Nanos((truth.count() - 40) * truth.max().0);
        let least = truth.total().since(others);
        let effort = check_parts(outcome.row("read"), 2);
        assert!(effort.in_calls >= least, "{effort:?} {least}");
        assert!(effort.in_calls.0 >= 40 * 3_000_000, "{effort:?}");
        slow.end();
    }
}

mod timing {
    use super::*;
    use crate::clock::tried_again;

    #[test]
    fn a_jobs_time_has_its_ramp_and_is_without_its_delay_and_its_thinking() {
        tried_again(|| {
            let dir = tempfile::tempdir().expect("temporary directory");
            let run = job(&[0], dir.path(), THINKING);
            check_thinking(&run.go().expect("runs"));
        });
    }
}
