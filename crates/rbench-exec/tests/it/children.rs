//! Mutual exclusion of tests that start programs and tests that mount a counting file system. A new
//! process starts with copies of all open files and closes them on exec. For each of them the file
//! system receives a FLUSH, even if another test runs on it. Such requests would be counted, and
//! would trigger faults meant for workers.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

static THERE: Mutex<There> = Mutex::new(There {
    mounts: 0,
    starting: 0,
    waiting: 0,
});
static CHANGED: Condvar = Condvar::new();

/// Number of mounts, and of tests that start programs; one of both is 0.
struct There {
    mounts: u32,
    starting: u32,
    /// Tests that wait to start programs; they take precedence over new mounts.
    waiting: u32,
}

fn there() -> MutexGuard<'static, There> {
    THERE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait(until: impl Fn(&There) -> bool) -> MutexGuard<'static, There> {
    let waited = CHANGED.wait_while(there(), |there| !until(there));
    waited.unwrap_or_else(PoisonError::into_inner)
}

/// While this value exists, no test starts a program.
pub struct NoChildren(());

/// Waits for tests that start programs or are about to. A test may hold several values.
pub fn none() -> NoChildren {
    wait(|there| there.mounts > 0 || there.starting + there.waiting == 0).mounts += 1;
    NoChildren(())
}

impl Drop for NoChildren {
    fn drop(&mut self) {
        there().mounts -= 1;
        CHANGED.notify_all();
    }
}

/// While this value exists, its test may start programs.
pub struct Children(());

/// Waits until no file system is mounted.
pub fn some() -> Children {
    there().waiting += 1;
    let mut counts = wait(|counts| counts.mounts == 0);
    (counts.waiting, counts.starting) = (counts.waiting - 1, counts.starting + 1);
    drop(counts);
    Children(())
}

impl Drop for Children {
    fn drop(&mut self) {
        there().starting -= 1;
        CHANGED.notify_all();
    }
}
