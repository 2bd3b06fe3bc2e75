//! Directories that another tool's command line names: there already or made
//! by us, without a marker file, and removed again by path. What the tool's
//! own phases make inside is not our business.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, open};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, lstat, mkdirat, stat};
use nix::unistd::{UnlinkatFlags, getegid, geteuid, mkdir};

use crate::anchor::Anchor;
use crate::remove::{Removal, RemoveError, unlink};
use crate::workdir::{DIRECTORY, SetupError, belongs_to_us, enter, is_root, remove_entry};

/// What was done for a directory to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// It was made.
    Made,
    /// It was there already.
    WasThere,
}

/// Makes the directory `path`, mode 0775, or 0700 where others may change what it is in, if it is not
/// there; what it is in must be. Its last component may be a symbolic link to a directory.
///
/// # Errors
/// [`SetupError::Root`] for the root directory of the host,
/// [`SetupError::NotADirectory`] when something else has the name.
pub fn make(path: &Path) -> Result<Made, SetupError> {
    if let Some(found) = find(path)? {
        return match is_root(&found) {
            Ok(false) => Ok(Made::WasThere),
            Ok(true) => Err(SetupError::Root(path.to_owned())),
            Err(errno) => Err(SetupError::new("inspect", path, errno)),
        };
    }
    let mode = match others_may_replace(parent(path)) {
        Ok(true) => Mode::S_IRWXU,
        _ => Mode::from_bits_truncate(0o775),
    };
    match mkdir(path, mode) {
        Ok(()) => Ok(Made::Made),
        // Another process was faster, or it is a link that leads nowhere.
        Err(Errno::EEXIST) => match find(path)? {
            Some(_) => Ok(Made::WasThere),
            None => Err(SetupError::NotADirectory(path.to_owned())),
        },
        Err(Errno::ENOENT) if find(parent(path)).is_ok_and(|found| found.is_some()) => {
            Err(SetupError::TakesNone(parent(path).to_owned()))
        }
        Err(errno) => Err(SetupError::new("write in", parent(path), errno)),
    }
}

/// Whether somebody else, who is not root, may put something else in the place of `path` or of what is in
/// it: a directory on the way belongs to them, or they may write to it and it is not sticky.
///
/// # Errors
/// What the system said.
pub fn others_may_replace(path: &Path) -> Result<bool, Errno> {
    // Where it is a link, both that and what it leads to may be.
    Ok(others_may_change(parent(path))? || others_may_change(path)?)
}

