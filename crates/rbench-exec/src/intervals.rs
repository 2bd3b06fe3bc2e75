//! Work of all ranks' workers in each interval, sent to rank 0 while a phase still runs.
//!
//! Workers hand over their work of a finished interval. Each rank sums up the work of its workers
//! for a moment, and passes the sum on: to the leader of its host, leaders to rank 0. Late work of
//! a stalled worker follows as a further part: parts of the same interval are summed, in any order.
//! Rank 0 waits a moment after the end of an interval, to report it mostly as one part.
//!
//! In a phase that ends when its rate is steady, ranks also report the interval before which
//! everything was passed on: rank 0 judges only whole intervals.

mod judge;
mod passed;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use rbench_core::steady::Steadiness;
use rbench_core::timeline::IntervalPart;
use rbench_core::{Nanos, Rank};
use tokio::sync::Notify;
use tokio::time::Instant;

pub use judge::Judge;
pub use passed::Passed;

/// Time for collecting parts before passing them on.
const COLLECT: Duration = Duration::from_millis(50);

/// Time that rank 0 waits for parts after the end of an interval, and after a late part: parts of
/// other hosts are collected twice on their way.
const SETTLE: Duration = Duration::from_millis(250);

/// A row of the running phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntervalRow {
    /// The pass over all phases, from 0.
    pub iteration: u32,
    /// For machines: `file-create`.
    pub name: String,
    /// For people: `File creation`.
    pub label: String,
    /// Name of the kind of operation.
    pub op: &'static str,
    /// Set if there are response times.
    pub open_loop: bool,
    /// Set if it is reported only at the end, and only if it took long.
    pub aside: bool,
}

/// Time of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The common start of its phase, on rank 0's clock.
    pub start: Nanos,
    /// The length of all intervals.
    pub interval: Nanos,
    /// Its own length: the last interval of a phase ends at the last operation.
    pub length: Nanos,
}

/// Receiver, at rank 0, of the work of all ranks in an interval, while the phase runs.
pub trait Observer {
    /// Called when a phase with these rows and this interval starts.
    fn begun(&self, _rows: &[IntervalRow], _interval: Nanos) {}

    /// Takes a row's work in an interval, or a part of it: parts are to be summed.
    fn interval(&self, row: &IntervalRow, span: Span, part: &IntervalPart);

    /// Takes a host's work in an interval, or a part of it, as soon as rank 0 has it. The parts of
    /// all hosts sum up to the parts of [`Observer::interval`].
    fn of_host(&self, _host: &str, _row: &IntervalRow, _interval: Nanos, _part: &IntervalPart) {}

    /// Takes the CPU time that a rank's process has used up to now. The leader of a host with a
    /// watched client adds the client's.
    fn used(&self, _rank: Rank, _host: &str, _tool: Nanos, _client: Option<Nanos>) {}
}

/// Known work of an interval, and the time since when.
struct Held {
    since: Instant,
    part: IntervalPart,
}

/// Parts by row and interval.
type Parts = BTreeMap<(u64, u64), Held>;

/// The common start of the present phase.
#[derive(Debug, Clone, Copy)]
struct Begun {
    /// On rank 0's clock.
    at: Nanos,
    /// Like `at`, as an instant of this rank.
    here: Instant,
}

/// A message from rank to rank: the number of a row, and its work. A note has room for one
/// distribution.
pub type Letter = (u64, IntervalPart);

/// The intervals of the current phase at one rank.
#[derive(Default)]
pub struct Intervals {
    observer: RefCell<Option<Rc<dyn Observer>>>,
    /// On all ranks: an observer watches the phases, and also wants the use of the processes.
    pub looked_on: Cell<bool>,
    wanted: Cell<bool>,
    /// Set while the phases are not reported.
    pub paused: Cell<bool>,
    rows: RefCell<Vec<IntervalRow>>,
    interval: Cell<Nanos>,
    begun: Cell<Option<Begun>>,
    parts: RefCell<Parts>,
    /// The last reported interval.
    newest: Cell<Option<u64>>,
    come: Notify,
    /// Number of senders to this rank that have passed on everything.
    ended: Cell<u64>,
    /// In a judged phase: its progress, and since when it is unreported.
    passed: RefCell<Option<Passed>>,
    news_since: Cell<Option<Instant>>,
    /// At rank 0: the judge, and whether the phase has just become steady.
    judge: RefCell<Option<Judge>>,
    pub(crate) verdict: Cell<bool>,
}

impl Intervals {
    /// Sets the receiver at rank 0.
    pub fn observe(&self, observer: Option<Rc<dyn Observer>>) {
        self.wanted.set(true);
        *self.observer.borrow_mut() = observer;
    }

