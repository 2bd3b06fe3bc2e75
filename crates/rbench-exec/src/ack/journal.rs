//! Writing a journal of acknowledged writes: a file outside the target,
//! mapped piece by piece, so that a record is in the page cache without a
//! system call.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memmap2::{MmapMut, MmapOptions};
use nix::errno::Errno;
use nix::fcntl::posix_fallocate;
use nix::sys::stat::{lstat, stat};
use rbench_core::{Rank, or_eio};
use rbench_plan::io::worker_number;
use rbench_plan::{IoPlan, Plan};

use super::format::{Header, Kind, PIECE, RECORD_BYTES, Record};

/// The journal of one worker.
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Start of the records.
    records_at: u64,
    /// Start value of the checksums.
    key: u64,
    /// Number of the next record.
    position: u64,
    piece: MmapMut,
    /// Bytes of the piece that are in use.
    used: usize,
    /// Error after which no more can be written.
    trouble: Option<Errno>,
}

/// The journal `base` of a worker's pass.
pub fn journal_path(base: &Path, pass: u32, worker: u64) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    name.push(format!(".{pass}.{worker}"));
    name.into()
}

/// Checks that journals named `base` can lie where they are to lie: outside
/// the directory `target`, on another file system.
///
/// # Errors
/// A sentence.
pub fn check_place(base: &Path, target: &Path) -> Result<(), String> {
    let folder = match base.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let refuse = |why: String| Err(format!("--ack-journal {}: {why}", base.display()));
    let device = |path: &Path| stat(path).map(|found| found.st_dev);
    let here = match device(folder) {
        Ok(here) => here,
        Err(errno) => return refuse(format!("{}: {}", folder.display(), errno.desc())),
    };
    let below = folder
        .canonicalize()
        .is_ok_and(|folder| target.canonicalize().is_ok_and(|t| folder.starts_with(t)));
    if below || device(target) == Ok(here) {
        return refuse(format!(
            "the journal would be lost with the data: {} is on the file system under test, {}",
            folder.display(),
            target.display()
        ));
    }
    Ok(())
}

/// Checks, before anything is made, that the journals of this rank can be
/// made in every pass of `plan`, whose directory is `target`.
///
/// # Errors
/// A sentence.
pub fn check_journals(io: &IoPlan, plan: &Plan, rank: Rank, target: &Path) -> Result<(), String> {
    let Some(base) = &io.ack_journal else {
        return Ok(());
    };
    check_place(base, target)?;
    for pass in 0..plan.iterations {
        for thread in 0..plan.threads {
            let path = journal_path(base, pass, worker_number(rank, thread, plan.threads));
            if lstat(&path).is_ok() {
                return Err(format!("the journal {} already exists", path.display()));
            }
        }
    }
    Ok(())
}

/// Makes room for a piece of the file at `at` and maps it.
fn map(file: &File, at: u64) -> Result<MmapMut, Errno> {
    // Without room for it, a store to the mapping would end the process.
    posix_fallocate(file, at as i64, PIECE as i64)?;
    // SAFETY: the file was made by this process with `create_new` and is its
    // own; nobody shortens it while it is mapped.
    let piece = unsafe {
        MmapOptions::new()
            .offset(at)
            .len(PIECE as usize)
            .populate()
            .map_mut(file)
    };
    piece.map_err(or_eio)
}

/// Removes a journal in which nothing is taken down yet.
fn remove(path: &Path) {
    // A file that stays is reported when its name is used again.
    #[expect(
        clippy::disallowed_methods,
        reason = "the journal lies outside the target"
    )]
    let _ = std::fs::remove_file(path);
}

impl Journal {
    /// Makes a journal at `path`, which must not exist.
    ///
    /// # Errors
    /// A sentence.
    pub fn create(path: PathBuf, header: &Header) -> Result<Journal, String> {
        let failed = |what: String| format!("the journal {} {what}", path.display());
        let bytes = header.to_bytes().map_err(&failed)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o644);
        #[expect(
            clippy::disallowed_methods,
            reason = "the journal lies outside the target"
        )]
        let opened = options.open(&path);
        let mut file = opened.map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => failed("already exists".to_owned()),
            _ => failed(format!("cannot be created: {e}")),
        })?;
        // A journal with a header has a piece: otherwise it was cut off.
        let mapped = map(&file, bytes.len() as u64).map_err(Into::into);
        let mapped = mapped.and_then(|piece| file.write_all(&bytes).map(|()| piece));
        let piece = mapped.map_err(|e| {
            remove(&path);
            failed(format!("cannot be written: {e}"))
        })?;
        Ok(Journal {
            key: header.key(),
            records_at: bytes.len() as u64,
            path,
            file,
            position: 0,
            piece,
            used: 0,
            trouble: None,
        })
    }

    /// Takes `record` down; from then on it survives the end of the process.
    /// Whether that was possible: where it was not, what it announces must not
    /// be done.
    #[inline]
    pub fn note(&mut self, record: Record) -> bool {
        if self.used == self.piece.len() && !self.turn() {
            return false;
        }
        let words = record.to_words(self.position, self.key);
        let place = &mut self.piece[self.used..][..RECORD_BYTES];
        for (bytes, word) in place.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        self.used += RECORD_BYTES;
        self.position += 1;
        true
    }

    /// Goes on to the next piece.
    #[cold]
    fn turn(&mut self) -> bool {
        if self.trouble.is_none() {
            let at = self.records_at + self.position * RECORD_BYTES as u64;
            match map(&self.file, at) {
                Ok(piece) => (self.piece, self.used) = (piece, 0),
                Err(errno) => self.trouble = Some(errno),
            }
        }
        self.trouble.is_none()
    }

    /// The reason why it is not complete, as a sentence.
    pub fn trouble(&self) -> Option<String> {
        let errno = self.trouble?;
        Some(format!(
            "the journal {} cannot be written: {} ({errno:?})",
            self.path.display(),
            errno.desc()
        ))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Includes the blank record that marks the end. More zeros do no harm.
        let length = self.records_at + (self.position + 1) * RECORD_BYTES as u64;
        let _ = self.file.set_len(length);
    }
}

