//! Tests metadata operations in flight: whole runs with a ring have the same effects and reports as
//! runs with one operation at a time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use rbench_core::outcome::PhaseOutcome;
use rbench_core::{Bytes, FailureKind, Nanos};
use rbench_exec::ExecError;
use rbench_plan::arrival::Arrival;
use rbench_plan::meta::{PHASES, PhaseInfo, PhaseKind};
use rbench_plan::spec::{InFlight, Mdtest, Meta};
use rbench_testfs::{Counts, Kind};

use crate::group::{At, Outcome, Run, Signal, check_adds_up};

/// Operations in flight per worker; 0: one at a time.
pub fn flight(depth: u32) -> InFlight {
    InFlight {
        engine: (depth > 0).then(|| "io_uring".to_owned()),
        depth: (depth > 0).then_some(depth),
    }
}

/// Every phase that a ring performs.
fn all() -> Vec<PhaseKind> {
    let needs = |info: &&PhaseInfo| info.needs.iter().all(|kind| kind.info().in_a_ring());
    let able = PHASES
        .iter()
        .filter(|info| info.in_a_ring() && info.native())
        .filter(needs);
    able.map(|info| info.kind).collect()
}

fn meta(depth: u32) -> Meta {
    Meta {
        branch: Some(3),
        depth: Some(2),
        items: Some(4),
        write: Some(Bytes(3000)),
        fsync: true,
        phases: Some(all()),
        in_flight: flight(depth),
        ..Meta::default()
    }
}

/// Checks that a run was complete and without failures, and that nothing is left of it.
pub fn well(outcome: &Outcome) {
    assert!(outcome.complete && outcome.left.is_empty());
    for row in &outcome.rows {
        check_adds_up(row);
        assert!(row.failures.is_empty(), "{}: {:?}", row.name, row.failures);
    }
}

/// A phase's requests to the file system, without the kernel's own ones.
pub fn requests(counts: &BTreeMap<Kind, Counts>) -> BTreeMap<Kind, (u64, u64)> {
    let asked = counts.iter().filter(|(kind, counts)| {
        // The kernel releases files and directories later, looks up names again after a cache miss,
        // and a ring asks once whether files can be polled.
        let own = !matches!(
            kind,
            Kind::Release
                | Kind::Releasedir
                | Kind::Forget
                | Kind::Lookup
                | Kind::Getattr
                | Kind::Getxattr
                | Kind::Poll
        );
        own && counts.requests > 0
    });
    asked
        .map(|(kind, counts)| (*kind, (counts.requests, counts.bytes)))
        .collect()
}

#[test]
fn directories_wait_for_those_in_which_they_lie() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for (branch, depth) in [(1, 40), (2, 5), (5, 2)] {
        let meta = Meta {
            branch: Some(branch),
            depth: Some(depth),
            items: Some(1),
            phases: Some(vec![PhaseKind::DirCreate, PhaseKind::TreeRemove]),
            in_flight: flight(64),
            ..Meta::default()
        };
        let outcome = Run::meta(&[0, 0], dir.path(), meta).go().expect("runs");
        well(&outcome);
        let nodes = outcome.row("tree-create").items;
        assert_eq!(outcome.row("tree-remove").items, nodes, "{branch}^{depth}");
    }
    assert_eq!(fs::read_dir(dir.path()).expect("listing").count(), 0);
}

/// Items of a row, and its failures by kind.
type Found = (u64, Vec<(FailureKind, u64)>);

fn failures(row: &PhaseOutcome) -> Found {
    let kinds = row.failures.iter().map(|(kind, count, _)| (kind, count));
    (row.items, kinds.collect())
}

#[test]
fn data_that_no_memory_holds_is_refused_before_anything_is_made() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let meta = Meta {
        write: Some(Bytes(1 << 30)),
        ..meta(4096)
    };
    let mut run = Run::meta(&[0, 0], dir.path(), meta);
    run.common.threads = Some(4);
    let Err(ExecError::Usage(said)) = run.go().map(drop) else {
        panic!("32 TiB are refused");
    };
    let expect = "--iodepth 4096: 32768 operations in flight on a host, with 1GiB each, need 33554432 MiB of memory";
    assert!(said.contains(expect), "{said}");
    assert_eq!(fs::read_dir(dir.path()).expect("listing").count(), 0);
}