    /// At rank 0: reports the use of a rank and its host's client to the observer.
    pub fn tell_used(&self, rank: Rank, host: &str, tool: Nanos, client: Option<Nanos>) {
        if let Some(observer) = self.observer.borrow().as_ref() {
            observer.used(rank, host, tool, client);
        }
    }

    /// At rank 0: reports the work of a host to the observer.
    pub fn tell_host(&self, host: &str, row: u64, part: &IntervalPart) {
        if !self.looked_on.get() || !self.told() {
            return;
        }
        let rows = self.rows.borrow();
        let row = usize::try_from(row).ok().and_then(|row| rows.get(row));
        if let (Some(row), Some(observer)) = (row, self.observer.borrow().as_ref()) {
            observer.of_host(host, row, self.interval.get(), part);
        }
    }

    /// Starts a phase with this interval; one without rows is not reported.
    pub fn begin(&self, rows: Vec<IntervalRow>, interval: Nanos) {
        *self.rows.borrow_mut() = rows;
        self.interval.set(interval);
        self.begun.set(None);
        self.parts.borrow_mut().clear();
        self.newest.set(None);
        self.ended.set(0);
        *self.passed.borrow_mut() = None;
        *self.judge.borrow_mut() = None;
        self.news_since.set(None);
        self.verdict.set(false);
    }

    /// Marks the starting phase as judged: at rank 0, by `judge`.
    pub fn judge_by(&self, passed: Passed, judge: Option<Judge>) {
        *self.passed.borrow_mut() = Some(passed);
        *self.judge.borrow_mut() = judge;
    }

    /// At rank 0: sets the start of all workers, on its clock and as the instant `here`.
    pub fn started(&self, at: Nanos, here: Instant) {
        self.begun.set(Some(Begun { at, here }));
        if let Some(observer) = self.observer.borrow().as_ref()
            && self.told()
        {
            observer.begun(&self.told_rows(), self.interval.get());
        }
    }

    /// Returns the rows of the current phase that may be reported.
    pub fn told_rows(&self) -> Vec<IntervalRow> {
        if self.paused.get() {
            return Vec::new();
        }
        let rows = self.rows.borrow();
        rows.iter().filter(|row| !row.aside).cloned().collect()
    }

    /// Returns whether intervals of the current phase are reported.
    fn told(&self) -> bool {
        self.wanted.get() && !self.paused.get() && !self.rows.borrow().is_empty()
    }

    /// Returns whether the current phase is judged.
    pub fn judged(&self) -> bool {
        self.passed.borrow().is_some()
    }

    /// Returns whether workers hand over the intervals of the current phase.
    pub fn wanted(&self) -> bool {
        self.told() || self.judged()
    }

    /// Adds work of a worker or another rank.
    pub fn add(&self, row: u64, part: &IntervalPart) {
        if let Some(judge) = self.judge.borrow_mut().as_mut() {
            judge.add(row, part.number, &part.bin);
        }
        let mut parts = self.parts.borrow_mut();
        let since = Instant::now();
        let held = parts.entry((row, part.number)).or_insert_with(|| Held {
            since,
            part: IntervalPart::default(),
        });
        held.part.number = part.number;
        held.part.bin.merge(part.bin);
        held.part.latencies.merge(&part.latencies);
        if held.since == since {
            self.come.notify_waiters();
        }
    }

    /// Returns the time to pass on the known work of an interval.
    fn due_at(&self, held: &Held) -> Instant {
        if self.observer.borrow().is_none() {
            return held.since + COLLECT;
        }
        let end = self.begun.get().and_then(|begun| {
            let after = self.interval.get().0.checked_mul(held.part.number + 1)?;
            begun.here.checked_add(Duration::from_nanos(after))
        });
        end.map_or(held.since, |end| end.max(held.since)) + SETTLE
    }

    fn first_due(&self) -> Option<Instant> {
        let parts = self.parts.borrow();
        let parts_due = parts.values().map(|held| self.due_at(held));
        let news_due = self.news().and(self.news_since.get());
        parts_due.chain(news_due.map(|since| since + COLLECT)).min()
    }

    /// Away from rank 0: returns the progress of all senders to this rank, if it is to be passed on
    /// now.
    fn news(&self) -> Option<u64> {
        let held = self.parts.borrow().keys().map(|(_, number)| *number).min();
        let passed = self.passed.borrow();
        let passed = passed.as_ref().filter(|_| self.judge.borrow().is_none());
        passed?.news(held)
    }

    /// Returns the same, once, and marks it as passed on.
    pub fn take_passed(&self) -> Option<u64> {
        let upto = self.news()?;
        if let Some(passed) = self.passed.borrow_mut().as_mut() {
            passed.tell(upto);
        }
        self.news_since.set(None);
        Some(upto)
    }

