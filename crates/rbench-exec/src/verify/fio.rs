//! Verified blocks of jobs, in fio's layout: blocks written by fio verify here and the other way
//! round. A header is that of fio 3.33 (40 bytes, little-endian); that of fio 3.42 (48 bytes) is
//! read as well.
//!
//! fio draws the seed in a header at random, and the data from it. Here the seed encodes the run,
//! the file and the number of the worker's write; the data derives from it, so that it can be made
//! again. Like in fio, a reader that did not write the data itself checks neither.

use rbench_core::random::key;
use rbench_plan::jobs::{BufferContent, Checksum, FioLayout, JobPlan, VerifyPattern};

use super::damage::{Damage, compare};
use super::{BlockHeader, Expected, Wrong, nearest, pattern, sound_heads, sums};
use crate::data;

/// First bytes of a header, and their second half in fio 3.42: version and type.
const MAGIC: u16 = 0xacca;
const VERSION: u8 = 0x81;
/// Length of a header, and where its own checksum stands.
const HEADER: usize = rbench_plan::verify::HEADER as usize;
const CRC: usize = HEADER - 4;
/// Length of a header in fio 3.42, and the offset of its checksum.
const HEADER_NEW: usize = 48;
const CRC_NEW: usize = HEADER_NEW - 4;
/// Offsets of the fields of a header.
const TYPE: usize = 2;
const LENGTH: usize = 4;
const SEED: usize = 8;
const OFFSET: usize = 16;
const TIMES: usize = 24;
const THREAD: usize = 32;
const NUMBER: usize = 34;
const NUMBER_NEW: usize = 32;

/// Bits of a seed that hold the number of the write; those above tell run and file.
const WRITE_BITS: u32 = 40;
const WRITES: u64 = (1 << WRITE_BITS) - 1;

/// A header as it was read.
#[derive(Debug, Clone, Copy)]
struct Found {
    kind: u16,
    length: u32,
    seed: u64,
    offset: u64,
    /// Time of the write, which is not checked.
    times: [u8; 8],
    thread: u16,
    number: u16,
    /// Bytes of it.
    bytes: usize,
    /// Its own checksum is right.
    sound: bool,
}

/// Puts fio's headers, checksums and patterns into blocks and checks them.
#[derive(Debug, Clone)]
pub struct FioHeaders {
    layout: FioLayout,
    interval: usize,
    pattern_interval: usize,
    content: BufferContent,
    /// Wrong blocks are made as they should be, for files.
    pub(super) dump: bool,
}

