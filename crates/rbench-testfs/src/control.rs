//! What the owner of a mount and its service share: the statistics, the
//! replies that are held, older data, and the means to end the file system
//! at once.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use nix::errno::Errno;

use crate::damage::History;
use crate::hang::Hangs;
use crate::mount::Killer;
use crate::stats::Stats;

/// The means of the owner and of the service.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) stats: Arc<Stats>,
    pub(crate) hangs: Hangs,
    /// What stale reads return.
    pub(crate) history: History,
    killer: OnceLock<Killer>,
    died: AtomicBool,
}

impl Control {
    pub(crate) fn new(stats: Arc<Stats>) -> Control {
        Control {
            stats,
            hangs: Hangs::default(),
            history: History::default(),
            killer: OnceLock::new(),
            died: AtomicBool::new(false),
        }
    }

    /// Says how the mount can be ended; before that, it cannot.
    pub(crate) fn set_killer(&self, killer: Killer) {
        // There is one mount, so this comes once.
        let _ = self.killer.set(killer);
    }

    /// Ends the file system at once, as if its process had been killed.
    ///
    /// # Errors
    /// When the kernel does not let it be.
    pub(crate) fn die(&self) -> io::Result<()> {
        let killer = self.killer.get();
        let killer = killer.ok_or_else(|| io::Error::from(Errno::ENOTCONN))?;
        // Said first: what waits for the end asks for the reason.
        self.died.store(true, Ordering::Release);
        let killed = killer.kill();
        if killed.is_err() {
            self.died.store(false, Ordering::Release);
        }
        killed
    }

    /// Whether the file system ended by [`Control::die`].
    pub(crate) fn has_died(&self) -> bool {
        self.died.load(Ordering::Acquire)
    }
}
