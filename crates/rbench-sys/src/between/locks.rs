//! Promises about locks between clients: only one holds a lock at a time, and it is free when
//! it is released or its holder is killed.

use std::fs::File;

use nix::errno::Errno;

use super::holding::{Holder, Lock, locked};
use super::sights::{Hand, freed};
use super::{Check, Spot, Step, Trial, done, promise, writable};

macro_rules! checks {
    ($(($lock:expr, $name:literal, $word:literal)),*) => {
        &[$(
            promise(concat!("locks-between.", $name, ".once"))
                .says(concat!($word, " is held by one client at a time, even if all clients request it"))
                .trial(Trial::Exclusion($lock)),
            promise(concat!("locks-between.", $name, ".unlocked"))
                .says(concat!($word, " blocks another client until it is released, and not longer"))
                .trial(freed(
                    $lock,
                    |spot| taken(spot, $lock),
                    |spot, hand| let_go(spot, hand, $lock),
                    |_, file| tried(file, $lock),
                )),
            promise(concat!("locks-between.", $name, ".killed"))
                .says(concat!($word, " becomes free for another client when its holder is killed"))
                .trial(freed(
                    $lock,
                    |spot| Holder::start(spot, $lock).map(Hand::Holder),
                    |spot, hand| killed(spot, hand),
                    |_, file| tried(file, $lock),
                )),
        )*]
    };
}

pub(super) const CHECKS: &[Check] = checks![
    (Lock::Flock, "flock", "the lock of a file (flock)"),
    (Lock::Posix, "posix", "the lock of a process (POSIX)"),
    (Lock::Ofd, "ofd", "the lock of an open file (OFD)")
];

/// Creates a file and takes its lock.
fn taken(spot: &Spot, lock: Lock) -> Step<Hand> {
    let path = spot.path();
    done("open", &path, std::fs::write(&path, b"x"))?;
    let file = writable(&path)?;
    locked(&path, lock, lock.take(&file, false))?;
    Ok(Hand::File(file))
}

fn let_go(spot: &Spot, hand: Hand, lock: Lock) -> Step<Hand> {
    if let Hand::File(file) = &hand {
        locked(&spot.path(), lock, lock.let_go(file))?;
    }
    Ok(hand)
}

fn killed(spot: &Spot, hand: Hand) -> Step<Hand> {
    if let Hand::Holder(holder) = hand {
        done("kill", &spot.path(), holder.kill())?;
    }
    Ok(Hand::Empty)
}

/// Tests whether the lock is free by taking and releasing it.
fn tried(file: Option<&File>, lock: Lock) -> Result<String, Errno> {
    let file = file.ok_or(Errno::EBADF)?;
    match lock.take(file, false) {
        Ok(()) => lock.let_go(file).map(|()| "free".to_owned()),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok("taken".to_owned()),
        Err(errno) => Err(errno),
    }
}
