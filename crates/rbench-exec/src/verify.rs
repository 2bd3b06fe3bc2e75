//! The header of verified blocks of `rbench io`. Each interval names its run, file, offset and
//! write, and has a checksum of itself and its data. Swapped, stale, torn, zeroed and flipped
//! blocks are distinguished this way. The data derives from the header: damaged data can be
//! compared with the original.
//!
//! This layout is our own. Blocks of jobs have fio's (`fio`); [`Marks`] is either.

use std::fmt;
use std::ops::RangeInclusive;

use rbench_core::random::key;
use rbench_plan::jobs::{BufferContent, Carries, JobPlan};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::data;

mod damage;
mod fio;
mod packets;
mod pattern;
mod speed;
mod sums;

pub use damage::Damage;
pub(crate) use damage::compare;
pub use fio::FioHeaders;
pub use packets::Packets;
pub use speed::bytes_per_s;
pub(crate) use sums::crc32c as fio_crc;

/// Bits below the phase number in a generation of `rbench io`: the number of the write among those
/// of its worker in the phase, which distinguishes every write of a block.
pub const WRITE_BITS: u32 = 32;

/// Bits of the phase number below the number of the pass over all phases.
pub const STEP_BITS: u32 = 16;

/// First word of a header.
const MAGIC: u64 = u64::from_le_bytes(*b"rbB\0\0\0\0\0");
/// Bytes of the header that the check of the header covers.
const FIELDS: usize = 48;
/// Offset of the checksum of header and data, XXH3 with 64 bits. With it a header is a cache line,
/// within which no kernel changes from one content of a block to another ([`crate::ack::judge`]).
const SUM: usize = 56;
/// The kind of checksum, for the header.
const KIND: u64 = 3;

/// Writer of an interval, and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockHeader {
    /// The run.
    pub run: u64,
    /// Key of the file's name.
    pub file: u64,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Generation. Of a job: the worker's writes until now, this one included. Of `rbench io`: the
    /// number of the phase, and below it of the write in it.
    pub generation: u64,
    /// The worker of a job; 0 with `rbench io`, whose generations are those of all
    /// workers.
    pub worker: u64,
}

/// Valid headers of an interval.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The run; `None`: any.
    pub run: Option<u64>,
    /// Key of the file's name.
    pub file: u64,
    /// Offset of the block in the file, bytes.
    pub offset: u64,
    /// Valid generations, if known.
    pub generations: Option<Generations>,
}

impl Expected {
    /// Accepts exactly this header.
    pub fn of(header: &BlockHeader) -> Expected {
        Expected {
            run: Some(header.run),
            file: header.file,
            offset: header.offset,
            generations: Some(Generations {
                worker: header.worker,
                mask: u64::MAX,
                range: header.generation..=header.generation,
                likely: header.generation,
            }),
        }
    }
}

/// The valid generations of a worker's blocks; those of others are unknown.
#[derive(Debug, Clone)]
pub struct Generations {
    /// The worker.
    pub worker: u64,
    /// The bits that distinguish it from others.
    pub mask: u64,
    /// Range of its generations.
    pub range: RangeInclusive<u64>,
    /// The most likely generation.
    pub likely: u64,
}

/// Damage of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Offset of the interval in the file, bytes.
    pub offset: u64,
    /// Kind of damage.
    pub damage: Damage,
    /// Set if it is misplaced from within the same file.
    same_file: bool,
    /// The first wrong byte: found and expected value.
    byte: Option<(u8, u8)>,
    /// The whole correct block on request; else empty.
    pub right: Vec<u8>,
}

impl Wrong {
    /// Damage of an interval of the same file.
    fn new(offset: u64, damage: Damage, byte: Option<(u8, u8)>) -> Wrong {
        Wrong {
            offset,
            damage,
            same_file: true,
            byte,
            right: Vec::new(),
        }
    }

