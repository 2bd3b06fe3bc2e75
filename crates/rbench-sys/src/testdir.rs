//! Directories that another tool's command line names: there already or made
//! by us, without a marker file, and removed again by path. What the tool's
//! own phases make inside is not our business.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, open};
use nix::sys::stat::{FileStat, Mode, SFlag, stat};
use nix::unistd::{UnlinkatFlags, mkdir};

use crate::anchor::Anchor;
use crate::remove::{Removal, RemoveError, unlink};
use crate::workdir::{DIRECTORY, SetupError, enter, is_root, remove_entry};

/// What was done for a directory to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// It was made.
    Made,
    /// It was there already.
    WasThere,
}

/// Makes the directory `path`, mode 0775, if it is not there; what it is in
/// must be. Its last component may be a symbolic link to a directory.
///
/// # Errors
/// [`SetupError::Root`] for the root directory of the host,
/// [`SetupError::NotADirectory`] when something else has the name.
pub fn make(path: &Path) -> Result<Made, SetupError> {
    if let Some(found) = find(path)? {
        return match is_root(&found) {
            Ok(false) => Ok(Made::WasThere),
            Ok(true) => Err(SetupError::Root(path.to_owned())),
            Err(errno) => Err(SetupError::new("look at", path, errno)),
        };
    }
    match mkdir(path, Mode::from_bits_truncate(0o775)) {
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
    let found = last_step(path).and_then(|(parent, name)| {
        let directory = enter(&parent, &name)?;
        Anchor::new(parent.as_fd(), directory.as_fd(), path, false)
    });
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
        Err(errno) => Err(SetupError::new("look at", path, errno)),
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
