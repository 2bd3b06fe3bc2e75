//! Distributions of latencies in a time window: the recorder's buckets, merged in groups
//! of 16.
//!
//! The width of a bucket is at most 1/64 (1.6 %) of its values, or 16 ns below 2048 ns.
//! Sums are exact in these buckets, in whatever order they are added up.

use std::cmp::Ordering;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CoarseLatency {
    /// Sum of the values in ns; saturates.
    #[serde(rename = "sum_ns")]
    sum: u64,
    #[serde(rename = "max_ns")]
    max: Nanos,
    #[serde(serialize_with = "as_pairs", deserialize_with = "ascending")]
    counts: Counts,
}

fn as_pairs<S: Serializer>(counts: &Counts, serializer: S) -> Result<S::Ok, S::Error> {
    let pairs: Vec<(u16, u64)> = counts.iter().collect();
    pairs.serialize(serializer)
}

/// Reads counts of buckets that there are.
fn ascending<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Counts, D::Error> {
    let counts: Vec<(u16, u64)> = Vec::deserialize(deserializer)?;
    let exists = |(bucket, n): &(u16, u64)| usize::from(*bucket) < COARSE_BUCKETS && *n > 0;
    match counts.iter().all(exists) && counts.is_sorted_by(|(a, _), (b, _)| a < b) {
        true => Ok(counts.into_iter().collect()),
        false => Err(D::Error::custom("not the buckets of a distribution")),
    }
}

/// The buckets in use, ascending. Each is two numbers in LEB128: the distance from the previous
/// bucket, and the number of values. Almost all numbers take one byte.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Counts(Vec<u8>);

impl Counts {
    fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let (mut bytes, mut bucket) = (self.0.as_slice(), 0);
        std::iter::from_fn(move || {
            bucket += take(&mut bytes)?;
            Some((bucket as u16, take(&mut bytes)?))
        })
    }

    /// The sum of both.
    fn added(&self, other: &Counts) -> Counts {
        if self.0.is_empty() {
            return other.clone();
        }
        let (mut mine, mut theirs) = (self.iter().peekable(), other.iter().peekable());
        let next = || {
            let order = match (mine.peek(), theirs.peek()) {
                (Some((a, _)), Some((b, _))) => a.cmp(b),
                (_, None) => Ordering::Less,
                (None, _) => Ordering::Greater,
            };
            let mine = mine.next_if(|_| order.is_le());
            let theirs = theirs.next_if(|_| order.is_ge());
            match (mine, theirs) {
                (Some((bucket, n)), Some((_, m))) => Some((bucket, n + m)),
                (one, other) => one.or(other),
            }
        };
        std::iter::from_fn(next).collect()
    }
}

impl FromIterator<(u16, u64)> for Counts {
    /// The buckets have to ascend.
    fn from_iter<I: IntoIterator<Item = (u16, u64)>>(counts: I) -> Counts {
        let (mut bytes, mut last) = (Vec::new(), 0);
        for (bucket, n) in counts {
            put(&mut bytes, u64::from(bucket - last));
            put(&mut bytes, n);
            last = bucket;
        }
        Counts(bytes)
    }
}

/// Appends a number in LEB128: seven bits at a time.
#[inline(always)]
pub fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number in LEB128 off the front; `None` if there is none.
#[inline(always)]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
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

impl CoarseLatency {
    /// True if there is no value.
    pub fn is_empty(&self) -> bool {
        self.counts.0.is_empty()
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.used().map(|(_, n)| n).sum()
    }

    /// The largest value, exact; zero when empty.
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// Sum of all values in ns; exact up to five hundred years, where it saturates.
    pub fn sum(&self) -> u64 {
        self.sum
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
                return highest_of(bucket).min(self.max);
            }
        }
        self.max
    }

    /// Adds everything in `other`.
    pub fn merge(&mut self, other: &CoarseLatency) {
        let CoarseLatency { counts, sum, max } = other;
        self.sum = self.sum.saturating_add(*sum);
        self.max = self.max.max(*max);
        self.counts = self.counts.added(counts);
    }

    /// The buckets in use as (number, number of values), ascending.
    pub fn used(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.counts.iter()
    }

    /// The buckets in use as bytes, for [`take`]: the distance from the previous bucket, then the
    /// number of values.
    pub fn packed(&self) -> &[u8] {
        &self.counts.0
    }

    /// Builds a distribution from the result of a reduction: the counts of the buckets
    /// from `first` on, the sum of the values in ns, the largest value.
    pub fn from_dense(first: usize, counts: &[u64], sum: u64, max: Nanos) -> CoarseLatency {
        let used = (first..COARSE_BUCKETS).zip(counts).filter(|(_, n)| **n > 0);
        CoarseLatency {
            counts: used.map(|(bucket, n)| (bucket as u16, *n)).collect(),
            sum,
            max,
        }
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
        let mut counts = vec![0; BUCKETS];
        let (mut squares, mut above) = (0_u128, 0);
        for (bucket, n) in self.used() {
            let value = highest_of(bucket).min(self.max);
            squares += u128::from(value.0) * u128::from(value.0) * u128::from(n);
            match counts.get_mut(index_of(value.0)) {
                Some(count) if value <= HIGHEST => *count += n,
                _ => above += n,
            }
        }
        let lowest = self.used().next();
        let lowest = lowest.map_or(self.max, |(bucket, _)| highest_of(bucket));
        let sums = sums(above, [u128::from(self.sum), squares]);
        let extremes = (lowest.min(self.max).0, self.max.0);
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
        let taken = CoarseLatency {
            counts: used.map(|(b, n)| (b as u16, u64::from(*n))).collect(),
            sum: self.sum,
            max: self.max,
        };
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
        fn only_buckets_that_there_are_are_read(counts in prop::collection::vec((0..3_000_u16, 0..3_u64), 0..4)) {
            let fits = counts.iter().all(|(bucket, n)| usize::from(*bucket) < COARSE_BUCKETS && *n > 0);
            let ascends = counts.windows(2).all(|pair| pair[0].0 < pair[1].0);
            let read: Option<CoarseLatency> = decode(&encode(&(7_u64, 9_u64, &counts)));
            prop_assert_eq!(read.is_some(), fits && ascends);
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
