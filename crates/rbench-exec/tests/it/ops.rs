//! Tests operations that run only on request, and the per-operation table.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Mutex;

use rbench_core::operations::{OPS_ROWS, row as find};
use rbench_core::outcome::PhaseOutcome;
use rbench_core::residency::Verdict;
use rbench_core::{Bytes, Nanos, SimulatedClock};
use rbench_plan::meta::{PHASES, PhaseKind};
use rbench_plan::mix::sizes::Sizes;
use rbench_plan::spec::{Meta, Mix, MixText, Ops};
use rbench_testfs::Kind;

use crate::group::{Run, check_adds_up};
use crate::in_flight::flight;

/// Requests of a kind per operation of a row.
const REQUESTS: &[(&str, Kind, u64)] = &[
    ("dir-fill-10", Kind::Mknod, 10),
    ("dir-list-10", Kind::Opendir, 1),
    ("dir-empty-10", Kind::Unlink, 10),
    ("dir-fill-1k", Kind::Mknod, 1000),
    ("dir-list-1k", Kind::Opendir, 1),
    ("dir-empty-1k", Kind::Unlink, 1000),
    ("dir-deepen", Kind::Mkdir, 4),
    ("dir-flatten", Kind::Rmdir, 4),
    ("file-mknod", Kind::Mknod, 1),
    ("node-remove", Kind::Unlink, 1),
    ("file-symlink", Kind::Symlink, 1),
    ("file-readlink", Kind::Readlink, 1),
    ("symlink-remove", Kind::Unlink, 1),
    ("file-lookup", Kind::Getattr, 1),
    ("file-getattr", Kind::Getattr, 1),
    ("file-chmod", Kind::Setattr, 1),
    ("file-utimes", Kind::Setattr, 1),
    ("file-truncate", Kind::Setattr, 1),
    ("file-access", Kind::Access, 1),
    ("file-statfs", Kind::Statfs, 1),
    ("file-setxattr", Kind::Setxattr, 1),
    ("file-getxattr", Kind::Getxattr, 1),
    ("file-listxattr-1", Kind::Listxattr, 1),
    ("file-setxattr-9", Kind::Setxattr, 9),
    ("file-listxattr-10", Kind::Listxattr, 1),
    ("file-removexattr", Kind::Removexattr, 1),
    ("file-write-sync", Kind::Write, 1),
    ("file-write-sync", Kind::Fsync, 1),
    ("file-read-1", Kind::Read, 1),
    ("file-fallocate", Kind::Fallocate, 1),
    // The file system has no COPY_FILE_RANGE: the kernel reads and writes.
    ("file-copy", Kind::Create, 1),
    ("file-copy", Kind::Write, 1),
    ("copy-remove", Kind::Unlink, 1),
    ("file-build-10", Kind::Write, 10),
    ("file-build-10", Kind::Fsync, 10),
];

fn ops(only: &[&str], operations: u64) -> Ops {
    let row = |name: &&str| find(name).expect("a row");
    Ops {
        only: (!only.is_empty()).then(|| only.iter().map(row).collect()),
        operations: Some(operations),
        time: None,
    }
}

#[test]
fn the_table_has_a_row_for_each_operation_and_none_for_what_prepares_it() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut run = Run::ops(&[0, 0], folder.path(), ops(&[], 12));
    run.common.threads = Some(2);
    let outcome = run.go().expect("runs");
    let mut names: Vec<&str> = outcome.rows.iter().map(|row| row.name.as_str()).collect();
    let reached = OPS_ROWS.iter().filter(|row| row.out_of_reach.is_none());
    let mut expected: Vec<&str> = reached.map(|row| row.name).collect();
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(names, expected);
    for row in &outcome.rows {
        check_adds_up(row);
        assert_eq!(
            (row.items, row.failures.total()),
            (4 * 12, 0),
            "{}",
            row.name
        );
    }
    let left = std::fs::read_dir(folder.path())
        .expect("it is there")
        .count();
    assert_eq!(left, 0);
}

#[test]
fn with_a_shift_each_rank_works_on_what_others_made() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut run = Run::ops(&[0, 0, 0], folder.path(), ops(&[], 7));
    run.common.shift = Some(1);
    let outcome = run.go().expect("runs");
    assert!(outcome.rows.len() > 20);
    for row in &outcome.rows {
        assert_eq!(
            (row.items, row.failures.total()),
            (3 * 7, 0),
            "{}",
            row.name
        );
    }
}

#[test]
fn a_row_alone_comes_with_what_it_needs_untimed() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for row in OPS_ROWS.iter().filter(|row| row.out_of_reach.is_none()) {
        let outcome = Run::ops(&[0], folder.path(), ops(&[row.name], 5)).go();
        let outcome = outcome.expect(row.name);
        let shown: Vec<(&str, u64)> = outcome
            .rows
            .iter()
            .map(|row| (row.name.as_str(), row.items))
            .collect();
        let expected = match row.name {
            // Both are timed in the same phase.
            "create" | "close" => vec![("create", 5), ("close", 5)],
            name => vec![(name, 5)],
        };
        assert_eq!(shown, expected);
    }
}

