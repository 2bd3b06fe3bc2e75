//! A range of a file that others write to as well, against its bytes.

use std::os::fd::OwnedFd;

use nix::fcntl::OFlag;
use rbench_core::random::Stream;

use super::super::ground::{Breach, Ground};
use super::crew::whose;
use super::file::{data, difference};
use super::{Numbered, Subject, Wrong};

/// Bytes of a range: no multiple of a page, so that neighbours share one.
const LENGTH: usize = 50_001;
/// The longest transfer, bytes.
const PIECE: u64 = 10_000;

/// A range, and what should be in it.
pub(super) struct Range {
    name: String,
    fd: OwnedFd,
    from: usize,
    model: Vec<u8>,
}

/// What is done to it; places within the range and lengths in bytes.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Write { at: usize, length: usize },
    Read { at: usize, length: usize },
    Reopen,
}

impl Range {
    fn open(g: &Ground, name: &str) -> Result<OwnedFd, Breach> {
        g.open_mode(name, OFlag::O_RDWR | OFlag::O_CREAT, 0o644)
            .ok()
    }

    fn compare(&self, g: &Ground, at: usize, length: usize) -> Result<Option<Wrong>, Breach> {
        let place = (self.from + at) as i64;
        let mut found = g.read(&self.name, &self.fd, length, place).ok()?;
        // Behind the end of the file is what nobody has written.
        found.resize(length, 0);
        let expected = &self.model[at..at + length];
        Ok(difference(expected, &found).map(|byte| {
            let (expected, found) = (expected[byte], found[byte]);
            let byte = self.from + at + byte;
            Wrong {
                at: Some(byte as u64),
                expected: format!("byte {byte} is {expected:#04x}"),
                seen: format!("byte {byte} is {found:#04x}"),
            }
        }))
    }
}

impl Subject for Range {
    type Operation = Operation;

    fn new(g: &Ground, number: usize) -> Result<Range, Breach> {
        let (worker, of_worker) = whose(number);
        let name = match of_worker {
            0 => "shared".to_owned(),
            n => format!("shared-{worker}-{n}"),
        };
        Ok(Range {
            fd: Range::open(g, &name)?,
            name,
            from: worker * LENGTH,
            model: vec![0; LENGTH],
        })
    }

    fn draw(draws: &mut Stream) -> Operation {
        let length = 1 + draws.below(PIECE) as usize;
        let at = draws.below((LENGTH - length) as u64 + 1) as usize;
        match draws.below(20) {
            0..10 => Operation::Write { at, length },
            10..19 => Operation::Read { at, length },
            _ => Operation::Reopen,
        }
    }

    fn step(
        &mut self,
        g: &Ground,
        number: usize,
        operation: &Operation,
    ) -> Result<Option<Wrong>, Breach> {
        match *operation {
            Operation::Write { at, length } => {
                let bytes = data(number, length);
                let place = (self.from + at) as i64;
                g.write(&self.name, &self.fd, &bytes, place).ok()?;
                self.model[at..at + length].copy_from_slice(&bytes);
                Ok(None)
            }
            Operation::Read { at, length } => self.compare(g, at, length),
            Operation::Reopen => {
                self.fd = Range::open(g, &self.name)?;
                self.compare(g, 0, LENGTH)
            }
        }
    }

    fn concerned(history: &[Numbered<Operation>], wrong: &Wrong) -> Vec<Numbered<Operation>> {
        let byte = wrong.at.unwrap_or(0) as usize % LENGTH;
        let concerned = |(_, operation): &&Numbered<Operation>| match *operation {
            Operation::Write { at, length } | Operation::Read { at, length } => {
                (at..at + length).contains(&byte)
            }
            Operation::Reopen => true,
        };
        history.iter().filter(concerned).cloned().collect()
    }
}
