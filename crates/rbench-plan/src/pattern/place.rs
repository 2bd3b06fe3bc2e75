//! Where the operations on one file go, and the directions of a mix.

use rbench_core::random::Stream;

use super::draw::Choice;
use super::tiles::{self, Tiles};
use super::{Rules, STREAM_MIX, STREAM_ORDER, STREAM_SCATTER, Step, Walk};
use crate::jobs::{BlockSizes, Each};
use crate::permutation::Permutation;

/// Operations over which the share of reads is exact.
const HUNDRED: u64 = 100;

/// Directions of a mix: of every hundred operations exactly `mix_read` read,
/// in random places.
#[derive(Debug, Clone)]
pub struct Mixer {
    seed: u64,
    jobnum: u64,
    hundred: u64,
    order: Permutation,
}

impl Mixer {
    pub fn new(seed: u64, jobnum: u64) -> Mixer {
        Mixer {
            seed,
            jobnum,
            hundred: 0,
            order: Permutation::new(HUNDRED, &[seed, jobnum, STREAM_MIX, 0]),
        }
    }

    /// Whether the operation with this number writes.
    #[inline]
    pub fn write(&mut self, number: u64, reads: u32) -> bool {
        let hundred = number / HUNDRED;
        if hundred != self.hundred {
            self.hundred = hundred;
            self.order = Permutation::new(HUNDRED, &[self.seed, self.jobnum, STREAM_MIX, hundred]);
        }
        self.order.at(number % HUNDRED) >= u64::from(reads)
    }
}

/// Blocks of a file, each once.
#[derive(Debug, Clone)]
enum Cover {
    Blocks {
        order: Permutation,
        next: u64,
        bytes: u64,
    },
    Tiles(Tiles),
}

impl Cover {
    fn new(sizes: &BlockSizes, region: u64, parts: &[u64]) -> Cover {
        match sizes {
            BlockSizes::Fixed(bytes) => Cover::Blocks {
                order: Permutation::new(region.div_ceil(*bytes).max(1), parts),
                next: 0,
                bytes: *bytes,
            },
            _ => Cover::Tiles(Tiles::new(sizes, region, parts)),
        }
    }

    /// Offset and length of the next block, the length not cut to the region.
    #[inline]
    fn step(&mut self, sizes: &BlockSizes, region: u64, scratch: &mut Vec<u64>) -> (u64, u64) {
        match self {
            Cover::Blocks { order, next, bytes } => {
                if *next >= region.div_ceil(*bytes) {
                    *next = 0;
                }
                let index = order.at(*next);
                *next += 1;
                (index * *bytes, *bytes)
            }
            Cover::Tiles(tiles) => tiles.step(sizes, scratch),
        }
    }
}

/// A file that operations go to, in one round over the files.
#[derive(Debug, Clone)]
pub struct Active {
    file: u64,
    region: u64,
    /// Bytes of it that this round has still to move.
    left: u64,
    /// Where each direction goes on.
    next: Each<u64>,
    cover: Each<Option<Cover>>,
    /// Spreads the favourites of a skewed distribution over the file.
    scatter: Option<Permutation>,
}

impl Active {
    pub fn new(rules: &Rules, file: u64, region: u64, round: u64) -> Active {
        let cover = |write: u64, walk: Walk, sizes: &BlockSizes| {
            let parts = [rules.seed, rules.jobnum, STREAM_ORDER, file, round, write];
            (walk == Walk::Cover).then(|| Cover::new(sizes, region, &parts))
        };
        let Each { read, write } = &rules.sizes;
        let mixed = rules.mix.is_some();
        let reads = mixed || !rules.writes;
        let own_writes = rules.writes && !(mixed && rules.together);
        let free = |walk| matches!(walk, Walk::Free(_));
        let align = rules.align.read.min(rules.align.write).max(1);
        Active {
            file,
            region,
            left: region,
            next: Each::default(),
            cover: Each {
                read: if reads {
                    cover(0, rules.walk.read, read)
                } else {
                    None
                },
                write: if own_writes {
                    cover(1, rules.walk.write, write)
                } else {
                    None
                },
            },
            // The same for all workers, so that they favour the same blocks
            // of a file they share.
            scatter: (free(rules.walk.read) || free(rules.walk.write)).then(|| {
                Permutation::new((region / align).max(1), &[rules.seed, STREAM_SCATTER, file])
            }),
        }
    }

    /// Whether this round has nothing left to do here.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// The next operation on the file.
    #[inline]
    pub fn step(
        &mut self,
        rules: &Rules,
        write: bool,
        choice: &mut Choice,
        stream: &mut Stream,
        scratch: &mut Vec<u64>,
    ) -> Step {
        let (sizes, walk, align) = if write {
            (&rules.sizes.write, rules.walk.write, rules.align.write)
        } else {
            (&rules.sizes.read, rules.walk.read, rules.align.read)
        };
        let region = self.region;
        let (offset, length) = match walk {
            Walk::Cover => {
                let own = if write && self.cover.write.is_some() {
                    &mut self.cover.write
                } else {
                    &mut self.cover.read
                };
                match own {
                    Some(cover) => cover.step(sizes, region, scratch),
                    None => (0, size(sizes, stream)),
                }
            }
            Walk::Free(percent) if percent >= 100 || stream.below(100) < u64::from(percent) => {
                let length = size(sizes, stream).min(region);
                let align = align.max(1);
                let places = (region - length) / align + 1;
                let scatter = self.scatter.as_ref();
                let place = choice.draw(region / align, scatter, stream);
                (place.min(places - 1) * align, length)
            }
            Walk::Ascending | Walk::Free(_) => {
                let at = if write {
                    self.next.write
                } else {
                    self.next.read
                };
                let at = if at >= region { 0 } else { at };
                (at, size(sizes, stream))
            }
        };
        let length = length.min(region - offset).min(self.left);
        let next = if write {
            &mut self.next.write
        } else {
            &mut self.next.read
        };
        *next = offset + length;
        self.left -= length;
        Step {
            write,
            file: self.file,
            offset: rules.start + offset,
            length,
            ends_file: self.left == 0,
            ends_pass: false,
        }
    }
}

#[inline]
fn size(sizes: &BlockSizes, stream: &mut Stream) -> u64 {
    match sizes {
        BlockSizes::Fixed(bytes) => *bytes,
        mixed => tiles::draw(mixed, stream.next_u64()),
    }
}
