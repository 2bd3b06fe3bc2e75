//! rbench's own directory on the target, `rbench.<run id>/` or one that another tool's command line
//! names: creates it, recognises it by its marker file, removes it. Its content during a run is not
//! handled here.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, renameat};
use nix::sys::stat::{FileStat, Mode, fstat, mkdirat, stat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use rbench_core::or_eio;

use crate::anchor::Anchor;
use crate::dirents;
use crate::posix::PosixFs;
use crate::remove::{self, MARKER, Removal, RemoveError};

/// Name of a marker until it is renamed.
const NEW_MARKER: &CStr = c".rbench-new";

/// Prefix of the names of runs' directories.
pub const PREFIX: &str = "rbench.";

/// Reason why the directory cannot be set up, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The parent or one of its parents does not exist.
    #[error("the directory {} does not exist", .0.display())]
    Missing(PathBuf),
    /// A file exists instead of a directory.
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The root directory of the host.
    #[error("{} is the root directory: choose a directory of the file system under test", .0.display())]
    Root(PathBuf),
    /// The parent exists, but takes no new directory: `/proc`, or a directory that was removed
    /// while it was open.
    #[error("cannot create a directory in {}", .0.display())]
    TakesNone(PathBuf),
    /// Not a single plain path component, or a relative path that leads outside.
    #[error("'{0}' is not a valid name for a directory in the run's own directory")]
    BadName(String),
    /// The name is taken.
    #[error("{} already exists", .0.display())]
    Exists(PathBuf),
    /// Another process has replaced the directory that was just created.
    #[error("{} is not the directory that rbench created: another process has replaced it", .0.display())]
    Replaced(PathBuf),
    /// Mounted read-only.
    #[error("{} is on a file system that is mounted read-only", .0.display())]
    ReadOnly(PathBuf),
    /// Access is denied.
    #[error("no permission to {action} {}", path.display())]
    NoPermission {
        /// `write in`, `open` …
        action: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// Blocks, inodes or quota are used up.
    #[error("no space or quota is left on the file system of {}", .0.display())]
    NoSpace(PathBuf),
    /// A FUSE mount whose server is gone.
    #[error("the file system at {} does not answer: its server has ended", .0.display())]
    NotConnected(PathBuf),
    /// Any other error.
    #[error("cannot {action} {}: {} ({errno:?})", path.display(), errno.desc())]
    Other {
        /// `write in`, `open` …
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The kernel's error.
        errno: Errno,
    },
}

impl SetupError {
    pub(crate) fn new(action: &'static str, path: &Path, errno: Errno) -> SetupError {
        let path = path.to_owned();
        match errno {
            Errno::ENOENT => SetupError::Missing(path),
            Errno::ENOTDIR => SetupError::NotADirectory(path),
            Errno::EEXIST => SetupError::Exists(path),
            Errno::EROFS => SetupError::ReadOnly(path),
            Errno::EACCES | Errno::EPERM => SetupError::NoPermission { action, path },
            Errno::ENOSPC | Errno::EDQUOT => SetupError::NoSpace(path),
            Errno::ENOTCONN => SetupError::NotConnected(path),
            _ => SetupError::Other {
                action,
                path,
                errno,
            },
        }
    }

    /// The corresponding error number.
    fn errno(&self) -> Errno {
        match self {
            SetupError::Missing(_) => Errno::ENOENT,
            SetupError::NotADirectory(_) => Errno::ENOTDIR,
            SetupError::Root(_) | SetupError::BadName(_) => Errno::EINVAL,
            SetupError::Exists(_) => Errno::EEXIST,
            SetupError::ReadOnly(_) => Errno::EROFS,
            SetupError::NoPermission { .. } => Errno::EACCES,
            SetupError::TakesNone(_) => Errno::ENOENT,
            SetupError::Replaced(_) => Errno::ESTALE,
            SetupError::NoSpace(_) => Errno::ENOSPC,
            SetupError::NotConnected(_) => Errno::ENOTCONN,
            SetupError::Other { errno, .. } => *errno,
        }
    }
}

/// Directories created by runs, by name, with the content of their markers.
pub type Marked = Vec<(String, Vec<u8>)>;

/// Result of [`WorkDir::find`].
#[derive(Debug, Default)]
pub struct Runs {
    /// Directories created by runs.
    pub marked: Marked,
    /// Directories with such a name, but without a marker.
    pub unmarked: Vec<String>,
    /// Directories that cannot be read, with the reason.
    pub closed: Vec<SetupError>,
}

/// rbench's own directory. Dropping the value leaves the directory in place.
#[derive(Debug)]
pub struct WorkDir {
    path: PathBuf,
    name: CString,
    parent: OwnedFd,
    directory: Arc<OwnedFd>,
}

pub(crate) const DIRECTORY: OFlag = OFlag::O_PATH
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_CLOEXEC);

