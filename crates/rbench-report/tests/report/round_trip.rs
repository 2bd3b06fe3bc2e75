//! Tests the header's line about the duration of a request to the file system.

use rbench_report::schema::RoundTrip;
use rbench_report::{RunResult, json, text};

use crate::fixtures::DETAILS;
use crate::fixtures::{meta_phases, meta_spec, run};

fn with(hosts: u32, times_us: &[u64]) -> RunResult {
    let mut result = run(hosts, hosts, meta_spec(), meta_phases(hosts, hosts));
    let one = |(i, us): (usize, &u64)| RoundTrip {
        host: format!("client{}", i + 1),
        call: "statx".to_owned(),
        median_ns: us * 1000,
        calls: 300,
        seen: true,
    };
    result.target.round_trip = times_us.iter().enumerate().map(one).collect();
    result
}

fn check(hosts: u32, times_us: &[u64], expect: &str) {
    let head = text::render(&with(hosts, times_us), DETAILS);
    let lines: Vec<&str> = head
        .lines()
        .filter(|l| l.starts_with("Round trip"))
        .collect();
    assert_eq!(lines.join("\n"), expect);
}

#[test]
fn the_head_names_the_round_trip_of_each_host_and_of_many_the_ends() {
    check(1, &[85], "Round trip statx 85.0 us");
    check(
        2,
        &[85, 1900],
        "Round trip statx 85.0 us (client1), statx 1.90 ms (client2)",
    );
    let many: Vec<u64> = (0..12).map(|i| 100 - i).collect();
    let expect = "Round trip statx 89.0 us (client12), statx 100 us (client1), shortest and longest of 12 hosts";
    check(12, &many, expect);
    check(1, &[], "");
}

#[test]
fn results_from_before_there_were_round_trips_are_read() {
    let new = with(1, &[85]);
    let text = json::render(&new);
    let mut value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let target = value["target"].as_object_mut().expect("an object");
    assert!(target.remove("round_trip").is_some());
    target.remove("data_sizes");
    let old: RunResult = serde_json::from_value(value).expect("still a result");
    assert_eq!(old, with(1, &[]));
}
