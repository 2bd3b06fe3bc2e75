//! Random operations against a model: on one file, byte for byte, and on a tree of names. A
//! failing sequence is minimised to a few operations that show the failure.

use std::fmt::Debug;
use std::time::Instant;

use nix::errno::Errno;
use rbench_core::random::Stream;

use super::did::{Breach, undecides};
use super::ground::{Ground, Promise, promise};

mod crew;
mod file;
mod names;
mod range;
mod tree;

pub(super) const PROMISES: &[Promise] = &[
    promise("model.file")
        .says("random writes, reads, truncates, holes, copies and mappings of a file match a model")
        .test(check::<file::File>),
    promise("model.tree")
        .says("random operations on the names of a tree match a model")
        .test(check::<tree::Tree>),
    promise("model.files")
        .says("random operations match a model while each of four workers uses its own file")
        .test(crew::check::<file::File>),
    promise("model.trees")
        .says("random operations match a model while each of four workers uses its own tree")
        .test(crew::check::<tree::Tree>),
    promise("model.shared-file")
        .says("four concurrent workers read back what they write to their own ranges of one file")
        .test(crew::check::<range::Range>),
    promise("model.shared-names")
        .says("four concurrent workers create, rename and remove their own names in one directory as in a model")
        .test(crew::check::<names::Names>),
];

/// Number of operations of a whole check.
const OPERATIONS: usize = 10_000;

/// An object of operations, with its model.
trait Subject: Sized {
    type Operation: Clone + Debug;

    /// Creates one under a new name.
    fn new(g: &Ground, number: usize) -> Result<Self, Breach>;

    /// Draws the next operation.
    fn draw(draws: &mut Stream) -> Self::Operation;

    /// Performs an operation on both, and returns the difference.
    fn step(&mut self, g: &Ground, number: usize, operation: &Self::Operation) -> Compared;

    /// Number of operations up to a difference that may have caused it.
    const LATEST: usize = usize::MAX;

    /// The operations of `history` that may have caused the difference, including the last
    /// one.
    fn concerned(
        history: &[Numbered<Self::Operation>],
        _wrong: &Wrong,
    ) -> Vec<Numbered<Self::Operation>> {
        history[history.len().saturating_sub(Self::LATEST)..].to_vec()
    }
}

/// The difference between an object and its model, if there is one.
type Compared = Result<Option<Wrong>, Breach>;

/// An operation with its number, which determines its data.
type Numbered<O> = (usize, O);

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wrong {
    /// The byte, if it concerns one.
    at: Option<u64>,
    expected: String,
    seen: String,
}

impl Wrong {
    /// A difference that concerns no byte.
    fn new(expected: String, seen: String) -> Wrong {
        Wrong {
            at: None,
            expected,
            seen,
        }
    }

    /// A byte that is not as expected.
    fn byte(at: usize, expected: u8, seen: u8) -> Wrong {
        let is = |value: u8| format!("byte {at} is {value:#04x}");
        Wrong {
            at: Some(at as u64),
            ..Wrong::new(is(expected), is(seen))
        }
    }
}

/// The difference between the expected result of an operation and the file system's, unless they
/// are `alike`.
fn compared(
    g: &Ground,
    name: &str,
    operation: &impl Debug,
    [expected, seen]: [Result<(), Errno>; 2],
    alike: bool,
) -> Compared {
    if expected.is_ok() && seen.is_err_and(undecides) {
        g.did("random operations", name, seen).ok()?;
    }
    let is = |result| format!("{operation:?}: {result:?}");
    Ok((!alike).then(|| Wrong::new(is(expected), is(seen))))
}

fn check<S: Subject>(g: &Ground) -> Result<(), Breach> {
    let done = run::<S>(g, 0, OPERATIONS)?;
    g.note(format!("{done} of {OPERATIONS} operations"));
    Ok(())
}

