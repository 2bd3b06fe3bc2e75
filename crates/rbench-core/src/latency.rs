//! The latency recorder: an HDR histogram with a fixed range. Its merge is exact in
//! any order.
//!
//! The bucket layout is HdrHistogram's for lowest value 1, highest value one hour and
//! 3 significant digits. So the counts carry over one to one into the standard
//! encoding (written by `hist`). Sum and sum of squares are integers: mean and
//! standard deviation do not depend on the order of recording or merging.

use std::iter::repeat_n;
use std::ops::Range;

use crate::units::Nanos;

/// log2 of the number of linear steps in each power-of-two bucket; 3 significant
/// digits need 2048 steps.
const STEP_BITS: u32 = 11;
const HALF_STEPS: usize = 1 << (STEP_BITS - 1);

/// Largest value that is recorded in a bucket: one hour.
pub const HIGHEST: Nanos = Nanos(3_600_000_000_000);

/// Number of buckets: one for every index of a value up to [`HIGHEST`], rounded up to
/// whole powers of two like HdrHistogram.
pub const BUCKETS: usize = 33 * HALF_STEPS;

/// Number of words of [`Latency::sums`].
pub const SUM_WORDS: usize = 9;

/// Index of the bucket of a value.
#[inline(always)]
pub(crate) fn index_of(ns: u64) -> usize {
    // 53 = 64 - STEP_BITS: values below 2048 have a bucket each.
    let shift = (64 - STEP_BITS) - (ns | ((1 << STEP_BITS) - 1)).leading_zeros();
    ((shift as usize) << (STEP_BITS - 1)) + (ns >> shift) as usize
}

/// The largest value of the bucket `index`.
pub(crate) fn highest_of(index: usize) -> u64 {
    if index < 2 * HALF_STEPS {
        return index as u64;
    }
    let shift = (index >> (STEP_BITS - 1)) - 1;
    let step = (index - (shift << (STEP_BITS - 1))) as u64;
    ((step + 1) << shift) - 1
}

/// The smallest value of the bucket `index`.
pub(crate) fn lowest_of(index: usize) -> u64 {
    if index < 2 * HALF_STEPS {
        return index as u64;
    }
    let shift = (index >> (STEP_BITS - 1)) - 1;
    ((index - (shift << (STEP_BITS - 1))) as u64) << shift
}

/// The buckets from that of `min` to that of `max`, as far as they exist.
fn span(min: u64, max: u64) -> Range<usize> {
    let first = index_of(min).min(BUCKETS);
    first..(index_of(max) + 1).clamp(first, BUCKETS)
}

/// A distribution of latencies in ns, from 0 to one hour with 3 significant digits.
/// Larger values are counted in [`Latency::above`].
///
/// [`Latency::new`] has room for every value. Clones, defaults, and merged or decoded
/// distributions have room for their own values only: for few or similar ones a small
/// part of the 270 KB.
#[derive(Debug)]
pub struct Latency {
    /// The buckets from `first` on; all others are empty.
    counts: Box<[u64]>,
    first: usize,
    /// Values above [`HIGHEST`].
    above: u64,
    sum: u128,
    sum_of_squares: u128,
    min: u64,
    max: u64,
}

