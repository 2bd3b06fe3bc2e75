//! Tests the live state of a run: it follows from the messages at rank 0.

use std::path::Path;

use rbench_core::coarse::CoarseRecorder;
use rbench_core::timeline::{Bin, IntervalPart, Latencies};
use rbench_core::{Nanos, Rank};
use rbench_report::intervals::IntervalOf;
use rbench_report::live::Live;
use rbench_report::schema::{LiveProgress, LiveResult, LiveState};
use rbench_report::{PhaseResult, openmetrics};
use serde_json::Value;

use crate::fixtures::{meta_phases, meta_spec, run};
use crate::valid;

const SECOND: u64 = 1_000_000_000;

/// The hosts of the run.
const A: &str = "client1";
const B: &str = "client2";

fn row(name: &str, open_loop: bool) -> IntervalOf<'_> {
    IntervalOf {
        iteration: 0,
        name,
        label: "Reads",
        op: "read",
        open_loop,
        interval: Nanos(SECOND),
    }
}

/// `items` operations of duration `took` in an interval, spread evenly from its start.
fn part(number: u64, items: u64, errors: u64, took: Nanos) -> IntervalPart {
    let mut service = CoarseRecorder::default();
    (0..items).for_each(|_| service.record(took));
    let mut response = CoarseRecorder::default();
    (0..items).for_each(|_| response.record(Nanos(took.0 * 10)));
    let begins = number * SECOND;
    IntervalPart {
        number,
        bin: Bin {
            items,
            bytes: items * 4096,
            errors,
            first: Nanos(begins + SECOND / 10),
            last: Nanos(begins + SECOND * 9 / 10),
        },
        latencies: Latencies {
            service: service.take(),
            response: response.take(),
        },
    }
}

fn so_far(elapsed_s: f64) -> Option<LiveProgress> {
    Some(LiveProgress {
        elapsed_s,
        left_s: Some(5.0),
        items: 100,
        total: Some(200),
        failed: 1,
        bytes: 409_600,
        rate: 50.0,
        bandwidth: 204_800.0,
        backlog: Some(3),
    })
}

/// A phase of one row on two hosts.
fn live() -> Live {
    let mut live = Live::default();
    live.run(run(2, 2, meta_spec(), Vec::new()));
    live.begin("Reads", true);
    live.row(row("read", false));
    live
}

/// Sends the hosts' parts and their sum.
fn told(live: &mut Live, number: u64, [a, b]: [u64; 2], took: [u64; 2]) {
    let parts = [
        part(number, a, 0, Nanos(took[0])),
        part(number, b, 1, Nanos(took[1])),
    ];
    let mut sum = parts[0].clone();
    sum.bin.merge(parts[1].bin);
    sum.latencies.merge(&parts[1].latencies);
    for (host, part) in [A, B].iter().zip(&parts) {
        live.of_host(host, row("read", false), part);
    }
    live.interval(row("read", false), Nanos(SECOND), &sum);
}

fn checked(live: &Live) -> LiveResult {
    let now = live.snapshot();
    let json = serde_json::to_value(&now).expect("JSON");
    assert_eq!(valid::wrong(&json), [""; 0]);
    let text = serde_json::to_string(&now).expect("JSON");
    assert_eq!(
        serde_json::from_str::<LiveResult>(&text).expect("a line"),
        now
    );
    now
}

