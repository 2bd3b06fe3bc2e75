//! Distributions of latencies in a time window: the recorder's buckets, merged in groups
//! of 16.
//!
//! The width of a bucket is at most 1/64 (1.6 %) of its values, or 16 ns below 2048 ns.
//! Sums are exact in these buckets, in whatever order they are added up.

use serde::{Deserialize, Serialize};

use crate::latency::{BUCKETS, HIGHEST, Latency, index_of, sums};
use crate::units::Nanos;

/// log2 of the number of the recorder's buckets in each coarse bucket.
const DROPPED: u32 = 4;

/// Number of buckets.
pub const COARSE_BUCKETS: usize = BUCKETS >> DROPPED;

/// The bucket of a value; values above one hour are in the last one.
#[inline(always)]
fn bucket_of(value: Nanos) -> usize {
    (index_of(value.0) >> DROPPED).min(COARSE_BUCKETS - 1)
}

/// log2 of the number of the recorder's buckets in each bucket of a heat map: four of
/// these cover a power of two.
const HEAT_DROPPED: u32 = 8;

/// Latencies of a stretch of time, with room for the buckets in use only.
///
/// It is held packed, as numbers in LEB128: the sum of the values in ns, which saturates; the largest
/// value in ns; two numbers for each bucket in use, ascending; a zero. Those of a bucket are its
/// distance from the previous one, at least 1 (the first is counted from the one before bucket 0),
/// and its number of values. Almost all numbers of buckets take one byte. Without values nothing is
/// held.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "Plain", try_from = "Plain")]
pub struct CoarseLatency(Vec<u8>);

/// A distribution in messages and journals.
#[derive(Serialize, Deserialize)]
struct Plain {
    sum_ns: u64,
    max_ns: Nanos,
    counts: Vec<(u16, u64)>,
}

impl From<CoarseLatency> for Plain {
    fn from(latency: CoarseLatency) -> Plain {
        Plain {
            sum_ns: latency.sum(),
            max_ns: latency.max(),
            counts: latency.used().collect(),
        }
    }
}

impl TryFrom<Plain> for CoarseLatency {
    type Error = &'static str;

    fn try_from(plain: Plain) -> Result<CoarseLatency, &'static str> {
        let counts = &plain.counts;
        let exists = |(bucket, n): &(u16, u64)| usize::from(*bucket) < COARSE_BUCKETS && *n > 0;
        let all = counts
            .iter()
            .try_fold(0_u64, |all, (_, n)| all.checked_add(*n));
        match counts.iter().all(exists)
            && counts.is_sorted_by(|(a, _), (b, _)| a < b)
            && all.is_some()
        {
            true => Ok(CoarseLatency::new(
                plain.sum_ns,
                plain.max_ns,
                plain.counts.into_iter(),
            )),
            false => Err("not the buckets of a distribution"),
        }
    }
}

/// Length of a packed distribution without values.
pub(crate) const PACKED_EMPTY: usize = 3;

/// Appends a number in LEB128: seven bits at a time.
#[inline(always)]
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number in LEB128 off the front; `None` if there is none.
#[inline(always)]
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte <= 0x7f {
            return Some(number);
        }
    }
    None
}

/// Appends a bucket; `end` is the one after the last.
#[inline(always)]
fn put_bucket(bytes: &mut Vec<u8>, end: &mut u16, (bucket, n): (u16, u64)) {
    put(bytes, u64::from(bucket + 1 - *end));
    put(bytes, n);
    *end = bucket + 1;
}

/// Takes a bucket, or the zero after the last, off the front; `end` is the one after the last.
#[inline(always)]
fn take_bucket(bytes: &mut &[u8], end: &mut u16) -> Option<(u16, u64)> {
    let distance = take(bytes).filter(|distance| *distance > 0)?;
    *end += distance as u16;
    Some((*end - 1, take(bytes)?))
}

