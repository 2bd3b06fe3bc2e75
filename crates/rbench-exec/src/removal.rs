//! Removal of trees by all ranks: each removes its own, then all together remove the rest. One rank
//! lists the rest, and each removes its share with all its workers; that rank removes the
//! remainder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rbench_comm::{Combine, Communicator};
use rbench_sys::anchor::{Anchor, deal};
use rbench_sys::{Part, Removal, RemoveError, WorkDir};

use crate::group::{ExecError, Group};
use crate::pace::StopFlag;

/// A level with this many directories for each remover is divided among them.
const ENOUGH: usize = 16;

/// Place of trees that are removed by name.
pub trait Trees: Send + Sync + 'static {
    /// Returns the tree `name`, if it exists and may be removed.
    fn anchor(&self, name: &Path) -> Option<Anchor>;

    /// Removes the tree `name`; does nothing if it does not exist.
    ///
    /// # Errors
    /// The paths that stay, and the reason.
    fn remove(&self, name: &Path, how: Removal<'_>) -> Result<u64, RemoveError>;
}

impl Trees for WorkDir {
    fn anchor(&self, name: &Path) -> Option<Anchor> {
        WorkDir::anchor(self, name.to_str()?).ok().flatten()
    }

    fn remove(&self, name: &Path, how: Removal<'_>) -> Result<u64, RemoveError> {
        self.remove_below(&name.to_string_lossy(), how)
    }
}

/// A rank's means of removal, and its progress.
#[derive(Debug, Clone)]
pub struct Remover {
    threads: u32,
    stop: StopFlag,
    removed: Arc<AtomicU64>,
}

impl Remover {
    /// Creates a remover with this number of threads, at least one.
    pub fn new(threads: u32) -> Remover {
        Remover {
            threads: threads.max(1),
            stop: StopFlag::default(),
            removed: Arc::default(),
        }
    }

    /// Sets the flag that ends it.
    pub fn until(self, stop: StopFlag) -> Remover {
        Remover { stop, ..self }
    }

    /// Returns the entries that this rank has removed.
    pub fn removed(&self) -> u64 {
        self.removed.load(Ordering::Relaxed)
    }

    /// Removes with all threads; `work` takes the parameters.
    pub fn with<T>(&self, work: impl FnOnce(Removal<'_>) -> T) -> T {
        let count = |_| {
            self.removed.fetch_add(1, Ordering::Relaxed);
        };
        let stopped = || self.stop.is_raised();
        work(Removal {
            threads: self.threads,
            stop: &stopped,
            progress: &count,
        })
    }

    /// Works besides the control plane, and shows the progress.
    pub async fn beside<T: Send + 'static>(
        &self,
        group: &Group<'_>,
        work: impl FnOnce(&Remover) -> T + Send + 'static,
    ) -> Result<Result<T, String>, ExecError> {
        let remover = self.clone();
        group
            .on_target(move || work(&remover), || self.removed())
            .await
    }

    /// Removes a tree's content with its threads in different directories: calls in the same one
    /// wait for each other. The last removal reports the remainder.
    fn spread<T: Trees>(&self, trees: &T, name: &Path) {
        let anchor = (self.threads > 1).then(|| trees.anchor(name)).flatten();
        let Some(anchor) = anchor else {
            return;
        };
        loop {
            let before = self.removed();
            let (parts, _) = anchor.survey(ENOUGH * self.threads as usize);
            if !parts.is_empty() {
                self.with(|how| anchor.remove(&parts, how)).ok();
            }
            if self.removed() == before {
                break;
            }
        }
    }

    /// Removes the trees of only this rank; returns the remainder, as sentences.
    ///
    /// # Errors
    /// When the ranks cannot communicate.
    pub async fn own<T: Trees>(
        &self,
        group: &Group<'_>,
        trees: &Arc<T>,
        names: Vec<PathBuf>,
    ) -> Result<Vec<String>, ExecError> {
        // The rank that keeps the trees reports the remainder.
        if group.untouchable().is_some() {
            return Ok(Vec::new());
        }
        let (trees, all) = (Arc::clone(trees), names.clone());
        let work = move |remover: &Remover| {
            let failed = |name: &PathBuf| {
                remover.spread(trees.as_ref(), name);
                let removed = remover.with(|how| trees.remove(name, how));
                removed.err().map(|error| error.to_string())
            };
            all.iter().filter_map(failed).collect()
        };
        let left = self.beside(group, work).await?;
        Ok(left.unwrap_or_else(|lost| all_untouched(&names, &lost)))
    }

