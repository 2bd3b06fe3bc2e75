//! The part of a file that a worker uses. Values in per cent, or without a size, depend on
//! the length of the file, which is only known when the job runs.

use super::shares_files;
use crate::jobs::{Files, Shares};

impl Files {
    /// True if the start of parts depends on the length of files.
    pub fn begins_by_length(&self) -> bool {
        let Shares {
            offset,
            increment,
            append,
            ..
        } = self.shares;
        append || offset.is_some() || increment.is_some()
    }

    /// True if the workers that share a file all use the same part of it.
    pub fn are_alike(&self) -> bool {
        self.offset_increment == 0 && self.shares.increment.is_none() && !self.shares.append
    }

    /// Start and length in bytes of the part of worker `jobnum` in a file. `given` is the
    /// job's size in bytes (0: none), and `there` the length of the file when it is open.
    ///
    /// The result is the same before and after a file is laid out. Shares refer to the
    /// larger of the file's length and the job's size.
    pub fn part(&self, jobnum: u64, given: u64, there: u64) -> (u64, u64) {
        let shares = self.shares;
        if shares.append {
            // Workers that share a file append one after the other.
            let before = match shares_files(self) {
                true => jobnum.saturating_mul(given),
                false => 0,
            };
            let length = match shares.of_file {
                true => given.saturating_sub(there),
                false => given,
            };
            return (there.saturating_add(before), length);
        }
        let plain = !self.begins_by_length();
        let whole = match (plain, given) {
            (true, 0) => there,
            (true, given) if shares.of_file => given,
            (true, given) => return (self.start(jobnum), given),
            (false, given) if shares.of_file => there.max(given),
            (false, given) => there.max(self.offset.saturating_add(given)),
        };
        let start = match plain {
            true => self.start(jobnum),
            false => self.shared_start(jobnum, whole),
        };
        let rest = whole.saturating_sub(start);
        let length = match (shares.size, given) {
            (Some(percent), 0) => {
                let bytes = rest.min(percent_of(whole, percent));
                bytes - bytes % shares.block.max(1)
            }
            (None, 0) => rest,
            (_, given) if shares.of_file => given.saturating_sub(start),
            (_, given) => given.min(rest),
        };
        (start, length)
    }

    /// The length in bytes to which a file is laid out before the run, if the job creates
    /// it.
    pub fn laid_out(&self, jobnum: u64, given: u64) -> u64 {
        match (self.shares.append || self.fill, self.shares.of_file) {
            (true, _) => 0,
            (false, true) => given,
            (false, false) if self.begins_by_length() => self.offset.saturating_add(given),
            (false, false) => self.start(jobnum).saturating_add(given),
        }
    }

    /// The start of a part that is given in per cent of `whole` bytes, like in fio.
    fn shared_start(&self, jobnum: u64, whole: u64) -> u64 {
        let Shares {
            offset,
            increment,
            align,
            ..
        } = self.shares;
        let of_whole = |bytes: u64, percent: Option<u32>| match percent {
            Some(percent) => percent_of(whole, percent),
            None => bytes,
        };
        let step = of_whole(self.offset_increment, increment);
        let raw = of_whole(self.offset, offset).saturating_add(step.saturating_mul(jobnum));
        raw.checked_next_multiple_of(align.max(1))
            .unwrap_or(u64::MAX)
    }
}

fn percent_of(bytes: u64, percent: u32) -> u64 {
    (u128::from(bytes) * u128::from(percent) / 100) as u64
}
