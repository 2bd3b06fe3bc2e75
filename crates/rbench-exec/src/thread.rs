//! Blocking work that is not timed, besides the control plane.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use rbench_sys::waiting::start_family;
use tokio::sync::oneshot;

/// Work in a thread of its own. Dropping the value abandons the thread.
pub struct Helper<T> {
    /// The thread's number; 0 before it runs.
    thread: Arc<AtomicI32>,
    result: oneshot::Receiver<T>,
}

impl<T: Send + 'static> Helper<T> {
    /// Starts the work.
    ///
    /// # Errors
    /// A sentence when the thread cannot be started.
    pub fn start(work: impl FnOnce() -> T + Send + 'static) -> Result<Helper<T>, String> {
        let (sender, result) = oneshot::channel();
        let thread = Arc::<AtomicI32>::default();
        let here = Arc::clone(&thread);
        std::thread::Builder::new()
            .spawn(move || {
                here.store(start_family(), Ordering::Relaxed);
                // Nobody receives it if the thread was abandoned.
                let _ = sender.send(work());
            })
            .map_err(|e| format!("cannot start a helper thread: {e}"))?;
        Ok(Helper { thread, result })
    }

    /// Returns the number of the thread, if it runs already.
    pub fn thread(&self) -> Option<i32> {
        Some(self.thread.load(Ordering::Relaxed)).filter(|thread| *thread > 0)
    }

    /// Resolves with the result.
    ///
    /// # Errors
    /// A sentence when the thread panics.
    pub async fn result(&mut self) -> Result<T, String> {
        let result = (&mut self.result).await;
        result.map_err(|_| "a helper thread ended unexpectedly".to_owned())
    }
}

/// Runs blocking work besides the control plane.
///
/// # Errors
/// A sentence when the thread cannot be started or panics.
pub async fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    Helper::start(work)?.result().await
}
