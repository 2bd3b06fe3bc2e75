//! All blocks that journals speak of: read, judged and counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use rbench_core::or_eio;
use rbench_sys::files::{self, OpenFlags};

use super::format::{Header, Journaled, Kind, Records};
use super::history::History;
use super::judge::{Class, Judge, expected};

/// Findings of a class that are printed one by one.
pub const FINDINGS_MAX: usize = 10;

/// A block that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Lost, corrupt or unreadable.
    pub class: Class,
    /// The file.
    pub path: PathBuf,
    /// The block's offset in it, in bytes.
    pub offset: u64,
    /// The expected content, in words.
    pub expected: String,
    /// The found content, in words.
    pub found: String,
}

/// Result of checking acknowledged writes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audit {
    /// Journals that were read.
    pub journals: u64,
    /// Records in them.
    pub records: u64,
    /// Acknowledged writes among them.
    pub writes: u64,
    /// Blocks of each class.
    pub blocks: BTreeMap<Class, u64>,
    /// The first ones of each bad class.
    pub findings: Vec<Finding>,
    /// Remarks on it, as sentences.
    pub notes: Vec<String>,
}

impl Audit {
    /// Blocks of a class.
    pub fn count(&self, class: Class) -> u64 {
        self.blocks.get(&class).copied().unwrap_or(0)
    }

    /// Returns true if nothing is lost, corrupt or unreadable.
    pub fn is_clean(&self) -> bool {
        Class::ALL
            .into_iter()
            .all(|class| !class.is_bad() || self.count(class) == 0)
    }

    fn add(&mut self, class: Class, finding: impl FnOnce() -> Finding) {
        let count = self.blocks.entry(class).or_default();
        *count += 1;
        if class.is_bad() && *count <= FINDINGS_MAX as u64 {
            self.findings.push(finding());
        }
    }
}

/// Judges every block of the workers whose journals are given. The runs'
/// directories lie in `parent` now; `None`: where they lay.
///
/// # Errors
/// When a journal cannot be read or is damaged; a sentence.
pub fn audit(journals: &[PathBuf], parent: Option<&Path>) -> Result<Audit, String> {
    let mut audit = Audit::default();
    let mut judge = Judge::default();
    let mut workers: BTreeMap<(PathBuf, u32), (BTreeSet<u64>, u64)> = BTreeMap::new();
    let mut measured = BTreeSet::new();
    for path in journals {
        let failed = |why: String| format!("the journal {}: {why}", path.display());
        let counts = (&mut audit.records, &mut audit.writes);
        let Some((header, history)) = read(path, counts).map_err(failed)? else {
            audit.notes.push(format!(
                "the journal {} is empty: its worker had not started",
                path.display()
            ));
            continue;
        };
        let directory = directory(&header, parent);
        let pass = workers
            .entry((directory.clone(), header.pass))
            .or_insert_with(|| (BTreeSet::new(), header.workers));
        if !pass.0.insert(header.worker) {
            return Err(failed(
                "another journal belongs to the same worker".to_owned(),
            ));
        }
        audit.journals += 1;
        Look {
            audit: &mut audit,
            judge: &mut judge,
            header: &header,
            history: &history,
            measured: &mut measured,
        }
        .all(&directory);
    }
    for ((directory, pass), (given, all)) in workers {
        if (given.len() as u64) < all {
            audit.notes.push(format!(
                "{}: pass {pass}: only {} of {all} workers' journals were given",
                directory.display(),
                given.len()
            ));
        }
        if !directory.is_dir() {
            audit.notes.push(format!(
                "{} does not exist: check that the file system is mounted",
                directory.display()
            ));
        }
    }
    audit.notes.dedup();
    Ok(audit)
}

/// Path of the run's own directory now.
fn directory(header: &Header, parent: Option<&Path>) -> PathBuf {
    match (parent, header.directory.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => header.directory.clone(),
    }
}

