//! The operations, each by the corresponding system calls.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd as _, IntoRawFd as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fuser::FileAttr;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, FallocateFlags, OFlag, RenameFlags};
use nix::sys::stat::{Mode, SFlag, UtimensatFlags};
use nix::unistd::{AccessFlags, Gid, Uid, UnlinkatFlags, Whence};
use nix::{fcntl, unistd};
use parking_lot::Mutex;
use rbench_core::or_eio;

use super::listing::Listing;
use super::sys::{self, path_of};
use super::{
    Passthrough, give_to, kill_privileges, name_file, open_flags, plain, reopen, set_mode, unmask,
};
use crate::store::{Add, AddPlus, Answer, Caller, Changes, Created, Place, ROOT, Store, Totals};

impl Store for Passthrough {
    fn lookup(&self, place: Place<'_>) -> Answer<FileAttr> {
        let parent = self.node(place.parent)?;
        self.enter(name_file(&parent, plain(place)?)?)
    }

    fn forget(&self, ino: u64, lookups: u64) {
        let mut shard = self.nodes.shard(ino).write();
        let Some(node) = shard.get(&ino) else { return };
        let before = node.lookups.fetch_sub(lookups, Ordering::Relaxed);
        if before <= lookups && ino != ROOT {
            shard.remove(&ino);
        }
    }

    fn getattr(&self, ino: u64) -> Answer<FileAttr> {
        self.attr(&*self.node(ino)?, ino)
    }

    fn setattr(
        &self,
        caller: Caller,
        ino: u64,
        handle: Option<u64>,
        changes: Changes,
    ) -> Answer<FileAttr> {
        // The folder's file system sets the time of a change itself.
        let Changes {
            mode,
            uid,
            gid,
            size,
            atime,
            mtime,
            ctime: _,
        } = changes;
        let node = self.node(ino)?;
        if let Some(mode) = mode {
            set_mode(&node, mode)?;
        }
        if uid.is_some() || gid.is_some() {
            let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
            unistd::fchownat(&node.fd, "", uid, gid, AtFlags::AT_EMPTY_PATH)?;
        }
        if let Some(size) = size {
            let size = i64::try_from(size).map_err(|_| Errno::EFBIG)?;
            match handle {
                Some(handle) => unistd::ftruncate(&*self.file(handle)?, size)?,
                None => unistd::truncate(path_of(&node.fd).as_c_str(), size)?,
            }
            kill_privileges(&node, caller.uid != 0)?;
        }
        if atime.is_some() || mtime.is_some() {
            let [atime, mtime] = [atime, mtime].map(sys::timespec);
            let (path, follow) = (path_of(&node.fd), UtimensatFlags::FollowSymlink);
            nix::sys::stat::utimensat(AT_FDCWD, path.as_c_str(), &atime, &mtime, follow)?;
        }
        self.attr(&node, ino)
    }

    fn access(&self, _caller: Caller, ino: u64, mask: i32) -> Answer<()> {
        let node = self.node(ino)?;
        let mask = AccessFlags::from_bits_truncate(mask);
        let path = path_of(&node.fd);
        unistd::faccessat(AT_FDCWD, path.as_c_str(), mask, AtFlags::AT_EACCESS)
    }

    fn readlink(&self, ino: u64) -> Answer<OsString> {
        fcntl::readlinkat(&self.node(ino)?.fd, "")
    }

    fn symlink(&self, caller: Caller, place: Place<'_>, target: &Path) -> Answer<FileAttr> {
        let parent = self.node(place.parent)?;
        unistd::symlinkat(target, &parent.fd, plain(place)?)?;
        self.enter_new(caller, place)
    }

    fn mknod(&self, caller: Caller, place: Place<'_>, mode: u32, rdev: u32) -> Answer<FileAttr> {
        unmask()?;
        let parent = self.node(place.parent)?;
        let kind = SFlag::from_bits_truncate(mode & libc::S_IFMT);
        let perm = Mode::from_bits_truncate(mode & !libc::S_IFMT);
        let device = sys::device_of(rdev);
        nix::sys::stat::mknodat(&parent.fd, plain(place)?, kind, perm, device)?;
        self.enter_new(caller, place)
    }

    fn mkdir(&self, caller: Caller, place: Place<'_>, mode: u32) -> Answer<FileAttr> {
        unmask()?;
        let parent = self.node(place.parent)?;
        let mode = Mode::from_bits_truncate(mode);
        nix::sys::stat::mkdirat(&parent.fd, plain(place)?, mode)?;
        self.enter_new(caller, place)
    }

