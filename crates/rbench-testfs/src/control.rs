//! State shared by the owner of a mount and its service: the statistics, the held
//! replies, older data, and the means to end the file system at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fuser::Notifier;
use parking_lot::Mutex;

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
    /// Sender of notifications to the kernel. It is empty after the end of the session, so that it
    /// does not keep the session's device open.
    pub(crate) notifier: Mutex<Option<Notifier>>,
    killer: Killer,
    died: AtomicBool,
}

impl Control {
    pub(crate) fn new(stats: Arc<Stats>, killer: Killer) -> Control {
        Control {
            stats,
            hangs: Hangs::default(),
            history: History::default(),
            notifier: Mutex::default(),
            killer,
            died: AtomicBool::new(false),
        }
    }

    /// Ends the file system at once, as if its process had been killed.
    ///
    /// # Errors
    /// Fails if the kernel refuses.
    pub(crate) fn die(&self) -> io::Result<()> {
        // Set first, as waiters for the end check the reason.
        self.died.store(true, Ordering::Release);
        let killed = self.killer.kill();
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
