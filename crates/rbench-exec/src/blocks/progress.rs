//! fio's files of a verified job: the state with the writes that completed (`verify_state_save`,
//! `verify_state_load`), and wrong blocks with their expected content (`verify_dump`). They lie in
//! the working directory.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::libc;

use crate::verify::fio_crc;

/// Version of the form of a state, fio 3.33's.
const VERSION: u64 = 3;
/// Bytes of what stands before the state: version, length, checksum.
const HEAD: usize = 24;
/// Bytes of a state before its list of writes, and where its fields stand.
const FIXED: usize = 152;
const DEPTH: usize = 8;
const FILES: usize = 12;
const NUMBER: usize = 16;
const INDEX: usize = 24;
const NAME: usize = 88;
/// Bytes of a name with the zero at its end.
const NAME_ROOM: usize = FIXED - NAME;
/// Follows a name that does not reach it: one more than the writes that a sync has covered. fio has
/// zeros there, and reads the name up to the first one.
const SYNCED: usize = FIXED - 8;

/// Content of a state: the number of started writes, and the last ones of each file that completed,
/// newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct State {
    pub(super) depth: u32,
    pub(super) files: u32,
    pub(super) writes: u64,
    pub(super) index: u64,
    pub(super) name: String,
    /// Writes that the last sync has covered, where that is known.
    pub(super) synced: Option<u64>,
    /// File and offset.
    pub(super) completed: Vec<(u64, u64)>,
}

impl State {
    /// Its form in a file. What fio keeps of its random generator is zero, as fio has it
    /// for jobs that draw nothing.
    fn to_bytes(&self) -> Vec<u8> {
        let mut body = vec![0; FIXED];
        body[..DEPTH].copy_from_slice(&(self.completed.len() as u64).to_le_bytes());
        body[DEPTH..FILES].copy_from_slice(&self.depth.to_le_bytes());
        body[FILES..NUMBER].copy_from_slice(&self.files.to_le_bytes());
        body[NUMBER..INDEX].copy_from_slice(&self.writes.to_le_bytes());
        body[INDEX..INDEX + 8].copy_from_slice(&self.index.to_le_bytes());
        let name = self.name.as_bytes();
        let length = name.len().min(NAME_ROOM - 1);
        body[NAME..NAME + length].copy_from_slice(&name[..length]);
        if let Some(synced) = self.synced.filter(|_| NAME + length < SYNCED) {
            body[SYNCED..FIXED].copy_from_slice(&synced.saturating_add(1).to_le_bytes());
        }
        for (file, offset) in &self.completed {
            body.extend_from_slice(&file.to_le_bytes());
            body.extend_from_slice(&offset.to_le_bytes());
        }
        let words = [VERSION, body.len() as u64, u64::from(fio_crc(&body))];
        let head = words.iter().flat_map(|word| word.to_le_bytes());
        head.chain(body.iter().copied()).collect()
    }

    /// Reads one; `None`: that is none of this version, or it is damaged.
    fn from_bytes(bytes: &[u8]) -> Option<State> {
        let word = |bytes: &[u8], at: usize| {
            let eight = bytes.get(at..).and_then(|b| b.first_chunk::<8>());
            eight.map(|b| u64::from_le_bytes(*b))
        };
        let (version, length, crc) = (word(bytes, 0)?, word(bytes, 8)?, word(bytes, 16)?);
        let body = bytes.get(HEAD..)?;
        let body = body.get(..usize::try_from(length).ok()?)?;
        if version != VERSION || crc != u64::from(fio_crc(body)) || body.len() < FIXED {
            return None;
        }
        let both = word(body, DEPTH)?;
        let name = &body[NAME..FIXED];
        let name = &name[..name.iter().position(|b| *b == 0).unwrap_or(name.len())];
        let synced = word(body, SYNCED).filter(|_| NAME + name.len() < SYNCED);
        let list = body[FIXED..].chunks_exact(16);
        let listed = list.map(|entry| Some((word(entry, 0)?, word(entry, 8)?)));
        let completed: Vec<_> = listed.collect::<Option<_>>()?;
        (completed.len() as u64 == word(body, 0)?).then(|| State {
            depth: both as u32,
            files: (both >> 32) as u32,
            writes: word(body, NUMBER).unwrap_or(0),
            index: word(body, INDEX).unwrap_or(0),
            name: String::from_utf8_lossy(name).into_owned(),
            synced: synced.and_then(|more| more.checked_sub(1)),
            completed,
        })
    }

