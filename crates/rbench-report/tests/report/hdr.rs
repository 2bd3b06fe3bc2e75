//! Tests that standard readers decode the recorded distribution from the file.

use proptest::prelude::*;
use rbench_core::hist::{Hist, HistError};
use rbench_core::latency::HIGHEST;
use rbench_core::{Latency, Nanos};

fn recorded(values: &[u64]) -> Latency {
    let mut all = Latency::new();
    values.iter().for_each(|v| all.record(Nanos(*v)));
    all
}

fn decoded(hist: &Hist) -> Vec<(u64, u64)> {
    let histogram = hist.latency().expect("hdr decodes");
    histogram
        .iter_recorded()
        .map(|r| {
            let highest = histogram.highest_equivalent(r.value_iterated_to());
            (highest, r.count_since_last_iteration())
        })
        .collect()
}

proptest! {
    #[test]
    fn hdr_holds_every_bucket(values in prop::collection::vec(0..=HIGHEST.0, 0..300)) {
        let latency = recorded(&values);
        let buckets: Vec<(u64, u64)> = latency.ranges().map(|(_, high, n)| (high.0, n)).collect();
        prop_assert_eq!(decoded(&Hist::from(&latency)), buckets);
    }
}

#[test]
fn quantiles_and_moments_are_the_recorders() {
    let values: Vec<u64> = (1..=10_000).map(|i| i * 1_000).collect();
    let latency = recorded(&values);
    let hist = Hist::from(&latency);
    assert_eq!(hist.count, 10_000);
    assert_eq!(
        (hist.min_ns, hist.max_ns, hist.above),
        (1_000, 10_000_000, 0)
    );
    assert_eq!(hist.mean_ns, 5_000_500.0);
    // The standard deviation of 1…n is √((n² − 1) / 12).
    let expect = 1_000.0 * ((1e8_f64 - 1.0) / 12.0).sqrt();
    assert!((hist.stddev_ns - expect).abs() < 1e-3, "{}", hist.stddev_ns);
    let near = |got: u64, exact: u64| got >= exact && got <= exact + exact / 1000;
    assert!(near(hist.p50_ns, 5_000_000));
    assert!(near(hist.p90_ns, 9_000_000));
    assert!(near(hist.p95_ns, 9_500_000));
    assert!(near(hist.p99_ns, 9_900_000));
    assert!(near(hist.p999_ns, 9_990_000));
    assert!(near(hist.p9999_ns, 9_999_000));
}

#[test]
fn a_distribution_in_a_result_file_is_read_back_equal() {
    for values in [
        &[][..],
        &[0],
        &[5, 700, 700, 1_000_000],
        &[9, 2 * HIGHEST.0],
    ] {
        let latency = recorded(values);
        let text = serde_json::to_string(&latency).expect("it is written");
        let read: Latency = serde_json::from_str(&text).expect("it is read");
        assert_eq!(read, latency, "{text}");
    }
}

#[test]
fn values_above_an_hour_stand_at_an_hour_in_hdr_and_are_counted() {
    let hist = Hist::from(&recorded(&[5, 2 * HIGHEST.0, 3 * HIGHEST.0]));
    assert_eq!((hist.count, hist.above, hist.max_ns), (3, 2, 3 * HIGHEST.0));
    let buckets = decoded(&hist);
    assert_eq!(buckets[0], (5, 1));
    let (top, n) = buckets[1];
    assert_eq!(n, 2);
    assert!((HIGHEST.0..HIGHEST.0 + HIGHEST.0 / 1000).contains(&top));
}

#[test]
fn an_empty_distribution_goes_both_ways() {
    let hist = Hist::from(&Latency::new());
    assert_eq!((hist.count, hist.p50_ns, hist.mean_ns), (0, 0, 0.0));
    assert_eq!(decoded(&hist), []);
}

#[test]
fn a_small_hdr_that_would_be_inflated_to_a_large_one_is_an_error() {
    use std::io::Write as _;

    use base64::Engine as _;
    // The format: cookie, bytes of counts, 0, digits, lowest and highest value, 1.0.
    let encoded = |counts: u32, digits: u32| {
        let mut inner = Vec::new();
        for word in [0x1c84_9313, counts, 0, digits] {
            inner.extend(u32::to_be_bytes(word));
        }
        inner.extend(1_u64.to_be_bytes());
        inner.extend((1_u64 << 62).to_be_bytes());
        inner.extend(1_f64.to_be_bytes());
        let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(&inner).expect("memory");
        let inner = out.finish().expect("memory");
        let mut bytes = 0x1c84_9314_u32.to_be_bytes().to_vec();
        bytes.extend((inner.len() as u32).to_be_bytes());
        bytes.extend(inner);
        base64::engine::general_purpose::STANDARD.encode(bytes)
    };
    let good = Hist::from(&recorded(&[1]));
    for (counts, digits) in [(u32::MAX, 3), (8, 5)] {
        let hist = Hist {
            hdr: encoded(counts, digits),
            ..good.clone()
        };
        let error = hist.latency().map(|h| h.len()).expect_err("too much");
        assert!(
            error.to_string().contains("more than it may have"),
            "{error}"
        );
    }
}

#[test]
fn a_damaged_hdr_is_an_error_that_says_how() {
    let good = Hist::from(&recorded(&[1, 2, 3]));
    let error = |hdr: &str, count: u64| {
        let hist = Hist {
            hdr: hdr.to_owned(),
            count,
            ..good.clone()
        };
        hist.latency().map(|h| h.len()).expect_err("it is damaged")
    };
    assert!(matches!(error("*", 3), HistError::Base64(_)));
    assert!(matches!(error("AAAA", 3), HistError::Encoding(_)));
    let half = good.hdr.len() / 8 * 4;
    assert!(matches!(
        error(&good.hdr[..half], 3),
        HistError::Encoding(_)
    ));
    assert_eq!(
        error(&good.hdr, 4).to_string(),
        "the field hdr holds 3 values, but count says 4"
    );
}
