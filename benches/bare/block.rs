//! Reads and writes 4 KiB blocks with pread and pwrite, in the order of `rbench io`.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd as _, RawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use rbench_core::Bytes;
use rbench_core::random::DataStream;
use rbench_plan::io::Rw;
use rbench_plan::pattern::Steps;
use rbench_plan::spec::{Common, Io, Workload};
use rbench_plan::{Facts, Spec, Work, resolve};
use rbench_sys::AlignedBuffer;

use crate::{Failed, Figure, repeat};

/// Bytes of a block.
pub const BLOCK: usize = 4096;
/// Number of passes whose order is computed beforehand and then repeated.
const PASSES: u64 = 8;
/// Operations between two clock readings.
const BATCH: usize = 256;
/// Value of `rbench io --seed` that gives the same order.
const SEED: u64 = 1;

/// The offsets of the first passes over `size` bytes, for worker 0 of `rbench io --seed 1` with
/// `mode` as its first phase.
pub fn offsets(mode: Rw, size: u64) -> Result<Vec<i64>, Failed> {
    let io = Io {
        rw: Some(vec![mode]),
        block: Some(Bytes(BLOCK as u64)),
        size: Some(Bytes(size)),
        ..Io::default()
    };
    let spec = Spec {
        common: Common::default(),
        workload: Workload::Io(Box::new(io)),
    };
    let facts = Facts {
        host_of: vec![0],
        seed: SEED,
        engines: vec![("psync", 1)],
        stonewalled: None,
    };
    let plan = resolve(&spec, &facts).map_err(|error| error.to_string())?;
    let Work::Io(mut plan) = plan.work else {
        unreachable!("the spec is of rbench io")
    };
    if !size.is_multiple_of(BLOCK as u64) {
        return Err(format!("{size} is not a multiple of {BLOCK}").into());
    }
    plan.job.pace.time_based = true;
    let rounds = plan.rounds(SEED, 0, (0, 1), 1);
    let steps = Steps::new(&rounds[0].job, 0, |_| plan.size.0);
    let count = PASSES * plan.operations();
    let steps = steps.take(usize::try_from(count).unwrap_or(usize::MAX));
    Ok(steps.map(|step| step.offset as i64).collect())
}

/// Complete files of equal size.
pub struct Files {
    open: Vec<File>,
    /// Bytes of each.
    each: u64,
}

impl Files {
    /// Opens the files in `paths`, separated by colons, for `mode`. Together they must have `size`
    /// bytes.
    pub fn open(mode: Rw, paths: &str, size: u64) -> Result<Files, Failed> {
        let paths: Vec<&str> = paths.split(':').collect();
        let each = size / paths.len() as u64;
        if each == 0 || !each.is_multiple_of(BLOCK as u64) {
            return Err(format!("{size} bytes are not whole blocks of each file").into());
        }
        let open = paths.into_iter().map(|path| {
            let file = OpenOptions::new()
                .read(mode.reads())
                .write(mode.writes())
                .open(path)
                .map_err(|error| format!("{path}: {error}"))?;
            let length = file.metadata()?.len();
            if length < each {
                return Err(format!("{path} has only {length} of {each} bytes").into());
            }
            Ok(file)
        });
        Ok(Files {
            open: open.collect::<Result<_, Failed>>()?,
            each,
        })
    }

    /// Their descriptors.
    pub fn descriptors(&self) -> Vec<RawFd> {
        self.open.iter().map(|file| file.as_raw_fd()).collect()
    }

    /// The file and offset of each operation, with the files in turns. `offsets` are those of a
    /// single file with the total size.
    pub fn places(&self, offsets: &[i64]) -> Vec<(usize, i64)> {
        let turns = (0..self.open.len()).cycle();
        let within = offsets.iter().map(|at| at % self.each as i64);
        turns.zip(within).collect()
    }
}

/// Runs the block loop. All writes have the same content.
pub fn run(name: &str, paths: &str, size: u64, limit: Duration) -> Result<Figure, Failed> {
    let mode = Rw::ALL
        .into_iter()
        .find(|mode| mode.name() == name && !(mode.reads() && mode.writes()))
        .ok_or_else(|| format!("there is no bare loop for {name}"))?;
    let files = Files::open(mode, paths, size)?;
    let open = files.descriptors();
    let places: Vec<(RawFd, i64)> = files
        .places(&offsets(mode, size)?)
        .into_iter()
        .map(|(file, at)| (open[file], at))
        .collect();
    let mut buffer = AlignedBuffer::new(BLOCK)?;
    DataStream::new(&[1]).fill(&mut buffer);
    let start = buffer.as_mut_ptr();
    if mode.writes() {
        // SAFETY: the files are open, and `start` points to a whole block.
        blocks(name, &places, limit, |fd, at| unsafe {
            libc::pwrite(fd, start.cast(), BLOCK, at)
        })
    } else {
        // SAFETY: the files are open, and `start` has room for a whole block.
        blocks(name, &places, limit, |fd, at| unsafe {
            libc::pread(fd, start.cast(), BLOCK, at)
        })
    }
}

fn blocks(
    name: &str,
    places: &[(RawFd, i64)],
    limit: Duration,
    mut call: impl FnMut(RawFd, i64) -> isize,
) -> Result<Figure, Failed> {
    let mut batches = places.chunks(BATCH).cycle();
    repeat(name, limit, || {
        let batch = batches.next().unwrap_or_default();
        for (fd, at) in batch {
            if call(*fd, *at) != BLOCK as isize {
                return Err(format!("{name} at {at}: {}", Errno::last()).into());
            }
        }
        Ok(batch.len() as u64)
    })
}
