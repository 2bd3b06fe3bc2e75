use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rbench_core::outcome::Cache;
use rbench_core::{Bytes, Nanos, SimulatedClock};
use rbench_exec::WARM_UP_ERRORS;
use rbench_plan::arrival::Arrival;
use rbench_plan::meta::{Layout, PhaseKind};
use rbench_plan::spec::Meta;

use crate::group::{Run, check_adds_up};

const THREE_HOSTS: [u32; 6] = [0, 0, 1, 1, 2, 2];

fn small() -> Meta {
    Meta {
        branch: Some(2),
        depth: Some(1),
        items: Some(5),
        ..Meta::default()
    }
}

#[test]
fn every_phase_adds_up_and_nothing_is_left() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for threads in [1, 3] {
        let mut run = Run::meta(&THREE_HOSTS, dir.path(), small());
        run.common.threads = Some(threads);
        let outcome = run.go().expect("runs");
        assert_eq!(outcome.rows.len(), 12);
        assert!(outcome.complete && outcome.left.is_empty());
        for row in &outcome.rows {
            check_adds_up(row);
            assert!(row.failures.is_empty(), "{}: {:?}", row.name, row.failures);
            let expect = match row.name.as_str() {
                "tree-create" | "tree-remove" | "dir-list" => 6 * 3,
                _ => 6 * 15,
            };
            assert_eq!(row.items, expect, "{}", row.name);
        }
        assert_eq!(fs::read_dir(dir.path()).expect("listing").count(), 0);
    }
}

#[test]
fn a_shared_tree_is_made_once_and_holds_the_items_of_all() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let meta = Meta {
        layout: Some(Layout::Shared),
        write: Some(Bytes(100)),
        ..small()
    };
    let mut run = Run::meta(&THREE_HOSTS, dir.path(), meta);
    run.between = Box::new(|row, own| {
        if row.name == "file-create" {
            let entries = fs::read_dir(own.join("0/tree.0/tree.2")).expect("listing");
            let names: Vec<_> = entries.map(|e| e.expect("entry")).collect();
            assert_eq!(names.len(), 30);
            assert!(
                names
                    .iter()
                    .all(|e| e.metadata().expect("metadata").len() == 100)
            );
        }
    });
    let outcome = run.go().expect("runs");
    assert_eq!(outcome.row("tree-create").items, 3);
    assert_eq!(outcome.row("dir-list").items, 3);
    assert_eq!(outcome.row("file-create").bytes, 6 * 15 * 100);
    assert_eq!(outcome.row("file-read").bytes, 6 * 15 * 100);
    outcome
        .rows
        .iter()
        .for_each(|row| assert!(row.failures.is_empty(), "{:?}", row.failures));
}

#[test]
fn with_a_shift_over_hosts_reads_are_cold_and_without_it_nobody_knows() {
    let dir = crate::on_disk();
    let label = |shift: Option<u32>, name: &str| {
        let meta = Meta {
            items: Some(1),
            ..Meta::default()
        };
        let mut run = Run::meta(&THREE_HOSTS, dir.path(), meta);
        run.common.shift = shift;
        let outcome = run.go().expect("runs");
        outcome
            .rows
            .iter()
            .for_each(|row| assert!(row.failures.is_empty(), "{:?}", row.failures));
        outcome.row(name).cache
    };
    assert_eq!(label(None, "file-stat"), None);
    assert_eq!(label(Some(2), "file-stat"), Some(Cache::Cold));
    assert_eq!(label(Some(2), "file-read"), Some(Cache::Cold));
    assert_eq!(label(Some(2), "file-create"), None);
}

#[test]
fn after_a_stonewall_every_worker_has_made_as_many_and_later_phases_find_them() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let meta = Meta {
        depth: Some(0),
        items: Some(500_000),
        files_only: true,
        stonewall: Some(Nanos(2_000_000)),
        phases: Some(vec![PhaseKind::FileStat, PhaseKind::FileRemove]),
        ..Meta::default()
    };
    let mut run = Run::meta(&[0, 0, 0], dir.path(), meta).stepped(5_000);
    // One rank is faster, and one is slower.
    run.clocks[0] = SimulatedClock::new(Nanos(2_000));
    run.clocks[2] = SimulatedClock::new(Nanos(8_000));
    let outcome = run.go().expect("runs");
    let create = outcome.row("file-create");
    let wall = create.stonewall.expect("a stonewall");
    assert!(wall.items > 3 * wall.least && wall.items < 3 * wall.most && wall.least > 0);
    assert_eq!(create.items, 3 * wall.most);
    assert_eq!(outcome.row("file-remove").items, create.items);
    outcome
        .rows
        .iter()
        .for_each(|row| assert!(row.failures.is_empty(), "{:?}", row.failures));
}

