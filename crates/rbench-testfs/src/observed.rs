//! Reports of each answered request, with its process and its result.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::Arc;

use fuser::{FileAttr, FileType, Request};
use rbench_core::request::{Entry as Found, Event, Kind, Place as At, What};
use rbench_core::{Clock, MonotonicClock, Nanos};

use crate::store::{Answer, Place, Totals};

/// Receiver of each request without an injected error, and of every release. It is called before the reply is sent, from
/// any thread. In its events, lines are 0 and times are those of the monotonic
/// clock.
#[derive(Clone)]
pub struct Observer(Arc<dyn Fn(Event) + Send + Sync>);

impl Observer {
    /// Creates an observer that calls `tell`.
    pub fn new(tell: impl Fn(Event) + Send + Sync + 'static) -> Observer {
        Observer(Arc::new(tell))
    }

    /// Runs `act` of the back end for this request, and reports it.
    pub(crate) fn report<T: Reported>(
        &self,
        request: &Request,
        act: impl FnOnce() -> Answer<T>,
        what: impl FnOnce(Option<&T>) -> What,
    ) -> Answer<T> {
        let start = MonotonicClock.now();
        let answer = act();
        let took = Nanos(MonotonicClock.now().0.saturating_sub(start.0));
        let done = answer.as_ref();
        (self.0)(Event {
            line: 0,
            at: start,
            took,
            process: u64::from(request.pid()),
            found: done.ok().and_then(Reported::object),
            result: done.map(Reported::length).map_err(|error| *error as i32),
            what: what(done.ok()),
        });
        answer
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

/// A name, as it is reported.
pub(crate) fn reported(place: Place<'_>) -> At {
    (place.parent, bytes(place.name))
}

/// A text, as it is reported.
pub(crate) fn bytes(name: &OsStr) -> Arc<[u8]> {
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

/// An answer of the back end, as it is reported.
pub(crate) trait Reported {
    /// The returned length, or 0.
    fn length(&self) -> u64 {
        0
    }

    /// The object, if the reply has its attributes.
    fn object(&self) -> Option<Found> {
        None
    }
}

impl Reported for () {}
impl Reported for u64 {}
impl Reported for i64 {}
impl Reported for Totals {}

impl Reported for FileAttr {
    fn object(&self) -> Option<Found> {
        Some(found(self))
    }
}

impl Reported for (FileAttr, u64) {
    fn object(&self) -> Option<Found> {
        Some(found(&self.0))
    }
}

impl Reported for usize {
    fn length(&self) -> u64 {
        *self as u64
    }
}

impl Reported for u32 {
    fn length(&self) -> u64 {
        u64::from(*self)
    }
}

impl Reported for OsString {
    fn length(&self) -> u64 {
        self.len() as u64
    }
}

impl Reported for Vec<u8> {
    fn length(&self) -> u64 {
        self.len() as u64
    }
}

/// Reported room for entries in bytes; the protocol does not contain the caller's.
pub(crate) const LISTING: u64 = 32 << 10;

/// Reported room for the values of attributes in bytes.
pub(crate) const XATTR: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use nix::errno::Errno;
    use parking_lot::Mutex;

    use super::*;
    use crate::{Config, Mounted, mount};

    /// Mounts a folder at `point`, and collects the requests.
    fn observed(point: &Path) -> (Mounted, tempfile::TempDir, Arc<Mutex<Vec<Event>>>) {
        let data = tempfile::tempdir().expect("dir");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&seen);
        let mut config = Config::passthrough(data.path()).uncached();
        config.observer = Some(Observer::new(move |event| heard.lock().push(event)));
        (mount(config, point).expect("mounted"), data, seen)
    }

    mod needs_fuse {
        use super::*;

        #[test]
        fn each_request_is_told_with_who_asked_and_what_came_of_it() {
            let point = tempfile::tempdir().expect("dir");
            let (mounted, _data, seen) = observed(point.path());
            fs::write(point.path().join("f"), b"hello").expect("written");
            assert!(fs::metadata(point.path().join("none")).is_err());
            fs::rename(point.path().join("f"), point.path().join("g")).expect("renamed");
            mounted.unmount().expect("unmounted");
            let seen = seen.lock();
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
            let point = tempfile::tempdir().expect("dir");
            let (mounted, data, seen) = observed(point.path());
            fs::write(data.path().join("f"), b"hello").expect("written");
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
            let seen = seen.lock();
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
