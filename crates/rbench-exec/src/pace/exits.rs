//! Jobs that end others: whose workers stop when a worker of another one has come to its end. An
//! end has the number of a group of jobs, a round or an iteration.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::StopFlag;

/// The groups, rounds and iterations that have ended on any rank, and the jobs of this rank that
/// stop with them.
#[derive(Debug, Default)]
pub struct Exits {
    state: Mutex<State>,
    /// There are ends that were not reported to other ranks.
    news: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    ended: BTreeSet<u64>,
    untold: Vec<u64>,
    running: Vec<([u64; 3], StopFlag)>,
}

impl Exits {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here is left half done by a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on `stop` is raised when one of `with` ends, or at once where one has.
    pub fn enter(&self, with: [u64; 3], stop: StopFlag) {
        let mut state = self.state();
        if with.iter().any(|id| state.ended.contains(id)) {
            stop.raise();
        }
        state.running.push((with, stop));
    }

    /// Nobody runs any more.
    pub fn leave(&self) {
        self.state().running.clear();
    }

    /// A worker of this rank has ended it; to be reported to others.
    pub fn end(&self, id: u64) {
        let mut state = self.state();
        if state.end(id) {
            state.untold.push(id);
            self.news.store(true, Ordering::Relaxed);
        }
    }

    /// Another rank says that it has ended.
    pub fn heard(&self, id: u64) {
        self.state().end(id);
    }

    /// Takes the ends that were not reported to other ranks.
    pub fn news(&self) -> Vec<u64> {
        match self.news.swap(false, Ordering::Relaxed) {
            true => std::mem::take(&mut self.state().untold),
            false => Vec::new(),
        }
    }

    /// Returns true if it has ended.
    pub fn has_ended(&self, id: u64) -> bool {
        self.state().ended.contains(&id)
    }
}

impl State {
    /// Returns true if that is new.
    fn end(&mut self, id: u64) -> bool {
        let new = self.ended.insert(id);
        for (with, stop) in &self.running {
            if with.contains(&id) {
                stop.raise();
            }
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stops_with_what_ends_is_stopped_now_or_when_it_comes() {
        let exits = Exits::default();
        let flags = [
            StopFlag::default(),
            StopFlag::default(),
            StopFlag::default(),
        ];
        exits.enter([1, 10, 20], flags[0].clone());
        exits.enter([2, 10, 20], flags[1].clone());
        exits.end(1);
        exits.end(1);
        assert_eq!(exits.news(), [1]);
        assert!(exits.news().is_empty());
        exits.leave();
        exits.enter([1, 11, 20], flags[2].clone());
        let raised = flags.each_ref().map(StopFlag::is_raised);
        assert_eq!(raised, [true, false, true]);
        exits.heard(10);
        assert!(exits.news().is_empty(), "who told it knows it");
        assert!(exits.has_ended(10) && !exits.has_ended(20));
    }
}
