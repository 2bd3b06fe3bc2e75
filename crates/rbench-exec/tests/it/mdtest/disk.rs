//! Tests the entries that runs create and leave in directories.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rbench_core::outcome::Cache;
use rbench_core::{Bytes, Nanos};
use rbench_plan::meta::Backend;
use rbench_plan::spec::Mdtest;

use super::{BY_BLOCK, oracle, run, run_well, tempdir, walk};
use crate::group::{Run, check_adds_up};

fn names(found: &BTreeMap<String, Option<u64>>) -> Vec<&str> {
    found.keys().map(String::as_str).collect()
}

#[test]
fn creation_leaves_a_tree_for_each_rank_with_its_items() {
    let dir = tempdir();
    let options = Mdtest {
        create: true,
        items_per_dir: Some(1),
        branch: Some(2),
        depth: Some(1),
        unique_dir: true,
        write_bytes: Some(Bytes(5)),
        ..Mdtest::default()
    };
    run_well(&[0, 0], dir.path(), &options);
    let entries = walk(dir.path());
    assert_eq!(
        names(&entries),
        [
            "test-dir.0-0",
            "test-dir.0-0/mdtest_tree.0.0",
            "test-dir.0-0/mdtest_tree.0.0/dir.mdtest.0.0",
            "test-dir.0-0/mdtest_tree.0.0/file.mdtest.0.0",
            "test-dir.0-0/mdtest_tree.0.0/mdtest_tree.0.1",
            "test-dir.0-0/mdtest_tree.0.0/mdtest_tree.0.1/dir.mdtest.0.1",
            "test-dir.0-0/mdtest_tree.0.0/mdtest_tree.0.1/file.mdtest.0.1",
            "test-dir.0-0/mdtest_tree.0.0/mdtest_tree.0.2",
            "test-dir.0-0/mdtest_tree.0.0/mdtest_tree.0.2/dir.mdtest.0.2",
            "test-dir.0-0/mdtest_tree.0.0/mdtest_tree.0.2/file.mdtest.0.2",
            "test-dir.0-0/mdtest_tree.1.0",
            "test-dir.0-0/mdtest_tree.1.0/dir.mdtest.1.0",
            "test-dir.0-0/mdtest_tree.1.0/file.mdtest.1.0",
            "test-dir.0-0/mdtest_tree.1.0/mdtest_tree.1.1",
            "test-dir.0-0/mdtest_tree.1.0/mdtest_tree.1.1/dir.mdtest.1.1",
            "test-dir.0-0/mdtest_tree.1.0/mdtest_tree.1.1/file.mdtest.1.1",
            "test-dir.0-0/mdtest_tree.1.0/mdtest_tree.1.2",
            "test-dir.0-0/mdtest_tree.1.0/mdtest_tree.1.2/dir.mdtest.1.2",
            "test-dir.0-0/mdtest_tree.1.0/mdtest_tree.1.2/file.mdtest.1.2",
        ]
    );
    assert!(entries.values().flatten().all(|length| *length == 5));
}

