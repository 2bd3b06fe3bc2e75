//! Tests phases with more ranks and hosts than rows: the file's figures cover all ranks, and the
//! report describes all of them, not only those with rows.

use rbench_core::outcome::PhaseOutcome;
use rbench_core::spread::{self, HostSummary, NAMED_MAX, Quantiles};
use rbench_core::{Nanos, OpKind};
use rbench_report::{RunResult, json, text};
use serde_json::Value;

use crate::fixtures::DETAILS;
use crate::fixtures::{Made, meta_spec, run};

const HOSTS: u32 = 300;
const RANKS: u32 = 4;

/// 1200 ranks on 300 hosts.
fn made() -> PhaseOutcome {
    Made::on(HOSTS, RANKS, 20, 0, 1_000_000).phase("file-create", "File creation", OpKind::Create)
}

/// Keeps the rows at both ends, like the reduction.
fn crowded(phase: &PhaseOutcome) -> PhaseOutcome {
    let mut phase = phase.clone();
    let (named, spread) = spread::of_ranks(&phase.ranks);
    phase.ranks = named.iter().map(|i| phase.ranks[*i].clone()).collect();
    phase.crowd = Some(spread);
    let summary = |h: &rbench_core::outcome::HostOutcome| HostSummary {
        ranks: u64::from(RANKS),
        items: h.items,
        bytes: h.bytes,
        errors: h.errors,
        elapsed: h.elapsed,
        p50: h.service.quantile(0.5),
        p99: h.service.quantile(0.99),
        max: h.service.max(),
    };
    let hosts: Vec<HostSummary> = phase.hosts.iter().map(summary).collect();
    let (named, spread) = spread::of_hosts(&hosts);
    phase.hosts = named.iter().map(|i| phase.hosts[*i].clone()).collect();
    phase.host_crowd = Some(spread);
    phase
}

fn result_of(phase: PhaseOutcome) -> RunResult {
    run(HOSTS, RANKS, meta_spec(), vec![phase])
}

#[test]
fn a_crowd_is_written_and_read_and_a_small_world_has_none() {
    let result = result_of(crowded(&made()));
    let written = json::render(&result);
    let read: RunResult = serde_json::from_str(&written).expect("it reads its own files");
    assert_eq!(read, result);
    let phase = &result.phases[0];
    assert_eq!((phase.rank_count(), phase.host_count()), (1200, 300));
    assert!(phase.ranks.len() <= NAMED_MAX && phase.hosts.len() <= NAMED_MAX);
    let value: Value = serde_json::from_str(&written).expect("it is JSON");
    let crowd = &value["phases"][0]["crowd"];
    assert_eq!(crowd["ranks"], 1200);
    assert_eq!(crowd["items"]["p50"], 20);
    let host_crowd = &value["phases"][0]["host_crowd"];
    assert_eq!(host_crowd["hosts"], 300);
    assert_eq!(host_crowd["items"]["max"], 80);
    let small = json::render(&run(2, 2, meta_spec(), vec![made()]));
    assert!(!small.contains("crowd"));
}

#[test]
fn the_columns_of_a_crowd_are_the_quantiles_of_the_rows() {
    let whole = made();
    let mut elapsed: Vec<Nanos> = whole.ranks.iter().map(|r| r.elapsed).collect();
    elapsed.sort();
    let result = result_of(crowded(&whole));
    let crowd = result.phases[0].crowd.as_ref().expect("a crowd");
    // ⌈q·1200⌉ - 1
    let expected = Quantiles {
        min: elapsed[0],
        p1: elapsed[11],
        p5: elapsed[59],
        p25: elapsed[299],
        p50: elapsed[599],
        p75: elapsed[899],
        p95: elapsed[1139],
        p99: elapsed[1187],
        max: elapsed[1199],
    };
    assert_eq!(crowd.elapsed, expected);
}

#[test]
fn report_and_warnings_are_those_of_all_ranks_and_hosts() {
    let mut whole = made();
    for rank in &mut whole.ranks {
        rank.elapsed = Nanos(50_000_000 + 10_000 * u64::from(rank.rank.0));
    }
    // One straggler; idle ranks; a host with half the rate of the slowest.
    whole.ranks[777].elapsed = Nanos(200_000_000);
    for idle in [3, 800] {
        (whole.ranks[idle].items, whole.ranks[idle].elapsed) = (0, Nanos(0));
    }
    whole.hosts[33].elapsed = Nanos(900_000_000);
    let all = result_of(whole.clone());
    let few = result_of(crowded(&whole));
    assert_eq!(few.warnings, all.warnings);
    let codes: Vec<&str> = few.warnings.iter().map(|w| w.code.as_str()).collect();
    assert_eq!(codes, ["straggler", "uneven-hosts"]);
    let (all, few) = (text::render(&all, DETAILS), text::render(&few, DETAILS));
    assert!(few.contains("(292 more hosts)") && few.contains("rank 777 on client195"));
    let note =
        "1,200 ranks: the result file has the spread over all of them, and names the outliers.\n";
    assert_eq!(few.replace(note, ""), all);
    assert!(few.contains(note));
}
