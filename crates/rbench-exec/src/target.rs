//! The run's own directory on the target: created once, recognised by every host, removed at the
//! end.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use rbench_comm::Communicator;
use rbench_core::{Clock as _, MonotonicClock, Nanos, OpenFlags, Rank};
use rbench_sys::{Fs, NullFs, RemoveError, SetupError, WorkDir};

use crate::group::{ExecError, Group};
use crate::live::LiveStats;
use crate::removal::{Remover, left_untouched};
use crate::thread::Helper;

/// Time for another host to see a directory that rank 0 has created: some clients keep a parent's
/// listing for a second or two.
pub(crate) const SEEN_WITHIN: Nanos = Nanos(4_000_000_000);

/// Place of a run's trees and files; by default nothing is created in it.
pub(crate) trait Workspace {
    /// Returns whether the run creates anything in it that is to be removed.
    fn holds_something(&self) -> bool {
        true
    }

    /// Returns the file system of the workers' calls.
    fn fs(&self) -> Arc<dyn Fs>;

    /// Creates the directory of a pass, untimed.
    ///
    /// # Errors
    /// One sentence, the same on every rank.
    async fn open(&mut self, _group: &Group<'_>, _iteration: u32) -> Result<(), ExecError> {
        Ok(())
    }

    /// Removes the items left by a pass, on all ranks at once: each removes its own from `own`,
    /// then all together the rest. `broken_off`: the pass did not reach its end. Returns the
    /// remainder, at rank 0; a failed removal is not an error.
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

    /// Removes the items of the run; returns the remainder, at rank 0.
    async fn end(self, _group: &Group<'_>, _remover: &Remover) -> Result<Vec<String>, ExecError>
    where
        Self: Sized,
    {
        Ok(Vec::new())
    }
}

/// A workspace in which nothing is created.
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
    /// Set if this rank creates and removes on behalf of its name space.
    keeper: bool,
    /// Set if every host sees the same directory.
    shared: bool,
}

/// The caller's description of the target.
#[derive(Clone)]
pub struct Place<'p> {
    /// The directory given by the user, or this host's built-in mount.
    pub parent: &'p Path,
    /// Name of the run's own directory in it.
    pub name: &'p str,
    /// Content of the marker file.
    pub marker: &'p [u8],
    /// Reason why all hosts must see the same directory, as a flag.
    pub needs_shared: Option<&'static str>,
    /// Takes the calls of test directories instead of the target, to check the issued calls.
    pub recorder: Option<Arc<dyn Fs>>,
    /// Takes the current results of the workers of jobs.
    pub live: Option<Arc<LiveStats>>,
}

impl Target {
    /// Creates the run's own directory: once if all hosts see the same target, otherwise on each
    /// host.
    ///
    /// # Errors
    /// One sentence, the same on every rank.
    pub async fn set_up(group: &Group<'_>, place: &Place<'_>) -> Result<Target, ExecError> {
        let own = OwnDir::of(place);
        let here = own.clone();
        let there = group.agree_on_target_if(group.is_root(), move || here.check_parent());
        there.await.map_err(|e| group.as_usage(e))?;
        let here = own.clone();
        let made = group.agree_on_target_if(group.is_root(), move || here.create());
        let mut found = Found {
            workdir: made.await?,
            keeper: group.is_root(),
            shared: true,
        };
        match found.everywhere(group, place, &own).await {
            Ok(workdir) => {
                let path = workdir.path().to_owned();
                Ok(Target {
                    workdir: Arc::new(workdir),
                    path,
                    keeper: found.keeper,
                    shared: found.shared,
                })
            }
            Err(error) => {
                // The directory is removed again; the first error is the one to report.
                if let Some(dir) = found.workdir.filter(|_| found.keeper) {
                    let path = dir.path().to_owned();
                    let remove = move |remover: &Remover| remover.with(|how| dir.remove(how)).ok();
                    if let Err(why) = Remover::new(1).beside(group, remove).await? {
                        group.trouble(&left_untouched(&path, &why));
                    }
                }
                Err(error)
            }
        }
    }