#[test]
fn a_stonewall_tops_up_and_later_phases_find_what_was_made() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let meta = Meta {
        depth: Some(0),
        items: Some(100_000),
        stonewall: Some(Nanos(2_000_000)),
        phases: Some(vec![
            PhaseKind::FileCreate,
            PhaseKind::FileRename,
            PhaseKind::FileRemove,
        ]),
        in_flight: flight(8),
        ..Meta::default()
    };
    let mut run = Run::meta(&[0, 0], dir.path(), meta).stepped(1_000);
    run.common.threads = Some(2);
    let outcome = run.go().expect("runs");
    well(&outcome);
    let creation = outcome.row("file-create");
    let wall = creation.stonewall.expect("it comes long before the end");
    assert_eq!(creation.items, 4 * wall.most, "all workers made as many");
    assert!(creation.items > 0);
    for later in ["file-rename", "file-remove"] {
        assert_eq!(outcome.row(later).items, creation.items, "{later}");
    }
}

#[test]
fn an_open_loop_keeps_its_starts_and_counts_what_was_due() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for arrival in [Arrival::Uniform, Arrival::Poisson] {
        let meta = Meta {
            depth: Some(0),
            phases: Some(vec![PhaseKind::FileCreate, PhaseKind::FileStat]),
            time: Some(Nanos(500_000_000)),
            rate: Some(400.0),
            arrival: Some(arrival),
            in_flight: flight(16),
            ..Meta::default()
        };
        let run = Run::meta(&[0, 0], dir.path(), meta).stepped(1_000);
        let outcome = run.go().expect("runs");
        well(&outcome);
        for name in ["file-create", "file-stat"] {
            let row = outcome.row(name);
            // A Poisson process varies by the square root of its mean.
            let due = row.items + row.unissued;
            assert!((100..320).contains(&due), "{name}: {due} were due");
            assert!(arrival == Arrival::Poisson || due == 200, "{name}: {due}");
            let response = row.response.as_ref().expect("it is an open loop");
            assert!(response.total() >= row.service.total(), "{name}");
        }
    }
}

/// The entries below `path`, with the length of files.
pub fn tree(path: &Path) -> Vec<(PathBuf, u64)> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).expect("a directory") {
        let path = entry.expect("an entry").path();
        let about = fs::symlink_metadata(&path).expect("it is there");
        match about.is_dir() {
            true => {
                entries.extend(tree(&path));
                entries.push((path, 0));
            }
            false => entries.push((path, about.len())),
        }
    }
    entries.sort();
    entries
}

#[test]
fn mdtest_leaves_with_a_ring_what_it_leaves_without() {
    let run = |depth| {
        let dir = tempfile::tempdir().expect("temporary directory");
        let options = Mdtest {
            create: true,
            rename: true,
            stat: true,
            read: true,
            items: Some(60),
            branch: Some(2),
            depth: Some(2),
            unique_dir: true,
            write_bytes: Some(Bytes(3901)),
            read_bytes: Some(Bytes(3901)),
            verify_read: true,
            data_seed: Some(7),
            in_flight: flight(depth),
            ..Mdtest::default()
        };
        let outcome = Run::mdtest(&[0, 0], dir.path(), options)
            .go()
            .expect("runs");
        for row in &outcome.rows {
            assert!(row.failures.is_empty(), "{}: {:?}", row.name, row.failures);
        }
        let below = tree(dir.path()).into_iter();
        let names = below.map(|(path, length)| {
            let path = path.strip_prefix(dir.path()).expect("it was found there");
            (path.to_owned(), length)
        });
        let names: Vec<_> = names.collect();
        let rows = outcome.rows.iter().map(|row| (row.name.clone(), row.items));
        (names, rows.collect::<Vec<_>>())
    };
    let expect = run(0);
    assert!(expect.0.len() > 200);
    for depth in [1, 16] {
        assert_eq!(run(depth), expect, "{depth}");
    }
}

