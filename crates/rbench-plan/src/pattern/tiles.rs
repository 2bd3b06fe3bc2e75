//! Blocks of mixed sizes that cover a file: every byte once, in random order, without
//! a bitmap.
//!
//! The file is cut into groups of [`group`] bytes. A draw that depends on the group's
//! number cuts each into blocks, and shortens the last one to the rest. It is
//! repeated whenever it is needed. Round r visits block π(r) of every group with
//! enough blocks. Each group has its own permutation of blocks, and each round its
//! own permutation of groups.

use rbench_core::random::{Stream, key, mix};

use super::{largest, mean, smallest};
use crate::jobs::BlockSizes;
use crate::permutation::Permutation;

/// Average number of blocks of a group.
const BLOCKS: f64 = 64.0;

/// Number of draws after which the rest of a group is cut into the largest blocks. As
/// a split has shares in whole per cent, four of the largest blocks were drawn long
/// before.
const DRAWN_MAX: u64 = 4096;

/// Bytes of a group: about 64 blocks, with room for four of the largest.
pub fn group(sizes: &BlockSizes) -> u64 {
    let unit = smallest(sizes).max(1);
    let wanted = ((mean(sizes) * BLOCKS) as u64).max(4 * largest(sizes));
    wanted.next_multiple_of(unit)
}

/// Most blocks of a group.
pub fn most(sizes: &BlockSizes) -> u64 {
    let group = group(sizes);
    let smallest = group / smallest(sizes).max(1);
    smallest.min(DRAWN_MAX + group.div_ceil(largest(sizes).max(1))) + 1
}

/// Progress of a cover.
#[derive(Debug, Clone)]
pub struct Tiles {
    key: u64,
    group: u64,
    groups: u64,
    region: u64,
    order: Permutation,
    next: u64,
    round: u64,
}

impl Tiles {
    /// The cover of `region` bytes for `parts`.
    pub fn new(sizes: &BlockSizes, region: u64, parts: &[u64]) -> Tiles {
        let group = group(sizes);
        let groups = region.div_ceil(group).max(1);
        let key = key(parts);
        Tiles {
            key,
            group,
            groups,
            region,
            order: Permutation::new(groups, &[key, 0]),
            next: 0,
            round: 0,
        }
    }

    /// Offset and length of the next block; `offsets` is scratch space.
    pub fn step(&mut self, sizes: &BlockSizes, offsets: &mut Vec<u64>) -> (u64, u64) {
        loop {
            if self.next == self.groups {
                self.next = 0;
                self.round += 1;
                if self.round > most(sizes) {
                    // Everything was visited: start again.
                    self.round = 0;
                }
                self.order = Permutation::new(self.groups, &[self.key, self.round]);
            }
            let number = self.order.at(self.next);
            self.next += 1;
            let start = number * self.group;
            let length = self.group.min(self.region - start);
            let own = mix(self.key ^ mix(number));
            cut(sizes, own, length, offsets);
            let blocks = offsets.len() as u64;
            if self.round < blocks {
                let block = Permutation::new(blocks, &[own]).at(self.round) as usize;
                let end = offsets.get(block + 1).copied().unwrap_or(length);
                return (start + offsets[block], end - offsets[block]);
            }
        }
    }
}

/// Cuts a group of `length` bytes into blocks, and stores their offsets.
fn cut(sizes: &BlockSizes, own: u64, length: u64, offsets: &mut Vec<u64>) {
    offsets.clear();
    let (mut at, mut nth) = (0, 0);
    while at < length {
        offsets.push(at);
        at += match nth {
            ..DRAWN_MAX => draw(sizes, mix(own ^ nth)),
            _ => largest(sizes),
        }
        .max(1);
        nth += 1;
    }
}

/// A block size from 64 random bits.
#[inline]
pub fn draw(sizes: &BlockSizes, bits: u64) -> u64 {
    let below = |bound: u64| ((u128::from(bits) * u128::from(bound)) >> 64) as u64;
    match sizes {
        BlockSizes::Fixed(bytes) => *bytes,
        BlockSizes::Range { min, max } => {
            let unit = (*min).max(1);
            unit * (1 + below((max / unit).max(1)))
        }
        BlockSizes::Unaligned { min, max } => min + below(max - min + 1),
        BlockSizes::Split(parts) => {
            let weight: u32 = parts.iter().map(|(_, percent)| percent).sum();
            let mut left = below(u64::from(weight.max(1)));
            for (bytes, percent) in parts {
                let percent = u64::from(*percent);
                if left < percent {
                    return *bytes;
                }
                left -= percent;
            }
            parts.last().map_or(1, |(bytes, _)| *bytes)
        }
    }
}

/// The size of the next block.
#[inline]
pub(super) fn size(sizes: &BlockSizes, stream: &mut Stream) -> u64 {
    match sizes {
        BlockSizes::Fixed(bytes) => *bytes,
        mixed => draw(mixed, stream.next_u64()),
    }
}
