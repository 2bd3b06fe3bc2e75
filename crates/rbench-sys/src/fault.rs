//! A wrapper that makes chosen operations fail: for tests of what happens
//! then.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use rbench_core::OpKind;

use crate::fs::{Fs, OpenMode};
use crate::residency::Resident;

/// A call that a rule judges.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The operation; opening a file in any mode is [`OpKind::Open`].
    pub op: OpKind,
    /// Its (first) path; for a descriptor, the path that was opened.
    pub path: &'a CStr,
    /// How many calls of this operation came before.
    pub nth: u64,
}

/// Says with what a call is to fail; `None` lets it through. It may sleep.
pub type Rule = Box<dyn Fn(&Call<'_>) -> Option<Errno> + Send + Sync>;

/// Another [`Fs`] of which some operations fail. A failed operation does not
/// reach it, but for `close`: as on Linux, the file is closed all the same.
/// `sync` cannot fail: the rule may make it late, its answer is not used.
pub struct FaultFs<F> {
    inner: F,
    rule: Rule,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    calls: HashMap<OpKind, u64>,
    opened: HashMap<RawFd, CString>,
}

impl<F: Fs> FaultFs<F> {
    /// Fails what `rule` names.
    pub fn new(
        inner: F,
        rule: impl Fn(&Call<'_>) -> Option<Errno> + Send + Sync + 'static,
    ) -> FaultFs<F> {
        FaultFs {
            inner,
            rule: Box::new(rule),
            seen: Mutex::default(),
        }
    }

    /// Fails the call of `op` before which there were `nth`.
    pub fn nth(inner: F, op: OpKind, nth: u64, errno: Errno) -> FaultFs<F> {
        FaultFs::new(inner, move |call| {
            (call.op == op && call.nth == nth).then_some(errno)
        })
    }

    /// What is behind.
    pub fn inner(&self) -> &F {
        &self.inner
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn judge(&self, op: OpKind, path: &CStr) -> Result<(), Errno> {
        let nth = {
            let mut seen = self.seen();
            let count = seen.calls.entry(op).or_default();
            *count += 1;
            *count - 1
        };
        match (self.rule)(&Call { op, path, nth }) {
            Some(errno) => Err(errno),
            None => Ok(()),
        }
    }

    fn judge_fd(&self, op: OpKind, fd: RawFd) -> Result<(), Errno> {
        let path = self.seen().opened.get(&fd).cloned().unwrap_or_default();
        self.judge(op, &path)
    }
}

impl<F: Fs> Fs for FaultFs<F> {
    fn mkdir(&self, path: &CStr) -> Result<(), Errno> {
        self.judge(OpKind::Mkdir, path)?;
        self.inner.mkdir(path)
    }

    fn rmdir(&self, path: &CStr) -> Result<(), Errno> {
        self.judge(OpKind::Rmdir, path)?;
        self.inner.rmdir(path)
    }

    fn stat(&self, path: &CStr) -> Result<u64, Errno> {
        self.judge(OpKind::Stat, path)?;
        self.inner.stat(path)
    }

    fn rename(&self, from: &CStr, to: &CStr) -> Result<(), Errno> {
        self.judge(OpKind::Rename, from)?;
        self.inner.rename(from, to)
    }

    fn link(&self, from: &CStr, to: &CStr) -> Result<(), Errno> {
        self.judge(OpKind::Link, from)?;
        self.inner.link(from, to)
    }

    fn list(&self, path: &CStr, buffer: &mut [u8]) -> Result<u64, Errno> {
        self.judge(OpKind::List, path)?;
        self.inner.list(path, buffer)
    }

    fn open(&self, path: &CStr, mode: OpenMode, direct: bool) -> Result<RawFd, Errno> {
        self.judge(OpKind::Open, path)?;
        let fd = self.inner.open(path, mode, direct)?;
        self.seen().opened.insert(fd, path.to_owned());
        Ok(fd)
    }

    fn mknod(&self, path: &CStr) -> Result<(), Errno> {
        self.judge(OpKind::Mknod, path)?;
        self.inner.mknod(path)
    }

    fn close(&self, fd: RawFd) -> Result<(), Errno> {
        let judged = self.judge_fd(OpKind::Close, fd);
        self.seen().opened.remove(&fd);
        let closed = self.inner.close(fd);
        judged.and(closed)
    }

    fn unlink(&self, path: &CStr) -> Result<(), Errno> {
        self.judge(OpKind::Unlink, path)?;
        self.inner.unlink(path)
    }

    fn write(&self, fd: RawFd, buffer: &[u8]) -> Result<usize, Errno> {
        self.judge_fd(OpKind::Write, fd)?;
        self.inner.write(fd, buffer)
    }

    fn read(&self, fd: RawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.judge_fd(OpKind::Read, fd)?;
        self.inner.read(fd, buffer)
    }

    fn fsync(&self, fd: RawFd) -> Result<(), Errno> {
        self.judge_fd(OpKind::Fsync, fd)?;
        self.inner.fsync(fd)
    }

    fn fdatasync(&self, fd: RawFd) -> Result<(), Errno> {
        self.judge_fd(OpKind::Fdatasync, fd)?;
        self.inner.fdatasync(fd)
    }

    fn sync(&self) {
        self.judge(OpKind::Sync, c"").ok();
        self.inner.sync();
    }

    fn truncate(&self, fd: RawFd, length: u64) -> Result<(), Errno> {
        self.judge_fd(OpKind::Truncate, fd)?;
        self.inner.truncate(fd, length)
    }

    fn symlink(&self, target: &CStr, path: &CStr) -> Result<(), Errno> {
        self.judge(OpKind::Symlink, path)?;
        self.inner.symlink(target, path)
    }

    fn readlink(&self, path: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.judge(OpKind::Readlink, path)?;
        self.inner.readlink(path, buffer)
    }

    fn chmod(&self, path: &CStr, mode: u32) -> Result<(), Errno> {
        self.judge(OpKind::Chmod, path)?;
        self.inner.chmod(path, mode)
    }

    fn utimes(&self, path: &CStr, seconds: i64) -> Result<(), Errno> {
        self.judge(OpKind::Utimes, path)?;
        self.inner.utimes(path, seconds)
    }

    fn access(&self, path: &CStr) -> Result<(), Errno> {
        self.judge(OpKind::Access, path)?;
        self.inner.access(path)
    }

    fn lookup(&self, path: &CStr) -> Result<u64, Errno> {
        self.judge(OpKind::Lookup, path)?;
        self.inner.lookup(path)
    }

    fn getattr(&self, fd: RawFd) -> Result<u64, Errno> {
        self.judge_fd(OpKind::Getattr, fd)?;
        self.inner.getattr(fd)
    }

    fn statfs(&self, fd: RawFd) -> Result<u64, Errno> {
        self.judge_fd(OpKind::Statfs, fd)?;
        self.inner.statfs(fd)
    }

    fn setxattr(&self, fd: RawFd, name: &CStr, value: &[u8]) -> Result<(), Errno> {
        self.judge_fd(OpKind::Setxattr, fd)?;
        self.inner.setxattr(fd, name, value)
    }

    fn getxattr(&self, fd: RawFd, name: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.judge_fd(OpKind::Getxattr, fd)?;
        self.inner.getxattr(fd, name, buffer)
    }

    fn listxattr(&self, fd: RawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.judge_fd(OpKind::Listxattr, fd)?;
        self.inner.listxattr(fd, buffer)
    }

    fn removexattr(&self, fd: RawFd, name: &CStr) -> Result<(), Errno> {
        self.judge_fd(OpKind::Removexattr, fd)?;
        self.inner.removexattr(fd, name)
    }

    fn write_at(&self, fd: RawFd, buffer: &[u8], offset: u64) -> Result<usize, Errno> {
        self.judge_fd(OpKind::Write, fd)?;
        self.inner.write_at(fd, buffer, offset)
    }

    fn read_at(&self, fd: RawFd, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        self.judge_fd(OpKind::Read, fd)?;
        self.inner.read_at(fd, buffer, offset)
    }

    fn resident(&self, fd: RawFd) -> Option<Resident> {
        self.inner.resident(fd)
    }

    fn directory(&self) -> Option<&OwnedFd> {
        self.inner.directory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::TraceFs;

    #[test]
    fn the_nth_call_of_an_operation_fails_and_does_not_get_through() {
        let fs = FaultFs::nth(TraceFs::default(), OpKind::Mkdir, 1, Errno::ENOSPC);
        assert_eq!(fs.mkdir(c"a"), Ok(()));
        assert_eq!(fs.stat(c"a"), Ok(0));
        assert_eq!(fs.mkdir(c"b"), Err(Errno::ENOSPC));
        assert_eq!(fs.mkdir(c"c"), Ok(()));
        assert_eq!(fs.inner().lines(), ["mkdir a", "stat a", "mkdir c"]);
    }

    #[test]
    fn a_rule_sees_the_path_that_a_descriptor_was_opened_with() {
        let fs = FaultFs::new(TraceFs::default(), |call| {
            (call.path == c"bad" && call.op != OpKind::Open).then_some(Errno::EIO)
        });
        let open = |path| {
            fs.open(path, OpenMode::ReadWrite, false)
                .expect("opening is let through")
        };
        let (good, bad) = (open(c"good"), open(c"bad"));
        assert_eq!(fs.write(good, b"x"), Ok(1));
        assert_eq!(fs.write(bad, b"x"), Err(Errno::EIO));
        assert_eq!(fs.read(bad, &mut [0]), Err(Errno::EIO));
        assert_eq!(fs.fsync(bad), Err(Errno::EIO));
        assert_eq!(fs.truncate(bad, 1), Err(Errno::EIO));
        assert_eq!(fs.unlink(c"bad"), Err(Errno::EIO));
        assert_eq!(fs.close(good), Ok(()));
    }

    #[test]
    fn a_node_that_is_refused_is_not_made() {
        let fs = FaultFs::nth(TraceFs::default(), OpKind::Mknod, 0, Errno::EDQUOT);
        assert_eq!(fs.mknod(c"f"), Err(Errno::EDQUOT));
        assert_eq!(fs.stat(c"f"), Err(Errno::ENOENT));
        assert_eq!(fs.mknod(c"f"), Ok(()));
    }

    #[test]
    fn a_sync_is_judged_and_gets_through_all_the_same() {
        let fs = FaultFs::nth(TraceFs::default(), OpKind::Sync, 0, Errno::EIO);
        fs.sync();
        assert_eq!(fs.inner().lines(), ["sync"]);
        assert_eq!(fs.seen().calls.get(&OpKind::Sync), Some(&1));
    }

    #[test]
    fn a_failed_close_closes_all_the_same() {
        let fs = FaultFs::nth(TraceFs::default(), OpKind::Close, 0, Errno::EIO);
        let fd = fs
            .open(c"f", OpenMode::Write, false)
            .expect("opening is let through");
        assert_eq!(fs.close(fd), Err(Errno::EIO));
        assert_eq!(fs.write(fd, b"x"), Err(Errno::EBADF));
    }
}
