//! A distribution in the result file: exact moments, quantiles, and all values in the standard
//! HdrHistogram encoding. Converts in both directions. Messages between ranks hold the buckets in
//! use instead.

use std::borrow::Cow;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::bufread::ZlibDecoder;
use hdrhistogram::serialization::{self, Serializer as _, V2DeflateSerializer};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use crate::latency::{HIGHEST, Latency};
use crate::units::Nanos;

pub use hdrhistogram::Histogram;

/// HIST of the result file. Times in ns; all zero when `count` is 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hist {
    /// Number of values, those above the range included.
    pub count: u64,
    /// The smallest value, exact.
    pub min_ns: u64,
    /// The largest value, exact.
    pub max_ns: u64,
    /// Arithmetic mean, from the exact sum.
    pub mean_ns: f64,
    /// Population standard deviation, from the exact sums.
    pub stddev_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// 99.99th percentile.
    pub p9999_ns: u64,
    /// Values above one hour: in `hdr` they stand at one hour.
    #[serde(default)]
    pub above: u64,
    /// HdrHistogram V2 compressed, base64: 1 ns to 1 h, 3 significant digits.
    pub hdr: String,
}

impl From<&Latency> for Hist {
    fn from(latency: &Latency) -> Hist {
        let quantile = |q: f64| latency.quantile(q).0;
        Hist {
            count: latency.count(),
            min_ns: latency.min().0,
            max_ns: latency.max().0,
            mean_ns: latency.mean_ns(),
            stddev_ns: latency.stddev_ns(),
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p95_ns: quantile(0.95),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            p9999_ns: quantile(0.9999),
            above: latency.above(),
            hdr: encode(latency),
        }
    }
}

/// The reason why `hdr` could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistError {
    /// Not base64.
    #[error("the field hdr is not base64: {0}")]
    Base64(String),
    /// Not an HdrHistogram.
    #[error("the field hdr is not a V2 compressed HdrHistogram: {0}")]
    Encoding(String),
    /// The values contradict mean and deviation.
    #[error("the fields of a distribution contradict each other")]
    Sums,
    /// The two fields contradict each other.
    #[error("the field hdr holds {found} values, but count says {expected}")]
    Count {
        /// Number of decoded values.
        found: u64,
        /// The field `count`.
        expected: u64,
    },
}

impl Hist {
    /// Decodes `hdr`. Every value is that of its bucket (3 significant digits); values above one
    /// hour count as one hour.
    pub fn latency(&self) -> Result<Histogram<u64>, HistError> {
        let bytes = STANDARD
            .decode(&self.hdr)
            .map_err(|e| HistError::Base64(e.to_string()))?;
        check_size(&bytes)?;
        let decoded: Histogram<u64> = serialization::Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|e| HistError::Encoding(e.to_string()))?;
        if decoded.len() != self.count {
            return Err(HistError::Count {
                found: decoded.len(),
                expected: self.count,
            });
        }
        Ok(decoded)
    }
}

/// Maximum size of uncompressed counts, bytes: three significant digits up to the largest value
/// need less.
const COUNTS_MAX: u32 = 1 << 20;

/// Checks that a distribution needs no more memory than one of three significant digits. The head
/// of the encoding claims lengths and digits, which may be far larger than its bytes.
fn check_size(bytes: &[u8]) -> Result<(), HistError> {
    let mut head = [0; 16];
    let compressed = bytes.get(8..).unwrap_or_default();
    if ZlibDecoder::new(compressed).read_exact(&mut head).is_err() {
        // The library reports the error.
        return Ok(());
    }
    let word = |at: usize| {
        head[at..]
            .first_chunk()
            .map_or(0, |word| u32::from_be_bytes(*word))
    };
    let (counts, digits) = (word(4), word(12));
    match counts <= COUNTS_MAX && digits <= 3 {
        true => Ok(()),
        false => Err(HistError::Encoding(format!(
            "{counts} bytes of counts and {digits} significant digits are more than it may have"
        ))),
    }
}

