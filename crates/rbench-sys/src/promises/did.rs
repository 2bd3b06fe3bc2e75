//! Calls that were made, and conclusions from their answers.

use std::ffi::{CString, OsString};
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::libc;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::sys::stat::FileStat;
use rbench_core::message::path;
use rbench_core::units::counted;
use serde::{Deserialize, Serialize, Serializer};

use crate::workdir::WorkDir;

/// The result of testing a promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It is kept; the amount that was tested, if it depends on the time, or empty.
    Holds(String),
    /// It is broken.
    Broken(Evidence),
    /// The file system reports that it does not support it.
    Unsupported(Evidence),
    /// It could not be decided: a requirement was not met.
    Undecided(Evidence),
    /// It was not tested, for this reason.
    LeftOut(String),
}

/// The basis of a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// The expected result.
    pub expected: String,
    /// The actual result.
    pub seen: String,
    /// The system call.
    pub call: String,
    /// With what it failed; `None`: it did something else.
    #[serde(with = "rbench_core::message::errno")]
    pub errno: Option<Errno>,
    /// Path of the tested object.
    #[serde(serialize_with = "named", deserialize_with = "path::deserialize")]
    pub path: PathBuf,
}

/// For other ranks, where a path by way of a descriptor leads elsewhere.
fn named<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    path::serialize(&WorkDir::named(path), serializer)
}

/// The result of an attempt: success, or the reason why it went no further.
pub(super) type Kept = Result<(), Breach>;

/// The reason why an attempt ended early.
pub(super) type Breach = Box<Verdict>;

impl Evidence {
    /// An observation of a call, without an error.
    pub fn new(call: &str, seen: impl Into<String>, path: impl Into<PathBuf>) -> Evidence {
        Evidence {
            expected: String::new(),
            seen: seen.into(),
            call: call.to_owned(),
            errno: None,
            path: path.into(),
        }
    }

    /// The observation in addition to the error; empty if the error is all.
    pub fn beyond_the_error(&self) -> String {
        match self.errno {
            Some(errno) if self.seen == described(errno) => String::new(),
            Some(_) => self.seen.clone(),
            None if self.expected.is_empty() => self.seen.clone(),
            None => format!("{}, not {}", self.seen, self.expected),
        }
    }
}

/// An entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) name: CString,
    pub(super) ino: u64,
    pub(super) kind: Option<nix::dir::Type>,
}

pub(crate) fn failed(call: &str, errno: Errno, path: PathBuf) -> Evidence {
    Evidence {
        expected: "success".to_owned(),
        seen: described(errno),
        call: call.to_owned(),
        errno: Some(errno),
        path,
    }
}

/// Errors that show nothing about a promise: no space, or the directory is unusable.
pub(super) const UNDECIDED: [Errno; 6] = [
    Errno::EDQUOT,
    Errno::EMFILE,
    Errno::ENFILE,
    Errno::ENOSPC,
    Errno::ENOTCONN,
    Errno::EROFS,
];

/// True if an error shows nothing about a promise.
pub(super) fn undecides(errno: Errno) -> bool {
    let limited = || {
        // Unknown counts as no limit.
        let limit = getrlimit(Resource::RLIMIT_FSIZE);
        limit.is_ok_and(|(soft, _)| soft != RLIM_INFINITY)
    };
    UNDECIDED.contains(&errno) || errno == Errno::EFBIG && limited()
}

/// Errors with which a file system reports that it does not support something.
const UNSUPPORTED: [Errno; 3] = [Errno::EOPNOTSUPP, Errno::ENOSYS, Errno::ENOTTY];

/// A call that was made: its object and its result.
#[must_use]
pub(super) struct Did<T> {
    pub(super) call: &'static str,
    pub(super) path: PathBuf,
    /// True if the test must end, so that no conclusion is drawn.
    pub(super) stopped: bool,
    pub(super) result: Result<T, Errno>,
}

impl<T> Did<T> {
    fn breach(self, kind: fn(Evidence) -> Verdict, errno: Errno) -> Breach {
        Box::new(kind(failed(self.call, errno, self.path)))
    }

