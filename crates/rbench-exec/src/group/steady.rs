//! Ending a phase on all ranks when the rate of all of them together is steady.

use rbench_core::{Nanos, Rank};

use super::{Group, News, Word};
use crate::intervals::{Judge, Passed};

impl Group<'_> {
    /// The phase that begins is judged: each worker of this rank says how far it is.
    pub fn judge_by(&self, judge: Judge, workers: u32) {
        let passed = Passed::of(workers, self.before_on_the_way());
        let judge = self.is_root().then_some(judge);
        self.probes.intervals.judge_by(passed, judge);
    }

    /// The ranks that tell this one of their intervals.
    fn before_on_the_way(&self) -> Vec<Rank> {
        if !self.is_leader() {
            return Vec::new();
        }
        let mine = self.host_number();
        let mut led = vec![false; self.host_names.len()];
        let mut all = Vec::new();
        for (rank, host) in self.host_of.iter().enumerate() {
            let leads = !std::mem::replace(&mut led[*host as usize], true);
            let here = *host == mine && !leads;
            let elsewhere = self.is_root() && *host != mine && leads;
            if here || elsewhere {
                all.push(Rank(rank as u32));
            }
        }
        all
    }

    /// Tells the next rank on the way how far this one is, if that is news.
    pub(super) fn tell_passed(&self) {
        if let Some(upto) = self.probes.intervals.take_passed() {
            self.post_news(self.next_on_the_way(), News::Passed(upto));
        }
    }

    /// A worker of this rank has handed over all that it did before that interval.
    pub fn worker_passed(&self, worker: u32, interval: u64) {
        self.probes.intervals.worker_passed(worker, interval);
        self.end_if_steady();
    }

    /// At rank 0: ends the phase a little later, on all ranks at the same instant, when it
    /// has just become steady.
    pub(super) fn end_if_steady(&self) {
        if !self.probes.intervals.verdict.replace(false) {
            return;
        }
        if let Some(start) = self.time.starts_here.get() {
            let after = Nanos(self.now().since(start).0.saturating_add(self.lead().0));
            self.end_phase(after);
            self.post_to_others(&Word::News(self.phase_number.get(), News::PhaseEnd(after)));
        }
    }

    /// Ends the workers of this rank like at a deadline, `after` the common start.
    pub(super) fn end_phase(&self, after: Nanos) {
        if let Some(start) = self.time.starts_here.get() {
            let at = Nanos(start.0.saturating_add(after.0));
            self.control.phase_stop.borrow().end_at(at);
        }
    }
}
