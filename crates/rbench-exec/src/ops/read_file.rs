//! Opening files, reading what was asked for in one call, closing them.

use rbench_core::residency::Pages;
use rbench_core::{FailureKind, OpKind};
use rbench_plan::meta::{Content, Packet};
use rbench_sys::engine::{NameRequest, NamesInFlight};
use rbench_sys::{AlignedBuffer, Fs, OpenMode};

use super::in_flight::{RingOp, Script};
use super::{ItemOp, OpContext, OpEntry, Places, buffer, read_whole};
use crate::content;
use crate::worker::Prepared;

/// `openat(O_RDONLY)`, `read`, `close`
pub const ROW: OpEntry = OpEntry {
    op: OpKind::ReadFile,
    make,
};

fn make(scene: &OpContext, thread: u32) -> Prepared {
    let length = scene.plan.read.0;
    let expected = match scene.plan.content {
        Content::Packet { packet, seed } if scene.plan.verify_read => Some(Expected {
            packet,
            seed,
            file_length: scene.plan.content_length(),
            buffer: buffer(length, OpKind::ReadFile)?,
        }),
        _ => None,
    };
    let op = ReadFile {
        places: scene.places(scene.renamed),
        buffer: buffer(length, OpKind::ReadFile)?,
        direct: scene.plan.direct,
        expected,
    };
    scene.ring_runner(op, thread)
}

/// What should be in the prepared file.
struct Expected {
    packet: Packet,
    seed: i32,
    /// Bytes.
    file_length: u64,
    buffer: AlignedBuffer,
}

impl Expected {
    fn fill(&mut self, places: &Places) {
        let identity = places.identity(self.seed);
        content::fill(self.packet, identity, self.file_length, &mut self.buffer);
    }
}

struct ReadFile {
    places: Places,
    buffer: AlignedBuffer,
    direct: bool,
    expected: Option<Expected>,
}

impl ItemOp for ReadFile {
    fn prepare(&mut self, index: u64) {
        self.places.item(index);
        if let Some(expected) = &mut self.expected {
            expected.fill(&self.places);
            // What is not overwritten by the read must not look right.
            for (stale, right) in self.buffer.iter_mut().zip(expected.buffer.iter()) {
                *stale = !right;
            }
        }
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        read_whole(fs, self.places.current(), self.direct, &mut self.buffer)?;
        Ok(self.buffer.len() as u64)
    }

    fn check(&mut self, _fs: &dyn Fs) -> Result<(), (FailureKind, String)> {
        let expected = self.expected.as_ref();
        match expected.and_then(|e| content::difference(&self.buffer, &e.buffer)) {
            None => Ok(()),
            Some(what) => Err((FailureKind::Mismatch, what)),
        }
    }

    fn peek(&mut self, index: u64, fs: &dyn Fs) -> Option<Pages> {
        // Of an empty read no page is asked for.
        if self.direct || self.buffer.is_empty() {
            return None;
        }
        self.places.item(index);
        super::peek(fs, self.places.current())
    }

    fn path(&mut self) -> String {
        self.places.to_text()
    }

    fn op(&self) -> OpKind {
        OpKind::ReadFile
    }
}

impl RingOp for ReadFile {
    fn script(&self) -> Script {
        let (mode, direct) = (OpenMode::Read, self.direct);
        let mut requests = vec![NameRequest::Open { mode, direct }];
        if !self.buffer.is_empty() {
            requests.push(NameRequest::Read);
        }
        requests.push(NameRequest::Close);
        Script::of(&requests, self.buffer.len())
    }

    fn load(&mut self, index: u64, slot: usize, ring: &mut NamesInFlight) {
        self.prepare(index);
        ring.set_path(slot, self.places.current());
        if self.expected.is_some() {
            ring.data(slot).copy_from_slice(&self.buffer);
        }
    }

    fn settle(
        &mut self,
        index: u64,
        slot: usize,
        moved: usize,
        ring: &mut NamesInFlight,
    ) -> Result<u64, (FailureKind, String)> {
        if moved < self.buffer.len() {
            return Err((FailureKind::Short, String::new()));
        }
        if let Some(expected) = &mut self.expected {
            // Others were prepared since.
            self.places.item(index);
            expected.fill(&self.places);
            if let Some(what) = content::difference(ring.data(slot), &expected.buffer) {
                return Err((FailureKind::Mismatch, what));
            }
        }
        Ok(moved as u64)
    }
}