/// Performs this number of operations, or fewer if the time is short. Returns their number.
/// The first object has the number `base`; those for minimising a failure have the numbers
/// after it.
fn run<S: Subject>(g: &Ground, base: usize, operations: usize) -> Result<usize, Breach> {
    let start = Instant::now();
    let mut draws = Stream::new(&[g.shared.seed, OPERATIONS as u64]);
    let mut subject = S::new(g, base)?;
    let mut history: Vec<Numbered<S::Operation>> = Vec::new();
    // Half of the time is left for minimising a failure.
    let longest = g.shared.longest / 2;
    while history.len() < operations && start.elapsed() < longest {
        if g.stopped() {
            return Err(g.undecided("", "interrupted"));
        }
        let number = history.len();
        let operation = S::draw(&mut draws);
        history.push((number, operation.clone()));
        if let Some(wrong) = subject.step(g, number, &operation)? {
            drop(subject);
            return Err(told(g, &shrunk::<S>(g, base, history, wrong)));
        }
    }
    Ok(history.len())
}

/// A reproduction: operations with the difference after them.
struct Reproduction<O> {
    operations: Vec<Numbered<O>>,
    wrong: Wrong,
    /// True if these operations alone reproduced it; `None` if no time was left to try.
    again: Option<bool>,
    /// Number of operations after which it first occurred.
    first: usize,
}

/// The difference after these operations on a new object; `None` if the time is over.
fn replay<S: Subject>(
    g: &Ground,
    number: usize,
    operations: &[Numbered<S::Operation>],
) -> Compared {
    let mut subject = S::new(g, number)?;
    for (number, operation) in operations {
        if g.is_late() {
            return Ok(None);
        }
        if let Some(wrong) = subject.step(g, *number, operation)? {
            return Ok(Some(wrong));
        }
    }
    Ok(None)
}

/// Minimises a failing sequence: first to the concerned operations, then by leaving out parts
/// of them while it still fails.
fn shrunk<S: Subject>(
    g: &Ground,
    base: usize,
    history: Vec<Numbered<S::Operation>>,
    wrong: Wrong,
) -> Reproduction<S::Operation> {
    let first = history.len();
    let mut tries = base;
    let mut fails = |operations: &[Numbered<S::Operation>]| {
        tries += 1;
        // An aborted attempt shows nothing.
        replay::<S>(g, tries, operations).ok().flatten()
    };
    let concerned = S::concerned(&history, &wrong);
    let again = fails(&concerned).map(|wrong| (concerned.clone(), wrong));
    let again = again.or_else(|| fails(&history).map(|wrong| (history, wrong)));
    let Some((mut operations, mut wrong)) = again else {
        return Reproduction {
            operations: concerned,
            wrong,
            again: (!g.is_late()).then_some(false),
            first,
        };
    };
    let mut part = operations.len().div_ceil(2);
    while part > 0 && !g.is_late() {
        let mut at = 0;
        let mut fewer = false;
        while at < operations.len() && !g.is_late() {
            let end = operations.len().min(at + part);
            let rest = [&operations[..at], &operations[end..]].concat();
            match fails(&rest) {
                Some(found) => (operations, wrong, fewer) = (rest, found, true),
                None => at = end,
            }
        }
        if !fewer || part > operations.len() {
            part /= 2;
        }
    }
    Reproduction {
        operations,
        wrong,
        again: Some(true),
        first,
    }
}

fn told<O: std::fmt::Debug>(g: &Ground, found: &Reproduction<O>) -> Breach {
    const SHOWN: usize = 20;
    let from = found.operations.len().saturating_sub(SHOWN);
    let words: Vec<String> = found.operations[from..]
        .iter()
        .map(|(_, operation)| format!("{operation:?}"))
        .collect();
    let how = match found.again {
        Some(true) => "reproduced",
        Some(false) => "not reproduced",
        None => "perhaps reproducible",
    };
    let seen = format!(
        "{} after {} operations; {how} with these {}: {}",
        found.wrong.seen,
        found.first,
        found.operations.len(),
        words.join("; ")
    );
    g.breach("random operations", found.wrong.expected.clone(), seen)
}
