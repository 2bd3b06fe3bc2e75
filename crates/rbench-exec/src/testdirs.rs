//! The directories on mdtest's command line: `test-dir.<iteration>- <loop>` below them is created
//! for each pass, and removed once the pass has removed its content. No marker is left in them:
//! mdtest itself must be able to continue with them.

use std::collections::HashSet;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use rbench_core::{Call, Clock as _, MonotonicClock};
use rbench_plan::MetaPlan;
use rbench_plan::meta::{Backend, Location, PhaseKind};
use rbench_sys::anchor::Anchor;
use rbench_sys::testdir::{self, Held, Made};
use rbench_sys::{Fs, NullFs, PosixFs, Removal, RemoveError, SetupError};

use crate::group::{ExecError, Group, Ranks};
use crate::removal::{Remover, Trees, all_untouched, one_by_one};
use crate::spots::Spot;
use crate::target::{Place, SEEN_WITHIN, Workspace, gather_texts, team};

/// The directories of a run as this rank sees them.
pub(crate) struct TestDirs {
    dirs: Vec<PathBuf>,
    loops: u64,
    /// Set if the run creates and removes the items in them.
    makes: bool,
    removes: bool,
    /// Set if the calls reach a file system.
    real: bool,
    fs: Arc<dyn Fs>,
    /// Name of the mark that is created in a directory for a moment.
    mark: String,
    /// The directories that this rank keeps for its name space: for all hosts that see the same.
    keeps: Vec<usize>,
    /// Set if every host sees the same directories.
    shared: bool,
    /// Members of `dirs` that did not exist before.
    made: Vec<PathBuf>,
    /// Test directories of the pass that this rank created.
    made_now: Vec<PathBuf>,
    /// Open `dirs` whose parents others may change.
    tops: Held,
    /// Like `tops`, for the test directories of the pass.
    held: Held,
}

impl TestDirs {
    /// Creates the missing directories, down to their last component. With a recorder all calls go
    /// to it.
    ///
    /// # Errors
    /// One sentence, the same on every rank.
    pub async fn set_up(
        group: &Group<'_>,
        plan: &MetaPlan,
        place: &Place<'_>,
    ) -> Result<TestDirs, ExecError> {
        let recorder = place.recorder.clone();
        let dirs = match &plan.site {
            Location::TestDirs(dirs) => dirs.clone(),
            Location::Own => Vec::new(),
        };
        let real = recorder.is_none() && plan.backend == Backend::Posix;
        let fs: Result<Arc<dyn Fs>, String> = match (recorder, plan.backend) {
            (Some(recorder), _) => Ok(recorder),
            (None, Backend::Dummy) => Ok(Arc::new(NullFs)),
            // All paths are absolute: any directory will do.
            (None, Backend::Posix) => open_root().map(|fs| Arc::new(fs) as Arc<dyn Fs>),
        };
        let fs = group.agree(fs).await?;
        let rank = group.rank().0 as usize;
        let mut this = TestDirs {
            keeps: (rank < dirs.len()).then_some(rank).into_iter().collect(),
            dirs,
            loops: plan.loops,
            makes: plan.runs(PhaseKind::TreeCreate),
            removes: plan.runs(PhaseKind::TreeRemove),
            real,
            fs,
            mark: format!(".{}", place.name),
            shared: true,
            made: Vec::new(),
            made_now: Vec::new(),
            tops: Held::default(),
            held: Held::default(),
        };
        if let Err(error) = this.make_and_hold(group).await {
            // Created directories are removed again; the first error is the one to report.
            if this.real {
                let made = std::mem::take(&mut this.made);
                let remove = move || {
                    let removed = made.iter().map(|dir| testdir::remove_empty(dir));
                    removed.filter_map(Result::err).count()
                };
                group.on_target(remove, || 0).await?.ok();
            }
            return Err(error);
        }
        Ok(this)
    }

