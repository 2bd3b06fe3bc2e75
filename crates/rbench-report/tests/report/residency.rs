//! Tests cache verdicts in the result file, the text and the warnings.

use rbench_core::outcome::PhaseOutcome;
use rbench_core::residency::{CacheLook, Evidence, Pages, Requests, Residency, Round, Share};
use rbench_core::{Nanos, OpKind};
use rbench_report::schema::{PhaseResult, RunResult};
use rbench_report::{text, warnings};

use crate::fixtures::DETAILS;
use crate::fixtures::{Made, meta_spec, run};
use crate::golden::check;

const HOSTS: [&str; 3] = ["client1", "client2", "client3"];

fn requests(pairs: &[(&str, u64)]) -> Option<Requests> {
    Some(Requests {
        source: "MooseFS .stats".to_owned(),
        by_kind: pairs.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect(),
    })
}

fn share(made: u64, touched: u64) -> Option<Share> {
    Some(Share {
        parts: 4,
        made,
        touched,
    })
}

/// A cache's view of `operations` operations of 4 KiB.
fn look(host: &str, operations: u64, share: Option<Share>) -> CacheLook {
    CacheLook {
        host: host.to_owned(),
        operations,
        bytes: operations * 4096,
        asked: operations,
        returned: operations * 4096,
        share,
        ..CacheLook::default()
    }
}

/// One observation, made on every host.
fn alike(one: impl Fn(&str) -> CacheLook) -> Residency {
    Residency {
        ground: Evidence::Client,
        caches: HOSTS.iter().map(|host| one(host)).collect(),
        ..Residency::default()
    }
}

/// All kinds of evidence, on one host.
pub fn everything() -> Residency {
    let pages = Pages {
        files: 8,
        of: 96,
        pages: 1000,
        cached: 10,
    };
    Residency {
        ground: Evidence::Kernel,
        dropped: true,
        direct: true,
        verifies: true,
        round: Some(Round {
            after: Nanos(200_000_000),
            once: 100,
            done: 6800,
        }),
        caches: vec![CacheLook {
            before: pages,
            after: pages,
            requests: requests(&[("read", 3)]),
            fetched: Some(4096),
            ..look("client1", 1000, share(1, 1))
        }],
    }
}

fn row(name: &str, label: &str, op: OpKind, residency: Residency) -> PhaseOutcome {
    let mut phase = Made::on(3, 4, 400, 4096, 400_000).phase(name, label, op);
    phase.cache = residency.verdict(op).0.cache();
    phase.residency = Some(residency);
    phase
}

fn several() -> RunResult {
    let stats = |count: u64, own| {
        alike(move |host| CacheLook {
            requests: requests(&[("lookup", count), ("statfs", 2)]),
            ..look(host, 1600, own)
        })
    };
    let pages = |cached| Pages {
        files: 8,
        of: 1600,
        pages: 8,
        cached,
    };
    let mut mixed = stats(1600, share(0, 0));
    mixed.caches[1].requests = requests(&[]);
    let wrapped = Residency {
        verifies: true,
        round: Some(Round {
            after: Nanos(200_000_000),
            once: 4800,
            done: 326_400,
        }),
        ..alike(|host| CacheLook {
            requests: requests(&[("read", 3)]),
            ..look(host, 108_800, share(0, 0))
        })
    };
    let dropped = Residency {
        dropped: true,
        ground: Evidence::Kernel,
        ..alike(|host| CacheLook {
            before: pages(0),
            fetched: Some(1600 * 4096),
            ..look(host, 1600, share(4, 0))
        })
    };
    let phases = vec![
        row(
            "dir-stat",
            "Directory stat",
            OpKind::Stat,
            stats(0, share(4, 0)),
        ),
        row(
            "file-stat",
            "File stat",
            OpKind::Stat,
            stats(1600, share(0, 0)),
        ),
        row(
            "dir-list",
            "Directory listing",
            OpKind::List,
            alike(|host| look(host, 16, share(4, 0))),
        ),
        row("file-read", "File read", OpKind::ReadFile, dropped),
        row("mixed", "Some hosts", OpKind::Stat, mixed),
        row("read", "Sequential read", OpKind::Read, wrapped),
        row(
            "unknown",
            "Old files",
            OpKind::Stat,
            alike(|host| look(host, 16, None)),
        ),
    ];
    run(3, 4, meta_spec(), phases)
}

#[test]
fn the_evidence_of_every_row_is_told() {
    check("residency.txt", &text::render(&several(), DETAILS));
}

#[test]
fn what_is_no_read_is_called_an_operation() {
    let mut result = several();
    let phase = result.phases.iter_mut().find(|phase| phase.op == "stat");
    phase.expect("a stat").op = "lookup".to_owned();
    let all = warnings::find(&result);
    let message = all.iter().find(|warning| warning.code == "cache-hit");
    let message = &message.expect("found").message;
    assert!(
        message.contains("(4,800 operations, 0 requests)"),
        "{message}"
    );
}

