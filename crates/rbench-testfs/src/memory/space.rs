//! The budgets of the in-memory file system: what may still be stored in all,
//! and, with a quota, of file data.

use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;

use crate::store::Answer;

/// A number of bytes that is shared out.
#[derive(Debug)]
struct Budget {
    cap: u64,
    used: AtomicU64,
}

impl Budget {
    fn new(cap: u64) -> Budget {
        Budget {
            cap,
            used: AtomicU64::new(0),
        }
    }

    fn free(&self) -> u64 {
        self.cap.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    fn take(&self, bytes: u64) -> Answer<()> {
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|sum| *sum <= self.cap)
            })
            .map(drop)
            .map_err(|_| Errno::ENOSPC)
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What there is room for.
#[derive(Debug)]
pub(crate) struct Space {
    all: Budget,
    /// Of `all`, what data may take.
    quota: Option<Budget>,
}

impl Space {
    /// Room for `cap` bytes, of which data may take `quota`.
    pub(crate) fn new(cap: u64, quota: Option<u64>) -> Space {
        Space {
            all: Budget::new(cap),
            quota: quota.map(Budget::new),
        }
    }

    /// The room for data when nothing is stored, in bytes.
    pub(crate) fn cap(&self) -> u64 {
        let quota = self.quota.as_ref().map_or(u64::MAX, |quota| quota.cap);
        self.all.cap.min(quota)
    }

    /// The room for data that is left, in bytes.
    pub(crate) fn free(&self) -> u64 {
        let quota = self.quota.as_ref().map_or(u64::MAX, Budget::free);
        self.all.free().min(quota)
    }

    /// The room for anything but data that is left, in bytes.
    pub(crate) fn free_for_inodes(&self) -> u64 {
        self.all.free()
    }

    /// Whether data takes no more than it needs, so that the quota is exact.
    pub(crate) fn is_exact(&self) -> bool {
        self.quota.is_some()
    }

    /// Takes `bytes` for something other than data, all or nothing.
    ///
    /// # Errors
    /// ENOSPC when less than that is left.
    pub(crate) fn take(&self, bytes: u64) -> Answer<()> {
        self.all.take(bytes)
    }

    /// Gives `bytes` back that were taken by [`Space::take`].
    pub(crate) fn give_back(&self, bytes: u64) {
        self.all.give_back(bytes);
    }

    /// Takes `bytes` for data, all or nothing.
    ///
    /// # Errors
    /// ENOSPC when less than that is left.
    pub(crate) fn take_for_data(&self, bytes: u64) -> Answer<()> {
        if let Some(quota) = &self.quota {
            quota.take(bytes)?;
        }
        let taken = self.all.take(bytes);
        if let (Err(_), Some(quota)) = (taken, &self.quota) {
            quota.give_back(bytes);
        }
        taken
    }

    /// Gives `bytes` back that were taken by [`Space::take_for_data`].
    pub(crate) fn give_back_data(&self, bytes: u64) {
        self.all.give_back(bytes);
        if let Some(quota) = &self.quota {
            quota.give_back(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_all_or_nothing_and_comes_back() {
        let space = Space::new(100, None);
        assert_eq!(space.take(60), Ok(()));
        assert_eq!(space.take(41), Err(Errno::ENOSPC));
        assert_eq!(space.take(u64::MAX), Err(Errno::ENOSPC));
        assert_eq!(space.take_for_data(40), Ok(()));
        assert_eq!(space.free(), 0);
        space.give_back(60);
        assert_eq!(space.free(), 60);
        space.give_back_data(40);
        assert_eq!(space.free(), 100);
    }

    #[test]
    fn a_quota_is_for_data_alone_and_data_counts_in_both() {
        let space = Space::new(100, Some(50));
        assert_eq!(space.take(60), Ok(()));
        assert_eq!((space.cap(), space.free()), (50, 40));
        assert_eq!(space.take_for_data(41), Err(Errno::ENOSPC));
        space.give_back(60);
        assert_eq!(space.take_for_data(51), Err(Errno::ENOSPC));
        assert_eq!(space.take_for_data(50), Ok(()));
        assert_eq!((space.free(), space.free_for_inodes()), (0, 50));
        space.give_back_data(50);
        assert_eq!((space.free(), space.free_for_inodes()), (50, 100));
    }
}