#[test]
fn a_rename_phase_of_the_table_leaves_the_names_as_they_were() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let meta = ops(&["mvdir", "rmdir", "rename", "unlink"], 6);
    let mut run = Run::ops(&[0], folder.path(), meta);
    run.common.iterations = Some(2);
    let outcome = run.go().expect("runs");
    assert_eq!(outcome.rows.len(), 8);
    assert!(
        outcome
            .rows
            .iter()
            .all(|row| row.items == 6 && row.failures.total() == 0)
    );
    assert_eq!(outcome.row("rename").bytes, Bytes(0).0);
}

#[test]
fn with_a_time_rows_end_with_it_and_later_ones_find_what_was_made() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let spec = Ops {
        time: Some(Nanos(60_000)),
        operations: None,
        ..ops(
            &[
                "mkdir", "rmdir", "symlink", "readlink", "setxattr", "getxattr", "rename", "unlink",
            ],
            1,
        )
    };
    let mut run = Run::ops(&[0, 0], folder.path(), spec).stepped(1_000);
    // One of them gets half as far as the other.
    run.clocks[1] = SimulatedClock::new(Nanos(2_000));
    let outcome = run.go().expect("runs");
    assert_eq!(outcome.rows.len(), 8);
    for row in &outcome.rows {
        assert_eq!(row.failures.total(), 0, "{}: {:?}", row.name, row.failures);
    }
    let items = |name: &str| outcome.row(name).items;
    // Creating phases continue to the count of the fastest worker.
    for name in ["mkdir", "symlink", "setxattr"] {
        let wall = outcome.row(name).stonewall.expect("nothing else ends it");
        assert!(0 < wall.least && wall.least < wall.most, "{name}: {wall:?}");
        assert_eq!(items(name), 2 * wall.most, "{name}");
    }
    let stonewall = |name: &str| outcome.row(name).stonewall;
    assert_eq!(stonewall("rename"), None, "later rows do not rely on it");
    assert!(items("readlink") <= items("symlink"));
    assert!(items("getxattr") <= items("setxattr"));
}

/// Content of each file in a directory, and the size of its blocks in bytes.
fn files(folder: &Path) -> Vec<(Vec<u8>, u64)> {
    let entries = std::fs::read_dir(folder).expect("a directory");
    let is_item = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b"file.");
    let of_entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let (path, about) = entry
            .and_then(|entry| Ok((entry.path(), entry.metadata()?)))
            .expect("an entry");
        match about.is_dir() {
            true => files(&path),
            false if !path.file_name().is_some_and(is_item) => Vec::new(),
            false => {
                let content = std::fs::read(&path).expect("a file");
                vec![(content, 512 * about.blocks())]
            }
        }
    };
    entries.flat_map(of_entry).collect()
}

/// Files of 3000 bytes as a phase leaves them, with this number of operations in flight.
fn files_after(phase: PhaseKind, depth: u32) -> Vec<(Vec<u8>, u64)> {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let seen = Mutex::new(Vec::new());
    let meta = Meta {
        items: Some(4),
        depth: Some(0),
        write: Some(Bytes(3000)),
        phases: Some(vec![phase, PhaseKind::TreeRemove]),
        in_flight: flight(depth),
        ..Meta::default()
    };
    let mut run = Run::meta(&[0], folder.path(), meta);
    let place = folder.path();
    run.between = Box::new(|row: &PhaseOutcome, _| {
        if row.name == phase.info().name {
            *seen.lock().expect("no panic") = files(place);
        }
    });
    let outcome = run.go().expect("runs");
    let row = outcome.row(phase.info().name);
    assert_eq!((row.items, row.failures.total()), (4, 0));
    drop(outcome);
    seen.into_inner().expect("no panic")
}

#[test]
fn reserved_blocks_leave_the_length_of_a_file() {
    for depth in [0, 4] {
        let files = files_after(PhaseKind::FileFallocate, depth);
        assert_eq!(files.len(), 4, "{depth} in flight");
        for (content, space) in files {
            let length = content.len();
            assert!(
                length == 3000 && space >= 3000 + (64 << 10),
                "{length}, {space}"
            );
        }
    }
}

#[test]
fn a_copy_has_the_content_of_its_file() {
    let mut files = files_after(PhaseKind::FileCopy, 0);
    files.sort();
    assert_eq!(files.len(), 8);
    for pair in files.chunks(2) {
        assert_eq!(pair[0].0.len(), 10 << 10);
        assert!(pair[0].0 == pair[1].0, "a copy differs");
    }
    assert!(files[0].0 != files[2].0, "all files are alike");
}