#[test]
fn warnings_name_the_rows_in_which_memory_answered() {
    let all = warnings::find(&several());
    let message = |code: &str| {
        let hit = all.iter().find(|warning| warning.code == code);
        hit.map(|warning| warning.message.as_str())
    };
    assert_eq!(
        message("cache-hit"),
        Some(
            "This host's memory answered, not the file system: Directory stat (4,800 stats, 0 requests)."
        )
    );
    assert_eq!(
        message("cold-then-warm"),
        Some(
            "Cold only at first: workers then read data again that they had already read: \
             Sequential read (after 200 ms, 68.0 passes). Use larger files or a shorter --time."
        )
    );
    assert_eq!(
        message("verified-memory"),
        Some(
            "The verified data came, at least in part, from this host's memory, so the storage itself was \
             not checked: Sequential read (326,400 reads, 9 requests)."
        )
    );
}

#[test]
fn a_part_from_memory_is_named_with_its_share() {
    let message = |name: &str, op: OpKind, operations: u64, counted: (&str, u64)| {
        let seen = alike(|host| CacheLook {
            requests: requests(&[counted]),
            ..look(host, operations, share(0, 0))
        });
        let label = if op == OpKind::Stat {
            "File stat"
        } else {
            "Read"
        };
        let result = run(3, 4, meta_spec(), vec![row(name, label, op, seen)]);
        let all = warnings::find(&result);
        let hit = all.iter().find(|warning| warning.code == "cache-part");
        hit.map(|warning| warning.message.clone())
    };
    let words = "This host's memory, not the file system, answered some of the operations: ";
    let of = |name, op, operations, counted| {
        let message = message(name, op, operations, counted)?;
        Some(message.strip_prefix(words).expect("the words").to_owned())
    };
    assert_eq!(
        of("file-stat", OpKind::Stat, 350, ("lookup", 98)).as_deref(),
        Some("File stat (72% of it, 1,050 stats, 294 requests).")
    );
    // Random requests bring no data for other reads; a sequential one brings at most 1 MiB.
    assert_eq!(
        of("randread", OpKind::Read, 1_000_000, ("read", 2000)).as_deref(),
        Some("Read (99.8% of it, 3,000,000 reads, 6,000 requests).")
    );
    assert_eq!(
        of("read", OpKind::Read, 1_000_000, ("read", 2000)).as_deref(),
        Some("Read (at least 49% of it, 3,000,000 reads, 6,000 requests).")
    );
    assert_eq!(of("file-stat", OpKind::Stat, 350, ("lookup", 350)), None);
}

#[test]
fn every_report_has_the_same_word_for_a_verdict() {
    // The client was asked about its own items, but it is unknown whether it asked its server.
    let asked = alike(|host| CacheLook {
        requests: requests(&[("lookup", 1600)]),
        ..look(host, 1600, share(4, 0))
    });
    let phase = row("file-stat", "File stat", OpKind::Stat, asked);
    let result = run(3, 4, meta_spec(), vec![phase]);
    assert_eq!(result.phases[0].cache, None);
    let report = text::render(&result, DETAILS);
    assert!(report.contains("unknown 1.00/op"), "{report}");
    assert!(
        report.contains("unknown: requests reached the client"),
        "{report}"
    );
    assert!(!report.contains("warm"), "{report}");
    let csv = rbench_report::csv::operations(&[result]);
    assert!(csv.contains(",unknown,"), "{csv}");
}

#[test]
fn a_short_median_alone_is_no_memory_and_large_blocks_from_memory_are() {
    let codes = |residency: Option<Residency>, base_ns: u64| {
        let mut phase = Made::on(1, 1, 400, 128 << 10, base_ns).phase("read", "Read", OpKind::Read);
        phase.residency = residency;
        let all = warnings::find(&run(1, 1, meta_spec(), vec![phase]));
        all.iter().any(|warning| warning.code == "cache-hit")
    };
    assert!(!codes(None, 100), "such as those of the engine null");
    let resident = Residency {
        ground: Evidence::Kernel,
        caches: vec![CacheLook {
            before: Pages {
                files: 1,
                of: 1,
                pages: 12_800,
                cached: 12_800,
            },
            ..look("client1", 400, share(4, 0))
        }],
        ..Residency::default()
    };
    // 128 KiB at 8.7 GiB/s.
    assert!(codes(Some(resident), 14_400));
}

#[test]
fn figures_of_all_caches_are_sums_and_unknown_where_one_is() {
    let of = |residency: Residency| {
        let result = PhaseResult::from(&row("s", "S", OpKind::Stat, residency));
        result.residency.expect("it was looked at")
    };
    let count = |host: &str| CacheLook {
        requests: requests(&[("lookup", 7), ("getattr", 1)]),
        ..look(host, 10, share(1, 2))
    };
    let all = of(alike(count));
    let own = all.total.own.expect("known");
    assert_eq!(
        (own.parts, own.made, own.touched, own.share),
        (12, 3, 6, 0.75)
    );
    let asked = all.total.requests.expect("counted everywhere");
    assert_eq!((asked.answering, asked.operations), (24, 30));
    assert_eq!(asked.by_kind["lookup"], 21);
    assert_eq!(all.caches.len(), 3);
    let mut one_is_silent = alike(count);
    one_is_silent.caches[2].requests = None;
    let some = of(one_is_silent);
    assert_eq!(some.total.requests, None);
    assert!(some.caches[0].evidence.requests.is_some());
}
