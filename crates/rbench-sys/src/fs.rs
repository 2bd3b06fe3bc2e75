//! Executors of system calls ([`Call`]), with a method for each call.
//!
//! Paths are C strings: the caller patches path bytes in place and no call
//! allocates. Which directories may be used is the caller's business.

use std::ffi::CStr;
use std::os::fd::{OwnedFd, RawFd};

use nix::errno::Errno;
use rbench_core::operations::READABLE;
use rbench_core::{By, Call, OpenFlags, Part, Progress, Times};

use crate::residency::Resident;

/// Operands of a call; each call documents which of them it uses.
#[derive(Debug)]
pub struct Operands<'a> {
    /// The path.
    pub path: &'a CStr,
    /// The second path, the target of a link, or the name of an attribute.
    pub other: &'a CStr,
    /// The file.
    pub fd: RawFd,
    /// Bytes to write, or room for the bytes read.
    pub data: Data<'a>,
}

/// The data of a call.
#[derive(Debug)]
pub enum Data<'a> {
    /// To be written.
    From(&'a [u8]),
    /// To be read into, or written.
    Into(&'a mut [u8]),
}

impl Data<'_> {
    /// Bytes to write.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Data::From(bytes) => bytes,
            Data::Into(bytes) => bytes,
        }
    }

    /// Room for the bytes read.
    #[inline(always)]
    pub fn room(&mut self) -> &mut [u8] {
        match self {
            Data::From(_) => &mut [],
            Data::Into(room) => room,
        }
    }
}

/// An invalid descriptor, which the kernel refuses.
pub const NO_FILE: RawFd = -1;

impl<'a> Operands<'a> {
    /// A path.
    #[inline(always)]
    pub fn path(path: &'a CStr) -> Operands<'a> {
        Operands {
            path,
            other: c"",
            fd: NO_FILE,
            data: Data::From(&[]),
        }
    }

    /// Two paths.
    #[inline(always)]
    pub fn paths(path: &'a CStr, other: &'a CStr) -> Operands<'a> {
        Operands {
            other,
            ..Operands::path(path)
        }
    }