#[test]
fn what_was_read_in_flight_is_compared_with_what_its_own_file_holds() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let options = Mdtest {
        create: true,
        files_only: true,
        items: Some(40),
        write_bytes: Some(Bytes(40_000)),
        data_seed: Some(7),
        packet: Some(rbench_plan::meta::Packet::Unique),
        in_flight: flight(8),
        ..Mdtest::default()
    };
    let written = Run::mdtest(&[0], dir.path(), options.clone())
        .go()
        .expect("runs");
    assert!(written.rows.iter().all(|row| row.failures.is_empty()));
    // Changes one byte of a file, and swaps two files.
    let files: Vec<PathBuf> = tree(dir.path())
        .into_iter()
        .filter(|(_, length)| *length == 40_000)
        .map(|(path, _)| path)
        .collect();
    assert_eq!(files.len(), 40);
    let mut bytes = fs::read(&files[3]).expect("it is there");
    bytes[25_000] ^= 1;
    fs::write(&files[3], bytes).expect("it is ours");
    let aside = dir.path().join("aside");
    fs::rename(&files[10], &aside).expect("it is ours");
    fs::rename(&files[20], &files[10]).expect("it is ours");
    fs::rename(&aside, &files[20]).expect("it is ours");
    let reads = Mdtest {
        create: false,
        read: true,
        verify_read: true,
        read_bytes: options.write_bytes,
        ..options
    };
    let outcome = Run::mdtest(&[0], dir.path(), reads).go().expect("runs");
    let row = outcome.row("file-read");
    assert_eq!(failures(row), (37, vec![(FailureKind::Mismatch, 3)]));
}

#[test]
fn no_phase_has_several_in_flight_that_says_one() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let outcome = Run::meta(&[0], dir.path(), meta(1)).go().expect("runs");
    well(&outcome);
    for row in &outcome.rows {
        let times = row.service.total().0;
        assert!(times <= row.elapsed.0, "{}: {times} ns", row.name);
    }
}

mod needs_fuse {
    use super::*;
    use crate::testfs::{let_go, mount};

    /// The rows of a run, and the requests of each.
    fn seen(depth: u32) -> (Outcome, BTreeMap<String, BTreeMap<Kind, Counts>>) {
        // Past the page cache: what is dropped from it before a caller has it is read again.
        let target = mount(|config| config.direct_io = true);
        let mut run = Run::meta(&[0, 0], target.path(), meta(depth));
        run.common.threads = Some(2);
        let (outcome, seen) = target.count(run);
        well(&outcome);
        target.end();
        (outcome, seen)
    }

    #[test]
    fn a_ring_asks_the_file_system_for_what_system_calls_ask() {
        let (plain, expect) = seen(0);
        for depth in [1, 7] {
            let (outcome, sent) = seen(depth);
            assert_eq!(outcome.rows.len(), all().len());
            for (row, other) in outcome.rows.iter().zip(&plain.rows) {
                let name = &row.name;
                assert_eq!(
                    (&row.name, row.items, row.bytes),
                    (&other.name, other.items, other.bytes)
                );
                assert_eq!(
                    requests(&sent[name]),
                    requests(&expect[name]),
                    "{depth} in flight: {name}"
                );
            }
        }
    }