    /// Creates the missing directories, and opens those that others may replace.
    async fn make_and_hold(&mut self, group: &Group<'_>) -> Result<(), ExecError> {
        if self.makes {
            let dirs = self.dirs.clone();
            let mut made = Vec::new();
            let names = |k: usize| vec![dirs[k].clone()];
            let result = self.make(group, &names, &mut made).await;
            self.made = made;
            result?;
        }
        let (dirs, made) = (self.used(group), self.made.clone());
        let hold = move || hold_tops(&dirs, &made);
        let tops = group.agree_on_target_if(self.real, hold).await?;
        self.tops = tops.unwrap_or_default();
        Ok(())
    }

    /// Returns the directories in which ranks work, and whether this rank is one of them. It calls
    /// into others only if the command line shifts ranks or one rank works for all.
    fn used(&self, group: &Group<'_>) -> Vec<(PathBuf, bool)> {
        let (rank, count) = (group.rank().0 as usize, self.dirs.len().max(1));
        let used = self.dirs.iter().take(group.world.size() as usize);
        let own = |(k, dir): (usize, &PathBuf)| (dir.clone(), k == rank % count);
        used.enumerate().map(own).collect()
    }

    /// Returns whether every host sees the same directories, if known.
    pub fn shared(&self) -> bool {
        self.shared
    }

    /// Creates the `names` of each directory: by its keeper, then by the first of its ranks on each
    /// host that does not see it. Records this rank's in `made`, even on failure.
    async fn make(
        &mut self,
        group: &Group<'_>,
        names: &dyn Fn(usize) -> Vec<PathBuf>,
        made: &mut Vec<PathBuf>,
    ) -> Result<(), ExecError> {
        let kept: Vec<PathBuf> = self.keeps.iter().flat_map(|k| names(*k)).collect();
        self.make_all(group, kept.clone(), made).await?;
        if self.real && group.host_names.len() > 1 {
            self.look_everywhere(group, names, &kept, made).await?;
        }
        Ok(())
    }

    /// Checks with a mark that all hosts see the directories `kept` by their keepers; hosts that do
    /// not create their own. A client may still hold a removed directory of the same name, and
    /// hosts may have separate file systems. The mark is removed before anything is measured.
    async fn look_everywhere(
        &mut self,
        group: &Group<'_>,
        names: &dyn Fn(usize) -> Vec<PathBuf>,
        kept: &[PathBuf],
        made: &mut Vec<PathBuf>,
    ) -> Result<(), ExecError> {
        let mark = |path: &PathBuf| path.join(&self.mark);
        let (tops, marks) = (self.tops.clone(), kept.iter().map(mark).collect::<Vec<_>>());
        let marked = group.agree_on_target(move || {
            let mut marks = marks.iter();
            marks.try_for_each(|mark| tops.make(mark).map(drop).map_err(|e| e.to_string()))
        });
        let looked = match marked.await {
            Ok(()) => self.make_where_unseen(group, names, made).await,
            Err(error) => Err(error),
        };
        // In any case: mdtest must find the directories in its own form.
        let mark = |path: &PathBuf| path.join(&self.mark);
        let (tops, marks) = (self.tops.clone(), kept.iter().map(mark).collect::<Vec<_>>());
        let unmark = move || {
            let mut marks = marks.iter();
            marks.try_for_each(|mark| tops.remove_empty(mark).map(drop))
        };
        let unmarked = group.on_target(unmark, || 0).await?;
        let private = looked?;
        let unmarked = unmarked.and_then(|unmarked| unmarked.map_err(|e| e.to_string()));
        group.agree_on_calls(unmarked).await?;
        self.shared &= !group.any(private).await?;
        Ok(())
    }

    /// Creates directories of this host's own if needed; returns whether it has them.
    async fn make_where_unseen(
        &mut self,
        group: &Group<'_>,
        names: &dyn Fn(usize) -> Vec<PathBuf>,
        made: &mut Vec<PathBuf>,
    ) -> Result<bool, ExecError> {
        let looked_after = self.looks_after(group).filter(|k| !self.keeps.contains(k));
        let paths = looked_after.map_or_else(Vec::new, names);
        let (tops, mark) = (self.tops.clone(), self.mark.clone());
        let unseen = group.agree_on_target(move || unseen(paths, &tops, &mark));
        let unseen = unseen.await?;
        let private = looked_after.filter(|_| !unseen.is_empty());
        self.make_all(group, unseen, made).await?;
        self.keeps.extend(private);
        Ok(private.is_some())
    }

