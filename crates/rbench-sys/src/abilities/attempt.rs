//! An attempt to use an ability: its ground, its steps, and what comes of it.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::sys::uio::{pread, pwrite};

/// Something that a file system may be able to do.
#[derive(Debug)]
pub struct Ability {
    /// Its name for machines: `rename-over`.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    pub(super) attempt: fn(&Ground) -> Result<String, Refused>,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It can; what else is known, such as a limit, or nothing.
    Yes(String),
    /// It cannot.
    No(Answer),
    /// That could not be decided, as the attempt could not be prepared.
    Unknown(Answer),
}

/// What the file system said, or did instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The system call.
    pub call: &'static str,
    /// With what it failed; `None`: it did something else.
    pub errno: Option<Errno>,
    /// What it did instead; with an error, where, or nothing.
    pub what: String,
}

impl Ability {
    /// Tries it in `directory`, which exists and is ours. What it makes there stays.
    pub fn attempt(&self, directory: &Path) -> Found {
        let ground = Ground {
            directory: directory.join(self.name),
            made: Cell::new(0),
        };
        let made = prepared(
            "mkdir",
            nix::unistd::mkdir(&ground.directory, Mode::from_bits_truncate(0o755)),
        );
        match made.and_then(|()| (self.attempt)(&ground)) {
            Ok(detail) => Found::Yes(detail),
            Err(Refused {
                answer,
                decides: true,
            }) => Found::No(answer),
            Err(Refused { answer, .. }) => Found::Unknown(answer),
        }
    }
}

/// Why an attempt ended.
pub(super) struct Refused {
    pub(super) answer: Answer,
    /// Whether that is an answer to the question.
    decides: bool,
}

impl Refused {
    /// The call succeeded, and did something else.
    pub(super) fn wrong(call: &'static str, what: impl Into<String>) -> Refused {
        Refused {
            answer: Answer {
                call,
                errno: None,
                what: what.into(),
            },
            decides: true,
        }
    }
}

pub(super) fn failed(call: &'static str, errno: Errno, decides: bool) -> Refused {
    Refused {
        answer: Answer {
            call,
            errno: Some(errno),
            what: String::new(),
        },
        decides,
    }
}

/// Errors that say nothing about an ability: the place is full, broken or not ours.
const UNDECIDED: [Errno; 8] = [
    Errno::EDQUOT,
    Errno::EIO,
    Errno::EMFILE,
    Errno::ENFILE,
    Errno::ENOSPC,
    Errno::ENOTCONN,
    Errno::EROFS,
    Errno::ESTALE,
];

/// A call that the question is about.
pub(super) fn call<T>(name: &'static str, result: Result<T, Errno>) -> Result<T, Refused> {
    result.map_err(|errno| failed(name, errno, !UNDECIDED.contains(&errno)))
}

/// A call that only prepares the attempt.
pub(super) fn prepared<T>(name: &'static str, result: Result<T, Errno>) -> Result<T, Refused> {
    result.map_err(|errno| failed(name, errno, false))
}

/// Content is as it should be.
pub(super) fn is(call: &'static str, right: bool, what: &str) -> Result<(), Refused> {
    right
        .then_some(())
        .ok_or_else(|| Refused::wrong(call, what))
}

/// An empty directory for an attempt.
pub(super) struct Ground {
    pub(super) directory: PathBuf,
    made: Cell<u32>,
}

impl Ground {
    /// A name that nothing has yet.
    pub(super) fn path(&self) -> PathBuf {
        let number = self.made.get();
        self.made.set(number + 1);
        self.directory.join(format!("{number}"))
    }

    /// A new file, open for reading and writing.
    pub(super) fn file(&self) -> Result<(PathBuf, OwnedFd), Refused> {
        let path = self.path();
        let fd = reopened(&path, OFlag::O_CREAT | OFlag::O_EXCL)?;
        Ok((path, fd))
    }

    /// A closed file with this content.
    pub(super) fn written(&self, content: &[u8]) -> Result<PathBuf, Refused> {
        let (path, fd) = self.file()?;
        let n = prepared("pwrite64", pwrite(&fd, content, 0))?;
        prepared("close", nix::unistd::close(fd))?;
        match n == content.len() {
            true => Ok(path),
            false => Err(Refused {
                decides: false,
                ..Refused::wrong("pwrite64", "wrote less")
            }),
        }
    }
}

/// Opens a file for reading and writing, to prepare an attempt.
pub(super) fn reopened(path: &Path, flags: OFlag) -> Result<OwnedFd, Refused> {
    let flags = flags | OFlag::O_RDWR | OFlag::O_CLOEXEC;
    prepared("openat", open(path, flags, Mode::from_bits_truncate(0o644)))
}

/// Up to `length` bytes of a file from `offset` on.
pub(super) fn content(fd: &OwnedFd, offset: i64, length: usize) -> Result<Vec<u8>, Refused> {
    let mut buffer = vec![0; length];
    let n = call("pread64", pread(fd, &mut buffer, offset))?;
    buffer.truncate(n);
    Ok(buffer)
}

/// Bytes that are different everywhere.
pub(super) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + i / 251) as u8 | 1).collect()
}