    /// Returns whether every host sees the same directory.
    pub fn shared(&self) -> bool {
        self.shared
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its descriptor, by which its files are opened.
    pub fn directory(&self) -> Arc<OwnedFd> {
        self.workdir.directory_shared()
    }

    /// Returns its path for calls that take no directory: through the descriptor, so that it leads
    /// here whatever is at [`Target::path`] by now.
    pub fn held_path(&self) -> PathBuf {
        self.workdir.held_path()
    }

    /// Removes test files; not if any rank's file system is `silent`: removing would block, too.
    /// Returns the remainder, at rank 0.
    pub async fn end_unless(
        self,
        group: &Group<'_>,
        silent: bool,
    ) -> Result<Vec<String>, ExecError> {
        match silent {
            true => group.touch_no_more("a call has not returned"),
            false => group.step("removing test files"),
        }
        self.end(group, &Remover::new(1)).await
    }

    /// Creates the directories `own` (by this rank) below `shared_parent` (created once for each
    /// name space), untimed.
    ///
    /// # Errors
    /// One sentence, the same on every rank.
    pub async fn make_dirs(
        &self,
        group: &Group<'_>,
        parent: &str,
        own: &[String],
    ) -> Result<(), ExecError> {
        let first = self.keeper.then(|| parent.to_owned());
        let below = own.iter().map(|name| format!("{parent}/{name}"));
        for names in [first.into_iter().collect::<Vec<_>>(), below.collect()] {
            let workdir = Arc::clone(&self.workdir);
            let make = move || {
                let make = |name: &String| workdir.mkdir_all(name).map(drop);
                names.iter().try_for_each(make).map_err(|e| e.to_string())
            };
            group.agree_on_target(make).await?;
        }
        Ok(())
    }

    /// Creates the empty file `name` once for each name space, untimed: some file systems fail when
    /// several clients create the same file at a time.
    ///
    /// # Errors
    /// One sentence, the same on every rank.
    pub async fn make_file(&self, group: &Group<'_>, name: &str) -> Result<(), ExecError> {
        let (fs, name) = (self.workdir.fs(), name.to_owned());
        let make = move || {
            let path = CString::new(name.as_str()).map_err(|_| Errno::EINVAL);
            let made = path.and_then(|path| fs.open(&path, OpenFlags::CREATE_NEW));
            let closed = made.and_then(|fd| fs.close(fd));
            closed.map_err(|e| format!("cannot create {name}: {} ({e:?})", e.desc()))
        };
        let made = group.agree_on_target_if(self.keeper, make).await;
        made.map(|_| ())
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
        // Items that cannot be removed now may go with the whole directory: the end reports them.
        let own = own.into_iter().map(PathBuf::from).collect();
        remover.own(group, &self.workdir, own).await?;
        group.meet().await?;
        let kept = self.keeper.then(|| PathBuf::from(iteration.to_string()));
        let kept = kept.into_iter().collect();
        let team = team(group, self.shared);
        remover.together(group, team, &self.workdir, kept).await?;
        group.meet().await?;
        Ok(Vec::new())
    }

    async fn end(self, group: &Group<'_>, remover: &Remover) -> Result<Vec<String>, ExecError> {
        if let Some(why) = group.untouchable() {
            let mine = self.keeper.then(|| left_untouched(&self.path, &why));
            // Closing it may block for ever.
            Helper::start(move || drop(self)).ok();
            group.meet().await?;
            return gather_texts(group, mine.into_iter().collect()).await;
        }
        // The others close their descriptors first.
        let mine = match self.keeper {
            true => Arc::into_inner(self.workdir),
            false => {
                drop(self.workdir);
                None
            }
        };
        let held = self.keeper && mine.is_none();
        group.meet().await?;
        let work = move |remover: &Remover| {
            mine.map(|dir| remover.with(|how| dir.remove(how)))
                .and_then(Result::err)
                .map(|e: RemoveError| e.to_string())
                .into_iter()
                .collect::<Vec<String>>()
        };
        let left = remover.beside(group, work).await?;
        let mut left = left.unwrap_or_else(|lost| vec![left_untouched(&self.path, &lost)]);
        if held {
            let path = self.path.display();
            left.push(format!("{path} is still in use and was not removed"));
        }
        gather_texts(group, left).await
    }
}

/// Returns the ranks that see the same directories as this one: all, or those of its host.
pub(crate) fn team<'g>(group: &'g Group<'_>, shared: bool) -> &'g dyn Communicator {
    match shared {
        true => group.world,
        false => group.host.as_ref(),
    }
}

/// This rank's knowledge of the run's own directory during set-up.
struct Found {
    workdir: Option<WorkDir>,
    keeper: bool,
    shared: bool,
}

impl Found {
    /// After rank 0 has created the directory: opens it on every rank, and creates a separate one
    /// on each host that does not see it. All ranks make the same collective calls.
    async fn everywhere(
        &mut self,
        group: &Group<'_>,
        place: &Place<'_>,
        own: &OwnDir,
    ) -> Result<WorkDir, ExecError> {
        let looks = group.is_leader() && self.workdir.is_none();
        let look = own.clone();
        let seen = group.agree_on_target_if(looks, move || look.look_for());
        let seen = seen.await?.flatten();
        let private = looks && seen.is_none();
        self.workdir = self.workdir.take().or(seen);
        self.shared = !group.any(private).await?;
        let refusal = place.needs_shared.filter(|_| private).map(|flag| {
            let (parent, first) = (place.parent.display(), &group.host_names[0]);
            format!("{flag} needs a directory that all hosts share, but {parent} differs from that on {first}")
        });
        group.agree(refusal.map_or(Ok(()), Err)).await?;
        let create = own.clone();
        let made = group.agree_on_target_if(private, move || create.create());
        if let Some(dir) = made.await? {
            self.keeper = true;
            self.workdir = Some(dir);
        }
        let open = own.clone();
        let opened = group.agree_on_target_if(self.workdir.is_none(), move || open.open());
        let opened = opened.await?.flatten();
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

/// The calls that create and open a run's own directory.
#[derive(Clone)]
struct OwnDir {
    parent: PathBuf,
    name: String,
    marker: Vec<u8>,
}

impl OwnDir {
    fn of(place: &Place<'_>) -> OwnDir {
        OwnDir {
            parent: place.parent.to_owned(),
            name: place.name.to_owned(),
            marker: place.marker.to_owned(),
        }
    }

    fn check_parent(&self) -> Result<(), String> {
        WorkDir::check_parent(&self.parent).map_err(|e| e.to_string())
    }

    fn create(&self) -> Result<WorkDir, String> {
        let made = WorkDir::create(&self.parent, &self.name, &self.marker);
        made.map_err(|e| e.to_string())
    }

    /// Opens a directory that another rank has created; one that belongs to another run is not
    /// accepted.
    fn open(&self) -> Result<Option<WorkDir>, String> {
        let opened = WorkDir::open(&self.parent, &self.name, &self.marker);
        let Some(workdir) = opened.map_err(|e| e.to_string())? else {
            return Ok(None);
        };
        match workdir.is_own() {
            Ok(true) => Ok(Some(workdir)),
            Ok(false) => Err(SetupError::Replaced(workdir.path().to_owned()).to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Checks for the directory of rank 0 until it is seen or time is up.
    fn look_for(&self) -> Result<Option<WorkDir>, String> {
        let begun = MonotonicClock.now();
        loop {
            match self.open() {
                Ok(None) if MonotonicClock.now().since(begun) < SEEN_WITHIN => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                other => return other,
            }
        }
    }
}

/// Gathers all ranks' texts at rank 0, each with its host if there are several.
pub(crate) async fn gather_texts(
    group: &Group<'_>,
    texts: Vec<String>,
) -> Result<Vec<String>, ExecError> {
    let all = group.gather(&texts).await?;
    let several = group.host_names.len() > 1;
    let mut out = Vec::new();
    for (rank, texts) in (0..).map(Rank).zip(all) {
        out.extend(texts.into_iter().map(|text| match several {
            true => format!("on {}: {text}", group.host_name_of(rank)),
            false => text,
        }));
    }
    Ok(out)
}
