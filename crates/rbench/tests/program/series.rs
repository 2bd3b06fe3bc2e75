//! Tests series from a user's view: plans, refusals, and how a stopped one continues.

use std::fs;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{Place, text, wait_until};

/// Runs in a new directory and checks the exit code and a part of what is printed.
fn check(arguments: &str, code: i32, expect: &str) {
    let place = Place::new();
    let output = place.run(arguments);
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments}: {said}");
    assert!(said.contains(expect), "{arguments}: {said}");
}

#[test]
fn the_plan_of_the_overview_takes_minutes() {
    let place = Place::new();
    let plan = place.run("suite overview --dir target --dry-run");
    let plan = text(&plan.stdout);
    let (_, total) = plan.split_once(" cells, an estimate of ").expect("a total");
    let (total, _) = total.split_once(',').expect("a time");
    let seconds = match total.split_once(' ') {
        Some((number, "s")) => number.parse().ok(),
        Some((number, "min")) => number.parse().map(|minutes: f64| 60.0 * minutes).ok(),
        _ => None,
    };
    let most = 300.0;
    assert!(seconds.is_some_and(|s: f64| s > 30.0 && s < most), "{plan}");
}

#[test]
fn a_directory_that_does_not_exist_ends_a_series_before_its_first_cell() {
    for series in ["quick nowhere", "suite smoke --dir nowhere"] {
        check(series, 2, "nowhere does not exist");
    }
}

#[test]
fn a_key_that_the_workload_does_not_have_is_named_with_a_similar_one() {
    for (words, said) in [
        ("thread=1,2 -- io", "--over thread: did you mean threads?"),
        (
            "iodepht=1,2 -- fio --name=a",
            "--over iodepht: did you mean iodepth?",
        ),
        (
            "nonsense=1,2 -- io",
            "--over nonsense: the workload has no option --nonsense",
        ),
    ] {
        check(&format!("sweep --over {words}"), 2, said);
    }
}

#[test]
fn a_directory_in_the_place_of_a_command_has_a_tip() {
    let tip = "unrecognized subcommand 'target'\n\n  tip: for a directory of that name: rbench ./target\n";
    check("target", 2, tip);
    check("targe", 2, "unrecognized subcommand 'targe'\n\nUsage");
}

#[test]
fn a_suite_takes_series_as_steps_but_no_suite() {
    let place = Place::new();
    let suite = |run: &str| {
        let step = format!("version = 1\ntitle = \"t\"\n[[step]]\nname = \"s\"\nrun = \"{run}\"\n");
        fs::write(place.path("s.toml"), step).expect("written");
        let output = place.run("suite ./s.toml --dry-run --dir target");
        (
            output.status.code(),
            text(&output.stdout) + &text(&output.stderr),
        )
    };
    let (code, said) = suite("sweep --over bs=4k,8k -- io --dir {dir}");
    assert!(code == Some(0) && said.contains("2 cells"), "{said}");
    let (code, said) = suite("suite smoke --dir {dir}");
    let why = "a suite cannot be a step of another one";
    assert!(code == Some(2) && said.contains(why), "{said}");
}

/// A stopped search says how it continues, and does so.
#[test]
fn a_stopped_search_says_how_it_continues() {
    let place = Place::new();
    let line = "knee --slo max=100s --time 8 --from 2000 --to 2000 --out k.json -- io --dir target --rw read --size 64k --bs 4k";
    let child = place
        .command(line)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let journal = place.path("k.json.cell-2.journal");
    wait_until("the second step runs", || journal.exists());
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("signal");
    let output = child.wait_with_output().expect("it ends");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let file = place.path("k.json");
    let hint = format!("to continue: rbench --resume {}\n", file.display());
    assert!(said.contains(&hint), "{said}");
    let resumed = place.run(&format!("--resume {}", file.display()));
    let said = text(&resumed.stderr);
    assert_eq!(resumed.status.code(), Some(0), "{said}");
    assert!(
        said.contains("resumed: 1 cell was complete before"),
        "{said}"
    );
    assert!(!said.contains("to continue"), "{said}");
}