    /// Returns the directory for which this rank is the first on this host.
    fn looks_after(&self, ranks: &Ranks<'_>) -> Option<usize> {
        let of = |rank: u32| rank as usize % self.dirs.len().max(1);
        let (me, host) = (ranks.rank().0, ranks.host_number());
        let first = (0..me).all(|r| ranks.host_of[r as usize] != host || of(r) != of(me));
        first.then_some(of(me))
    }

    /// Creates `paths` on this rank; adds those that were missing to `made`, even on failure.
    async fn make_all(
        &self,
        group: &Group<'_>,
        paths: Vec<PathBuf>,
        made: &mut Vec<PathBuf>,
    ) -> Result<(), ExecError> {
        let tops = self.real.then(|| self.tops.clone());
        let fs = Arc::clone(&self.fs);
        let make = move || {
            let mut made = Vec::new();
            let make = |path: &PathBuf| -> Result<(), String> {
                if make_one(path, tops.as_ref(), fs.as_ref())? {
                    made.push(path.clone());
                }
                Ok(())
            };
            let result = paths.iter().try_for_each(make);
            (made, result)
        };
        let result = match group.on_target(make, || 0).await? {
            Ok((new, result)) => {
                made.extend(new);
                result
            }
            Err(lost) => Err(lost),
        };
        group.agree_on_calls(result).await
    }

    /// Opens the test directories of a pass if others may replace them: mdtest's paths are
    /// absolute, and would lead to the replacement.
    async fn hold(&mut self, group: &Group<'_>, iteration: u32) -> Result<(), ExecError> {
        self.held = Held::default();
        let is_held = |(dir, _): &(PathBuf, bool)| {
            let mut tops = self.tops.0.iter();
            tops.any(|(top, _)| top == dir.as_os_str().as_bytes())
        };
        let dirs = self.used(group).into_iter().filter(is_held);
        let paths = dirs.flat_map(|(dir, own)| {
            let paths = TestDirs::test_dirs(&dir, iteration, self.loops);
            paths.into_iter().map(move |path| (path, own))
        });
        let (paths, tops) = (paths.collect::<Vec<_>>(), self.tops.clone());
        let hold = move || {
            let held = paths.iter().map(|(path, own)| {
                let held = tops.hold(path);
                // That of another rank may be missing on this host.
                let missing = matches!(held, Err(SetupError::Missing(_)));
                let held = held.map_err(|e| e.to_string());
                Ok((
                    path.as_os_str().as_bytes().to_vec(),
                    held_or_nothing(held, missing || !*own)?,
                ))
            });
            let held = held.collect::<Result<Arc<[_]>, String>>()?;
            let root = (!held.is_empty()).then(open_root).transpose()?;
            Ok((Held(held), root))
        };
        let (held, root) = group.agree_on_target(hold).await?;
        if let Some(root) = root {
            self.fs = Arc::new(root.holding(Arc::clone(&held.0)));
        }
        self.held = held;
        Ok(())
    }

    fn test_dirs(dir: &Path, iteration: u32, loops: u64) -> Vec<PathBuf> {
        (0..loops)
            .map(|nth| dir.join(format!("test-dir.{iteration}-{nth}")))
            .collect()
    }

    /// Removes empty directories; returns those that stay, as sentences.
    async fn remove_empty(
        &self,
        group: &Group<'_>,
        paths: Vec<PathBuf>,
    ) -> Result<Vec<String>, ExecError> {
        if let Some(why) = group.untouchable() {
            return Ok(all_untouched(&paths, &why));
        }
        if !self.real {
            for path in paths {
                if let Ok(path) = c_path(&path) {
                    // The result from a recorder is in its log.
                    let _ = self.fs.on_path(Call::Rmdir, &path);
                }
            }
            return Ok(Vec::new());
        }
        let tops = self.tops.clone();
        let kept = move |path: &PathBuf| match tops.remove_empty(path) {
            Ok(true) => None,
            Ok(false) => tops
                .is_there(path)
                .unwrap_or(true)
                .then(|| format!("{} is not empty and was not removed", path.display())),
            Err(e) => Some(e.to_string()),
        };
        one_by_one(group, paths, kept, all_untouched).await
    }