#[test]
fn rows_and_hosts_have_the_last_interval_and_all_of_them() {
    let mut live = live();
    live.progress(so_far(2.5));
    told(&mut live, 0, [10, 10], [1_000_000, 1_000_000]);
    told(&mut live, 1, [30, 20], [1_000_000, 5_000_000]);
    let now = checked(&live);
    let row = &now.rows[0];
    assert_eq!(
        (row.last.items, row.last.rate, row.last.errors),
        (50, 50.0, 1)
    );
    assert_eq!((row.all.items, row.all.rate, row.all.errors), (70, 35.0, 2));
    assert_eq!(row.all.bandwidth, 35.0 * 4096.0);
    assert_eq!(row.rates, [20.0, 50.0]);
    assert!(row.last.p99_ns >= 5_000_000 && row.last.p50_ns < 1_020_000);
    assert_eq!(row.longest_gap_s, None);
    // The host with the longest wait comes first.
    let hosts: Vec<(&str, f64, u64)> = now
        .hosts
        .iter()
        .map(|host| (host.host.as_str(), host.last.rate, host.all.items))
        .collect();
    assert_eq!(hosts, [(B, 20.0, 30), (A, 30.0, 40)]);
}

#[test]
fn what_a_host_did_counts_when_the_row_is_told_of_that_interval() {
    let mut live = live();
    live.progress(so_far(1.3));
    let early = |live: &mut Live, number| {
        live.of_host(
            A,
            row("read", false),
            &part(number, 10, 0, Nanos(1_000_000)),
        );
    };
    let of_a = |live: &Live| {
        let hosts = checked(live).hosts;
        let a = hosts
            .iter()
            .find(|host| host.host == A)
            .expect("it is there");
        (a.all.items, a.all.rate)
    };
    early(&mut live, 0);
    assert_eq!(of_a(&live), (0, 0.0));
    live.interval(
        row("read", false),
        Nanos(SECOND),
        &part(0, 10, 0, Nanos(1_000_000)),
    );
    early(&mut live, 1);
    assert_eq!(of_a(&live), (10, 10.0));
    live.interval(
        row("read", false),
        Nanos(SECOND),
        &part(1, 10, 0, Nanos(1_000_000)),
    );
    assert_eq!(of_a(&live).0, 20);
    // Late parts count at once.
    early(&mut live, 0);
    assert_eq!(of_a(&live).0, 30);
}

#[test]
fn an_interval_in_which_nothing_ends_is_zero_and_part_of_the_longest_gap() {
    let mut live = live();
    live.progress(so_far(0.5));
    told(&mut live, 0, [10, 10], [1_000_000, 1_000_000]);
    live.progress(so_far(6.0));
    let now = checked(&live);
    let row = &now.rows[0];
    assert_eq!(row.last.rate, 0.0);
    assert_eq!(row.rates, [20.0, 0.0, 0.0, 0.0, 0.0]);
    // From 0.9 s to the end of the complete range.
    let gap = row.longest_gap_s.expect("a gap");
    assert!((gap - (5.6 - 0.9)).abs() < 1e-6, "{gap}");
    assert!((now.hosts[0].silent_s - (5.6 - 0.9)).abs() < 1e-6);
    assert_eq!(row.all.rate, 20.0 / 5.0);
    // Late parts belong to their own interval.
    told(&mut live, 2, [1, 2], [1_000_000, 1_000_000]);
    assert_eq!(checked(&live).rows[0].rates, [20.0, 0.0, 3.0, 0.0, 0.0]);
}

#[test]
fn the_last_interval_of_a_phase_is_as_long_as_it_was() {
    let mut live = live();
    live.progress(so_far(1.2));
    told(&mut live, 0, [10, 10], [1_000_000, 1_000_000]);
    live.interval(
        row("read", false),
        Nanos(SECOND / 4),
        &part(1, 5, 0, Nanos(1_000_000)),
    );
    assert_eq!(checked(&live).rows[0].last.rate, 20.0);
}

#[test]
fn in_an_open_loop_times_count_from_the_intended_start() {
    let mut live = live();
    live.begin("Reads", true);
    live.progress(so_far(1.5));
    live.interval(
        row("read", true),
        Nanos(SECOND),
        &part(0, 10, 0, Nanos(1_000_000)),
    );
    let now = checked(&live);
    assert!(now.rows[0].response && now.rows[0].last.p50_ns >= 10_000_000);
    assert_eq!(now.progress.and_then(|progress| progress.backlog), Some(3));
}

