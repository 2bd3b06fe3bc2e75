//! Tests that checking threads find the same damage as the workers themselves.

use std::fs;
use std::os::unix::fs::FileExt as _;

use rbench_core::{Bytes, Nanos};
use rbench_plan::io::{FsyncRule, Rw};
use rbench_plan::spec::Io;

use crate::group::{Outcome, Run, check_adds_up};

const BLOCK: u64 = 16 << 10;
const BLOCKS: u64 = 40;

/// Writes, damages some blocks of rank 0's file, and reads.
fn damaged(engine: &str, threads: u32, change: impl Fn(Io) -> Io) -> Outcome {
    let dir = tempfile::tempdir().expect("temporary directory");
    let spec = change(Io {
        rw: Some(vec![Rw::Write, Rw::Read, Rw::RandRead]),
        block: Some(Bytes(BLOCK)),
        size: Some(Bytes(BLOCK * BLOCKS)),
        engine: Some(engine.to_owned()),
        fsync: Some(FsyncRule::Never),
        verify: true,
        verify_threads: Some(threads),
        ..Io::default()
    });
    let mut run = Run::io(&[0, 1], dir.path(), spec).stepped(1_000);
    run.between = Box::new(|row, own| {
        if row.name == "write" {
            let path = own.join("0/data.0");
            let file = fs::OpenOptions::new().write(true).open(path);
            let file = file.expect("data");
            for block in [3, 4, 17, 39] {
                file.write_all_at(b"damage", block * BLOCK + 100 * block)
                    .expect("written");
            }
            file.write_all_at(&[0; BLOCK as usize], 20 * BLOCK)
                .expect("written");
        }
    });
    run.go().expect("runs")
}

/// All findings of the verification.
fn found(outcome: &Outcome) -> String {
    let rows = outcome.rows.iter().map(|row| {
        check_adds_up(row);
        let failures: Vec<_> = row.failures.iter().collect();
        format!("{} {} {} {failures:?}\n", row.name, row.items, row.bytes)
    });
    let mut damaged: Vec<String> = Vec::new();
    for (iteration, name, details) in &outcome.details {
        damaged.extend(
            details
                .damaged
                .iter()
                .map(|failure| format!("{iteration} {name} {failure}\n")),
        );
    }
    rows.chain(damaged).collect()
}

#[test]
fn what_is_wrong_and_what_is_told_of_it_does_not_depend_on_who_checks() {
    for engine in ["psync", "sync", "vsync", "pvsync", "pvsync2"] {
        let own = found(&damaged(engine, 0, |io| io));
        assert!(
            own.contains("MISMATCH") || own.contains("Mismatch"),
            "{own}"
        );
        for threads in [1, 3] {
            let others = found(&damaged(engine, threads, |io| io));
            assert_eq!(own, others, "{engine}, {threads} threads");
        }
    }
}

#[test]
fn an_open_loop_and_a_deadline_are_kept_with_all_that_was_read_noted() {
    for threads in [0, 2] {
        let outcome = damaged("psync", threads, |io| Io {
            rw: Some(vec![Rw::Write, Rw::Read]),
            rate: Some(2000.0),
            time: Some(Nanos(200_000_000)),
            ..io
        });
        let read = outcome.row("read");
        check_adds_up(read);
        assert!(read.items > 0 && read.complete, "{read:?}");
        assert!(read.response.is_some());
        let last = read
            .timeline
            .bins()
            .iter()
            .map(|bin| bin.items)
            .sum::<u64>();
        assert_eq!(last, read.items);
        assert!(read.effort.in_calls >= read.service.max());
    }
}
