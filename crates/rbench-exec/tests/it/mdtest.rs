//! Compares `rbench mdtest` with an independent model of mdtest, and runs it on directories.

mod counts;
mod data;
mod disk;
mod golden;
mod matrix;
mod oracle;
mod stops;
mod surroundings;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rbench_plan::spec::Mdtest;
use rbench_sys::TraceFs;

use crate::group::{Outcome, Run, check_adds_up};

/// Twelve ranks on three hosts, placed host by host.
const BY_BLOCK: [u32; 12] = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2];

/// Twelve ranks on three hosts, placed round robin.
const IN_TURN: [u32; 12] = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2];

/// One recorder for each rank, on a common tree that contains the directory `/t`.
fn recorders(ranks: usize) -> Vec<TraceFs> {
    let first = TraceFs::with_directories(&["/t"]);
    (0..ranks).map(|_| first.fork()).collect()
}

/// The calls of each rank.
fn calls(recorders: &[TraceFs]) -> Vec<Vec<String>> {
    recorders.iter().map(TraceFs::lines).collect()
}

/// Runs `options` on `recorders`, in `/t/out` unless they name a directory.
fn record(options: &Mdtest, hosts: &[u32], recorders: &[TraceFs]) -> Outcome {
    let mut run = Run::mdtest(hosts, Path::new("/t/out"), options.clone());
    run.recorders = recorders.to_vec();
    run.go().expect("runs")
}

/// Runs `options` on the directory `dir`, unless they name one.
fn run(hosts: &[u32], dir: &Path, options: &Mdtest) -> Outcome {
    Run::mdtest(hosts, dir, options.clone()).go().expect("runs")
}

/// Runs `options`, and checks that nothing failed and nothing was left behind.
fn run_well(hosts: &[u32], dir: &Path, options: &Mdtest) -> Outcome {
    let outcome = run(hosts, dir, options);
    check_well(&outcome);
    outcome
}

fn check_well(outcome: &Outcome) {
    for row in &outcome.rows {
        check_adds_up(row);
        assert!(row.failures.is_empty(), "{}: {:?}", row.name, row.failures);
    }
    assert!(outcome.complete && outcome.trouble.is_none() && outcome.left.is_empty());
}

/// The entries below `dir`: relative paths, with the length of files.
fn walk(dir: &Path) -> BTreeMap<String, Option<u64>> {
    let mut entries = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a name");
        let metadata = entry.metadata().expect("its attributes");
        entries.insert(name.clone(), metadata.is_file().then_some(metadata.len()));
        if metadata.is_dir() {
            let below = walk(&entry.path());
            entries.extend(
                below
                    .into_iter()
                    .map(|(path, length)| (format!("{name}/{path}"), length)),
            );
        }
    }
    entries
}

fn tempdir() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary directory")
}
