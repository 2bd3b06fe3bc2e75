//! Tests rounds of a mix in flight: whole runs with a ring have the same effects and reports as
//! runs with one operation at a time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rbench_core::outcome::PhaseOutcome;
use rbench_core::{Bytes, FailureKind, Nanos};
use rbench_exec::ExecError;
use rbench_plan::mix::sizes::Sizes;
use rbench_plan::spec::{Mix, MixText};
use rbench_testfs::{Counts, Kind};

use crate::group::{Outcome, Run, check_adds_up};
use crate::in_flight::{flight, requests, tree, well};
use crate::mix::profile;

/// `rounds` rounds of a list with `depth` in flight; 0: one call at a time.
fn list(text: &str, rounds: u64, depth: u32) -> Mix {
    Mix {
        text: MixText::List(text.to_owned()),
        files: Some(120),
        sizes: Some(Sizes::Gamma(Bytes(3000))),
        prepared: Some(50),
        width: Some(7),
        rounds: Some(rounds),
        in_flight: flight(depth),
        ..Mix::default()
    }
}

fn ops(text: &str, rounds: u64, depth: u32) -> Mix {
    Mix {
        text: MixText::Ops(text.to_owned()),
        sizes: Some(Sizes::Fixed(Bytes(3000))),
        ..list("", rounds, depth)
    }
}

/// Items, bytes and misses of each row.
fn counts(outcome: &Outcome) -> BTreeMap<String, (u64, u64, u64)> {
    let rows = outcome.rows.iter();
    rows.map(|row| (row.name.clone(), (row.items, row.bytes, row.missed)))
        .collect()
}

type Tree = Vec<(PathBuf, u64)>;

/// Lists that end with all names, or with none, whichever round has used which name.
const FILLS: &str = "create, write whole, fsync, close, stat last, open last, 2x (fstat), read whole, setxattr 30, \
                     getxattr, close";
const EMPTIES: &str = "open, read whole, close, rename last, stat last, delete last";

/// Removes counts that depend on the files used and their length: reads, and the requests in which
/// the kernel appends data.
fn without_lengths(mut counts: BTreeMap<Kind, (u64, u64)>) -> BTreeMap<Kind, (u64, u64)> {
    counts.remove(&Kind::Read);
    counts
        .entry(Kind::Write)
        .and_modify(|(requests, _)| *requests = 0);
    counts
}

/// Items of a row, its misses, and its failures by kind.
type Found = (u64, u64, Vec<(FailureKind, u64)>);

fn failures(row: &PhaseOutcome) -> Found {
    let kinds = row.failures.iter().map(|(kind, count, _)| (kind, count));
    (row.items, row.missed, kinds.collect())
}

#[test]
fn the_data_that_rounds_write_is_new_and_does_not_compress() {
    for depth in [0, 4] {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mix = list("create, write whole, close", 50, depth);
        let data = Mutex::new(Vec::new());
        let mut run = Run::mix(&[0], dir.path(), mix);
        run.between = Box::new(|_: &PhaseOutcome, _| {
            let files = tree(dir.path()).into_iter();
            let full = files.filter(|(_, length)| *length > 0);
            let all = full.map(|(path, _)| fs::read(path).expect("data"));
            *data.lock().expect("no panic") = all.collect::<Vec<_>>().concat();
        });
        well(&run.go().expect("runs"));
        let data = data.into_inner().expect("no panic");
        let packed = zstd::bulk::compress(&data, 3).expect("compresses");
        let lengths = (packed.len(), data.len());
        assert!(data.len() > 100_000, "{lengths:?}");
        // The run's own marker is text.
        assert!(packed.len() > data.len() * 9 / 10, "{depth}: {lengths:?}");
    }
}

#[test]
fn a_place_that_rests_keeps_no_other_round_from_starting() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mix = Mix {
        rounds: None,
        time: Some(Nanos(1_500_000_000)),
        rate: Some(40.0),
        ..list("stat, think 200ms", 1, 16)
    };
    let run = Run::mix(&[0], dir.path(), mix).stepped(1_000);
    let outcome = run.go().expect("runs");
    well(&outcome);
    // One slot does 5 per second; with 16 none has to wait.
    let row = outcome.row("round");
    assert_eq!((row.items, row.missed, row.unissued), (60, 0, 0));
}

