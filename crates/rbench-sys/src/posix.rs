//! The metadata operations as plain system calls, and as entries of an io_uring.
//!
//! On the way to the kernel nothing is allocated, retried or translated.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
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
use syscalls::{Sysno, syscall5, syscall6};

use crate::calls;
use crate::dirents::{self, Records};
use crate::fs::{Data, Fs, NO_FILE, Operands};
use crate::residency::{self, Resident};

/// POSIX calls relative to one directory. Clones share its descriptor.
#[derive(Debug, Clone)]
pub struct PosixFs {
    /// The number of `directory`, at hand for the calls.
    at: RawFd,
    /// `None`: the working directory.
    directory: Option<Arc<OwnedFd>>,
    /// True if it is the working directory of the thread.
    is_entered: bool,
}

/// POSIX calls whose paths may lie in directories that were opened before.
#[derive(Debug, Clone)]
pub struct HeldFs {
    posix: PosixFs,
    /// The directories by their paths: what begins so is relative to them.
    held: Arc<[(Vec<u8>, OwnedFd)]>,
}

impl PosixFs {
    /// Operations relative to `directory`, which may be an `O_PATH`
    /// descriptor.
    pub fn new(directory: impl Into<Arc<OwnedFd>>) -> PosixFs {
        let directory = directory.into();
        PosixFs {
            at: directory.as_raw_fd(),
            directory: Some(directory),
            is_entered: false,
        }
    }

    /// Operations relative to the working directory.
    pub fn here() -> PosixFs {
        PosixFs {
            at: libc::AT_FDCWD,
            directory: None,
            is_entered: true,
        }
    }

    /// Makes paths that begin with one of these relative to the descriptor beside it: a user who may
    /// change the directories on the way cannot redirect them.
    #[must_use]
    pub fn holding(self, held: Arc<[(Vec<u8>, OwnedFd)]>) -> HeldFs {
        HeldFs { posix: self, held }
    }

