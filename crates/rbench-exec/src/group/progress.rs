//! Progress of a phase: each rank reports to rank 0, which shows the sum.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use rbench_core::{Failure, Nanos, Rank};
use tokio::time::Instant;

use super::{Group, News, Word, fitting};

/// A rank that has sent nothing for this long, more than twice the time between two reports, had
/// nothing new to report.
const STALE: Duration = Duration::from_millis(1250);

/// Time after the common start from which progress is shown even if some ranks have reported
/// nothing yet.
const COMPLETE_WITHIN: Nanos = Nanos(2_000_000_000);

/// Progress of a phase, as rank 0 knows it: the last report of each rank, half a second old or
/// less.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// Operations done without error by all ranks.
    pub items: u64,
    /// Operations that failed, of all ranks, in this phase.
    pub failed: u64,
    /// Bytes that the done ones moved.
    pub bytes: u64,
    /// Operations planned by all ranks; `None` when time decides, or nobody knows.
    pub total: Option<u64>,
    /// Time since the common start; `None` before it.
    pub elapsed: Option<Nanos>,
    /// Operations done without error a second: the sum of the rates of the ranks, each over the
    /// time of its last report.
    pub rate: f64,
    /// Bytes a second, in the same way.
    pub bandwidth: f64,
    /// Time until the end at that rate, or until the deadline if that is sooner; `None` where
    /// neither is known.
    pub left: Option<Nanos>,
    /// With intended starts at a known rate: operations that were due, and not done yet.
    pub backlog: Option<u64>,
}

/// The last report of a rank.
#[derive(Debug, Clone, Copy)]
struct Told {
    items: u64,
    failed: u64,
    bytes: u64,
    /// Its time after the start; zero before it.
    elapsed: Nanos,
    at: Instant,
}

/// The progress of the present phase.
#[derive(Debug, Default)]
pub(crate) struct ProgressBook {
    ranks: RefCell<Vec<Option<Told>>>,
    total: Cell<Option<u64>>,
    /// Operations due in a second, over all ranks.
    pub offered: Cell<Option<f64>>,
    deadline: Cell<Option<Nanos>>,
    /// Its start, on this rank's clock.
    start: Cell<Option<Nanos>>,
    /// Bytes that this rank has moved.
    pub bytes: Cell<u64>,
    /// The last report to rank 0: items, failed ones.
    told: Cell<Option<(u64, u64)>>,
    /// This rank has reported a failed operation; at rank 0: has shown one.
    failure: Cell<bool>,
}

impl ProgressBook {
    /// A book for this many ranks.
    pub fn new(ranks: usize) -> ProgressBook {
        ProgressBook {
            ranks: RefCell::new(vec![None; ranks]),
            ..ProgressBook::default()
        }
    }

    /// A phase begins.
    pub fn begin(&self, total: Option<u64>, deadline: Option<Nanos>) {
        self.ranks.borrow_mut().fill(None);
        self.total.set(total);
        self.offered.set(None);
        self.deadline.set(deadline);
        self.start.set(None);
        self.bytes.set(0);
        self.told.set(None);
    }

    /// Items of a rank that are known to be done.
    pub fn items_of(&self, rank: Rank) -> u64 {
        self.ranks.borrow()[rank.0 as usize].map_or(0, |told| told.items)
    }

    /// Returns true if a rank is known to have tried anything in the phase.
    pub fn has_tried(&self, rank: Rank) -> bool {
        self.ranks.borrow()[rank.0 as usize].is_some_and(|told| told.items + told.failed > 0)
    }