#[test]
fn a_round_pauses_by_itself() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mix = Mix {
        think: Some(Nanos(50_000_000)),
        ..list("think 50ms, stat", 16, 8)
    };
    let run = Run::mix(&[0], dir.path(), mix).stepped(1_000);
    let outcome = run.go().expect("runs");
    well(&outcome);
    assert_eq!(outcome.row("round").items, 16);
    // Two rounds in each of eight slots, with a pause in between that no operation includes.
    let row = outcome.row("all");
    assert!(row.elapsed >= Nanos(150_000_000), "{:?}", row.elapsed);
    assert!(row.service.total() < Nanos(16 * 50_000_000));
}

#[test]
fn kinds_of_workers_follow_others_and_share_what_was_opened_before_the_first_round() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text = "[set.files]\nnumber = 20\nsize = \"8k\"\n[set.log]\nnumber = 1\nsize = \"4k\"\n\
        [[worker]]\nname = \"reader\"\nfirst = \"open, open@log\"\nlist = \"read 1k random, append 10@log\"\n\
        [[worker]]\nname = \"writer\"\nlist = \"open, write 1k, close\"\nper = \"100 reader\"\n";
    let mix = Mix {
        rounds: Some(1050),
        in_flight: flight(8),
        ..profile(text)
    };
    let length = Mutex::new(0);
    let mut run = Run::mix(&[0], dir.path(), mix);
    run.common.threads = Some(2);
    run.between = Box::new(|_: &PhaseOutcome, _| {
        let files = tree(dir.path()).into_iter();
        let log = files.filter(|(path, _)| path.components().any(|c| c.as_os_str() == "log"));
        *length.lock().expect("no panic") = log.map(|(_, length)| length).sum::<u64>();
    });
    let outcome = run.go().expect("runs");
    well(&outcome);
    for (name, items) in [
        ("reader-open", 2),
        ("reader-read", 1050),
        ("reader-append", 1050),
        ("reader-round", 1050),
        ("writer-write", 10),
        ("writer-round", 10),
    ] {
        assert_eq!(outcome.row(name).items, items, "{name}");
    }
    // The existing data, followed by all appends.
    assert_eq!(*length.lock().expect("no panic"), 4096 + 10_500);
}

#[test]
fn what_cannot_be_had_is_refused_before_anything_is_made() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let refused = |mix: Mix, threads| {
        let mut run = Run::mix(&[0, 0], dir.path(), mix);
        run.common.threads = Some(threads);
        let Err(ExecError::Usage(said)) = run.go().map(drop) else {
            panic!("it is refused");
        };
        assert_eq!(fs::read_dir(dir.path()).expect("listing").count(), 0);
        said
    };
    let large = Mix {
        files: Some(40_000),
        ..list("open, read whole 64m, close", 1, 4096)
    };
    let said = refused(large, 4);
    let expect = "--iodepth 4096: 32768 operations in flight on a host, with ";
    assert!(
        said.contains(expect) && said.contains("MiB of memory"),
        "{said}"
    );
}

mod needs_fuse {
    use super::*;
    use crate::testfs::{Mount, let_go, mount};

    /// A run of one worker: its outcome, its requests to the file system, and the remaining files.
    fn seen(mix: Mix) -> (Outcome, BTreeMap<Kind, Counts>, Tree) {
        // Past the page cache: what is dropped from it before a caller has it is read again.
        let target = mount(|config| config.direct_io = true);
        let stats = Arc::clone(target.fs.stats());
        let before = stats.snapshot();
        let observed = Mutex::new(None);
        let mut run = Run::mix(&[0], target.path(), mix);
        run.between = Box::new(|_: &PhaseOutcome, _| {
            let mut observed = observed.lock().expect("no panic");
            if observed.is_none() {
                let asked = stats.snapshot().since(&before);
                *observed = Some((asked, tree(target.path())));
            }
        });
        let outcome = run.go().expect("runs");
        well(&outcome);
        let (asked, left) = observed.into_inner().expect("no panic").expect("rows came");
        // The run's own directory has a new name each time, and a marker.
        let below = |path: &Path| -> PathBuf {
            let parts = path.strip_prefix(target.path()).expect("found there");
            parts.components().skip(1).collect()
        };
        let left = left.iter().map(|(path, length)| (below(path), *length));
        let left = left.filter(|(path, _)| path.components().count() > 2);
        let left = left.collect();
        target.end();
        (outcome, asked, left)
    }

