//! Locks that ignore poisoning (a panic in one request must not stop all others), and
//! maps split into shards so that threads rarely contend.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Locks `mutex`.
#[inline]
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks `lock` for reading.
#[inline]
pub(crate) fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks `lock` for writing.
#[inline]
pub(crate) fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// Shards of a [`Sharded`] map; a power of two.
const SHARDS: usize = 64;

/// A map from numbers, split into shards with a lock each.
#[derive(Debug)]
pub(crate) struct Sharded<V> {
    shards: Box<[RwLock<HashMap<u64, V>>]>,
}

impl<V> Default for Sharded<V> {
    fn default() -> Self {
        Sharded {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
        }
    }
}

impl<V> Sharded<V> {
    /// The shard of `key`. Keys are mostly consecutive numbers, so they are evenly
    /// spread.
    #[inline]
    pub(crate) fn shard(&self, key: u64) -> &RwLock<HashMap<u64, V>> {
        &self.shards[key as usize % SHARDS]
    }

    /// Puts `value` at `key`.
    pub(crate) fn insert(&self, key: u64, value: V) {
        write(self.shard(key)).insert(key, value);
    }

    /// Removes the value at `key`, and returns it.
    pub(crate) fn remove(&self, key: u64) -> Option<V> {
        write(self.shard(key)).remove(&key)
    }
}

impl<V: Clone> Sharded<V> {
    /// A copy of the value at `key`.
    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<V> {
        read(self.shard(key)).get(&key).cloned()
    }
}
