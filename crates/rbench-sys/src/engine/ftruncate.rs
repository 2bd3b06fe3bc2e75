//! The engine `ftruncate`: a write sets the length of the file to its offset, one
//! request at a time. No data is moved; reads, trims and syncs are refused with
//! `EINVAL`, like in fio's engine.

use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc;

use super::contract::EngineInfo;
use super::synchronous::{self, Calls, Rest};

/// The line in [`super::ENGINES`].
pub const INFO: EngineInfo = EngineInfo {
    name: "ftruncate",
    moves_data: false,
    ..EngineInfo::of(|config| synchronous::make(config, Ftruncate))
};

struct Ftruncate;

impl Calls for Ftruncate {
    fn read(&mut self, _rest: &Rest) -> Result<usize, Errno> {
        Err(Errno::EINVAL)
    }

    fn write(&mut self, rest: &Rest) -> Result<usize, Errno> {
        // SAFETY: no memory is involved; an invalid descriptor gives EBADF.
        let done = unsafe { libc::ftruncate(rest.fd, rest.offset) };
        Errno::result(done).map(|_| rest.length)
    }

    fn trim(&mut self, _rest: &Rest) -> Result<usize, Errno> {
        Err(Errno::EINVAL)
    }

    fn sync(&mut self, _fd: RawFd, _data_only: bool) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }
}
