//! The reduction, the result file and the report of thousands of simulated ranks. The ranks are
//! tasks of one thread that communicate through the test communicator. Their outcomes are
//! generated; the reduction and the output are the program's own code.
//!
//! `cargo bench -p rbench-benches --bench scale -- RANKS HOSTS
//! PHASES`; the defaults are 4096 ranks on 128 hosts in 12 phases. The last line of stdout is JSON.
//! CPU and wall time are those of all ranks together: on one thread both are the sum. Memory is the
//! maximum that rank 0 held while it reduced a phase. It includes results of earlier phases, but
//! not rank 0's own outcome: the allocator counts while rank 0 is polled. docs/dev/scaling.md draws
//! the conclusions.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "its results are read there"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "it reads what the kernel says of this process"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::time::{Duration, Instant};

use rbench_comm::Clocks;
use rbench_comm::threads::{self, ThreadsCommunicator};
use rbench_core::outcome::{Details, OpStats, PhaseOutcome, WorkerOutcome};
use rbench_core::timeline::{INTERVAL, TimelineRecorder};
use rbench_core::{Failure, FailureKind, Nanos, OpKind, Rank};
use rbench_exec::phase::{OpRow, Phase};
use rbench_exec::reduce::{Part, reduce};
use rbench_exec::{Group, Interrupts, Progress, Show};
use rbench_report::schema::{Calibration, Forms, Host, Run, SCHEMA, Target, World};
use rbench_report::{PhaseResult, RunResult, View, json, text};

#[global_allocator]
static COUNTING: Counting = Counting;

/// An allocator that counts the memory held by this thread.
struct Counting;

thread_local! {
    static HELD_BYTES: Cell<i64> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<i64> = const { Cell::new(0) };
}

fn count(bytes: i64) {
    HELD_BYTES.set(HELD_BYTES.get() + bytes);
    PEAK_BYTES.set(PEAK_BYTES.get().max(HELD_BYTES.get()));
}

// SAFETY: every call is forwarded to the system's allocator unchanged; the counters are plain cells
// that neither allocate nor are dropped.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller fulfils the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller fulfils the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller fulfils the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Resources that rank 0 used.
#[derive(Default)]
struct AtRoot {
    held_bytes: i64,
    peak_bytes: i64,
    busy: Duration,
}

impl AtRoot {
    fn at_work<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let before = HELD_BYTES.get();
        PEAK_BYTES.set(before);
        let started = Instant::now();
        let result = work();
        self.busy += started.elapsed();
        let peak = self.held_bytes + PEAK_BYTES.get() - before;
        self.peak_bytes = self.peak_bytes.max(peak);
        self.held_bytes += HELD_BYTES.get() - before;
        result
    }
}

type OneRank<'r, T> = Pin<Box<dyn Future<Output = T> + 'r>>;

/// Polls all ranks, rank 0 first, until each is ready. No wake-ups are needed: a collective is
/// complete once all ranks were polled.
fn in_turn<T>(mut ranks: Vec<OneRank<'_, T>>, root: &mut AtRoot) -> Vec<T> {
    struct Nobody;
    impl Wake for Nobody {
        fn wake(self: Arc<Self>) {}
    }
    let waker = Arc::new(Nobody).into();
    let mut context = Context::from_waker(&waker);
    let mut results: Vec<Option<T>> = ranks.iter().map(|_| None).collect();
    while results.iter().any(Option::is_none) {
        for (number, (rank, result)) in ranks.iter_mut().zip(&mut results).enumerate() {
            if result.is_some() {
                continue;
            }
            let mut poll = || rank.as_mut().poll(&mut context);
            let polled = match number {
                0 => root.at_work(poll),
                _ => poll(),
            };
            if let Poll::Ready(value) = polled {
                *result = Some(value);
            }
        }
    }
    results.into_iter().flatten().collect()
}

struct Quiet;

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

/// Numbers of ranks, hosts and phases.
struct Size {
    ranks: u32,
    hosts: u32,
    phases: u32,
}

impl Size {
    /// Reads the numbers from the command line; cargo adds other arguments.
    fn from_arguments() -> Size {
        let mut numbers = std::env::args().filter_map(|word| word.parse().ok());
        let mut next = |otherwise: u32| numbers.next().unwrap_or(otherwise).max(1);
        let (ranks, hosts) = (next(4096), next(128));
        Size {
            ranks,
            hosts: hosts.min(ranks),
            phases: next(12),
        }
    }