    #[test]
    fn a_ring_asks_the_file_system_for_what_system_calls_ask_and_leaves_the_same_tree() {
        for text in [FILLS, EMPTIES] {
            let (plain, expect, tree) = seen(list(text, 60, 0));
            assert_eq!(plain.row("round").items, 60);
            let files = tree.iter().filter(|(_, length)| *length > 0).count();
            assert_eq!(files, if text == FILLS { 120 } else { 0 });
            for depth in [1, 8] {
                let (outcome, sent, left) = seen(list(text, 60, depth));
                assert_eq!(
                    counts(&outcome),
                    counts(&plain),
                    "{depth} in flight: {text}"
                );
                assert_eq!(
                    requests(&sent),
                    requests(&expect),
                    "{depth} in flight: {text}"
                );
                assert_eq!(left, tree, "{depth} in flight: {text}");
            }
        }
    }

    #[test]
    fn a_list_like_that_of_a_mail_server_is_the_same_requests_and_bytes_whatever_is_in_flight() {
        let text = "delete, create, append 1..9k, fsync, close, open, read whole, append 1..9k, fdatasync, close, open, \
                read whole, close, open, truncate 100, write 50, read 50 random, close, rename";
        let of = |depth| seen(list(text, 90, depth));
        let (plain, expect, tree) = of(0);
        let rows = |outcome: &Outcome| {
            let mut rows = counts(outcome);
            for name in ["read", "all", "round"] {
                rows.entry(name.to_owned()).and_modify(|row| row.1 = 0);
            }
            rows
        };
        for depth in [1, 8] {
            let (outcome, sent, left) = of(depth);
            assert_eq!(
                without_lengths(requests(&sent)),
                without_lengths(requests(&expect)),
                "{depth} in flight"
            );
            assert_eq!(rows(&outcome), rows(&plain), "{depth} in flight");
            assert_eq!(left.len(), tree.len(), "{depth} in flight");
            if depth == 1 {
                assert_eq!(counts(&outcome), counts(&plain));
                assert_eq!(left, tree);
            }
        }
    }

    #[test]
    fn operations_that_are_drawn_are_the_same_whatever_is_in_flight() {
        let text = "create=3,delete=3,stat=3,open=2,append 1..5k=2,write 1k random=1,rename=2,setxattr=1,getxattr=1,\
                truncate 3000=1,fsync=1,fdatasync=1,mkdir=2,rmdir=2,symlink=2,read 1k=2";
        let of = |depth| seen(ops(text, 600, depth));
        let (plain, expect, _) = of(0);
        assert!(
            counts(&plain).values().all(|(items, ..)| *items > 5),
            "{:?}",
            counts(&plain)
        );
        for depth in [1, 8] {
            let (outcome, sent, _) = of(depth);
            assert_eq!(counts(&outcome), counts(&plain), "{depth} in flight");
            assert_eq!(
                without_lengths(requests(&sent)),
                without_lengths(requests(&expect)),
                "{depth} in flight"
            );
        }
    }

