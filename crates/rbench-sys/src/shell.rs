//! Starts `sh -c` without copying this process.
//!
//! `fork` makes all memory of this process copy-on-write: each thread that measures then has a page
//! fault at its next write to each page. `posix_spawn` shares the memory until the program starts.
//! `std::process::Command` uses it, too, but only if nothing else has to be done in between.

use std::ffi::{CStr, CString, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use nix::errno::Errno;
use nix::libc;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawnp};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;

/// A command to start. All signals are unblocked for it: a thread of this process may have blocked
/// some.
pub(crate) struct Shell<'s> {
    /// The command, followed by its `$0`, `$1`…
    pub words: &'s [&'s CStr],
    /// Additions to the environment.
    pub environment: &'s [(&'static str, OsString)],
    /// Its process group; `None`: a new one.
    pub group: Option<Pid>,
    /// Its standard input, output and error.
    pub streams: [BorrowedFd<'s>; 3],
}

impl Shell<'_> {
    /// Starts it.
    ///
    /// # Errors
    /// The reason why it cannot be started.
    pub(crate) fn start(&self) -> io::Result<Process> {
        let mut attributes = PosixSpawnAttr::init()?;
        attributes.set_flags(
            PosixSpawnFlags::POSIX_SPAWN_SETPGROUP
                | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK
                | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF,
        )?;
        attributes.set_pgroup(self.group.unwrap_or(Pid::from_raw(0)))?;
        attributes.set_sigmask(&SigSet::empty())?;
        // Rust's runtime ignores it.
        attributes.set_sigdefault(&SigSet::from_iter([Signal::SIGPIPE]))?;
        let mut files = PosixSpawnFileActions::init()?;
        for (number, stream) in (0..).zip(&self.streams) {
            files.add_dup2(stream.as_raw_fd(), number)?;
        }
        let words: Vec<&CStr> = [c"sh", c"-c"].iter().chain(self.words).copied().collect();
        let environment = self.environment()?;
        let number = posix_spawnp(c"sh", &files, &attributes, &words, &environment)?;
        Ok(Process(number))
    }

    /// The environment of this process with the additions, as NAME=VALUE.
    fn environment(&self) -> io::Result<Vec<CString>> {
        let added = |name: &OsString| self.environment.iter().any(|(other, _)| name == other);
        let inherited = std::env::vars_os().filter(|(name, _)| !added(name));
        let additions = self.environment.iter();
        let additions = additions.map(|(name, value)| (OsString::from(name), value.clone()));
        let text = |(name, value): (OsString, OsString)| {
            let mut text = name.into_vec();
            text.push(b'=');
            text.extend_from_slice(value.as_bytes());
            Ok(CString::new(text)?)
        };
        inherited.chain(additions).map(text).collect()
    }
}

/// A child process that was not waited for.
#[derive(Debug)]
pub(crate) struct Process(Pid);

impl Process {
    /// Its number.
    pub(crate) fn number(&self) -> Pid {
        self.0
    }

    /// Waits for its end. Afterwards its number may be that of another process.
    ///
    /// # Errors
    /// Fails if it was waited for already.
    pub(crate) fn wait(&self) -> io::Result<ExitStatus> {
        let mut status = 0;
        loop {
            // SAFETY: the kernel writes only to `status`, which lives longer than the call.
            let waited = unsafe { libc::waitpid(self.0.as_raw(), &raw mut status, 0) };
            match Errno::result(waited) {
                Ok(_) => return Ok(ExitStatus::from_raw(status)),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