impl WorkDir {
    /// Checks that `parent` is a directory and not the root directory. Callers find all other
    /// problems when they use it.
    ///
    /// # Errors `parent` is missing, is not a directory, or is the root directory.
    pub fn check_parent(parent: &Path) -> Result<(), SetupError> {
        use SetupError::{Missing, NotADirectory, Root};
        match open_parent(parent) {
            Err(error @ (Missing(_) | NotADirectory(_) | Root(_))) => Err(error),
            _ => Ok(()),
        }
    }

    /// Creates the directory `name` in `parent` and writes `marker` into its marker file. `parent`
    /// must exist and must not be the root directory. If writing fails, it removes the directory
    /// again.
    pub fn create(parent: &Path, name: &str, marker: &[u8]) -> Result<WorkDir, SetupError> {
        let name = component(name)?;
        let path = join(parent, &name);
        let parent_fd = open_parent(parent)?;
        // No other user reaches files inside whose permissions a run, or a replayed trace, opens
        // up.
        mkdirat(&parent_fd, name.as_c_str(), Mode::S_IRWXU).map_err(|errno| match errno {
            // The parent is open, so it exists.
            Errno::ENOENT => SetupError::TakesNone(parent.to_owned()),
            Errno::EEXIST => SetupError::Exists(path.clone()),
            errno => SetupError::new("write in", parent, errno),
        })?;
        let result = enter(&parent_fd, &name)
            .map_err(|errno| SetupError::new("open", &path, errno))
            .and_then(|directory| {
                is_new_and_own(parent_fd.as_fd(), directory.as_fd(), &path)?;
                write_marker(&directory, marker)
                    .map(|()| directory)
                    .map_err(|errno| SetupError::new("write in", &path, errno))
            });
        match result {
            Ok(directory) => Ok(WorkDir {
                path,
                name,
                parent: parent_fd,
                directory: Arc::new(directory),
            }),
            Err(error) => {
                // If this fails too, the first error is reported.
                unlinkat(&parent_fd, name.as_c_str(), UnlinkatFlags::RemoveDir).ok();
                Err(error)
            }
        }
    }

    /// Opens the directory `name` in `parent` that another process created. `None` if this host
    /// does not see it, or sees one with another marker.
    pub fn open(
        parent: &Path,
        name: &str,
        expected_marker: &[u8],
    ) -> Result<Option<WorkDir>, SetupError> {
        let name = component(name)?;
        let path = join(parent, &name);
        let parent_fd = open_parent(parent)?;
        let directory = match enter(&parent_fd, &name) {
            Ok(directory) => directory,
            // With O_NOFOLLOW a symbolic link is not a directory.
            Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(None),
            Err(errno) => return Err(SetupError::new("open", &path, errno)),
        };
        let marked = has_marker(&directory, expected_marker)
            .map_err(|errno| SetupError::new("read the marker in", &path, errno))?;
        Ok(marked.then(|| WorkDir {
            path,
            name,
            parent: parent_fd,
            directory: Arc::new(directory),
        }))
    }

    /// Returns whether its owner is the owner of new files of this process, as for a directory that
    /// another process of the run created.
    ///
    /// # Errors
    /// An error of the system.
    pub fn is_own(&self) -> Result<bool, SetupError> {
        belongs_to_us(self.directory.as_fd())
            .map_err(|errno| SetupError::new("inspect", &self.path, errno))
    }

