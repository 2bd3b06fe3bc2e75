//! Tests the phases of `rbench ior` on ranks of several hosts, and the files that remain.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use rbench_cli::Invocation;
use rbench_core::{Nanos, SimulatedClock};
use rbench_exec::ExecError;
use rbench_plan::spec::Workload;

use crate::group::{Outcome, Run, check_adds_up};

fn ior<'r>(hosts: &'r [u32], dir: &'r Path, line: &str) -> Run<'r> {
    let words = ["rbench", "ior"].into_iter().chain(line.split_whitespace());
    let words: Vec<OsString> = words.map(OsString::from).collect();
    match rbench_cli::parse(&words, None) {
        Ok(Invocation::Run(spec, _)) => match spec.workload {
            Workload::Ior(options) => Run::ior(hosts, dir, *options),
            other => panic!("{line}: {other:?}"),
        },
        Ok(other) => panic!("{line}: {other:?}"),
        Err(stop) => panic!("{line}: {}", stop.text),
    }
}

fn go(hosts: &[u32], dir: &Path, line: &str) -> Outcome {
    match ior(hosts, dir, line).go() {
        Ok(outcome) => outcome,
        Err(error) => panic!("{line}: {error}"),
    }
}

fn failures(outcome: &Outcome, row: &str) -> u64 {
    outcome.row(row).failures.total()
}

fn count(dir: &Path) -> usize {
    fs::read_dir(dir).expect("listing").count()
}

#[test]
fn ranks_read_and_check_what_ranks_of_another_node_wrote() {
    let dir = tempfile::tempdir().expect("a directory");
    for layout in ["-F", ""] {
        let line = format!("-b 12k -t 4k -s 3 -C -w -W -r -R -e -g {layout}");
        let outcome = go(&[0, 0, 1, 1], dir.path(), &line);
        assert!(outcome.complete, "{:?}", outcome.trouble);
        for (row, items) in [
            ("write-open", 4),
            ("write", 36),
            ("write-fsync", 4),
            ("write-close", 4),
            ("check-write", 36),
            ("read-open", 4),
            ("read", 36),
            ("read-close", 4),
        ] {
            let row = outcome.row(row);
            assert_eq!(
                (row.items, row.failures.total()),
                (items, 0),
                "{line}: {}",
                row.name
            );
            check_adds_up(row);
        }
        let access = outcome.row("write").access.expect("it was timed");
        assert!(access.total >= access.open && access.total >= access.transfer);
        assert_eq!(count(dir.path()), 0, "{line}");
    }
}

/// `-D` with `stoneWallingWearOut`: after the deadline, the slower rank continues from the transfer
/// that it had prepared.
#[test]
fn what_the_deadline_stopped_is_written_when_it_is_worn_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let line = "-F -b 400k -t 4k -w -k -D 1 -O stoneWallingWearOut=1";
    let mut run = ior(&[0, 0], dir.path(), line);
    run.clocks = [30_000_000, 10_000_000]
        .map(|step| SimulatedClock::new(Nanos(step)))
        .to_vec();
    let outcome = run.go().unwrap_or_else(|error| panic!("{line}: {error}"));
    let row = outcome.row("write");
    let stonewall = row.stonewall.expect("the deadline came first");
    assert!(stonewall.items < row.items, "{stonewall:?}");
    let files = [0, 1].map(|rank| {
        let path = dir.path().join(format!("testFile.{rank:08}"));
        fs::read(path).expect("written")
    });
    for file in &files {
        assert_eq!(file.len() as u64 * 2, row.bytes);
        let written = file
            .chunks(4096)
            .filter(|block| block.iter().any(|byte| *byte != 0));
        assert_eq!(written.count() as u64 * 2, row.items);
    }
}

#[test]
fn files_that_changed_places_are_found_whoever_reads_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let common = "-F -b 12k -t 4k -G 5 -k";
    go(&[0, 0, 1, 1], dir.path(), &format!("{common} -w"));
    let name = |rank: u32| dir.path().join(format!("testFile.{rank:08}"));
    fs::rename(name(1), name(9)).expect("renamed");
    fs::rename(name(3), name(1)).expect("renamed");
    fs::rename(name(9), name(3)).expect("renamed");
    let read = go(&[0, 0, 1, 1], dir.path(), &format!("{common} -R -C"));
    let each: Vec<u64> = read
        .row("read")
        .ranks
        .iter()
        .map(|rank| rank.errors)
        .collect();
    // Shifted by one node, ranks 1 and 3 read each other's data.
    assert_eq!((failures(&read, "read"), each), (6, vec![0, 3, 0, 3]));
    // Without a check nobody notices.
    let read = go(&[0, 0, 1, 1], dir.path(), &format!("{common} -r"));
    assert_eq!(failures(&read, "read"), 0);
}

#[test]
fn a_run_that_is_refused_or_that_fails_leaves_what_was_there_and_nothing_else() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("testFile.00000001"), "mine").expect("written");
    match ior(&[0, 0], dir.path(), "-F").go() {
        Err(ExecError::Usage(message)) => {
            assert!(message.contains("testFile.00000001"), "{message}")
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was done"),
    }
    assert_eq!(count(dir.path()), 1);
    // The files are too short: each rank's part ends early, and the run reports it.
    let read = go(&[0, 1], dir.path(), "-F -w -E -b 4k -t 4k -k");
    assert_eq!(failures(&read, "write"), 0);
    let read = go(&[0, 1], dir.path(), "-F -r -b 16k -t 4k");
    let row = read.row("read");
    assert_eq!((row.items, row.failures.total()), (2, 2));
    assert_eq!(count(dir.path()), 2, "what another run made stays");
}

#[test]
fn reading_goes_on_from_the_start_until_the_time_is_over_but_reads_all_once() {
    let dir = tempfile::tempdir().expect("a directory");
    go(&[0], dir.path(), "-F -w -k -b 64k -t 4k");
    // An operation takes 1 ms, and one starts every 2 ms.
    let line = "-F -r -b 64k -t 4k -O minTimeDuration=0.2";
    let long = ior(&[0], dir.path(), line).stepped(1_000_000);
    let items = long.go().expect("runs").row("read").items;
    assert!((95..=105).contains(&items), "{items}");
    let short = go(
        &[0],
        dir.path(),
        "-F -r -b 64k -t 4k -O minTimeDuration=0.000001",
    );
    assert_eq!(short.row("read").items, 16);
}
