//! The result file and its journal: no file of the user's is overwritten, and
//! every finished phase is on disk before the next one starts. What other files
//! may replace is in [`place`].

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, PersistError};

mod place;

pub use place::{Place, find, write_over};

/// A result file that is being made.
#[derive(Debug)]
pub struct ResultFile {
    path: PathBuf,
    journal_path: PathBuf,
    journal: File,
    /// Length of its complete lines, bytes.
    length: u64,
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Creates a file where there is nothing, not even a symbolic link.
///
/// # Errors
/// What the system said; `AlreadyExists` where there is something.
pub fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path)
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A file with `text` on disk, in the directory of `path` under a new name; it
/// is removed unless it is renamed.
fn written_beside(path: &Path, text: &str) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix(".rbench-")
        .suffix(".partial")
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(folder(path))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Renames `file` to `path` or, if that exists, to the first of `path.1`,
/// `path.2` … that is free; returns its name.
fn put(mut file: NamedTempFile, path: &Path) -> io::Result<PathBuf> {
    let names = (1..=NAMES_MAX).map(|n| with_suffix(path, &format!(".{n}")));
    for name in std::iter::once(path.to_owned()).chain(names) {
        match file.persist_noclobber(&name) {
            Ok(_) => return Ok(name),
            Err(PersistError { error, file: same }) => match error.kind() {
                io::ErrorKind::AlreadyExists => file = same,
                _ => match copy(&same, &name) {
                    Ok(()) => return Ok(name),
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => file = same,
                    Err(e) => return Err(e),
                },
            },
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Most names tried for a file whose own is taken.
const NAMES_MAX: u32 = 1000;

/// For file systems with neither RENAME_NOREPLACE nor links.
fn copy(from: &NamedTempFile, to: &Path) -> io::Result<()> {
    let mut file = new_file(to)?;
    let copied = io::copy(&mut from.reopen()?, &mut file).and_then(|_| file.sync_all());
    copied.inspect_err(|_| {
        // It is ours and incomplete.
        let _ = std::fs::remove_file(to);
    })
}

/// Creates a new file in place of `path`, where something else is now: the first
/// of `path.1`, `path.2` … that is free.
///
/// # Errors
/// What the system said.
pub fn new_file_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let names = (1..=NAMES_MAX).map(|n| with_suffix(path, &format!(".{n}")));
    for name in names {
        match new_file(&name) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (name, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Syncs the directory of `path`.
fn sync_folder(path: &Path) -> io::Result<()> {
    match File::open(folder(path))?.sync_all() {
        // Some file systems refuse.
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
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
                "--out {} already exists and is not overwritten",
                path.display()
            ));
        }
        let journal = new_file(&journal_path).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => format!(
                "{0} exists: it holds the finished phases of an interrupted run (rbench show {0})",
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
        if let Err(message) = file.append(header) {
            file.discard();
            return Err(message);
        }
        // Without its name the journal would be lost in a crash. Where a directory
        // cannot be synced, its names are as safe as they can be.
        let _ = sync_folder(path);
        Ok(file)
    }

    /// The content of the journal of `path` or, if there is none, of `path`
    /// itself: what an earlier series left.
    ///
    /// # Errors
    /// One sentence that names the file.
    pub fn earlier(path: &Path) -> Result<Vec<u8>, String> {
        match std::fs::read(with_suffix(path, ".journal")) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => std::fs::read(path),
            read => read,
        }
        .map_err(|e| format!("--resume {} cannot be read: {e}", path.display()))
    }

    /// Starts the journal of `path` with these lines in place of what
    /// [`ResultFile::earlier`] read there.
    ///
    /// # Errors
    /// One sentence that names the file.
    pub fn begin_again(path: &Path, lines: &str) -> Result<ResultFile, String> {
        let journal_path = with_suffix(path, ".journal");
        let named = |e: io::Error| format!("--out {} cannot be written: {e}", path.display());
        let written = written_beside(path, lines).map_err(named)?;
        let journal = written.persist(&journal_path).map_err(|e| named(e.error))?;
        // From here on the journal is what counts, should both be there.
        sync_folder(path).map_err(named)?;
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(named(e)),
            _ => {}
        }
        Ok(ResultFile {
            path: path.to_owned(),
            journal_path,
            journal,
            length: lines.len() as u64,
        })
    }

    /// Removes the journal of `path`, if there is one.
    pub fn forget(path: &Path) {
        // If it cannot be removed, the run that needs its place says so.
        let _ = std::fs::remove_file(with_suffix(path, ".journal"));
    }

    /// Appends a line to the journal and syncs it. A line that did not fit is cut
    /// off again, so that it does not spoil those after it.
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
            // If that fails too, the next line still overwrites it.
            Err(_) => drop(journal.set_len(self.length)),
        }
        appended.map_err(|e| format!("{} cannot be written: {e}", self.journal_path.display()))
    }

    /// Gives up before there is anything to keep, and removes the journal.
    pub fn discard(self) {
        // If it cannot be removed, its name says what it is.
        let _ = std::fs::remove_file(&self.journal_path);
    }

    /// Puts the whole result in place, in one step, and removes the journal.
    /// A file that has appeared there meanwhile stays, and the result gets a
    /// different name beside it.
    ///
    /// # Errors
    /// One sentence, with where the result or else the journal is.
    pub fn finish(self, text: &str) -> Result<(), String> {
        let given = self.path.display();
        let written = written_beside(&self.path, text).and_then(|file| put(file, &self.path));
        let place = written.map_err(|e| {
            format!(
                "--out {given} cannot be written: {e}; the finished phases are in {}",
                self.journal_path.display()
            )
        })?;
        // Only now: once its name is on disk, the result survives a crash.
        sync_folder(&self.path)
            .and_then(|()| std::fs::remove_file(&self.journal_path))
            .map_err(|e| {
                let journal = self.journal_path.display();
                format!(
                    "the result is in {}, but {journal} could not be removed: {e}",
                    place.display()
                )
            })?;
        if place == self.path {
            return Ok(());
        }
        Err(format!(
            "--out {given} appeared during the run and is not overwritten: the result is in {}",
            place.display()
        ))
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
        assert!(error.contains("already exists"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("result"), "precious");
        let other = dir.path().join("other.json");
        std::fs::write(dir.path().join("other.json.journal"), "precious").expect("written");
        let error = ResultFile::begin(&other, "").expect_err("refused");
        assert!(error.contains("interrupted run"), "{error}");
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = ResultFile::begin(Path::new("/nowhere/at/all.json"), "").expect_err("refused");
        assert!(error.contains("--out /nowhere/at/all.json"), "{error}");
    }
}