impl Default for Latency {
    /// An empty distribution without room: recording into it allocates.
    fn default() -> Self {
        Latency {
            counts: Box::default(),
            first: 0,
            above: 0,
            sum: 0,
            sum_of_squares: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl Clone for Latency {
    fn clone(&self) -> Latency {
        Latency {
            counts: self.held().into(),
            first: self.span().start,
            ..*self
        }
    }
}

impl PartialEq for Latency {
    /// True if the same values were recorded, within the width of buckets.
    fn eq(&self, other: &Latency) -> bool {
        let Latency {
            counts: _,
            first: _,
            above,
            sum,
            sum_of_squares,
            min,
            max,
        } = self;
        (above, sum, sum_of_squares) == (&other.above, &other.sum, &other.sum_of_squares)
            && (min, max) == (&other.min, &other.max)
            && self.held() == other.held()
    }
}

impl Eq for Latency {}

impl Latency {
    /// An empty distribution with room for every value.
    pub fn new() -> Latency {
        Latency {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            ..Latency::default()
        }
    }

    /// Adds one value. Does not allocate if there is room for it.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        let ns = value.0;
        let index = index_of(ns).wrapping_sub(self.first);
        match self.counts.get_mut(index) {
            Some(count) if ns <= HIGHEST.0 => *count += 1,
            _ => self.record_outside(ns),
        }
        let wide = u128::from(ns);
        self.sum += wide;
        self.sum_of_squares += wide * wide;
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// Counts a value that has no bucket yet.
    #[cold]
    fn record_outside(&mut self, ns: u64) {
        // A value above the range needs room, too: it widens the span.
        self.make_room(0..BUCKETS);
        match self.counts.get_mut(index_of(ns)) {
            Some(count) if ns <= HIGHEST.0 => *count += 1,
            _ => self.above += 1,
        }
    }

    /// Ensures that there are buckets for `span`, in addition to those in use.
    fn make_room(&mut self, span: Range<usize>) {
        let own = self.first..self.first + self.counts.len();
        if span.is_empty() || (own.start <= span.start && span.end <= own.end) {
            return;
        }
        let used = self.span();
        let all = match used.is_empty() {
            true => span,
            false => used.start.min(span.start)..used.end.max(span.end),
        };
        let mut counts = vec![0; all.len()];
        if !used.is_empty() {
            let start = used.start - all.start;
            counts[start..start + used.len()].copy_from_slice(self.held());
        }
        (self.counts, self.first) = (counts.into_boxed_slice(), all.start);
    }

    /// Frees the room for values that it does not hold.
    pub fn shrink(&mut self) {
        *self = self.clone();
    }

    /// Adds everything in `other`.
    pub fn merge(&mut self, other: &Latency) {
        let Latency {
            counts: _,
            first: _,
            above,
            sum,
            sum_of_squares,
            min,
            max,
        } = other;
        // The span of both. With one value above the range it reaches the end of the
        // range.
        self.make_room(span(self.min.min(*min), self.max.max(*max)));
        let start = other.span().start.saturating_sub(self.first);
        for (mine, theirs) in self.counts.iter_mut().skip(start).zip(other.held()) {
            *mine += theirs;
        }
        self.above += above;
        self.sum += sum;
        self.sum_of_squares += sum_of_squares;
        self.min = self.min.min(*min);
        self.max = self.max.max(*max);
    }

    /// The buckets from that of the smallest value to that of the largest, as far as
    /// they exist. All others are empty.
    pub fn span(&self) -> Range<usize> {
        span(self.min, self.max)
    }

    /// The counts of [`Latency::span`].
    fn held(&self) -> &[u64] {
        let span = self.span();
        match span.is_empty() {
            true => &[],
            false => &self.counts[span.start - self.first..span.end - self.first],
        }
    }

    /// Number of values, including those above the range.
    pub fn count(&self) -> u64 {
        self.held().iter().sum::<u64>() + self.above
    }

    /// True if nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.max == 0 && self.min == u64::MAX
    }

    /// Number of values above [`HIGHEST`], which have no bucket.
    pub fn above(&self) -> u64 {
        self.above
    }

    /// The smallest value, exact; zero when empty.
    pub fn min(&self) -> Nanos {
        Nanos(if self.is_empty() { 0 } else { self.min })
    }

    /// The largest value, exact; zero when empty.
    pub fn max(&self) -> Nanos {
        Nanos(self.max)
    }

    /// The sum of all values; exact up to five hundred years, where it saturates.
    pub fn total(&self) -> Nanos {
        Nanos(u64::try_from(self.sum).unwrap_or(u64::MAX))
    }

    /// The arithmetic mean in ns, from the exact sum; zero when empty.
    pub fn mean_ns(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            n => self.sum as f64 / n as f64,
        }
    }

    /// The population standard deviation in ns, from the exact sums.
    pub fn stddev_ns(&self) -> f64 {
        let n = u128::from(self.count());
        if n == 0 {
            return 0.0;
        }
        // n·Σx² − (Σx)² is an exact integer if it fits: no cancellation.
        match (
            self.sum_of_squares.checked_mul(n),
            self.sum.checked_mul(self.sum),
        ) {
            (Some(a), Some(b)) => (a.saturating_sub(b) as f64).sqrt() / n as f64,
            _ => {
                let mean = self.mean_ns();
                (self.sum_of_squares as f64 / n as f64 - mean * mean)
                    .max(0.0)
                    .sqrt()
            }
        }
    }

    /// The value at `quantile` (0 to 1): the largest value of the bucket with the
    /// ⌈quantile·count⌉-th smallest one, at most the maximum. Zero when empty.
    pub fn quantile(&self, quantile: f64) -> Nanos {
        let count = self.count();
        if count == 0 {
            return Nanos(0);
        }
        let wanted = ((quantile * count as f64).ceil() as u64).clamp(1, count);
        let mut seen = 0;
        let span = self.span();
        for (index, n) in span.zip(self.held()) {
            seen += n;
            // `wanted` is at least 1, so an empty bucket is never chosen.
            if seen >= wanted {
                return Nanos(highest_of(index).min(self.max));
            }
        }
        Nanos(self.max)
    }

    /// The buckets in use, as (index, count), ascending.
    pub fn used(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let span = self.span();
        let counts = self.held().iter().copied();
        span.zip(counts).filter(|(_, n)| *n > 0)
    }

    /// The buckets in use, as (lowest value, highest value, count), ascending.
    pub fn ranges(&self) -> impl Iterator<Item = (Nanos, Nanos, u64)> + '_ {
        self.used()
            .map(|(i, n)| (Nanos(lowest_of(i)), Nanos(highest_of(i)), n))
    }

