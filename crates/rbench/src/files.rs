//! The result file and its journal: nothing of the user's is overwritten, and
//! every finished phase is on disk before the next one starts.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A result file that is being made.
#[derive(Debug)]
pub struct ResultFile {
    path: PathBuf,
    journal_path: PathBuf,
    journal: File,
    /// Bytes of the lines that are in it, whole.
    length: u64,
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path)
}

/// Puts `text` in the place of what the user named for it, in one step.
///
/// # Errors
/// What the system said; the old file stays then.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let partial = with_suffix(path, ".partial");
    let written = std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, path));
    if written.is_err() {
        // A partial file is of no use.
        let _ = std::fs::remove_file(&partial);
    }
    written
}

impl ResultFile {
    /// Starts the journal of the result file `path` with its first line.
    ///
    /// # Errors
    /// One sentence that names the file; an existing result or journal is
    /// left alone.
    pub fn begin(path: &Path, header: &str) -> Result<ResultFile, String> {
        let journal_path = with_suffix(path, ".journal");
        if path.symlink_metadata().is_ok() {
            return Err(format!(
                "--out {} exists already, and is not overwritten",
                path.display()
            ));
        }
        let journal = new_file(&journal_path).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => format!(
                "{0} exists: it holds the finished phases of a run that did not end (rbench show {0})",
                journal_path.display()
            ),
            _ => format!("--out {} cannot be written: {e}", path.display()),
        })?;
        let mut file = ResultFile {
            path: path.to_owned(),
            journal_path,
            journal,
            length: 0,
        };
        file.append(header)?;
        Ok(file)
    }

    /// Appends a line to the journal and brings it to the disk. What was
    /// written of one that did not fit is taken back, so that it does not spoil
    /// those behind it.
    ///
    /// # Errors
    /// One sentence that names the journal.
    pub fn append(&mut self, line: &str) -> Result<(), String> {
        let place = SeekFrom::Start(self.length);
        let journal = &mut self.journal;
        let appended = journal
            .seek(place)
            .and_then(|_| journal.write_all(line.as_bytes()))
            .and_then(|()| journal.sync_data());
        match appended {
            Ok(()) => self.length += line.len() as u64,
            // If that fails too, the next line still takes its place.
            Err(_) => drop(journal.set_len(self.length)),
        }
        appended.map_err(|e| format!("{} cannot be written: {e}", self.journal_path.display()))
    }

    /// Gives up before there is anything to keep: the journal goes.
    pub fn discard(self) {
        // What cannot be removed says by its name what it is.
        let _ = std::fs::remove_file(&self.journal_path);
    }

    /// Puts the whole result in place, in one step, and removes the journal.
    ///
    /// # Errors
    /// One sentence; the journal stays.
    pub fn finish(self, text: &str) -> Result<(), String> {
        let partial = with_suffix(&self.path, ".partial");
        let write = || {
            let mut file = new_file(&partial)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&partial, &self.path)?;
            std::fs::remove_file(&self.journal_path)
        };
        write().map_err(|e| {
            // A partial result is of no use beside the journal.
            let _ = std::fs::remove_file(&partial);
            format!(
                "--out {} cannot be written: {e}; the finished phases are in {}",
                self.path.display(),
                self.journal_path.display()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_takes_the_place_of_its_journal() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("run.json");
        let mut file = ResultFile::begin(&path, "header\n").expect("begins");
        file.append("phase\n").expect("appends");
        let journal = dir.path().join("run.json.journal");
        assert_eq!(
            std::fs::read_to_string(&journal).expect("journal"),
            "header\nphase\n"
        );
        file.finish("{}\n").expect("finishes");
        assert_eq!(std::fs::read_to_string(&path).expect("result"), "{}\n");
        assert!(!journal.exists());
    }

    #[test]
    fn existing_results_and_journals_are_left_alone() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("run.json");
        std::fs::write(&path, "precious").expect("written");
        let error = ResultFile::begin(&path, "").expect_err("refused");
        assert!(error.contains("exists already"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("result"), "precious");
        let other = dir.path().join("other.json");
        std::fs::write(dir.path().join("other.json.journal"), "precious").expect("written");
        let error = ResultFile::begin(&other, "").expect_err("refused");
        assert!(error.contains("did not end"), "{error}");
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = ResultFile::begin(Path::new("/nowhere/at/all.json"), "").expect_err("refused");
        assert!(error.contains("--out /nowhere/at/all.json"), "{error}");
    }
}