mod needs_fuse {
    use super::*;
    use crate::testfs::mount;

    /// Requests of a kind in three rounds of a list on one worker.
    fn requests_of_list(text: &str, row: &str, kind: Kind) -> u64 {
        let target = mount(|_| ());
        let before = target.fs.stats().snapshot();
        let mix = Mix {
            text: MixText::List(text.to_owned()),
            files: Some(10),
            sizes: Some(Sizes::Fixed(Bytes(5000))),
            rounds: Some(3),
            ..Mix::default()
        };
        let outcome = Run::mix(&[0], target.path(), mix).go().expect("runs");
        let row = outcome.row(row);
        assert_eq!((row.items, row.failures.total()), (3, 0), "{text}");
        let counts = target.fs.stats().snapshot().since(&before);
        drop(outcome);
        target.end();
        counts.get(&kind).map_or(0, |counts| counts.requests)
    }

    #[test]
    fn a_step_of_a_mix_reserves_blocks() {
        let text = "open, fallocate 64k, close";
        assert_eq!(requests_of_list(text, "fallocate", Kind::Fallocate), 3);
    }

    #[test]
    fn a_step_of_a_mix_copies_a_file() {
        // Once refused, it is not requested again.
        let requests = requests_of_list("copy, delete", "copy", Kind::CopyFileRange);
        assert_eq!(requests, 1);
    }

    #[test]
    fn each_operation_sends_its_own_requests() {
        let target = mount(|_| ());
        let asked = PHASES
            .iter()
            .filter(|info| !info.by_default && info.native());
        let meta = Meta {
            items: Some(4),
            depth: Some(0),
            phases: Some(
                asked
                    .map(|info| info.kind)
                    .chain([PhaseKind::TreeRemove])
                    .collect(),
            ),
            ..Meta::default()
        };
        let (outcome, counted) = target.count(Run::meta(&[0, 0], target.path(), meta));
        for (name, kind, each) in REQUESTS {
            let row = outcome.row(name);
            assert_eq!((row.items, row.failures.total()), (8, 0), "{name}");
            let requests = counted[*name].get(kind).map_or(0, |c| c.requests);
            assert_eq!(
                requests,
                each * row.items,
                "{name}: {kind:?} of {:?}",
                counted[*name]
            );
        }
        // Name by name: the pass, the rank, the item and four more below it.
        let resolved = &counted["dir-resolve"];
        assert_eq!(resolved[&Kind::Lookup].requests, 7 * 8, "{resolved:?}");
        assert_eq!(outcome.row("tree-remove").items, 2);
        target.end();
    }

    #[test]
    fn what_is_read_back_wrong_is_no_operation() {
        let target = mount(|config| config.faults.push("read:flip@p=1".parse().expect("valid")));
        let outcome = Run::ops(&[0], target.path(), ops(&["read_1", "read_10"], 4))
            .go()
            .expect("runs");
        for name in ["read_1", "read_10"] {
            let row = outcome.row(name);
            assert_eq!((row.items, row.failures.total()), (0, 4), "{name}");
        }
        target.end();
    }

    #[test]
    fn what_cannot_be_prepared_is_told() {
        let target = mount(|config| {
            config
                .faults
                .push("setxattr:ENOTSUP@p=1".parse().expect("valid"))
        });
        let outcome = Run::ops(&[0], target.path(), ops(&["getxattr"], 4))
            .go()
            .expect("runs");
        let failed: Vec<(&str, u64)> = outcome
            .rows
            .iter()
            .map(|row| (row.name.as_str(), row.failures.total()))
            .collect();
        assert_eq!(failed, [("file-setxattr", 4), ("getxattr", 4)]);
        target.end();
    }

    /// The cache verdicts on `getattr` and `lookup`.
    fn verdicts() -> [Option<Verdict>; 2] {
        let target = mount(|config| {
            config.attr_timeout = Nanos(100_000_000_000);
            config.entry_timeout = Nanos(100_000_000_000);
        });
        let outcome = Run::ops(&[0], target.path(), ops(&["getattr", "lookup"], 70))
            .go()
            .expect("runs");
        target.end();
        ["getattr", "lookup"].map(|name| {
            let row = outcome.row(name);
            row.residency.as_ref().map(|seen| seen.verdict(row.op).0)
        })
    }

    #[test]
    fn getattr_is_forced() {
        assert_eq!(verdicts()[0], Some(Verdict::Forced));
    }

    mod timing {
        use super::*;
        use crate::clock::tried_again;

        #[test]
        fn names_that_were_made_here_are_not_cold() {
            // Dropping the machine's caches meanwhile also drops the names.
            tried_again(|| {
                assert_eq!(verdicts()[1], Some(Verdict::Memory), "no request was sent");
            });
        }
    }
}
