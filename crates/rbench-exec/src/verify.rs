//! The stamp of `--verify`: each block says which run wrote it, into which
//! file, at which offset, as which generation, and carries a checksum, so
//! that swapped, stale, torn, zeroed and flipped blocks are told apart.
//!
//! A block is 64 bytes of stamp and incompressible data that derive from it,
//! so a damaged block can be compared with what it should be.

use std::fmt;
use std::ops::RangeInclusive;

use rbench_core::random::{DataStream, key};
use xxhash_rust::xxh3::Xxh3;

/// Bits below the phase number in a generation: the number of the write among
/// those of its worker in the phase, which tells every write of a block from any
/// other.
pub const WRITE_BITS: u32 = 32;

/// Bits of the phase number below the number of the pass over all phases.
pub const STEP_BITS: u32 = 16;

/// Length of the stamp in bytes.
pub(crate) const STAMP: usize = 64;
/// The words of the stamp that the checksum covers with the data.
const SUMMED: usize = 48;
const MAGIC: u64 = u64::from_le_bytes(*b"rbenchV1");
const SECTOR: usize = 512;
/// Up to so many wrong bits are called flipped bits.
const FLIPPED_MAX: u32 = 16;

/// What a block says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The run.
    pub run: u64,
    /// The file within the run.
    pub file: u64,
    /// Offset of the block in the file, in bytes.
    pub offset: u64,
    /// Number of the write phase and, below it, of the write.
    pub generation: u64,
}

/// What a block should be when it is read.
#[derive(Debug, Clone)]
pub struct Expected {
    /// Run, file and offset; the generation is the newest possible.
    pub identity: Identity,
    /// The generations it may have.
    pub generations: RangeInclusive<u64>,
}

/// What is wrong with a block.
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
        /// How many.
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
                write!(f, "flipped: {bits} bits, the first in byte {first}")
            }
            Damage::PartlyZeroed { first } => write!(f, "partly zeroed: from byte {first} on"),
            Damage::Torn { first, last } => {
                write!(f, "torn: bytes {first} to {last} hold other data")
            }
            Damage::Foreign => write!(f, "foreign: no part of it was written by this run"),
        }
    }
}

/// Fills `block` (at least [`rbench_plan::io::VERIFY_BLOCK_MIN`] bytes) with
/// the stamp of `identity` and its data.
pub fn stamp(block: &mut [u8], identity: &Identity) {
    let (head, data) = block.split_at_mut(STAMP);
    DataStream::for_block(data_key(identity)).fill(data);
    let Identity {
        run,
        file,
        offset,
        generation,
    } = *identity;
    let words = [
        MAGIC,
        run,
        file,
        offset,
        generation,
        (STAMP + data.len()) as u64,
        0,
        0,
    ];
    for (place, word) in head.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let sum = checksum(&head[..SUMMED], data);
    head[SUMMED..SUMMED + 8].copy_from_slice(&sum.to_le_bytes());
}

fn data_key(identity: &Identity) -> u64 {
    let Identity {
        run,
        file,
        offset,
        generation,
    } = *identity;
    key(&[run, file, offset, generation])
}

fn checksum(head: &[u8], data: &[u8]) -> u64 {
    let mut state = Xxh3::new();
    state.update(head);
    state.update(data);
    state.digest()
}

fn word(block: &[u8], index: usize) -> u64 {
    block
        .get(index * 8..)
        .and_then(|b| b.first_chunk::<8>())
        .map_or(0, |b| u64::from_le_bytes(*b))
}

/// What the stamp of `block` says, whether it is right or not.
pub(crate) fn claimed(block: &[u8]) -> Identity {
    Identity {
        run: word(block, 1),
        file: word(block, 2),
        offset: word(block, 3),
        generation: word(block, 4),
    }
}

/// What a block says of itself; `None` when any bit of it is wrong.
pub(crate) fn whole(block: &[u8]) -> Option<Identity> {
    let whole = word(block, 0) == MAGIC
        && word(block, 5) == block.len() as u64
        && word(block, 6) == checksum(&block[..SUMMED], &block[STAMP..])
        && word(block, 7) == 0;
    whole.then(|| claimed(block))
}

