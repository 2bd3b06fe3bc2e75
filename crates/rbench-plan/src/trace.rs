//! Traces of what programs did with files (`rbench replay`): the one form that all formats are
//! read into, and their readers. Pure; who opens the files is in rbench-exec.
//!
//! A name of a trace becomes a path below the directory of the replay ([`names`]), whatever it
//! says; what could reach beyond it (devices, attributes outside of `user.`, set-user-id bits)
//! is left out, and counted.

pub mod blocks;
pub mod dxt;
pub mod events;
pub mod form;
pub mod juicefs;
pub mod names;
pub mod order;
pub mod strace;
pub mod survey;
pub mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use rbench_core::linux as flags;
pub use rbench_core::request::Kind;
use rbench_core::{Nanos, OpKind};

use self::names::Names;

/// A path below the directory of the replay: relative, without `.`, `..` and empty parts. The
/// empty one is that directory.
pub type Name = Arc<[u8]>;

/// Longest line of a trace, bytes: one that carries 1 MiB of data in base64, and its names.
pub const LINE_MAX: u64 = 4 << 20;

/// The largest read or write of a trace, bytes.
pub const TRANSFER_MAX: u64 = 256 << 20;

/// An operation of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// The line that it stands in, from 1; of a call in two lines the second one.
    pub line: u64,
    /// When it began, by the clock of its trace.
    pub at: Nanos,
    /// Who did it: a number that is one process (or thread) of its trace.
    pub process: u64,
    /// How long it took, where the trace says so.
    pub took: Option<Nanos>,
    /// What came of it.
    pub result: Outcome,
    /// What it told of the object that it is about.
    pub told: Told,
    /// The trace does not have it, and what follows needs it: a file is opened that was so
    /// before, or is closed at the end. Neither timed nor counted.
    pub implied: bool,
    /// What was done.
    pub call: Call,
}

/// What came of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The trace does not say.
    Unknown,
    /// It was done; what it returned, as a length or 0.
    Done(u64),
    /// It failed with this errno.
    Failed(i32),
}

/// What a result tells of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    /// What it is.
    pub kind: Option<Kind>,
    /// Its length in bytes when the operation had been done.
    pub size: Option<u64>,
}

/// What an operation is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A name; whether a symbolic link there is followed.
    Path(Name, bool),
    /// An open file, by the number that the reader gave it.
    Open(u64),
}

/// Where a symbolic link leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget {
    /// As it was recorded: relative and without `..`, so that it only leads down.
    Verbatim(Name),
    /// To a path below the directory of the replay, in the place of one that could lead out.
    Below(Name),
}

