//! Removing the files of jobs with `unlink`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use nix::errno::Errno;
use rbench_core::operations::NameEngine;
use rbench_plan::jobs::FileNames;
use rbench_sys::files;

use super::layout::paths_of;
use super::layout::{self, Whose};
use super::{JobRound, Member};
use crate::group::{ExecError, Group, Ranks};
use crate::removal::{left_untouched, one_by_one};
use crate::target::gather_texts;

impl JobRound<'_> {
    /// Paths of files that are to be removed at the end, by this rank; or of directories.
    fn removable(&self, here: &Ranks<'_>, directories: bool) -> Vec<PathBuf> {
        let unlinks = |m: &&Member| {
            let of_directories = m.job.names.is_some_and(NameEngine::of_directories);
            m.job.files.unlink && m.engine.uses_files && of_directories == directories
        };
        let used = |member: &Member| {
            // The files of a replay are those of this rank's own logs.
            let shared = here.is_root() || member.job.replay.is_some();
            layout::used(here, &member.job, self.common.base, shared)
        };
        self.members.iter().filter(unlinks).flat_map(used).collect()
    }

    /// Files to remove at the end that are not there yet: they will be the
    /// run's own.
    pub(super) async fn missing(&self, group: &Group<'_>) -> Result<Vec<PathBuf>, ExecError> {
        let mut all = self.removable(group, false);
        all.extend(self.removable(group, true));
        let later = self
            .members
            .iter()
            .filter(|m| m.job.files.standing.temporary);
        all.extend(later.flat_map(|m| paths_of(group, &m.job, self.common.base)));
        let missing = group.agree_on_target(move || {
            let missing = all.into_iter().filter(|path| layout::is_missing(path));
            Ok(missing.collect())
        });
        missing.await
    }

    /// Files of jobs with `unlink` that this rank removes: files named by the user only where the
    /// run has created them.
    pub(super) fn to_remove(&self, here: &Ranks<'_>, made: &BTreeSet<PathBuf>) -> Vec<Leftover> {
        let named = |path: &PathBuf| {
            let given = |m: &Member| matches!(m.job.files.names, FileNames::Given(_));
            let shared = Whose::Shared { ranks: 1 };
            let of = |m: &Member| layout::paths(&m.job, self.common.base, shared);
            let temporary = |m: &Member| m.job.files.standing.temporary;
            let mut members = self.members.iter();
            members.any(|m| temporary(m) || given(m) && of(m).contains(path))
        };
        let mut all = Vec::new();
        for directory in [false, true] {
            let mut paths = self.removable(here, directory);
            paths.retain(|path| made.contains(path) || !named(path));
            all.extend(paths.into_iter().map(|path| Leftover { path, directory }));
        }
        all
    }
}

/// Something to be removed at the end.
pub(super) struct Leftover {
    path: PathBuf,
    directory: bool,
}

impl Leftover {
    /// A file.
    pub(super) fn file(path: PathBuf) -> Leftover {
        Leftover {
            path,
            directory: false,
        }
    }
}

/// Removes files and directories. What could not be removed, at rank 0.
pub(super) async fn remove(
    group: &Group<'_>,
    paths: Vec<Leftover>,
) -> Result<Vec<String>, ExecError> {
    if let Some(why) = group.untouchable() {
        let texts = left_as_they_are(&paths, &why);
        return gather_texts(group, texts.into_iter().collect()).await;
    }
    let failed = |Leftover { path, directory }: &Leftover| {
        let removed = match directory {
            true => files::remove_directory(path),
            false => files::unlink_file(path),
        };
        match removed {
            Ok(()) | Err(Errno::ENOENT) => None,
            Err(errno) => Some(format!("{}: {} ({errno:?})", path.display(), errno.desc())),
        }
    };
    let untouched =
        |rest: &[Leftover], why: &str| left_as_they_are(rest, why).into_iter().collect();
    let left = one_by_one(group, paths, failed, untouched).await?;
    gather_texts(group, left).await
}

/// Message that files are not removed, which may be many.
fn left_as_they_are(paths: &[Leftover], why: &str) -> Option<String> {
    let (first, others) = paths.split_first()?;
    let text = left_untouched(&first.path, why);
    Some(match others.len() {
        0 => text,
        others => {
            format!("{text}; the same goes for {others} other files of this rank with unlink")
        }
    })
}
