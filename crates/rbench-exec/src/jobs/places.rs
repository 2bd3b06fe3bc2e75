//! The directories that jobs work in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rbench_plan::jobs::{FileNames, JobPlan, JobsPlan};
use rbench_plan::pattern::file_path;

use super::find;
use crate::spots::Spot;

/// The directories of the jobs of a plan, whose relative paths start from `base`.
pub(super) fn spots(jobs: &JobsPlan, base: &Path, ranks: u32) -> Vec<Spot> {
    let mut spots: BTreeMap<PathBuf, Option<PathBuf>> = BTreeMap::new();
    let all = jobs.rounds.iter().flatten();
    for job in all.filter(|job| find(job).uses_files) {
        for file in 0..names(job) {
            let path = base.join(file_path(job, 0, file));
            let Some(directory) = path.parent().filter(|dir| !holds_devices(dir)) else {
                continue;
            };
            let read_only = !job.pattern.directions.changes();
            let witness = read_only.then(|| path.clone());
            spots
                .entry(directory.to_owned())
                .and_modify(|there| *there = there.take().filter(|_| read_only))
                .or_insert(witness);
        }
    }
    let spot = |(path, witness)| Spot {
        witness,
        ..Spot::of_all(path, ranks)
    };
    spots.into_iter().map(spot).collect()
}

/// Number of the first files of a worker that may lie in different directories.
fn names(job: &JobPlan) -> u64 {
    match &job.files.names {
        FileNames::Given(names) => (names.len() as u64).min(job.files.count),
        FileNames::Format(_) | FileNames::Numbered { .. } => 1,
    }
}

/// Devices are those of each host.
fn holds_devices(directory: &Path) -> bool {
    directory.starts_with("/dev") && !directory.starts_with("/dev/shm")
}