#[test]
fn each_phase_as_a_run_of_its_own_finds_what_creation_left() {
    let changes: [fn(&mut Mdtest); 8] = [
        |_| (),
        |o| (o.unique_dir, o.stride) = (true, Some(1)),
        |o| (o.stride, o.random) = (Some(1), true),
        |o| o.shared = true,
        |o| o.collective = true,
        |o| (o.collective, o.unique_dir, o.stride) = (true, true, Some(1)),
        |o| o.leaf_only = true,
        |o| o.items = Some(6),
    ];
    for change in changes {
        let dir = tempdir();
        let options = |phase: fn(&mut Mdtest)| {
            let mut options = Mdtest {
                dirs: vec![dir.path().to_owned()],
                items_per_dir: Some(3),
                branch: Some(2),
                depth: Some(1),
                write_bytes: Some(Bytes(9)),
                read_bytes: Some(Bytes(9)),
                ..Mdtest::default()
            };
            change(&mut options);
            phase(&mut options);
            options
        };
        let create = options(|o| o.create = true);
        run_well(&[0; 3], dir.path(), &create);
        let created: BTreeSet<String> = oracle::expected(&create, &[0; 3], true)
            .calls
            .concat()
            .iter()
            .filter_map(|call| {
                let below = |path: &str| {
                    let path = Path::new(path).strip_prefix(dir.path());
                    path.expect("below").display().to_string()
                };
                match call.split(' ').collect::<Vec<_>>()[..] {
                    ["mkdir", path] | ["open", path, "read-write"] => Some(below(path)),
                    _ => None,
                }
            })
            .collect();
        let entries = walk(dir.path());
        assert_eq!(entries.keys().cloned().collect::<BTreeSet<_>>(), created);
        assert!(entries.values().flatten().all(|length| *length == 9));
        for phase in [
            (|o| o.stat = true) as fn(&mut Mdtest),
            |o| o.read = true,
            |o| (o.stat, o.read) = (true, true),
        ] {
            let options = options(phase);
            let outcome = run_well(&[0; 3], dir.path(), &options);
            let rows: Vec<(String, u64)> = outcome
                .rows
                .iter()
                .map(|r| (r.name.clone(), r.items))
                .collect();
            let expected = oracle::expected(&options, &[0; 3], true);
            assert_eq!(rows, expected.phases);
            assert_eq!(walk(dir.path()), entries, "nothing was changed");
        }
        run_well(&[0; 3], dir.path(), &options(|o| o.remove = true));
        assert_eq!(walk(dir.path()).len(), 0);
    }
}

#[test]
fn directories_have_mode_0775_and_files_0664_as_far_as_the_umask_lets_them() {
    let status = fs::read_to_string("/proc/self/status").expect("proc");
    let umask = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))
        .and_then(|text| u32::from_str_radix(text.trim(), 8).ok())
        .expect("a umask");
    for mknod in [false, true] {
        let dir = tempdir();
        let options = Mdtest {
            create: true,
            items: Some(1),
            mknod,
            ..Mdtest::default()
        };
        run_well(&[0], dir.path(), &options);
        let mode = |name: &str| {
            let path = dir.path().join("test-dir.0-0").join(name);
            fs::metadata(path)
                .expect("it is there")
                .permissions()
                .mode()
        };
        let expect = |kind: u32, mode: u32| kind | (mode & !umask);
        assert_eq!(mode(""), expect(0o40_000, 0o775));
        assert_eq!(mode("mdtest_tree.0"), expect(0o40_000, 0o775));
        assert_eq!(
            mode("mdtest_tree.0/dir.mdtest.0.0"),
            expect(0o40_000, 0o775)
        );
        assert_eq!(
            mode("mdtest_tree.0/file.mdtest.0.0"),
            expect(0o100_000, 0o664)
        );
    }
}

#[test]
fn the_default_set_leaves_nothing() {
    let dir = tempdir();
    for stride in [0, 1] {
        let options = Mdtest {
            items: Some(6),
            branch: Some(2),
            depth: Some(1),
            unique_dir: true,
            stride: Some(stride),
            iterations: Some(3),
            write_bytes: Some(Bytes(100)),
            read_bytes: Some(Bytes(100)),
            fsync: true,
            ..Mdtest::default()
        };
        let outcome = run_well(&BY_BLOCK, dir.path(), &options);
        assert_eq!(outcome.rows.len(), 3 * 10);
        for row in &outcome.rows {
            let expect = if row.name.starts_with("tree") { 36 } else { 72 };
            assert_eq!(row.items, expect, "{}", row.name);
        }
        assert_eq!(outcome.row("file-read").bytes, 7200);
        assert_eq!(walk(dir.path()).len(), 0);
    }
}

