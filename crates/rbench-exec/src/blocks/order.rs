//! Requests that are not to run beside each other: those of overlapping blocks
//! (`serialize_overlap`), and those of a file that is locked (`lockfile`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rbench_core::Clock as _;
use rbench_plan::jobs::FileLock;

use super::{BlockRunner, Kind, Planned};
use crate::pace::{Gate, StopFlag};

/// Time between a worker's checks of the stop flag while it waits for blocks of others.
const SLEEP: std::time::Duration = std::time::Duration::from_micros(50);
/// Like `SLEEP`, for a wait that is woken.
const LOOKS: std::time::Duration = std::time::Duration::from_millis(10);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The content is consistent between any two calls.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A block of a file: key of the file's name, start and end.
type Range = (u64, u64, u64);

/// Blocks that requests are under way for, of one worker or of several.
#[derive(Debug, Default)]
pub struct InFlight(Mutex<Vec<Range>>);

impl InFlight {
    /// Takes the block, if it overlaps with none that is taken.
    fn take(&self, (file, from, to): Range) -> bool {
        let mut all = lock(&self.0);
        let overlaps = |other: &Range| other.0 == file && other.1 < to && from < other.2;
        let free = !all.iter().any(overlaps);
        if free {
            all.push((file, from, to));
        }
        free
    }

    fn give_back(&self, range: Range) {
        let mut all = lock(&self.0);
        if let Some(at) = all.iter().position(|other| *other == range) {
            all.swap_remove(at);
        }
    }
}

/// A lock of a file: of many who read, or of one.
#[derive(Debug, Default)]
pub struct Lock {
    holders: Mutex<Holders>,
    free: Condvar,
}

#[derive(Debug, Default)]
struct Holders {
    shared: u32,
    alone: bool,
}

