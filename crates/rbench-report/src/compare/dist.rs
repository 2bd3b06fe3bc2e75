//! The times of result files in a form that merges.

use rbench_core::Latency;
use rbench_core::hist::{Hist, HistError};

use crate::figures::Measure;

/// Decodes the distribution of a result file.
///
/// # Errors Like [`Hist::recorded`].
pub fn read(hist: &Hist) -> Result<Latency, HistError> {
    // No figure of a comparison needs the squares.
    hist.recorded(|| Some([(hist.mean_ns * hist.count as f64).round() as u128, 0]))
}

/// Merges these distributions.
pub fn merged<'d>(all: impl IntoIterator<Item = &'d Latency>) -> Latency {
    let mut whole = Latency::default();
    all.into_iter().for_each(|part| whole.merge(part));
    whole
}

/// A quantile, or otherwise the arithmetic mean, ns; `None` when empty.
pub fn measured(times: &Latency, measure: Measure) -> Option<f64> {
    (!times.is_empty()).then(|| match measure {
        Measure::Quantile(quantile) => times.quantile(quantile).0 as f64,
        Measure::Mean | Measure::Count | Measure::Deviation => times.mean_ns(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rbench_core::Nanos;
    use rbench_core::latency::HIGHEST;

    fn recorded(values: impl Iterator<Item = u64>) -> Latency {
        let mut all = Latency::new();
        values.for_each(|v| all.record(Nanos(v)));
        all
    }

    fn same(times: &Latency, latency: &Latency) {
        for q in [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let expect = latency.quantile(q).0 as f64;
            assert_eq!(measured(times, Measure::Quantile(q)), Some(expect), "{q}");
        }
        assert_eq!(times.count(), latency.count());
        let max = measured(times, Measure::Quantile(1.0));
        assert_eq!(max, Some(latency.max().0 as f64));
        let mean = measured(times, Measure::Mean).expect("not empty");
        assert!((mean / latency.mean_ns() - 1.0).abs() < 1e-12, "{mean}");
    }

    #[test]
    fn merging_result_files_is_merging_what_was_recorded() {
        let (mut a, b) = (
            recorded((1..3000).map(|i| i * i * 37)),
            recorded((1..500).map(|i| 2_000_000 + i * 91_007)),
        );
        let read = |latency: &Latency| read(&Hist::from(latency)).expect("it decodes");
        same(&read(&a), &a);
        let merged = merged([&read(&a), &read(&b)]);
        a.merge(&b);
        same(&merged, &a);
    }

    #[test]
    fn values_above_the_range_are_the_maximum() {
        let all = recorded([5, 7, HIGHEST.0 + 1, 3 * HIGHEST.0].into_iter());
        same(&read(&Hist::from(&all)).expect("it decodes"), &all);
        assert_eq!(measured(&Latency::default(), Measure::Quantile(0.5)), None);
    }
}
