//! Tests interrupted runs: measurements until then are reported, the run's entries are removed,
//! existing entries stay.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rbench_core::Nanos;
use rbench_plan::spec::Mdtest;

use super::{run_well, tempdir, walk};
use crate::group::{At, Outcome, Run, Signal};

/// More files than can be created before the signal.
const MANY: u64 = 500_000;

fn many(change: impl FnOnce(&mut Mdtest)) -> Mdtest {
    let mut options = Mdtest {
        items: Some(MANY),
        files_only: true,
        ..Mdtest::default()
    };
    change(&mut options);
    options
}

/// Subtracts the number of entries below `dir` that are (or are not) directories from `missing`,
/// until that is 0.
fn take(dir: &Path, directories: bool, missing: &mut usize) {
    // The directory is empty before the run creates it.
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        *missing = missing.saturating_sub(usize::from(is_dir == directories));
        if is_dir && *missing > 0 {
            take(&entry.path(), directories, missing);
        }
        if *missing == 0 {
            return;
        }
    }
}

/// When `dir` contains `more` directories (or other entries) than now.
fn at_more(dir: &Path, directories: bool, more: usize) -> At {
    let mut uncounted = usize::MAX;
    take(dir, directories, &mut uncounted);
    let awaited = usize::MAX - uncounted + more;
    let dir = dir.to_owned();
    At::Once(Box::new(move || {
        let mut missing = awaited;
        take(&dir, directories, &mut missing);
        missing == 0
    }))
}

/// Runs `options` on three ranks of two hosts. Rank 1 receives a signal once some files exist.
fn interrupted(dir: &Path, options: Mdtest) -> Outcome {
    let mut run = Run::mdtest(&[0, 0, 1], dir, options);
    run.signal = Some(Signal {
        rank: 1,
        during: "File creation",
        at: at_more(dir, false, 10),
    });
    let outcome = run.go().expect("what was measured is told");
    assert!(!outcome.complete && outcome.trouble.is_none());
    outcome
}

fn check_partial(outcome: &Outcome) {
    let row = outcome.row("file-create");
    assert!(!row.complete);
    assert!(row.items > 0 && row.items < 3 * MANY, "{}", row.items);
    assert!(row.failures.is_empty(), "{:?}", row.failures);
    assert_eq!(
        outcome.rows.last().map(|r| r.name.as_str()),
        Some("file-create")
    );
}

const LAYOUTS: [fn(&mut Mdtest); 6] = [
    |_| (),
    |o| o.unique_dir = true,
    |o| (o.unique_dir, o.stride) = (true, Some(1)),
    |o| o.shared = true,
    |o| (o.items, o.items_per_dir) = (Some(MANY), Some(MANY / 2)),
    |o| o.collective = true,
];

#[test]
fn a_signal_while_files_are_made_leaves_rows_and_no_files() {
    for layout in LAYOUTS {
        for there in [true, false] {
            let dir = tempdir();
            let target = dir.path().join("out");
            if there {
                fs::create_dir(&target).expect("made");
            }
            let outcome = interrupted(&target, many(layout));
            check_partial(&outcome);
            assert_eq!(outcome.left, [""; 0]);
            let rest: Vec<String> = walk(dir.path()).into_keys().collect();
            assert_eq!(rest, vec!["out"; usize::from(there)]);
        }
    }
}

#[test]
fn a_test_directory_that_was_there_is_left_with_what_is_in_it_and_named() {
    let mut faults = Vec::new();
    for (nth, layout) in LAYOUTS.into_iter().enumerate() {
        let dir = tempdir();
        let test_dir = dir.path().join("test-dir.0-0");
        fs::create_dir(&test_dir).expect("made");
        fs::write(test_dir.join("precious"), "x").expect("written");
        let outcome = interrupted(dir.path(), many(layout));
        check_partial(&outcome);
        assert!(test_dir.join("precious").exists());
        let path = test_dir.display().to_string();
        if outcome.left.is_empty() || !outcome.left.iter().all(|l| l.contains(&path)) {
            faults.push((nth, outcome.left));
        }
        // Only the test directories that this run created are removed.
        assert!(!dir.path().join("test-dir.0-1").exists());
    }
    assert!(faults.is_empty(), "not named by the layouts {faults:?}");
}

#[test]
fn what_an_earlier_run_made_survives_an_interrupted_one() {
    for layout in LAYOUTS {
        let dir = tempdir();
        let few = |o: &mut Mdtest| {
            layout(o);
            (o.items, o.create) = (Some(10), true);
            o.items_per_dir = o.items_per_dir.map(|_| 5);
        };
        run_well(&[0, 0, 1], dir.path(), &many(few));
        let before = walk(dir.path());
        check_partial(&interrupted(dir.path(), many(layout)));
        let after = walk(dir.path());
        let lost = before.keys().find(|path| !after.contains_key(*path));
        assert_eq!(lost, None);
    }
}

