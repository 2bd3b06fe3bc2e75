//! The interval log (`--hlog`), written by rank 0 while phases run.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rbench_core::timeline::IntervalPart;
use rbench_core::{Clock as _, MonotonicClock, Nanos};
use rbench_exec::intervals::{IntervalRow, Span};
use rbench_report::hlog;

use crate::files::{Lines, Replace, begins_with, may_be_written, write_whole};
use crate::version;

/// An interval log that is being written.
pub struct IntervalLog {
    path: PathBuf,
    lines: Lines,
    /// Origin of the log's times on the monotonic clock.
    start: Nanos,
    /// True once an interval was written.
    used: bool,
    /// The reason why lines are missing, once some are.
    trouble: Option<String>,
}

fn refused(path: &Path, why: &str) -> String {
    format!("--hlog {} {why}", path.display())
}

fn is_ours(file: &File) -> bool {
    begins_with(file, hlog::beginning().as_bytes())
}

/// Checks before a run that the log can be written.
///
/// # Errors
/// One sentence that names the file.
pub fn is_free(path: &Path, replace: Replace) -> Result<(), String> {
    let free = may_be_written(path, replace, is_ours);
    free.map(|_| ()).map_err(|why| refused(path, &why))
}

impl IntervalLog {
    /// Starts the log at `path`.
    ///
    /// # Errors
    /// One sentence that names the file. A file that may not be replaced stays.
    pub fn begin(path: &Path, run_id: &str, replace: Replace) -> Result<IntervalLog, String> {
        let refused = |why: String| refused(path, &why);
        is_free(path, replace)?;
        let (now, start) = (SystemTime::now(), MonotonicClock.now());
        let header = hlog::header(version::VERSION, run_id, now);
        let file = write_whole(path, &header, replace, is_ours).map_err(refused)?;
        Ok(IntervalLog {
            path: path.to_owned(),
            lines: Lines::after(file, header.len() as u64),
            start,
            used: false,
            trouble: None,
        })
    }

    /// Adds an interval, or a part of it.
    pub fn add(&mut self, row: &IntervalRow, span: Span, part: &IntervalPart) {
        let after = span.interval.0.saturating_mul(part.number);
        let begin = Nanos(span.start.0.saturating_add(after)).since(self.start);
        let line = |name: &str, latency| hlog::line(name, begin.into(), span.length, latency);
        let mut text = line(&row.name, &part.latencies.service);
        if row.open_loop {
            text += &line(&format!("{}.response", row.name), &part.latencies.response);
        }
        self.append(&text);
    }

    fn append(&mut self, text: &str) {
        self.used |= !text.is_empty();
        if let Err(error) = self.lines.append(text) {
            let path = self.path.display();
            self.trouble
                .get_or_insert_with(|| format!("--hlog {path} cannot be written: {error}"));
        }
    }

    /// The reason why lines are missing, if some are.
    pub fn trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// Removes the log if it has no interval.
    pub fn discard(self) {
        if !self.used {
            // A remaining empty log does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
