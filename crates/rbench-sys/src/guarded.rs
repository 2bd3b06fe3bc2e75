//! Process groups that do not outlive this process, and attributes that started programs inherit.
//!
//! The leader of a group is a guard: a shell that waits for the end of its standard input, which
//! only this process holds. It then ends the group, unless it reads a line first. So the group
//! also ends when this process is killed. While the guard exists, no other group has its number.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, PipeWriter, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::Pid;

use crate::proc::{self, Stat};
use crate::shell::{Process, Shell};

/// Script of the guard; after SIGTERM, the rest of the group has 2 s.
const GUARD: &CStr =
    c"trap '' HUP INT TERM; read -r _ && exit; kill -s TERM 0; sleep 2; kill -s KILL 0";

/// Unblocks all signals for the command: a thread of this process may have blocked some, which
/// programs would inherit.
pub fn unblocked(command: &mut Command) -> &mut Command {
    let unblock = || SigSet::empty().thread_set_mask().map_err(io::Error::from);
    // SAFETY: between fork and exec only sigprocmask is called, which is permitted there.
    unsafe { command.pre_exec(unblock) }
}

/// A process group with its guard, which does not outlive this process. Dropping it ends the
/// group.
#[derive(Debug)]
pub(crate) struct Guarded {
    guard: Process,
    /// The guard waits for the end of this pipe.
    leash: Option<PipeWriter>,
    /// True if the group was released.
    released: bool,
}

impl Guarded {
    /// Creates a group with its guard only.
    ///
    /// # Errors
    /// The reason why the guard cannot be started.
    pub(crate) fn new() -> io::Result<Guarded> {
        let nothing = File::options().write(true).open("/dev/null")?;
        let (held, leash) = io::pipe()?;
        let shell = Shell {
            words: &[GUARD],
            environment: &[],
            // Launchers send signals to whole process groups.
            group: None,
            streams: [held.as_fd(), nothing.as_fd(), nothing.as_fd()],
        };
        let guard = shell.start()?;
        Ok(Guarded {
            guard,
            leash: Some(leash),
            released: false,
        })
    }

    /// The number of the group.
    pub(crate) fn group(&self) -> Pid {
        self.guard.number()
    }

    /// True if the group has other processes than its guard; `None` if that is unknown.
    pub(crate) fn has_processes(&self) -> Option<bool> {
        let guard = self.group().as_raw() as u32;
        let entries = fs::read_dir("/proc").ok()?;
        let mut others = proc::numbers_of(entries).filter(|number| *number != guard);
        Some(others.any(|number| group_of(number) == Some(guard)))
    }

    /// Asks the group to end (SIGTERM).
    pub(crate) fn ask_to_end(&self) {
        // The guard belongs to the group, so the group exists.
        let _ = killpg(self.group(), Signal::SIGTERM);
    }

    /// Ends the group now, including the guard.
    pub(crate) fn end(&self) {
        // The guard was not waited for, so its number is not reused.
        let _ = killpg(self.group(), Signal::SIGKILL);
    }

    /// Releases the remaining processes of the group.
    pub(crate) fn release(mut self) {
        // If this fails, the guard has ended, and there is nothing more to do.
        let write_result = self.leash.take().map(|mut leash| leash.write_all(b"\n"));
        drop(write_result);
        let _ = self.guard.wait();
        self.released = true;
    }

    /// Simulates that this process is killed: the group gets SIGTERM, and its rest is ended 2 s
    /// later.
    #[cfg(test)]
    pub(crate) fn leave_to_the_guard(&mut self) {
        drop(self.leash.take());
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if self.released {
            return;
        }
        // The guard is killed, too, and waited for afterwards: until then its number, and that of
        // the group, are not reused.
        let _ = killpg(self.group(), Signal::SIGKILL);
        drop(self.leash.take());
        let _ = self.guard.wait();
    }
}

/// True if a process was stopped by a signal, for example a background process that reads from
/// its terminal.
pub(crate) fn is_stopped(number: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    Stat::read(&text).is_some_and(|stat| stat.is(&["T"]))
}

/// The process group of a process that has not ended.
pub(crate) fn group_of(number: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    let stat = Stat::read(&text).filter(|stat| !stat.has_ended())?;
    stat.field(5)
}
