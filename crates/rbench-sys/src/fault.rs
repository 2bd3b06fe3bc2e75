//! A wrapper that makes chosen operations fail, to test the consequences.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use rbench_core::{Call, OpKind};

use crate::fs::{Fs, Operands};
use crate::residency::Resident;

/// A call that a rule judges.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// The operation; opening a file in any mode is [`OpKind::Open`].
    pub op: OpKind,
    /// Its (first) path; for a descriptor, the path of its open.
    pub path: &'a CStr,
    /// Number of earlier calls of this operation.
    pub nth: u64,
}

/// Rule that returns the error of a call; `None` lets it through. It may sleep.
pub type Rule = Box<dyn Fn(&Judged<'_>) -> Option<Errno> + Send + Sync>;

/// Wrapper of another [`Fs`] in which some operations fail. A failed operation does
/// not reach it, except for `close`: as on Linux, the file is closed anyway. `sync`
/// cannot fail: the rule may delay it, its answer is ignored.
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
    /// Fails the calls that `rule` selects.
    pub fn new(
        inner: F,
        rule: impl Fn(&Judged<'_>) -> Option<Errno> + Send + Sync + 'static,
    ) -> FaultFs<F> {
        FaultFs {
            inner,
            rule: Box::new(rule),
            seen: Mutex::default(),
        }
    }

    /// Fails the call of `op` after `nth` earlier ones.
    pub fn nth(inner: F, op: OpKind, nth: u64, errno: Errno) -> FaultFs<F> {
        FaultFs::new(inner, move |call| {
            (call.op == op && call.nth == nth).then_some(errno)
        })
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
        match (self.rule)(&Judged { op, path, nth }) {
            Some(errno) => Err(errno),
            None => Ok(()),
        }
    }
}

impl<F: Fs> Fs for FaultFs<F> {
    fn call(&self, call: &Call, on: Operands<'_>) -> Result<u64, Errno> {
        let (path, fd) = (on.path, on.fd);
        let judged = match call.needs_open() {
            true => {
                let opened = self.seen().opened.get(&fd).cloned();
                self.judge(call.op(), &opened.unwrap_or_default())
            }
            false => self.judge(call.op(), path),
        };
        match call {
            Call::Close => {
                self.seen().opened.remove(&fd);
                let closed = self.inner.call(call, on);
                judged.and(closed)
            }
            Call::Sync => self.inner.call(call, on),
            Call::Open(_) => {
                judged?;
                let fd = self.inner.call(call, on)?;
                self.seen().opened.insert(fd as RawFd, path.to_owned());
                Ok(fd)
            }
            _ => {
                judged?;
                self.inner.call(call, on)
            }
        }
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
    use rbench_core::{By, OpenFlags};

    use super::*;
    use crate::trace::TraceFs;

    #[test]
    fn the_nth_call_of_an_operation_fails_and_does_not_get_through() {
        let fs = FaultFs::nth(TraceFs::default(), OpKind::Mkdir, 1, Errno::ENOSPC);
        assert_eq!(fs.on_path(Call::MKDIR, c"a"), Ok(0));
        assert_eq!(fs.on_path(Call::Stat(By::Link), c"a"), Ok(0));
        assert_eq!(fs.on_path(Call::MKDIR, c"b"), Err(Errno::ENOSPC));
        assert_eq!(fs.on_path(Call::MKDIR, c"c"), Ok(0));
        assert_eq!(fs.inner.lines(), ["mkdir a", "stat a", "mkdir c"]);
    }

    #[test]
    fn a_rule_sees_the_path_that_a_descriptor_was_opened_with() {
        let fs = FaultFs::new(TraceFs::default(), |call| {
            (call.path == c"bad" && call.op != OpKind::Open).then_some(Errno::EIO)
        });
        let open = |path| {
            fs.open(path, OpenFlags::READ_WRITE)
                .expect("opening is let through")
        };
        let (good, bad) = (open(c"good"), open(c"bad"));
        assert_eq!(fs.sending(Call::Write, good, b"x"), Ok(1));
        assert_eq!(fs.sending(Call::Write, bad, b"x"), Err(Errno::EIO));
        assert_eq!(fs.receiving(Call::Read, bad, &mut [0]), Err(Errno::EIO));
        assert_eq!(fs.on_file(Call::Fsync, bad), Err(Errno::EIO));
        assert_eq!(
            fs.on_file(Call::Truncate(By::File, 1), bad),
            Err(Errno::EIO)
        );
        assert_eq!(fs.on_path(Call::Unlink, c"bad"), Err(Errno::EIO));
        assert_eq!(fs.close(good), Ok(()));
    }

    #[test]
    fn a_node_that_is_refused_is_not_made() {
        let fs = FaultFs::nth(TraceFs::default(), OpKind::Mknod, 0, Errno::EDQUOT);
        assert_eq!(fs.on_path(Call::MKNOD, c"f"), Err(Errno::EDQUOT));
        assert_eq!(fs.on_path(Call::Stat(By::Link), c"f"), Err(Errno::ENOENT));
        assert_eq!(fs.on_path(Call::MKNOD, c"f"), Ok(0));
    }

    #[test]
    fn a_sync_is_judged_and_gets_through_all_the_same() {
        let fs = FaultFs::nth(TraceFs::default(), OpKind::Sync, 0, Errno::EIO);
        assert_eq!(fs.on_path(Call::Sync, c""), Ok(0));
        assert_eq!(fs.inner.lines(), ["sync"]);
        assert_eq!(fs.seen().calls.get(&OpKind::Sync), Some(&1));
    }

    #[test]
    fn a_failed_close_closes_all_the_same() {
        let fs = FaultFs::nth(TraceFs::default(), OpKind::Close, 0, Errno::EIO);
        let fd = fs
            .open(c"f", OpenFlags::WRITE)
            .expect("opening is let through");
        assert_eq!(fs.close(fd), Err(Errno::EIO));
        assert_eq!(fs.sending(Call::Write, fd, b"x"), Err(Errno::EBADF));
    }
}
