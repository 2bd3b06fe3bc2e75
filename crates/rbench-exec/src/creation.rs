//! Entries that exist before the measured operations of a mix or a replay: each worker creates its
//! part of them, untimed.

use std::collections::HashSet;
use std::ffi::CString;
use std::os::fd::RawFd;
use std::sync::Arc;

use nix::errno::Errno;
use rbench_core::random::DataStream;
use rbench_core::{Call, Clock as _, Failure, OpKind, OpenFlags};
use rbench_sys::{AlignedBuffer, Fs};

use crate::meter::{Meter, Span};
use crate::pace::{Gate, StopFlag};
use crate::worker::{Prepared, Runner};

/// Bytes of a write: a stop need not wait for a large file.
const PIECE: usize = 1 << 20;

/// An entry to create.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    /// A directory.
    Directory,
    /// A symbolic link to this target.
    Link(Vec<u8>),
    /// A file of this many bytes.
    File(u64),
}

impl Entry {
    /// Returns the kind of operation, for failures.
    fn op(&self) -> OpKind {
        match self {
            Entry::Directory => OpKind::Mkdir,
            Entry::Link(_) => OpKind::Symlink,
            Entry::File(_) => OpKind::Create,
        }
    }
}

/// The permissions of new files and directories.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Permissions {
    pub file: u32,
    pub directory: u32,
}

/// Creates the entries of a worker, by their paths relative to the directory of the file system.
struct Creator<I> {
    fs: Arc<dyn Fs>,
    entries: I,
    permissions: Permissions,
    /// The directories that are known to exist; `None`: those above an entry are not created.
    known: Option<HashSet<Vec<u8>>>,
    buffer: AlignedBuffer,
    data: DataStream,
}

/// Creates the runner that creates `entries`; files hold `data`. With `above`, also the directories
/// above them, which other workers may create as well.
///
/// # Errors
/// When memory is short.
pub(crate) fn runner(
    fs: Arc<dyn Fs>,
    entries: impl Iterator<Item = (Vec<u8>, Entry)> + 'static,
    permissions: Permissions,
    above: bool,
    data: DataStream,
) -> Prepared {
    let buffer = AlignedBuffer::new(PIECE);
    Ok(Box::new(Creator {
        fs,
        entries,
        permissions,
        known: above.then(HashSet::new),
        buffer: buffer.map_err(|errno| Failure::new(OpKind::Write, "", errno))?,
        data,
    }))
}

fn c_path(path: &[u8]) -> Result<CString, Errno> {
    CString::new(path).map_err(|_| Errno::EINVAL)
}

impl<I> Creator<I> {
    /// Creates an entry. `ECANCELED`: `stop` came before it was complete.
    fn create(&mut self, path: &[u8], entry: &Entry, stop: &StopFlag) -> Result<(), Errno> {
        if self.known.is_some() {
            if matches!(entry, Entry::Directory) {
                return self.directories(path);
            }
            if let Some(end) = path.iter().rposition(|byte| *byte == b'/') {
                self.directories(&path[..end])?;
            }
        }
        let path = c_path(path)?;
        let size = match entry {
            Entry::Directory => {
                let call = Call::Mkdir(self.permissions.directory);
                return self.fs.on_path(call, &path).map(drop);
            }
            Entry::Link(target) => {
                let linked = self.fs.on_paths(Call::Symlink, &path, &c_path(target)?);
                return linked.map(drop);
            }
            Entry::File(size) => *size,
        };
        let flags = OpenFlags {
            mode: self.permissions.file,
            ..OpenFlags::CREATE_NEW
        };
        let fd = self.fs.open(&path, flags)?;
        let written = self.write(fd, size, stop);
        let closed = self.fs.close(fd);
        written.and(closed)
    }

    /// Creates a directory and those above it, from the top. One that exists is another worker's.
    fn directories(&mut self, path: &[u8]) -> Result<(), Errno> {
        let Some(known) = &mut self.known else {
            return Ok(());
        };
        let slashes = (0..path.len()).filter(|at| path[*at] == b'/');
        for end in slashes.chain([path.len()]) {
            let above = &path[..end];
            if above.is_empty() || known.contains(above) {
                continue;
            }
            let call = Call::Mkdir(self.permissions.directory);
            match self.fs.on_path(call, &c_path(above)?) {
                Ok(_) | Err(Errno::EEXIST) => drop(known.insert(above.to_vec())),
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    fn write(&mut self, fd: RawFd, size: u64, stop: &StopFlag) -> Result<(), Errno> {
        let mut at = 0;
        while at < size {
            if stop.is_raised() {
                return Err(Errno::ECANCELED);
            }
            let piece = &mut self.buffer[..(size - at).min(PIECE as u64) as usize];
            self.data.fill(piece);
            match self.fs.sending(Call::WriteAt(at), fd, piece) {
                Ok(0) => return Err(Errno::EIO),
                Ok(written) => at += written,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }
}

impl<I: Iterator<Item = (Vec<u8>, Entry)>> Runner for Creator<I> {
    fn run(&mut self, gate: &Gate, meter: &mut Meter, _upto: Option<u64>) {
        while !gate.stop.is_raised() {
            let Some((path, entry)) = self.entries.next() else {
                return;
            };
            let start = gate.clock.now();
            let created = self.create(&path, &entry, &gate.stop);
            if created == Err(Errno::ECANCELED) && gate.stop.is_raised() {
                // Part of a file is neither created nor a failure, and is removed with the rest.
                return;
            }
            let span = Span::new(start, gate.clock.now());
            match (created, entry) {
                (Ok(()), Entry::File(bytes)) => meter.done(0, span, bytes),
                (Ok(()), Entry::Directory | Entry::Link(_)) => meter.done(0, span, 0),
                (Err(errno), entry) => {
                    let path = String::from_utf8_lossy(&path);
                    meter.failed(0, span, Failure::new(entry.op(), path, errno));
                }
            }
        }
    }
}