#[test]
fn a_label_says_what_the_client_could_answer() {
    let dir = crate::on_disk();
    for (stride, label) in [(0, None), (1, Some(Cache::Cold))] {
        let options = Mdtest {
            items: Some(1),
            stride: Some(stride),
            ..Mdtest::default()
        };
        let outcome = run_well(&BY_BLOCK, dir.path(), &options);
        assert_eq!(outcome.row("file-stat").cache, label);
        assert_eq!(outcome.row("file-create").cache, None);
    }
}

#[test]
fn a_directory_that_is_missing_is_made_and_removed_again() {
    let dir = tempdir();
    let missing = dir.path().join("new");
    let options = Mdtest {
        items: Some(2),
        ..Mdtest::default()
    };
    run_well(&[0, 1], &missing, &options);
    assert_eq!(walk(dir.path()).len(), 0);
    // Without the removal phase the directory stays.
    let create = Mdtest {
        create: true,
        ..options.clone()
    };
    run_well(&[0, 1], &missing, &create);
    assert!(missing.join("test-dir.0-0/mdtest_tree.0").exists());
    // A run does not remove directories that it did not create.
    let remove = Mdtest {
        remove: true,
        ..options
    };
    run_well(&[0, 1], &missing, &remove);
    assert_eq!(names(&walk(dir.path())), ["new"]);
}

#[test]
fn a_directory_in_a_missing_one_is_an_error_and_nothing_is_made() {
    let dir = tempdir();
    let options = Mdtest {
        items: Some(2),
        ..Mdtest::default()
    };
    let missing = dir.path().join("nowhere/new");
    let error = Run::mdtest(&[0, 0], &missing, options.clone())
        .go()
        .map(drop)
        .expect_err("refused")
        .to_string();
    assert!(error.contains("nowhere"), "{error}");
    assert_eq!(walk(dir.path()).len(), 0);
    // Of several directories, those that were created are removed again.
    let several = Mdtest {
        dirs: vec![dir.path().join("new"), missing],
        unique_dir: true,
        ..options
    };
    let error = Run::mdtest(&[0, 0], dir.path(), several)
        .go()
        .map(drop)
        .expect_err("refused")
        .to_string();
    assert!(error.contains("nowhere"), "{error}");
    assert_eq!(names(&walk(dir.path())), [""; 0]);
}

#[test]
fn a_file_in_the_place_of_a_test_directory_is_an_error_and_nothing_else_is_left() {
    let dir = tempdir();
    fs::write(dir.path().join("test-dir.0-1"), "precious").expect("written");
    let options = Mdtest {
        items: Some(6),
        items_per_dir: Some(3),
        ..Mdtest::default()
    };
    let outcome = run(&[0, 0], dir.path(), &options);
    let trouble = outcome.trouble.expect("trouble");
    assert!(trouble.contains("test-dir.0-1"), "{trouble}");
    assert!(!outcome.complete && outcome.rows.is_empty());
    assert_eq!(names(&walk(dir.path())), ["test-dir.0-1"]);
}

#[test]
fn on_an_empty_directory_every_operation_fails_and_none_is_an_item() {
    let dir = tempdir();
    let options = Mdtest {
        items: Some(5),
        stat: true,
        read: true,
        ..Mdtest::default()
    };
    let outcome = run(&[0, 0, 0], dir.path(), &options);
    assert_eq!(outcome.rows.len(), 3);
    for row in &outcome.rows {
        check_adds_up(row);
        let failures: Vec<(String, u64)> = row
            .failures
            .iter()
            .map(|(kind, count, _)| (kind.name(), count))
            .collect();
        assert_eq!(failures, [("ENOENT".to_owned(), 15)], "{}", row.name);
        assert_eq!((row.items, row.rate()), (0, 0.0));
    }
    assert!(outcome.complete && outcome.left.is_empty());
    assert_eq!(walk(dir.path()).len(), 0);
}