    /// Converts the answer.
    pub(super) fn map<U>(self, convert: impl FnOnce(T) -> U) -> Did<U> {
        Did {
            call: self.call,
            path: self.path,
            stopped: self.stopped,
            result: self.result.map(convert),
        }
    }

    /// Ends an attempt that must stop.
    fn going_on(self) -> Result<Did<T>, Breach> {
        match self.stopped {
            false => Ok(self),
            true => {
                let evidence = Evidence::new(self.call, "interrupted", self.path);
                Err(Box::new(Verdict::Undecided(evidence)))
            }
        }
    }

    /// Ends an attempt if the file system reports that it does not support the call.
    fn supported(self, more: &[Errno]) -> Result<Did<T>, Breach> {
        match self.result {
            Err(errno) if UNSUPPORTED.contains(&errno) || more.contains(&errno) => {
                Err(self.breach(Verdict::Unsupported, errno))
            }
            _ => Ok(self),
        }
    }

    /// Expects success, by the promise.
    pub(super) fn ok(self) -> Result<T, Breach> {
        let this = self.going_on()?;
        match this.result {
            Ok(done) => Ok(done),
            Err(errno) if undecides(errno) => Err(this.breach(Verdict::Undecided, errno)),
            Err(errno) => Err(this.breach(Verdict::Broken, errno)),
        }
    }

    /// Like [`Did::ok`], but the file system may report that it does not support the call, also
    /// with one of `more`.
    pub(super) fn able(self, more: &[Errno]) -> Result<T, Breach> {
        self.supported(more)?.ok()
    }

    /// Expects success of a call that only prepares the test.
    pub(super) fn ready(self) -> Result<T, Breach> {
        let this = self.going_on()?;
        match this.result {
            Ok(done) => Ok(done),
            Err(errno) => Err(this.breach(Verdict::Undecided, errno)),
        }
    }

    /// Expects that `part` of the answer is this, by the promise.
    pub(super) fn has<V: PartialEq + Debug>(
        self,
        what: &str,
        expected: V,
        part: impl FnOnce(T) -> V,
    ) -> Kept {
        self.has_in_words(expected, part, |value| {
            in_words(what, &format!("{value:?}"))
        })
    }

    /// Like [`Did::has`], with another description of both values.
    fn has_in_words<V: PartialEq>(
        self,
        expected: V,
        part: impl FnOnce(T) -> V,
        words: impl Fn(V) -> String,
    ) -> Kept {
        let (call, path) = (self.call, self.path.clone());
        let seen = part(self.ok()?);
        match expected == seen {
            true => Ok(()),
            false => Err(broken(call, path, words(expected), words(seen))),
        }
    }

    /// Expects an answer that fulfils a condition, by the promise.
    pub(super) fn shows(
        self,
        right: impl FnOnce(T) -> bool,
        (expected, seen): (&str, &str),
    ) -> Kept {
        let words = |right| if right { expected } else { seen }.to_owned();
        self.has_in_words(true, right, words)
    }

    /// Expects failure with this error, unless the file system reports that it does not support the
    /// call, also with one of `more`.
    pub(super) fn fails_if_able(self, errno: Errno, more: &[Errno]) -> Kept {
        self.supported(more)?.fails(errno)
    }

    /// Expects failure with this error, by the promise.
    pub(super) fn fails(self, errno: Errno) -> Kept {
        self.fails_with(&[errno])
    }

    /// Expects failure with one of these errors, by the promise.
    pub(super) fn fails_with(self, errors: &[Errno]) -> Kept {
        let this = self.going_on()?;
        let (seen, errno) = match &this.result {
            Err(errno) if errors.contains(errno) => return Ok(()),
            Err(errno) if undecides(*errno) => {
                let errno = *errno;
                return Err(this.breach(Verdict::Undecided, errno));
            }
            Err(errno) => (described(*errno), Some(*errno)),
            Ok(_) => ("success".to_owned(), None),
        };
        let names: Vec<String> = errors.iter().map(|errno| format!("{errno:?}")).collect();
        Err(Box::new(Verdict::Broken(Evidence {
            expected: names.join(" or "),
            seen,
            call: this.call.to_owned(),
            errno,
            path: this.path,
        })))
    }
}

