//! One method for each metadata operation.
//!
//! Paths are C strings: the caller patches path bytes in place and no call
//! allocates. Which directories may be used is the caller's business.

use std::ffi::CStr;
use std::os::fd::{OwnedFd, RawFd};

use nix::errno::Errno;
use rbench_core::OpenFlags;

use crate::residency::Resident;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// `O_RDONLY`
    Read,
    /// `O_WRONLY | O_CREAT | O_EXCL`, mode 0664: it must not exist.
    CreateNew,
    /// `O_WRONLY | O_CREAT`, mode 0664: it may exist and keeps its length.
    Write,
    /// `O_WRONLY`: it must exist and keeps its length.
    WriteExisting,
    /// `O_RDWR | O_CREAT`, mode 0664.
    ReadWrite,
    /// With these flags, as a script has them.
    With(OpenFlags),
}

impl OpenMode {
    /// All that it asks for.
    pub fn flags(self) -> OpenFlags {
        let none = OpenFlags::default();
        match self {
            OpenMode::Read => OpenFlags {
                reads: true,
                ..none
            },
            OpenMode::CreateNew => OpenFlags {
                writes: true,
                creates: true,
                exclusive: true,
                ..none
            },
            OpenMode::Write => OpenFlags {
                writes: true,
                creates: true,
                ..none
            },
            OpenMode::WriteExisting => OpenFlags {
                writes: true,
                ..none
            },
            OpenMode::ReadWrite => OpenFlags {
                reads: true,
                writes: true,
                creates: true,
                ..none
            },
            OpenMode::With(flags) => flags,
        }
    }
}

/// The metadata operations of a target, relative to one directory.
///
/// A path may also be absolute, as those of `rbench mdtest` are: then the
/// directory is not used.
///
/// Implementations: POSIX calls, a recorder that writes down the sequence of
/// operations instead of doing them, and one that does nothing. Every method
/// is one system call (a listing: the three that it names) and is not retried:
/// what the kernel says is what is reported. A descriptor is a plain number so
/// that the recorder can make them up; who opens one closes it.
pub trait Fs: Send + Sync {
    /// `mkdirat(path, 0775)`
    fn mkdir(&self, path: &CStr) -> Result<(), Errno>;
    /// `unlinkat(path, AT_REMOVEDIR)`
    fn rmdir(&self, path: &CStr) -> Result<(), Errno>;
    /// `fstatat(path, AT_SYMLINK_NOFOLLOW)`; the size in bytes.
    fn stat(&self, path: &CStr) -> Result<u64, Errno>;
    /// `renameat(from, to)`
    fn rename(&self, from: &CStr, to: &CStr) -> Result<(), Errno>;
    /// `linkat(from, to, 0)`
    fn link(&self, from: &CStr, to: &CStr) -> Result<(), Errno>;
    /// `openat(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)`, `getdents64` up to
    /// the end with `buffer`, `close`; the number of entries without `.` and
    /// `..`.
    fn list(&self, path: &CStr, buffer: &mut [u8]) -> Result<u64, Errno>;
    /// `openat(path, …, O_CLOEXEC | O_NOFOLLOW)`, with `O_DIRECT` when asked.
    fn open(&self, path: &CStr, mode: OpenMode, direct: bool) -> Result<RawFd, Errno>;
    /// `mknodat(path, S_IFREG | 0664)`: a regular file that is not there yet.
    fn mknod(&self, path: &CStr) -> Result<(), Errno>;
    /// `close`
    fn close(&self, fd: RawFd) -> Result<(), Errno>;
    /// `unlinkat(path, 0)`
    fn unlink(&self, path: &CStr) -> Result<(), Errno>;
    /// `write` of the whole buffer at the file's position; the number of
    /// bytes the kernel took.
    fn write(&self, fd: RawFd, buffer: &[u8]) -> Result<usize, Errno>;
    /// `read` at the file's position; 0 at the end of the file.
    fn read(&self, fd: RawFd, buffer: &mut [u8]) -> Result<usize, Errno>;
    /// `fsync`
    fn fsync(&self, fd: RawFd) -> Result<(), Errno>;
    /// `fdatasync`
    fn fdatasync(&self, fd: RawFd) -> Result<(), Errno>;
    /// `sync`: everything that the host has written, to any file system.
    fn sync(&self);
    /// `ftruncate`
    fn truncate(&self, fd: RawFd, length: u64) -> Result<(), Errno>;
    /// `symlinkat(target, path)`
    fn symlink(&self, target: &CStr, path: &CStr) -> Result<(), Errno>;
    /// `readlinkat(path)`; the length of the target, of which `buffer` has as
    /// much as fits.
    fn readlink(&self, path: &CStr, buffer: &mut [u8]) -> Result<usize, Errno>;
    /// `fchmodat(path, mode)`
    fn chmod(&self, path: &CStr, mode: u32) -> Result<(), Errno>;
    /// `utimensat(path, AT_SYMLINK_NOFOLLOW)`: both times, in s since 1970.
    fn utimes(&self, path: &CStr, seconds: i64) -> Result<(), Errno>;
    /// `faccessat(path, R_OK)`
    fn access(&self, path: &CStr) -> Result<(), Errno>;
    /// `statx(path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS)`; the size in bytes.
    fn lookup(&self, path: &CStr) -> Result<u64, Errno>;
    /// `statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS)`;
    /// the size in bytes.
    fn getattr(&self, fd: RawFd) -> Result<u64, Errno>;
    /// `fstatfs`; the size of a block in bytes.
    fn statfs(&self, fd: RawFd) -> Result<u64, Errno>;
    /// `fsetxattr`: the attribute may be there.
    fn setxattr(&self, fd: RawFd, name: &CStr, value: &[u8]) -> Result<(), Errno>;
    /// `fgetxattr`; the length of the value, which fits into `buffer`.
    fn getxattr(&self, fd: RawFd, name: &CStr, buffer: &mut [u8]) -> Result<usize, Errno>;
    /// `flistxattr`; the length of the list, in which each name ends with a NUL.
    fn listxattr(&self, fd: RawFd, buffer: &mut [u8]) -> Result<usize, Errno>;
    /// `fremovexattr`
    fn removexattr(&self, fd: RawFd, name: &CStr) -> Result<(), Errno>;
    /// `pwrite` at `offset` in bytes; the number of bytes the kernel took.
    fn write_at(&self, fd: RawFd, buffer: &[u8], offset: u64) -> Result<usize, Errno>;
    /// `pread` at `offset` in bytes; 0 at the end of the file.
    fn read_at(&self, fd: RawFd, buffer: &mut [u8], offset: u64) -> Result<usize, Errno>;
    /// What of an open file lies in the page cache, where that can be told
    /// ([`crate::residency::resident`]); changes nothing.
    fn resident(&self, _fd: RawFd) -> Option<Resident> {
        None
    }
    /// A directory descriptor to resolve paths against, for engines that open
    /// files themselves; `None` when there is no real directory.
    fn directory(&self) -> Option<&OwnedFd>;
}
