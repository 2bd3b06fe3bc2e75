//! Changes of directories in the in-memory back end: creation, removal, links and
//! renames.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use fuser::FileAttr;
use nix::errno::Errno;
use parking_lot::RwLockWriteGuard;

use super::directory::Entries;
use super::inode::{Body, Inode};
use super::{Memory, check_name, inode_cost};
use crate::store::{Answer, Caller, Place, file_type};

/// The bit that gives new files of a directory its group.
const SET_GROUP: u32 = 0o2000;

/// The entries of a few directories, always locked in the same order.
struct Locked<'a>(Vec<(u64, RwLockWriteGuard<'a, Entries<Arc<Inode>>>)>);

impl<'a> Locked<'a> {
    fn new(mut directories: Vec<&'a Inode>) -> Answer<Locked<'a>> {
        directories.sort_by_key(|inode| inode.ino);
        directories.dedup_by_key(|inode| inode.ino);
        let lock_one = |inode: &'a Inode| Ok((inode.ino, inode.directory()?.write()));
        directories
            .into_iter()
            .map(lock_one)
            .collect::<Answer<_>>()
            .map(Locked)
    }

    /// The entries of `directory`, which must be among the locked ones.
    fn of(&mut self, directory: &Inode) -> Answer<&mut Entries<Arc<Inode>>> {
        self.0
            .iter_mut()
            .find(|(ino, _)| *ino == directory.ino)
            .map(|(_, entries)| &mut **entries)
            .ok_or(Errno::EIO)
    }
}

/// Checks that a name can be added.
fn require_vacant(entries: &Entries<Arc<Inode>>, name: &OsStr) -> Answer<()> {
    match entries.get(name) {
        _ if entries.removed => Err(Errno::ENOENT),
        Some(_) => Err(Errno::EEXIST),
        None => Ok(()),
    }
}

fn same(a: Option<&Arc<Inode>>, b: Option<&Arc<Inode>>) -> bool {
    a.map(Arc::as_ptr) == b.map(Arc::as_ptr)
}

/// Records that `below` is now in `above`.
fn adopt(above: &Inode, below: &Inode) {
    below.home.store(above.ino, Ordering::Relaxed);
    if below.is_directory() {
        above.meta.lock().nlink += 1;
    }
}

/// Records that `below`, if it is a directory, is no longer in `above`.
pub(super) fn disown(above: &Inode, below: &Inode) {
    if below.is_directory() {
        above.meta.lock().nlink -= 1;
    }
}

impl Memory {
    /// Creates an inode with the type and permissions `mode` at `place`.
    pub(super) fn make(
        &self,
        caller: Caller,
        place: Place<'_>,
        mode: u32,
        rdev: u32,
        body: Body,
    ) -> Answer<FileAttr> {
        check_name(place.name)?;
        let kind = file_type(mode)?;
        let parent = self.inode(place.parent)?;
        let mut entries = parent.directory()?.write();
        require_vacant(&entries, place.name)?;
        let cost = inode_cost(&body);
        self.with_space(|| self.space.take(cost))?;
        let (mut owner, mut mode) = (caller, mode);
        let above = parent.meta.lock().clone();
        if u32::from(above.perm) & SET_GROUP != 0 {
            owner.gid = above.gid;
            if matches!(body, Body::Directory(_)) {
                mode |= SET_GROUP;
            }
        }
        let ino = self.next_ino.fetch_add(1, Ordering::Relaxed);
        let inode = Arc::new(Inode::new(ino, owner, kind, mode, rdev, body));
        let attr = inode.attr_for_lookup();
        self.inodes.insert(ino, Arc::clone(&inode));
        adopt(&parent, &inode);
        entries.put(place.name, inode);
        drop(entries);
        parent.touch(false);
        Ok(attr)
    }

    pub(super) fn remove_file(&self, place: Place<'_>) -> Answer<()> {
        let parent = self.inode(place.parent)?;
        let mut entries = parent.directory()?.write();
        let inode = entries.get(place.name).ok_or(Errno::ENOENT)?;
        if inode.is_directory() {
            return Err(Errno::EISDIR);
        }
        let removed = entries.take(place.name);
        drop(entries);
        parent.touch(false);
        if let Some(inode) = removed {
            self.unlinked(&inode);
        }
        Ok(())
    }

    /// The current inode of `name` in `parent`.
    fn peek(&self, parent: &Inode, name: &OsStr) -> Answer<Option<Arc<Inode>>> {
        let entries = parent.directory()?.read();
        Ok(entries.get(name).cloned())
    }

