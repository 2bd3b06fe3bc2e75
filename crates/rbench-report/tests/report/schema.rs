//! Tests that the result file has the promised fields, and that written files read back equal.

use std::collections::BTreeSet;

use proptest::prelude::*;
use rbench_core::outcome::{Cache, Stonewall};
use rbench_core::{Latency, Nanos, OpKind};
use rbench_report::View;
use rbench_report::schema::{SCHEMA, TIMELINE_ROWS, reads_schema};
use rbench_report::{Document, PhaseResult, RENDERERS, RunResult, json};
use serde_json::Value;

use crate::fixtures::DETAILS;
use crate::fixtures::{Made, fail, meta_phases, meta_spec, no_space, run};
use crate::residency::everything;

/// The promise of the schema `rbench.result/1`: these paths exist in every file, permanently. `[]`
/// means an element of a list. Paths may be added, but not removed.
const PROMISED: &str = "
schema run world target calibration spec phases summary warnings complete
run.id run.command run.version run.started run.finished run.utc_offset_s run.seed run.labels
world.communicator world.ranks world.threads_per_rank world.hosts
world.hosts[].name world.hosts[].ranks world.hosts[].kernel world.hosts[].cpus
world.hosts[].clock_offset_ns world.hosts[].clock_error_ns world.hosts[].caches
world.hosts[].clock world.hosts[].clock.number world.hosts[].clock.boot
world.hosts[].clock.drift_ppm world.hosts[].clock.drift_error_ppm
target.path target.fs_type target.mount_source target.mount_options target.embedded target.shared
target.space target.space.bytes_total target.space.bytes_free
target.space.inodes_total target.space.inodes_free
calibration.clock_ns calibration.record_ns calibration.null_op_ns
phases[].iteration phases[].name phases[].label phases[].op phases[].items phases[].bytes
phases[].errors phases[].elapsed_s phases[].rate phases[].bandwidth phases[].first_done
phases[].first_done.elapsed_s phases[].first_done.items phases[].first_done.rate
phases[].start_skew_s phases[].start_error_s phases[].cache phases[].latency phases[].latency.service
phases[].latency.response phases[].latency.lateness.mean_ns phases[].latency.lateness.max_ns
phases[].latency.lateness.operations phases[].hosts phases[].hosts[].host phases[].hosts[].items
phases[].hosts[].elapsed_s phases[].hosts[].latency
phases[].ranks phases[].ranks[].rank phases[].ranks[].host phases[].ranks[].items
phases[].ranks[].errors phases[].ranks[].elapsed_s phases[].ranks[].p50_ns
phases[].ranks[].p99_ns phases[].ranks[].max_ns phases[].ranks[].cpu_s
phases[].timeline phases[].timeline[].t_s phases[].timeline[].items phases[].timeline[].bytes
phases[].timeline[].errors phases[].timeline[].max_ns phases[].timeline[].p50_ns
phases[].timeline[].p99_ns phases[].timeline[].heat phases[].timeline_step_s
phases[].complete phases[].error_examples phases[].error_examples[].error
phases[].error_examples[].count phases[].error_examples[].op phases[].error_examples[].path
phases[].error_examples[].detail phases[].error_examples[].rank phases[].error_examples[].host
phases[].stonewall phases[].stonewall.deadline_s phases[].stonewall.items
phases[].stonewall.least phases[].stonewall.most
phases[].residency phases[].residency.verdict phases[].residency.reason phases[].residency.ground
phases[].residency.dropped phases[].residency.direct phases[].residency.verifies
phases[].residency.came_round phases[].residency.came_round.after_s
phases[].residency.came_round.once phases[].residency.came_round.done
phases[].residency.came_round.passes phases[].residency.total
phases[].residency.caches phases[].residency.caches[].host phases[].residency.caches[].verdict
phases[].residency.caches[].reason phases[].residency.caches[].evidence
summary[].name summary[].label summary[].unit summary[].iterations summary[].max summary[].min
summary[].mean summary[].stddev summary[].each summary[].each[].iteration summary[].each[].value
summary[].each[].mean_ns summary[].each[].p50_ns summary[].each[].p95_ns summary[].each[].p99_ns
summary[].each[].p999_ns summary[].each[].max_ns
settings settings.items.text settings.items.value settings.items.unit
warnings[].code warnings[].message
";

const HIST: &str = "count min_ns max_ns mean_ns stddev_ns p50_ns p90_ns p95_ns p99_ns p999_ns \
     p9999_ns above hdr";

const EVIDENCE: &str = "operations bytes own own.parts own.made own.touched own.share \
     resident_before resident_before.files resident_before.of resident_before.pages \
     resident_before.cached resident_before.share resident_after requests requests.source \
     requests.by_kind requests.by_kind.read requests.answering requests.operations \
     requests.per_operation fetched fetched.bytes fetched.returned fetched.per_byte";