#[test]
fn failures_are_counted_by_errno_and_are_no_items() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut run = Run::meta(&[0, 0], dir.path(), small());
    run.between = Box::new(|row, own| {
        if row.name == "file-create" {
            fs::remove_file(own.join("0/tree.1.0/file.1.3")).expect("removed");
        }
    });
    let outcome = run.go().expect("runs");
    let stat = outcome.row("file-stat");
    check_adds_up(stat);
    assert_eq!(stat.items, 29);
    let (kind, count, example) = stat.failures.iter().next().expect("a failure");
    assert_eq!((kind.name().as_str(), count), ("ENOENT", 1));
    assert_eq!(
        (example.rank.0, example.failure.path.as_str()),
        (1, "0/tree.1.0/file.1.3")
    );
}

#[test]
fn a_listing_with_an_entry_too_many_is_no_listing_done() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut run = Run::meta(&[0], dir.path(), small());
    run.between = Box::new(|row, own| {
        if row.name == "dir-create" {
            fs::write(own.join("0/tree.0.0/stray"), "").expect("written");
        }
    });
    let outcome = run.go().expect("runs");
    let list = outcome.row("dir-list");
    assert_eq!((list.items, list.failures.total()), (2, 1));
    let (kind, _, example) = list.failures.iter().next().expect("a failure");
    assert_eq!(kind.name(), "MISMATCH");
    assert_eq!(example.failure.detail, "8 entries listed, 7 expected");
}

#[test]
fn a_taken_name_or_a_missing_directory_is_refused_on_every_rank() {
    let dir = tempfile::tempdir().expect("temporary directory");
    fs::create_dir(dir.path().join("rbench.test")).expect("made");
    fs::write(dir.path().join("rbench.test/precious"), "x").expect("written");
    let error = Run::meta(&[0, 0], dir.path(), small())
        .go()
        .map(drop)
        .expect_err("refused")
        .to_string();
    assert!(error.contains("rbench.test already exists"), "{error}");
    assert!(dir.path().join("rbench.test/precious").exists());
    let missing = dir.path().join("nowhere");
    let error = Run::meta(&[0, 0], &missing, small())
        .go()
        .map(drop)
        .expect_err("refused")
        .to_string();
    assert!(error.contains("nowhere does not exist"), "{error}");
}

#[test]
fn random_order_visits_every_item_once() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let meta = Meta {
        random_order: true,
        ..small()
    };
    let mut run = Run::meta(&[0, 0], dir.path(), meta);
    run.common.threads = Some(2);
    run.common.iterations = Some(2);
    let outcome = run.go().expect("runs");
    assert_eq!(outcome.rows.len(), 24);
    outcome
        .rows
        .iter()
        .for_each(|row| assert!(row.failures.is_empty(), "{:?}", row.failures));
}

#[test]
fn a_stonewall_that_cut_nobody_off_is_none() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let meta = Meta {
        stonewall: Some(Nanos(60_000_000_000)),
        ..small()
    };
    let outcome = Run::meta(&[0, 0], dir.path(), meta).go().expect("runs");
    assert!(
        outcome
            .rows
            .iter()
            .all(|row| row.stonewall.is_none() && row.failures.is_empty())
    );
}

#[test]
fn the_first_finisher_counts_with_all_it_has_done() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let meta = Meta {
        depth: Some(0),
        items: Some(1),
        ..Meta::default()
    };
    // All at once, one after the other, and in any order.
    let stepped = [[1; 3], [1, 2, 3], [3, 1, 1], [2, 2, 1]].map(Some);
    for steps in stepped.into_iter().chain([None; 5]) {
        let mut run = Run::meta(&[0, 0, 0], dir.path(), meta.clone());
        let clocks = steps.into_iter().flatten();
        run.clocks = clocks
            .map(|us| SimulatedClock::new(Nanos(us * 1_000)))
            .collect();
        let outcome = run.go().expect("runs");
        for row in &outcome.rows {
            assert!(
                row.one_each
                    || row
                        .first_done
                        .as_ref()
                        .is_some_and(|first| first.items >= 1),
                "{}",
                row.name
            );
        }
    }
}

