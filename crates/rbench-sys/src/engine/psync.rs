//! The engine `psync`: `pread` and `pwrite`, one request at a time.

use nix::errno::Errno;

use super::contract::EngineInfo;
use super::synchronous::{self, Calls, Rest};
use crate::calls;

/// The line in [`super::ENGINES`].
pub const INFO: EngineInfo = EngineInfo {
    name: "psync",
    ..EngineInfo::of(|config| synchronous::make(config, Psync))
};

struct Psync;

impl Calls for Psync {
    #[inline]
    fn read(&mut self, rest: &Rest) -> Result<usize, Errno> {
        // SAFETY: the memory of `rest` is valid, and nothing else uses it.
        unsafe { calls::pread(rest.fd, rest.start, rest.length, rest.offset) }
    }

    #[inline]
    fn write(&mut self, rest: &Rest) -> Result<usize, Errno> {
        // SAFETY: the memory of `rest` is valid, and nothing else writes to it.
        unsafe { calls::pwrite(rest.fd, rest.start, rest.length, rest.offset) }
    }
}
