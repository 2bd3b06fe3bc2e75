//! Tests against an installed fio 3.33, with newly measured numbers.

use std::io::{ErrorKind, Write as _};
use std::process::Command;
use std::thread;

use super::*;

/// Returns true if fio is installed. Otherwise the test prints a note, or fails if skipping is not
/// allowed or a record is requested.
fn fio_is_here() -> bool {
    match Command::new("fio").arg("--version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // Not by a macro: the harness would capture the line of a passing test.
            writeln!(std::io::stderr(), "skipped: fio is not installed")
                .expect("stderr takes a line");
            let needed = ["RBENCH_TEST_NO_SKIP", "RBENCH_RECORD"];
            let needed = needed.iter().any(|name| std::env::var_os(name).is_some());
            assert!(!needed, "fio is not installed");
            false
        }
        done => {
            let version = String::from_utf8(done.expect("fio runs").stdout);
            assert_eq!(version.expect("a version").trim(), "fio-3.33");
            true
        }
    }
}

/// fio's output in all formats, of a run whose percentiles have a certain unit.
fn printed(options: &str) -> String {
    let mut outputs = (0..20).map(|_| output_of_run(options));
    outputs
        .find(|text| !unit_is_uncertain(text))
        .unwrap_or_else(|| panic!("fio {options}: a percentile near 100 us or 100 ms, 20 times"))
}

/// Returns true if a percentile's bin contains 100 us or 100 ms. fio chooses the unit by the middle
/// of the bin; our histogram is finer, and the numbers that fio prints do not say on which side of
/// the limit its values were.
fn unit_is_uncertain(text: &str) -> bool {
    let contains = |ns: u64| {
        let (low, high) = reading::bin(ns);
        [100_000, 100_000_000]
            .iter()
            .any(|limit| (low..=high).contains(limit))
    };
    let percentile = |line: &str| {
        let (name, value) = line.trim().trim_end_matches(',').split_once("\" : ")?;
        name.contains('.').then(|| value.parse().ok()).flatten()
    };
    text.lines().filter_map(percentile).any(contains)
}

#[test]
fn a_unit_is_uncertain_if_a_percentile_is_near_its_limit() {
    for (line, uncertain) in [
        ("            \"99.990000\" : 99840,", true),
        ("            \"50.000000\" : 100139008", true),
        ("            \"99.990000\" : 98816,", false),
        ("            \"99.990000\" : 100864", false),
        ("            \"99840\" : 7,", false),
    ] {
        assert_eq!(unit_is_uncertain(line), uncertain, "{line}");
    }
}

/// fio's output in all formats, run in a temporary directory.
fn output_of_run(options: &str) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let fio = Command::new("fio")
        .arg(FORMS)
        .args(options.split_whitespace())
        .current_dir(&folder)
        .output()
        .expect("fio runs");
    let text = String::from_utf8_lossy(&fio.stdout).into_owned();
    assert!(text.contains("fio-3.33"), "fio {options}: {fio:?}");
    text
}

#[test]
fn what_fio_measures_now_is_what_it_prints() {
    if !fio_is_here() {
        return;
    }
    let record = std::env::var_os("RBENCH_RECORD").is_some();
    // Most runs only wait, so several run at once.
    thread::scope(|scope| {
        for first in 0..4 {
            scope.spawn(move || {
                for (name, options) in RUNS.iter().skip(first).step_by(4) {
                    let text = printed(options);
                    compare_run(options, &text);
                    if record {
                        let text = format!("{}{text}", command(options));
                        fs::write(path_of(name), text).expect("the record is written");
                    }
                }
            });
        }
    });
}
