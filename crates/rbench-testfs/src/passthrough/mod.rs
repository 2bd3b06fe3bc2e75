//! The passthrough back end: forwards every operation to a folder.
//!
//! Each inode that the kernel knows is a descriptor that names the file (O_PATH).
//! Every call uses such a descriptor, and at most one name without a slash below it.
//! No call uses a path or follows a symbolic link, so nothing outside the folder can
//! be reached.

mod listing;
mod operations;
mod sys;

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fuser::{FileAttr, FileType};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::stat::{FchmodatFlags, FileStat, Mode};
use nix::unistd::{Gid, Uid, getegid, geteuid};
use nix::{fcntl, unistd};
use parking_lot::Mutex;
use rbench_core::dirents::Record;
use rbench_core::or_eio;

use self::listing::Listing;
use self::sys::path_of;
use crate::store::{Answer, Caller, Entry, Place, ROOT, file_type};
use crate::sync::Sharded;

/// First inode number of files on other devices than the folder's (a file system
/// mounted below it); real numbers are far smaller.
const OTHER_DEVICES: u64 = 1 << 63;

/// An inode that the kernel knows.
#[derive(Debug)]
struct Node {
    /// Names the file (O_PATH) and keeps its inode number from being reused.
    fd: OwnedFd,
    kind: FileType,
    /// References of the kernel, changed under the lock of the shard.
    lookups: AtomicU64,
}

/// The passthrough back end.
#[derive(Debug)]
pub(crate) struct Passthrough {
    nodes: Sharded<Arc<Node>>,
    root_device: u64,
    root_ino: u64,
    /// Inode numbers of files on other devices.
    others: Mutex<HashMap<(u64, u64), u64>>,
    files: Sharded<Arc<File>>,
    listings: Sharded<Arc<Mutex<Listing>>>,
    next_handle: AtomicU64,
}

thread_local! {
    /// True if this thread has its own file mode creation mask.
    static UNMASKED: Cell<bool> = const { Cell::new(false) };
}

/// Makes the modes that the kernel requests take effect unchanged, as it has already
/// applied the caller's mask. The mask of other threads is not affected.
fn unmask() -> Answer<()> {
    if !UNMASKED.get() {
        unshare(CloneFlags::CLONE_FS)?;
        nix::sys::stat::umask(Mode::empty());
        UNMASKED.set(true);
    }
    Ok(())
}

/// Raises the limit of open files to its maximum: one is open for each inode that the
/// kernel remembers.
fn raise_file_limit() -> io::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}

fn stat(fd: &OwnedFd) -> Answer<FileStat> {
    nix::sys::stat::fstatat(fd, "", AtFlags::AT_EMPTY_PATH)
}

/// The name of `place` if it is a plain one.
fn plain(place: Place<'_>) -> Answer<&OsStr> {
    let bytes = place.name.as_encoded_bytes();
    if matches!(bytes, b"" | b"." | b"..") || bytes.contains(&b'/') {
        return Err(Errno::EINVAL);
    }
    Ok(place.name)
}

/// The flags of `open` to pass on. O_DIRECT is omitted, because the buffers of the
/// protocol are not aligned. O_APPEND is omitted, because the kernel sets the offset.
fn open_flags(flags: i32) -> OFlag {
    const KEPT: i32 = libc::O_ACCMODE | libc::O_TRUNC | libc::O_SYNC | libc::O_DSYNC;
    OFlag::from_bits_truncate(flags & KEPT) | OFlag::O_CLOEXEC
}

/// Names the file `name` in `parent`.
fn name_file(parent: &Node, name: &OsStr) -> Answer<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    fcntl::openat(&parent.fd, name, flags, Mode::empty())
}

/// Opens the file that `fd` names.
fn reopen(fd: &OwnedFd, flags: OFlag) -> Answer<OwnedFd> {
    fcntl::open(path_of(fd).as_c_str(), flags, Mode::empty())
}

impl Passthrough {
    /// Opens `folder`.
    ///
    /// # Errors
    /// Fails if it is not a folder or cannot be opened.
    pub(crate) fn new(folder: &Path) -> io::Result<Passthrough> {
        raise_file_limit()?;
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let fd = fcntl::open(folder, flags, Mode::empty())?;
        let root = stat(&fd)?;
        let passthrough = Passthrough {
            nodes: Sharded::default(),
            root_device: root.st_dev,
            root_ino: root.st_ino,
            others: Mutex::default(),
            files: Sharded::default(),
            listings: Sharded::default(),
            next_handle: AtomicU64::new(1),
        };
        let node = Node {
            fd,
            kind: FileType::Directory,
            lookups: AtomicU64::new(1),
        };
        passthrough.nodes.insert(ROOT, Arc::new(node));
        Ok(passthrough)
    }

    fn node(&self, ino: u64) -> Answer<Arc<Node>> {
        self.nodes.get(ino).ok_or(Errno::ENOENT)
    }

    /// A file other than a symbolic link, whose extended attributes cannot be reached without
    /// following it.
    fn node_with_xattrs(&self, ino: u64) -> Answer<Arc<Node>> {
        let node = self.node(ino)?;
        match node.kind {
            FileType::Symlink => Err(Errno::EOPNOTSUPP),
            _ => Ok(node),
        }
    }