    /// Finds the directories in `parent` that runs created and did not remove, by name, with the
    /// content of their markers (at most 4 KiB). Also finds other directories of such a name.
    ///
    /// # Errors
    /// An error if `parent` cannot be read.
    pub fn find(parent: &Path) -> Result<Runs, SetupError> {
        let failed = |errno| SetupError::new("read", parent, errno);
        let parent_fd = open_parent(parent)?;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut listing = Dir::openat(&parent_fd, c".", flags, Mode::empty()).map_err(failed)?;
        let mut runs = Runs::default();
        for entry in listing.iter() {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_str();
            let Some(name) = name.ok().filter(|name| name.starts_with(PREFIX)) else {
                continue;
            };
            let marker = match enter(&parent_fd, entry.file_name()) {
                Ok(directory) => read_marker(&directory, 4096),
                Err(Errno::ENOENT | Errno::ENOTDIR) => continue,
                Err(errno) => Err(errno),
            };
            match marker {
                Ok(Some(marker)) => runs.marked.push((name.to_owned(), marker)),
                Ok(None) => runs.unmarked.push(name.to_owned()),
                Err(errno) => {
                    let error = SetupError::new("read", &parent.join(name), errno);
                    runs.closed.push(error);
                }
            }
        }
        runs.marked.sort();
        runs.unmarked.sort();
        Ok(runs)
    }

    /// Replaces the marker, in one step.
    ///
    /// # Errors
    /// The system's error for the marker's file.
    pub fn mark(&self, marker: &[u8]) -> Result<(), SetupError> {
        let failed = |errno| SetupError::new("write the marker in", &self.path, errno);
        let flags = OFlag::O_WRONLY
            | OFlag::O_CREAT
            | OFlag::O_TRUNC
            | OFlag::O_NOFOLLOW
            | OFlag::O_CLOEXEC;
        let at = &*self.directory;
        let file =
            openat(at, NEW_MARKER, flags, Mode::from_bits_truncate(0o644)).map_err(failed)?;
        let mut file = File::from(file);
        let written = file.write_all(marker).map_err(or_eio);
        // Failures are ignored, like in `write_marker`.
        let _ = file.sync_all();
        written
            .and_then(|()| renameat(at, NEW_MARKER, at, MARKER))
            .map_err(failed)?;
        sync_directory(at.as_fd());
        Ok(())
    }

    /// Its path as given, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its path through its descriptor, which leads here even after a rename. Other processes of
    /// the same user may use it while this process lives.
    pub fn held_path(&self) -> PathBuf {
        let (process, fd) = (std::process::id(), self.directory.as_raw_fd());
        PathBuf::from(format!("/proc/{process}/fd/{fd}"))
    }

    /// Given path of one that starts with [`WorkDir::held_path`], for messages; others are
    /// unchanged.
    pub fn named(path: &Path) -> PathBuf {
        let held = PathBuf::from(format!("/proc/{}/fd", std::process::id()));
        let Ok(below) = path.strip_prefix(&held) else {
            return path.to_owned();
        };
        let mut parts = below.components();
        let Some(fd) = parts.next() else {
            return path.to_owned();
        };
        match std::fs::read_link(held.join(fd)) {
            Ok(directory) => directory.join(parts.as_path()),
            Err(_) => path.to_owned(),
        }
    }