fn kind(checksum: Checksum) -> u16 {
    match checksum {
        Checksum::Meta => 1,
        Checksum::Md5 => 2,
        Checksum::Crc64 => 3,
        Checksum::Crc32 => 4,
        Checksum::Crc32c => 5,
        Checksum::Crc16 => 7,
        Checksum::Crc7 => 8,
        Checksum::Sha256 => 9,
        Checksum::Sha512 => 10,
        Checksum::Sha3_224 => 11,
        Checksum::Sha3_256 => 12,
        Checksum::Sha3_384 => 13,
        Checksum::Sha3_512 => 14,
        Checksum::Xxhash => 15,
        Checksum::Sha1 => 16,
        Checksum::PatternHeader => 17,
        Checksum::Pattern => 18,
        Checksum::Null => 19,
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let found = bytes.get(at..).and_then(|b| b.first_chunk());
    found.copied().unwrap_or([0; N])
}

impl Found {
    fn read(piece: &[u8]) -> Found {
        let new = piece.get(TYPE) == Some(&VERSION);
        let crc = if new { CRC_NEW } else { CRC };
        let kind = u16::from_le_bytes(field(piece, TYPE));
        let head = piece.get(..crc).unwrap_or_default();
        Found {
            kind: if new { kind >> 8 } else { kind },
            length: u32::from_le_bytes(field(piece, LENGTH)),
            seed: u64::from_le_bytes(field(piece, SEED)),
            offset: u64::from_le_bytes(field(piece, OFFSET)),
            times: field(piece, TIMES),
            thread: u16::from_le_bytes(field(piece, if new { THREAD + 8 } else { THREAD })),
            number: u16::from_le_bytes(field(piece, if new { NUMBER_NEW } else { NUMBER })),
            bytes: if new { HEADER_NEW } else { HEADER },
            sound: u16::from_le_bytes(field(piece, 0)) == MAGIC
                && sums::crc32c(head) == u32::from_le_bytes(field(piece, crc)),
        }
    }
}

/// The part of a seed that encodes run and file.
fn tag(run: u64, file: u64) -> u64 {
    key(&[run, file]) & !WRITES
}

/// fio's number of a worker, from 1.
fn thread(worker: u64) -> u16 {
    (worker as u16).wrapping_add(1)
}

/// fio's number of a write, from 0.
fn number(generation: u64) -> u16 {
    generation.wrapping_sub(1) as u16
}

impl FioHeaders {
    /// Headers of a job.
    pub(super) fn new(job: &JobPlan, layout: &FioLayout, interval: u64, dump: bool) -> FioHeaders {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        FioHeaders {
            layout: layout.clone(),
            interval: size(interval).max(1),
            pattern_interval: size(layout.pattern_interval),
            content: job.buffers.content.clone(),
            dump,
        }
    }

    /// Bytes of a header and the checksum after it.
    fn length(&self) -> usize {
        HEADER + self.layout.checksum.length() as usize
    }

    /// Returns true if an interval is long enough for a header.
    fn has_room(&self, piece: &[u8]) -> bool {
        piece.len() >= self.layout.offset as usize + self.length()
    }

    /// Header and what stands where it should be change places, if it stands elsewhere.
    fn turn(&self, piece: &mut [u8]) {
        let (offset, length) = (self.layout.offset as usize, self.length());
        if offset > 0 && piece.len() >= offset + length {
            let (front, back) = piece.split_at_mut(offset);
            front[..length].swap_with_slice(&mut back[..length]);
        }
    }

    /// Fills `block`, which will be written to `header.offset`.
    pub(super) fn stamp(&self, block: &mut [u8], header: &BlockHeader) {
        self.make(block, self.head(header));
    }

    /// The header of a write; the length follows from the interval that it is put into.
    fn head(&self, header: &BlockHeader) -> Found {
        Found {
            kind: kind(self.layout.checksum),
            length: 0,
            seed: tag(header.run, header.file) | header.generation & WRITES,
            offset: header.offset,
            times: [0; 8],
            thread: thread(header.worker),
            number: number(header.generation),
            bytes: HEADER,
            sound: true,
        }
    }

    /// Fills a block whose first header is `head`.
    fn make(&self, block: &mut [u8], mut head: Found) {
        match &self.layout.pattern {
            _ if self.layout.checksum == Checksum::Null => {
                data::fill(&self.content, key(&[head.seed, head.offset]), block);
            }
            Some(pattern) => pattern::fill(pattern, self.pattern_interval, head.offset, block),
            None => {}
        }
        if !self.layout.checksum.has_header() {
            return;
        }
        for piece in block.chunks_mut(self.interval) {
            self.stamp_interval(piece, &head);
            head.offset = head.offset.saturating_add(piece.len() as u64);
        }
    }

    /// Puts header, checksum and, where there is no pattern, data into an interval.
    fn stamp_interval(&self, piece: &mut [u8], head: &Found) {
        let data = |piece: &mut [u8]| {
            if self.layout.pattern.is_none() {
                data::fill(&self.content, key(&[head.seed, head.offset]), piece);
            }
        };
        if !self.has_room(piece) {
            data(piece);
            return;
        }
        let whole = piece.len() as u32;
        let (header, rest) = piece.split_at_mut(self.length());
        data(rest);
        header[..HEADER].fill(0);
        header[..2].copy_from_slice(&MAGIC.to_le_bytes());
        header[TYPE..LENGTH].copy_from_slice(&head.kind.to_le_bytes());
        header[LENGTH..SEED].copy_from_slice(&whole.to_le_bytes());
        header[SEED..OFFSET].copy_from_slice(&head.seed.to_le_bytes());
        header[OFFSET..TIMES].copy_from_slice(&head.offset.to_le_bytes());
        header[TIMES..THREAD].copy_from_slice(&head.times);
        header[THREAD..NUMBER].copy_from_slice(&head.thread.to_le_bytes());
        header[NUMBER..CRC].copy_from_slice(&head.number.to_le_bytes());
        let crc = sums::crc32c(&header[..CRC]);
        header[CRC..HEADER].copy_from_slice(&crc.to_le_bytes());
        sums::fill(self.layout.checksum, rest, &mut header[HEADER..]);
        self.turn(piece);
    }

    /// Checks a block that was read from `expected.offset`.
    ///
    /// # Errors
    /// What is wrong with its first wrong interval.
    pub(super) fn check(&self, block: &[u8], expected: &Expected) -> Result<(), Wrong> {
        match (self.layout.checksum, &self.layout.pattern) {
            (Checksum::Null, _) => return Ok(()),
            (Checksum::Pattern, Some(pattern)) => {
                return self.check_pattern(pattern, block, expected.offset);
            }
            _ => {}
        }
        let mut offset = expected.offset;
        for (nth, piece) in block.chunks(self.interval).enumerate() {
            if self.has_room(piece) {
                let mut own;
                let mut piece = piece;
                if self.layout.offset > 0 {
                    own = piece.to_vec();
                    self.turn(&mut own);
                    piece = &own;
                }
                self.check_interval(piece, expected, offset)
                    .and_then(|()| self.check_behind(piece, (block.len(), nth), expected.offset))
                    .map_err(|wrong| self.with_right(wrong, block, expected))?;
            }
            // Any offset may be asked for; no file is that long.
            offset = offset.saturating_add(piece.len() as u64);
        }
        Ok(())
    }

    fn check_interval(&self, piece: &[u8], expected: &Expected, offset: u64) -> Result<(), Wrong> {
        let found = Found::read(piece);
        if !found.sound || found.length as usize != piece.len() {
            return Err(self.diagnose(piece, &found, expected, offset));
        }
        if let Some(wrong) = self.mistaken(&found, expected, offset) {
            return Err(wrong);
        }
        let checksum = self.layout.checksum;
        let length = checksum.length() as usize;
        let (sum, data) = piece[found.bytes..].split_at(length.min(piece.len() - found.bytes));
        let mut right = [0; sums::LONGEST];
        sums::fill(checksum, data, &mut right[..length]);
        if *sum != right[..length] {
            return Err(self.diagnose(piece, &found, expected, offset));
        }
        // fio's SHA-512 covers two ends of the data only. Data written here can be made again and
        // compared.
        if checksum == Checksum::Sha512 && self.layout.pattern.is_none() {
            let made = self.made_again(piece, &found, offset);
            let difference = compare(piece, &made);
            if difference.bits > 0 && !matches!(difference.damage(), Damage::Foreign) {
                return Err(Wrong::between(offset, piece, &made));
            }
        }
        Ok(())
    }

    /// Checks the pattern after a header: fio checks it where there is no checksum.
    fn check_behind(&self, piece: &[u8], block: (usize, usize), offset: u64) -> Result<(), Wrong> {
        let (length, nth) = block;
        let checksum = self.layout.checksum;
        let Some(pattern) = self
            .layout
            .pattern
            .as_ref()
            .filter(|_| matches!(checksum, Checksum::Meta | Checksum::PatternHeader))
        else {
            return Ok(());
        };
        let mut right = vec![0; length];
        pattern::fill(pattern, self.pattern_interval, offset, &mut right);
        let at = nth * self.interval;
        let mut right = right[at..at + piece.len()].to_vec();
        let head = Found::read(piece).bytes;
        right[..head].copy_from_slice(&piece[..head]);
        match piece == right {
            true => Ok(()),
            false => Err(Wrong::between(offset + at as u64, piece, &right)),
        }
    }

    fn check_pattern(
        &self,
        pattern: &VerifyPattern,
        block: &[u8],
        offset: u64,
    ) -> Result<(), Wrong> {
        let mut right = vec![0; block.len()];
        pattern::fill(pattern, self.pattern_interval, offset, &mut right);
        if block == right {
            return Ok(());
        }
        let wrong = Wrong::between(offset, block, &right);
        Err(Wrong {
            right: if self.dump { right } else { Vec::new() },
            ..wrong
        })
    }

    /// Returns the damage if a sound header is not the expected one.
    fn mistaken(&self, found: &Found, expected: &Expected, offset: u64) -> Option<Wrong> {
        let own = (expected.run).map(|run| tag(run, expected.file) == found.seed & !WRITES);
        if found.offset != offset {
            let damage = Damage::Misplaced {
                file: 0,
                offset: found.offset,
            };
            return Some(Wrong {
                same_file: own != Some(false) || !self.layout.seed,
                ..Wrong::new(offset, damage, None)
            });
        }
        let known = expected.generations.as_ref()?;
        // Writes of another worker of this run to the same file are not known.
        if found.thread != thread(known.worker) {
            let another = own == Some(true) || !self.layout.seed;
            return (!another).then(|| Wrong::new(offset, Damage::OtherRun(found.seed), None));
        }
        if self.layout.seed && own == Some(false) {
            return Some(Wrong::new(offset, Damage::OtherRun(found.seed), None));
        }
        let (first, last) = (*known.range.start(), *known.range.end());
        let written = found.seed & WRITES;
        let seed_fits = !self.layout.seed || (first..=last).contains(&written);
        let within = u64::from(found.number.wrapping_sub(number(first))) <= last - first;
        if !seed_fits || self.layout.sequence && !within {
            let damage = Damage::Stale {
                found: match self.layout.seed {
                    true => written,
                    false => u64::from(found.number) + 1,
                },
                expected: known.likely,
            };
            return Some(Wrong::new(offset, damage, None));
        }
        None
    }

    /// An interval with this header as it was written here.
    fn made_again(&self, piece: &[u8], found: &Found, offset: u64) -> Vec<u8> {
        let mut made = vec![0; piece.len()];
        if let Some(pattern) = &self.layout.pattern {
            // The place of the interval in its block is not known; most blocks have but one.
            pattern::fill(pattern, self.pattern_interval, offset, &mut made);
        }
        self.stamp_interval(&mut made, found);
        self.turn(&mut made);
        made
    }

    /// Finds out what happened to an interval that is damaged.
    fn diagnose(&self, piece: &[u8], found: &Found, expected: &Expected, offset: u64) -> Wrong {
        if piece.iter().all(|b| *b == 0) {
            return Wrong::new(offset, Damage::Zeroed, None);
        }
        let candidates = self.candidates(piece, found, expected, offset).into_iter();
        let made = candidates.map(|head| self.made_again(piece, &head, head.offset));
        let (damage, byte) = nearest(piece, made);
        match damage {
            Damage::Foreign if found.sound && found.length as usize != piece.len() => {
                let (found, expected) = (found.length, piece.len() as u32);
                Wrong::new(offset, Damage::Length { found, expected }, None)
            }
            Damage::Foreign if found.sound && found.kind != kind(self.layout.checksum) => {
                Wrong::new(offset, Damage::OtherKind(found.kind), None)
            }
            Damage::Foreign if found.sound => {
                Wrong::new(offset, Damage::Sum(self.layout.checksum.name()), None)
            }
            Damage::Foreign => Wrong::new(offset, Damage::Foreign, None),
            damage => Wrong::new(offset, damage, byte),
        }
    }

    /// Candidates for the header of a damaged interval: its own if that is sound or differs from a
    /// sound one by a bit, and the expected one.
    fn candidates(
        &self,
        piece: &[u8],
        found: &Found,
        expected: &Expected,
        offset: u64,
    ) -> Vec<Found> {
        let read = |head: &[u8; HEADER]| Some(Found::read(head)).filter(|found| found.sound);
        let mut all = match piece.first_chunk() {
            _ if found.sound => vec![*found],
            Some(head) => sound_heads(*head, read),
            None => Vec::new(),
        };
        if let (Some(run), Some(known)) = (expected.run, &expected.generations) {
            all.push(self.head(&BlockHeader {
                run,
                file: expected.file,
                offset,
                generation: known.likely,
                worker: known.worker,
            }));
        }
        all
    }

    /// With the block as it should be, where that is to be put into a file.
    fn with_right(&self, wrong: Wrong, block: &[u8], expected: &Expected) -> Wrong {
        if !self.dump {
            return wrong;
        }
        let mut right = block.to_vec();
        let first = right.len().min(self.interval);
        self.turn(&mut right[..first]);
        let found = Found::read(&right);
        let known = expected.generations.as_ref();
        let head = match (expected.run, known) {
            (Some(run), Some(known)) => Found {
                seed: tag(run, expected.file) | known.likely & WRITES,
                thread: thread(known.worker),
                number: number(known.likely),
                ..found
            },
            _ => found,
        };
        let head = Found {
            kind: kind(self.layout.checksum),
            offset: expected.offset,
            ..head
        };
        self.make(&mut right, head);
        // The interval is wrong.
        let at = (wrong.offset - expected.offset) as usize;
        right.drain(..at.min(block.len()));
        right.truncate(self.interval);
        Wrong { right, ..wrong }
    }
}

#[cfg(test)]
mod tests;
