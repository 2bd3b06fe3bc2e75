//! A recorder: writes down the sequence of operations instead of executing them.
//!
//! A small model of a tree answers. Therefore consequences of an answer (a short
//! read, a count of entries, an existing name) are like on a real file system. It
//! keeps lengths, no data: reads return zeros.

mod model;

use std::ffi::CStr;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use rbench_core::{By, Call};

use crate::fs::{Fs, Operands};
pub(crate) use model::Model;

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceEvent {
    /// The call.
    pub call: Call,
    /// Its path as it was given; for a descriptor, the path that was opened;
    /// empty for a sync.
    pub path: String,
    /// Its second path, or the name of its attribute.
    pub other: String,
    /// Bytes of its data.
    pub bytes: u64,
    /// Its error, if it failed.
    pub error: Option<Errno>,
}

impl fmt::Display for TraceEvent {
    /// One line: `mkdir a`, `rename a -> b`, `open f create-new direct`,
    /// `write f 4096`, `mkdir a = EEXIST`, `sync`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.call.op())?;
        if !self.path.is_empty() {
            write!(f, " {}", self.path)?;
        }
        let (other, bytes) = (&self.other, self.bytes);
        match self.call {
            Call::Open(flags) => write!(f, " {flags}")?,
            Call::Read | Call::Write => write!(f, " {bytes}")?,
            Call::ReadAt(offset) | Call::WriteAt(offset) => write!(f, " {bytes} at {offset}")?,
            Call::Truncate(_, length) => write!(f, " {length}")?,
            Call::Chmod(_, mode) => write!(f, " {mode:o}")?,
            Call::Utimes(_, Some(seconds)) => write!(f, " {seconds}")?,
            Call::Setxattr(..) | Call::Getxattr(..) | Call::Removexattr(..) => {
                write!(f, " {other}")?;
            }
            Call::Rename(_) | Call::Link | Call::Symlink | Call::Copy => write!(f, " -> {other}")?,
            _ => {}
        }
        match self.error {
            Some(errno) => write!(f, " = {errno:?}"),
            None => Ok(()),
        }
    }
}

/// Events in the order of the calls.
pub type Log = Arc<Mutex<Vec<TraceEvent>>>;

/// The recorder. Clones share the log and the tree, which is empty at first. Absolute
/// and relative paths refer to separate trees.
#[derive(Debug, Clone, Default)]
pub struct TraceFs {
    log: Log,
    model: Arc<Mutex<Model>>,
}

/// Locks the value even if another thread panicked: log and model remain valid.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Copies `value` to the start of `buffer`; it must fit.
fn put(value: &[u8], buffer: &mut [u8]) -> Result<u64, Errno> {
    let target = buffer.get_mut(..value.len()).ok_or(Errno::ERANGE)?;
    target.copy_from_slice(value);
    Ok(value.len() as u64)
}

fn text(path: &CStr) -> String {
    path.to_string_lossy().into_owned()
}

impl TraceFs {
    /// A recorder with its own tree that writes to `log`.
    pub fn with_log(log: Log) -> TraceFs {
        TraceFs {
            log,
            model: Arc::default(),
        }
    }

    /// A recorder with a tree in which the directories `paths` and their parents
    /// exist already: `/mnt/x`, for programs that work below it.
    pub fn with_directories(paths: &[&str]) -> TraceFs {
        let fs = TraceFs::default();
        {
            let mut model = lock(&fs.model);
            paths.iter().for_each(|path| model.mkdir_all(path));
        }
        fs
    }

    /// Another recorder on the same tree, with its own log: one per rank separates
    /// their sequences.
    pub fn fork(&self) -> TraceFs {
        TraceFs {
            log: Log::default(),
            model: Arc::clone(&self.model),
        }
    }

    /// Events up to now.
    pub fn events(&self) -> Vec<TraceEvent> {
        lock(&self.log).clone()
    }

    /// Events up to now, as lines.
    pub fn lines(&self) -> Vec<String> {
        lock(&self.log).iter().map(TraceEvent::to_string).collect()
    }

