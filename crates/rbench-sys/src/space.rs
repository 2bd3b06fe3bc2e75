//! Size and use of a file system, by statvfs(3).

use std::path::Path;

use nix::errno::Errno;
use nix::sys::statvfs::statvfs;

/// Capacity of a file system. Some without a limit report 0 or very large numbers;
/// some count no inodes and report 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes of data and everything else in blocks (`f_blocks`).
    pub bytes_total: u64,
    /// Free bytes (`f_bfree`). Some may be reserved for root.
    pub bytes_free: u64,
    /// Inodes (`f_files`).
    pub inodes_total: u64,
    /// Free inodes (`f_ffree`).
    pub inodes_free: u64,
    /// Bytes that an unprivileged user may still fill (`f_bavail`).
    pub bytes_available: u64,
    /// Inodes that an unprivileged user may still create (`f_favail`).
    pub inodes_available: u64,
}

/// Reads the capacity of the file system of `path`.
pub fn space(path: &Path) -> Result<Space, Errno> {
    let report = statvfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(report.fragment_size());
    Ok(Space {
        bytes_total: bytes(report.blocks()),
        bytes_free: bytes(report.blocks_free()),
        inodes_total: report.files(),
        inodes_free: report.files_free(),
        bytes_available: bytes(report.blocks_available()),
        inodes_available: report.files_available(),
    })
}