    fn host_of(&self, rank: u32) -> u32 {
        (u64::from(rank) * u64::from(self.hosts) / u64::from(self.ranks)) as u32
    }
}

fn host_name(host: u32) -> String {
    format!("client{host:04}")
}

/// Operations of each rank in a phase.
const ITEMS: u64 = 5000;

/// Factors of service times: the logarithm is bell-shaped, from a tenth to ten times the base.
fn factors(random: &mut impl FnMut() -> u64) -> Vec<f64> {
    let mut unit = || (random() >> 11) as f64 / (1_u64 << 53) as f64;
    let mut factor = |_| {
        let bell = (0..6).map(|_| unit()).sum::<f64>() - 3.0;
        (bell * 0.75).exp()
    };
    (0..1 << 14).map(&mut factor).collect()
}

/// splitmix64
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// The outcome of `rank` in phase number `phase`. One rank in a thousand has an error.
fn outcome(phase: u32, rank: u32, factors: &[f64]) -> WorkerOutcome {
    let mut random = random(u64::from(phase) << 32 | u64::from(rank));
    let base_ns = 200_000.0 * f64::from(1 + phase % 7);
    let mut lane = OpStats::new(OpKind::Create, false);
    let mut line = TimelineRecorder::new(INTERVAL, false);
    let mut at = 0;
    for _ in 0..ITEMS {
        let ns = (base_ns * factors[random() as usize % factors.len()]) as u64;
        at += ns;
        lane.service.record(Nanos(ns));
        line.done(Nanos(at), 0, Nanos(ns), None);
    }
    lane.timeline = line.finish();
    lane.items = ITEMS;
    if rank % 1000 == 999 {
        let path = format!("rbench.d/{rank}/file.4711");
        let failure = Failure::new(OpKind::Create, path, FailureKind::Short);
        let host = String::from("client");
        lane.failures.add(Rank(rank), &host, failure);
    }
    WorkerOutcome {
        started_ns: i64::from(rank % 900),
        finished: Nanos(at),
        busy: true,
        lanes: vec![lane],
        details: Details::default(),
        first_lane: 0,
    }
}

fn phase(number: u32) -> Phase {
    let name = format!("phase-{number}");
    let rows = vec![OpRow::new(OpKind::Create, &name, &name)];
    Phase::new(name, rows, 1, Arc::new(|_| unreachable!("nothing runs")))
}

fn form<'g>(world: &'g [ThreadsCommunicator], size: &Size) -> Vec<Group<'g>> {
    let names: Vec<String> = (0..size.hosts).map(host_name).collect();
    let host_of: Vec<u32> = (0..size.ranks).map(|rank| size.host_of(rank)).collect();
    let clocks = Clocks::one(size.ranks);
    let ranks = world.iter().map(|comm| {
        let (names, host_of) = (names.clone(), host_of.clone());
        let clocks = clocks.clone();
        Box::pin(async move {
            let group = Group::form(comm, names, host_of, clocks, &Quiet, &Quiet);
            group.await.expect("nobody has gone")
        }) as OneRank<'g, Group<'g>>
    });
    in_turn(ranks.collect(), &mut AtRoot::default())
}

/// Cost of all phases.
#[derive(Default)]
struct Reduction {
    cpu: Duration,
    wall: Duration,
    root: AtRoot,
    results: Vec<PhaseResult>,
}

fn cpu() -> Duration {
    rbench_sys::limits::process_cpu().map_or(Duration::ZERO, Duration::from)
}

