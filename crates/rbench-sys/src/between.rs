//! What clients of one file system promise each other (`rbench check` on several hosts): that
//! one sees what another one did, that a lock is given to one of them, and that one of them
//! wins when all want a name.
//!
//! A check is data: a name, a sentence and what each side does. Who does it when, by whose
//! clock, and what follows from it, is others' business.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd as _, IntoRawFd as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;

use crate::promises::Evidence;

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
    /// Its name for machines: `coherence.create.stat`.
    pub name: &'static str,
    /// What is promised, a clause for people.
    pub says: &'static str,
    /// How it is found out.
    pub trial: Trial,
}

/// How a promise between clients is found out.
#[derive(Debug)]
pub enum Trial {
    /// One client does something, the others look for it.
    Sight(Sight),
    /// All want the same name at once.
    Race(Race),
    /// All append to one file.
    Append,
    /// One makes and removes names, the others list the directory.
    Listing,
    /// All want the same lock again and again.
    Exclusion(Lock),
}

/// Promises about one thing.
#[derive(Debug)]
pub struct Group {
    /// What the names of its checks begin with.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// Its checks, in the order of the report.
    pub checks: &'static [Check],
}

/// Every check between clients, in the order of the report.
pub const GROUPS: &[Group] = &[sights::GROUP, locks::GROUP, races::GROUP];

/// All of them, one after the other.
pub fn all() -> impl Iterator<Item = &'static Check> {
    GROUPS.iter().flat_map(|group| group.checks)
}

/// What one step of a check comes to, or what went wrong.
pub type Step<T> = Result<T, Evidence>;

/// The place of one of the things that a check is about.
#[derive(Debug, Clone)]
pub struct Spot {
    /// A directory of the check's own, as this client sees it.
    pub directory: PathBuf,
    /// Which of them.
    pub number: usize,
    /// This program: it holds locks in a process of its own.
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

/// Makes the directory of a check.
///
/// # Errors
/// Why it cannot be made.
pub fn make(directory: &Path) -> Step<()> {
    done("mkdir", directory, std::fs::create_dir(directory))
}

/// Makes an empty file.
///
/// # Errors
/// Why it cannot be made.
pub fn place(path: &Path) -> Step<()> {
    closed(path, done("open", path, File::create_new(path))?)
}

/// Closes a file: some file systems tell there what they could not write.
fn closed(path: &Path, file: File) -> Step<()> {
    // SAFETY: the descriptor was the file's alone, and is used no more.
    let closed = unsafe { nix::libc::close(file.into_raw_fd()) };
    done("close", path, last(closed, ()))
}

/// Waits for at most `within` until all of this is there: another client has made it.
pub fn appear(paths: &[PathBuf], within: Duration, stop: &dyn Fn() -> bool) {
    use rbench_core::Clock as _;
    let begun = rbench_core::MonotonicClock.now();
    for path in paths {
        while std::fs::symlink_metadata(path).is_err() {
            let waited: Duration = rbench_core::MonotonicClock.now().since(begun).into();
            if waited > within || stop() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A file that is there, open for reading and writing.
fn writable(path: &Path) -> Step<File> {
    done(
        "open",
        path,
        OpenOptions::new().read(true).write(true).open(path),
    )
}

/// How a call about a path ended.
fn done<T>(call: &str, path: &Path, result: std::io::Result<T>) -> Step<T> {
    result.map_err(|error| {
        let errno = error.raw_os_error().map(Errno::from_raw);
        Evidence {
            expected: "success".to_owned(),
            seen: errno.map_or_else(|| error.to_string(), told),
            call: call.to_owned(),
            errno,
            path: path.to_owned(),
        }
    })
}

/// An error by its name and its words.
fn told(errno: Errno) -> String {
    format!("{errno:?} ({})", errno.desc())
}

/// The error that the C library has just told.
fn last<T>(result: i32, value: T) -> std::io::Result<T> {
    match result {
        0 => Ok(value),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Waits until the C library's clock that all instants here are on shows `at`, or until `stop`
/// says so.
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

/// Maps a whole file of at least `length` bytes, stores there, and synchronises it.
fn store_mapped(path: &Path, file: &File, length: usize, bytes: &[u8]) -> Step<()> {
    use nix::libc;
    // SAFETY: a new mapping of an open file; its result is looked at.
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
    let stored = || {
        // A page that cannot be had would end us with SIGBUS: here it is an error.
        // SAFETY: the mapping is as long as said.
        let there = unsafe { libc::madvise(at, length, libc::MADV_POPULATE_WRITE) };
        match last(there, ()) {
            // Linux before 5.14 does not know it.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {}
            there => done("madvise", path, there)?,
        }
        // SAFETY: the mapping is as long as said, its page is there, and nobody else here has it;
        // no other client writes to the file or cuts it.
        let synced = unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.cast(), bytes.len().min(length));
            last(libc::msync(at, length, libc::MS_SYNC), ())
        };
        done("msync", path, synced)
    };
    let stored = stored();
    // SAFETY: the mapping from above, used no more.
    unsafe { libc::munmap(at, length) };
    stored
}

#[cfg(test)]
mod tests;
