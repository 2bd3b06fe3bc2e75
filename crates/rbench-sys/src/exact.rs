//! System calls as a trace has them: with the flags, modes and sizes that somebody else chose.
//!
//! Names are relative to one directory and lead nowhere else: whoever calls has seen to that.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd, RawFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::libc;
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::Mode;
use nix::unistd::fchdir;

use crate::calls;
use crate::dirents;

/// A path below the directory of [`Exact`], for calls that take one relative to a directory and
/// for those that do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExactPath {
    /// From the working directory or the root on.
    whole: CString,
    /// Where the part relative to the directory begins.
    from: usize,
}

impl ExactPath {
    /// Relative to the directory.
    pub fn relative(&self) -> &CStr {
        let bytes = self.whole.as_bytes_with_nul();
        bytes
            .get(self.from..)
            .and_then(|rest| CStr::from_bytes_with_nul(rest).ok())
            .unwrap_or(c".")
    }
}

/// What a call is about.
#[derive(Debug, Clone, Copy)]
pub enum On<'p> {
    /// A name; whether a symbolic link there is followed.
    Path(&'p ExactPath, bool),
    /// A descriptor.
    Open(RawFd),
}

/// Calls relative to one directory, which was opened once: who may change the directory that it lies in
/// cannot lead them elsewhere.
#[derive(Debug, Clone)]
pub struct Exact {
    directory: Arc<OwnedFd>,
    /// Whether it is the working directory of the thread.
    is_entered: bool,
}

#[inline]
fn done(returned: libc::c_int) -> Result<u64, Errno> {
    Errno::result(returned).map(|value| value as u64)
}

#[inline]
fn length(returned: libc::ssize_t) -> Result<u64, Errno> {
    Errno::result(returned).map(|value| value as u64)
}

