//! Making files and writing them: open, one write, fsync if asked for, close;
//! or writing files that another rank has made.

use std::os::fd::RawFd;

use rbench_core::random::DataStream;
use rbench_core::{FailureKind, OpKind};
use rbench_plan::meta::{Content, ItemOwner, Making};
use rbench_sys::engine::{NameRequest, NamesInFlight};
use rbench_sys::fs::OpenMode;
use rbench_sys::{AlignedBuffer, Fs};

use super::in_flight::{RingOp, Script};
use super::{ItemOp, OpContext, OpEntry, Places, buffer, read_whole};
use crate::content;
use crate::worker::Prepared;

/// `openat(O_CREAT …)`, `write`, `fsync`, `close`; or `mknodat`
pub const ROW: OpEntry = OpEntry {
    op: OpKind::Create,
    make,
};

/// `openat(O_WRONLY)`, `write`, `fsync`, `close`
pub const WRITE_ROW: OpEntry = OpEntry {
    op: OpKind::WriteFile,
    make,
};

fn make(scene: &OpContext, thread: u32) -> Prepared {
    let plan = &scene.plan;
    let of_existing = scene.info.op == OpKind::WriteFile;
    // What one rank makes for all is written by its owners afterwards.
    let writes = of_existing || !matches!(scene.phase.who, ItemOwner::FirstForAll);
    let length = if writes { plan.write.0 } else { 0 };
    let op = Create {
        op: scene.info.op,
        places: scene.places(false),
        content: match plan.content {
            Content::Fresh => Source::Fresh(DataStream::new(&scene.data_parts(thread))),
            Content::Packet { packet, seed } => Source::Packet(packet, seed),
        },
        mode: match plan.making {
            _ if of_existing => Some(OpenMode::WriteExisting),
            Making::New => Some(OpenMode::CreateNew),
            Making::Open => Some(OpenMode::ReadWrite),
            Making::Node => None,
        },
        direct: plan.direct,
        fsync: plan.fsync && writes,
        back: (plan.verify_write && writes)
            .then(|| buffer(length, scene.info.op))
            .transpose()?,
        buffer: buffer(length, scene.info.op)?,
        closes_apart: plan.is_table(),
        open: None,
    };
    scene.ring_runner(op, thread)
}

/// Where the data comes from.
enum Source {
    Fresh(DataStream),
    Packet(rbench_plan::meta::Packet, i32),
}

impl Source {
    /// What the item at which `places` is aimed is to hold.
    #[inline]
    fn fill(&mut self, places: &Places, buffer: &mut [u8]) {
        match self {
            Source::Fresh(data) => data.fill(buffer),
            Source::Packet(packet, seed) => {
                let identity = places.identity(*seed);
                content::fill(*packet, identity, buffer.len() as u64, buffer);
            }
        }
    }
}

struct Create {
    op: OpKind,
    places: Places,
    content: Source,
    /// `None`: a node is made and not opened.
    mode: Option<OpenMode>,
    direct: bool,
    fsync: bool,
    buffer: AlignedBuffer,
    /// What was written is read back here.
    back: Option<AlignedBuffer>,
    /// Closing is timed on its own.
    closes_apart: bool,
    /// The file that is to be closed then.
    open: Option<RawFd>,
}

impl Create {
    fn write(&self, fs: &dyn Fs, fd: i32) -> Result<(), FailureKind> {
        if !self.buffer.is_empty() && fs.write(fd, &self.buffer)? < self.buffer.len() {
            return Err(FailureKind::Short);
        }
        if self.fsync {
            fs.fsync(fd)?;
        }
        Ok(())
    }
}

impl ItemOp for Create {
    fn prepare(&mut self, index: u64) {
        self.places.item(index);
        self.content.fill(&self.places, &mut self.buffer);
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        let path = self.places.current();
        let Some(mode) = self.mode else {
            fs.mknod(path)?;
            return Ok(0);
        };
        let fd = fs.open(path, mode, self.direct)?;
        if self.closes_apart {
            self.open = Some(fd);
            return Ok(0);
        }
        let written = self.write(fs, fd);
        // Closed in any case; of two errors the first is told.
        let closed = fs.close(fd).map_err(FailureKind::from);
        written.and(closed)?;
        Ok(self.buffer.len() as u64)
    }

    fn has_second_step(&self) -> bool {
        self.closes_apart
    }

    fn act_again(&mut self, fs: &dyn Fs) -> Result<(), FailureKind> {
        match self.open.take() {
            Some(fd) => Ok(fs.close(fd)?),
            None => Ok(()),
        }
    }

    fn check(&mut self, fs: &dyn Fs) -> Result<(), (FailureKind, String)> {
        let Some(back) = &mut self.back else {
            return Ok(());
        };
        back.fill(0);
        read_whole(fs, self.places.current(), self.direct, back)
            .map_err(|kind| (kind, "reading back".to_owned()))?;
        match content::difference(back, &self.buffer) {
            None => Ok(()),
            Some(what) => Err((FailureKind::Mismatch, what)),
        }
    }

    fn path(&mut self) -> String {
        self.places.to_text()
    }

    fn op(&self) -> OpKind {
        self.op
    }
}

impl RingOp for Create {
    fn script(&self) -> Script {
        // The plan makes no nodes in a ring.
        let mode = self.mode.unwrap_or(OpenMode::CreateNew);
        let direct = self.direct;
        let mut requests = vec![NameRequest::Open { mode, direct }];
        if !self.buffer.is_empty() {
            requests.push(NameRequest::Write);
        }
        if self.fsync {
            requests.push(NameRequest::Fsync);
        }
        requests.push(NameRequest::Close);
        Script::of(&requests, self.buffer.len())
    }

    fn load(&mut self, index: u64, slot: usize, ring: &mut NamesInFlight) {
        self.places.item(index);
        ring.set_path(slot, self.places.current());
        self.content.fill(&self.places, ring.data(slot));
    }

    fn settle(
        &mut self,
        _index: u64,
        _slot: usize,
        moved: usize,
        _ring: &mut NamesInFlight,
    ) -> Result<u64, (FailureKind, String)> {
        match moved < self.buffer.len() {
            true => Err((FailureKind::Short, String::new())),
            false => Ok(moved as u64),
        }
    }
}
