//! Drops the kernel's caches before a phase that must run cold.

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::libc;
use nix::unistd::{AccessFlags, access};

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// The reason why the caches were not dropped.
#[derive(Debug, thiserror::Error)]
pub enum CachesError {
    /// Only root of the host, outside of containers, may drop them.
    #[error("dropping the caches needs root: {DROP_CACHES} cannot be written ({0:?})")]
    NotPermitted(Errno),
    /// Another reason.
    #[error("cannot drop the caches: writing {DROP_CACHES}: {0}")]
    Failed(io::Error),
}

/// True if this process may call [`drop_caches`].
pub fn may_drop_caches() -> bool {
    access(DROP_CACHES, AccessFlags::W_OK).is_ok()
}

/// Writes back all dirty pages of the host, then drops its clean page cache,
/// directory entries and inodes. It affects every program on the host: only one rank
/// per host calls it.
pub fn drop_caches() -> Result<(), CachesError> {
    // SAFETY: sync has no arguments and no result, and cannot fail.
    unsafe { libc::sync() };
    fs::write(DROP_CACHES, "3\n").map_err(|error| match error.raw_os_error().map(Errno::from_raw) {
        Some(errno @ (Errno::EACCES | Errno::EPERM | Errno::EROFS)) => {
            CachesError::NotPermitted(errno)
        }
        _ => CachesError::Failed(error),
    })
}
