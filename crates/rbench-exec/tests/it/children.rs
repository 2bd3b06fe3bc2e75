//! Programs that tests start, and file systems that count what is asked of them, are not there at
//! one time. A new process begins with a copy of all open files and closes them when it becomes
//! its program, and of each the file system hears (FLUSH): of those of every test that runs beside
//! it. It counted too many, and its faults hit requests that no worker had made.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

static THERE: Mutex<There> = Mutex::new(There {
    mounts: 0,
    starting: 0,
    waiting: 0,
});
static CHANGED: Condvar = Condvar::new();

/// Who is there: the one or the others.
struct There {
    mounts: u32,
    starting: u32,
    /// Tests that wait to start programs: they come before those that mount anew.
    waiting: u32,
}

fn there() -> MutexGuard<'static, There> {
    THERE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait(until: impl Fn(&There) -> bool) -> MutexGuard<'static, There> {
    let waited = CHANGED.wait_while(there(), |there| !until(there));
    waited.unwrap_or_else(PoisonError::into_inner)
}

/// As long as it is there, tests start no programs.
pub struct NoChildren(());

/// Waits for those that do, or are about to. A test may have several.
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

/// As long as it is there, its test may start programs.
pub struct Children(());

/// Waits for the file systems to end.
pub fn some() -> Children {
    there().waiting += 1;
    let mut there = wait(|there| there.mounts == 0);
    (there.waiting, there.starting) = (there.waiting - 1, there.starting + 1);
    drop(there);
    Children(())
}

impl Drop for Children {
    fn drop(&mut self) {
        there().starting -= 1;
        CHANGED.notify_all();
    }
}
