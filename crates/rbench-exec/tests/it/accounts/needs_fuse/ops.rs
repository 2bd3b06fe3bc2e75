//! The per-operation table: each row takes at least the time of its own requests, and 12 ranks report every row.

use std::collections::BTreeSet;

use rbench_core::operations::{OPS_ROWS, row as find};
use rbench_core::residency::Verdict;
use rbench_plan::spec;

use super::*;

/// The requests of an operation of each row. Before a file's content changes, the kernel asks for the attribute
/// `security.capability`.
pub const REQUESTS: &[(&str, &[Kind])] = &[
    ("mkdir", &[Kind::Mkdir]),
    ("mvdir", &[Kind::Rename]),
    ("rmdir", &[Kind::Rmdir]),
    ("mknod", &[Kind::Mknod]),
    ("create", &[Kind::Create]),
    ("close", &[Kind::Flush]),
    ("rename", &[Kind::Rename]),
    ("unlink", &[Kind::Unlink]),
    ("link", &[Kind::Link]),
    ("symlink", &[Kind::Symlink]),
    ("readlink", &[Kind::Readlink]),
    ("setattr", &[Kind::Setattr]),
    ("utimes", &[Kind::Setattr]),
    ("truncate", &[Kind::Setattr, Kind::Getxattr]),
    ("access", &[Kind::Access]),
    ("setxattr", &[Kind::Setxattr]),
    ("getxattr", &[Kind::Getxattr]),
    ("removexattr", &[Kind::Removexattr]),
    ("listxattr_1", &[Kind::Listxattr]),
    ("listxattr_10", &[Kind::Listxattr]),
    ("statfs", &[Kind::Statfs]),
    ("write", &[Kind::Getxattr, Kind::Write, Kind::Fsync]),
    ("read_1", &[Kind::Read]),
    ("read_10", &[Kind::Read]),
    ("fallocate", &[Kind::Fallocate]),
    ("copy", COPY),
];

/// Both files are opened and closed; the kernel reads and writes, as the file system does not copy.
const COPY: &[Kind] = &[
    Kind::Open,
    Kind::Create,
    Kind::Read,
    Kind::Getxattr,
    Kind::Write,
    Kind::Flush,
    Kind::Flush,
];

/// A row that caches would answer, or whose preparation takes thousands of requests; it has a run of its own.
pub struct Asked {
    pub row: &'static str,
    pub kind: Kind,
    /// Requests per operation. A path is looked up name by name: the pass, the rank and the item, and for `resolve`
    /// four more below the item.
    pub requests: u64,
    /// True if the kernel may cache names.
    pub keeps_names: bool,
}

const fn asked(row: &'static str, kind: Kind, requests: u64, keeps_names: bool) -> Asked {
    Asked {
        row,
        kind,
        requests,
        keeps_names,
    }
}

pub const ASKED: &[Asked] = &[
    asked("readdir_10", Kind::Opendir, 1, true),
    asked("readdir_1k", Kind::Opendir, 1, true),
    asked("getattr", Kind::Getattr, 1, true),
    asked("lookup", Kind::Lookup, 3, false),
    asked("resolve", Kind::Lookup, 7, false),
];

/// Latencies by kind of request.
pub type Latencies = BTreeMap<Kind, Nanos>;

/// A latency for each kind in [`REQUESTS`]: `ms` of its index, from 0.
pub fn latencies(ms: impl Fn(u64) -> u64) -> Latencies {
    let kinds: BTreeSet<Kind> = REQUESTS.iter().flat_map(|(_, all)| *all).copied().collect();
    let latency = |(number, kind)| (kind, Nanos(ms(number) * MS));
    (0..).zip(kinds).map(latency).collect()
}

/// The sum of these requests' latencies.
pub fn injected(requests: &[Kind], latencies: &Latencies) -> Nanos {
    Nanos(requests.iter().map(|kind| latencies[kind].0).sum())
}