#[test]
fn failures_end_the_run_after_their_phase_where_warnings_are_errors() {
    let dir = tempdir();
    let options = Mdtest {
        items: Some(5),
        stat: true,
        read: true,
        warnings_are_errors: true,
        ..Mdtest::default()
    };
    let outcome = run(&[0, 0], dir.path(), &options);
    assert!(outcome.trouble.is_some() && !outcome.complete);
    assert_eq!(outcome.rows.len(), 1);
    assert_eq!(outcome.row("dir-stat").failures.total(), 10);
}

#[test]
fn files_that_are_there_are_as_good_as_new_ones_and_directories_are_not() {
    let dir = tempdir();
    let options = Mdtest {
        items: Some(4),
        create: true,
        write_bytes: Some(Bytes(10)),
        ..Mdtest::default()
    };
    run_well(&[0, 0], dir.path(), &options);
    let before = walk(dir.path());
    let shorter = Mdtest {
        write_bytes: Some(Bytes(3)),
        ..options
    };
    let again = run(&[0, 0], dir.path(), &shorter);
    let failed = |name: &str| again.row(name).failures.total();
    assert_eq!((failed("tree-create"), failed("dir-create")), (1, 8));
    assert_eq!(
        (failed("file-create"), again.row("file-create").items),
        (0, 8)
    );
    assert_eq!(walk(dir.path()), before, "no file was made shorter");
}

#[test]
fn somebody_elses_file_stays_with_what_it_is_in_and_that_is_named() {
    for (place, left) in [
        ("test-dir.0-0/precious", &["test-dir.0-0"][..]),
        ("precious", &[][..]),
        ("test-dir.0-0/mdtest_tree.0/precious", &["test-dir.0-0"][..]),
    ] {
        for made in [false, true] {
            let dir = tempdir();
            let target = dir.path().join("out");
            if !made {
                fs::create_dir(&target).expect("made");
            }
            let options = Mdtest {
                items: Some(3),
                ..Mdtest::default()
            };
            let mut run = Run::mdtest(&[0, 0], &target, options);
            run.between = Box::new(|row, _| {
                if row.name == "file-create" {
                    fs::write(target.join(place), "x").expect("written");
                }
            });
            let outcome = run.go().expect("runs");
            assert!(target.join(place).exists(), "{place}");
            let mut expect: Vec<String> = left
                .iter()
                .map(|name| target.join(name).display().to_string())
                .collect();
            if made {
                expect.push(target.display().to_string());
            }
            assert_eq!(outcome.left.len(), expect.len(), "{:?}", outcome.left);
            for (sentence, path) in outcome.left.iter().zip(expect) {
                assert!(sentence.starts_with(&format!("{path} ")), "{sentence}");
            }
            let failed: u64 = outcome.rows.iter().map(|r| r.failures.total()).sum();
            assert_eq!(failed, u64::from(place.contains("tree")), "{place}");
        }
    }
}

#[test]
fn ranks_take_turns_with_several_directories() {
    let dir = tempdir();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let options = Mdtest {
        dirs: vec![a, b],
        items: Some(1),
        files_only: true,
        unique_dir: true,
        create: true,
        ..Mdtest::default()
    };
    run_well(&[0, 1, 2], dir.path(), &options);
    assert_eq!(
        names(&walk(dir.path())),
        [
            "a",
            "a/test-dir.0-0",
            "a/test-dir.0-0/mdtest_tree.0.0",
            "a/test-dir.0-0/mdtest_tree.0.0/file.mdtest.0.0",
            "a/test-dir.0-0/mdtest_tree.2.0",
            "a/test-dir.0-0/mdtest_tree.2.0/file.mdtest.2.0",
            "b",
            "b/test-dir.0-0",
            "b/test-dir.0-0/mdtest_tree.1.0",
            "b/test-dir.0-0/mdtest_tree.1.0/file.mdtest.1.0",
        ]
    );
    let rest = Mdtest {
        stat: true,
        read: true,
        remove: true,
        create: false,
        ..options.clone()
    };
    run_well(&[0, 1, 2], dir.path(), &rest);
    assert_eq!(names(&walk(dir.path())), ["a", "b"]);
    let all = Mdtest {
        create: false,
        iterations: Some(2),
        ..options
    };
    fs::remove_dir(dir.path().join("b")).expect("it was empty");
    run_well(&[0, 1, 2], dir.path(), &all);
    assert_eq!(names(&walk(dir.path())), ["a"]);
}

