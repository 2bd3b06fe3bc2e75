//! The metadata operations as plain system calls.
//!
//! On the way to the kernel nothing is allocated, retried or translated.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::sys::stat::Mode;
use rbench_core::OpenFlags;

use crate::calls;
use crate::dirents::{self, Records};
use crate::fs::{Fs, OpenMode};
use crate::residency::{self, Resident};

/// POSIX calls relative to one directory. Clones share its descriptor.
#[derive(Debug, Clone)]
pub struct PosixFs {
    /// The number of `directory`, at hand for the calls.
    at: RawFd,
    directory: Arc<OwnedFd>,
    /// Directories that were opened before, by their paths: what begins so is relative to them.
    held: Arc<[(Vec<u8>, OwnedFd)]>,
}

impl PosixFs {
    /// Operations relative to `directory`, which may be an `O_PATH`
    /// descriptor.
    pub fn new(directory: impl Into<Arc<OwnedFd>>) -> PosixFs {
        let directory = directory.into();
        PosixFs {
            at: directory.as_raw_fd(),
            directory,
            held: Arc::default(),
        }
    }

    /// The same where paths that begin with one of these are relative to the descriptor beside it: who may
    /// change the directories on the way cannot lead them elsewhere.
    #[must_use]
    pub fn holding(self, held: Arc<[(Vec<u8>, OwnedFd)]>) -> PosixFs {
        PosixFs { held, ..self }
    }

    /// What a call on `path` is relative to, and the path from there on.
    #[inline(always)]
    fn place<'p>(&self, path: &'p CStr) -> (RawFd, &'p CStr) {
        match self.held.is_empty() {
            true => (self.at, path),
            false => self.held_place(path),
        }
    }

    #[inline(never)]
    fn held_place<'p>(&self, path: &'p CStr) -> (RawFd, &'p CStr) {
        let bytes = path.to_bytes_with_nul();
        let below = |(prefix, fd): &(Vec<u8>, OwnedFd)| {
            let rest = match bytes.strip_prefix(prefix.as_slice())? {
                [b'/', rest @ ..] => rest,
                [0] => b".\0",
                _ => return None,
            };
            Some((fd.as_raw_fd(), CStr::from_bytes_with_nul(rest).ok()?))
        };
        self.held.iter().find_map(below).unwrap_or((self.at, path))
    }

    /// Operations relative to the directory at `path`.
    pub fn open_directory(path: &Path) -> Result<PosixFs, Errno> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Ok(PosixFs::new(open(path, flags, Mode::empty())?))
    }

    fn openat(&self, path: &CStr, flags: libc::c_int, mode: libc::mode_t) -> Result<RawFd, Errno> {
        let (at, path) = self.place(path);
        calls::openat(at, path, flags, mode)
    }

    fn unlinkat(&self, path: &CStr, flags: libc::c_int) -> Result<(), Errno> {
        let (at, path) = self.place(path);
        // SAFETY: `path` is a C string; the descriptor is open while self is.
        check(unsafe { libc::unlinkat(at, path.as_ptr(), flags) })
    }
}

/// Permissions of a new file, before the umask.
pub(crate) const NEW_FILE: libc::mode_t = 0o664;
/// Permissions of a new directory, before the umask.
pub(crate) const NEW_DIRECTORY: libc::mode_t = 0o775;

/// The flags with which [`Fs::open`] opens.
#[inline]
pub(crate) fn open_bits(mode: OpenMode, direct: bool) -> libc::c_int {
    let mut flags = libc::O_CLOEXEC | libc::O_NOFOLLOW;
    flags |= match mode {
        OpenMode::Read => libc::O_RDONLY,
        OpenMode::CreateNew => libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL,
        OpenMode::Write => libc::O_WRONLY | libc::O_CREAT,
        OpenMode::WriteExisting => libc::O_WRONLY,
        OpenMode::ReadWrite => libc::O_RDWR | libc::O_CREAT,
        OpenMode::With(flags) => bits(flags),
    };
    if direct {
        flags |= libc::O_DIRECT;
    }
    flags
}

/// The kernel's form of these flags.
#[inline]
fn bits(flags: OpenFlags) -> libc::c_int {
    let OpenFlags {
        reads,
        writes,
        creates,
        exclusive,
        truncates,
        appends,
        data_synced,
    } = flags;
    let access = match (reads, writes) {
        (true, true) => libc::O_RDWR,
        (false, true) => libc::O_WRONLY,
        (_, false) => libc::O_RDONLY,
    };
    let set = |on: bool, bit| if on { bit } else { 0 };
    access
        | set(creates, libc::O_CREAT)
        | set(exclusive, libc::O_EXCL)
        | set(truncates, libc::O_TRUNC)
        | set(appends, libc::O_APPEND)
        | set(data_synced, libc::O_DSYNC)
}

#[inline]
fn check(returned: libc::c_int) -> Result<(), Errno> {
    Errno::result(returned).map(drop)
}

