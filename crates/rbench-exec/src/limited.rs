//! Blocking work besides the control plane that is given up if it takes too long: calls of a file
//! system that may never answer.

use std::time::Duration;

use crate::group::{ExecError, Group};
use crate::thread::in_thread;

/// Works in a thread, for at most this time; `None`: it takes longer, and its thread is abandoned.
///
/// # Errors
/// When the thread cannot be started, or the ranks cannot communicate.
pub(crate) async fn limited<T: Send + 'static>(
    group: &Group<'_>,
    longest: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>, ExecError> {
    let found = tokio::time::timeout(longest, in_thread(work));
    let found = group.attend(found, || 0).await?;
    match found {
        Ok(done) => done.map(Some).map_err(ExecError::SetUp),
        Err(_) => Ok(None),
    }
}
