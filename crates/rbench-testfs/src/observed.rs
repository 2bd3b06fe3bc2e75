//! An observed back end: it reports each answered request with its process and its result, and
//! changes nothing.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use fuser::{FileAttr, FileType, Request};
use rbench_core::request::{Changes as Changed, Entry as Found, Event, Kind, Place as At, What};
use rbench_core::{Clock, MonotonicClock, Nanos};

use crate::store::{Answer, Caller, Changes, Entry, Place, Store, Totals};
use crate::sync::lock;

thread_local! {
    /// The process of the request that this thread serves.
    static ASKED_BY: Cell<u32> = const { Cell::new(0) };
}

/// Sets the process of the request that this thread serves.
#[inline]
pub(crate) fn asked_by(request: &Request) {
    ASKED_BY.set(request.pid());
}

/// Receiver of each request to a folder that is passed through. It is called before the reply
/// is sent, from any thread. In its events, lines are 0 and times are those of the monotonic
/// clock.
#[derive(Clone)]
pub struct Observer(Arc<dyn Fn(Event) + Send + Sync>);

impl Observer {
    /// Creates an observer that calls `tell`.
    pub fn new(tell: impl Fn(Event) + Send + Sync + 'static) -> Observer {
        Observer(Arc::new(tell))
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

impl PartialEq for Observer {
    fn eq(&self, other: &Observer) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// An observed back end.
pub(crate) struct Observed<S> {
    store: S,
    observer: Observer,
    /// The inode of each handle.
    inodes: Mutex<HashMap<u64, u64>>,
}

fn at(place: Place<'_>) -> At {
    (place.parent, bytes(place.name))
}

fn bytes(name: &OsStr) -> Arc<[u8]> {
    name.as_encoded_bytes().into()
}

fn found(attr: &FileAttr) -> Found {
    Found {
        ino: attr.ino.0,
        kind: match attr.kind {
            FileType::RegularFile => Some(Kind::File),
            FileType::Directory => Some(Kind::Directory),
            FileType::Symlink => Some(Kind::Link),
            _ => None,
        },
        size: attr.size,
    }
}

impl<S: Store> Observed<S> {
    pub(crate) fn new(store: S, observer: Observer) -> Observed<S> {
        Observed {
            store,
            observer,
            inodes: Mutex::default(),
        }
    }

    /// Runs `act` on the store, and reports the request.
    fn told<T>(
        &self,
        act: impl FnOnce(&S) -> Answer<T>,
        result: impl FnOnce(&T) -> (u64, Option<Found>),
        what: impl FnOnce(Option<&T>) -> What,
    ) -> Answer<T> {
        let start = MonotonicClock.now();
        let answer = act(&self.store);
        let took = Nanos(MonotonicClock.now().0.saturating_sub(start.0));
        let result_and_entry = answer.as_ref().map(result);
        let event = Event {
            line: 0,
            at: start,
            took,
            process: u64::from(ASKED_BY.get()),
            found: result_and_entry.as_ref().ok().and_then(|(_, found)| *found),
            result: result_and_entry
                .map(|(value, _)| value)
                .map_err(|error| *error as i32),
            what: what(answer.as_ref().ok()),
        };
        (self.observer.0)(event);
        answer
    }

    /// Runs and reports a request whose reply has attributes.
    fn with_attr(&self, act: impl FnOnce(&S) -> Answer<FileAttr>, what: What) -> Answer<FileAttr> {
        self.told(act, |attr| (0, Some(found(attr))), |_| what)
    }

    /// Runs and reports a request whose reply has none.
    fn plain<T>(&self, act: impl FnOnce(&S) -> Answer<T>, what: What) -> Answer<T> {
        self.told(act, |_| (0, None), |_| what)
    }

    fn opened(&self, handle: u64, ino: u64) {
        lock(&self.inodes).insert(handle, ino);
    }

    fn inode(&self, handle: u64) -> u64 {
        lock(&self.inodes).get(&handle).copied().unwrap_or(0)
    }
}

impl<S: Store> Store for Observed<S> {
    fn lookup(&self, place: Place<'_>) -> Answer<FileAttr> {
        self.with_attr(|s| s.lookup(place), What::Lookup(at(place)))
    }

    fn forget(&self, ino: u64, lookups: u64) {
        self.store.forget(ino, lookups);
    }

    fn getattr(&self, ino: u64) -> Answer<FileAttr> {
        self.with_attr(|s| s.getattr(ino), What::Getattr(ino))
    }

    fn setattr(
        &self,
        caller: Caller,
        ino: u64,
        handle: Option<u64>,
        changes: Changes,
    ) -> Answer<FileAttr> {
        let changed = Changed {
            mode: changes.mode,
            uid: changes.uid,
            gid: changes.gid,
            size: changes.size,
            times: changes.atime.is_some() || changes.mtime.is_some(),
        };
        let what = What::Setattr(ino, changed);
        self.with_attr(|s| s.setattr(caller, ino, handle, changes), what)
    }

    fn access(&self, caller: Caller, ino: u64, mask: i32) -> Answer<()> {
        self.plain(|s| s.access(caller, ino, mask), What::Access(ino, mask))
    }

    fn readlink(&self, ino: u64) -> Answer<OsString> {
        let length = |target: &OsString| (target.len() as u64, None);
        self.told(|s| s.readlink(ino), length, |_| What::Readlink(ino))
    }

    fn symlink(&self, caller: Caller, place: Place<'_>, target: &Path) -> Answer<FileAttr> {
        let what = What::Symlink(at(place), bytes(target.as_os_str()));
        self.with_attr(|s| s.symlink(caller, place, target), what)
    }

    fn mknod(&self, caller: Caller, place: Place<'_>, mode: u32, rdev: u32) -> Answer<FileAttr> {
        let what = What::Mknod(at(place), mode);
        self.with_attr(|s| s.mknod(caller, place, mode, rdev), what)
    }

    fn mkdir(&self, caller: Caller, place: Place<'_>, mode: u32) -> Answer<FileAttr> {
        let what = What::Mkdir(at(place), mode);
        self.with_attr(|s| s.mkdir(caller, place, mode), what)
    }

    fn unlink(&self, place: Place<'_>) -> Answer<()> {
        self.plain(|s| s.unlink(place), What::Unlink(at(place)))
    }

    fn rmdir(&self, place: Place<'_>) -> Answer<()> {
        self.plain(|s| s.rmdir(place), What::Rmdir(at(place)))
    }

    fn rename(&self, from: Place<'_>, to: Place<'_>, flags: u32) -> Answer<()> {
        let what = What::Rename(at(from), at(to), flags);
        self.plain(|s| s.rename(from, to, flags), what)
    }

    fn link(&self, ino: u64, place: Place<'_>) -> Answer<FileAttr> {
        self.with_attr(|s| s.link(ino, place), What::Link(ino, at(place)))
    }

    fn open(&self, ino: u64, flags: i32) -> Answer<u64> {
        let open = |s: &S| {
            let handle = s.open(ino, flags)?;
            self.opened(handle, ino);
            Ok(handle)
        };
        let none = |_: &u64| (0, None);
        self.told(open, none, |handle| What::Open(ino, flags, handle.copied()))
    }

    fn create(
        &self,
        caller: Caller,
        place: Place<'_>,
        mode: u32,
        flags: i32,
    ) -> Answer<(FileAttr, u64)> {
        let create = |s: &S| {
            let (attr, handle) = s.create(caller, place, mode, flags)?;
            self.opened(handle, attr.ino.0);
            Ok((attr, handle))
        };
        let seen = |(attr, _): &(FileAttr, u64)| (0, Some(found(attr)));
        let what = |made: Option<&(FileAttr, u64)>| {
            What::Create(at(place), mode, flags, made.map(|(_, handle)| *handle))
        };
        self.told(create, seen, what)
    }

    fn read(&self, ino: u64, handle: u64, offset: u64, buffer: &mut [u8]) -> Answer<usize> {
        let what = What::Read(ino, Some(handle), offset, buffer.len() as u64);
        let length = |length: &usize| (*length as u64, None);
        self.told(|s| s.read(ino, handle, offset, buffer), length, |_| what)
    }

    fn write(
        &self,
        ino: u64,
        handle: u64,
        offset: u64,
        data: &[u8],
        kill_privileges: bool,
    ) -> Answer<u32> {
        let length = |length: &u32| (u64::from(*length), None);
        let what = |_: Option<&u32>| {
            let all = data.len() as u64;
            What::Write(ino, Some(handle), offset, all, Some(data.into()))
        };
        let write = |s: &S| s.write(ino, handle, offset, data, kill_privileges);
        self.told(write, length, what)
    }

    fn flush(&self, handle: u64) -> Answer<()> {
        let what = What::Flush(self.inode(handle), Some(handle));
        self.plain(|s| s.flush(handle), what)
    }

    fn release(&self, handle: u64) -> Answer<()> {
        let ino = lock(&self.inodes).remove(&handle).unwrap_or(0);
        self.plain(|s| s.release(handle), What::Release(ino, Some(handle)))
    }

    fn fsync(&self, ino: u64, handle: u64, data_only: bool) -> Answer<()> {
        let what = What::Fsync(ino, Some(handle), data_only);
        self.plain(|s| s.fsync(ino, handle, data_only), what)
    }

    fn peek(&self, ino: u64, offset: u64, buffer: &mut [u8]) -> Answer<usize> {
        self.store.peek(ino, offset, buffer)
    }

    fn poke(&self, ino: u64, offset: u64, data: &[u8]) -> Answer<usize> {
        self.store.poke(ino, offset, data)
    }

    fn fallocate(&self, ino: u64, handle: u64, offset: u64, length: u64, mode: i32) -> Answer<()> {
        let what = What::Fallocate(ino, Some(handle), mode, offset, length);
        self.plain(|s| s.fallocate(ino, handle, offset, length, mode), what)
    }

    fn lseek(&self, ino: u64, handle: u64, offset: i64, whence: i32) -> Answer<i64> {
        let what = What::Other("a search for data or holes");
        self.plain(|s| s.lseek(ino, handle, offset, whence), what)
    }

    fn opendir(&self, ino: u64) -> Answer<u64> {
        let open = |s: &S| {
            let handle = s.opendir(ino)?;
            self.opened(handle, ino);
            Ok(handle)
        };
        let none = |_: &u64| (0, None);
        self.told(open, none, |handle| What::Opendir(ino, handle.copied()))
    }

    fn readdir(
        &self,
        ino: u64,
        handle: u64,
        offset: u64,
        add: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Answer<()> {
        let what = What::Readdir(ino, Some(handle), LISTING);
        self.plain(|s| s.readdir(ino, handle, offset, add), what)
    }

    fn readdirplus(
        &self,
        ino: u64,
        handle: u64,
        offset: u64,
        add: &mut dyn FnMut(Entry<'_>, &FileAttr) -> bool,
    ) -> Answer<()> {
        let what = What::Readdir(ino, Some(handle), LISTING);
        self.plain(|s| s.readdirplus(ino, handle, offset, add), what)
    }

    fn releasedir(&self, handle: u64) -> Answer<()> {
        let ino = lock(&self.inodes).remove(&handle).unwrap_or(0);
        self.plain(|s| s.releasedir(handle), What::Release(ino, Some(handle)))
    }

    fn fsyncdir(&self, ino: u64, handle: u64, data_only: bool) -> Answer<()> {
        let what = What::Fsync(ino, Some(handle), data_only);
        self.plain(|s| s.fsyncdir(ino, handle, data_only), what)
    }

    fn statfs(&self, ino: u64) -> Answer<Totals> {
        self.plain(|s| s.statfs(ino), What::Statfs(ino))
    }

    fn setxattr(&self, ino: u64, name: &OsStr, value: &[u8], flags: i32) -> Answer<()> {
        let what = What::Setxattr(ino, bytes(name), value.len() as u64, flags);
        self.plain(|s| s.setxattr(ino, name, value, flags), what)
    }

    fn getxattr(&self, ino: u64, name: &OsStr) -> Answer<Vec<u8>> {
        let length = |value: &Vec<u8>| (value.len() as u64, None);
        let what = What::Getxattr(ino, bytes(name), XATTR);
        self.told(|s| s.getxattr(ino, name), length, |_| what)
    }

    fn listxattr(&self, ino: u64) -> Answer<Vec<u8>> {
        let length = |names: &Vec<u8>| (names.len() as u64, None);
        let what = What::Listxattr(ino, XATTR);
        self.told(|s| s.listxattr(ino), length, |_| what)
    }

    fn removexattr(&self, ino: u64, name: &OsStr) -> Answer<()> {
        let what = What::Removexattr(ino, bytes(name));
        self.plain(|s| s.removexattr(ino, name), what)
    }
}

/// Reported room for entries in bytes; the protocol does not contain the caller's.
const LISTING: u64 = 32 << 10;

/// Reported room for the values of attributes in bytes.
const XATTR: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use std::fs;

    use nix::errno::Errno;

    use super::*;
    use crate::{Config, mount};

    mod needs_fuse {
        use super::*;

        #[test]
        fn each_request_is_told_with_who_asked_and_what_came_of_it() {
            let (data, point) = (
                tempfile::tempdir().expect("dir"),
                tempfile::tempdir().expect("dir"),
            );
            let seen = Arc::new(Mutex::new(Vec::new()));
            let heard = Arc::clone(&seen);
            let mut config = Config::passthrough(data.path()).uncached();
            config.observer = Some(Observer::new(move |event| lock(&heard).push(event)));
            let mounted = mount(config, point.path()).expect("mounted");
            fs::write(point.path().join("f"), b"hello").expect("written");
            assert!(fs::metadata(point.path().join("none")).is_err());
            fs::rename(point.path().join("f"), point.path().join("g")).expect("renamed");
            mounted.unmount().expect("unmounted");
            let seen = lock(&seen);
            let me = |event: &&Event| event.process > 0;
            let created = seen.iter().filter(me).find_map(|event| match &event.what {
                What::Create((1, name), _, _, Some(_)) => Some((name.to_vec(), event.found)),
                _ => None,
            });
            let (name, entry) = created.expect("a create");
            assert_eq!(name, b"f");
            assert_eq!(
                entry.map(|entry| (entry.kind, entry.size)),
                Some((Some(Kind::File), 0))
            );
            let written = seen.iter().find_map(|event| match &event.what {
                What::Write(_, Some(_), 0, 5, Some(data)) => Some((data.to_vec(), event.result)),
                _ => None,
            });
            assert_eq!(written, Some((b"hello".to_vec(), Ok(5))));
            let missing = seen.iter().any(|event| {
                event.result == Err(Errno::ENOENT as i32)
                    && matches!(&event.what, What::Lookup((1, name)) if &name[..] == b"none")
            });
            assert!(missing, "{seen:?}");
            let renamed = seen
                .iter()
                .any(|event| matches!(event.what, What::Rename(..)));
            let released = seen
                .iter()
                .any(|event| matches!(event.what, What::Release(..)));
            assert!(renamed && released, "{seen:?}");
        }

        #[test]
        fn a_sync_of_a_directory_and_a_seek_are_told_of_who_asks_for_them() {
            let (data, point) = (
                tempfile::tempdir().expect("dir"),
                tempfile::tempdir().expect("dir"),
            );
            fs::write(data.path().join("f"), b"hello").expect("written");
            let seen = Arc::new(Mutex::new(Vec::new()));
            let heard = Arc::clone(&seen);
            let mut config = Config::passthrough(data.path()).uncached();
            config.observer = Some(Observer::new(move |event| lock(&heard).push(event)));
            let mounted = mount(config, point.path()).expect("mounted");
            let directory = fs::File::open(point.path()).expect("open");
            let file = fs::File::open(point.path().join("f")).expect("open");
            for _ in 0..5 {
                // A thread has a number of its own, so the earlier requests belong to another
                // process.
                std::thread::scope(|scope| {
                    scope.spawn(|| fs::metadata(point.path().join("f")).expect("it is there"));
                });
                directory.sync_all().expect("synced");
                let hole = nix::unistd::Whence::SeekHole;
                nix::unistd::lseek(&file, 0, hole).expect("found");
            }
            drop((directory, file));
            mounted.unmount().expect("unmounted");
            let me = nix::unistd::gettid().as_raw() as u64;
            let seen = lock(&seen);
            let asked: Vec<u64> = seen
                .iter()
                .filter(|event| {
                    let seek = event.what == What::Other("a search for data or holes");
                    seek || matches!(event.what, What::Fsync(..))
                })
                .map(|event| event.process)
                .collect();
            assert!(asked.len() >= 6, "{seen:?}");
            assert!(asked.iter().all(|asker| *asker == me), "{asked:?}");
        }
    }
}