/// What is done: a system call, with the words of Linux.
///
/// Numbers of open files are of one trace and never used twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// `openat`, `creat`
    Open {
        /// What is opened.
        path: Name,
        /// Those of [`OPEN_FLAGS`].
        flags: i32,
        /// Permissions, where it creates.
        mode: u32,
        /// The number that the open file has from then on.
        file: u64,
    },
    /// `close` of the last descriptor.
    Close {
        /// The open file.
        file: u64,
    },
    /// `read`, `pread64`
    Read {
        /// The open file.
        file: u64,
        /// The place; `None`: the position of the file.
        at: Option<u64>,
        /// Bytes that are asked for.
        length: u64,
    },
    /// `write`, `pwrite64`
    Write {
        /// The open file.
        file: u64,
        /// The place; `None`: the position of the file.
        at: Option<u64>,
        /// Bytes.
        length: u64,
        /// What is written, where the trace has it.
        data: Option<Arc<[u8]>>,
    },
    /// `lseek`
    Seek {
        /// The open file.
        file: u64,
        /// As given.
        offset: i64,
        /// `SEEK_SET` and so on.
        whence: i32,
    },
    /// `fsync`, `fdatasync`
    Sync {
        /// The open file.
        file: u64,
        /// `fdatasync`
        data_only: bool,
    },
    /// `truncate`, `ftruncate`
    Truncate {
        /// What.
        what: Target,
        /// The new length, bytes.
        length: u64,
    },
    /// `fallocate`
    Allocate {
        /// The open file.
        file: u64,
        /// `FALLOC_FL_PUNCH_HOLE` and so on.
        mode: i32,
        /// From there, bytes.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// `stat`, `fstat`, `statx`
    Stat {
        /// What.
        what: Target,
    },
    /// `access`, `faccessat`
    Access {
        /// What.
        path: Name,
        /// `R_OK` and so on.
        mode: i32,
    },
    /// `getdents64`
    List {
        /// The open directory.
        file: u64,
        /// Room for entries, bytes.
        length: u64,
    },
    /// `mkdir`
    Mkdir {
        /// What.
        path: Name,
        /// Permissions.
        mode: u32,
    },
    /// `mknod` of a regular file.
    Mknod {
        /// What.
        path: Name,
        /// Permissions.
        mode: u32,
    },
    /// `rmdir`
    Rmdir {
        /// What.
        path: Name,
    },
    /// `unlink`
    Unlink {
        /// What.
        path: Name,
    },
    /// `rename`, `renameat2`
    Rename {
        /// The name that goes.
        from: Name,
        /// The name that comes.
        to: Name,
        /// `RENAME_NOREPLACE` and so on.
        flags: u32,
    },
    /// `link`
    Link {
        /// The name that is there.
        from: Name,
        /// The name that comes.
        to: Name,
    },
    /// `symlink`
    Symlink {
        /// Where it leads.
        target: LinkTarget,
        /// The name that comes.
        path: Name,
    },
    /// `readlink`
    Readlink {
        /// What.
        path: Name,
    },
    /// `chmod`
    Chmod {
        /// What.
        what: Target,
        /// Permissions.
        mode: u32,
    },
    /// `chown`
    Chown {
        /// What.
        what: Target,
        /// The owner; `u32::MAX`: as it is.
        uid: u32,
        /// The group; `u32::MAX`: as it is.
        gid: u32,
    },
    /// `utimensat`; the present is set, whatever was.
    Utimes {
        /// What.
        what: Target,
    },
    /// `statfs`
    Statfs {
        /// What.
        what: Target,
    },
    /// `setxattr`
    Setxattr {
        /// What.
        what: Target,
        /// The attribute.
        name: Name,
        /// Bytes of its value, which a trace need not have.
        length: u64,
        /// `XATTR_CREATE` and so on.
        flags: i32,
    },
    /// `getxattr`
    Getxattr {
        /// What.
        what: Target,
        /// The attribute.
        name: Name,
        /// Room for its value, bytes.
        length: u64,
    },
    /// `listxattr`
    Listxattr {
        /// What.
        what: Target,
        /// Room for the names, bytes.
        length: u64,
    },
    /// `removexattr`
    Removexattr {
        /// What.
        what: Target,
        /// The attribute.
        name: Name,
    },
}

/// Flags of `open` that are done as recorded; others have no meaning for a replay.
pub const OPEN_FLAGS: i32 = flags::ACCESS
    | flags::CREAT
    | flags::EXCL
    | flags::TRUNC
    | flags::APPEND
    | flags::DIRECT
    | flags::DIRECTORY
    | flags::NOFOLLOW
    | flags::DSYNC
    | flags::SYNC
    | flags::PATH;

/// Flags of `renameat2` that are done: the new name must not be there, or both change places.
const RENAMES: u32 = flags::RENAME_NOREPLACE | flags::RENAME_EXCHANGE;

/// Permissions that are given as recorded: a trace makes no set-user-id program.
pub const MODES: u32 = 0o1777;

impl Call {
    /// The kind of operation, for rows.
    pub fn kind(&self) -> OpKind {
        match self {
            Call::Open { .. } => OpKind::Open,
            Call::Close { .. } => OpKind::Close,
            Call::Read { .. } => OpKind::Read,
            Call::Write { .. } => OpKind::Write,
            Call::Seek { .. } => OpKind::Seek,
            Call::Sync {
                data_only: true, ..
            } => OpKind::Fdatasync,
            Call::Sync { .. } => OpKind::Fsync,
            Call::Truncate { .. } => OpKind::Truncate,
            Call::Allocate { .. } => OpKind::Allocate,
            Call::Stat { .. } => OpKind::Stat,
            Call::Access { .. } => OpKind::Access,
            Call::List { .. } => OpKind::Readdir,
            Call::Mkdir { .. } => OpKind::Mkdir,
            Call::Mknod { .. } => OpKind::Mknod,
            Call::Rmdir { .. } => OpKind::Rmdir,
            Call::Unlink { .. } => OpKind::Unlink,
            Call::Rename { .. } => OpKind::Rename,
            Call::Link { .. } => OpKind::Link,
            Call::Symlink { .. } => OpKind::Symlink,
            Call::Readlink { .. } => OpKind::Readlink,
            Call::Chmod { .. } => OpKind::Chmod,
            Call::Chown { .. } => OpKind::Chown,
            Call::Utimes { .. } => OpKind::Utimes,
            Call::Statfs { .. } => OpKind::Statfs,
            Call::Setxattr { .. } => OpKind::Setxattr,
            Call::Getxattr { .. } => OpKind::Getxattr,
            Call::Listxattr { .. } => OpKind::Listxattr,
            Call::Removexattr { .. } => OpKind::Removexattr,
        }
    }

