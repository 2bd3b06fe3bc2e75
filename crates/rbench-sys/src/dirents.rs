//! Reads a directory with `getdents64`. It opens and closes nothing.

use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc;

pub(crate) use rbench_core::dirents::{Record, Records};

/// The next records of the directory `fd`; empty at the end.
pub(crate) fn read(fd: RawFd, buffer: &mut [u8]) -> Result<&[u8], Errno> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes to `buffer`.
    let returned =
        unsafe { libc::syscall(libc::SYS_getdents64, fd, buffer.as_mut_ptr(), buffer.len()) };
    let length = Errno::result(returned)? as usize;
    Ok(&buffer[..length])
}

/// True if the directory `fd` has no entries.
pub(crate) fn is_empty(fd: RawFd) -> Result<bool, Errno> {
    let mut buffer = [0; 4096];
    loop {
        let records = read(fd, &mut buffer)?;
        if records.is_empty() {
            return Ok(true);
        }
        for record in Records(records) {
            if !record?.is_dots() {
                return Ok(false);
            }
        }
    }
}
