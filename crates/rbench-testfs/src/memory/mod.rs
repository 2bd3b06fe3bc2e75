//! The in-memory back end: a file system with one budget. Each file, directory and
//! set of attributes has its own lock; there is no global one.
//!
//! Lock order: entries of directories by ascending inode number, then the attributes
//! of one inode at a time. A shard of the table is never held while another lock is
//! taken.

mod cut;
mod data;
mod directory;
mod durable;
mod file;
mod inode;
mod names;
mod space;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fuser::{FileAttr, FileType};
use nix::errno::Errno;
use nix::unistd::{getegid, geteuid};
use parking_lot::RwLock;
use rbench_core::Bytes;

use self::directory::Listed;
use self::file::File;
use self::inode::{Body, Inode};
use self::space::Space;
use crate::store::{
    Add, AddPlus, Answer, Caller, Changes, Created, Entry, Place, ROOT, Store, Totals, file_type,
};
use crate::sync::Sharded;

/// Cost of an inode in the budget, including its name.
const INODE_COST: u64 = 1 << 10;

/// The longest name, in bytes.
const NAME_MAX: usize = 255;

const BLOCK: u32 = 4096;

/// The in-memory back end.
#[derive(Debug)]
pub(crate) struct Memory {
    inodes: Sharded<Arc<Inode>>,
    next_ino: AtomicU64,
    space: Space,
    /// Inodes without a name that the kernel still holds.
    orphans: AtomicU64,
    listings: Sharded<Arc<Listing>>,
    next_listing: AtomicU64,
    /// True if durable state is kept for power cuts.
    durably: bool,
    /// Number of power cuts, which is the handle of the files opened since. It is
    /// locked for writing during a power cut, for reading while a handle is used.
    cuts: RwLock<u64>,
}

/// An open directory.
#[derive(Debug)]
struct Listing {
    /// Cookie of the last entry of the current listing.
    last: AtomicU64,
    /// The number of power cuts when it was opened.
    cuts: u64,
}

impl Memory {
    /// Creates an empty file system of `cap` bytes, with at most `quota` for data; its root
    /// belongs to the user of the process. `power_cut`: power cuts are simulated.
    pub(crate) fn new(cap: Bytes, quota: Option<Bytes>, power_cut: bool) -> Memory {
        let memory = Memory {
            inodes: Sharded::default(),
            next_ino: AtomicU64::new(ROOT + 1),
            space: Space::new(cap.0, quota.map(|quota| quota.0)),
            orphans: AtomicU64::new(0),
            listings: Sharded::default(),
            next_listing: AtomicU64::new(1),
            durably: power_cut,
            cuts: RwLock::new(0),
        };
        let owner = Caller {
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
        };
        let body = Body::Directory(RwLock::default());
        let root = Inode::new(ROOT, owner, FileType::Directory, 0o755, 0, body);
        memory.inodes.insert(ROOT, Arc::new(root));
        memory
    }

    fn inode(&self, ino: u64) -> Answer<Arc<Inode>> {
        self.inodes.get(ino).ok_or(Errno::ENOENT)
    }

    /// Runs `attempt`. If it fails for lack of space while files without a name may
    /// still be released, it is repeated for a moment. The kernel reports their last
    /// use a little later than their removal.
    fn with_space<T>(&self, mut attempt: impl FnMut() -> Answer<T>) -> Answer<T> {
        const PAUSES_US: [u64; 5] = [500, 1000, 2000, 4000, 8000];
        for pause_us in PAUSES_US {
            match attempt() {
                Err(Errno::ENOSPC) if self.orphans.load(Ordering::Relaxed) > 0 => {
                    std::thread::sleep(Duration::from_micros(pause_us));
                }
                outcome => return outcome,
            }
        }
        attempt()
    }

    /// Removes a link from an inode that has just lost a name. With its last link it
    /// also removes the inode, unless the kernel still uses it.
    fn unlinked(&self, inode: &Inode) {
        let mut meta = inode.meta.lock();
        meta.ctime = std::time::SystemTime::now();
        meta.nlink = if inode.is_directory() {
            0
        } else {
            meta.nlink.saturating_sub(1)
        };
        if meta.nlink > 0 {
            return;
        }
        self.orphans.fetch_add(1, Ordering::Relaxed);
        let unused = meta.lookups == 0;
        drop(meta);
        if unused {
            self.reap(inode);
        }
    }