impl Did<FileStat> {
    /// Expects this size, by the promise.
    pub(super) fn size(self, expected: i64) -> Kept {
        self.has("size", expected, |found| found.st_size)
    }

    /// Expects this number of links, by the promise.
    pub(super) fn links(self, expected: libc::nlink_t) -> Kept {
        self.has("links", expected, |found| found.st_nlink)
    }

    /// Expects this inode, by the promise.
    pub(super) fn inode(self, expected: u64) -> Kept {
        self.has("inode", expected, |found| found.st_ino)
    }

    /// Expects this time of modification in s, by the promise.
    pub(super) fn modified(self, expected: i64) -> Kept {
        self.has("modified", expected, |found| found.st_mtime)
    }

    /// Expects this owner and group, by the promise.
    pub(super) fn owners(self, user: u32, group: u32) -> Kept {
        let part = |found: FileStat| (found.st_uid, found.st_gid);
        self.has("owner and group", (user, group), part)
    }

    /// Expects these mode bits, by the promise.
    pub(super) fn mode(self, expected: u32) -> Kept {
        self.mode_of(0o7777, expected)
    }

    /// Expects these of the mode bits in `mask`, by the promise.
    pub(super) fn mode_of(self, mask: u32, expected: u32) -> Kept {
        let octal = |mode: u32| format!("mode {mode:04o}");
        self.has_in_words(expected, |found| found.st_mode & mask, octal)
    }

    /// Expects this type (`S_IF…`), by the promise.
    pub(super) fn kind(self, expected: u32) -> Kept {
        self.has_in_words(expected, |found| found.st_mode & libc::S_IFMT, type_of)
    }
}

impl Did<Vec<Listed>> {
    /// Expects this number of entries, by the promise.
    pub(super) fn count(self, expected: usize) -> Kept {
        self.has("entries", expected, |all| all.len())
    }
}

impl Did<Vec<u8>> {
    /// Expects exactly these bytes, by the promise.
    pub(super) fn bytes(self, expected: &[u8]) -> Kept {
        let (call, path) = (self.call, self.path.clone());
        let found = self.ok()?;
        if expected == found {
            return Ok(());
        }
        let mut both = expected.iter().zip(&found);
        let at = both.position(|(a, b)| a != b);
        let at = at.unwrap_or(expected.len().min(found.len()));
        let describe = |bytes: &[u8]| {
            let part = &bytes[at.min(bytes.len())..bytes.len().min(at + 16)];
            format!("{} bytes, at {at} '{}'", bytes.len(), part.escape_ascii())
        };
        Err(broken(call, path, describe(expected), describe(&found)))
    }
}

impl Did<OsString> {
    /// Expects this target of a symbolic link, by the promise.
    pub(super) fn target(self, expected: &str) -> Kept {
        self.has("target", OsString::from(expected), |target| target)
    }
}

/// It does something else than expected.
pub(super) fn broken(call: &str, path: PathBuf, expected: String, seen: String) -> Breach {
    Box::new(Verdict::Broken(Evidence {
        expected,
        ..Evidence::new(call, seen, path)
    }))
}

/// The type of a file in words.
fn type_of(mode: u32) -> String {
    match mode {
        libc::S_IFREG => "a regular file".to_owned(),
        libc::S_IFDIR => "a directory".to_owned(),
        libc::S_IFLNK => "a symbolic link".to_owned(),
        libc::S_IFIFO => "a pipe".to_owned(),
        libc::S_IFSOCK => "a socket".to_owned(),
        libc::S_IFCHR => "a character device".to_owned(),
        libc::S_IFBLK => "a block device".to_owned(),
        other => format!("a file of type {other:#o}"),
    }
}

/// Describes a value: `inode 7`, `1 entry`.
fn in_words(what: &str, value: &str) -> String {
    match (what, value.parse()) {
        ("entries", Ok(number)) => counted(number, "entry"),
        _ => format!("{what} {value}"),
    }
}

/// Describes an error in words.
pub fn described(errno: Errno) -> String {
    let words = match errno {
        // The C library's words are about sockets.
        Errno::EOPNOTSUPP => "not supported by this file system",
        errno => errno.desc(),
    };
    format!("{errno:?} ({words})")
}