impl Exact {
    /// Relative to the directory `name` in `parent`.
    ///
    /// # Errors
    /// It cannot be opened, or is a symbolic link.
    pub fn new(parent: impl AsFd, name: &str) -> Result<Exact, Errno> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(Exact {
            directory: Arc::new(openat(parent, name, flags, Mode::empty())?),
            is_entered: false,
        })
    }

    /// The same for the calling thread alone, which has the directory as its working directory from
    /// now on: calls that take no directory have short paths then. Where the system forbids that,
    /// they go by way of the descriptor's name in `/proc`.
    #[must_use]
    pub fn entered(&self) -> Exact {
        let entered = unshare(CloneFlags::CLONE_FS).and_then(|()| fchdir(&self.directory));
        Exact {
            directory: Arc::clone(&self.directory),
            is_entered: entered.is_ok(),
        }
    }

    /// The path `relative`; `None`: it has a byte 0.
    pub fn path(&self, relative: &[u8]) -> Option<ExactPath> {
        let mut all = match self.is_entered {
            true => Vec::new(),
            false => format!("/proc/self/fd/{}/", self.at()).into_bytes(),
        };
        let from = all.len();
        all.extend_from_slice(relative);
        Some(ExactPath {
            whole: CString::new(all).ok()?,
            from,
        })
    }

    #[inline]
    fn at(&self) -> RawFd {
        self.directory.as_raw_fd()
    }

    /// `openat(path, flags | O_CLOEXEC, mode)`; the descriptor.
    #[inline]
    pub fn open(&self, path: &ExactPath, flags: i32, mode: u32) -> Result<RawFd, Errno> {
        calls::openat(self.at(), path.relative(), flags | libc::O_CLOEXEC, mode)
    }

    /// `close` of a descriptor of the caller's, who does not use it again.
    #[inline]
    pub fn close(&self, fd: RawFd) -> Result<u64, Errno> {
        // SAFETY: the descriptor is the caller's, who does not use it again.
        unsafe { calls::close(fd) }.map(|()| 0)
    }

    /// `read`, or with a place `pread64`; bytes.
    #[inline]
    pub fn read(&self, fd: RawFd, at: Option<u64>, buffer: &mut [u8]) -> Result<u64, Errno> {
        match at {
            None => calls::read(fd, buffer),
            // SAFETY: the kernel writes at most `buffer.len()` bytes to `buffer`.
            Some(at) => unsafe {
                calls::pread(fd, buffer.as_mut_ptr(), buffer.len(), at as libc::off_t)
            },
        }
        .map(|bytes| bytes as u64)
    }

    /// `write`, or with a place `pwrite64`; bytes.
    #[inline]
    pub fn write(&self, fd: RawFd, at: Option<u64>, data: &[u8]) -> Result<u64, Errno> {
        match at {
            None => calls::write(fd, data),
            // SAFETY: the kernel reads `data.len()` bytes from `data`.
            Some(at) => unsafe { calls::pwrite(fd, data.as_ptr(), data.len(), at as libc::off_t) },
        }
        .map(|bytes| bytes as u64)
    }

    /// `lseek`; the position.
    #[inline]
    pub fn seek(&self, fd: RawFd, offset: i64, whence: i32) -> Result<u64, Errno> {
        // SAFETY: no memory is involved.
        let returned = unsafe { libc::lseek(fd, offset, whence) };
        Errno::result(returned).map(|position| position as u64)
    }

    /// `fsync` or `fdatasync`.
    #[inline]
    pub fn sync(&self, fd: RawFd, data_only: bool) -> Result<u64, Errno> {
        calls::fsync(fd, data_only).map(|()| 0)
    }

    /// `truncate` or `ftruncate`.
    #[inline]
    pub fn truncate(&self, on: On<'_>, length: u64) -> Result<u64, Errno> {
        let length = length as libc::off_t;
        done(match on {
            // SAFETY: the path is a C string.
            On::Path(path, _) => unsafe { libc::truncate(path.whole.as_ptr(), length) },
            // SAFETY: no memory is involved.
            On::Open(fd) => unsafe { libc::ftruncate(fd, length) },
        })
    }

    /// `fallocate`.
    #[inline]
    pub fn allocate(&self, fd: RawFd, mode: i32, offset: u64, length: u64) -> Result<u64, Errno> {
        let (offset, length) = (offset as libc::off_t, length as libc::off_t);
        // SAFETY: no memory is involved.
        done(unsafe { libc::fallocate(fd, mode, offset, length) })
    }

    /// `fstatat` or `fstat`.
    #[inline]
    pub fn stat(&self, on: On<'_>) -> Result<u64, Errno> {
        let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
        done(match on {
            On::Path(path, follows) => {
                let path = path.relative().as_ptr();
                // SAFETY: the path is a C string, `found` a place for a stat.
                unsafe { libc::fstatat(self.at(), path, found.as_mut_ptr(), no_follow(follows)) }
            }
            // SAFETY: `found` is a place for a stat.
            On::Open(fd) => unsafe { libc::fstat(fd, found.as_mut_ptr()) },
        })
    }

    /// `faccessat`.
    #[inline]
    pub fn access(&self, path: &ExactPath, mode: i32) -> Result<u64, Errno> {
        calls::faccessat(self.at(), path.relative(), mode).map(|()| 0)
    }

    /// `getdents64`; bytes.
    #[inline]
    pub fn list(&self, fd: RawFd, buffer: &mut [u8]) -> Result<u64, Errno> {
        dirents::read(fd, buffer).map(|records| records.len() as u64)
    }

    /// `mkdirat`.
    #[inline]
    pub fn mkdir(&self, path: &ExactPath, mode: u32) -> Result<u64, Errno> {
        // SAFETY: the path is a C string.
        done(unsafe { libc::mkdirat(self.at(), path.relative().as_ptr(), mode) })
    }

    /// `mknodat` of a regular file.
    #[inline]
    pub fn mknod(&self, path: &ExactPath, mode: u32) -> Result<u64, Errno> {
        let mode = libc::S_IFREG | mode;
        // SAFETY: the path is a C string.
        done(unsafe { libc::mknodat(self.at(), path.relative().as_ptr(), mode, 0) })
    }

    /// `unlinkat`, of a directory with `AT_REMOVEDIR`.
    #[inline]
    pub fn remove(&self, path: &ExactPath, is_directory: bool) -> Result<u64, Errno> {
        let flags = if is_directory { libc::AT_REMOVEDIR } else { 0 };
        // SAFETY: the path is a C string.
        done(unsafe { libc::unlinkat(self.at(), path.relative().as_ptr(), flags) })
    }

    /// `renameat`, with flags `renameat2`.
    #[inline]
    pub fn rename(&self, from: &ExactPath, to: &ExactPath, flags: u32) -> Result<u64, Errno> {
        let (from, to) = (from.relative().as_ptr(), to.relative().as_ptr());
        done(match flags {
            // SAFETY: both are C strings.
            0 => unsafe { libc::renameat(self.at(), from, self.at(), to) },
            // SAFETY: both are C strings.
            flags => unsafe { libc::renameat2(self.at(), from, self.at(), to, flags) },
        })
    }

    /// `linkat`.
    #[inline]
    pub fn link(&self, from: &ExactPath, to: &ExactPath) -> Result<u64, Errno> {
        let (from, to) = (from.relative().as_ptr(), to.relative().as_ptr());
        // SAFETY: both are C strings.
        done(unsafe { libc::linkat(self.at(), from, self.at(), to, 0) })
    }

    /// `symlinkat`.
    #[inline]
    pub fn symlink(&self, target: &CStr, path: &ExactPath) -> Result<u64, Errno> {
        let path = path.relative().as_ptr();
        // SAFETY: both are C strings.
        done(unsafe { libc::symlinkat(target.as_ptr(), self.at(), path) })
    }

    /// `readlinkat`; the length of the target.
    #[inline]
    pub fn readlink(&self, path: &ExactPath, buffer: &mut [u8]) -> Result<u64, Errno> {
        let (path, room) = (path.relative().as_ptr(), buffer.len());
        // SAFETY: the path is a C string, and the kernel writes at most `room` bytes to `buffer`.
        length(unsafe { libc::readlinkat(self.at(), path, buffer.as_mut_ptr().cast(), room) })
    }

    /// `fchmodat` or `fchmod`.
    #[inline]
    pub fn chmod(&self, on: On<'_>, mode: u32) -> Result<u64, Errno> {
        done(match on {
            // SAFETY: the path is a C string.
            On::Path(path, _) => unsafe {
                libc::fchmodat(self.at(), path.relative().as_ptr(), mode, 0)
            },
            // SAFETY: no memory is involved.
            On::Open(fd) => unsafe { libc::fchmod(fd, mode) },
        })
    }

    /// `fchownat` or `fchown`.
    #[inline]
    pub fn chown(&self, on: On<'_>, uid: u32, gid: u32) -> Result<u64, Errno> {
        done(match on {
            On::Path(path, follows) => {
                let path = path.relative().as_ptr();
                // SAFETY: the path is a C string.
                unsafe { libc::fchownat(self.at(), path, uid, gid, no_follow(follows)) }
            }
            // SAFETY: no memory is involved.
            On::Open(fd) => unsafe { libc::fchown(fd, uid, gid) },
        })
    }

    /// `utimensat` or `futimens`: both times become the present.
    #[inline]
    pub fn utimes(&self, on: On<'_>) -> Result<u64, Errno> {
        let now = libc::timespec {
            tv_sec: 0,
            tv_nsec: libc::UTIME_NOW,
        };
        let times = [now, now];
        done(match on {
            On::Path(path, follows) => {
                let path = path.relative().as_ptr();
                // SAFETY: the path is a C string, `times` are two times.
                unsafe { libc::utimensat(self.at(), path, times.as_ptr(), no_follow(follows)) }
            }
            // SAFETY: `times` are two times.
            On::Open(fd) => unsafe { libc::futimens(fd, times.as_ptr()) },
        })
    }

    /// `statfs` or `fstatfs`.
    #[inline]
    pub fn statfs(&self, on: On<'_>) -> Result<u64, Errno> {
        let mut found = std::mem::MaybeUninit::<libc::statfs>::uninit();
        done(match on {
            // SAFETY: the path is a C string, `found` a place for the totals.
            On::Path(path, _) => unsafe { libc::statfs(path.whole.as_ptr(), found.as_mut_ptr()) },
            // SAFETY: `found` is a place for the totals.
            On::Open(fd) => unsafe { libc::fstatfs(fd, found.as_mut_ptr()) },
        })
    }

    /// `setxattr`, `lsetxattr` or `fsetxattr`.
    #[inline]
    pub fn setxattr(
        &self,
        on: On<'_>,
        name: &CStr,
        value: &[u8],
        flags: i32,
    ) -> Result<u64, Errno> {
        let (name, start, size) = (name.as_ptr(), value.as_ptr().cast(), value.len());
        done(match on {
            // SAFETY: path and name are C strings, the value has `size` bytes.
            On::Path(path, true) => unsafe {
                libc::setxattr(path.whole.as_ptr(), name, start, size, flags)
            },
            // SAFETY: as above.
            On::Path(path, false) => unsafe {
                libc::lsetxattr(path.whole.as_ptr(), name, start, size, flags)
            },
            // SAFETY: as above.
            On::Open(fd) => unsafe { libc::fsetxattr(fd, name, start, size, flags) },
        })
    }

    /// `getxattr`, `lgetxattr` or `fgetxattr`; the length of the value.
    #[inline]
    pub fn getxattr(&self, on: On<'_>, name: &CStr, buffer: &mut [u8]) -> Result<u64, Errno> {
        let (name, start, room) = (name.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len());
        length(match on {
            // SAFETY: path and name are C strings, the buffer has room for `room` bytes.
            On::Path(path, true) => unsafe {
                libc::getxattr(path.whole.as_ptr(), name, start, room)
            },
            // SAFETY: as above.
            On::Path(path, false) => unsafe {
                libc::lgetxattr(path.whole.as_ptr(), name, start, room)
            },
            // SAFETY: as above.
            On::Open(fd) => unsafe { libc::fgetxattr(fd, name, start, room) },
        })
    }

    /// `listxattr`, `llistxattr` or `flistxattr`; the length of the names.
    #[inline]
    pub fn listxattr(&self, on: On<'_>, buffer: &mut [u8]) -> Result<u64, Errno> {
        let (start, room) = (buffer.as_mut_ptr().cast(), buffer.len());
        length(match on {
            // SAFETY: the path is a C string, the buffer has room for `room` bytes.
            On::Path(path, true) => unsafe { libc::listxattr(path.whole.as_ptr(), start, room) },
            // SAFETY: as above.
            On::Path(path, false) => unsafe { libc::llistxattr(path.whole.as_ptr(), start, room) },
            // SAFETY: as above.
            On::Open(fd) => unsafe { libc::flistxattr(fd, start, room) },
        })
    }

    /// `removexattr`, `lremovexattr` or `fremovexattr`.
    #[inline]
    pub fn removexattr(&self, on: On<'_>, name: &CStr) -> Result<u64, Errno> {
        let name = name.as_ptr();
        done(match on {
            // SAFETY: path and name are C strings.
            On::Path(path, true) => unsafe { libc::removexattr(path.whole.as_ptr(), name) },
            // SAFETY: as above.
            On::Path(path, false) => unsafe { libc::lremovexattr(path.whole.as_ptr(), name) },
            // SAFETY: as above.
            On::Open(fd) => unsafe { libc::fremovexattr(fd, name) },
        })
    }
}

#[inline]
fn no_follow(follows: bool) -> i32 {
    if follows {
        0
    } else {
        libc::AT_SYMLINK_NOFOLLOW
    }
}
