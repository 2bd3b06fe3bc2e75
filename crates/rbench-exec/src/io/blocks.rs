//! The block loop: reads and writes through an engine, one or many requests
//! under way, closed or open loop.

use std::ops::RangeInclusive;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use rbench_core::residency::Pages;
use rbench_core::{Clock as _, Failure, FailureKind, Nanos, OpKind};
use rbench_plan::IoPlan;
use rbench_plan::arrival::Schedule;
use rbench_plan::io::{FsyncRule, Rw};
use rbench_plan::pattern::{Step, Steps};
use rbench_sys::engine::Completion;
use rbench_sys::residency::Resident;
use rbench_sys::{Engine, Fs, Request, Transfer};

use self::checkers::{Block, Checkers, Verdict};
use crate::ack::journal::Write;
use crate::ack::{Kind, Log};
use crate::data::Data;
use crate::meter::{Calls, Meter, Span};
use crate::pace::Gate;
use crate::queue::Queue;
use crate::verify::{self, Expected, Identity, WRITE_BITS};
use crate::worker::Runner;

pub mod checkers;
mod many;
mod singly;

/// The stamps of a phase.
#[derive(Debug, Clone)]
pub struct Stamps {
    /// The run.
    pub run: u64,
    /// Number of this phase, for what it writes (in the upper half).
    pub writes: u64,
    /// The generations that blocks may have when this phase reads them.
    pub reads: RangeInclusive<u64>,
}

/// The lanes of a phase, in order.
#[derive(Debug, Clone, Copy)]
pub struct Lanes {
    /// Of reads.
    pub read: Option<usize>,
    /// Of writes.
    pub write: Option<usize>,
    /// Of fsync or close.
    pub sync: Option<usize>,
}

/// What a worker's block loop works on.
pub struct Blocks {
    /// The workload.
    pub plan: Arc<IoPlan>,
    /// What this phase does.
    pub rw: Rw,
    /// The lanes.
    pub lanes: Lanes,
    /// Moves the blocks.
    pub engine: Box<dyn Engine>,
    /// Where the file was opened.
    pub fs: Arc<dyn Fs>,
    /// The open file; `None` with an engine that moves nothing.
    pub fd: Option<RawFd>,
    /// Its path, for messages.
    pub path: String,
    /// Its number, for stamps.
    pub file: u64,
    /// The worker whose blocks these are, and the number of all workers.
    pub owner: (u64, u64),
    /// Where its operations go, from the beginning of the owner's part on.
    pub steps: Steps,
    /// Open loop.
    pub schedule: Option<Schedule>,
    /// Data for writes that are not stamped.
    pub data: Data,
    /// Stamps, with `--verify`.
    pub stamps: Option<Stamps>,
    /// Bytes that each stamp covers.
    pub stamped_bytes: usize,
    /// Where writes and syncs are taken down, with `--ack-journal`.
    pub log: Option<Log>,
    /// Blocks that are written from the start on without a gap: told to the
    /// layout of later phases.
    pub covered: Option<Arc<AtomicU64>>,
    /// Check what was read meanwhile, with `--verify-threads`.
    pub checkers: Option<Checkers>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    transfer: Transfer,
    /// Where in the owner's part, and in the file.
    place: u64,
    offset: u64,
    length: usize,
    /// Of a stamped write.
    generation: u64,
    intended: Option<Nanos>,
    start: Nanos,
}

impl Slot {
    /// As a journal names it.
    fn write(&self, file: u64) -> Write {
        Write {
            file,
            offset: self.offset,
            generation: self.generation,
            length: self.length as u64,
        }
    }
}

const IDLE: Slot = Slot {
    transfer: Transfer::Read,
    place: 0,
    offset: 0,
    length: 0,
    generation: 0,
    intended: None,
    start: Nanos(0),
};

/// The stamped parts of a block at `offset`, each with its own offset.
fn stamped(offset: u64, bytes: usize, block: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    (offset..).step_by(bytes).zip(block.chunks(bytes))
}

/// Runs [`Blocks`].
pub struct BlockRunner {
    work: Blocks,
    slots: Vec<Slot>,
    queue: Queue,
    /// Slots that are filled and wait to be submitted.
    ready: Vec<usize>,
    done: Vec<Completion>,
    /// An operation that was not started, and when the next one is meant to.
    next: Option<Step>,
    next_intended: Option<Nanos>,
    /// Operations that were prepared and never started, and their bytes.
    dropped: u64,
    dropped_bytes: u64,
    /// Operations in all; `u64::MAX` when time decides.
    planned: u64,
    failed: u64,
    /// Writes that were aimed.
    writes: u64,
    writes_since_sync: u64,
    /// A sync follows so many writes.
    sync_every: u64,
    broken: bool,
    /// The part is a file of its own.
    own_file: bool,
    /// Nothing is verified or taken down.
    plain: bool,
    /// Filling or checking a buffer takes so long that requests complete
    /// meanwhile: their ends are read in between.
    careful: bool,
}