    /// The counts of `buckets` (at most [`BUCKETS`]), for a reduction to add up.
    pub fn counts(&self, buckets: Range<usize>) -> impl Iterator<Item = u64> + '_ {
        let end = self.first + self.counts.len();
        let [from, to] = [self.first, end].map(|place| place.clamp(buckets.start, buckets.end));
        let held = match from < to {
            true => &self.counts[from - self.first..to - self.first],
            false => &[],
        };
        let (before, after) = (from - buckets.start, buckets.end - to);
        repeat_n(0, before)
            .chain(held.iter().copied())
            .chain(repeat_n(0, after))
    }

    /// The scalar part, for a reduction to add up: `above`, and both sums in 32-bit
    /// pieces. So 2^32 of them can be added without overflow.
    pub fn sums(&self) -> [u64; SUM_WORDS] {
        sums(self.above, self.exact_sums())
    }

    /// Smallest and largest value as stored (`u64::MAX` and 0 when empty), for a
    /// reduction to take their minimum and maximum.
    pub fn extremes(&self) -> (u64, u64) {
        (self.min, self.max)
    }

    /// Builds a distribution from the results of a reduction: buckets from `first`
    /// on, [`Latency::sums`] and [`Latency::extremes`]. Buckets past the last one are
    /// ignored; `None` if one outside the extremes is not empty.
    pub fn from_parts(
        first: usize,
        counts: &[u64],
        sums: [u64; SUM_WORDS],
        extremes: (u64, u64),
    ) -> Option<Latency> {
        let mut all = Latency::default();
        let (min, max) = extremes;
        let span = span(min, max);
        all.make_room(span.clone());
        (all.min, all.max) = extremes;
        for (index, n) in (first..BUCKETS).zip(counts) {
            match span.contains(&index) {
                true => all.counts[index - all.first] = *n,
                false if *n > 0 => return None,
                false => {}
            }
        }
        all.above = sums[0];
        all.sum = joined(&sums[1..5]);
        all.sum_of_squares = joined(&sums[5..9]);
        Some(all)
    }

    /// Builds a distribution from one value and the count of each bucket, the number
    /// of values above the range, [`Latency::exact_sums`] and [`Latency::extremes`].
    /// `None` if a value lies above the range or outside the extremes.
    pub fn from_buckets(
        buckets: &[(Nanos, u64)],
        above: u64,
        exact_sums: [u128; 2],
        extremes: (u64, u64),
    ) -> Option<Latency> {
        let mut counts = vec![0; BUCKETS];
        for (value, n) in buckets {
            let count: &mut u64 = counts.get_mut(index_of(value.0))?;
            *count = count.checked_add(*n)?;
        }
        Latency::from_parts(0, &counts, sums(above, exact_sums), extremes)
    }

    /// The sums of all values in ns and of their squares, exact.
    pub fn exact_sums(&self) -> [u128; 2] {
        [self.sum, self.sum_of_squares]
    }

    /// Encodes the distribution as words: scalars, then two words for each used
    /// bucket. [`Latency::from_words`] reads them.
    pub fn to_words(&self) -> Vec<u64> {
        let mut words = Vec::with_capacity(SUM_WORDS + 2 + 64);
        words.extend_from_slice(&self.sums());
        words.extend([self.min, self.max]);
        for (index, n) in self.used() {
            words.extend([index as u64, n]);
        }
        words
    }

    /// Reads the words of [`Latency::to_words`]; `None` if they are malformed.
    pub fn from_words(words: &[u64]) -> Option<Latency> {
        let (sums, rest) = words.split_first_chunk::<SUM_WORDS>()?;
        let ([min, max], pairs) = rest.split_first_chunk::<2>()?;
        let mut all = Latency::from_parts(0, &[], *sums, (*min, *max))?;
        let span = all.span();
        for pair in pairs.chunks(2) {
            let [index, n] = pair else { return None };
            let index = usize::try_from(*index).ok().filter(|i| span.contains(i))?;
            all.counts[index - all.first] = *n;
        }
        Some(all)
    }
}

