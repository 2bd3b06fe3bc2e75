//! Tests every warning code: a situation that raises it, a similar one that does not, and a section
//! of docs/reference/warnings.md.

use std::collections::BTreeSet;

use rbench_core::effort::Effort;
use rbench_core::outcome::{CommonStart, PhaseOutcome, Retries};
use rbench_core::residency::{CacheLook, Evidence, Pages, Requests, Residency, Round, Share};
use rbench_core::steady::{Criterion, Rates, Steadiness, SteadyRule};
use rbench_core::timeline::Gap;
use rbench_core::{Latency, Nanos, OpKind};
use rbench_report::{RunResult, warnings};

use crate::fixtures::{Made, fail, meta_spec, no_space, run};

type Situation = fn(&mut PhaseOutcome);

/// A code, a situation that raises it, and one that does not.
struct Pair {
    code: &'static str,
    op: OpKind,
    raises: Situation,
    does_not: Situation,
}

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// A window of two seconds with values 25 % off their mean.
fn steady(attained_at: Option<Nanos>) -> Steadiness {
    let rates = |ios: f64| Rates {
        ios,
        bytes: ios * 4096.0,
    };
    Steadiness {
        rule: SteadyRule {
            criterion: Criterion {
                bandwidth: false,
                slope: false,
                limit: 20.0,
                percent: true,
            },
            duration: Nanos(2 * SECOND),
            every: Nanos(SECOND),
            ramp: Nanos(0),
        },
        attained_at,
        window_from: Some(Nanos(2 * SECOND)),
        value: Some(25.0),
        window: vec![rates(750.0), rates(1250.0)],
    }
}