/// Runs the rows `only`, `operations` each, on a file system with `latencies`. The kernel caches attributes, and names
/// if allowed.
pub fn rows(only: &[&str], operations: u64, keeps_names: bool, latencies: &Latencies) -> Outcome {
    let target = mount(|config| {
        let long = Nanos(100 * Nanos::SECOND.0);
        config.attr_timeout = long;
        config.entry_timeout = if keeps_names { long } else { Nanos(0) };
        for (kind, latency) in latencies {
            config.latency.set(*kind, *latency);
        }
    });
    let outcome = sound(Run::ops(&[0], target.path(), table(only, operations)));
    target.end();
    outcome
}

fn table(only: &[&str], operations: u64) -> spec::Ops {
    let row = |name: &&str| find(name).expect("a row");
    spec::Ops {
        only: (!only.is_empty()).then(|| only.iter().map(row).collect()),
        operations: Some(operations),
        time: None,
    }
}

/// Checks every row except those of [`ASKED`].
fn check_own(latencies: &Latencies) {
    let names: Vec<&str> = REQUESTS.iter().map(|(name, _)| *name).collect();
    let outcome = rows(&names, 2, true, latencies);
    for (name, requests) in REQUESTS {
        let row = outcome.row(name);
        assert_eq!(row.items, 2, "{name}");
        let (shortest, least) = (row.service.min(), injected(requests, latencies));
        assert!(shortest >= least, "{name}: {shortest}, {least} injected");
    }
}

// A row that measured another kind of request would be too short in one of the two orders.

#[test]
fn each_row_takes_at_least_the_time_of_its_own_requests_where_later_kinds_are_slower() {
    check_own(&latencies(|number| 1 + number));
}

#[test]
fn each_row_takes_at_least_the_time_of_its_own_requests_where_later_kinds_are_faster() {
    let all = latencies(|_| 0).len() as u64;
    check_own(&latencies(|number| all - number));
}

#[test]
fn rows_that_caches_would_answer_take_at_least_the_time_of_their_requests() {
    for Asked {
        row: name,
        kind,
        requests,
        keeps_names,
    } in ASKED
    {
        let latency = Nanos(3 * MS);
        let outcome = rows(
            &[name],
            2,
            *keeps_names,
            &BTreeMap::from([(*kind, latency)]),
        );
        let row = outcome.row(name);
        assert_eq!(row.items, 2, "{name}");
        let shortest = row.service.min();
        assert!(shortest.0 >= requests * latency.0, "{name}: {shortest}");
    }
}

/// Runs `only` on 12 ranks. Every worker does `each` operations of every row, and no other row is reported.
fn on_twelve_ranks(only: &[&str], threads: u32, each: u64) -> Outcome {
    let target = mount(|_| ());
    let mut run = Run::ops(&[0; 12], target.path(), table(only, each));
    run.common.threads = Some(threads);
    let outcome = sound(run);
    target.end();
    let reported: BTreeSet<&str> = outcome.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(reported, only.iter().copied().collect());
    assert_eq!(outcome.rows.len(), only.len());
    for row in &outcome.rows {
        let items = 12 * u64::from(threads) * each;
        assert_eq!((row.items, row.ranks.len()), (items, 12), "{}", row.name);
    }
    outcome
}

#[test]
fn twelve_ranks_report_every_row() {
    let reached = OPS_ROWS.iter().filter(|row| row.out_of_reach.is_none());
    let mut all: Vec<&str> = reached.map(|row| row.name).collect();
    all.retain(|name| *name != "readdir_1k");
    let outcome = on_twelve_ranks(&all, 2, 3);
    let getattr = outcome.row("getattr");
    let residency = getattr.residency.as_ref().expect("it was looked at");
    assert_eq!(residency.verdict(getattr.op).0, Verdict::Forced);
}

#[test]
fn twelve_ranks_list_directories_with_a_thousand_entries() {
    on_twelve_ranks(&["readdir_1k"], 1, 1);
}
