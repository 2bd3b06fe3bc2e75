//! The result file and its journal. No file of the user is overwritten (with `--overwrite` only files of rbench), and
//! every finished phase is on disk before the next one starts. [`place`] decides which other files may be replaced.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nix::libc;
use rbench_report::Document;
use tempfile::{NamedTempFile, PersistError};

mod lines;
mod place;

pub use lines::Lines;
pub use place::{KNOWN_BY, Place, Written, find, write_over};
use place::{TAKEN, swap};

/// A result file that is being written.
#[derive(Debug)]
pub struct ResultFile {
    path: PathBuf,
    journal_path: PathBuf,
    journal: Lines,
    /// True if the journal holds lines of an unfinished phase.
    noted: bool,
    /// Files at `path` that may be replaced at the end.
    replace: Replace,
}

/// The result file, once it exists. Rows and intervals go to its journal.
pub type SharedFile = Rc<RefCell<Option<ResultFile>>>;

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Creates a file; refuses any existing entry, even a symbolic link.
///
/// # Errors
/// The error of the system call; `AlreadyExists` if the name is in use.
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

/// Creates an empty file with a temporary name in the directory of `path`. Removed on drop unless it is renamed.
fn file_beside(path: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".rbench-")
        .suffix(".partial")
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(folder(path))
}