/// Rows of phases with a time and, optionally, a rate.
fn timed(rate: Option<f64>, phases: &[PhaseKind]) -> Meta {
    Meta {
        time: Some(Nanos(500_000_000)),
        rate,
        phases: Some(phases.to_vec()),
        ..Meta::default()
    }
}

#[test]
fn phases_with_a_rate_start_as_many_operations_as_are_due() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let kinds = [
        PhaseKind::FileCreate,
        PhaseKind::FileStat,
        PhaseKind::FileRename,
        PhaseKind::FileRemove,
    ];
    for arrival in [Arrival::Uniform, Arrival::Poisson] {
        let meta = Meta {
            arrival: Some(arrival),
            ..timed(Some(400.0), &kinds)
        };
        // One worker per rank: in virtual time, one of two workers could take all due operations,
        // and later phases use only as many items as each worker created.
        let run = Run::meta(&[0, 0], dir.path(), meta).stepped(1_000);
        let outcome = run.go().expect("runs");
        let names: Vec<&str> = outcome.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, kinds.map(|kind| kind.info().name));
        for row in &outcome.rows {
            check_adds_up(row);
            assert!(row.failures.is_empty(), "{}: {:?}", row.name, row.failures);
            let due = row.items;
            assert_eq!(row.unissued, 0, "{}", row.name);
            match arrival {
                // A worker removes as many items as each worker created.
                _ if row.name == "file-remove" => {
                    assert!((4..=280).contains(&due), "{due}");
                }
                Arrival::Uniform => assert_eq!(due, 200, "{}", row.name),
                // 200 on average, five standard deviations.
                _ => assert!((120..=280).contains(&due), "{}: {due}", row.name),
            }
            let response = row.response.as_ref().expect("an open loop");
            assert_eq!(response.count(), row.items, "{}", row.name);
            assert!(row.stonewall.is_none(), "{}", row.name);
        }
    }
}

#[test]
fn a_rate_that_leaves_workers_without_items_ends_the_run_after_creation() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let kinds = [PhaseKind::FileCreate, PhaseKind::FileStat];
    // Due in half a second: 2 operations for 4 workers.
    let mut run = Run::meta(&[0], dir.path(), timed(Some(4.0), &kinds)).stepped(1_000);
    run.common.threads = Some(4);
    let outcome = run.go().expect("what was measured is reported");
    let names: Vec<&str> = outcome.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["file-create"]);
    let trouble = outcome.trouble.expect("a sentence");
    assert!(trouble.contains("fewer --threads"), "{trouble}");
}

#[test]
fn without_a_rate_a_time_makes_phases_go_over_their_items_again() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let meta = Meta {
        items: Some(5),
        depth: Some(0),
        ..timed(None, &[PhaseKind::FileStat, PhaseKind::FileRename])
    };
    let run = Run::meta(&[0], dir.path(), meta).stepped(1_000_000);
    let outcome = run.go().expect("runs");
    assert_eq!(outcome.rows.len(), 2);
    for row in &outcome.rows {
        assert!(row.failures.is_empty() && row.response.is_none());
        // One every 2 ms.
        assert!(
            (245..=250).contains(&row.items),
            "{}: {}",
            row.name,
            row.items
        );
    }
    // Items that a phase consumes are created until the measurement ends.
    let removal = timed(None, &[PhaseKind::FileRemove]);
    let run = Run::meta(&[0], dir.path(), removal).stepped(1_000_000);
    let outcome = run.go().expect("runs");
    let names: Vec<&str> = outcome.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["file-remove"]);
    assert!(outcome.rows[0].items > 0 && outcome.rows[0].failures.is_empty());
}

