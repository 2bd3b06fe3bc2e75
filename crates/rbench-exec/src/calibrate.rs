//! What the tool itself costs on this machine: a clock reading, recording a
//! latency, and one operation of the block loop with the null engine.

use std::sync::Arc;

use rbench_core::random::Stream;
use rbench_core::{Bytes, Clock as _, Counter, CpuClock, Latency, Nanos, OpKind, Rank};
use rbench_plan::IoPlan;
use rbench_plan::io::{FsyncRule, Layout, Order, Rw, fresh_data};
use rbench_plan::jobs::{BlockSizes, Distribution};
use rbench_sys::engine::{EngineConfig, find};
use rbench_sys::{Fs, TraceFs};

use crate::io::blocks::{BlockRunner, Blocks, Lanes};
use crate::io::data::Data;
use crate::meter::{Meter, Patience, Tally};
use crate::pace::{Gate, StopFlag, Waits};
use crate::worker::Runner;

const ROUNDS: u64 = 50_000;
/// The fastest of so many tries counts: what disturbs only makes it slower.
const TRIES: u32 = 5;

/// Costs in ns.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Calibration {
    /// One clock reading.
    pub clock_ns: f64,
    /// Recording one latency.
    pub record_ns: f64,
    /// One operation of the block loop with the null engine, fully measured.
    pub null_op_ns: f64,
}

/// Measures with the clock that workers read; takes about 50 ms.
pub fn calibrate(counter: &Counter) -> Calibration {
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
        null_op_ns: best(|| null_operations(clock, ROUNDS)),
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

/// A block loop of `operations` sequential reads with the null engine, ready
/// to run, and what it runs with.
pub fn null_loop(clock: CpuClock, operations: u64) -> Option<(BlockRunner, Gate, Meter)> {
    let plan = IoPlan {
        phases: vec![Rw::Read],
        mix_read: 100,
        sizes: BlockSizes::Fixed(4096),
        distribution: Distribution::Uniform,
        size: Bytes(4096 * operations),
        small: None,
        layout: Layout::PerWorker,
        engine: "null".to_owned(),
        depth: 1,
        direct: false,
        fsync: FsyncRule::Never,
        time: None,
        open_loop: None,
        verify: false,
        ack_journal: None,
        buffers: fresh_data(0, 0),
    };
    let engine = (find("null")?.make)(EngineConfig {
        depth: 1,
        block: 4096,
    })
    .ok()?;
    let fs: Arc<dyn Fs> = Arc::new(TraceFs::default());
    let runner = BlockRunner::new(Blocks {
        order: Order::new(&plan, false, [0; 3], [0; 3]),
        planned: operations,
        data: Data::new(&plan.buffers, 1, &[]),
        plan: Arc::new(plan),
        rw: Rw::Read,
        lanes: Lanes {
            read: Some(0),
            write: None,
            sync: None,
        },
        engine,
        fs,
        fd: None,
        path: String::new(),
        file: 0,
        owner: (0, 1),
        schedule: None,
        chooser: Stream::new(&[]),
        stamps: None,
        log: None,
        stamped_bytes: 4096,
        covered: None,
    });
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
        Arc::new(Tally::default()),
        Patience::default(),
    );
    meter.start_at(start);
    Some((runner, gate, meter))
}

fn null_operations(clock: CpuClock, operations: u64) -> Nanos {
    let Some((mut runner, gate, mut meter)) = null_loop(clock, operations) else {
        return Nanos(0);
    };
    timed(clock, || runner.run(&gate, &mut meter, None))
}
