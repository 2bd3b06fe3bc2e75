//! The files of a job's workers: their names and lengths.

use std::path::PathBuf;

use rbench_core::Rank;
use rbench_core::random::Stream;

use super::{Part, STREAM_SIZE, smallest};
use crate::jobs::{FileNames, FileService, Files, JobPlan};
use crate::shift;

impl Files {
    /// The rank whose files are used by `rank`, one of `ranks`.
    pub fn owner(&self, rank: Rank, ranks: u32) -> Rank {
        match self.drawn {
            None => shift::owner(rank, self.ahead, ranks),
            Some(seed) => shift::drawn(rank, seed, ranks),
        }
    }

    /// True if ranks use the files of others.
    pub fn shifts(&self) -> bool {
        self.ahead > 0 || self.drawn.is_some()
    }
}

/// True if all workers of the job use the same files.
pub fn shares_files(files: &Files) -> bool {
    match &files.names {
        FileNames::Given(_) => true,
        FileNames::Numbered { .. } => false,
        FileNames::Format(format) => {
            !format.contains("$jobnum") && files.more_directories.is_empty()
        }
    }
}

/// The path of the `file`-th file of worker `jobnum`, relative to the start directory
/// unless it is absolute. If a directory is given, the file lies below it, like in
/// fio: a slash at the start of a name is then ignored.
pub fn file_path(job: &JobPlan, jobnum: u64, file: u64) -> PathBuf {
    let name = match &job.files.names {
        FileNames::Given(names) => names
            .get(file as usize % names.len().max(1))
            .cloned()
            .unwrap_or_default(),
        FileNames::Format(format) => format
            .replace("$jobname", &job.name)
            .replace("$jobnum", &jobnum.to_string())
            .replace("$filenum", &file.to_string()),
        FileNames::Numbered { names, end } => {
            let turn = (jobnum % names.len().max(1) as u64) as usize;
            let mut name = names
                .get(turn)
                .cloned()
                .unwrap_or_default()
                .into_os_string();
            name.push(format!(".{jobnum:08}{end}"));
            return name.into();
        }
    };
    let directory = job.files.directory_of(jobnum);
    match directory.as_os_str().is_empty() {
        true => name.into(),
        false => directory.join(name.trim_start_matches('/')),
    }
}

/// Bytes of the job's part of the `file`-th file of worker `jobnum`: between the
/// least and the largest size. If these differ, it is a multiple of the smallest
/// block. Zero means the length of the existing file.
pub fn file_size(job: &JobPlan, jobnum: u64, file: u64) -> u64 {
    let (min, max) = job.files.size;
    if min >= max {
        return max;
    }
    // Workers that share a file agree on its size.
    let owner = if shares_files(&job.files) { 0 } else { jobnum };
    let drawn = Stream::new(&[job.pattern.seed, owner, file, STREAM_SIZE]).below(max - min + 1);
    let directions = job.pattern.directions;
    let sizes = &job.pattern.sizes;
    let block = match (directions.read, directions.trim) {
        (true, _) => smallest(&sizes.read),
        (false, true) => smallest(&sizes.trim),
        (false, false) => smallest(&sizes.write),
    }
    .max(1);
    let size = min + drawn;
    (size - size % block).max(block.min(max))
}

impl Files {
    /// Number of a worker's files that are open at a time.
    pub fn window(&self) -> u64 {
        match self.service {
            FileService::Sequential => 1,
            _ => self.open.clamp(1, self.count.max(1)),
        }
    }

    /// The end in bytes of the file of the worker `part.owner`, if each one's part
    /// has `size`. It is the same for all workers that share the file.
    pub fn end(&self, part: Part, size: u64) -> u64 {
        let last = match shares_files(self) {
            true => part.workers.saturating_sub(1),
            false => part.owner,
        };
        let bytes = match self.interleave {
            0 => size,
            _ => size.saturating_mul(part.workers),
        };
        self.start(last).saturating_add(bytes)
    }

    /// The number of a worker's file in headers, where names do not matter; 0 for a
    /// shared file.
    pub fn number(&self, owner: u64) -> u64 {
        match shares_files(self) {
            true => 0,
            false => owner,
        }
    }

    /// The start of the part of worker `jobnum` in each file, bytes.
    pub fn start(&self, jobnum: u64) -> u64 {
        self.offset
            .saturating_add(self.offset_increment.saturating_mul(jobnum))
    }
}
