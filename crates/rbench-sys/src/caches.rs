//! Emptying the kernel's caches before a phase that is to run cold.

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::libc;
use nix::unistd::{AccessFlags, access};

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// The caches stay as they are.
#[derive(Debug, thiserror::Error)]
pub enum CachesError {
    /// Only root of the host, outside of containers, may do it.
    #[error("dropping the caches needs root: {DROP_CACHES} cannot be written ({0:?})")]
    NotPermitted(Errno),
    /// Any other reason.
    #[error("cannot drop the caches: writing {DROP_CACHES}: {0}")]
    Failed(io::Error),
}

/// Whether [`drop_caches`] is permitted to this process.
pub fn may_drop_caches() -> bool {
    access(DROP_CACHES, AccessFlags::W_OK).is_ok()
}

/// Writes all dirty pages of the host back, then drops its clean page cache,
/// directory entries and inodes. It affects every program on the host: one
/// rank a host does it.
pub fn drop_caches() -> Result<(), CachesError> {
    // SAFETY: sync takes nothing, returns nothing and cannot fail.
    unsafe { libc::sync() };
    fs::write(DROP_CACHES, "3\n").map_err(|error| match error.raw_os_error().map(Errno::from_raw) {
        Some(errno @ (Errno::EACCES | Errno::EPERM | Errno::EROFS)) => {
            CachesError::NotPermitted(errno)
        }
        _ => CachesError::Failed(error),
    })
}
