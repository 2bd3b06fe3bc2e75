//! fio's logs of I/O (`write_iolog`, `read_iolog`): parsing and writing of their lines, and the
//! operations that a job replays. Pure; rbench-exec reads and writes the files.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::PathBuf;

use rbench_core::Nanos;

use crate::paths::climbs;

#[cfg(test)]
mod tests;

/// Unit of time stamps in version 3.
pub const STAMP: Nanos = Nanos::MICROSECOND;

/// Unit of a `wait` in version 2, which names a time since the start.
const WAIT: Nanos = Nanos::MILLISECOND;

/// First line of a log in version 3.
pub const HEADER: &str = "fio version 3 iolog";

/// `read_iolog` and its options: the logs that the workers of a job replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// The logs; workers take them in turn.
    pub logs: Vec<String>,
    /// `read_iolog_chunked`: the log is read during the replay.
    pub chunked: bool,
    /// True if the times of the log are kept (no `replay_no_stall`).
    pub stalls: bool,
    /// `replay_time_scale`: speed in per cent of the recorded one, at least 1.
    pub speed: u32,
    /// `replay_redirect`: the file for all lines.
    pub redirect: Option<String>,
    /// `directory`: the directory of all files; empty: their names are paths.
    pub below: PathBuf,
    /// `replay_scale`: divisor of offsets, at least 1.
    pub scale: u64,
    /// `replay_align`: alignment to which offsets are rounded down, bytes, a power of two.
    pub align: u64,
    /// `replay_skip`
    pub skip: Skip,
    /// `verify_interval`, if given and blocks are verified: it may differ from the block.
    pub verify_interval: Option<u64>,
    /// Summary of the logs of all ranks; `None` before they are read.
    pub found: Option<Found>,
}

impl Replay {
    /// The whole log as it was recorded.
    pub const WHOLE: Replay = Replay {
        logs: Vec::new(),
        chunked: false,
        stalls: true,
        speed: 100,
        redirect: None,
        below: PathBuf::new(),
        scale: 1,
        align: 1,
        skip: Skip {
            read: false,
            write: false,
            trim: false,
            sync: false,
        },
        verify_interval: None,
        found: None,
    };
}

/// Operations that are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Skip {
    /// Reads.
    pub read: bool,
    /// Writes.
    pub write: bool,
    /// Trims.
    pub trim: bool,
    /// fsync; as in fio 3.33, not fdatasync.
    pub sync: bool,
}

/// Summary of the logs of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Found {
    /// True if any has a sync.
    pub syncs: bool,
    /// Average number of operations per worker; `None` if not yet known.
    pub operations: Option<u64>,
}

/// Versions of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Lines without times, and waits.
    Two,
    /// Lines with a time at their start.
    Three,
}

impl Version {
    /// The version of the log with this first line.
    ///
    /// # Errors
    /// A sentence with the error.
    pub fn of(line: &[u8]) -> Result<Version, String> {
        if line.starts_with(b"fio version 2 iolog") {
            return Ok(Version::Two);
        }
        if line.starts_with(HEADER.as_bytes()) {
            return Ok(Version::Three);
        }
        // blktrace's magic number with its version, in either byte order.
        if let [_, 0x74, 0x61, 0x65, ..] | [0x65, 0x61, 0x74, _, ..] = line {
            return Err(
                "it is a binary blktrace log of a block device: convert it to fio's own \
                        format, with files in place of the device"
                    .to_owned(),
            );
        }
        Err(
            "not an I/O log: its first line must be 'fio version 2 iolog' or 'fio version 3 iolog'"
                .to_owned(),
        )
    }
}

/// Action of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The file is declared; nothing is done.
    Add,
    /// The file is opened.
    Open,
    /// The file is closed.
    Close,
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims.
    Trim,
    /// fsync
    Sync,
    /// fdatasync
    DataSync,
    /// Version 2: later lines start at this time or later.
    Wait,
}