/// From this block size on, filling a buffer takes longer than a system call.
const LARGE: u64 = 64 << 10;

impl BlockRunner {
    /// A runner with as many slots as the plan's depth.
    pub fn new(work: Blocks) -> BlockRunner {
        let depth = work.plan.depth as usize;
        BlockRunner {
            careful: depth > 1 && (work.plan.block_max() >= LARGE || work.stamps.is_some()),
            own_file: !work.plan.layout.shared(),
            sync_every: match work.plan.fsync {
                FsyncRule::Every(writes) => writes.max(1),
                _ => u64::MAX,
            },
            plain: work.stamps.is_none() && work.log.is_none(),
            planned: work.steps.expected().unwrap_or(u64::MAX),
            work,
            slots: vec![IDLE; depth],
            queue: Queue::new(depth, Calls::default()),
            ready: Vec::with_capacity(depth),
            done: Vec::with_capacity(depth),
            next: None,
            next_intended: None,
            dropped: 0,
            dropped_bytes: 0,
            failed: 0,
            writes: 0,
            writes_since_sync: 0,
            broken: false,
        }
    }

    /// The next operation, if there is one.
    #[inline(always)]
    fn next_step(&mut self) -> Option<Step> {
        match self.next {
            None => self.work.steps.next(),
            Some(_) => self.next.take(),
        }
    }

    /// Turns to a block and fills the buffer of the free slot `number`.
    #[inline(always)]
    fn aim(&mut self, number: usize, step: Step, intended: Option<Nanos>) -> Slot {
        let work = &mut self.work;
        let offset = match self.own_file {
            true => step.offset,
            false => work.plan.offset(step.offset, work.owner.0, work.owner.1),
        };
        let length = step.length as usize;
        let write = step.write;
        let transfer = if write {
            Transfer::Write
        } else {
            Transfer::Read
        };
        let mut generation = 0;
        if write {
            let buffer = &mut work.engine.buffer(number)[..length];
            match &work.stamps {
                Some(stamps) => {
                    let low = self.writes.min(u64::from(u32::MAX));
                    generation = (stamps.writes << WRITE_BITS) | low;
                    self.writes += 1;
                    let identity = Identity {
                        run: stamps.run,
                        file: work.file,
                        offset,
                        generation,
                    };
                    let stamps = buffer.chunks_mut(work.stamped_bytes);
                    for (at, stamped) in (offset..).step_by(work.stamped_bytes).zip(stamps) {
                        verify::stamp(
                            stamped,
                            &Identity {
                                offset: at,
                                ..identity
                            },
                        );
                    }
                }
                None => work.data.fill(number, buffer),
            }
        }
        self.next_intended = None;
        Slot {
            transfer,
            place: step.offset,
            offset,
            length,
            generation,
            intended,
            start: Nanos(0),
        }
    }

    /// Takes back what was aimed at and will not be done.
    #[cold]
    fn unaim(&mut self, slot: Slot) {
        let Slot {
            transfer,
            place,
            length,
            intended,
            ..
        } = slot;
        self.next = Some(Step {
            write: transfer == Transfer::Write,
            file: 0,
            offset: place,
            length: length as u64,
            ends_file: false,
            ends_pass: false,
        });
        self.next_intended = intended;
    }

    /// The intended start of the next operation; `None` in a closed loop.
    fn intended(&mut self, gate: &Gate) -> Option<Nanos> {
        if self.next_intended.is_none() {
            let schedule = self.work.schedule.as_mut()?;
            let at = gate.start.0.saturating_add(schedule.next_start().0);
            self.next_intended = Some(Nanos(at));
        }
        self.next_intended
    }

    /// Bytes of what was issued.
    fn aimed_bytes(&self) -> u64 {
        let waiting = self.next.map_or(0, |step| step.length);
        self.work.steps.bytes() - waiting - self.dropped_bytes
    }

    fn wants_sync(&self) -> bool {
        self.writes_since_sync >= self.sync_every
    }

    /// The lane of a request.
    #[inline(always)]
    fn lane(&self, transfer: Transfer) -> usize {
        let lane = match transfer {
            Transfer::Read => self.work.lanes.read,
            Transfer::Write | Transfer::Fsync | Transfer::DataSync => self.work.lanes.write,
        };
        lane.unwrap_or(0)
    }

