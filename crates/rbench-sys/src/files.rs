//! Files by their path, for workloads that do without a working directory of
//! ours (`rbench fio`): opening, length, reserving space, advice, removal.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{
    AT_FDCWD, FallocateFlags, OFlag, PosixFadviseAdvice, fallocate, openat, posix_fadvise,
    posix_fallocate,
};
use nix::sys::stat::{Mode, fstat, lstat};
use nix::{libc, unistd};

/// How a file is opened; by default not at all: at least one of `read` and
/// `write` has to be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenFlags {
    /// For reading.
    pub read: bool,
    /// For writing. Nothing is cut off.
    pub write: bool,
    /// Made (with mode 0644 less the umask) if it is not there.
    pub create: bool,
    /// Past the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Each write is complete when data and attributes are on stable storage
    /// (`O_SYNC`).
    pub sync: bool,
    /// The same with the attributes only that reading needs (`O_DSYNC`).
    pub dsync: bool,
    /// Reading leaves the time of last access alone (`O_NOATIME`), where the
    /// system permits that to this user: else as without.
    pub noatime: bool,
    /// A file of the run's own: no symbolic link is followed (`O_NOFOLLOW`), and it is
    /// made with mode 0664 less the umask.
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

/// Opens `path`. `EINVAL` where neither reading nor writing is asked for, and
/// from file systems that have no `O_DIRECT`.
pub fn open(path: &Path, flags: OpenFlags) -> Result<OwnedFd, Errno> {
    open_at(AT_FDCWD, path, flags)
}

/// The same, relative to an open directory.
pub fn open_at(directory: BorrowedFd<'_>, path: &Path, flags: OpenFlags) -> Result<OwnedFd, Errno> {
    if !flags.read && !flags.write {
        return Err(Errno::EINVAL);
    }
    let mode = Mode::from_bits_truncate(if flags.own { 0o664 } else { 0o644 });
    match openat(directory, path, flags.bits(), mode) {
        // O_NOATIME is for the owner of the file and root.
        Err(Errno::EPERM) if flags.noatime => {
            openat(directory, path, flags.bits() - OFlag::O_NOATIME, mode)
        }
        opened => opened,
    }
}

/// Whether it is a regular file, and no device or directory.
pub fn is_regular(fd: impl AsFd) -> Result<bool, Errno> {
    let kind = fstat(fd)?.st_mode & libc::S_IFMT;
    Ok(kind == libc::S_IFREG)
}

/// The length of the file in bytes.
pub fn length(fd: impl AsFd) -> Result<u64, Errno> {
    let found = fstat(fd)?;
    u64::try_from(found.st_size).map_err(|_| Errno::EOVERFLOW)
}

/// Makes the file `length` bytes long (ftruncate): what is added are holes,
/// what is beyond is cut off.
pub fn set_length(fd: impl AsFd, length: u64) -> Result<(), Errno> {
    let length = libc::off_t::try_from(length).map_err(|_| Errno::EFBIG)?;
    uninterrupted(|| unistd::ftruncate(&fd, length))
}

/// How space for a file is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// fallocate(2), which makes the file longer. File systems without it
    /// (NFS before 4.2, many FUSE file systems) give `EOPNOTSUPP`.
    Native,
    /// posix_fallocate(3): the same, but where the file system cannot, the C
    /// library writes a byte into every block.
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

/// Closes the file: some file systems only tell here that written data was
/// lost. The descriptor is gone, whatever is returned.
pub fn close(fd: OwnedFd) -> Result<(), Errno> {
    unistd::close(fd)
}

/// What the kernel is told of the accesses to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// The file is not needed: clean pages of it leave the page cache. Dirty
    /// ones stay: sync first.
    DontNeed,
    /// From front to back: more is read ahead.
    Sequential,
    /// Anywhere: nothing is read ahead.
    Random,
}