    /// The open file that it uses, but for the one that it opens.
    pub fn uses(&self) -> Option<u64> {
        match self {
            Call::Close { file }
            | Call::Read { file, .. }
            | Call::Write { file, .. }
            | Call::Seek { file, .. }
            | Call::Sync { file, .. }
            | Call::Allocate { file, .. }
            | Call::List { file, .. } => Some(*file),
            Call::Truncate { what, .. }
            | Call::Stat { what }
            | Call::Chmod { what, .. }
            | Call::Chown { what, .. }
            | Call::Utimes { what }
            | Call::Statfs { what }
            | Call::Setxattr { what, .. }
            | Call::Getxattr { what, .. }
            | Call::Listxattr { what, .. }
            | Call::Removexattr { what, .. } => match what {
                Target::Open(file) => Some(*file),
                Target::Path(..) => None,
            },
            _ => None,
        }
    }

    /// Bytes that it holds beside names of files: data, targets of links, names of attributes.
    pub fn carries(&self) -> u64 {
        let bytes = match self {
            Call::Write {
                data: Some(data), ..
            } => data.len(),
            Call::Symlink {
                target: LinkTarget::Verbatim(target) | LinkTarget::Below(target),
                ..
            } => target.len(),
            Call::Setxattr { name, .. }
            | Call::Getxattr { name, .. }
            | Call::Removexattr { name, .. } => name.len(),
            _ => 0,
        };
        bytes as u64
    }

    /// Why no replay does it, whatever its trace is.
    fn too_much(&self) -> Option<&'static str> {
        match self {
            Call::Read { length, .. }
            | Call::Write { length, .. }
            | Call::List { length, .. }
            | Call::Setxattr { length, .. }
            | Call::Getxattr { length, .. }
            | Call::Listxattr { length, .. } => (*length > TRANSFER_MAX).then_some(why::LARGE),
            // RENAME_WHITEOUT leaves a device.
            Call::Rename { flags, .. } if flags & !RENAMES != 0 => Some(why::DEVICE),
            _ => None,
        }
    }

    /// Whether what it returns says how it went: a length, which a replay should return too.
    pub fn returns_a_length(&self) -> bool {
        matches!(self, Call::Read { .. } | Call::Write { .. })
    }
}

/// What of a trace is no operation of the replay, by reason.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeftOut(pub BTreeMap<&'static str, u64>);

impl LeftOut {
    /// One more.
    pub fn add(&mut self, why: &'static str) {
        *self.0.entry(why).or_default() += 1;
    }

    /// Those of another trace as well.
    pub fn merge(&mut self, other: &LeftOut) {
        let LeftOut(reasons) = other;
        for (why, count) in reasons {
            *self.0.entry(why).or_default() += count;
        }
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

/// Why operations are left out.
pub mod why {
    /// Paths of the kernel.
    pub const KERNEL: &str = "below /proc, /sys or /dev";
    /// Where `--below` was given.
    pub const ELSEWHERE: &str = "outside of --below";
    /// With `--below`: nobody knows where it is.
    pub const SOMEWHERE: &str =
        "relative to a working directory that the trace does not record (give it with --cwd)";
    /// A descriptor that the trace does not explain.
    pub const NO_OPEN: &str = "a file descriptor whose open is not in the trace";
    /// Another descriptor of the same open file is left.
    pub const DUPLICATE: &str = "a close of one of several descriptors of an open file";
    /// A pipe, a socket, a terminal.
    pub const NO_FILE: &str = "a pipe, a socket or a terminal";
    /// Pages move without calls.
    pub const MAPPED: &str = "mmap: pages move without system calls";
    /// Locks.
    pub const LOCK: &str = "a lock";
    /// Other calls on files.
    pub const OTHER: &str = "a file call that is not replayed";
    /// It had not ended.
    pub const UNENDED: &str = "unfinished when the trace ended";
    /// Device nodes and the like.
    pub const DEVICE: &str = "the creation of a device, a pipe or a socket";
    /// Attributes that are not the user's.
    pub const ATTRIBUTE: &str = "an extended attribute outside of user.";
    /// Calls of another layer.
    pub const MPI_IO: &str = "MPI-IO: its POSIX operations are in the trace too";
    /// No system takes it.
    pub const LONG: &str = "a name of more than 255 bytes or a path of more than 4095";
    /// Damaged, or of a form that is not known.
    pub const UNREADABLE: &str = "a line that cannot be read";
    /// A larger transfer than [`super::TRANSFER_MAX`].
    pub const LARGE: &str = "a transfer of more than 256 MiB";
}

/// The forms of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// fio's log of I/O, version 2 or 3.
    Iolog,
    /// JuiceFS's access log.
    Juicefs,
    /// `strace -f -ttt -T`
    Strace,
    /// The text of `darshan-dxt-parser`.
    Dxt,
    /// Ours: JSON lines.
    Rbench,
}

impl Format {
    /// All, with their names on command lines.
    pub const ALL: [(&'static str, Format); 5] = [
        ("iolog", Format::Iolog),
        ("juicefs", Format::Juicefs),
        ("strace", Format::Strace),
        ("dxt", Format::Dxt),
        ("rbench", Format::Rbench),
    ];

    /// Its name on command lines.
    pub fn name(self) -> &'static str {
        let named = Format::ALL.iter().find(|(_, format)| *format == self);
        named.map_or("", |(name, _)| name)
    }

