//! Tests that written data can be verified, by the same run or a later one.

use std::fs;
use std::path::Path;

use rbench_core::Bytes;
use rbench_core::outcome::Details;
use rbench_plan::meta::Packet;
use rbench_plan::spec::Mdtest;

use super::{run, run_well, tempdir, walk};
use crate::group::{Outcome, check_adds_up};

const PACKETS: [Packet; 5] = [
    Packet::Timestamp,
    Packet::Offset,
    Packet::Incompressible,
    Packet::Random,
    Packet::Unique,
];

/// Three files of each rank in a tree of its own.
fn files(size: u64, packet: Packet) -> Mdtest {
    Mdtest {
        items: Some(3),
        files_only: true,
        unique_dir: true,
        write_bytes: Some(Bytes(size)),
        packet: Some(packet),
        data_seed: Some(7),
        create: true,
        ..Mdtest::default()
    }
}

/// Options that read the files of [`files`].
fn reads(made: &Mdtest, seed: i32) -> Mdtest {
    Mdtest {
        create: false,
        read: true,
        verify_read: true,
        read_bytes: made.write_bytes,
        data_seed: Some(seed),
        ..made.clone()
    }
}

fn path(dir: &Path, rank: u32, number: u64) -> String {
    let test_dir = dir.join("test-dir.0-0").display().to_string();
    format!("{test_dir}/mdtest_tree.{rank}.0/file.mdtest.{rank}.{number}")
}

/// Files that failed verification at rank 0.
fn damaged(outcome: &Outcome) -> Vec<String> {
    let paths = |details: &Details| -> Vec<String> {
        details
            .damaged
            .iter()
            .map(|failure| failure.path.clone())
            .collect()
    };
    outcome
        .details
        .iter()
        .filter(|(_, name, _)| name == "file-read")
        .flat_map(|(_, _, details)| paths(details))
        .collect()
}