fn full() -> RunResult {
    let mut phase = Made::on(2, 2, 500, 4096, 100_000).phase("w", "Write", OpKind::Write);
    fail(&mut phase, 3, 2, no_space(OpKind::Write, "d/f"));
    phase.response = Some(phase.service.clone());
    phase.late.record(Nanos(7));
    phase.cache = Some(Cache::Mixed);
    phase.residency = Some(everything());
    phase.stonewall = Some(Stonewall {
        deadline: Nanos(100_000_000),
        stopped: Nanos(100_000_000),
        items: 900,
        least: 200,
        most: 250,
    });
    run(2, 2, meta_spec(), vec![phase])
}

fn paths(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if at.is_empty() {
                    key.clone()
                } else {
                    format!("{at}.{key}")
                };
                paths(value, &path, found);
                found.insert(path);
            }
        }
        Value::Array(list) => list
            .iter()
            .for_each(|v| paths(v, &format!("{at}[]"), found)),
        _ => {}
    }
}

#[test]
fn every_promised_field_is_there() {
    let value: Value = serde_json::from_str(&json::render(&full())).expect("it is JSON");
    let mut present = BTreeSet::new();
    paths(&value, "", &mut present);
    let hists = [
        "phases[].latency.service",
        "phases[].latency.response",
        "phases[].hosts[].latency",
    ];
    let in_hists = hists
        .iter()
        .flat_map(|at| HIST.split_whitespace().map(move |k| format!("{at}.{k}")));
    let evidence = [
        "phases[].residency.total",
        "phases[].residency.caches[].evidence",
    ];
    let evidence = evidence.iter().flat_map(|at| {
        EVIDENCE
            .split_whitespace()
            .map(move |k| format!("{at}.{k}"))
    });
    let promised = PROMISED
        .split_whitespace()
        .map(str::to_owned)
        .chain(in_hists)
        .chain(evidence);
    let missing: Vec<String> = promised.filter(|p| !present.contains(p)).collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn absent_values_are_null_and_not_zero() {
    let mut phase = Made::solo(10, 0, 100_000).phase("a", "A", OpKind::Create);
    phase.first_done = None;
    let value = serde_json::to_value(PhaseResult::from(&phase)).expect("it serialises");
    for key in ["bandwidth", "first_done", "cache", "stonewall"] {
        assert_eq!(value[key], Value::Null, "{key}");
    }
    assert_eq!(value["latency"]["response"], Value::Null);
}

#[test]
fn the_rate_is_items_over_elapsed_and_the_bandwidth_bytes_over_elapsed() {
    let mut phase = Made::solo(1000, 4096, 100_000).phase("a", "A", OpKind::Write);
    phase.elapsed = Nanos(250_000_000);
    let result = PhaseResult::from(&phase);
    assert_eq!(result.rate, 4000.0);
    assert_eq!(result.bandwidth, Some(4000.0 * 4096.0));
    phase.elapsed = Nanos(0);
    assert_eq!(PhaseResult::from(&phase).rate, 0.0);
}

#[test]
fn a_long_timeline_is_written_in_at_most_256_rows_and_loses_nothing() {
    let phase = Made::solo(5000, 10, 1_000_000).phase("a", "A", OpKind::Write);
    assert!(phase.timeline.bins().len() > TIMELINE_ROWS);
    let result = PhaseResult::from(&phase);
    let rows = &result.timeline;
    assert!(rows.len() <= TIMELINE_ROWS && rows.len() > TIMELINE_ROWS / 2 - 1);
    assert_eq!(rows.iter().map(|r| r.items).sum::<u64>(), 5000);
    assert_eq!(rows[0].t_s, 0.0);
    let step = result.timeline_step_s;
    assert!((rows[7].t_s - 7.0 * step).abs() < 1e-12);
    assert!(step * rows.len() as f64 >= result.elapsed_s);
    assert!(step * (rows.len() - 1) as f64 <= result.elapsed_s);
}

#[test]
fn other_major_versions_are_refused_and_minor_ones_read() {
    let check = |name: &str, expect: bool| assert_eq!(reads_schema(name), expect, "{name}");
    check("rbench.result/1", true);
    check("rbench.result/1.3", true);
    check("rbench.result/2", false);
    check("rbench.result/11", false);
    check("rbench.journal/1", false);
    check("", false);
    let text = json::render(&full()).replace(SCHEMA, "rbench.result/2");
    let message = serde_json::from_str::<RunResult>(&text).map_err(|e| e.to_string());
    let message = message.expect_err("another major version");
    assert!(
        message.contains("this version of rbench reads rbench.result/1"),
        "{message}"
    );
}

#[test]
fn fields_of_later_versions_are_passed_over() {
    let result = full();
    let mut value = serde_json::to_value(&result).expect("it serialises");
    value["new"] = true.into();
    value["run"]["new"] = 1.into();
    value["phases"][0]["new"] = "x".into();
    value["phases"][0]["latency"]["service"]["new"] = Value::Null;
    let read: RunResult = serde_json::from_value(value).expect("unknown fields do not matter");
    assert_eq!(read, result);
}

#[test]
fn files_from_before_a_field_was_added_are_read() {
    let mut value = serde_json::to_value(full()).expect("it serialises");
    let mut drop_field = |part: &str, field: &str| {
        let map = value[part].as_object_mut().expect("a map");
        assert!(map.remove(field).is_some(), "{part}.{field}");
    };
    drop_field("run", "utc_offset_s");
    drop_field("target", "space");
    for field in ["measured_from_s", "set_aside_s"] {
        let phase = value["phases"][0].as_object_mut().expect("a map");
        assert!(phase.remove(field).is_some(), "{field}");
    }
    let read: RunResult = serde_json::from_value(value).expect("these fields may be missing");
    assert_eq!((read.run.utc_offset_s, read.target.space), (0, None));
    assert_eq!(read.phases[0].measured_from_s, 0.0);
}

#[test]
fn each_rank_host_and_row_of_a_timeline_is_one_line_of_the_file() {
    let text = json::render(&full());
    let lines = |start: &str| {
        text.lines()
            .filter(|l| l.trim_start().starts_with(start))
            .count()
    };
    assert_eq!(lines("{\"rank\": "), 4);
    assert_eq!(lines("{\"host\": "), 2);
    assert_eq!(lines("{\"t_s\": "), full().phases[0].timeline.len());
    assert_eq!(lines("\"service\": {\"count\": "), 1);
    assert!(text.starts_with("{\n  \"schema\": \"rbench.result/1\",\n  \"run\": {\n    \"id\""));
}

#[test]
fn renderers_have_names_of_their_own_and_end_their_last_line() {
    let names: BTreeSet<&str> = RENDERERS.iter().map(|r| r.name).collect();
    assert_eq!(names.len(), RENDERERS.len());
    for renderer in RENDERERS {
        let text = match (renderer.render)(&[Document::Run(Box::new(full()))], View::default()) {
            Ok(text) => text,
            Err(why) => {
                assert!(why.to_string().contains("was not made by"), "{why}");
                continue;
            }
        };
        assert!(
            text.ends_with('\n') && !text.ends_with("\n\n"),
            "{}",
            renderer.name
        );
    }
}

fn any_name() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>(), 0..12).prop_map(String::from_iter)
}

