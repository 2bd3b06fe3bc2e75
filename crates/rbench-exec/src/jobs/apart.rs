//! Checks that the I/O logs that workers write are not used by the run in another way.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rbench_plan::jobs::JobsPlan;

use super::find;
use super::layout;
use crate::group::{ExecError, Group};

/// The paths to compare.
#[derive(Debug, Default)]
struct Used {
    /// Logs that are written by workers of all ranks, and whether by one of this rank.
    written: Vec<(PathBuf, bool)>,
    /// Logs that are replayed.
    replayed: Vec<PathBuf>,
    /// Files of this rank's workers.
    targets: Vec<PathBuf>,
}

/// Refuses a plan in which a log that is written is that of another worker, one that is
/// replayed, or a file that jobs use.
///
/// # Errors
/// A sentence with the path, the same on every rank.
pub async fn check(group: &Group<'_>, plan: &JobsPlan, base: &Path) -> Result<(), ExecError> {
    let jobs = || plan.rounds.iter().flatten();
    if jobs().all(|job| job.iolog.is_none()) {
        return Ok(());
    }
    let (rank, ranks) = (group.rank(), group.world.size());
    let mut used = Used::default();
    for (index, job) in (0..).zip(jobs()) {
        let numjobs = u64::from(job.numjobs);
        for worker in 0..numjobs * u64::from(ranks) {
            let Some(name) = plan.iolog_of(index, worker, ranks) else {
                break;
            };
            let own = worker / numjobs == u64::from(rank.0);
            used.written.push((base.join(name), own));
        }
        let replayed = job.replay.iter().flat_map(|replay| &replay.logs);
        used.replayed.extend(replayed.map(|name| base.join(name)));
        if find(job).uses_files {
            used.targets.extend(layout::used(group, job, base, true));
        }
    }
    let looked = group.agree_on_target(move || used.clash().map_or(Ok(()), Err));
    looked.await.map_err(|e| group.as_usage(e))
}

impl Used {
    fn clash(&self) -> Option<String> {
        let mut places = Places::default();
        let (mut names, mut files) = (BTreeSet::new(), BTreeSet::new());
        for (path, own) in &self.written {
            let new = names.insert(places.of(path));
            // Other ranks check their own logs themselves.
            let id = own.then(|| identity(path)).flatten();
            if !new || id.is_some_and(|id| !files.insert(id)) {
                return Some(told(path, "two workers would write it"));
            }
        }
        let replayed = self
            .replayed
            .iter()
            .map(|path| (path, "it is also replayed"));
        let targets = self
            .targets
            .iter()
            .map(|path| (path, "it is a data file of a job"));
        replayed.chain(targets).find_map(|(path, why)| {
            let same = names.contains(&places.of(path))
                || !files.is_empty() && identity(path).is_some_and(|id| files.contains(&id));
            same.then(|| told(path, why))
        })
    }
}

fn told(path: &Path, why: &str) -> String {
    format!(
        "write_iolog: cannot write the log {}: {why}",
        path.display()
    )
}

/// Device and inode of what is there.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = path.metadata().ok()?;
    Some((found.dev(), found.ino()))
}

/// Directories by their names, as they really are.
#[derive(Debug, Default)]
struct Places {
    known: BTreeMap<PathBuf, PathBuf>,
}

impl Places {
    /// One name for each place, whether something is there or not.
    fn of(&mut self, path: &Path) -> PathBuf {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return path.to_owned();
        };
        let known = self.known.get(directory).cloned();
        let real = known.unwrap_or_else(|| {
            let real = directory.canonicalize();
            let real = real.unwrap_or_else(|_| directory.components().collect());
            self.known.insert(directory.to_owned(), real.clone());
            real
        });
        real.join(name)
    }
}
