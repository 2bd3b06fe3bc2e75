//! Tests the reduction with more ranks and hosts than rows. Compares reductions of generated
//! outcomes with sums over all of them; hosts are interleaved.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake};

use rbench_comm::{Clocks, threads};
use rbench_core::effort::Effort;
use rbench_core::outcome::{Details, OpStats, PhaseOutcome, RankOutcome, Stonewall, WorkerOutcome};
use rbench_core::spread::{self, NAMED_MAX, RowLimits};
use rbench_core::timeline::{INTERVAL, TimelineRecorder};
use rbench_core::{Failure, FailureKind, Latency, Nanos, OpKind, Rank};
use rbench_exec::phase::{OpRow, Phase};
use rbench_exec::reduce::{Part, reduce};
use rbench_exec::{Group, Interrupts, Progress, Show};

/// Shows nothing and sends no signals.
pub struct Quiet;

impl Interrupts for Quiet {
    fn next(&self) -> Pin<Box<dyn Future<Output = i32> + '_>> {
        Box::pin(std::future::pending())
    }
}

impl Show for Quiet {
    fn step(&self, _: &str) {}
    fn phase(&self, _: &str, _: Option<u64>) {}
    fn progress(&self, _: Progress) {}
    fn stopping(&self) {}
    fn trouble(&self, _: &str) {}
}

/// Polls all `ranks` in turn until each is ready. A round without progress is a deadlock.
pub fn in_turn<T>(mut ranks: Vec<Pin<Box<dyn Future<Output = T> + '_>>>) -> Vec<T> {
    struct Nobody;
    impl Wake for Nobody {
        fn wake(self: Arc<Self>) {}
    }
    let waker = Arc::new(Nobody).into();
    let mut context = Context::from_waker(&waker);
    let mut results: Vec<Option<T>> = ranks.iter().map(|_| None).collect();
    for _turn in 0..200 {
        for (rank, result) in ranks.iter_mut().zip(&mut results) {
            if result.is_none()
                && let Poll::Ready(value) = pin!(rank).poll(&mut context)
            {
                *result = Some(value);
            }
        }
        if results.iter().all(Option::is_some) {
            return results.into_iter().flatten().collect();
        }
    }
    panic!("the ranks wait for each other");
}

/// The outcome of `rank`: rank 7 did nothing, every hundredth rank had failures, 511 was slow.
fn outcome(rank: u32) -> WorkerOutcome {
    let mut lane = OpStats::new(OpKind::Create, true);
    let mut line = TimelineRecorder::new(INTERVAL, true);
    let mut at = 0;
    let items = if rank == 7 {
        0
    } else {
        20 + u64::from(rank) % 13
    };
    for item in 0..items {
        let slow = if rank == 511 { 100 } else { 1 };
        let ns = slow * (50_000 + (item * 7919 + u64::from(rank) * 104_729) % 40_000);
        at += ns;
        lane.service.record(Nanos(ns));
        if let Some(response) = &mut lane.response {
            response.record(Nanos(ns + 5));
        }
        line.done(Nanos(at), 10, Nanos(ns), Some(Nanos(ns + 5)));
    }
    lane.timeline = line.finish();
    (lane.items, lane.bytes) = (items, items * 10);
    if rank % 100 == 99 {
        for _ in 0..rank {
            let failure = Failure::new(OpKind::Create, format!("f{rank}"), FailureKind::Short);
            lane.failures.add(Rank(rank), &host_name(rank), failure);
        }
    }
    let n = u64::from(rank);
    lane.effort = Effort::from_words([1, 7 * n, n, 6 * n, 5 * n, n % 3, 2 * n]);
    lane.given_up_at = (!rank.is_multiple_of(3)).then_some(Nanos(5_000 - n));
    if stonewalled(rank) {
        let mut early = Latency::new();
        (0..items / 2).for_each(|item| early.record(Nanos(1_000 * (item + n))));
        lane.stonewalled = Some(early);
    }
    WorkerOutcome {
        started_ns: 0,
        finished: Nanos(at),
        busy: items > 0,
        lanes: vec![lane],
        details: Details::default(),
        first_lane: 0,
    }
}