const PAIRS: &[Pair] = &[
    Pair {
        code: "errors",
        op: OpKind::Create,
        raises: |p| fail(p, 0, 1, no_space(OpKind::Create, "d/f")),
        does_not: |_| (),
    },
    Pair {
        code: "missed",
        op: OpKind::Open,
        raises: |p| p.missed = 21,
        does_not: |p| p.missed = 20,
    },
    Pair {
        code: "unchecked-blocks",
        op: OpKind::Read,
        raises: |p| p.unchecked = 1,
        does_not: |p| p.unchecked = 0,
    },
    Pair {
        code: "open-loop-behind",
        op: OpKind::Write,
        raises: |p| p.unissued = 21,
        does_not: |p| p.unissued = 20,
    },
    Pair {
        code: "not-steady",
        op: OpKind::Write,
        raises: |p| p.steady = Some(steady(None)),
        does_not: |p| p.steady = Some(steady(Some(Nanos(4 * SECOND)))),
    },
    Pair {
        code: "time-outside-calls",
        op: OpKind::Write,
        raises: |p| p.effort = effort(949, 51),
        does_not: |p| p.effort = effort(950, 50),
    },
    Pair {
        code: "given-up-workers",
        op: OpKind::Write,
        raises: |p| {
            p.effort = Effort {
                given_up: 1,
                lost: 10,
                ..effort(100, 0)
            };
        },
        does_not: |p| p.effort = effort(100, 0),
    },
    Pair {
        code: "first-failed",
        op: OpKind::Stat,
        raises: |p| (p.first_done, p.first_failed) = (None, Some("client2".to_owned())),
        does_not: |p| p.first_done = None,
    },
    Pair {
        code: "interrupted-calls",
        op: OpKind::Write,
        raises: |p| p.again = retries(1, 0),
        does_not: |p| p.again = retries(0, 1),
    },
    Pair {
        code: "short-transfers",
        op: OpKind::Write,
        raises: |p| p.again = retries(0, 1),
        does_not: |p| p.again = retries(1, 0),
    },
    Pair {
        code: "cache-hit",
        op: OpKind::Stat,
        raises: |p| p.residency = Some(asked(p.items, 0)),
        does_not: |p| p.residency = Some(asked(p.items, p.items)),
    },
    Pair {
        code: "cache-part",
        op: OpKind::Stat,
        raises: |p| p.residency = Some(asked(p.items, p.items / 3)),
        does_not: |p| p.residency = Some(asked(p.items, 0)),
    },
    Pair {
        code: "cold-then-warm",
        op: OpKind::Read,
        raises: |p| p.residency = Some(came_round(p.items, Some(p.items / 4))),
        does_not: |p| p.residency = Some(came_round(p.items, None)),
    },
    Pair {
        code: "rewritten",
        op: OpKind::Write,
        raises: |p| p.rewritten = Some(round(p.items / 4, p.items)),
        does_not: |p| p.rewritten = None,
    },
    Pair {
        code: "verified-memory",
        op: OpKind::Read,
        raises: |p| p.residency = Some(verified(p.items, 0)),
        does_not: |p| p.residency = Some(verified(p.items, p.items)),
    },
    Pair {
        code: "short-phase",
        op: OpKind::Create,
        raises: |p| p.elapsed = Nanos(10 * MS - 1),
        does_not: |p| p.elapsed = Nanos(10 * MS),
    },
    Pair {
        code: "straggler",
        op: OpKind::Create,
        raises: |p| last_rank(p, 16),
        does_not: |p| last_rank(p, 15),
    },
    Pair {
        code: "uneven-hosts",
        op: OpKind::Create,
        raises: |p| p.hosts[0].items = 2 * p.hosts[1].items + p.hosts[1].items / 2,
        does_not: |p| p.hosts[0].items = p.hosts[1].items + p.hosts[1].items / 2,
    },
    Pair {
        code: "stalled",
        op: OpKind::Create,
        raises: |p| stand_still(p, 1_001),
        does_not: |p| stand_still(p, 1_000),
    },
    Pair {
        code: "start-skew",
        op: OpKind::Create,
        raises: |p| (p.elapsed, p.start_skew) = (Nanos(20 * MS), Nanos(2 * MS + 1)),
        does_not: |p| (p.elapsed, p.start_skew) = (Nanos(20 * MS), Nanos(2 * MS)),
    },
    Pair {
        code: "start-unsure",
        op: OpKind::Create,
        raises: |p| (p.elapsed, p.start) = (Nanos(20 * MS), start(MS + 1)),
        does_not: |p| (p.elapsed, p.start) = (Nanos(20 * MS), start(MS)),
    },
    Pair {
        code: "tool-cost",
        op: OpKind::Create,
        // A null operation costs 35.1 ns in these runs.
        raises: |p| all_at(p, 600),
        does_not: |p| all_at(p, 800),
    },
    Pair {
        code: "latency-above-range",
        op: OpKind::Create,
        raises: |p| p.service.record(Nanos(3_600_000 * MS + 1)),
        does_not: |p| p.service.record(Nanos(3_600_000 * MS)),
    },
];

fn effort(in_calls: u64, outside: u64) -> Effort {
    Effort {
        workers: 4,
        active: Nanos((in_calls + outside) * MS),
        in_calls: Nanos(in_calls * MS),
        full: Nanos(in_calls * MS),
        ..Effort::default()
    }
}

fn retries(interrupted: u64, continued: u64) -> Retries {
    Retries {
        interrupted,
        continued,
    }
}

fn start(error_ns: u64) -> Option<CommonStart> {
    Some(CommonStart {
        at: Nanos(1),
        error: Nanos(error_ns),
    })
}

fn round(once: u64, done: u64) -> Round {
    Round {
        after: Nanos(50 * MS),
        once,
        done,
    }
}

/// A host's cache with this number of operations and of requests.
fn seen(operations: u64, count: u64, kind: &str) -> CacheLook {
    CacheLook {
        host: "client1".to_owned(),
        operations,
        asked: operations,
        bytes: operations * 4096,
        returned: operations * 4096,
        share: Some(Share {
            parts: 4,
            made: 0,
            touched: 0,
        }),
        requests: Some(Requests {
            source: "a counter".to_owned(),
            by_kind: [(kind.to_owned(), count)].into(),
        }),
        ..CacheLook::default()
    }
}

fn asked(operations: u64, requests: u64) -> Residency {
    Residency {
        ground: Evidence::Client,
        caches: vec![seen(operations, requests, "lookup")],
        ..Residency::default()
    }
}