fn reduce_phase(groups: &[Group<'_>], number: u32, factors: &[f64], all: &mut Reduction) {
    let phase = &phase(number);
    let ranks = groups.iter().map(|group| {
        let part = Part {
            outcomes: vec![outcome(number, group.rank().0, factors)],
            cpu: Nanos(1_000_000),
            stonewall: None,
            complete: true,
        };
        Box::pin(async move {
            let rows = reduce(group, phase, part);
            rows.await.expect("nobody has gone")
        }) as OneRank<'_, Vec<PhaseOutcome>>
    });
    let ranks = ranks.collect();
    // The size of the earlier results at rank 0, about the size of their JSON.
    let kept: usize = all.results.iter().map(|r| json::pretty(r).len()).sum();
    let (cpu_before, started) = (cpu(), Instant::now());
    let mut root = AtRoot {
        held_bytes: kept as i64,
        ..AtRoot::default()
    };
    let mut rows = in_turn(ranks, &mut root);
    all.cpu += cpu() - cpu_before;
    all.wall += started.elapsed();
    all.root.busy += root.busy;
    all.root.peak_bytes = all.root.peak_bytes.max(root.peak_bytes);
    all.results
        .extend(rows.swap_remove(0).iter().map(PhaseResult::from));
}

fn result(size: &Size, phases: Vec<PhaseResult>) -> RunResult {
    let mut hosts: Vec<Host> = (0..size.hosts)
        .map(|host| Host {
            name: host_name(host),
            ranks: Vec::new(),
            kernel: "Linux 6.1.0-28-amd64".to_owned(),
            cpus: 64,
            clock_offset_ns: -4711,
            clock_error_ns: 2500,
            clock: None,
            caches: vec![host],
            surroundings: None,
        })
        .collect();
    for rank in 0..size.ranks {
        hosts[size.host_of(rank) as usize].ranks.push(rank);
    }
    RunResult {
        schema: SCHEMA.to_owned(),
        run: Run {
            id: "simulated".to_owned(),
            command: vec!["rbench".to_owned()],
            version: "0".to_owned(),
            started: "2025-01-02T03:14:15Z".to_owned(),
            finished: None,
            program: None,
            utc_offset_s: 0,
            seed: 1,
            labels: Default::default(),
        },
        world: World {
            communicator: "threads".to_owned(),
            ranks: size.ranks,
            threads_per_rank: 1,
            hosts,
        },
        target: Target {
            path: "/mnt".to_owned(),
            fs_type: None,
            mount_source: None,
            mount_point: None,
            mount_options: None,
            embedded: false,
            shared: Some(true),
            space: None,
            round_trip: Vec::new(),
            data_sizes: Vec::new(),
        },
        calibration: Calibration {
            clock_ns: 22.0,
            record_ns: 9.0,
            null_op_ns: 35.0,
            hosts: Vec::new(),
        },
        spec: Default::default(),
        marks: Vec::new(),
        dead_mounts: Vec::new(),
        client_counters: Vec::new(),
        repetition: None,
        settings: Default::default(),
        replays: Vec::new(),
        phases,
        summary: Vec::new(),
        warnings: Vec::new(),
        complete: true,
        forms: Forms::default(),
    }
}

/// Peak memory of this process, over all ranks.
fn peak_of_all() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.map_or_else(String::new, |line| {
        line.split_whitespace().skip(1).collect()
    })
}

fn main() {
    let size = Size::from_arguments();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().build().expect("a runtime");
    let _entered = runtime.enter();
    let world = threads::world(size.ranks);
    let started = Instant::now();
    let groups = form(&world, &size);
    let formed_s = started.elapsed().as_secs_f64();

    let factors = factors(&mut random(1));
    let mut all = Reduction::default();
    for number in 0..size.phases {
        reduce_phase(&groups, number, &factors, &mut all);
    }
    let Reduction {
        cpu,
        wall,
        root,
        results,
    } = all;
    let used = results.iter().map(|r| r.latency.service.latency());
    let used = used.map(|h| h.expect("our own").iter_recorded().count());
    let used = used.max().unwrap_or(0);

    let started = Instant::now();
    let mut result = result(&size, results);
    rbench_report::finish(&mut result);
    let file = json::render(&result);
    let report = text::render(&result, View::default());
    let report_s = started.elapsed().as_secs_f64();

    println!(
        "{} ranks on {} hosts, {} phases, up to {used} buckets used",
        size.ranks, size.hosts, size.phases
    );
    println!("forming the group {formed_s:.3} s (all ranks one after the other)");
    println!(
        "reduction {:.3} s of CPU, {:.3} s wall; {:.3} s of them at rank 0",
        cpu.as_secs_f64(),
        wall.as_secs_f64(),
        root.busy.as_secs_f64()
    );
    println!(
        "rank 0 held {} bytes at most; the process, all ranks and their outcomes: {}",
        root.peak_bytes,
        peak_of_all()
    );
    println!(
        "result file {} bytes, report {} bytes, both in {report_s:.3} s",
        file.len(),
        report.len()
    );
    println!(
        "{{\"reduction_cpu_s\":{:.4},\"reduction_wall_s\":{:.4},\"memory_bytes\":{},\"result_bytes\":{},\"report_s\":{report_s:.4}}}",
        cpu.as_secs_f64(),
        wall.as_secs_f64(),
        root.peak_bytes,
        file.len()
    );
}