    /// Returns true if the block that is to be verified after `verified` others may be missing: it
    /// lies among the last ones, and is not known to be complete.
    fn ends_at(&self, verified: u64, file: u64, offset: u64) -> bool {
        let depth = u64::from(self.depth);
        let left = self.writes.wrapping_sub(verified);
        if (verified < depth || left > depth) && self.writes > depth {
            return false;
        }
        !self.completed.contains(&(file, offset))
    }
}

/// A worker's record of its writes, and of those of an earlier run.
#[derive(Debug)]
pub(super) struct Progress {
    path: PathBuf,
    saves: bool,
    loaded: Option<State>,
    now: State,
    /// The last writes of each file that completed, newest first.
    last: BTreeMap<u64, VecDeque<u64>>,
    /// Blocks verified until now.
    verified: u64,
    /// Blocks that a loaded state lists as synced are verified, else those that completed.
    synced_only: bool,
    /// A sync has failed: what it was for may be lost, whatever later ones say.
    sync_failed: bool,
}

impl Progress {
    /// For a worker with this number (`index`) among all, whose state lies in `base`.
    /// `saves`: it is written at the end; `loads`: an earlier one is read, and says what is
    /// verified: of its writes those that completed, or those that are synced.
    ///
    /// # Errors
    /// When it is to be read and cannot be, or to be written where something else is;
    /// the path, too.
    pub(super) fn new(
        base: &Path,
        now: State,
        saves: bool,
        (loads, synced_only): (bool, bool),
    ) -> Result<Progress, (PathBuf, io::Error)> {
        let (name, index) = (&now.name, now.index);
        // Named like in fio.
        let name = name.replace('/', ".");
        let path = base.join(format!("local-{name}-{index}-verify.state"));
        if saves {
            // Before the job has started, and not when it is over.
            existing(&path).map_err(|error| (path.clone(), error))?;
        }
        let loaded = match loads {
            false => None,
            true => Some(read(&path).map_err(|error| (path.clone(), error))?),
        };
        if synced_only && loaded.as_ref().is_some_and(|state| state.synced.is_none()) {
            let text = "verify_policy=fsynced: the state does not record what was synced, like fio's own states";
            return Err((path, io::Error::new(io::ErrorKind::InvalidData, text)));
        }
        Ok(Progress {
            path,
            saves,
            loaded,
            now,
            last: BTreeMap::new(),
            verified: 0,
            synced_only,
            sync_failed: false,
        })
    }

    /// Notes that a write completed.
    pub(super) fn completed(&mut self, file: u64, offset: u64) {
        let last = self.last.entry(file).or_default();
        if last.len() >= self.now.depth as usize {
            last.pop_back();
        }
        last.push_front(offset);
    }

    /// Notes that a sync has covered the first `writes` writes, or that one failed.
    pub(super) fn synced(&mut self, writes: Result<u64, ()>) {
        match writes {
            Ok(writes) if !self.sync_failed => self.now.synced = Some(writes),
            Ok(_) => {}
            Err(()) => self.sync_failed = true,
        }
    }

    /// Returns true if verifying ends before this block, which an earlier run may not have written;
    /// else counts it as verified.
    pub(super) fn ends_at(&mut self, file: u64, offset: u64) -> bool {
        let loaded = self.loaded.as_ref();
        let ends = loaded.is_some_and(|state| match state.synced.filter(|_| self.synced_only) {
            Some(synced) => self.verified >= synced,
            None => state.ends_at(self.verified, file, offset),
        });
        self.verified += u64::from(!ends);
        ends
    }

