//! Files that must exist, or must not, before a run starts; and the removal of files that it
//! created.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rbench_plan::jobs::JobsPlan;
use rbench_sys::files::{Named, named};

use super::layout::paths_of;
use super::removal::{Leftover, remove};
use crate::group::{ExecError, Group};

/// Refuses the run where a file is there that must be new, or is not there that must be.
///
/// # Errors
/// A sentence with the path, the same on every rank.
pub async fn check(group: &Group<'_>, plan: &JobsPlan, base: &Path) -> Result<(), ExecError> {
    let mut asked: BTreeSet<(PathBuf, bool)> = BTreeSet::new();
    for job in plan.rounds.iter().flatten() {
        let standing = job.files.standing;
        if standing.must_be_new || standing.must_be_there {
            let paths = paths_of(group, job, base).into_iter();
            asked.extend(paths.map(|path| (path, standing.must_be_there)));
        }
    }
    let looked = group.agree_on_target(move || {
        let mut asked = asked.iter();
        asked.try_for_each(|(path, there)| look(path, *there))
    });
    looked.await.map_err(|e| group.as_usage(e))
}

fn look(path: &Path, must_be_there: bool) -> Result<(), String> {
    let shown = path.display();
    let found = named(path);
    let found = found.map_err(|e| format!("{shown} cannot be inspected: {} ({e:?})", e.desc()))?;
    match (found, must_be_there) {
        (Named::Nothing, false) | (Named::File(_), true) => Ok(()),
        (Named::Nothing, true) => Err(format!("{shown} does not exist, but the run reads it")),
        (_, false) => Err(format!(
            "{shown} already exists and is not overwritten: name another file, or use this one with -E"
        )),
        // A symbolic link may lead to one.
        (Named::Other, true) if path.is_file() => Ok(()),
        (Named::Directory | Named::Other, true) => Err(format!("{shown} is not a regular file")),
    }
}

/// Removes what the run has made of files that it is to leave nothing of, when it ends
/// early. What could not be removed, at rank 0.
pub async fn give_up(
    group: &Group<'_>,
    plan: &JobsPlan,
    base: &Path,
    made: &BTreeSet<PathBuf>,
) -> Result<Vec<String>, ExecError> {
    // The others learn here of a call that one rank gave up.
    group.any_stuck().await?;
    let jobs = plan.rounds.iter().flatten();
    let temporary = jobs.filter(|job| job.files.standing.temporary);
    let paths: BTreeSet<PathBuf> = temporary
        .flat_map(|job| paths_of(group, job, base))
        .filter(|path| made.contains(path))
        .collect();
    let paths = paths.into_iter().map(Leftover::file);
    remove(group, paths.collect()).await
}