/// Returns true if the worker of `rank` saw the stonewall.
fn stonewalled(rank: u32) -> bool {
    !rank.is_multiple_of(10)
}

const RANKS: u32 = 1100;
const HOSTS: u32 = 275;

pub fn host_name(rank: u32) -> String {
    format!("host{}", rank % HOSTS)
}

fn phase() -> Phase {
    let label = "File creation";
    let rows = vec![OpRow::new(OpKind::Create, "file-create", label)];
    Phase {
        open_loop: true,
        ..Phase::new(label, rows, 1, Arc::new(|_| unreachable!("nothing runs")))
    }
}

/// The row of a phase of the first `ranks` ranks, as reduced at rank 0.
fn reduced(ranks: u32, rows: RowLimits) -> PhaseOutcome {
    let stonewall = Stonewall {
        deadline: Nanos(1),
        stopped: Nanos(1),
        items: 2,
        least: 3,
        most: 4,
    };
    reduced_of(ranks, rows, Some(stonewall), outcome)
}

/// Like `reduced`, for workers with these outcomes.
pub fn reduced_of(
    ranks: u32,
    rows: RowLimits,
    stonewall: Option<Stonewall>,
    outcome: fn(u32) -> WorkerOutcome,
) -> PhaseOutcome {
    let phase = phase();
    let world = threads::world(ranks);
    let names: Vec<String> = (0..ranks.min(HOSTS)).map(host_name).collect();
    let host_of: Vec<u32> = (0..ranks).map(|rank| rank % HOSTS).collect();
    let runtime = crate::runtime();
    let _entered = runtime.enter();
    let ranks = (0..).zip(&world).map(|(rank, comm)| {
        let (phase, names, host_of) = (&phase, names.clone(), host_of.clone());
        let one = async move {
            let mut group = Group::form(comm, names, host_of, Clocks::one(RANKS), &Quiet, &Quiet)
                .await
                .expect("formed");
            group.rows = rows;
            let part = Part {
                outcomes: vec![outcome(rank)],
                cpu: Nanos(u64::from(rank) * 1000),
                stonewall,
                complete: true,
            };
            reduce(&group, phase, part).await.expect("reduced")
        };
        Box::pin(one) as Pin<Box<dyn Future<Output = Vec<PhaseOutcome>>>>
    });
    let mut rows = in_turn(ranks.collect());
    assert!(rows[1..].iter().all(Vec::is_empty), "rows at other ranks");
    rows.swap_remove(0).swap_remove(0)
}

fn rank_outcome(rank: u32, outcome: &WorkerOutcome) -> RankOutcome {
    let lane = &outcome.lanes[0];
    RankOutcome {
        rank: Rank(rank),
        host: host_name(rank),
        items: lane.items,
        errors: lane.failures.total(),
        elapsed: outcome.finished,
        p50: lane.service.quantile(0.5),
        p99: lane.service.quantile(0.99),
        max: lane.service.max(),
        cpu: Nanos(u64::from(rank) * 1000),
    }
}

