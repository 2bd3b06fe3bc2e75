//! Removing a directory and all that is in it, without following a symbolic
//! link or entering another mount, in memory that does not depend on the
//! number of entries.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::libc;
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};

use crate::dirents::{self, Records};
use crate::mountinfo::mount_id;

/// The name of the marker file, which says whose directory it is. It is the
/// last that goes.
pub(crate) const MARKER: &CStr = c".rbench-run";

/// Bytes of a directory's listing that are read at a time.
const BATCH: usize = 32 << 10;

/// The deepest tree that is removed: more components do not fit in a path of
/// the kernel's greatest length.
const DEPTH_MAX: usize = 2048;

/// Why something of the directory is still there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoveError {
    /// The stop flag was set.
    #[error("stopped: {} is only partly removed", directory.display())]
    Stopped {
        /// The directory.
        directory: PathBuf,
        /// Entries that were removed.
        removed: u64,
    },
    /// Some entries could not be removed.
    #[error("{}", kept_sentence(directory, *kept, first, *errno))]
    Kept {
        /// The directory.
        directory: PathBuf,
        /// Entries that were removed.
        removed: u64,
        /// Entries that refused, without the directories that they are in.
        kept: u64,
        /// The first of them.
        first: PathBuf,
        /// Why; `EXDEV` when something is mounted there.
        errno: Errno,
    },
}

impl RemoveError {
    /// Nothing of the directory `path` was removed.
    pub(crate) fn refused(path: &Path, errno: Errno) -> RemoveError {
        RemoveError::Kept {
            directory: path.to_owned(),
            removed: 0,
            kept: 1,
            first: path.to_owned(),
            errno,
        }
    }
}

fn kept_sentence(directory: &Path, kept: u64, first: &Path, errno: Errno) -> String {
    let (first, why) = (first.display(), reason(errno));
    if kept == 1 {
        return format!("{first} could not be removed: {why}");
    }
    let directory = directory.display();
    format!("{kept} entries of {directory} could not be removed, the first {first}: {why}")
}

fn reason(errno: Errno) -> String {
    match errno {
        Errno::EXDEV => "another file system is mounted there".to_owned(),
        _ => format!("{} ({errno:?})", errno.desc()),
    }
}

/// Removes the directory `name` of `parent`, open as `directory`; the marker
/// file goes last. Returns the number of entries removed, without the marker
/// and the directory itself.
pub(crate) fn remove(
    parent: BorrowedFd<'_>,
    name: &CStr,
    path: &Path,
    directory: BorrowedFd<'_>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, RemoveError> {
    let mut removal = Removal {
        stop,
        progress,
        mount: 0,
        path: path.to_owned(),
        depth: 0,
        removed: 0,
        kept: 0,
        first: None,
    };
    let all = removal.all(parent, name, directory);
    let directory = path.to_owned();
    let removed = removal.removed;
    match (all, removal.first) {
        (Err(Stopped), _) => Err(RemoveError::Stopped { directory, removed }),
        (Ok(()), Some((first, errno))) => Err(RemoveError::Kept {
            directory,
            removed,
            kept: removal.kept,
            first,
            errno,
        }),
        (Ok(()), None) => Ok(removed),
    }
}

struct Stopped;

struct Removal<'a> {
    stop: &'a AtomicBool,
    progress: &'a mut dyn FnMut(u64),
    /// The mount that must not be left.
    mount: u64,
    /// The entry at hand, for messages.
    path: PathBuf,
    /// Directories between the top and the entry at hand.
    depth: usize,
    removed: u64,
    kept: u64,
    first: Option<(PathBuf, Errno)>,
}