#[inline]
fn length(returned: libc::ssize_t) -> Result<usize, Errno> {
    Errno::result(returned).map(|length| length as usize)
}

/// The size in bytes that `statx` says.
#[inline]
fn size_by_statx(at: RawFd, path: &CStr, flags: libc::c_int) -> Result<u64, Errno> {
    let mut found = std::mem::MaybeUninit::<libc::statx>::uninit();
    let (to, what) = (found.as_mut_ptr(), libc::STATX_BASIC_STATS);
    // SAFETY: `path` is a C string, `found` a place for what is asked.
    check(unsafe { libc::statx(at, path.as_ptr(), flags, what, to) })?;
    // SAFETY: the call succeeded, so `found` is filled in.
    Ok(unsafe { found.assume_init_ref() }.stx_size)
}

/// The number of entries that the open directory `fd` has, read in portions
/// of `buffer`.
fn count_entries(fd: RawFd, buffer: &mut [u8]) -> Result<u64, Errno> {
    let mut entries = 0;
    loop {
        let records = dirents::read(fd, buffer)?;
        if records.is_empty() {
            return Ok(entries);
        }
        for record in Records(records) {
            entries += u64::from(!record?.is_dots());
        }
    }
}

impl Fs for PosixFs {
    #[inline]
    fn mkdir(&self, path: &CStr) -> Result<(), Errno> {
        let (at, path) = self.place(path);
        // SAFETY: `path` is a C string; the descriptor is open while self is.
        check(unsafe { libc::mkdirat(at, path.as_ptr(), NEW_DIRECTORY) })
    }

    #[inline]
    fn rmdir(&self, path: &CStr) -> Result<(), Errno> {
        self.unlinkat(path, libc::AT_REMOVEDIR)
    }

    #[inline]
    fn stat(&self, path: &CStr) -> Result<u64, Errno> {
        let (at, path) = self.place(path);
        let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
        // SAFETY: `path` is a C string, `found` a place for a stat; the
        // descriptor is open while self is.
        check(unsafe {
            libc::fstatat(
                at,
                path.as_ptr(),
                found.as_mut_ptr(),
                libc::AT_SYMLINK_NOFOLLOW,
            )
        })?;
        // SAFETY: the call succeeded, so `found` is filled in.
        Ok(unsafe { found.assume_init_ref() }.st_size as u64)
    }

    #[inline]
    fn rename(&self, from: &CStr, to: &CStr) -> Result<(), Errno> {
        let ((from_at, from), (to_at, to)) = (self.place(from), self.place(to));
        // SAFETY: both are C strings; the descriptor is open while self is.
        check(unsafe { libc::renameat(from_at, from.as_ptr(), to_at, to.as_ptr()) })
    }

    #[inline]
    fn link(&self, from: &CStr, to: &CStr) -> Result<(), Errno> {
        let ((from_at, from), (to_at, to)) = (self.place(from), self.place(to));
        // SAFETY: as in `rename`.
        check(unsafe { libc::linkat(from_at, from.as_ptr(), to_at, to.as_ptr(), 0) })
    }

