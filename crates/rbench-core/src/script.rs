//! The calls that are one operation, and how far they have come. Who makes them, one after the
//! other or in a ring, asks here what comes next.

use std::os::fd::RawFd;

use nix::errno::Errno;

use crate::call::Call;
use crate::failure::FailureKind;
use crate::open::OpenFlags;

/// How often a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// Once.
    Once,
    /// Once, and a read that brings less than it asked for falls short.
    Whole,
    /// A read: until one brings less than it asked for.
    UntilShort,
    /// A write: until so many bytes are written.
    UntilWritten(u64),
}

/// A call of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The call.
    pub call: Call,
    /// How often it is made.
    pub times: Times,
}

impl Part {
    /// That call, once.
    pub const fn once(call: Call) -> Part {
        Part {
            call,
            times: Times::Once,
        }
    }
}

/// The calls of a step: one, or a file is opened, something may be done with it, and it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Script {
    /// It opens its file itself, and closes it.
    opens: Option<OpenFlags>,
    part: Option<Part>,
    /// Bytes that each read and write moves at most.
    pub length: u64,
}

/// Most calls of a [`Script`].
pub const CALLS_MAX: usize = 3;

impl Script {
    /// This call, if any, whose reads and writes move so many bytes at most.
    pub const fn new(part: Option<Part>, length: u64) -> Script {
        Script {
            opens: None,
            part,
            length,
        }
    }

    /// The same on a file that is opened before and closed behind it.
    pub const fn whole(flags: OpenFlags, part: Option<Part>, length: u64) -> Script {
        Script {
            opens: Some(flags),
            part,
            length,
        }
    }

    /// One call that moves no data.
    pub const fn of(call: Call) -> Script {
        Script::new(Some(Part::once(call)), 0)
    }

    /// The calls, and how many they are.
    #[inline(always)]
    pub fn parts(&self) -> ([Part; CALLS_MAX], usize) {
        let close = Part::once(Call::Close);
        match (self.opens, self.part) {
            (None, None) => ([close; CALLS_MAX], 0),
            (None, Some(part)) => ([part; CALLS_MAX], 1),
            (Some(flags), None) => ([Part::once(Call::Open(flags)), close, close], 2),
            (Some(flags), Some(part)) => ([Part::once(Call::Open(flags)), part, close], 3),
        }
    }

    /// The call that it is about, with its file open.
    #[inline(always)]
    pub fn call(&self) -> Option<Call> {
        self.part.map(|part| part.call)
    }

    /// Whether it is that call alone.
    #[inline(always)]
    pub fn only(&self) -> Option<Call> {
        self.call().filter(|_| self.opens.is_none())
    }

    /// Whether it works on a file that is open before.
    #[inline(always)]
    pub fn needs_open(&self) -> bool {
        self.only().is_some_and(Call::needs_open)
    }

    /// Whether it opens a file and leaves it open.
    #[inline(always)]
    pub fn leaves_open(&self) -> bool {
        matches!(self.only(), Some(Call::Open(_)))
    }

    /// What is written of new data: bytes of each call, and all of them.
    #[inline(always)]
    pub fn writes(&self) -> Option<(u64, u64)> {
        match self.part? {
            Part {
                times: Times::UntilWritten(all),
                ..
            } => Some((self.length.min(all), all)),
            Part {
                call: Call::Write | Call::WriteAt(_) | Call::Setxattr(_),
                ..
            } => Some((self.length, self.length)),
            _ => None,
        }
    }
}

/// Bytes by which further pieces of a file begin further behind in the data.
const SHIFT: usize = 512;
/// As many times.
const SHIFTS: usize = 63;
/// Bytes of data that are needed beyond those of a call, where a file is written in several.
pub const PIECES_BYTES: usize = SHIFT * SHIFTS;

/// Where in the data the piece with that number of a file begins, when it is written in several
/// calls from the same data: so no block is a copy of the one before.
#[inline]
pub fn piece_start(piece: usize) -> usize {
    SHIFT * (piece % (SHIFTS + 1))
}

/// How far an operation has come. A call that fails, and a read or write that moves less than it
/// was to, end it, but for closing what is open, where closing is part of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    at: usize,
    moved: u64,
    answer: u64,
    failed: Option<Errno>,
    fell_short: bool,
}

impl Progress {
    /// The call that comes next, and which part of the data it moves: from where, and how many
    /// bytes.
    #[inline(always)]
    pub fn next(&self, parts: &[Part], length: usize) -> Option<(Call, usize, usize)> {
        let part = parts.get(self.at)?;
        Some(match part.times {
            Times::UntilWritten(bytes) => {
                let left = bytes.saturating_sub(self.moved);
                let piece = usize::try_from(left).map_or(length, |left| left.min(length));
                let from = piece_start(self.moved as usize / length.max(1));
                (part.call, from, piece)
            }
            // Of several writes each has data of its own.
            Times::Once if matches!(part.call, Call::WriteAt(_)) => {
                (part.call, self.moved as usize, length)
            }
            Times::Once | Times::Whole | Times::UntilShort => (part.call, 0, length),
        })
    }

