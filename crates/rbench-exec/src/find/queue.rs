//! Directories that the workers of a rank have still to read.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use crate::pace::Gate;

/// Time for which a worker without work waits before it checks the queue again.
const PAUSE: Duration = Duration::from_micros(200);

#[derive(Debug, Default)]
struct Inside {
    /// The latest first, so that few wait.
    waiting: Vec<PathBuf>,
    /// Workers that may still add some.
    busy: u32,
    /// The rank's own directories were added.
    begun: bool,
}

/// The queue that the workers of a rank share; at first empty, and without workers.
#[derive(Debug, Default)]
pub struct Queue(Mutex<Inside>);

impl Queue {
    /// A worker takes part: it may add directories. All do so before the first one asks
    /// for any.
    pub fn join(&self) {
        if let Ok(mut inside) = self.0.lock() {
            inside.busy += 1;
        }
    }

    /// Adds the rank's own directories, which every worker of it knows: those of the first
    /// that comes count.
    pub fn begin(&self, own: Vec<PathBuf>) {
        if let Ok(mut inside) = self.0.lock()
            && !std::mem::replace(&mut inside.begun, true)
        {
            inside.waiting.extend(own);
        }
    }

    /// Adds directories.
    pub fn add(&self, directories: impl IntoIterator<Item = PathBuf>) {
        if let Ok(mut inside) = self.0.lock() {
            inside.waiting.extend(directories);
        }
    }

    /// The next one for a worker that is done with what it had; `None` when no worker has
    /// any left, and after a stop.
    pub fn next(&self, gate: &Gate) -> Option<PathBuf> {
        let mut idle = false;
        loop {
            {
                let mut inside = self.0.lock().ok()?;
                if gate.stop.is_raised() {
                    return None;
                }
                if let Some(directory) = inside.waiting.pop() {
                    inside.busy += u32::from(idle);
                    return Some(directory);
                }
                inside.busy -= u32::from(!idle);
                idle = true;
                if inside.busy == 0 {
                    return None;
                }
            }
            std::thread::sleep(PAUSE);
        }
    }
}