    fn list(&self, path: &CStr, buffer: &mut [u8]) -> Result<u64, Errno> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let fd = self.openat(path, flags, 0)?;
        let entries = count_entries(fd, buffer);
        let closed = self.close(fd);
        let entries = entries?;
        closed.map(|()| entries)
    }

    #[inline]
    fn open(&self, path: &CStr, mode: OpenMode, direct: bool) -> Result<RawFd, Errno> {
        self.openat(path, open_bits(mode, direct), NEW_FILE)
    }

    #[inline]
    fn mknod(&self, path: &CStr) -> Result<(), Errno> {
        let (at, path) = self.place(path);
        let mode = libc::S_IFREG | 0o664;
        // SAFETY: `path` is a C string; the descriptor is open while self is.
        check(unsafe { libc::mknodat(at, path.as_ptr(), mode, 0) })
    }

    #[inline]
    fn close(&self, fd: RawFd) -> Result<(), Errno> {
        // SAFETY: the contract of `Fs` gives the descriptor to the caller,
        // who closes it once.
        unsafe { calls::close(fd) }
    }

    #[inline]
    fn unlink(&self, path: &CStr) -> Result<(), Errno> {
        self.unlinkat(path, 0)
    }

    #[inline]
    fn write(&self, fd: RawFd, buffer: &[u8]) -> Result<usize, Errno> {
        calls::write(fd, buffer)
    }

    #[inline]
    fn read(&self, fd: RawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        calls::read(fd, buffer)
    }

    #[inline]
    fn fsync(&self, fd: RawFd) -> Result<(), Errno> {
        calls::fsync(fd, false)
    }

    #[inline]
    fn fdatasync(&self, fd: RawFd) -> Result<(), Errno> {
        calls::fsync(fd, true)
    }

    #[inline]
    fn sync(&self) {
        nix::unistd::sync();
    }

    #[inline]
    fn truncate(&self, fd: RawFd, length: u64) -> Result<(), Errno> {
        // A length above i64::MAX turns negative, which the kernel refuses.
        // SAFETY: no memory is involved.
        check(unsafe { libc::ftruncate(fd, length as libc::off_t) })
    }

    #[inline]
    fn symlink(&self, target: &CStr, path: &CStr) -> Result<(), Errno> {
        let (at, path) = self.place(path);
        // SAFETY: both are C strings; the descriptor is open while self is.
        check(unsafe { libc::symlinkat(target.as_ptr(), at, path.as_ptr()) })
    }

    #[inline]
    fn readlink(&self, path: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
        let (at, path) = self.place(path);
        let (start, room) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: `path` is a C string, the kernel writes at most `room` bytes to
        // `buffer`; the descriptor is open while self is.
        length(unsafe { libc::readlinkat(at, path.as_ptr(), start, room) })
    }

    #[inline]
    fn chmod(&self, path: &CStr, mode: u32) -> Result<(), Errno> {
        let (at, path) = self.place(path);
        // SAFETY: `path` is a C string; the descriptor is open while self is.
        check(unsafe { libc::fchmodat(at, path.as_ptr(), mode, 0) })
    }

    #[inline]
    fn utimes(&self, path: &CStr, seconds: i64) -> Result<(), Errno> {
        let (at, path) = self.place(path);
        let time = libc::timespec {
            tv_sec: seconds,
            tv_nsec: 0,
        };
        let (times, flags) = ([time; 2], libc::AT_SYMLINK_NOFOLLOW);
        // SAFETY: `path` is a C string, `times` two times; the descriptor is open
        // while self is.
        check(unsafe { libc::utimensat(at, path.as_ptr(), times.as_ptr(), flags) })
    }

    #[inline]
    fn access(&self, path: &CStr) -> Result<(), Errno> {
        let (at, path) = self.place(path);
        calls::faccessat(at, path, libc::R_OK)
    }

    #[inline]
    fn lookup(&self, path: &CStr) -> Result<u64, Errno> {
        let (at, path) = self.place(path);
        size_by_statx(at, path, libc::AT_SYMLINK_NOFOLLOW)
    }

    #[inline]
    fn getattr(&self, fd: RawFd) -> Result<u64, Errno> {
        size_by_statx(fd, c"", libc::AT_EMPTY_PATH | libc::AT_STATX_FORCE_SYNC)
    }

    #[inline]
    fn statfs(&self, fd: RawFd) -> Result<u64, Errno> {
        let mut found = std::mem::MaybeUninit::<libc::statfs>::uninit();
        // SAFETY: `found` is a place for a statfs.
        check(unsafe { libc::fstatfs(fd, found.as_mut_ptr()) })?;
        // SAFETY: the call succeeded, so `found` is filled in.
        Ok(unsafe { found.assume_init_ref() }.f_bsize as u64)
    }

    #[inline]
    fn setxattr(&self, fd: RawFd, name: &CStr, value: &[u8]) -> Result<(), Errno> {
        let (start, size) = (value.as_ptr().cast(), value.len());
        // SAFETY: `name` is a C string, the kernel reads `size` bytes of `value`.
        check(unsafe { libc::fsetxattr(fd, name.as_ptr(), start, size, 0) })
    }

    #[inline]
    fn getxattr(&self, fd: RawFd, name: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
        let (start, room) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: `name` is a C string, the kernel writes at most `room` bytes.
        length(unsafe { libc::fgetxattr(fd, name.as_ptr(), start, room) })
    }

    #[inline]
    fn listxattr(&self, fd: RawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        // SAFETY: the kernel writes at most so many bytes to `buffer`.
        length(unsafe { libc::flistxattr(fd, buffer.as_mut_ptr().cast(), buffer.len()) })
    }

    #[inline]
    fn removexattr(&self, fd: RawFd, name: &CStr) -> Result<(), Errno> {
        // SAFETY: `name` is a C string.
        check(unsafe { libc::fremovexattr(fd, name.as_ptr()) })
    }

    #[inline]
    fn write_at(&self, fd: RawFd, buffer: &[u8], offset: u64) -> Result<usize, Errno> {
        // An offset above i64::MAX turns negative, which the kernel refuses.
        // SAFETY: the buffer is borrowed during the call.
        unsafe { calls::pwrite(fd, buffer.as_ptr(), buffer.len(), offset as libc::off_t) }
    }

    #[inline]
    fn read_at(&self, fd: RawFd, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        // As in `write_at`.
        // SAFETY: the buffer is borrowed during the call, by nobody else.
        unsafe { calls::pread(fd, buffer.as_mut_ptr(), buffer.len(), offset as libc::off_t) }
    }

    fn resident(&self, fd: RawFd) -> Option<Resident> {
        if fd < 0 {
            return None;
        }
        // SAFETY: the contract of `Fs` gives the descriptor to the caller, who
        // keeps it open during the call.
        residency::resident(unsafe { BorrowedFd::borrow_raw(fd) }).ok()
    }

    fn directory(&self) -> Option<&OwnedFd> {
        Some(&self.directory)
    }
}