    /// Records that a worker has handed over all work before that interval.
    pub fn worker_passed(&self, worker: u32, interval: u64) {
        self.note_passed(|passed| passed.worker(worker, interval));
    }

    /// Records that a rank has passed on all work before that interval.
    pub fn rank_passed(&self, rank: Rank, interval: u64) {
        self.note_passed(|passed| passed.rank(rank, interval));
    }

    fn note_passed(&self, note: impl FnOnce(&mut Passed)) {
        let mut passed = self.passed.borrow_mut();
        let Some(passed) = passed.as_mut() else {
            return;
        };
        note(passed);
        // All have ended: work that no longer happens is not part of the rate.
        let all = Some(passed.all()).filter(|all| *all < u64::MAX);
        if let (Some(judge), Some(all)) = (self.judge.borrow_mut().as_mut(), all)
            && judge.complete(all)
        {
            self.verdict.set(true);
        }
        if self.news_since.get().is_none() {
            self.news_since.set(Some(Instant::now()));
        }
        self.come.notify_waiters();
    }

    /// Returns the verdict on a finished phase, at rank 0. It ran up to its `deadline` after the
    /// common start, or to its end; `None`: it was stopped.
    pub fn found(&self, over: Option<Option<Nanos>>) -> Option<Steadiness> {
        let mut judge = self.judge.borrow_mut();
        let judge = judge.as_mut()?;
        if let Some(deadline) = over {
            judge.end(deadline);
        }
        Some(judge.found())
    }

    /// Resolves when it is time to pass on the known work of some interval.
    pub async fn due(&self) {
        loop {
            let come = self.come.notified();
            match self.first_due() {
                None => come.await,
                Some(first) => tokio::select! {
                    () = tokio::time::sleep_until(first) => return,
                    () = come => {}
                },
            }
        }
    }

    /// Takes out the work to pass on `now`: everything when the phase is `over`.
    fn take(&self, over: bool, now: Instant) -> BTreeMap<(u64, u64), IntervalPart> {
        let mut parts = self.parts.borrow_mut();
        let due = parts.extract_if(.., |_, held| over || self.due_at(held) <= now);
        due.map(|(key, held)| (key, held.part)).collect()
    }

    /// Reports all due work to the observer; at rank 0. `over`: the phase has ended.
    pub fn tell(&self, over: bool) {
        self.tell_at(over, Instant::now());
    }

    fn tell_at(&self, over: bool, now: Instant) {
        let (parts, rows) = (self.take(over, now), self.rows.borrow());
        if !self.told() {
            return;
        }
        let observer = self.observer.borrow();
        let (Some(observer), Some(begun)) = (observer.as_ref(), self.begun.get()) else {
            return;
        };
        let told = self.newest.get();
        let newest = parts.keys().map(|(_, number)| *number).max().max(told);
        self.newest.set(newest);
        let interval = self.interval.get();
        let ends = parts.values().map(|part| part.bin.last).max();
        for ((row, number), part) in &parts {
            let row = usize::try_from(*row).ok().and_then(|row| rows.get(row));
            let length = match ends {
                // An interval reported earlier had ended, whatever part of it comes late.
                Some(end) if over && told < Some(*number) && newest == Some(*number) => {
                    let begins = Nanos(interval.0.saturating_mul(*number));
                    end.since(begins).min(interval)
                }
                _ => interval,
            };
            let span = Span {
                start: begun.at,
                interval,
                length,
            };
            if let Some(row) = row {
                observer.interval(row, span, part);
            }
        }
    }

    /// Returns the work to pass on, as letters to the next rank on the way; everything when the
    /// phase is `over`.
    pub fn letters(&self, over: bool) -> Vec<Letter> {
        let parts = self.take(over, Instant::now());
        let letter = |((row, number), mut part): ((u64, u64), IntervalPart)| {
            let response = std::mem::take(&mut part.latencies.response);
            let mut responses = IntervalPart {
                number,
                ..IntervalPart::default()
            };
            responses.latencies.response = response;
            let responses = (!responses.latencies.response.is_empty()).then_some((row, responses));
            std::iter::once((row, part)).chain(responses)
        };
        parts.into_iter().flat_map(letter).collect()
    }

    /// Records that one more sender to this rank has passed on everything.
    pub fn one_ended(&self) {
        self.ended.set(self.ended.get() + 1);
        self.come.notify_waiters();
    }

