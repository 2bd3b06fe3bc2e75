//! Tests the fuzz targets' properties on their seeds, on random changes of these with words of
//! their dictionaries, and on random bytes.

use proptest::prelude::*;
use proptest::sample::Index;
use rbench_fuzz::{Property, TARGETS};

/// Checks an input, and prints it if a property does not hold.
fn check(property: Property, name: &str, bytes: &[u8]) {
    std::panic::catch_unwind(|| property(bytes)).unwrap_or_else(|_| {
        panic!("{name} fails: {:?}", String::from_utf8_lossy(bytes));
    });
}

/// Checks every seed of a target, then `cases` inputs: seeds with random changes or, one in ten,
/// random bytes.
fn hold(target: &str, cases: u32) {
    let target = TARGETS
        .iter()
        .find(|t| t.name == target)
        .expect("it is a target");
    let (seeds, words) = (target.seeds(), target.words());
    assert!(seeds.len() >= 5, "{} seeds", seeds.len());
    for (name, bytes) in &seeds {
        check(target.property, name, bytes);
    }
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    };
    let base = prop_oneof![
        9 => any::<Index>().prop_map(Base::Seed),
        1 => proptest::collection::vec(any::<u8>(), 0..1000).prop_map(Base::Bytes),
    ];
    let changes = proptest::collection::vec(change(), 1..6);
    proptest!(config, |(base in base, other: Index, changes in changes)| {
        let mut bytes = match base {
            Base::Seed(index) => index.get(&seeds).1.clone(),
            Base::Bytes(bytes) => bytes,
        };
        let other = &other.get(&seeds).1;
        for change in &changes {
            change.apply(&mut bytes, other, &words);
        }
        check(target.property, "a changed input", &bytes);
    });
}

/// The input to change.
#[derive(Debug, Clone)]
enum Base {
    Seed(Index),
    Bytes(Vec<u8>),
}

/// A change of an input.
#[derive(Debug, Clone)]
enum Change {
    Put(Index, u8),
    Insert(Index, u8),
    Remove(Index, Index),
    /// A part of another input, with this maximum length.
    Splice(Index, Index, usize),
    /// All of another input, as a separate line.
    Join,
    /// A word of the dictionary.
    Word(Index, Index),
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
        Just(Change::Join),
        any::<(Index, Index)>().prop_map(|(at, word)| Change::Word(at, word)),
        (any::<Index>(), number).prop_map(|(at, number)| Change::Number(at, number)),
    ]
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>, other: &[u8], words: &[Vec<u8>]) {
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
            Change::Join => {
                bytes.push(b'\n');
                bytes.extend_from_slice(other);
            }
            Change::Word(at, word) => {
                if !words.is_empty() {
                    let at = at.index(end);
                    bytes.splice(at..at, word.get(words).iter().copied());
                }
            }
            // Replaces the digits at this position, if any.
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
    hold("fio_line", 2000);
}

#[test]
fn every_job_file_is_refused_well_or_a_plan() {
    hold("job_file", 2000);
}

#[test]
fn every_mdtest_command_line_is_refused_well_or_a_plan() {
    hold("mdtest_line", 1500);
}

#[test]
fn every_size_and_time_is_refused_well_or_exact() {
    hold("quantities", 4000);
}

#[test]
fn every_result_file_is_refused_well_or_shown() {
    hold("result_file", 1000);
}

#[test]
fn every_changed_bit_under_a_seal_is_found() {
    hold("seals", 3000);
}
