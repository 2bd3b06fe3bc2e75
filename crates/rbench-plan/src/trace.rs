//! Traces of programs' operations on files (`rbench replay`): the common form of all formats, and
//! their readers. Pure; rbench-exec opens the files.
//!
//! Any name of a trace becomes a path below the directory of the replay ([`names`]). Operations
//! that could affect anything outside (devices, attributes outside of `user.`, set-user-id bits)
//! are left out and counted.

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
use rbench_core::{By, Call, Nanos, OpenFlags};

use self::names::Names;

/// A path below the directory of the replay: relative, without `.`, `..` and empty parts. The empty
/// path is that directory.
pub type Name = Arc<[u8]>;

/// Longest line of a trace in bytes: one with 1 MiB of data in base64, and its names.
pub const LINE_MAX: u64 = 4 << 20;

/// The largest read or write of a trace in bytes.
pub const TRANSFER_MAX: u64 = 256 << 20;

/// An operation of a trace: a system call with its operands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// Its line, from 1; of a call in two lines the second one.
    pub line: u64,
    /// Its start, by the clock of its trace.
    pub at: Nanos,
    /// Its process: a number that is unique in its trace.
    pub process: u64,
    /// Its duration, if the trace has it.
    pub took: Option<Nanos>,
    /// Its result.
    pub result: Outcome,
    /// Attributes of its object, from the result.
    pub told: Told,
    /// True if the trace does not have it, but later operations need it: a file that was already
    /// open, or that is closed at the end. Neither timed nor counted.
    pub implied: bool,
    /// The call.
    pub call: Call,
    /// Its path; `None` if it works on an open file.
    pub path: Option<Name>,
    /// Its other operand.
    pub other: Other,
    /// The number of the open file that it works on, or that it opens. It belongs to one trace, and
    /// is never reused.
    pub file: Option<u64>,
    /// Bytes of its data, or the room for them; `None` if it moves none.
    pub length: Option<u64>,
}

/// Result of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Not recorded.
    Unknown,
    /// Success, with the returned length or 0.
    Done(u64),
    /// Failure with this errno.
    Failed(i32),
}

/// Attributes of an object in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    /// Its kind.
    pub kind: Option<Kind>,
    /// Its length in bytes after the operation.
    pub size: Option<u64>,
}

/// Operand of a call other than its path or open file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Other {
    /// Nothing, or data that the trace lacks.
    Nothing,
    /// A second path. For a symbolic link it is a replacement of a target that could lead out.
    Path(Name),
    /// The recorded target of a symbolic link that only leads down, the name of an attribute, or
    /// the written data.
    Bytes(Name),
}

/// Object of a call that takes a path or an open file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A path; a symbolic link is followed.
    Path(Name),
    /// A path; a symbolic link is not followed.
    Link(Name),
    /// An open file.
    File(u64),
}

impl Target {
    /// Creates a call on it.
    pub fn op(self, call: impl FnOnce(By) -> Call) -> Op {
        match self {
            Target::Path(path) => Op::on_path(path, call(By::Path)),
            Target::Link(path) => Op::on_path(path, call(By::Link)),
            Target::File(file) => Op::on_file(file, call(By::File)),
        }
    }
}

/// Flags of `open` that are replayed; others have no effect on a replay.
const OPEN_FLAGS: i32 = flags::ACCESS
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

/// Flags of `renameat2` that are replayed: the new name must not exist, or both names are
/// exchanged.
const RENAMES: u32 = flags::RENAME_NOREPLACE | flags::RENAME_EXCHANGE;

/// Permissions that are replayed: a trace cannot create a set-user-id program.
pub const MODES: u32 = 0o1777;

impl Op {
    /// A call without any other data.
    fn of(call: Call) -> Op {
        Op {
            line: 0,
            at: Nanos(0),
            process: 0,
            took: None,
            result: Outcome::Unknown,
            told: Told::default(),
            implied: false,
            call,
            path: None,
            other: Other::Nothing,
            file: None,
            length: None,
        }
    }

