//! Effects of broken promises: wrong attributes, times that do not change, names and data that
//! are changed on their way.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, TimeOrNow};
use nix::errno::Errno;
use parking_lot::Mutex;
use rbench_core::random::key;

use super::BrokenPromise as B;
use crate::store::{Add, Answer, Caller, Changes, Entry, Place, Store, Totals};

/// A back end with broken promises.
pub(crate) struct Broken<S> {
    pub(super) inner: Arc<S>,
    broken: HashSet<B>,
    next_handle: AtomicU64,
    pub(super) state: Mutex<State>,
}

/// State that broken behaviour needs.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) open: HashMap<u64, Open>,
    /// Data that a truncate has cut off, with its offset.
    pub(super) cut: HashMap<u64, (u64, Vec<u8>)>,
    /// Sizes that are reported instead of the true ones.
    pub(super) sizes: HashMap<u64, u64>,
    /// Inodes with wrong data that was already reported once, and is reported only once.
    pub(super) lied: HashSet<u64>,
    /// For each directory, the last cookie that is shown and the last that exists.
    pub(super) listed: HashMap<u64, (u64, u64)>,
    /// The totals that were reported first.
    pub(super) totals: Option<Totals>,
}

/// An open file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) ino: u64,
    pub(super) handle: u64,
    pub(super) flags: i32,
    pub(super) written: bool,
}

const ROOT_CALLER: Caller = Caller { uid: 0, gid: 0 };
pub(super) const MIB: u64 = 1 << 20;
pub(super) const BLOCK: u64 = 4096;
/// One write in this number.
const RARELY: u64 = 2000;
/// Time that a late write waits before it starts.
pub(super) const LATE: Duration = Duration::from_micros(300);

impl<S: Store> Broken<S> {
    pub(crate) fn new(inner: Arc<S>, broken: &[B]) -> Broken<S> {
        Broken {
            inner,
            broken: broken.iter().copied().collect(),
            next_handle: AtomicU64::new(1),
            state: Mutex::default(),
        }
    }

    pub(super) fn is(&self, broken: B) -> bool {
        self.broken.contains(&broken)
    }

