//! The certain demand of jobs for room where their files lie: files that exist already are written
//! over, not added.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rbench_core::Rank;
use rbench_core::operations::NameEngine;
use rbench_plan::demand::{Demand, is_incompressible};
use rbench_plan::jobs::{Carries, Distribution, JobPlan, JobsPlan, Verify};
use rbench_plan::meta::Packet;
use rbench_plan::pattern::{file_path, file_size, shares_files, smallest};
use rbench_sys::standing::{Entry, entry};

use super::find;
use crate::room::Moment;

/// Most files that are checked one by one: with more, nothing is certain.
const MOST_FILES: u64 = 200_000;

/// The part of a file that a group of jobs is sure to leave.
#[derive(Debug, Clone, Copy, Default)]
struct File {
    sure: u64,
    dense: u64,
    at_most: u64,
    stays: bool,
}

/// The demand of the workers of `ranks` in each directory, group of jobs by group of jobs, with
/// what earlier groups leave. `looks`: existing files are subtracted; without it, none is touched
/// and the result is the largest demand. `None`: there are too many files.
pub(super) fn demands(
    plan: &JobsPlan,
    base: &Path,
    ranks: &[u32],
    looks: bool,
) -> Option<Vec<Moment>> {
    let count = |job: &JobPlan| {
        let workers = u64::from(job.numjobs).saturating_mul(ranks.len() as u64);
        job.files.count.saturating_mul(workers)
    };
    let jobs = plan.rounds.iter().flatten();
    if jobs.map(count).fold(0, u64::saturating_add) > MOST_FILES {
        return None;
    }
    let mut there: BTreeMap<PathBuf, File> = BTreeMap::new();
    let mut moments = Vec::new();
    for round in &plan.rounds {
        for job in round.iter().filter(|job| find(job).uses_files) {
            add(job, base, ranks, &mut there);
        }
        moments.push(sums(&there, looks));
        there.retain(|_, file| file.stays);
    }
    Some(moments)
}

fn add(job: &JobPlan, base: &Path, ranks: &[u32], there: &mut BTreeMap<PathBuf, File>) {
    let shared = shares_files(&job.files);
    for rank in ranks {
        // Each worker adds its pieces to the file.
        let pieces = match job.files.interleave {
            0 => 1,
            _ => ranks.len() as u64 * u64::from(job.numjobs),
        };
        for jobnum in job.workers_of(Rank(*rank)) {
            for file in 0..job.files.count {
                let part = part(job, jobnum, file);
                let path = base.join(file_path(job, jobnum, file));
                let known = there.entry(path).or_default();
                let File {
                    sure,
                    dense,
                    at_most,
                    stays,
                } = part;
                known.sure = known.sure.max(sure.saturating_mul(pieces));
                known.dense = known.dense.max(dense.saturating_mul(pieces));
                known.at_most = known.at_most.max(at_most.saturating_mul(pieces));
                known.stays |= stays;
            }
            if shared && job.files.are_alike() {
                return;
            }
        }
    }
}

/// The effect of a worker on a file, in bytes from its beginning on.
fn part(job: &JobPlan, jobnum: u64, file: u64) -> File {
    let directions = job.pattern.directions;
    let size = file_size(job, jobnum, file);
    let leaves_alone = job
        .verify
        .as_ref()
        .is_some_and(|v| v.only || !directions.changes());
    let no_data = job
        .names
        .is_some_and(|op| op.makes() || op.of_directories());
    if leaves_alone || no_data || job.files.fill || job.pace.wear_out || size == 0 {
        return File::default();
    }
    let makes = !job.files.create_on_open;
    // Laid out with data; a hole before the offset is not written by others.
    let filled = makes && (directions.read || job.files.overwrite);
    let end = job.files.laid_out(jobnum, size).max(size);
    let writes = directions.write && job.names.is_none() && writes_all(job);
    let sure = match (filled, writes) {
        (true, _) => end,
        (false, true) => size,
        (false, false) => 0,
    };
    // The layout's own data is; what verification writes may be a pattern.
    let laid_out = filled && !directions.write;
    let pattern = |v: &Verify| {
        !matches!(
            &v.carries,
            Carries::Packet {
                packet: Packet::Unique,
                ..
            }
        )
    };
    let plain = job.verify.as_ref().is_none_or(|v| !pattern(v));
    let dense = laid_out || (plain && is_incompressible(&job.buffers));
    File {
        sure,
        dense: if dense { sure } else { 0 },
        at_most: end,
        stays: !job.files.unlink && !job.names.is_some_and(NameEngine::removes),
    }
}

/// Returns true if every block of the files is certainly written.
fn writes_all(job: &JobPlan) -> bool {
    let (pattern, pace) = (&job.pattern, &job.pace);
    // With another alignment or a part in sequence, blocks may come twice and
    // others not at all.
    let align = pattern.align.write;
    let covers = pattern.random_percent.write == 100
        && (align == 0 || align == smallest(&pattern.sizes.write));
    let plain = pattern.course.is_plain();
    let everywhere = plain && !pattern.directions.random
        || (plain && pattern.distribution == Distribution::Uniform && !pattern.repeats && covers);
    everywhere
        && !pattern.directions.read
        && !job.files.create_only
        && pace.runtime.is_none()
        && pace.number_ios.is_none()
        && pace.io_size.is_none()
        && pace.io_share.is_none()
        && !job.files.shares.append
        && pace.steady.is_none()
}

/// Bytes that a path has already: a file that is not a regular file takes no room.
fn taken(path: &Path) -> Option<u64> {
    match entry(path) {
        Entry::File(length) => Some(length),
        Entry::Other => Some(u64::MAX),
        Entry::Missing => None,
    }
}

/// Directory by directory.
fn sums(there: &BTreeMap<PathBuf, File>, looks: bool) -> Moment {
    let mut sums: BTreeMap<PathBuf, Demand> = BTreeMap::new();
    for (path, file) in there {
        let Some(directory) = path.parent() else {
            continue;
        };
        let found = looks.then(|| taken(path)).flatten();
        let rest = |bytes: u64| bytes.saturating_sub(found.unwrap_or(0));
        let demand = Demand {
            bytes: rest(file.dense),
            plain_bytes: rest(file.sure),
            bytes_at_most: rest(file.at_most),
            inodes: u64::from(file.sure > 0 && found.is_none()),
        };
        let sum = sums.entry(directory.to_owned()).or_default();
        *sum = sum.and(demand);
    }
    sums.into_iter().collect()
}