/// Takes a packed distribution off the front and passes on the number of each bucket with its number
/// of values. Returns the sum in ns and the largest value; `None` if the bytes are damaged or `each`
/// returns `None`.
#[inline(always)]
pub fn visit_packed(
    bytes: &mut &[u8],
    mut each: impl FnMut(usize, u64) -> Option<()>,
) -> Option<(u64, Nanos)> {
    let (sum, max) = (take(bytes)?, Nanos(take(bytes)?));
    let mut end = 0_usize;
    loop {
        let distance = usize::try_from(take(bytes)?).ok()?;
        if distance == 0 {
            return Some((sum, max));
        }
        end = end.checked_add(distance)?;
        each(end - 1, take(bytes)?)?;
    }
}

/// Takes a packed distribution off the front of both, and appends their sum to `to`. An end of the
/// bytes counts as a distribution without values.
pub(crate) fn pack_sum(one: &mut &[u8], other: &mut &[u8], to: &mut Vec<u8>) {
    let number = |bytes: &mut &[u8]| take(bytes).unwrap_or(0);
    put(to, number(one).saturating_add(number(other)));
    put(to, number(one).max(number(other)));
    let [mut of_one, mut of_other, mut end] = [0; 3];
    let mut next_of_one = || take_bucket(one, &mut of_one);
    let mut next_of_other = || take_bucket(other, &mut of_other);
    let (mut a, mut b) = (next_of_one(), next_of_other());
    while let Some((bucket, n)) = match (a, b) {
        (Some((bucket, n)), Some((same, m))) if bucket == same => {
            Some((bucket, n.saturating_add(m)))
        }
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    } {
        put_bucket(to, &mut end, (bucket, n));
        if a.is_some_and(|(first, _)| first == bucket) {
            a = next_of_one();
        }
        if b.is_some_and(|(first, _)| first == bucket) {
            b = next_of_other();
        }
    }
    put(to, 0);
}

impl CoarseLatency {
    /// `buckets` have to ascend.
    fn new(sum: u64, max: Nanos, buckets: impl Iterator<Item = (u16, u64)>) -> CoarseLatency {
        let (mut packed, mut end) = (Vec::new(), 0);
        put(&mut packed, sum);
        put(&mut packed, max.0);
        buckets.for_each(|bucket| put_bucket(&mut packed, &mut end, bucket));
        if end == 0 {
            return CoarseLatency::default();
        }
        put(&mut packed, 0);
        CoarseLatency(packed)
    }

    /// The sum and the largest value, and the rest.
    fn head(&self) -> (u64, Nanos, &[u8]) {
        let mut rest = self.0.as_slice();
        let mut number = || take(&mut rest).unwrap_or(0);
        let (sum, max) = (number(), Nanos(number()));
        (sum, max, rest)
    }

