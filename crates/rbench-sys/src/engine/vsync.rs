//! The engine `vsync`: `lseek`, then `readv` or `writev` with one element, one
//! request at a time.
//!
//! It moves the file's position: two workers must not use one open file.

use nix::errno::Errno;
use nix::libc;

use super::contract::EngineInfo;
use super::sync::seek;
use super::synchronous::{self, Calls, Rest, bytes};

/// The line in [`super::ENGINES`].
pub const INFO: EngineInfo = EngineInfo {
    name: "vsync",
    moves_position: true,
    ..EngineInfo::of(|config| synchronous::make(config, Vsync))
};

struct Vsync;

impl Calls for Vsync {
    #[inline]
    fn read(&mut self, rest: &Rest) -> Result<usize, Errno> {
        seek(rest)?;
        // SAFETY: the one element is the memory of `rest`, which is valid, and
        // nothing else uses it.
        bytes(unsafe { libc::readv(rest.fd, &rest.vector(), 1) })
    }

    #[inline]
    fn write(&mut self, rest: &Rest) -> Result<usize, Errno> {
        seek(rest)?;
        // SAFETY: as in `read`; nothing else writes to the memory.
        bytes(unsafe { libc::writev(rest.fd, &rest.vector(), 1) })
    }
}
