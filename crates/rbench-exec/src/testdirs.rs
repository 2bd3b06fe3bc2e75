//! The directories on mdtest's command line: `test-dir.<iteration>- <loop>` below them is created
//! for each pass, and removed once the pass has removed its content. No marker is left in them:
//! mdtest itself must be able to continue with them.

use std::collections::HashSet;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use rbench_core::{Call, Nanos};
use rbench_plan::MetaPlan;
use rbench_plan::meta::{Backend, Location, PhaseKind};
use rbench_sys::anchor::Anchor;
use rbench_sys::testdir::{self, Held, Made};
use rbench_sys::{Fs, NullFs, PosixFs, Removal, RemoveError};

use crate::group::{ExecError, Group, Ranks};
use crate::removal::{Remover, Trees, left_untouched};
use crate::spots::Spot;
use crate::target::{Place, SEEN_WITHIN, Workspace, gather_texts, left_behind, team};

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
        if this.makes {
            let dirs = this.dirs.clone();
            let mut made = Vec::new();
            let result = this
                .make(group, &|k| vec![dirs[k].clone()], &mut made)
                .await;
            this.made = made;
            if let Err(error) = result {
                // Created directories are removed again; the first error is the one to report.
                for dir in this.made.iter().filter(|_| this.real) {
                    testdir::remove_empty(dir).ok();
                }
                return Err(error);
            }
        }
        let tops = group.agree(this.hold_tops()).await?;
        Ok(TestDirs { tops, ..this })
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
        let result = kept.iter().try_for_each(|path| self.make_one(path, made));
        group.agree(result).await?;
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
        let marks: Vec<PathBuf> = kept.iter().map(|path| path.join(&self.mark)).collect();
        let marked = marks
            .iter()
            .try_for_each(|mark| self.tops.make(mark).map(drop).map_err(|e| e.to_string()));
        let looked = match group.agree(marked).await {
            Ok(()) => {
                let result = self.make_where_unseen(group, names, made).await;
                let private = matches!(&result, Ok(true));
                group.agree(result).await.map(|_| private)
            }
            Err(error) => Err(error),
        };
        // In any case: mdtest must find the directories in its own form.
        let unmarked = marks.iter().try_for_each(|mark| {
            self.tops
                .remove_empty(mark)
                .map(drop)
                .map_err(|e| e.to_string())
        });
        let private = looked?;
        group.agree(unmarked).await?;
        self.shared &= !group.any(private).await?;
        Ok(())
    }

    /// Creates directories of this host's own if needed; returns whether it has them.
    async fn make_where_unseen(
        &mut self,
        group: &Group<'_>,
        names: &dyn Fn(usize) -> Vec<PathBuf>,
        made: &mut Vec<PathBuf>,
    ) -> Result<bool, String> {
        let Some(k) = self.looks_after(group).filter(|k| !self.keeps.contains(k)) else {
            return Ok(false);
        };
        let mut unseen = Vec::new();
        // One wait for all: a path not seen by its end is missing.
        let begun = group.now();
        for path in names(k) {
            if !seen(group, &self.tops, &path.join(&self.mark), begun).await? {
                unseen.push(path);
            }
        }
        for path in &unseen {
            self.make_one(path, made)?;
        }
        if !unseen.is_empty() {
            self.keeps.push(k);
        }
        Ok(!unseen.is_empty())
    }

    /// Returns the directory for which this rank is the first on this host.
    fn looks_after(&self, ranks: &Ranks<'_>) -> Option<usize> {
        let of = |rank: u32| rank as usize % self.dirs.len().max(1);
        let (me, host) = (ranks.rank().0, ranks.host_number());
        let first = (0..me).all(|r| ranks.host_of[r as usize] != host || of(r) != of(me));
        first.then_some(of(me))
    }

    fn make_one(&self, path: &Path, made: &mut Vec<PathBuf>) -> Result<(), String> {
        if self.real {
            if self.tops.make(path).map_err(|e| e.to_string())? == Made::Made {
                made.push(path.to_owned());
            }
            return Ok(());
        }
        match self.fs.on_path(Call::MKDIR, &c_path(path)?) {
            Ok(_) => {
                made.push(path.to_owned());
                Ok(())
            }
            Err(Errno::EEXIST) => Ok(()),
            Err(e) => Err(format!("cannot create {}: {}", path.display(), e.desc())),
        }
    }

    /// Opens the directories that others may replace.
    fn hold_tops(&self) -> Result<Held, String> {
        let mut tops = Vec::new();
        for dir in self.dirs.iter().filter(|_| self.real) {
            // A missing path belongs to nobody.
            if !testdir::others_may_replace(dir).unwrap_or(false) {
                continue;
            }
            let held = match self.made.contains(dir) {
                true => Held::default().hold(dir),
                false => testdir::hold_named(dir),
            };
            let held = held.map_err(|e| e.to_string())?;
            tops.push((dir.as_os_str().as_bytes().to_vec(), held));
        }
        Ok(Held(tops.into()))
    }

    /// Opens the test directories of a pass if others may replace them: mdtest's paths are
    /// absolute, and would lead to the replacement.
    fn hold(&mut self, iteration: u32) -> Result<Held, String> {
        let mut held = Vec::new();
        let is_held = |dir: &&PathBuf| {
            let mut tops = self.tops.0.iter();
            tops.any(|(top, _)| top == dir.as_os_str().as_bytes())
        };
        for dir in self.dirs.iter().filter(is_held) {
            for path in TestDirs::test_dirs(dir, iteration, self.loops) {
                if self.tops.is_there(&path).map_err(|e| e.to_string())? {
                    let fd = self.tops.hold(&path).map_err(|e| e.to_string())?;
                    held.push((path.as_os_str().as_bytes().to_vec(), fd));
                }
            }
        }
        let held = Held(held.into());
        if !held.0.is_empty() {
            let fs = open_root()?;
            self.fs = Arc::new(fs.holding(Arc::clone(&held.0)));
        }
        Ok(held)
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
            let left = |path: &PathBuf| left_untouched(path, &why);
            return Ok(paths.iter().map(left).collect());
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
        let work = move || {
            let kept = |path: &PathBuf| match tops.remove_empty(path) {
                Ok(true) => None,
                Ok(false) => tops
                    .is_there(path)
                    .unwrap_or(true)
                    .then(|| format!("{} is not empty and was not removed", path.display())),
                Err(e) => Some(e.to_string()),
            };
            paths.iter().filter_map(kept).collect::<Vec<String>>()
        };
        let left = group.in_thread(work).await?;
        Ok(left.unwrap_or_else(|lost| vec![lost]))
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
        let held = self.hold(iteration);
        self.held = group.agree(held).await?;
        Ok(())
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
        let real = self.real && group.untouchable().is_none();
        if !broken_off {
            if self.removes {
                let dirs = self.keeps.iter().flat_map(kept).collect();
                left = self.remove_empty(group, dirs).await?;
            }
            return gather_texts(group, left).await;
        }
        if !(self.makes && self.removes) {
            let there = self.keeps.iter().flat_map(kept).collect::<Vec<_>>();
            left.extend(
                there
                    .iter()
                    .filter(|p| real && testdir::is_there(p).unwrap_or(false))
                    .map(|path| {
                        format!(
                            "{} was not cleaned up: only a run that both creates and removes does that",
                            path.display()
                        )
                    }),
            );
            return gather_texts(group, left).await;
        }
        // Only the keepers know if the test directories are this run's; the private trees of all
        // ranks go at once.
        let mine = made_now.len() == self.keeps.len() * self.loops as usize;
        let mine = group.all(mine).await?;
        let trees = Arc::new(ByPath(self.held.clone()));
        if mine && self.real {
            let own = own.into_iter().map(PathBuf::from).collect();
            left.extend(remover.own(group, &trees, own).await?);
            group.quietly(group.world.barrier()).await?;
        }
        let not_ours = self.keeps.iter().flat_map(kept);
        let ours: HashSet<&PathBuf> = made_now.iter().collect();
        left.extend(
            not_ours
                .filter(|dir| !ours.contains(dir))
                .filter(|dir| real && testdir::is_there(dir).unwrap_or(true))
                .map(|dir| {
                    format!(
                        "{} was kept with its content: it existed before this run",
                        dir.display()
                    )
                }),
        );
        if self.real {
            let team = team(group, self.shared);
            left.extend(remover.together(group, team, &trees, made_now).await?);
            group.quietly(group.world.barrier()).await?;
        }
        gather_texts(group, left).await
    }

    async fn leave(self, group: &Group<'_>) -> Result<Vec<String>, ExecError> {
        let mine = self.made.iter().chain(&self.made_now);
        gather_texts(group, mine.map(|path| left_behind(path)).collect()).await
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

/// Checks for the keeper's directory until it is seen or, counted from `begun`, time is up.
async fn seen(group: &Group<'_>, tops: &Held, path: &Path, begun: Nanos) -> Result<bool, String> {
    loop {
        let there = tops.is_there(path).map_err(|e| e.to_string())?;
        if there || group.now().since(begun) > SEEN_WITHIN {
            return Ok(there);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn c_path(path: &Path) -> Result<CString, String> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| {
        format!(
            "{} is not a valid path: it contains a NUL byte",
            path.display()
        )
    })
}