    /// Its descriptor, shared.
    pub fn directory_shared(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.directory)
    }

    /// Its descriptor (`O_PATH`).
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Operations relative to it.
    pub fn fs(&self) -> PosixFs {
        PosixFs::new(Arc::clone(&self.directory))
    }

    /// Creates the directory `relative` in it, with missing parents, and returns operations
    /// relative to it. Symbolic links and `..` are refused.
    pub fn mkdir_all(&self, relative: &str) -> Result<PosixFs, SetupError> {
        self.walk(relative, true).map(PosixFs::new)
    }

    fn walk(&self, relative: &str, make: bool) -> Result<Arc<OwnedFd>, SetupError> {
        let mut path = self.path.clone();
        let mut at = Arc::clone(&self.directory);
        for part in relative.split('/') {
            let name = component(part).map_err(|_| SetupError::BadName(relative.to_owned()))?;
            path.push(part);
            if make {
                match mkdirat(&*at, name.as_c_str(), Mode::from_bits_truncate(0o775)) {
                    Ok(()) | Err(Errno::EEXIST) => {}
                    Err(errno) => return Err(SetupError::new("make", &path, errno)),
                }
            }
            let next = enter(&*at, &name).map_err(|errno| SetupError::new("open", &path, errno))?;
            at = Arc::new(next);
        }
        Ok(at)
    }

    /// Removes the directory `relative` in it and everything below, like [`WorkDir::remove`]. Does
    /// nothing if it does not exist.
    pub fn remove_below(&self, relative: &str, how: Removal<'_>) -> Result<u64, RemoveError> {
        let path = self.path.join(relative);
        let (above, last) = relative.rsplit_once('/').unwrap_or(("", relative));
        let entry = component(last).and_then(|name| {
            let parent = match above {
                "" => Arc::clone(&self.directory),
                above => self.walk(above, false)?,
            };
            Ok((parent, name))
        });
        match entry {
            Ok((parent, name)) => remove_entry(parent.as_fd(), &name, &path, how),
            Err(SetupError::Missing(_)) => Ok(0),
            Err(error) => Err(RemoveError::refused(&path, error.errno())),
        }
    }

    /// The directory `relative` in it, or itself without its marker (an empty text), for removing
    /// the content together with that of others. `None` if it does not exist.
    ///
    /// # Errors
    /// `EXDEV` if it is a mount point.
    pub fn anchor(&self, relative: &str) -> Result<Option<Anchor>, Errno> {
        if relative.is_empty() {
            let whole = Anchor::new(
                self.parent.as_fd(),
                self.directory.as_fd(),
                &self.path,
                true,
            );
            return whole.map(Some);
        }
        match self.walk(relative, false) {
            Ok(directory) => {
                let (whole, path) = (self.directory.as_fd(), self.path.join(relative));
                Anchor::new(whole, directory.as_fd(), &path, false).map(Some)
            }
            Err(SetupError::Missing(_)) => Ok(None),
            Err(error) => Err(error.errno()),
        }
    }

    /// Removes everything in it, then the directory. It follows no symbolic links and enters no
    /// other mounts. The marker is removed last, so that an interrupted removal can be resumed.
    /// Returns the number of removed entries.
    pub fn remove(self, how: Removal<'_>) -> Result<u64, RemoveError> {
        remove::remove(
            self.parent.as_fd(),
            &self.name,
            &self.path,
            self.directory.as_fd(),
            how,
        )
    }
}

fn join(parent: &Path, name: &CStr) -> PathBuf {
    parent.join(&*name.to_string_lossy())
}

/// Checks that a name is one plain component of a path.
fn component(name: &str) -> Result<CString, SetupError> {
    let bad = || SetupError::BadName(name.to_owned());
    if matches!(name, "" | "." | "..") || name.contains('/') {
        return Err(bad());
    }
    CString::new(name).map_err(|_| bad())
}

/// Opens the parent of the work directory.
fn open_parent(path: &Path) -> Result<OwnedFd, SetupError> {
    let failed = |errno| SetupError::new("open", path, errno);
    let parent = open(path, DIRECTORY, Mode::empty()).map_err(failed)?;
    if fstat(&parent)
        .and_then(|here| is_root(&here))
        .map_err(failed)?
    {
        return Err(SetupError::Root(path.to_owned()));
    }
    Ok(parent)
}

/// True if `here` is the root directory of the host.
pub(crate) fn is_root(here: &FileStat) -> Result<bool, Errno> {
    let root = stat("/")?;
    Ok((here.st_dev, here.st_ino) == (root.st_dev, root.st_ino))
}

