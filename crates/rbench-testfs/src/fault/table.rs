//! Selection of the requests that faults hit, and the number of times that each fault
//! has fired.

use std::sync::atomic::{AtomicU64, Ordering};

use rbench_core::random::{Stream, key};

use super::log::{FaultLog, FaultRecord};
use super::{Action, Fault};
use crate::kind::Kind;

/// A request that a fault hits. It only counts as fired when it is recorded
/// ([`FaultTable::fire`]), which is omitted if there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    fault: usize,
    pub(crate) action: Action,
    /// Number of the request among those of its kind, from 1.
    number: u64,
}

/// The active faults of a file system: counts the requests of the kinds with faults,
/// and records those that fired.
#[derive(Debug)]
pub(crate) struct FaultTable {
    seed: u64,
    faults: Vec<Fault>,
    /// How often each of `faults` has fired, and then each other injected effect, by its text.
    fired: Vec<(String, AtomicU64)>,
    /// For each kind, the indexes of its faults (usually none), and the number of
    /// requests.
    kinds: [(Vec<usize>, AtomicU64); Kind::COUNT],
    log: FaultLog,
}

/// Name of the effect that a quota is reached.
pub(crate) const QUOTA: &str = "quota";

/// Name of the effect of a power cut.
pub(crate) const POWER_CUT: &str = "power-cut";

impl FaultTable {
    pub(crate) fn new(faults: &[Fault], seed: u64, log: FaultLog) -> FaultTable {
        let of = |kind: usize| {
            (0..faults.len())
                .filter(|i| faults[*i].kind.index() == kind)
                .collect()
        };
        FaultTable {
            seed,
            faults: faults.to_vec(),
            fired: faults
                .iter()
                .map(|f| (f.to_string(), AtomicU64::new(0)))
                .collect(),
            kinds: std::array::from_fn(|kind| (of(kind), AtomicU64::new(0))),
            log,
        }
    }

    /// Adds another effect by its name.
    pub(crate) fn with(mut self, other: &'static str) -> FaultTable {
        self.fired.push((other.to_owned(), AtomicU64::new(0)));
        self
    }

    /// Counts a request of `kind`, and returns the faults that hit it, in the order
    /// in which they were given.
    #[inline]
    pub(crate) fn judge(&self, kind: Kind) -> Vec<Hit> {
        let (faults, seen) = &self.kinds[kind.index()];
        if faults.is_empty() {
            return Vec::new();
        }
        let number = seen.fetch_add(1, Ordering::Relaxed) + 1;
        let hits = |index: &&usize| {
            let draw = || key(&[self.seed, **index as u64, number]);
            self.faults[**index].trigger.hits(number, draw)
        };
        faults
            .iter()
            .filter(hits)
            .map(|index| Hit {
                fault: *index,
                action: self.faults[*index].action,
                number,
            })
            .collect()
    }

    /// The random numbers that decide where and how `hit` does damage.
    pub(crate) fn stream(&self, hit: Hit) -> Stream {
        const HARM: u64 = 1;
        Stream::new(&[self.seed, hit.fault as u64, hit.number, HARM])
    }

    /// Records that `hit` fired; `record` has the file and the position.
    pub(crate) fn fire(&self, hit: Hit, record: FaultRecord) {
        let (fault, (text, fired)) = (&self.faults[hit.fault], &self.fired[hit.fault]);
        self.log.add(FaultRecord {
            fault: text.clone(),
            kind: fault.kind.name().to_owned(),
            action: fault.action.to_string(),
            request: Some(hit.number),
            ..record
        });
        fired.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that `other` happened, which is not a fault of a kind of request.
    pub(crate) fn happened(&self, other: &'static str, record: FaultRecord) {
        let fault = other.to_owned();
        self.log.add(FaultRecord { fault, ..record });
        if let Some((_, count)) = self.fired.iter().find(|(text, _)| text == other) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Each fault with the number of requests for which it fired, and then the other effects.
    pub(crate) fn fired(&self) -> Vec<(String, u64)> {
        let count =
            |(text, fired): &(String, AtomicU64)| (text.clone(), fired.load(Ordering::Relaxed));
        self.fired.iter().map(count).collect()
    }

    /// The log of faults that fired.
    pub(crate) fn log(&self) -> &FaultLog {
        &self.log
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    fn table(faults: &[&str], seed: u64) -> FaultTable {
        let parse = |text: &&str| text.parse().expect("well formed");
        let faults: Vec<Fault> = faults.iter().map(parse).collect();
        FaultTable::new(&faults, seed, FaultLog::default())
    }

    /// The numbers of those of the first `n` reads that are hit.
    fn hit(text: &str, n: u64, seed: u64) -> Vec<u64> {
        let table = table(&[text], seed);
        let numbers: Vec<u64> = (0..n)
            .flat_map(|_| {
                // Requests of other kinds are not counted.
                assert_eq!(table.judge(Kind::Statfs), []);
                table.judge(Kind::Read)
            })
            .map(|hit| {
                table.fire(hit, FaultRecord::default());
                hit.number
            })
            .collect();
        assert_eq!(table.fired(), [(text.to_owned(), numbers.len() as u64)]);
        let records = table.log().records();
        let booked: Vec<u64> = records.iter().filter_map(|r| r.request).collect();
        assert_eq!(booked, numbers);
        assert!(records.iter().all(|r| r.fault == text && r.kind == "read"));
        numbers
    }

    #[test]
    fn triggers_hit_the_requests_they_name() {
        assert_eq!(hit("read:EIO@nth=3", 10, 0), [3]);
        assert_eq!(hit("read:stall=1s@after=8", 10, 0), [9, 10]);
        assert_eq!(hit("read:EIO@p=1", 3, 0), [1, 2, 3]);
    }

    #[test]
    fn a_probability_holds_on_average_and_belongs_to_the_seed() {
        let share = hit("read:EIO@p=0.05", 100_000, 1).len() as f64 / 100_000.0;
        assert!((share - 0.05).abs() < 0.004, "{share}");
        let draw = |seed| hit("read:EIO@p=0.5", 64, seed);
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn several_faults_hit_one_request_in_the_order_given() {
        let table = table(&["read:flip@nth=1", "read:hang@nth=2", "read:EIO@nth=1"], 0);
        let actions = || -> Vec<Action> {
            let hits = table.judge(Kind::Read);
            hits.iter().map(|hit| hit.action).collect()
        };
        assert_eq!(actions(), [Action::Flip, Action::Fail(Errno::EIO)]);
        assert_eq!(actions(), [Action::Hang]);
    }

    #[test]
    fn what_is_hit_but_not_booked_has_not_fired() {
        let table = table(&["read:stale@p=1"], 0);
        assert_eq!(table.judge(Kind::Read).len(), 1);
        assert_eq!(table.fired()[0].1, 0);
        assert_eq!(table.log().records(), []);
    }
}
