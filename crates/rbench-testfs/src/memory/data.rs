//! The bytes of one file in memory. They are sparse and in chunks, so that a growing
//! file is not moved, and requests to different chunks copy at the same time.
//!
//! Invariant: bytes of a chunk at or after the end of the file are zero, so extending
//! the file shows zeros.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use parking_lot::{RwLock, RwLockWriteGuard};

use super::space::Space;
use crate::store::Answer;

/// Bytes of a file that one chunk covers.
const CHUNK: u64 = 64 << 10;

/// Unit of chunks' lengths: the memory of a small file.
const UNIT: u64 = 4 << 10;

/// The largest size of a file, that of `loff_t`.
const LARGEST: u64 = i64::MAX as u64;

/// The first part of a chunk's range; the rest is zero. Its length is a multiple of
/// [`UNIT`].
type Chunk = RwLock<Box<[u8]>>;
type Chunks = BTreeMap<u64, Chunk>;

/// The content of a file.
#[derive(Debug, Default)]
pub(crate) struct Data {
    /// Locked for writing when chunks are added, removed or resized; for reading
    /// while bytes are copied.
    chunks: RwLock<Chunks>,
    size: AtomicU64,
    allocated: AtomicU64,
}

/// A part of a byte range that lies in one chunk.
struct Piece {
    index: u64,
    /// Offset in the chunk.
    from: usize,
    to: usize,
    /// Offset in the whole range.
    at: usize,
}

/// The pieces of `length` bytes from `offset` on.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = Piece> {
    let end = offset + length as u64;
    let first = offset / CHUNK;
    let behind = if length == 0 {
        first
    } else {
        (end - 1) / CHUNK + 1
    };
    (first..behind).map(move |index| {
        let start = index * CHUNK;
        let from = offset.max(start);
        Piece {
            index,
            from: (from - start) as usize,
            to: (end.min(start + CHUNK) - start) as usize,
            at: (from - offset) as usize,
        }
    })
}

/// The length of chunk `index` to hold `need` bytes. The first one grows by doubling
/// so that small files stay small, others have their full length. Under a quota none
/// is longer than necessary.
fn preferred(space: &Space, index: u64, need: u64) -> u64 {
    match index {
        _ if space.is_exact() => need.next_multiple_of(UNIT),
        0 => need.max(UNIT).next_power_of_two().min(CHUNK),
        _ => CHUNK,
    }
}

