//! Bytes moved over time, in intervals of equal length.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Bytes that were read and written in each stretch of a time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Moved {
    /// Length of an interval; 0: nothing is recorded.
    pub width: Nanos,
    /// Reads and writes of each interval, from the start on.
    pub bytes: Vec<[u64; 2]>,
    /// Time after the start at which the last byte was moved.
    pub end: Nanos,
}

impl Moved {
    /// Creates an empty record with intervals of this length.
    pub fn of(width: Nanos) -> Moved {
        Moved {
            width,
            bytes: Vec::new(),
            end: Nanos(0),
        }
    }

    /// Adds bytes that were moved evenly between `from` and `to`, both counted from the
    /// start. A transfer that takes no time belongs to the interval in which it is.
    pub fn add(&mut self, from: Nanos, to: Nanos, amounts: [u64; 2]) {
        let (width, span) = (self.width.0, to.since(from).0);
        if width == 0 || amounts == [0; 2] {
            return;
        }
        self.end = self.end.max(to);
        let last = to.0.max(from.0).saturating_sub(u64::from(span > 0)) / width;
        let first = from.0 / width;
        if self.bytes.len() <= last as usize {
            self.bytes.resize(last as usize + 1, [0; 2]);
        }
        // Shares are differences of cumulative sums, so that rounding loses nothing.
        let share = |amount: u64, until: u64| match span {
            0 => amount,
            span => (u128::from(amount) * u128::from(until) / u128::from(span)) as u64,
        };
        let mut before = [0; 2];
        for stretch in first..=last {
            let end = (stretch + 1).saturating_mul(width).min(to.0);
            let sums = amounts.map(|amount| share(amount, end.saturating_sub(from.0)));
            let held = &mut self.bytes[stretch as usize];
            for way in 0..2 {
                held[way] += sums[way] - before[way];
            }
            before = sums;
        }
    }

    /// Adds bytes that others moved in the same intervals.
    pub fn merge(&mut self, other: &Moved) {
        if self.width.0 == 0 {
            self.width = other.width;
        }
        self.end = self.end.max(other.end);
        if self.bytes.len() < other.bytes.len() {
            self.bytes.resize(other.bytes.len(), [0; 2]);
        }
        for (mine, theirs) in self.bytes.iter_mut().zip(&other.bytes) {
            mine[0] += theirs[0];
            mine[1] += theirs[1];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_moved_is_spread_over_its_time() {
        let mut moved = Moved::of(Nanos(100));
        moved.add(Nanos(50), Nanos(250), [200, 20]);
        assert_eq!(moved.bytes, [[50, 5], [100, 10], [50, 5]]);
        moved.add(Nanos(100), Nanos(200), [7, 0]);
        assert_eq!(moved.bytes[1], [107, 10]);
        moved.add(Nanos(300), Nanos(300), [1, 1]);
        assert_eq!(moved.bytes[3], [1, 1]);
        let mut other = Moved::default();
        other.merge(&moved);
        other.merge(&moved);
        assert_eq!((other.width, other.bytes[1]), (Nanos(100), [214, 20]));
        assert_eq!(other.end, Nanos(300));
        let mut none = Moved::default();
        none.add(Nanos(0), Nanos(9), [5, 5]);
        assert_eq!(none, Moved::default());
    }

    proptest! {
        #[test]
        fn nothing_is_lost(
            width in 1_u64..1_000,
            all in prop::collection::vec((0_u64..10_000, 0_u64..10_000, 0_u64..1 << 40), 0..20),
        ) {
            let mut moved = Moved::of(Nanos(width));
            for (from, span, amount) in &all {
                moved.add(Nanos(*from), Nanos(from + span), [*amount, 1]);
            }
            let sum: [u64; 2] = moved.bytes.iter().fold([0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
            prop_assert_eq!(sum, [all.iter().map(|(_, _, n)| n).sum(), all.len() as u64]);
        }
    }
}