    #[test]
    fn faults_in_the_middle_of_an_operation_are_what_they_are_one_at_a_time() {
        let of_names = [("unlink:EACCES@nth=30", true)];
        let faults = [
            "create:EINTR@nth=16",
            "create:ENOSPC@after=16",
            "write:EINTR@nth=16",
            "write:ENOSPC@nth=16",
            "write:short@nth=16",
            "write:EIO@after=16",
            "fsync:EIO@nth=16",
            "flush:EIO@nth=16",
            "flush:EINTR@nth=16",
            "open:EMFILE@nth=16",
            "read:EIO@after=10",
            "mkdir:EDQUOT@nth=16",
            "rmdir:EBUSY@nth=16",
            "unlink:EACCES@nth=16",
            "rename:EXDEV@nth=16",
            "link:EMLINK@nth=16",
            "symlink:EPERM@nth=16",
            "setattr:EFBIG@nth=16",
            "setxattr:ENOSPC@nth=16",
        ];
        let faults = faults.map(|fault| (fault, false));
        for (fault, with_many) in faults.into_iter().chain(of_names) {
            let run = |depth| {
                let target = mount(|config| {
                    config.faults = vec![fault.parse().expect("valid")];
                    // Repeated lookups of names would dominate the requests.
                    let known = Nanos(3_600_000_000_000);
                    (config.entry_timeout, config.attr_timeout) = (known, known);
                });
                // Phases with many names per operation would take most of the faults.
                let many = |kind: &PhaseKind| {
                    kind.info().name.contains("-10") || kind.info().name.contains("-1k")
                };
                let phases = all().into_iter().filter(|kind| with_many || !many(kind));
                // Which request is the 16th depends on timing. With all items in leaves, the number of
                // directories that are not empty at the end is always the same.
                let meta = Meta {
                    branch: Some(2),
                    leaf_only: true,
                    items: Some(5),
                    phases: Some(phases.collect()),
                    ..meta(depth)
                };
                let mut run = Run::meta(&[0], target.path(), meta);
                run.common.leave.untried = true;
                let outcome = run.go().expect("runs");
                let fired = target.fs.faults().len();
                let rows: BTreeMap<_, _> = outcome
                    .rows
                    .iter()
                    .map(|row| (row.name.clone(), failures(row)))
                    .collect();
                target.end();
                (rows, fired)
            };
            let expect = run(0);
            let total = |rows: &BTreeMap<String, Found>| -> u64 {
                let all = rows.values().flat_map(|(_, kinds)| kinds);
                all.map(|(_, count)| count).sum()
            };
            assert!(
                total(&expect.0) > 0 && expect.1 > 0,
                "{fault} fires: {expect:?}"
            );
            for depth in [1, 8] {
                let (rows, fired) = run(depth);
                assert_eq!(fired, expect.1, "{fault}, {depth} in flight");
                for (name, row) in &rows {
                    assert_eq!(row, &expect.0[name], "{fault}, {depth} in flight, {name}");
                }
                assert_eq!(rows.len(), expect.0.len(), "{fault}, {depth} in flight");
            }
        }
    }

    #[test]
    fn an_operation_whose_file_cannot_be_closed_has_failed_once() {
        for depth in [0, 1, 8] {
            let target = mount(|config| {
                // Creating the marker and 52 files closes 53.
                let calls = (20..30).map(|nth| format!("setxattr:ENOSPC@nth={nth}"));
                let all = calls.chain(["flush:EIO@after=60".to_owned()]);
                config.faults = all.map(|fault| fault.parse().expect("valid")).collect();
            });
            let meta = Meta {
                phases: Some(vec![PhaseKind::FileCreate, PhaseKind::FileSetxattr]),
                fsync: false,
                ..meta(depth)
            };
            let mut run = Run::meta(&[0], target.path(), meta);
            run.common.leave.untried = true;
            let outcome = run.go().expect("runs");
            let row = outcome.row("file-setxattr");
            check_adds_up(row);
            let (full, broken) = (
                FailureKind::from(Errno::ENOSPC),
                FailureKind::from(Errno::EIO),
            );
            let (items, mut kinds) = failures(row);
            kinds.sort_by_key(|(_, count)| *count);
            assert_eq!(
                (items, kinds),
                (7, vec![(full, 10), (broken, 35)]),
                "{depth}"
            );
            target.end();
        }
    }

    #[test]
    fn opening_and_closing_untimed_is_none_of_the_tools_own_time() {
        for depth in [1, 8] {
            let target = mount(|config| {
                config.latency = "open=20ms,flush=20ms".parse().expect("valid");
            });
            let meta = Meta {
                branch: None,
                depth: Some(0),
                items: Some(8),
                phases: Some(vec![PhaseKind::FileCreate, PhaseKind::FileSetxattr]),
                ..meta(depth)
            };
            let outcome = Run::meta(&[0], target.path(), meta).go().expect("runs");
            well(&outcome);
            let row = outcome.row("file-setxattr");
            let untimed = Nanos(8 * 40_000_000);
            match depth {
                1 => assert!(row.effort.waited >= untimed, "{:?}", row.effort),
                _ => assert!(row.effort.full.0 * 8 >= untimed.0, "{:?}", row.effort),
            }
            assert!(row.effort.in_calls <= row.effort.active, "{:?}", row.effort);
            target.end();
        }
    }

