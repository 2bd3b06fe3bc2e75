//! Work beside the checks, in threads of this client's own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rbench_sys::between::{Step, load};

use crate::group::{ExecError, Group};

/// Threads of each client.
const THREADS: usize = 2;
/// Time limit for their end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Threads that work until they are stopped, or this is dropped.
pub(in crate::check) struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Step<u64>>>,
    /// Reason why one could not be started.
    wrong: Option<String>,
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Load {
    /// Starts them, each in a directory of its own below `target`.
    pub(in crate::check) fn start(group: &Group<'_>, target: &Path) -> Load {
        let (flag, stopped) = (Arc::new(AtomicBool::new(false)), group.stop_flag());
        let mut load_of = Load {
            stop: Arc::clone(&flag),
            threads: Vec::new(),
            wrong: None,
        };
        for number in 0..THREADS {
            let directory = target.join(format!("load-{}-{number}", group.rank()));
            let (flag, stopped) = (Arc::clone(&flag), stopped.clone());
            let thread = std::thread::Builder::new()
                .name("rbench-load".to_owned())
                .spawn(move || {
                    load(&directory, &|| {
                        flag.load(Ordering::Relaxed) || stopped.is_raised()
                    })
                });
            match thread {
                Ok(thread) => load_of.threads.push(thread),
                Err(e) => load_of.wrong = Some(format!("cannot start a thread: {e}")),
            }
        }
        load_of
    }

    /// Ends them: how many files they made, what went wrong, and whether one does not end.
    pub(in crate::check) async fn end(
        mut self,
        group: &Group<'_>,
    ) -> Result<(u64, Option<String>, bool), ExecError> {
        self.stop.store(true, Ordering::Relaxed);
        let (mut files, mut wrong, mut hangs) = (0, self.wrong.take(), false);
        for thread in std::mem::take(&mut self.threads) {
            let joined = group.within(PATIENCE, move || thread.join().ok()).await?;
            match joined.and_then(Result::ok).flatten() {
                Some(Ok(made)) => files += made,
                Some(Err(e)) => {
                    let text = format!("{} {}: {}", e.call, e.path.display(), e.seen);
                    wrong = Some(text);
                }
                None => hangs = true,
            }
        }
        Ok((files, wrong, hangs))
    }
}
