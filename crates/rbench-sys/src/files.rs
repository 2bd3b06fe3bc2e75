//! Files by their path, for workloads without a working directory of the run
//! (`rbench fio`): opening, length, reserving space, advice, removal.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{
    AT_FDCWD, FallocateFlags, OFlag, PosixFadviseAdvice, fallocate, openat, posix_fadvise,
    posix_fallocate,
};
use nix::sys::stat::{Mode, fstat, lstat};
use nix::{libc, unistd};
use rbench_core::or_eio;

/// Flags of an open; at least one of `read` and `write` must be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenFlags {
    /// For reading.
    pub read: bool,
    /// For writing, without truncation.
    pub write: bool,
    /// Creates the file (with mode 0644 minus the umask) if it does not exist.
    pub create: bool,
    /// Bypasses the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Each write is complete when data and attributes are on stable storage (`O_SYNC`).
    pub sync: bool,
    /// Like `sync`, with only the attributes that reading needs (`O_DSYNC`).
    pub dsync: bool,
    /// Reading does not change the time of last access (`O_NOATIME`), if the system
    /// permits that to this user.
    pub noatime: bool,
    /// A file of the run: no symbolic link is followed (`O_NOFOLLOW`), and it is created
    /// with mode 0664 minus the umask.
    pub own: bool,
}

impl OpenFlags {
    fn bits(self) -> OFlag {
        let mut bits = match (self.read, self.write) {
            (_, false) => OFlag::O_RDONLY,
            (false, true) => OFlag::O_WRONLY,
            (true, true) => OFlag::O_RDWR,
        };
        bits |= OFlag::O_CLOEXEC;
        bits.set(OFlag::O_CREAT, self.create);
        bits.set(OFlag::O_DIRECT, self.direct);
        bits.set(OFlag::O_SYNC, self.sync);
        // The bit of O_DSYNC is one of those of O_SYNC.
        bits.set(OFlag::O_DSYNC, self.dsync || self.sync);
        bits.set(OFlag::O_NOATIME, self.noatime);
        bits.set(OFlag::O_NOFOLLOW, self.own);
        bits
    }
}

/// Opens `path`. `EINVAL` without reading and writing, and from file systems without
/// `O_DIRECT`.
pub fn open(path: &Path, flags: OpenFlags) -> Result<OwnedFd, Errno> {
    open_at(AT_FDCWD, path, flags)
}

/// Like [`open`], relative to an open directory.
pub fn open_at(directory: BorrowedFd<'_>, path: &Path, flags: OpenFlags) -> Result<OwnedFd, Errno> {
    if !flags.read && !flags.write {
        return Err(Errno::EINVAL);
    }
    let mode = Mode::from_bits_truncate(if flags.own { 0o664 } else { 0o644 });
    match openat(directory, path, flags.bits(), mode) {
        // Only the owner of the file and root may use O_NOATIME.
        Err(Errno::EPERM) if flags.noatime => {
            openat(directory, path, flags.bits() - OFlag::O_NOATIME, mode)
        }
        opened => opened,
    }
}

/// The attributes of an open file that the kernel knows, without a request to a network or FUSE
/// file system: those in `wanted` (`STATX_…`), as far as `stx_mask` has them.
pub(crate) fn known(fd: impl AsFd, wanted: libc::c_uint) -> Result<libc::statx, Errno> {
    // SAFETY: the fields are plain numbers, and zero is valid for each.
    let mut attributes: libc::statx = unsafe { std::mem::zeroed() };
    let (fd, flags) = (
        fd.as_fd().as_raw_fd(),
        libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC,
    );
    // SAFETY: the path is a C string, and the struct is valid and only used here.
    let code = unsafe { libc::statx(fd, c"".as_ptr(), flags, wanted, &mut attributes) };
    Errno::result(code).map(|_| attributes)
}

/// True for a regular file.
pub fn is_regular(fd: impl AsFd) -> Result<bool, Errno> {
    let kind = fstat(fd)?.st_mode & libc::S_IFMT;
    Ok(kind == libc::S_IFREG)
}

