//! fio's logs of I/O as traces: one process each. What their lines say is [`crate::iolog`]'s.

use std::path::PathBuf;

use rbench_core::{Nanos, linux};

use super::names::Unmapped;
use super::{Call, Op, Out, Outcome, Reader, Reading, Told};
use crate::iolog::{Action, Follower, Replay, STAMP, Skip, Version};

/// All of a log, as it was recorded.
static EVERYTHING: Replay = Replay {
    logs: Vec::new(),
    chunked: false,
    stalls: true,
    speed: 100,
    redirect: None,
    below: PathBuf::new(),
    scale: 1,
    align: 1,
    skip: Skip {
        read: false,
        write: false,
        trim: false,
        sync: false,
    },
    verify_interval: None,
    found: None,
};

/// Reads one.
pub struct Iolog {
    reading: Reading,
    follower: Option<Follower<'static>>,
    version: Version,
    /// When what comes next begins, at the earliest.
    at: Nanos,
    /// By file of the log, the number that it is open under.
    open: Vec<Option<u64>>,
    next: u64,
}

impl Iolog {
    /// Before its first line.
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

    fn push(&self, line: u64, call: Call, out: &mut Out) {
        out.push(Op {
            line,
            at: self.at,
            process: 0,
            took: None,
            result: Outcome::Unknown,
            told: Told::default(),
            implied: false,
            call,
        });
    }
}

impl Reader for Iolog {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Out) -> Result<(), String> {
        let Some(follower) = &mut self.follower else {
            self.version = Version::of(line)?;
            self.follower = Some(Follower::new(&EVERYTHING, self.version));
            return Ok(());
        };
        let text = std::str::from_utf8(line).map_err(|_| "it is not valid UTF-8 text")?;
        let Some(entry) = follower.line(text)? else {
            return Ok(());
        };
        if let Some(at) = entry.at() {
            // Stamps of version 3 are in the unit that was named, waits of version 2 in their own.
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
            let path = match self.reading.names.map(b"/", name.as_bytes()) {
                Ok(path) => path,
                Err(Unmapped::Wrong(why)) => return Err(why),
                Err(Unmapped::LeftOut(why)) => {
                    out.left_out.add(why);
                    return Ok(());
                }
            };
            self.open[file] = Some(self.next);
            let call = Call::Open {
                path,
                flags: linux::RDWR | linux::CREAT,
                mode: 0o644,
                file: self.next,
            };
            self.next += 1;
            self.push(number, call, out);
            return Ok(());
        }
        let Some(opened) = self.open[file] else {
            // Its name is left out.
            out.left_out.add(super::why::NO_OPEN);
            return Ok(());
        };
        let (at, length) = (entry.offset, u64::from(entry.length));
        let call = match entry.action {
            Action::Read => Call::Read {
                file: opened,
                at: Some(at),
                length,
            },
            Action::Write => Call::Write {
                file: opened,
                at: Some(at),
                length,
                data: None,
            },
            Action::Trim => Call::Allocate {
                file: opened,
                mode: PUNCH_HOLE,
                offset: at,
                length,
            },
            Action::Sync | Action::DataSync => Call::Sync {
                file: opened,
                data_only: entry.action == Action::DataSync,
            },
            Action::Close => {
                self.open[file] = None;
                Call::Close { file: opened }
            }
            Action::Add | Action::Open | Action::Wait => return Ok(()),
        };
        self.push(number, call, out);
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
