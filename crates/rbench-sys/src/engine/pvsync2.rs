//! The engine `pvsync2`: `preadv2` and `pwritev2` with one element and no
//! flags, one request at a time. Needs Linux 4.6: before, the C library makes
//! the calls of `pvsync` instead.

use nix::errno::Errno;
use nix::libc;

use super::contract::EngineInfo;
use super::synchronous::{self, Calls, Rest, bytes};

/// The line in [`super::ENGINES`].
pub const INFO: EngineInfo = EngineInfo {
    name: "pvsync2",
    depth_max: 1,
    moves_data: true,
    mapped: false,
    make: |config| synchronous::make(config, Pvsync2),
};

struct Pvsync2;

/// An offset of -1 would mean the file's own position; -2 is refused with
/// EINVAL, as preadv does with both.
#[inline]
fn offset(rest: &Rest) -> libc::off_t {
    if rest.offset == -1 { -2 } else { rest.offset }
}

impl Calls for Pvsync2 {
    #[inline]
    fn read(&mut self, rest: &Rest) -> Result<usize, Errno> {
        // SAFETY: the one element is the memory of `rest`, which is valid and
        // in nobody else's use.
        bytes(unsafe { libc::preadv2(rest.fd, &rest.vector(), 1, offset(rest), 0) })
    }

    #[inline]
    fn write(&mut self, rest: &Rest) -> Result<usize, Errno> {
        // SAFETY: as in `read`; nobody else writes to the memory.
        bytes(unsafe { libc::pwritev2(rest.fd, &rest.vector(), 1, offset(rest), 0) })
    }
}
