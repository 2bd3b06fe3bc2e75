//! The cost of the cheapest request that no cache of this host's kernel answers.

use std::ffi::CString;
use std::os::fd::{AsRawFd as _, RawFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use rbench_core::{By, Call, Clock as _, MonotonicClock, Nanos};

use crate::fs::{Fs as _, NO_FILE, Operands};
use crate::posix::PosixFs;
use crate::residency::{RequestCounter, Requests};

/// Most calls.
const CALLS: usize = 300;
/// No further call is made after this time.
const LONGEST: Nanos = Nanos::SECOND;
/// Calls with which it is found out whether they reach the file system.
const PROBES: u64 = 5;

/// Calls that the kernel passes on whatever it knows, in the order in which they are taken: a request for
/// attributes is what many rows are made of, while some clients answer `statfs` themselves, and the
/// kernel remembers that a file system has no `getxattr`. Nobody has given that attribute.
const ASKED: [Call; 3] = [
    Call::Getattr,
    Call::Statfs(By::File),
    // Not allowed on the descriptor itself, which has no rights.
    Call::Getxattr(By::Path, Some(c"user.rbench.round-trip")),
];

/// The time of one call that the file system has to answer itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// The call.
    pub call: Call,
    /// The median of all calls.
    pub median: Nanos,
    /// Number of calls, at least 1.
    pub calls: u32,
    /// A counter of requests saw them arrive; `false` without a counter, too.
    pub seen: bool,
}

impl RoundTrip {
    /// The name of the call.
    pub fn name(&self) -> &'static str {
        match self.call {
            Call::Getattr => self.call.names(),
            call => call.op().name(),
        }
    }
}

/// The directory that calls are about.
struct Root {
    fs: PosixFs,
    fd: RawFd,
    path: CString,
}

impl Root {
    fn new(dir: &Path) -> Option<Root> {
        let fs = PosixFs::open_directory(dir).ok()?;
        let fd = fs
            .directory()
            .map_or(NO_FILE, |directory| directory.as_raw_fd());
        let path = fs.path(Call::Getxattr(By::Path, None), b"")?;
        Some(Root { fs, fd, path })
    }

    fn make(&self, call: Call) -> Result<(), Errno> {
        let on = Operands {
            fd: self.fd,
            ..Operands::path(&self.path)
        };
        match self.fs.call(&call, on) {
            Ok(_) | Err(Errno::ENODATA) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Returns true if each of several calls is a request. Counts them in `answered`.
    fn arrives(
        &self,
        call: Call,
        counter: &mut RequestCounter,
        answered: &AtomicU64,
    ) -> Option<bool> {
        let before = counter.read().ok()?;
        for _ in 0..PROBES {
            self.make(call).ok()?;
            answered.fetch_add(1, Ordering::Relaxed);
        }
        let since: Requests = counter.read().ok()?.since(&before);
        let count = match since.has_kinds() {
            true => since.by_kind.get(call.op().name()).copied().unwrap_or(0),
            false => since.total(),
        };
        Some(count >= PROBES)
    }
}

/// Measures on the directory `dir`, with one call at a time, at most 300 and
/// for about a second. Where the file system counts requests, the first kind of
/// call is taken that is seen to arrive; where it does not, `statx`. `None`
/// when the directory cannot be opened, the call fails, or none arrives. Counts
/// calls that have returned in `answered`.
///
/// On a file system of this host's kernel it says what such a call costs.
pub fn round_trip(dir: &Path, answered: &AtomicU64) -> Option<RoundTrip> {
    let root = Root::new(dir)?;
    let mut calls = ASKED.into_iter();
    let (call, seen) = match RequestCounter::find(dir) {
        Some(mut counter) => {
            answered.fetch_add(1, Ordering::Relaxed);
            let arrives = |call: &Call| root.arrives(*call, &mut counter, answered) == Some(true);
            (calls.find(arrives)?, true)
        }
        None => (ASKED[0], false),
    };
    let clock = MonotonicClock;
    let begun = clock.now();
    let mut times = Vec::with_capacity(CALLS);
    while times.len() < CALLS && (times.is_empty() || clock.now().since(begun) < LONGEST) {
        let start = clock.now();
        root.make(call).ok()?;
        times.push(clock.now().since(start));
        answered.fetch_add(1, Ordering::Relaxed);
    }
    times.sort_unstable();
    Some(RoundTrip {
        call,
        median: times[times.len() / 2],
        calls: times.len() as u32,
        seen,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_this_host_has_a_round_trip_that_nobody_saw() {
        let folder = tempfile::tempdir().expect("a directory");
        let answered = AtomicU64::new(0);
        let found = round_trip(folder.path(), &answered).expect("it answers");
        assert_eq!((found.name(), found.seen), ("statx", false));
        assert!(found.calls >= 1 && found.median > Nanos(0), "{found:?}");
        assert_eq!(answered.into_inner(), u64::from(found.calls));
    }

    #[test]
    fn what_is_not_there_or_no_directory_has_none() {
        let folder = tempfile::tempdir().expect("a directory");
        let none = AtomicU64::new(0);
        assert_eq!(round_trip(&folder.path().join("missing"), &none), None);
        let file = folder.path().join("file");
        std::fs::write(&file, "x").expect("room");
        assert_eq!(round_trip(&file, &none), None);
    }

    #[test]
    fn each_call_can_be_made() {
        let folder = tempfile::tempdir().expect("a directory");
        let root = Root::new(folder.path()).expect("it is there");
        for call in ASKED {
            match root.make(call) {
                Ok(()) | Err(Errno::EOPNOTSUPP) => {}
                Err(errno) => panic!("{call:?}: {errno}"),
            }
        }
    }
}
