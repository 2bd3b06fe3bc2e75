//! The small-file form: each file is opened, moved whole, synced if asked for
//! and closed; the latency is that of the whole.

use std::ffi::CStr;

use rbench_core::outcome::Retries;
use rbench_core::{FailureKind, OpKind, OpenFlags};
use rbench_plan::io::FsyncRule;
use rbench_plan::tree::Paths;
use rbench_sys::engine::Completion;
use rbench_sys::{Engine, Fs, Request, Transfer};

use crate::ack::journal::Write;
use crate::ack::{Kind, Log};
use crate::data::Data;
use crate::ops::ItemOp;
use crate::verify::Stamps;

/// Moves one small file after another.
pub struct SmallFile {
    /// Whether it writes.
    pub write: bool,
    /// Paths of the files.
    pub paths: Paths,
    /// Moves the blocks; its slot holds a whole file.
    pub engine: Box<dyn Engine>,
    /// Length of a file in bytes.
    pub size: u64,
    /// Length of a block in bytes.
    pub block: u64,
    /// O_DIRECT.
    pub direct: bool,
    /// Whether the engine maps the files: they get their length first.
    pub mapped: bool,
    /// When it is synced: `End` and `Every(_)` once for each file.
    pub fsync: FsyncRule,
    /// Data for writes that are not stamped.
    pub data: Data,
    /// Whether each file is filled with new data; else, and without stamps, all
    /// hold the same.
    pub refill: bool,
    /// Stamps, with `--verify`.
    pub stamps: Option<Stamps>,
    /// Where writes and syncs are taken down, with `--ack-journal`.
    pub log: Option<Log>,
    /// Files prepared for writing so far.
    pub written: u64,
    /// Whether what was to be written could be recorded.
    pub announced: bool,
    /// Number of the worker that owns the files, for stamps.
    pub owner: u64,
    /// The prepared file.
    pub index: u64,
    /// Completions of one block.
    pub done: Vec<Completion>,
}

/// Does one request in slot 0; fewer bytes than asked for are a failure.
/// `done` is empty before and after.
fn one_request(
    engine: &mut dyn Engine,
    done: &mut Vec<Completion>,
    request: Request,
) -> Result<(), FailureKind> {
    let got = engine.perform(request, done)??;
    if got < request.length {
        Err(FailureKind::Short)
    } else {
        Ok(())
    }
}

impl SmallFile {
    /// Offset and length of each block.
    fn blocks(&self) -> impl Iterator<Item = (u64, usize)> + use<> {
        let (size, block) = (self.size, self.block);
        (0..size.div_ceil(block)).map(move |i| {
            let offset = i * block;
            (offset, block.min(size - offset) as usize)
        })
    }

    fn buffer(&mut self, offset: u64, length: usize) -> &mut [u8] {
        &mut self.engine.buffer(0)[offset as usize..][..length]
    }

    /// The number of the prepared file.
    fn file(&self) -> u64 {
        (self.owner << 32) | self.index
    }

    /// What the prepared file is written as.
    fn generation(&self) -> u64 {
        let stamps = self.stamps.as_ref();
        stamps.map_or(0, |stamps| stamps.generation(self.written))
    }

    fn syncs(&self) -> bool {
        matches!(self.fsync, FsyncRule::End | FsyncRule::Every(_))
    }

    /// The prepared file, whole, as a journal names it.
    fn whole(&self) -> Write {
        Write {
            file: self.file(),
            offset: 0,
            generation: self.generation(),
            length: self.size,
        }
    }

    /// Records that the prepared file will be written.
    fn announce(&mut self) {
        if let Some(log) = &self.log {
            self.announced =
                log.file(Kind::Opened, self.file()) && log.write(Kind::WriteStarted, self.whole());
        }
    }

    /// Records that the prepared file was written, and synced if it was to
    /// be: the write was acknowledged before the sync began.
    fn conclude(&self) {
        if let Some(log) = &self.log {
            log.written(true, self.whole());
            if self.syncs() {
                log.file(Kind::SyncStarted, self.file());
                log.synced(true, self.file());
            }
        }
    }

