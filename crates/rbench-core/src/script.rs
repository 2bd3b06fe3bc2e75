//! The system calls of one operation, and the progress through them, which both executors, one call
//! at a time and in a ring, learn from the results here.

use std::os::fd::RawFd;

use nix::errno::Errno;

use crate::failure::FailureKind;
use crate::open::OpenFlags;
use crate::operations::Call;

/// Number of times that a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// Once.
    Once,
    /// Once; a short read fails the operation.
    Whole,
    /// A read, repeated until it is short.
    UntilShort,
    /// A write, repeated until this many bytes are written.
    UntilWritten(u64),
}

/// A call of an operation, and how often it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The call.
    pub call: Call,
    /// Number of times that it is made.
    pub times: Times,
}

impl Part {
    /// `call`, made once.
    pub const fn once(call: Call) -> Part {
        Part {
            call,
            times: Times::Once,
        }
    }
}

/// System calls of a step: a single call, or an open, at most one call on the file, and a close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Script {
    /// Set if the step opens its file itself, and closes it.
    opens: Option<OpenFlags>,
    part: Option<Part>,
    /// Most bytes of each read and write.
    pub length: u64,
}

/// Most calls of a [`Script`].
pub const CALLS_MAX: usize = 3;

impl Script {
    /// At most one call, with `length` bytes at most.
    pub const fn new(part: Option<Part>, length: u64) -> Script {
        Script {
            opens: None,
            part,
            length,
        }
    }

    /// Opens a file, makes at most one call on it, and closes it.
    pub const fn whole(flags: OpenFlags, part: Option<Part>, length: u64) -> Script {
        Script {
            opens: Some(flags),
            part,
            length,
        }
    }

    /// A single call without data.
    pub const fn of(call: Call) -> Script {
        Script::new(Some(Part::once(call)), 0)
    }

    /// Calls `with` with the calls.
    #[inline(always)]
    pub fn with_parts<T>(&self, with: impl FnOnce(&[Part]) -> T) -> T {
        const CLOSE: Part = Part::once(Call::Close);
        let Some(flags) = self.opens else {
            return with(self.part.as_slice());
        };
        let open = Part::once(Call::Open(flags));
        match self.part {
            None => with(&[open, CLOSE]),
            Some(part) => with(&[open, part, CLOSE]),
        }
    }

    /// The single call, or the call on the file that the step opens.
    #[inline(always)]
    pub fn call(&self) -> Option<Call> {
        self.part.map(|part| part.call)
    }

    /// The call of a step that does not open a file itself.
    #[inline(always)]
    pub fn only(&self) -> Option<Call> {
        self.call().filter(|_| self.opens.is_none())
    }

    /// True if the file must be open already.
    #[inline(always)]
    pub fn needs_open(&self) -> bool {
        self.only().is_some_and(Call::needs_open)
    }

    /// True if the step opens a file and leaves it open.
    #[inline(always)]
    pub fn leaves_open(&self) -> bool {
        matches!(self.only(), Some(Call::Open(_)))
    }

    /// New data that the step writes: bytes of each call, and of all.
    #[inline(always)]
    pub fn writes(&self) -> Option<(u64, u64)> {
        match self.part? {
            Part {
                times: Times::UntilWritten(all),
                ..
            } => Some((self.length.min(all), all)),
            Part {
                call: Call::Write | Call::WriteAt(_) | Call::Setxattr(..),
                ..
            } => Some((self.length, self.length)),
            _ => None,
        }
    }
}

/// Distance between the starts of two successive pieces of a file in the data, in bytes.
const SHIFT: usize = 512;
/// Number of pieces after which the starts repeat, minus one.
const SHIFTS: usize = 63;
/// Bytes of data needed in addition to those of a call, if a file is written in several calls.
pub const PIECES_BYTES: usize = SHIFT * SHIFTS;

/// Offset in the data of a piece of a file that is written in several calls from the same data.
/// Successive pieces differ, so no block is a copy of the one before.
#[inline]
pub fn piece_start(piece: usize) -> usize {
    SHIFT * (piece % (SHIFTS + 1))
}