    /// Resolves when that many have passed on everything.
    pub async fn all_ended(&self, expected: u64) {
        loop {
            let come = self.come.notified();
            if self.ended.get() >= expected {
                return;
            }
            come.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rbench_core::timeline::{Bin, TimelineRecorder};
    use std::sync::{Arc, Mutex};

    fn row() -> IntervalRow {
        IntervalRow {
            iteration: 0,
            name: "read".to_owned(),
            label: "Read".to_owned(),
            op: "read",
            open_loop: true,
            aside: false,
        }
    }

    /// Returns the parts that a worker with these operations hands over.
    fn parts(times: &[u64]) -> Vec<IntervalPart> {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&taken);
        let mut recorder = TimelineRecorder::new(Nanos(1000), true);
        recorder.hand_over_to(Box::new(move |part| {
            into.lock().expect("nobody panics").push(part);
        }));
        for at in times {
            recorder.done(Nanos(*at), 8, Nanos(*at % 77), Some(Nanos(*at % 99)));
        }
        recorder.finish();
        std::mem::take(&mut *taken.lock().expect("nobody panics"))
    }

    #[derive(Default)]
    struct Taken(RefCell<BTreeMap<u64, IntervalPart>>);

    impl Observer for Taken {
        fn interval(&self, _: &IntervalRow, _: Span, part: &IntervalPart) {
            add_to(&mut self.0.borrow_mut(), part);
        }
    }

    fn add_to(sums: &mut BTreeMap<u64, IntervalPart>, part: &IntervalPart) {
        let sum = sums.entry(part.number).or_default();
        sum.bin.merge(part.bin);
        sum.latencies.merge(&part.latencies);
        sum.number = part.number;
    }

    #[test]
    fn parts_that_come_by_letters_add_up_to_what_was_done() {
        let times: Vec<u64> = (0..400).map(|i| (i * 7919) % 5000).collect();
        let (root, taken) = (Intervals::default(), Rc::new(Taken::default()));
        root.observe(Some(taken.clone()));
        root.begin(vec![row()], Nanos(1000));
        root.started(Nanos(0), Instant::now());
        for share in times.chunks(90) {
            let rank = Intervals::default();
            rank.begin(vec![row()], Nanos(1000));
            parts(share).iter().for_each(|part| rank.add(0, part));
            for (row, part) in rank.letters(true) {
                root.add(row, &part);
            }
            root.tell(true);
        }
        let mut whole: BTreeMap<u64, IntervalPart> = BTreeMap::new();
        for part in parts(&times) {
            add_to(&mut whole, &part);
        }
        assert_eq!(*taken.0.borrow(), whole);
    }

    /// A part with one item.
    fn part(number: u64, last: u64) -> IntervalPart {
        IntervalPart {
            number,
            bin: Bin {
                items: 1,
                first: Nanos(last),
                last: Nanos(last),
                ..Bin::default()
            },
            ..IntervalPart::default()
        }
    }

    #[derive(Default)]
    struct Told(RefCell<Vec<(u64, Span)>>);

    impl Observer for Told {
        fn interval(&self, _: &IntervalRow, span: Span, part: &IntervalPart) {
            self.0.borrow_mut().push((part.number, span));
        }
    }

    #[test]
    fn an_interval_is_told_of_after_its_end_and_the_last_one_ends_with_the_phase() {
        let (root, told) = (Intervals::default(), Rc::new(Told::default()));
        root.observe(Some(told.clone()));
        let second = Nanos(1_000_000_000);
        root.begin(vec![row()], second);
        let begun = Instant::now() - Duration::from_secs(2);
        root.started(Nanos(77), begun);
        root.add(0, &part(0, 900_000_000));
        let first = Instant::now();
        root.add(0, &part(2, 2_100_000_000));
        root.tell_at(false, begun + Duration::from_secs(2));
        assert_eq!(*told.0.borrow(), [], "more may come of both");
        root.tell_at(false, first + SETTLE);
        let span = |length| Span {
            start: Nanos(77),
            interval: second,
            length,
        };
        assert_eq!(*told.0.borrow(), [(0, span(second))], "the third goes on");
        root.add(0, &part(2, 2_300_000_000));
        root.add(0, &part(1, 1_900_000_000));
        root.tell(true);
        let ended = (2, span(Nanos(300_000_000)));
        assert_eq!(told.0.borrow()[1..], [(1, span(second)), ended]);
    }

    #[test]
    fn a_late_part_of_an_interval_that_was_told_of_does_not_make_it_shorter() {
        let (root, told) = (Intervals::default(), Rc::new(Told::default()));
        root.observe(Some(told.clone()));
        let second = Nanos(1_000_000_000);
        root.begin(vec![row()], second);
        root.started(Nanos(0), Instant::now() - Duration::from_secs(2));
        root.add(0, &part(0, 990_000_000));
        root.tell_at(false, Instant::now() + SETTLE);
        root.add(0, &part(0, 430_000_000));
        root.tell(true);
        let told = told.0.borrow();
        let lengths: Vec<Nanos> = told.iter().map(|(_, span)| span.length).collect();
        assert_eq!(lengths, [second, second]);
    }
}