impl Removal<'_> {
    fn all(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        directory: BorrowedFd<'_>,
    ) -> Result<(), Stopped> {
        match (mount(parent), mount(directory)) {
            (Ok(outside), Ok(inside)) if outside == inside => self.mount = inside,
            (Ok(_), Ok(_)) => {
                self.keep(Errno::EXDEV);
                return Ok(());
            }
            (Err(errno), _) | (_, Err(errno)) => {
                self.keep(errno);
                return Ok(());
            }
        }
        loop {
            let (removed, kept) = (self.removed, self.kept);
            self.empty(directory, c".", Some(MARKER))?;
            if self.kept > kept {
                return Ok(());
            }
            // A listing may pass over entries while others are removed.
            if self.removed == removed {
                break;
            }
        }
        let last = match unlink(directory, MARKER, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => unlink(parent, name, UnlinkatFlags::RemoveDir),
            Err(errno) => Err(errno),
        };
        if let Err(errno) = last {
            self.keep(errno);
        }
        Ok(())
    }

    /// Notes that the entry at hand stays.
    fn keep(&mut self, errno: Errno) {
        self.kept += 1;
        self.first.get_or_insert_with(|| (self.path.clone(), errno));
    }

    /// Counts the entry at hand as removed, if it is.
    fn settle(&mut self, result: Result<(), Errno>) {
        match result {
            Ok(()) => {
                self.removed += 1;
                (self.progress)(self.removed);
            }
            // Someone else was faster.
            Err(Errno::ENOENT) => {}
            Err(errno) => self.keep(errno),
        }
    }

    /// Removes what is in the directory `name` but for `spare`.
    fn empty(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        spare: Option<&CStr>,
    ) -> Result<(), Stopped> {
        let directory = match self.enter(parent, name) {
            Ok(directory) => directory,
            Err(Errno::ENOENT) => return Ok(()),
            Err(errno) => {
                self.keep(errno);
                return Ok(());
            }
        };
        let mut buffer = vec![0; BATCH];
        loop {
            let records = match dirents::read(directory.as_raw_fd(), &mut buffer) {
                Ok([]) => return Ok(()),
                Ok(records) => records,
                Err(errno) => {
                    self.keep(errno);
                    return Ok(());
                }
            };
            for record in Records(records) {
                if self.stop.load(Ordering::Relaxed) {
                    return Err(Stopped);
                }
                let named = record.and_then(|record| Ok((record, record.name()?)));
                match named {
                    Ok((record, _)) if record.is_dots() => {}
                    Ok((_, name)) if Some(name) == spare => {}
                    Ok((record, name)) => {
                        self.path.push(OsStr::from_bytes(name.to_bytes()));
                        let done = self.entry(directory.as_fd(), name, record.kind);
                        self.path.pop();
                        done?;
                    }
                    Err(errno) => self.keep(errno),
                }
            }
        }
    }

    /// Opens a directory of this mount for reading.
    fn enter(&self, parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
        if self.depth > DEPTH_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let directory = openat(parent, name, flags, Mode::empty())?;
        if mount(directory.as_fd())? == self.mount {
            Ok(directory)
        } else {
            Err(Errno::EXDEV)
        }
    }

    /// Removes one entry of the open directory `parent`.
    fn entry(&mut self, parent: BorrowedFd<'_>, name: &CStr, kind: u8) -> Result<(), Stopped> {
        if kind != libc::DT_DIR {
            match unlink(parent, name, UnlinkatFlags::NoRemoveDir) {
                // Some file systems do not say what an entry is.
                Err(Errno::EISDIR) => {}
                result => {
                    self.settle(result);
                    return Ok(());
                }
            }
        }
        loop {
            let (removed, kept) = (self.removed, self.kept);
            self.depth += 1;
            let emptied = self.empty(parent, name, None);
            self.depth -= 1;
            emptied?;
            if self.kept > kept {
                return Ok(());
            }
            match unlink(parent, name, UnlinkatFlags::RemoveDir) {
                // The listing passed over entries while others were removed.
                Err(Errno::ENOTEMPTY | Errno::EEXIST) if self.removed > removed => {}
                result => {
                    self.settle(result);
                    return Ok(());
                }
            }
        }
    }
}

fn mount(directory: BorrowedFd<'_>) -> Result<u64, Errno> {
    mount_id(directory).map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))
}

/// `unlinkat`, repeated when a signal interrupts it.
pub(crate) fn unlink(
    parent: BorrowedFd<'_>,
    name: &CStr,
    flags: UnlinkatFlags,
) -> Result<(), Errno> {
    loop {
        match unlinkat(parent, name, flags) {
            Err(Errno::EINTR) => {}
            result => return result,
        }
    }
}
