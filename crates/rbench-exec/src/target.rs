//! The run's own directory on the target: made once, recognised by every
//! host, removed at the end.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use rbench_comm::Communicator;
use rbench_core::{Nanos, OpenFlags, Rank};
use rbench_sys::{Fs, NullFs, RemoveError, SetupError, WorkDir};

use crate::group::{ExecError, Group};
use crate::live::LiveStats;
use crate::removal::{Remover, left_untouched};

/// How long another host may take to see a directory that rank 0 has made:
/// some clients keep a parent's listing for a second or two.
pub(crate) const SEEN_WITHIN: Nanos = Nanos(4_000_000_000);

/// What the trees and files of a run stand on; what is not said otherwise, nothing is made in.
pub(crate) trait Workspace {
    /// Whether the run makes anything in it that is to be removed.
    fn holds_something(&self) -> bool {
        true
    }

    /// Where the calls of the workers go.
    fn fs(&self) -> Arc<dyn Fs>;

    /// Makes the directory of a pass, untimed.
    ///
    /// # Errors
    /// One sentence, the same on every rank.
    async fn open(&mut self, _group: &Group<'_>, _iteration: u32) -> Result<(), ExecError> {
        Ok(())
    }

    /// Removes what a pass left, by all ranks at once: each what it alone has in
    /// `own`, then all together the rest. `broken_off`: whether the pass did not
    /// reach its end. What could not be removed, at rank 0: not being able to is
    /// no error.
    async fn close(
        &mut self,
        _group: &Group<'_>,
        _iteration: u32,
        _own: Vec<String>,
        _broken_off: bool,
        _remover: &Remover,
    ) -> Result<Vec<String>, ExecError> {
        Ok(Vec::new())
    }

    /// Leaves everything as it is, as it cannot be removed now; what that is,
    /// at rank 0.
    async fn leave(self, _group: &Group<'_>) -> Result<Vec<String>, ExecError>
    where
        Self: Sized,
    {
        Ok(Vec::new())
    }

    /// Removes what the run made; what could not be, at rank 0.
    async fn end(self, _group: &Group<'_>, _remover: &Remover) -> Result<Vec<String>, ExecError>
    where
        Self: Sized,
    {
        Ok(Vec::new())
    }
}

/// Where nothing is made.
pub(crate) struct Untouched;

impl Workspace for Untouched {
    fn holds_something(&self) -> bool {
        false
    }

    fn fs(&self) -> Arc<dyn Fs> {
        Arc::new(NullFs)
    }
}

/// The run's own directory as this rank sees it.
pub struct Target {
    workdir: Arc<WorkDir>,
    path: PathBuf,
    /// Whether this rank makes and removes on behalf of its name space.
    keeper: bool,
    /// Whether every host sees the same directory.
    shared: bool,
}

/// What the caller knows of the target.
#[derive(Clone)]
pub struct Place<'p> {
    /// The directory given by the user, or this host's built-in mount.
    pub parent: &'p Path,
    /// Name of the run's own directory in it.
    pub name: &'p str,
    /// Content of the marker file.
    pub marker: &'p [u8],
    /// Why all hosts must see the same directory, as a flag.
    pub needs_shared: Option<&'static str>,
    /// Takes the calls of test directories instead of the target: for checks
    /// of what is issued.
    pub recorder: Option<Arc<dyn Fs>>,
    /// Takes what the workers of jobs did so far.
    pub live: Option<Arc<LiveStats>>,
}

impl Target {
    /// Makes the run's own directory: once where all hosts see the same
    /// target, on each host where they do not.
    ///
    /// # Errors
    /// One sentence, the same on every rank.
    pub async fn set_up(group: &Group<'_>, place: &Place<'_>) -> Result<Target, ExecError> {
        let create =
            || WorkDir::create(place.parent, place.name, place.marker).map_err(|e| e.to_string());
        let made = group
            .agree(if group.is_root() {
                create().map(Some)
            } else {
                Ok(None)
            })
            .await?;
        let mut found = Found {
            workdir: made,
            keeper: group.is_root(),
            shared: true,
        };
        match found.everywhere(group, place, &create).await {
            Ok(workdir) => {
                let path = workdir.path().to_owned();
                let Found {
                    workdir: _,
                    keeper,
                    shared,
                } = found;
                Ok(Target {
                    workdir: Arc::new(workdir),
                    path,
                    keeper,
                    shared,
                })
            }
            Err(error) => {
                // What was made goes again; the first reason is the one to tell.
                if let Some(dir) = found.workdir.filter(|_| found.keeper) {
                    Remover::new(1).with(|how| dir.remove(how)).ok();
                }
                Err(error)
            }
        }
    }