impl Data {
    /// The size of the file in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// The bytes of memory that the file takes.
    pub(crate) fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Relaxed)
    }

    /// Reads from `offset` into `buffer`. Returns the number of bytes, which is less
    /// than its length at the end of the file.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let chunks = self.chunks.read();
        let left = self.size().saturating_sub(offset);
        let length = (buffer.len() as u64).min(left) as usize;
        for piece in pieces(offset, length) {
            let out = &mut buffer[piece.at..][..piece.to - piece.from];
            let chunk = chunks.get(&piece.index).map(RwLock::read);
            let held = chunk
                .as_deref()
                .and_then(|bytes| bytes.get(piece.from..))
                .unwrap_or_default();
            let n = held.len().min(out.len());
            out[..n].copy_from_slice(&held[..n]);
            out[n..].fill(0);
        }
        length
    }

    /// Writes `data` at `offset`. Returns the number of bytes written, less than its
    /// length if the space runs out.
    ///
    /// # Errors
    /// ENOSPC if not a single byte fits, EFBIG beyond the largest file.
    pub(crate) fn write(&self, space: &Space, offset: u64, data: &[u8]) -> Answer<usize> {
        if offset
            .checked_add(data.len() as u64)
            .is_none_or(|end| end > LARGEST)
        {
            return Err(Errno::EFBIG);
        }
        if data.is_empty() {
            // Writing nothing does not move the end of the file.
            return Ok(0);
        }
        let chunks = self.chunks.read();
        if covers(&chunks, offset, data.len()) {
            self.copy_in(&chunks, offset, data);
            return Ok(data.len());
        }
        drop(chunks);
        let mut chunks = self.chunks.write();
        let length = self.make_room(&mut chunks, space, offset, data.len())?;
        let chunks = RwLockWriteGuard::downgrade(chunks);
        self.copy_in(&chunks, offset, &data[..length]);
        Ok(length)
    }

    /// Copies into existing chunks, and moves the end of the file.
    fn copy_in(&self, chunks: &Chunks, offset: u64, data: &[u8]) {
        for piece in pieces(offset, data.len()) {
            if let Some(chunk) = chunks.get(&piece.index) {
                let length = piece.to - piece.from;
                chunk.write()[piece.from..piece.to].copy_from_slice(&data[piece.at..][..length]);
            }
        }
        let end = offset + data.len() as u64;
        self.size.fetch_max(end, Ordering::AcqRel);
    }

    /// Creates the chunks for `length` bytes at `offset`. Returns the number of bytes
    /// for which there was space.
    fn make_room(
        &self,
        chunks: &mut Chunks,
        space: &Space,
        offset: u64,
        length: usize,
    ) -> Answer<usize> {
        for piece in pieces(offset, length) {
            let need = piece.to as u64;
            match self.grow(chunks, space, piece.index, need) {
                Err(error) if piece.at == 0 => return Err(error),
                Err(_) => return Ok(piece.at),
                Ok(()) => {}
            }
        }
        Ok(length)
    }

    /// Extends chunk `index` to at least `need` bytes, and only to that if space is
    /// short.
    fn grow(&self, chunks: &mut Chunks, space: &Space, index: u64, need: u64) -> Answer<()> {
        let held = chunks
            .get(&index)
            .map_or(0, |chunk| chunk.read().len() as u64);
        if held >= need {
            return Ok(());
        }
        let mut length = preferred(space, index, need);
        if space.take_for_data(length - held).is_err() {
            length = need.next_multiple_of(UNIT);
            space.take_for_data(length - held)?;
        }
        self.allocated.fetch_add(length - held, Ordering::Relaxed);
        let mut bytes = vec![0; length as usize].into_boxed_slice();
        if let Some(old) = chunks.get(&index) {
            bytes[..held as usize].copy_from_slice(&old.read());
        }
        chunks.insert(index, RwLock::new(bytes));
        Ok(())
    }

    /// Returns the memory of `length` bytes to the budget.
    fn freed(&self, space: &Space, length: u64) {
        self.allocated.fetch_sub(length, Ordering::Relaxed);
        space.give_back_data(length);
    }

    /// Sets the size of the file. Bytes after it are freed; new ones read as zeros
    /// and take no space.
    ///
    /// # Errors
    /// EFBIG beyond the largest file.
    pub(crate) fn truncate(&self, space: &Space, size: u64) -> Answer<()> {
        if size > LARGEST {
            return Err(Errno::EFBIG);
        }
        let mut chunks = self.chunks.write();
        self.drop_range(&mut chunks, space, size..u64::MAX);
        // The last chunk shrinks to the length that it needs.
        let (index, keep) = (size / CHUNK, size % CHUNK);
        if let Some(chunk) = chunks.get_mut(&index) {
            let mut chunk = chunk.write();
            let length = preferred(space, index, keep) as usize;
            if length < chunk.len() {
                self.freed(space, (chunk.len() - length) as u64);
                *chunk = chunk[..length].into();
            }
        }
        self.size.store(size, Ordering::Release);
        Ok(())
    }

    /// Frees the whole chunks in `range`, and fills the rest of it with zeros.
    fn drop_range(&self, chunks: &mut Chunks, space: &Space, range: Range<u64>) {
        let first = range.start / CHUNK;
        let inside = |index: u64| {
            let start = index * CHUNK;
            range.start <= start && start.saturating_add(CHUNK) <= range.end
        };
        let touched: Vec<u64> = chunks
            .range(first..=range.end / CHUNK)
            .map(|(index, _)| *index)
            .collect();
        for index in touched {
            if inside(index) {
                if let Some(chunk) = chunks.remove(&index) {
                    self.freed(space, chunk.read().len() as u64);
                }
            } else if let Some(chunk) = chunks.get(&index) {
                let mut chunk = chunk.write();
                let start = index * CHUNK;
                let within = |at: u64| (at.saturating_sub(start) as usize).min(chunk.len());
                let (from, to) = (within(range.start), within(range.end));
                chunk[from..to].fill(0);
            }
        }
    }

    /// Makes a hole of `length` bytes at `offset`; the size stays.
    pub(crate) fn punch(&self, space: &Space, offset: u64, length: u64) {
        let mut chunks = self.chunks.write();
        self.drop_range(&mut chunks, space, offset..offset.saturating_add(length));
    }

    /// Reserves the memory of `length` bytes at `offset`, and extends the file over
    /// them unless `keep_size`.
    ///
    /// # Errors
    /// ENOSPC if it does not fit (the file is not extended then), EFBIG.
    pub(crate) fn reserve(
        &self,
        space: &Space,
        offset: u64,
        length: u64,
        keep_size: bool,
    ) -> Answer<()> {
        let end = offset
            .checked_add(length)
            .filter(|end| *end <= LARGEST)
            .ok_or(Errno::EFBIG)?;
        // A request for more than the total space must not start to fill memory.
        if length > space.cap() {
            return Err(Errno::ENOSPC);
        }
        let mut chunks = self.chunks.write();
        let room = self.make_room(&mut chunks, space, offset, length as usize)?;
        if (room as u64) < length {
            return Err(Errno::ENOSPC);
        }
        if !keep_size {
            self.size.fetch_max(end, Ordering::AcqRel);
        }
        Ok(())
    }

    /// The next byte at or after `offset` that is in memory.
    ///
    /// # Errors
    /// ENXIO if there is none before the end of the file.
    pub(crate) fn next_data(&self, offset: u64) -> Answer<u64> {
        let chunks = self.chunks.read();
        let size = self.size();
        chunks
            .range(offset / CHUNK..)
            .map(|(index, chunk)| (index * CHUNK, chunk.read().len() as u64))
            .find(|(start, length)| offset < start + length)
            .map(|(start, _)| offset.max(start))
            .filter(|at| *at < size)
            .ok_or(Errno::ENXIO)
    }

    /// The next byte at or after `offset` that is not in memory, or the end of the
    /// file.
    ///
    /// # Errors
    /// ENXIO if `offset` is not before the end of the file.
    pub(crate) fn next_hole(&self, offset: u64) -> Answer<u64> {
        let chunks = self.chunks.read();
        let size = self.size();
        if offset >= size {
            return Err(Errno::ENXIO);
        }
        let mut at = offset;
        for (index, chunk) in chunks.range(offset / CHUNK..) {
            let start = index * CHUNK;
            let end = start + chunk.read().len() as u64;
            if at < start || at >= end {
                break;
            }
            at = end;
        }
        Ok(at.min(size))
    }

    /// Frees everything.
    pub(crate) fn clear(&self, space: &Space) {
        let mut chunks = self.chunks.write();
        self.drop_range(&mut chunks, space, 0..u64::MAX);
        self.size.store(0, Ordering::Release);
    }
}

