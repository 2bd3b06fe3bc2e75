//! Locks of three kinds: of whole files (flock), of ranges by a process (POSIX), and of
//! ranges by an open file (OFD). A separate open file, which the kernel treats as another
//! owner, tests whether a lock is held.

use std::os::fd::OwnedFd;
use std::sync::mpsc::channel;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, Flock, FlockArg, OFlag, fcntl};
use nix::libc;

use super::did::{Breach, Did, Kept};
use super::ground::{Ground, Promise, promise};

/// Time limit for a waiter to get a lock.
const SOON: Duration = Duration::from_secs(10);

pub(super) const PROMISES: &[Promise] = &[
    promise("locks.flock.once")
        .says("an exclusive file lock is granted once")
        .test(|g| {
            let one = flock(g, g.file("a")?, FlockArg::LockExclusiveNonblock).able(&[])?;
            let two = g.reopened("a")?;
            flock(g, two, FlockArg::LockExclusiveNonblock).fails(Errno::EWOULDBLOCK)?;
            let two = g.reopened("a")?;
            flock(g, two, FlockArg::LockSharedNonblock).fails(Errno::EWOULDBLOCK)?;
            drop(one);
            Ok(())
        }),
    promise("locks.flock.shared")
        .says("a shared lock is granted to many and blocks an exclusive one")
        .test(|g| {
            let _one = flock(g, g.file("a")?, FlockArg::LockSharedNonblock).able(&[])?;
            let _two = flock(g, g.reopened("a")?, FlockArg::LockSharedNonblock).ok()?;
            let three = g.reopened("a")?;
            flock(g, three, FlockArg::LockExclusiveNonblock).fails(Errno::EWOULDBLOCK)
        }),
    promise("locks.flock.unlock")
        .says("a released lock is granted again")
        .test(|g| {
            let one = flock(g, g.file("a")?, FlockArg::LockExclusiveNonblock).able(&[])?;
            let done = one.unlock().map_err(|(_, errno)| errno);
            let one = g.did("flock", "a", done).ok()?;
            let two = g.reopened("a")?;
            flock(g, two, FlockArg::LockExclusiveNonblock).ok()?;
            drop(one);
            Ok(())
        }),
    promise("locks.flock.close")
        .says("closing the file releases its lock")
        .test(|g| {
            drop(flock(g, g.file("a")?, FlockArg::LockExclusiveNonblock).able(&[])?);
            let two = g.reopened("a")?;
            flock(g, two, FlockArg::LockExclusiveNonblock)
                .ok()
                .map(drop)
        }),
    promise("locks.flock.hand-over")
        .says("a waiter gets the lock when it is released")
        .test(|g| {
            let held = flock(g, g.file("a")?, FlockArg::LockExclusiveNonblock).able(&[])?;
            let next = g.reopened("a")?;
            let wait = move || {
                let got = Flock::lock(next, FlockArg::LockExclusive);
                got.map(drop).map_err(|(_, errno)| errno)
            };
            let release = || {
                drop(held);
                Ok(())
            };
            hand_over(g, "flock", wait, release)
        }),
    promise("locks.flock.convert")
        .says("a shared lock without other holders can be upgraded to an exclusive one")
        .test(|g| {
            let one = g.file("a")?;
            flock(g, g.reopened("a")?, FlockArg::LockSharedNonblock).able(&[])?;
            let held = flock(g, one, FlockArg::LockSharedNonblock).ok()?;
            let done = held.relock(FlockArg::LockExclusiveNonblock);
            g.did("flock", "a", done).ok()?;
            let two = g.reopened("a")?;
            flock(g, two, FlockArg::LockSharedNonblock).fails(Errno::EWOULDBLOCK)
        }),
    promise("locks.posix.once")
        .says("a process's lock blocks other processes")
        .test(|g| {
            let (one, two) = two(g)?;
            posix(g, &one, range(libc::F_WRLCK, 0, 0)).able(&[])?;
            ofd(g, &two, range(libc::F_WRLCK, 0, 0)).fails_with(&TAKEN)
        }),
    promise("locks.posix.told")
        .says("F_GETLK reports the lock of a process, with its range and process ID")
        .test(|g| {
            let (one, two) = two(g)?;
            posix(g, &one, range(libc::F_WRLCK, 100, 50)).able(&[])?;
            let lock = held(g, &two, 0, 0)?;
            let lock_fields = (i32::from(lock.l_type), lock.l_start, lock.l_len, lock.l_pid);
            let expected = (libc::F_WRLCK, 100, 50, std::process::id() as i32);
            let what = "type, start, length, process";
            g.same("fcntl", "a", what, (expected, lock_fields))
        }),
    promise("locks.posix.ranges")
        .says("a lock of a range leaves the rest of the file unlocked")
        .test(|g| {
            let (one, two) = two(g)?;
            posix(g, &one, range(libc::F_WRLCK, 100, 100)).able(&[])?;
            free(g, &two, 0, 100, true)?;
            free(g, &two, 150, 10, false)?;
            free(g, &two, 200, 100, true)
        }),
    promise("locks.posix.split")
        .says("unlocking the middle of a range leaves its ends locked")
        .test(|g| {
            let (one, two) = two(g)?;
            posix(g, &one, range(libc::F_WRLCK, 0, 300)).able(&[])?;
            posix(g, &one, range(libc::F_UNLCK, 100, 100)).ok()?;
            free(g, &two, 0, 100, false)?;
            free(g, &two, 100, 100, true)?;
            free(g, &two, 200, 100, false)
        }),
    promise("locks.posix.shared")
        .says("a shared lock of a range blocks exclusive locks, not shared ones")
        .test(|g| {
            let (one, two) = two(g)?;
            posix(g, &one, range(libc::F_RDLCK, 0, 100)).able(&[])?;
            ofd(g, &two, range(libc::F_WRLCK, 0, 100)).fails_with(&TAKEN)?;
            ofd(g, &two, range(libc::F_RDLCK, 0, 100)).ok()
        }),
    promise("locks.posix.unlock")
        .says("an unlocked range can be locked by others")
        .test(|g| {
            let (one, two) = two(g)?;
            posix(g, &one, range(libc::F_WRLCK, 0, 0)).able(&[])?;
            posix(g, &one, range(libc::F_UNLCK, 0, 0)).ok()?;
            ofd(g, &two, range(libc::F_WRLCK, 0, 0)).ok()
        }),
    promise("locks.posix.close")
        .says("closing any descriptor of a file releases the process's locks of it")
        .test(|g| {
            let (one, two) = two(g)?;
            posix(g, &one, range(libc::F_WRLCK, 0, 0)).able(&[])?;
            drop(g.reopened("a")?);
            free(g, &two, 0, 0, true)
        }),
    promise("locks.posix.large")
        .says("ranges above 4 GiB can be locked")
        .test(|g| {
            const FAR: i64 = 5 << 30;
            let (one, two) = two(g)?;
            posix(g, &one, range(libc::F_WRLCK, FAR, 10)).able(&[Errno::EOVERFLOW])?;
            free(g, &two, FAR, 10, false)?;
            free(g, &two, FAR % (1 << 32), 10, true)
        }),
    promise("locks.posix.read-only")
        .says("an exclusive lock of a file not open for writing fails with EBADF")
        .test(|g| {
            g.put("a", b"")?;
            let fd = g.open("a", OFlag::O_RDONLY).ready()?;
            posix(g, &fd, range(libc::F_WRLCK, 0, 0)).fails(Errno::EBADF)
        }),
    promise("locks.ofd.once")
        .says("an open file's lock blocks other open files")
        .test(|g| {
            let (one, two) = two(g)?;
            ofd(g, &one, range(libc::F_WRLCK, 0, 0)).able(&[Errno::EINVAL])?;
            ofd(g, &two, range(libc::F_WRLCK, 0, 0)).fails_with(&TAKEN)?;
            ofd(g, &two, range(libc::F_RDLCK, 0, 0)).fails_with(&TAKEN)
        }),
    promise("locks.ofd.ranges")
        .says("open files can lock different ranges at the same time")
        .test(|g| {
            let (one, two) = two(g)?;
            ofd(g, &one, range(libc::F_WRLCK, 0, 100)).able(&[Errno::EINVAL])?;
            ofd(g, &two, range(libc::F_WRLCK, 100, 100)).ok()?;
            ofd(g, &two, range(libc::F_WRLCK, 50, 100)).fails_with(&TAKEN)
        }),
    promise("locks.ofd.shared")
        .says("a shared lock is granted to many open files")
        .test(|g| {
            let (one, two) = two(g)?;
            ofd(g, &one, range(libc::F_RDLCK, 0, 0)).able(&[Errno::EINVAL])?;
            ofd(g, &two, range(libc::F_RDLCK, 0, 0)).ok()
        }),
    promise("locks.ofd.unlock")
        .says("a lock that an open file releases is granted to another one")
        .test(|g| {
            let (one, two) = two(g)?;
            ofd(g, &one, range(libc::F_WRLCK, 0, 0)).able(&[Errno::EINVAL])?;
            ofd(g, &one, range(libc::F_UNLCK, 0, 0)).ok()?;
            ofd(g, &two, range(libc::F_WRLCK, 0, 0)).ok()
        }),
    promise("locks.ofd.close")
        .says("an open file's lock is released when that file is closed, not when others are")
        .test(|g| {
            let (one, two) = two(g)?;
            ofd(g, &one, range(libc::F_WRLCK, 0, 0)).able(&[Errno::EINVAL])?;
            drop(g.reopened("a")?);
            ofd(g, &two, range(libc::F_WRLCK, 0, 0)).fails_with(&TAKEN)?;
            drop(one);
            ofd(g, &two, range(libc::F_WRLCK, 0, 0)).ok()
        }),
    promise("locks.ofd.hand-over")
        .says("a waiter gets an open file's lock when it is released")
        .test(|g| {
            let (one, two) = two(g)?;
            ofd(g, &one, range(libc::F_WRLCK, 0, 0)).able(&[Errno::EINVAL])?;
            let wait = move || {
                let whole = range(libc::F_WRLCK, 0, 0);
                fcntl(&two, FcntlArg::F_OFD_SETLKW(&whole)).map(drop)
            };
            let release = || ofd(g, &one, range(libc::F_UNLCK, 0, 0)).ok();
            hand_over(g, "fcntl", wait, release)
        }),
];