    /// Whether a result has only to be counted.
    #[inline(always)]
    fn is_plain(&self, result: Result<usize, Errno>, length: usize) -> bool {
        self.plain && matches!(result, Ok(got) if got >= length)
    }

    /// Notes the end of a request that may have failed, has to be verified, or
    /// to be taken down.
    fn examine(&mut self, completion: Completion, lane: usize, span: Span, meter: &mut Meter) {
        let Completion { slot, result } = completion;
        let Slot {
            transfer,
            offset,
            length,
            ..
        } = self.slots[slot];
        let outcome = match result {
            Err(errno) => Err((errno.into(), format!("at offset {offset}"))),
            Ok(got) if got < length => Err((
                FailureKind::Short,
                format!("{got} of {length} bytes at offset {offset}"),
            )),
            Ok(_) if transfer == Transfer::Read => match self.verify(slot, lane, span, meter) {
                Some(verdict) => verdict,
                None => return,
            },
            Ok(_) => Ok(()),
        };
        // When the engine itself fails, nobody knows how a write ended.
        if let Some(log) = &self.work.log
            && transfer == Transfer::Write
            && !(self.broken && outcome.is_err())
        {
            log.written(outcome.is_ok(), self.slots[slot].write(self.work.file));
        }
        match outcome {
            Ok(()) => meter.done(lane, span, length as u64),
            Err(failure) => {
                // What ended before it and is still being checked comes first.
                self.note_checked(meter, true);
                self.note_failed(lane, span, transfer, failure, meter);
            }
        }
    }

    /// A block that was read, and what it must be; `None` without stamps.
    fn expected(&self, slot: usize, lane: usize, span: Span) -> Option<Block> {
        let stamps = self.work.stamps.as_ref()?;
        let Slot { offset, length, .. } = self.slots[slot];
        Some(Block {
            lane,
            span,
            length,
            stamped_bytes: self.work.stamped_bytes,
            expected: Expected {
                identity: Identity {
                    run: stamps.run,
                    file: self.work.file,
                    offset,
                    generation: *stamps.reads.end(),
                },
                generations: stamps.reads.clone(),
            },
        })
    }

    /// Checks a block that was read, or gives it to those who do so; `None`:
    /// that is noted later.
    fn verify(
        &mut self,
        slot: usize,
        lane: usize,
        span: Span,
        meter: &mut Meter,
    ) -> Option<Verdict> {
        let Some(block) = self.expected(slot, lane, span) else {
            return Some(Ok(()));
        };
        if self.work.checkers.is_some() {
            self.note_checked(meter, false);
        }
        let engine = self.work.engine.as_mut();
        if let Some(checkers) = &mut self.work.checkers
            && checkers.give(engine, &block)
        {
            return None;
        }
        // Those that were read before are noted before.
        self.note_checked(meter, true);
        let read = &self.work.engine.buffer(slot)[..block.length];
        Some(checkers::check(&block, read))
    }

    /// Notes the blocks that are checked by now; with `all` waits for all of
    /// them.
    fn note_checked(&mut self, meter: &mut Meter, all: bool) {
        while let Some(checkers) = &mut self.work.checkers {
            let Some((block, verdict)) = checkers.take(all) else {
                return;
            };
            match verdict {
                Ok(()) => meter.done(block.lane, block.span, block.length as u64),
                Err(failure) => {
                    self.note_failed(block.lane, block.span, Transfer::Read, failure, meter)
                }
            }
        }
    }

    fn note_failed(
        &mut self,
        lane: usize,
        span: Span,
        transfer: Transfer,
        (kind, detail): (FailureKind, String),
        meter: &mut Meter,
    ) {
        self.failed += 1;
        let op = if transfer == Transfer::Read {
            OpKind::Read
        } else {
            OpKind::Write
        };
        let failure = Failure {
            op,
            path: self.work.path.clone(),
            kind,
            detail,
        };
        meter.failed(lane, span, failure);
    }

    /// The lane of what the schedule starts.
    fn main_lane(&self) -> Option<usize> {
        self.work.lanes.read.or(self.work.lanes.write)
    }

