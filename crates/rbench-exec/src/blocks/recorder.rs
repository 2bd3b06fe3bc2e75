//! The log of I/O that a worker writes of itself (`write_iolog`), as fio writes it and replays
//! it: line by line outside the timed part, into a buffer that goes to the file when it is full.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use rbench_core::{Failure, Nanos, OpKind, errno_of};
use rbench_plan::iolog::{Action, HEADER, Version, put_file, put_place};
use rbench_sys::Transfer;

use super::progress::earlier;
use super::{BlockRunner, Kind, Planned};
use crate::meter::Meter;

/// Bytes of lines that are written at a time.
const LINES: usize = 64 << 10;

/// Writes down what a worker does, outside the timed part.
#[derive(Debug)]
pub(super) struct Recorder {
    path: PathBuf,
    file: File,
    /// Lines that are not written yet; it has room for all that may be.
    lines: Vec<u8>,
    /// The files by name, and whether they are open.
    files: Vec<(String, bool)>,
    /// The offset of the last operation, which fio gives a sync too.
    offset: u64,
    trouble: Option<io::Error>,
}

impl Recorder {
    /// Begins the log of a worker's files at `path`, in place of an earlier one.
    ///
    /// # Errors
    /// When something else is there, a file cannot be named in a log, or what the system says.
    pub(super) fn begin(path: PathBuf, names: Vec<String>) -> Result<Recorder, Failure> {
        let failed = |error: &io::Error| {
            let errno = errno_of(error, Errno::EEXIST);
            let failure = Failure::new(OpKind::Open, path.to_string_lossy(), errno);
            failure.with(format!("write_iolog: {error}"))
        };
        if let Some(name) = names.iter().find(|name| name.contains(char::is_whitespace)) {
            let text = format!("the name '{name}' contains a space, which ends a name in a log");
            return Err(failed(&io::Error::other(text)));
        }
        let file = fresh(&path).map_err(|error| failed(&error))?;
        // Two lines at most come at a time.
        let longest = names.iter().map(String::len).max().unwrap_or(0);
        let mut recorder = Recorder {
            lines: Vec::with_capacity(LINES + 2 * (longest + 128)),
            path,
            file,
            files: Vec::with_capacity(names.len()),
            offset: 0,
            trouble: None,
        };
        recorder.lines.extend_from_slice(HEADER.as_bytes());
        recorder.lines.push(b'\n');
        for name in names {
            put_file(&mut recorder.lines, Nanos(0), &name, Action::Add);
            recorder.files.push((name, false));
            recorder.make_room();
        }
        Ok(recorder)
    }

    /// Something was done at a place in a file, which is open from then on.
    fn of_place(&mut self, at: Nanos, file: u64, action: Action, place: (u64, u64)) {
        let Some((name, open)) = self.files.get_mut(file as usize) else {
            return;
        };
        if !std::mem::replace(open, true) {
            put_file(&mut self.lines, at, name, Action::Open);
        }
        put_place(&mut self.lines, at, name, action, place);
        self.offset = place.0;
        self.make_room();
    }

    /// A file is closed, if it was open.
    fn closed(&mut self, at: Nanos, file: u64) {
        if let Some((name, open)) = self.files.get_mut(file as usize)
            && std::mem::take(open)
        {
            put_file(&mut self.lines, at, name, Action::Close);
            self.make_room();
        }
    }

    fn make_room(&mut self) {
        if self.lines.len() >= LINES {
            self.write();
        }
    }

    #[cold]
    fn write(&mut self) {
        if let (Err(error), None) = (self.file.write_all(&self.lines), &self.trouble) {
            self.trouble = Some(error);
        }
        self.lines.clear();
    }

    /// Writes the rest; what went wrong, with the path.
    pub(super) fn end(mut self) -> Option<(PathBuf, io::Error)> {
        self.write();
        self.trouble.map(|error| (self.path, error))
    }
}

/// An empty file at `path`: new, or emptied of an earlier log. No symbolic link is followed,
/// and nothing else is written over.
fn fresh(path: &Path) -> io::Result<File> {
    let is_log = |start: &[u8]| start.is_empty() || Version::of(start).is_ok();
    let Some(mut file) = earlier(path, "an I/O log", 64, is_log)? else {
        let mut how = OpenOptions::new();
        how.write(true).create_new(true).mode(0o644);
        #[expect(clippy::disallowed_methods, reason = "an I/O log is not a target")]
        return how.open(path);
    };
    file.rewind()?;
    file.set_len(0)?;
    Ok(file)
}

impl BlockRunner {
    /// Writes down an operation that started `at`.
    #[inline]
    pub(super) fn record(&mut self, what: &Planned, at: Nanos) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        let action = match what.kind {
            Kind::Write => Action::Write,
            Kind::Trim => Action::Trim,
            Kind::Read | Kind::Check | Kind::CheckZeros => Action::Read,
        };
        let place = (what.offset, what.length as u64);
        recorder.of_place(at.since(self.accounts.start), what.file, action, place);
    }

    /// Writes down a sync that started `at`.
    pub(super) fn record_sync(&mut self, file: u64, transfer: Transfer, at: Nanos) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        let action = match transfer {
            Transfer::Fsync => Action::Sync,
            _ => Action::DataSync,
        };
        let place = (recorder.offset, 0);
        recorder.of_place(at.since(self.accounts.start), file, action, place);
    }

    /// Writes down that a file is closed, if it was open.
    pub(super) fn record_close(&mut self, file: u64, at: Nanos) {
        if let Some(recorder) = &mut self.recorder {
            recorder.closed(at.since(self.accounts.start), file);
        }
    }

    /// Writes what is left of the log.
    pub(super) fn end_record(&mut self, meter: &mut Meter) {
        if let Some((path, error)) = self.recorder.take().and_then(|recorder| recorder.end()) {
            self.not_kept(&path.to_string_lossy(), "write_iolog", &error, meter);
        }
    }
}