    /// A file.
    #[inline(always)]
    pub fn file(fd: RawFd) -> Operands<'a> {
        Operands {
            fd,
            ..Operands::path(c"")
        }
    }

    #[inline(always)]
    fn from(self, bytes: &'a [u8]) -> Operands<'a> {
        Operands {
            data: Data::From(bytes),
            ..self
        }
    }

    #[inline(always)]
    fn into(self, room: &'a mut [u8]) -> Operands<'a> {
        Operands {
            data: Data::Into(room),
            ..self
        }
    }
}

/// Makes calls relative to one directory.
///
/// A path may also be absolute, as those of `rbench mdtest` are: then the
/// directory is not used.
///
/// Implementations: POSIX calls, a recorder that logs the calls instead of making them, one that
/// does nothing, and one that makes chosen calls fail. Nothing is retried:
/// what the kernel says is what is reported. A descriptor is a plain number so
/// that the recorder can make them up; who opens one closes it.
pub trait Fs: Send + Sync {
    /// Makes the call. Returns the value that [`Call`] documents, or 0.
    ///
    /// # Errors
    /// The errno of the call.
    fn call(&self, call: Call, on: Operands<'_>) -> Result<u64, Errno>;

    /// What of an open file lies in the page cache, where that can be told
    /// ([`crate::residency::resident`]); changes nothing.
    fn resident(&self, _fd: RawFd) -> Option<Resident> {
        None
    }

    /// A directory descriptor to resolve paths against, for engines that open
    /// files themselves; `None` when there is no real directory.
    fn directory(&self) -> Option<&OwnedFd>;

    /// [`Call::MKDIR`]
    fn mkdir(&self, path: &CStr) -> Result<(), Errno> {
        self.call(Call::MKDIR, Operands::path(path)).map(drop)
    }
    /// [`Call::Rmdir`]
    fn rmdir(&self, path: &CStr) -> Result<(), Errno> {
        self.call(Call::Rmdir, Operands::path(path)).map(drop)
    }
    /// [`Call::Stat`]
    fn stat(&self, path: &CStr) -> Result<u64, Errno> {
        self.call(Call::Stat(By::Link), Operands::path(path))
    }
    /// [`Call::Rename`]
    fn rename(&self, from: &CStr, to: &CStr) -> Result<(), Errno> {
        self.call(Call::Rename(0), Operands::paths(from, to))
            .map(drop)
    }
    /// [`Call::Link`]
    fn link(&self, from: &CStr, to: &CStr) -> Result<(), Errno> {
        self.call(Call::Link, Operands::paths(from, to)).map(drop)
    }
    /// [`Call::List`], with `buffer` for a portion of the entries.
    fn list(&self, path: &CStr, buffer: &mut [u8]) -> Result<u64, Errno> {
        self.call(Call::List, Operands::path(path).into(buffer))
    }
    /// [`Call::Open`]
    fn open(&self, path: &CStr, flags: OpenFlags) -> Result<RawFd, Errno> {
        let fd = self.call(Call::Open(flags), Operands::path(path))?;
        Ok(fd as RawFd)
    }
    /// [`Call::MKNOD`]
    fn mknod(&self, path: &CStr) -> Result<(), Errno> {
        self.call(Call::MKNOD, Operands::path(path)).map(drop)
    }
    /// [`Call::Close`]
    fn close(&self, fd: RawFd) -> Result<(), Errno> {
        self.call(Call::Close, Operands::file(fd)).map(drop)
    }
    /// [`Call::Unlink`]
    fn unlink(&self, path: &CStr) -> Result<(), Errno> {
        self.call(Call::Unlink, Operands::path(path)).map(drop)
    }
    /// [`Call::Write`]
    fn write(&self, fd: RawFd, buffer: &[u8]) -> Result<usize, Errno> {
        let written = self.call(Call::Write, Operands::file(fd).from(buffer))?;
        Ok(written as usize)
    }
    /// [`Call::Read`]
    fn read(&self, fd: RawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        let read = self.call(Call::Read, Operands::file(fd).into(buffer))?;
        Ok(read as usize)
    }
    /// [`Call::Fsync`]
    fn fsync(&self, fd: RawFd) -> Result<(), Errno> {
        self.call(Call::Fsync, Operands::file(fd)).map(drop)
    }
    /// [`Call::Fdatasync`]
    fn fdatasync(&self, fd: RawFd) -> Result<(), Errno> {
        self.call(Call::Fdatasync, Operands::file(fd)).map(drop)
    }
    /// [`Call::Sync`], which cannot fail.
    fn sync(&self) {
        let _ = self.call(Call::Sync, Operands::path(c""));
    }
    /// [`Call::Truncate`]
    fn truncate(&self, fd: RawFd, length: u64) -> Result<(), Errno> {
        self.call(Call::Truncate(By::File, length), Operands::file(fd))
            .map(drop)
    }
    /// [`Call::Symlink`]
    fn symlink(&self, target: &CStr, path: &CStr) -> Result<(), Errno> {
        self.call(Call::Symlink, Operands::paths(path, target))
            .map(drop)
    }
    /// [`Call::Readlink`]: `buffer` has as much of the target as fits.
    fn readlink(&self, path: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
        let length = self.call(Call::Readlink, Operands::path(path).into(buffer))?;
        Ok(length as usize)
    }
    /// [`Call::Chmod`]
    fn chmod(&self, path: &CStr, mode: u32) -> Result<(), Errno> {
        self.call(Call::Chmod(By::Path, mode), Operands::path(path))
            .map(drop)
    }
    /// [`Call::Utimes`]
    fn utimes(&self, path: &CStr, seconds: i64) -> Result<(), Errno> {
        self.call(Call::Utimes(By::Link, Some(seconds)), Operands::path(path))
            .map(drop)
    }
    /// [`Call::Access`]
    fn access(&self, path: &CStr) -> Result<(), Errno> {
        self.call(Call::Access(READABLE), Operands::path(path))
            .map(drop)
    }
    /// [`Call::Lookup`]
    fn lookup(&self, path: &CStr) -> Result<u64, Errno> {
        self.call(Call::Lookup, Operands::path(path))
    }
    /// [`Call::Getattr`]
    fn getattr(&self, fd: RawFd) -> Result<u64, Errno> {
        self.call(Call::Getattr, Operands::file(fd))
    }
    /// [`Call::Statfs`]
    fn statfs(&self, fd: RawFd) -> Result<u64, Errno> {
        self.call(Call::Statfs(By::File), Operands::file(fd))
    }
    /// [`Call::Setxattr`]
    fn setxattr(&self, fd: RawFd, name: &'static CStr, value: &[u8]) -> Result<(), Errno> {
        let on = Operands::file(fd).from(value);
        self.call(Call::Setxattr(By::File, Some(name), 0), on)
            .map(drop)
    }
    /// [`Call::Getxattr`]: the value has to fit into `buffer`.
    fn getxattr(&self, fd: RawFd, name: &'static CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
        let on = Operands::file(fd).into(buffer);
        Ok(self.call(Call::Getxattr(By::File, Some(name)), on)? as usize)
    }
    /// [`Call::Listxattr`]
    fn listxattr(&self, fd: RawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        let on = Operands::file(fd).into(buffer);
        Ok(self.call(Call::Listxattr(By::File), on)? as usize)
    }
    /// [`Call::Removexattr`]
    fn removexattr(&self, fd: RawFd, name: &'static CStr) -> Result<(), Errno> {
        self.call(Call::Removexattr(By::File, Some(name)), Operands::file(fd))
            .map(drop)
    }
    /// [`Call::WriteAt`]
    fn write_at(&self, fd: RawFd, buffer: &[u8], offset: u64) -> Result<usize, Errno> {
        let on = Operands::file(fd).from(buffer);
        Ok(self.call(Call::WriteAt(offset), on)? as usize)
    }
    /// [`Call::ReadAt`]: 0 at the end of the file.
    fn read_at(&self, fd: RawFd, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let on = Operands::file(fd).into(buffer);
        Ok(self.call(Call::ReadAt(offset), on)? as usize)
    }
}

/// Makes the calls of an operation, one after the other, and returns its progress. `file` is the open
/// file, updated by opens and closes; each read and write moves at most `length` bytes of `data`.
#[inline(always)]
pub fn perform(
    fs: &dyn Fs,
    (parts, length): (&[Part], usize),
    (path, other): (&CStr, &CStr),
    data: &mut [u8],
    file: &mut Option<RawFd>,
) -> Progress {
    if let [
        Part {
            call,
            times: Times::Once,
        },
    ] = *parts
    {
        let on = Operands {
            path,
            other,
            fd: file.unwrap_or(NO_FILE),
            data: Data::Into(data.get_mut(..length).unwrap_or_default()),
        };
        let result = fs.call(call, on);
        return Progress::of_single(call, length, result, file);
    }
    let mut progress = Progress::default();
    while let Some(due) = progress.next(parts, length) {
        let on = Operands {
            path,
            other,
            fd: file.unwrap_or(NO_FILE),
            data: Data::Into(
                data.get_mut(due.from..due.from + due.bytes)
                    .unwrap_or_default(),
            ),
        };
        let result = fs.call(due.call, on);
        progress.ended(parts, &due, result, file);
    }
    progress
}
