//! Opening files, reading what was asked for in one call, closing them.

use rbench_core::residency::Pages;
use rbench_core::{FailureKind, OpKind};
use rbench_plan::meta::{Content, Packet};
use rbench_sys::{AlignedBuffer, Fs};

use super::{ItemOp, ItemRunner, OpContext, OpEntry, Places, buffer, read_whole};
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
    Ok(Box::new(ItemRunner::new(
        op,
        scene.fs.clone(),
        scene.visit(thread),
    )))
}

/// What should be in the prepared file.
struct Expected {
    packet: Packet,
    seed: i32,
    /// Bytes.
    file_length: u64,
    buffer: AlignedBuffer,
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
            let identity = self.places.identity(expected.seed);
            content::fill(
                expected.packet,
                identity,
                expected.file_length,
                &mut expected.buffer,
            );
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
