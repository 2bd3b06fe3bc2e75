//! A file against a model of its bytes.

use std::os::fd::OwnedFd;
use std::sync::LazyLock;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, OFlag, copy_file_range, fallocate};
use nix::unistd::{ftruncate, write};
use rbench_core::random::Stream;

use super::super::content::Mapping;
use super::super::did::Breach;
use super::super::ground::Ground;
use super::{Compared, Numbered, Subject, Wrong};

/// The longest file, bytes.
const LONGEST: usize = 256 << 10;
/// The longest transfer, bytes.
const PIECE: u64 = 16 << 10;
/// Errors with which a file system reports that it does not support an operation.
const UNSUPPORTED: [Errno; 5] = [
    Errno::EOPNOTSUPP,
    Errno::ENOSYS,
    Errno::EXDEV,
    Errno::ENODEV,
    Errno::EINVAL,
];

/// A file, with its expected content.
pub(super) struct File {
    name: String,
    fd: OwnedFd,
    model: Vec<u8>,
}

/// Operation on a file; offsets and lengths in bytes.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Write {
        at: usize,
        length: usize,
    },
    Append {
        length: usize,
    },
    Read {
        at: usize,
        length: usize,
    },
    Truncate {
        to: usize,
    },
    Punch {
        at: usize,
        length: usize,
    },
    Copy {
        from: usize,
        to: usize,
        length: usize,
    },
    Store {
        at: usize,
        length: usize,
    },
    Reopen,
}

impl Operation {
    /// True if it may change or read a byte. A change of size may concern every later byte.
    fn concerns(&self, byte: usize) -> bool {
        let within = |at: usize, length: usize| (at..at + length).contains(&byte);
        match *self {
            Operation::Write { at, length }
            | Operation::Read { at, length }
            | Operation::Punch { at, length }
            | Operation::Store { at, length } => within(at, length),
            Operation::Copy { from, to, length } => within(from, length) || within(to, length),
            Operation::Append { .. } | Operation::Truncate { .. } | Operation::Reopen => true,
        }
    }

    /// True if it alone determines the byte.
    fn sets(&self, byte: usize) -> bool {
        match *self {
            Operation::Write { at, length } => (at..at + length).contains(&byte),
            _ => false,
        }
    }
}

/// The data of the operation with this number, at most [`PIECE`] bytes.
pub(super) fn data(number: usize, length: usize) -> Vec<u8> {
    // Number of bytes after which the data repeats.
    const PERIOD: usize = 251 * 256;
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let indices = 0..PERIOD + PIECE as usize;
        indices.map(|i| (i + i / 251) as u8 | 1).collect()
    });
    let start = (number * 131 + 7) % PERIOD;
    BYTES[start..start + length].to_vec()
}

/// The first index at which two slices differ, within their common length.
pub(super) fn difference(a: &[u8], b: &[u8]) -> Option<usize> {
    let length = a.len().min(b.len());
    let (a, b) = (&a[..length], &b[..length]);
    match a == b {
        true => None,
        false => a.iter().zip(b).position(|(a, b)| a != b),
    }
}

impl File {
    /// Compares a range with the data that was read.
    fn compare(&self, at: usize, found: &[u8], length: usize) -> Option<Wrong> {
        let end = self.model.len().min(at + length);
        let expected = &self.model[at.min(end)..end];
        if let Some(index) = difference(expected, found) {
            return Some(Wrong::byte(at + index, expected[index], found[index]));
        }
        (expected.len() != found.len()).then(|| Wrong {
            at: Some((at + expected.len().min(found.len())) as u64),
            expected: format!("{} bytes at {at}", expected.len()),
            seen: format!("{} bytes at {at}", found.len()),
        })
    }

    fn read(&self, g: &Ground, at: usize, length: usize) -> Compared {
        let content = g.read(&self.name, &self.fd, length, at as i64).ok()?;
        Ok(self.compare(at, &content, length))
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        if self.model.len() < end {
            self.model.resize(end, 0);
        }
        self.model[at..end].copy_from_slice(bytes);
    }

    fn reopen(&mut self, g: &Ground) -> Compared {
        // Closed before it is opened again, so that the file system keeps no state.
        let null = g.open("/dev/null", OFlag::O_RDONLY).ready()?;
        drop(std::mem::replace(&mut self.fd, null));
        self.fd = g.open(&self.name, OFlag::O_RDWR).ok()?;
        self.read(g, 0, LONGEST + 1)
    }