    /// A call on a path.
    pub fn on_path(path: Name, call: Call) -> Op {
        Op {
            path: Some(path),
            ..Op::of(call)
        }
    }

    /// A call on an open file.
    pub fn on_file(file: u64, call: Call) -> Op {
        Op {
            file: Some(file),
            ..Op::of(call)
        }
    }

    /// An open; `file` becomes the number of the open file.
    pub fn opening(path: Name, (bits, mode): (i32, u32), file: u64) -> Op {
        let bits = bits & OPEN_FLAGS;
        Op {
            file: Some(file),
            ..Op::on_path(path, Call::Open(OpenFlags { bits, mode }))
        }
    }

    /// Sets the number of bytes of data.
    pub fn moving(self, length: u64) -> Op {
        Op {
            length: Some(length),
            ..self
        }
    }

    /// Sets the other operand.
    pub fn with(self, other: Other) -> Op {
        Op { other, ..self }
    }

    /// Makes it one that this line does not have, but implies.
    fn implied(self, line: u64, process: u64, at: Nanos) -> Op {
        Op {
            line,
            at,
            process,
            implied: true,
            ..self
        }
    }

    /// Bytes that it contains in addition to names of files: data, targets of links, names of
    /// attributes.
    pub fn carries(&self) -> u64 {
        match &self.other {
            Other::Path(target) if self.call == Call::Symlink => target.len() as u64,
            Other::Bytes(bytes) => bytes.len() as u64,
            Other::Path(_) | Other::Nothing => 0,
        }
    }

    /// The reason why no replay can do it, in any trace.
    fn too_much(&self) -> Option<&'static str> {
        match self.call {
            // RENAME_WHITEOUT leaves a device.
            Call::Rename(flags) if flags & !RENAMES != 0 => Some(why::DEVICE),
            _ => (self.length > Some(TRANSFER_MAX)).then_some(why::LARGE),
        }
    }

    /// True if it returns the number of bytes moved, which a replay should return too.
    pub fn returns_a_length(&self) -> bool {
        self.writes() || matches!(self.call, Call::Read | Call::ReadAt(_))
    }

    /// True if it writes data.
    pub fn writes(&self) -> bool {
        matches!(self.call, Call::Write | Call::WriteAt(_))
    }
}

/// Numbers of lines and operations that are not replayed, by reason.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeftOut(pub BTreeMap<&'static str, u64>);

impl LeftOut {
    /// Counts one.
    pub fn add(&mut self, why: &'static str) {
        *self.0.entry(why).or_default() += 1;
    }

    /// Adds those of another trace.
    pub fn merge(&mut self, other: &LeftOut) {
        let LeftOut(reasons) = other;
        for (why, count) in reasons {
            *self.0.entry(why).or_default() += count;
        }
    }