    /// The most likely damage of `found`, at `offset` of the file, which should be `right`.
    fn between(offset: u64, found: &[u8], right: &[u8]) -> Wrong {
        let damage = match found.iter().all(|b| *b == 0) {
            true => Damage::Zeroed,
            false => compare(found, right).damage(),
        };
        Wrong::new(offset, damage, first_byte(found, right))
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at offset {}: ", self.offset)?;
        match &self.damage {
            Damage::Misplaced { offset, .. } if self.same_file => {
                let expected = self.offset;
                write!(
                    f,
                    "misplaced: found the block of offset {offset}, expected that of {expected}"
                )?;
            }
            Damage::Misplaced { offset, .. } => {
                write!(
                    f,
                    "misplaced: found the block of offset {offset} of another file"
                )?;
            }
            damage => write!(f, "{damage}")?,
        }
        match self.byte {
            Some((found, expected)) => {
                write!(f, "; found {found:#04x} there, expected {expected:#04x}")
            }
            None => Ok(()),
        }
    }
}

/// Puts headers into blocks and checks them.
#[derive(Debug, Clone)]
pub struct Headers {
    interval: usize,
    content: BufferContent,
}

/// Writer and checker of the marks that identify blocks.
#[derive(Debug, Clone)]
pub enum Marks {
    /// The stamps of `rbench io`.
    Own(Headers),
    /// fio's headers, checksums and patterns.
    Fio(FioHeaders),
    /// Data that follows from its place.
    Packets(Packets),
}

impl Marks {
    /// Creates the marks of a verifying job that uses the part of the worker `owner`; `None` for
    /// other jobs.
    pub fn new(job: &JobPlan, owner: u64) -> Option<Marks> {
        let verify = job.verify.as_ref()?;
        Some(match &verify.carries {
            Carries::Stamps => Marks::Own(Headers::every(verify.interval)),
            Carries::Fio(layout) => {
                Marks::Fio(FioHeaders::new(job, layout, verify.interval, verify.dump))
            }
            Carries::Packet { packet, seed } => Marks::Packets(Packets::new(*packet, *seed, owner)),
        })
    }

    /// Fills `block`, to be written to `header.offset`.
    pub fn stamp(&self, block: &mut [u8], header: &BlockHeader) {
        match self {
            Marks::Own(headers) => headers.stamp(block, header),
            Marks::Fio(headers) => headers.stamp(block, header),
            Marks::Packets(packets) => packets.fill(block, header.offset),
        }
    }

    /// Checks a block that was read from `expected.offset`.
    ///
    /// # Errors
    /// The damage of its first wrong interval.
    pub fn check(&self, block: &[u8], expected: &Expected) -> Result<(), Wrong> {
        match self {
            Marks::Own(headers) => headers.check(block, expected),
            Marks::Fio(headers) => headers.check(block, expected),
            Marks::Packets(packets) => packets.check(block, expected.offset),
        }
    }
}

/// Returns the key of a file's name, whatever directory it is in.
pub fn file_key(name: &str) -> u64 {
    xxh3_64(name.as_bytes())
}

/// The headers of a phase of `rbench io`.
#[derive(Debug, Clone)]
pub struct Stamps {
    /// Writes and checks headers.
    pub headers: Headers,
    /// The run.
    pub run: u64,
    /// The generation of writes, without the number of the write.
    pub writes: u64,
    /// The valid generations of blocks that are read.
    pub reads: RangeInclusive<u64>,
}

impl Stamps {
    /// Fills `block` at `offset` of the file with that number.
    pub fn stamp(&self, block: &mut [u8], file: u64, offset: u64, generation: u64) {
        let header = BlockHeader {
            run: self.run,
            file,
            offset,
            generation,
            worker: 0,
        };
        self.headers.stamp(block, &header);
    }

    /// Returns the generation of the `nth` write of a worker.
    pub fn generation(&self, nth: u64) -> u64 {
        self.writes | nth.min(u64::from(u32::MAX))
    }

    /// Returns the valid headers of a block at `offset` of that file.
    pub fn expected(&self, file: u64, offset: u64) -> Expected {
        Expected {
            run: Some(self.run),
            file,
            offset,
            generations: Some(Generations {
                worker: 0,
                mask: 0,
                range: self.reads.clone(),
                likely: *self.reads.end(),
            }),
        }
    }
}