impl Lock {
    /// Waits until it is free, unless the run is stopped: its holder may never release it. Returns true if
    /// it was taken.
    fn take(&self, alone: bool, stop: &StopFlag) -> bool {
        let mut holders = lock(&self.holders);
        while holders.alone || alone && holders.shared > 0 {
            if stop.is_raised() {
                return false;
            }
            let woken = self.free.wait_timeout(holders, LOOKS);
            (holders, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
        match alone {
            true => holders.alone = true,
            false => holders.shared += 1,
        }
        true
    }

    fn give_back(&self, alone: bool) {
        let mut holders = lock(&self.holders);
        match alone {
            true => holders.alone = false,
            false => holders.shared -= 1,
        }
        drop(holders);
        self.free.notify_all();
    }
}

/// The locks of all files of a process.
#[derive(Debug, Default)]
pub struct Locks(Mutex<BTreeMap<PathBuf, Arc<Lock>>>);

impl Locks {
    /// The lock of one file.
    pub(super) fn of(&self, path: &Path) -> Arc<Lock> {
        Arc::clone(lock(&self.0).entry(path.to_owned()).or_default())
    }
}

/// Order of a worker's requests, so that they do not run beside others.
#[derive(Debug)]
pub(super) struct Order {
    blocks: Option<Arc<InFlight>>,
    /// A lock for each file, and who shares it.
    locks: Vec<Arc<Lock>>,
    mode: FileLock,
    /// The locked file, and whether the lock is exclusive.
    held: Option<(u64, bool)>,
    /// The one operation has its block.
    took: bool,
}

impl Order {
    /// Files have one more, at `path`.
    pub(super) fn add(&mut self, locks: &Locks, path: &Path) {
        if self.locks() {
            self.locks.push(locks.of(path));
        }
    }

    /// The order of a worker; `None` where its requests may run beside any.
    pub(super) fn of(
        blocks: Option<Arc<InFlight>>,
        mode: FileLock,
        locks: Vec<Arc<Lock>>,
    ) -> Option<Box<Order>> {
        (blocks.is_some() || mode != FileLock::None).then(|| {
            Box::new(Order {
                blocks,
                locks,
                mode,
                held: None,
                took: false,
            })
        })
    }

    /// Returns true if each request goes to the kernel by itself.
    pub(super) fn locks(&self) -> bool {
        self.mode != FileLock::None
    }

    fn lock(&mut self, file: u64, kind: Kind, stop: &StopFlag) {
        let alone = match self.mode {
            FileLock::None => return,
            FileLock::Exclusive => true,
            FileLock::ReadWrite => matches!(kind, Kind::Write | Kind::Trim),
        };
        if let Some(lock) = self.locks.get(file as usize)
            && lock.take(alone, stop)
        {
            self.held = Some((file, alone));
        }
    }

    /// Gives back what is locked.
    pub(super) fn unlock(&mut self) {
        if let Some((file, alone)) = self.held.take()
            && let Some(lock) = self.locks.get(file as usize)
        {
            lock.give_back(alone);
        }
    }
}

impl BlockRunner {
    fn range(&self, what: &Planned) -> Range {
        let end = what.offset.saturating_add(what.length as u64);
        (self.files.place_key(what.file), what.offset, end)
    }

    /// Takes the block of an operation that is to start; whether that is free.
    #[cold]
    pub(super) fn take_block(&mut self, what: &Planned) -> bool {
        let range = self.range(what);
        let order = self.requests.order.as_ref();
        let blocks = order.and_then(|order| order.blocks.as_ref());
        blocks.is_none_or(|blocks| blocks.take(range))
    }

    /// Takes block and lock of an operation, and waits for those who have them. Whether
    /// it may start.
    #[cold]
    pub(super) fn take_its_turn(&mut self, what: &Planned, gate: &Gate) -> bool {
        while !self.take_block(what) {
            if gate.closed(gate.clock.now()) {
                return false;
            }
            std::thread::sleep(SLEEP);
        }
        if let Some(order) = &mut self.requests.order {
            order.took = true;
            order.lock(what.file, what.kind, &gate.stop);
        }
        true
    }

    /// The operation has ended, or does not start: what it took is free.
    #[cold]
    pub(super) fn end_its_turn(&mut self, what: &Planned) {
        self.unlock_file();
        let order = self.requests.order.as_mut();
        if order.is_some_and(|order| std::mem::take(&mut order.took)) {
            self.leave_block(what);
        }
    }

    /// Nothing of its own is in flight, but a block of somebody else's.
    #[cold]
    pub(super) fn let_others_end(&self) {
        std::thread::sleep(SLEEP);
    }

    /// Locks a file for an operation.
    #[cold]
    pub(super) fn lock_file(&mut self, file: u64, kind: Kind, gate: &Gate) {
        if let Some(order) = &mut self.requests.order {
            order.lock(file, kind, &gate.stop);
        }
    }

    /// Unlocks what was locked.
    #[cold]
    pub(super) fn unlock_file(&mut self) {
        if let Some(order) = &mut self.requests.order {
            order.unlock();
        }
    }

    /// The operation has ended, or does not start: its block is free.
    #[cold]
    pub(super) fn leave_block(&mut self, what: &Planned) {
        let range = self.range(what);
        let order = self.requests.order.as_ref();
        if let Some(blocks) = order.and_then(|order| order.blocks.as_ref()) {
            blocks.give_back(range);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn blocks_that_overlap_are_not_taken_twice() {
        let blocks = InFlight::default();
        assert!(blocks.take((1, 0, 4096)));
        assert!(!blocks.take((1, 4095, 8192)) && !blocks.take((1, 0, 1)));
        assert!(blocks.take((2, 0, 4096)) && blocks.take((1, 4096, 8192)));
        blocks.give_back((1, 0, 4096));
        assert!(blocks.take((1, 0, 512)));
    }

    #[test]
    fn who_writes_is_alone_and_who_reads_is_not() {
        let lock = Lock::default();
        let stop = StopFlag::default();
        assert!(lock.take(false, &stop) && lock.take(false, &stop));
        let (inside, seen) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        assert!(lock.take(true, &stop));
                        let others = inside.fetch_add(1, Ordering::SeqCst);
                        seen.fetch_max(others, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        lock.give_back(true);
                    }
                });
            }
            assert_eq!(inside.load(Ordering::SeqCst), 0, "two read");
            lock.give_back(false);
            lock.give_back(false);
        });
        assert_eq!(seen.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn after_a_stop_nobody_waits_for_who_may_never_give_back() {
        let (lock, stop) = (Lock::default(), StopFlag::default());
        assert!(lock.take(true, &stop));
        stop.raise();
        assert!(!lock.take(false, &stop));
    }
}
