//! A back end that breaks the chosen promises, and forwards everything else to a sound
//! one.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use fuser::{FileAttr, FileType};
use nix::errno::Errno;

use super::BrokenPromise as B;
use super::effects::{BLOCK, Broken, LATE, MIB};
use crate::store::{Add, AddPlus, Answer, Caller, Changes, Created, Place, Store, Totals};

impl<S: Store> Store for Broken<S> {
    fn lookup(&self, place: Place<'_>) -> Answer<FileAttr> {
        let place = self.place(place)?;
        let attr = match self.inner.lookup(place) {
            Err(Errno::ENOENT) if self.is(B::CaseIgnored) => {
                let all = self.entries(place.parent);
                let alike =
                    |(name, _): &&(OsString, FileType)| name.eq_ignore_ascii_case(place.name);
                let (name, _) = all.iter().find(alike).ok_or(Errno::ENOENT)?;
                self.inner.lookup(Place { name, ..place })
            }
            attr => attr,
        };
        attr.map(|attr| self.told(attr))
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
            self.set(ino, |changes| changes.mode = Some(u32::from(before.perm)))?;
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
        let attributes = self.keeping(self.modified(B::SymlinkModified), place.parent, || {
            self.inner.symlink(caller, place, target)
        })?;
        self.made(caller, place.parent, attributes)
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
        let attributes = self.keeping(self.modified(B::MknodModified), place.parent, || {
            self.inner.mknod(caller, place, mode, rdev)
        })?;
        self.made(caller, place.parent, attributes)
    }

    fn mkdir(&self, caller: Caller, place: Place<'_>, mode: u32) -> Answer<FileAttr> {
        let place = self.place(place)?;
        let mode = if self.is(B::MkdirMode) { 0o755 } else { mode };
        let attributes = self.keeping(self.modified(B::MkdirModified), place.parent, || {
            self.inner.mkdir(caller, place, mode)
        })?;
        self.made(caller, place.parent, attributes)
    }

    fn unlink(&self, place: Place<'_>) -> Answer<()> {
        let place = self.place(place)?;
        let ino = self.ino(place).ok_or(Errno::ENOENT)?;
        let attr = self.inner.getattr(ino)?;
        let file = attr.kind == FileType::RegularFile;
        if self.is(B::UnlinkKeeps) && file && attr.size == 1 && self.state.lock().lied.insert(ino) {
            return Ok(());
        }
        if self.is(B::UnlinkedEmpty) && file && attr.nlink == 1 {
            self.set(ino, |changes| changes.size = Some(0))?;
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
            if self.entries(ino).is_empty() && self.state.lock().lied.insert(ino) {
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
        let kept = self.kept(empties.then_some(B::OpenModified), None);
        let handle = self.keeping(kept, ino, || self.inner.open(ino, flags))?;
        Ok(self.opened(ino, handle, flags))
    }

    fn create(&self, caller: Caller, place: Place<'_>, mode: u32, flags: i32) -> Answer<Created> {
        let place = self.place(place)?;
        let mode = if self.is(B::CreateMode) { 0o644 } else { mode };
        let kept = self.kept(Some(B::CreateModified), Some(B::CreateStatus));
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

    fn write(&self, ino: u64, handle: u64, offset: u64, data: &[u8], kill: bool) -> Answer<u32> {
        let open = self.open_file(handle)?;
        if let Some(open) = self.state.lock().open.get_mut(&handle) {
            open.written = true;
        }
        if self.is(B::WriteLate) {
            std::thread::sleep(LATE);
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
        let kill = kill && !self.is(B::WriteSetId);
        let kept = self.kept(Some(B::WriteModified), Some(B::WriteStatus));
        let written = self.keeping(kept, ino, || {
            self.inner.write(ino, open.handle, offset, &data, kill)
        });
        if self.is(B::SizeLags) {
            match offset > size {
                true => self.state.lock().sizes.insert(ino, size),
                false => self.state.lock().sizes.remove(&ino),
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
        let open = self.state.lock().open.remove(&handle);
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
        if mode & libc::FALLOC_FL_PUNCH_HOLE != 0 {
            if self.is(B::PunchIgnored) {
                return Ok(());
            }
            if self.is(B::PunchCuts) {
                let cut = self.set(ino, |changes| changes.size = Some(offset));
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

    fn readdir(&self, ino: u64, handle: u64, offset: u64, add: Add<'_>) -> Answer<()> {
        self.list(ino, handle, offset, add)
    }

    fn readdirplus(&self, ino: u64, handle: u64, offset: u64, add: AddPlus<'_>) -> Answer<()> {
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
            true => Ok(*self.state.lock().totals.get_or_insert(totals)),
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
            usize::MAX
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