    #[test]
    fn faults_in_the_middle_of_a_round_are_what_they_are_one_at_a_time() {
        // Each kind of request belongs to one kind of step.
        let listed = "create, write whole, fsync, close, open, read whole, setxattr, getxattr, close, stat, rename, delete";
        let synced = "create, write whole, fdatasync, close, delete";
        let drawn = "write 2k=2,open=1,fsync=1,setxattr=1,truncate 10=1,mkdir=1,symlink=1";
        for (mix, fault) in [
            (list(listed, 50, 0), "create:ENOSPC@nth=45"),
            (list(listed, 50, 0), "write:EIO@nth=45"),
            (list(listed, 50, 0), "write:short@nth=45"),
            (list(listed, 50, 0), "fsync:EIO@nth=20"),
            (list(synced, 50, 0), "flush:EIO@nth=60"),
            (list(listed, 50, 0), "open:EMFILE@nth=20"),
            (list(listed, 50, 0), "setxattr:ENOSPC@nth=20"),
            (list(listed, 50, 0), "rename:EXDEV@nth=20"),
            (list(listed, 50, 0), "unlink:EACCES@nth=20"),
            (ops(drawn, 100, 0), "write:EIO@nth=40"),
            (ops(drawn, 100, 0), "write:short@nth=40"),
            (ops(drawn, 100, 0), "setattr:EFBIG@nth=3"),
        ] {
            let run = |depth| {
                let target = mount(|config| {
                    config.faults = vec![fault.parse().expect("valid")];
                    // Repeated lookups of names would dominate the requests.
                    let known = Nanos(3_600_000_000_000);
                    (config.entry_timeout, config.attr_timeout) = (known, known);
                });
                let mix = Mix {
                    in_flight: flight(depth),
                    files: Some(300),
                    prepared: Some(10),
                    ..mix.clone()
                };
                let outcome = Run::mix(&[0], target.path(), mix).go().expect("runs");
                let fired = target.fs.faults().len();
                let rows: BTreeMap<_, _> = outcome
                    .rows
                    .iter()
                    .map(|row| {
                        check_adds_up(row);
                        (row.name.clone(), failures(row))
                    })
                    .collect();
                target.end();
                (rows, fired)
            };
            let expect = run(0);
            let all = expect.0.values().flat_map(|(_, _, kinds)| kinds);
            let total: u64 = all.map(|(_, count)| count).sum();
            assert!(total > 0 && expect.1 > 0, "{fault} fires: {expect:?}");
            for depth in [1, 8] {
                assert_eq!(run(depth), expect, "{fault}, {depth} in flight");
            }
        }
    }

    #[test]
    fn the_end_of_the_time_ends_rounds_in_the_middle_and_closes_what_they_have_open() {
        let target = mount(|config| config.latency = "write=1ms,read=1ms".parse().expect("valid"));
        let text = "create, append 1k, fsync, append 1k, close, open, read whole, close, delete";
        let mix = Mix {
            rounds: None,
            time: Some(Nanos(3_000_000)),
            ..list(text, 1, 8)
        };
        let stats = Arc::clone(target.fs.stats());
        // Three thousand clock readings, each after a wait.
        let mut run = Run::mix(&[0, 0], target.path(), mix).stepped(1_000);
        run.common.threads = Some(2);
        let outcome = run.go().expect("runs");
        well(&outcome);
        let of = |name: &str| outcome.row(name).items;
        assert!(of("round") > 0 && of("create") > of("round"));
        assert!(
            of("close") < of("create") + of("open"),
            "some were left open"
        );
        let snapshot = stats.snapshot();
        let asked = |kind| snapshot.counts(kind).requests;
        assert_eq!(
            asked(Kind::Flush),
            asked(Kind::Create) + asked(Kind::Open),
            "each file that was opened is closed"
        );
        target.end();
    }

    #[test]
    fn rounds_are_in_flight_side_by_side() {
        for (mix, row) in [
            (list("open, close", 100, 1), "round"),
            (ops("open=1", 100, 1), "all"),
        ] {
            for depth in [1, 10] {
                let target = opens_hang();
                let mix = Mix {
                    in_flight: flight(depth),
                    ..mix.clone()
                };
                let run = || Run::mix(&[0], target.path(), mix).go().expect("runs");
                let outcome = let_go(&target.fs, u64::from(depth), 100, run);
                well(&outcome);
                assert_eq!(outcome.row(row).items, 100);
                target.end();
            }
        }
    }

    fn opens_hang() -> Mount {
        mount(|config| config.faults = vec!["open:hang@p=1".parse().expect("valid")])
    }