fn came_round(operations: u64, once: Option<u64>) -> Residency {
    Residency {
        ground: Evidence::Client,
        round: once.map(|once| round(once, operations)),
        caches: vec![seen(operations, operations / 4, "read")],
        ..Residency::default()
    }
}

fn verified(operations: u64, requests: u64) -> Residency {
    Residency {
        ground: Evidence::Kernel,
        verifies: true,
        caches: vec![CacheLook {
            before: Pages {
                files: 1,
                of: 1,
                pages: 1000,
                cached: if requests == 0 { 1000 } else { 0 },
            },
            requests: None,
            fetched: Some(requests * 4096),
            ..seen(operations, requests, "read")
        }],
        ..Residency::default()
    }
}

/// One host finishes nothing for `ms` ms while an operation is pending.
fn stand_still(phase: &mut PhaseOutcome, ms: u64) {
    let host = &mut phase.hosts[1];
    host.gap = Some(Gap {
        length: Nanos(ms * MS),
        from: Nanos(50 * MS),
    });
    host.service.record(Nanos(1_000 * MS));
}

/// The last rank takes `tenths` tenths of the others' time.
fn last_rank(phase: &mut PhaseOutcome, tenths: u64) {
    for rank in &mut phase.ranks {
        rank.elapsed = Nanos(100 * MS);
    }
    phase.ranks[3].elapsed = Nanos(10 * tenths * MS);
}

fn all_at(phase: &mut PhaseOutcome, ns: u64) {
    for service in std::iter::once(&mut phase.service)
        .chain(phase.hosts.iter_mut().map(|host| &mut host.service))
    {
        let count = service.count();
        *service = Latency::new();
        (0..count).for_each(|_| service.record(Nanos(ns)));
    }
}

/// The codes of a run with one phase of 200 ms in this situation.
fn codes(op: OpKind, situation: Situation) -> BTreeSet<String> {
    let mut phase = Made::on(2, 2, 500, 4096, 100_000).phase("phase", "The phase", op);
    situation(&mut phase);
    let result: RunResult = run(2, 2, meta_spec(), vec![phase]);
    result.warnings.into_iter().map(|w| w.code).collect()
}

#[test]
fn every_rule_has_a_situation_that_raises_it_and_one_that_does_not() {
    for Pair {
        code,
        op,
        raises,
        does_not,
    } in PAIRS
    {
        assert!(codes(*op, *raises).contains(*code), "{code} is not raised");
        assert!(!codes(*op, *does_not).contains(*code), "{code} is raised");
    }
}

#[test]
fn every_rule_is_in_the_table_and_in_the_documentation() {
    // Codes about mounts belong to no phase, and one to mdtest only: dead_mounts.rs and warnings.rs
    // test them.
    let pairs = PAIRS.iter().map(|pair| pair.code);
    let others = [
        "dead-mount",
        "root-file-system",
        "target-in-memory",
        "already-there",
    ];
    let tested: BTreeSet<&str> = pairs.chain(others).collect();
    let rules: BTreeSet<&str> = warnings::codes().collect();
    assert_eq!(tested, rules);
    let page = include_str!("../../../../docs/reference/warnings.md");
    let headings = page.lines().filter_map(|line| line.strip_prefix("### "));
    let explained: BTreeSet<&str> = headings.map(|name| name.trim_matches('`')).collect();
    // Codes that the run itself raises, before or after its phases.
    let of_the_run = [
        "after-phase-failed",
        "ended-early",
        "event-failed",
        "event-not-run",
        "fits-in-client-cache",
        "fits-in-memory",
        "left-behind",
        "nearly-full",
        "never-written",
        "plan",
        "precision-missed",
        "ramp-only",
        "replay-differs",
        "replay-late",
        "stopped-by-signal",
        "target-not-shared",
        "unfinished-phase",
        "unreadable-lines",
        "warm-up-errors",
    ];
    let all: BTreeSet<&str> = rules.into_iter().chain(of_the_run).collect();
    assert_eq!(explained, all);
}
