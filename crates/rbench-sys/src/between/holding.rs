//! Locks of three kinds: a process that holds one, and a client that takes one repeatedly.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rbench_core::{Clock as _, MonotonicClock, Nanos, errno_of};
use serde::{Deserialize, Serialize};

use super::{Spot, Step, done, writable};
use crate::command::unblocked;
use crate::promises::{Evidence, range};

/// Least time for which a client holds a lock. It is far longer than the clock difference of
/// hosts that were just compared, even on a busy host.
pub const HELD: Nanos = Nanos(20_000_000);
/// Pause of a client without the lock.
const CONTENT: Nanos = Nanos(700_000);
/// Most times that one client takes it.
const TIMES: usize = 300;

/// A kind of lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// Lock of a whole file, owned by an open file: `flock`.
    Flock,
    /// Lock of a range, owned by a process: `F_SETLK`.
    Posix,
    /// Lock of a range, owned by an open file: `F_OFD_SETLK`.
    Ofd,
}

impl Lock {
    /// All kinds.
    pub const ALL: [Lock; 3] = [Lock::Flock, Lock::Posix, Lock::Ofd];

    /// Its name: `flock`, `posix`, `ofd`.
    pub fn name(self) -> &'static str {
        match self {
            Lock::Flock => "flock",
            Lock::Posix => "posix",
            Lock::Ofd => "ofd",
        }
    }

    /// Takes it exclusively; with `wait`, blocks until it is free.
    pub(super) fn take(self, file: &File, wait: bool) -> Result<(), Errno> {
        loop {
            match self.set(file, libc::F_WRLCK, wait) {
                Err(Errno::EINTR) => {}
                done => return done,
            }
        }
    }

    /// Releases it.
    pub(super) fn let_go(self, file: &File) -> Result<(), Errno> {
        self.set(file, libc::F_UNLCK, false)
    }

    fn set(self, file: &File, kind: i32, wait: bool) -> Result<(), Errno> {
        let whole = range(kind, 0, 0);
        let call = match (self, wait) {
            (Lock::Flock, _) => {
                let how = match (kind, wait) {
                    (libc::F_UNLCK, _) => libc::LOCK_UN,
                    (_, true) => libc::LOCK_EX,
                    (_, false) => libc::LOCK_EX | libc::LOCK_NB,
                };
                // SAFETY: flock only takes numbers.
                return Errno::result(unsafe { libc::flock(file.as_raw_fd(), how) }).map(drop);
            }
            (Lock::Posix, true) => FcntlArg::F_SETLKW(&whole),
            (Lock::Posix, false) => FcntlArg::F_SETLK(&whole),
            (Lock::Ofd, true) => FcntlArg::F_OFD_SETLKW(&whole),
            (Lock::Ofd, false) => FcntlArg::F_OFD_SETLK(&whole),
        };
        fcntl(file, call).map(drop)
    }
}

pub(super) fn locked<T>(path: &Path, lock: Lock, result: Result<T, Errno>) -> Step<T> {
    let call = match lock {
        Lock::Flock => "flock",
        Lock::Posix | Lock::Ofd => "fcntl",
    };
    done(call, path, result.map_err(std::io::Error::from))
}

/// A child process that holds a lock until it is killed or this process ends.
#[derive(Debug)]
pub struct Holder(Child);

impl Holder {
    /// Starts it on a new file, and waits until it has the lock.
    pub(super) fn start(spot: &Spot, lock: Lock) -> Step<Holder> {
        let path = spot.path();
        done("open", &path, std::fs::write(&path, b"x"))?;
        let started = unblocked(&mut Command::new(&spot.program))
            .args(["hold-lock", lock.name()])
            .arg(&path)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = done("execve", &spot.program, started)?;
        let mut line = String::new();
        let out = child.stdout.take();
        // From here on it is killed in any case.
        let holder = Holder(child);
        let read = out.map_or(Ok(0), |out| BufReader::new(out).read_line(&mut line));
        done("read", &path, read)?;
        match line.trim().parse::<i32>() {
            Ok(0) => Ok(holder),
            Ok(number) => locked(&path, lock, Err(Errno::from_raw(number))),
            Err(_) => {
                let seen = "the process that should hold the lock has ended";
                Err(Evidence::new("execve", seen, path))
            }
        }
    }

    /// Kills it, and waits for its end.
    pub(super) fn kill(mut self) -> std::io::Result<()> {
        self.0.kill()?;
        self.0.wait().map(drop)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Main function of the process that holds a lock. It takes the lock and prints the number of
/// the error or 0. Then it waits for the end of its standard input, which comes with the end
/// of its starter.
pub fn hold(lock: Lock, path: &Path) -> std::io::Result<()> {
    use std::io::Write as _;
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path);
    let done = file.as_ref().map_err(|e| errno_of(e, Errno::EIO));
    let done = done.and_then(|file| lock.take(file, false));
    let number = done.err().map_or(0, |errno| errno as i32);
    let mut out = std::io::stdout();
    writeln!(out, "{number}")?;
    out.flush()?;
    std::io::stdin().read_to_end(&mut Vec::new()).map(drop)
}

/// The times at which a client had a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Time at which it requested the lock.
    pub asked: Nanos,
    /// Time at which it got the lock.
    pub got: Nanos,
    /// Time at which it started to release the lock.
    pub let_go: Nanos,
}

/// Takes the lock of a file repeatedly from the instant `from` on, for `during`.
///
/// # Errors
/// The call that failed.
pub fn contend(
    path: &Path,
    lock: Lock,
    (from, during): (Nanos, Nanos),
    stop: &dyn Fn() -> bool,
) -> Step<Vec<Held>> {
    let file = writable(path)?;
    let mut all = Vec::new();
    super::wait_until(from, stop);
    while MonotonicClock.now().since(from) < during && all.len() < TIMES && !stop() {
        let asked = MonotonicClock.now();
        locked(path, lock, lock.take(&file, true))?;
        let got = MonotonicClock.now();
        std::thread::sleep(HELD.into());
        let let_go = MonotonicClock.now();
        locked(path, lock, lock.let_go(&file))?;
        all.push(Held { asked, got, let_go });
        std::thread::sleep(CONTENT.into());
    }
    Ok(all)
}
