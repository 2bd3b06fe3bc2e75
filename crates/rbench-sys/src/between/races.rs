//! All clients want the same name at the same instant: one of them gets it.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use rbench_core::{Clock as _, MonotonicClock, Nanos, or_eio};
use serde::{Deserialize, Serialize};

use super::{Check, Step, Trial, promise};

/// A call that all clients make; one of them is to succeed.
#[derive(Debug, Clone, Copy)]
pub struct Race {
    /// The system call.
    pub call: &'static str,
    /// Error of the clients that do not win.
    pub lost: Errno,
    /// Creates the name that all want, which one client does beforehand.
    create: Option<fn(&Path) -> Step<()>>,
    /// True if each client needs a file of its own.
    needs_own: bool,
    go: Go,
}

/// The call for the name that all want, with a name of the client's own.
type Go = fn(&Path, &Path) -> std::io::Result<()>;

/// All clients create a name. `needs_own`: each from a file of its own.
const fn creation(call: &'static str, needs_own: bool, go: Go) -> Trial {
    Trial::Race(Race {
        call,
        lost: Errno::EEXIST,
        create: None,
        needs_own,
        go,
    })
}

/// All clients take away a name, which `create` has made.
const fn removal(call: &'static str, create: fn(&Path) -> Step<()>, go: Go) -> Trial {
    Trial::Race(Race {
        call,
        lost: Errno::ENOENT,
        create: Some(create),
        needs_own: false,
        go,
    })
}

/// Time before an instant from which on nobody sleeps, as a sleeper wakes up late.
const AWAKE: Nanos = Nanos(200_000);

/// Result of an attempt to get a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Start of the call.
    pub begun: Nanos,
    /// Time of its return.
    pub ended: Nanos,
    /// 0, or the number of its error.
    pub end: i32,
}

pub(super) const CHECKS: &[Check] = &[
    promise("races.create-excl")
        .says("if all clients create a file with O_EXCL, one succeeds and the others get EEXIST")
        .trial(creation("open", false, |prize, _| {
            let file = OpenOptions::new().write(true).create_new(true).open(prize);
            file.map(drop)
        })),
    promise("races.mkdir")
        .says("if all clients create a directory, one succeeds and the others get EEXIST")
        .trial(creation("mkdir", false, |prize, _| std::fs::create_dir(prize))),
    promise("races.symlink")
        .says("if all clients create a symbolic link, one succeeds and the others get EEXIST")
        .trial(creation("symlink", false, |prize, own| std::os::unix::fs::symlink(own, prize))),
    promise("races.link")
        .says("if all clients link to one name, one succeeds and the others get EEXIST")
        .trial(creation("link", true, |prize, own| std::fs::hard_link(own, prize))),
    promise("races.rename-noreplace")
        .says("if all clients rename to one name with RENAME_NOREPLACE, one succeeds and the others get EEXIST")
        .trial(creation("renameat2", true, |prize, own| {
            let how = RenameFlags::RENAME_NOREPLACE;
            Ok(renameat2(AT_FDCWD, own, AT_FDCWD, prize, how)?)
        })),
    promise("races.rename")
        .says("if all clients rename one file, one succeeds and the others get ENOENT")
        .trial(removal("rename", super::place, |prize, own| std::fs::rename(prize, own))),
    promise("races.unlink")
        .says("if all clients unlink one file, one succeeds and the others get ENOENT")
        .trial(removal("unlink", super::place, |prize, _| std::fs::remove_file(prize))),
    promise("races.rmdir")
        .says("if all clients remove one directory, one succeeds and the others get ENOENT")
        .trial(removal("rmdir", super::make, |prize, _| std::fs::remove_dir(prize))),
];

impl Race {
    /// The names that one client creates, and all want.
    pub fn prizes(self, directory: &Path, rounds: usize) -> Vec<PathBuf> {
        let rounds = if self.create.is_some() { rounds } else { 0 };
        (0..rounds).map(|round| prize(directory, round)).collect()
    }

    /// Creates these names.
    ///
    /// # Errors
    /// The call that failed.
    pub fn prepare(self, directory: &Path, rounds: usize) -> Step<()> {
        let create = |path: &PathBuf| self.create.map_or(Ok(()), |create| create(path));
        self.prizes(directory, rounds).iter().try_for_each(create)
    }

    /// Creates the files that each client needs for itself.
    ///
    /// # Errors
    /// The call that failed.
    pub fn prepare_own(self, directory: &Path, client: usize, rounds: usize) -> Step<()> {
        if self.needs_own {
            for path in (0..rounds).map(|round| own(directory, client, round)) {
                super::place(&path)?;
            }
        }
        Ok(())
    }

    /// Tries to get one name after the other, each at its instant. Returns the
    /// results.
    pub fn run(
        self,
        directory: &Path,
        client: usize,
        instants: &[Nanos],
        stop: &dyn Fn() -> bool,
    ) -> Vec<Attempt> {
        let mut all = Vec::with_capacity(instants.len());
        for (round, at) in instants.iter().enumerate() {
            let (prize, own) = (prize(directory, round), own(directory, client, round));
            super::wait_until(Nanos(at.0.saturating_sub(AWAKE.0)), stop);
            if stop() {
                break;
            }
            while MonotonicClock.now() < *at {
                std::hint::spin_loop();
            }
            let begun = MonotonicClock.now();
            let result = (self.go)(&prize, &own).map_err(or_eio);
            let ended = MonotonicClock.now();
            let end = result.err().map_or(0, |errno| errno as i32);
            all.push(Attempt { begun, ended, end });
        }
        all
    }
}

fn prize(directory: &Path, round: usize) -> PathBuf {
    directory.join(format!("prize-{round}"))
}

fn own(directory: &Path, client: usize, round: usize) -> PathBuf {
    directory.join(format!("own-{client}-{round}"))
}
