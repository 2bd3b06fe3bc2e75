//! Maps split into shards so that threads rarely contend.

use std::collections::HashMap;

use parking_lot::RwLock;

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
        self.shard(key).write().insert(key, value);
    }

    /// Removes the value at `key`, and returns it.
    pub(crate) fn remove(&self, key: u64) -> Option<V> {
        self.shard(key).write().remove(&key)
    }
}

impl<V: Clone> Sharded<V> {
    /// A copy of the value at `key`.
    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<V> {
        self.shard(key).read().get(&key).cloned()
    }
}
