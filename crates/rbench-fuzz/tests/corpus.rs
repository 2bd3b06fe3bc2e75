//! The fuzz targets' properties on the kept corpora, on the seeds, and on
//! random changes of both.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;
use rbench_fuzz::{Property, TARGETS};

/// Inputs of a target: what it was started with, and what it found.
#[expect(
    clippy::disallowed_methods,
    reason = "the inputs are files of the project"
)]
fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for kind in ["seeds", "corpus"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(kind)
            .join(target);
        let entries = fs::read_dir(&folder).expect("every target has a folder");
        for entry in entries {
            let path = entry.expect("an entry").path();
            let bytes = fs::read(&path).expect("a file");
            all.push((path.display().to_string(), bytes));
        }
    }
    all.sort();
    assert!(all.len() >= 10, "{target} has {} inputs", all.len());
    all
}

/// Checks an input, and says which it was when a property does not hold.
fn check(property: Property, name: &str, bytes: &[u8]) {
    std::panic::catch_unwind(|| property(bytes)).unwrap_or_else(|_| {
        panic!("{name} fails: {:?}", String::from_utf8_lossy(bytes));
    });
}

/// Looks at every input of a target, then at `cases` random changes of them.
fn hold(target: &str, cases: u32) {
    let (_, property) = TARGETS
        .iter()
        .find(|(name, _)| *name == target)
        .expect("it is a target");
    let inputs = inputs(target);
    for (name, bytes) in &inputs {
        check(*property, name, bytes);
    }
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    };
    let changes = proptest::collection::vec(change(), 1..6);
    proptest!(config, |(base: Index, other: Index, changes in changes)| {
        let mut bytes = base.get(&inputs).1.clone();
        let other = &other.get(&inputs).1;
        for change in &changes {
            change.apply(&mut bytes, other);
        }
        check(*property, "a changed input", &bytes);
    });
}

/// A change of an input.
#[derive(Debug, Clone)]
enum Change {
    Put(Index, u8),
    Insert(Index, u8),
    Remove(Index, Index),
    /// From another input, so many bytes at most.
    Splice(Index, Index, usize),
    Number(Index, u64),
}

fn change() -> impl Strategy<Value = Change> {
    let number = prop_oneof![
        any::<u64>(),
        0..100_u64,
        (0..64_u32).prop_map(|bits| u64::MAX >> bits),
    ];
    prop_oneof![
        any::<(Index, u8)>().prop_map(|(at, byte)| Change::Put(at, byte)),
        any::<(Index, u8)>().prop_map(|(at, byte)| Change::Insert(at, byte)),
        any::<(Index, Index)>().prop_map(|(from, to)| Change::Remove(from, to)),
        (any::<(Index, Index)>(), 1..60_usize)
            .prop_map(|((at, from), n)| Change::Splice(at, from, n)),
        (any::<Index>(), number).prop_map(|(at, number)| Change::Number(at, number)),
    ]
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>, other: &[u8]) {
        let end = bytes.len() + 1;
        match self {
            Change::Put(at, byte) => {
                if let Some(place) = bytes.get_mut(at.index(end)) {
                    *place = *byte;
                }
            }
            Change::Insert(at, byte) => bytes.insert(at.index(end), *byte),
            Change::Remove(from, to) => {
                let (from, to) = (from.index(end), to.index(end));
                bytes.drain(from.min(to)..from.max(to).min(from.min(to) + 40));
            }
            Change::Splice(at, from, length) => {
                let from = from.index(other.len() + 1);
                let piece = &other[from..other.len().min(from + length)];
                let at = at.index(end);
                bytes.splice(at..at, piece.iter().copied());
            }
            // In place of the digits that stand there, if any do.
            Change::Number(at, number) => {
                let at = at.index(end);
                let digit = |b: &u8| b.is_ascii_digit();
                let Some(from) = bytes[at..].iter().position(digit).map(|n| at + n) else {
                    return;
                };
                let length = bytes[from..].iter().take_while(|b| digit(b)).count();
                bytes.splice(from..from + length, number.to_string().into_bytes());
            }
        }
    }
}

#[test]
fn every_fio_command_line_is_refused_well_or_a_plan() {
    hold("fio_line", 1000);
}

#[test]
fn every_job_file_is_refused_well_or_a_plan() {
    hold("job_file", 1000);
}

#[test]
fn every_mdtest_command_line_is_refused_well_or_a_plan() {
    hold("mdtest_line", 500);
}

#[test]
fn every_size_and_time_is_refused_well_or_exact() {
    hold("quantities", 2000);
}

#[test]
fn every_result_file_is_refused_well_or_shown() {
    hold("result_file", 200);
}

#[test]
fn every_changed_bit_under_a_seal_is_found() {
    hold("seals", 1000);
}