    /// The name under which a file is stored.
    pub(super) fn name<'n>(&self, name: &'n OsStr) -> Answer<&'n OsStr> {
        let most = match name.len() {
            101.. if self.is(B::NameCut) => 100,
            256.. if self.is(B::NameLong) => 255,
            201.. if self.is(B::NameRefused) => return Err(Errno::ENAMETOOLONG),
            length => length,
        };
        Ok(OsStr::from_bytes(&name.as_bytes()[..most]))
    }

    pub(super) fn place<'p>(&self, place: Place<'p>) -> Answer<Place<'p>> {
        Ok(Place {
            name: self.name(place.name)?,
            ..place
        })
    }

    /// Attributes as they are reported.
    pub(super) fn told(&self, mut attr: FileAttr) -> FileAttr {
        let is_file = attr.kind == FileType::RegularFile;
        if self.is(B::SymlinkSize) && attr.kind == FileType::Symlink {
            attr.size = 0;
        }
        if self.is(B::LinkCount) && is_file {
            attr.nlink = attr.nlink.min(1);
        }
        if self.is(B::UnlinkedCount) && is_file {
            attr.nlink = attr.nlink.max(1);
        }
        if self.is(B::SizeShort) && is_file {
            attr.size &= u64::from(u32::MAX);
        }
        if self.is(B::SizeLags)
            && let Some(size) = self.state.lock().sizes.get(&attr.ino.0)
        {
            attr.size = *size;
        }
        attr
    }

    /// The inode at a place, without taking a kernel reference.
    pub(super) fn ino(&self, place: Place<'_>) -> Option<u64> {
        let attr = self.inner.lookup(place).ok()?;
        self.inner.forget(attr.ino.0, 1);
        Some(attr.ino.0)
    }

    /// Runs `work`, and restores the times of an inode that it changes.
    pub(super) fn keeping<T>(
        &self,
        kept: Kept,
        ino: u64,
        work: impl FnOnce() -> Answer<T>,
    ) -> Answer<T> {
        let before = match kept.modified || kept.status {
            true => self.inner.getattr(ino).ok(),
            false => None,
        };
        let done = work();
        if let (Some(before), Ok(now)) = (before, self.inner.getattr(ino)) {
            let mtime = if kept.modified { before } else { now }.mtime;
            let ctime = if kept.status { before } else { now }.ctime;
            self.set_times(ino, mtime, ctime);
        }
        done
    }

    /// Sets attributes as the superuser.
    pub(super) fn set(&self, ino: u64, change: impl FnOnce(&mut Changes)) -> Answer<FileAttr> {
        let mut changes = Changes::default();
        change(&mut changes);
        self.inner.setattr(ROOT_CALLER, ino, None, changes)
    }

    fn set_times(&self, ino: u64, mtime: SystemTime, ctime: SystemTime) {
        // An inode that was removed meanwhile has no times.
        let _ = self.set(ino, |changes| {
            changes.mtime = Some(TimeOrNow::SpecificTime(mtime));
            changes.ctime = Some(ctime);
        });
    }

    pub(super) fn touch(&self, ino: u64) {
        self.set_times(ino, SystemTime::now(), SystemTime::now());
    }

    /// Keeps the time of modification if this promise is broken.
    pub(super) fn modified(&self, broken: B) -> Kept {
        self.kept(Some(broken), None)
    }

    /// Keeps the time of the last change if this promise is broken.
    pub(super) fn status(&self, broken: B) -> Kept {
        self.kept(None, Some(broken))
    }

    /// Keeps each time whose promise is broken.
    pub(super) fn kept(&self, modified: Option<B>, status: Option<B>) -> Kept {
        let is = |broken: Option<B>| broken.is_some_and(|broken| self.is(broken));
        let (modified, status) = (is(modified), is(status));
        Kept { modified, status }
    }

    /// Gives a new inode the wrong owner and mode.
    pub(super) fn made(&self, caller: Caller, parent: u64, attr: FileAttr) -> Answer<FileAttr> {
        let mut changes = Changes::default();
        if self.is(B::OwnerRoot) {
            changes.uid = Some(0);
        }
        let above = self.inner.getattr(parent)?;
        if above.perm & 0o2000 != 0 {
            if self.is(B::SetGroupIgnored) {
                changes.gid = Some(caller.gid);
            }
            if self.is(B::SetGroupBit) {
                changes.mode = Some(u32::from(attr.perm & !0o2000));
            }
        }
        if changes.uid.is_none() && changes.gid.is_none() && changes.mode.is_none() {
            return Ok(self.told(attr));
        }
        let changed = self.inner.setattr(ROOT_CALLER, attr.ino.0, None, changes)?;
        Ok(self.told(changed))
    }

    pub(super) fn opened(&self, ino: u64, handle: u64, flags: i32) -> u64 {
        let number = self.next_handle.fetch_add(1, Ordering::Relaxed);
        let open = Open {
            ino,
            handle,
            flags,
            written: false,
        };
        self.state.lock().open.insert(number, open);
        number
    }

    pub(super) fn open_file(&self, handle: u64) -> Answer<Open> {
        let open = self.state.lock().open.get(&handle).copied();
        open.ok_or(Errno::EBADF)
    }

    /// All entries of a directory except `.` and `..`.
    pub(super) fn entries(&self, ino: u64) -> Vec<(OsString, FileType)> {
        let mut all = Vec::new();
        let Ok(handle) = self.inner.opendir(ino) else {
            return all;
        };
        // A directory that cannot be listed has no entries to lose.
        let _ = self.inner.readdir(ino, handle, 0, &mut |entry| {
            if !matches!(entry.name.as_bytes(), b"." | b"..") {
                all.push((entry.name.to_owned(), entry.kind));
            }
            false
        });
        let _ = self.inner.releasedir(handle);
        all
    }

    /// Fills a range with 0xff.
    pub(super) fn dirty(&self, ino: u64, from: u64, to: u64) {
        let length = to.saturating_sub(from).min(MIB);
        // Without room the range stays correct.
        let _ = self.inner.poke(ino, from, &vec![0xff; length as usize]);
    }

    pub(super) fn truncated(&self, ino: u64, old: u64, new: u64) {
        if self.is(B::TruncateDirty) && new > old {
            self.dirty(ino, old, new);
        }
        let mut state = self.state.lock();
        state.sizes.remove(&ino);
        if new > old
            && let Some((from, data)) = state.cut.remove(&ino)
        {
            let length = data.len().min(new.saturating_sub(from) as usize);
            // Without room the file stays correct.
            let _ = self.inner.poke(ino, from, &data[..length]);
        }
    }

    /// Stores the data that is about to be cut off.
    pub(super) fn note_cut(&self, ino: u64, old: u64, new: u64) {
        if self.is(B::TruncateKeeps) && new < old {
            let mut data = vec![0; (old - new).min(MIB) as usize];
            if let Ok(length) = self.inner.peek(ino, new, &mut data) {
                data.truncate(length);
                self.state.lock().cut.insert(ino, (new, data));
            }
        }
    }

    /// The changes to make instead of the requested ones; `None` for none at all.
    pub(super) fn changes(
        &self,
        ino: u64,
        handle: Option<u64>,
        mut changes: Changes,
    ) -> Option<Changes> {
        let kind = self.inner.getattr(ino).ok().map(|attr| attr.kind);
        if let Some(mode) = &mut changes.mode {
            if self.is(B::ChmodSticky) {
                *mode &= !0o1000;
            }
            if self.is(B::ChmodSetId) {
                *mode &= !0o6000;
            }
            if self.is(B::ChmodBareWrite) {
                *mode &= !(0o222 & !(*mode >> 1));
            }
            let open = || self.state.lock().open.values().any(|open| open.ino == ino);
            if self.is(B::ChmodLater) && open() {
                return None;
            }
        }
        if self.is(B::ChownShort) {
            changes.uid = changes.uid.map(|id| id & 0xffff);
            changes.gid = changes.gid.map(|id| id & 0xffff);
        }
        if self.is(B::TruncateOpen) && changes.size.is_some() && handle.is_some() {
            return None;
        }
        let times = changes.atime.is_some() || changes.mtime.is_some();
        if self.is(B::TimesSymlink) && times && kind == Some(FileType::Symlink) {
            return None;
        }
        if self.is(B::TimesOmit) && changes.atime.is_none() && changes.mtime.is_some() {
            changes.atime = Some(TimeOrNow::Now);
        }
        changes.atime = changes.atime.map(|time| self.time(time));
        changes.mtime = changes.mtime.map(|time| self.time(time));
        Some(changes)
    }

    pub(super) fn time(&self, time: TimeOrNow) -> TimeOrNow {
        let time = match time {
            TimeOrNow::Now if self.is(B::TimesNow) => UNIX_EPOCH,
            TimeOrNow::Now => return time,
            TimeOrNow::SpecificTime(time) => time,
        };
        let since = time.duration_since(UNIX_EPOCH);
        TimeOrNow::SpecificTime(match since {
            Err(_) if self.is(B::TimesPast) => UNIX_EPOCH,
            Ok(since) if self.is(B::TimesShort) => {
                let seconds = since.as_secs() % (1 << 31);
                UNIX_EPOCH + Duration::new(seconds, since.subsec_nanos())
            }
            Ok(since) if self.is(B::TimesRound) && since.subsec_nanos() > 0 => {
                UNIX_EPOCH + Duration::from_secs(since.as_secs() + 1)
            }
            _ => time,
        })
    }

    /// Times that a change of attributes leaves, although it should change them.
    pub(super) fn kept_by(&self, changes: &Changes) -> Kept {
        let size = changes.size.is_some();
        let owner = changes.uid.is_some() || changes.gid.is_some();
        let times = changes.atime.is_some() || changes.mtime.is_some();
        Kept {
            modified: size && self.is(B::TruncateModified),
            status: size && self.is(B::TruncateStatus)
                || changes.mode.is_some() && self.is(B::ChmodStatus)
                || owner && self.is(B::ChownStatus)
                || times && self.is(B::TimesStatus),
        }
    }

    /// Alters a write: the offset and the data to write instead.
    pub(super) fn write_wrongly<'d>(&self, offset: u64, data: &'d [u8]) -> (u64, Cow<'d, [u8]>) {
        let offset = match self.is(B::OffsetShort) {
            true => offset & u64::from(u32::MAX),
            false => offset,
        };
        let mut data = Cow::Borrowed(data);
        const PLACE: u64 = 100_000;
        if self.is(B::WriteFlips) && (offset..offset + data.len() as u64).contains(&PLACE) {
            data.to_mut()[(PLACE - offset) as usize] ^= 1;
        }
        let drawn = key(&[offset, data.len() as u64]);
        if self.is(B::WriteFlipsRarely) && drawn.is_multiple_of(RARELY) && data.len() > 100 {
            data.to_mut()[100] ^= 1;
        }
        if self.is(B::WriteShort) && data.len() > 65_536 {
            let half = data.len() / 2;
            data = data[..half].to_vec().into();
        }
        (offset, data)
    }

    /// The listing as it is reported; `offset` as for `readdir`.
    pub(super) fn list(&self, ino: u64, handle: u64, offset: u64, add: Add<'_>) -> Answer<()> {
        let mut all: Vec<(u64, u64, FileType, OsString)> = Vec::new();
        self.inner.readdir(ino, handle, 0, &mut |entry| {
            all.push((entry.ino, entry.offset, entry.kind, entry.name.to_owned()));
            false
        })?;
        if self.is(B::ListDots) {
            all.retain(|(_, _, _, name)| !matches!(name.as_bytes(), b"." | b".."));
        }
        if self.is(B::ListMisses) && all.len() > 400 {
            all.pop();
        }
        if self.is(B::ListLate) {
            let last = all.last().map_or(0, |entry| entry.1);
            let mut state = self.state.lock();
            let (shown, known) = state.listed.entry(ino).or_insert((u64::MAX, last));
            if offset == 0 {
                (*shown, *known) = (if *shown == u64::MAX { last } else { *known }, last);
            }
            all.retain(|entry| entry.1 <= *shown);
        }
        if self.is(B::ListPositions) {
            for (number, entry) in all.iter_mut().enumerate() {
                entry.1 = number as u64 + 1;
            }
        }
        let mut from = all.iter().position(|entry| entry.1 > offset);
        if self.is(B::ListRepeats) && offset > 2 {
            from = from.map(|at| at.saturating_sub(1));
        }
        for (number, (ino, cookie, kind, name)) in all.iter().enumerate() {
            if from.is_none_or(|from| number < from) {
                continue;
            }
            let bytes = name.as_bytes();
            let dot = matches!(bytes, b"." | b"..");
            let lost = bytes.iter().map(|b| if *b > 127 { b'?' } else { *b });
            let shown = match self.is(B::BytesLost) {
                true => OsString::from_vec(lost.collect()),
                false => name.clone(),
            };
            let entry = Entry {
                ino: ino + u64::from(self.is(B::ListInodes) && !dot) * (1 << 40),
                offset: *cookie,
                kind: match self.is(B::ListTypes) && !dot {
                    true => FileType::NamedPipe,
                    false => *kind,
                },
                name: &shown,
            };
            let times = 1 + usize::from(self.is(B::ListTwice) && number == 2);
            if (0..times).any(|_| add(entry)) {
                break;
            }
        }
        Ok(())
    }
}

/// Times that an operation does not change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    pub(super) modified: bool,
    pub(super) status: bool,
}
