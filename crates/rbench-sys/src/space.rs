//! How large a file system is and how much of it is in use, by statvfs(3).

use std::path::Path;

use nix::errno::Errno;
use nix::sys::statvfs::statvfs;

/// What a file system can hold. Some without a bound report 0 or very large
/// numbers; some count no inodes and report 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes, of data and whatever else lies in blocks (`f_blocks`).
    pub bytes_total: u64,
    /// Bytes that are not in use (`f_bfree`). Some may be kept for root.
    pub bytes_free: u64,
    /// Inodes (`f_files`).
    pub inodes_total: u64,
    /// Inodes that are not in use (`f_ffree`).
    pub inodes_free: u64,
    /// Bytes that a user without privileges may still fill (`f_bavail`).
    pub bytes_available: u64,
    /// Inodes that such a user may still take (`f_favail`).
    pub inodes_available: u64,
}

/// What the file system of `path` can hold.
pub fn space(path: &Path) -> Result<Space, Errno> {
    let found = statvfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.fragment_size());
    Ok(Space {
        bytes_total: bytes(found.blocks()),
        bytes_free: bytes(found.blocks_free()),
        inodes_total: found.files(),
        inodes_free: found.files_free(),
        bytes_available: bytes(found.blocks_available()),
        inodes_available: found.files_available(),
    })
}
