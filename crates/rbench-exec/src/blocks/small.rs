//! The small-file form: each file is opened, moved whole, synced if asked for
//! and closed; the latency is that of the whole.

use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;

use rbench_core::outcome::Retries;
use rbench_core::{By, Call, FailureKind, IoPriority, OpKind, OpenFlags, Rank};
use rbench_plan::IoPlan;
use rbench_plan::io::small_paths;
use rbench_plan::jobs::{Buffers, SmallFiles};
use rbench_plan::meta::Calls;
use rbench_plan::pattern::smallest;
use rbench_plan::permutation::Permutation;
use rbench_plan::tree::Paths;
use rbench_sys::engine::Completion;
use rbench_sys::{Engine, Fs, NullFs, Request, Transfer};

use super::context::{Lanes, WorkerContext};
use crate::ack::{Kind, Log, Record};
use crate::data::Data;
use crate::ops::{ItemOp, ItemRunner, Visit};
use crate::verify::Stamps;
use crate::worker::{Prepared, Runner};

/// Streams of the order of a worker's files and of its data, beside seed and number.
const ORDER: u64 = 4;
const DATA: u64 = 1;

/// The worker of a job of small files that is the `clone`-th on this rank.
///
/// # Errors
/// When there is not the memory.
pub(super) fn prepare(context: &WorkerContext, clone: u32, small: SmallFiles) -> Prepared {
    let kept = context.kept.as_ref();
    let fs: Arc<dyn Fs> = match kept {
        Some(kept) => Arc::clone(&kept.fs),
        None => Arc::new(NullFs),
    };
    let (job, part) = (&context.job, context.part(clone));
    let directions = job.pattern.directions;
    let parts = |what| [job.pattern.seed, part.worker, what];
    // The files that exist already.
    let first = kept.map_or(0, |kept| kept.there);
    let count = small.files - first;
    let visit = Visit {
        first,
        count,
        visits: match job.pace.runtime {
            Some(_) => u64::MAX,
            None => count,
        },
        order: directions
            .random
            .then(|| Permutation::new(count, &parts(ORDER))),
        schedule: context.together.clone(),
    };
    let buffers = Buffers {
        refill: true,
        ..job.buffers.clone()
    };
    let prefix = job.files.directory.to_string_lossy();
    let log = context.logs.get(clone as usize);
    let file = SmallFile {
        write: directions.write,
        paths: small_paths(&prefix, part.owner, small.files),
        engine: context.make_engine(1, small.size.0 as usize)?,
        size: small.size.0,
        block: smallest(&job.pattern.sizes.read),
        direct: job.direct,
        mapped: context.engine.mapped,
        syncs: job.syncing.end_fsync,
        data: Data::new(&buffers, 1, &parts(DATA)),
        refill: job.buffers.refill,
        stamps: kept.and_then(|kept| kept.stamps.clone()),
        log: log.filter(|_| directions.write).cloned(),
        written: 0,
        announced: true,
        owner: part.owner,
        index: 0,
        done: Vec::with_capacity(1),
    };
    let covered = kept
        .and_then(|kept| kept.covered.get(clone as usize))
        .cloned();
    let kind = match directions.write {
        true => OpKind::WriteFile,
        false => OpKind::ReadFile,
    };
    let runner = ItemRunner::new((kind, file), Calls::default(), fs, visit)?;
    Ok(Box::new(runner.telling(covered)))
}

/// Reads of this many small files that do not exist: the loop of small files over a file system
/// that does nothing; `None` where there is not the memory.
pub(crate) fn bare_loop_of_small(plan: &IoPlan, files: u64) -> Option<Box<dyn Runner>> {
    let mut io = plan.clone();
    io.phases = vec![rbench_plan::io::Rw::Read];
    let job = &mut io.job;
    let small = SmallFiles {
        files,
        ..job.small?
    };
    (job.engine, job.depth, job.batch_submit) = ("null".to_owned(), 1, 1);
    (job.small, job.verify, job.pace.together) = (Some(small), None, None);
    (job.pace.runtime, job.pace.time_based) = (None, false);
    let job = io.rounds(0, 0, (0, 1), 1).into_iter().next()?.job;
    let context = WorkerContext::new(job, Lanes::default(), PathBuf::new(), (Rank(0), 1));
    prepare(&context, 0, small).ok()
}

/// Moves one small file after another.
struct SmallFile {
    /// It writes.
    write: bool,
    /// Paths of the files.
    paths: Paths,
    /// Moves the blocks; its slot holds a whole file.
    engine: Box<dyn Engine>,
    /// Length of a file in bytes.
    size: u64,
    /// Length of a block in bytes.
    block: u64,
    /// O_DIRECT.
    direct: bool,
    /// The engine maps the files: they get their length first.
    mapped: bool,
    /// Each file is synced.
    syncs: bool,
    /// Data for writes that are not stamped.
    data: Data,
    /// Each file is filled with new data; else, and without stamps, all hold the same.
    refill: bool,
    /// Stamps, with `--verify`.
    stamps: Option<Stamps>,
    /// The journal of writes and syncs, with `--ack-journal`.
    log: Option<Log>,
    /// Files prepared for writing until now.
    written: u64,
    /// The intended writes could be recorded.
    announced: bool,
    /// Number of the worker that owns the files, for stamps.
    owner: u64,
    /// The prepared file.
    index: u64,
    /// Completions of one block.
    done: Vec<Completion>,
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

    /// The generation of the prepared file.
    fn generation(&self) -> u64 {
        let stamps = self.stamps.as_ref();
        stamps.map_or(0, |stamps| stamps.generation(self.written))
    }

    /// The start of the write of the prepared file, whole, as a journal names it.
    fn whole(&self) -> Record {
        Record {
            kind: Kind::WriteStarted,
            file: self.file(),
            offset: 0,
            generation: self.generation(),
            length: self.size as u32,
        }
    }

    /// Records that the prepared file will be written.
    fn announce(&mut self) {
        if let Some(log) = &self.log {
            self.announced = log.file(Kind::Opened, self.file()) && log.note(self.whole());
        }
    }

    /// Records that the prepared file was written, and synced if it was to
    /// be: the write was acknowledged before the sync began.
    fn conclude(&self) {
        if let Some(log) = &self.log {
            log.written(true, self.whole());
            if self.syncs {
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
            let request = Request {
                transfer,
                fd,
                offset,
                length,
                at: offset as usize,
                priority: IoPriority::default(),
            };
            one_request(self.engine.as_mut(), &mut self.done, request)?;
        }
        if self.write && self.syncs {
            let request = Request {
                transfer: Transfer::Fsync,
                fd,
                offset: 0,
                length: 0,
                at: 0,
                priority: IoPriority::default(),
            };
            one_request(self.engine.as_mut(), &mut self.done, request)?;
        }
        Ok(())
    }

    fn move_file<F: Fs + ?Sized>(&mut self, fs: &F) -> Result<u64, FailureKind> {
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

    fn transfer_mapped<F: Fs + ?Sized>(&mut self, fs: &F, fd: i32) -> Result<(), FailureKind> {
        if self.write {
            fs.on_file(Call::Truncate(By::File, self.size), fd)?;
        }
        self.engine.attach(fd, None);
        let moved = self.transfer(fd);
        self.engine.detach(fd);
        moved
    }

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

    fn own<F: Fs + ?Sized>(&mut self, fs: &F) -> Option<Result<u64, FailureKind>> {
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
