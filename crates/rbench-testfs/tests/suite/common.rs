//! Helpers of the tests on real mounts.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use rbench_core::{Bytes, Clock as _, MonotonicClock, Nanos};
use rbench_testfs::{Config, Mounted, Snapshot, mount};
use tempfile::TempDir;

/// A budget that only the tests of budgets reach.
pub const PLENTY: Bytes = Bytes(256 << 20);

/// A mount in a temporary folder. Fields are dropped in this order: first the mount.
pub struct Bed {
    pub mounted: Mounted,
    folder: TempDir,
    /// The folder that a passthrough forwards to.
    _backing: Option<TempDir>,
}

impl Bed {
    /// Mounts `config`.
    pub fn new(config: Config) -> Bed {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mounted = mount(config, folder.path()).expect("/dev/fuse is there and usable");
        Bed {
            mounted,
            folder,
            _backing: None,
        }
    }

    /// Mounts an in-memory file system that every call reaches.
    pub fn memory() -> Bed {
        Bed::new(Config::memory(PLENTY).uncached())
    }

    /// Mounts a passthrough of a temporary folder, with `change` applied.
    pub fn passthrough(change: impl FnOnce(Config) -> Config) -> Bed {
        let backing = tempfile::tempdir().expect("a temporary folder");
        let config = change(Config::passthrough(backing.path()));
        Bed {
            _backing: Some(backing),
            ..Bed::new(config)
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A path below the mount.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// A mount whose file system is killed before it is dropped, however a test ends. Otherwise
/// callers that still wait for an answer would keep the process alive.
pub struct Doomed(pub Bed);

impl std::ops::Deref for Doomed {
    type Target = Bed;

    fn deref(&self) -> &Bed {
        &self.0
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        self.0.mounted.die().expect("root");
    }
}

/// Puts `data` at `at` of a file's content.
pub fn put(file: &mut Vec<u8>, at: usize, data: &[u8]) {
    file.resize(file.len().max(at + data.len()), 0);
    file[at..at + data.len()].copy_from_slice(data);
}

/// Number of times that a fault fired, as in the statistics file, including `quota` and
/// `power-cut`; `None` if it is not configured.
pub fn fired(snapshot: &Snapshot, fault: &str) -> Option<u64> {
    let all = snapshot.to_file().faults_fired;
    all.iter()
        .find(|fired| fired.fault == fault)
        .map(|fired| fired.count)
}

/// Waits minutes for an event, so that a busy machine does not decide the result.
pub fn wait_until(what: &str, happened: impl Fn() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(
            start.elapsed() < Duration::from_secs(300),
            "in vain: {what}"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A buffer with an alignment that O_DIRECT accepts on any file system.
pub struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    const TO: usize = 4096;

    pub fn new(length: usize, fill: u8) -> Aligned {
        let bytes = vec![fill; length + Aligned::TO];
        let start = bytes.as_ptr().align_offset(Aligned::TO);
        Aligned { bytes, start }
    }
}

impl std::ops::Deref for Aligned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..][..self.bytes.len() - Aligned::TO]
    }
}

impl std::ops::DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [u8] {
        let length = self.bytes.len() - Aligned::TO;
        &mut self.bytes[self.start..][..length]
    }
}

/// Opens a file for reading and writing, bypassing the page cache.
pub fn open_direct(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(libc::O_DIRECT)
        .open(path)
}

/// Milliseconds as nanoseconds.
pub fn ms(n: u64) -> Nanos {
    Nanos(n * 1_000_000)
}

/// The duration of `call` for its caller.
pub fn timed<T>(call: impl FnOnce() -> T) -> (Nanos, T) {
    let start = MonotonicClock.now();
    let result = call();
    (MonotonicClock.now().since(start), result)
}

/// Runs `call` on `threads` threads at once, each with its number. Returns the time of the whole
/// and of each.
pub fn at_once(threads: usize, call: impl Fn(usize) + Sync) -> (Nanos, Vec<Nanos>) {
    let barrier = Barrier::new(threads);
    let spans: Vec<(Nanos, Nanos)> = std::thread::scope(|scope| {
        let run = |i| {
            let (barrier, call) = (&barrier, &call);
            scope.spawn(move || {
                barrier.wait();
                let start = MonotonicClock.now();
                call(i);
                (start, MonotonicClock.now())
            })
        };
        let threads: Vec<_> = (0..threads).map(run).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().expect("no panic");
        threads.into_iter().map(join).collect()
    });
    let first = spans.iter().map(|span| span.0).min().unwrap_or_default();
    let last = spans.iter().map(|span| span.1).max().unwrap_or_default();
    let each = spans.iter().map(|(start, end)| end.since(*start));
    (last.since(first), each.collect())
}
