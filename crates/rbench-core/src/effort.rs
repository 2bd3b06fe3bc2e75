//! Use of the workers' time in a phase: in calls, in intended waits, or in the tool.

use crate::units::Nanos;

/// Number of words of [`Effort::to_words`].
pub const EFFORT_WORDS: usize = 7;

/// The time of the workers that had operations of a row, added up over them. A worker with
/// operations of several rows (reads and writes of a mix) counts its whole time in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effort {
    /// Workers with operations of the row, including those that were given up.
    pub workers: u64,
    /// Time from a worker's actual start to the end of its last operation, or of a wait after it.
    /// It excludes `waited` and the pause in which a stonewall is agreed on.
    pub active: Nanos,
    /// Waits for intended starts, think time, start delays, and calls that only prepare
    /// operations.
    pub waited: Nanos,
    /// The part of `active` during which a timed call was in flight, successful or not: between
    /// the two clock readings of an operation. With several requests at a time it is the time with
    /// at least one submitted and not yet completed request.
    pub in_calls: Nanos,
    /// Sum of the service times divided by the queue depth. With several in flight, this includes
    /// untimed opening and closing. It is the time for which all requests of a worker would have
    /// been in flight.
    pub full: Nanos,
    /// Workers that were given up (`--op-timeout`).
    pub given_up: u64,
    /// Operations that these workers had done without error; they are in no figure.
    pub lost: u64,
}

impl Effort {
    /// Adds that of other workers.
    pub fn add(&mut self, other: Effort) {
        let sum = |(mine, theirs): (u64, u64)| mine.saturating_add(theirs);
        let pairs = self.to_words().into_iter().zip(other.to_words());
        let mut words = [0; EFFORT_WORDS];
        for (word, pair) in words.iter_mut().zip(pairs) {
            *word = sum(pair);
        }
        *self = Effort::from_words(words);
    }

    /// Share of the workers' time, waits excluded, that was spent in calls, 0 to 1; `None` if no
    /// time passed.
    pub fn busy(&self) -> Option<f64> {
        share(self.in_calls, self.active.0)
    }

    /// Share of the workers' time, waits included, with a full queue: no further request could
    /// have been in flight, 0 to 1.
    pub fn occupied(&self) -> Option<f64> {
        share(self.full, self.active.0.saturating_add(self.waited.0))
    }

    /// Encodes the effort as words that add up over workers.
    pub fn to_words(self) -> [u64; EFFORT_WORDS] {
        let Effort {
            workers,
            active,
            waited,
            in_calls,
            full,
            given_up,
            lost,
        } = self;
        let times = [active, waited, in_calls, full].map(|time| time.0);
        let [active, waited, in_calls, full] = times;
        [workers, active, waited, in_calls, full, given_up, lost]
    }

    /// Decodes the sums of [`Effort::to_words`].
    pub fn from_words(words: [u64; EFFORT_WORDS]) -> Effort {
        let [workers, active, waited, in_calls, full, given_up, lost] = words;
        Effort {
            workers,
            active: Nanos(active),
            waited: Nanos(waited),
            in_calls: Nanos(in_calls),
            full: Nanos(full),
            given_up,
            lost,
        }
    }
}

fn share(part: Nanos, whole: u64) -> Option<f64> {
    (whole > 0).then(|| (part.0 as f64 / whole as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_sums_and_words_carry_every_field() {
        let one = Effort::from_words([1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(one.to_words(), [1, 2, 3, 4, 5, 6, 7]);
        let mut sum = Effort {
            active: Nanos(60),
            waited: Nanos(40),
            in_calls: Nanos(30),
            full: Nanos(20),
            ..Effort::default()
        };
        sum.add(Effort {
            active: Nanos(40),
            in_calls: Nanos(40),
            ..Effort::default()
        });
        assert_eq!(sum.busy(), Some(0.7));
        assert_eq!(sum.occupied(), Some(20.0 / 140.0));
        assert_eq!(Effort::default().busy(), None);
    }
}