/// Returns the checksum of `head` and `data`.
fn sum(head: &[u8], data: &[u8]) -> u64 {
    let mut state = Xxh3::new();
    state.update(head);
    state.update(data);
    state.digest()
}

fn word(bytes: &[u8], index: usize) -> u64 {
    bytes
        .get(index * 8..)
        .and_then(|b| b.first_chunk::<8>())
        .map_or(0, |b| u64::from_le_bytes(*b))
}

impl Headers {
    /// Length of a header in bytes.
    pub(crate) const LENGTH: usize = SUM + 8;

    /// Creates the headers of `rbench io --verify`: one for every `interval` bytes, with
    /// incompressible data.
    pub fn every(interval: u64) -> Headers {
        Headers {
            interval: usize::try_from(interval).unwrap_or(usize::MAX).max(1),
            content: BufferContent::Random {
                percent: 0,
                chunk: 0,
                pattern: Vec::new(),
            },
        }
    }

    /// Reads the header of an interval; `None` if any bit of it is wrong.
    pub(crate) fn read(&self, piece: &[u8]) -> Option<BlockHeader> {
        (piece.len() >= Headers::LENGTH && is_whole(piece)).then(|| claimed(piece))
    }

    /// Fills `block`, to be written to `header.offset`.
    pub fn stamp(&self, block: &mut [u8], header: &BlockHeader) {
        let mut offset = header.offset;
        for piece in block.chunks_mut(self.interval) {
            self.stamp_interval(piece, &BlockHeader { offset, ..*header });
            // Any offset may be requested; no file is that long.
            offset = offset.saturating_add(piece.len() as u64);
        }
    }

    fn stamp_interval(&self, piece: &mut [u8], header: &BlockHeader) {
        let BlockHeader {
            run,
            file,
            offset,
            generation,
            worker,
        } = *header;
        let length = piece.len() as u64;
        if piece.len() < Headers::LENGTH {
            // The rest of a file after its last whole interval.
            data::fill(&self.content, key(&[run, file, offset, generation]), piece);
            return;
        }
        let (head, rest) = piece.split_at_mut(Headers::LENGTH);
        data::fill(
            &self.content,
            key(&[run, file, offset, generation, worker]),
            rest,
        );
        head.fill(0);
        let words = [first_word(length), run, file, offset, generation, worker];
        for (place, word) in head.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let check = xxh3_64(&head[..FIELDS]).to_le_bytes();
        head[FIELDS..SUM].copy_from_slice(&check);
        let sum = sum(&head[..SUM], rest).to_le_bytes();
        head[SUM..].copy_from_slice(&sum);
    }

    /// Checks a block that was read from `expected.offset`.
    ///
    /// # Errors
    /// The damage of its first wrong interval.
    pub fn check(&self, block: &[u8], expected: &Expected) -> Result<(), Wrong> {
        let mut offset = expected.offset;
        for piece in block.chunks(self.interval) {
            if piece.len() >= Headers::LENGTH {
                self.check_interval(piece, expected, offset)?;
            }
            // Any offset may be requested; no file is that long.
            offset = offset.saturating_add(piece.len() as u64);
        }
        Ok(())
    }

    fn check_interval(&self, piece: &[u8], expected: &Expected, offset: u64) -> Result<(), Wrong> {
        if !is_whole(piece) {
            return Err(self.diagnose(piece, expected, offset));
        }
        let found = claimed(piece);
        match mistaken(&found, expected, offset) {
            None => Ok(()),
            Some(damage) => Err(Wrong {
                same_file: found.file == expected.file,
                ..Wrong::new(offset, damage, None)
            }),
        }
    }

    /// Determines the damage of an interval whose checksum is wrong.
    fn diagnose(&self, piece: &[u8], expected: &Expected, offset: u64) -> Wrong {
        if piece.iter().all(|b| *b == 0) {
            return Wrong::new(offset, Damage::Zeroed, None);
        }
        let made = |candidate| {
            let mut right = vec![0; piece.len()];
            self.stamp_interval(&mut right, &candidate);
            right
        };
        let all = candidates(piece, expected, offset).into_iter();
        let (damage, byte) = nearest(piece, all.map(made));
        Wrong::new(offset, damage, byte)
    }
}