    /// Returns those of `paths` that exist; `unknown`: also those that cannot be inspected.
    async fn existing(
        &self,
        group: &Group<'_>,
        mut paths: Vec<PathBuf>,
        unknown: bool,
    ) -> Result<Vec<PathBuf>, ExecError> {
        if !self.real || group.untouchable().is_some() {
            return Ok(Vec::new());
        }
        let all = paths.clone();
        let look = move || {
            paths.retain(|path| testdir::is_there(path).unwrap_or(unknown));
            paths
        };
        let found = group.on_target(look, || 0).await?;
        Ok(found.unwrap_or(if unknown { all } else { Vec::new() }))
    }
}

/// Trees by their paths.
struct ByPath(Held);

impl Trees for ByPath {
    fn anchor(&self, path: &Path) -> Option<Anchor> {
        self.0.anchor(path).ok().flatten()
    }

    fn remove(&self, path: &Path, how: Removal<'_>) -> Result<u64, RemoveError> {
        self.0.remove_tree(path, how)
    }
}

impl Workspace for TestDirs {
    fn fs(&self) -> Arc<dyn Fs> {
        Arc::clone(&self.fs)
    }

    async fn open(&mut self, group: &Group<'_>, iteration: u32) -> Result<(), ExecError> {
        if self.makes {
            let (dirs, loops) = (self.dirs.clone(), self.loops);
            let names = |k: usize| TestDirs::test_dirs(&dirs[k], iteration, loops);
            let mut made = Vec::new();
            let result = self.make(group, &names, &mut made).await;
            self.made_now = made;
            result?;
        }
        self.hold(group, iteration).await
    }

    /// After a complete pass the empty test directories are removed. After an interrupted one the
    /// trees are, too, if the run was to remove them and created them itself.
    async fn close(
        &mut self,
        group: &Group<'_>,
        iteration: u32,
        own: Vec<String>,
        broken_off: bool,
        remover: &Remover,
    ) -> Result<Vec<String>, ExecError> {
        let made_now = std::mem::take(&mut self.made_now);
        let kept = |k: &usize| TestDirs::test_dirs(&self.dirs[*k], iteration, self.loops);
        let mut left = Vec::new();
        if !broken_off {
            if self.removes {
                let dirs = self.keeps.iter().flat_map(kept).collect();
                left = self.remove_empty(group, dirs).await?;
            }
            return gather_texts(group, left).await;
        }
        if !(self.makes && self.removes) {
            let there = self.keeps.iter().flat_map(kept).collect();
            let there = self.existing(group, there, false).await?;
            left.extend(there.iter().map(|path| {
                format!(
                    "{} was not cleaned up: only a run that both creates and removes does that",
                    path.display()
                )
            }));
            return gather_texts(group, left).await;
        }
        // Only the keepers know if the test directories are this run's; the private trees of all
        // ranks go at once.
        let mine = made_now.len() == self.keeps.len() * self.loops as usize;
        let mine = group.all(mine).await?;
        let held = if self.held.0.is_empty() {
            &self.tops
        } else {
            &self.held
        };
        let trees = Arc::new(ByPath(held.clone()));
        if mine && self.real {
            let own = own.into_iter().map(PathBuf::from).collect();
            left.extend(remover.own(group, &trees, own).await?);
            group.meet().await?;
        }
        let ours: HashSet<&PathBuf> = made_now.iter().collect();
        let others = self.keeps.iter().flat_map(kept);
        let others = others.filter(|dir| !ours.contains(dir)).collect();
        let others = self.existing(group, others, true).await?;
        left.extend(others.iter().map(|dir| {
            format!(
                "{} was kept with its content: it existed before this run",
                dir.display()
            )
        }));
        if self.real {
            let team = team(group, self.shared);
            left.extend(remover.together(group, team, &trees, made_now).await?);
            group.meet().await?;
        }
        gather_texts(group, left).await
    }

