//! Blocks of 4 KiB with pread and pwrite, in the order in which `rbench io`
//! visits them.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use rbench_core::random::{DataStream, key};
use rbench_core::{Bytes, Nanos};
use rbench_plan::io::Rw;
use rbench_plan::spec::{Common, Io, Workload};
use rbench_plan::{Facts, Spec, Work, resolve};
use rbench_sys::AlignedBuffer;

use crate::{Failed, Figure, repeat};

/// Bytes of a block.
pub const BLOCK: usize = 4096;
/// Passes whose order is drawn beforehand, to be repeated.
const PASSES: u64 = 8;
/// Operations between two looks at the clock.
const BATCH: usize = 256;
/// What `rbench io --seed` needs for the same order.
const SEED: u64 = 1;
/// The first phase of a run; the layout before it is step 1.
const STEP: u64 = 2;

/// The offsets of the first passes over `size` bytes, for worker 0 of
/// `rbench io --seed 1` with `mode` as its first phase.
pub fn offsets(mode: Rw, size: u64) -> Result<Vec<i64>, Failed> {
    let io = Io {
        rw: Some(vec![mode]),
        block: Some(Bytes(BLOCK as u64)),
        size: Some(Bytes(size)),
        ..Io::default()
    };
    let spec = Spec {
        common: Common::default(),
        workload: Workload::Io(io),
    };
    let facts = Facts {
        host_of: vec![0],
        seed: SEED,
        engines: vec![("psync", 1)],
        other_engines: Vec::new(),
        stonewalled: None,
    };
    let plan = resolve(&spec, &facts).map_err(|error| error.to_string())?;
    let Work::Io(plan) = plan.work else {
        unreachable!("the spec is of rbench io")
    };
    if !size.is_multiple_of(BLOCK as u64) {
        return Err(format!("{size} is not a multiple of {BLOCK}").into());
    }
    let plan = rbench_plan::IoPlan {
        time: Some(Nanos(u64::MAX)),
        ..plan
    };
    let steps = plan.steps(mode, key(&[SEED, STEP]), 0, key(&[SEED, 0, 0]));
    let count = PASSES * plan.operations();
    let steps = steps.take(usize::try_from(count).unwrap_or(usize::MAX));
    Ok(steps.map(|step| step.offset as i64).collect())
}

/// A file that is there in full, opened for `mode`.
pub fn open(mode: Rw, path: &str, size: u64) -> Result<File, Failed> {
    let file = OpenOptions::new()
        .read(mode.reads())
        .write(mode.writes())
        .open(path)
        .map_err(|error| format!("{path}: {error}"))?;
    let found = file.metadata()?.len();
    if found < size {
        return Err(format!("{path} has only {found} of {size} bytes").into());
    }
    Ok(file)
}

/// The block loop. Writes have all the same content.
pub fn run(name: &str, path: &str, size: u64, limit: Duration) -> Result<Figure, Failed> {
    let mode = Rw::ALL
        .into_iter()
        .find(|mode| mode.name() == name && !(mode.reads() && mode.writes()))
        .ok_or_else(|| format!("there is no bare loop for {name}"))?;
    let offsets = offsets(mode, size)?;
    let file = open(mode, path, size)?;
    let fd = file.as_raw_fd();
    let mut buffer = AlignedBuffer::new(BLOCK)?;
    DataStream::new(&[1]).fill(&mut buffer);
    let start = buffer.as_mut_ptr();
    if mode.writes() {
        // SAFETY: the file is open, and `start` has so many bytes.
        blocks(name, &offsets, limit, |at| unsafe {
            libc::pwrite(fd, start.cast(), BLOCK, at)
        })
    } else {
        // SAFETY: the file is open, and `start` has room for so many bytes.
        blocks(name, &offsets, limit, |at| unsafe {
            libc::pread(fd, start.cast(), BLOCK, at)
        })
    }
}

fn blocks(
    name: &str,
    offsets: &[i64],
    limit: Duration,
    mut call: impl FnMut(i64) -> isize,
) -> Result<Figure, Failed> {
    let mut batches = offsets.chunks(BATCH).cycle();
    repeat(name, limit, || {
        let batch = batches.next().unwrap_or_default();
        for at in batch {
            if call(*at) != BLOCK as isize {
                return Err(format!("{name} at {at}: {}", Errno::last()).into());
            }
        }
        Ok(batch.len() as u64)
    })
}