fn mismatches(outcome: &Outcome) -> u64 {
    let row = outcome.row("file-read");
    check_adds_up(row);
    let failures: Vec<(String, u64)> = row
        .failures
        .iter()
        .map(|(kind, count, _)| (kind.name(), count))
        .collect();
    match &failures[..] {
        [] => 0,
        [(name, count)] if name == "MISMATCH" => *count,
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_verify_with_their_seed_and_none_does_with_another() {
    for packet in PACKETS {
        for size in [1, 16, 100, 4096, 10_000] {
            let dir = tempdir();
            let options = files(size, packet);
            run_well(&[0, 0], dir.path(), &options);
            let right = run_well(&[0, 0], dir.path(), &reads(&options, 7));
            assert_eq!(right.row("file-read").bytes, 6 * size);
            assert!(right.details.is_empty());
            if size == 1 {
                // Without a whole word there are only positions.
                continue;
            }
            let wrong = run(&[0, 0], dir.path(), &reads(&options, 8));
            assert_eq!(wrong.row("file-read").items, 0, "{packet:?} {size}");
            assert_eq!(mismatches(&wrong), 6);
            let all: Vec<String> = (0..3).map(|k| path(dir.path(), 0, k)).collect();
            assert_eq!(damaged(&wrong), all);
        }
    }
}

#[test]
fn one_wrong_byte_anywhere_is_found_and_the_file_named() {
    for packet in PACKETS {
        for size in [8, 100, 4096, 10_000] {
            let dir = tempdir();
            let options = files(size, packet);
            run_well(&[0, 0], dir.path(), &options);
            for at in [0, size / 2, size - 1] {
                let victim = path(dir.path(), 0, 1);
                let good = fs::read(&victim).expect("the file is there");
                let mut bad = good.clone();
                bad[at as usize] ^= 0x40;
                fs::write(&victim, bad).expect("written");
                let outcome = run(&[0, 0], dir.path(), &reads(&options, 7));
                assert_eq!(mismatches(&outcome), 1, "{packet:?} {size} at {at}");
                assert_eq!(outcome.row("file-read").items, 5);
                assert_eq!(damaged(&outcome), [victim.as_str()]);
                let detail = &outcome.details[0].2.damaged[0].detail;
                assert!(detail.contains(&format!("byte {at} ")), "{detail}");
                fs::write(&victim, good).expect("written");
            }
            run_well(&[0, 0], dir.path(), &reads(&options, 7));
        }
    }
}

#[test]
fn files_that_were_swapped_do_not_verify() {
    for packet in PACKETS {
        // All files of a rank are equal. With timestamps, only other ranks' files are detected, like in mdtest.
        let swapped = packet != Packet::Timestamp;
        let dir = tempdir();
        let options = files(4096, packet);
        run_well(&[0, 0], dir.path(), &options);
        let (a, b) = (path(dir.path(), 0, 0), path(dir.path(), 0, 2));
        let aside = dir.path().join("aside");
        fs::rename(&a, &aside).expect("renamed");
        fs::rename(&b, &a).expect("renamed");
        fs::rename(&aside, &b).expect("renamed");
        // Replaces another one by a file of the other rank.
        fs::copy(path(dir.path(), 0, 1), path(dir.path(), 1, 1)).expect("copied");
        let outcome = run(&[0, 0], dir.path(), &reads(&options, 7));
        assert_eq!(
            mismatches(&outcome),
            if swapped { 3 } else { 1 },
            "{packet:?}"
        );
        let expected = if swapped { vec![a, b] } else { vec![] };
        assert_eq!(damaged(&outcome), expected);
    }
}

#[test]
fn data_does_not_repeat_within_a_run() {
    // mdtest's own types repeat; for random words, rank and number are added.
    let dir = tempdir();
    run_well(&[0, 0], dir.path(), &files(8192, Packet::Unique));
    let mut blocks: Vec<Vec<u8>> = (0..2)
        .flat_map(|rank| (0..3).map(move |k| (rank, k)))
        .flat_map(|(rank, k)| {
            let bytes = fs::read(path(dir.path(), rank, k)).expect("the file is there");
            bytes.chunks(4096).map(<[u8]>::to_vec).collect::<Vec<_>>()
        })
        .collect();
    blocks.sort();
    blocks.dedup();
    assert_eq!(blocks.len(), 2 * 3 * 2);
}

#[test]
fn whoever_reads_and_whoever_made_the_file_it_verifies() {
    let changes: [fn(&mut Mdtest); 7] = [
        |o| o.unique_dir = true,
        |o| o.stride = Some(1),
        |o| (o.unique_dir, o.stride, o.random) = (true, Some(1), true),
        |o| o.shared = true,
        |o| o.collective = true,
        |o| (o.collective, o.unique_dir, o.stride) = (true, true, Some(1)),
        |o| (o.items, o.items_per_dir, o.iterations) = (Some(6), Some(3), Some(2)),
    ];
    for change in changes {
        // Partial reads also work.
        for read in [5000, 700] {
            let dir = tempdir();
            let mut options = Mdtest {
                items: Some(3),
                write_bytes: Some(Bytes(5000)),
                read_bytes: Some(Bytes(read)),
                verify_read: true,
                verify_write: true,
                ..Mdtest::default()
            };
            change(&mut options);
            let outcome = run_well(&[0, 0, 0], dir.path(), &options);
            let row = outcome.row("file-read");
            assert_eq!(row.bytes, row.items * read);
            assert_eq!(walk(dir.path()).len(), 0);
        }
    }
}

#[test]
fn what_lies_behind_the_end_of_a_file_is_not_read() {
    let dir = tempdir();
    let options = files(10, Packet::Offset);
    run_well(&[0, 0], dir.path(), &options);
    for verify_read in [false, true] {
        let beyond = Mdtest {
            read_bytes: Some(Bytes(100)),
            verify_read,
            ..reads(&options, 7)
        };
        let outcome = run(&[0, 0], dir.path(), &beyond);
        let row = outcome.row("file-read");
        check_adds_up(row);
        let failures: Vec<(String, u64)> = row
            .failures
            .iter()
            .map(|(kind, count, _)| (kind.name(), count))
            .collect();
        assert_eq!(failures, [("SHORT".to_owned(), 6)]);
        assert_eq!((row.items, row.bytes), (0, 0));
    }
}

mod needs_fuse {
    use super::*;
    use crate::testfs::mount;

    #[test]
    fn what_cannot_be_read_back_was_not_written() {
        let target =
            mount(|config| config.faults = vec!["read:EIO@after=1".parse().expect("valid")]);
        let options = Mdtest {
            verify_write: true,
            ..files(100, Packet::Random)
        };
        let outcome = run(&[0], target.path(), &options);
        let row = outcome.row("file-create");
        check_adds_up(row);
        assert_eq!((row.items, row.failures.total()), (1, 2));
        let (kind, _, example) = row.failures.iter().next().expect("one");
        assert_eq!(kind.name(), "EIO");
        assert_eq!(example.failure.path, path(target.path(), 0, 1));
        assert_eq!(example.failure.detail, "reading back");
        target.end();
    }
}