    /// Operations relative to the directory `name` in `parent`.
    ///
    /// # Errors
    /// It cannot be opened, or is a symbolic link.
    pub fn below(parent: impl AsFd, name: &str) -> Result<PosixFs, Errno> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(PosixFs::new(openat(parent, name, flags, Mode::empty())?))
    }

    /// Restricts it to the calling thread, which has the directory as its working directory from
    /// now on unless the system forbids that: see [`PosixFs::path`].
    #[must_use]
    pub fn entered(self) -> PosixFs {
        let enter = |directory| unshare(CloneFlags::CLONE_FS).and_then(|()| fchdir(directory));
        let is_entered = self.directory().is_none_or(|it| enter(it).is_ok());
        PosixFs { is_entered, ..self }
    }

    /// The first path of `call`, `relative` to the directory; `None`: it has a byte 0. A call that takes
    /// no directory needs the working directory, or else the descriptor's name in `/proc`.
    pub fn path(&self, call: Call, relative: &[u8]) -> Option<CString> {
        let mut path = match call.needs_open() || is_relative(&call) || self.is_entered {
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
}

/// True if `call` has a path, relative to a directory that is an argument of its own. Paths of the other
/// calls are relative to the working directory.
fn is_relative(call: &Call) -> bool {
    let of_working_directory = matches!(
        call,
        Call::Truncate(..)
            | Call::Statfs(_)
            | Call::Setxattr(..)
            | Call::Getxattr(..)
            | Call::Listxattr(_)
            | Call::Removexattr(..)
    );
    !of_working_directory && !call.needs_open()
}

/// Number and arguments of a system call.
type Raw = (Sysno, [usize; 5]);

/// A call with these arguments.
#[inline(always)]
fn raw<const N: usize>(number: Sysno, arguments: [usize; N]) -> Raw {
    let mut all = [0; 5];
    all[..N].copy_from_slice(&arguments);
    (number, all)
}

#[inline(always)]
fn address(path: &CStr) -> usize {
    path.as_ptr().expose_provenance()
}

/// Start of the room for data, and its length.
#[inline(always)]
fn room(data: &mut Data<'_>) -> (usize, usize) {
    let room = data.room();
    (room.as_mut_ptr().expose_provenance(), room.len())
}

/// Start of the data to write, and its length.
#[inline(always)]
fn bytes(data: &Data<'_>) -> (usize, usize) {
    let bytes = data.bytes();
    (bytes.as_ptr().expose_provenance(), bytes.len())
}

/// The `AT_…` flags of a call on a path.
#[inline]
fn at_flags(by: By) -> libc::c_int {
    match by {
        By::Link => libc::AT_SYMLINK_NOFOLLOW,
        By::Path | By::File => 0,
    }
}

/// The value that `call` fills in: it gets the place for it, and returns its success.
#[inline(always)]
fn filled<T>(call: impl FnOnce(*mut T) -> libc::c_int) -> Result<MaybeUninit<T>, Errno> {
    let mut found = MaybeUninit::uninit();
    Errno::result(call(found.as_mut_ptr())).map(|_| found)
}

/// The size in bytes that `statx` says.
#[inline(never)]
fn size_by_statx(at: RawFd, path: &CStr, flags: libc::c_int, fields: u32) -> Result<u64, Errno> {
    // SAFETY: `path` is a C string, `to` a place for what is asked.
    let found = filled(|to| unsafe { libc::statx(at, path.as_ptr(), flags, fields, to) })?;
    // SAFETY: the call has filled it in.
    Ok(unsafe { found.assume_init_ref() }.stx_size)
}

/// The size in bytes that `fstat` or `fstatat` says.
#[inline(never)]
fn size_by_stat(by: By, fd: RawFd, at: RawFd, path: &CStr) -> Result<u64, Errno> {
    let found = filled(|to| match by {
        // SAFETY: `to` is a place for a stat.
        By::File => unsafe { libc::fstat(fd, to) },
        // SAFETY: `path` is a C string, `to` a place for a stat.
        by => unsafe { libc::fstatat(at, path.as_ptr(), to, at_flags(by)) },
    })?;
    // SAFETY: the call has filled it in.
    Ok(unsafe { found.assume_init_ref() }.st_size as u64)
}

/// The size in bytes of a block that `fstatfs` or `statfs` says.
#[inline(never)]
fn block_size(by: By, fd: RawFd, path: &CStr) -> Result<u64, Errno> {
    let found = filled(|to| match by {
        // SAFETY: `to` is a place for a statfs.
        By::File => unsafe { libc::fstatfs(fd, to) },
        // SAFETY: the path is a C string, `to` a place for a statfs.
        _ => unsafe { libc::statfs(path.as_ptr(), to) },
    })?;
    // SAFETY: the call has filled it in.
    Ok(unsafe { found.assume_init_ref() }.f_bsize as u64)
}

/// Closes the file; `result` of what was done with it, or the error of closing it.
fn closing(fd: RawFd, result: Result<u64, Errno>) -> Result<u64, Errno> {
    let closed = make(&Call::Close, (NO_FILE, NO_FILE), Operands::file(fd));
    result.and_then(|value| closed.map(|_| value))
}

fn open_below(at: RawFd, path: &CStr, flags: OpenFlags) -> Result<RawFd, Errno> {
    let opened = make(&Call::Open(flags), (at, at), Operands::path(path));
    opened.map(|fd| fd as RawFd)
}

/// The entries of the directory `path`, read in portions of `buffer`.
#[inline(never)]
fn list_all(at: RawFd, path: &CStr, buffer: &mut [u8]) -> Result<u64, Errno> {
    let fd = open_below(at, path, OpenFlags::READ.with(libc::O_DIRECTORY))?;
    closing(fd, count_entries(fd, buffer))
}

/// Copies a file to a new one; bytes.
#[inline(never)]
fn copy((at, path): (RawFd, &CStr), (to_at, to): (RawFd, &CStr)) -> Result<u64, Errno> {
    let from = open_below(at, path, OpenFlags::READ)?;
    let to = open_below(to_at, to, OpenFlags::CREATE_NEW);
    let copied = to.and_then(|to| closing(to, copy_rest(from, to)));
    closing(from, copied)
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

/// Reads records of an open directory; bytes.
#[inline(never)]
fn read_records(fd: RawFd, room: &mut [u8]) -> Result<u64, Errno> {
    dirents::read(fd, room).map(|records| records.len() as u64)
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
        Stat(By::Link) | Call::LOOKUP => opcode::Statx::new(at, path, found)
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

/// Makes the call, with its paths relative to the directories `at` and `to_at`. Functions are only called in
/// tail position, so that the common calls save no registers.
#[inline(always)]
fn make(call: &Call, (at, to_at): (RawFd, RawFd), mut on: Operands<'_>) -> Result<u64, Errno> {
    let fd = on.fd as usize;
    /// A call relative to a directory, with these arguments after the path.
    macro_rules! at {
        ($number:ident $(, $argument:expr)*) => {
            raw(Sysno::$number, [at as usize, address(on.path) $(, $argument as usize)*])
        };
    }
    /// A call on the file.
    macro_rules! file {
        ($number:ident $(, $argument:expr)*) => {
            raw(Sysno::$number, [fd $(, $argument as usize)*])
        };
    }
    /// The call for a path, for a link or for the file. These paths are relative to no directory: see
    /// `PosixFs::path`.
    macro_rules! object {
        ($by:ident, [$path:ident $link:ident $file:ident] $(, $argument:expr)*) => {{
            let number = [Sysno::$path, Sysno::$link, Sysno::$file][$by as usize];
            let object = if $by == By::File { fd } else { address(on.path) };
            raw(number, [object $(, $argument as usize)*])
        }};
    }
    let times;
    // A value above `i64::MAX` turns negative, which the kernel refuses.
    let (number, [a, b, c, d, e]) = match *call {
        Call::Open(flags) => at!(openat, flags.bits | libc::O_CLOEXEC, flags.mode),
        Call::Close => file!(close),
        Call::Read => {
            let (start, size) = room(&mut on.data);
            file!(read, start, size)
        }
        Call::ReadAt(offset) => {
            let (start, size) = room(&mut on.data);
            file!(pread64, start, size, offset)
        }
        Call::Write => {
            let (start, size) = bytes(&on.data);
            file!(write, start, size)
        }
        Call::WriteAt(offset) => {
            let (start, size) = bytes(&on.data);
            file!(pwrite64, start, size, offset)
        }
        Call::Fsync => file!(fsync),
        Call::Fdatasync => file!(fdatasync),
        Call::Sync => raw(Sysno::sync, []),
        Call::Seek(offset, whence) => file!(lseek, offset, whence),
        Call::Allocate {
            mode,
            offset,
            length,
        } => file!(fallocate, mode, offset, length),
        Call::Truncate(by, length) => object!(by, [truncate truncate ftruncate], length),
        Call::Mkdir(mode) => at!(mkdirat, mode),
        Call::Rmdir => at!(unlinkat, libc::AT_REMOVEDIR),
        Call::Unlink => at!(unlinkat, 0),
        Call::Mknod(mode) => at!(mknodat, libc::S_IFREG | mode, 0),
        Call::Access(mode) => at!(faccessat, mode),
        Call::Chmod(By::File, mode) => file!(fchmod, mode),
        Call::Chmod(_, mode) => at!(fchmodat, mode),
        Call::Chown(By::File, uid, gid) => file!(fchown, uid, gid),
        Call::Chown(by, uid, gid) => at!(fchownat, uid, gid, at_flags(by)),
        Call::Utimes(by, seconds) => {
            let time = libc::timespec {
                tv_sec: seconds.unwrap_or(0),
                tv_nsec: seconds.map_or(libc::UTIME_NOW, |_| 0),
            };
            times = [time; 2];
            let times = times.as_ptr().expose_provenance();
            match by {
                By::File => file!(utimensat, 0, times, 0),
                by => at!(utimensat, times, at_flags(by)),
            }
        }
        Call::Rename(0) => at!(renameat, to_at, address(on.other)),
        Call::Rename(flags) => at!(renameat2, to_at, address(on.other), flags),
        Call::Link => at!(linkat, to_at, address(on.other), 0),
        Call::Symlink => {
            let arguments = [address(on.other), at as usize, address(on.path)];
            raw(Sysno::symlinkat, arguments)
        }
        Call::Readlink => {
            let (start, size) = room(&mut on.data);
            at!(readlinkat, start, size)
        }
        Call::Setxattr(by, name, flags) => {
            let (name, (start, size)) = (name.unwrap_or(on.other), bytes(&on.data));
            object!(by, [setxattr lsetxattr fsetxattr], address(name), start, size, flags)
        }
        Call::Getxattr(by, name) => {
            let (name, (start, size)) = (name.unwrap_or(on.other), room(&mut on.data));
            object!(by, [getxattr lgetxattr fgetxattr], address(name), start, size)
        }
        Call::Listxattr(by) => {
            let (start, size) = room(&mut on.data);
            object!(by, [listxattr llistxattr flistxattr], start, size)
        }
        Call::Removexattr(by, name) => {
            let name = address(name.unwrap_or(on.other));
            object!(by, [removexattr lremovexattr fremovexattr], name)
        }
        Call::List => return list_all(at, on.path, on.data.room()),
        Call::Readdir => return read_records(on.fd, on.data.room()),
        Call::Copy => return copy((at, on.path), (to_at, on.other)),
        Call::Lookup(by, fields) => {
            return size_by_statx(at, on.path, at_flags(by), fields);
        }
        Call::Getattr => {
            let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_FORCE_SYNC;
            return size_by_statx(on.fd, c"", flags, Call::STATX_BASIC);
        }
        Call::Stat(by) => return size_by_stat(by, on.fd, at, on.path),
        Call::Statfs(by) => return block_size(by, on.fd, on.path),
    };
    // SAFETY: paths and names of attributes are C strings, the data is borrowed during the call, the
    // times are two; descriptors are the caller's by the contract of `Fs`, who closes each once.
    unsafe { syscall5(number, a, b, c, d, e) }
        .map(|answer| answer as u64)
        .map_err(calls::errno)
}

impl Fs for PosixFs {
    // A loop that knows the executor keeps the operands of a call in registers.
    #[inline(always)]
    fn call(&self, call: &Call, on: Operands<'_>) -> Result<u64, Errno> {
        make(call, (self.at, self.at), on)
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
        self.directory.as_deref()
    }
}

impl HeldFs {
    /// The descriptor that a call on `path` is relative to, and the path from there on.
    fn place<'p>(&self, path: &'p CStr) -> (RawFd, &'p CStr) {
        let bytes = path.to_bytes_with_nul();
        let below = |(prefix, fd): &(Vec<u8>, OwnedFd)| {
            let rest = match bytes.strip_prefix(prefix.as_slice())? {
                [b'/', rest @ ..] => rest,
                [0] => b".\0",
                _ => return None,
            };
            Some((fd.as_raw_fd(), CStr::from_bytes_with_nul(rest).ok()?))
        };
        let own = (self.posix.at, path);
        self.held.iter().find_map(below).unwrap_or(own)
    }
}

impl Fs for HeldFs {
    fn call(&self, call: &Call, on: Operands<'_>) -> Result<u64, Errno> {
        let (at, path) = match is_relative(call) {
            true => self.place(on.path),
            false => (self.posix.at, on.path),
        };
        let (to_at, other) = match call {
            Call::Rename(_) | Call::Link | Call::Copy => self.place(on.other),
            _ => (self.posix.at, on.other),
        };
        make(call, (at, to_at), Operands { path, other, ..on })
    }

    fn resident(&self, fd: RawFd) -> Option<Resident> {
        self.posix.resident(fd)
    }

    fn directory(&self) -> Option<&OwnedFd> {
        self.posix.directory()
    }
}