impl Action {
    const ALL: [(&'static str, Action); 9] = [
        ("add", Action::Add),
        ("open", Action::Open),
        ("close", Action::Close),
        ("read", Action::Read),
        ("write", Action::Write),
        ("trim", Action::Trim),
        ("sync", Action::Sync),
        ("datasync", Action::DataSync),
        ("wait", Action::Wait),
    ];

    /// Its word in a log.
    pub fn word(self) -> &'static str {
        let named = Action::ALL.iter().find(|(_, action)| *action == self);
        named.map_or("", |(word, _)| word)
    }

    /// True if it concerns a whole file: then no offset follows.
    fn is_of_file(self) -> bool {
        matches!(self, Action::Add | Action::Open | Action::Close)
    }

    /// True if it reads, writes or trims.
    pub fn is_transfer(self) -> bool {
        matches!(self, Action::Read | Action::Write | Action::Trim)
    }
}

/// A line of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'l> {
    /// Its time stamp in version 3.
    pub stamp: Option<u64>,
    /// The file.
    pub file: &'l str,
    /// The action on it.
    pub action: Action,
    /// The offset; the time of a `wait`.
    pub offset: u64,
    /// The length in bytes.
    pub length: u32,
}

impl<'l> Line<'l> {
    /// Reads a line.
    ///
    /// # Errors
    /// The error.
    pub fn read(version: Version, line: &'l str) -> Result<Line<'l>, String> {
        let mut words = line.split_ascii_whitespace();
        let mut word = |what: &str| words.next().ok_or_else(|| format!("{what} is missing"));
        let stamp = match version {
            Version::Two => None,
            Version::Three => Some(number(word("the time")?, "time")?),
        };
        let file = word("the file")?;
        let action = word("the action")?;
        let known = Action::ALL.iter().find(|(word, _)| *word == action);
        let Some((_, action)) = known.copied() else {
            let words = Action::ALL.map(|(word, _)| word).join(", ");
            return Err(format!(
                "'{action}' is not an action (expected one of {words})"
            ));
        };
        if action == Action::Wait && version == Version::Three {
            return Err(
                "'wait' is not an action of version 3, which has a time in each line".to_owned(),
            );
        }
        let (offset, length) = match action.is_of_file() {
            true => (0, 0),
            false => (
                number(word("the offset")?, "offset")?,
                number(word("the length")?, "length")?,
            ),
        };
        if let Some(more) = words.next() {
            return Err(format!("unexpected '{more}' at end of line"));
        }
        let length = u32::try_from(length)
            .map_err(|_| format!("the length of {length} bytes is too large"))?;
        if offset
            .checked_add(length.into())
            .is_none_or(|end| i64::try_from(end).is_err())
        {
            return Err(format!("offset {offset} exceeds the largest file size"));
        }
        Ok(Line {
            stamp,
            file,
            action,
            offset,
            length,
        })
    }
}

fn number(word: &str, what: &str) -> Result<u64, String> {
    let read = word.parse().ok().filter(|_| !word.starts_with('+'));
    read.ok_or_else(|| format!("'{word}' is not a valid {what}"))
}

/// An operation to replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Nanoseconds since the start; `u64::MAX`: after the previous operation.
    at: u64,
    /// Offset in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
    /// Number of the file, in the order in which they are named.
    pub file: u32,
    /// Its action, neither [`Action::Add`] nor [`Action::Wait`].
    pub action: Action,
}

impl Entry {
    /// Intended start after the common start; `None`: after the previous operation.
    pub fn at(&self) -> Option<Nanos> {
        (self.at != u64::MAX).then_some(Nanos(self.at))
    }
}

/// Reads a log line by line.
#[derive(Debug)]
pub struct Follower<'r> {
    replay: &'r Replay,
    version: Version,
    /// Numbers of the files by name.
    files: HashMap<String, u32>,
    names: Vec<String>,
    open: Vec<u32>,
    /// The stamp of the first line.
    first: Option<u64>,
    /// The next operation starts at this time or later, in ns since the start.
    not_before: u64,
    /// True if the next operation waits for that time.
    waits: bool,
}

