//! Random operations against a model: of one file, byte for byte, and of a tree of names. What
//! goes wrong is shrunk to a few operations that show it.

use std::time::Instant;

use rbench_core::random::Stream;

use super::Group;
use super::ground::{Breach, Ground, promise};

mod crew;
mod file;
mod names;
mod range;
mod tree;

pub(super) const GROUP: Group = Group {
    name: "model",
    about: "thousands of random operations against a model, shrunk to a short reproduction",
    promises: &[
        promise(
            "model.file",
            "random writes, reads, truncates, holes, copies and mappings of a file match a model",
            check::<file::File>,
        ),
        promise(
            "model.tree",
            "random operations on the names of a tree match a model",
            check::<tree::Tree>,
        ),
        promise(
            "model.files",
            "random operations match a model while each of four workers uses its own file",
            crew::check::<file::File>,
        ),
        promise(
            "model.trees",
            "random operations match a model while each of four workers uses its own tree",
            crew::check::<tree::Tree>,
        ),
        promise(
            "model.shared-file",
            "four concurrent workers read back what they write to their own ranges of one file",
            crew::check::<range::Range>,
        ),
        promise(
            "model.shared-names",
            "four concurrent workers create, rename and remove their own names in one directory as in a model",
            crew::check::<names::Names>,
        ),
    ],
};

/// Operations of a whole check.
const OPERATIONS: usize = 10_000;

/// Something that operations are done to, and its model.
trait Subject: Sized {
    type Operation: Clone + std::fmt::Debug;

    /// A new one under a name that is not taken.
    fn new(g: &Ground, number: usize) -> Result<Self, Breach>;

    /// The next operation.
    fn draw(draws: &mut Stream) -> Self::Operation;

    /// Does it to both, and says what is different then.
    fn step(
        &mut self,
        g: &Ground,
        number: usize,
        operation: &Self::Operation,
    ) -> Result<Option<Wrong>, Breach>;

    /// Those of `history` that may have to do with what is wrong, the last one among them.
    fn concerned(
        history: &[Numbered<Self::Operation>],
        wrong: &Wrong,
    ) -> Vec<Numbered<Self::Operation>>;
}

/// An operation with its number, from which its data follows.
type Numbered<O> = (usize, O);

/// What is different.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wrong {
    /// The byte, where there is one.
    at: Option<u64>,
    expected: String,
    seen: String,
}

fn check<S: Subject>(g: &Ground) -> Result<(), Breach> {
    let done = run::<S>(g, 0, OPERATIONS)?;
    g.note(format!("{done} of {OPERATIONS} operations"));
    Ok(())
}

/// Does so many operations, or fewer where the time is short; how many. The first subject has
/// the number `base`, those that are tried to shrink what goes wrong the numbers behind it.
fn run<S: Subject>(g: &Ground, base: usize, operations: usize) -> Result<usize, Breach> {
    let begun = Instant::now();
    let mut draws = Stream::new(&[g.seed, OPERATIONS as u64]);
    let mut subject = S::new(g, base)?;
    let mut history: Vec<Numbered<S::Operation>> = Vec::new();
    // Fewer where they take longer. As much time again is for what goes wrong.
    let longest = g.longest / 2;
    while history.len() < operations && begun.elapsed() < longest {
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

/// A reproduction: operations, and what is wrong behind them.
struct Reproduction<O> {
    operations: Vec<Numbered<O>>,
    wrong: Wrong,
    /// Whether it came again when they alone were done; `None`: no time was left to try.
    again: Option<bool>,
    /// After how many operations it came first.
    first: usize,
}

/// What is wrong behind these operations on something new; nothing where the time is over.
fn replay<S: Subject>(
    g: &Ground,
    number: usize,
    operations: &[Numbered<S::Operation>],
) -> Result<Option<Wrong>, Breach> {
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

/// Fewer operations that go wrong too: first those that are concerned, then parts of them left
/// out as long as it still goes wrong.
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
        // A try that breaks off shows nothing.
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
    let Reproduction {
        operations,
        wrong,
        again,
        first,
    } = found;
    const SHOWN: usize = 20;
    let from = operations.len().saturating_sub(SHOWN);
    let words: Vec<String> = operations[from..]
        .iter()
        .map(|(_, operation)| format!("{operation:?}"))
        .collect();
    let how = match again {
        Some(true) => "reproduced",
        Some(false) => "not reproduced",
        None => "perhaps reproducible",
    };
    let seen = format!(
        "{} after {first} operations; {how} with these {}: {}",
        wrong.seen,
        operations.len(),
        words.join("; ")
    );
    g.breach("random operations", wrong.expected.clone(), seen)
}