/// The way of a worker's runners to its journal, phase after phase.
#[derive(Clone)]
pub struct Log(Arc<Mutex<Journal>>);

impl Log {
    /// Leads to `journal`.
    pub fn new(journal: Journal) -> Log {
        Log(Arc::new(Mutex::new(journal)))
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the journal: the run has not started, and will not.
    pub fn discard(self) {
        remove(&self.journal().path);
    }

    /// Takes `record` down. Whether that was possible.
    pub fn note(&self, record: Record) -> bool {
        self.journal().note(record)
    }

    /// Takes down what happened to a file. Whether that was possible.
    pub fn file(&self, kind: Kind, file: u64) -> bool {
        self.note(Record::of_file(kind, file))
    }

    /// Records the result of a started write.
    pub fn written(&self, done: bool, write: Record) {
        let kind = match done {
            true => Kind::WriteAcknowledged,
            false => Kind::WriteFailed,
        };
        // Without the record it counts as still under way.
        self.note(Record { kind, ..write });
    }

    /// Records the result of a started sync.
    pub fn synced(&self, done: bool, file: u64) {
        let kind = match done {
            true => Kind::SyncAcknowledged,
            false => Kind::SyncFailed,
        };
        // Without the record it counts as not acknowledged.
        self.file(kind, file);
    }

    /// The reason why the journal is not complete, as a sentence.
    pub fn trouble(&self) -> Option<String> {
        self.journal().trouble()
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::{RECORDS_AT, Records, tests::header};
    use super::*;

    fn record(n: u64) -> Record {
        Record {
            kind: Kind::WriteStarted,
            file: 1,
            offset: n * 4096,
            generation: n,
            length: 4096,
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a journal is not a target")]
    fn read(path: &Path) -> Vec<Record> {
        let bytes = std::fs::read(path).expect("there");
        let records = Records::open(&bytes[..]).expect("a journal");
        records
            .expect("a header")
            .map(|record| record.expect("whole"))
            .collect()
    }

    #[test]
    fn records_are_in_the_file_at_once_and_over_several_pieces() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("acks.1.2");
        let mut journal = Journal::create(path.clone(), &header()).expect("new");
        let each = PIECE / RECORD_BYTES as u64;
        let count = 2 * each + 17;
        let expect: Vec<Record> = (0..count).map(record).collect();
        for record in &expect {
            assert!(journal.note(*record));
            if [1, each - 1, each, each + 1].contains(&journal.position) {
                // Like after the end of the process.
                assert_eq!(read(&path), expect[..journal.position as usize]);
            }
        }
        assert_eq!(journal.trouble(), None);
        drop(journal);
        assert_eq!(read(&path), expect);
        let length = stat(&path).expect("there").st_size as u64;
        assert_eq!(length, RECORDS_AT + (count + 1) * RECORD_BYTES as u64);
    }

    #[test]
    fn a_journal_that_exists_is_left_alone() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("acks");
        drop(Journal::create(path.clone(), &header()).expect("new"));
        let refusal = Journal::create(path.clone(), &header())
            .err()
            .expect("refused");
        assert!(refusal.ends_with("acks already exists"), "{refusal}");
        assert_eq!(read(&path), []);
    }

    #[test]
    fn a_journal_on_the_target_is_refused() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let refused = |base: &Path, target: &Path, why: &str| {
            let refusal = check_place(base, target).expect_err("refused");
            assert!(refusal.contains(why), "{refusal}");
        };
        let base = dir.path().join("acks");
        refused(&base, dir.path(), "is on the file system under test");
        refused(&dir.path().join("no/acks"), dir.path(), "No such file");
        assert_eq!(check_place(&base, Path::new("/proc")), Ok(()));
        // Another device, but below.
        refused(
            Path::new("/proc/acks"),
            Path::new("/"),
            "is on the file system under test",
        );
    }

    #[test]
    fn a_full_disk_is_told_and_nothing_is_announced() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("acks");
        let mut journal = Journal::create(path.clone(), &header()).expect("new");
        let each = PIECE / RECORD_BYTES as u64;
        (0..each).for_each(|n| assert!(journal.note(record(n))));
        // A descriptor that gives no room.
        #[expect(clippy::disallowed_methods, reason = "not a target")]
        let closed = File::open("/dev/null").expect("there");
        journal.file = closed;
        assert!(!journal.note(record(each)) && !journal.note(record(each)));
        assert!(
            journal
                .trouble()
                .is_some_and(|why| why.contains("acks cannot be written"))
        );
        assert_eq!(read(&path).len() as u64, each);
    }
}