    pub(super) fn remove_directory(&self, place: Place<'_>) -> Answer<()> {
        let parent = self.inode(place.parent)?;
        loop {
            let child = self.peek(&parent, place.name)?.ok_or(Errno::ENOENT)?;
            child.directory()?;
            let mut locked = Locked::new(vec![&parent, &child])?;
            if !same(locked.of(&parent)?.get(place.name), Some(&child)) {
                // It changed before the locks were taken: look again.
                continue;
            }
            let below = locked.of(&child)?;
            if !below.is_empty() {
                return Err(Errno::ENOTEMPTY);
            }
            below.removed = true;
            locked.of(&parent)?.take(place.name);
            disown(&parent, &child);
            drop(locked);
            parent.touch(false);
            self.unlinked(&child);
            return Ok(());
        }
    }

    pub(super) fn add_name(&self, ino: u64, place: Place<'_>) -> Answer<FileAttr> {
        check_name(place.name)?;
        let inode = self.inode(ino)?;
        if inode.is_directory() {
            return Err(Errno::EPERM);
        }
        let parent = self.inode(place.parent)?;
        let mut entries = parent.directory()?.write();
        require_vacant(&entries, place.name)?;
        let mut meta = inode.meta.lock();
        if meta.nlink == 0 {
            return Err(Errno::ENOENT);
        }
        meta.nlink += 1;
        meta.ctime = SystemTime::now();
        drop(meta);
        // Counted before any other thread can remove the name.
        let attr = inode.attr_for_lookup();
        inode.home.store(parent.ino, Ordering::Relaxed);
        entries.put(place.name, inode);
        drop(entries);
        parent.touch(false);
        Ok(attr)
    }

    /// Renames; `flags` as for `renameat2`. The kernel ensures that a directory is
    /// not moved below itself.
    pub(super) fn move_name(&self, from: Place<'_>, to: Place<'_>, flags: u32) -> Answer<()> {
        check_name(to.name)?;
        if !matches!(flags, 0 | libc::RENAME_NOREPLACE | libc::RENAME_EXCHANGE) {
            return Err(Errno::EINVAL);
        }
        let (above, new_above) = (self.inode(from.parent)?, self.inode(to.parent)?);
        loop {
            let target = self.peek(&new_above, to.name)?;
            let mut directories = vec![&*above, &*new_above];
            directories.extend(target.as_deref().filter(|inode| inode.is_directory()));
            let mut locked = Locked::new(directories)?;
            if !same(locked.of(&new_above)?.get(to.name), target.as_ref()) {
                // It changed before the locks were taken: look again.
                continue;
            }
            let source = locked.of(&above)?.get(from.name).cloned();
            let source = source.ok_or(Errno::ENOENT)?;
            if same(Some(&source), target.as_ref()) && flags != libc::RENAME_NOREPLACE {
                return Ok(());
            }
            check_move(&mut locked, &new_above, &source, target.as_deref(), flags)?;

            if let Some(target) = &target {
                disown(&new_above, target);
            }
            disown(&above, &source);
            adopt(&new_above, &source);
            match &target {
                Some(target) if flags == libc::RENAME_EXCHANGE => {
                    adopt(&above, target);
                    locked.of(&above)?.put(from.name, Arc::clone(target));
                }
                _ => drop(locked.of(&above)?.take(from.name)),
            }
            locked.of(&new_above)?.put(to.name, Arc::clone(&source));
            drop(locked);

            self.keep_where_it_is(&source);
            above.touch(false);
            new_above.touch(false);
            source.meta.lock().ctime = SystemTime::now();
            match target {
                Some(target) if flags == libc::RENAME_EXCHANGE => {
                    self.keep_where_it_is(&target);
                    target.meta.lock().ctime = SystemTime::now();
                }
                Some(target) => self.unlinked(&target),
                None => {}
            }
            return Ok(());
        }
    }
}

/// Checks that `source` may move to `new_above` and replace `target`. A directory
/// that is replaced is closed for new entries.
fn check_move(
    locked: &mut Locked<'_>,
    new_above: &Inode,
    source: &Inode,
    target: Option<&Inode>,
    flags: u32,
) -> Answer<()> {
    if locked.of(new_above)?.removed {
        return Err(Errno::ENOENT);
    }
    match (flags, target) {
        (libc::RENAME_NOREPLACE, Some(_)) => Err(Errno::EEXIST),
        (libc::RENAME_EXCHANGE, None) => Err(Errno::ENOENT),
        (libc::RENAME_EXCHANGE, Some(_)) | (_, None) => Ok(()),
        (_, Some(target)) => replaceable(locked, source, target),
    }
}

/// Checks that `source` may replace `target`. A directory that is replaced is closed
/// for new entries.
fn replaceable(locked: &mut Locked<'_>, source: &Inode, target: &Inode) -> Answer<()> {
    match (source.is_directory(), target.is_directory()) {
        (false, false) => Ok(()),
        (true, false) => Err(Errno::ENOTDIR),
        (false, true) => Err(Errno::EISDIR),
        (true, true) => {
            let entries = locked.of(target)?;
            if !entries.is_empty() {
                return Err(Errno::ENOTEMPTY);
            }
            entries.removed = true;
            Ok(())
        }
    }
}