    fn unlink(&self, place: Place<'_>) -> Answer<()> {
        let parent = self.node(place.parent)?;
        unistd::unlinkat(&parent.fd, plain(place)?, UnlinkatFlags::NoRemoveDir)
    }

    fn rmdir(&self, place: Place<'_>) -> Answer<()> {
        let parent = self.node(place.parent)?;
        unistd::unlinkat(&parent.fd, plain(place)?, UnlinkatFlags::RemoveDir)
    }

    fn rename(&self, from: Place<'_>, to: Place<'_>, flags: u32) -> Answer<()> {
        let (old, new) = (self.node(from.parent)?, self.node(to.parent)?);
        let flags = RenameFlags::from_bits(flags).ok_or(Errno::EINVAL)?;
        fcntl::renameat2(&old.fd, plain(from)?, &new.fd, plain(to)?, flags)
    }

    fn link(&self, ino: u64, place: Place<'_>) -> Answer<FileAttr> {
        let (node, parent) = (self.node(ino)?, self.node(place.parent)?);
        let path = path_of(&node.fd);
        // Only the link in /proc is followed.
        let flags = AtFlags::AT_SYMLINK_FOLLOW;
        unistd::linkat(AT_FDCWD, path.as_c_str(), &parent.fd, plain(place)?, flags)?;
        self.lookup(place)
    }

    fn open(&self, ino: u64, flags: i32) -> Answer<u64> {
        let file = reopen(&self.node(ino)?.fd, open_flags(flags))?;
        let handle = self.add_handle();
        self.files.insert(handle, Arc::new(File::from(file)));
        Ok(handle)
    }

    fn create(&self, caller: Caller, place: Place<'_>, mode: u32, flags: i32) -> Answer<Created> {
        unmask()?;
        let parent = self.node(place.parent)?;
        let (name, perm) = (plain(place)?, Mode::from_bits_truncate(mode));
        let how = open_flags(flags) | OFlag::O_NOFOLLOW;
        let making = how | OFlag::O_CREAT | OFlag::O_EXCL;
        let file = match fcntl::openat(&parent.fd, name, making, perm) {
            Err(Errno::EEXIST) if flags & libc::O_EXCL == 0 => {
                fcntl::openat(&parent.fd, name, how, perm)?
            }
            file => {
                let file = file?;
                give_to(caller, &parent, &file)?;
                file
            }
        };
        let attr = self.enter(reopen(&file, OFlag::O_PATH | OFlag::O_CLOEXEC)?)?;
        let handle = self.add_handle();
        self.files.insert(handle, Arc::new(File::from(file)));
        Ok((attr, handle))
    }

    fn read(&self, _ino: u64, handle: u64, offset: u64, buffer: &mut [u8]) -> Answer<usize> {
        read_all(&*self.file(handle)?, offset, buffer)
    }

    fn write(&self, ino: u64, handle: u64, offset: u64, data: &[u8], kill: bool) -> Answer<u32> {
        let file = self.file(handle)?;
        let offset = i64::try_from(offset).map_err(|_| Errno::EFBIG)?;
        let written = nix::sys::uio::pwrite(&*file, data, offset)?;
        kill_privileges(&*self.node(ino)?, kill)?;
        // A request is far below 4 GiB.
        Ok(written as u32)
    }

    fn flush(&self, handle: u64) -> Answer<()> {
        // Closing a copy reports the errors that closing the file would.
        let copy = unistd::dup(&*self.file(handle)?)?;
        unistd::close(copy.into_raw_fd())
    }

    fn release(&self, handle: u64) -> Answer<()> {
        self.files.remove(handle).map(drop).ok_or(Errno::EBADF)
    }

    fn peek(&self, ino: u64, offset: u64, buffer: &mut [u8]) -> Answer<usize> {
        let file = reopen(&self.node(ino)?.fd, open_flags(libc::O_RDONLY))?;
        read_all(&File::from(file), offset, buffer)
    }

    fn poke(&self, ino: u64, offset: u64, data: &[u8]) -> Answer<usize> {
        let file = reopen(&self.node(ino)?.fd, open_flags(libc::O_WRONLY))?;
        let offset = i64::try_from(offset).map_err(|_| Errno::EFBIG)?;
        nix::sys::uio::pwrite(file, data, offset)
    }

    fn fsync(&self, _ino: u64, handle: u64, data_only: bool) -> Answer<()> {
        let file = self.file(handle)?;
        match data_only {
            true => unistd::fdatasync(&*file),
            false => unistd::fsync(&*file),
        }
    }

