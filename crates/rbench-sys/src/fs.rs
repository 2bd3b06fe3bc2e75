//! Executors of system calls ([`Call`]).
//!
//! Paths are C strings: the caller patches path bytes in place, and no call allocates. The caller
//! also decides which directories may be used.

use std::any::Any;
use std::ffi::CStr;
use std::os::fd::{OwnedFd, RawFd};

use nix::errno::Errno;
use rbench_core::script::Then;
use rbench_core::{Call, OpenFlags, Part, Progress};

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
/// Implementations: POSIX calls, also below held directories, a recorder that logs the calls instead
/// of making them, one that does nothing, and one that makes chosen calls fail. Nothing is retried:
/// the kernel's result is reported. A descriptor is a plain number, so that the recorder can invent
/// them; the caller that opens one closes it.
pub trait Fs: Any + Send + Sync {
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
///
/// An open is the first call and a close the last: both are made outside the loop, where an executor of
/// known type needs no choice among all calls.
#[inline(always)]
pub fn perform<F: Fs + ?Sized>(
    fs: &F,
    (parts, length): (&[Part], usize),
    (path, other): (&CStr, &CStr),
    data: &mut [u8],
    file: &mut Option<RawFd>,
) -> Progress {
    let (fd, rest) = match parts {
        [
            Part {
                call: Call::Open(flags),
                ..
            },
            rest @ ..,
        ] => match fs.call(&Call::Open(*flags), Operands::path(path)) {
            Ok(fd) => (fd as RawFd, rest),
            Err(errno) => return Progress::failed(errno),
        },
        rest => (file.unwrap_or(NO_FILE), rest),
    };
    let (between, closes) = match rest {
        [
            between @ ..,
            Part {
                call: Call::Close, ..
            },
        ] => (between, true),
        between => (between, false),
    };
    let mut progress = Progress::default();
    'calls: for part in between {
        loop {
            let due = progress.due(part, length);
            let piece = data.get_mut(due.from..due.from + due.bytes);
            let on = Operands {
                path,
                other,
                fd,
                data: Data::Into(piece.unwrap_or_default()),
            };
            match progress.take(&due, fs.call(due.call, on)) {
                Then::Again => {}
                Then::Next => break,
                Then::Close => break 'calls,
            }
        }
    }
    *file = (!closes && fd != NO_FILE).then_some(fd);
    if closes {
        progress.closed(fs.call(&Call::Close, Operands::file(fd)));
    }
    progress
}
