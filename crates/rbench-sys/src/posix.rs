//! The metadata operations as plain system calls, and as entries of an io_uring.
//!
//! On the way to the kernel nothing is allocated, retried or translated.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;

use io_uring::{opcode, squeue, types};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::libc;
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::Mode;
use nix::unistd::fchdir;
use rbench_core::{By, Call, OpenFlags};
use syscalls::{Sysno, syscall4, syscall6};

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
    /// True if it is the working directory of the thread.
    is_entered: bool,
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
            is_entered: false,
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

    /// Copies a file to a new one; bytes.
    fn copy(&self, from: &CStr, to: &CStr) -> Result<u64, Errno> {
        let open = |path, flags| {
            let (at, path) = self.place(path);
            open_at(at, path, flags)
        };
        // SAFETY: what is closed was opened here, and nobody else closes it.
        let close = |fd| unsafe { calls::close(fd) };
        let from = open(from, OpenFlags::READ)?;
        let copied = open(to, OpenFlags::CREATE_NEW).and_then(|to| {
            let copied = copy_rest(from, to);
            let closed = close(to);
            copied.and_then(|bytes| closed.map(|()| bytes))
        });
        let closed = close(from);
        copied.and_then(|bytes| closed.map(|()| bytes))
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

    /// Operations relative to the directory `name` in `parent`.
    ///
    /// # Errors
    /// It cannot be opened, or is a symbolic link.
    pub fn below(parent: impl AsFd, name: &str) -> Result<PosixFs, Errno> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(PosixFs::new(openat(parent, name, flags, Mode::empty())?))
    }

    /// The same for the calling thread alone, which has the directory as its working directory from
    /// now on unless the system forbids that: see [`PosixFs::path`].
    #[must_use]
    pub fn entered(self) -> PosixFs {
        let entered = unshare(CloneFlags::CLONE_FS).and_then(|()| fchdir(&self.directory));
        PosixFs {
            is_entered: entered.is_ok(),
            ..self
        }
    }

    /// The first path of `call`, `relative` to the directory; `None`: it has a byte 0. A call that takes
    /// no directory needs the working directory, or else the descriptor's name in `/proc`.
    pub fn path(&self, call: Call, relative: &[u8]) -> Option<CString> {
        let takes_directory = !matches!(
            call,
            Call::Truncate(..)
                | Call::Statfs(_)
                | Call::Setxattr(..)
                | Call::Getxattr(..)
                | Call::Listxattr(_)
                | Call::Removexattr(..)
        );
        let mut path = match takes_directory || self.is_entered {
            true => Vec::new(),
            false => format!("/proc/self/fd/{}/", self.at).into_bytes(),
        };
        path.extend_from_slice(relative);
        CString::new(path).ok()
    }

    /// Operations relative to the directory at `path`.
    pub fn open_directory(path: &Path) -> Result<PosixFs, Errno> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Ok(PosixFs::new(open(path, flags, Mode::empty())?))
    }

    #[inline]
    fn unlinkat(&self, path: &CStr, flags: libc::c_int) -> Result<u64, Errno> {
        let (at, path) = self.place(path);
        // SAFETY: `path` is a C string; the descriptor is open while self is.
        done(unsafe { libc::unlinkat(at, path.as_ptr(), flags) })
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

#[inline]
fn done(returned: libc::c_int) -> Result<u64, Errno> {
    Errno::result(returned).map(|_| 0)
}

#[inline]
fn length(returned: libc::ssize_t) -> Result<u64, Errno> {
    Errno::result(returned).map(|length| length as u64)
}

/// The `AT_…` flags of a call on a path.
#[inline]
fn at_flags(by: By) -> libc::c_int {
    match by {
        By::Link => libc::AT_SYMLINK_NOFOLLOW,
        By::Path | By::File => 0,
    }
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

/// Most bytes of one `copy_file_range`.
const COPIED_MAX: usize = 1 << 30;

/// Copies what is left of one file to another; bytes.
fn copy_rest(from: RawFd, to: RawFd) -> Result<u64, Errno> {
    let mut all = 0;
    loop {
        let [from, to] = [from as usize, to as usize];
        // SAFETY: without offsets, which are null, no memory is involved.
        let copied = unsafe { syscall6(Sysno::copy_file_range, from, 0, to, 0, COPIED_MAX, 0) };
        match copied.map_err(calls::errno)? {
            0 => return Ok(all),
            bytes => all += bytes as u64,
        }
    }
}

/// `openat`; the descriptor is closed by `exec`.
#[inline]
fn open_at(at: RawFd, path: &CStr, flags: OpenFlags) -> Result<RawFd, Errno> {
    calls::openat(at, path, flags.bits | libc::O_CLOEXEC, flags.mode)
}

/// Operands of a call in an io_uring. What they point to stays until its request is complete.
pub(crate) struct RingOperands {
    /// Paths are relative to it.
    pub at: types::Fd,
    /// The open file.
    pub file: types::Fd,
    /// The first path.
    pub path: *const libc::c_char,
    /// The second one.
    pub other: *const libc::c_char,
    /// All data, and its length in bytes.
    pub data: *mut u8,
    pub room: u32,
    /// The part that is moved.
    pub piece: *const u8,
    pub length: u32,
    /// A place for attributes.
    pub found: *mut types::statx,
}

/// Entry for the same call in an io_uring; `None` if no ring performs it.
pub(crate) fn ring_entry(call: Call, on: &RingOperands) -> Option<squeue::Entry> {
    use Call::*;
    let RingOperands {
        at,
        file,
        path,
        other,
        data,
        room,
        piece,
        length,
        found,
    } = *on;
    // u64::MAX: at the position of the file, which moves on.
    let position = u64::MAX;
    Some(match call {
        // By itself the kernel tries to open what it knows in the worker's own call, which
        // then waits for the file system, and all that is to follow with it.
        Open(flags) => opcode::OpenAt::new(at, path)
            .flags(flags.bits | libc::O_CLOEXEC)
            .mode(flags.mode)
            .build()
            .flags(squeue::Flags::ASYNC),
        // And so it tries to read: a FUSE client then asks for the file's length first, and
        // waits for the answer.
        Read => opcode::Read::new(file, data, length)
            .offset(position)
            .build()
            .flags(squeue::Flags::ASYNC),
        ReadAt(offset) => opcode::Read::new(file, data, length)
            .offset(offset)
            .build()
            .flags(squeue::Flags::ASYNC),
        Write => opcode::Write::new(file, piece, length)
            .offset(position)
            .build(),
        WriteAt(offset) => opcode::Write::new(file, piece, length)
            .offset(offset)
            .build(),
        Fsync => opcode::Fsync::new(file).build(),
        Fdatasync => opcode::Fsync::new(file)
            .flags(types::FsyncFlags::DATASYNC)
            .build(),
        Close => opcode::Close::new(file).build(),
        Stat(By::Link) | Lookup => opcode::Statx::new(at, path, found)
            // The second one `fstatat` has by itself.
            .flags(libc::AT_SYMLINK_NOFOLLOW | libc::AT_NO_AUTOMOUNT)
            .mask(libc::STATX_BASIC_STATS)
            .build(),
        Getattr => opcode::Statx::new(file, c"".as_ptr(), found)
            .flags(libc::AT_EMPTY_PATH | libc::AT_STATX_FORCE_SYNC)
            .mask(libc::STATX_BASIC_STATS)
            .build(),
        Mkdir(mode) => opcode::MkDirAt::new(at, path).mode(mode).build(),
        Unlink => opcode::UnlinkAt::new(at, path).build(),
        Rmdir => opcode::UnlinkAt::new(at, path)
            .flags(libc::AT_REMOVEDIR)
            .build(),
        Rename(0) => opcode::RenameAt::new(at, path, at, other).build(),
        Link => opcode::LinkAt::new(at, path, at, other).build(),
        Symlink => opcode::SymlinkAt::new(at, other, path).build(),
        Setxattr(By::File, Some(name), 0) => {
            opcode::FSetXattr::new(file, name.as_ptr(), piece.cast(), length).build()
        }
        Getxattr(By::File, Some(name)) => {
            opcode::FGetXattr::new(file, name.as_ptr(), data.cast(), room).build()
        }
        Allocate {
            mode,
            offset,
            length,
        } => opcode::Fallocate::new(file, length)
            .offset(offset)
            .mode(mode)
            .build(),
        Truncate(By::File, length) => opcode::Ftruncate::new(file, length).build(),
        _ => return None,
    })
}

impl Fs for PosixFs {
    // A replay, which knows the executor, keeps the operands of a call in registers.
    #[inline(always)]
    fn call(&self, call: Call, mut on: Operands<'_>) -> Result<u64, Errno> {
        let fd = on.fd;
        // Of calls that take no directory: see `PosixFs::path`.
        let whole = on.path.as_ptr();
        match call {
            Call::Open(flags) => {
                let (at, path) = self.place(on.path);
                open_at(at, path, flags).map(|fd| fd as u64)
            }
            // SAFETY: the contract of `Fs` gives the descriptor to the caller, who closes it
            // once.
            Call::Close => unsafe { calls::close(fd) }.map(|()| 0),
            Call::Read => calls::read(fd, on.data.room()).map(|bytes| bytes as u64),
            Call::Write => calls::write(fd, on.data.bytes()).map(|bytes| bytes as u64),
            Call::List => self.list_all(on.path, on.data.room()),
            Call::Readdir => dirents::read(fd, on.data.room()).map(|records| records.len() as u64),
            Call::Copy => self.copy(on.path, on.other),
            Call::Lookup => {
                let (at, path) = self.place(on.path);
                size_by_statx(at, path, libc::AT_SYMLINK_NOFOLLOW)
            }
            Call::Getattr => {
                size_by_statx(fd, c"", libc::AT_EMPTY_PATH | libc::AT_STATX_FORCE_SYNC)
            }
            Call::Access(mode) => {
                let (at, path) = self.place(on.path);
                calls::faccessat(at, path, mode).map(|()| 0)
            }
            Call::Fsync => calls::fsync(fd, false).map(|()| 0),
            Call::Fdatasync => calls::fsync(fd, true).map(|()| 0),
            Call::Sync => {
                nix::unistd::sync();
                Ok(0)
            }
            Call::Mkdir(mode) => {
                let (at, path) = self.place(on.path);
                // SAFETY: `path` is a C string; the descriptor is open while self is.
                done(unsafe { libc::mkdirat(at, path.as_ptr(), mode) })
            }
            Call::Rmdir => self.unlinkat(on.path, libc::AT_REMOVEDIR),
            Call::Unlink => self.unlinkat(on.path, 0),
            Call::Mknod(mode) => {
                let (at, path) = self.place(on.path);
                // SAFETY: as for `mkdirat`.
                done(unsafe { libc::mknodat(at, path.as_ptr(), libc::S_IFREG | mode, 0) })
            }
            Call::Stat(by) => {
                let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
                let (to, (at, path)) = (found.as_mut_ptr(), self.place(on.path));
                done(match by {
                    // SAFETY: `found` is a place for a stat.
                    By::File => unsafe { libc::fstat(fd, to) },
                    // SAFETY: as for `mkdirat`; `found` is a place for a stat.
                    by => unsafe { libc::fstatat(at, path.as_ptr(), to, at_flags(by)) },
                })?;
                // SAFETY: the call succeeded, so `found` is filled in.
                Ok(unsafe { found.assume_init_ref() }.st_size as u64)
            }
            Call::Chmod(by, mode) => {
                let (at, path) = self.place(on.path);
                done(match by {
                    // SAFETY: no memory is involved.
                    By::File => unsafe { libc::fchmod(fd, mode) },
                    // SAFETY: as for `mkdirat`.
                    By::Path | By::Link => unsafe { libc::fchmodat(at, path.as_ptr(), mode, 0) },
                })
            }
            Call::Chown(by, uid, gid) => {
                let (at, path) = self.place(on.path);
                done(match by {
                    // SAFETY: no memory is involved.
                    By::File => unsafe { libc::fchown(fd, uid, gid) },
                    // SAFETY: as for `mkdirat`.
                    by => unsafe { libc::fchownat(at, path.as_ptr(), uid, gid, at_flags(by)) },
                })
            }
            Call::Utimes(by, seconds) => {
                let (at, path) = self.place(on.path);
                let time = libc::timespec {
                    tv_sec: seconds.unwrap_or(0),
                    tv_nsec: seconds.map_or(libc::UTIME_NOW, |_| 0),
                };
                let times = [time; 2];
                done(match by {
                    // SAFETY: `times` are two times.
                    By::File => unsafe { libc::futimens(fd, times.as_ptr()) },
                    // SAFETY: as for `mkdirat`; `times` are two times.
                    by => unsafe {
                        libc::utimensat(at, path.as_ptr(), times.as_ptr(), at_flags(by))
                    },
                })
            }
            Call::Rename(flags) => {
                let ((from_at, from), (to_at, to)) = (self.place(on.path), self.place(on.other));
                let (from, to) = (from.as_ptr(), to.as_ptr());
                done(match flags {
                    // SAFETY: both are C strings; the descriptors are open while self is.
                    0 => unsafe { libc::renameat(from_at, from, to_at, to) },
                    // SAFETY: the same.
                    flags => unsafe { libc::renameat2(from_at, from, to_at, to, flags) },
                })
            }
            Call::Link => {
                let ((from_at, from), (to_at, to)) = (self.place(on.path), self.place(on.other));
                // SAFETY: as for `renameat`.
                done(unsafe { libc::linkat(from_at, from.as_ptr(), to_at, to.as_ptr(), 0) })
            }
            Call::Symlink => {
                let (at, path) = self.place(on.path);
                // SAFETY: as for `renameat`.
                done(unsafe { libc::symlinkat(on.other.as_ptr(), at, path.as_ptr()) })
            }
            Call::Readlink => {
                let (at, path) = self.place(on.path);
                let room = on.data.room();
                let (start, size) = (room.as_mut_ptr().cast(), room.len());
                // SAFETY: as for `mkdirat`; the kernel writes at most `size` bytes to `room`.
                length(unsafe { libc::readlinkat(at, path.as_ptr(), start, size) })
            }
            // An offset or a length above `i64::MAX` turns negative, which the kernel refuses.
            Call::WriteAt(offset) => {
                let bytes = on.data.bytes();
                // SAFETY: the buffer is borrowed during the call.
                unsafe { calls::pwrite(fd, bytes.as_ptr(), bytes.len(), offset as libc::off_t) }
                    .map(|bytes| bytes as u64)
            }
            Call::ReadAt(offset) => {
                let room = on.data.room();
                // SAFETY: the buffer is borrowed during the call, by nobody else.
                unsafe { calls::pread(fd, room.as_mut_ptr(), room.len(), offset as libc::off_t) }
                    .map(|bytes| bytes as u64)
            }
            Call::Seek(offset, whence) => {
                // SAFETY: no memory is involved.
                let position = Errno::result(unsafe { libc::lseek(fd, offset, whence) });
                position.map(|position| position as u64)
            }
            Call::Truncate(by, bytes) => done(match by {
                // SAFETY: no memory is involved.
                By::File => unsafe { libc::ftruncate(fd, bytes as libc::off_t) },
                // SAFETY: the path is a C string.
                By::Path | By::Link => unsafe { libc::truncate(whole, bytes as libc::off_t) },
            }),
            Call::Allocate {
                mode,
                offset,
                length,
            } => {
                let (mode, offset, length) = (mode as usize, offset as usize, length as usize);
                // SAFETY: no memory is involved.
                unsafe { syscall4(Sysno::fallocate, fd as usize, mode, offset, length) }
                    .map(|_| 0)
                    .map_err(calls::errno)
            }
            Call::Statfs(by) => {
                let mut found = std::mem::MaybeUninit::<libc::statfs>::uninit();
                done(match by {
                    // SAFETY: `found` is a place for a statfs.
                    By::File => unsafe { libc::fstatfs(fd, found.as_mut_ptr()) },
                    // SAFETY: the path is a C string, `found` a place for a statfs.
                    By::Path | By::Link => unsafe { libc::statfs(whole, found.as_mut_ptr()) },
                })?;
                // SAFETY: the call succeeded, so `found` is filled in.
                Ok(unsafe { found.assume_init_ref() }.f_bsize as u64)
            }
            Call::Setxattr(by, name, flags) => {
                let (name, value) = (name.unwrap_or(on.other).as_ptr(), on.data.bytes());
                let (start, size) = (value.as_ptr().cast(), value.len());
                done(match by {
                    // SAFETY: path and name are C strings, the kernel reads `size` bytes of `value`.
                    By::Path => unsafe { libc::setxattr(whole, name, start, size, flags) },
                    // SAFETY: the same.
                    By::Link => unsafe { libc::lsetxattr(whole, name, start, size, flags) },
                    // SAFETY: the same.
                    By::File => unsafe { libc::fsetxattr(fd, name, start, size, flags) },
                })
            }
            Call::Getxattr(by, name) => {
                let (name, room) = (name.unwrap_or(on.other).as_ptr(), on.data.room());
                let (start, size) = (room.as_mut_ptr().cast(), room.len());
                length(match by {
                    // SAFETY: path and name are C strings, the kernel writes at most `size` bytes.
                    By::Path => unsafe { libc::getxattr(whole, name, start, size) },
                    // SAFETY: the same.
                    By::Link => unsafe { libc::lgetxattr(whole, name, start, size) },
                    // SAFETY: the same.
                    By::File => unsafe { libc::fgetxattr(fd, name, start, size) },
                })
            }
            Call::Listxattr(by) => {
                let room = on.data.room();
                let (start, size) = (room.as_mut_ptr().cast(), room.len());
                length(match by {
                    // SAFETY: the path is a C string, the kernel writes at most `size` bytes.
                    By::Path => unsafe { libc::listxattr(whole, start, size) },
                    // SAFETY: the same.
                    By::Link => unsafe { libc::llistxattr(whole, start, size) },
                    // SAFETY: the same.
                    By::File => unsafe { libc::flistxattr(fd, start, size) },
                })
            }
            Call::Removexattr(by, name) => {
                let name = name.unwrap_or(on.other).as_ptr();
                done(match by {
                    // SAFETY: path and name are C strings.
                    By::Path => unsafe { libc::removexattr(whole, name) },
                    // SAFETY: the same.
                    By::Link => unsafe { libc::lremovexattr(whole, name) },
                    // SAFETY: the same.
                    By::File => unsafe { libc::fremovexattr(fd, name) },
                })
            }
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
