//! Calls on files that are open: each is opened before the timer starts and closed
//! after it has ended, so that nothing but the call is timed.

use std::os::fd::RawFd;
use std::sync::Arc;

use nix::errno::Errno;
use rbench_core::residency::Pages;
use rbench_core::{FailureKind, OpKind};
use rbench_sys::engine::{NameRequest, NamesInFlight};
use rbench_sys::{Fs, OpenMode};

use super::in_flight::{RingOp, Script};
use super::{ItemOp, OpContext, OpEntry, Places};
use crate::worker::Prepared;

/// `statx(AT_EMPTY_PATH | AT_STATX_FORCE_SYNC)`
pub const GETATTR_ROW: OpEntry = OpEntry {
    op: OpKind::Getattr,
    make: |scene, thread| runner(scene, thread, Getattr),
};

/// `ftruncate`
pub const TRUNCATE_ROW: OpEntry = OpEntry {
    op: OpKind::Truncate,
    make: |scene, thread| {
        // What was written stays.
        let length = scene.plan.write.0.saturating_add(LONGER);
        ring_runner(scene, thread, Truncate { length })
    },
};

/// `fstatfs`
pub const STATFS_ROW: OpEntry = OpEntry {
    op: OpKind::Statfs,
    make: |scene, thread| runner(scene, thread, Statfs),
};

/// Bytes by which truncating makes a file longer.
const LONGER: u64 = 4096;

/// A call on an open file.
pub trait FileCall {
    /// The operation.
    const OP: OpKind;
    /// How the file is opened.
    const MODE: OpenMode;
    /// Whether it reads the file through the page cache.
    const READS: bool = false;

    /// Gets ready for the item at which `places` is aimed. Outside the timer.
    fn aim(&mut self, _places: &Places) {}

    /// The call itself; the bytes that it moved. Inside the timer.
    ///
    /// # Errors
    /// Why it does not count as done.
    fn call(&mut self, fs: &dyn Fs, fd: RawFd) -> Result<u64, FailureKind>;

    /// Looks at what it delivered. Outside the timer.
    ///
    /// # Errors
    /// What is wrong with it, with details.
    fn check(&mut self) -> Result<(), (FailureKind, String)> {
        Ok(())
    }
}

/// A call on an open file that a ring can perform.
pub trait RingCall: FileCall {
    /// Bytes of data of each call.
    const BLOCK: usize = 0;

    /// Its requests.
    fn requests(&self) -> Vec<NameRequest>;

    /// Puts the data of what was aimed at into `data`. Outside the timer.
    fn load(&self, _data: &mut [u8]) {}

    /// Looks at the first `length` bytes of `data`, which it delivered for what was aimed at.
    /// Outside the timer.
    ///
    /// # Errors
    /// What is wrong with it, with details.
    fn settle(&self, _data: &[u8], _length: usize) -> Result<(), (FailureKind, String)> {
        Ok(())
    }
}

/// A runner of `call` over the files that worker `thread` visits.
pub fn runner<C: FileCall + 'static>(scene: &OpContext, thread: u32, call: C) -> Prepared {
    scene.runner(Opened::new(scene, call), thread)
}

/// The same, with several in flight where the plan says so.
pub fn ring_runner<C: RingCall + 'static>(scene: &OpContext, thread: u32, call: C) -> Prepared {
    scene.ring_runner(Opened::new(scene, call), thread)
}

struct Opened<C> {
    places: Places,
    fs: Arc<dyn Fs>,
    /// The file, while it is open, or why it is not.
    file: Result<RawFd, Errno>,
    call: C,
}

impl<C> Opened<C> {
    fn new(scene: &OpContext, call: C) -> Opened<C> {
        Opened {
            places: scene.places(scene.renamed),
            fs: scene.fs.clone(),
            file: Err(Errno::EBADF),
            call,
        }
    }

    fn close(&mut self) -> Result<(), (FailureKind, String)> {
        match std::mem::replace(&mut self.file, Err(Errno::EBADF)) {
            Ok(fd) => {
                let closed = self.fs.close(fd);
                closed.map_err(|errno| (errno.into(), "closing it, untimed".to_owned()))
            }
            Err(_) => Ok(()),
        }
    }
}

impl<C: FileCall> ItemOp for Opened<C> {
    fn prepare(&mut self, index: u64) {
        // Open if the call on the file before failed, which is what is told.
        let _ = self.close();
        self.places.item(index);
        self.call.aim(&self.places);
        self.file = self.fs.open(self.places.current(), C::MODE, false);
    }

    fn calls_untimed(&self) -> bool {
        true
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        self.call.call(fs, self.file?)
    }

    fn check(&mut self, _fs: &dyn Fs) -> Result<(), (FailureKind, String)> {
        let checked = self.call.check();
        let closed = self.close();
        checked.and(closed)
    }

    fn finish(&mut self, _fs: &dyn Fs) -> Result<(), (FailureKind, String)> {
        self.close()
    }

    fn peek(&mut self, index: u64, fs: &dyn Fs) -> Option<Pages> {
        if !C::READS {
            return None;
        }
        self.places.item(index);
        super::peek(fs, self.places.current())
    }

    fn path(&mut self) -> String {
        self.places.to_text()
    }

    fn op(&self) -> OpKind {
        C::OP
    }
}

impl<C: RingCall> RingOp for Opened<C> {
    fn script(&self) -> Script {
        let (mode, direct) = (C::MODE, false);
        Script {
            before: vec![NameRequest::Open { mode, direct }],
            timed: self.call.requests(),
            after: vec![NameRequest::Close],
            block: C::BLOCK,
        }
    }

    fn load(&mut self, index: u64, slot: usize, ring: &mut NamesInFlight) {
        self.places.item(index);
        self.call.aim(&self.places);
        ring.set_path(slot, self.places.current());
        self.call.load(ring.data(slot));
    }

    fn settle(
        &mut self,
        index: u64,
        slot: usize,
        moved: usize,
        ring: &mut NamesInFlight,
    ) -> Result<u64, (FailureKind, String)> {
        // Others were prepared since.
        self.places.item(index);
        self.call.aim(&self.places);
        self.call.settle(ring.data(slot), moved).map(|()| 0)
    }
}

struct Getattr;

impl FileCall for Getattr {
    const OP: OpKind = OpKind::Getattr;
    const MODE: OpenMode = OpenMode::Read;

    fn call(&mut self, fs: &dyn Fs, fd: RawFd) -> Result<u64, FailureKind> {
        fs.getattr(fd)?;
        Ok(0)
    }
}

struct Truncate {
    /// The length to be, in bytes.
    length: u64,
}

impl FileCall for Truncate {
    const OP: OpKind = OpKind::Truncate;
    const MODE: OpenMode = OpenMode::WriteExisting;

    fn call(&mut self, fs: &dyn Fs, fd: RawFd) -> Result<u64, FailureKind> {
        fs.truncate(fd, self.length)?;
        Ok(0)
    }
}

impl RingCall for Truncate {
    fn requests(&self) -> Vec<NameRequest> {
        vec![NameRequest::Truncate(self.length)]
    }
}

struct Statfs;

impl FileCall for Statfs {
    const OP: OpKind = OpKind::Statfs;
    const MODE: OpenMode = OpenMode::Read;

    fn call(&mut self, fs: &dyn Fs, fd: RawFd) -> Result<u64, FailureKind> {
        fs.statfs(fd)?;
        Ok(0)
    }
}