/// Errors that show that another owner has the lock.
const TAKEN: [Errno; 2] = [Errno::EAGAIN, Errno::EACCES];

/// Expects a thread that waits for the lock to get it when it is released, by the promise.
fn hand_over(
    g: &Ground,
    call: &'static str,
    wait: impl FnOnce() -> Result<(), Errno> + Send + 'static,
    release: impl FnOnce() -> Kept,
) -> Kept {
    let (sender, receiver) = channel();
    let waits = move || {
        // The receiver may be gone.
        let _ = sender.send(wait());
    };
    let thread = std::thread::Builder::new().spawn(waits);
    thread.map_err(|error| g.undecided("clone", format!("cannot start a thread: {error}")))?;
    let early = receiver.recv_timeout(Duration::from_millis(50));
    let words = ("waits for the lock", "does not wait");
    g.is(call, "a", early.is_err(), words)?;
    release()?;
    match receiver.recv_timeout(SOON) {
        Ok(got) => g.did(call, "a", got).ok(),
        Err(_) => g.is(call, "a", false, ("the lock", "nothing within 10 s")),
    }
}

fn flock(g: &Ground, fd: OwnedFd, how: FlockArg) -> Did<Flock<OwnedFd>> {
    let locked = Flock::lock(fd, how);
    g.did("flock", "a", locked.map_err(|(_, errno)| errno))
}