    /// True if there is no value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.used().map(|(_, n)| n).sum()
    }

    /// The largest value, exact; zero when empty.
    pub fn max(&self) -> Nanos {
        self.head().1
    }

    /// Sum of all values in ns; exact up to five hundred years, where it saturates.
    pub fn sum(&self) -> u64 {
        self.head().0
    }

    /// The value at `quantile` (0 to 1): the largest value of the bucket with the
    /// ⌈quantile·count⌉-th smallest one, at most the maximum. It is at most 1.6 %, or 15
    /// ns, above the exact one. Zero when empty.
    pub fn quantile(&self, quantile: f64) -> Nanos {
        let count = self.count();
        let wanted = ((quantile * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        for (bucket, n) in self.used() {
            seen += n;
            if seen >= wanted {
                return highest_of(bucket).min(self.max());
            }
        }
        self.max()
    }

    /// Adds everything in `other`.
    pub fn merge(&mut self, other: &CoarseLatency) {
        if self.is_empty() || other.is_empty() {
            self.0.extend_from_slice(&other.0);
            return;
        }
        let mut sum = Vec::with_capacity(self.0.len() + other.0.len());
        pack_sum(&mut self.0.as_slice(), &mut other.0.as_slice(), &mut sum);
        self.0 = sum;
    }

    /// The buckets in use as (number, number of values), ascending.
    pub fn used(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let ((_, _, mut rest), mut end) = (self.head(), 0);
        std::iter::from_fn(move || take_bucket(&mut rest, &mut end))
    }

    /// The packed form, or nothing.
    pub(crate) fn packed(&self) -> &[u8] {
        &self.0
    }

    /// Takes a packed distribution off the front; an end of the bytes counts as one without values.
    pub(crate) fn take_packed(bytes: &mut &[u8]) -> CoarseLatency {
        let all = *bytes;
        let _ = visit_packed(bytes, |_, _| Some(()));
        match all.len() - bytes.len() {
            0..=PACKED_EMPTY => CoarseLatency::default(),
            length => CoarseLatency(all[..length].to_vec()),
        }
    }

    /// Builds a distribution from the result of a reduction: the counts of the buckets
    /// from `first` on, the sum of the values in ns, the largest value.
    pub fn from_dense(first: usize, counts: &[u64], sum: u64, max: Nanos) -> CoarseLatency {
        let used = (first..COARSE_BUCKETS).zip(counts).filter(|(_, n)| **n > 0);
        CoarseLatency::new(sum, max, used.map(|(bucket, n)| (bucket as u16, *n)))
    }

    /// For a heat map: (lowest value, values) of the buckets in use, four to a power of two (256 ns
    /// each below 2048 ns), ascending.
    pub fn heat(&self) -> Vec<(Nanos, u64)> {
        let mut heat: Vec<(usize, u64)> = Vec::new();
        for (bucket, n) in self.used() {
            let wide = usize::from(bucket) >> (HEAT_DROPPED - DROPPED);
            match heat.last_mut() {
                Some((last, sum)) if *last == wide => *sum += n,
                _ => heat.push((wide, n)),
            }
        }
        let lowest = |wide: usize| Nanos(crate::latency::lowest_of(wide << HEAT_DROPPED));
        heat.into_iter()
            .map(|(wide, n)| (lowest(wide), n))
            .collect()
    }

    /// Converts to the recorder's form. Each value becomes the highest of its bucket;
    /// the maximum and the sum are exact.
    pub fn to_latency(&self) -> Latency {
        if self.is_empty() {
            return Latency::default();
        }
        let (sum, max, _) = self.head();
        let mut counts = vec![0; BUCKETS];
        let (mut squares, mut above) = (0_u128, 0);
        for (bucket, n) in self.used() {
            let value = highest_of(bucket).min(max);
            squares += u128::from(value.0) * u128::from(value.0) * u128::from(n);
            match counts.get_mut(index_of(value.0)) {
                Some(count) if value <= HIGHEST => *count += n,
                _ => above += n,
            }
        }
        let lowest = self.used().next();
        let lowest = lowest.map_or(max, |(bucket, _)| highest_of(bucket));
        let sums = sums(above, [u128::from(sum), squares]);
        let extremes = (lowest.min(max).0, max.0);
        // All buckets lie between the extremes.
        Latency::from_parts(0, &counts, sums, extremes).unwrap_or_default()
    }
}

/// The largest value of a bucket.
fn highest_of(bucket: u16) -> Nanos {
    let last = (usize::from(bucket) << DROPPED) + (1 << DROPPED) - 1;
    Nanos(crate::latency::highest_of(last))
}

/// Recorder of a worker's latencies, with a count for every bucket.
#[derive(Debug)]
pub struct CoarseRecorder {
    counts: Box<[u32]>,
    sum: u64,
    min: Nanos,
    max: Nanos,
}

impl Default for CoarseRecorder {
    fn default() -> CoarseRecorder {
        CoarseRecorder {
            counts: vec![0; COARSE_BUCKETS].into_boxed_slice(),
            sum: 0,
            min: Nanos(u64::MAX),
            max: Nanos(0),
        }
    }
}

impl CoarseRecorder {
    /// Adds a value. Does not allocate.
    #[inline(always)]
    pub fn record(&mut self, value: Nanos) {
        self.counts[bucket_of(value)] += 1;
        self.sum = self.sum.wrapping_add(value.0);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Takes the recorded values; each bucket holds at most 2^32 - 1.
    pub fn take(&mut self) -> CoarseLatency {
        if self.min > self.max {
            return CoarseLatency::default();
        }
        let span = bucket_of(self.min)..bucket_of(self.max) + 1;
        let first = span.start;
        let held = &mut self.counts[span];
        let used = (first..).zip(held.iter()).filter(|(_, n)| **n > 0);
        let used = used.map(|(bucket, n)| (bucket as u16, u64::from(*n)));
        let taken = CoarseLatency::new(self.sum, self.max, used);
        held.fill(0);
        (self.sum, self.min, self.max) = (0, Nanos(u64::MAX), Nanos(0));
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{decode, encode};
    use proptest::prelude::*;

    fn recorded(values: &[u64]) -> CoarseLatency {
        let mut recorder = CoarseRecorder::default();
        values.iter().for_each(|v| recorder.record(Nanos(*v)));
        let taken = recorder.take();
        assert_eq!(recorder.take(), CoarseLatency::default(), "all is taken");
        taken
    }

    /// Latencies up to half an hour.
    fn latency() -> impl Strategy<Value = u64> {
        (0_u32..42, any::<u64>()).prop_map(|(bits, x)| x & ((1 << bits) - 1))
    }

    proptest! {
        #[test]
        fn merging_equals_recording_all_in_one(
            x in prop::collection::vec(latency(), 0..80),
            y in prop::collection::vec(latency(), 0..80),
        ) {
            let mut merged = recorded(&x);
            merged.merge(&recorded(&y));
            let all: Vec<u64> = x.iter().chain(&y).copied().collect();
            prop_assert_eq!(&merged, &recorded(&all));
            prop_assert_eq!(decode(&encode(&merged)), Some(merged));
        }

        #[test]
        fn only_distributions_that_there_can_be_are_read(
            counts in prop::collection::vec((0..3_000_u16, prop_oneof![0..3_u64, Just(u64::MAX)]), 0..4),
        ) {
            let fits = counts.iter().all(|(bucket, n)| usize::from(*bucket) < COARSE_BUCKETS && *n > 0);
            let ascends = counts.windows(2).all(|pair| pair[0].0 < pair[1].0);
            let many = counts.len() > 1 && counts.iter().any(|(_, n)| *n == u64::MAX);
            let read: Option<CoarseLatency> = decode(&encode(&(7_u64, 9_u64, &counts)));
            prop_assert_eq!(read.is_some(), fits && ascends && !many);
        }

        #[test]
        fn a_quantile_is_at_most_a_bucket_above_the_exact_one(
            mut values in prop::collection::vec(latency(), 1..200),
            q in 0.0_f64..=1.0,
        ) {
            let coarse = recorded(&values);
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1];
            let coarse_value = coarse.quantile(q).0;
            prop_assert!(exact <= coarse_value && coarse_value <= exact + (exact / 64).max(15), "{exact} {coarse_value}");
            prop_assert_eq!(coarse.max().0, values[values.len() - 1]);
        }

        #[test]
        fn the_form_of_the_recorder_has_the_same_quantiles(
            values in prop::collection::vec(latency(), 1..200),
            q in 0.0_f64..=1.0,
        ) {
            let coarse = recorded(&values);
            let latency = coarse.to_latency();
            prop_assert_eq!(latency.count(), coarse.count());
            prop_assert_eq!(latency.quantile(q), coarse.quantile(q));
            prop_assert_eq!(latency.max(), coarse.max());
            let heat: u64 = coarse.heat().iter().map(|(_, n)| n).sum();
            prop_assert_eq!(heat, coarse.count());
            let mut dense = vec![0; COARSE_BUCKETS];
            coarse.used().for_each(|(bucket, n)| dense[usize::from(bucket)] = n);
            let again = CoarseLatency::from_dense(0, &dense, coarse.sum(), coarse.max());
            prop_assert_eq!(again, coarse);
        }
    }

    #[test]
    fn values_above_an_hour_are_in_the_last_bucket() {
        let coarse = recorded(&[HIGHEST.0 * 3, 7]);
        assert_eq!(coarse.count(), 2);
        assert_eq!(coarse.max(), Nanos(HIGHEST.0 * 3));
        assert_eq!(coarse.heat(), [(Nanos(0), 1), (Nanos(7 << 39), 1)]);
    }
}
