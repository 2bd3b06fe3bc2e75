//! Small writes that are synced one by one, and reading what they built.

use std::os::fd::RawFd;

use rbench_core::random::key;
use rbench_core::{FailureKind, OpKind};
use rbench_plan::meta::Packet;
use rbench_sys::{AlignedBuffer, Fs, OpenMode};

use super::opened::{FileCall, runner};
use super::{OpContext, OpEntry, Places, buffer};
use crate::content;
use crate::worker::Prepared;

/// `pwrite` of 1 KiB, `fsync`; in as many turns as the phase builds.
pub const WRITE_ROW: OpEntry = OpEntry {
    op: OpKind::WriteSync,
    make: |scene, thread| {
        let op = Write {
            data: Data::of(scene)?,
        };
        runner(scene, thread, op)
    },
};

/// `pread` of all that was built.
pub const READ_ROW: OpEntry = OpEntry {
    op: OpKind::Read,
    make: make_reader,
};

/// Bytes of one write.
const WRITE: usize = 1 << 10;

fn make_reader(scene: &OpContext, thread: u32) -> Prepared {
    let expected = Data::of(scene)?;
    let op = Read {
        found: buffer(expected.buffer.len() as u64, OpKind::Read)?,
        expected,
        nothing_behind: scene.fs.directory().is_none(),
    };
    runner(scene, thread, op)
}

/// What is built of a file.
struct Data {
    seed: i32,
    buffer: AlignedBuffer,
}

impl Data {
    fn of(scene: &OpContext) -> Result<Data, rbench_core::Failure> {
        Ok(Data {
            seed: key(&scene.seed) as i32,
            buffer: buffer(scene.info.kind.builds(), scene.info.op)?,
        })
    }

    fn aim(&mut self, places: &Places) {
        let identity = places.identity(self.seed);
        let length = self.buffer.len() as u64;
        content::fill(Packet::Unique, identity, length, &mut self.buffer);
    }
}

struct Write {
    data: Data,
}

impl FileCall for Write {
    const OP: OpKind = OpKind::WriteSync;
    const MODE: OpenMode = OpenMode::WriteExisting;

    fn aim(&mut self, places: &Places) {
        self.data.aim(places);
    }

    fn call(&mut self, fs: &dyn Fs, fd: RawFd) -> Result<u64, FailureKind> {
        let mut offset = 0;
        for part in self.data.buffer.chunks(WRITE) {
            if fs.write_at(fd, part, offset)? < part.len() {
                return Err(FailureKind::Short);
            }
            fs.fsync(fd)?;
            offset += part.len() as u64;
        }
        Ok(offset)
    }
}

struct Read {
    expected: Data,
    found: AlignedBuffer,
    /// A file system that does nothing, or keeps no data, answers.
    nothing_behind: bool,
}

impl FileCall for Read {
    const OP: OpKind = OpKind::Read;
    const MODE: OpenMode = OpenMode::Read;
    const READS: bool = true;

    fn aim(&mut self, places: &Places) {
        self.expected.aim(places);
        // What is not overwritten by the read must not look right.
        for (stale, right) in self.found.iter_mut().zip(self.expected.buffer.iter()) {
            *stale = !right;
        }
    }

    fn call(&mut self, fs: &dyn Fs, fd: RawFd) -> Result<u64, FailureKind> {
        if fs.read_at(fd, &mut self.found, 0)? < self.found.len() {
            return Err(FailureKind::Short);
        }
        Ok(self.found.len() as u64)
    }

    fn check(&mut self) -> Result<(), (FailureKind, String)> {
        match content::difference(&self.found, &self.expected.buffer) {
            Some(what) if !self.nothing_behind => Err((FailureKind::Mismatch, what)),
            _ => Ok(()),
        }
    }
}
