//! Several workers at a time, each with its own model.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::super::did::Breach;
use super::super::ground::Ground;
use super::{OPERATIONS, Subject, run};

/// Number of workers.
const WORKERS: usize = 4;
/// Numbers of a worker's objects: the first one, and those for minimising a failure.
pub(super) const SUBJECTS: usize = 1 << 20;

/// The worker of an object, and the number of the object in it.
pub(super) fn whose(number: usize) -> (usize, usize) {
    (number / SUBJECTS, number % SUBJECTS)
}

/// Lets each worker perform its share of the operations. Returns the failure of the first
/// one.
pub(super) fn check<S: Subject>(g: &Ground) -> Result<(), Breach> {
    const STEP: Duration = Duration::from_millis(5);
    let ended = AtomicBool::new(false);
    let ends = || ended.load(Ordering::Relaxed);
    let results: Vec<Result<usize, Breach>> = std::thread::scope(|scope| {
        let work = |worker: usize| {
            let (shared, ends) = (g.shared.clone(), &ends);
            scope.spawn(move || {
                let own = shared.ground(worker, ends);
                run::<S>(&own, worker * SUBJECTS, OPERATIONS / WORKERS)
            })
        };
        let threads: Vec<_> = (0..WORKERS).map(work).collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            ended.fetch_or(g.stopped(), Ordering::Relaxed);
            std::thread::sleep(STEP);
        }
        let failed = |_| Err(g.undecided("", "the check itself failed"));
        let ends = threads.into_iter().map(|thread| thread.join());
        ends.map(|end| end.unwrap_or_else(failed)).collect()
    });
    let mut done = 0;
    for result in results {
        done += result?;
    }
    g.note(format!(
        "{done} of {OPERATIONS} operations by {WORKERS} workers"
    ));
    Ok(())
}