    /// Writes the state, if it is to be kept, after this many writes. Like in fio, there is none
    /// where the user has no permission to write.
    ///
    /// # Errors
    /// When it cannot be written; the path, too.
    pub(super) fn save(&mut self, writes: u64) -> Result<(), (&Path, io::Error)> {
        if !self.saves {
            return Ok(());
        }
        let files = self.last.iter();
        let each = files.flat_map(|(file, last)| last.iter().map(|offset| (*file, *offset)));
        self.now.completed = each.collect();
        self.now.writes = writes;
        match put_state(&self.path, &self.now.to_bytes()) {
            Err(error) if is_forbidden(&error) => Ok(()),
            written => written.map_err(|error| (self.path.as_path(), error)),
        }
    }
}

fn read(path: &Path) -> io::Result<State> {
    #[expect(clippy::disallowed_methods, reason = "a state is not a target")]
    let bytes = fs::read(path)?;
    State::from_bytes(&bytes).ok_or_else(|| {
        let text = "not an intact state of a verified job in the format of fio 3.33";
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

/// The file that is at `path`, to be written over, if there is one of this kind (`what`): the first
/// `most` bytes of it are. Nothing else is written over, and no symbolic link is followed.
pub(super) fn earlier(
    path: &Path,
    what: &str,
    most: u64,
    is_one: fn(&[u8]) -> bool,
) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    #[expect(
        clippy::disallowed_methods,
        reason = "a state or a log is not a target"
    )]
    let mut file = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let is_file = file.metadata()?.is_file();
    let mut start = Vec::new();
    if is_file {
        let mut bounded = io::Read::by_ref(&mut file).take(most);
        // A file that could be opened is there: no error of reading it says otherwise.
        bounded.read_to_end(&mut start).map_err(io::Error::other)?;
    }
    match is_file && is_one(&start) {
        true => Ok(Some(file)),
        false => {
            let text = format!("not {what}, so it is not overwritten");
            Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
        }
    }
}

/// An earlier state, if there is one.
fn existing(path: &Path) -> io::Result<Option<File>> {
    let is_state = |bytes: &[u8]| State::from_bytes(bytes).is_some();
    match earlier(path, "a state of a verified job", u64::MAX, is_state) {
        // Like in fio, there is no state then.
        Err(error) if is_forbidden(&error) => Ok(None),
        found => found,
    }
}

fn is_forbidden(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}

fn put_state(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let Some(mut file) = existing(path)? else {
        return put(path, bytes);
    };
    // On a full disk the earlier one is not cut off first.
    file.rewind()?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)
}

/// Writes a file where there is nothing, not even a symbolic link. A dump holds data of a file that not
/// everybody may read.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut how = OpenOptions::new();
    how.write(true).create_new(true).mode(0o600);
    #[expect(
        clippy::disallowed_methods,
        reason = "a state or a dump is not a target"
    )]
    let mut file = how.open(path)?;
    file.write_all(bytes)
}

/// A wrong block, or interval of one, and what it should be.
#[derive(Debug)]
pub(super) struct Dump {
    /// Its start, bytes.
    pub(super) offset: u64,
    pub(super) received: Vec<u8>,
    pub(super) expected: Vec<u8>,
}