/// Checks a block that was read.
///
/// # Errors
/// What is wrong with it.
pub fn check(block: &[u8], expected: &Expected) -> Result<(), Damage> {
    let Some(found) = whole(block) else {
        return Err(diagnose(block, &claimed(block), expected));
    };
    let want = &expected.identity;
    if found.run != want.run {
        return Err(Damage::OtherRun(found.run));
    }
    if (found.file, found.offset) != (want.file, want.offset) {
        return Err(Damage::Misplaced {
            file: found.file,
            offset: found.offset,
        });
    }
    if !expected.generations.contains(&found.generation) {
        return Err(Damage::Stale {
            found: found.generation,
            expected: want.generation,
        });
    }
    Ok(())
}

/// Finds out what happened to a block whose checksum is wrong, by comparing
/// it with what it should be.
fn diagnose(block: &[u8], found: &Identity, expected: &Expected) -> Damage {
    if block.iter().all(|b| *b == 0) {
        return Damage::Zeroed;
    }
    let mut candidates = vec![expected.identity];
    if expected.generations.contains(&found.generation) {
        candidates.push(Identity {
            generation: found.generation,
            ..expected.identity
        });
    }
    let mut right = vec![0; block.len()];
    let best = candidates
        .iter()
        .map(|identity| {
            stamp(&mut right, identity);
            compare(block, &right)
        })
        .min_by_key(|difference| difference.bits);
    best.map_or(Damage::Foreign, |difference| difference.damage())
}

/// How a block differs from what it should be.
pub(crate) struct Difference {
    /// Bits that differ.
    pub(crate) bits: u32,
    first: usize,
    last: usize,
    right_sectors: usize,
    wrong_are_zero: bool,
}

impl Difference {
    /// What most likely happened.
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
        for (i, (a, b)) in f.iter().zip(r).enumerate() {
            if a != b {
                d.first = if d.bits == 0 {
                    sector * SECTOR + i
                } else {
                    d.first
                };
                d.last = sector * SECTOR + i;
                d.bits += (a ^ b).count_ones();
            }
        }
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: Identity = Identity {
        run: 0xabc,
        file: 3,
        offset: 8192,
        generation: 1 << 32,
    };

    fn expected() -> Expected {
        Expected {
            identity: ID,
            generations: ID.generation..=ID.generation,
        }
    }

    fn block(identity: Identity) -> Vec<u8> {
        let mut block = vec![0; 4096];
        stamp(&mut block, &identity);
        block
    }

    fn check_damage(change: impl FnOnce(&mut Vec<u8>), expect: &Damage) {
        let mut b = block(ID);
        change(&mut b);
        assert_eq!(check(&b, &expected()).as_ref(), Err(expect));
    }

    #[test]
    fn an_untouched_block_is_right() {
        assert_eq!(check(&block(ID), &expected()), Ok(()));
    }

    #[test]
    fn each_kind_of_damage_is_told_apart() {
        check_damage(|b| b.fill(0), &Damage::Zeroed);
        check_damage(
            |b| b[1000] ^= 4,
            &Damage::Flipped {
                bits: 1,
                first: 1000,
            },
        );
        check_damage(|b| b[3] ^= 4, &Damage::Flipped { bits: 1, first: 3 });
        check_damage(|b| b[60] ^= 1, &Damage::Flipped { bits: 1, first: 60 });
        check_damage(|b| b[2048..].fill(0), &Damage::PartlyZeroed { first: 2048 });
        check_damage(
            |b| *b = block(Identity { run: 1, ..ID }),
            &Damage::OtherRun(1),
        );
        check_damage(
            |b| *b = block(Identity { offset: 0, ..ID }),
            &Damage::Misplaced { file: 3, offset: 0 },
        );
        check_damage(
            |b| *b = block(Identity { file: 4, ..ID }),
            &Damage::Misplaced {
                file: 4,
                offset: 8192,
            },
        );
        let older = Identity {
            generation: 7,
            ..ID
        };
        check_damage(
            |b| *b = block(older),
            &Damage::Stale {
                found: 7,
                expected: 1 << 32,
            },
        );
        let tear = |b: &mut Vec<u8>| b[1024..].copy_from_slice(&block(older)[1024..]);
        let mut torn = block(ID);
        tear(&mut torn);
        assert!(matches!(
            check(&torn, &expected()),
            Err(Damage::Torn {
                first: 1024,
                last: 4090..
            })
        ));
        check_damage(|b| b.fill(0x55), &Damage::Foreign);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]
        #[test]
        fn every_single_flipped_bit_is_found(bit in 0_usize..4096 * 8) {
            let mut b = block(ID);
            b[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(check(&b, &expected()), Err(Damage::Flipped { bits: 1, first: bit / 8 }));
        }
    }
}
