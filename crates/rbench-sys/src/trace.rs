//! A recorder: writes down the sequence of operations instead of doing them.
//!
//! A small model of a tree answers, so that what follows from an answer (a
//! short read, a count of entries, a name that exists) is as on a real file
//! system. It keeps lengths, no data: what is read is zeros.

mod model;

use std::ffi::CStr;
use std::fmt;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use rbench_core::{OpKind, OpenFlags};

use crate::fs::{Fs, OpenMode};
use model::Model;

/// What an operation was given besides the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail {
    /// Nothing.
    None,
    /// The new name.
    To(String),
    /// How the file was to be opened, and whether with `O_DIRECT`.
    Open(OpenMode, bool),
    /// Length of the buffer, or of the file to be, in bytes.
    Bytes(u64),
    /// Length of the buffer and the place in the file, in bytes.
    At(u64, u64),
    /// Permissions to be.
    Mode(u32),
    /// Times to be, in s since 1970.
    Seconds(i64),
    /// The name of an extended attribute.
    Attribute(String),
}

/// One call of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceEvent {
    /// The operation.
    pub op: OpKind,
    /// Its path as it was given; for a descriptor, the path that was opened;
    /// empty for a sync.
    pub path: String,
    /// What else it was given.
    pub detail: Detail,
    /// How it failed, if it did.
    pub error: Option<Errno>,
}

impl fmt::Display for TraceEvent {
    /// One line: `mkdir a`, `rename a -> b`, `open f create-new direct`,
    /// `write f 4096`, `mkdir a = EEXIST`, `sync`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.op)?;
        if !self.path.is_empty() {
            write!(f, " {}", self.path)?;
        }
        match &self.detail {
            Detail::None => {}
            Detail::To(to) => write!(f, " -> {to}")?,
            Detail::Open(mode, direct) => {
                f.write_str(match mode {
                    OpenMode::Read => " read",
                    OpenMode::CreateNew => " create-new",
                    OpenMode::Write => " write",
                    OpenMode::WriteExisting => " write-existing",
                    OpenMode::ReadWrite => " read-write",
                    OpenMode::With(_) => "",
                })?;
                if let OpenMode::With(flags) = mode {
                    for word in words(*flags) {
                        write!(f, " {word}")?;
                    }
                }
                if *direct {
                    f.write_str(" direct")?;
                }
            }
            Detail::Bytes(bytes) => write!(f, " {bytes}")?,
            Detail::At(bytes, offset) => write!(f, " {bytes} at {offset}")?,
            Detail::Mode(mode) => write!(f, " {mode:o}")?,
            Detail::Seconds(seconds) => write!(f, " {seconds}")?,
            Detail::Attribute(name) => write!(f, " {name}")?,
        }
        match self.error {
            Some(errno) => write!(f, " = {errno:?}"),
            None => Ok(()),
        }
    }
}

/// These flags as words, in the order of their fields.
fn words(flags: OpenFlags) -> impl Iterator<Item = &'static str> {
    let OpenFlags {
        reads,
        writes,
        creates,
        exclusive,
        truncates,
        appends,
        data_synced,
    } = flags;
    let all = [
        (reads, "reads"),
        (writes, "writes"),
        (creates, "creates"),
        (exclusive, "exclusive"),
        (truncates, "truncates"),
        (appends, "appends"),
        (data_synced, "data-synced"),
    ];
    all.into_iter().filter(|(on, _)| *on).map(|(_, word)| word)
}

/// Events in the order of the calls.
pub type Log = Arc<Mutex<Vec<TraceEvent>>>;

/// The recorder. Clones share the log and the tree, which is empty at first.
/// What absolute paths name and what relative ones name are apart.
#[derive(Debug, Clone, Default)]
pub struct TraceFs {
    log: Log,
    model: Arc<Mutex<Model>>,
}

/// A panic of another thread leaves log and model as they are.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Copies `value` to the beginning of `buffer`, into which it has to fit.
fn put(value: &[u8], buffer: &mut [u8]) -> Result<usize, Errno> {
    let place = buffer.get_mut(..value.len()).ok_or(Errno::ERANGE)?;
    place.copy_from_slice(value);
    Ok(value.len())
}

fn text(path: &CStr) -> String {
    path.to_string_lossy().into_owned()
}

impl TraceFs {
    /// A recorder with a tree of its own that writes to `log`.
    pub fn with_log(log: Log) -> TraceFs {
        TraceFs {
            log,
            model: Arc::default(),
        }
    }

    /// A recorder with a tree in which the directories `paths` and those that
    /// they are in exist already: `/mnt/x`, for programs that work below it.
    pub fn with_directories(paths: &[&str]) -> TraceFs {
        let fs = TraceFs::default();
        {
            let mut model = lock(&fs.model);
            paths.iter().for_each(|path| model.mkdir_all(path));
        }
        fs
    }