    /// Whether every host sees the same directory.
    pub fn shared(&self) -> bool {
        self.shared
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its descriptor, by which its files are opened.
    pub fn directory(&self) -> Arc<OwnedFd> {
        self.workdir.directory_shared()
    }

    /// Its path for calls that take no directory: by way of the descriptor, so that it leads here whatever
    /// is at [`Target::path`] by now.
    pub fn held_path(&self) -> PathBuf {
        self.workdir.held_path()
    }

    /// Makes the directories `own` (by this rank) below `shared_parent` (made
    /// once for each name space), untimed.
    ///
    /// # Errors
    /// One sentence, the same on every rank.
    pub async fn make_dirs(
        &self,
        group: &Group<'_>,
        parent: &str,
        own: &[String],
    ) -> Result<(), ExecError> {
        let make = |name: &str| {
            self.workdir
                .mkdir_all(name)
                .map(drop)
                .map_err(|e| e.to_string())
        };
        group
            .agree(if self.keeper { make(parent) } else { Ok(()) })
            .await?;
        group
            .agree(
                own.iter()
                    .try_for_each(|name| make(&format!("{parent}/{name}"))),
            )
            .await
    }

    /// Makes the empty file `name` once for each name space, untimed: some file
    /// systems fail when several clients create the same file at a time.
    ///
    /// # Errors
    /// One sentence, the same on every rank.
    pub async fn make_file(&self, group: &Group<'_>, name: &str) -> Result<(), ExecError> {
        let fs = self.workdir.fs();
        let make = || {
            let path = CString::new(name).map_err(|_| Errno::EINVAL)?;
            fs.open(&path, OpenFlags::CREATE_NEW)
                .and_then(|fd| fs.close(fd))
        };
        let made = if self.keeper { make() } else { Ok(()) };
        group
            .agree(made.map_err(|e| format!("cannot create {name}: {} ({e:?})", e.desc())))
            .await
    }
}

impl Workspace for Target {
    fn fs(&self) -> Arc<dyn Fs> {
        Arc::new(self.workdir.fs())
    }

    async fn open(&mut self, group: &Group<'_>, iteration: u32) -> Result<(), ExecError> {
        self.make_dirs(group, &iteration.to_string(), &[]).await
    }

    async fn close(
        &mut self,
        group: &Group<'_>,
        iteration: u32,
        own: Vec<String>,
        _broken_off: bool,
        remover: &Remover,
    ) -> Result<Vec<String>, ExecError> {
        // What cannot be removed now may go with the whole: the end tells.
        let own = own.into_iter().map(PathBuf::from).collect();
        remover.own(group, &self.workdir, own).await?;
        group.quietly(group.world.barrier()).await?;
        let kept = self.keeper.then(|| PathBuf::from(iteration.to_string()));
        let kept = kept.into_iter().collect();
        let team = team(group, self.shared);
        remover.together(group, team, &self.workdir, kept).await?;
        group.quietly(group.world.barrier()).await?;
        Ok(Vec::new())
    }

    async fn leave(self, group: &Group<'_>) -> Result<Vec<String>, ExecError> {
        let mine = self.keeper.then(|| left_behind(&self.path));
        // Closing it may wait for ever.
        std::mem::forget(self);
        gather_texts(group, mine.into_iter().collect()).await
    }

