//! A back end that breaks promises: it passes everything on to a sound one, and does wrong
//! what it was told to.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, TimeOrNow};
use nix::errno::Errno;
use rbench_core::random::key;

use super::BrokenPromise as B;
use crate::store::{Answer, Caller, Changes, Entry, Place, Store, Totals};
use crate::sync::lock;

/// A back end with broken promises.
pub(crate) struct Broken<S> {
    inner: Arc<S>,
    broken: HashSet<B>,
    next_handle: AtomicU64,
    state: Mutex<State>,
}

/// What has to be remembered to do wrong.
#[derive(Debug, Default)]
struct State {
    open: HashMap<u64, Open>,
    /// What truncate has cut off: from where on.
    cut: HashMap<u64, (u64, Vec<u8>)>,
    /// Sizes that are told instead of the true ones.
    sizes: HashMap<u64, u64>,
    /// Inodes about which a lie was told that is told once.
    lied: HashSet<u64>,
    /// For each directory the last cookie that is shown, and the last one that there is.
    listed: HashMap<u64, (u64, u64)>,
    /// The totals that were told first.
    totals: Option<Totals>,
}

/// An open file.
#[derive(Debug, Clone, Copy)]
struct Open {
    ino: u64,
    handle: u64,
    flags: i32,
    written: bool,
}

const ROOT_CALLER: Caller = Caller { uid: 0, gid: 0 };
const MIB: u64 = 1 << 20;
const BLOCK: u64 = 4096;
/// One of so many writes.
const RARELY: u64 = 2000;

impl<S: Store> Broken<S> {
    pub(crate) fn new(inner: Arc<S>, broken: &[B]) -> Broken<S> {
        Broken {
            inner,
            broken: broken.iter().copied().collect(),
            next_handle: AtomicU64::new(1),
            state: Mutex::default(),
        }
    }

    fn is(&self, broken: B) -> bool {
        self.broken.contains(&broken)
    }