    #[test]
    fn files_are_closed_whatever_went_wrong() {
        for fault in ["write:EIO", "fsync:EIO", "setxattr:EIO", "open:EIO"] {
            let target = mount(|config| {
                // Setting up also writes.
                let all = (5..40).map(|nth| format!("{fault}@nth={nth}").parse().expect("valid"));
                config.faults = all.collect();
            });
            let stats = Arc::clone(target.fs.stats());
            let mut run = Run::meta(&[0], target.path(), meta(8));
            run.common.leave.untried = true;
            run.go().expect("runs");
            let snapshot = stats.snapshot();
            let counted = |kind| snapshot.counts(kind).requests;
            let failed = |kind| snapshot.counts(kind).errors;
            assert!(target.fs.faults().len() > 10, "{fault} fires");
            assert_eq!(
                counted(Kind::Flush) + failed(Kind::Open),
                counted(Kind::Create) + counted(Kind::Open),
                "{fault}: each file that was opened is closed"
            );
            target.end();
        }
    }

    #[test]
    fn a_signal_ends_it_and_what_was_done_is_reported() {
        let target = mount(|config| config.latency = "create=5ms".parse().expect("valid"));
        let meta = Meta {
            depth: Some(0),
            items: Some(1_000_000),
            phases: Some(vec![PhaseKind::FileCreate]),
            in_flight: flight(8),
            ..Meta::default()
        };
        let stats = Arc::clone(target.fs.stats());
        let mut run = Run::meta(&[0], target.path(), meta);
        run.signal = Some(Signal {
            rank: 0,
            during: "File creation",
            at: At::Once(Box::new(move || {
                stats.snapshot().counts(Kind::Create).requests > 30
            })),
        });
        let outcome = run.go().expect("runs");
        assert!(!outcome.complete);
        let row = outcome.row("file-create");
        check_adds_up(row);
        let created = target.fs.stats().snapshot().counts(Kind::Create).requests;
        // One more for the marker of the run's directory.
        assert_eq!(row.items + 1, created, "all that was begun was waited for");
        target.end();
    }

    #[test]
    fn a_phase_has_as_many_in_flight_as_it_says() {
        for (phase, hang) in [
            (PhaseKind::FileRead, "read:hang@p=1"),
            (PhaseKind::FileSetxattr, "setxattr:hang@p=1"),
            (PhaseKind::FileTruncate, "setattr:hang@p=1"),
        ] {
            for depth in [1, 16] {
                let target = mount(|config| config.faults = vec![hang.parse().expect("valid")]);
                let meta = Meta {
                    depth: Some(0),
                    branch: None,
                    items: Some(40),
                    phases: Some(vec![phase]),
                    fsync: false,
                    ..meta(depth)
                };
                let run = || Run::meta(&[0], target.path(), meta).go().expect("runs");
                let outcome = let_go(&target.fs, u64::from(depth), 40, run);
                well(&outcome);
                assert_eq!(outcome.row(phase.info().name).items, 40, "{hang}");
                target.end();
            }
        }
    }

    #[test]
    fn every_phase_has_several_in_flight_where_it_says_so() {
        // The file system serves four requests at a time, so of sixteen operations twelve wait: their
        // times add up to four times the service of their requests, or to more on a slow machine.
        let target = mount(|config| {
            config.latency = "all=1ms".parse().expect("valid");
            config.servers = Some(4);
        });
        let (outcome, seen) = target.count(Run::meta(&[0], target.path(), meta(16)));
        well(&outcome);
        // Operations on the tree wait for each other.
        let several = outcome.rows.iter();
        for row in several.filter(|row| !row.name.starts_with("tree")) {
            let info = PHASES.iter().find(|info| info.name == row.name);
            let opens = info.expect("a phase of the table").opens.is_some();
            let untimed = |kind| {
                let around = [Kind::Lookup, Kind::Open, Kind::Flush, Kind::Release];
                opens && around.contains(kind)
            };
            let timed = seen[&row.name].iter().filter(|(kind, _)| !untimed(kind));
            let requests: u64 = timed.map(|(_, counts)| counts.requests).sum();
            let times = row.service.total();
            let least = Nanos(requests * 2_000_000);
            assert!(
                times > least,
                "{}: {times:?}, {requests} requests",
                row.name
            );
        }
        target.end();
    }
}
