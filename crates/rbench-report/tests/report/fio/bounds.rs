//! Tests a property of all latencies: no output has a percentile above the maximum.

use proptest::collection::vec;
use proptest::prelude::*;
use rbench_core::job::{DirectionOutcome, JobOutcome};
use rbench_core::{Latency, Nanos, Unified};
use rbench_report::fio::{FioRun, Machine, json, normal, terse};
use rbench_report::schema::{FioEntry, FioShown};
use serde_json::Value;

fn run(values: &[u64], percentiles: Vec<f64>, lat: bool) -> FioRun {
    let mut all = Latency::new();
    values.iter().for_each(|ns| all.record(Nanos(*ns)));
    let read = DirectionOutcome {
        ios: values.len() as u64,
        bytes: 4096 * values.len() as u64,
        runtime: Nanos::SECOND,
        slat: Some(all.clone()),
        clat: all.clone(),
        lat: all.clone(),
        ..DirectionOutcome::default()
    };
    FioRun {
        version: "fio-3.33".to_owned(),
        terse_version: 3,
        started_ms: 0,
        ended_ms: 1000,
        utc_offset_s: 0,
        global_options: Vec::new(),
        entries: vec![FioEntry {
            name: "a".to_owned(),
            group: 0,
            group_reporting: false,
            options: Vec::new(),
            outcome: JobOutcome {
                workers: 1,
                read,
                sync: all,
                ..JobOutcome::default()
            },
            shown: FioShown {
                percentiles,
                clat_percentiles: !lat,
                lat_percentiles: lat,
                slat_percentiles: lat,
                significant_figures: 4,
                bits: false,
                unified: Unified::Apart,
                continue_on_error: false,
            },
            depth: 1,
            target: None,
            steady: None,
            host: None,
        }],
        machine: Machine::default(),
    }
}

/// Parses a bound of a normal report in ns: `(usec)` and `[ 22]`, or `max=13.6k`.
fn scaled(line: &str, number: &str) -> f64 {
    let unit = [("nsec", 1.0), ("usec", 1e3), ("msec", 1e6)];
    let unit = unit.iter().find(|(name, _)| line.contains(name));
    let (digits, power) = match number.strip_suffix(['k', 'M', 'G']) {
        Some(digits) if number.ends_with('k') => (digits, 1e3),
        Some(digits) if number.ends_with('M') => (digits, 1e6),
        Some(digits) => (digits, 1e9),
        None => (number, 1.0),
    };
    let value: f64 = digits.trim().parse().expect("a number");
    value * power * unit.expect("a unit").1
}

/// The percentiles of a normal report, ns.
fn shown(text: &str) -> Vec<f64> {
    let mut all = Vec::new();
    let mut head = "";
    for line in text.lines() {
        if line.contains("percentiles (") {
            head = line;
        }
        if line.trim_start().starts_with('|') {
            let cells = line.split('[').skip(1);
            let cells = cells.filter_map(|cell| cell.split(']').next());
            all.extend(cells.map(|cell| scaled(head, cell)));
        }
    }
    all
}

fn percentiles_of<'a>(value: &'a Value, found: &mut Vec<(&'a Value, &'a Value)>) {
    if let (Some(percentiles), Some(max)) = (value.get("percentile"), value.get("max")) {
        found.push((percentiles, max));
    }
    match value {
        Value::Object(fields) => fields.values().for_each(|v| percentiles_of(v, found)),
        Value::Array(items) => items.iter().for_each(|v| percentiles_of(v, found)),
        _ => {}
    }
}

/// Latencies up to two hours, small and large ones equally likely.
fn latency() -> impl Strategy<Value = u64> {
    (0_u32..43, any::<u64>())
        .prop_map(|(bits, value)| (value % (2_u64 << bits)).min(7_200_000_000_000))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_percentile_lies_above_the_maximum_or_below_the_minimum(
        values in vec(latency(), 1..200),
        wanted in vec(0.001_f64..=100.0, 1..20),
        lat in any::<bool>(),
    ) {
        let mut wanted = wanted;
        wanted.push(100.0);
        wanted.sort_by(f64::total_cmp);
        let run = run(&values, wanted, lat);
        let max = values.iter().max().copied().unwrap_or(0);
        let min = values.iter().min().copied().unwrap_or(0);

        let document: Value = serde_json::from_str(&json(&run, true)).expect("JSON");
        let mut distributions = Vec::new();
        percentiles_of(&document, &mut distributions);
        let of = if lat { 3 } else { 2 };
        prop_assert_eq!(distributions.len(), of, "of slat and lat, or clat, and of syncs");
        for (percentiles, highest) in distributions {
            prop_assert_eq!(highest.as_u64(), Some(max));
            let all = percentiles.as_object().expect("percentiles").values();
            let all: Vec<u64> = all.map(|v| v.as_u64().expect("whole")).collect();
            prop_assert!(all.iter().all(|ns| (min..=max).contains(ns)), "{:?}", all);
            prop_assert!(all.contains(&max), "the 100th is the maximum: {:?}", all);
        }

        let text = normal(&run);
        let all = shown(&text);
        prop_assert!(!all.is_empty());
        prop_assert!(all.iter().all(|ns| *ns <= max as f64), "{} in\n{}", max, text);

        let line = terse(&run);
        let fields = line.trim_end().split(';');
        let us = fields.filter_map(|f| f.split_once("%=")?.1.parse::<u64>().ok());
        prop_assert!(us.clone().all(|us| us <= max / 1000), "{} in {}", max, line);
        prop_assert!(us.max() == Some(max / 1000), "{} in {}", max, line);
    }
}

#[test]
fn a_terse_line_has_the_fields_of_its_version() {
    let mut run = run(&[1000, 2000], vec![99.0], false);
    run.entries[0].options = vec![("description".to_owned(), "words".to_owned())];
    // Counted in lines of fio 3.33. Version 2 puts the description on a line of its own.
    for (version, counts) in [
        (2, vec![161, 2]),
        (3, vec![122]),
        (4, vec![163]),
        (5, vec![181]),
    ] {
        run.terse_version = version;
        let text = terse(&run);
        let field_counts: Vec<usize> = text.lines().map(|l| l.split(';').count()).collect();
        assert_eq!(field_counts, counts, "version {version}: {text}");
        assert!(text.starts_with(&format!("{version};")) && text.ends_with(";words\n"));
    }
}
