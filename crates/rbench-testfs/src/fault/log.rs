//! The log of injected faults: one record for each fault that fired, in memory and,
//! line by line, in a file. A client that has the reply to a request finds the
//! request's faults here.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// A fault that fired: a line of the fault log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultRecord {
    /// Number of the record, from 1 without gaps. The log sets it.
    pub sequence: u64,
    /// The text of the fault; `quota` or `power-cut` for these two.
    pub fault: String,
    /// The kind of request, by [`crate::Kind::name`]; `power_cut` in the last record
    /// of a power cut.
    pub kind: String,
    /// The action as in the text of the fault (`EIO`, `stall=5s`, `flip`). For the
    /// quota, `ENOSPC` or `short`. For a power cut, `survived`, `torn`, `lost` or
    /// `vanished`, and `done` at its end.
    pub action: String,
    /// Number of the request among those of its kind, from 1. For a power cut, number
    /// of the change among the file's changes that were not synced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<u64>,
    /// The file, relative to the mount point; `.` for the root.
    pub path: String,
    /// Offset of the request's data in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Number of bytes that it requests or carries, including those after the end of
    /// the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// The damaged bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<Damage>,
}

/// A range of a file that differs from the correct content. For a short read or write
/// it is the part that was not moved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Its first byte in the file.
    pub offset: u64,
    /// Its number of bytes; 1 for a flip.
    pub length: u64,
    /// The inverted bit of that byte; 0 is the least significant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bit: Option<u8>,
    /// The source or destination of misdirected data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<OtherPlace>,
}

/// A position in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherPlace {
    /// The file, relative to the mount point.
    pub path: String,
    /// The first byte.
    pub offset: u64,
}

impl Damage {
    /// The range of `length` bytes at `offset`.
    pub(crate) fn range(offset: u64, length: u64) -> Damage {
        Damage {
            offset,
            length,
            ..Damage::default()
        }
    }
}

/// The records up to now, and their file.
#[derive(Debug, Default)]
pub(crate) struct FaultLog(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    records: Vec<FaultRecord>,
    file: Option<File>,
    /// The first error of writing to the file.
    failure: Option<io::Error>,
}

impl FaultLog {
    /// Creates an empty log that is written to the file `path`, if any. The file
    /// keeps its content until [`FaultLog::begin`].
    ///
    /// # Errors
    /// Fails if the file cannot be created.
    pub(crate) fn new(path: Option<&Path>) -> io::Result<FaultLog> {
        let open = |path| {
            let mut how = OpenOptions::new();
            how.write(true).create(true).truncate(false);
            // Only a link to a terminal or a pipe may be followed.
            if Path::is_file(path) || !path.exists() {
                how.custom_flags(libc::O_NOFOLLOW);
            }
            how.open(path)
        };
        let file = path.map(open).transpose()?;
        Ok(FaultLog(Mutex::new(State {
            file,
            ..State::default()
        })))
    }

    /// Empties the file, because the file system is now mounted.
    ///
    /// # Errors
    /// Fails if a regular file cannot be emptied; other files have no content.
    pub(crate) fn begin(&self) -> io::Result<()> {
        match &self.0.lock().file {
            Some(file) if file.metadata()?.is_file() => file.set_len(0),
            Some(_) | None => Ok(()),
        }
    }

    /// Numbers `record` and appends it.
    pub(crate) fn add(&self, mut record: FaultRecord) {
        let mut state = self.0.lock();
        record.sequence = state.records.len() as u64 + 1;
        let written = match &mut state.file {
            Some(file) => write_line(file, &record),
            None => Ok(()),
        };
        if let Err(error) = written {
            state.failure.get_or_insert(error);
        }
        state.records.push(record);
    }

    /// All records, in the order of their numbers.
    pub(crate) fn records(&self) -> Vec<FaultRecord> {
        self.0.lock().records.clone()
    }

    /// The first error of writing to the file, once.
    pub(crate) fn take_failure(&self) -> Option<io::Error> {
        self.0.lock().failure.take()
    }
}

fn write_line(file: &mut File, record: &FaultRecord) -> io::Result<()> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    file.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(path: &str) -> FaultRecord {
        FaultRecord {
            fault: "read:flip@nth=1".to_owned(),
            kind: "read".to_owned(),
            action: "flip".to_owned(),
            path: path.to_owned(),
            ..FaultRecord::default()
        }
    }

    #[test]
    fn each_record_is_a_line_with_the_next_number() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("log");
        std::fs::write(&path, "of an earlier mount\n").expect("room");
        let log = FaultLog::new(Some(&path)).expect("writable");
        log.add(FaultRecord {
            request: Some(7),
            offset: Some(8192),
            length: Some(4096),
            damage: vec![Damage {
                bit: Some(3),
                ..Damage::range(9000, 1)
            }],
            ..record("d/f")
        });
        log.add(record("g"));
        let text = std::fs::read_to_string(&path).expect("readable");
        let lines: Vec<&str> = text.lines().collect();
        let expect = r#"{"sequence":1,"fault":"read:flip@nth=1","kind":"read","action":"flip","request":7,"path":"d/f","offset":8192,"length":4096,"damage":[{"offset":9000,"length":1,"bit":3}]}"#;
        assert_eq!(lines[0], expect);
        let read = |line: &str| serde_json::from_str(line).expect("a record");
        let back: Vec<FaultRecord> = lines.into_iter().map(read).collect();
        assert_eq!(back, log.records());
        assert_eq!(back[1].sequence, 2);
        assert!(log.take_failure().is_none());
    }

    #[test]
    fn a_log_that_cannot_be_written_is_told() {
        assert!(FaultLog::new(Some(Path::new("/nowhere/log"))).is_err());
        let log = FaultLog::new(Some(Path::new("/dev/full"))).expect("there");
        log.add(record("f"));
        let failure = log.take_failure().expect("no room");
        assert_eq!(failure.kind(), io::ErrorKind::StorageFull);
        assert_eq!(log.records().len(), 1);
    }
}
