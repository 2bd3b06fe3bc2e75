//! How much a worker moves: passes, and their bytes and operations.

use super::largest;
use crate::jobs::{Each, JobPlan};

/// Limits of a worker's work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// Bytes of a pass.
    pub pass: u64,
    /// Bytes of all passes.
    pub all: u64,
    /// Most operations of a pass.
    pub ios: u64,
    /// Most operations of all passes.
    pub all_ios: u64,
    /// Number of passes; `u64::MAX` until the time is up.
    pub passes: u64,
}

impl Budget {
    /// Limits over files of `total` bytes. `bytes` is the job's `io_size`, and `passes` are its
    /// loops.
    pub fn new(job: &JobPlan, total: u64, bytes: Option<u64>, ios: u64) -> Budget {
        let passes = match job.pace.time_based {
            true => u64::MAX,
            false => job.pace.loops.max(1),
        };
        let plain = Budget {
            pass: bytes.unwrap_or(total),
            all: u64::MAX,
            ios,
            all_ios: ios.saturating_mul(passes),
            passes,
        };
        let directions = job.pattern.directions;
        let course = job.pattern.course.is_plain() && job.names.is_none();
        match bytes {
            Some(bytes) if course && !(directions.trim && directions.write) => {
                plain.repeated(job, total, bytes)
            }
            _ => plain,
        }
    }

    /// Like `io_size` of fio: a pass goes over the files once, and passes follow until this many
    /// bytes have been moved, including those that are read back, but for less than a block. In all,
    /// the passes move at most `io_size` times the loops. Random operations that may repeat are one
    /// pass.
    fn repeated(self, job: &JobPlan, total: u64, bytes: u64) -> Budget {
        let directions = job.pattern.directions;
        let repeats = directions.random && job.pattern.repeats;
        if self.passes == u64::MAX {
            let pass = if repeats { total.max(bytes) } else { total };
            return Budget { pass, ..self };
        }
        let all = bytes.saturating_mul(self.passes);
        let pass = if repeats { total.max(all) } else { total };
        let checks = job.verify.as_ref().is_some_and(|v| v.read_back || v.only);
        let writes = match (directions.write, directions.read) {
            (true, true) => 100 - job.pattern.mix_read,
            (true, false) => 100,
            (false, _) => 0,
        };
        let read_back = if checks { u128::from(writes) } else { 0 };
        let moved = (u128::from(pass) * (100 + read_back) / 100).max(1);
        let Each { read, write, trim } = &job.pattern.sizes;
        let block = largest(read).max(largest(write)).max(largest(trim));
        let wanted = bytes.checked_sub(block);
        let wanted = wanted.map_or(0, |bytes| u128::from(bytes) / moved + 1);
        let possible = all.div_ceil(pass.max(1));
        let passes = u64::try_from(wanted).unwrap_or(u64::MAX);
        Budget {
            pass,
            all,
            passes: self.passes.max(passes).min(possible),
            ..self
        }
    }
}
