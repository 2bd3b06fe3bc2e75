//! Executors of system calls ([`Call`]).
//!
//! Paths are C strings: the caller patches path bytes in place, and no call allocates. The caller
//! also decides which directories may be used.

use std::ffi::CStr;
use std::os::fd::{OwnedFd, RawFd};

use nix::errno::Errno;
use rbench_core::{Call, OpenFlags, Part, Progress, Times};

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
    /// Bytes to write.
    From(&'a [u8]),
    /// Room for bytes that are read, or bytes to write.
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

    /// Adds bytes to write.
    #[inline(always)]
    pub fn sending(self, bytes: &'a [u8]) -> Operands<'a> {
        Operands {
            data: Data::From(bytes),
            ..self
        }
    }

    /// Adds room for the bytes read.
    #[inline(always)]
    pub fn receiving(self, room: &'a mut [u8]) -> Operands<'a> {
        Operands {
            data: Data::Into(room),
            ..self
        }
    }
}

/// Executor of calls relative to one directory.
///
/// A path may also be absolute, like those of `rbench mdtest`: the directory is then not used.
///
/// Implementations: POSIX calls, a recorder that logs the calls instead of making them, one that
/// does nothing, and one that makes chosen calls fail. Nothing is retried: the kernel's result is
/// reported. A descriptor is a plain number, so that the recorder can invent them; the caller
/// that opens one closes it.
pub trait Fs: Send + Sync {
    /// Makes the call. Returns the value that [`Call`] documents, or 0.
    ///
    /// # Errors
    /// The errno of the call.
    fn call(&self, call: &Call, on: Operands<'_>) -> Result<u64, Errno>;

    /// Pages of an open file in the page cache, if known ([`crate::residency::resident`]);
    /// changes nothing.
    fn resident(&self, _fd: RawFd) -> Option<Resident> {
        None
    }

    /// A directory descriptor to resolve paths against, for engines that open files themselves;
    /// `None` if there is no real directory.
    fn directory(&self) -> Option<&OwnedFd>;

    /// A call on a path.
    fn on_path(&self, call: Call, path: &CStr) -> Result<u64, Errno> {
        self.call(&call, Operands::path(path))
    }

    /// A call on two paths.
    fn on_paths(&self, call: Call, path: &CStr, other: &CStr) -> Result<u64, Errno> {
        self.call(&call, Operands::paths(path, other))
    }

    /// A call on an open file.
    fn on_file(&self, call: Call, fd: RawFd) -> Result<u64, Errno> {
        self.call(&call, Operands::file(fd))
    }

    /// A call that writes these bytes to an open file.
    fn sending(&self, call: Call, fd: RawFd, bytes: &[u8]) -> Result<u64, Errno> {
        self.call(&call, Operands::file(fd).sending(bytes))
    }

    /// A call that reads from an open file into `room`.
    fn receiving(&self, call: Call, fd: RawFd, room: &mut [u8]) -> Result<u64, Errno> {
        self.call(&call, Operands::file(fd).receiving(room))
    }

    /// [`Call::Open`]
    fn open(&self, path: &CStr, flags: OpenFlags) -> Result<RawFd, Errno> {
        self.on_path(Call::Open(flags), path).map(|fd| fd as RawFd)
    }

    /// [`Call::Close`]
    fn close(&self, fd: RawFd) -> Result<(), Errno> {
        self.on_file(Call::Close, fd).map(drop)
    }
}

/// Makes the calls of an operation, one after the other, and returns its progress. `file` is the open
/// file, updated by opens and closes, and `None` before an operation that opens one; each read and write
/// moves at most `length` bytes of `data`.
#[inline(always)]
pub fn perform(
    fs: &dyn Fs,
    (parts, length): (&[Part], usize),
    (path, other): (&CStr, &CStr),
    data: &mut [u8],
    file: &mut Option<RawFd>,
) -> Progress {
    // The commonest ones need no loop: a single call, and an open with a close.
    match parts {
        [
            Part {
                call,
                times: Times::Once,
            },
        ] => {
            let on = Operands {
                path,
                other,
                fd: file.unwrap_or(NO_FILE),
                data: Data::Into(data.get_mut(..length).unwrap_or_default()),
            };
            let result = fs.call(call, on);
            Progress::of_single(call, length, result, file)
        }
        [
            Part {
                call: open @ Call::Open(_),
                ..
            },
            Part {
                call: close @ Call::Close,
                ..
            },
        ] => match fs.call(open, Operands::path(path)) {
            Ok(fd) => {
                let closed = fs.call(close, Operands::file(fd as RawFd));
                Progress::of_single(close, 0, closed, file)
            }
            Err(errno) => Progress::failed(errno),
        },
        _ => {
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
    }
}