#[test]
fn nodes_are_empty_regular_files() {
    let dir = tempdir();
    let options = Mdtest {
        mknod: true,
        create: true,
        files_only: true,
        items: Some(2),
        ..Mdtest::default()
    };
    run_well(&[0, 0], dir.path(), &options);
    let lengths: Vec<u64> = walk(dir.path()).values().flatten().copied().collect();
    assert_eq!(lengths, [0; 4]);
    // An existing node does not count as created.
    let again = run(&[0, 0], dir.path(), &options);
    let (kind, count, _) = again
        .row("file-create")
        .failures
        .iter()
        .next()
        .expect("one");
    assert_eq!((kind.name().as_str(), count), ("EEXIST", 4));
}

#[test]
fn the_dummy_touches_nothing() {
    let dir = tempdir();
    let options = Mdtest {
        backend: Backend::Dummy,
        items: Some(5),
        unique_dir: true,
        write_bytes: Some(Bytes(10)),
        read_bytes: Some(Bytes(10)),
        iterations: Some(2),
        ..Mdtest::default()
    };
    let nowhere = dir.path().join("not/there");
    let outcome = run_well(&[0, 1], &nowhere, &options);
    assert_eq!(outcome.row("file-create").items, 10);
    assert_eq!(outcome.row("file-read").bytes, 100);
    assert_eq!(walk(dir.path()).len(), 0);
}

#[test]
fn without_barriers_each_rank_goes_on_by_itself_and_the_counts_are_the_same() {
    let dir = tempdir();
    let options = |no_barriers: bool| Mdtest {
        no_barriers,
        items: Some(50),
        unique_dir: true,
        write_bytes: Some(Bytes(10)),
        iterations: Some(2),
        ..Mdtest::default()
    };
    let counts = |no_barriers: bool| -> Vec<(u32, String, u64)> {
        let outcome = run_well(&[0, 0, 1], dir.path(), &options(no_barriers));
        let of =
            |row: &rbench_core::outcome::PhaseOutcome| (row.iteration, row.name.clone(), row.items);
        outcome.rows.iter().map(of).collect()
    };
    assert_eq!(counts(true), counts(false));
    assert_eq!(walk(dir.path()).len(), 0);
}

#[test]
fn each_operation_is_logged_where_that_is_asked_for() {
    let dir = tempdir();
    let options = Mdtest {
        save_operations: Some("ops".into()),
        items: Some(7),
        files_only: true,
        write_bytes: Some(Bytes(10)),
        ..Mdtest::default()
    };
    let outcome = run_well(&[0, 0], dir.path(), &options);
    let logged: Vec<(&str, usize, u64)> = outcome
        .details
        .iter()
        .map(|(_, name, details)| {
            let bytes = details.operations.iter().map(|op| op.bytes).sum();
            (name.as_str(), details.operations.len(), bytes)
        })
        .collect();
    assert_eq!(
        logged,
        [
            ("tree-create", 1, 0),
            ("file-create", 7, 70),
            ("file-stat", 7, 0),
            ("file-read", 7, 0),
            ("file-remove", 7, 0),
            ("tree-remove", 1, 0),
        ]
    );
    for (_, name, details) in &outcome.details {
        let row = outcome.row(name);
        let starts: Vec<Nanos> = details.operations.iter().map(|op| op.start).collect();
        assert!(starts.is_sorted(), "{name}");
        let last = details.operations.last().expect("one");
        assert!(last.start.0 + last.service.0 <= row.elapsed.0, "{name}");
    }
}
