//! The budgets of the in-memory file system: the space for everything and, with a
//! quota, for file data.

use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;

use crate::store::Answer;

/// A number of bytes that can be taken and given back.
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

/// The available space.
#[derive(Debug)]
pub(crate) struct Space {
    all: Budget,
    /// The part of `all` for data.
    quota: Option<Budget>,
}

impl Space {
    /// Creates space of `cap` bytes, with at most `quota` for data.
    pub(crate) fn new(cap: u64, quota: Option<u64>) -> Space {
        Space {
            all: Budget::new(cap),
            quota: quota.map(Budget::new),
        }
    }

    /// The space for data in an empty file system, in bytes.
    pub(crate) fn cap(&self) -> u64 {
        let quota = self.quota.as_ref().map_or(u64::MAX, |quota| quota.cap);
        self.all.cap.min(quota)
    }

    /// The free space for data in bytes.
    pub(crate) fn free(&self) -> u64 {
        let quota = self.quota.as_ref().map_or(u64::MAX, Budget::free);
        self.all.free().min(quota)
    }

    /// The free space for anything except data, in bytes.
    pub(crate) fn free_for_inodes(&self) -> u64 {
        self.all.free()
    }

    /// True if data takes no more space than it needs, so that the quota is exact.
    pub(crate) fn is_exact(&self) -> bool {
        self.quota.is_some()
    }

    /// Takes `bytes` for anything except data: all or nothing.
    ///
    /// # Errors
    /// ENOSPC if less than that is free.
    pub(crate) fn take(&self, bytes: u64) -> Answer<()> {
        self.all.take(bytes)
    }

    /// Gives back `bytes` from [`Space::take`].
    pub(crate) fn give_back(&self, bytes: u64) {
        self.all.give_back(bytes);
    }

    /// Takes `bytes` for data: all or nothing.
    ///
    /// # Errors
    /// ENOSPC if less than that is free.
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

    /// Gives back `bytes` from [`Space::take_for_data`].
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