    /// The call that [`Progress::next`] named has ended. What it opened or closed becomes
    /// `file`.
    #[inline(always)]
    pub fn ended(
        &mut self,
        parts: &[Part],
        length: usize,
        result: Result<u64, Errno>,
        file: &mut Option<RawFd>,
    ) {
        let Some((call, _, asked)) = self.next(parts, length) else {
            return;
        };
        let (mut again, mut ends) = (false, false);
        match (call, result) {
            // Closed also where that tells of an error.
            (Call::Close, result) => {
                *file = None;
                self.failed = self.failed.or(result.err());
            }
            (_, Err(errno)) => {
                self.failed = self.failed.or(Some(errno));
                ends = true;
            }
            (Call::Open(_), Ok(fd)) => *file = Some(fd as RawFd),
            (Call::Read | Call::ReadAt(_), Ok(moved)) => {
                self.moved += moved;
                let whole = moved as usize == asked;
                again = whole && parts[self.at].times == Times::UntilShort;
                ends = !whole && parts[self.at].times != Times::UntilShort;
                self.fell_short |= !whole && parts[self.at].times == Times::Whole;
            }
            (Call::Write | Call::WriteAt(_), Ok(moved)) => {
                self.moved += moved;
                ends = (moved as usize) < asked;
                self.fell_short |= ends;
                again = match parts[self.at].times {
                    Times::UntilWritten(all) => !ends && self.moved < all,
                    _ => false,
                };
            }
            (Call::Getxattr(_) | Call::Listxattr | Call::Readlink | Call::List, Ok(length)) => {
                self.answer = length;
            }
            (_, Ok(_)) => {}
        }
        self.at += usize::from(!again);
        if ends {
            self.skip_to_close(parts, file.is_some());
        }
    }

    /// Of what is left only closing is done.
    #[cold]
    fn skip_to_close(&mut self, parts: &[Part], is_open: bool) {
        let left = parts.get(self.at..).unwrap_or_default();
        let close = left.iter().position(|next| next.call == Call::Close);
        self.at = match (close, is_open) {
            (Some(ahead), true) => self.at + ahead,
            _ => parts.len(),
        };
    }

    /// What fails before anything is done.
    pub fn failing(errno: Errno) -> Progress {
        Progress {
            failed: Some(errno),
            ..Progress::default()
        }
    }

    /// The bytes that were read or written.
    #[inline(always)]
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// The same.
    ///
    /// # Errors
    /// The first error.
    #[inline(always)]
    pub fn result(&self) -> Result<u64, Errno> {
        self.failed.map_or(Ok(self.moved), Err)
    }

    /// What the last call answered that answers with something else: the length of a value, of
    /// a target or of a list of names, or a number of entries.
    #[inline(always)]
    pub fn answer(&self) -> u64 {
        self.answer
    }

    /// How it counts when nothing comes next: the bytes that were read or written.
    ///
    /// # Errors
    /// Why it does not count as done; of two errors the first.
    #[inline(always)]
    pub fn outcome(&self) -> Result<u64, FailureKind> {
        match (self.failed, self.fell_short) {
            (Some(errno), _) => Err(errno.into()),
            (None, true) => Err(FailureKind::Short),
            (None, false) => Ok(self.moved),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls that are made where they are answered so, and how it ends.
    fn course(
        parts: &[Part],
        answers: &[Result<u64, Errno>],
    ) -> (Vec<(Call, usize)>, Result<u64, FailureKind>) {
        let (mut progress, mut file, mut made) = (Progress::default(), None, Vec::new());
        let length = 10;
        let mut answers = answers.iter();
        while let Some((call, _, bytes)) = progress.next(parts, length) {
            made.push((call, bytes));
            let answer = answers.next().expect("no more calls than answers");
            progress.ended(parts, length, *answer, &mut file);
        }
        assert_eq!(answers.next(), None, "no fewer calls than answers");
        assert_eq!(file, None, "it is closed");
        (made, progress.outcome())
    }

    fn whole(times: Times, call: Call) -> [Part; 4] {
        [
            Part::once(Call::Open(OpenFlags::READ)),
            Part { call, times },
            Part::once(Call::Fsync),
            Part::once(Call::Close),
        ]
    }

    #[test]
    fn a_file_is_written_in_pieces_until_all_is_there() {
        let parts = whole(Times::UntilWritten(25), Call::Write);
        let answers = [Ok(3), Ok(10), Ok(10), Ok(5), Ok(0), Ok(0)];
        let (made, outcome) = course(&parts, &answers);
        let bytes: Vec<usize> = made[1..4].iter().map(|(_, bytes)| *bytes).collect();
        assert_eq!((bytes, outcome), (vec![10, 10, 5], Ok(25)));
        let script = Script::new(Some(parts[1]), 10);
        assert_eq!(script.writes(), Some((10, 25)));
    }

    #[test]
    fn what_is_written_short_ends_it_and_the_file_is_closed() {
        let parts = whole(Times::UntilWritten(25), Call::Write);
        let (made, outcome) = course(&parts, &[Ok(3), Ok(10), Ok(9), Ok(0)]);
        assert_eq!(made.last(), Some(&(Call::Close, 10)));
        assert_eq!(outcome, Err(FailureKind::Short));
    }

    #[test]
    fn a_file_is_read_until_a_call_brings_less() {
        let parts = whole(Times::UntilShort, Call::Read);
        let answers = [Ok(3), Ok(10), Ok(10), Ok(0), Ok(0), Ok(0)];
        let (made, outcome) = course(&parts, &answers);
        assert_eq!((made.len(), outcome), (6, Ok(20)));
    }

    #[test]
    fn of_two_errors_the_first_is_told_and_what_is_not_open_is_not_closed() {
        let parts = whole(Times::Once, Call::Write);
        let (made, outcome) = course(&parts, &[Ok(3), Err(Errno::EIO), Err(Errno::ENOSPC)]);
        assert_eq!((made.len(), outcome), (3, Err(Errno::EIO.into())));
        let (made, outcome) = course(&parts, &[Err(Errno::ENOENT)]);
        assert_eq!((made.len(), outcome), (1, Err(Errno::ENOENT.into())));
    }
}
