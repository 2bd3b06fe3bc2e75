//! The engine `pvsync`: `preadv` and `pwritev` with one element, one request
//! at a time.

use nix::errno::Errno;
use nix::libc;

use super::contract::EngineInfo;
use super::synchronous::{self, Calls, Rest, bytes};

/// The line in [`super::ENGINES`].
pub const INFO: EngineInfo = EngineInfo {
    name: "pvsync",
    ..EngineInfo::of(|config| synchronous::make(config, Pvsync))
};

struct Pvsync;

impl Calls for Pvsync {
    #[inline]
    fn read(&mut self, rest: &Rest) -> Result<usize, Errno> {
        // SAFETY: the one element is the memory of `rest`, which is valid, and
        // nothing else uses it.
        bytes(unsafe { libc::preadv(rest.fd, &rest.vector(), 1, rest.offset) })
    }

    #[inline]
    fn write(&mut self, rest: &Rest) -> Result<usize, Errno> {
        // SAFETY: as in `read`; nothing else writes to the memory.
        bytes(unsafe { libc::pwritev(rest.fd, &rest.vector(), 1, rest.offset) })
    }
}
