//! Tests stonewalls, pauses, commands and syncs around the operations.

use std::fs;
use std::time::Instant;

use rbench_core::outcome::PhaseOutcome;
use rbench_core::{Bytes, Nanos, SimulatedClock};
use rbench_plan::spec::Mdtest;

use super::{check_well, run, run_well, tempdir, walk};
use crate::children;
use crate::group::{Outcome, Run, check_adds_up};

const MS: u64 = 1_000_000;

#[test]
fn after_a_stonewall_later_runs_find_exactly_as_many_files() {
    let dir = tempdir();
    let options = Mdtest {
        stonewall: Some(Nanos(2 * MS)),
        status_file: Some("status".into()),
        files_only: true,
        unique_dir: true,
        create: true,
        ..Mdtest::default()
    };
    let mut run = Run::mdtest(&[0, 0, 0], dir.path(), options.clone()).stepped(5_000);
    // One rank is faster, and one is slower.
    run.clocks[0] = SimulatedClock::new(Nanos(2_000));
    run.clocks[2] = SimulatedClock::new(Nanos(8_000));
    let outcome = run.go().expect("runs");
    check_well(&outcome);
    let create = outcome.row("file-create");
    let wall = create.stonewall.expect("a stonewall");
    assert!(wall.items > 3 * wall.least && wall.items < 3 * wall.most && wall.least > 0);
    assert_eq!(create.items, 3 * wall.most);
    assert!(create.elapsed.0 >= 2 * MS, "{:?}", create.elapsed);
    let files = walk(dir.path()).values().flatten().count() as u64;
    assert_eq!(files, 3 * wall.most);
    for (phase, name) in [
        ((|o| o.stat = true) as fn(&mut Mdtest), "file-stat"),
        (|o| o.remove = true, "file-remove"),
    ] {
        let mut options = Mdtest {
            create: false,
            ..options.clone()
        };
        phase(&mut options);
        let mut run = Run::mdtest(&[0, 0, 0], dir.path(), options);
        run.stonewalled = Some(wall.most);
        let outcome = run.go().expect("runs");
        let row = outcome.row(name);
        assert_eq!((row.items, row.failures.total()), (3 * wall.most, 0));
        assert!(outcome.left.is_empty(), "{:?}", outcome.left);
    }
    assert_eq!(walk(dir.path()).len(), 0);
}

#[test]
fn a_stonewall_is_for_files_alone_and_the_phases_behind_it_know_its_count() {
    let dir = tempdir();
    let options = Mdtest {
        stonewall: Some(Nanos(MS)),
        items: Some(400),
        unique_dir: true,
        ..Mdtest::default()
    };
    let run = Run::mdtest(&[0, 0], dir.path(), options).stepped(5_000);
    let outcome = run.go().expect("runs");
    check_well(&outcome);
    assert!(outcome.row("dir-create").stonewall.is_none());
    assert_eq!(outcome.row("dir-create").items, 800);
    let create = outcome.row("file-create");
    let most = create.stonewall.expect("a stonewall").most;
    assert!(0 < most && most < 400, "{most}");
    for name in ["file-create", "file-stat", "file-read", "file-remove"] {
        assert_eq!(outcome.row(name).items, 2 * most, "{name}");
    }
    assert_eq!(walk(dir.path()).len(), 0);
}

/// The longest time of any rank in rows, ns.
fn in_rows(outcome: &Outcome) -> u64 {
    let of = |rank: usize| {
        outcome
            .rows
            .iter()
            .map(move |row| row.ranks[rank].elapsed.0)
    };
    (0..2).map(|rank| of(rank).sum()).max().unwrap_or_default()
}

#[test]
fn pauses_come_before_the_directories_and_before_the_files() {
    let check = |pauses: u64, phases: fn(&mut Mdtest)| {
        let dir = tempdir();
        let mut options = Mdtest {
            pause: Some(Nanos(100 * MS)),
            items: Some(2),
            ..Mdtest::default()
        };
        phases(&mut options);
        let started = Instant::now();
        let outcome = run_well(&[0, 0], dir.path(), &options);
        let whole = started.elapsed().as_nanos() as u64;
        // Not included in any row.
        let rows = in_rows(&outcome);
        assert!(rows + pauses * 100 * MS <= whole, "{rows} of {whole} ns");
    };
    check(2, |_| ());
    check(2, |o| o.no_barriers = true);
    check(2, |o| (o.create, o.unique_dir) = (true, true));
    check(1, |o| o.files_only = true);
    check(1, |o| o.dirs_only = true);
}

