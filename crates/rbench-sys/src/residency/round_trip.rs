//! What the cheapest request costs that no cache of this host's kernel answers.

use std::ffi::CString;
use std::fmt;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::sys::stat::Mode;
use rbench_core::{Clock as _, MonotonicClock, Nanos};

use super::requests::{RequestCounter, Requests};

/// Most calls.
const CALLS: usize = 300;
/// No further call is made behind this time.
const LONGEST: Nanos = Nanos::SECOND;
/// Calls with which it is found out whether they reach the file system.
const PROBES: u64 = 5;

/// A call that the kernel passes on whatever it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// `statx(AT_STATX_FORCE_SYNC)`: attributes, as the server has them.
    Statx,
    /// `fstatfs`
    Statfs,
    /// `getxattr` of a name that nobody has given.
    Getxattr,
}

impl Call {
    /// In the order in which they are taken: a request for attributes is what
    /// many rows are made of, while some clients answer `statfs` themselves,
    /// and the kernel remembers that a file system has no `getxattr`.
    const ALL: [Call; 3] = [Call::Statx, Call::Statfs, Call::Getxattr];

    /// The name of the system call.
    pub fn name(self) -> &'static str {
        match self {
            Call::Statx => "statx",
            Call::Statfs => "statfs",
            Call::Getxattr => "getxattr",
        }
    }

    /// What a counter of requests calls it.
    fn request(self) -> &'static str {
        match self {
            Call::Statx => "getattr",
            Call::Statfs => "statfs",
            Call::Getxattr => "getxattr",
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What one call to the file system takes that it has to answer itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// Which call.
    pub call: Call,
    /// The median of all calls.
    pub median: Nanos,
    /// How many calls, at least 1.
    pub calls: u32,
    /// Whether a counter of requests saw them arrive; without a counter it is
    /// not known.
    pub seen: bool,
}

/// Measures on the directory `dir`, with one call at a time, at most 300 and
/// for about a second. Where the file system counts requests, the first kind of
/// call is taken that is seen to arrive; where it does not, `statx`. `None`
/// when the directory cannot be opened, the call fails, or none arrives.
///
/// On a file system of this host's kernel it says what such a call costs.
pub fn round_trip(dir: &Path) -> Option<RoundTrip> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let root = open(dir, flags, Mode::empty()).ok()?;
    let mut calls = Call::ALL.into_iter();
    let (call, seen) = match RequestCounter::find(dir) {
        Some(mut counter) => (
            calls.find(|call| arrives(*call, &root, &mut counter))?,
            true,
        ),
        None => (Call::Statx, false),
    };
    let clock = MonotonicClock;
    let begun = clock.now();
    let mut times = Vec::with_capacity(CALLS);
    while times.len() < CALLS && (times.is_empty() || clock.now().since(begun) < LONGEST) {
        let start = clock.now();
        make(call, &root).ok()?;
        times.push(clock.now().since(start));
    }
    times.sort_unstable();
    Some(RoundTrip {
        call,
        median: times[times.len() / 2],
        calls: times.len() as u32,
        seen,
    })
}

/// Whether each of several calls is a request.
fn arrives(call: Call, root: &OwnedFd, counter: &mut RequestCounter) -> bool {
    let Ok(before) = counter.read() else {
        return false;
    };
    if !(0..PROBES).all(|_| make(call, root).is_ok()) {
        return false;
    }
    let Ok(after) = counter.read() else {
        return false;
    };
    let since: Requests = after.since(&before);
    let count = match since.has_kinds() {
        true => since.by_kind.get(call.request()).copied().unwrap_or(0),
        false => since.total(),
    };
    count >= PROBES
}

fn make(call: Call, root: &OwnedFd) -> Result<(), Errno> {
    match call {
        Call::Statx => {
            let mut found = MaybeUninit::<libc::statx>::uninit();
            let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_FORCE_SYNC;
            let (fd, name) = (root.as_raw_fd(), c"".as_ptr());
            let into = found.as_mut_ptr();
            // SAFETY: the path is a C string; the kernel writes `found`, which
            // nobody reads.
            let code = unsafe { libc::statx(fd, name, flags, libc::STATX_BASIC_STATS, into) };
            Errno::result(code).map(drop)
        }
        Call::Statfs => {
            let mut found = MaybeUninit::<libc::statfs>::uninit();
            // SAFETY: the kernel writes `found`, which nobody reads.
            let code = unsafe { libc::fstatfs(root.as_raw_fd(), found.as_mut_ptr()) };
            Errno::result(code).map(drop)
        }
        Call::Getxattr => {
            // Not allowed on the descriptor itself, which has no rights.
            let path = CString::new(format!("/proc/self/fd/{}", root.as_raw_fd()));
            let path = path.map_err(|_| Errno::EINVAL)?;
            let name = c"user.rbench.round-trip".as_ptr();
            // SAFETY: C strings; with a length of 0 nothing is written.
            let code = unsafe { libc::getxattr(path.as_ptr(), name, std::ptr::null_mut(), 0) };
            match Errno::result(code) {
                Ok(_) | Err(Errno::ENODATA) => Ok(()),
                Err(errno) => Err(errno),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_this_host_has_a_round_trip_that_nobody_saw() {
        let folder = tempfile::tempdir().expect("a directory");
        let found = round_trip(folder.path()).expect("it answers");
        assert_eq!((found.call, found.seen), (Call::Statx, false));
        assert!(found.calls >= 1 && found.median > Nanos(0), "{found:?}");
    }

    #[test]
    fn what_is_not_there_or_no_directory_has_none() {
        let folder = tempfile::tempdir().expect("a directory");
        assert_eq!(round_trip(&folder.path().join("missing")), None);
        let file = folder.path().join("file");
        std::fs::write(&file, "x").expect("room");
        assert_eq!(round_trip(&file), None);
    }

    #[test]
    fn each_call_can_be_made() {
        let folder = tempfile::tempdir().expect("a directory");
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY;
        let root = open(folder.path(), flags, Mode::empty()).expect("it is there");
        for call in Call::ALL {
            match make(call, &root) {
                Ok(()) | Err(Errno::EOPNOTSUPP) => {}
                Err(errno) => panic!("{call}: {errno}"),
            }
        }
    }
}
