//! A distribution of a result file that can be merged with others, with its buckets, exact sum and
//! maximum.

use std::collections::BTreeMap;

use rbench_core::hist::{Hist, HistError};

/// Times in ns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dist {
    /// Largest value of each bucket, and the number of values in it.
    buckets: BTreeMap<u64, u64>,
    count: u64,
    /// Values outside of all buckets: above one hour.
    above: u64,
    sum_ns: f64,
    max_ns: u64,
}

impl Dist {
    /// Decodes the distribution of a result file.
    ///
    /// # Errors Like [`Hist::latency`].
    pub fn read(hist: &Hist) -> Result<Dist, HistError> {
        let decoded = hist.latency()?;
        let buckets = decoded.iter_recorded().map(|bucket| {
            let highest = decoded.highest_equivalent(bucket.value_iterated_to());
            (highest, bucket.count_since_last_iteration())
        });
        Ok(Dist {
            buckets: buckets.collect(),
            count: hist.count,
            above: hist.above.min(hist.count),
            sum_ns: hist.mean_ns * hist.count as f64,
            max_ns: hist.max_ns,
        })
    }

    /// Merges these distributions.
    pub fn merged<'d>(all: impl IntoIterator<Item = &'d Dist>) -> Dist {
        let mut whole = Dist::default();
        for part in all {
            let Dist {
                buckets,
                count,
                above,
                sum_ns,
                max_ns,
            } = part;
            for (value, n) in buckets {
                *whole.buckets.entry(*value).or_default() += n;
            }
            whole.count += count;
            whole.above += above;
            whole.sum_ns += sum_ns;
            whole.max_ns = whole.max_ns.max(*max_ns);
        }
        whole
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Arithmetic mean, ns; `None` when empty.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns / self.count as f64)
    }

    /// The largest value, ns; `None` when empty.
    pub fn max_ns(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max_ns as f64)
    }

    /// The quantile as the recorder defines it: the largest value of the bucket with the
    /// ⌈q·count⌉-th smallest value, capped at the maximum; ns.
    pub fn quantile_ns(&self, q: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let wanted = ((q * self.count as f64).ceil() as u64).clamp(1, self.count);
        let mut seen = 0;
        let in_buckets = wanted <= self.count - self.above;
        let found = self.buckets.iter().find(|(_, n)| {
            seen += **n;
            seen >= wanted
        });
        let value = found
            .filter(|_| in_buckets)
            .map_or(self.max_ns, |(v, _)| *v);
        Some(value.min(self.max_ns) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rbench_core::latency::HIGHEST;
    use rbench_core::{Latency, Nanos};

    fn recorded(values: impl Iterator<Item = u64>) -> Latency {
        let mut all = Latency::new();
        values.for_each(|v| all.record(Nanos(v)));
        all
    }

    fn same(dist: &Dist, latency: &Latency) {
        for q in [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let expect = latency.quantile(q).0 as f64;
            assert_eq!(dist.quantile_ns(q), Some(expect), "{q}");
        }
        assert_eq!(dist.count(), latency.count());
        assert_eq!(dist.max_ns(), Some(latency.max().0 as f64));
        let mean = dist.mean_ns().expect("not empty");
        assert!((mean / latency.mean_ns() - 1.0).abs() < 1e-12, "{mean}");
    }

    #[test]
    fn merging_result_files_is_merging_what_was_recorded() {
        let (mut a, b) = (
            recorded((1..3000).map(|i| i * i * 37)),
            recorded((1..500).map(|i| 2_000_000 + i * 91_007)),
        );
        let read = |latency: &Latency| Dist::read(&Hist::from(latency)).expect("it decodes");
        same(&read(&a), &a);
        let merged = Dist::merged([&read(&a), &read(&b)]);
        a.merge(&b);
        same(&merged, &a);
    }

    #[test]
    fn values_above_the_range_are_the_maximum() {
        let all = recorded([5, 7, HIGHEST.0 + 1, 3 * HIGHEST.0].into_iter());
        same(&Dist::read(&Hist::from(&all)).expect("it decodes"), &all);
        assert_eq!(Dist::default().quantile_ns(0.5), None);
    }
}
