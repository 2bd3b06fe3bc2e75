//! Locks of files: each must be given once, and again after it was let go.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, Flock, FlockArg, OFlag, fcntl};
use nix::libc;

use super::attempt::{Ability, Ground, Refused, call, failed, is, reopened};

pub(super) const ABILITIES: &[Ability] = &[
    Ability {
        name: "flock",
        about: "locks of whole files (flock)",
        attempt: flock,
    },
    Ability {
        name: "fcntl-lock",
        about: "locks of ranges by a process (fcntl, POSIX)",
        attempt: posix,
    },
    Ability {
        name: "ofd-lock",
        about: "locks of ranges by an open file (fcntl, OFD)",
        attempt: of_descriptor,
    },
];

const TWICE: &str = "a lock that is held is given again";

fn flock(ground: &Ground) -> Result<String, Refused> {
    let (path, first) = ground.file()?;
    let exclusive = FlockArg::LockExclusiveNonblock;
    let held = call("flock", Flock::lock(first, exclusive).map_err(|(_, e)| e))?;
    let second = reopened(&path, OFlag::empty())?;
    let second = match Flock::lock(second, exclusive) {
        Ok(_) => return Err(Refused::wrong("flock", TWICE)),
        Err((fd, Errno::EWOULDBLOCK)) => fd,
        Err((_, errno)) => return Err(failed("flock", errno, true)),
    };
    call("flock", held.unlock().map(drop).map_err(|(_, e)| e))?;
    call(
        "flock",
        Flock::lock(second, exclusive).map(drop).map_err(|(_, e)| e),
    )?;
    Ok(String::new())
}

/// The whole file, exclusively.
fn whole(kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

/// Whether another open file finds a lock on it.
fn is_held(fd: &OwnedFd) -> Result<bool, Refused> {
    let mut lock = whole(libc::F_WRLCK);
    call("fcntl", fcntl(fd, FcntlArg::F_OFD_GETLK(&mut lock)))?;
    Ok(i32::from(lock.l_type) != libc::F_UNLCK)
}

fn posix(ground: &Ground) -> Result<String, Refused> {
    let (path, first) = ground.file()?;
    let second = reopened(&path, OFlag::empty())?;
    call(
        "fcntl",
        fcntl(&first, FcntlArg::F_SETLK(&whole(libc::F_WRLCK))),
    )?;
    is("fcntl", is_held(&second)?, TWICE)?;
    call(
        "fcntl",
        fcntl(&first, FcntlArg::F_SETLK(&whole(libc::F_UNLCK))),
    )?;
    is(
        "fcntl",
        !is_held(&second)?,
        "a lock stays after it was let go",
    )?;
    Ok(String::new())
}

fn of_descriptor(ground: &Ground) -> Result<String, Refused> {
    let (path, first) = ground.file()?;
    let second = reopened(&path, OFlag::empty())?;
    let take = |fd: &OwnedFd| fcntl(fd, FcntlArg::F_OFD_SETLK(&whole(libc::F_WRLCK)));
    call("fcntl", take(&first))?;
    match take(&second) {
        Ok(_) => return Err(Refused::wrong("fcntl", TWICE)),
        Err(Errno::EAGAIN | Errno::EACCES) => {}
        Err(errno) => return Err(failed("fcntl", errno, true)),
    }
    call(
        "fcntl",
        fcntl(&first, FcntlArg::F_OFD_SETLK(&whole(libc::F_UNLCK))),
    )?;
    call("fcntl", take(&second))?;
    Ok(String::new())
}