/// The length of the file in bytes.
pub fn length(fd: impl AsFd) -> Result<u64, Errno> {
    let attributes = fstat(fd)?;
    u64::try_from(attributes.st_size).map_err(|_| Errno::EOVERFLOW)
}

/// Sets the length of the file (ftruncate): added parts are holes, bytes beyond are cut
/// off.
pub fn set_length(fd: impl AsFd, length: u64) -> Result<(), Errno> {
    let length = libc::off_t::try_from(length).map_err(|_| Errno::EFBIG)?;
    uninterrupted(|| unistd::ftruncate(&fd, length))
}

/// Method of reserving space for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// fallocate(2), which extends the file. File systems without it (NFS before 4.2, many
    /// FUSE file systems) give `EOPNOTSUPP`.
    Native,
    /// posix_fallocate(3): the same, but if the file system cannot, the C library writes a
    /// byte to every block.
    Posix,
    /// fallocate(2) that keeps the file's length.
    Keep,
}

/// Reserves `length` bytes from `offset` on. A `length` of 0 is `EINVAL`.
pub fn allocate(fd: impl AsFd, how: Allocation, offset: u64, length: u64) -> Result<(), Errno> {
    let offset = libc::off_t::try_from(offset).map_err(|_| Errno::EFBIG)?;
    let length = libc::off_t::try_from(length).map_err(|_| Errno::EFBIG)?;
    uninterrupted(|| match how {
        Allocation::Native => fallocate(&fd, FallocateFlags::empty(), offset, length),
        Allocation::Posix => posix_fallocate(&fd, offset, length),
        Allocation::Keep => fallocate(&fd, FallocateFlags::FALLOC_FL_KEEP_SIZE, offset, length),
    })
}

/// Closes the file: some file systems only report lost data here. The descriptor is
/// closed, whatever the result.
pub fn close(fd: OwnedFd) -> Result<(), Errno> {
    unistd::close(fd)
}

/// Hint to the kernel about future accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// The file is not needed: its clean pages leave the page cache. Dirty pages stay:
    /// sync first.
    DontNeed,
    /// Sequential access: read more ahead.
    Sequential,
    /// Random access: no read-ahead.
    Random,
}

/// Gives the kernel a hint about the use of the whole file; `ESPIPE` if it is not a file.
pub fn advise(fd: impl AsFd, advice: Advice) -> Result<(), Errno> {
    let advice = match advice {
        Advice::DontNeed => PosixFadviseAdvice::POSIX_FADV_DONTNEED,
        Advice::Sequential => PosixFadviseAdvice::POSIX_FADV_SEQUENTIAL,
        Advice::Random => PosixFadviseAdvice::POSIX_FADV_RANDOM,
    };
    posix_fadvise(fd, 0, 0, advice)
}

/// Gives the kernel a hint about the lifetime of written data (`RWH_WRITE_LIFE_…`), for
/// the file, or with `of_descriptor` only for this descriptor. `EINVAL` if the kernel does
/// not support it.
pub fn set_write_hint(fd: impl AsFd, hint: u64, of_descriptor: bool) -> Result<(), Errno> {
    /// From linux/fcntl.h; libc lacks them.
    const SET_RW_HINT: libc::c_int = 1024 + 12;
    const SET_FILE_RW_HINT: libc::c_int = 1024 + 14;
    let command = if of_descriptor {
        SET_FILE_RW_HINT
    } else {
        SET_RW_HINT
    };
    // SAFETY: the descriptor is open, and the call reads `hint`, which is valid.
    let done = unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), command, &raw const hint) };
    Errno::result(done).map(drop)
}

/// The device number of the file system that a file is on.
pub fn device(fd: impl AsFd) -> Result<u64, Errno> {
    fstat(fd).map(|found| found.st_dev)
}

/// Writes all data of this file's file system to stable storage (syncfs).
pub fn sync_file_system(fd: impl AsFd) -> Result<(), Errno> {
    // SAFETY: the descriptor is open, and no memory is involved.
    let done = unsafe { libc::syncfs(fd.as_fd().as_raw_fd()) };
    Errno::result(done).map(drop)
}

