//! A file, directory, link or special file in memory, with its attributes.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::SystemTime;

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use nix::errno::Errno;
use parking_lot::{Mutex, RwLock};

use super::data::Data;
use super::directory::Entries;
use super::file::File;
use super::space::Space;
use crate::store::{Answer, Caller, Changes, ROOT};

/// Permission bits with set-user-id, set-group-id and the sticky bit.
const PERMISSIONS: u32 = 0o7777;

/// An inode.
#[derive(Debug)]
pub(crate) struct Inode {
    pub(crate) ino: u64,
    pub(crate) kind: FileType,
    pub(crate) rdev: u32,
    pub(crate) body: Body,
    /// The directory of its last name; the root's own number for the root.
    pub(crate) home: AtomicU64,
    /// True if its names are durable.
    pub(crate) is_kept: AtomicBool,
    pub(crate) meta: Mutex<Meta>,
    xattrs: Mutex<BTreeMap<OsString, Box<[u8]>>>,
}

/// Content of an inode.
#[derive(Debug)]
pub(crate) enum Body {
    File(File),
    Directory(RwLock<Entries<Arc<Inode>>>),
    Symlink(OsString),
    Special,
}

/// Attributes that change.
#[derive(Debug, Clone)]
pub(crate) struct Meta {
    pub(crate) perm: u16,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) nlink: u32,
    pub(crate) atime: SystemTime,
    pub(crate) mtime: SystemTime,
    pub(crate) ctime: SystemTime,
    /// Number of references that the kernel holds.
    pub(crate) lookups: u64,
}

impl Inode {
    /// A new inode with one link (two for a directory) and no lookups.
    pub(crate) fn new(
        ino: u64,
        owner: Caller,
        kind: FileType,
        mode: u32,
        rdev: u32,
        body: Body,
    ) -> Inode {
        let now = SystemTime::now();
        Inode {
            ino,
            kind,
            rdev,
            meta: Mutex::new(Meta {
                perm: (mode & PERMISSIONS) as u16,
                uid: owner.uid,
                gid: owner.gid,
                nlink: 1 + u32::from(matches!(body, Body::Directory(_))),
                atime: now,
                mtime: now,
                ctime: now,
                lookups: 0,
            }),
            body,
            home: AtomicU64::new(ROOT),
            is_kept: AtomicBool::new(ino == ROOT),
            xattrs: Mutex::default(),
        }
    }

