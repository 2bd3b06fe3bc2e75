//! Files that front ends create: the log of operations that each rank writes on its own host
//! (`--log`, mdtest's `--savePerOpDataCSV`), and tables that are written after the run.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use rbench_core::Rank;
use rbench_core::outcome::OpTime;

use crate::files;

/// An open log.
pub struct OperationLog {
    path: PathBuf,
    file: BufWriter<File>,
    /// True once an operation was written.
    used: bool,
}

impl OperationLog {
    /// Creates this rank's log with name `prefix`, for `option`.
    ///
    /// # Errors
    /// One sentence that names option and file.
    pub fn create(option: &str, prefix: &Path, rank: Rank) -> Result<OperationLog, String> {
        let mut name = prefix.as_os_str().to_owned();
        name.push(format!("-{:05}.csv", rank.0));
        let path = PathBuf::from(name);
        let mut file = BufWriter::new(new_file(option, &path)?);
        match file.write_all(b"iteration,operation,start_s,seconds,bytes\n") {
            Ok(()) => Ok(OperationLog {
                path,
                file,
                used: false,
            }),
            Err(error) => Err(unwritable(&path, &error)),
        }
    }

    /// Appends the operations of a phase with these rows.
    ///
    /// # Errors
    /// One sentence that names the file.
    pub fn add(&mut self, iteration: u32, rows: &[&str], all: &[OpTime]) -> Result<(), String> {
        self.used |= !all.is_empty();
        let written = all.iter().try_for_each(|op| {
            writeln!(
                self.file,
                "{iteration},{},{:.9},{:.9},{}",
                rows.get(op.row as usize).copied().unwrap_or_default(),
                op.start.as_secs_f64(),
                op.service.as_secs_f64(),
                op.bytes
            )
        });
        written
            .and_then(|()| self.file.flush())
            .map_err(|e| unwritable(&self.path, &e))
    }

    /// Removes the log if it has no operation.
    pub fn discard(self) {
        if !self.used {
            // A remaining empty file does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A file that a front end creates before the run and writes once, after it.
pub struct NewFile {
    path: PathBuf,
    file: File,
}

impl NewFile {
    /// Creates the file at `path`, if one is given, for `option`.
    ///
    /// # Errors
    /// One sentence that names both.
    pub fn create(option: &str, path: Option<&PathBuf>) -> Result<Option<NewFile>, String> {
        let Some(path) = path.cloned() else {
            return Ok(None);
        };
        let file = new_file(option, &path)?;
        Ok(Some(NewFile { path, file }))
    }

    /// Writes its content.
    ///
    /// # Errors
    /// One sentence that names the file.
    pub fn write(mut self, text: &str) -> Result<(), String> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|e| unwritable(&self.path, &e))
    }

    /// Removes it: it is still empty.
    pub fn discard(self) {
        // A remaining empty file does no harm.
        let _ = std::fs::remove_file(self.path);
    }
}

/// Creates a file for `option`.
///
/// # Errors
/// One sentence that names both.
fn new_file(option: &str, path: &Path) -> Result<File, String> {
    files::new_file(path).map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => {
            format!(
                "{option} {} already exists and is not overwritten",
                path.display()
            )
        }
        _ => format!("{option} {} cannot be written: {e}", path.display()),
    })
}

/// Error message for a file that cannot be written.
fn unwritable(path: &Path, error: &io::Error) -> String {
    format!("{} cannot be written: {error}", path.display())
}
