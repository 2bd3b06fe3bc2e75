//! Tests common starts with differing clocks, and which ranks share a cache. The machines are
//! threads, and the tests control their clocks.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rbench_comm::{Clocks, Communicator, Identity, threads, topology};
use rbench_core::outcome::Cache;
use rbench_core::{Clock, CpuClock, MonotonicClock, Nanos, OpKind, Rank};
use rbench_exec::meter::Meter;
use rbench_exec::pace::Gate;
use rbench_exec::phase::{OpRow, Phase};
use rbench_exec::round;
use rbench_exec::worker::Runner;
use rbench_exec::{ExecError, Group, caches};
use rbench_plan::spec::Meta;

use crate::crowd::Quiet;
use crate::group::Run;

/// The clock of a simulated machine, with an offset and a rate error. Each reading of any of these
/// clocks advances the true time by a microsecond, and a test can make it jump.
#[derive(Clone)]
struct Made {
    begun: Nanos,
    /// The true time that jumps have added on all machines, ns.
    jumped: Arc<AtomicU64>,
    rate_ppm: f64,
    ahead_ns: u64,
    /// Jumps of this machine's own clock, ns.
    own_jump: Arc<AtomicU64>,
}

impl Made {
    /// Its reading at an instant after the start.
    fn at(&self, truth_ns: f64) -> u64 {
        (truth_ns * (1.0 + self.rate_ppm / 1e6)) as u64 + self.begun.0 + self.ahead_ns
    }

    /// The instant after the start, ns, at which it reads `now`.
    fn truth_of(&self, now: Nanos) -> f64 {
        (now.0 - self.begun.0 - self.ahead_ns) as f64 / (1.0 + self.rate_ppm / 1e6)
    }
}

impl Clock for Made {
    fn now(&self) -> Nanos {
        let truth = self.jumped.fetch_add(1_000, Ordering::SeqCst);
        Nanos(self.at(truth as f64) + self.own_jump.load(Ordering::SeqCst))
    }
}

/// Clocks with these rate errors in ppm, and these leads.
fn clocks(made: &[(f64, u64)]) -> Vec<Made> {
    let (begun, jumped) = (MonotonicClock.now(), Arc::default());
    let one = |(rate_ppm, ahead_ns): &(f64, u64)| Made {
        begun,
        jumped: Arc::clone(&jumped),
        rate_ppm: *rate_ppm,
        ahead_ns: *ahead_ns,
        own_jump: Arc::default(),
    };
    made.iter().map(one).collect()
}