    /// Removes an inode that can no longer be reached.
    fn reap(&self, inode: &Inode) {
        self.inodes.remove(inode.ino);
        inode.clear(&self.space);
        self.space.give_back(inode_cost(&inode.body));
        self.orphans.fetch_sub(1, Ordering::Relaxed);
    }

    /// The entries after `offset`, each with its inode. A listing ends with the
    /// newest entry at its start, so that it does end.
    fn list(
        &self,
        ino: u64,
        handle: u64,
        offset: u64,
        mut add: impl FnMut(Entry<'_>, Option<&Inode>) -> bool,
    ) -> Answer<()> {
        let inode = self.inode(ino)?;
        let directory = inode.directory()?;
        let listing = self.listings.get(handle).ok_or(Errno::EBADF)?;
        let entries = directory.read();
        if offset == 0 {
            listing.last.store(entries.last_cookie(), Ordering::Relaxed);
            inode.note_read();
        }
        let last = listing.last.load(Ordering::Relaxed);
        for (cookie, listed) in entries.list(offset, last) {
            let (ino, kind, name, inode) = match listed {
                Listed::Dot => (ino, FileType::Directory, OsStr::new("."), None),
                Listed::DotDot => {
                    let above = inode.home.load(Ordering::Relaxed);
                    (above, FileType::Directory, OsStr::new(".."), None)
                }
                Listed::Entry(name, inode) => (inode.ino, inode.kind, name, Some(&**inode)),
            };
            let entry = Entry {
                ino,
                offset: cookie,
                kind,
                name,
            };
            if add(entry, inode) {
                break;
            }
        }
        Ok(())
    }
}

/// Cost of an inode without its content in the budget.
fn inode_cost(body: &Body) -> u64 {
    match body {
        Body::Symlink(target) => INODE_COST + target.len() as u64,
        Body::File(_) | Body::Directory(_) | Body::Special => INODE_COST,
    }
}

fn check_name(name: &OsStr) -> Answer<()> {
    if name.len() > NAME_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    Ok(())
}

/// Accepts the name spaces of extended attributes that hold plain data; names in
/// `system.` would have a meaning.
fn check_xattr_name(name: &OsStr) -> Answer<()> {
    const SPACES: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];
    let name = name.as_encoded_bytes();
    match SPACES.iter().any(|space| name.starts_with(space)) {
        true => Ok(()),
        false => Err(Errno::EOPNOTSUPP),
    }
}

impl Store for Memory {
    fn lookup(&self, place: Place<'_>) -> Answer<FileAttr> {
        check_name(place.name)?;
        let parent = self.inode(place.parent)?;
        // The lock on the entries keeps the name until the reference is counted.
        let entries = parent.directory()?.read();
        let inode = entries.get(place.name).ok_or(Errno::ENOENT)?;
        Ok(inode.attr_for_lookup())
    }

    fn forget(&self, ino: u64, lookups: u64) {
        let Ok(inode) = self.inode(ino) else { return };
        let mut meta = inode.meta.lock();
        meta.lookups = meta.lookups.saturating_sub(lookups);
        let gone = meta.lookups == 0 && meta.nlink == 0;
        drop(meta);
        if gone {
            self.reap(&inode);
        }
    }

    fn getattr(&self, ino: u64) -> Answer<FileAttr> {
        Ok(self.inode(ino)?.attr())
    }

    fn setattr(
        &self,
        caller: Caller,
        ino: u64,
        handle: Option<u64>,
        changes: Changes,
    ) -> Answer<FileAttr> {
        let _power = handle.map(|handle| self.with_power(handle)).transpose()?;
        let inode = self.inode(ino)?;
        if let Some(size) = changes.size {
            inode.file()?.truncate(&self.space, size)?;
        }
        Ok(inode.change(caller, changes))
    }

    fn access(&self, caller: Caller, ino: u64, mask: i32) -> Answer<()> {
        match self.inode(ino)?.allows(caller, mask) {
            true => Ok(()),
            false => Err(Errno::EACCES),
        }
    }

    fn readlink(&self, ino: u64) -> Answer<OsString> {
        match &self.inode(ino)?.body {
            Body::Symlink(target) => Ok(target.clone()),
            _ => Err(Errno::EINVAL),
        }
    }

