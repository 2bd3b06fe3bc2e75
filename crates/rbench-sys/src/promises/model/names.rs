//! Names of a worker in a directory with names of others.

use std::collections::BTreeMap;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use rbench_core::random::Stream;

use super::super::did::Breach;
use super::super::ground::Ground;
use super::crew::whose;
use super::{Compared, Subject, Wrong, compared};

/// Number of a worker's names.
const NAMES: u64 = 12;
/// Number of operations after which the directory is listed.
const LISTED_EVERY: usize = 16;

/// A worker's names, with their expected files.
pub(super) struct Names {
    before: String,
    /// The inode of each name.
    model: BTreeMap<u64, u64>,
    steps: usize,
}

/// Operation on names, by their numbers.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Create(u64),
    Unlink(u64),
    Rename(u64, u64),
    Link(u64, u64),
    Look(u64),
}

impl Names {
    fn name(&self, number: u64) -> String {
        format!("{}{number}", self.before)
    }

    /// The result that the model expects.
    fn expect(&self, operation: &Operation) -> Result<(), Errno> {
        let has = |number: &u64| match self.model.contains_key(number) {
            true => Ok(()),
            false => Err(Errno::ENOENT),
        };
        match operation {
            Operation::Create(name) => has(name).map_or(Ok(()), |()| Err(Errno::EEXIST)),
            Operation::Unlink(name) | Operation::Look(name) | Operation::Rename(name, _) => {
                has(name)
            }
            Operation::Link(from, to) => {
                has(from)?;
                has(to).map_or(Ok(()), |()| Err(Errno::EEXIST))
            }
        }
    }

    fn carry_out(&self, g: &Ground, operation: &Operation) -> Result<(), Errno> {
        let name = |number: &u64| self.name(*number);
        match operation {
            Operation::Create(one) => {
                let how = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
                g.open_mode(name(one), how, 0o644).result.map(drop)
            }
            Operation::Unlink(one) => g.unlink(name(one)).result,
            Operation::Look(one) => g.lstat(name(one)).result.map(drop),
            Operation::Rename(from, to) => g.rename(name(from), name(to)).result,
            Operation::Link(from, to) => g.link(name(from), name(to)).result,
        }
    }

    /// Updates the model after an operation.
    fn learn(&mut self, g: &Ground, operation: &Operation) -> Result<(), Breach> {
        match operation {
            Operation::Create(one) => {
                let inode = g.lstat(self.name(*one)).ok()?.st_ino;
                self.model.insert(*one, inode);
            }
            Operation::Unlink(one) => {
                self.model.remove(one);
            }
            Operation::Rename(from, to) => {
                let (old, new) = (self.model.get(from).copied(), self.model.get(to).copied());
                // If both are names of one file, nothing changes.
                if let Some(inode) = old.filter(|_| old != new) {
                    self.model.remove(from);
                    self.model.insert(*to, inode);
                }
            }
            Operation::Link(from, to) => {
                if let Some(inode) = self.model.get(from).copied() {
                    self.model.insert(*to, inode);
                }
            }
            Operation::Look(_) => {}
        }
        Ok(())
    }

    /// Compares the names of the directory, and their files.
    fn whole(&self, g: &Ground) -> Compared {
        let mut numbers: Vec<u64> = Vec::new();
        for entry in g.list(".").ok()? {
            let name = entry.name.to_string_lossy().into_owned();
            let number = name.strip_prefix(&self.before);
            numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        let expected: Vec<u64> = self.model.keys().copied().collect();
        if expected != numbers {
            return Ok(Some(Wrong::new(
                format!("names {expected:?}"),
                format!("names {numbers:?}"),
            )));
        }
        for (number, inode) in &self.model {
            let seen = g.lstat(self.name(*number)).ok()?.st_ino;
            if seen != *inode {
                return Ok(Some(Wrong::new(
                    format!("name {number} is inode {inode}"),
                    format!("name {number} is inode {seen}"),
                )));
            }
        }
        Ok(None)
    }
}

impl Subject for Names {
    type Operation = Operation;
    const LATEST: usize = 2 * LISTED_EVERY;

    fn new(_: &Ground, number: usize) -> Result<Names, Breach> {
        let (worker, of_worker) = whose(number);
        Ok(Names {
            before: format!("of-{worker}-{of_worker}-"),
            model: BTreeMap::new(),
            steps: 0,
        })
    }

    fn draw(draws: &mut Stream) -> Operation {
        let (one, two) = (draws.below(NAMES), draws.below(NAMES));
        match draws.below(12) {
            0..4 => Operation::Create(one),
            4..6 => Operation::Unlink(one),
            6..9 => Operation::Rename(one, two),
            9 => Operation::Link(one, two),
            _ => Operation::Look(one),
        }
    }

    fn step(&mut self, g: &Ground, _: usize, operation: &Operation) -> Compared {
        let expected = self.expect(operation);
        let seen = self.carry_out(g, operation);
        let none = [
            Errno::EPERM,
            Errno::EOPNOTSUPP,
            Errno::ENOSYS,
            Errno::EMLINK,
        ];
        if matches!(operation, Operation::Link(..)) && seen.is_err_and(|e| none.contains(&e)) {
            return Ok(None);
        }
        let both = [expected, seen];
        let wrong = compared(g, &self.before, operation, both, expected == seen)?;
        if wrong.is_some() {
            return Ok(wrong);
        }
        if seen.is_ok() {
            self.learn(g, operation)?;
        }
        self.steps += 1;
        // A short sequence is compared after every step.
        match self.steps < LISTED_EVERY || self.steps.is_multiple_of(LISTED_EVERY) {
            true => self.whole(g),
            false => Ok(None),
        }
    }
}
