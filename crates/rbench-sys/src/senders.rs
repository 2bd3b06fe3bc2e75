//! Senders of this process's signals, if the kernel reports them.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::libc::{self, c_int, siginfo_t};
use signal_hook_registry::{SigId, register_sigaction, unregister};

/// The sender is unknown.
const NOBODY: u64 = u64::MAX;
/// The kernel itself sent the signal, for example for Ctrl-C.
const KERNEL: u64 = u64::MAX - 1;

/// Records the sender of the first of each signal.
#[derive(Debug)]
pub struct Senders {
    first: Vec<(c_int, Arc<AtomicU64>)>,
    hooks: Vec<SigId>,
}

/// Sender of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sender {
    /// The kernel, because of Ctrl-C or the end of the terminal.
    Kernel,
    /// A process, with its name unless it has ended; number 0 is one outside of the PID
    /// namespace.
    Process {
        /// Process number.
        pid: u32,
        /// User of the process.
        uid: u32,
        /// Name of the process.
        name: Option<String>,
    },
}

impl Senders {
    /// Records these signals from now on. Other handlers remain in place.
    ///
    /// # Errors
    /// An error if the system refuses a handler.
    pub fn watch(signals: &[c_int]) -> io::Result<Senders> {
        let mut this = Senders {
            first: Vec::new(),
            hooks: Vec::new(),
        };
        for signal in signals {
            let first = Arc::new(AtomicU64::new(NOBODY));
            let noted = Arc::clone(&first);
            let note = move |info: &siginfo_t| {
                let sender = sender_in(info);
                // Only the first one counts.
                let _ =
                    noted.compare_exchange(NOBODY, sender, Ordering::Relaxed, Ordering::Relaxed);
            };
            // SAFETY: the handler reads its argument and writes to one atomic number.
            let hook = unsafe { register_sigaction(*signal, note) }?;
            this.first.push((*signal, first));
            this.hooks.push(hook);
        }
        Ok(this)
    }

    /// Sender of the first of this signal; `None` without such a signal, or if the sender
    /// is unknown.
    pub fn of(&self, signal: c_int) -> Option<Sender> {
        let (_, first) = self.first.iter().find(|(known, _)| *known == signal)?;
        match first.load(Ordering::Relaxed) {
            NOBODY => None,
            KERNEL => Some(Sender::Kernel),
            sender => {
                let (pid, uid) = ((sender >> 32) as u32, sender as u32);
                let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok();
                let name = name.map(|name| name.trim_end().to_owned());
                Some(Sender::Process { pid, uid, name })
            }
        }
    }
}

impl Drop for Senders {
    fn drop(&mut self) {
        for hook in self.hooks.drain(..) {
            unregister(hook);
        }
    }
}

fn sender_in(info: &siginfo_t) -> u64 {
    match info.si_code {
        libc::SI_USER | libc::SI_TKILL | libc::SI_QUEUE => {
            // SAFETY: these codes have both fields.
            let (pid, uid) = unsafe { (info.si_pid(), info.si_uid()) };
            u64::from(pid.unsigned_abs()) << 32 | u64::from(uid)
        }
        libc::SI_KERNEL => KERNEL,
        _ => NOBODY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::{Signal, raise};
    use nix::unistd::getuid;

    #[test]
    fn the_sender_of_a_signal_is_told() {
        let signal = Signal::SIGUSR2 as c_int;
        let senders = Senders::watch(&[signal]).expect("a handler");
        assert_eq!(senders.of(signal), None);
        raise(Signal::SIGUSR2).expect("it is handled");
        let Some(Sender::Process { pid, uid, name }) = senders.of(signal) else {
            panic!("{:?}", senders.of(signal))
        };
        assert_eq!((pid, uid), (std::process::id(), getuid().as_raw()));
        let own = fs::read_to_string("/proc/self/comm").expect("proc is mounted");
        assert_eq!(name.as_deref(), Some(own.trim_end()));
        assert_eq!(senders.of(Signal::SIGUSR1 as c_int), None);
    }
}
