//! All clients want the same name at the same instant: one of them gets it.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use rbench_core::{Clock as _, MonotonicClock, Nanos, or_eio};

use super::{Check, Step, Trial, promise};

/// Call of a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Race {
    /// Opens with `O_CREAT` and `O_EXCL`.
    Create,
    /// Creates a directory.
    Mkdir,
    /// Creates a symbolic link.
    Symlink,
    /// Creates a hard link; each client has its own file.
    Link,
    /// Renames the client's own file to the name, with `RENAME_NOREPLACE`.
    NoReplace,
    /// Renames the file; each client has its own new name.
    Rename,
    /// Unlinks the file.
    Unlink,
    /// Removes the directory.
    Rmdir,
}

/// Time before an instant from which on nobody sleeps, as a sleeper wakes up late.
const AWAKE: Nanos = Nanos(200_000);

/// Result of an attempt to get a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Start of the call.
    pub begun: Nanos,
    /// Time of its return.
    pub ended: Nanos,
    /// Its result.
    pub result: Result<(), Errno>,
}

pub(super) const CHECKS: &[Check] = &[
    promise("races.create-excl")
        .says("if all clients create a file with O_EXCL, one succeeds and the others get EEXIST")
        .trial(Trial::Race(Race::Create)),
    promise("races.mkdir")
        .says("if all clients create a directory, one succeeds and the others get EEXIST")
        .trial(Trial::Race(Race::Mkdir)),
    promise("races.symlink")
        .says("if all clients create a symbolic link, one succeeds and the others get EEXIST")
        .trial(Trial::Race(Race::Symlink)),
    promise("races.link")
        .says("if all clients link to one name, one succeeds and the others get EEXIST")
        .trial(Trial::Race(Race::Link)),
    promise("races.rename-noreplace")
        .says("if all clients rename to one name with RENAME_NOREPLACE, one succeeds and the others get EEXIST")
        .trial(Trial::Race(Race::NoReplace)),
    promise("races.rename")
        .says("if all clients rename one file, one succeeds and the others get ENOENT")
        .trial(Trial::Race(Race::Rename)),
    promise("races.unlink")
        .says("if all clients unlink one file, one succeeds and the others get ENOENT")
        .trial(Trial::Race(Race::Unlink)),
    promise("races.rmdir")
        .says("if all clients remove one directory, one succeeds and the others get ENOENT")
        .trial(Trial::Race(Race::Rmdir)),
];

impl Race {
    /// Error of the clients that do not win.
    pub fn lost(self) -> Errno {
        match self {
            Race::Create | Race::Mkdir | Race::Symlink | Race::Link | Race::NoReplace => {
                Errno::EEXIST
            }
            Race::Rename | Race::Unlink | Race::Rmdir => Errno::ENOENT,
        }
    }

    /// The system call.
    pub fn call(self) -> &'static str {
        match self {
            Race::Create => "open",
            Race::Mkdir => "mkdir",
            Race::Symlink => "symlink",
            Race::Link => "link",
            Race::NoReplace => "renameat2",
            Race::Rename => "rename",
            Race::Unlink => "unlink",
            Race::Rmdir => "rmdir",
        }
    }

    /// The names that one client creates, and all want.
    pub fn prizes(self, directory: &Path, rounds: usize) -> Vec<PathBuf> {
        match self {
            Race::Rename | Race::Unlink | Race::Rmdir => {
                (0..rounds).map(|round| prize(directory, round)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Creates these names.
    ///
    /// # Errors
    /// The call that failed.
    pub fn prepare(self, directory: &Path, rounds: usize) -> Step<()> {
        let prizes = self.prizes(directory, rounds);
        prizes.iter().try_for_each(|path| match self {
            Race::Rmdir => super::make(path),
            _ => super::place(path),
        })
    }

    /// Creates the files that each client needs for itself.
    ///
    /// # Errors
    /// The call that failed.
    pub fn prepare_own(self, directory: &Path, client: usize, rounds: usize) -> Step<()> {
        if matches!(self, Race::Link | Race::NoReplace) {
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
            let result = self.go(&prize, &own);
            let ended = MonotonicClock.now();
            all.push(Attempt {
                begun,
                ended,
                result,
            });
        }
        all
    }

    fn go(self, prize: &Path, own: &Path) -> Result<(), Errno> {
        let ended = match self {
            Race::Create => OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(prize)
                .map(drop),
            Race::Mkdir => std::fs::create_dir(prize),
            Race::Symlink => std::os::unix::fs::symlink(own, prize),
            Race::Link => std::fs::hard_link(own, prize),
            Race::NoReplace => {
                let how = RenameFlags::RENAME_NOREPLACE;
                return renameat2(AT_FDCWD, own, AT_FDCWD, prize, how);
            }
            Race::Rename => std::fs::rename(prize, own),
            Race::Unlink => std::fs::remove_file(prize),
            Race::Rmdir => std::fs::remove_dir(prize),
        };
        ended.map_err(or_eio)
    }
}

fn prize(directory: &Path, round: usize) -> PathBuf {
    directory.join(format!("prize-{round}"))
}

fn own(directory: &Path, client: usize, round: usize) -> PathBuf {
    directory.join(format!("own-{client}-{round}"))
}