    async fn end(self, group: &Group<'_>, remover: &Remover) -> Result<Vec<String>, ExecError> {
        if let Some(why) = group.untouchable() {
            let mine = self.keeper.then(|| left_untouched(&self.path, &why));
            // Closing it may wait for ever.
            std::mem::forget(self);
            group.quietly(group.world.barrier()).await?;
            return gather_texts(group, mine.into_iter().collect()).await;
        }
        let Target {
            workdir,
            path,
            keeper,
            shared: _,
        } = self;
        // The others let go of their descriptors first.
        let mine = if keeper {
            Arc::into_inner(workdir)
        } else {
            drop(workdir);
            None
        };
        let held = keeper && mine.is_none();
        group.quietly(group.world.barrier()).await?;
        let remover = remover.clone();
        let work = move || {
            mine.map(|dir| remover.with(|how| dir.remove(how)))
                .and_then(Result::err)
                .map(|e: RemoveError| e.to_string())
                .into_iter()
                .collect::<Vec<String>>()
        };
        let left = group.in_thread(work).await?;
        let mut left = left.unwrap_or_else(|lost| vec![lost]);
        if held {
            left.push(format!(
                "{} is still in use and was not removed",
                path.display()
            ));
        }
        gather_texts(group, left).await
    }
}

/// The ranks that see the same directories as this one: all, or those of its host.
pub(crate) fn team<'g>(group: &'g Group<'_>, shared: bool) -> &'g dyn Communicator {
    match shared {
        true => group.world,
        false => group.host.as_ref(),
    }
}

/// What this rank knows of the run's own directory while it is set up.
struct Found {
    workdir: Option<WorkDir>,
    keeper: bool,
    shared: bool,
}

impl Found {
    /// After rank 0 has made the directory: opens it on every rank, and makes
    /// one of its own on each host that does not see it. All ranks make the
    /// same collective calls.
    async fn everywhere(
        &mut self,
        group: &Group<'_>,
        place: &Place<'_>,
        create: &dyn Fn() -> Result<WorkDir, String>,
    ) -> Result<WorkDir, ExecError> {
        let open = || own(WorkDir::open(place.parent, place.name, place.marker));
        let looks = group.is_leader() && self.workdir.is_none();
        let seen = group
            .agree(if looks {
                look_for(group, &open).await
            } else {
                Ok(None)
            })
            .await?;
        let private = looks && seen.is_none();
        self.workdir = self.workdir.take().or(seen);
        self.shared = !group.any(private).await?;
        let refusal = place.needs_shared.filter(|_| private).map(|flag| {
            let (parent, first) = (place.parent.display(), &group.host_names[0]);
            format!("{flag} needs a directory that all hosts share, but {parent} differs from that on {first}")
        });
        group.agree(refusal.map_or(Ok(()), Err)).await?;
        let made = if private {
            self.keeper = true;
            create().map(|dir| self.workdir = Some(dir))
        } else {
            Ok(())
        };
        group.agree(made).await?;
        let opened = if self.workdir.is_none() {
            open()
        } else {
            Ok(None)
        };
        let opened = group.agree(opened).await?;
        let there = self.workdir.is_some() || opened.is_some();
        let gone = || format!("{} disappeared from {}", place.name, place.parent.display());
        group
            .agree(if there { Ok(()) } else { Err(gone()) })
            .await?;
        self.workdir
            .take()
            .or(opened)
            .ok_or_else(|| ExecError::SetUp(gone()))
    }
}

/// A directory that another rank has made: one that belongs to somebody else is none of this run's.
fn own(opened: Result<Option<WorkDir>, SetupError>) -> Result<Option<WorkDir>, String> {
    let Some(workdir) = opened.map_err(|e| e.to_string())? else {
        return Ok(None);
    };
    match workdir.is_own() {
        Ok(true) => Ok(Some(workdir)),
        Ok(false) => Err(SetupError::Replaced(workdir.path().to_owned()).to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Looks for what rank 0 has made until it is seen or time is up.
async fn look_for(
    group: &Group<'_>,
    open: &dyn Fn() -> Result<Option<WorkDir>, String>,
) -> Result<Option<WorkDir>, String> {
    let begun = group.now();
    loop {
        match open() {
            Ok(None) if group.now().since(begun) < SEEN_WITHIN => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            other => return other,
        }
    }
}

/// That something was not removed, and why.
pub(crate) fn left_behind(path: &Path) -> String {
    format!(
        "{} is left behind: removing it would wait for the same file system",
        path.display()
    )
}

/// All ranks' texts at rank 0, each with its host where there are several.
pub(crate) async fn gather_texts(
    group: &Group<'_>,
    texts: Vec<String>,
) -> Result<Vec<String>, ExecError> {
    let all = group.quietly(group.world.gather_values(&texts)).await?;
    let several = group.host_names.len() > 1;
    let mut out = Vec::new();
    for (rank, texts) in (0..).map(Rank).zip(all.unwrap_or_default()) {
        out.extend(texts.into_iter().map(|text| match several {
            true => format!("on {}: {text}", group.host_name_of(rank)),
            false => text,
        }));
    }
    Ok(out)
}