    /// The total number.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

/// Reasons why operations are left out.
pub mod why {
    /// Paths of the kernel.
    pub const KERNEL: &str = "below /proc, /sys or /dev";
    /// Names outside of `--below`.
    pub const ELSEWHERE: &str = "outside of --below";
    /// Names in an unknown place, with `--below`.
    pub const SOMEWHERE: &str =
        "relative to a working directory that the trace does not record (give it with --cwd)";
    /// A descriptor whose open is missing.
    pub const NO_OPEN: &str = "a file descriptor whose open is not in the trace";
    /// A close that leaves another descriptor of the same open file.
    pub const DUPLICATE: &str = "a close of one of several descriptors of an open file";
    /// A pipe, a socket, a terminal.
    pub const NO_FILE: &str = "a pipe, a socket or a terminal";
    /// Pages that move without calls.
    pub const MAPPED: &str = "mmap: pages move without system calls";
    /// Locks.
    pub const LOCK: &str = "a lock";
    /// Other calls on files.
    pub const OTHER: &str = "a file call that is not replayed";
    /// A call that had not ended.
    pub const UNENDED: &str = "unfinished when the trace ended";
    /// Device nodes and similar files.
    pub const DEVICE: &str = "the creation of a device, a pipe or a socket";
    /// Attributes outside of the user's name space.
    pub const ATTRIBUTE: &str = "an extended attribute that does not start with `user.`";
    /// Attributes whose names a trace lacks.
    pub const CUT_OFF: &str = "an extended attribute whose name strace cut off (-s)";
    /// Calls of another layer.
    pub const MPI_IO: &str = "MPI-IO: its POSIX operations are in the trace too";
    /// Names that no system accepts.
    pub const LONG: &str = "a name of more than 255 bytes or a path of more than 4095";
    /// A damaged line, or one of unknown form.
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
    /// `strace -f -y -ttt -T -s 0`
    Strace,
    /// The output of `darshan-dxt-parser`.
    Dxt,
    /// rbench's own: JSON lines.
    Rbench,
}

impl Format {
    /// All formats, with their names on command lines and their descriptions for the help.
    pub const ALL: [(&'static str, Format, &'static str); 5] = [
        ("iolog", Format::Iolog, "fio's I/O log, version 2 or 3"),
        (
            "juicefs",
            Format::Juicefs,
            "JuiceFS's access log: cat MOUNT/.accesslog",
        ),
        (
            "strace",
            Format::Strace,
            "strace -f -y -ttt -T -s 0 -o TRACE PROGRAM; -tt, without a date, is read too",
        ),
        ("dxt", Format::Dxt, "Output of darshan-dxt-parser"),
        ("rbench", Format::Rbench, "Trace of rbench record"),
    ];

    /// Its name on command lines.
    pub fn name(self) -> &'static str {
        let named = Format::ALL.iter().find(|(_, format, _)| *format == self);
        named.map_or("", |(name, ..)| name)
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

/// Options of the readers of all formats.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Selection and mapping of names.
    pub names: Names,
    /// iolog 3: unit of its times.
    pub unit: Nanos,
    /// strace: the working directory of the first process, as bytes of an absolute path.
    pub cwd: Option<Vec<u8>>,
}

/// Reader of a trace, line by line.
pub trait Reader: Send {
    /// Takes the next line, without its end. The operations that it adds to `out` may come from
    /// other lines: a call in two lines is complete with the second.
    ///
    /// # Errors
    /// A sentence with the error, without the line's number.
    fn line(&mut self, number: u64, line: &[u8], out: &mut Out) -> Result<(), String>;

    /// Ends the trace.
    ///
    /// # Errors
    /// The missing data.
    fn end(&mut self, out: &mut Out) -> Result<(), String>;
}

/// Output of readers.
#[derive(Debug, Default)]
pub struct Out {
    /// Operations, roughly in the order of their starts.
    pub ops: Vec<Op>,
    /// Lines and operations that are left out.
    pub left_out: LeftOut,
    /// JuiceFS: number of gaps with missing lines.
    pub gaps: u64,
    /// The first unreadable line, with the error.
    pub unreadable: Option<String>,
}

impl Out {
    /// What was found; `None` for what is left out, which is counted.
    ///
    /// # Errors
    /// A sentence about what is wrong.
    fn mapped<T>(&mut self, found: Result<T, names::Unmapped>) -> Result<Option<T>, String> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(names::Unmapped::Wrong(why)) => Err(why),
            Err(names::Unmapped::LeftOut(why)) => {
                self.left_out.add(why);
                Ok(None)
            }
        }
    }

    /// Adds an operation.
    pub fn push(&mut self, op: Op) {
        match op.too_much() {
            Some(why) => self.left_out.add(why),
            None => self.ops.push(op),
        }
    }
}

/// A reader of that format.
pub fn reader(format: Format, reading: &Reading) -> Box<dyn Reader> {
    match format {
        Format::Iolog => Box::new(blocks::Iolog::new(reading)),
        Format::Juicefs => Box::new(juicefs::Juicefs::new(reading)),
        Format::Strace => Box::new(strace::Strace::new(reading)),
        Format::Dxt => Box::new(dxt::Dxt::new(reading)),
        Format::Rbench => Box::new(form::OwnForm::new(reading)),
    }
}

/// Parses a decimal time in seconds, exactly in ns; smaller fractions are cut off.
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