    fn symlink(&self, caller: Caller, place: Place<'_>, target: &Path) -> Answer<FileAttr> {
        let body = Body::Symlink(target.as_os_str().to_owned());
        self.make(caller, place, libc::S_IFLNK | 0o777, 0, body)
    }

    fn mknod(&self, caller: Caller, place: Place<'_>, mode: u32, rdev: u32) -> Answer<FileAttr> {
        let body = match file_type(mode)? {
            FileType::RegularFile => Body::File(File::new(self.durably)),
            FileType::Directory | FileType::Symlink => return Err(Errno::EINVAL),
            _ => Body::Special,
        };
        self.make(caller, place, mode, rdev, body)
    }

    fn mkdir(&self, caller: Caller, place: Place<'_>, mode: u32) -> Answer<FileAttr> {
        let body = Body::Directory(RwLock::default());
        let mode = libc::S_IFDIR | mode & !libc::S_IFMT;
        self.make(caller, place, mode, 0, body)
    }

    fn unlink(&self, place: Place<'_>) -> Answer<()> {
        self.remove_file(place)
    }

    fn rmdir(&self, place: Place<'_>) -> Answer<()> {
        self.remove_directory(place)
    }

    fn rename(&self, from: Place<'_>, to: Place<'_>, flags: u32) -> Answer<()> {
        self.move_name(from, to, flags)
    }

    fn link(&self, ino: u64, place: Place<'_>) -> Answer<FileAttr> {
        self.add_name(ino, place)
    }

    fn open(&self, ino: u64, flags: i32) -> Answer<u64> {
        let cuts = self.cuts.read();
        let inode = self.inode(ino)?;
        let file = inode.file()?;
        // The kernel may have looked it up before a cut removed it; ESTALE makes it
        // look up again.
        if *cuts > 0 && inode.meta.lock().nlink == 0 {
            return Err(Errno::ESTALE);
        }
        if flags & libc::O_TRUNC != 0 {
            file.truncate(&self.space, 0)?;
            inode.touch(true);
        }
        // Open files need no other state: the kernel keeps the inode.
        Ok(*cuts)
    }

    fn create(&self, caller: Caller, place: Place<'_>, mode: u32, flags: i32) -> Answer<Created> {
        let mode = libc::S_IFREG | mode & !libc::S_IFMT;
        // Read beforehand: a cut may remove the file that is created here.
        let cuts = *self.cuts.read();
        match self.mknod(caller, place, mode, 0) {
            Err(Errno::EEXIST) if flags & libc::O_EXCL == 0 => {
                let attr = self.lookup(place)?;
                let opened = self.open(attr.ino.0, flags);
                if opened.is_err() {
                    self.forget(attr.ino.0, 1);
                }
                Ok((self.getattr(attr.ino.0)?, opened?))
            }
            made => Ok((made?, cuts)),
        }
    }

    fn read(&self, ino: u64, handle: u64, offset: u64, buffer: &mut [u8]) -> Answer<usize> {
        let _power = self.with_power(handle)?;
        let inode = self.inode(ino)?;
        let length = inode.data()?.read(offset, buffer);
        if length > 0 {
            inode.note_read();
        }
        Ok(length)
    }

    fn write(&self, ino: u64, handle: u64, offset: u64, data: &[u8], kill: bool) -> Answer<u32> {
        let _power = self.with_power(handle)?;
        let inode = self.inode(ino)?;
        let file = inode.file()?;
        let written = self.with_space(|| file.write(&self.space, offset, data))?;
        inode.touch(kill);
        // A request is far below 4 GiB.
        Ok(written as u32)
    }

    fn peek(&self, ino: u64, offset: u64, buffer: &mut [u8]) -> Answer<usize> {
        Ok(self.inode(ino)?.data()?.read(offset, buffer))
    }

    fn poke(&self, ino: u64, offset: u64, data: &[u8]) -> Answer<usize> {
        let inode = self.inode(ino)?;
        inode.file()?.write(&self.space, offset, data)
    }

    fn flush(&self, _handle: u64) -> Answer<()> {
        Ok(())
    }

    fn release(&self, _handle: u64) -> Answer<()> {
        Ok(())
    }

