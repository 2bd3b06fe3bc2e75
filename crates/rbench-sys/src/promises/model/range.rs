//! A range of a file that others also write to, against a model of its bytes.

use std::os::fd::OwnedFd;

use nix::fcntl::OFlag;
use rbench_core::random::Stream;

use super::super::did::Breach;
use super::super::ground::Ground;
use super::crew::whose;
use super::file::{data, difference};
use super::{Compared, Numbered, Subject, Wrong};

/// Bytes of a range: not a multiple of a page, so that neighbours share one.
const LENGTH: usize = 50_001;
/// The longest transfer, bytes.
const PIECE: u64 = 10_000;

/// A range, with its expected content.
pub(super) struct Range {
    name: String,
    fd: OwnedFd,
    from: usize,
    model: Vec<u8>,
}

/// Operation on it; offsets within the range and lengths in bytes.
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

    fn compare(&self, g: &Ground, at: usize, length: usize) -> Compared {
        let offset = (self.from + at) as i64;
        let mut content = g.read(&self.name, &self.fd, length, offset).ok()?;
        // After the end of the file are bytes that were never written.
        content.resize(length, 0);
        let expected = &self.model[at..at + length];
        let index = difference(expected, &content);
        Ok(index.map(|i| Wrong::byte(self.from + at + i, expected[i], content[i])))
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

    fn step(&mut self, g: &Ground, number: usize, operation: &Operation) -> Compared {
        match *operation {
            Operation::Write { at, length } => {
                let bytes = data(number, length);
                let offset = (self.from + at) as i64;
                g.write(&self.name, &self.fd, &bytes, offset).ok()?;
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