/// The damage of an interval, by the nearest of its possible originals, and the first wrong byte.
fn nearest(piece: &[u8], originals: impl Iterator<Item = Vec<u8>>) -> (Damage, Option<(u8, u8)>) {
    let all = originals.map(|right| (compare(piece, &right), first_byte(piece, &right)));
    match all.min_by_key(|(difference, _)| difference.bits) {
        Some((difference, byte)) if difference.damage() != Damage::Foreign => {
            (difference.damage(), byte)
        }
        _ => (Damage::Foreign, None),
    }
}

/// Decodes the header of an interval, valid or not.
pub(crate) fn claimed(piece: &[u8]) -> BlockHeader {
    BlockHeader {
        run: word(piece, 1),
        file: word(piece, 2),
        offset: word(piece, 3),
        generation: word(piece, 4),
        worker: word(piece, 5),
    }
}

/// Returns why an intact interval is not the expected one.
fn mistaken(found: &BlockHeader, expected: &Expected, offset: u64) -> Option<Damage> {
    if (found.file, found.offset) != (expected.file, offset) {
        return Some(Damage::Misplaced {
            file: found.file,
            offset: found.offset,
        });
    }
    if expected.run.is_some_and(|run| run != found.run) {
        return Some(Damage::OtherRun(found.run));
    }
    match &expected.generations {
        Some(Generations {
            worker,
            mask,
            range,
            likely,
        }) if found.worker & mask == *worker && !range.contains(&found.generation) => {
            Some(Damage::Stale {
                found: found.generation,
                expected: *likely,
            })
        }
        _ => None,
    }
}

/// Returns the possible originals of a damaged interval: the expected header, and its own if that
/// is sound or differs from a sound one by a bit.
fn candidates(piece: &[u8], expected: &Expected, offset: u64) -> Vec<BlockHeader> {
    let sound = |head: &[u8; SUM]| word(head, FIELDS / 8) == xxh3_64(&head[..FIELDS]);
    let read = |head: &[u8; SUM]| sound(head).then(|| claimed(head));
    let head = piece.first_chunk();
    let mut all = head.map_or_else(Vec::new, |head| sound_heads(*head, read));
    if let (Some(run), Some(known)) = (expected.run, &expected.generations) {
        let of_generation = |generation| BlockHeader {
            run,
            file: expected.file,
            offset,
            generation,
            worker: known.worker,
        };
        // Its own generation, if that is possible.
        let said = claimed(piece).generation;
        if known.range.contains(&said) {
            all.push(of_generation(said));
        }
        all.push(of_generation(known.likely));
    }
    all
}

/// Returns what `read` makes of a header, or of the sound ones that differ from it by a bit.
fn sound_heads<T, const N: usize>(
    mut head: [u8; N],
    read: impl Fn(&[u8; N]) -> Option<T>,
) -> Vec<T> {
    if let Some(sound) = read(&head) {
        return vec![sound];
    }
    let flipped = |bit: usize| {
        head[bit / 8] ^= 1 << (bit % 8);
        let found = read(&head);
        head[bit / 8] ^= 1 << (bit % 8);
        found
    };
    (0..N * 8).filter_map(flipped).collect()
}

fn first_byte(found: &[u8], right: &[u8]) -> Option<(u8, u8)> {
    let mut sectors = found.chunks(512).zip(right.chunks(512));
    let (found, right) = sectors.find(|(f, r)| f != r)?;
    let mut both = found.iter().zip(right);
    both.find(|(f, r)| f != r).map(|(f, r)| (*f, *r))
}

/// Returns the magic, the kind of the checksum and the length in bytes (if it fits in 32 bits).
fn first_word(length: u64) -> u64 {
    MAGIC | KIND << 24 | length << 32
}

fn is_whole(piece: &[u8]) -> bool {
    let (head, rest) = piece.split_at(Headers::LENGTH);
    word(head, 0) == first_word(piece.len() as u64)
        && word(head, FIELDS / 8) == xxh3_64(&head[..FIELDS])
        && word(head, SUM / 8) == sum(&head[..SUM], rest)
}

#[cfg(test)]
mod tests;