#[test]
fn commands_run_on_every_rank_around_every_phase_of_items() {
    let _children = children::some();
    // Four phases of directories and four of files; with -c, writing is a separate phase.
    let layouts: [fn(&mut Mdtest); 4] = [
        |o| o.unique_dir = true,
        |o| (o.unique_dir, o.no_barriers, o.files_only) = (true, true, true),
        |o| (o.collective, o.files_only) = (true, true),
        |o| o.shared = true,
    ];
    for (layout, phases) in layouts.into_iter().zip([8, 4, 5, 4]) {
        let (dir, log) = (tempdir(), tempdir());
        let file = log.path().join("log");
        let line = |word: &str| Some(format!("echo {word} >> '{}'", file.display()));
        let mut options = Mdtest {
            items: Some(2),
            before: line("before"),
            after: line("after"),
            ..Mdtest::default()
        };
        layout(&mut options);
        run_well(&[0, 0, 1], dir.path(), &options);
        let text = fs::read_to_string(&file).expect("the commands ran");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 * phases * 3, "{text}");
        if !options.no_barriers {
            for phase in lines.chunks(6) {
                assert_eq!(phase[..3], ["before"; 3], "{text}");
                assert_eq!(phase[3..], ["after"; 3], "{text}");
            }
        }
    }
}

#[test]
fn without_barriers_a_rank_runs_its_commands_around_each_of_its_phases() {
    let _children = children::some();
    let (dir, log) = (tempdir(), tempdir());
    let file = log.path().join("log");
    let line = |word: &str| Some(format!("echo {word} >> '{}'", file.display()));
    let options = Mdtest {
        items: Some(2),
        files_only: true,
        before: line("before"),
        after: line("after"),
        no_barriers: true,
        ..Mdtest::default()
    };
    run_well(&[0], dir.path(), &options);
    let text = fs::read_to_string(&file).expect("the commands ran");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines, ["before", "after"].repeat(4));
}

#[test]
fn without_barriers_what_was_measured_before_a_command_failed_is_told() {
    let _children = children::some();
    let (dir, log) = (tempdir(), tempdir());
    let once = log.path().join("once").display().to_string();
    let options = Mdtest {
        items: Some(2),
        files_only: true,
        // Succeeds before the first phase and fails before the second.
        before: Some(format!("mkdir '{once}'")),
        no_barriers: true,
        ..Mdtest::default()
    };
    let outcome = run(&[0], dir.path(), &options);
    assert!(outcome.trouble.is_some_and(|why| why.contains("mkdir")));
    let items: Vec<u64> = outcome.rows.iter().map(|row| row.items).collect();
    // The trees, the files, and the phases that were not reached.
    assert_eq!(items, [1, 2, 0, 0, 0]);
    assert!(outcome.rows[2..].iter().all(|row| !row.complete));
    assert_eq!(walk(dir.path()).len(), 0);
}

/// Results of file phases with a command before or after them that takes 100 ms, and the total
/// time.
fn with_command(before: bool) -> (Outcome, u64) {
    let dir = tempdir();
    let command = |wanted: bool| wanted.then(|| "sleep 0.1".to_owned());
    let options = Mdtest {
        items: Some(2),
        files_only: true,
        before: command(before),
        after: command(!before),
        ..Mdtest::default()
    };
    let started = Instant::now();
    let outcome = run_well(&[0, 0], dir.path(), &options);
    (outcome, started.elapsed().as_nanos() as u64)
}

#[test]
fn the_command_after_a_phase_belongs_to_its_time_and_the_one_before_does_not() {
    let _children = children::some();
    let of_items = |row: &&PhaseOutcome| row.name.starts_with("file");
    let (untimed, whole) = with_command(true);
    let phases = untimed.rows.iter().filter(of_items).count() as u64;
    assert_eq!(phases, 4);
    let rows = in_rows(&untimed);
    assert!(rows + phases * 100 * MS <= whole, "{rows} of {whole} ns");
    let (timed, _) = with_command(false);
    for row in timed.rows.iter().filter(of_items) {
        assert!(row.elapsed.0 >= 100 * MS, "{}", row.name);
        // No operation took this long.
        let rest = row.elapsed.0 - row.service.max().0;
        assert!(rest >= 100 * MS, "{}: {rest} ns", row.name);
    }
}

#[test]
fn a_stonewalls_command_runs_once_behind_the_topping_up() {
    let _children = children::some();
    let (dir, log) = (tempdir(), tempdir());
    let file = log.path().join("log");
    let options = Mdtest {
        items: Some(100_000),
        files_only: true,
        unique_dir: true,
        create: true,
        stonewall: Some(Nanos(100 * MS)),
        after: Some(format!("echo x >> '{}'; sleep 0.3", file.display())),
        ..Mdtest::default()
    };
    let outcome = run_well(&[0, 0], dir.path(), &options);
    assert!(outcome.row("file-create").stonewall.is_some());
    assert!(outcome.row("file-create").elapsed.0 >= 300 * MS);
    assert_eq!(fs::read_to_string(&file).expect("it ran"), "x\nx\n");
}

