//! Computations of rbench between two system calls, as throughput of one core.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rbench_core::Counter;
use rbench_core::random::DataStream;
use rbench_exec::calibrate::null_loop;
use rbench_exec::verify::{BlockHeader, Expected, Headers};
use rbench_exec::worker::Runner as _;

use crate::{Failed, Figure, repeat};

const SIZES: [(&str, usize); 2] = [("4k", 4 << 10), ("1m", 1 << 20)];
/// Bytes between two clock readings.
const BATCH: usize = 4 << 20;
const NULL_OPERATIONS: u64 = 2_000_000;

/// Prints figures of `fill`, `stamp` and `check` in bytes, and of the null engine in operations.
pub fn run(limit: Duration) -> Result<(), Failed> {
    for (name, size) in SIZES {
        let mut block = vec![0; size];
        let mut data = DataStream::new(&[1]);
        bytes(&format!("fill-{name}"), size, limit, || {
            data.fill(black_box(&mut block));
            true
        })?
        .print();
        stamps(name, &mut block, limit)?;
    }
    null()?.print();
    Ok(())
}

/// Repeats `work`, which processes `size` bytes and returns true on success.
fn bytes(
    name: &str,
    size: usize,
    limit: Duration,
    mut work: impl FnMut() -> bool,
) -> Result<Figure, Failed> {
    repeat(name, limit, || {
        for _ in 0..BATCH / size {
            if !work() {
                return Err(format!("{name} found damage").into());
            }
        }
        Ok(BATCH as u64)
    })
}

fn stamps(name: &str, block: &mut [u8], limit: Duration) -> Result<(), Failed> {
    let size = block.len();
    let headers = Headers::every(u64::MAX);
    let mut header = BlockHeader {
        run: 1,
        file: 2,
        generation: 3,
        ..BlockHeader::default()
    };
    bytes(&format!("stamp-{name}"), size, limit, || {
        header.offset += size as u64;
        headers.stamp(black_box(block), &header);
        true
    })?
    .print();
    let expected = Expected::of(&header);
    bytes(&format!("check-{name}"), size, limit, || {
        headers.check(black_box(block), &expected).is_ok()
    })?
    .print();
    Ok(())
}

/// Operations of the null engine, which rbench uses to calibrate itself.
pub fn null() -> Result<Figure, Failed> {
    let clock = Counter::begin(true).clock_in_a_moment();
    let (mut runner, gate, mut meter) =
        null_loop(clock, NULL_OPERATIONS).ok_or("there is no null engine")?;
    let started = Instant::now();
    runner.run(&gate, &mut meter, None);
    Ok(Figure {
        name: "null".to_owned(),
        ops: runner.issued(&meter),
        took: started.elapsed(),
    })
}
