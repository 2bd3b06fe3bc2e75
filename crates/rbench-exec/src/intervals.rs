//! What the workers of all ranks did in each interval, on its way to rank 0 while a
//! phase still runs.
//!
//! Workers hand over what they did in an interval that is over. Each rank adds up what
//! its workers hand over within a moment, and passes the sum on: to the leader of its
//! host, leaders to rank 0. Whatever comes late, because a worker stood still, follows as
//! a further part: parts of the same interval are added up, in any order.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use rbench_core::Nanos;
use rbench_core::coarse::CoarseLatency;
use rbench_core::timeline::{Bin, IntervalPart, Latencies};
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long parts are collected before they are passed on.
const COLLECT: Duration = Duration::from_millis(50);

/// A row of the phase that runs.
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
    /// Whether there are response times.
    pub open_loop: bool,
}

/// Who takes at rank 0 what all ranks did in an interval, while the phase goes on.
pub trait Observer {
    /// A row in an interval of that length, or a part of it: parts are to be added up.
    fn interval(&self, row: &IntervalRow, interval: Nanos, part: &IntervalPart);
}

/// By row and interval.
type Parts = BTreeMap<(u64, u64), IntervalPart>;

/// What goes from one rank to another: words of a note, and more.
pub type Letter = ([u64; 3], Vec<u64>);

/// Numbers of a bin.
const BIN_WORDS: usize = 5;

/// The intervals of the present phase at one rank.
#[derive(Default)]
pub struct Intervals {
    observer: RefCell<Option<Rc<dyn Observer>>>,
    wanted: Cell<bool>,
    paused: Cell<bool>,
    rows: RefCell<Vec<IntervalRow>>,
    parts: RefCell<Parts>,
    since: Cell<Option<Instant>>,
    come: Notify,
    /// How many of those that pass parts on to this rank have passed on all.
    ended: Cell<u64>,
}

impl Intervals {
    /// From now on somebody takes them at rank 0.
    pub fn observe(&self, observer: Option<Rc<dyn Observer>>) {
        self.wanted.set(true);
        *self.observer.borrow_mut() = observer;
    }

    /// Whether nobody is told of the phases that follow.
    pub fn pause(&self, paused: bool) {
        self.paused.set(paused);
    }

    /// A phase begins; nobody is told of one without rows.
    pub fn begin(&self, rows: Vec<IntervalRow>) {
        *self.rows.borrow_mut() = rows;
        self.parts.borrow_mut().clear();
        self.since.set(None);
        self.ended.set(0);
    }

    /// Whether workers are to hand over the intervals of the present phase.
    pub fn wanted(&self) -> bool {
        self.wanted.get() && !self.paused.get() && !self.rows.borrow().is_empty()
    }

    /// Adds what a worker or another rank did.
    pub fn add(&self, row: u64, part: &IntervalPart) {
        let mut parts = self.parts.borrow_mut();
        let sum = parts.entry((row, part.number)).or_default();
        sum.number = part.number;
        sum.bin.merge(part.bin);
        sum.latencies.merge(&part.latencies);
        if self.since.get().is_none() {
            self.since.set(Some(Instant::now()));
            self.come.notify_waiters();
        }
    }

    /// Ready when parts have been collected long enough.
    pub async fn due(&self) {
        loop {
            let come = self.come.notified();
            match self.since.get() {
                Some(since) => return tokio::time::sleep_until(since + COLLECT).await,
                None => come.await,
            }
        }
    }

    fn take(&self) -> Parts {
        self.since.set(None);
        std::mem::take(&mut *self.parts.borrow_mut())
    }

    /// Tells the observer of all parts; at rank 0.
    pub fn tell(&self, interval: Nanos) {
        let (parts, rows) = (self.take(), self.rows.borrow());
        let observer = self.observer.borrow();
        for ((row, _), part) in &parts {
            let row = usize::try_from(*row).ok().and_then(|row| rows.get(row));
            if let (Some(observer), Some(row)) = (observer.as_ref(), row) {
                observer.interval(row, interval, part);
            }
        }
    }

