//! Operations on the content of files: creating and writing them, or writing files that another rank
//! created, and reading them.

use std::ffi::CStr;

use rbench_core::random::{DataStream, key};
use rbench_core::{OpKind, OpenFlags, Progress};
use rbench_plan::meta::{Calls, Content, ItemOwner, Packet};
use rbench_sys::{AlignedBuffer, Fs, fs};

use super::{ItemOp, OpContext, Places, Why, buffer, mismatch};
use crate::content;
use crate::worker::Prepared;

/// Creates the runner of one worker of a phase of [`OpKind::Create`], [`OpKind::WriteFile`] or [`OpKind::WriteSync`].
pub fn make_writer(scene: &OpContext, thread: u32) -> Prepared {
    let (plan, op) = (&scene.plan, scene.info.op);
    let writes = op == OpKind::WriteFile || !matches!(scene.phase.who, ItemOwner::FirstForAll);
    let synced = op == OpKind::WriteSync;
    let writer = Writer {
        places: scene.places(scene.renamed && synced),
        source: match plan.content {
            _ if synced => Source::Packet(Packet::Unique, key(&scene.seed) as i32),
            Content::Fresh => Source::Fresh(DataStream::new(&scene.data_parts(thread))),
            Content::Packet { packet, seed } => Source::Packet(packet, seed),
        },
        direct: plan.direct,
        back: (plan.verify_write && writes && !synced)
            .then(|| buffer(plan.write.0, op))
            .transpose()?,
    };
    scene.runner(writer, thread)
}

/// Source of the data.
enum Source {
    Fresh(DataStream),
    Packet(Packet, i32),
}

struct Writer {
    places: Places,
    source: Source,
    direct: bool,
    /// Buffer for reading the data back, with `--verify-write`.
    back: Option<AlignedBuffer>,
}

impl Writer {
    /// Reads the file and compares it with `data`.
    #[inline(never)]
    fn read_back(&mut self, fs: &dyn Fs, data: &[u8]) -> Result<(), Why> {
        let Some(back) = &mut self.back else {
            return Ok(());
        };
        back.fill(0);
        let calls = Calls::reading(OpenFlags::READ.directly(self.direct), back.len() as u64);
        let parts = (calls.timed.as_slice(), back.len());
        let paths = (self.places.current(), c"");
        let read = fs::perform(fs, parts, paths, back, &mut None).outcome();
        read.map_err(|kind| (kind, "reading back".to_owned()))?;
        match content::difference(back, data) {
            None => Ok(()),
            Some(what) => mismatch(what),
        }
    }
}

impl ItemOp for Writer {
    #[inline(always)]
    fn aim(&mut self, index: u64) {
        self.places.item(index);
    }

    fn paths(&self) -> (&CStr, &CStr) {
        (self.places.current(), c"")
    }

    #[inline(always)]
    fn load(&mut self, data: &mut [u8]) {
        if data.is_empty() {
            return;
        }
        match &mut self.source {
            Source::Fresh(stream) => stream.fill(data),
            Source::Packet(packet, seed) => {
                let identity = self.places.identity(*seed);
                content::fill(*packet, identity, data.len() as u64, data);
            }
        }
    }

    #[inline(always)]
    fn check(&mut self, fs: &dyn Fs, data: &[u8]) -> Result<(), Why> {
        match self.back {
            None => Ok(()),
            Some(_) => self.read_back(fs, data),
        }
    }
}

/// Creates the runner of one worker of a phase of [`OpKind::ReadFile`] or [`OpKind::Read`].
pub fn make_reader(scene: &OpContext, thread: u32) -> Prepared {
    let (plan, op) = (&scene.plan, scene.info.op);
    let expected = match plan.content {
        // The recorder and the null file system store no content to compare.
        _ if op == OpKind::Read => scene.fs.directory().is_some().then(|| {
            let bytes = scene.info.builds;
            (Packet::Unique, key(&scene.seed) as i32, bytes, bytes)
        }),
        Content::Packet { packet, seed } if plan.verify_read => {
            Some((packet, seed, plan.content_length(), plan.read.0))
        }
        _ => None,
    };
    let expected = match expected {
        Some((packet, seed, file_length, read)) => Some(Expected {
            packet,
            seed,
            file_length,
            buffer: buffer(read, op)?,
        }),
        None => None,
    };
    let reader = Reader {
        places: scene.places(scene.renamed),
        // A read of 0 bytes reads no page.
        looks_at_cache: op == OpKind::Read || !plan.direct && plan.read.0 > 0,
        expected,
    };
    scene.runner(reader, thread)
}

/// Expected content of the file.
struct Expected {
    packet: Packet,
    seed: i32,
    /// Bytes.
    file_length: u64,
    buffer: AlignedBuffer,
}

struct Reader {
    places: Places,
    /// True if it reads through the page cache.
    looks_at_cache: bool,
    expected: Option<Expected>,
}

impl ItemOp for Reader {
    #[inline(always)]
    fn aim(&mut self, index: u64) {
        self.places.item(index);
        if let Some(expected) = &mut self.expected {
            let identity = self.places.identity(expected.seed);
            let (packet, length) = (expected.packet, expected.file_length);
            content::fill(packet, identity, length, &mut expected.buffer);
        }
    }

    fn paths(&self) -> (&CStr, &CStr) {
        (self.places.current(), c"")
    }

    fn load(&mut self, data: &mut [u8]) {
        // Bytes that the read leaves alone must not pass the comparison.
        if let Some(expected) = &self.expected {
            for (stale, right) in data.iter_mut().zip(expected.buffer.iter()) {
                *stale = !right;
            }
        }
    }

    fn looks(&self) -> bool {
        self.expected.is_some()
    }

    fn settle(&mut self, data: &mut [u8], progress: &Progress) -> Result<u64, Why> {
        let expected = self.expected.as_ref();
        match expected.and_then(|expected| content::difference(data, &expected.buffer)) {
            None => Ok(progress.moved()),
            Some(what) => mismatch(what),
        }
    }

    fn reads_through_cache(&self) -> bool {
        self.looks_at_cache
    }
}