impl<'r> Follower<'r> {
    /// Starts a log of this version, after its header.
    pub fn new(replay: &'r Replay, version: Version) -> Follower<'r> {
        Follower {
            replay,
            version,
            files: HashMap::new(),
            names: Vec::new(),
            open: Vec::new(),
            first: None,
            not_before: 0,
            waits: false,
        }
    }

    /// The names of the files up to now, as in the log or redirected; an [`Entry`] has an index
    /// into them.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Reads the next line, and returns its operation, if any.
    ///
    /// # Errors
    /// The error.
    pub fn line(&mut self, text: &str) -> Result<Option<Entry>, String> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        if Version::of(text.as_bytes()).is_ok() {
            return Err("another log starts there: give each worker its own log".to_owned());
        }
        let line = Line::read(self.version, text)?;
        self.note_time(&line);
        let name = self.replay.redirect.as_deref().unwrap_or(line.file);
        let file = match (self.files.get(name), line.action) {
            (Some(file), _) => *file,
            (None, Action::Add) => {
                if !self.replay.below.as_os_str().is_empty() && climbs(name) {
                    let below = self.replay.below.display();
                    return Err(format!("'{name}' is outside of the directory {below}"));
                }
                let file = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
                self.files.insert(name.to_owned(), file);
                self.names.push(name.to_owned());
                self.open.push(0);
                file
            }
            (None, Action::Wait) => 0,
            (None, _) => return Err(format!("'{name}' was not added earlier")),
        };
        if !self.is_done(&line, file)? {
            return Ok(None);
        }
        let offset = line.offset / self.replay.scale.max(1);
        let at = match std::mem::take(&mut self.waits) {
            true => self.not_before,
            false => u64::MAX,
        };
        Ok(Some(Entry {
            at,
            offset: offset & !(self.replay.align.max(1) - 1),
            length: line.length,
            file,
            action: line.action,
        }))
    }

    /// Records the time of a line.
    fn note_time(&mut self, line: &Line<'_>) {
        if !self.replay.stalls {
            return;
        }
        let at = match line.stamp {
            Some(stamp) => {
                let first = *self.first.get_or_insert(stamp);
                let recorded = u128::from(stamp.saturating_sub(first)) * u128::from(STAMP.0);
                recorded * 100 / u128::from(self.replay.speed.max(1))
            }
            None if line.action == Action::Wait => u128::from(line.offset) * u128::from(WAIT.0),
            None => return,
        };
        // Operations run in the order of their lines.
        let at = u64::try_from(at).unwrap_or(u64::MAX - 1).min(u64::MAX - 1);
        self.not_before = self.not_before.max(at);
        self.waits = true;
    }

    /// True if the line needs an operation.
    fn is_done(&mut self, line: &Line<'_>, file: u32) -> Result<bool, String> {
        let Skip {
            read,
            write,
            trim,
            sync,
        } = self.replay.skip;
        let Some(open) = self.open.get_mut(file as usize) else {
            return Ok(false);
        };
        let skipped = match line.action {
            Action::Add | Action::Wait => return Ok(false),
            Action::Open => {
                // Several names of one file share one open.
                *open = match self.replay.redirect {
                    Some(_) => *open + 1,
                    None => 1,
                };
                return Ok(*open == 1);
            }
            Action::Close => {
                let was = std::mem::replace(open, open.saturating_sub(1));
                return Ok(was == 1);
            }
            Action::Read => read,
            Action::Write => write,
            Action::Trim => trim,
            Action::Sync => sync,
            Action::DataSync => false,
        };
        match (skipped, *open) {
            (true, _) => Ok(false),
            (false, 0) => Err(format!("'{}' is not open at that point", line.file)),
            (false, _) => Ok(true),
        }
    }
}

/// Appends a line about a file to a log of version 3: `at` since its start.
pub fn put_file(log: &mut Vec<u8>, at: Nanos, file: &str, action: Action) {
    // Writing to a vector does not fail.
    let _ = writeln!(log, "{} {file} {}", at.0 / STAMP.0, action.word());
}

/// Appends a line about a range of a file to a log of version 3.
pub fn put_place(log: &mut Vec<u8>, at: Nanos, file: &str, action: Action, place: (u64, u64)) {
    let (offset, length) = place;
    let (at, word) = (at.0 / STAMP.0, action.word());
    let _ = writeln!(log, "{at} {file} {word} {offset} {length}");
}