    /// All parts as letters to the next rank on the way.
    pub fn letters(&self) -> Vec<Letter> {
        let parts = self.take();
        let letter = |((row, number), part): ((u64, u64), IntervalPart)| {
            let IntervalPart {
                number: _,
                bin,
                latencies: Latencies { service, response },
            } = part;
            let Bin {
                items,
                bytes,
                errors,
                first,
                last,
            } = bin;
            let mut more = vec![items, bytes, errors, first.0, last.0];
            more.extend(service.to_words());
            let responses = (!response.is_empty()).then(|| {
                let none = Bin::default();
                let mut more = vec![0, 0, 0, none.first.0, none.last.0];
                more.extend(response.to_words());
                ([row, number, 1], more)
            });
            std::iter::once(([row, number, 0], more)).chain(responses)
        };
        parts.into_iter().flat_map(letter).collect()
    }

    /// Adds what a letter tells; one that is not whole tells nothing.
    pub fn read(&self, [row, number, response]: [u64; 3], more: &[u64]) {
        let Some(([items, bytes, errors, first, last], words)) =
            more.split_first_chunk::<BIN_WORDS>()
        else {
            return;
        };
        let Some(latency) = CoarseLatency::from_words(words) else {
            return;
        };
        let (service, response) = match response {
            0 => (latency, CoarseLatency::default()),
            _ => (CoarseLatency::default(), latency),
        };
        let part = IntervalPart {
            number,
            bin: Bin {
                items: *items,
                bytes: *bytes,
                errors: *errors,
                first: Nanos(*first),
                last: Nanos(*last),
            },
            latencies: Latencies { service, response },
        };
        self.add(row, &part);
    }

    /// One more of those that pass parts on to this rank has passed on all.
    pub fn one_ended(&self) {
        self.ended.set(self.ended.get() + 1);
        self.come.notify_waiters();
    }

    /// Ready when that many have passed on all.
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
    use rbench_core::timeline::TimelineRecorder;
    use std::sync::{Arc, Mutex};

    fn row() -> IntervalRow {
        IntervalRow {
            iteration: 0,
            name: "read".to_owned(),
            label: "Read".to_owned(),
            op: "read",
            open_loop: true,
        }
    }

    /// What a worker with these operations hands over.
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
        fn interval(&self, _: &IntervalRow, _: Nanos, part: &IntervalPart) {
            let mut taken = self.0.borrow_mut();
            let sum = taken.entry(part.number).or_default();
            sum.bin.merge(part.bin);
            sum.latencies.merge(&part.latencies);
            sum.number = part.number;
        }
    }

    #[test]
    fn parts_that_come_by_letters_add_up_to_what_was_done() {
        let times: Vec<u64> = (0..400).map(|i| (i * 7919) % 5000).collect();
        let (root, taken) = (Intervals::default(), Rc::new(Taken::default()));
        root.observe(Some(taken.clone()));
        root.begin(vec![row()]);
        for share in times.chunks(90) {
            let rank = Intervals::default();
            rank.begin(vec![row()]);
            parts(share).iter().for_each(|part| rank.add(0, part));
            for (words, more) in rank.letters() {
                root.read(words, &more);
            }
            root.tell(Nanos(1000));
        }
        root.read([0, 9, 0], &[1, 2, 3]);
        root.tell(Nanos(1000));
        let mut whole: BTreeMap<u64, IntervalPart> = BTreeMap::new();
        for part in parts(&times) {
            let sum = whole.entry(part.number).or_default();
            sum.bin.merge(part.bin);
            sum.latencies.merge(&part.latencies);
            sum.number = part.number;
        }
        assert_eq!(*taken.0.borrow(), whole);
    }
}
