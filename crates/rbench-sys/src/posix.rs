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
use rbench_core::{Call, OpenFlags};

use crate::calls;
use crate::dirents::{self, Records};
use crate::fs::{Fs, Operands};
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

    /// The entries of the directory `path`, read in portions of `buffer`.
    fn list_all(&self, path: &CStr, buffer: &mut [u8]) -> Result<u64, Errno> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let (at, path) = self.place(path);
        let fd = calls::openat(at, path, flags, 0)?;
        let entries = count_entries(fd, buffer);
        // SAFETY: it was opened above, and nobody else has it.
        let closed = unsafe { calls::close(fd) };
        let entries = entries?;
        closed.map(|()| entries)
    }
}

/// Permissions of a new file, before the umask.
pub(crate) const NEW_FILE: libc::mode_t = 0o664;
/// Permissions of a new directory, before the umask.
pub(crate) const NEW_DIRECTORY: libc::mode_t = 0o775;

/// The flags with which [`Call::Open`] opens.
#[inline]
pub(crate) fn open_bits(flags: OpenFlags) -> libc::c_int {
    let OpenFlags {
        reads,
        writes,
        creates,
        exclusive,
        truncates,
        appends,
        data_synced,
        direct,
    } = flags;
    let access = match (reads, writes) {
        (true, true) => libc::O_RDWR,
        (false, true) => libc::O_WRONLY,
        (_, false) => libc::O_RDONLY,
    };
    let set = |on: bool, bit| if on { bit } else { 0 };
    libc::O_CLOEXEC
        | libc::O_NOFOLLOW
        | access
        | set(creates, libc::O_CREAT)
        | set(exclusive, libc::O_EXCL)
        | set(truncates, libc::O_TRUNC)
        | set(appends, libc::O_APPEND)
        | set(data_synced, libc::O_DSYNC)
        | set(direct, libc::O_DIRECT)
}

#[inline]
fn done(returned: libc::c_int) -> Result<u64, Errno> {
    Errno::result(returned).map(|_| 0)
}

#[inline]
fn length(returned: libc::ssize_t) -> Result<u64, Errno> {
    Errno::result(returned).map(|length| length as u64)
}