/// Tells the kernel how the whole file will be used. It is a wish; `ESPIPE`
/// for what is no file.
pub fn advise(fd: impl AsFd, advice: Advice) -> Result<(), Errno> {
    let advice = match advice {
        Advice::DontNeed => PosixFadviseAdvice::POSIX_FADV_DONTNEED,
        Advice::Sequential => PosixFadviseAdvice::POSIX_FADV_SEQUENTIAL,
        Advice::Random => PosixFadviseAdvice::POSIX_FADV_RANDOM,
    };
    posix_fadvise(fd, 0, 0, advice)
}

/// Tells the kernel how long data will live that is written (`RWH_WRITE_LIFE_…`): of the
/// file, or with `of_descriptor` of this descriptor alone. `EINVAL` where the kernel does
/// not have it.
pub fn set_write_hint(fd: impl AsFd, hint: u64, of_descriptor: bool) -> Result<(), Errno> {
    /// From linux/fcntl.h, which libc does not have.
    const SET_RW_HINT: libc::c_int = 1024 + 12;
    const SET_FILE_RW_HINT: libc::c_int = 1024 + 14;
    let command = if of_descriptor {
        SET_FILE_RW_HINT
    } else {
        SET_RW_HINT
    };
    // SAFETY: the descriptor is open, and `hint` is a valid place for what the call reads.
    let done = unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), command, &raw const hint) };
    Errno::result(done).map(drop)
}

/// The device number of the file system that a file is on.
pub fn device(fd: impl AsFd) -> Result<u64, Errno> {
    fstat(fd).map(|found| found.st_dev)
}

/// Brings all that was written to the file system of this file to stable storage (syncfs).
pub fn sync_file_system(fd: impl AsFd) -> Result<(), Errno> {
    // SAFETY: the descriptor is open, and no memory is involved.
    let done = unsafe { libc::syncfs(fd.as_fd().as_raw_fd()) };
    Errno::result(done).map(drop)
}

/// Has a part of a file written (sync_file_range): waits for what is under way, begins
/// with the rest, waits for that. Nothing is promised of attributes, nor after a crash.
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

/// Removes a regular file (the name: what has it open keeps it). A symbolic
/// link, a device or anything else at that name stays.
pub fn unlink_file(path: &Path) -> Result<(), Errno> {
    match lstat(path)?.st_mode & libc::S_IFMT {
        libc::S_IFREG => unistd::unlink(path),
        _ => Ok(()),
    }
}

/// What a name is, without following it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// Nothing.
    Nothing,
    /// A regular file of so many bytes.
    File(u64),
    /// A directory.
    Directory,
    /// Something else, such as a symbolic link or a device.
    Other,
}

/// What has this name.
pub fn named(path: &Path) -> Result<Named, Errno> {
    let found = match lstat(path) {
        Err(Errno::ENOENT) => return Ok(Named::Nothing),
        found => found?,
    };
    Ok(match found.st_mode & libc::S_IFMT {
        libc::S_IFREG => Named::File(u64::try_from(found.st_size).unwrap_or(0)),
        libc::S_IFDIR => Named::Directory,
        _ => Named::Other,
    })
}

/// Whether what is at a path, behind symbolic links, is a pipe or a socket: to open it may wait for somebody else, and it has no
/// offsets.
pub fn is_pipe(path: &Path) -> Result<bool, Errno> {
    let found = nix::sys::stat::stat(path)?;
    Ok(matches!(
        found.st_mode & libc::S_IFMT,
        libc::S_IFIFO | libc::S_IFSOCK
    ))
}

/// Makes a directory (with mode 0700 less the umask).
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

/// Makes the directories in front of the last part of `path` that are missing.
pub fn make_folders(path: &Path) -> Result<(), Errno> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.map_err(|e| e.raw_os_error().map_or(Errno::EIO, Errno::from_raw))
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

/// Whether there is anything at `path`, a file that is a sign: an empty regular file is
/// removed, anything else stays.
pub fn take_sign(path: &Path) -> bool {
    match named(path) {
        Err(_) | Ok(Named::Nothing) => false,
        Ok(Named::File(0)) => {
            // It was seen, whether or not it can be removed.
            let _ = unistd::unlink(path);
            true
        }
        Ok(Named::File(_) | Named::Directory | Named::Other) => true,
    }
}