prop_compose! {
    fn any_result()(
        seed in any::<u64>(),
        values in prop::collection::vec(any::<u64>(), 0..40),
        names in prop::collection::vec(any_name(), 6),
        numbers in prop::collection::vec(0.0_f64..1e12, 4),
        elapsed in any::<u32>(),
        flags in prop::collection::vec(any::<bool>(), 4),
    ) -> RunResult {
        let mut phase = Made::on(2, 1, 3, seed % 9, 1_000).phase(&names[0], &names[1], OpKind::Read);
        phase.elapsed = Nanos(u64::from(elapsed));
        phase.service = Latency::new();
        values.iter().for_each(|v| phase.service.record(Nanos(v >> (8 + v % 50))));
        phase.response = flags[0].then(|| phase.service.clone());
        phase.cache = flags[1].then_some(Cache::Warm);
        phase.complete = flags[2];
        fail(&mut phase, 1, 1, no_space(OpKind::Read, &names[2]));
        let mut result = run(2, 1, meta_spec(), vec![phase]);
        result.run.seed = seed;
        result.run.command = vec![names[3].clone(), names[4].clone()];
        result.run.labels.insert(names[5].clone(), names[0].clone());
        result.calibration.clock_ns = numbers[0];
        result.phases[0].rate = numbers[1];
        result.phases[0].start_skew_s = numbers[2] / 1e9;
        result.world.hosts[1].clock_offset_ns = seed as i64;
        result.complete = flags[3];
        result.spec.insert(names[4].clone(), numbers[3].into());
        result
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_what_is_read(result in any_result()) {
        let text = json::render(&result);
        let read: RunResult = serde_json::from_str(&text).expect("it reads its own files");
        prop_assert_eq!(&read, &result);
        prop_assert_eq!(json::render(&read), text);
    }

    #[test]
    fn any_result_has_a_text_report_without_control_characters(result in any_result()) {
        let text = rbench_report::text::render(&result, DETAILS);
        prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{:?}", text);
    }

    #[test]
    fn any_result_has_every_form_and_a_page(result in any_result()) {
        let document = Document::Run(Box::new(result));
        for renderer in RENDERERS {
            let Ok(text) = (renderer.render)(std::slice::from_ref(&document), View::default()) else {
                continue;
            };
            let steers = |c: char| c.is_control() && c != '\n';
            prop_assert!(!text.chars().any(steers), "{}: {:?}", renderer.name, text);
        }
        let page = rbench_report::page::render(&[document.clone(), document], &[]);
        prop_assert!(page.starts_with(rbench_report::page::BEGINNING));
    }
}

#[test]
fn the_phases_of_a_metadata_run_add_up() {
    for outcome in meta_phases(3, 4) {
        let phase = PhaseResult::from(&outcome);
        let hosts: u64 = phase.hosts.iter().map(|h| h.items).sum();
        let ranks: u64 = phase.ranks.iter().map(|r| r.items).sum();
        let timeline: u64 = phase.timeline.iter().map(|r| r.items).sum();
        let parts: u64 = phase.hosts.iter().map(|h| h.latency.count).sum();
        assert_eq!(
            [hosts, ranks, timeline, parts, phase.latency.service.count],
            [phase.items; 5]
        );
    }
}