/// Reads a journal; `None` when nothing was written to it.
fn read(
    path: &Path,
    (count, writes): (&mut u64, &mut u64),
) -> Result<Option<(Header, History)>, String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the journal lies outside the target"
    )]
    let file = File::open(path).map_err(|e| format!("cannot be read: {e}"))?;
    let Some(records) = Records::open(BufReader::with_capacity(1 << 20, file))? else {
        return Ok(None);
    };
    let header = records.header().clone();
    let mut history = History::new(header.block);
    for record in records {
        let record = record?;
        *writes += u64::from(record.kind == Kind::WriteAcknowledged);
        history.take(record)?;
        *count += 1;
    }
    Ok(Some((header, history)))
}

/// Reads and judges the blocks of one worker.
struct Look<'a> {
    audit: &'a mut Audit,
    judge: &'a mut Judge,
    header: &'a Header,
    history: &'a History,
    /// Files whose length was checked.
    measured: &'a mut BTreeSet<PathBuf>,
}

/// A file as it was found.
enum Found {
    There(File, u64),
    Missing,
    Unreadable(Errno),
}

fn open(path: &Path) -> Found {
    let flags = OpenFlags {
        read: true,
        ..OpenFlags::default()
    };
    let opened = files::open(path, flags).and_then(|fd| {
        let length = files::length(&fd)?;
        Ok((File::from(fd), length))
    });
    match opened {
        Ok((file, length)) => Found::There(file, length),
        Err(Errno::ENOENT | Errno::ENOTDIR) => Found::Missing,
        Err(errno) => Found::Unreadable(errno),
    }
}

impl Look<'_> {
    fn all(&mut self, directory: &Path) {
        let mut buffer = vec![0; self.header.block as usize];
        for file in self.header.files() {
            let path = directory.join(&file.path);
            let found = open(&path);
            self.length(&path, &file, &found);
            for offset in self.header.offsets(&file) {
                let outcome = read_block(&found, offset, &mut buffer);
                self.block(&path, file.number, offset, &buffer, outcome);
            }
        }
    }

    /// A file must not be longer than all that was to be written to it.
    fn length(&mut self, path: &Path, file: &Journaled, found: &Found) {
        let Found::There(_, length) = found else {
            return;
        };
        let most = file.length;
        if *length > most && self.measured.insert(path.to_owned()) {
            self.audit.add(Class::Corrupt, || Finding {
                class: Class::Corrupt,
                path: path.to_owned(),
                offset: most,
                expected: format!("a file of at most {most} bytes"),
                found: format!("{length} bytes"),
            });
        }
    }

    fn block(
        &mut self,
        path: &Path,
        file: u64,
        offset: u64,
        bytes: &[u8],
        outcome: Result<(), Errno>,
    ) {
        let block = self.history.block(file, offset);
        let place = self.header.identity(file, offset);
        let (class, found) = match outcome {
            Err(errno) => (Class::Unreadable, format!("{} ({errno:?})", errno.desc())),
            Ok(()) => self.judge.judge(bytes, place, block),
        };
        self.audit.add(class, || Finding {
            class,
            path: path.to_owned(),
            offset,
            expected: expected(block),
            found,
        });
    }
}

/// Reads the block at `offset`; bytes after the end of the file are zero.
fn read_block(found: &Found, offset: u64, buffer: &mut [u8]) -> Result<(), Errno> {
    let mut filled = 0;
    match found {
        Found::Unreadable(errno) => return Err(*errno),
        Found::There(file, length) if offset < *length => {
            while filled < buffer.len() {
                match file.read_at(&mut buffer[filled..], offset + filled as u64) {
                    Ok(0) => break,
                    Ok(got) => filled += got,
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) => return Err(or_eio(e)),
                }
            }
        }
        Found::There(..) | Found::Missing => {}
    }
    buffer[filled..].fill(0);
    Ok(())
}
