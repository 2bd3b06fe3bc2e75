//! Directories that another tool's command line names. They may exist already or are created here,
//! without a marker file, and are removed by path. The content that the tool's own phases create is
//! not handled here.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, open};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, lstat, mkdirat, stat};
use nix::unistd::{UnlinkatFlags, getegid, geteuid, mkdir};
use rbench_core::or_eio;

use crate::anchor::Anchor;
use crate::remove::{Removal, RemoveError, unlink};
use crate::workdir::{DIRECTORY, SetupError, belongs_to_us, enter, is_root, remove_entry};

/// Origin of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// It was created.
    Made,
    /// It existed already.
    WasThere,
}

/// Creates the directory `path` if it does not exist; its parent must exist. The mode is 0775, or
/// 0700 if others may change the parent. The last component may be a symbolic link to a directory.
///
/// # Errors
/// [`SetupError::Root`] for the root directory of the host, [`SetupError::NotADirectory`] if
/// something else has the name.
pub fn make(path: &Path) -> Result<Made, SetupError> {
    if let Some(status) = find(path)? {
        return match is_root(&status) {
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
        // Another process was faster, or it is a dangling link.
        Err(Errno::EEXIST) => match find(path)? {
            Some(_) => Ok(Made::WasThere),
            None => Err(SetupError::NotADirectory(path.to_owned())),
        },
        Err(Errno::ENOENT) if find(parent(path)).is_ok_and(|status| status.is_some()) => {
            Err(SetupError::TakesNone(parent(path).to_owned()))
        }
        Err(errno) => Err(SetupError::new("write in", parent(path), errno)),
    }
}

/// True if another user, except root, may replace `path` or an entry of it: on the way there, also
/// through links, they own a directory, or may write to it and it is not sticky. `path` may be
/// missing, since they may have moved it away for a moment.
///
/// # Errors
/// An error of the system.
pub fn others_may_replace(path: &Path) -> Result<bool, Errno> {
    for step in path.ancestors() {
        let empty = step.as_os_str().is_empty();
        if others_may_change(if empty { Path::new(".") } else { step })? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn others_may_change(path: &Path) -> Result<bool, Errno> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let whole = match path.canonicalize().map_err(or_eio) {
        // It is unknown where a link led before its target went missing.
        Err(Errno::ENOENT) => return Ok(path.is_symlink()),
        whole => whole?,
    };
    for above in whole.ancestors() {
        let status = match stat(above) {
            // Somebody moved it just now.
            Err(Errno::ENOENT) => return Ok(true),
            status => status?,
        };
        let mode = Mode::from_bits_truncate(status.st_mode);
        let owned = status.st_uid != 0 && status.st_uid != user;
        let sticky = mode.contains(Mode::S_ISVTX);
        let of_group = status.st_gid != 0 && status.st_gid != group && mode.contains(Mode::S_IWGRP);
        if owned || !sticky && (of_group || mode.contains(Mode::S_IWOTH)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Opens the existing directory `path` to hold it. If its last component is a symbolic link of this
/// user or root, it opens the current target.
///
/// # Errors
/// [`SetupError::Replaced`] for another user's link, or the reason why it cannot be opened.
pub fn hold_named(path: &Path) -> Result<OwnedFd, SetupError> {
    let failed = |errno| SetupError::new("open", path, errno);
    let status = lstat(path).map_err(failed)?;
    let is_link = status.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFLNK.bits();
    let trusted = status.st_uid == 0 || status.st_uid == geteuid().as_raw();
    let flags = match (is_link, trusted) {
        (true, true) => DIRECTORY,
        (true, false) => return Err(SetupError::Replaced(path.to_owned())),
        (false, _) => DIRECTORY | OFlag::O_NOFOLLOW,
    };
    open(path, flags, Mode::empty()).map_err(failed)
}

/// Directories that are held open, by their paths. Paths below them are resolved from there, others
/// by their path.
#[derive(Debug, Clone, Default)]
pub struct Held(pub Arc<[(Vec<u8>, OwnedFd)]>);

impl Held {
    /// A descriptor below which nothing is found: calls on the paths below fail with `ENOENT`,
    /// or without /proc with `ENOTDIR`.
    ///
    /// # Errors
    /// `EMFILE` and the like.
    pub fn nothing() -> Result<OwnedFd, Errno> {
        // All entries of this directory are numbers.
        match open("/proc/self/fdinfo", DIRECTORY, Mode::empty()) {
            Ok(directory) => Ok(directory),
            Err(_) => Ok(std::io::pipe().map_err(or_eio)?.0.into()),
        }
    }

    /// Parent directory of `path`, opened from a held directory, and the name in it; `None` if
    /// nothing is held.
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
                // The directory itself: its name must still refer to it.
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

    /// Parent directory of `path`, and the name in it.
    fn step(&self, path: &Path) -> Result<(OwnedFd, CString), Errno> {
        match self.last_step(path)? {
            Some(step) => Ok(step),
            None => last_step(path),
        }
    }

    /// Like [`make`], but does not accept a symbolic link as a directory.
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

    /// Like [`is_there`].
    ///
    /// # Errors
    /// The same, also for a symbolic link.
    pub fn is_there(&self, path: &Path) -> Result<bool, SetupError> {
        let entry = match self.last_step(path) {
            Ok(None) => return is_there(path),
            Ok(Some((above, name))) => enter(&above, &name),
            Err(errno) => Err(errno),
        };
        match entry {
            Ok(_) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(errno) => Err(SetupError::new("inspect", path, errno)),
        }
    }

    /// Like [`remove_empty`].
    ///
    /// # Errors
    /// The same.
    pub fn remove_empty(&self, path: &Path) -> Result<bool, SetupError> {
        let removed = self.last_step(path).and_then(|step| match step {
            None => unlink(AT_FDCWD, &c_path(path)?, UnlinkatFlags::RemoveDir),
            Some((above, name)) => unlink(above.as_fd(), &name, UnlinkatFlags::RemoveDir),
        });
        match removed {
            Ok(()) => Ok(true),
            Err(Errno::ENOTEMPTY | Errno::EEXIST | Errno::ENOENT) => Ok(false),
            Err(errno) => Err(SetupError::new("remove", path, errno)),
        }
    }

    /// Opens the directory `path` to hold it, even if its name later refers to something else. It
    /// must not be a symbolic link and must belong to this process.
    ///
    /// # Errors
    /// [`SetupError::Replaced`] if it is a link or another user's.
    pub fn hold(&self, path: &Path) -> Result<OwnedFd, SetupError> {
        let failed = |errno| match errno {
            Errno::ENOTDIR | Errno::ELOOP => SetupError::Replaced(path.to_owned()),
            errno => SetupError::new("open", path, errno),
        };
        let (parent, name) = self.step(path).map_err(failed)?;
        let directory = enter(&parent, &name).map_err(failed)?;
        match belongs_to_us(directory.as_fd()).map_err(failed)? {
            true => Ok(directory),
            false => Err(SetupError::Replaced(path.to_owned())),
        }
    }

    /// The directory `path`, for removing its content together with that of others, with the same
    /// care; `None` if it does not exist.
    ///
    /// # Errors
    /// `ENOTDIR`, also for a symbolic link; `EXDEV` if it is a mount point, and `ESTALE` if
    /// something else has the name of a held directory now.
    pub fn anchor(&self, path: &Path) -> Result<Option<Anchor>, Errno> {
        let anchor = self.step(path).and_then(|(parent, name)| {
            let directory = enter(&parent, &name)?;
            Anchor::new(parent.as_fd(), directory.as_fd(), path, false)
        });
        match anchor {
            Err(Errno::ENOENT) => Ok(None),
            anchor => anchor.map(Some),
        }
    }

    /// Removes everything in the directory `path`, then the directory. Does nothing if it does not
    /// exist. It follows no symbolic links and enters no other mounts, including at the end of
    /// `path`. Returns the number of removed entries, without the directory itself.
    ///
    /// # Errors
    /// `ESTALE` if something else has the name of a held directory now.
    pub fn remove_tree(&self, path: &Path, how: Removal<'_>) -> Result<u64, RemoveError> {
        match self.step(path) {
            Ok((parent, name)) => remove_entry(parent.as_fd(), &name, path, how),
            Err(Errno::ENOENT) => Ok(0),
            Err(errno) => Err(RemoveError::refused(path, errno)),
        }
    }
}

/// True if the directory `path` exists; its last component may be a symbolic link to a directory.
///
/// # Errors
/// [`SetupError::NotADirectory`] if something else has the name.
pub fn is_there(path: &Path) -> Result<bool, SetupError> {
    find(path).map(|found| found.is_some())
}

/// Removes the directory `path` if it is empty. `false` if it is not empty or does not exist.
///
/// # Errors
/// [`SetupError::NotADirectory`], also for a symbolic link.
pub fn remove_empty(path: &Path) -> Result<bool, SetupError> {
    Held::default().remove_empty(path)
}

/// Parent directory of `path`, open, and the name in it.
fn last_step(path: &Path) -> Result<(OwnedFd, CString), Errno> {
    // `/` and `..` do not name an entry of a directory.
    let name = path.file_name().ok_or(Errno::EINVAL)?;
    let name = c_path(Path::new(name))?;
    Ok((open(parent(path), DIRECTORY, Mode::empty())?, name))
}

/// Status of the directory `path`, if it exists.
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

/// Parent directory of `path`.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn c_path(path: &Path) -> Result<CString, Errno> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)
}