    /// One fsync of the file, timed on its own.
    fn sync(&mut self, gate: &Gate, meter: &mut Meter) {
        self.writes_since_sync = 0;
        let (Some(fd), Some(lane)) = (self.work.fd, self.work.lanes.sync) else {
            return;
        };
        let file = self.work.file;
        if let Some(log) = &self.work.log
            && !log.file(Kind::SyncStarted, file)
        {
            self.broken = true;
            return;
        }
        let request = Request {
            transfer: Transfer::Fsync,
            fd,
            offset: 0,
            length: 0,
            at: 0,
        };
        let start = gate.clock.now();
        let performed = self.work.engine.perform(request, &mut self.done);
        let end = gate.clock.now();
        let span = Span {
            intended: None,
            start,
            end,
        };
        self.queue.called(start, end);
        self.broken |= performed.is_err();
        let result = performed.unwrap_or_else(Err);
        if let Some(log) = &self.work.log {
            log.synced(result.is_ok(), file);
        }
        match result {
            Ok(_) => meter.done(lane, span, 0),
            Err(errno) => {
                self.failed += 1;
                meter.failed(
                    lane,
                    span,
                    Failure::new(OpKind::Fsync, self.work.path.as_str(), errno),
                );
            }
        }
    }

    /// Closing the file failed, and told of writes that were lost.
    fn not_closed(&self) {
        if let Some(log) = &self.work.log {
            log.synced(false, self.work.file);
        }
    }

    fn close_timed(&mut self, gate: &Gate, meter: &mut Meter) {
        let (Some(fd), Some(lane)) = (self.work.fd.take(), self.work.lanes.sync) else {
            return;
        };
        self.work.engine.detach(fd);
        let start = gate.clock.now();
        let result = self.work.fs.close(fd);
        let span = Span {
            intended: None,
            start,
            end: gate.clock.now(),
        };
        self.queue.called(start, span.end);
        match result {
            Ok(()) => meter.done(lane, span, 0),
            Err(errno) => {
                self.not_closed();
                self.failed += 1;
                meter.failed(
                    lane,
                    span,
                    Failure::new(OpKind::Close, self.work.path.as_str(), errno),
                );
            }
        }
    }
}

impl Runner for BlockRunner {
    fn run(&mut self, gate: &Gate, meter: &mut Meter, _upto: Option<u64>) {
        if self.slots.len() == 1 {
            self.run_singly(gate, meter);
        } else {
            self.run_many(gate, meter);
        }
        self.note_checked(meter, true);
        let late = self.next_intended.or_else(|| self.intended(gate));
        if let (Some(next), Some(schedule), Some(lane)) =
            (late, &self.work.schedule, self.main_lane())
        {
            let left = self.planned().saturating_sub(self.issued());
            meter.unissued(lane, gate.missed(schedule, next, left));
        }
        if gate.stop.is_raised() || self.broken || self.issued() == 0 {
            return;
        }
        match self.work.plan.fsync {
            FsyncRule::Never => {}
            FsyncRule::End => self.sync(gate, meter),
            FsyncRule::Every(_) if self.writes_since_sync == 0 => {}
            FsyncRule::Every(_) => self.sync(gate, meter),
            FsyncRule::Close => self.close_timed(gate, meter),
        }
    }

    fn issued(&self) -> u64 {
        self.work.steps.issued() - u64::from(self.next.is_some()) - self.dropped
    }

    fn planned(&self) -> u64 {
        self.planned
    }

    fn look(&mut self, _ended: bool) -> Pages {
        let found = self.work.fd.and_then(|fd| self.work.fs.resident(fd));
        found.map_or_else(Pages::default, |Resident { pages, cached }| Pages {
            files: 1,
            of: 1,
            pages,
            cached,
        })
    }

    fn once(&self) -> Option<u64> {
        self.work.steps.once()
    }

    fn covered(&self) -> bool {
        self.failed == 0
            && !self.broken
            && self.work.steps.covers()
            && self.aimed_bytes() >= self.work.plan.size.0
    }

    fn finish(&mut self, meter: &mut Meter) {
        if let Some(covered) = &self.work.covered
            && self.failed == 0
            && !self.broken
        {
            let plan = &self.work.plan;
            let there = if self.aimed_bytes() >= plan.size.0 {
                plan.blocks()
            } else {
                self.aimed_bytes() / plan.block()
            };
            covered.fetch_max(there, Ordering::Relaxed);
        }
        let Lanes { read, write, sync } = self.work.lanes;
        let again = self.work.engine.counts().again;
        meter.again_of([read, write, sync], again);
        if self.slots.len() > 1 {
            self.queue.tell(meter);
        }
        let Some(fd) = self.work.fd.take() else {
            return;
        };
        self.work.engine.detach(fd);
        if let Err(errno) = self.work.fs.close(fd) {
            // Some file systems only tell here that written data was lost.
            self.not_closed();
            let lane = self.work.lanes.write.or(self.work.lanes.read).unwrap_or(0);
            meter.failed_untimed(
                lane,
                Failure::new(OpKind::Close, self.work.path.as_str(), errno),
            );
        }
    }
}