    /// The name under which something is kept.
    fn name<'n>(&self, name: &'n OsStr) -> Answer<&'n OsStr> {
        let most = match name.len() {
            101.. if self.is(B::NameCut) => 100,
            256.. if self.is(B::NameLong) => 255,
            201.. if self.is(B::NameRefused) => return Err(Errno::ENAMETOOLONG),
            length => length,
        };
        Ok(OsStr::from_bytes(&name.as_bytes()[..most]))
    }

    fn place<'p>(&self, place: Place<'p>) -> Answer<Place<'p>> {
        Ok(Place {
            name: self.name(place.name)?,
            ..place
        })
    }

    /// Attributes as they are told.
    fn told(&self, mut attr: FileAttr) -> FileAttr {
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
            && let Some(size) = lock(&self.state).sizes.get(&attr.ino.0)
        {
            attr.size = *size;
        }
        attr
    }

    /// The inode at a place, without a reference of the kernel.
    fn ino(&self, place: Place<'_>) -> Option<u64> {
        let attr = self.inner.lookup(place).ok()?;
        self.inner.forget(attr.ino.0, 1);
        Some(attr.ino.0)
    }

    /// Does something and puts times of an inode back that it changes.
    fn keeping<T>(&self, kept: Kept, ino: u64, work: impl FnOnce() -> Answer<T>) -> Answer<T> {
        let before = match kept.modified || kept.status {
            true => self.inner.getattr(ino).ok(),
            false => None,
        };
        let done = work();
        if let (Some(before), Ok(now)) = (before, self.inner.getattr(ino)) {
            let (mtime, ctime) = match kept {
                Kept {
                    status: true,
                    modified: false,
                } => (now.mtime, before.ctime),
                Kept { status: false, .. } => (before.mtime, now.ctime),
                Kept { .. } => (before.mtime, before.ctime),
            };
            self.set_times(ino, mtime, ctime);
        }
        done
    }

    fn set_times(&self, ino: u64, mtime: SystemTime, ctime: SystemTime) {
        let changes = Changes {
            mtime: Some(TimeOrNow::SpecificTime(mtime)),
            ctime: Some(ctime),
            ..Changes::default()
        };
        // An inode that has gone meanwhile has no times.
        let _ = self.inner.setattr(ROOT_CALLER, ino, None, changes);
    }

    fn touch(&self, ino: u64) {
        self.set_times(ino, SystemTime::now(), SystemTime::now());
    }

    /// The mtime of the directory above stays where `broken` is.
    fn modified(&self, broken: B) -> Kept {
        Kept {
            modified: self.is(broken),
            status: false,
        }
    }

    fn status(&self, broken: B) -> Kept {
        Kept {
            modified: false,
            status: self.is(broken),
        }
    }

    /// Gives what was made the owner and mode that it should not have.
    fn made(&self, caller: Caller, parent: u64, attr: FileAttr) -> Answer<FileAttr> {
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

    fn opened(&self, ino: u64, handle: u64, flags: i32) -> u64 {
        let number = self.next_handle.fetch_add(1, Ordering::Relaxed);
        let open = Open {
            ino,
            handle,
            flags,
            written: false,
        };
        lock(&self.state).open.insert(number, open);
        number
    }

    fn open_file(&self, handle: u64) -> Answer<Open> {
        let open = lock(&self.state).open.get(&handle).copied();
        open.ok_or(Errno::EBADF)
    }

    /// All entries of a directory but `.` and `..`.
    fn entries(&self, ino: u64) -> Vec<(OsString, FileType)> {
        let mut all = Vec::new();
        let Ok(handle) = self.inner.opendir(ino) else {
            return all;
        };
        // What cannot be listed has nothing to lose.
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
    fn dirty(&self, ino: u64, from: u64, to: u64) {
        let length = to.saturating_sub(from).min(MIB);
        // There may be no room: then it stays as it should be.
        let _ = self.inner.poke(ino, from, &vec![0xff; length as usize]);
    }

    fn truncated(&self, ino: u64, old: u64, new: u64) {
        if self.is(B::TruncateDirty) && new > old {
            self.dirty(ino, old, new);
        }
        let mut state = lock(&self.state);
        state.sizes.remove(&ino);
        if new > old
            && let Some((from, data)) = state.cut.remove(&ino)
        {
            let length = data.len().min(new.saturating_sub(from) as usize);
            // Without room it stays as it should be.
            let _ = self.inner.poke(ino, from, &data[..length]);
        }
    }

    /// Takes along what is about to be cut off.
    fn note_cut(&self, ino: u64, old: u64, new: u64) {
        if self.is(B::TruncateKeeps) && new < old {
            let mut data = vec![0; (old - new).min(MIB) as usize];
            if let Ok(length) = self.inner.peek(ino, new, &mut data) {
                data.truncate(length);
                lock(&self.state).cut.insert(ino, (new, data));
            }
        }
    }

    /// Changes as they are made in the place of those that were asked for; `None`: not at all.
    fn changes(&self, ino: u64, handle: Option<u64>, mut changes: Changes) -> Option<Changes> {
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
            let open = || lock(&self.state).open.values().any(|open| open.ino == ino);
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

    fn time(&self, time: TimeOrNow) -> TimeOrNow {
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

    /// Which times a change of attributes leaves that it should change.
    fn kept_by(&self, changes: &Changes) -> Kept {
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

    /// What becomes of a write; the data, where it goes, and how much of it.
    fn write_wrongly<'d>(&self, offset: u64, data: &'d [u8]) -> (u64, Cow<'d, [u8]>) {
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

    /// The listing as it is told; `offset` as of `readdir`.
    fn list(
        &self,
        ino: u64,
        handle: u64,
        offset: u64,
        add: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Answer<()> {
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
            let mut state = lock(&self.state);
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

/// Times that an operation leaves as they are.
#[derive(Debug, Clone, Copy)]
struct Kept {
    modified: bool,
    status: bool,
}

impl<S: Store> Store for Broken<S> {
    fn lookup(&self, place: Place<'_>) -> Answer<FileAttr> {
        let place = self.place(place)?;
        let found = match self.inner.lookup(place) {
            Err(Errno::ENOENT) if self.is(B::CaseIgnored) => {
                let all = self.entries(place.parent);
                let alike =
                    |(name, _): &&(OsString, FileType)| name.eq_ignore_ascii_case(place.name);
                let (name, _) = all.iter().find(alike).ok_or(Errno::ENOENT)?;
                self.inner.lookup(Place { name, ..place })
            }
            found => found,
        };
        found.map(|attr| self.told(attr))
    }

    fn forget(&self, ino: u64, lookups: u64) {
        self.inner.forget(ino, lookups);
    }

    fn getattr(&self, ino: u64) -> Answer<FileAttr> {
        let attr = self.inner.getattr(ino)?;
        if self.is(B::UnlinkedGone) && attr.nlink == 0 && attr.kind == FileType::RegularFile {
            return Err(Errno::ESTALE);
        }
        Ok(self.told(attr))
    }

    fn setattr(
        &self,
        caller: Caller,
        ino: u64,
        handle: Option<u64>,
        changes: Changes,
    ) -> Answer<FileAttr> {
        let Some(changes) = self.changes(ino, handle, changes) else {
            return self.getattr(ino);
        };
        let handle = handle.map(|handle| self.open_file(handle)).transpose()?;
        let handle = handle.map(|open| open.handle);
        let before = self.inner.getattr(ino)?;
        let old = before.size;
        if let Some(size) = changes.size {
            self.note_cut(ino, old, size);
        }
        self.keeping(self.kept_by(&changes), ino, || {
            self.inner.setattr(caller, ino, handle, changes)
        })?;
        if let Some(size) = changes.size {
            self.truncated(ino, old, size);
        }
        let owner = changes.uid.is_some() || changes.gid.is_some();
        if self.is(B::ChownSetId) && owner && changes.mode.is_none() {
            let mode = Changes {
                mode: Some(u32::from(before.perm)),
                ..Changes::default()
            };
            self.inner.setattr(ROOT_CALLER, ino, None, mode)?;
        }
        if self.is(B::ChmodTouches) && changes.mode.is_some() {
            self.touch(ino);
        }
        self.getattr(ino)
    }

    fn access(&self, caller: Caller, ino: u64, mask: i32) -> Answer<()> {
        self.inner.access(caller, ino, mask)
    }

    fn readlink(&self, ino: u64) -> Answer<OsString> {
        self.inner.readlink(ino)
    }

    fn symlink(&self, caller: Caller, place: Place<'_>, target: &Path) -> Answer<FileAttr> {
        let place = self.place(place)?;
        let mut target = target.as_os_str().as_bytes();
        if self.is(B::SymlinkCut) {
            target = &target[..target.len().min(255)];
        }
        if self.is(B::SymlinkRelative) {
            target = target.strip_prefix(b"/").unwrap_or(target);
        }
        let target = Path::new(OsStr::from_bytes(target));
        let made = self.keeping(self.modified(B::SymlinkModified), place.parent, || {
            self.inner.symlink(caller, place, target)
        })?;
        self.made(caller, place.parent, made)
    }

    fn mknod(&self, caller: Caller, place: Place<'_>, mode: u32, rdev: u32) -> Answer<FileAttr> {
        let place = self.place(place)?;
        let fifo = mode & libc::S_IFMT == libc::S_IFIFO;
        let mode = match fifo {
            true if self.is(B::FifoMode) => libc::S_IFIFO | 0o600,
            true if self.is(B::FifoFile) => libc::S_IFREG | mode & 0o7777,
            _ => mode,
        };
        let rdev = if self.is(B::DeviceLost) { 0 } else { rdev };
        let made = self.keeping(self.modified(B::MknodModified), place.parent, || {
            self.inner.mknod(caller, place, mode, rdev)
        })?;
        self.made(caller, place.parent, made)
    }

    fn mkdir(&self, caller: Caller, place: Place<'_>, mode: u32) -> Answer<FileAttr> {
        let place = self.place(place)?;
        let mode = if self.is(B::MkdirMode) { 0o755 } else { mode };
        let made = self.keeping(self.modified(B::MkdirModified), place.parent, || {
            self.inner.mkdir(caller, place, mode)
        })?;
        self.made(caller, place.parent, made)
    }

    fn unlink(&self, place: Place<'_>) -> Answer<()> {
        let place = self.place(place)?;
        let ino = self.ino(place).ok_or(Errno::ENOENT)?;
        let attr = self.inner.getattr(ino)?;
        let file = attr.kind == FileType::RegularFile;
        if self.is(B::UnlinkKeeps) && file && attr.size == 1 && lock(&self.state).lied.insert(ino) {
            return Ok(());
        }
        if self.is(B::UnlinkedEmpty) && file && attr.nlink == 1 {
            let changes = Changes {
                size: Some(0),
                ..Changes::default()
            };
            self.inner.setattr(ROOT_CALLER, ino, None, changes)?;
        }
        self.keeping(self.status(B::UnlinkStatus), ino, || {
            self.keeping(self.modified(B::UnlinkModified), place.parent, || {
                self.inner.unlink(place)
            })
        })
    }

    fn rmdir(&self, place: Place<'_>) -> Answer<()> {
        let place = self.place(place)?;
        if self.is(B::RmdirKeeps) {
            let ino = self.ino(place).ok_or(Errno::ENOENT)?;
            if self.entries(ino).is_empty() && lock(&self.state).lied.insert(ino) {
                return Ok(());
            }
        }
        let removed = self.keeping(self.modified(B::RmdirModified), place.parent, || {
            self.inner.rmdir(place)
        });
        match removed {
            Err(Errno::ENOTEMPTY) if self.is(B::RmdirFull) => Ok(()),
            removed => removed,
        }
    }

    fn rename(&self, from: Place<'_>, to: Place<'_>, flags: u32) -> Answer<()> {
        let (from, to) = (self.place(from)?, self.place(to)?);
        let flags = match flags {
            libc::RENAME_EXCHANGE if self.is(B::ExchangeMoves) => 0,
            flags => flags,
        };
        let ino = self.ino(from).ok_or(Errno::ENOENT)?;
        let is_directory = self.inner.getattr(ino)?.kind == FileType::Directory;
        let over = self.ino(to).is_some();
        let renamed = self.keeping(self.modified(B::RenameFromModified), from.parent, || {
            self.keeping(self.modified(B::RenameIntoModified), to.parent, || {
                self.inner.rename(from, to, flags)
            })
        });
        match renamed {
            Err(Errno::ENOTEMPTY) if self.is(B::RenameFullError) => return Err(Errno::EIO),
            renamed => renamed?,
        }
        if self.is(B::RenameTouches) {
            self.touch(ino);
        }
        if self.is(B::RenameLosesTarget) && over && !is_directory && flags == 0 {
            self.inner.unlink(to)?;
        }
        if self.is(B::RenameKeepsSource) && !over && !is_directory {
            let attr = self.inner.link(ino, from)?;
            self.inner.forget(attr.ino.0, 1);
        }
        if self.is(B::RenameEmpties) && is_directory {
            for (name, kind) in self.entries(ino) {
                if kind != FileType::Directory {
                    self.inner.unlink(Place {
                        parent: ino,
                        name: &name,
                    })?;
                }
            }
        }
        if self.is(B::RenameDropsAttributes) {
            let names = self.inner.listxattr(ino)?;
            for name in names
                .split(|byte| *byte == 0)
                .filter(|name| !name.is_empty())
            {
                self.inner.removexattr(ino, OsStr::from_bytes(name))?;
            }
        }
        Ok(())
    }

    fn link(&self, ino: u64, place: Place<'_>) -> Answer<FileAttr> {
        let place = self.place(place)?;
        if self.is(B::LinkCopies) {
            let attr = self.inner.getattr(ino)?;
            let mode = libc::S_IFREG | u32::from(attr.perm);
            let owner = Caller {
                uid: attr.uid,
                gid: attr.gid,
            };
            let copy = self.inner.mknod(owner, place, mode, 0)?;
            let mut data = vec![0; attr.size.min(MIB) as usize];
            let length = self.inner.peek(ino, 0, &mut data)?;
            self.inner.poke(copy.ino.0, 0, &data[..length])?;
            return self.inner.getattr(copy.ino.0);
        }
        let linked = self.keeping(self.status(B::LinkStatus), ino, || {
            self.keeping(self.modified(B::LinkModified), place.parent, || {
                self.inner.link(ino, place)
            })
        })?;
        if self.is(B::LinkTouches) {
            self.touch(ino);
        }
        Ok(self.told(linked))
    }

    fn open(&self, ino: u64, flags: i32) -> Answer<u64> {
        let empties = flags & libc::O_TRUNC != 0;
        let kept = Kept {
            modified: empties && self.is(B::OpenModified),
            status: false,
        };
        let handle = self.keeping(kept, ino, || self.inner.open(ino, flags))?;
        Ok(self.opened(ino, handle, flags))
    }

    fn create(
        &self,
        caller: Caller,
        place: Place<'_>,
        mode: u32,
        flags: i32,
    ) -> Answer<(FileAttr, u64)> {
        let place = self.place(place)?;
        let mode = if self.is(B::CreateMode) { 0o644 } else { mode };
        let kept = Kept {
            modified: self.is(B::CreateModified),
            status: self.is(B::CreateStatus),
        };
        let (attr, handle) = self.keeping(kept, place.parent, || {
            self.inner.create(caller, place, mode, flags)
        })?;
        let ino = attr.ino.0;
        Ok((
            self.made(caller, place.parent, attr)?,
            self.opened(ino, handle, flags),
        ))
    }

    fn read(&self, ino: u64, handle: u64, offset: u64, buffer: &mut [u8]) -> Answer<usize> {
        let offset = match self.is(B::OffsetShort) {
            true => offset & u64::from(u32::MAX),
            false => offset,
        };
        let length = self
            .inner
            .read(ino, self.open_file(handle)?.handle, offset, buffer)?;
        if self.is(B::ReadTouches) {
            self.touch(ino);
        }
        Ok(length)
    }

    fn write(
        &self,
        ino: u64,
        handle: u64,
        offset: u64,
        data: &[u8],
        kill_privileges: bool,
    ) -> Answer<u32> {
        let open = self.open_file(handle)?;
        if let Some(open) = lock(&self.state).open.get_mut(&handle) {
            open.written = true;
        }
        let (mut offset, data) = self.write_wrongly(offset, data);
        let size = self.inner.getattr(ino)?.size;
        let end = offset + data.len() as u64;
        if self.is(B::AppendOverwrites) && open.flags & libc::O_APPEND != 0 {
            offset = 0;
        }
        let inside = offset > 0 && end <= size && data.len() < 8;
        if self.is(B::OverwriteLost) && inside {
            self.touch(ino);
            return Ok(data.len() as u32);
        }
        if self.is(B::HoleDirty) {
            self.dirty(ino, size, offset);
        }
        let kill = kill_privileges && !self.is(B::WriteSetId);
        let kept = Kept {
            modified: self.is(B::WriteModified),
            status: self.is(B::WriteStatus),
        };
        let written = self.keeping(kept, ino, || {
            self.inner.write(ino, open.handle, offset, &data, kill)
        });
        if self.is(B::SizeLags) {
            match offset > size {
                true => lock(&self.state).sizes.insert(ino, size),
                false => lock(&self.state).sizes.remove(&ino),
            };
        }
        match written {
            Err(Errno::ENOSPC) if self.is(B::FullLies) => Ok(data.len() as u32),
            Err(Errno::ENOSPC) if self.is(B::FullError) => Err(Errno::EIO),
            written => written,
        }
    }

    fn flush(&self, handle: u64) -> Answer<()> {
        let open = self.open_file(handle)?;
        if self.is(B::CloseTouches) && open.written {
            self.touch(open.ino);
        }
        self.inner.flush(open.handle)
    }

    fn release(&self, handle: u64) -> Answer<()> {
        let open = lock(&self.state).open.remove(&handle);
        self.inner.release(open.ok_or(Errno::EBADF)?.handle)
    }

    fn fsync(&self, ino: u64, handle: u64, data_only: bool) -> Answer<()> {
        match self.is(B::SyncRefused) {
            true => Err(Errno::EIO),
            false => self
                .inner
                .fsync(ino, self.open_file(handle)?.handle, data_only),
        }
    }

    fn peek(&self, ino: u64, offset: u64, buffer: &mut [u8]) -> Answer<usize> {
        self.inner.peek(ino, offset, buffer)
    }

    fn poke(&self, ino: u64, offset: u64, data: &[u8]) -> Answer<usize> {
        self.inner.poke(ino, offset, data)
    }

    fn fallocate(&self, ino: u64, handle: u64, offset: u64, length: u64, mode: i32) -> Answer<()> {
        let handle = self.open_file(handle)?.handle;
        let resize = |size| Changes {
            size: Some(size),
            ..Changes::default()
        };
        if mode & libc::FALLOC_FL_PUNCH_HOLE != 0 {
            if self.is(B::PunchIgnored) {
                return Ok(());
            }
            if self.is(B::PunchCuts) {
                let cut = self.inner.setattr(ROOT_CALLER, ino, None, resize(offset));
                return cut.map(drop);
            }
            let (mut from, mut to) = (offset, offset + length);
            if self.is(B::PunchRounds) {
                (from, to) = (from / BLOCK * BLOCK, to.next_multiple_of(BLOCK));
            }
            return self.inner.fallocate(ino, handle, from, to - from, mode);
        }
        let keeps = mode & libc::FALLOC_FL_KEEP_SIZE != 0;
        let mode = match keeps {
            true if self.is(B::KeepSizeExtends) => mode & !libc::FALLOC_FL_KEEP_SIZE,
            false if self.is(B::ReserveSize) => mode | libc::FALLOC_FL_KEEP_SIZE,
            _ => mode,
        };
        self.keeping(self.status(B::FallocateStatus), ino, || {
            self.inner.fallocate(ino, handle, offset, length, mode)
        })?;
        if self.is(B::ReserveClears) {
            let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            self.inner.fallocate(ino, handle, offset, length, how)?;
        }
        Ok(())
    }

    fn lseek(&self, ino: u64, handle: u64, offset: i64, whence: i32) -> Answer<i64> {
        match whence {
            libc::SEEK_DATA if self.is(B::SeekData) => Err(Errno::ENXIO),
            libc::SEEK_HOLE if self.is(B::SeekHole) => Ok(offset),
            _ => self
                .inner
                .lseek(ino, self.open_file(handle)?.handle, offset, whence),
        }
    }

    fn opendir(&self, ino: u64) -> Answer<u64> {
        self.inner.opendir(ino)
    }

    fn readdir(
        &self,
        ino: u64,
        handle: u64,
        offset: u64,
        add: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Answer<()> {
        self.list(ino, handle, offset, add)
    }

    fn readdirplus(
        &self,
        ino: u64,
        handle: u64,
        offset: u64,
        add: &mut dyn FnMut(Entry<'_>, &FileAttr) -> bool,
    ) -> Answer<()> {
        self.inner.readdirplus(ino, handle, offset, add)
    }

    fn releasedir(&self, handle: u64) -> Answer<()> {
        self.inner.releasedir(handle)
    }

    fn fsyncdir(&self, ino: u64, handle: u64, data_only: bool) -> Answer<()> {
        match self.is(B::SyncDirectory) {
            true => Err(Errno::EIO),
            false => self.inner.fsyncdir(ino, handle, data_only),
        }
    }

    fn statfs(&self, ino: u64) -> Answer<Totals> {
        let totals = self.inner.statfs(ino)?;
        match self.is(B::FreeStays) {
            true => Ok(*lock(&self.state).totals.get_or_insert(totals)),
            false => Ok(totals),
        }
    }

    fn setxattr(&self, ino: u64, name: &OsStr, value: &[u8], flags: i32) -> Answer<()> {
        let directory = self.inner.getattr(ino)?.kind == FileType::Directory;
        if self.is(B::AttributeDirectory) && directory {
            return Err(Errno::EOPNOTSUPP);
        }
        if self.is(B::AttributeLost) || self.is(B::AttributeEmpty) && value.is_empty() {
            return Ok(());
        }
        let ignored = match flags {
            libc::XATTR_CREATE if self.is(B::AttributeCreates) => flags,
            libc::XATTR_REPLACE if self.is(B::AttributeReplaces) => flags,
            _ => 0,
        };
        let most = if self.is(B::AttributeCut) {
            200
        } else {
            value.len()
        };
        let value = &value[..value.len().min(most)];
        self.keeping(self.status(B::AttributeStatus), ino, || {
            self.inner.setxattr(ino, name, value, flags & !ignored)
        })?;
        if self.is(B::AttributeTouches) {
            self.touch(ino);
        }
        Ok(())
    }

    fn getxattr(&self, ino: u64, name: &OsStr) -> Answer<Vec<u8>> {
        match self.inner.getxattr(ino, name) {
            Err(Errno::ENODATA) if self.is(B::AttributeMissing) => Ok(Vec::new()),
            found => found,
        }
    }

    fn listxattr(&self, ino: u64) -> Answer<Vec<u8>> {
        match self.is(B::AttributeUnlisted) {
            true => Ok(Vec::new()),
            false => self.inner.listxattr(ino),
        }
    }

    fn removexattr(&self, ino: u64, name: &OsStr) -> Answer<()> {
        match self.is(B::AttributeStays) {
            true => self.inner.getxattr(ino, name).map(drop),
            false => self.inner.removexattr(ino, name),
        }
    }
}