    pub(crate) fn directory(&self) -> Answer<&RwLock<Entries<Arc<Inode>>>> {
        match &self.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(Errno::ENOTDIR),
        }
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self.body, Body::Directory(_))
    }

    pub(crate) fn file(&self) -> Answer<&File> {
        match &self.body {
            Body::File(file) => Ok(file),
            Body::Directory(_) => Err(Errno::EISDIR),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The content of a regular file.
    pub(crate) fn data(&self) -> Answer<&Data> {
        self.file().map(File::data)
    }

    pub(crate) fn attr(&self) -> FileAttr {
        self.attr_of(&self.meta.lock())
    }

    /// The attributes, with one more reference of the kernel.
    pub(crate) fn attr_for_lookup(&self) -> FileAttr {
        let mut meta = self.meta.lock();
        meta.lookups += 1;
        self.attr_of(&meta)
    }

    fn attr_of(&self, meta: &Meta) -> FileAttr {
        let (size, allocated) = match &self.body {
            Body::File(file) => (file.data().size(), file.data().allocated()),
            Body::Symlink(target) => (target.len() as u64, 0),
            Body::Directory(_) | Body::Special => (0, 0),
        };
        FileAttr {
            ino: INodeNo(self.ino),
            size,
            blocks: allocated.div_ceil(512),
            atime: meta.atime,
            mtime: meta.mtime,
            ctime: meta.ctime,
            crtime: meta.ctime,
            kind: self.kind,
            perm: meta.perm,
            nlink: meta.nlink,
            uid: meta.uid,
            gid: meta.gid,
            rdev: self.rdev,
            blksize: 4096,
            flags: 0,
        }
    }

    /// Changes attributes; the size has been changed already.
    pub(crate) fn change(&self, caller: Caller, changes: Changes) -> FileAttr {
        let Changes {
            mode,
            uid,
            gid,
            size,
            atime,
            mtime,
            ctime,
        } = changes;
        let now = SystemTime::now();
        let time = |time| match time {
            TimeOrNow::SpecificTime(time) => time,
            TimeOrNow::Now => now,
        };
        let mut meta = self.meta.lock();
        if let Some(mode) = mode {
            meta.perm = (mode & PERMISSIONS) as u16;
        }
        if uid.is_some() || gid.is_some() || (size.is_some() && caller.uid != 0) {
            self.kill_privileges(&mut meta);
        }
        meta.uid = uid.unwrap_or(meta.uid);
        meta.gid = gid.unwrap_or(meta.gid);
        if size.is_some() {
            meta.mtime = now;
        }
        meta.atime = atime.map_or(meta.atime, time);
        meta.mtime = mtime.map_or(meta.mtime, time);
        meta.ctime = ctime.unwrap_or(now);
        self.attr_of(&meta)
    }

    /// Clears the bits that let a program run with the rights of its owner, as a
    /// change of owner or content must.
    fn kill_privileges(&self, meta: &mut Meta) {
        if self.is_directory() {
            return;
        }
        const SET_USER: u16 = 0o4000;
        const SET_GROUP: u16 = 0o2000;
        const GROUP_EXECUTES: u16 = 0o010;
        meta.perm &= !SET_USER;
        if meta.perm & GROUP_EXECUTES != 0 {
            meta.perm &= !SET_GROUP;
        }
    }

    /// Records that the content changed.
    pub(crate) fn touch(&self, kill_privileges: bool) {
        let now = SystemTime::now();
        let mut meta = self.meta.lock();
        meta.mtime = now;
        meta.ctime = now;
        if kill_privileges {
            self.kill_privileges(&mut meta);
        }
    }

    /// Records that the content was read, if the last recorded read is older than the
    /// last change (like the mount option relatime).
    pub(crate) fn note_read(&self) {
        let mut meta = self.meta.lock();
        if meta.atime <= meta.mtime || meta.atime <= meta.ctime {
            meta.atime = SystemTime::now();
        }
    }

    /// True if `caller` has the access `mask` (as for `access`). Of the caller's
    /// groups only the first is known.
    pub(crate) fn allows(&self, caller: Caller, mask: i32) -> bool {
        let meta = self.meta.lock();
        let perm = i32::from(meta.perm);
        let wanted = mask & (libc::R_OK | libc::W_OK | libc::X_OK);
        let granted = if caller.uid == 0 {
            let executable = self.is_directory() || perm & 0o111 != 0;
            libc::R_OK | libc::W_OK | if executable { libc::X_OK } else { 0 }
        } else if caller.uid == meta.uid {
            perm >> 6
        } else if caller.gid == meta.gid {
            perm >> 3
        } else {
            perm
        };
        wanted & !granted == 0
    }

    /// Sets the attribute `name`; `flags` as for `setxattr`.
    pub(crate) fn set_xattr(
        &self,
        space: &Space,
        name: &OsStr,
        value: &[u8],
        flags: i32,
    ) -> Answer<()> {
        let mut xattrs = self.xattrs.lock();
        let old = xattrs.get(name).map(|old| xattr_cost(name, old));
        if flags & libc::XATTR_CREATE != 0 && old.is_some() {
            return Err(Errno::EEXIST);
        }
        if flags & libc::XATTR_REPLACE != 0 && old.is_none() {
            return Err(Errno::ENODATA);
        }
        space.take(xattr_cost(name, value))?;
        space.give_back(old.unwrap_or(0));
        xattrs.insert(name.to_owned(), value.into());
        drop(xattrs);
        self.meta.lock().ctime = SystemTime::now();
        Ok(())
    }

    pub(crate) fn xattr(&self, name: &OsStr) -> Answer<Vec<u8>> {
        let xattrs = self.xattrs.lock();
        let value = xattrs.get(name).ok_or(Errno::ENODATA)?;
        Ok(value.to_vec())
    }

    /// All names, each with a zero byte at its end.
    pub(crate) fn xattr_names(&self) -> Vec<u8> {
        let mut names = Vec::new();
        for name in self.xattrs.lock().keys() {
            names.extend_from_slice(name.as_bytes());
            names.push(0);
        }
        names
    }

    pub(crate) fn remove_xattr(&self, space: &Space, name: &OsStr) -> Answer<()> {
        let removed = self.xattrs.lock().remove(name).ok_or(Errno::ENODATA)?;
        space.give_back(xattr_cost(name, &removed));
        self.meta.lock().ctime = SystemTime::now();
        Ok(())
    }

    /// Returns the space of the content to the budget.
    pub(crate) fn clear(&self, space: &Space) {
        if let Body::File(file) = &self.body {
            file.data().clear(space);
        }
        let xattrs = std::mem::take(&mut *self.xattrs.lock());
        let bytes = xattrs.iter().map(|(name, value)| xattr_cost(name, value));
        space.give_back(bytes.sum());
    }
}

fn xattr_cost(name: &OsStr, value: &[u8]) -> u64 {
    (name.len() + value.len()) as u64
}