    /// Removes trees together with all ranks of `team`, which see the same ones: `kept` are those
    /// that this rank keeps. Returns the remainder of these, as sentences.
    ///
    /// # Errors
    /// When the ranks cannot communicate.
    pub async fn together<T: Trees>(
        &self,
        group: &Group<'_>,
        team: &dyn Communicator,
        trees: &Arc<T>,
        kept: Vec<PathBuf>,
    ) -> Result<Vec<String>, ExecError> {
        self.shares(group, team, trees, &kept).await?;
        let left = match group.untouchable() {
            Some(why) => all_untouched(&kept, &why),
            None => self.own(group, trees, kept).await?,
        };
        group.quietly(team.barrier()).await?;
        Ok(left)
    }

    /// Removes shares on all ranks, round by round while that removes anything: of `kept` only
    /// directories without files, and failures, remain.
    ///
    /// # Errors
    /// When the ranks cannot communicate.
    pub async fn shares<T: Trees>(
        &self,
        group: &Group<'_>,
        team: &dyn Communicator,
        trees: &Arc<T>,
        kept: &[PathBuf],
    ) -> Result<(), ExecError> {
        let size = team.size() as usize;
        if size == 1 && self.threads == 1 {
            return Ok(());
        }
        let untouched = group.untouchable().is_some();
        let kept = if untouched { &[] } else { kept };
        loop {
            let (there, names) = (Arc::clone(trees), kept.to_vec());
            let enough = ENOUGH * size.max(self.threads as usize);
            let look = move |_: &Remover| {
                let look = |name: PathBuf| Some((there.anchor(&name)?.survey(enough), name));
                let found = names.into_iter().filter_map(look);
                found.collect::<Vec<((Vec<Part>, bool), PathBuf)>>()
            };
            // Without the thread it is removed at the end.
            let found = self.beside(group, look).await?.unwrap_or_default();
            if let ([((parts, true), _)], true) = (&found[..], team.size() == group.world.size()) {
                let entries = parts.iter().map(|part| part.entries.len() as u64);
                group.expect(entries.sum());
            }
            let trees_of = |((parts, _), name): ((Vec<Part>, bool), PathBuf)| {
                (!parts.is_empty()).then(|| (name.into_os_string(), parts))
            };
            let mine: Vec<(OsString, Vec<Part>)> = found.into_iter().filter_map(trees_of).collect();
            let all = group.quietly(team.all_values(&mine)).await?;
            let all: Vec<(OsString, Vec<Part>)> = all.into_iter().flatten().collect();
            if all.is_empty() {
                return Ok(());
            }
            let (there, nth) = (Arc::clone(trees), team.rank().0 as usize);
            let remove = move |remover: &Remover| {
                let before = remover.removed();
                for (name, parts) in &all {
                    let own = deal(parts, nth, size);
                    if own.is_empty() || untouched {
                        continue;
                    }
                    if let Some(anchor) = there.anchor(Path::new(name)) {
                        // The last removal reports the remainder.
                        remover.with(|how| anchor.remove(&own, how)).ok();
                    }
                }
                remover.removed() - before
            };
            let removed = self.beside(group, remove).await?.unwrap_or(0);
            let sum = team.all_reduce(Combine::Sum, vec![removed]);
            if group.quietly(sum).await?[0] == 0 {
                return Ok(());
            }
        }
    }
}

/// Removes names one after the other; `remove` says what was not removed. Returns that, and what
/// `untouched` says of the names that were not reached because a call did not return.
///
/// # Errors
/// When the ranks cannot communicate.
pub async fn one_by_one<N: Send + Sync + 'static>(
    group: &Group<'_>,
    names: Vec<N>,
    remove: impl Fn(&N) -> Option<String> + Send + 'static,
    untouched: impl Fn(&[N], &str) -> Vec<String>,
) -> Result<Vec<String>, ExecError> {
    let names = Arc::new(names);
    let reached = Arc::new(Mutex::new((0, Vec::new())));
    let (all, state) = (Arc::clone(&names), Arc::clone(&reached));
    let work = move || {
        for name in all.iter() {
            let left = remove(name);
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.0 += 1;
            state.1.extend(left);
        }
    };
    let done = group.on_target(work, || 0).await?;
    let state = reached.lock().unwrap_or_else(PoisonError::into_inner);
    let (reached, mut left) = (state.0, state.1.clone());
    if let Err(why) = done {
        left.extend(untouched(&names[reached..], &why));
    }
    Ok(left)
}

/// Says that something was not removed, and why.
pub fn left_untouched(path: &Path, why: &str) -> String {
    format!("{} is left behind: {why}", path.display())
}

/// Says of each path that it was not removed.
pub fn all_untouched(paths: &[PathBuf], why: &str) -> Vec<String> {
    let left = paths.iter().map(|path| left_untouched(path, why));
    left.collect()
}
