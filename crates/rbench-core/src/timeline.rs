//! What happened when: counts in bins of equal width from the common start.
//!
//! The bins start narrow and double their width when the last one is full, so
//! memory is fixed and between 512 and 1024 bins describe any run longer than
//! 34 ms. Widths are powers of two ns, so that a shift finds the bin.

use crate::units::Nanos;

/// Most bins that a timeline holds.
pub const BINS: usize = 1024;
/// log2 of the width in ns at the start: 66 us.
const FIRST_SHIFT: u32 = 16;

/// The counts of one bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bin {
    /// Operations that ended without error in the bin.
    pub items: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Operations that failed.
    pub errors: u64,
    /// The longest service time among them.
    pub max: Nanos,
}

impl Bin {
    fn merge(&mut self, other: Bin) {
        let Bin {
            items,
            bytes,
            errors,
            max,
        } = other;
        self.items += items;
        self.bytes += bytes;
        self.errors += errors;
        self.max = self.max.max(max);
    }
}

/// Bins of equal width from the common start on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// log2 of the width in ns.
    shift: u32,
    bins: Vec<Bin>,
}

impl Default for Timeline {
    fn default() -> Self {
        Timeline {
            shift: FIRST_SHIFT,
            bins: Vec::with_capacity(BINS),
        }
    }
}

impl Timeline {
    /// Adds an operation that ended at `at` after the common start. Does not
    /// allocate.
    #[inline]
    pub fn record(&mut self, at: Nanos, bin: Bin) {
        let mut index = (at.0 >> self.shift) as usize;
        while index >= BINS {
            self.double();
            index = (at.0 >> self.shift) as usize;
        }
        if index >= self.bins.len() {
            self.bins.resize(index + 1, Bin::default());
        }
        self.bins[index].merge(bin);
    }

    /// [`Timeline::record`] for one operation without error that moved `bytes`
    /// and took `service`.
    #[inline]
    pub fn record_done(&mut self, at: Nanos, bytes: u64, service: Nanos) {
        match self.bins.get_mut((at.0 >> self.shift) as usize) {
            Some(bin) => {
                bin.items += 1;
                bin.bytes += bytes;
                bin.max = bin.max.max(service);
            }
            // The first one of its bin.
            None => self.record(
                at,
                Bin {
                    items: 1,
                    bytes,
                    errors: 0,
                    max: service,
                },
            ),
        }
    }

    fn double(&mut self) {
        self.shift += 1;
        let half = self.bins.len().div_ceil(2);
        for i in 0..half {
            let mut bin = self.bins[2 * i];
            if let Some(next) = self.bins.get(2 * i + 1) {
                bin.merge(*next);
            }
            self.bins[i] = bin;
        }
        self.bins.truncate(half);
    }

    /// Makes the bins at least `width` wide (rounded up to a power of two ns).
    pub fn widen(&mut self, width: Nanos) {
        while self.width() < width {
            self.double();
        }
    }

    /// Makes the bins wide enough that at most `most` are left.
    pub fn shorten(&mut self, most: usize) {
        while self.bins.len() > most.max(1) {
            self.double();
        }
    }

    /// Lets go of room that no bin uses.
    pub fn shrink(&mut self) {
        self.bins.shrink_to_fit();
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Timeline) {
        self.widen(other.width());
        let mut other = other.clone();
        other.widen(self.width());
        let Timeline { shift: _, bins } = other;
        if self.bins.len() < bins.len() {
            self.bins.resize(bins.len(), Bin::default());
        }
        self.bins
            .iter_mut()
            .zip(bins)
            .for_each(|(mine, theirs)| mine.merge(theirs));
    }

    /// The width of each bin.
    pub fn width(&self) -> Nanos {
        Nanos(1 << self.shift)
    }

    /// The bins from the common start on; trailing empty ones are left out.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// When the `n`-th operation (from 1), failed ones counted, had ended;
    /// within a bin they are taken as evenly spread. `None` with fewer.
    pub fn when(&self, n: u64) -> Option<Nanos> {
        let mut before = 0_u64;
        for (i, bin) in self.bins.iter().enumerate() {
            let here = bin.items + bin.errors;
            if n <= before + here && here > 0 {
                let width = u128::from(self.width().0);
                let within = width * u128::from(n - before) / u128::from(here);
                return Some(Nanos(self.width().0 * i as u64 + within as u64));
            }
            before += here;
        }
        None
    }

