//! Files that existed before a trace: created by all workers of all ranks, untimed.

use std::collections::HashSet;
use std::ffi::CString;
use std::os::fd::RawFd;
use std::sync::Arc;

use nix::errno::Errno;
use rbench_core::random::DataStream;
use rbench_core::{Call, Clock as _, Failure, OpKind, OpenFlags};
use rbench_plan::trace::Kind;
use rbench_plan::trace::survey::Found;
use rbench_sys::{AlignedBuffer, Fs as _, Operands, PosixFs};

use crate::meter::{Meter, Span};
use crate::pace::{Gate, StopFlag};
use crate::worker::Runner;

/// Bytes of a write.
const PIECE: usize = 1 << 20;

/// The longest target of a link.
const TARGET_MAX: u64 = 4095;

fn path(relative: &[u8]) -> Result<CString, Errno> {
    CString::new(relative).map_err(|_| Errno::EINVAL)
}

/// One worker.
pub struct Preparer {
    fs: PosixFs,
    found: Arc<Found>,
    copies: u32,
    /// Number of this worker among all, and the number of all.
    worker: u64,
    workers: u64,
    buffer: AlignedBuffer,
    data: DataStream,
    made: HashSet<Vec<u8>>,
    issued: u64,
    failed: bool,
}

impl Preparer {
    /// The worker `worker` of `workers`.
    ///
    /// # Errors
    /// There is not the memory.
    pub fn new(
        fs: PosixFs,
        found: Arc<Found>,
        copies: u32,
        (worker, workers): (u64, u64),
        seed: u64,
    ) -> Result<Preparer, Failure> {
        let buffer = AlignedBuffer::new(PIECE);
        Ok(Preparer {
            fs,
            found,
            copies,
            worker,
            workers,
            buffer: buffer.map_err(|errno| Failure::new(OpKind::Write, "", errno))?,
            data: DataStream::new(&[seed, worker, 1]),
            made: HashSet::new(),
            issued: 0,
            failed: false,
        })
    }

    /// Makes a directory and those above it; others may make them as well.
    fn directory(&mut self, relative: &[u8]) -> Result<(), Errno> {
        let ends = relative
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'/');
        let ends: Vec<usize> = ends.map(|(at, _)| at).chain([relative.len()]).collect();
        for end in ends {
            let above = &relative[..end];
            if above.is_empty() || self.made.contains(above) {
                continue;
            }
            let path = path(above)?;
            match self.fs.call(Call::Mkdir(0o755), Operands::path(&path)) {
                Ok(_) | Err(Errno::EEXIST) => drop(self.made.insert(above.to_vec())),
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// `ECANCELED`: `stop` came before it was whole.
    fn make(
        &mut self,
        relative: &[u8],
        (kind, size): (Kind, u64),
        stop: &StopFlag,
    ) -> Result<(), Errno> {
        if kind == Kind::Directory {
            return self.directory(relative);
        }
        if let Some(end) = relative.iter().rposition(|byte| *byte == b'/') {
            self.directory(&relative[..end])?;
        }
        let path = path(relative)?;
        if kind == Kind::Link {
            let target = vec![b'x'; size.clamp(1, TARGET_MAX) as usize];
            let target = CString::new(target).map_err(|_| Errno::EINVAL)?;
            return self.fs.on_paths(Call::Symlink, &path, &target).map(drop);
        }
        let flags = OpenFlags {
            mode: 0o644,
            ..OpenFlags::CREATE_NEW
        };
        let fd = self.fs.open(&path, flags)?;
        let written = self.write(fd, size, stop);
        let closed = self.fs.close(fd);
        written.and(closed)
    }

    fn write(&mut self, fd: RawFd, size: u64, stop: &StopFlag) -> Result<(), Errno> {
        let mut at = 0;
        while at < size {
            if stop.is_raised() {
                return Err(Errno::ECANCELED);
            }
            let length = (size - at).min(PIECE as u64) as usize;
            self.data.fill(&mut self.buffer[..length]);
            match self
                .fs
                .sending(Call::WriteAt(at), fd, &self.buffer[..length])
            {
                Ok(0) => return Err(Errno::EIO),
                Ok(written) => at += written,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    fn one(&mut self, relative: &[u8], (kind, size): (Kind, u64), gate: &Gate, meter: &mut Meter) {
        let start = gate.clock.now();
        let made = self.make(relative, (kind, size), &gate.stop);
        if made == Err(Errno::ECANCELED) && gate.stop.is_raised() {
            // Half a file is neither made nor a failure, and is removed with the rest.
            return;
        }
        let span = Span::new(start, gate.clock.now());
        self.issued += 1;
        match made {
            Ok(()) => meter.done(0, span, size),
            Err(errno) => {
                self.failed = true;
                let path = String::from_utf8_lossy(relative);
                meter.failed(0, span, Failure::new(OpKind::Create, path, errno));
            }
        }
    }
}

impl Runner for Preparer {
    fn run(&mut self, gate: &Gate, meter: &mut Meter, _upto: Option<u64>) {
        let found = Arc::clone(&self.found);
        let mut number = 0_u64;
        for copy in 0..self.copies {
            let root = [(Vec::new(), Kind::Directory, 0)];
            let all = found.before.iter();
            let all = all.map(|one| (one.path.to_vec(), one.kind, one.size));
            for (path, kind, size) in root.into_iter().chain(all) {
                let mine = number % self.workers.max(1) == self.worker;
                number += 1;
                if !mine {
                    continue;
                }
                if gate.stop.is_raised() {
                    return;
                }
                self.one(&super::relative(copy, &path), (kind, size), gate, meter);
            }
        }
    }

    fn issued(&self) -> u64 {
        self.issued
    }

    fn covered(&self) -> bool {
        !self.failed
    }
}