    /// Another recorder on the same tree, with a log of its own: one for each
    /// rank tells their sequences apart.
    pub fn fork(&self) -> TraceFs {
        TraceFs {
            log: Log::default(),
            model: Arc::clone(&self.model),
        }
    }

    /// What was called up to now.
    pub fn events(&self) -> Vec<TraceEvent> {
        lock(&self.log).clone()
    }

    /// The calls up to now as lines.
    pub fn lines(&self) -> Vec<String> {
        lock(&self.log).iter().map(TraceEvent::to_string).collect()
    }

    /// Forgets the calls up to now, not the tree.
    pub fn clear(&self) {
        lock(&self.log).clear();
    }

    fn record<T>(
        &self,
        op: OpKind,
        path: String,
        detail: Detail,
        act: impl FnOnce(&mut Model) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let mut model = lock(&self.model);
        let result = act(&mut model);
        // Under the model's lock: the log has the order of the answers.
        lock(&self.log).push(TraceEvent {
            op,
            path,
            detail,
            error: result.as_ref().err().copied(),
        });
        result
    }

    /// The path that `fd` was opened with.
    fn opened(&self, fd: RawFd) -> String {
        lock(&self.model)
            .opened(fd)
            .map_or_else(|| format!("fd {fd}"), str::to_owned)
    }
}

impl Fs for TraceFs {
    fn mkdir(&self, path: &CStr) -> Result<(), Errno> {
        let name = text(path);
        self.record(OpKind::Mkdir, name.clone(), Detail::None, |m| {
            m.mkdir(&name)
        })
    }

    fn rmdir(&self, path: &CStr) -> Result<(), Errno> {
        let name = text(path);
        self.record(OpKind::Rmdir, name.clone(), Detail::None, |m| {
            m.rmdir(&name)
        })
    }

    /// The size of a directory is 0.
    fn stat(&self, path: &CStr) -> Result<u64, Errno> {
        let name = text(path);
        self.record(OpKind::Stat, name.clone(), Detail::None, |m| m.stat(&name))
    }

    fn rename(&self, from: &CStr, to: &CStr) -> Result<(), Errno> {
        let (from, to) = (text(from), text(to));
        let detail = Detail::To(to.clone());
        self.record(OpKind::Rename, from.clone(), detail, |m| {
            m.rename(&from, &to)
        })
    }

    fn link(&self, from: &CStr, to: &CStr) -> Result<(), Errno> {
        let (from, to) = (text(from), text(to));
        let detail = Detail::To(to.clone());
        self.record(OpKind::Link, from.clone(), detail, |m| m.link(&from, &to))
    }

    fn list(&self, path: &CStr, _buffer: &mut [u8]) -> Result<u64, Errno> {
        let name = text(path);
        self.record(OpKind::List, name.clone(), Detail::None, |m| m.list(&name))
    }

    /// A directory cannot be opened.
    fn open(&self, path: &CStr, mode: OpenMode, direct: bool) -> Result<RawFd, Errno> {
        let name = text(path);
        let detail = Detail::Open(mode, direct);
        self.record(OpKind::Open, name.clone(), detail, |m| m.open(&name, mode))
    }

    fn mknod(&self, path: &CStr) -> Result<(), Errno> {
        let name = text(path);
        self.record(OpKind::Mknod, name.clone(), Detail::None, |m| {
            m.mknod(&name)
        })
    }

    fn close(&self, fd: RawFd) -> Result<(), Errno> {
        let path = self.opened(fd);
        self.record(OpKind::Close, path, Detail::None, |m| m.close(fd))
    }

    fn unlink(&self, path: &CStr) -> Result<(), Errno> {
        let name = text(path);
        self.record(OpKind::Unlink, name.clone(), Detail::None, |m| {
            m.unlink(&name)
        })
    }

    fn write(&self, fd: RawFd, buffer: &[u8]) -> Result<usize, Errno> {
        let detail = Detail::Bytes(buffer.len() as u64);
        self.record(OpKind::Write, self.opened(fd), detail, |m| {
            m.write(fd, buffer.len())
        })
    }

    fn read(&self, fd: RawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        let detail = Detail::Bytes(buffer.len() as u64);
        let length = self.record(OpKind::Read, self.opened(fd), detail, |m| {
            m.read(fd, buffer.len())
        })?;
        buffer[..length].fill(0);
        Ok(length)
    }

    fn fsync(&self, fd: RawFd) -> Result<(), Errno> {
        self.record(OpKind::Fsync, self.opened(fd), Detail::None, |m| {
            m.fsync(fd)
        })
    }