    fn copy(&mut self, g: &Ground, from: usize, to: usize, length: usize) -> Result<(), Breach> {
        let length = length.min(self.model.len().saturating_sub(from));
        let apart = from + length <= to || to + length <= from;
        if length == 0 || !apart || to + length > LONGEST {
            return Ok(());
        }
        let (mut at, mut into) = (from as i64, to as i64);
        let mut left = length;
        while left > 0 {
            let n = copy_file_range(&self.fd, Some(&mut at), &self.fd, Some(&mut into), left);
            match n {
                Err(errno) if UNSUPPORTED.contains(&errno) => break,
                n => match g.did("copy_file_range", &self.name, n).ok()? {
                    0 => break,
                    n => left -= n,
                },
            }
        }
        let bytes = self.model[from..from + length - left].to_vec();
        self.put(to, &bytes);
        Ok(())
    }
}

impl Subject for File {
    type Operation = Operation;

    fn new(g: &Ground, number: usize) -> Result<File, Breach> {
        let name = format!("file-{number}");
        Ok(File {
            fd: g.file(&name)?,
            name,
            model: Vec::new(),
        })
    }

    fn draw(draws: &mut Stream) -> Operation {
        let length = 1 + draws.below(PIECE) as usize;
        let mut random_offset = || draws.below(LONGEST as u64 - PIECE) as usize;
        let (at, to) = (random_offset(), random_offset());
        match draws.below(20) {
            0..6 => Operation::Write { at, length },
            6..8 => Operation::Append {
                length: length % 1000 + 1,
            },
            8..12 => Operation::Read { at, length },
            12..14 => Operation::Truncate { to },
            14 => Operation::Punch { at, length },
            15..17 => Operation::Copy {
                from: at,
                to,
                length,
            },
            17..19 => Operation::Store { at, length },
            _ => Operation::Reopen,
        }
    }

    fn step(&mut self, g: &Ground, number: usize, operation: &Operation) -> Compared {
        match *operation {
            Operation::Write { at, length } => {
                let bytes = data(number, length);
                g.write(&self.name, &self.fd, &bytes, at as i64).ok()?;
                self.put(at, &bytes);
            }
            Operation::Append { length } if self.model.len() + length <= LONGEST => {
                let bytes = data(number, length);
                let fd = g.open(&self.name, OFlag::O_WRONLY | OFlag::O_APPEND).ok()?;
                let n = g.did("write", &self.name, write(&fd, &bytes)).ok()?;
                self.put(self.model.len(), &bytes[..n]);
            }
            Operation::Append { .. } => {}
            Operation::Read { at, length } => return self.read(g, at, length),
            Operation::Truncate { to } => {
                let done = ftruncate(&self.fd, to as i64);
                g.did("ftruncate", &self.name, done).ok()?;
                self.model.resize(to, 0);
            }
            Operation::Punch { at, length } => {
                let how =
                    FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
                match fallocate(&self.fd, how, at as i64, length as i64) {
                    Err(errno) if UNSUPPORTED.contains(&errno) => {}
                    done => {
                        g.did("fallocate", &self.name, done).ok()?;
                        let end = self.model.len().min(at + length);
                        self.model[at.min(end)..end].fill(0);
                    }
                }
            }
            Operation::Copy { from, to, length } => self.copy(g, from, to, length)?,
            Operation::Store { at, length } if at + length <= self.model.len() => {
                if let Ok(map) = Mapping::new(g, &self.fd, self.model.len()) {
                    let bytes = data(number, length);
                    map.store(g, at, &bytes)?;
                    self.put(at, &bytes);
                }
            }
            Operation::Store { .. } => {}
            Operation::Reopen => return self.reopen(g),
        }
        Ok(None)
    }

    fn concerned(history: &[Numbered<Operation>], wrong: &Wrong) -> Vec<Numbered<Operation>> {
        let byte = wrong.at.unwrap_or(0) as usize;
        let from = history
            .iter()
            .rposition(|(_, operation)| operation.sets(byte));
        let concerned = |(_, operation): &&Numbered<Operation>| operation.concerns(byte);
        let behind = &history[from.unwrap_or(0)..];
        behind.iter().filter(concerned).cloned().collect()
    }
}
