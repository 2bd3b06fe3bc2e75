//! The engine `falloc`: fallocate(2) instead of transfers, one request at a time. A write
//! allocates the range and extends the file to its end, a read allocates it and keeps the
//! file's size, a trim deallocates it. No data is moved, and syncs are refused (`EINVAL`),
//! like in fio's engine.

use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc;

use super::contract::EngineInfo;
use super::synchronous::{self, Calls, Rest};
use crate::calls;

/// The line in [`super::ENGINES`].
pub const INFO: EngineInfo = EngineInfo {
    name: "falloc",
    moves_data: false,
    always_writes: true,
    ..EngineInfo::of(|config| synchronous::make(config, Falloc))
};

struct Falloc;

/// Allocates all of `rest`.
#[inline]
fn allocate(rest: &Rest, mode: libc::c_int) -> Result<usize, Errno> {
    let done = calls::fallocate(rest.fd, mode, rest.offset, rest.length);
    done.map(|()| rest.length)
}

impl Calls for Falloc {
    fn read(&mut self, rest: &Rest) -> Result<usize, Errno> {
        allocate(rest, libc::FALLOC_FL_KEEP_SIZE)
    }

    fn write(&mut self, rest: &Rest) -> Result<usize, Errno> {
        allocate(rest, 0)
    }

    fn sync(&mut self, _fd: RawFd, _data_only: bool) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }
}