    fn fdatasync(&self, fd: RawFd) -> Result<(), Errno> {
        self.record(OpKind::Fdatasync, self.opened(fd), Detail::None, |m| {
            m.fsync(fd)
        })
    }

    fn sync(&self) {
        // The record's answer is always the same.
        self.record(OpKind::Sync, String::new(), Detail::None, |_| Ok(()))
            .ok();
    }

    fn truncate(&self, fd: RawFd, length: u64) -> Result<(), Errno> {
        let detail = Detail::Bytes(length);
        self.record(OpKind::Truncate, self.opened(fd), detail, |m| {
            m.truncate(fd, length)
        })
    }

    fn symlink(&self, target: &CStr, path: &CStr) -> Result<(), Errno> {
        let (target, name) = (text(target), text(path));
        let detail = Detail::To(target.clone());
        self.record(OpKind::Symlink, name.clone(), detail, |m| {
            m.symlink(&target, &name)
        })
    }

    fn readlink(&self, path: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
        let name = text(path);
        let target = self.record(OpKind::Readlink, name.clone(), Detail::None, |m| {
            m.readlink(&name)
        })?;
        let length = target.len().min(buffer.len());
        buffer[..length].copy_from_slice(&target.as_bytes()[..length]);
        Ok(length)
    }

    fn chmod(&self, path: &CStr, mode: u32) -> Result<(), Errno> {
        let name = text(path);
        self.record(OpKind::Chmod, name.clone(), Detail::Mode(mode), |m| {
            m.follow(&name)
        })
    }

    fn utimes(&self, path: &CStr, seconds: i64) -> Result<(), Errno> {
        let name = text(path);
        self.record(
            OpKind::Utimes,
            name.clone(),
            Detail::Seconds(seconds),
            |m| m.stat(&name).map(drop),
        )
    }

    fn access(&self, path: &CStr) -> Result<(), Errno> {
        let name = text(path);
        self.record(OpKind::Access, name.clone(), Detail::None, |m| {
            m.follow(&name)
        })
    }

    /// The size of a directory is 0.
    fn lookup(&self, path: &CStr) -> Result<u64, Errno> {
        let name = text(path);
        self.record(OpKind::Lookup, name.clone(), Detail::None, |m| {
            m.stat(&name)
        })
    }

    fn getattr(&self, fd: RawFd) -> Result<u64, Errno> {
        self.record(OpKind::Getattr, self.opened(fd), Detail::None, |m| {
            m.length(fd)
        })
    }

    fn statfs(&self, fd: RawFd) -> Result<u64, Errno> {
        self.record(OpKind::Statfs, self.opened(fd), Detail::None, |m| {
            m.length(fd).map(|_| 4096)
        })
    }

    fn setxattr(&self, fd: RawFd, name: &CStr, value: &[u8]) -> Result<(), Errno> {
        let detail = Detail::Attribute(text(name));
        self.record(OpKind::Setxattr, self.opened(fd), detail, |m| {
            m.setxattr(fd, name, value)
        })
    }

    fn getxattr(&self, fd: RawFd, name: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
        let detail = Detail::Attribute(text(name));
        self.record(OpKind::Getxattr, self.opened(fd), detail, |m| {
            let value = m.attributes(fd)?.get(name).ok_or(Errno::ENODATA)?;
            put(value, buffer)
        })
    }

    fn listxattr(&self, fd: RawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.record(OpKind::Listxattr, self.opened(fd), Detail::None, |m| {
            let names = m.attributes(fd)?.keys();
            let list: Vec<u8> = names
                .flat_map(|name| name.to_bytes_with_nul())
                .copied()
                .collect();
            put(&list, buffer)
        })
    }

    fn removexattr(&self, fd: RawFd, name: &CStr) -> Result<(), Errno> {
        let detail = Detail::Attribute(text(name));
        self.record(OpKind::Removexattr, self.opened(fd), detail, |m| {
            m.removexattr(fd, name)
        })
    }

    fn write_at(&self, fd: RawFd, buffer: &[u8], offset: u64) -> Result<usize, Errno> {
        let detail = Detail::At(buffer.len() as u64, offset);
        self.record(OpKind::Write, self.opened(fd), detail, |m| {
            m.write_at(fd, buffer.len(), offset)
        })
    }

    fn read_at(&self, fd: RawFd, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let detail = Detail::At(buffer.len() as u64, offset);
        let length = self.record(OpKind::Read, self.opened(fd), detail, |m| {
            m.read_at(fd, buffer.len(), offset)
        })?;
        buffer[..length].fill(0);
        Ok(length)
    }

    fn directory(&self) -> Option<&OwnedFd> {
        None
    }
}

#[cfg(test)]
mod tests;