    /// The sum `elapsed` after the start, at this instant; `None` until all ranks have reported.
    fn sum(&self, elapsed: Option<Nanos>, now: Instant) -> Option<Progress> {
        let ranks = self.ranks.borrow();
        // Equal parts: all ranks have as many workers.
        let share = |all: f64| all / ranks.len().max(1) as f64;
        let offered = self.offered.get().map(share);
        let most = self
            .total
            .get()
            .map_or(f64::MAX, |total| share(total as f64));
        let early = elapsed.is_some_and(|elapsed| elapsed <= COMPLETE_WITHIN);
        if early && ranks.iter().any(Option::is_none) {
            return None;
        }
        let mut sum = Progress {
            total: self.total.get(),
            elapsed,
            ..Progress::default()
        };
        for told in ranks.iter().flatten() {
            sum.items += told.items;
            sum.failed += told.failed;
            sum.bytes += told.bytes;
            // A rank with nothing new to report has done nothing since.
            let over = match elapsed {
                Some(elapsed) if now.duration_since(told.at) > STALE => elapsed,
                _ => told.elapsed,
            };
            if over > Nanos(0) {
                sum.rate += told.items as f64 / over.as_secs_f64();
                sum.bandwidth += told.bytes as f64 / over.as_secs_f64();
            }
            if let Some(offered) = offered {
                // None is due after the deadline.
                let over = self
                    .deadline
                    .get()
                    .map_or(over, |deadline| deadline.min(over));
                let due = (offered * over.as_secs_f64()).min(most) as u64;
                let missing = due.saturating_sub(told.items + told.failed);
                sum.backlog = Some(sum.backlog.unwrap_or(0) + missing);
            }
        }
        let by_count = sum.total.filter(|_| sum.rate > 0.0).map(|total| {
            let missing = total.saturating_sub(sum.items + sum.failed);
            Nanos((missing as f64 / sum.rate * 1e9) as u64)
        });
        let by_time = self.deadline.get().zip(elapsed);
        let by_time = by_time.map(|(deadline, elapsed)| deadline.since(elapsed));
        sum.left = [by_count, by_time].into_iter().flatten().min();
        Some(sum)
    }
}

