//! The requests of the FUSE protocol: each one's call of the back end and its reply.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, FileAttr, FileHandle, Filesystem, FopenFlags,
    INodeNo, IoctlFlags, KernelConfig, LockOwner, OpenFlags, PollEvents, PollFlags, PollNotifier,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty,
    ReplyEntry, ReplyIoctl, ReplyLock, ReplyLseek, ReplyOpen, ReplyPoll, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use nix::errno::Errno;
use rbench_core::Nanos;
use rbench_core::request::{Changes as Changed, What};

use super::data::Write;
use super::{
    GENERATION, MAX_BACKGROUND, MAX_WRITE, Service, Subject, Ticket, caller, capabilities, fitting,
    place, send, send_empty, send_open, send_xattr,
};
use crate::broken::BrokenPromise;
use crate::kind::Kind;
use crate::observed::{LISTING, XATTR, bytes, reported};
use crate::store::{Answer, Changes, Entry, Store, Totals};

thread_local! {
    /// Buffer in which a read is assembled.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Replies with data.
fn send_data(reply: ReplyData, data: Vec<u8>) {
    reply.data(&data);
}

impl<S: Store> Service<S> {
    /// Lists a directory.
    fn listed(
        &self,
        request: &Request,
        (ino, handle): (INodeNo, FileHandle),
        list: impl FnOnce(&S) -> Answer<()>,
    ) -> (Ticket, Answer<()>) {
        let ticket = self.admit(Kind::Readdir, ino);
        let what = |_: Option<&_>| What::Readdir(ino.0, Some(handle.0), LISTING);
        let outcome = ticket.run(|| self.report(request, || list(&self.store), what));
        (ticket, outcome)
    }
}

impl<S: Store> Filesystem for Service<S> {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = capabilities(!self.common_ttl().is_zero(), &self.config.broken);
        let wanted = wanted & config.capabilities();
        let refused = |what: &str| io::Error::other(format!("the FUSE library refuses {what}"));
        config
            .add_capabilities(wanted)
            .map_err(|_| refused("the capabilities of the kernel"))?;
        config
            .set_max_write(MAX_WRITE)
            .map_err(|_| refused("the size of writes"))?;
        config
            .set_max_background(MAX_BACKGROUND)
            .map_err(|_| refused("the number of background requests"))?;
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (at, send) = (place(parent, name), self.send_entry(reply));
        if let Some(file) = self.own_file.as_ref().filter(|file| file.is_at(at)) {
            let real = self.report(
                request,
                || self.store.lookup(at),
                |_| What::Lookup(reported(at)),
            );
            let real = self.named(at, real);
            let attr = match real {
                Err(Errno::ENOENT) => Ok(file.attr()),
                other => other,
            };
            return self.serve_own(file, Kind::Lookup, attr, send);
        }
        let look = |s: &S| self.named(at, s.lookup(at));
        let what = |_: Option<&_>| What::Lookup(reported(at));
        self.serve_reported(request, (Kind::Lookup, at), look, what, send);
    }

    fn forget(&self, _request: &Request, ino: INodeNo, lookups: u64) {
        if self.own_file(ino).is_some() {
            return;
        }
        let ticket = self.admit(Kind::Forget, ino);
        self.store.forget(ino.0, lookups);
        if let Some(paths) = &self.paths
            && self.store.getattr(ino.0).is_err()
        {
            paths.forget(ino.0);
            self.control.history.forget(ino.0);
        }
        Self::record(self.stats(), &ticket, 0, false);
    }

    fn getattr(&self, request: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let send = self.send_attr(reply);
        if let Some(file) = self.own_file(ino) {
            return self.serve_own(file, Kind::Getattr, Ok(file.attr()), send);
        }
        let what = |_: Option<&_>| What::Getattr(ino.0);
        let operation = |s: &S| s.getattr(ino.0);
        self.serve_reported(request, (Kind::Getattr, ino), operation, what, send);
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changes = Changes {
            mode,
            uid,
            gid,
            size,
            atime,
            mtime,
            ctime,
        };
        let handle = handle.map(|handle| handle.0);
        let change = |s: &S| {
            let changed = s.setattr(caller(request), ino.0, handle, changes)?;
            if let Some(size) = size {
                self.control.history.truncated(ino.0, size);
            }
            Ok(changed)
        };
        let changed = Changed {
            mode,
            uid,
            gid,
            size,
            times: atime.is_some() || mtime.is_some(),
        };
        let what = |_: Option<&_>| What::Setattr(ino.0, changed);
        let send = self.send_attr(reply);
        self.serve_reported(request, (Kind::Setattr, ino), change, what, send);
    }

    fn readlink(&self, request: &Request, ino: INodeNo, reply: ReplyData) {
        let send = send(reply, |reply, target: OsString| {
            reply.data(target.as_encoded_bytes());
        });
        let what = |_: Option<&_>| What::Readlink(ino.0);
        let operation = |s: &S| s.readlink(ino.0);
        self.serve_reported(request, (Kind::Readlink, ino), operation, what, send);
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let (at, send) = (place(parent, name), self.send_entry(reply));
        let make = |s: &S| self.named(at, s.mknod(caller(request), at, mode, rdev));
        let what = |_: Option<&_>| What::Mknod(reported(at), mode);
        self.serve_reported(request, (Kind::Mknod, at), make, what, send);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let (at, send) = (place(parent, name), self.send_entry(reply));
        let make = |s: &S| self.named(at, s.mkdir(caller(request), at, mode));
        let what = |_: Option<&_>| What::Mkdir(reported(at), mode);
        self.serve_reported(request, (Kind::Mkdir, at), make, what, send);
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let at = place(parent, name);
        let remove = |s: &S| self.unnamed(at, s.unlink(at));
        let what = |_: Option<&_>| What::Unlink(reported(at));
        self.serve_reported(request, (Kind::Unlink, at), remove, what, send_empty(reply));
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let at = place(parent, name);
        let remove = |s: &S| self.unnamed(at, s.rmdir(at));
        let what = |_: Option<&_>| What::Rmdir(reported(at));
        self.serve_reported(request, (Kind::Rmdir, at), remove, what, send_empty(reply));
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let (at, send) = (place(parent, name), self.send_entry(reply));
        let make = |s: &S| self.named(at, s.symlink(caller(request), at, target));
        let what = |_: Option<&_>| What::Symlink(reported(at), bytes(target.as_os_str()));
        self.serve_reported(request, (Kind::Symlink, at), make, what, send);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to) = (place(parent, name), place(new_parent, new_name));
        let rename = |s: &S| {
            s.rename(from, to, flags.bits())?;
            if let Some(paths) = &self.paths {
                paths.renamed(from, to, flags.contains(RenameFlags::RENAME_EXCHANGE));
            }
            Ok(())
        };
        let what = |_: Option<&_>| What::Rename(reported(from), reported(to), flags.bits());
        let send = send_empty(reply);
        self.serve_reported(request, (Kind::Rename, from), rename, what, send);
    }

    fn link(
        &self,
        request: &Request,
        ino: INodeNo,
        parent: INodeNo,
        name: &OsStr,
        reply: ReplyEntry,
    ) {
        let (at, send) = (place(parent, name), self.send_entry(reply));
        let link = |s: &S| self.named(at, s.link(ino.0, at));
        let what = |_: Option<&_>| What::Link(ino.0, reported(at));
        self.serve_reported(request, (Kind::Link, at), link, what, send);
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if let Some(file) = self.own_file(ino) {
            let handle = file.open(flags.0, &self.stats().snapshot());
            let send = send_open(reply, FopenFlags::FOPEN_DIRECT_IO);
            return self.serve_own(file, Kind::Open, handle, send);
        }
        let send = send_open(reply, self.open_how(flags.0));
        let open = |s: &S| {
            let handle = s.open(ino.0, flags.0)?;
            if flags.0 & libc::O_TRUNC != 0 {
                self.control.history.truncated(ino.0, 0);
            }
            Ok(handle)
        };
        let what = |handle: Option<&u64>| What::Open(ino.0, flags.0, handle.copied());
        self.serve_reported(request, (Kind::Open, ino), open, what, send);
    }

    fn read(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if let Some(file) = self.own_file(ino) {
            let data = file.read(handle.0, offset, size);
            return self.serve_own(file, Kind::Read, data, send(reply, send_data));
        }
        let ticket = self.admit(Kind::Read, Subject::Range(ino.0, offset, size.into()));
        SCRATCH.with_borrow_mut(|scratch| {
            let size = size as usize;
            if scratch.len() < size {
                scratch.resize(size, 0);
            }
            let place = (ino.0, handle.0, offset);
            let read = || self.read_data(&ticket, place, &mut scratch[..size]);
            let what = |_: Option<&_>| What::Read(ino.0, Some(handle.0), offset, size as u64);
            match ticket.run(|| self.report(request, read, what)) {
                // Sent from the buffer, without a copy.
                Ok(length) if ticket.hold == Nanos(0) && !ticket.hangs => {
                    Self::record(self.stats(), &ticket, length as u64, false);
                    reply.data(&scratch[..length]);
                }
                outcome => {
                    let data = outcome.map(|length| scratch[..length].to_vec());
                    let bytes = data.as_ref().map_or(0, |data| data.len() as u64);
                    self.finish(ticket, bytes, data, send(reply, send_data));
                }
            }
        });
    }

    fn write(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let subject = Subject::Range(ino.0, offset, data.len() as u64);
        let ticket = self.admit(Kind::Write, subject);
        let write = Write {
            ino: ino.0,
            handle: handle.0,
            offset,
            data,
            kill_privileges: write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID),
            flags: flags.0,
        };
        let what = |_: Option<&_>| {
            let all = data.len() as u64;
            What::Write(ino.0, Some(handle.0), offset, all, Some(data.into()))
        };
        let outcome = ticket.run(|| self.report(request, || self.write_data(&ticket, write), what));
        self.book_refusal(&ticket, subject, outcome.map(u64::from));
        let bytes = outcome.map_or(0, u64::from);
        let send = send(reply, |reply, written| reply.written(written));
        self.finish(ticket, bytes, outcome, send);
    }

    fn flush(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        if let Some(file) = self.own_file(ino) {
            return self.serve_own(file, Kind::Flush, Ok(()), send_empty(reply));
        }
        let what = |_: Option<&_>| What::Flush(ino.0, Some(handle.0));
        let flush = |s: &S| s.flush(handle.0);
        self.serve_reported(request, (Kind::Flush, ino), flush, what, send_empty(reply));
    }

    fn release(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        if let Some(file) = self.own_file(ino) {
            file.release(handle.0);
            return self.serve_own(file, Kind::Release, Ok(()), send_empty(reply));
        }
        let release = |s: &S| s.release(handle.0);
        self.serve_release(request, (Kind::Release, ino, handle), release, reply);
    }

    fn fsync(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        let sync = |s: &S| s.fsync(ino.0, handle.0, data_only);
        let what = |_: Option<&_>| What::Fsync(ino.0, Some(handle.0), data_only);
        self.serve_reported(request, (Kind::Fsync, ino), sync, what, send_empty(reply));
    }

    fn opendir(&self, request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let send = send_open(reply, FopenFlags::empty());
        let what = |handle: Option<&u64>| What::Opendir(ino.0, handle.copied());
        let operation = |s: &S| s.opendir(ino.0);
        self.serve_reported(request, (Kind::Opendir, ino), operation, what, send);
    }

    fn readdir(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let mut add =
            |entry: Entry<'_>| reply.add(INodeNo(entry.ino), entry.offset, entry.kind, entry.name);
        let list = |s: &S| s.readdir(ino.0, handle.0, offset, &mut add);
        let (ticket, outcome) = self.listed(request, (ino, handle), list);
        let send = send(reply, |reply, ()| reply.ok());
        self.finish(ticket, 0, outcome, send);
    }

    fn readdirplus(
        &self,
        request: &Request,
        parent: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let ttl = self.common_ttl();
        let mut add = |entry: Entry<'_>, attr: &FileAttr| {
            if let Some(paths) = &self.paths {
                paths.note(place(parent, entry.name), entry.ino, entry.kind);
            }
            // These are not the attributes of `..`; the kernel only uses its number.
            let ino = INodeNo(entry.ino);
            let attr = FileAttr { ino, ..*attr };
            reply.add(ino, entry.offset, entry.name, &ttl, &attr, GENERATION)
        };
        let list = |s: &S| s.readdirplus(parent.0, handle.0, offset, &mut add);
        let (ticket, outcome) = self.listed(request, (parent, handle), list);
        let send = send(reply, |reply, ()| reply.ok());
        self.finish(ticket, 0, outcome, send);
    }

    fn releasedir(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        let release = |s: &S| s.releasedir(handle.0);
        self.serve_release(request, (Kind::Releasedir, ino, handle), release, reply);
    }

    fn fsyncdir(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        let sync = |s: &S| s.fsyncdir(ino.0, handle.0, data_only);
        let what = |_: Option<&_>| What::Fsync(ino.0, Some(handle.0), data_only);
        let send = send_empty(reply);
        self.serve_reported(request, (Kind::Fsyncdir, ino), sync, what, send);
    }

    fn statfs(&self, request: &Request, ino: INodeNo, reply: ReplyStatfs) {
        let send = send(reply, |reply, t: Totals| {
            reply.statfs(
                t.blocks,
                t.blocks_free,
                t.blocks_available,
                t.files,
                t.files_free,
                t.block_size,
                t.name_max,
                t.block_size,
            );
        });
        let what = |_: Option<&_>| What::Statfs(ino.0);
        let operation = |s: &S| s.statfs(ino.0);
        self.serve_reported(request, (Kind::Statfs, ino), operation, what, send);
    }

    fn setxattr(
        &self,
        request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let set = |s: &S| s.setxattr(ino.0, name, value, flags);
        let what = |_: Option<&_>| What::Setxattr(ino.0, bytes(name), value.len() as u64, flags);
        self.serve_reported(request, (Kind::Setxattr, ino), set, what, send_empty(reply));
    }

    fn getxattr(
        &self,
        request: &Request,
        ino: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        let what = |_: Option<&_>| What::Getxattr(ino.0, bytes(name), XATTR);
        let read = |s: &S| self.report(request, || s.getxattr(ino.0, name), what);
        let get = |s: &S| fitting(read(s)?, size);
        self.serve(Kind::Getxattr, ino, get, send_xattr(reply, size));
    }

    fn listxattr(&self, request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let what = |_: Option<&_>| What::Listxattr(ino.0, XATTR);
        let list = |s: &S| fitting(self.report(request, || s.listxattr(ino.0), what)?, size);
        self.serve(Kind::Listxattr, ino, list, send_xattr(reply, size));
    }

    fn removexattr(&self, request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let remove = |s: &S| s.removexattr(ino.0, name);
        let what = |_: Option<&_>| What::Removexattr(ino.0, bytes(name));
        let send = send_empty(reply);
        self.serve_reported(request, (Kind::Removexattr, ino), remove, what, send);
    }

    fn access(&self, request: &Request, ino: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        let ask = |s: &S| s.access(caller(request), ino.0, mask.bits());
        let what = |_: Option<&_>| What::Access(ino.0, mask.bits());
        self.serve_reported(request, (Kind::Access, ino), ask, what, send_empty(reply));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let ttl = self.common_ttl();
        let (at, how) = (place(parent, name), self.open_how(flags));
        let make = |s: &S| {
            let (attr, handle) = s.create(caller(request), at, mode, flags)?;
            self.named(at, Ok(attr)).map(|attr| (attr, handle))
        };
        let what = |made: Option<&(FileAttr, u64)>| {
            What::Create(reported(at), mode, flags, made.map(|(_, handle)| *handle))
        };
        let send = send(reply, move |reply, (attr, handle)| {
            reply.created(&ttl, &attr, GENERATION, FileHandle(handle), how);
        });
        self.serve_reported(request, (Kind::Create, at), make, what, send);
    }

    fn ioctl(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        _flags: IoctlFlags,
        _command: u32,
        _input: &[u8],
        _out_size: u32,
        reply: ReplyIoctl,
    ) {
        let send = send(reply, |reply, ()| reply.ioctl(0, &[]));
        self.serve(Kind::Ioctl, ino, |_| Err(Errno::ENOTTY), send);
    }

    fn poll(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        _notifier: PollNotifier,
        _events: PollEvents,
        _flags: PollFlags,
        reply: ReplyPoll,
    ) {
        let send = send(reply, |reply, events| reply.poll(events));
        self.serve(Kind::Poll, ino, |_| Err(Errno::ENOSYS), send);
    }

    fn fallocate(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let subject = Subject::Range(ino.0, offset, length);
        let ticket = self.admit(Kind::Fallocate, subject);
        let reserve = || self.store.fallocate(ino.0, handle.0, offset, length, mode);
        let what = |_: Option<&_>| What::Fallocate(ino.0, Some(handle.0), mode, offset, length);
        let outcome = ticket.run(|| self.report(request, reserve, what));
        self.book_refusal(&ticket, subject, outcome.map(|()| length));
        self.finish(ticket, 0, outcome, send_empty(reply));
    }

    fn lseek(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let seek = |s: &S| s.lseek(ino.0, handle.0, offset, whence);
        let what = |_: Option<&_>| What::Other("a search for data or holes");
        let send = send(reply, |reply, offset| reply.offset(offset));
        self.serve_reported(request, (Kind::Lseek, ino), seek, what, send);
    }

    // The kernel sends lock requests only if their promises are broken: each is
    // granted.

    fn getlk(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _owner: LockOwner,
        start: u64,
        end: u64,
        _kind: i32,
        _process: u32,
        reply: ReplyLock,
    ) {
        reply.locked(start, end, libc::F_UNLCK, 0);
    }

    fn setlk(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _owner: LockOwner,
        _start: u64,
        _end: u64,
        _kind: i32,
        _process: u32,
        _waits: bool,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn copy_file_range(
        &self,
        _request: &Request,
        ino_in: INodeNo,
        _handle_in: FileHandle,
        _offset_in: u64,
        _ino_out: INodeNo,
        _handle_out: FileHandle,
        _offset_out: u64,
        length: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let send = send(reply, |reply, copied| reply.written(copied));
        let copy = |_: &S| match self.config.broken.contains(&BrokenPromise::CopyNothing) {
            true => Ok(length.min(u64::from(MAX_WRITE)) as u32),
            false => Err(Errno::ENOSYS),
        };
        self.serve(Kind::CopyFileRange, ino_in, copy, send);
    }
}
