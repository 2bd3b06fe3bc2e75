//! Tests mixes of operations on directories, with and without shared files.

use std::collections::BTreeMap;
use std::path::Path;

use rbench_core::{Bytes, Nanos};
use rbench_plan::mix::sizes::Sizes;
use rbench_plan::spec::{Mix, MixText, SetLayout};

use crate::group::{Outcome, Run, check_adds_up};
use crate::in_flight::flight;

fn list(text: &str, shared: bool) -> Mix {
    Mix {
        text: MixText::List(text.to_owned()),
        files: Some(60),
        sizes: Some(Sizes::Gamma(Bytes(2000))),
        width: Some(5),
        layout: shared.then_some(SetLayout::Shared),
        rounds: Some(20),
        ..Mix::default()
    }
}

pub fn profile(text: &str) -> Mix {
    Mix {
        text: MixText::Profile {
            name: "mine.toml".to_owned(),
            text: Some(Ok(text.to_owned())),
        },
        ..Mix::default()
    }
}

fn run(hosts: &[u32], dir: &Path, mix: Mix) -> Outcome {
    let mut run = Run::mix(hosts, dir, mix);
    run.common.threads = Some(2);
    let outcome = run.go().expect("it can be set up");
    assert!(outcome.complete);
    let left = std::fs::read_dir(dir).expect("the directory").count();
    assert_eq!(left, 0, "nothing is left");
    outcome
}

#[test]
fn every_step_is_counted_in_its_row_and_in_the_one_of_all() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text =
        "create, write whole, fsync, close, 2x (open, read whole, close), rename, delete, list";
    for shared in [false, true] {
        let outcome = run(&[0, 0, 1], dir.path(), list(text, shared));
        // Three ranks with two workers, twenty rounds.
        let rounds = 3 * 2 * 20;
        let mut all = 0;
        for (name, each) in [
            ("create", 1),
            ("write", 1),
            ("fsync", 1),
            ("close", 3),
            ("open", 2),
            ("read", 2),
            ("rename", 1),
            ("delete", 1),
            ("list", 1),
        ] {
            let row = outcome.row(name);
            check_adds_up(row);
            assert_eq!(row.failures.total(), 0, "{name}");
            assert_eq!(row.items, each * rounds, "{name}, shared: {shared}");
            all += row.items;
        }
        let (whole, any) = (outcome.row("round"), outcome.row("all"));
        check_adds_up(whole);
        check_adds_up(any);
        assert_eq!(any.items, all);
        assert_eq!(whole.items + whole.missed, rounds);
        let bytes = outcome.row("write").bytes + outcome.row("read").bytes;
        assert_eq!(any.bytes, bytes);
        // A round takes at least as long as its operations.
        assert!(whole.service.total() >= any.service.total() || whole.missed > 0);
    }
}

#[test]
fn rounds_of_an_open_loop_have_response_times_and_their_operations_none() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mix = Mix {
        rate: Some(2000.0),
        ..list("create, close, stat last, delete last", false)
    };
    let outcome = run(&[0], dir.path(), mix);
    let round = outcome.row("round");
    let response = round.response.as_ref().expect("an open loop");
    assert_eq!((round.items, response.count()), (40, 40));
    for name in ["create", "close", "stat", "delete", "all"] {
        assert!(outcome.row(name).response.is_none(), "{name}");
    }
    let drawn = Mix {
        text: MixText::Ops("stat=1,open=1".to_owned()),
        rate: Some(2000.0),
        ..list("", false)
    };
    let outcome = run(&[0], dir.path(), drawn);
    let responses = |name: &str| outcome.row(name).response.as_ref().map(|all| all.count());
    let both = [responses("stat"), responses("open")].into_iter().flatten();
    assert_eq!(Some(both.sum()), responses("all"));
    assert_eq!(responses("all"), Some(40));
}

