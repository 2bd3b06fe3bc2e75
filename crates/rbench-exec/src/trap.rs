//! Triggers that end a run early, at rank 0: a time, or the appearance of a file.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rbench_sys::files::take_sign;
use tokio::time::{Instant, sleep_until};

/// Interval of checks for the file.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The awaited trigger; nothing until it is set, and again once it has happened.
#[derive(Debug, Default)]
pub struct Trap {
    /// Set by the thread that checks for the file: the file system may not answer, and the control
    /// plane must not wait for it.
    seen: RefCell<Option<Arc<AtomicBool>>>,
    at: Cell<Option<Instant>>,
    /// Time of the next check. It persists when a wait is cancelled and restarted.
    next: Cell<Option<Instant>>,
}

impl Trap {
    /// Starts waiting for `file` to exist, and for the end of `after`.
    ///
    /// # Errors
    /// A sentence when no thread can be started.
    pub fn set(&self, file: Option<PathBuf>, after: Option<Duration>) -> Result<(), String> {
        let now = Instant::now();
        let first = file.is_some().then_some(now);
        self.at.set(after.map(|after| now + after));
        self.next.set(first.or(self.at.get()));
        *self.seen.borrow_mut() = match file {
            Some(file) => Some(watch(file)?),
            None => None,
        };
        Ok(())
    }

    /// Resolves once it has happened; the file is removed if it is empty.
    pub async fn sprung(&self) {
        loop {
            let Some(next) = self.next.get() else {
                return std::future::pending().await;
            };
            sleep_until(next).await;
            let now = Instant::now();
            let seen = self
                .seen
                .borrow()
                .as_ref()
                .map(|s| s.load(Ordering::Relaxed));
            if seen == Some(true) || self.at.get().is_some_and(|at| at <= now) {
                self.next.set(None);
                drop(self.seen.take());
                return;
            }
            let look = seen.map(|_| now + LOOK_EVERY);
            self.next.set(look.into_iter().chain(self.at.get()).min());
        }
    }
}

/// Checks for the file until it exists, or nobody waits any more.
fn watch(file: PathBuf) -> Result<Arc<AtomicBool>, String> {
    let seen = Arc::new(AtomicBool::new(false));
    let told = Arc::downgrade(&seen);
    let look = move || {
        while told.strong_count() > 0 {
            if take_sign(&file) {
                if let Some(seen) = told.upgrade() {
                    seen.store(true, Ordering::Relaxed);
                }
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    };
    std::thread::Builder::new()
        .name("rbench-trigger".to_owned())
        .spawn(look)
        .map_err(|error| format!("--trigger-file: cannot start a thread: {error}"))?;
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn happens(trap: &Trap, within: Duration) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        let wait = async { tokio::time::timeout(within, trap.sprung()).await.is_ok() };
        runtime.expect("a runtime").block_on(wait)
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a temporary directory")]
    fn a_file_or_the_end_of_a_time_springs_it_once() {
        let short = Duration::from_millis(200);
        let trap = Trap::default();
        assert!(!happens(&trap, short), "nothing is waited for");
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("go");
        trap.set(Some(file.clone()), None).expect("a thread");
        assert!(!happens(&trap, short), "it is not there");
        std::fs::write(&file, "").expect("written");
        assert!(happens(&trap, Duration::from_secs(60)));
        assert!(!file.exists(), "it is removed");
        assert!(!happens(&trap, short), "once");
        trap.set(Some(file.clone()), Some(short)).expect("a thread");
        assert!(happens(&trap, Duration::from_secs(60)));
        std::thread::sleep(2 * LOOK_EVERY);
        std::fs::write(&file, "").expect("written");
        std::thread::sleep(4 * LOOK_EVERY);
        assert!(file.exists(), "nobody looks for it any more");
        // In one step: an empty file could be taken for a sign.
        let made = dir.path().join("made");
        std::fs::write(&made, "of the user's").expect("written");
        std::fs::rename(&made, &file).expect("renamed");
        trap.set(Some(file.clone()), None).expect("a thread");
        assert!(happens(&trap, Duration::from_secs(60)));
        assert!(file.exists(), "what holds anything stays");
    }
}