#[test]
fn a_crowd_of_ranks_and_hosts_adds_up_exactly_and_its_outliers_are_named() {
    let row = reduced(RANKS, RowLimits::default());
    let outcomes: Vec<WorkerOutcome> = (0..RANKS).map(outcome).collect();
    let mut whole = OpStats::new(OpKind::Create, true);
    outcomes.iter().for_each(|o| whole.merge(&o.lanes[0]));
    assert_eq!((row.items, row.bytes), (whole.items, whole.bytes));
    assert_eq!(row.service, whole.service);
    assert_eq!(row.response, whole.response);
    assert_eq!(row.timeline, whole.timeline);
    assert_eq!(row.failures, whole.failures);
    assert_eq!(row.effort, whole.effort);
    assert_eq!(row.stonewalled, whole.stonewalled);
    assert_eq!(row.given_up_at, whole.given_up_at);
    let busy = outcomes.iter().filter(|o| o.busy);
    let first = busy.map(|o| o.finished).min();
    assert_eq!(row.first_done.as_ref().map(|f| f.elapsed), first);

    let gaps = (0..).zip(&outcomes).filter_map(|(rank, o)| {
        let gap = o.lanes[0].timeline.longest_gap(Nanos(0))?;
        Some((gap.length, std::cmp::Reverse(rank)))
    });
    let longest = row
        .longest_gap
        .as_ref()
        .map(|g| (g.gap.length, std::cmp::Reverse(g.rank.0)));
    assert_eq!(longest, gaps.max());
    assert_eq!(longest.map(|(_, rank)| rank.0), Some(511), "the slow one");

    let all: Vec<RankOutcome> = (0..)
        .zip(&outcomes)
        .map(|(r, o)| rank_outcome(r, o))
        .collect();
    let (named, spread) = spread::of_ranks(&all);
    assert_eq!(row.crowd, Some(spread));
    let named: Vec<RankOutcome> = named.iter().map(|i| all[*i].clone()).collect();
    assert_eq!(row.ranks, named);
    assert!(named.len() <= NAMED_MAX);
    for rank in [7, 99, 511, 1099] {
        assert!(named.iter().any(|r| r.rank.0 == rank), "rank {rank}");
    }

    let hosts = row.host_crowd.expect("a crowd");
    assert_eq!(hosts.hosts, u64::from(HOSTS));
    assert!(row.hosts.len() <= NAMED_MAX);
    let slow = &outcomes[511];
    assert_eq!(hosts.elapsed.max, slow.finished);
    let mut items: Vec<u64> = vec![0; HOSTS as usize];
    for (rank, outcome) in outcomes.iter().enumerate() {
        items[rank % HOSTS as usize] += outcome.lanes[0].items;
    }
    items.sort_unstable();
    assert_eq!((hosts.items.min, hosts.items.p50), (items[0], items[137]));
    for host in &row.hosts {
        let mut expected = OpStats::new(OpKind::Create, true);
        for (rank, outcome) in (0..).zip(&outcomes) {
            if host_name(rank) == host.host {
                expected.merge(&outcome.lanes[0]);
            }
        }
        assert_eq!(host.service, expected.service, "{}", host.host);
        let failed = expected.failures.total();
        assert_eq!((host.items, host.errors), (expected.items, failed));
        assert_eq!(host.response, expected.response, "{}", host.host);
        // Gaps shorter than two of the common bins are not detected.
        expected.timeline.widen(row.timeline.power());
        let gap = expected.timeline.longest_gap(Nanos(0));
        assert!(gap.is_some() && host.gap == gap, "{}: {gap:?}", host.host);
    }
    assert!(row.hosts.iter().any(|host| host.host == host_name(511)));
}

#[test]
fn as_many_ranks_and_hosts_as_may_have_rows_have_them_and_no_more() {
    let rows = RowLimits { ranks: 8, hosts: 8 };
    let whole = reduced(8, rows);
    assert_eq!((whole.crowd, whole.host_crowd), (None, None));
    assert_eq!((whole.ranks.len(), whole.hosts.len()), (8, 8));
    let ranks: Vec<u32> = whole.ranks.iter().map(|r| r.rank.0).collect();
    assert_eq!(ranks, [0, 1, 2, 3, 4, 5, 6, 7]);
    let hosts: Vec<&str> = whole.hosts.iter().map(|h| h.host.as_str()).collect();
    assert_eq!(hosts[..2], ["host0", "host1"]);
    let crowd = reduced(9, rows);
    assert_eq!(crowd.crowd.map(|c| c.ranks), Some(9));
    assert_eq!(crowd.host_crowd.map(|c| c.hosts), Some(9));
}