impl Group<'_> {
    /// The work of the present phase starts at this instant of this rank's clock.
    pub fn begin_work(&self, start: Nanos) {
        self.progress.start.set(Some(start));
    }

    /// At rank 0: the present phase, whose total was unknown, has `more` to do than what was done.
    pub fn expect(&self, more: u64) {
        if self.is_root() && self.progress.total.get().is_none() {
            let ranks = self.progress.ranks.borrow();
            let done: u64 = ranks.iter().flatten().map(|told| told.items).sum();
            self.progress.total.set(Some(done.saturating_add(more)));
        }
    }

    /// Time since the start of the phase's work; `None` before it.
    pub(super) fn worked_for(&self) -> Option<Nanos> {
        let start = self.progress.start.get()?;
        let now = self.now();
        (now > start).then(|| now.since(start))
    }

    /// Tells rank 0 how far this rank is; rank 0 shows the sum.
    pub(super) fn tell(&self, done: u64) {
        let mine = self.rank();
        let failed = self.control.failed.borrow()[mine.0 as usize];
        let before = self.control.failed_before.get();
        let (bytes, elapsed) = (self.progress.bytes.get(), self.worked_for());
        let failed_now = failed - before.min(failed);
        let counts = [done, failed_now, bytes, elapsed.unwrap_or_default().0];
        self.hear_progress(mine, counts);
        self.look_at_failures(done, failed_now);
        self.check_errors();
        let news = Some((done, failed));
        if self.is_root() {
            if let Some(progress) = self.progress.sum(elapsed, Instant::now()) {
                self.show.progress(progress);
            }
        } else if self.progress.told.replace(news) != news {
            self.post_news(Rank(0), News::Progress { counts, failed });
        }
    }

    /// Takes a rank's report: items, failed operations, bytes, and ns since the start.
    pub(super) fn hear_progress(&self, from: Rank, words: [u64; 4]) {
        let [items, failed, bytes, elapsed] = words;
        self.progress.ranks.borrow_mut()[from.0 as usize] = Some(Told {
            items,
            failed,
            bytes,
            elapsed: Nanos(elapsed),
            at: Instant::now(),
        });
    }

    /// Tells people of the first operation that failed on this rank, unless another rank was
    /// first.
    pub fn tell_failure(&self, failure: &Failure) {
        if self.is_root() {
            let text = self.text_of(failure);
            self.show_failure(&text);
        } else if !self.progress.failure.replace(true) {
            let text = fitting(&self.text_of(failure));
            self.post(Rank(0), &Word::Failed(text));
        }
    }

    fn text_of(&self, failure: &Failure) -> String {
        let (rank, host) = (self.rank(), self.host_name());
        format!("the first failed operation: rank {rank} on {host}: {failure}")
    }

    /// At rank 0, once in a run.
    pub(super) fn show_failure(&self, text: &str) {
        if !self.progress.failure.replace(true) {
            self.show.failure(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A phase of two ranks: the report of each (items, failed, bytes, s), and its age.
    fn book(told: [Option<([u64; 3], u64, Duration)>; 2], now: Instant) -> ProgressBook {
        let book = ProgressBook::new(2);
        book.begin(Some(1000), Some(Nanos(60 * SECOND)));
        for (rank, told) in told.into_iter().enumerate() {
            let told = told.map(|([items, failed, bytes], seconds, ago)| Told {
                items,
                failed,
                bytes,
                elapsed: Nanos(seconds * SECOND),
                at: now - ago,
            });
            book.ranks.borrow_mut()[rank] = told;
        }
        book
    }

    /// The sum after this number of seconds of work.
    fn sum(book: &ProgressBook, seconds: u64, now: Instant) -> Progress {
        let elapsed = Nanos(seconds * SECOND);
        book.sum(Some(elapsed), now).expect("all told")
    }

    #[test]
    fn rates_of_ranks_over_their_own_times_are_added_up() {
        let now = Instant::now() + Duration::from_secs(100);
        let recent = Duration::from_millis(500);
        // The other rank's report is of a second before.
        let told = [
            Some(([80, 2, 8], 2, Duration::ZERO)),
            Some(([30, 0, 6], 1, recent)),
        ];
        let sum = sum(&book(told, now), 2, now);
        assert_eq!((sum.items, sum.failed, sum.bytes), (110, 2, 14));
        assert_eq!((sum.rate, sum.bandwidth), (40.0 + 30.0, 4.0 + 6.0));
        let left = (1000 - 112) as f64 / 70.0;
        assert_eq!(sum.left, Some(Nanos((left * 1e9) as u64)));
    }

    #[test]
    fn who_tells_nothing_new_has_done_nothing_since() {
        let now = Instant::now() + Duration::from_secs(100);
        let told = [
            Some(([80, 0, 0], 4, Duration::ZERO)),
            Some(([30, 0, 0], 1, Duration::from_secs(3))),
        ];
        assert_eq!(sum(&book(told, now), 4, now).rate, 20.0 + 7.5);
        // The deadline comes sooner than the items end.
        let late = sum(&book(told, now), 59, now);
        assert_eq!(late.left, Some(Nanos(SECOND)));
    }

    #[test]
    fn what_was_due_and_is_not_done_is_the_backlog_of_each_rank_by_its_own_time() {
        let now = Instant::now() + Duration::from_secs(100);
        let told = [
            Some(([80, 2, 0], 2, Duration::ZERO)),
            // Its report is a second old: fifty were due until then.
            Some(([6, 0, 0], 1, Duration::from_millis(500))),
        ];
        let book = book(told, now);
        let backlog = || sum(&book, 2, now).backlog;
        assert_eq!(backlog(), None, "no operation has an intended start");
        book.offered.set(Some(100.0));
        assert_eq!(backlog(), Some(100 - 82 + 50 - 6));
        book.total.set(Some(170));
        assert_eq!(backlog(), Some(85 - 82 + 50 - 6), "no more are planned");
    }

    #[test]
    fn nothing_is_shown_of_a_part_of_the_ranks_at_the_start() {
        let now = Instant::now() + Duration::from_secs(100);
        let half = || book([Some(([80, 0, 0], 1, Duration::ZERO)), None], now);
        assert_eq!(half().sum(Some(Nanos(SECOND)), now), None);
        assert_eq!(sum(&half(), 3, now).items, 80);
        // Before the start nothing is counted.
        assert!(half().sum(None, now).is_some());
    }
}
