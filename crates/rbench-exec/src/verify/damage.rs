//! Kinds of damage of a block that was read, and the difference between a damaged block and the
//! expected one.

use std::fmt;

use rbench_core::units::counted;

const SECTOR: usize = 512;
/// Bytes that are compared at once.
const WORD: usize = 8;
/// Up to this many wrong bits are called flipped bits.
const FLIPPED_MAX: u32 = 16;

/// The damage of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// All bytes are zero.
    Zeroed,
    /// A whole block of another run.
    OtherRun(u64),
    /// A whole block that belongs elsewhere.
    Misplaced {
        /// The file it belongs to.
        file: u64,
        /// The offset it belongs to.
        offset: u64,
    },
    /// A whole block of an earlier (or later) write.
    Stale {
        /// The generation found.
        found: u64,
        /// The newest possible.
        expected: u64,
    },
    /// A few bits differ.
    Flipped {
        /// Number of bits.
        bits: u32,
        /// The first byte that differs, within the block.
        first: usize,
    },
    /// Whole sectors are zero, the others right.
    PartlyZeroed {
        /// The first such byte, within the block.
        first: usize,
    },
    /// Some sectors hold other data, the others are right.
    Torn {
        /// The first byte that differs, within the block.
        first: usize,
        /// The last one.
        last: usize,
    },
    /// Nothing of it is right.
    Foreign,
    /// The header is sound, and the data is not what this checksum says.
    Sum(&'static str),
    /// The header is sound, and of another kind of `verify`, by fio's number.
    OtherKind(u16),
    /// The header is sound, and for an interval of another length, bytes.
    Length {
        /// The length in the header.
        found: u32,
        /// The expected length.
        expected: u32,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Zeroed => write!(f, "zeroed: every byte is 0"),
            Damage::OtherRun(run) => write!(f, "stale: a block of another run ({run:016x})"),
            Damage::Misplaced { file, offset } => {
                write!(f, "misplaced: the block of file {file} at offset {offset}")
            }
            Damage::Stale { found, expected } => {
                write!(
                    f,
                    "stale: generation {found:#x} found, {expected:#x} expected"
                )
            }
            Damage::Flipped { bits, first } => {
                let bits = counted(u64::from(*bits), "bit");
                write!(f, "flipped: {bits}, the first in byte {first}")
            }
            Damage::PartlyZeroed { first } => write!(f, "partly zeroed: from byte {first} on"),
            Damage::Torn { first, last } => {
                write!(f, "torn: bytes {first} to {last} hold other data")
            }
            Damage::Sum(checksum) => {
                write!(
                    f,
                    "damaged data: it does not match the {checksum} in its header"
                )
            }
            Damage::OtherKind(kind) => {
                write!(
                    f,
                    "written with another verify: its header is of type {kind}"
                )
            }
            Damage::Length { found, expected } => {
                write!(
                    f,
                    "written with other intervals: its header is for {found} bytes, expected {expected}"
                )
            }
            Damage::Foreign => write!(f, "foreign: no part of it was written by this run"),
        }
    }
}

/// The difference between a block and the expected one.
pub(crate) struct Difference {
    /// Bits that differ.
    pub(crate) bits: u32,
    first: usize,
    last: usize,
    right_sectors: usize,
    wrong_are_zero: bool,
}

impl Difference {
    /// The most likely damage.
    pub(crate) fn damage(&self) -> Damage {
        let (first, last) = (self.first, self.last);
        if self.bits <= FLIPPED_MAX {
            let bits = self.bits;
            Damage::Flipped { bits, first }
        } else if self.right_sectors == 0 {
            Damage::Foreign
        } else if self.wrong_are_zero {
            Damage::PartlyZeroed { first }
        } else {
            Damage::Torn { first, last }
        }
    }
}

/// Compares a block with what it should be.
pub(crate) fn compare(found: &[u8], right: &[u8]) -> Difference {
    let mut d = Difference {
        bits: 0,
        first: 0,
        last: 0,
        right_sectors: 0,
        wrong_are_zero: true,
    };
    for (sector, (f, r)) in found.chunks(SECTOR).zip(right.chunks(SECTOR)).enumerate() {
        if f == r {
            d.right_sectors += 1;
            continue;
        }
        d.wrong_are_zero &= f.iter().all(|b| *b == 0);
        for (word, (f, r)) in f.chunks(WORD).zip(r.chunks(WORD)).enumerate() {
            let wrong = number(f) ^ number(r);
            if wrong == 0 {
                continue;
            }
            let place = sector * SECTOR + word * WORD;
            if d.bits == 0 {
                d.first = place + wrong.trailing_zeros() as usize / 8;
            }
            d.last = place + wrong.ilog2() as usize / 8;
            d.bits += wrong.count_ones();
        }
    }
    d
}

/// At most a word of bytes as a number, the first byte lowest.
fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; WORD];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}
