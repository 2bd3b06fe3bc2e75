//! Metadata operations that all succeed and do nothing. What remains is the
//! cost of the tool itself, as with the engine `null`.

use std::ffi::CStr;
use std::os::fd::{OwnedFd, RawFd};

use nix::errno::Errno;

use crate::fs::{Fs, OpenMode};

/// The descriptor of every file: no process may have so many open, so that
/// none is mistaken for a real one.
const FD: RawFd = RawFd::MAX;

/// No file system: every name is there or not, as the caller likes it. Reads
/// and writes say the whole length and touch no byte; sizes, numbers of entries
/// and lengths of targets and attributes are 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullFs;

impl Fs for NullFs {
    #[inline]
    fn mkdir(&self, _path: &CStr) -> Result<(), Errno> {
        Ok(())
    }

    #[inline]
    fn rmdir(&self, _path: &CStr) -> Result<(), Errno> {
        Ok(())
    }

    #[inline]
    fn stat(&self, _path: &CStr) -> Result<u64, Errno> {
        Ok(0)
    }

    #[inline]
    fn rename(&self, _from: &CStr, _to: &CStr) -> Result<(), Errno> {
        Ok(())
    }

    #[inline]
    fn link(&self, _from: &CStr, _to: &CStr) -> Result<(), Errno> {
        Ok(())
    }

    #[inline]
    fn list(&self, _path: &CStr, _buffer: &mut [u8]) -> Result<u64, Errno> {
        Ok(0)
    }

    #[inline]
    fn open(&self, _path: &CStr, _mode: OpenMode, _direct: bool) -> Result<RawFd, Errno> {
        Ok(FD)
    }

    #[inline]
    fn mknod(&self, _path: &CStr) -> Result<(), Errno> {
        Ok(())
    }

    #[inline]
    fn close(&self, _fd: RawFd) -> Result<(), Errno> {
        Ok(())
    }

    #[inline]
    fn unlink(&self, _path: &CStr) -> Result<(), Errno> {
        Ok(())
    }

    #[inline]
    fn write(&self, _fd: RawFd, buffer: &[u8]) -> Result<usize, Errno> {
        Ok(buffer.len())
    }

    #[inline]
    fn read(&self, _fd: RawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        Ok(buffer.len())
    }

    #[inline]
    fn fsync(&self, _fd: RawFd) -> Result<(), Errno> {
        Ok(())
    }

    #[inline]
    fn fdatasync(&self, _fd: RawFd) -> Result<(), Errno> {
        Ok(())
    }

    #[inline]
    fn sync(&self) {}

    #[inline]
    fn truncate(&self, _fd: RawFd, _length: u64) -> Result<(), Errno> {
        Ok(())
    }

    #[inline]
    fn symlink(&self, _target: &CStr, _path: &CStr) -> Result<(), Errno> {
        Ok(())
    }

    #[inline]
    fn readlink(&self, _path: &CStr, _buffer: &mut [u8]) -> Result<usize, Errno> {
        Ok(0)
    }

    #[inline]
    fn chmod(&self, _path: &CStr, _mode: u32) -> Result<(), Errno> {
        Ok(())
    }

    #[inline]
    fn utimes(&self, _path: &CStr, _seconds: i64) -> Result<(), Errno> {
        Ok(())
    }

    #[inline]
    fn access(&self, _path: &CStr) -> Result<(), Errno> {
        Ok(())
    }

    #[inline]
    fn lookup(&self, _path: &CStr) -> Result<u64, Errno> {
        Ok(0)
    }

    #[inline]
    fn getattr(&self, _fd: RawFd) -> Result<u64, Errno> {
        Ok(0)
    }

    #[inline]
    fn statfs(&self, _fd: RawFd) -> Result<u64, Errno> {
        Ok(0)
    }

    #[inline]
    fn setxattr(&self, _fd: RawFd, _name: &CStr, _value: &[u8]) -> Result<(), Errno> {
        Ok(())
    }

    #[inline]
    fn getxattr(&self, _fd: RawFd, _name: &CStr, _buffer: &mut [u8]) -> Result<usize, Errno> {
        Ok(0)
    }

    #[inline]
    fn listxattr(&self, _fd: RawFd, _buffer: &mut [u8]) -> Result<usize, Errno> {
        Ok(0)
    }

    #[inline]
    fn removexattr(&self, _fd: RawFd, _name: &CStr) -> Result<(), Errno> {
        Ok(())
    }

    #[inline]
    fn write_at(&self, _fd: RawFd, buffer: &[u8], _offset: u64) -> Result<usize, Errno> {
        Ok(buffer.len())
    }

    #[inline]
    fn read_at(&self, _fd: RawFd, buffer: &mut [u8], _offset: u64) -> Result<usize, Errno> {
        Ok(buffer.len())
    }

    fn directory(&self) -> Option<&OwnedFd> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_succeeds_whatever_was_asked_before() {
        let fs = NullFs;
        let mut buffer = [7; 100];
        for _ in 0..2 {
            assert_eq!(fs.mkdir(c"d"), Ok(()));
            assert_eq!(fs.mknod(c"/no/where"), Ok(()));
            assert_eq!(fs.rename(c"a", c"b"), Ok(()));
            assert_eq!(fs.link(c"a", c"b"), Ok(()));
            assert_eq!(fs.stat(c"d"), Ok(0));
            assert_eq!(fs.list(c"d", &mut buffer), Ok(0));
            let fd = fs.open(c"f", OpenMode::CreateNew, true);
            let fd = fd.expect("every file opens");
            assert!(fd >= 0, "not what a failed call returns");
            assert_eq!(fs.write(fd, &buffer), Ok(100));
            assert_eq!(fs.read(fd, &mut buffer[..60]), Ok(60));
            assert_eq!(fs.truncate(fd, u64::MAX), Ok(()));
            assert_eq!(fs.fsync(fd), Ok(()));
            assert_eq!(fs.write_at(fd, &buffer, 9), Ok(100));
            assert_eq!(fs.read_at(fd, &mut buffer[..60], 9), Ok(60));
            assert_eq!(fs.getattr(fd), Ok(0));
            assert_eq!(fs.statfs(fd), Ok(0));
            assert_eq!(fs.setxattr(fd, c"user.a", b"b"), Ok(()));
            assert_eq!(fs.getxattr(fd, c"user.a", &mut buffer), Ok(0));
            assert_eq!(fs.listxattr(fd, &mut buffer), Ok(0));
            assert_eq!(fs.removexattr(fd, c"user.a"), Ok(()));
            assert_eq!(fs.symlink(c"t", c"s"), Ok(()));
            assert_eq!(fs.readlink(c"s", &mut buffer), Ok(0));
            assert_eq!(fs.chmod(c"f", 0o600), Ok(()));
            assert_eq!(fs.utimes(c"f", 1), Ok(()));
            assert_eq!(fs.access(c"f"), Ok(()));
            assert_eq!(fs.lookup(c"f"), Ok(0));
            assert_eq!(fs.close(fd), Ok(()));
            assert_eq!(fs.unlink(c"f"), Ok(()));
            assert_eq!(fs.rmdir(c"d"), Ok(()));
            fs.sync();
        }
        assert_eq!(buffer, [7; 100], "no byte is touched");
        assert!(fs.directory().is_none());
    }
}
