//! A file that grows line by line.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};

/// A file to which whole lines are appended. A line that did not fit is cut off again, so that the
/// following lines stay readable.
#[derive(Debug)]
pub struct Lines {
    file: File,
    /// Length of the complete lines, bytes.
    length: u64,
}

impl Lines {
    /// Continues a file that holds `length` bytes of lines.
    pub fn after(file: File, length: u64) -> Lines {
        Lines { file, length }
    }

    /// Appends lines, each with its newline.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn append(&mut self, lines: &str) -> io::Result<()> {
        let place = SeekFrom::Start(self.length);
        let appended = self
            .file
            .seek(place)
            .and_then(|_| self.file.write_all(lines.as_bytes()));
        match appended {
            Ok(()) => self.length += lines.len() as u64,
            // If this fails too, the next line still overwrites it.
            Err(_) => drop(self.file.set_len(self.length)),
        }
        appended
    }

    /// Appends lines and syncs them.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn append_synced(&mut self, lines: &str) -> io::Result<()> {
        let before = self.length;
        self.append(lines)?;
        self.file.sync_data().inspect_err(|_| {
            self.length = before;
            // If this fails too, the next line still overwrites it.
            let _ = self.file.set_len(before);
        })
    }
}