    fn transfer(&mut self, fd: i32) -> Result<(), FailureKind> {
        let transfer = if self.write {
            Transfer::Write
        } else {
            Transfer::Read
        };
        for (offset, length) in self.blocks() {
            one_request(
                self.engine.as_mut(),
                &mut self.done,
                Request {
                    transfer,
                    fd,
                    offset,
                    length,
                    at: offset as usize,
                },
            )?;
        }
        if self.write && self.syncs() {
            one_request(
                self.engine.as_mut(),
                &mut self.done,
                Request {
                    transfer: Transfer::Fsync,
                    fd,
                    offset: 0,
                    length: 0,
                    at: 0,
                },
            )?;
        }
        Ok(())
    }

    fn move_file(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        let mode = match (self.write, self.mapped) {
            (false, _) => OpenFlags::READ,
            (true, false) => OpenFlags::WRITE,
            (true, true) => OpenFlags::READ_WRITE,
        };
        let fd = fs.open(self.paths.current(), mode.directly(self.direct))?;
        let moved = if self.mapped {
            self.transfer_mapped(fs, fd)
        } else {
            self.transfer(fd)
        };
        let closed = fs.close(fd).map_err(FailureKind::from);
        moved.and(closed)?;
        Ok(self.size)
    }

    fn transfer_mapped(&mut self, fs: &dyn Fs, fd: i32) -> Result<(), FailureKind> {
        if self.write {
            fs.truncate(fd, self.size)?;
        }
        self.engine.attach(fd, None);
        let moved = self.transfer(fd);
        self.engine.detach(fd);
        moved
    }
}

impl SmallFile {
    /// Fills the blocks of the file that is written next.
    fn fill(&mut self) {
        let stamps = self.stamps.clone();
        let (file, generation) = (self.file(), self.generation());
        for (offset, length) in self.blocks() {
            match &stamps {
                Some(stamps) => {
                    stamps.stamp(self.buffer(offset, length), file, offset, generation);
                }
                None => {
                    let Self { data, engine, .. } = self;
                    data.fill(0, &mut engine.buffer(0)[offset as usize..][..length]);
                }
            }
        }
    }
}

impl ItemOp for SmallFile {
    fn op(&self) -> OpKind {
        if self.write {
            OpKind::WriteFile
        } else {
            OpKind::ReadFile
        }
    }

    fn aim(&mut self, index: u64) {
        self.index = index;
        self.paths.item(index);
    }

    fn paths(&self) -> (&CStr, &CStr) {
        (self.paths.current(), c"")
    }

    fn load(&mut self, _data: &mut [u8]) {
        if !self.write {
            return;
        }
        self.written += 1;
        if self.refill || self.written == 1 {
            self.fill();
        }
        self.announce();
    }

    fn may_act(&self) -> bool {
        self.announced
    }

    fn own(&mut self, fs: &dyn Fs) -> Option<Result<u64, FailureKind>> {
        let done = self.move_file(fs);
        if let (true, Err(_), Some(log)) = (self.write, &done, &self.log) {
            log.written(false, self.whole());
        }
        Some(done)
    }

    fn again(&self) -> Retries {
        self.engine.counts().again.all()
    }

    fn check(&mut self, _fs: &dyn Fs, _data: &[u8]) -> Result<(), (FailureKind, String)> {
        if self.write {
            self.conclude();
            return Ok(());
        }
        let Some(stamps) = self.stamps.clone() else {
            return Ok(());
        };
        for (offset, length) in self.blocks() {
            let expected = stamps.expected(self.file(), offset);
            let checked = stamps.headers.check(self.buffer(offset, length), &expected);
            checked.map_err(|wrong| (FailureKind::Mismatch, wrong.to_string()))?;
        }
        Ok(())
    }

    fn reads_through_cache(&self) -> bool {
        !self.direct && !self.write
    }
}