/// Opens a new file twice.
fn two(g: &Ground) -> Result<(OwnedFd, OwnedFd), Breach> {
    Ok((g.file("a")?, g.reopened("a")?))
}

/// A lock of this kind (`F_WRLCK` and so on); a length of 0 reaches to the end of the file.
pub(crate) fn range(kind: libc::c_int, start: i64, length: i64) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: length,
        l_pid: 0,
    }
}

fn posix(g: &Ground, fd: &OwnedFd, range: libc::flock) -> Did<()> {
    g.did("fcntl", "a", fcntl(fd, FcntlArg::F_SETLK(&range)).map(drop))
}

fn ofd(g: &Ground, fd: &OwnedFd, range: libc::flock) -> Did<()> {
    let done = fcntl(fd, FcntlArg::F_OFD_SETLK(&range));
    g.did("fcntl", "a", done.map(drop))
}

/// The lock that conflicts with an exclusive one of this range, or F_UNLCK.
fn held(g: &Ground, fd: &OwnedFd, start: i64, length: i64) -> Result<libc::flock, Breach> {
    let mut lock = range(libc::F_WRLCK, start, length);
    let done = fcntl(fd, FcntlArg::F_OFD_GETLK(&mut lock));
    g.did("fcntl", "a", done).able(&[Errno::EINVAL])?;
    Ok(lock)
}

/// Expects this range to be free or held, by the promise.
fn free(g: &Ground, fd: &OwnedFd, start: i64, length: i64, wanted: bool) -> Kept {
    let lock = held(g, fd, start, length)?;
    let is_free = i32::from(lock.l_type) == libc::F_UNLCK;
    let what = format!("bytes {start}+{length} are free:");
    g.same("fcntl", "a", &what, (wanted, is_free))
}