#[test]
fn workers_that_do_not_divide_by_the_ranks_are_as_many_as_were_asked_for() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let meta = Meta {
        workers: Some(8),
        branch: Some(2),
        items: Some(7),
        leaf_only: true,
        files_only: true,
        phases: Some(vec![PhaseKind::FileStat, PhaseKind::FileRemove]),
        ..small()
    };
    let run = Run::meta(&THREE_HOSTS, dir.path(), meta);
    assert_eq!(run.plan().expect("a plan").workers(), 8);
    let outcome = run.go().expect("runs");
    for row in outcome.rows.iter().filter(|row| row.name != "tree-create") {
        check_adds_up(row);
        assert!(row.failures.is_empty(), "{}: {:?}", row.name, row.failures);
        assert_eq!((row.items, row.effort.workers), (8 * 7, 8), "{}", row.name);
        let of_ranks: Vec<u64> = row.ranks.iter().map(|rank| rank.items).collect();
        // One additional worker at the first ranks of the first two hosts.
        assert_eq!(of_ranks, [14, 7, 14, 7, 7, 7], "{}", row.name);
    }
}

/// Files in the trees of all ranks, one operation per phase.
fn files_only() -> Meta {
    Meta {
        files_only: true,
        ..small()
    }
}

#[test]
fn passes_end_when_rank_0_has_enough_on_all_ranks() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for needed in [3, 5] {
        let mut run = Run::meta(&[0, 0, 1], dir.path(), files_only());
        run.common.auto.wanted = true;
        run.needed = needed;
        let outcome = run.go().expect("runs");
        let done: BTreeSet<u32> = outcome.rows.iter().map(|row| row.iteration).collect();
        assert_eq!(done, (0..needed).collect());
        assert!(outcome.complete && outcome.left.is_empty());
        assert_eq!(dir.path().read_dir().expect("listing").count(), 0);
    }
}

#[test]
fn passes_end_at_the_most_that_there_may_be() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut run = Run::meta(&[0, 0], dir.path(), files_only());
    (run.common.auto.wanted, run.common.auto.max_iterations) = (true, Some(4));
    run.needed = 100;
    let outcome = run.go().expect("runs");
    let done: BTreeSet<u32> = outcome.rows.iter().map(|row| row.iteration).collect();
    assert_eq!(done, (0..4).collect());
}

#[test]
fn a_warm_up_is_run_and_in_no_row() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let rows_and_phases = |warmup: Option<u32>| {
        let meta = Meta {
            warmup,
            ..files_only()
        };
        let phases_started = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&phases_started);
        let mut run = Run::meta(&[0], dir.path(), meta);
        run.began = Some(Arc::new(move |label: &str| {
            if label != "removal" {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }));
        let outcome = run.go().expect("runs");
        let rows = outcome.rows.iter();
        let rows: Vec<(u32, String, u64)> = rows
            .map(|row| (row.iteration, row.name.clone(), row.items))
            .collect();
        (rows, phases_started.load(Ordering::Relaxed))
    };
    let (rows, phases) = rows_and_phases(None);
    let (behind_warm_up, with_warm_up) = rows_and_phases(Some(2));
    assert_eq!(rows, behind_warm_up);
    assert_eq!((phases, with_warm_up), (rows.len(), 3 * rows.len()));
}

#[test]
fn what_fails_in_a_warm_up_is_told_and_not_counted() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let meta = Meta {
        warmup: Some(1),
        ..files_only()
    };
    // When the warm-up reaches its stats, its files are gone.
    let (own, taken) = (dir.path().join("rbench.test"), AtomicUsize::new(0));
    let mut run = Run::meta(&[0], dir.path(), meta);
    run.began = Some(Arc::new(move |label: &str| {
        if label == "File stat" && taken.fetch_add(1, Ordering::Relaxed) == 0 {
            remove_files(&own);
        }
    }));
    let outcome = run.go().expect("runs");
    assert!(outcome.complete);
    assert!(outcome.rows.iter().all(|row| row.failures.is_empty()));
    let codes: Vec<&str> = outcome.warnings.iter().map(|(code, _)| *code).collect();
    assert!(codes.contains(&WARM_UP_ERRORS), "{:?}", outcome.warnings);
}

/// Removes all files of items below `dir`.
fn remove_files(dir: &Path) {
    for entry in fs::read_dir(dir).expect("listing") {
        let path = entry.expect("an entry").path();
        let marker = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
        match path.is_dir() {
            true => remove_files(&path),
            false if marker => {}
            false => fs::remove_file(&path).expect("removed"),
        }
    }
}