    /// Puts a timeline together from bins of `width`, which must be a power of
    /// two ns of at least 2^16, with at most [`BINS`] bins; `None` otherwise.
    pub fn from_bins(width: Nanos, bins: Vec<Bin>) -> Option<Timeline> {
        let shift = width.0.trailing_zeros();
        let fits = bins.len() <= BINS && width.0.is_power_of_two() && shift >= FIRST_SHIFT;
        fits.then_some(Timeline { shift, bins })
    }

    /// Items done up to `at` after the common start, in a phase whose last
    /// operation ended at `end`; within a bin they are taken as evenly spread,
    /// in the last one up to `end`.
    pub fn done_by(&self, at: Nanos, end: Nanos) -> u64 {
        let width = self.width().0;
        let mut items = 0;
        for (start, bin) in (0..).step_by(width as usize).zip(&self.bins) {
            let span = width.min(end.0.saturating_sub(start)).max(1);
            let covered = at.0.saturating_sub(start).min(span);
            items += (u128::from(bin.items) * u128::from(covered) / u128::from(span)) as u64;
        }
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recorded(times: &[u64]) -> Timeline {
        let mut line = Timeline::default();
        for t in times {
            line.record_done(Nanos(*t), 10, Nanos(*t));
        }
        line
    }

    #[test]
    fn a_long_run_keeps_at_most_1024_bins_and_loses_nothing() {
        let times: Vec<u64> = (0..5000).map(|i| i * 7_000_000).collect();
        let line = recorded(&times);
        assert!(line.bins().len() <= BINS && line.bins().len() > BINS / 2 - 1);
        assert_eq!(line.bins().iter().map(|b| b.items).sum::<u64>(), 5000);
    }

    #[test]
    fn half_a_bin_counts_half() {
        let line = recorded(&[10_000, 20_000, 30_000, 40_000]);
        let whole = Nanos(1 << 20);
        assert_eq!(line.done_by(Nanos(1 << 15), whole), 2);
        assert_eq!(line.done_by(Nanos(1 << 16), whole), 4);
        assert_eq!(line.done_by(Nanos(0), whole), 0);
    }

    #[test]
    fn the_nth_operation_ended_where_as_many_were_done() {
        let line = recorded(&[10_000, 20_000, 30_000, 40_000, 1 << 20]);
        assert_eq!(line.when(2), Some(Nanos(1 << 15)));
        assert_eq!(line.when(4), Some(Nanos(1 << 16)));
        assert_eq!(line.when(5), Some(Nanos((1 << 20) + (1 << 16))));
        assert_eq!(line.when(6), None);
    }

    #[test]
    fn at_the_end_of_the_phase_everything_is_done() {
        let times: Vec<u64> = (1..=1000).map(|i| i * 777_777).collect();
        let (line, end) = (recorded(&times), Nanos(1000 * 777_777));
        assert_eq!(line.done_by(end, end), 1000);
        assert!((499..=501).contains(&line.done_by(Nanos(end.0 / 2), end)));
    }

    #[test]
    fn what_is_done_counts_as_a_bin_of_one() {
        let times = [5, 70_000, 70_001, 900_000_000, 3];
        let mut merged = Timeline::default();
        for t in times {
            let bin = Bin {
                items: 1,
                bytes: 10,
                errors: 0,
                max: Nanos(t),
            };
            merged.record(Nanos(t), bin);
        }
        assert_eq!(recorded(&times), merged);
    }

    proptest! {
        #[test]
        fn merging_equals_recording_all_in_one(
            x in prop::collection::vec(0_u64..20_000_000_000, 0..60),
            y in prop::collection::vec(0_u64..20_000_000_000, 0..60),
        ) {
            let mut merged = recorded(&x);
            merged.merge(&recorded(&y));
            let all: Vec<u64> = x.iter().chain(&y).copied().collect();
            prop_assert_eq!(merged, recorded(&all));
        }
    }
}