    #[test]
    fn an_open_loop_keeps_its_starts_and_counts_what_was_due() {
        for (mix, row) in [
            (list("open, close", 1, 16), "round"),
            (ops("open=1", 1, 16), "all"),
        ] {
            let target = opens_hang();
            let mix = Mix {
                rounds: None,
                time: Some(Nanos(500_000_000)),
                rate: Some(200.0),
                ..mix
            };
            let run = Run::mix(&[0], target.path(), mix).stepped(300_000);
            // The worker's clock advances while it searches for due operations, so none waits for
            // earlier ones.
            let outcome = let_go(&target.fs, 16, 100, || run.go().expect("runs"));
            well(&outcome);
            assert_eq!(outcome.row("open").items, 100);
            let row = outcome.row(row);
            assert_eq!((row.missed, row.unissued), (0, 0));
            // The last rounds are ended before their files are closed.
            assert!((84..=100).contains(&row.items), "{}", row.items);
            let response = row.response.as_ref().expect("it is an open loop");
            assert_eq!(response.count(), row.items);
            assert!(response.total() >= row.service.total());
            target.end();
        }
    }
}

mod timing {
    use super::*;
    use crate::testfs::mount;

    #[test]
    fn rounds_are_in_flight_side_by_side() {
        // By Little's law, the number in flight is the sum of their times divided by the duration
        // of the phase, on any machine.
        let in_flight = |row: &PhaseOutcome| {
            row.service.total().0 as f64 / (row.elapsed.as_secs_f64() * 1e9).max(1.0)
        };
        for mix in [list, ops] {
            let run = |depth| {
                let target = mount(|config| config.latency = "all=2ms".parse().expect("valid"));
                let text = match mix("", 1, 1).text {
                    MixText::List(_) => "create, append 1k, close, delete last",
                    _ => "stat=1,read=1",
                };
                let outcome = Run::mix(&[0], target.path(), mix(text, 100, depth));
                let outcome = outcome.go().expect("runs");
                well(&outcome);
                target.end();
                let round = outcome.rows.iter().find(|row| row.name == "round");
                let row = round.unwrap_or_else(|| outcome.row("all"));
                (in_flight(row), outcome.row("all").effort)
            };
            let (one, effort) = run(1);
            assert!(one <= 1.0, "{one}");
            assert!(effort.in_calls <= effort.active, "{effort:?}");
            let side_by_side = |_| {
                let (many, effort) = run(10);
                assert!(many <= 10.0, "{many}");
                assert!(effort.in_calls <= effort.active, "{effort:?}");
                many > 3.0
            };
            // A busy machine may do too little in this short time.
            assert!((0..5).any(side_by_side), "few are in flight each time");
        }
    }

    #[test]
    fn an_open_loop_keeps_its_starts_and_counts_what_was_due() {
        let target =
            mount(|config| config.latency = "getattr=30ms,lookup=30ms".parse().expect("valid"));
        // One at a time achieves at most 33 per second, 17 in total, and 200 per second are due.
        for (mix, row) in [
            (list("stat", 1, 16), "round"),
            (ops("stat=1", 1, 16), "all"),
        ] {
            let many = |_| {
                let mix = Mix {
                    rounds: None,
                    time: Some(Nanos(500_000_000)),
                    rate: Some(200.0),
                    ..mix.clone()
                };
                let outcome = Run::mix(&[0], target.path(), mix).go().expect("runs");
                well(&outcome);
                let row = outcome.row(row);
                let all = (row.items, row.missed, row.unissued);
                assert_eq!(
                    all.0 + all.1 + all.2,
                    100,
                    "done, missed, not begun: {all:?}"
                );
                let response = row.response.as_ref().expect("it is an open loop");
                assert_eq!(response.count(), row.items);
                assert!(response.total() >= row.service.total());
                row.items > 25
            };
            // A busy machine may do too little in this short time.
            assert!((0..5).any(many), "few are done each time");
        }
        target.end();
    }

    #[test]
    fn a_place_that_rests_keeps_no_other_round_from_starting() {
        let target = mount(|_| ());
        let many = |_| {
            let mix = Mix {
                rounds: None,
                time: Some(Nanos(1_500_000_000)),
                rate: Some(40.0),
                ..list("stat, think 200ms", 1, 16)
            };
            let outcome = Run::mix(&[0], target.path(), mix).go().expect("runs");
            well(&outcome);
            // One slot does 5 per second; with 16 none has to wait.
            let row = outcome.row("round");
            assert_eq!(row.items + row.missed + row.unissued, 60);
            row.items > 30
        };
        // A busy machine may do too little in this short time.
        assert!((0..5).any(many), "few are done each time");
        target.end();
    }
}