fn others_may_change(path: &Path) -> Result<bool, Errno> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let whole = path.canonicalize();
    let whole = whole.map_err(|e| e.raw_os_error().map_or(Errno::EIO, Errno::from_raw))?;
    for above in whole.ancestors() {
        let found = stat(above)?;
        let mode = Mode::from_bits_truncate(found.st_mode);
        let owned = found.st_uid != 0 && found.st_uid != user;
        let sticky = mode.contains(Mode::S_ISVTX);
        let of_group = found.st_gid != 0 && found.st_gid != group && mode.contains(Mode::S_IWGRP);
        if owned || !sticky && (of_group || mode.contains(Mode::S_IWOTH)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Opens the directory `path`, which is there, to hold it: where its last component is a symbolic link of this
/// user or root, the one that this leads to now.
///
/// # Errors
/// [`SetupError::Replaced`] for somebody else's link, or why it cannot be opened.
pub fn hold_named(path: &Path) -> Result<OwnedFd, SetupError> {
    let failed = |errno| SetupError::new("open", path, errno);
    let found = lstat(path).map_err(failed)?;
    let is_link = found.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFLNK.bits();
    let trusted = found.st_uid == 0 || found.st_uid == geteuid().as_raw();
    let flags = match (is_link, trusted) {
        (true, true) => DIRECTORY,
        (true, false) => return Err(SetupError::Replaced(path.to_owned())),
        (false, _) => DIRECTORY | OFlag::O_NOFOLLOW,
    };
    open(path, flags, Mode::empty()).map_err(failed)
}

/// Directories that are held open, by their paths. What lies below is reached from there, what lies
/// elsewhere by its path.
#[derive(Debug, Clone, Default)]
pub struct Held(pub Arc<[(Vec<u8>, OwnedFd)]>);

impl Held {
    /// The directory that `path` is in, opened from what is held, and its name there; `None`: nothing
    /// is held.
    fn last_step(&self, path: &Path) -> Result<Option<(OwnedFd, CString)>, Errno> {
        if self.0.is_empty() {
            return Ok(None);
        }
        for (prefix, fd) in self.0.iter() {
            let prefix = Path::new(OsStr::from_bytes(prefix));
            let Ok(rest) = path.strip_prefix(prefix) else {
                continue;
            };
            let mut names = Vec::new();
            for part in rest {
                names.push(c_path(Path::new(part))?);
            }
            let Some(last) = names.pop() else {
                // The directory itself: what has its name has to be it.
                let (parent, name) = last_step(path)?;
                let (named, held) = (fstat(enter(&parent, &name)?)?, fstat(fd)?);
                return match (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino) {
                    true => Ok(Some((parent, name))),
                    false => Err(Errno::ESTALE),
                };
            };
            let mut at = fd.try_clone().map_err(|_| Errno::EMFILE)?;
            for name in names {
                at = enter(&at, &name)?;
            }
            return Ok(Some((at, last)));
        }
        Ok(None)
    }

    /// As [`make`], but no symbolic link is taken for a directory.
    ///
    /// # Errors
    /// The same.
    pub fn make(&self, path: &Path) -> Result<Made, SetupError> {
        let failed = |errno| SetupError::new("write in", path, errno);
        let Some((above, name)) = self.last_step(path).map_err(failed)? else {
            return make(path);
        };
        match mkdirat(&above, name.as_c_str(), Mode::S_IRWXU) {
            Ok(()) => Ok(Made::Made),
            Err(Errno::EEXIST) => match enter(&above, &name) {
                Ok(_) => Ok(Made::WasThere),
                Err(errno) => Err(SetupError::new("open", path, errno)),
            },
            Err(errno) => Err(failed(errno)),
        }
    }

    /// As [`is_there`].
    ///
    /// # Errors
    /// The same, also for a symbolic link.
    pub fn is_there(&self, path: &Path) -> Result<bool, SetupError> {
        let found = match self.last_step(path) {
            Ok(None) => return is_there(path),
            Ok(Some((above, name))) => enter(&above, &name),
            Err(errno) => Err(errno),
        };
        match found {
            Ok(_) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(errno) => Err(SetupError::new("inspect", path, errno)),
        }
    }

    /// As [`remove_empty`].
    ///
    /// # Errors
    /// The same.
    pub fn remove_empty(&self, path: &Path) -> Result<bool, SetupError> {
        let removed = match self.last_step(path) {
            Ok(None) => return remove_empty(path),
            Ok(Some((above, name))) => unlink(above.as_fd(), &name, UnlinkatFlags::RemoveDir),
            Err(errno) => Err(errno),
        };
        match removed {
            Ok(()) => Ok(true),
            Err(Errno::ENOTEMPTY | Errno::EEXIST | Errno::ENOENT) => Ok(false),
            Err(errno) => Err(SetupError::new("remove", path, errno)),
        }
    }

    /// Opens the directory `path` to hold it, whatever has its name later on: it is no symbolic link, and
    /// belongs to this process.
    ///
    /// # Errors
    /// [`SetupError::Replaced`] when it is not, or is somebody else's.
    pub fn hold(&self, path: &Path) -> Result<OwnedFd, SetupError> {
        let failed = |errno| match errno {
            Errno::ENOTDIR | Errno::ELOOP => SetupError::Replaced(path.to_owned()),
            errno => SetupError::new("open", path, errno),
        };
        let step = match self.last_step(path).map_err(failed)? {
            Some(step) => step,
            None => last_step(path).map_err(failed)?,
        };
        let directory = enter(&step.0, &step.1).map_err(failed)?;
        match belongs_to_us(directory.as_fd()).map_err(failed)? {
            true => Ok(directory),
            false => Err(SetupError::Replaced(path.to_owned())),
        }
    }

    /// As [`anchor`].
    ///
    /// # Errors
    /// The same, and `ESTALE` when something else has the name by now.
    pub fn anchor(&self, path: &Path) -> Result<Option<Anchor>, Errno> {
        match self.last_step(path) {
            Ok(None) => anchor(path),
            Ok(Some(step)) => anchored(step, path),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// As [`remove_tree`].
    ///
    /// # Errors
    /// The same, and `ESTALE` when something else has the name by now.
    pub fn remove_tree(&self, path: &Path, how: Removal<'_>) -> Result<u64, RemoveError> {
        match self.last_step(path) {
            Ok(None) => remove_tree(path, how),
            Ok(Some((parent, name))) => remove_entry(parent.as_fd(), &name, path, how),
            Err(Errno::ENOENT) => Ok(0),
            Err(errno) => Err(RemoveError::refused(path, errno)),
        }
    }
}

/// Whether the directory `path` is there; its last component may be a
/// symbolic link to a directory.
///
/// # Errors
/// [`SetupError::NotADirectory`] when something else has the name.
pub fn is_there(path: &Path) -> Result<bool, SetupError> {
    find(path).map(|found| found.is_some())
}

/// Removes the directory `path` if it is empty. `false` when it is not empty
/// or not there.
///
/// # Errors
/// [`SetupError::NotADirectory`] also when it is a symbolic link.
pub fn remove_empty(path: &Path) -> Result<bool, SetupError> {
    let removed = c_path(path).and_then(|name| unlink(AT_FDCWD, &name, UnlinkatFlags::RemoveDir));
    match removed {
        Ok(()) => Ok(true),
        Err(Errno::ENOTEMPTY | Errno::EEXIST | Errno::ENOENT) => Ok(false),
        Err(errno) => Err(SetupError::new("remove", path, errno)),
    }
}

/// Removes everything in the directory `path`, then itself; nothing to do when
/// it is not there. No symbolic link is followed, that at the end of `path`
/// included, and no other mount entered, that at `path` included. Returns the
/// number of entries removed, without the directory itself.
pub fn remove_tree(path: &Path, how: Removal<'_>) -> Result<u64, RemoveError> {
    match last_step(path) {
        Ok((parent, name)) => remove_entry(parent.as_fd(), &name, path, how),
        Err(Errno::ENOENT) => Ok(0),
        Err(errno) => Err(RemoveError::refused(path, errno)),
    }
}

/// The directory `path`, for removing its content together with others, with the same care;
/// `None` when it is not there.
///
/// # Errors
/// `ENOTDIR` also when it is a symbolic link, `EXDEV` when something is mounted there.
pub fn anchor(path: &Path) -> Result<Option<Anchor>, Errno> {
    match last_step(path) {
        Ok(step) => anchored(step, path),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn anchored((parent, name): (OwnedFd, CString), path: &Path) -> Result<Option<Anchor>, Errno> {
    let found = enter(&parent, &name)
        .and_then(|directory| Anchor::new(parent.as_fd(), directory.as_fd(), path, false));
    match found {
        Err(Errno::ENOENT) => Ok(None),
        found => found.map(Some),
    }
}

/// What `path` is in, open, and its name there.
fn last_step(path: &Path) -> Result<(OwnedFd, CString), Errno> {
    // `/` and `..` name no entry of a directory.
    let name = path.file_name().ok_or(Errno::EINVAL)?;
    let name = c_path(Path::new(name))?;
    Ok((open(parent(path), DIRECTORY, Mode::empty())?, name))
}

/// The directory `path`, if it is there.
fn find(path: &Path) -> Result<Option<FileStat>, SetupError> {
    match stat(path) {
        Ok(found) if found.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFDIR.bits() => {
            Ok(Some(found))
        }
        Ok(_) => Err(SetupError::NotADirectory(path.to_owned())),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(SetupError::new("inspect", path, errno)),
    }
}

/// What `path` is in.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn c_path(path: &Path) -> Result<CString, Errno> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)
}