#[test]
fn a_command_that_fails_is_an_error_of_its_phase() {
    let _children = children::some();
    let dir = tempdir();
    let options = Mdtest {
        items: Some(2),
        files_only: true,
        after: Some("exit 3".to_owned()),
        ..Mdtest::default()
    };
    let outcome = run(&[0, 0], dir.path(), &options);
    assert!(outcome.complete);
    for row in &outcome.rows {
        let failures: Vec<(String, u64)> = row
            .failures
            .iter()
            .map(|(kind, count, _)| (kind.name(), count))
            .collect();
        if row.name.starts_with("tree") {
            assert_eq!(failures, []);
        } else {
            assert_eq!(failures, [("COMMAND".to_owned(), 2)], "{}", row.name);
            assert_eq!(row.items, 4, "{}", row.name);
            let (_, _, example) = row.failures.iter().next().expect("one");
            assert!(example.failure.detail.contains("exit status 3"));
        }
        check_adds_up(row);
    }
    assert_eq!(walk(dir.path()).len(), 0);
}

#[test]
fn a_command_before_a_phase_that_fails_ends_the_run_and_nothing_is_left() {
    let _children = children::some();
    let dir = tempdir();
    let options = Mdtest {
        items: Some(2),
        before: Some("exit 3".to_owned()),
        ..Mdtest::default()
    };
    let outcome = run(&[0, 0], dir.path(), &options);
    let trouble = outcome.trouble.expect("trouble");
    assert!(trouble.contains("exit status 3"), "{trouble}");
    assert!(!outcome.complete);
    assert_eq!(outcome.rows.len(), 1, "the tree was made");
    assert_eq!(walk(dir.path()).len(), 0);
}

#[test]
fn a_sync_after_each_phase_does_no_harm() {
    let dir = tempdir();
    let options = Mdtest {
        items: Some(2),
        files_only: true,
        sync: true,
        create: true,
        remove: true,
        write_bytes: Some(Bytes(10)),
        ..Mdtest::default()
    };
    run_well(&[0], dir.path(), &options);
    assert_eq!(walk(dir.path()).len(), 0);
}

mod timing {
    use super::*;
    use crate::clock::tried_again;

    #[test]
    fn pauses_come_before_the_directories_and_before_the_files() {
        tried_again(pauses_come_before_the_directories_and_before_the_files_once);
    }

    fn pauses_come_before_the_directories_and_before_the_files_once() {
        let took = |phases: fn(&mut Mdtest)| {
            let dir = tempdir();
            let mut options = Mdtest {
                pause: Some(Nanos(300 * MS)),
                items: Some(2),
                ..Mdtest::default()
            };
            phases(&mut options);
            let started = Instant::now();
            let outcome = run_well(&[0, 0], dir.path(), &options);
            for row in &outcome.rows {
                assert!(row.elapsed.0 < 250 * MS, "{} holds the pause", row.name);
            }
            started.elapsed().as_millis()
        };
        assert!(took(|_| ()) >= 600);
        assert!(took(|o| o.no_barriers = true) >= 600);
        assert!(took(|o| (o.create, o.unique_dir) = (true, true)) >= 600);
        let kinds: [fn(&mut Mdtest); 2] = [|o| o.files_only = true, |o| o.dirs_only = true];
        for kind in kinds {
            assert!(took(kind) >= 300);
        }
    }

    #[test]
    fn the_command_after_a_phase_belongs_to_its_time_and_the_one_before_does_not() {
        let _children = children::some();
        tried_again(the_command_after_a_phase_belongs_to_its_time_and_the_one_before_does_not_once);
    }

    fn the_command_after_a_phase_belongs_to_its_time_and_the_one_before_does_not_once() {
        let dir = tempdir();
        let options = |before: Option<&str>, after: Option<&str>| Mdtest {
            items: Some(2),
            files_only: true,
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
            ..Mdtest::default()
        };
        let untimed = run_well(&[0, 0], dir.path(), &options(Some("sleep 0.3"), None));
        assert!(untimed.rows.iter().all(|row| row.elapsed.0 < 250 * MS));
        let timed = run_well(&[0, 0], dir.path(), &options(None, Some("sleep 0.3")));
        for row in &timed.rows {
            let of_items = row.name.starts_with("file");
            assert_eq!(row.elapsed.0 >= 300 * MS, of_items, "{}", row.name);
            // No operation took this long.
            assert!(row.service.max() < Nanos(250 * MS), "{}", row.name);
        }
    }
}