/// Next step after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// This call again.
    Again,
    /// The next call.
    Next,
    /// Only the close of the file, if it is one of the calls.
    Close,
}

/// The next call to make.
#[derive(Debug, Clone, Copy)]
pub struct Due<'p> {
    /// The call.
    pub call: &'p Call,
    times: Times,
    /// Offset in the data of the part that it moves.
    pub from: usize,
    /// Length of that part, in bytes.
    pub bytes: usize,
}

/// Progress of an operation through its calls. A failed call, a short write and, where the read is
/// a single one, a short read end the operation; an open file is still closed if the operation
/// closes it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    at: usize,
    moved: u64,
    answer: u64,
    failed: Option<Errno>,
    fell_short: bool,
}

impl Progress {
    /// Next call, and the part of the data that it moves; `None` after the last one.
    #[inline(always)]
    pub fn next<'p>(&self, parts: &'p [Part], length: usize) -> Option<Due<'p>> {
        parts.get(self.at).map(|part| self.due(part, length))
    }

    /// Call of this part, and the part of the data that it moves.
    #[inline(always)]
    pub fn due<'p>(&self, Part { call, times }: &'p Part, length: usize) -> Due<'p> {
        let (from, bytes) = match (*times, call) {
            (Times::UntilWritten(bytes), _) => {
                let left = bytes.saturating_sub(self.moved);
                let piece = usize::try_from(left).map_or(length, |left| left.min(length));
                (piece_start(self.moved as usize / length.max(1)), piece)
            }
            // Each of several writes has its own data.
            (Times::Once, Call::WriteAt(_)) => (self.moved as usize, length),
            _ => (0, length),
        };
        Due {
            call,
            times: *times,
            from,
            bytes,
        }
    }

    /// Takes the result of `due`. `file` is updated by an open or a close.
    #[inline(always)]
    pub fn ended(
        &mut self,
        parts: &[Part],
        due: &Due<'_>,
        result: Result<u64, Errno>,
        file: &mut Option<RawFd>,
    ) {
        let then = match (due.call, result) {
            (Call::Close, result) => {
                // The file is closed even if `close` reports an error.
                *file = None;
                self.closed(result);
                Then::Next
            }
            (Call::Open(_), Ok(fd)) => {
                *file = Some(fd as RawFd);
                Then::Next
            }
            _ => self.take(due, result),
        };
        self.at += usize::from(then != Then::Again);
        if then == Then::Close {
            self.skip_to_close(parts, file.is_some());
        }
    }

    /// Progress of an operation that moved this many bytes.
    #[inline(always)]
    pub fn done(moved: u64) -> Progress {
        Progress {
            moved,
            ..Progress::default()
        }
    }

    /// Takes the result of closing the file after the other calls.
    #[inline(always)]
    pub fn closed(&mut self, result: Result<u64, Errno>) {
        self.failed = self.failed.or(result.err());
    }

    /// Takes the result of `due`, which neither opens nor closes the file.
    #[inline(always)]
    pub fn take(&mut self, due: &Due<'_>, result: Result<u64, Errno>) -> Then {
        match (due.call, result) {
            (_, Err(errno)) => {
                self.failed = self.failed.or(Some(errno));
                return Then::Close;
            }
            (Call::Read | Call::ReadAt(_), Ok(moved)) => {
                self.moved += moved;
                match (due.times, moved as usize == due.bytes) {
                    (Times::UntilShort, true) => return Then::Again,
                    (Times::UntilShort, false) | (_, true) => {}
                    (times, false) => {
                        self.fell_short |= times == Times::Whole;
                        return Then::Close;
                    }
                }
            }
            (Call::Write | Call::WriteAt(_), Ok(moved)) => {
                self.moved += moved;
                if (moved as usize) < due.bytes {
                    self.fell_short = true;
                    return Then::Close;
                }
                if let Times::UntilWritten(all) = due.times
                    && self.moved < all
                {
                    return Then::Again;
                }
            }
            (_, Ok(answer)) => self.answer = answer,
        }
        Then::Next
    }

    /// Skips all remaining calls except closing the file.
    #[cold]
    fn skip_to_close(&mut self, parts: &[Part], is_open: bool) {
        let left = parts.get(self.at..).unwrap_or_default();
        let close = left.iter().position(|next| next.call == Call::Close);
        self.at = match (close, is_open) {
            (Some(ahead), true) => self.at + ahead,
            _ => parts.len(),
        };
    }

    /// An operation that failed at its first call or before it.
    pub fn failed(errno: Errno) -> Progress {
        Progress {
            failed: Some(errno),
            ..Progress::default()
        }
    }

    /// Bytes read and written.
    #[inline(always)]
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// Bytes read and written; a short write is not an error here.
    ///
    /// # Errors
    /// The first error.
    #[inline(always)]
    pub fn result(&self) -> Result<u64, Errno> {
        self.failed.map_or(Ok(self.moved), Err)
    }

    /// Answer of the last call that neither reads nor writes a file, nor opens or closes one: length
    /// of an attribute's value, of a link's target or of a list of names, number of entries.
    #[inline(always)]
    pub fn answer(&self) -> u64 {
        self.answer
    }

    /// Result of the operation after its last call: bytes read and written.
    ///
    /// # Errors
    /// The first error, or [`FailureKind::Short`].
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

    /// The calls made with these answers, and the result.
    fn course(
        parts: &[Part],
        answers: &[Result<u64, Errno>],
    ) -> (Vec<(Call, usize)>, Result<u64, FailureKind>) {
        let (mut progress, mut file, mut calls) = (Progress::default(), None, Vec::new());
        let length = 10;
        let mut answers = answers.iter();
        while let Some(due) = progress.next(parts, length) {
            calls.push((*due.call, due.bytes));
            let answer = answers.next().expect("no more calls than answers");
            progress.ended(parts, &due, *answer, &mut file);
        }
        assert_eq!(answers.next(), None, "no fewer calls than answers");
        assert_eq!(file, None, "it is closed");
        (calls, progress.outcome())
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
        let (calls, outcome) = course(&parts, &answers);
        let bytes: Vec<usize> = calls[1..4].iter().map(|(_, bytes)| *bytes).collect();
        assert_eq!((bytes, outcome), (vec![10, 10, 5], Ok(25)));
        let script = Script::new(Some(parts[1]), 10);
        assert_eq!(script.writes(), Some((10, 25)));
    }

    #[test]
    fn what_is_written_short_ends_it_and_the_file_is_closed() {
        let parts = whole(Times::UntilWritten(25), Call::Write);
        let (calls, outcome) = course(&parts, &[Ok(3), Ok(10), Ok(9), Ok(0)]);
        assert_eq!(calls.last(), Some(&(Call::Close, 10)));
        assert_eq!(outcome, Err(FailureKind::Short));
    }

    #[test]
    fn a_file_is_read_until_a_call_brings_less() {
        let parts = whole(Times::UntilShort, Call::Read);
        let answers = [Ok(3), Ok(10), Ok(10), Ok(0), Ok(0), Ok(0)];
        let (calls, outcome) = course(&parts, &answers);
        assert_eq!((calls.len(), outcome), (6, Ok(20)));
    }

    #[test]
    fn of_two_errors_the_first_is_told_and_what_is_not_open_is_not_closed() {
        let parts = whole(Times::Once, Call::Write);
        let (calls, outcome) = course(&parts, &[Ok(3), Err(Errno::EIO), Err(Errno::ENOSPC)]);
        assert_eq!((calls.len(), outcome), (3, Err(Errno::EIO.into())));
        let (calls, outcome) = course(&parts, &[Err(Errno::ENOENT)]);
        assert_eq!((calls.len(), outcome), (1, Err(Errno::ENOENT.into())));
    }
}