    /// The form that a trace has, by a line that is neither empty nor a comment of its own;
    /// `None`: the line does not say.
    pub fn of(line: &[u8]) -> Option<Format> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if text.starts_with("fio version ") {
            return Some(Format::Iolog);
        }
        if text.starts_with("# darshan") || text.starts_with("# DXT") {
            return Some(Format::Dxt);
        }
        if text.starts_with('{') {
            return Some(Format::Rbench);
        }
        if juicefs::is_line(text) {
            return Some(Format::Juicefs);
        }
        strace::is_line(text).then_some(Format::Strace)
    }
}

/// What the readers of all forms are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Which names, and what becomes of them.
    pub names: Names,
    /// iolog 3: the unit of its times.
    pub unit: Nanos,
    /// strace: the working directory of the first process, as bytes of an absolute path.
    pub cwd: Option<Vec<u8>>,
}

/// Reads a trace line by line.
pub trait Reader: Send {
    /// Takes the next line, without its end. What it says goes to `out`, which need not be
    /// what stands in it: of a call in two lines the second has it all.
    ///
    /// # Errors
    /// What is wrong with it, a sentence without the line's number.
    fn line(&mut self, number: u64, line: &[u8], out: &mut Out) -> Result<(), String>;

    /// There are no more lines.
    ///
    /// # Errors
    /// What is missing.
    fn end(&mut self, out: &mut Out) -> Result<(), String>;
}

/// Where readers put what they find.
#[derive(Debug, Default)]
pub struct Out {
    /// Operations, about in the order of their starts.
    pub ops: Vec<Op>,
    /// What is left out.
    pub left_out: LeftOut,
    /// JuiceFS: places where lines are missing.
    pub gaps: u64,
    /// The first line that could not be read, and why.
    pub unreadable: Option<String>,
}

impl Out {
    /// Takes an operation.
    pub fn push(&mut self, op: Op) {
        match op.call.too_much() {
            Some(why) => self.left_out.add(why),
            None => self.ops.push(op),
        }
    }
}

/// A reader of that form.
pub fn reader(format: Format, reading: &Reading) -> Box<dyn Reader> {
    match format {
        Format::Iolog => Box::new(blocks::Iolog::new(reading)),
        Format::Juicefs => Box::new(juicefs::Juicefs::new(reading)),
        Format::Strace => Box::new(strace::Strace::new(reading)),
        Format::Dxt => Box::new(dxt::Dxt::new(reading)),
        Format::Rbench => Box::new(form::OwnForm::new(reading)),
    }
}

/// A decimal time in seconds, exactly in ns; what is below that is cut off.
pub(crate) fn seconds(text: &str) -> Option<Nanos> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) {
        return None;
    }
    let mut ns = 0_u64;
    for place in 0..9 {
        let digit = part.as_bytes().get(place).map_or(0, |b| b - b'0');
        ns = ns * 10 + u64::from(digit);
    }
    let whole: u64 = whole.parse().ok()?;
    Some(Nanos(whole.checked_mul(1_000_000_000)?.checked_add(ns)?))
}

#[cfg(test)]
mod tests;