#[test]
fn a_run_that_was_not_to_remove_leaves_what_it_made_and_says_so() {
    let dir = tempdir();
    let outcome = interrupted(dir.path(), many(|o| o.create = true));
    check_partial(&outcome);
    assert!(!outcome.left.is_empty());
    assert!(outcome.left.iter().all(|l| l.contains("test-dir.0-0")));
    let files = walk(dir.path()).values().flatten().count() as u64;
    assert_eq!(files, outcome.row("file-create").items);
}

#[test]
fn a_run_on_what_an_earlier_one_made_leaves_it_when_it_is_interrupted() {
    let dir = tempdir();
    let options = |phase: fn(&mut Mdtest)| {
        let mut options = Mdtest {
            items: Some(40),
            files_only: true,
            unique_dir: true,
            ..Mdtest::default()
        };
        phase(&mut options);
        options
    };
    run_well(&[0, 0, 1], dir.path(), &options(|o| o.create = true));
    let before = walk(dir.path());
    let mut run = Run::mdtest(
        &[0, 0, 1],
        dir.path(),
        options(|o| {
            (o.stat, o.remove) = (true, true);
            o.pause = Some(Nanos(3_600_000_000_000));
        }),
    );
    run.signal = Some(Signal {
        rank: 0,
        during: "pausing",
        at: At::After(Duration::from_millis(30)),
    });
    let started = Instant::now();
    let outcome = run.go().expect("ends well");
    assert!(started.elapsed() < Duration::from_secs(1800));
    assert!(!outcome.complete && outcome.rows.is_empty());
    assert_eq!(walk(dir.path()), before);
    assert!(!outcome.left.is_empty());
    assert!(outcome.left.iter().all(|l| l.contains("test-dir.0-0")));
}

#[test]
fn without_barriers_a_signal_ends_all_ranks_and_leaves_nothing() {
    // The last layout, collective creation, needs barriers.
    for layout in &LAYOUTS[..5] {
        let dir = tempdir();
        let options = many(|o| {
            layout(o);
            o.no_barriers = true;
        });
        let outcome = interrupted(dir.path(), options);
        let row = outcome.row("file-create");
        assert!(!row.complete && row.items > 0 && row.items < 3 * MANY);
        assert_eq!(outcome.left, [""; 0]);
        assert_eq!(walk(dir.path()).len(), 0);
    }
}

#[test]
fn a_signal_while_trees_are_made_leaves_nothing() {
    for layout in LAYOUTS {
        let dir = tempdir();
        let options = many(|o| {
            layout(o);
            (o.branch, o.depth) = (Some(10), Some(4));
        });
        let mut run = Run::mdtest(&[0, 0, 1], dir.path(), options);
        run.signal = Some(Signal {
            rank: 2,
            during: "Tree creation",
            // More directories than in the trees.
            at: at_more(dir.path(), true, 50),
        });
        run.common.leave.overfill = true;
        let outcome = run.go().expect("what was measured is told");
        let row = outcome.row("tree-create");
        assert_eq!(outcome.rows.len(), 1);
        assert!(!row.complete && row.items > 0, "{}", row.items);
        assert_eq!(outcome.left, [""; 0]);
        assert_eq!(walk(dir.path()).len(), 0);
    }
}

#[test]
fn a_signal_between_two_iterations_ends_the_run_before_the_next() {
    let dir = tempdir();
    let options = Mdtest {
        items: Some(10),
        unique_dir: true,
        iterations: Some(100),
        ..Mdtest::default()
    };
    let mut run = Run::mdtest(&[0, 0, 1], dir.path(), options);
    run.signal = Some(Signal {
        rank: 2,
        during: "removal",
        at: At::After(Duration::ZERO),
    });
    let outcome = run.go().expect("what was measured is told");
    assert!(!outcome.complete && outcome.rows.len() < 500);
    assert!(outcome.rows.iter().take(10).all(|row| row.complete));
    assert_eq!(outcome.left, [""; 0]);
    assert_eq!(walk(dir.path()).len(), 0);
}

#[test]
fn after_a_signal_no_command_and_no_further_iteration_runs() {
    let (dir, log) = (tempdir(), tempdir());
    let file = log.path().join("log");
    let options = many(|o| {
        o.after = Some(format!("echo x >> '{}'", file.display()));
        o.iterations = Some(3);
    });
    let outcome = interrupted(dir.path(), options);
    check_partial(&outcome);
    assert!(!file.exists());
    assert_eq!(walk(dir.path()).len(), 0);
}

#[test]
fn an_interrupted_stonewall_does_not_top_up() {
    let dir = tempdir();
    let options = many(|o| {
        o.unique_dir = true;
        o.stonewall = Some(Nanos(3_600_000_000_000));
    });
    let started = Instant::now();
    let outcome = interrupted(dir.path(), options);
    assert!(started.elapsed() < Duration::from_secs(1800));
    check_partial(&outcome);
    assert_eq!(walk(dir.path()).len(), 0);
}
