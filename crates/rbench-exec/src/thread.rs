//! Blocking work that is not timed, besides the control plane.

use tokio::sync::oneshot;

/// Runs blocking work besides the control plane.
///
/// # Errors
/// A sentence when the thread cannot be started or panics.
pub async fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let (sender, receiver) = oneshot::channel();
    std::thread::Builder::new()
        .name("rbench-untimed".to_owned())
        .spawn(move || {
            // The receiver lives as long as the run.
            let _ = sender.send(work());
        })
        .map_err(|e| format!("cannot start a helper thread: {e}"))?;
    receiver
        .await
        .map_err(|_| "a helper thread ended unexpectedly".to_owned())
}
