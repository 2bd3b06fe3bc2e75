//! The numbers of things that well-known command lines make.

use rbench_core::{Bytes, Call, OpenFlags};
use rbench_plan::spec::Mdtest;
use rbench_sys::TraceFs;

use super::{BY_BLOCK, record, recorders};

/// The items that one iteration of one rank, or of all, created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Made {
    test_dirs: u64,
    tree_dirs: u64,
    dirs: u64,
    files: u64,
    bytes_written: u64,
    fsyncs: u64,
    reads: u64,
}

/// Counts calls below the directory `/t/out`.
fn made(recorders: &[TraceFs]) -> Made {
    let mut made = Made::default();
    for event in recorders.iter().flat_map(TraceFs::events) {
        assert_eq!(event.error, None, "{event}");
        let name = event.path.rsplit('/').next().expect("a name");
        match event.call {
            Call::Mkdir(_) if name.starts_with("test-dir.") => made.test_dirs += 1,
            Call::Mkdir(_) if name.starts_with("mdtest_tree.") => made.tree_dirs += 1,
            Call::Mkdir(_) if name.starts_with("dir.mdtest.") => made.dirs += 1,
            Call::Mkdir(_) => assert_eq!(event.path, "/t/out"),
            Call::Open(OpenFlags::READ_WRITE) => made.files += 1,
            Call::Write => made.bytes_written += event.bytes,
            Call::Fsync => made.fsyncs += 1,
            Call::Read => made.reads += 1,
            _ => {}
        }
    }
    made
}

#[test]
fn the_published_metadata_test_makes_4800_directories_and_as_many_files() {
    let options = Mdtest {
        branch: Some(3),
        depth: Some(1),
        items_per_dir: Some(100),
        unique_dir: true,
        ..Mdtest::default()
    };
    let all = recorders(12);
    let outcome = record(&options, &BY_BLOCK, &all);
    let each = Made {
        tree_dirs: 4,
        dirs: 400,
        files: 400,
        ..Made::default()
    };
    for rank in 1..12 {
        assert_eq!(made(&all[rank..=rank]), each);
    }
    assert_eq!(
        made(&all),
        Made {
            test_dirs: 1,
            tree_dirs: 48,
            dirs: 4800,
            files: 4800,
            ..Made::default()
        }
    );
    assert_eq!(outcome.row("tree-create").items, 48);
    assert_eq!(outcome.row("dir-create").items, 4800);
    assert_eq!(outcome.row("file-create").items, 4800);
}

#[test]
fn the_published_small_file_test_writes_1228800000_bytes_and_reads_none() {
    let options = Mdtest {
        files_only: true,
        write_bytes: Some(Bytes(102_400)),
        items_per_dir: Some(1000),
        depth: Some(0),
        unique_dir: true,
        ..Mdtest::default()
    };
    let all = recorders(12);
    let outcome = record(&options, &BY_BLOCK, &all);
    assert_eq!(
        made(&all),
        Made {
            test_dirs: 1,
            tree_dirs: 12,
            files: 12_000,
            bytes_written: 1_228_800_000,
            ..Made::default()
        }
    );
    assert_eq!(outcome.row("file-create").bytes, 1_228_800_000);
    let read = outcome.row("file-read");
    assert_eq!((read.items, read.bytes), (12_000, 0));
}

#[test]
fn items_that_do_not_divide_over_the_tree_are_left_out_in_every_iteration() {
    let options = Mdtest {
        items: Some(5000),
        unique_dir: true,
        depth: Some(2),
        iterations: Some(3),
        ..Mdtest::default()
    };
    let all = recorders(2);
    let outcome = record(&options, &[0, 0], &all);
    assert_eq!(
        made(&all[1..]),
        Made {
            tree_dirs: 3 * 3,
            dirs: 3 * 4998,
            files: 3 * 4998,
            ..Made::default()
        }
    );
    assert_eq!(made(&all).test_dirs, 3);
    for row in outcome.rows.iter().filter(|row| row.name == "file-create") {
        assert_eq!(row.items, 2 * 4998, "iteration {}", row.iteration);
    }
}

#[test]
fn each_file_of_a_thousand_is_written_synced_and_read_once() {
    let options = Mdtest {
        items: Some(1000),
        write_bytes: Some(Bytes(1024)),
        read_bytes: Some(Bytes(1024)),
        fsync: true,
        unique_dir: true,
        iterations: Some(3),
        stride: Some(1),
        files_only: true,
        random: true,
        ..Mdtest::default()
    };
    let all = recorders(3);
    record(&options, &[0; 3], &all);
    for rank in 1..3 {
        assert_eq!(
            made(&all[rank..=rank]),
            Made {
                tree_dirs: 3,
                files: 3000,
                bytes_written: 3 * 1_024_000,
                fsyncs: 3000,
                reads: 3000,
                ..Made::default()
            }
        );
    }
}

#[test]
fn with_leaf_only_nine_items_are_eight_numbered_from_six() {
    let options = Mdtest {
        items: Some(9),
        leaf_only: true,
        branch: Some(2),
        depth: Some(2),
        files_only: true,
        ..Mdtest::default()
    };
    let all = recorders(1);
    record(&options, &[0], &all);
    let places: Vec<(String, String)> = all[0]
        .events()
        .iter()
        .filter(|event| event.call == Call::Unlink)
        .map(|event| {
            let mut names = event.path.rsplit('/').map(str::to_owned);
            let file = names.next().expect("a file");
            (names.next().expect("its directory"), file)
        })
        .collect();
    let expect: Vec<(String, String)> = (6..14)
        .map(|k| {
            (
                format!("mdtest_tree.{}", k / 2),
                format!("file.mdtest.0.{k}"),
            )
        })
        .collect();
    assert_eq!(places, expect);
}
