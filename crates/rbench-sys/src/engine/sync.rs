//! The engine `sync`: `lseek`, then `read` or `write`, one request at a time.
//!
//! It moves the file's position: two workers must not use one open file. For an
//! attached file it remembers the position, and only seeks if a request does not
//! start at the end of its predecessor.

use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc;

use super::contract::EngineInfo;
use super::fd_table::FdTable;
use super::synchronous::{self, Calls, Rest, bytes};
use crate::files::Advice;

/// The line in [`super::ENGINES`].
pub const INFO: EngineInfo = EngineInfo {
    name: "sync",
    moves_position: true,
    ..EngineInfo::of(|config| {
        let positions = FdTable::new();
        synchronous::make(config, Sync { positions })
    })
};

struct Sync {
    /// Positions of the attached files; `None` if unknown.
    positions: FdTable<Option<libc::off_t>>,
}

/// Moves the position of the file to the start of `rest`.
#[inline]
pub(super) fn seek(rest: &Rest) -> Result<(), Errno> {
    // SAFETY: no memory is involved; an invalid descriptor gives EBADF.
    let reached = unsafe { libc::lseek(rest.fd, rest.offset, libc::SEEK_SET) };
    Errno::result(reached).map(drop)
}

impl Sync {
    /// Moves the position to the start of `rest`, makes the call `transfer`, and
    /// records the new position.
    #[inline]
    fn at(&mut self, rest: &Rest, transfer: impl FnOnce() -> isize) -> Result<usize, Errno> {
        let mut position = self.positions.get_mut(rest.fd);
        if position.as_deref().copied().flatten() != Some(rest.offset) {
            seek(rest)?;
        }
        let result = bytes(transfer());
        if let Some(position) = &mut position {
            let moved = result.as_ref().ok();
            **position = moved.map(|n| rest.offset.wrapping_add(*n as libc::off_t));
        }
        result
    }
}

impl Calls for Sync {
    #[inline]
    fn read(&mut self, rest: &Rest) -> Result<usize, Errno> {
        // SAFETY: the memory of `rest` is valid, and nothing else uses it.
        self.at(rest, || unsafe {
            libc::read(rest.fd, rest.start.cast(), rest.length)
        })
    }

    #[inline]
    fn write(&mut self, rest: &Rest) -> Result<usize, Errno> {
        // SAFETY: the memory of `rest` is valid, and nothing else writes to it.
        self.at(rest, || unsafe {
            libc::write(rest.fd, rest.start.cast(), rest.length)
        })
    }

    fn attach(&mut self, fd: RawFd, _: Option<Advice>) {
        self.positions.insert(fd, None);
    }

    fn detach(&mut self, fd: RawFd) {
        self.positions.remove(fd);
    }
}
