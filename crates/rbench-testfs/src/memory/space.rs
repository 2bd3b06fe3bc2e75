//! The budget of the in-memory file system: what may still be stored.

use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;

use crate::store::Answer;

/// A number of bytes that is shared out.
#[derive(Debug)]
pub(crate) struct Space {
    cap: u64,
    used: AtomicU64,
}

impl Space {
    pub(crate) fn new(cap: u64) -> Space {
        Space {
            cap,
            used: AtomicU64::new(0),
        }
    }

    /// The whole budget, in bytes.
    pub(crate) fn cap(&self) -> u64 {
        self.cap
    }

    /// What is not yet given out, in bytes.
    pub(crate) fn free(&self) -> u64 {
        self.cap.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    /// Takes `bytes`, all or nothing.
    ///
    /// # Errors
    /// ENOSPC when less than that is left.
    pub(crate) fn take(&self, bytes: u64) -> Answer<()> {
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|sum| *sum <= self.cap)
            })
            .map(drop)
            .map_err(|_| Errno::ENOSPC)
    }

    /// Gives `bytes` back that were taken before.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_all_or_nothing_and_comes_back() {
        let space = Space::new(100);
        assert_eq!(space.take(60), Ok(()));
        assert_eq!(space.take(41), Err(Errno::ENOSPC));
        assert_eq!(space.take(u64::MAX), Err(Errno::ENOSPC));
        assert_eq!(space.take(40), Ok(()));
        assert_eq!(space.free(), 0);
        space.give_back(60);
        assert_eq!(space.free(), 60);
    }
}
