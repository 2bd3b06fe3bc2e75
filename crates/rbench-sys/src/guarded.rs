//! Process groups that do not outlive us, and what programs that we start inherit.
//!
//! The leader of a group is a guard: a shell that waits for the end of its standard
//! input, which only we hold, and then ends the group, unless a line comes first. So the group also ends when we are
//! killed, and as long as the guard is there, no other group has its number.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::Pid;

/// What the guard does; 2 s are what the rest of the group has after SIGTERM.
const GUARD: &str =
    "trap '' HUP INT TERM; read -r _ && exit; kill -s TERM 0; sleep 2; kill -s KILL 0";

/// The command, for which no signal is blocked: a thread of ours may have some blocked, which
/// programs would inherit.
pub fn unblocked(command: &mut Command) -> &mut Command {
    let unblock = || SigSet::empty().thread_set_mask().map_err(io::Error::from);
    // SAFETY: between fork and exec only sigprocmask is called, which may be called there.
    unsafe { command.pre_exec(unblock) }
}

/// A process group that does not outlive us, with its guard. When it is dropped, nothing of it is left.
#[derive(Debug)]
pub(crate) struct Guarded {
    guard: Child,
    /// The guard waits for its end.
    leash: Option<ChildStdin>,
    /// Whether the group is nobody's concern any more.
    released: bool,
}

impl Guarded {
    /// A group with nothing in it but its guard.
    ///
    /// # Errors
    /// Why that cannot be started.
    pub(crate) fn new() -> io::Result<Guarded> {
        let mut guard = unblocked(&mut Command::new("sh"))
            .args(["-c", GUARD])
            // Launchers signal whole process groups.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let leash = guard.stdin.take();
        Ok(Guarded {
            guard,
            leash,
            released: false,
        })
    }

    /// The number of the group.
    pub(crate) fn group(&self) -> Pid {
        Pid::from_raw(self.guard.id() as i32)
    }

    /// Whether anything of it is left; `None` if that cannot be known.
    pub(crate) fn has_processes(&self) -> Option<bool> {
        let guard = self.guard.id();
        let entries = fs::read_dir("/proc").ok()?;
        let mut numbers = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|number: &u32| *number != guard);
        Some(numbers.any(|number| group_of(number) == Some(guard)))
    }

    /// Asks all of it to end (SIGTERM).
    pub(crate) fn ask_to_end(&self) {
        // The guard is of the group, so the group exists.
        let _ = killpg(self.group(), Signal::SIGTERM);
    }

    /// Ends all of it now, the guard among it.
    pub(crate) fn end(&self) {
        // The guard is not waited for yet: the number stays its own.
        let _ = killpg(self.group(), Signal::SIGKILL);
    }

    /// Lets go of whatever is left of it.
    pub(crate) fn release(mut self) {
        // Should that fail, the guard has ended, and nothing is left to do for it.
        let told = self.leash.take().map(|mut leash| leash.write_all(b"\n"));
        drop(told);
        let _ = self.guard.wait();
        self.released = true;
    }

    /// As when we are killed: 2 s after SIGTERM the rest is ended.
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
        // The guard is killed, too, and only then waited for: until then its number, and
        // that of the group, are nobody else's.
        let _ = killpg(self.group(), Signal::SIGKILL);
        drop(self.leash.take());
        let _ = self.guard.wait();
    }
}

/// Whether a process was stopped by a signal, as one of the background is that asks its terminal.
pub(crate) fn is_stopped(number: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    let fields = text.rsplit_once(") ").map(|(_, fields)| fields);
    fields.is_some_and(|fields| fields.starts_with('T'))
}

/// The process group of a process that has not ended.
pub(crate) fn group_of(number: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name may hold anything, even parentheses.
    let (_, fields) = text.rsplit_once(") ")?;
    let mut fields = fields.split_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X" | "x");
    fields.nth(1)?.parse().ok().filter(|_| !ended)
}