#[test]
fn what_has_ended_takes_the_place_of_what_went_on() {
    let mut live = live();
    let phases: Vec<PhaseResult> = run(2, 2, meta_spec(), meta_phases(2, 2)).phases;
    live.progress(so_far(1.5));
    live.interval(
        row("read", false),
        Nanos(SECOND),
        &part(0, 10, 0, Nanos(1_000_000)),
    );
    let first = &phases[0];
    live.ended(PhaseResult {
        name: "read".to_owned(),
        ..first.clone()
    });
    let now = checked(&live);
    assert_eq!(now.rows, []);
    assert_eq!(now.finished[0].all.items, first.items);
    assert_eq!(now.finished[0].all.p99_ns, first.latency.service.p99_ns);
    // The same run keeps its state, another one starts empty.
    live.run(run(2, 2, meta_spec(), Vec::new()));
    live.turn(LiveState::Ended);
    assert_eq!(checked(&live).state, LiveState::Ended);
}

#[test]
fn the_first_error_stays_and_notes_are_the_last_ones() {
    let mut live = live();
    live.note("the first failed operation".to_owned(), true);
    (0..100).for_each(|n| live.note(format!("note {n}"), false));
    let now = checked(&live);
    assert_eq!(
        now.first_error.as_deref(),
        Some("the first failed operation")
    );
    assert_eq!(now.notes.last().map(String::as_str), Some("note 99"));
    assert_eq!(now.notes.len(), 8);
}

/// The metrics of a run in which every metric has a sample.
fn with_everything() -> String {
    let mut live = live();
    let mut ended = run(2, 2, meta_spec(), meta_phases(2, 2));
    let phases = std::mem::take(&mut ended.phases);
    live.run(ended);
    phases.into_iter().for_each(|phase| live.ended(phase));
    live.begin("Reads", true);
    live.row(row("read", false));
    live.progress(so_far(4.5));
    told(&mut live, 0, [10, 10], [1_000_000, 1_000_000]);
    told(&mut live, 3, [10, 10], [1_000_000, 1_000_000]);
    for second in [0, 1] {
        let used = Nanos(second * SECOND);
        live.used(Rank(0), A, (used, Some(used)), used);
    }
    live.metrics()
}

#[test]
fn metrics_have_the_words_of_finished_runs_and_what_is_done_now() {
    let text = with_everything();
    for sample in [
        "rbench_operations_total{run=\"",
        ",operation=\"read\",iteration=\"0\"} 40\n",
        "rbench_errors_total{run=\"",
        ",operation=\"read\",iteration=\"0\",error=\"UNKNOWN\"} 2\n",
        ",operation=\"read\",iteration=\"0\",host=\"client2\"} 20\n",
        "rbench_interval_operations_per_second{run=\"",
        ",program=\"client\"} 1\n",
    ] {
        assert!(text.contains(sample), "{sample} is not in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut names: Vec<&str> = families.filter_map(|line| line.split(' ').next()).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "each family once");
    assert_eq!(openmetrics::render(&[]), "# EOF\n");
}

/// The names of metrics in an expression.
fn metrics(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("rbench_"))
}

#[test]
fn every_expression_of_the_dashboard_names_metrics_that_exist() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana/rbench.json");
    let text = std::fs::read_to_string(path).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let exposed = with_everything();
    let mut seen = 0;
    let mut check = |expression: &str| {
        for name in metrics(expression) {
            let sample = format!("\n{name}{{");
            assert!(
                exposed.contains(&sample),
                "{expression}: there is no {name}"
            );
            seen += 1;
        }
    };
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().expect("targets") {
            check(target["expr"].as_str().expect("an expression"));
        }
    }
    for variable in dashboard["templating"]["list"]
        .as_array()
        .expect("variables")
    {
        check(variable["query"]["query"].as_str().unwrap_or_default());
    }
    assert!(seen > 15, "the expressions were found");
}