/// Creates the same file with `text` synced to disk.
fn written_beside(path: &Path, text: &str) -> io::Result<NamedTempFile> {
    let mut file = file_beside(path)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Renames `file` to `path` or, if that exists, to the first free name of `path.1`, `path.2` … Returns the file with
/// its name.
fn put(mut file: NamedTempFile, path: &Path) -> io::Result<(PathBuf, File)> {
    let names = (1..=NAMES_MAX).map(|n| with_suffix(path, &format!(".{n}")));
    for name in std::iter::once(path.to_owned()).chain(names) {
        match file.persist_noclobber(&name) {
            Ok(file) => return Ok((name, file)),
            Err(PersistError { error, file: same }) => match error.kind() {
                io::ErrorKind::AlreadyExists => file = same,
                _ => match copy(&same, &name) {
                    Ok(file) => return Ok((name, file)),
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => file = same,
                    Err(e) => return Err(e),
                },
            },
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Maximum number of alternative names that are tried.
const NAMES_MAX: u32 = 1000;

/// Copies the file, for file systems with neither RENAME_NOREPLACE nor links.
fn copy(from: &NamedTempFile, to: &Path) -> io::Result<File> {
    let mut file = new_file(to)?;
    let copied = io::copy(&mut from.reopen()?, &mut file).and_then(|_| file.sync_all());
    copied.map(|()| file).inspect_err(|_| {
        // The copy is ours and incomplete.
        let _ = std::fs::remove_file(to);
    })
}

/// The option of most commands that lets rbench replace its own files.
pub const OVERWRITE: &str = "--overwrite";

/// Existing files that an output may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// None; the option that would allow it.
    Nothing(&'static str),
    /// A file of the same kind that rbench has written.
    Ours,
}

/// Returns `None` if `path` is free, or the open file if `replace` allows it and `is_ours` recognises it. A symbolic
/// link is refused.
///
/// # Errors
/// The reason, as words that follow the path.
pub fn may_be_written(
    path: &Path,
    replace: Replace,
    is_ours: impl Fn(&File) -> bool,
) -> Result<Option<File>, String> {
    let kind = match path.symlink_metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return folder_is_there(path).map(|()| None);
        }
        Err(e) => return Err(format!("cannot be written: {e}")),
        Ok(metadata) => metadata.file_type(),
    };
    match replace {
        Replace::Nothing(option) => Err(format!(
            "already exists and is not overwritten ({option} replaces a file of rbench)"
        )),
        Replace::Ours if kind.is_symlink() => {
            Err("is a symbolic link, which --overwrite does not replace".to_owned())
        }
        Replace::Ours => match open_regular(path, false) {
            Ok(file) if is_ours(&file) => Ok(Some(file)),
            _ => Err("holds other data, which --overwrite does not replace".to_owned()),
        },
    }
}

/// Opens a regular file, to write it too if `write`, without following a symbolic link.
fn open_regular(path: &Path, write: bool) -> io::Result<File> {
    let mut how = OpenOptions::new();
    let how = how
        .read(true)
        .write(write)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = how.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Returns true if a file holds a result of a run or series, finished or not.
fn is_result(mut file: &File) -> bool {
    // Results and journals start with `{`; a large file of another kind is not read.
    if !begins_with(file, b"{") || file.rewind().is_err() {
        return false;
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).is_ok() && Document::read(&bytes).is_ok()
}

/// Path of the result for `--out`: if `out` is a directory, a file in it named after the run.
pub fn named_after(out: PathBuf, cwd: &OsStr, run_id: &str) -> PathBuf {
    match Path::new(cwd).join(&out).is_dir() {
        true => out.join(format!("{run_id}.json")),
        false => out,
    }
}

fn no_directory(path: &Path) -> String {
    format!(
        "cannot be written: the directory {} does not exist",
        path.display()
    )
}

fn folder_is_there(path: &Path) -> Result<(), String> {
    if path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(no_directory(path));
    }
    match folder(path).is_dir() {
        true => Ok(()),
        false => Err(no_directory(folder(path))),
    }
}

/// Returns true if a file starts with these bytes.
pub fn begins_with(file: &File, bytes: &[u8]) -> bool {
    let mut start = Vec::new();
    let read = file.take(bytes.len() as u64).read_to_end(&mut start);
    read.is_ok() && start == bytes
}

/// Replaces a whole file in one step: readers see either the old or the new content. Returns the open new file.
///
/// # Errors
/// The reason, as words that follow the path.
pub fn write_whole(
    path: &Path,
    text: &str,
    replace: Replace,
    is_ours: impl Fn(&File) -> bool,
) -> Result<File, String> {
    let unwritable = |e: io::Error| format!("cannot be written: {e}");
    let file = written_beside(path, text).map_err(unwritable)?;
    let taken = |e: PersistError| match e.error.kind() {
        io::ErrorKind::AlreadyExists => TAKEN.to_owned(),
        _ => unwritable(e.error),
    };
    // Checked again after writing: a file that appeared meanwhile is not lost.
    let file = match may_be_written(path, replace, is_ours) {
        Ok(Some(old)) => swap(file, path, &old)
            .map_err(unwritable)?
            .map_err(|_| TAKEN.to_owned()),
        _ => file.persist_noclobber(path).map_err(taken),
    }?;
    sync_folder(path).map_err(unwritable)?;
    Ok(file)
}

/// Syncs the directory of `path`.
fn sync_folder(path: &Path) -> io::Result<()> {
    match File::open(folder(path))?.sync_all() {
        // Some file systems refuse to sync directories.
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

/// Opens an existing journal without following a symbolic link.
fn open_journal(path: &Path) -> io::Result<File> {
    // NFS locks only files that are open for writing.
    open_regular(path, true).or_else(|error| match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            open_regular(path, false)
        }
        _ => Err(error),
    })
}

/// Locks a journal until it is closed, so that no other run starts before this one has ended. Without effect on file
/// systems that have no locks.
///
/// # Errors
/// One sentence that names the file.
fn ours(journal: File, path: &Path) -> Result<File, String> {
    match journal.try_lock() {
        Err(TryLockError::WouldBlock) => Err(format!(
            "{} is in use by a run that has not ended",
            path.display()
        )),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(journal),
    }
}

/// Describes a journal that existed before the run.
fn in_the_way(journal_path: &Path) -> String {
    let running = open_journal(journal_path).map(|journal| ours(journal, journal_path));
    match running {
        Ok(Err(running)) => running,
        _ => format!(
            "{0} exists: it holds the finished phases of an interrupted run (rbench show {0})",
            journal_path.display()
        ),
    }
}

/// Checks before a run that its result can be written.
///
/// # Errors
/// One sentence that names the file.
pub fn out_is_free(path: &Path, replace: Replace) -> Result<(), String> {
    let refused = |why| format!("--out {} {why}", path.display());
    may_be_written(path, replace, is_result).map_err(refused)?;
    let journal_path = with_suffix(path, ".journal");
    match journal_path.symlink_metadata() {
        Ok(_) => Err(in_the_way(&journal_path)),
        Err(_) => Ok(()),
    }
}

impl ResultFile {
    /// Starts the journal of the result file `path` with its first line.
    ///
    /// # Errors
    /// One sentence that names the file. An existing journal is left alone, and an existing result stays until the new
    /// one is complete.
    pub fn begin(path: &Path, header: &str, replace: Replace) -> Result<ResultFile, String> {
        let journal_path = with_suffix(path, ".journal");
        may_be_written(path, replace, is_result)
            .map_err(|why| format!("--out {} {why}", path.display()))?;
        let journal = new_file(&journal_path).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => in_the_way(&journal_path),
            _ => format!("--out {} cannot be written: {e}", path.display()),
        })?;
        let journal = ours(journal, &journal_path)?;
        let mut file = ResultFile {
            path: path.to_owned(),
            journal_path,
            journal: Lines::after(journal, 0),
            noted: false,
            replace,
        };
        if let Err(message) = file.append(header) {
            file.discard();
            return Err(message);
        }
        // Without its directory entry, the journal would be lost in a crash. If the directory cannot be synced, there
        // is nothing better to do.
        let _ = sync_folder(path);
        Ok(file)
    }

    /// Reads what an earlier series left: the journal of `path` or, without a journal, the file `path`. With a journal,
    /// the content of `path` is returned as well.
    ///
    /// # Errors
    /// One sentence that names the file. A symbolic link is refused.
    pub fn earlier(path: &Path) -> Result<(Vec<u8>, Option<Vec<u8>>), String> {
        let named = |e: io::Error| format!("--resume {} cannot be read: {e}", path.display());
        let existing = match path.symlink_metadata() {
            Ok(found) if found.is_file() => {
                let mut content = Vec::new();
                let mut file = open_regular(path, false).map_err(named)?;
                file.read_to_end(&mut content).map_err(named)?;
                Some(content)
            }
            Ok(_) => return Err(format!("--resume {} is not a regular file", path.display())),
            Err(_) => None,
        };
        let journal_path = with_suffix(path, ".journal");
        let mut journal = match (open_journal(&journal_path), existing) {
            (Ok(journal), existing) => (ours(journal, &journal_path)?, existing),
            (Err(e), Some(existing)) if e.kind() == io::ErrorKind::NotFound => {
                return Ok((existing, None));
            }
            (Err(e), _) => return Err(named(e)),
        };
        let mut content = Vec::new();
        journal.0.read_to_end(&mut content).map_err(named)?;
        Ok((content, journal.1))
    }

    /// Starts the journal of `path` with these lines, in place of those that [`ResultFile::earlier`] read.
    ///
    /// # Errors
    /// One sentence that names the file.
    pub fn begin_again(path: &Path, lines: &str) -> Result<ResultFile, String> {
        let journal_path = with_suffix(path, ".journal");
        let named = |e: io::Error| format!("--out {} cannot be written: {e}", path.display());
        // The old journal stays locked until the new one has replaced it.
        let former = match open_journal(&journal_path) {
            Ok(former) => Some(ours(former, &journal_path)?),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(named(e)),
        };
        let written = written_beside(path, lines).map_err(named)?;
        // Locked as in `ours`; no other process has it open.
        let _ = written.as_file().try_lock();
        let journal = match former.is_some() {
            true => written.persist(&journal_path),
            // The fallback is for file systems without RENAME_NOREPLACE.
            false => written
                .persist_noclobber(&journal_path)
                .or_else(|e| match e.error.kind() {
                    io::ErrorKind::AlreadyExists => Err(e),
                    _ => e.file.persist(&journal_path),
                }),
        };
        let journal = journal.map_err(|e| named(e.error))?;
        // From here on the journal takes precedence if both files exist.
        sync_folder(path).map_err(named)?;
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(named(e)),
            _ => {}
        }
        Ok(ResultFile {
            path: path.to_owned(),
            journal_path,
            journal: Lines::after(journal, lines.len() as u64),
            noted: false,
            replace: Replace::Nothing(OVERWRITE),
        })
    }

    /// Removes the journal of `path`, if there is one.
    pub fn forget(path: &Path) {
        // If the removal fails, the next run that needs the name reports it.
        let _ = std::fs::remove_file(with_suffix(path, ".journal"));
    }

    /// Appends a line to the journal and syncs it.
    ///
    /// # Errors
    /// One sentence that names the journal.
    pub fn append(&mut self, line: &str) -> Result<(), String> {
        let appended = self.journal.append_synced(line);
        self.journalled(appended)
    }

    /// Appends a line without syncing: it survives the process, not a crash of the machine. Used while a phase runs.
    ///
    /// # Errors
    /// One sentence that names the journal.
    pub fn note(&mut self, line: &str) -> Result<(), String> {
        self.noted = true;
        let appended = self.journal.append(line);
        self.journalled(appended)
    }

    fn journalled(&self, appended: io::Result<()>) -> Result<(), String> {
        appended.map_err(|e| format!("{} cannot be written: {e}", self.journal_path.display()))
    }

    /// Gives up before a phase has ended. Removes the journal, unless it holds lines of that phase; then returns its
    /// path.
    pub fn give_up(self) -> Option<PathBuf> {
        if self.noted {
            return Some(self.journal_path);
        }
        self.discard();
        None
    }

    /// Gives up before there is anything to keep, and removes the journal.
    pub fn discard(self) {
        // If the removal fails, the file's name explains the file.
        let _ = std::fs::remove_file(&self.journal_path);
    }

    /// Puts the complete result in place in one step and removes the journal. A file that appeared at `path` meanwhile
    /// stays, and the result gets another name next to it.
    ///
    /// # Errors
    /// One sentence that says where the result or the journal is.
    pub fn finish(self, text: &str) -> Result<(), String> {
        let given = self.path.display();
        let replaced = || may_be_written(&self.path, self.replace, is_result);
        let written = written_beside(&self.path, text).and_then(|file| match replaced() {
            Ok(Some(old)) => match swap(file, &self.path, &old)? {
                Ok(_) => Ok(self.path.clone()),
                Err(file) => Ok(put(file, &self.path)?.0),
            },
            _ => Ok(put(file, &self.path)?.0),
        });
        let place = written.map_err(|e| {
            format!(
                "--out {given} cannot be written: {e}; the finished phases are in {}",
                self.journal_path.display()
            )
        })?;
        // Removed only now: the result survives a crash once its name is on disk.
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

    fn begin(path: &Path, header: &str) -> Result<ResultFile, String> {
        ResultFile::begin(path, header, Replace::Nothing(OVERWRITE))
    }

    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).expect("it can be read")
    }

    fn check_refused<T>(got: Result<T, String>, why: &str) {
        let error = got.map(drop).expect_err("refused");
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn a_result_takes_the_place_of_its_journal() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("run.json");
        let mut file = begin(&path, "header\n").expect("begins");
        file.append("phase\n").expect("appends");
        let journal = dir.path().join("run.json.journal");
        assert_eq!(read(&journal), "header\nphase\n");
        file.finish("{}\n").expect("finishes");
        assert_eq!(read(&path), "{}\n");
        assert!(!journal.exists());
    }

    #[test]
    fn existing_results_and_journals_are_left_alone() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("run.json");
        std::fs::write(&path, "precious").expect("written");
        check_refused(begin(&path, ""), "already exists");
        check_refused(begin(&path, ""), "(--overwrite replaces");
        assert_eq!(read(&path), "precious");
        let other = dir.path().join("other.json");
        std::fs::write(dir.path().join("other.json.journal"), "precious").expect("written");
        check_refused(begin(&other, ""), "interrupted run");
    }

    #[test]
    fn a_second_run_on_the_same_result_is_told_that_the_first_has_not_ended() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("run.json");
        let running = begin(&path, "one\n").expect("begins");
        check_refused(begin(&path, "one\n"), "a run that has not ended");
        drop(running);
        check_refused(begin(&path, "one\n"), "an interrupted run");
    }

    #[test]
    fn a_journal_that_is_still_written_is_not_gone_on_with() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("run.json");
        let journal = dir.path().join("run.json.journal");
        let running = begin(&path, "one\n").expect("begins");
        check_refused(ResultFile::earlier(&path), "a run that has not ended");
        ResultFile::begin_again(&path, "two\n").expect_err("it runs");
        drop(running);
        let (content, beside) = ResultFile::earlier(&path).expect("it has ended");
        assert_eq!((content.as_slice(), beside), (&b"one\n"[..], None));
        let again = ResultFile::begin_again(&path, "two\n").expect("it goes on");
        ResultFile::begin_again(&path, "three\n").expect_err("it goes on already");
        drop(again);
        assert_eq!(read(&journal), "two\n");
        let elsewhere = dir.path().join("precious");
        std::fs::rename(&journal, &elsewhere).expect("moved");
        std::os::unix::fs::symlink(&elsewhere, &journal).expect("made");
        ResultFile::earlier(&path).expect_err("by no link");
        ResultFile::begin_again(&path, "four\n").expect_err("by no link");
        assert_eq!(read(&elsewhere), "two\n");
    }

    #[test]
    fn only_what_is_ours_when_the_new_file_is_whole_is_replaced() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("page.html");
        let ours = |file: &File| begins_with(file, b"ours");
        write_whole(&path, "ours 1", Replace::Ours, ours).expect("written where nothing is");
        write_whole(&path, "ours 2", Replace::Ours, ours).expect("replaced");
        assert_eq!(read(&path), "ours 2");
        std::fs::write(&path, "precious").expect("written");
        for replace in [Replace::Ours, Replace::Nothing(OVERWRITE)] {
            let written = write_whole(&path, "ours 3", replace, ours);
            check_refused(written, "appeared during the run");
        }
        assert_eq!(read(&path), "precious");
        let link = dir.path().join("link.html");
        std::os::unix::fs::symlink(&path, &link).expect("linked");
        write_whole(&link, "ours 4", Replace::Ours, |_| true).expect_err("a link stays");
        assert!(link.is_symlink());
    }

    #[test]
    fn a_missing_folder_is_named() {
        let missing = begin(Path::new("/nowhere/at/all.json"), "");
        check_refused(missing, "--out /nowhere/at/all.json");
    }
}
