//! fio's logs of I/O as traces with one process each. [`crate::iolog`] parses their lines.

use rbench_core::{Call, Nanos, linux};

use super::{Op, Out, Reader, Reading};
use crate::iolog::{Action, Follower, Replay, STAMP, Version};

static WHOLE: Replay = Replay::WHOLE;

/// Reader of a log.
pub struct Iolog {
    reading: Reading,
    follower: Option<Follower<'static>>,
    version: Version,
    /// Earliest start of the next operation.
    at: Nanos,
    /// The number of the open file for each file of the log.
    open: Vec<Option<u64>>,
    next: u64,
}

impl Iolog {
    /// Creates a reader before its first line.
    pub fn new(reading: &Reading) -> Iolog {
        Iolog {
            reading: reading.clone(),
            follower: None,
            version: Version::Three,
            at: Nanos(0),
            open: Vec::new(),
            next: 0,
        }
    }

    fn push(&self, line: u64, op: Op, out: &mut Out) {
        let at = self.at;
        out.push(Op { line, at, ..op });
    }
}

impl Reader for Iolog {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Out) -> Result<(), String> {
        let Some(follower) = &mut self.follower else {
            self.version = Version::of(line)?;
            self.follower = Some(Follower::new(&WHOLE, self.version));
            return Ok(());
        };
        let text = std::str::from_utf8(line).map_err(|_| "it is not valid UTF-8 text")?;
        let Some(entry) = follower.line(text)? else {
            return Ok(());
        };
        if let Some(at) = entry.at() {
            // Stamps of version 3 are in the given unit, waits of version 2 in their own.
            let unit = match self.version {
                Version::Two => STAMP,
                Version::Three => self.reading.unit,
            };
            let at = u128::from(at.0) * u128::from(unit.0) / u128::from(STAMP.0);
            self.at = Nanos(u64::try_from(at).map_err(|_| "its time is out of range")?);
        }
        let file = entry.file as usize;
        if self.open.len() <= file {
            self.open.resize(file + 1, None);
        }
        if entry.action == Action::Open {
            let name = follower.names().get(file).map_or("", String::as_str);
            let path = self.reading.names.map(b"/", name.as_bytes());
            let Some(path) = out.mapped(path)? else {
                return Ok(());
            };
            self.open[file] = Some(self.next);
            let op = Op::opening(path, (linux::RDWR | linux::CREAT, 0o644), self.next);
            self.next += 1;
            self.push(number, op, out);
            return Ok(());
        }
        let Some(opened) = self.open[file] else {
            // Its name is left out.
            out.left_out.add(super::why::NO_OPEN);
            return Ok(());
        };
        let (at, length) = (entry.offset, u64::from(entry.length));
        let op = match entry.action {
            Action::Read => Op::on_file(opened, Call::ReadAt(at)).moving(length),
            Action::Write => Op::on_file(opened, Call::WriteAt(at)).moving(length),
            Action::Trim => {
                let (mode, offset) = (PUNCH_HOLE, at);
                let call = Call::Allocate {
                    mode,
                    offset,
                    length,
                };
                Op::on_file(opened, call)
            }
            Action::Sync => Op::on_file(opened, Call::Fsync),
            Action::DataSync => Op::on_file(opened, Call::Fdatasync),
            Action::Close => {
                self.open[file] = None;
                Op::on_file(opened, Call::Close)
            }
            Action::Add | Action::Open | Action::Wait => return Ok(()),
        };
        self.push(number, op, out);
        Ok(())
    }

    fn end(&mut self, _out: &mut Out) -> Result<(), String> {
        match self.follower {
            Some(_) => Ok(()),
            None => Err("the trace is empty".to_owned()),
        }
    }
}

/// `FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE`
pub const PUNCH_HOLE: i32 = 3;