    fn file(&self, handle: u64) -> Answer<Arc<File>> {
        self.files.get(handle).ok_or(Errno::EBADF)
    }

    /// The protocol's number for an inode of the folder's device: its own. But the
    /// root is 1, and the inode with number 1 gets the root's.
    fn number_of(&self, ino: u64) -> u64 {
        match ino {
            ino if ino == self.root_ino => ROOT,
            ROOT => self.root_ino,
            ino => ino,
        }
    }

    fn number(&self, stat: &FileStat) -> u64 {
        if stat.st_dev == self.root_device {
            return self.number_of(stat.st_ino);
        }
        let mut others = self.others.lock();
        let next = OTHER_DEVICES + others.len() as u64;
        *others.entry((stat.st_dev, stat.st_ino)).or_insert(next)
    }

    /// Counts a lookup of the file that `fd` names.
    fn enter(&self, fd: OwnedFd) -> Answer<FileAttr> {
        let stat = stat(&fd)?;
        let ino = self.number(&stat);
        let attr = sys::attr(&stat, ino)?;
        let mut shard = self.nodes.shard(ino).write();
        let node = shard.entry(ino).or_insert_with(|| {
            Arc::new(Node {
                fd,
                kind: attr.kind,
                lookups: AtomicU64::new(0),
            })
        });
        node.lookups.fetch_add(1, Ordering::Relaxed);
        Ok(attr)
    }

    fn attr(&self, node: &Node, ino: u64) -> Answer<FileAttr> {
        sys::attr(&stat(&node.fd)?, ino)
    }

    /// Gives the new file at `place` to `caller`, unless that is the user of this
    /// process, and counts a lookup of it.
    fn enter_new(&self, caller: Caller, place: Place<'_>) -> Answer<FileAttr> {
        let parent = self.node(place.parent)?;
        let fd = name_file(&parent, place.name)?;
        give_to(caller, &parent, &fd)?;
        self.enter(fd)
    }

    fn add_handle(&self) -> u64 {
        self.next_handle.fetch_add(1, Ordering::Relaxed)
    }

    /// The file type of an entry; asks the file system if the entry has none.
    fn kind_of(&self, directory: &File, entry: &Record<'_>) -> Answer<FileType> {
        let mode = match entry.kind {
            libc::DT_UNKNOWN => {
                let flags = AtFlags::AT_SYMLINK_NOFOLLOW;
                nix::sys::stat::fstatat(directory, entry.name()?, flags)?.st_mode
            }
            // The type of an entry is that of the mode, shifted.
            kind => u32::from(kind) << 12,
        };
        file_type(mode)
    }

    /// Passes the entries from `offset` on to `add`, with their types.
    fn list(
        &self,
        handle: u64,
        offset: u64,
        mut add: impl FnMut(Entry<'_>) -> Answer<bool>,
    ) -> Answer<()> {
        let listing = self.listings.get(handle).ok_or(Errno::EBADF)?;
        let mut listing = listing.lock();
        let directory = listing.directory().try_clone().map_err(or_eio)?;
        listing.read(offset, |raw| {
            let kind = match self.kind_of(&directory, raw) {
                // It was removed after the directory was read.
                Err(Errno::ENOENT) => return Ok(false),
                kind => kind?,
            };
            let [ino, offset] = raw.numbers();
            add(Entry {
                ino: self.number_of(ino),
                offset,
                kind,
                name: OsStr::from_bytes(raw.name()?.to_bytes()),
            })
        })
    }
}

/// Makes `caller` the owner of the new file `fd` in `parent`, if necessary.
fn give_to(caller: Caller, parent: &Node, fd: &OwnedFd) -> Answer<()> {
    let (uid, gid) = (Uid::from_raw(caller.uid), Gid::from_raw(caller.gid));
    if (uid, gid) == (geteuid(), getegid()) {
        return Ok(());
    }
    // A directory with the set-group-id bit gives its own group.
    let inherits = stat(&parent.fd)?.st_mode & libc::S_ISGID != 0;
    let gid = (!inherits).then_some(gid);
    unistd::fchownat(fd, "", Some(uid), gid, AtFlags::AT_EMPTY_PATH)
}

/// Clears the set-user-id and set-group-id bits, as a change by anyone except root
/// must. The folder's file system does it unless this process is root.
fn kill_privileges(node: &Node, wanted: bool) -> Answer<()> {
    if !wanted || !geteuid().is_root() {
        return Ok(());
    }
    let mode = stat(&node.fd)?.st_mode & 0o7777;
    let group = if mode & libc::S_IXGRP != 0 {
        libc::S_ISGID
    } else {
        0
    };
    let kept = mode & !(libc::S_ISUID | group);
    if kept == mode {
        return Ok(());
    }
    set_mode(node, kept)
}

fn set_mode(node: &Node, mode: u32) -> Answer<()> {
    let (path, mode) = (path_of(&node.fd), Mode::from_bits_truncate(mode));
    let follow = FchmodatFlags::FollowSymlink;
    nix::sys::stat::fchmodat(AT_FDCWD, path.as_c_str(), mode, follow)
}

#[cfg(test)]
mod tests;
