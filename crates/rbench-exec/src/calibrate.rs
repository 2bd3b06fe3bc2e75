//! What the tool itself costs on each host: a clock reading, recording a
//! latency, and one operation of the loop that the workload runs, with nothing
//! behind it: metadata operations on a file system that is none, blocks and
//! jobs with the engine `null`.

use std::sync::Arc;

use rbench_core::timeline::INTERVAL;
use rbench_core::wire::{Reader, Writer};
use rbench_core::{Bytes, Clock as _, Counter, CpuClock, Latency, Nanos, OpKind, Rank};
use rbench_plan::io::{FsyncRule, Layout, Rw, fresh_data};
use rbench_plan::jobs::{BlockSizes, Distribution, JobPlan};
use rbench_plan::{IoPlan, Work};

use crate::blocks::{self, BlockRunner};
use crate::group::{ExecError, Group};
use crate::meter::{ErrorBudget, Meter, Tally};
use crate::pace::{Gate, StopFlag, Waits};
use crate::worker::Runner;
use crate::{io, mix, ops};

const ROUNDS: u64 = 50_000;
/// The fastest of so many tries counts: what disturbs only makes it slower.
const TRIES: u32 = 5;
/// More requests at a time only take memory here.
const DEPTH_MAX: u32 = 64;
/// Length of a block: there is nothing that would move it.
const BLOCK: u64 = 4096;

/// Costs in ns.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Calibration {
    /// One clock reading.
    pub clock_ns: f64,
    /// Recording one latency.
    pub record_ns: f64,
    /// One operation of the loop that runs with nothing behind it, fully
    /// measured.
    pub null_op_ns: f64,
}

/// What the tool costs on each host, at rank 0 in the order of the hosts; none
/// elsewhere. One rank of each host measures while the others wait, so that
/// they do not disturb it.
///
/// # Errors
/// When the ranks cannot talk.
pub async fn on_each_host(group: &Group<'_>, work: &Work) -> Result<Vec<Calibration>, ExecError> {
    let mut message = Writer::default();
    if group.is_leader() {
        let Calibration {
            clock_ns,
            record_ns,
            null_op_ns,
        } = calibrate(&group.counter, work);
        let host = group.host_of[group.rank().0 as usize];
        let costs = [clock_ns, record_ns, null_op_ns].map(f64::to_bits);
        message.number(u64::from(host)).numbers(&costs);
    }
    let all = group.world.gather(Rank(0), message.finish());
    let all = group.quietly(all).await?.unwrap_or_default();
    let mut told: Vec<(u64, Calibration)> = all.iter().filter_map(|m| read(m)).collect();
    told.sort_by_key(|(host, _)| *host);
    Ok(told.into_iter().map(|(_, costs)| costs).collect())
}

fn read(message: &[u8]) -> Option<(u64, Calibration)> {
    let mut reader = Reader::new(message);
    let host = reader.number()?;
    let costs: [u64; 3] = *reader.numbers()?.as_array()?;
    let [clock_ns, record_ns, null_op_ns] = costs.map(f64::from_bits);
    let costs = Calibration {
        clock_ns,
        record_ns,
        null_op_ns,
    };
    Some((host, costs))
}

/// Measures with the clock that workers read; takes about 50 ms.
pub fn calibrate(counter: &Counter, work: &Work) -> Calibration {
    let clock = counter.clock_in_a_moment();
    let record = || {
        let mut latency = Latency::new();
        let took = timed(clock, || {
            for i in 0..ROUNDS {
                latency.record(std::hint::black_box(Nanos(10_000 + (i & 0xfff))));
            }
        });
        std::hint::black_box(latency.max());
        took
    };
    let read = || {
        timed(clock, || {
            for _ in 0..ROUNDS {
                std::hint::black_box(clock.now());
            }
        })
    };
    Calibration {
        clock_ns: best(read),
        record_ns: best(record),
        null_op_ns: best(|| null_operations(clock, work)),
    }
}

fn timed(clock: CpuClock, work: impl FnOnce()) -> Nanos {
    let begun = clock.now();
    work();
    clock.now().since(begun)
}

fn best(mut once: impl FnMut() -> Nanos) -> f64 {
    let fastest = (0..TRIES).map(|_| once().0).min().unwrap_or(0);
    fastest as f64 / ROUNDS as f64
}

/// The loop of `work` with nothing behind it, for so many operations; `None`
/// where it cannot be made here (the run will say why).
fn bare_loop(work: &Work, operations: u64) -> Option<Box<dyn Runner>> {
    match work {
        Work::Meta(meta) => ops::over_nothing(meta, operations).ok(),
        Work::Io(plan) if plan.small.is_some() => io::over_nothing(plan, operations).ok(),
        Work::Io(plan) => of_blocks(&plan.rounds(0, 0, (0, 1), 1).first()?.job, operations),
        Work::Mix(mix) => mix::over_nothing(mix, operations).ok(),
        Work::Find(_) | Work::Replay(_) => None,
        Work::Jobs(plan) => of_blocks(plan.rounds.iter().flatten().next()?, operations),
    }
}

fn of_blocks(job: &JobPlan, operations: u64) -> Option<Box<dyn Runner>> {
    let depth = job.depth.clamp(1, DEPTH_MAX);
    let made = blocks::over_nothing(job, (operations, BLOCK), depth);
    made.ok().map(|runner| Box::new(runner) as Box<dyn Runner>)
}

/// What a loop that starts now runs with.
fn surroundings(clock: CpuClock) -> (Gate, Meter) {
    let start = clock.now();
    let gate = Gate {
        clock,
        start,
        deadline: None,
        stop: StopFlag::default(),
        waits: Waits::default(),
    };
    let mut meter = Meter::new(
        Rank(0),
        "",
        &[OpKind::Read],
        false,
        INTERVAL,
        Arc::new(Tally::default()),
        ErrorBudget::default(),
    );
    meter.start_at(start);
    (gate, meter)
}

/// A block loop of `operations` sequential reads with the null engine, ready
/// to run, and what it runs with.
pub fn null_loop(clock: CpuClock, operations: u64) -> Option<(BlockRunner, Gate, Meter)> {
    let (gate, meter) = surroundings(clock);
    let plan = IoPlan {
        phases: vec![Rw::Read],
        mix_read: 100,
        sizes: BlockSizes::Fixed(BLOCK),
        distribution: Distribution::Uniform,
        size: Bytes(BLOCK),
        small: None,
        layout: Layout::PerWorker,
        engine: "null".to_owned(),
        depth: 1,
        direct: false,
        fsync: FsyncRule::Never,
        time: None,
        ramp: Nanos(0),
        think: Nanos(0),
        open_loop: None,
        verify: false,
        ack_journal: None,
        buffers: fresh_data(0, 0),
        verify_threads: 0,
        steady: None,
    };
    let round = plan.rounds(0, 0, (0, 1), 1).into_iter().next()?;
    let runner = blocks::over_nothing(&round.job, (operations, BLOCK), 1).ok()?;
    Some((runner, gate, meter))
}

fn null_operations(clock: CpuClock, work: &Work) -> Nanos {
    let Some(mut runner) = bare_loop(work, ROUNDS) else {
        return Nanos(0);
    };
    let (gate, mut meter) = surroundings(clock);
    timed(clock, || runner.run(&gate, &mut meter, None))
}