/// True if all bytes of the range lie in chunks.
fn covers(chunks: &Chunks, offset: u64, length: usize) -> bool {
    pieces(offset, length).all(|piece| {
        chunks
            .get(&piece.index)
            .is_some_and(|chunk| piece.to <= chunk.read().len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CAP: u64 = 1 << 30;

    /// Operations on a file, at positions up to a few chunks.
    #[derive(Debug, Clone)]
    enum Op {
        Write(u64, Vec<u8>),
        Truncate(u64),
        Punch(u64, u64),
        Reserve(u64, u64, bool),
    }

    fn op() -> impl Strategy<Value = Op> {
        let position = 0..3 * CHUNK + 100;
        let bytes = prop_oneof![
            prop::collection::vec(1_u8.., 0..200),
            (1_u8.., 0..100_000_usize).prop_map(|(byte, n)| vec![byte; n]),
        ];
        prop_oneof![
            3 => (position.clone(), bytes).prop_map(|(at, data)| Op::Write(at, data)),
            1 => position.clone().prop_map(Op::Truncate),
            1 => (position.clone(), position.clone()).prop_map(|(at, n)| Op::Punch(at, n)),
            1 => (position.clone(), 1..CHUNK, any::<bool>())
                .prop_map(|(at, n, keep)| Op::Reserve(at, n, keep)),
        ]
    }

    /// Applies the operation to a plain vector.
    fn model(file: &mut Vec<u8>, op: &Op) {
        match op {
            Op::Write(at, data) => {
                let end = *at as usize + data.len();
                if !data.is_empty() && file.len() < end {
                    file.resize(end, 0);
                }
                if !data.is_empty() {
                    file[*at as usize..end].copy_from_slice(data);
                }
            }
            Op::Truncate(size) => file.resize(*size as usize, 0),
            Op::Punch(at, n) => {
                let end = file.len().min((at + n) as usize);
                if let Some(range) = file.get_mut(*at as usize..end) {
                    range.fill(0);
                }
            }
            Op::Reserve(at, n, keep) => {
                if !keep && file.len() < (at + n) as usize {
                    file.resize((at + n) as usize, 0);
                }
            }
        }
    }

    fn apply(data: &Data, space: &Space, op: &Op) {
        let done = match op {
            Op::Write(at, bytes) => data
                .write(space, *at, bytes)
                .map(|n| assert_eq!(n, bytes.len())),
            Op::Truncate(size) => data.truncate(space, *size),
            Op::Punch(at, n) => {
                data.punch(space, *at, *n);
                Ok(())
            }
            Op::Reserve(at, n, keep) => data.reserve(space, *at, *n, *keep),
        };
        assert_eq!(done, Ok(()));
    }

    proptest! {
        #[test]
        fn a_file_holds_what_a_plain_vector_holds(ops in prop::collection::vec(op(), 1..30)) {
            let (space, data) = (Space::new(CAP, None), Data::default());
            let mut expect = Vec::new();
            for op in &ops {
                apply(&data, &space, op);
                model(&mut expect, op);
                prop_assert_eq!(data.size(), expect.len() as u64, "{:?}", op);
                let mut all = vec![0xff; expect.len() + 10];
                prop_assert_eq!(data.read(0, &mut all), expect.len());
                prop_assert!(all[..expect.len()] == expect, "after {:?}", op);
                prop_assert_eq!(space.free(), CAP - data.allocated());
                // Every byte that is not zero is in a range that SEEK_DATA finds.
                if let Some(at) = expect.iter().position(|byte| *byte != 0) {
                    prop_assert!(data.next_data(0).is_ok_and(|found| found <= at as u64));
                }
            }
            data.clear(&space);
            prop_assert_eq!((space.free(), data.allocated()), (CAP, 0));
        }
    }

    #[test]
    fn small_files_take_little_and_sparse_ones_only_what_is_written() {
        let (space, data) = (Space::new(CAP, None), Data::default());
        assert_eq!(data.write(&space, 0, b"x"), Ok(1));
        assert_eq!(data.allocated(), UNIT);
        assert_eq!(data.truncate(&space, 1 << 60), Ok(()));
        assert_eq!(data.write(&space, 1 << 50, b"y"), Ok(1));
        assert_eq!(data.allocated(), UNIT + CHUNK);
        assert_eq!(data.next_hole(0), Ok(UNIT));
        assert_eq!(data.next_data(UNIT), Ok(1 << 50));
        assert_eq!(data.next_data((1 << 50) + CHUNK), Err(Errno::ENXIO));
        assert_eq!(data.next_hole(1 << 60), Err(Errno::ENXIO));
        assert_eq!(data.truncate(&space, 0), Ok(()));
        assert_eq!((data.allocated(), space.free()), (0, CAP));
    }

    #[test]
    fn a_full_budget_cuts_a_write_short_and_then_refuses() {
        let (space, data) = (Space::new(CHUNK + 2 * UNIT, None), Data::default());
        let block = vec![7; 2 * CHUNK as usize];
        let written = data.write(&space, 0, &block);
        assert_eq!(written, Ok(CHUNK as usize));
        assert_eq!(data.size(), CHUNK);
        // The rest can still be used in small pieces.
        assert_eq!(data.write(&space, CHUNK, &block[..UNIT as usize]), Ok(4096));
        assert_eq!(space.free(), UNIT);
        let full = data.write(&space, 2 * CHUNK, &block[..UNIT as usize + 1]);
        assert_eq!(full, Err(Errno::ENOSPC));
        assert_eq!(data.truncate(&space, 0), Ok(()));
        assert_eq!(data.write(&space, 0, &block[..100]), Ok(100));
    }

    #[test]
    fn a_quota_gives_every_block_to_who_needs_it() {
        let space = Space::new(CAP, Some(6 * UNIT));
        let files = [Data::default(), Data::default()];
        let [a, b] = &files;
        // Two blocks in the first chunk and two in the second one.
        assert_eq!(a.write(&space, 0, &[1; UNIT as usize + 1]), Ok(4097));
        assert_eq!(a.write(&space, CHUNK, &[1; 8192]), Ok(8192));
        assert_eq!(b.write(&space, 0, &[1; 8192]), Ok(8192));
        assert_eq!(b.write(&space, 8191, &[1; 2]), Err(Errno::ENOSPC));
        assert_eq!(a.truncate(&space, 1), Ok(()));
        assert_eq!(space.free(), 3 * UNIT);
    }

    #[test]
    fn sizes_beyond_the_largest_file_are_refused() {
        let (space, data) = (Space::new(CAP, None), Data::default());
        assert_eq!(data.write(&space, LARGEST, b"x"), Err(Errno::EFBIG));
        assert_eq!(data.write(&space, u64::MAX, b"x"), Err(Errno::EFBIG));
        assert_eq!(data.truncate(&space, LARGEST + 1), Err(Errno::EFBIG));
        let reserve = data.reserve(&space, LARGEST, 1, true);
        assert_eq!(reserve, Err(Errno::EFBIG));
        let reserve = data.reserve(&space, 0, 1 << 50, false);
        assert_eq!((reserve, data.size()), (Err(Errno::ENOSPC), 0));
    }

    #[test]
    fn writers_of_different_parts_do_not_disturb_each_other() {
        let (space, data) = (Space::new(CAP, None), Data::default());
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let (space, data) = (&space, &data);
                scope.spawn(move || {
                    for block in 0..200_u64 {
                        let at = (block * 4 + u64::from(thread)) * 1000;
                        assert_eq!(data.write(space, at, &[thread + 1; 1000]), Ok(1000));
                    }
                });
            }
        });
        let mut all = vec![0; 800_000];
        assert_eq!(data.read(0, &mut all), 800_000);
        let wrong = all
            .chunks(1000)
            .enumerate()
            .find(|(i, block)| block.iter().any(|b| *b != (i % 4) as u8 + 1));
        assert_eq!(wrong.map(|(i, _)| i), None);
    }
}
