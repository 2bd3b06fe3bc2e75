//! Checks, before anything is opened for writing, that no job writes to a device that is in use,
//! directly or through another device.

use std::path::{Path, PathBuf};

use rbench_plan::jobs::{FileNames, JobPlan, JobsPlan};
use rbench_sys::InUse;

use super::find;
use super::layout::used;
use crate::group::{ExecError, Group};

/// A file that a job changes: the job's name and the path.
type Written = (String, PathBuf);

/// Refuses the run if a job writes to what is in use on the host of any rank.
///
/// # Errors
/// A sentence that names job, path and use, the same on every rank.
pub async fn check(group: &Group<'_>, plan: &JobsPlan, base: &Path) -> Result<(), ExecError> {
    let jobs = plan.rounds.iter().flatten().filter(|job| writes(job));
    let written: Vec<Written> = jobs
        .flat_map(|job| {
            // A device belongs to a host.
            let all = used(group, job, base, group.is_leader()).into_iter();
            all.map(|path| (job.name.clone(), path))
        })
        .collect();
    let looked = group.agree_on_target(move || look(&written));
    looked.await.map_err(|e| group.as_usage(e))
}

/// Returns true if files of `job` are checked here: it writes to them or trims them, and they may
/// be checked before it opens them. Other files are checked when they are open.
fn writes(job: &JobPlan) -> bool {
    let only_verifies = job.verify.as_ref().is_some_and(|v| v.only);
    let named = matches!(job.files.names, FileNames::Given(_));
    job.pattern.directions.changes()
        && !only_verifies
        && !job.files.allow_mounted_write
        && (named || !job.files.create_on_open)
        && find(job).uses_files
}

fn look(written: &[Written]) -> Result<(), String> {
    let in_use = InUse::look();
    written.iter().try_for_each(|(job, path)| {
        // A file that cannot be checked cannot be opened either; the open reports it.
        match in_use.user_of(path) {
            Ok(None) | Err(_) => Ok(()),
            Ok(Some(why)) => Err(format!(
                "job '{job}': {} is {why}, so it is not written to (use allow_mounted_write=1 to do it anyway)",
                path.display()
            )),
        }
    })
}
