//! Use of the workers' time in a phase: in calls, in intended waits, or in the tool.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Nanos, seconds};

/// Number of words of [`Effort::to_words`].
pub const EFFORT_WORDS: usize = 7;

/// The time of the workers of a row, by its use, summed over them. Workers with operations in
/// several rows have all their time in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "WorkersResult")]
pub struct Effort {
    /// Workers that had such operations, those given up included.
    #[serde(rename = "count")]
    pub workers: u64,
    /// From each worker's actual start to the end of its last operation,
    /// without `waited_s`, s.
    // Or to the end of a wait after it. It excludes the pause in which a stonewall is agreed on.
    #[serde(rename = "active_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub active: Nanos,
    /// Waits for intended starts, think time, start delays and calls that only prepare operations, s.
    #[serde(rename = "waited_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub waited: Nanos,
    /// The part of `active_s` in which a timed call was in flight, s.
    // Successful or not: between the two clock readings of an operation. With several requests at
    // a time it is the time with at least one submitted and not yet completed request.
    #[serde(rename = "in_calls_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub in_calls: Nanos,
    /// Service times of all their operations, divided by the depth, s.
    // With several in flight, this includes untimed opening and closing. It is the time for which
    // all requests of a worker would have been in flight.
    #[serde(rename = "full_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub full: Nanos,
    /// Workers that were given up (`--op-timeout`).
    #[serde(skip)]
    pub given_up: u64,
    /// Operations that these workers had done without error; they are in no figure.
    #[serde(skip)]
    pub lost: u64,
}

impl Effort {
    /// Adds that of other workers.
    pub fn add(&mut self, other: Effort) {
        let (mine, theirs) = (self.to_words(), other.to_words());
        let sum = |at: usize| mine[at].saturating_add(theirs[at]);
        *self = Effort::from_words(std::array::from_fn(sum));
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

    /// Share of the workers' time, including waits, outside calls and waits; `None` if no time
    /// passed.
    pub fn outside(&self) -> Option<f64> {
        let outside = self.active.since(self.in_calls);
        share(outside, self.active.0.saturating_add(self.waited.0))
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
        assert_eq!(sum.outside(), Some(30.0 / 140.0));
        assert_eq!(Effort::default().busy(), None);
    }
}