    fn fallocate(&self, _ino: u64, handle: u64, offset: u64, length: u64, mode: i32) -> Answer<()> {
        let mode = FallocateFlags::from_bits(mode).ok_or(Errno::EOPNOTSUPP)?;
        let offset = i64::try_from(offset).map_err(|_| Errno::EFBIG)?;
        let length = i64::try_from(length).map_err(|_| Errno::EFBIG)?;
        fcntl::fallocate(&*self.file(handle)?, mode, offset, length)
    }

    fn lseek(&self, _ino: u64, handle: u64, offset: i64, whence: i32) -> Answer<i64> {
        let whence = match whence {
            libc::SEEK_DATA => Whence::SeekData,
            libc::SEEK_HOLE => Whence::SeekHole,
            _ => return Err(Errno::EINVAL),
        };
        unistd::lseek64(&*self.file(handle)?, offset, whence)
    }

    fn opendir(&self, ino: u64) -> Answer<u64> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let directory = reopen(&self.node(ino)?.fd, flags)?;
        let listing = Listing::new(File::from(directory));
        let handle = self.add_handle();
        self.listings.insert(handle, Arc::new(Mutex::new(listing)));
        Ok(handle)
    }

    fn readdir(&self, _ino: u64, handle: u64, offset: u64, add: Add<'_>) -> Answer<()> {
        self.list(handle, offset, |entry| Ok(add(entry)))
    }

    fn readdirplus(&self, ino: u64, handle: u64, offset: u64, add: AddPlus<'_>) -> Answer<()> {
        let own = self.getattr(ino)?;
        let mut added = 0;
        self.list(handle, offset, |entry| {
            if matches!(entry.name.as_encoded_bytes(), b"." | b"..") {
                return Ok(add(entry, &own));
            }
            let place = Place {
                parent: ino,
                name: entry.name,
            };
            let attr = match self.lookup(place) {
                Ok(attr) => attr,
                // It was removed after the directory was read.
                Err(Errno::ENOENT) => return Ok(false),
                // The entries added until now are returned; the next call meets the
                // error.
                Err(_) if added > 0 => return Ok(true),
                Err(error) => return Err(error),
            };
            let full = add(entry, &attr);
            if full {
                self.forget(attr.ino.0, 1);
            }
            added += 1;
            Ok(full)
        })
    }

    fn releasedir(&self, handle: u64) -> Answer<()> {
        self.listings.remove(handle).map(drop).ok_or(Errno::EBADF)
    }

    fn fsyncdir(&self, _ino: u64, handle: u64, data_only: bool) -> Answer<()> {
        let listing = self.listings.get(handle).ok_or(Errno::EBADF)?;
        let directory = listing.lock().directory().try_clone().map_err(or_eio)?;
        match data_only {
            true => unistd::fdatasync(&directory),
            false => unistd::fsync(&directory),
        }
    }

    fn statfs(&self, ino: u64) -> Answer<Totals> {
        let totals = nix::sys::statvfs::fstatvfs(&self.node(ino)?.fd)?;
        Ok(Totals {
            blocks: totals.blocks(),
            blocks_free: totals.blocks_free(),
            blocks_available: totals.blocks_available(),
            files: totals.files(),
            files_free: totals.files_free(),
            block_size: totals.fragment_size() as u32,
            name_max: totals.name_max() as u32,
        })
    }

    fn setxattr(&self, ino: u64, name: &OsStr, value: &[u8], flags: i32) -> Answer<()> {
        let node = self.node_with_xattrs(ino)?;
        sys::set_xattr(node.fd.as_fd(), name, value, flags)
    }

    fn getxattr(&self, ino: u64, name: &OsStr) -> Answer<Vec<u8>> {
        let node = self.node_with_xattrs(ino)?;
        sys::get_xattr(node.fd.as_fd(), name)
    }

    fn listxattr(&self, ino: u64) -> Answer<Vec<u8>> {
        let node = self.node_with_xattrs(ino)?;
        sys::list_xattr(node.fd.as_fd())
    }

    fn removexattr(&self, ino: u64, name: &OsStr) -> Answer<()> {
        let node = self.node_with_xattrs(ino)?;
        sys::remove_xattr(node.fd.as_fd(), name)
    }
}

/// Reads from `offset` into `buffer`, up to the end of the file.
fn read_all(file: &File, offset: u64, buffer: &mut [u8]) -> Answer<usize> {
    let offset = i64::try_from(offset).map_err(|_| Errno::EFBIG)?;
    let mut done = 0;
    while done < buffer.len() {
        match nix::sys::uio::pread(file, &mut buffer[done..], offset + done as i64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(_) if done > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