/// The size in bytes that `statx` says.
#[inline]
fn size_by_statx(at: RawFd, path: &CStr, flags: libc::c_int) -> Result<u64, Errno> {
    let mut found = std::mem::MaybeUninit::<libc::statx>::uninit();
    let (to, what) = (found.as_mut_ptr(), libc::STATX_BASIC_STATS);
    // SAFETY: `path` is a C string, `found` a place for what is asked.
    done(unsafe { libc::statx(at, path.as_ptr(), flags, what, to) })?;
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
    fn call(&self, call: Call, mut on: Operands<'_>) -> Result<u64, Errno> {
        match call {
            Call::Open(flags) => {
                let (at, path) = self.place(on.path);
                let fd = calls::openat(at, path, open_bits(flags), NEW_FILE)?;
                Ok(fd as u64)
            }
            // SAFETY: the contract of `Fs` gives the descriptor to the caller, who closes it
            // once.
            Call::Close => unsafe { calls::close(on.fd) }.map(|()| 0),
            Call::Read => calls::read(on.fd, on.data.room()).map(|bytes| bytes as u64),
            Call::Write => calls::write(on.fd, on.data.bytes()).map(|bytes| bytes as u64),
            Call::List => self.list_all(on.path, on.data.room()),
            Call::Lookup => {
                let (at, path) = self.place(on.path);
                size_by_statx(at, path, libc::AT_SYMLINK_NOFOLLOW)
            }
            Call::Getattr => {
                size_by_statx(on.fd, c"", libc::AT_EMPTY_PATH | libc::AT_STATX_FORCE_SYNC)
            }
            Call::Access => {
                let (at, path) = self.place(on.path);
                calls::faccessat(at, path, libc::R_OK).map(|()| 0)
            }
            Call::Fsync => calls::fsync(on.fd, false).map(|()| 0),
            Call::Fdatasync => calls::fsync(on.fd, true).map(|()| 0),
            Call::Sync => {
                nix::unistd::sync();
                Ok(0)
            }
            Call::Mkdir
            | Call::Rmdir
            | Call::Mknod
            | Call::Unlink
            | Call::Stat
            | Call::Chmod(_)
            | Call::Utimes(_)
            | Call::Rename
            | Call::Link
            | Call::Symlink
            | Call::Readlink => self.on_names(call, on),
            Call::ReadAt(_)
            | Call::WriteAt(_)
            | Call::Truncate(_)
            | Call::Statfs
            | Call::Setxattr(_)
            | Call::Getxattr(_)
            | Call::Listxattr
            | Call::Removexattr(_) => on_file(call, on),
        }
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

impl PosixFs {
    /// Calls on names that only take what a caller gives.
    #[inline(always)]
    fn on_names(&self, call: Call, mut on: Operands<'_>) -> Result<u64, Errno> {
        let (at, path) = self.place(on.path);
        let path = path.as_ptr();
        // SAFETY: paths are C strings, and each other pointer leads to what is alive during the
        // call and as large as the call is told; the descriptors are open while self is.
        done(unsafe {
            match call {
                Call::Mkdir => libc::mkdirat(at, path, NEW_DIRECTORY),
                Call::Rmdir => libc::unlinkat(at, path, libc::AT_REMOVEDIR),
                Call::Mknod => libc::mknodat(at, path, libc::S_IFREG | NEW_FILE, 0),
                Call::Unlink => libc::unlinkat(at, path, 0),
                Call::Chmod(mode) => libc::fchmodat(at, path, mode, 0),
                Call::Utimes(seconds) => {
                    let times = [libc::timespec {
                        tv_sec: seconds,
                        tv_nsec: 0,
                    }; 2];
                    libc::utimensat(at, path, times.as_ptr(), libc::AT_SYMLINK_NOFOLLOW)
                }
                Call::Rename => {
                    let (to_at, to) = self.place(on.other);
                    libc::renameat(at, path, to_at, to.as_ptr())
                }
                Call::Link => {
                    let (to_at, to) = self.place(on.other);
                    libc::linkat(at, path, to_at, to.as_ptr(), 0)
                }
                Call::Symlink => libc::symlinkat(on.other.as_ptr(), at, path),
                Call::Readlink => {
                    let room = on.data.room();
                    let to = room.as_mut_ptr().cast();
                    return length(libc::readlinkat(at, path, to, room.len()));
                }
                Call::Stat => {
                    let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
                    let flags = libc::AT_SYMLINK_NOFOLLOW;
                    done(libc::fstatat(at, path, found.as_mut_ptr(), flags))?;
                    return Ok(found.assume_init_ref().st_size as u64);
                }
                _ => return Err(Errno::ENOSYS),
            }
        })
    }
}

/// Calls on an open file that only take what a caller gives. An offset or a length above
/// `i64::MAX` turns negative, which the kernel refuses.
#[inline(always)]
fn on_file(call: Call, mut on: Operands<'_>) -> Result<u64, Errno> {
    let fd = on.fd;
    let bytes = on.data.bytes();
    let (from, size) = (bytes.as_ptr(), bytes.len());
    // SAFETY: names are C strings; `from` leads to `size` bytes to read, `room` is to be
    // written to, and both are borrowed during the call.
    unsafe {
        match call {
            Call::WriteAt(offset) => {
                calls::pwrite(fd, from, size, offset as libc::off_t).map(|bytes| bytes as u64)
            }
            Call::ReadAt(offset) => {
                let room = on.data.room();
                calls::pread(fd, room.as_mut_ptr(), room.len(), offset as libc::off_t)
                    .map(|bytes| bytes as u64)
            }
            Call::Truncate(bytes) => done(libc::ftruncate(fd, bytes as libc::off_t)),
            Call::Setxattr(name) => done(libc::fsetxattr(fd, name.as_ptr(), from.cast(), size, 0)),
            Call::Getxattr(name) => {
                let room = on.data.room();
                length(libc::fgetxattr(
                    fd,
                    name.as_ptr(),
                    room.as_mut_ptr().cast(),
                    room.len(),
                ))
            }
            Call::Listxattr => {
                let room = on.data.room();
                length(libc::flistxattr(fd, room.as_mut_ptr().cast(), room.len()))
            }
            Call::Removexattr(name) => done(libc::fremovexattr(fd, name.as_ptr())),
            Call::Statfs => {
                let mut found = std::mem::MaybeUninit::<libc::statfs>::uninit();
                done(libc::fstatfs(fd, found.as_mut_ptr()))?;
                Ok(found.assume_init_ref().f_bsize as u64)
            }
            _ => Err(Errno::ENOSYS),
        }
    }
}