impl Dump {
    /// Puts both into files in `base`, named by the file that they are of.
    pub(super) fn write(&self, base: &Path, file: &Path) -> io::Result<()> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let path = |what| base.join(format!("{name}.{}.{what}", self.offset));
        put(&path("received"), &self.received)?;
        put(&path("expected"), &self.expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by fio 3.33 for two files of 24 KiB in blocks of 4 KiB, 4 at a time.
    const OF_FIO: &str = "0300000000000000 1801000000000000 fcbe6af000000000 0800000000000000 \
        04000000 02000000 0c00000000000000 0000000000000000";

    fn of_fio() -> State {
        let offsets = [0x5000, 0x4000, 0x3000, 0x2000];
        State {
            depth: 4,
            files: 2,
            writes: 12,
            index: 0,
            name: "p".to_owned(),
            synced: None,
            completed: [0, 1]
                .iter()
                .flat_map(|file| offsets.map(|offset| (*file, offset)))
                .collect(),
        }
    }

    #[test]
    fn a_state_has_the_form_that_fio_gives_it() {
        let digits: Vec<u8> = OF_FIO.bytes().filter(|b| *b != b' ').collect();
        let start: Vec<u8> = digits
            .chunks(2)
            .map(|two| u8::from_str_radix(std::str::from_utf8(two).expect("digits"), 16))
            .collect::<Result<_, _>>()
            .expect("hexadecimal");
        let bytes = of_fio().to_bytes();
        // With the checksum over all that follows.
        assert_eq!(bytes[..start.len()], start);
        assert_eq!(State::from_bytes(&bytes), Some(of_fio()));
    }

    #[test]
    fn a_damaged_or_foreign_state_is_none() {
        let good = of_fio().to_bytes();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert_eq!(State::from_bytes(&bad), None, "{at}");
            assert_eq!(State::from_bytes(&good[..at]), None, "{at}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a temporary directory")]
    fn only_a_state_is_written_over_and_no_link_is_followed() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let now = || State {
            name: "a/b".to_owned(),
            depth: 1,
            ..State::default()
        };
        let saved = || -> Result<(), io::Error> {
            let mut progress = Progress::new(dir.path(), now(), true, (false, false))
                .map_err(|(_, error)| error)?;
            progress.completed(0, 4096);
            progress.save(1).map_err(|(_, error)| error)
        };
        let path = dir.path().join("local-a.b-0-verify.state");
        saved().expect("nothing was there");
        let state = fs::read(&path).expect("a state");
        assert!(State::from_bytes(&state).is_some());
        saved().expect("a state was there");
        assert_eq!(fs::read(&path).expect("a state"), state);
        fs::write(&path, "of the user's").expect("written");
        let why = saved().expect_err("something else is there");
        assert_eq!(why.kind(), io::ErrorKind::AlreadyExists, "{why}");
        assert_eq!(fs::read(&path).expect("there"), b"of the user's");
        // A link, even to a state.
        let aside = dir.path().join("aside");
        fs::write(&aside, &state).expect("written");
        fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink(&aside, &path).expect("linked");
        saved().expect_err("a link is there");
        assert!(path.is_symlink());
        let dump = Dump {
            offset: 512,
            received: vec![1],
            expected: vec![2],
        };
        let file = Path::new("x");
        dump.write(dir.path(), file).expect("nothing was there");
        let again = dump.write(dir.path(), file).expect_err("it is there");
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a temporary directory")]
    fn what_the_last_good_sync_covered_is_kept_in_a_state_and_alone_is_verified() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let new = |loads| {
            let now = State {
                name: "j".to_owned(),
                depth: 1,
                ..State::default()
            };
            Progress::new(dir.path(), now, true, loads)
        };
        let mut progress = new((false, false)).expect("nothing is there");
        for write in 0..9 {
            progress.completed(0, write * 4096);
            progress.synced(match write {
                3 => Ok(4),
                5 => Err(()),
                7 => Ok(8),
                _ => continue,
            });
        }
        progress.save(9).map_err(|(_, error)| error).expect("saved");
        let verified = |synced_only| {
            let mut progress = new((true, synced_only)).expect("it is there");
            (0..20)
                .take_while(|n| !progress.ends_at(0, n * 4096))
                .count()
        };
        assert_eq!((verified(true), verified(false)), (4, 9));
        // One of fio's does not say it.
        let path = dir.path().join("local-j-0-verify.state");
        fs::write(&path, of_fio().to_bytes()).expect("written");
        let (_, error) = new((true, true)).expect_err("nothing is known");
        assert!(
            error.to_string().contains("verify_policy=fsynced"),
            "{error}"
        );
    }

    #[test]
    fn verifying_ends_where_the_last_writes_are_not_known_to_be_complete() {
        let state = State {
            depth: 1,
            writes: 37,
            completed: vec![(0, 36 * 4096)],
            ..State::default()
        };
        let first = (0..100).find(|n| state.ends_at(*n, 0, n * 4096));
        assert_eq!(first, Some(37));
        let lost = State {
            completed: vec![(0, 35 * 4096)],
            ..state
        };
        let first = (0..100).find(|n| lost.ends_at(*n, 0, n * 4096));
        assert_eq!(first, Some(36));
    }
}
