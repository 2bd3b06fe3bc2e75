//! State shared by the owner of a mount and its service: the statistics, the held
//! replies, older data, and the means to end the file system at once.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use nix::errno::Errno;

use crate::damage::History;
use crate::hang::Hangs;
use crate::mount::Killer;
use crate::stats::Stats;

/// State shared by the owner and the service.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) stats: Arc<Stats>,
    pub(crate) hangs: Hangs,
    /// Older content, which stale reads return.
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

    /// Sets the means to end the mount; before that, it cannot be ended.
    pub(crate) fn set_killer(&self, killer: Killer) {
        // There is one mount, so this is called once.
        let _ = self.killer.set(killer);
    }

    /// Ends the file system at once, as if its process had been killed.
    ///
    /// # Errors
    /// Fails if the kernel refuses.
    pub(crate) fn die(&self) -> io::Result<()> {
        let killer = self.killer.get();
        let killer = killer.ok_or_else(|| io::Error::from(Errno::ENOTCONN))?;
        // Set first, as waiters for the end check the reason.
        self.died.store(true, Ordering::Release);
        let killed = killer.kill();
        if killed.is_err() {
            self.died.store(false, Ordering::Release);
        }
        killed
    }

    /// True if the file system ended by [`Control::die`].
    pub(crate) fn has_died(&self) -> bool {
        self.died.load(Ordering::Acquire)
    }
}