/// Writes back a part of a file (sync_file_range): waits for writes in progress, starts
/// the rest, waits for it. It promises nothing about attributes, or after a crash.
pub fn sync_range(
    fd: impl AsFd,
    (offset, length): (u64, u64),
    [wait_before, write, wait_after]: [bool; 3],
) -> Result<(), Errno> {
    let from = libc::off64_t::try_from(offset).map_err(|_| Errno::EFBIG)?;
    let length = libc::off64_t::try_from(length).map_err(|_| Errno::EFBIG)?;
    let flag = |on: bool, flag: libc::c_uint| if on { flag } else { 0 };
    let flags = flag(wait_before, libc::SYNC_FILE_RANGE_WAIT_BEFORE)
        | flag(write, libc::SYNC_FILE_RANGE_WRITE)
        | flag(wait_after, libc::SYNC_FILE_RANGE_WAIT_AFTER);
    // SAFETY: the descriptor is open, and no memory is involved.
    let done = unsafe { libc::sync_file_range(fd.as_fd().as_raw_fd(), from, length, flags) };
    Errno::result(done).map(drop)
}

/// Removes a regular file; processes that have it open keep it. A symbolic link, a device
/// or anything else at that name stays.
pub fn unlink_file(path: &Path) -> Result<(), Errno> {
    match lstat(path)?.st_mode & libc::S_IFMT {
        libc::S_IFREG => unistd::unlink(path),
        _ => Ok(()),
    }
}

/// Kind of a name, without following links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// It does not exist.
    Nothing,
    /// A regular file with its size in bytes.
    File(u64),
    /// A directory.
    Directory,
    /// Anything else, such as a symbolic link or a device.
    Other,
}

/// Returns the kind of a name.
pub fn named(path: &Path) -> Result<Named, Errno> {
    let attributes = match lstat(path) {
        Err(Errno::ENOENT) => return Ok(Named::Nothing),
        attributes => attributes?,
    };
    Ok(match attributes.st_mode & libc::S_IFMT {
        libc::S_IFREG => Named::File(u64::try_from(attributes.st_size).unwrap_or(0)),
        libc::S_IFDIR => Named::Directory,
        _ => Named::Other,
    })
}

/// True if a path leads to a pipe or a socket, also through symbolic links: opening it may
/// block, and it has no offsets.
pub fn is_pipe(path: &Path) -> Result<bool, Errno> {
    let attributes = nix::sys::stat::stat(path)?;
    Ok(matches!(
        attributes.st_mode & libc::S_IFMT,
        libc::S_IFIFO | libc::S_IFSOCK
    ))
}

/// Creates a directory (with mode 0700 minus the umask).
pub fn make_directory(path: &Path) -> Result<(), Errno> {
    unistd::mkdir(path, Mode::S_IRWXU)
}

/// Removes an empty directory. Anything else at that name stays.
pub fn remove_directory(path: &Path) -> Result<(), Errno> {
    match named(path)? {
        Named::Directory => nix::unistd::unlinkat(AT_FDCWD, path, unistd::UnlinkatFlags::RemoveDir),
        Named::Nothing => Err(Errno::ENOENT),
        Named::File(_) | Named::Other => Ok(()),
    }
}

/// Creates the missing parents of `path`.
pub fn make_folders(path: &Path) -> Result<(), Errno> {
    let result = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    result.map_err(or_eio)
}

/// Repeats a call that a signal interrupted.
fn uninterrupted(mut call: impl FnMut() -> Result<(), Errno>) -> Result<(), Errno> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            result => return result,
        }
    }
}

/// Checks for a file at `path` that serves as a sign: an empty regular file is removed,
/// anything else stays. Returns true if there is one.
pub fn take_sign(path: &Path) -> bool {
    match named(path) {
        Err(_) | Ok(Named::Nothing) => false,
        Ok(Named::File(0)) => {
            // It was seen, even if it cannot be removed.
            let _ = unistd::unlink(path);
            true
        }
        Ok(Named::File(_) | Named::Directory | Named::Other) => true,
    }
}