/// Removes the directory `name` of `parent`, at `path`, if it exists, with the care of
/// [`WorkDir::remove`].
pub(crate) fn remove_entry(
    parent: BorrowedFd<'_>,
    name: &CStr,
    path: &Path,
    how: Removal<'_>,
) -> Result<u64, RemoveError> {
    match enter(parent, name) {
        Ok(directory) => remove::remove(parent, name, path, directory.as_fd(), how),
        Err(Errno::ENOENT) => Ok(0),
        Err(errno) => Err(RemoveError::refused(path, errno)),
    }
}

pub(crate) fn enter(parent: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    openat(parent, name, DIRECTORY | OFlag::O_NOFOLLOW, Mode::empty())
}

/// Checks that the directory at `path` is the one just created: empty, on the mount of its parent,
/// and owned by this process. Users who may change the parent may have replaced it.
fn is_new_and_own(
    parent: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    path: &Path,
) -> Result<(), SetupError> {
    let failed = |errno| SetupError::new("inspect", path, errno);
    let mount = remove::within_one_mount(parent, directory).map_err(|errno| match errno {
        Errno::EXDEV => SetupError::Replaced(path.to_owned()),
        errno => failed(errno),
    })?;
    let listed = remove::enter(directory, c".", mount).map_err(failed)?;
    let is_empty = dirents::is_empty(listed.as_raw_fd()).map_err(failed)?;
    match is_empty && belongs_to_us(directory).map_err(failed)? {
        true => Ok(()),
        false => Err(SetupError::Replaced(path.to_owned())),
    }
}

/// A temporary file: its owner is the user to which the file system maps this process.
const WHO: &str = ".rbench-who";

/// Returns whether the owner of a directory is the owner of new files of this process in it. This
/// is usually its user, but a server may map it to another one (root_squash).
pub(crate) fn belongs_to_us(directory: BorrowedFd<'_>) -> Result<bool, Errno> {
    let owner = fstat(directory)?.st_uid;
    if owner == nix::unistd::geteuid().as_raw() {
        return Ok(true);
    }
    let name = format!("{WHO}-{}", std::process::id());
    let flags =
        OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = openat(directory, name.as_str(), flags, Mode::S_IRUSR)?;
    let ours = fstat(&file).map(|found| found.st_uid);
    unlinkat(directory, name.as_str(), UnlinkatFlags::NoRemoveDir)?;
    Ok(owner == ours?)
}

/// Writes the marker; removes it again on failure.
fn write_marker(directory: &OwnedFd, marker: &[u8]) -> Result<(), Errno> {
    let flags =
        OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = openat(directory, MARKER, flags, Mode::from_bits_truncate(0o644))?;
    let mut file = File::from(file);
    let written = file.write_all(marker).map_err(or_eio);
    match written {
        Ok(()) => {
            // Without it, the owner of the directory is unknown after a crash. On a file system
            // without sync, the marker cannot be safer.
            let _ = file.sync_all();
            sync_directory(directory.as_fd());
        }
        Err(_) => unlinkat(directory, MARKER, UnlinkatFlags::NoRemoveDir)?,
    }
    written
}

/// Writes the names in a directory to stable storage, if the file system supports it.
fn sync_directory(directory: BorrowedFd<'_>) {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    if let Ok(listed) = openat(directory, c".", flags, Mode::empty()) {
        let _ = nix::unistd::fsync(&listed);
    }
}

/// True if the marker exists with exactly this content.
fn has_marker(directory: &OwnedFd, expected: &[u8]) -> Result<bool, Errno> {
    // One byte more than expected detects a longer marker.
    let marker = read_marker(directory, expected.len() as u64 + 1)?;
    Ok(marker.is_some_and(|marker| marker == expected))
}

/// Reads the marker, up to `most` bytes; `None` without a marker.
fn read_marker(directory: &OwnedFd, most: u64) -> Result<Option<Vec<u8>>, Errno> {
    // Opening must not wait, whatever has the marker's name.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let file = match openat(directory, MARKER, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::ENOENT | Errno::ELOOP) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    if !file.metadata().map_err(or_eio)?.is_file() {
        return Ok(None);
    }
    let mut content = Vec::new();
    file.take(most).read_to_end(&mut content).map_err(or_eio)?;
    Ok(Some(content))
}
