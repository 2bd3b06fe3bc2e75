//! Metadata operations that all succeed and do nothing. What remains is the
//! cost of the tool itself, as with the engine `null`.

use std::os::fd::{OwnedFd, RawFd};

use nix::errno::Errno;
use rbench_core::Call;

use crate::fs::{Fs, Operands};

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
    fn call(&self, call: Call, on: Operands<'_>) -> Result<u64, Errno> {
        Ok(match call {
            Call::Open(_) => FD as u64,
            Call::Read | Call::ReadAt(_) | Call::Write | Call::WriteAt(_) => {
                on.data.bytes().len() as u64
            }
            _ => 0,
        })
    }

    fn directory(&self) -> Option<&OwnedFd> {
        None
    }
}

#[cfg(test)]
mod tests {
    use rbench_core::OpenFlags;

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
            let fd = fs.open(c"f", OpenFlags::CREATE_NEW.directly(true));
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
