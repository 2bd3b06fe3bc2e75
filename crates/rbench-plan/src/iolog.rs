//! fio's logs of I/O (`write_iolog`, `read_iolog`): what their lines say, what of it a job
//! replays and when, and how lines are written. Pure; who reads and writes the files is in
//! rbench-exec.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::PathBuf;

use rbench_core::Nanos;

use crate::paths::climbs;

#[cfg(test)]
mod tests;

/// The unit of the time stamps of version 3.
pub const STAMP: Nanos = Nanos::MICROSECOND;

/// The unit of what a `wait` of version 2 names, a time since the start.
const WAIT: Nanos = Nanos::MILLISECOND;

/// The first line of a log of version 3.
pub const HEADER: &str = "fio version 3 iolog";

/// `read_iolog` and what belongs to it: what the workers of a job replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// The logs: workers take them in turns.
    pub logs: Vec<String>,
    /// `read_iolog_chunked`: a log is read while it is replayed.
    pub chunked: bool,
    /// Times of the log are kept (else `replay_no_stall`).
    pub stalls: bool,
    /// `replay_time_scale`: speed, per cent of the recorded one; 1 at least.
    pub speed: u32,
    /// `replay_redirect`: the file of all lines.
    pub redirect: Option<String>,
    /// `directory`: all files lie below it; empty: wherever their names say.
    pub below: PathBuf,
    /// `replay_scale`: what offsets are divided by; 1 at least.
    pub scale: u64,
    /// `replay_align`: what they are rounded down to multiples of, bytes, a power of two.
    pub align: u64,
    /// `replay_skip`
    pub skip: Skip,
    /// `verify_interval`, where blocks are verified and that is given: it need not be the block.
    pub verify_interval: Option<u64>,
    /// What the logs hold of all ranks; `None`: they were not read yet.
    pub found: Option<Found>,
}

/// What is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Skip {
    /// Reads.
    pub read: bool,
    /// Writes.
    pub write: bool,
    /// Trims.
    pub trim: bool,
    /// fsync; with fio 3.33 not fdatasync.
    pub sync: bool,
}

/// What the logs of a job hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Found {
    /// Whether any has a sync.
    pub syncs: bool,
    /// Operations of a worker on average; `None`: nobody knows yet.
    pub operations: Option<u64>,
}

/// Versions of the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Lines without times, and waits.
    Two,
    /// Each line begins with a time.
    Three,
}

impl Version {
    /// The version of the log that begins with this line.
    ///
    /// # Errors
    /// What is wrong with it, a sentence.
    pub fn of(line: &[u8]) -> Result<Version, String> {
        if line.starts_with(b"fio version 2 iolog") {
            return Ok(Version::Two);
        }
        if line.starts_with(HEADER.as_bytes()) {
            return Ok(Version::Three);
        }
        // blktrace's number with its version, in the order of bytes of either machine.
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

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The file is named; nothing is done.
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
    /// Version 2: what follows does not start earlier.
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

    /// Whether it is of a whole file: then no place follows.
    fn is_of_file(self) -> bool {
        matches!(self, Action::Add | Action::Open | Action::Close)
    }

    /// Whether it reads, writes or trims.
    pub fn is_transfer(self) -> bool {
        matches!(self, Action::Read | Action::Write | Action::Trim)
    }
}

/// A line as it stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'l> {
    /// Version 3: its time stamp.
    pub stamp: Option<u64>,
    /// The file.
    pub file: &'l str,
    /// What is done with it.
    pub action: Action,
    /// Where; of a `wait` how long.
    pub offset: u64,
    /// How much, bytes.
    pub length: u32,
}

impl<'l> Line<'l> {
    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with it.
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

/// Something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Nanoseconds since the start; `u64::MAX`: behind what comes before it.
    at: u64,
    /// Where, bytes.
    pub offset: u64,
    /// How much, bytes.
    pub length: u32,
    /// Number of the file, in the order in which they are named.
    pub file: u32,
    /// What. Neither [`Action::Add`] nor [`Action::Wait`].
    pub action: Action,
}

impl Entry {
    /// When it is meant to start, since the start; `None`: behind what comes before it.
    pub fn at(&self) -> Option<Nanos> {
        (self.at != u64::MAX).then_some(Nanos(self.at))
    }
}

/// Follows a log line by line.
#[derive(Debug)]
pub struct Follower<'r> {
    replay: &'r Replay,
    version: Version,
    /// Files by name, and for each of them how many names it is open under.
    files: HashMap<String, u32>,
    names: Vec<String>,
    open: Vec<u32>,
    /// The stamp of the first line.
    first: Option<u64>,
    /// What follows does not start earlier, ns since the start.
    not_before: u64,
    /// Whether something waits for it.
    waits: bool,
}

impl<'r> Follower<'r> {
    /// Of a log of this version, before its first line behind the header.
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

    /// The names of the files so far, as they stand in the log or are redirected; an
    /// [`Entry`] has its position among them.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// What is to be done for the next line, if anything is.
    ///
    /// # Errors
    /// What is wrong with it.
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
        let place = line.offset / self.replay.scale.max(1);
        let at = match std::mem::take(&mut self.waits) {
            true => self.not_before,
            false => u64::MAX,
        };
        Ok(Some(Entry {
            at,
            offset: place & !(self.replay.align.max(1) - 1),
            length: line.length,
            file,
            action: line.action,
        }))
    }

    /// Notes what a line says of the time.
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
        // Lines are done in their order.
        let at = u64::try_from(at).unwrap_or(u64::MAX - 1).min(u64::MAX - 1);
        self.not_before = self.not_before.max(at);
        self.waits = true;
    }

    /// Whether anything is to be done for a line on that file.
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
                // Names that lead to one file have it open together.
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

/// Adds a line on a file to a log of version 3: `at` since its start.
pub fn put_file(log: &mut Vec<u8>, at: Nanos, file: &str, action: Action) {
    // A vector takes everything.
    let _ = writeln!(log, "{} {file} {}", at.0 / STAMP.0, action.word());
}

/// Adds a line on a place in a file to a log of version 3.
pub fn put_place(log: &mut Vec<u8>, at: Nanos, file: &str, action: Action, place: (u64, u64)) {
    let (offset, length) = place;
    let (at, word) = (at.0 / STAMP.0, action.word());
    let _ = writeln!(log, "{at} {file} {word} {offset} {length}");
}