    fn fsync(&self, ino: u64, handle: u64, _data_only: bool) -> Answer<()> {
        let _power = self.with_power(handle)?;
        self.make_durable(&*self.inode(ino)?);
        Ok(())
    }

    fn fallocate(&self, ino: u64, handle: u64, offset: u64, length: u64, mode: i32) -> Answer<()> {
        let _power = self.with_power(handle)?;
        const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let inode = self.inode(ino)?;
        let file = inode.file()?;
        match mode {
            0 | libc::FALLOC_FL_KEEP_SIZE => {
                let keep_size = mode != 0;
                self.with_space(|| file.reserve(&self.space, offset, length, keep_size))?;
            }
            PUNCH => file.punch(&self.space, offset, length)?,
            _ => return Err(Errno::EOPNOTSUPP),
        }
        inode.touch(true);
        Ok(())
    }

    fn lseek(&self, ino: u64, _handle: u64, offset: i64, whence: i32) -> Answer<i64> {
        let inode = self.inode(ino)?;
        let data = inode.data()?;
        let offset = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
        let position = match whence {
            libc::SEEK_DATA => data.next_data(offset)?,
            libc::SEEK_HOLE => data.next_hole(offset)?,
            _ => return Err(Errno::EINVAL),
        };
        i64::try_from(position).map_err(|_| Errno::EOVERFLOW)
    }

    fn opendir(&self, ino: u64) -> Answer<u64> {
        self.inode(ino)?.directory()?;
        let handle = self.next_listing.fetch_add(1, Ordering::Relaxed);
        let listing = Listing {
            last: AtomicU64::new(u64::MAX),
            cuts: *self.cuts.read(),
        };
        self.listings.insert(handle, Arc::new(listing));
        Ok(handle)
    }

    fn readdir(&self, ino: u64, handle: u64, offset: u64, add: Add<'_>) -> Answer<()> {
        self.list(ino, handle, offset, |entry, _| add(entry))
    }

    fn readdirplus(&self, ino: u64, handle: u64, offset: u64, add: AddPlus<'_>) -> Answer<()> {
        let own = self.getattr(ino)?;
        self.list(ino, handle, offset, |entry, inode| {
            let Some(inode) = inode else {
                return add(entry, &own);
            };
            let full = add(entry, &inode.attr_for_lookup());
            if full {
                // Its name still keeps it, so reducing the count is enough.
                inode.meta.lock().lookups -= 1;
            }
            full
        })
    }

    fn releasedir(&self, handle: u64) -> Answer<()> {
        self.listings.remove(handle).map(drop).ok_or(Errno::EBADF)
    }

    fn fsyncdir(&self, ino: u64, handle: u64, _data_only: bool) -> Answer<()> {
        let listing = self.listings.get(handle).ok_or(Errno::EBADF)?;
        let _power = self.with_power(listing.cuts)?;
        self.make_names_durable(&*self.inode(ino)?)
    }

    fn statfs(&self, _ino: u64) -> Answer<Totals> {
        let (cap, free) = (self.space.cap(), self.space.free());
        let block = u64::from(BLOCK);
        Ok(Totals {
            blocks: cap / block,
            blocks_free: free / block,
            blocks_available: free / block,
            files: cap / INODE_COST,
            files_free: self.space.free_for_inodes() / INODE_COST,
            block_size: BLOCK,
            name_max: NAME_MAX as u32,
        })
    }

    fn setxattr(&self, ino: u64, name: &OsStr, value: &[u8], flags: i32) -> Answer<()> {
        check_xattr_name(name)?;
        let inode = self.inode(ino)?;
        self.with_space(|| inode.set_xattr(&self.space, name, value, flags))
    }

    fn getxattr(&self, ino: u64, name: &OsStr) -> Answer<Vec<u8>> {
        check_xattr_name(name)?;
        self.inode(ino)?.xattr(name)
    }

    fn listxattr(&self, ino: u64) -> Answer<Vec<u8>> {
        Ok(self.inode(ino)?.xattr_names())
    }

    fn removexattr(&self, ino: u64, name: &OsStr) -> Answer<()> {
        check_xattr_name(name)?;
        self.inode(ino)?.remove_xattr(&self.space, name)
    }
}

#[cfg(test)]
mod tests;
