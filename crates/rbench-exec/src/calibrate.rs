//! Overhead of the tool on each host: a clock reading, recording a latency, and one operation of
//! the workload's loop without real I/O. Metadata operations run on a null file system, blocks and
//! jobs with the engine `null`.

use rbench_core::{Bytes, Clock as _, Counter, CpuClock, Latency, Nanos, OpKind};
use rbench_plan::io::{Layout, Rw};
use rbench_plan::jobs::BlockSizes;
use rbench_plan::{IoPlan, Work};
use serde::{Deserialize, Serialize};

use crate::blocks::{self, BLOCK, BlockRunner};
use crate::group::{ExecError, Group};
use crate::meter::Meter;
use crate::pace::Gate;
use crate::workload;

/// Operations of a try: some 250 us, short enough to pass without a disturbance.
const ROUNDS: u64 = 5_000;
/// Most tries. The fastest counts: disturbances only make one slower.
const TRIES: u64 = 8;
/// Fewest tries.
const TRIES_MIN: u64 = 3;
/// Time that undisturbed tries may take, beyond the fewest.
const PATIENCE: Nanos = Nanos(5_000_000);

/// Costs in ns.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Calibration {
    /// One clock reading.
    pub clock_ns: f64,
    /// Recording one latency.
    pub record_ns: f64,
    /// One operation of the loop without real I/O, fully measured.
    pub null_op_ns: f64,
}

/// Measures the overhead on each host, at rank 0 in the order of the hosts; empty elsewhere. One
/// rank of each host measures while the others wait, to avoid disturbing it.
pub async fn on_each_host(group: &Group<'_>, work: &Work) -> Result<Vec<Calibration>, ExecError> {
    let mine = group
        .is_leader()
        .then(|| (group.host_number(), calibrate(&group.time.counter, work)));
    let all = group.gather(&mine).await?.into_iter();
    let mut told: Vec<(u32, Calibration)> = all.flatten().collect();
    told.sort_by_key(|(host, _)| *host);
    Ok(told.into_iter().map(|(_, costs)| costs).collect())
}

/// Measures with the clock that workers read; takes about 5 ms, more where an operation takes longer
/// than 125 ns.
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
    let mut fastest = Nanos(u64::MAX);
    for done in 1..=TRIES {
        fastest = fastest.min(once());
        if done >= TRIES_MIN && fastest.0.saturating_mul(done) > PATIENCE.0 {
            break;
        }
    }
    fastest.0 as f64 / ROUNDS as f64
}

/// Returns the gate and meter of a loop that starts now.
fn surroundings(clock: CpuClock) -> (Gate, Meter) {
    let start = clock.now();
    let mut meter = Meter::alone(&[OpKind::Read]);
    meter.start_at(start);
    (Gate::new(clock, start), meter)
}

/// Returns a block loop of `operations` sequential reads with the null engine, ready to run, with
/// its gate and meter.
pub fn null_loop(clock: CpuClock, operations: u64) -> Option<(BlockRunner, Gate, Meter)> {
    let (gate, meter) = surroundings(clock);
    let sizes = BlockSizes::Fixed(BLOCK);
    let mut plan = IoPlan::new(vec![Rw::Read], sizes, Bytes(BLOCK), Layout::PerWorker);
    plan.job.engine = "null".to_owned();
    let round = plan.rounds(0, 0, (0, 1), 1).into_iter().next()?;
    let runner = blocks::over_nothing(&round.job, (operations, BLOCK), 1).ok()?;
    Some((runner, gate, meter))
}

fn null_operations(clock: CpuClock, work: &Work) -> Nanos {
    let Some(mut runner) = workload::of(work).bare_loop(ROUNDS) else {
        return Nanos(0);
    };
    let (gate, mut meter) = surroundings(clock);
    timed(clock, || runner.run(&gate, &mut meter, None))
}