/// The words of [`Latency::sums`].
pub(crate) fn sums(above: u64, exact_sums: [u128; 2]) -> [u64; SUM_WORDS] {
    let [s, q] = exact_sums.map(pieces);
    [above, s[0], s[1], s[2], s[3], q[0], q[1], q[2], q[3]]
}

/// A sum in 32-bit pieces, so that 2^32 of them can be added without overflow.
pub fn pieces(sum: u128) -> [u64; 4] {
    [0, 32, 64, 96].map(|shift| ((sum >> shift) & 0xffff_ffff) as u64)
}

/// The sum of several sums, from their added [`pieces`].
pub fn joined(pieces: &[u64]) -> u128 {
    pieces.iter().enumerate().fold(0_u128, |sum, (i, piece)| {
        sum.wrapping_add(u128::from(*piece).wrapping_shl(32 * i as u32))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recorded(values: &[u64]) -> Latency {
        let mut all = Latency::new();
        values.iter().for_each(|v| all.record(Nanos(*v)));
        all
    }

    fn counts_of(all: &Latency) -> Vec<u64> {
        all.counts(0..BUCKETS).collect()
    }

    /// Values spread evenly over the magnitudes, with the ends of the range and
    /// values beyond it.
    fn latency() -> impl Strategy<Value = u64> {
        prop_oneof![
            (0_u32..43, any::<u64>()).prop_map(|(bits, x)| x & ((1 << bits) - 1)),
            Just(0),
            Just(HIGHEST.0),
            Just(HIGHEST.0 + 1),
            Just(HIGHEST.0 * 5),
        ]
    }

    fn hdr(values: &[u64]) -> hdrhistogram::Histogram<u64> {
        let mut h =
            hdrhistogram::Histogram::new_with_bounds(1, HIGHEST.0, 3).expect("valid bounds");
        values.iter().for_each(|v| h.record(*v).expect("in range"));
        h
    }

    #[test]
    fn the_number_of_buckets_is_hdrhistograms() {
        assert_eq!(hdr(&[]).distinct_values(), BUCKETS);
    }

    #[test]
    fn values_above_an_hour_are_counted_and_not_clamped() {
        let all = recorded(&[5, HIGHEST.0 + 1]);
        assert_eq!(
            (all.count(), all.above(), all.max()),
            (2, 1, Nanos(HIGHEST.0 + 1))
        );
        assert_eq!(all.quantile(1.0), Nanos(HIGHEST.0 + 1));
    }

    #[test]
    fn what_lies_above_the_range_alone_is_merged_into_any_other() {
        let above = recorded(&[HIGHEST.0 * 5]);
        for values in [&[][..], &[0], &[700, 900], &[HIGHEST.0]] {
            let mut both = values.to_vec();
            both.push(HIGHEST.0 * 5);
            let (mut merged, mut other) = (recorded(values).clone(), above.clone());
            merged.merge(&above);
            other.merge(&recorded(values));
            assert_eq!((&merged, &other), (&recorded(&both), &recorded(&both)));
            assert_eq!(merged.count(), both.len() as u64);
            assert_eq!(merged.quantile(1.0), Nanos(HIGHEST.0 * 5));
        }
    }

    #[test]
    fn a_bucket_outside_the_extremes_is_refused() {
        let mut words = recorded(&[100, 200]).to_words();
        words.extend([201, 1]);
        assert_eq!(Latency::from_words(&words), None);
        let all = recorded(&[100, 200]);
        let parts = Latency::from_parts(0, &counts_of(&all), all.sums(), (100, 199));
        assert_eq!(parts, None);
        assert_eq!(recorded(&[100, 200]).span(), 100..201);
        assert_eq!(recorded(&[]).span().len(), 0);
        assert_eq!(recorded(&[HIGHEST.0 * 9]).span().len(), 0);
    }

    #[test]
    fn an_empty_distribution_reads_as_zeros() {
        let all = Latency::new();
        assert!(all.is_empty());
        assert_eq!(
            (all.min(), all.max(), all.quantile(0.5)),
            (Nanos(0), Nanos(0), Nanos(0))
        );
        assert_eq!((all.mean_ns(), all.stddev_ns()), (0.0, 0.0));
        assert!(!recorded(&[0]).is_empty());
    }

    #[test]
    fn buckets_sums_and_extremes_are_the_whole() {
        let one = recorded(&[0, 5, 2047, 2049, 1 << 40, HIGHEST.0, HIGHEST.0 + 7]);
        let buckets: Vec<(Nanos, u64)> = one.ranges().map(|(_, high, n)| (high, n)).collect();
        let again =
            |above, extremes| Latency::from_buckets(&buckets, above, one.exact_sums(), extremes);
        assert_eq!(again(1, one.extremes()).as_ref(), Some(&one));
        assert_ne!(again(2, one.extremes()).as_ref(), Some(&one));
        assert_eq!(again(1, (1, HIGHEST.0 + 7)), None);
    }

    proptest! {
        #[test]
        fn merging_equals_recording_all_in_one(
            x in prop::collection::vec(latency(), 0..200),
            y in prop::collection::vec(latency(), 0..200),
        ) {
            let mut merged = recorded(&x);
            merged.merge(&recorded(&y));
            let all: Vec<u64> = x.iter().chain(&y).copied().collect();
            prop_assert_eq!(merged, recorded(&all));
        }

        #[test]
        fn what_has_little_room_takes_every_value(
            x in prop::collection::vec(latency(), 0..40),
            y in prop::collection::vec(latency(), 0..40),
        ) {
            let all: Vec<u64> = x.iter().chain(&y).copied().collect();
            let mut small = recorded(&x).clone();
            prop_assert_eq!(small.counts.len(), small.span().len());
            y.iter().for_each(|v| small.record(Nanos(*v)));
            prop_assert_eq!(&small, &recorded(&all));
            let mut merged = Latency::default();
            merged.merge(&recorded(&y));
            merged.merge(&recorded(&x).clone());
            prop_assert_eq!(merged.counts.len(), merged.span().len());
            prop_assert_eq!(merged, recorded(&all));
        }

        #[test]
        fn buckets_and_quantiles_are_hdrhistograms(
            values in prop::collection::vec(latency().prop_map(|v| v.min(HIGHEST.0)), 1..300),
            quantile in 0.0_f64..=1.0,
        ) {
            let (ours, theirs) = (recorded(&values), hdr(&values));
            let their_buckets: Vec<_> = theirs
                .iter_recorded()
                .map(|r| (Nanos(theirs.highest_equivalent(r.value_iterated_to())), r.count_since_last_iteration()))
                .collect();
            let my_buckets: Vec<_> = ours.ranges().map(|(_, high, n)| (high, n)).collect();
            prop_assert_eq!(my_buckets, their_buckets);
            prop_assert_eq!(ours.quantile(quantile).0, theirs.value_at_quantile(quantile).min(ours.max().0));
        }

        #[test]
        fn a_quantile_is_the_ranked_value_within_a_thousandth(
            mut values in prop::collection::vec(0_u64..HIGHEST.0, 1..300),
            quantile in 0.0_f64..=1.0,
        ) {
            let got = recorded(&values).quantile(quantile).0;
            values.sort_unstable();
            let rank = ((quantile * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1];
            prop_assert!(got >= exact && got as f64 <= exact as f64 * 1.001, "{} for {}", got, exact);
        }

        #[test]
        fn mean_and_deviation_are_those_of_the_values(values in prop::collection::vec(latency(), 1..100)) {
            let all = recorded(&values);
            let n = values.len() as f64;
            let mean = values.iter().map(|v| *v as f64).sum::<f64>() / n;
            let deviation = (values.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / n).sqrt();
            prop_assert!((all.mean_ns() - mean).abs() <= mean * 1e-9);
            prop_assert!((all.stddev_ns() - deviation).abs() <= deviation * 1e-6 + 1e-6);
        }

        #[test]
        fn words_and_parts_carry_everything(values in prop::collection::vec(latency(), 0..100)) {
            let all = recorded(&values);
            prop_assert_eq!(Latency::from_words(&all.to_words()), Some(all.clone()));
            let parts = Latency::from_parts(0, &counts_of(&all), all.sums(), all.extremes());
            prop_assert_eq!(parts, Some(all));
        }

        #[test]
        fn summed_parts_equal_a_merge(
            x in prop::collection::vec(latency(), 0..100),
            y in prop::collection::vec(latency(), 0..100),
        ) {
            let (a, b) = (recorded(&x), recorded(&y));
            let counts: Vec<u64> = a.counts(0..BUCKETS).zip(b.counts(0..BUCKETS)).map(|(p, q)| p + q).collect();
            let mut sums = a.sums();
            sums.iter_mut().zip(b.sums()).for_each(|(p, q)| *p += q);
            let extremes = (a.extremes().0.min(b.extremes().0), a.extremes().1.max(b.extremes().1));
            let mut merged = a.clone();
            merged.merge(&b);
            prop_assert_eq!(Latency::from_parts(0, &counts, sums, extremes), Some(merged));
        }

        #[test]
        fn malformed_words_are_refused_not_fatal(words in prop::collection::vec(any::<u64>(), 0..40)) {
            let _ = Latency::from_words(&words);
        }
    }
}