/// Runs `body` at one rank on each machine, all named `node`, with clocks of their own. Returns the
/// results.
fn on_machines<T: Send>(
    clocks: &[Made],
    body: impl AsyncFn(Group<'_>, &Made) -> T + Sync,
) -> Vec<T> {
    let one = |comm: &dyn Communicator| {
        let clock = clocks[comm.rank().0 as usize].clone();
        crate::runtime().block_on(async {
            let machine = format!("boot {}", comm.rank().0);
            let identity = Identity {
                node: "node".to_owned(),
                clock: machine.clone(),
                kernel: machine,
            };
            let topology = topology(comm, &identity).await.expect("all talk");
            let names = topology.hosts.iter().map(|h| h.name.clone()).collect();
            let (host_of, known) = (topology.host_of.clone(), Clocks::of(&topology));
            let mut group = Group::form(comm, names, host_of, known, &Quiet, &Quiet)
                .await
                .expect("formed");
            group.time.clock = Rc::new(clock.clone());
            group.compare_clocks().await.expect("all talk");
            body(group, &clock).await
        })
    };
    std::thread::scope(|scope| {
        let world = threads::world(clocks.len() as u32).into_iter();
        let ranks: Vec<_> = world.map(|comm| scope.spawn(|| one(&{ comm }))).collect();
        let join = |rank: std::thread::ScopedJoinHandle<'_, T>| rank.join().expect("no panic");
        ranks.into_iter().map(join).collect()
    })
}

/// Advances the time of all machines.
async fn pass(group: &Group<'_>, clock: &Made, time_ns: u64) {
    let barrier = || group.quietly(group.world.barrier());
    barrier().await.expect("all talk");
    if group.is_root() {
        clock.jumped.fetch_add(time_ns, Ordering::SeqCst);
    }
    barrier().await.expect("all talk");
}

/// True time between the first and the last machine's start, ns.
fn apart(starts: impl Iterator<Item = f64> + Clone) -> f64 {
    starts.clone().fold(f64::MIN, f64::max) - starts.fold(f64::MAX, f64::min)
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn over_ten_minutes_machines_that_drift_start_together_within_what_is_stated() {
    let hour = 3600 * SECOND;
    let machines = clocks(&[(0.0, 7), (100.0, hour), (-100.0, 5 * SECOND)]);
    let phases = on_machines(&machines, async |group, clock| {
        let mut starts = Vec::new();
        // A phase after 5 s, then one every 50 s.
        for time in [5].into_iter().chain([50; 12]) {
            pass(&group, clock, time * SECOND).await;
            group.keep_time().await.expect("all talk");
            let start = group.common_start().await.expect("all talk");
            let start = start.expect("it is near");
            let stated = group.started().expect("agreed on").error;
            starts.push((clock.truth_of(start), stated));
        }
        // The last comparison shows the error of the starts.
        pass(&group, clock, 50 * SECOND).await;
        group.compare_clocks().await.expect("all talk");
        let drift = group.clocks().drift(group.rank());
        let first = Nanos(machines[0].at(starts[0].0));
        (starts, drift, group.clocks().missed_by(first))
    });
    for phase in 0..13 {
        let starts = phases.iter().map(|(starts, ..)| starts[phase].0);
        let stated = phases[0].0[phase].1;
        let apart = apart(starts);
        // The worst case: two clocks, off in opposite directions.
        assert!(
            apart <= 2.0 * stated.0 as f64,
            "{apart} ns, {stated} stated"
        );
        // 200 ppm would add up to 124 ms; the stated error is smaller.
        assert!(stated < Nanos(40_000_000), "{stated} in phase {phase}");
        assert!(apart < 40e6, "{apart} ns in phase {phase}");
    }
    for ((_, drift, missed), clock) in phases.iter().zip(&machines).skip(1) {
        let drift = drift.expect("compared several times");
        let wrong = (drift.ppm - clock.rate_ppm).abs();
        assert!(
            wrong <= drift.error_ppm + 0.01,
            "{drift:?} of {}",
            clock.rate_ppm
        );
        // The first phase came 5 s after the only comparison until then.
        let first = apart(phases.iter().map(|(starts, ..)| starts[0].0));
        assert!(2.0 * missed.0 as f64 >= first, "{missed} for {first} ns");
    }
}

#[test]
fn machines_of_the_same_name_with_clocks_an_hour_apart_start_together() {
    let machines = clocks(&[(0.0, 0), (0.0, 3600 * SECOND)]);
    let starts = on_machines(&machines, async |group, clock| {
        let names = group.host_names.clone();
        assert_eq!(names, ["node", "node(2)"]);
        assert!(group.is_leader() && group.is_cache_leader());
        let start = group.common_start().await.expect("all talk");
        let error = group.started().expect("agreed on").error;
        (clock.truth_of(start.expect("it is near")), error)
    });
    let apart = apart(starts.iter().map(|(start, _)| *start));
    assert!(
        apart <= starts[0].1.0 as f64 + 1.0,
        "{apart} ns: {starts:?}"
    );
}

/// Runs until it is stopped or the deadline has passed.
struct Endless;

impl Runner for Endless {
    fn run(&mut self, gate: &Gate, _: &mut Meter, _: Option<u64>) {
        while !gate.closed(CpuClock::KERNEL.now()) {
            std::thread::yield_now();
        }
    }

    fn issued(&self, _: &Meter) -> u64 {
        1
    }

    fn planned(&self) -> u64 {
        1
    }
}

#[test]
fn a_clock_that_jumps_ends_the_run_with_the_name_of_its_host() {
    for (rank, jump_s, way) in [(1, 3600, "back"), (1, 11, "back"), (0, 30, "ahead")] {
        let machines = clocks(&[(0.0, 0), (0.0, 0)]);
        let ends = on_machines(&machines, async |group, clock| {
            // The next comparison, which would correct it, is a minute away.
            group.compare_clocks().await.expect("all talk");
            if group.rank() == Rank(rank) {
                clock.own_jump.store(jump_s * SECOND, Ordering::SeqCst);
            }
            let rows = vec![OpRow::new(OpKind::Stat, "file-stat", "File stat")];
            let phase = Phase {
                // Only should nobody notice.
                deadline: Some(Nanos(60 * SECOND)),
                ..Phase::new("File stat", rows, 1, Arc::new(|_| Ok(Box::new(Endless))))
            };
            round::run(&group, &phase).await.map(drop)
        });
        for end in ends {
            let Err(ExecError::SetUp(message)) = end else {
                panic!("{end:?}");
            };
            let far = message
                .strip_prefix("on node(2): the common start is ")
                .and_then(|rest| rest.split_once(&format!(" s {way} ")))
                .unwrap_or_else(|| panic!("not {way}: {message}"));
            let far_s: f64 = far.0.parse().expect("a number");
            assert!((far_s - jump_s as f64).abs() < 0.2, "{message}");
        }
    }
}

/// The cache numbers of ranks on hosts `host_of` with these kernels and places.
fn found(host_of: &[u32], ranks: &[(&str, Vec<PathBuf>)]) -> Vec<u32> {
    let one = |comm: &dyn Communicator| {
        let (kernel, places) = ranks[comm.rank().0 as usize].clone();
        let names = (0..ranks.len()).map(|host| format!("host{host}")).collect();
        let clocks = Clocks::one(comm.size());
        crate::runtime().block_on(async {
            let group = Group::form(comm, names, host_of.to_vec(), clocks, &Quiet, &Quiet);
            let group = group.await.expect("formed");
            let cache_of = caches(&group, kernel, places).await.expect("all talk");
            let group = group.with_caches(cache_of.clone());
            let lowest = cache_of
                .iter()
                .position(|c| *c == cache_of[comm.rank().0 as usize]);
            assert_eq!(
                group.is_cache_leader(),
                lowest == Some(comm.rank().0 as usize)
            );
            cache_of
        })
    };
    let mut all: Vec<Vec<u32>> = std::thread::scope(|scope| {
        let world = threads::world(ranks.len() as u32).into_iter();
        let ranks: Vec<_> = world.map(|comm| scope.spawn(|| one(&{ comm }))).collect();
        ranks
            .into_iter()
            .map(|rank| rank.join().expect("no panic"))
            .collect()
    });
    assert!(all.windows(2).all(|two| two[0] == two[1]), "{all:?}");
    all.swap_remove(Rank(0).0 as usize)
}

#[test]
fn ranks_share_a_cache_where_one_kernel_has_one_file_system() {
    let dir = tempfile::tempdir().expect("a directory");
    let here = || vec![dir.path().to_owned()];
    let below = || vec![dir.path().join("not/yet/there")];
    let elsewhere = || vec![PathBuf::from("/proc")];
    // Two containers on one mount; another mount; another machine, which may number its file
    // systems alike.
    let ranks = [
        ("boot 1", here()),
        ("boot 1", below()),
        ("boot 1", elsewhere()),
        ("boot 2", here()),
    ];
    assert_eq!(found(&[0, 1, 2, 3], &ranks), [0, 0, 1, 2]);
    // A rank that works in both places connects the caches of the others.
    let both = [here(), elsewhere()].concat();
    let ranks = [("k", here()), ("k", elsewhere()), ("k", both)];
    assert_eq!(found(&[0, 1, 2], &ranks), [0, 0, 0]);
    // Without a place, each host has its own cache.
    let ranks = ["k", "k", "k"].map(|kernel| (kernel, Vec::new()));
    assert_eq!(found(&[0, 1, 0], &ranks), [0, 1, 0]);
}

/// Expected cache state when each of two hosts stats the other's files.
fn stat_of_the_others(dir: &Path, caches: Vec<u32>) -> Option<Cache> {
    let meta = Meta {
        items: Some(1),
        ..Meta::default()
    };
    let mut run = Run::meta(&[0, 1], dir, meta);
    run.common.shift = Some(1);
    run.caches = caches;
    run.go().expect("the run ends").row("file-stat").cache
}

#[test]
fn what_the_other_container_on_a_kernel_made_may_be_in_memory() {
    let dir = crate::on_disk();
    let check = |caches: &[u32], expect| {
        assert_eq!(stat_of_the_others(dir.path(), caches.to_vec()), expect);
    };
    check(&[0, 1], Some(Cache::Cold));
    // No measurement determines who answered.
    check(&[0, 0], None);
}
