//! Compares whole sequences of calls with files in tests/it/golden. A difference or a missing file
//! fails. `RBENCH_ACCEPT_GOLDEN=1` rewrites the files and also fails, so that a person reads the
//! difference before accepting it.

use std::fmt::Write as _;
use std::path::Path;

use rbench_core::Bytes;
use rbench_plan::spec::Mdtest;

use super::{calls, record, recorders};

const ACCEPT: &str = "RBENCH_ACCEPT_GOLDEN";

/// Compares the calls of `options` on `ranks` ranks of one host with the file `name`.
fn check(name: &str, ranks: usize, options: &Mdtest) {
    let recorders = recorders(ranks);
    record(options, &vec![0; ranks], &recorders);
    let mut got = String::new();
    for (rank, lines) in calls(&recorders).iter().enumerate() {
        writeln!(got, "rank {rank}").expect("a string takes it");
        for line in lines {
            writeln!(got, "  {line}").expect("a string takes it");
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/golden")
        .join(name);
    if std::env::var_os(ACCEPT).is_some() {
        std::fs::write(&path, &got).expect("the golden can be written");
        panic!("{name} was rewritten: read its difference, then test without {ACCEPT}");
    }
    let expect = std::fs::read_to_string(&path).unwrap_or_default();
    let (should, is): (Vec<&str>, Vec<&str>) = (expect.lines().collect(), got.lines().collect());
    for nth in 0..should.len().max(is.len()) {
        assert_eq!(
            should.get(nth),
            is.get(nth),
            "line {} of tests/it/golden/{name} (left) is not what was done (right); if it should \
             be, run the tests once with {ACCEPT}=1 and read the difference",
            nth + 1
        );
    }
}

#[test]
fn the_default_set_of_one_rank() {
    // -n 2 -z 1 -b 2 gives three directories no items: -n 6 does.
    let options = Mdtest {
        items: Some(6),
        depth: Some(1),
        branch: Some(2),
        ..Mdtest::default()
    };
    check("default_set.txt", 1, &options);
}

#[test]
fn private_trees_with_a_stride_and_data() {
    let options = Mdtest {
        unique_dir: true,
        stride: Some(1),
        files_only: true,
        write_bytes: Some(Bytes(10)),
        read_bytes: Some(Bytes(10)),
        fsync: true,
        items_per_dir: Some(2),
        ..Mdtest::default()
    };
    check("unique_stride.txt", 3, &options);
}

#[test]
fn files_that_all_ranks_share() {
    let options = Mdtest {
        shared: true,
        files_only: true,
        items: Some(2),
        ..Mdtest::default()
    };
    check("shared_files.txt", 3, &options);
}

#[test]
fn one_rank_creates_and_removes_for_all() {
    let options = Mdtest {
        collective: true,
        items: Some(2),
        ..Mdtest::default()
    };
    check("collective.txt", 3, &options);
}

#[test]
fn directories_are_renamed_in_a_chain() {
    let options = Mdtest {
        dirs_only: true,
        rename: true,
        create: true,
        remove: true,
        items: Some(4),
        ..Mdtest::default()
    };
    check("rename_chain.txt", 1, &options);
}