/// The distribution in the library's form: 1 ns to 1 h, 3 significant digits.
pub fn histogram(latency: &Latency) -> Histogram<u64> {
    let mut histogram =
        Histogram::<u64>::new_with_bounds(1, HIGHEST.0, 3).expect("the bounds are constants");
    let above = (latency.above() > 0).then_some((HIGHEST, latency.above()));
    let buckets = latency.ranges().map(|(lowest, _, n)| (lowest, n));
    for (value, n) in buckets.chain(above) {
        histogram
            .record_n(value.0, n)
            .expect("the recorder's range is the histogram's");
    }
    histogram
}

fn encode(latency: &Latency) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(&histogram(latency), &mut bytes)
        .expect("writing to memory does not fail and counts are below 2^63");
    STANDARD.encode(bytes)
}

/// A distribution that can be merged with others without loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExactHist {
    /// The distribution.
    pub hist: Hist,
    /// Sum of all values, ns: a whole number of any size, as text.
    pub sum_ns: String,
    /// Sum of their squares, ns²: the same.
    pub sum_of_squares_ns2: String,
}

impl From<&Latency> for ExactHist {
    fn from(latency: &Latency) -> ExactHist {
        let [sum, squares] = latency.exact_sums();
        ExactHist {
            hist: Hist::from(latency),
            sum_ns: sum.to_string(),
            sum_of_squares_ns2: squares.to_string(),
        }
    }
}

impl Hist {
    /// The values with these sums, of themselves and of their squares, as they were recorded.
    ///
    /// # Errors
    /// Where its fields contradict each other, or there are no such sums.
    pub fn recorded(&self, sums: impl FnOnce() -> Option<[u128; 2]>) -> Result<Latency, HistError> {
        const SUM_MAX: u128 = 1 << 120;
        let decoded = self.latency()?;
        if self.count == 0 {
            return Ok(Latency::default());
        }
        let mut above = self.above;
        let mut buckets: Vec<(Nanos, u64)> = decoded
            .iter_recorded()
            .map(|v| (Nanos(v.value_iterated_to()), v.count_at_value()))
            .collect();
        // Values above the range are counted at its end there.
        if let Some((last, n)) = buckets.last_mut() {
            let there = above.min(*n);
            *n -= there;
            above -= there;
            *last = (*last).min(HIGHEST);
        }
        sums()
            .filter(|sums| sums.iter().all(|sum| *sum < SUM_MAX))
            .and_then(|sums| {
                Latency::from_buckets(&buckets, self.above, sums, (self.min_ns, self.max_ns))
            })
            .filter(|_| above == 0)
            .ok_or(HistError::Sums)
    }
}

impl ExactHist {
    fn latency(&self) -> Result<Latency, HistError> {
        let sums = || {
            let [sum, squares] = [&self.sum_ns, &self.sum_of_squares_ns2];
            Some([sum.parse().ok()?, squares.parse().ok()?])
        };
        self.hist.recorded(sums)
    }
}

impl Serialize for Latency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => ExactHist::from(self).serialize(serializer),
            false => self.to_words().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Latency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Latency, D::Error> {
        if deserializer.is_human_readable() {
            let exact = ExactHist::deserialize(deserializer)?;
            return exact.latency().map_err(D::Error::custom);
        }
        let words = Vec::<u64>::deserialize(deserializer)?;
        Latency::from_words(&words).ok_or_else(|| D::Error::custom("not a distribution"))
    }
}

impl JsonSchema for Latency {
    fn schema_name() -> Cow<'static, str> {
        ExactHist::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        ExactHist::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        ExactHist::json_schema(generator)
    }
}

/// For `#[serde(with)]`: `None` represents an empty distribution.
pub mod unless_empty {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Latency;

    /// Writes it.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(latency: &Latency, serializer: S) -> Result<S::Ok, S::Error> {
        Some(latency)
            .filter(|all| !all.is_empty())
            .serialize(serializer)
    }

    /// Reads it.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Latency, D::Error> {
        Ok(Option::deserialize(deserializer)?.unwrap_or_default())
    }
}