#[test]
fn operations_of_an_open_loop_that_find_no_name_are_due_at_their_times_as_well() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mix = Mix {
        text: MixText::Ops("create=1".to_owned()),
        prepared: Some(100),
        rate: Some(50.0),
        rounds: None,
        time: Some(Nanos(400_000_000)),
        ..list("", false)
    };
    let stepped = Run::mix(&[0], dir.path(), mix).stepped(1_000);
    let outcome = stepped.go().expect("runs");
    let missed = outcome.row("create").missed;
    assert_eq!((missed, outcome.row("all").unissued), (20, 0));
}

#[test]
fn pauses_one_behind_the_other_add_up() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mix = Mix {
        rounds: Some(3),
        think: Some(Nanos(20_000_000)),
        ..list("think 20ms, think 20ms, stat", false)
    };
    let outcome = run(&[0], dir.path(), mix);
    // Three pauses twice, and two between the rounds.
    let time = outcome.row("all").elapsed;
    assert!(time >= Nanos(160_000_000), "{time:?}");
}

#[test]
fn workers_that_follow_others_do_a_round_for_so_many_of_theirs() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text = "[set.files]\nnumber = 20\nsize = \"8k\"\n\
        [[worker]]\nname = \"reader\"\nfirst = \"open\"\nlist = \"read 1k random\"\n\
        [[worker]]\nname = \"writer\"\nlist = \"open, write 1k, close\"\nper = \"100 reader\"\n";
    let mix = Mix {
        rounds: Some(1050),
        ..profile(text)
    };
    let outcome = run(&[0], dir.path(), mix);
    assert_eq!(outcome.row("reader-read").items, 1050);
    assert_eq!(outcome.row("reader-open").items, 1);
    assert_eq!(outcome.row("writer-write").items, 10);
    assert_eq!(outcome.row("writer-round").items, 10);
    let time = outcome.row("reader-all").elapsed;
    assert!(time > Nanos(0));
}

#[test]
fn the_log_of_each_kind_of_worker_has_as_many_operations_in_a_row_as_the_report() {
    let text = "[set.files]\nnumber = 20\nsize = \"8k\"\nprepared = \"50%\"\n\
        [[worker]]\nname = \"reader\"\nlist = \"open, read whole, close\"\n\
        [[worker]]\nname = \"writer\"\nthreads = 2\n\
        list = \"create, append 1k, fsync, close, delete\"\n";
    for depth in [0, 4] {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mix = Mix {
            rounds: Some(7),
            in_flight: flight(depth),
            ..profile(text)
        };
        let mut run = Run::mix(&[0], dir.path(), mix);
        run.common.log = Some(dir.path().join("unused"));
        let outcome = run.go().expect("it can be set up");
        let (_, names, details) = &outcome.details[0];
        let names: Vec<&str> = names.split(' ').collect();
        let mut logged: BTreeMap<&str, u64> = BTreeMap::new();
        for operation in &details.operations {
            *logged.entry(names[operation.row as usize]).or_default() += 1;
        }
        let done = outcome.rows.iter().filter(|row| row.items > 0);
        let done: BTreeMap<&str, u64> = done.map(|row| (row.name.as_str(), row.items)).collect();
        assert!(done.contains_key("reader-open") && done.contains_key("writer-fsync"));
        assert_eq!(logged, done, "{depth} in flight");
    }
}

#[test]
fn rounds_at_intervals_and_those_that_follow_them_cover_the_time_that_ended_them() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text = "[set.files]\nnumber = 20\nsize = \"8k\"\n\
        [[worker]]\nname = \"reader\"\nlist = \"stat\"\nevery = \"50ms\"\n\
        [[worker]]\nname = \"writer\"\nlist = \"stat\"\nper = \"2 reader\"\n";
    let mix = Mix {
        time: Some(Nanos(500_000_000)),
        ..profile(text)
    };
    let stepped = Run::mix(&[0], dir.path(), mix.clone()).stepped(1_000);
    let outcome = stepped.go().expect("it can be set up");
    let row = outcome.row("reader-all");
    assert_eq!((row.items, row.elapsed.0), (10, 500_000_000));
    // In virtual time, each worker has a time of its own.
    let outcome = run(&[0], dir.path(), mix);
    for row in ["reader-all", "writer-all"] {
        assert!(outcome.row(row).elapsed.0 >= 500_000_000, "{row}");
    }
}