    async fn end(self, group: &Group<'_>, _remover: &Remover) -> Result<Vec<String>, ExecError> {
        let left = if self.removes {
            self.remove_empty(group, self.made.clone()).await?
        } else {
            Vec::new()
        };
        gather_texts(group, left).await
    }
}

/// Returns the directories as places of a run: rank r works in directory r modulo their number.
pub(crate) fn spots(dirs: &[PathBuf], ranks: u32) -> Vec<Spot> {
    let spot = |(k, path): (usize, &PathBuf)| Spot {
        path: path.clone(),
        makes: true,
        witness: None,
        ranks: (0..ranks)
            .filter(|r| *r as usize % dirs.len() == k)
            .collect(),
    };
    let spots = dirs.iter().enumerate().map(spot);
    spots.filter(|spot| !spot.ranks.is_empty()).collect()
}

/// Returns whether a directory has trees of an earlier run, if known.
pub(crate) fn has_trees(dir: &Path) -> bool {
    testdir::is_there(&dir.join("test-dir.0-0")).unwrap_or(true)
}

fn open_root() -> Result<PosixFs, String> {
    PosixFs::open_directory(Path::new("/")).map_err(|e| format!("cannot open /: {}", e.desc()))
}

/// Creates the directory `path`, in a file system whose replaceable directories are `tops`, or by
/// `fs`; returns whether it was missing.
fn make_one(path: &Path, tops: Option<&Held>, fs: &dyn Fs) -> Result<bool, String> {
    if let Some(tops) = tops {
        let made = tops.make(path).map_err(|e| e.to_string())?;
        return Ok(made == Made::Made);
    }
    match fs.on_path(Call::MKDIR, &c_path(path)?) {
        Ok(_) => Ok(true),
        Err(Errno::EEXIST) => Ok(false),
        Err(e) => Err(format!("cannot create {}: {}", path.display(), e.desc())),
    }
}

/// Opens those of `dirs`, as of [`TestDirs::used`], that others may replace; the run has created
/// those in `made`.
fn hold_tops(dirs: &[(PathBuf, bool)], made: &[PathBuf]) -> Result<Held, String> {
    let mut tops = Vec::new();
    for (dir, own) in dirs {
        let held = match (testdir::others_may_replace(dir), made.contains(dir)) {
            (Ok(false), _) => continue,
            (Ok(true), true) => Held::default().hold(dir).map_err(|e| e.to_string()),
            (Ok(true), false) => testdir::hold_named(dir).map_err(|e| e.to_string()),
            (Err(e), _) => Err(format!("cannot inspect {}: {}", dir.display(), e.desc())),
        };
        let held = held_or_nothing(held, !*own)?;
        tops.push((dir.as_os_str().as_bytes().to_vec(), held));
    }
    Ok(Held(tops.into()))
}

/// Returns the held directory. A directory that the run `may_lack` is replaced with one in which
/// nothing is found: calls on its path would follow whatever has its name a moment later.
fn held_or_nothing(held: Result<OwnedFd, String>, may_lack: bool) -> Result<OwnedFd, String> {
    match held {
        Err(_) if may_lack => {
            Held::nothing().map_err(|e| format!("cannot open a pipe: {}", e.desc()))
        }
        held => held,
    }
}

/// Checks for the keeper's marks in `paths` until all are seen or time is up, one wait for all;
/// returns those that are not.
fn unseen(paths: Vec<PathBuf>, tops: &Held, mark: &str) -> Result<Vec<PathBuf>, String> {
    let begun = MonotonicClock.now();
    let mut unseen = Vec::new();
    for path in paths {
        let there = loop {
            let there = tops.is_there(&path.join(mark)).map_err(|e| e.to_string())?;
            if there || MonotonicClock.now().since(begun) > SEEN_WITHIN {
                break there;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        if !there {
            unseen.push(path);
        }
    }
    Ok(unseen)
}

fn c_path(path: &Path) -> Result<CString, String> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| {
        format!(
            "{} is not a valid path: it contains a NUL byte",
            path.display()
        )
    })
}
