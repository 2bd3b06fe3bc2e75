//! Promises between the clients of one file system (`rbench check` on several hosts). A client
//! sees the changes of another. A lock is held by one client at a time. One client wins when all
//! want a name.
//!
//! A check is data: a name, a sentence, and the actions of each side. Other modules decide which
//! client acts at which time, and draw the conclusions.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;

use crate::promises::{Claim, Evidence, Group, failed, group, promise};

mod crowd;
mod holding;
mod load;
mod locks;
mod races;
mod sights;

pub use crowd::{RECORDS, Records, Stays, append, churn, listings, records, staying, stays};
pub use holding::{HELD, Held, Holder, Lock, contend, hold};
pub use load::load;
pub use races::{Attempt, Race};
pub use sights::{Hand, Looker, Sight, Watched};

/// A promise between clients.
#[derive(Debug)]
pub struct Check {
    /// Name for machines: `coherence.create.stat`.
    pub name: &'static str,
    /// The promise, a clause for people.
    pub says: &'static str,
    /// The trial that tests it.
    pub trial: Trial,
}

/// Trial of a promise between clients.
#[derive(Debug)]
pub enum Trial {
    /// One client changes something, and the others look for it.
    Sight(Sight),
    /// All clients want the same name at once.
    Race(Race),
    /// All clients append to one file.
    Append,
    /// One client creates and removes names, and the others list the directory.
    Listing,
    /// All clients want the same lock, repeatedly.
    Exclusion(Lock),
}

impl Claim {
    /// A promise that this trial tests.
    const fn trial(self, trial: Trial) -> Check {
        let Claim { name, says } = self;
        Check { name, says, trial }
    }

    /// A promise that others observe this change.
    const fn sight(self, sight: Sight) -> Check {
        self.trial(Trial::Sight(sight))
    }
}

/// Every check between clients, in the order of the report.
pub const GROUPS: &[Group<Check>] = &[
    group("coherence")
        .about("whether and when other clients see what one client does")
        .promises(sights::CHECKS),
    group("locks-between")
        .about("locks that clients compete for: one holder at a time, release, killed holders")
        .promises(locks::CHECKS),
    group("races")
        .about("all clients claim the same name at once: exactly one gets it")
        .promises(races::CHECKS),
];

/// All checks, in order.
pub fn all() -> impl Iterator<Item = &'static Check> {
    GROUPS.iter().flat_map(|group| group.promises)
}

/// Result of a step of a check, or the error.
pub type Step<T> = Result<T, Evidence>;

/// Place of one object of a check.
#[derive(Debug, Clone)]
pub struct Spot {
    /// Directory of the check, as this client sees it.
    pub directory: PathBuf,
    /// Number of the object.
    pub number: usize,
    /// This program, which holds locks in a separate process.
    pub program: PathBuf,
}

impl Spot {
    fn path(&self) -> PathBuf {
        self.directory.join(self.number.to_string())
    }

    fn other(&self) -> PathBuf {
        self.directory.join(format!("{}.other", self.number))
    }
}

/// Creates the directory of a check.
///
/// # Errors
/// The reason why it cannot be created.
pub fn make(directory: &Path) -> Step<()> {
    done("mkdir", directory, std::fs::create_dir(directory))
}

/// Creates an empty file.
///
/// # Errors
/// The reason why it cannot be created.
pub fn place(path: &Path) -> Step<()> {
    closed(path, done("open", path, File::create_new(path))?)
}

/// Closes a file: some file systems report failed writes at that time.
fn closed(path: &Path, file: File) -> Step<()> {
    let closed = nix::unistd::close(file);
    done("close", path, closed.map_err(std::io::Error::from))
}

/// Waits at most `within` until all paths exist, which another client has created.
pub fn appear(paths: &[PathBuf], within: Duration, stop: &dyn Fn() -> bool) {
    use rbench_core::Clock as _;
    let start = rbench_core::MonotonicClock.now();
    for path in paths {
        while std::fs::symlink_metadata(path).is_err() {
            let waited: Duration = rbench_core::MonotonicClock.now().since(start).into();
            if waited > within || stop() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// An existing file, open for reading and writing.
fn writable(path: &Path) -> Step<File> {
    done(
        "open",
        path,
        OpenOptions::new().read(true).write(true).open(path),
    )
}

/// Converts the result of a call on a path.
fn done<T>(call: &str, path: &Path, result: std::io::Result<T>) -> Step<T> {
    result.map_err(|error| match error.raw_os_error() {
        Some(number) => failed(call, Errno::from_raw(number), path.to_owned()),
        None => Evidence {
            expected: "success".to_owned(),
            ..Evidence::new(call, error.to_string(), path)
        },
    })
}

/// Waits until `at` by the clock of all instants here, or until `stop` returns true.
pub fn wait_until(at: rbench_core::Nanos, stop: &dyn Fn() -> bool) {
    use rbench_core::Clock as _;
    const STEP: rbench_core::Nanos = rbench_core::Nanos(20_000_000);
    loop {
        let left = at.since(rbench_core::MonotonicClock.now());
        if left.0 == 0 || stop() {
            return;
        }
        std::thread::sleep(left.min(STEP).into());
    }
}

/// Opens an existing file for `change`, makes it, and closes the file.
fn changed<T>(
    path: &Path,
    call: &str,
    change: impl FnOnce(&File) -> std::io::Result<T>,
) -> Step<Hand> {
    let file = writable(path)?;
    done(call, path, change(&file))?;
    closed(path, file).map(|()| Hand::Empty)
}

/// Maps a whole file of at least `length` bytes, stores data in it, and synchronises it.
fn store_mapped(path: &Path, file: &File, length: usize, bytes: &[u8]) -> Step<()> {
    use nix::libc;
    // SAFETY: a new mapping of an open file; its result is checked.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return done("mmap", path, Err(std::io::Error::last_os_error()));
    }
    let last = |result| Errno::result(result).map_err(std::io::Error::from);
    let stored = || {
        // A missing page would end this process with SIGBUS: here it is an error.
        // SAFETY: the mapping has the given length.
        let populated = unsafe { libc::madvise(at, length, libc::MADV_POPULATE_WRITE) };
        match last(populated).map(drop) {
            // Linux before 5.14 does not support it.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {}
            populated => done("madvise", path, populated)?,
        }
        // SAFETY: the mapping has the given length, its page exists, and nothing else here uses
        // it. No other client writes to the file or truncates it.
        let synced = unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.cast(), bytes.len().min(length));
            last(libc::msync(at, length, libc::MS_SYNC))
        };
        done("msync", path, synced).map(drop)
    };
    let stored = stored();
    // SAFETY: the mapping from above, which is not used again.
    unsafe { libc::munmap(at, length) };
    stored
}

#[cfg(test)]
mod tests;