    /// Clears the events, but not the tree.
    pub fn clear(&self) {
        lock(&self.log).clear();
    }
}

/// Answer of the model.
fn answer(m: &mut Model, call: Call, mut on: Operands<'_>) -> Result<u64, Errno> {
    let (path, other, fd) = (text(on.path), text(on.other), on.fd);
    let (path, other) = (path.as_str(), other.as_str());
    let length = on.data.bytes().len();
    let nothing = match call {
        // The size of a directory is 0.
        Call::Stat(By::Link) | Call::LOOKUP => return m.stat(path),
        Call::List => return m.list(path),
        // A directory cannot be opened.
        Call::Open(flags) => return m.open(path, flags).map(|fd| fd as u64),
        Call::Getattr => return m.length(fd),
        Call::Statfs(By::File) => return m.length(fd).map(|_| 4096),
        Call::Write => return m.write(fd, length).map(|bytes| bytes as u64),
        Call::WriteAt(offset) => {
            return m.write_at(fd, length, offset).map(|bytes| bytes as u64);
        }
        Call::Read | Call::ReadAt(_) => {
            let read = match call {
                Call::ReadAt(offset) => m.read_at(fd, length, offset)?,
                _ => m.read(fd, length)?,
            };
            on.data.room()[..read].fill(0);
            return Ok(read as u64);
        }
        Call::Readlink => {
            let (target, room) = (m.readlink(path)?, on.data.room());
            let length = target.len().min(room.len());
            room[..length].copy_from_slice(&target.as_bytes()[..length]);
            return Ok(length as u64);
        }
        Call::Getxattr(By::File, Some(name)) => {
            let value = m.attributes(fd)?.get(name).ok_or(Errno::ENODATA)?;
            return put(value, on.data.room());
        }
        Call::Listxattr(By::File) => {
            let names = m.attributes(fd)?.keys();
            let names = names.flat_map(|name| name.to_bytes_with_nul());
            let list: Vec<u8> = names.copied().collect();
            return put(&list, on.data.room());
        }
        Call::Mkdir(_) => m.mkdir(path),
        Call::Rmdir => m.rmdir(path),
        Call::Rename(0) => m.rename(path, other),
        Call::Link => m.link(path, other),
        Call::Symlink => m.symlink(other, path),
        Call::Mknod(_) => m.mknod(path),
        Call::Unlink => m.unlink(path),
        Call::Copy => m.follow(path).and_then(|()| m.mknod(other)),
        Call::Utimes(By::Link, _) => m.stat(path).map(drop),
        Call::Close => m.close(fd),
        Call::Sync => Ok(()),
        Call::Truncate(By::File, length) => m.truncate(fd, length),
        Call::Setxattr(By::File, Some(name), 0) => m.setxattr(fd, name, on.data.bytes()),
        Call::Removexattr(By::File, Some(name)) => m.removexattr(fd, name),
        // The other calls do not change anything that the model answers.
        _ if call.needs_open() => m.length(fd).map(drop),
        _ => m.follow(path),
    };
    nothing.map(|()| 0)
}

impl Fs for TraceFs {
    fn call(&self, &call: &Call, on: Operands<'_>) -> Result<u64, Errno> {
        let mut model = lock(&self.model);
        let path = match call.needs_open() {
            true => match model.opened(on.fd) {
                Some(opened) => opened.to_owned(),
                None => format!("fd {}", on.fd),
            },
            false => text(on.path),
        };
        let (other, bytes) = (text(on.other), on.data.bytes().len() as u64);
        let name = match call {
            Call::Setxattr(_, name, _) | Call::Getxattr(_, name) | Call::Removexattr(_, name) => {
                name.map(text)
            }
            _ => None,
        };
        let result = answer(&mut model, call, on);
        // Under the model's lock, so that the log has the order of the answers.
        lock(&self.log).push(TraceEvent {
            call,
            path,
            other: name.unwrap_or(other),
            bytes,
            error: result.err(),
        });
        result
    }

    fn directory(&self) -> Option<&OwnedFd> {
        None
    }
}

#[cfg(test)]
mod tests;
