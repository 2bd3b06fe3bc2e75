//! Interface of a back end: one method per operation, which returns an errno on
//! failure. Statistics, latency, faults and the FUSE protocol belong to other
//! modules.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::SystemTime;

use fuser::{FileAttr, FileType, TimeOrNow};
use nix::errno::Errno;

/// The outcome of an operation.
pub(crate) type Answer<T> = Result<T, Errno>;

/// The inode number of the root in the FUSE protocol.
pub(crate) const ROOT: u64 = 1;

/// User and group of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// A name in a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The inode number of the directory.
    pub(crate) parent: u64,
    /// The name in it.
    pub(crate) name: &'a OsStr,
}

#[cfg(test)]
pub(crate) fn at(parent: u64, name: &str) -> Place<'_> {
    let name = OsStr::new(name);
    Place { parent, name }
}

/// Attributes to change; `None` leaves one unchanged.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Changes {
    pub(crate) mode: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) atime: Option<TimeOrNow>,
    pub(crate) mtime: Option<TimeOrNow>,
    pub(crate) ctime: Option<SystemTime>,
}

/// An entry of a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) ino: u64,
    /// Offset for a later call to continue after this entry.
    pub(crate) offset: u64,
    pub(crate) kind: FileType,
    pub(crate) name: &'a OsStr,
}

/// Totals of a file system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Totals {
    pub(crate) blocks: u64,
    pub(crate) blocks_free: u64,
    pub(crate) blocks_available: u64,
    pub(crate) files: u64,
    pub(crate) files_free: u64,
    pub(crate) block_size: u32,
    pub(crate) name_max: u32,
}

/// Takes an entry of a listing; returns true if there is room for no more.
pub(crate) type Add<'a> = &'a mut dyn FnMut(Entry<'_>) -> bool;

/// Like [`Add`], with the attributes of the entry.
pub(crate) type AddPlus<'a> = &'a mut dyn FnMut(Entry<'_>, &FileAttr) -> bool;

/// The attributes and the handle of a file that was created.
pub(crate) type Created = (FileAttr, u64);

/// A back end. Inode numbers and handles are those that it has returned. Every
/// [`FileAttr`] that it returns for a name counts as one lookup of the inode, which
/// `forget` takes back.
pub(crate) trait Store: Send + Sync + 'static {
    fn lookup(&self, place: Place<'_>) -> Answer<FileAttr>;
    fn forget(&self, ino: u64, lookups: u64);
    fn getattr(&self, ino: u64) -> Answer<FileAttr>;
    fn setattr(
        &self,
        caller: Caller,
        ino: u64,
        handle: Option<u64>,
        changes: Changes,
    ) -> Answer<FileAttr>;
    fn access(&self, caller: Caller, ino: u64, mask: i32) -> Answer<()>;

    fn readlink(&self, ino: u64) -> Answer<OsString>;
    fn symlink(&self, caller: Caller, place: Place<'_>, target: &Path) -> Answer<FileAttr>;
    /// `mode` contains type and permissions.
    fn mknod(&self, caller: Caller, place: Place<'_>, mode: u32, rdev: u32) -> Answer<FileAttr>;
    fn mkdir(&self, caller: Caller, place: Place<'_>, mode: u32) -> Answer<FileAttr>;
    fn unlink(&self, place: Place<'_>) -> Answer<()>;
    fn rmdir(&self, place: Place<'_>) -> Answer<()>;
    /// `flags` as for `renameat2`.
    fn rename(&self, from: Place<'_>, to: Place<'_>, flags: u32) -> Answer<()>;
    fn link(&self, ino: u64, place: Place<'_>) -> Answer<FileAttr>;

    /// `flags` as for `open`; returns a handle.
    fn open(&self, ino: u64, flags: i32) -> Answer<u64>;
    fn create(&self, caller: Caller, place: Place<'_>, mode: u32, flags: i32) -> Answer<Created>;
    /// Reads into `buffer` from its start, less than its length at the end of the
    /// file. Returns the number of bytes.
    fn read(&self, ino: u64, handle: u64, offset: u64, buffer: &mut [u8]) -> Answer<usize>;
    /// Returns the number of bytes written, less than all if space runs out.
    /// `kill` clears the set-user-id and set-group-id bits.
    fn write(&self, ino: u64, handle: u64, offset: u64, data: &[u8], kill: bool) -> Answer<u32>;
    fn flush(&self, handle: u64) -> Answer<()>;
    fn release(&self, handle: u64) -> Answer<()>;
    fn fsync(&self, ino: u64, handle: u64, data_only: bool) -> Answer<()>;
    /// Like `read`, without a handle.
    fn peek(&self, ino: u64, offset: u64, buffer: &mut [u8]) -> Answer<usize>;
    /// Like `write`, without a handle.
    fn poke(&self, ino: u64, offset: u64, data: &[u8]) -> Answer<usize>;
    /// `mode` as for `fallocate`.
    fn fallocate(&self, ino: u64, handle: u64, offset: u64, length: u64, mode: i32) -> Answer<()>;
    /// `whence` is SEEK_DATA or SEEK_HOLE.
    fn lseek(&self, ino: u64, handle: u64, offset: i64, whence: i32) -> Answer<i64>;

    fn opendir(&self, ino: u64) -> Answer<u64>;
    /// Passes entries after `offset` to `add` until it returns true (full).
    fn readdir(&self, ino: u64, handle: u64, offset: u64, add: Add<'_>) -> Answer<()>;
    /// Like `readdir`, with attributes. Each accepted entry, except `.` and `..`,
    /// counts as a lookup.
    fn readdirplus(&self, ino: u64, handle: u64, offset: u64, add: AddPlus<'_>) -> Answer<()>;
    fn releasedir(&self, handle: u64) -> Answer<()>;
    fn fsyncdir(&self, ino: u64, handle: u64, data_only: bool) -> Answer<()>;

    fn statfs(&self, ino: u64) -> Answer<Totals>;
    /// `flags` as for `setxattr`.
    fn setxattr(&self, ino: u64, name: &OsStr, value: &[u8], flags: i32) -> Answer<()>;
    fn getxattr(&self, ino: u64, name: &OsStr) -> Answer<Vec<u8>>;
    /// The names, each with a zero byte at its end.
    fn listxattr(&self, ino: u64) -> Answer<Vec<u8>>;
    fn removexattr(&self, ino: u64, name: &OsStr) -> Answer<()>;
}

/// The FUSE type of the file type bits of `mode`; without them a regular file, as in
/// `mknod`.
pub(crate) fn file_type(mode: u32) -> Answer<FileType> {
    match mode & libc::S_IFMT {
        libc::S_IFDIR => Ok(FileType::Directory),
        libc::S_IFREG | 0 => Ok(FileType::RegularFile),
        libc::S_IFLNK => Ok(FileType::Symlink),
        libc::S_IFIFO => Ok(FileType::NamedPipe),
        libc::S_IFSOCK => Ok(FileType::Socket),
        libc::S_IFCHR => Ok(FileType::CharDevice),
        libc::S_IFBLK => Ok(FileType::BlockDevice),
        _ => Err(Errno::EINVAL),
    }
}
