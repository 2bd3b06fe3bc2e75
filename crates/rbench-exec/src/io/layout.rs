//! Untimed layout: files that a phase needs in full are written in large
//! pieces, by all workers at once, and synced so that the phase does not pay
//! for it.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rbench_core::{Clock as _, Failure, FailureKind, OpKind};
use rbench_plan::IoPlan;
use rbench_plan::io::Layout;
use rbench_sys::{Completion, Engine, Fs, Request, Transfer};

use super::one_request;
use crate::ack::journal::Write;
use crate::ack::{Kind, Log};
use crate::data::Data;
use crate::meter::{Meter, Span};
use crate::pace::Gate;
use crate::verify::Stamps;
use crate::worker::Runner;

/// Bytes written in one call where the blocks lie side by side.
pub const PIECE: u64 = 4 << 20;

/// Blocks of the plan that one piece of the layout holds.
pub fn piece_blocks(plan: &IoPlan) -> u64 {
    if plan.layout == Layout::SharedInterleaved {
        1
    } else {
        (PIECE / plan.block()).max(1)
    }
}

/// Why the parts of workers, by number, could not be laid out.
pub type Unmade = Arc<Mutex<BTreeMap<u64, Failure>>>;

/// Takes down why the part of worker `owner` is not there.
pub fn note(unmade: &Unmade, owner: u64, failure: &Failure) {
    if let Ok(mut all) = unmade.lock() {
        all.insert(owner, failure.clone());
    }
}

/// Writes the blocks of a worker's part that are not there yet.
pub struct LayoutRunner {
    /// The workload.
    pub plan: Arc<IoPlan>,
    /// Writes the pieces; its slot holds one.
    pub engine: Box<dyn Engine>,
    /// Where the file was opened.
    pub fs: Arc<dyn Fs>,
    /// The open file.
    pub fd: RawFd,
    /// Its path, for messages.
    pub path: String,
    /// Its number, for stamps.
    pub file: u64,
    /// This worker, and the number of all workers.
    pub owner: (u64, u64),
    /// Data that is not stamped.
    pub data: Data,
    /// Stamps, with `--verify`.
    pub stamps: Option<Stamps>,
    /// Where writes and syncs are taken down, with `--ack-journal`.
    pub log: Option<Log>,
    /// Blocks that are there; advanced when all are.
    pub covered: Arc<AtomicU64>,
    /// The next block.
    pub next: u64,
    /// Blocks written.
    pub issued: u64,
    /// Whether a write failed: the worker's part is not there.
    pub failed: bool,
    /// Takes why.
    pub unmade: Unmade,
    /// The completion of one request.
    pub done: Vec<Completion>,
}

impl LayoutRunner {
    fn fail(&mut self, op: OpKind, kind: impl Into<FailureKind>) -> Failure {
        let failure = Failure::new(op, self.path.as_str(), kind);
        self.failed = true;
        note(&self.unmade, self.owner.0, &failure);
        failure
    }

    /// What the layout is written as.
    fn generation(&self) -> u64 {
        self.stamps.as_ref().map_or(0, |stamps| stamps.writes)
    }

    fn fill(&mut self, blocks: u64) -> (u64, usize) {
        let (owner, workers) = self.owner;
        let (first, _) = self.plan.place(self.next, owner, workers);
        let generation = self.generation();
        let mut filled = 0;
        for index in self.next..self.next + blocks {
            let (offset, length) = self.plan.place(index, owner, workers);
            let buffer = &mut self.engine.buffer(0)[filled..filled + length];
            match &self.stamps {
                Some(stamps) => stamps.stamp(buffer, self.file, offset, generation),
                None => self.data.fill(0, buffer),
            }
            filled += length;
        }
        (first, filled)
    }
}

impl Runner for LayoutRunner {
    fn run(&mut self, gate: &Gate, meter: &mut Meter, _upto: Option<u64>) {
        let blocks = self.plan.blocks();
        let piece = piece_blocks(&self.plan);
        while self.next < blocks && !self.failed && !gate.stop.is_raised() {
            let count = piece.min(blocks - self.next);
            let (offset, length) = self.fill(count);
            let write = Write {
                file: self.file,
                offset,
                generation: self.generation(),
                length: length as u64,
            };
            if let Some(log) = &self.log
                && !log.write(Kind::WriteStarted, write)
            {
                self.failed = true;
                break;
            }
            let start = gate.clock.now();
            let result = one_request(
                self.engine.as_mut(),
                &mut self.done,
                Request {
                    transfer: Transfer::Write,
                    fd: self.fd,
                    offset,
                    length,
                    at: 0,
                },
            );
            let span = Span {
                intended: None,
                start,
                end: gate.clock.now(),
            };
            if let Some(log) = &self.log {
                log.written(result.is_ok(), write);
            }
            self.next += count;
            self.issued += count;
            match result {
                Ok(()) => meter.done(0, span, length as u64),
                Err(kind) => {
                    let failure = self.fail(OpKind::Write, kind);
                    meter.failed(0, span, failure);
                }
            }
        }
        if self.issued > 0 && !self.failed {
            if let Some(log) = &self.log
                && !log.file(Kind::SyncStarted, self.file)
            {
                self.failed = true;
                return;
            }
            let sync = Request {
                transfer: Transfer::Fsync,
                fd: self.fd,
                offset: 0,
                length: 0,
                at: 0,
            };
            let synced = one_request(self.engine.as_mut(), &mut self.done, sync);
            if let Some(log) = &self.log {
                log.synced(synced.is_ok(), self.file);
            }
            if let Err(kind) = synced {
                let failure = self.fail(OpKind::Fsync, kind);
                meter.failed_untimed(0, failure);
            }
        }
    }

    fn issued(&self) -> u64 {
        self.issued
    }

    fn planned(&self) -> u64 {
        (self.plan.blocks() - self.next).div_ceil(piece_blocks(&self.plan))
    }

    fn covered(&self) -> bool {
        !self.failed && self.next >= self.plan.blocks()
    }

    fn finish(&mut self, meter: &mut Meter) {
        if let Err(errno) = self.fs.close(self.fd) {
            if let Some(log) = &self.log {
                log.synced(false, self.file);
            }
            let failure = self.fail(OpKind::Close, errno);
            meter.failed_untimed(0, failure);
        }
        if self.covered() {
            self.covered.store(self.plan.blocks(), Ordering::Relaxed);
        }
    }
}
