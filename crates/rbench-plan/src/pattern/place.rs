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
    worker: u64,
    hundred: u64,
    order: Permutation,
}

impl Mixer {
    pub fn new(seed: u64, worker: u64) -> Mixer {
        Mixer {
            seed,
            worker,
            hundred: 0,
            order: Permutation::new(HUNDRED, &[seed, worker, STREAM_MIX, 0]),
        }
    }

    /// Whether the operation with this number writes.
    #[inline]
    pub fn write(&mut self, number: u64, reads: u32) -> bool {
        let hundred = number / HUNDRED;
        if hundred != self.hundred {
            self.hundred = hundred;
            self.order = Permutation::new(HUNDRED, &[self.seed, self.worker, STREAM_MIX, hundred]);
        }
        self.order.at(number % HUNDRED) >= u64::from(reads)
    }
}

/// How a direction chooses its offsets in a file.
#[derive(Debug, Clone)]
enum Way {
    /// Blocks of one size at random, each once.
    Blocks {
        order: Permutation,
        count: u64,
        next: u64,
        bytes: u64,
    },
    /// Blocks of several sizes at random, each once.
    Tiles(Tiles),
    /// See [`Walk::Free`].
    Free(u32),
    /// One behind the other.
    Ascending,
}

impl Way {
    fn new(walk: Walk, sizes: &BlockSizes, region: u64, parts: &[u64]) -> Way {
        match (walk, sizes) {
            (Walk::Ascending, _) => Way::Ascending,
            (Walk::Free(percent), _) => Way::Free(percent),
            (Walk::Cover, BlockSizes::Fixed(bytes)) => {
                let count = region.div_ceil(*bytes).max(1);
                Way::Blocks {
                    order: Permutation::new(count, parts),
                    count,
                    next: 0,
                    bytes: *bytes,
                }
            }
            (Walk::Cover, _) => Way::Tiles(Tiles::new(sizes, region, parts)),
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
    ways: Each<Way>,
    /// Whether writes go the way of the reads: a mix that covers the file once.
    together: bool,
    /// Where each direction goes on.
    next: Each<u64>,
    /// Spreads the favourites of a skewed distribution over the file.
    scatter: Option<Permutation>,
}

impl Active {
    pub fn new(rules: &Rules, file: u64, region: u64, round: u64) -> Active {
        let way = |write: u64, used: bool, walk: Walk, sizes: &BlockSizes| {
            let parts = [rules.seed, rules.worker, STREAM_ORDER, file, round, write];
            match used {
                true => Way::new(walk, sizes, region, &parts),
                false => Way::Ascending,
            }
        };
        let mixed = rules.mix.is_some();
        let covers = rules.walk.read == Walk::Cover && rules.walk.write == Walk::Cover;
        let together = mixed && rules.together && covers;
        let (reads, own_writes) = (mixed || !rules.writes, rules.writes && !together);
        let free = |walk| matches!(walk, Walk::Free(_));
        let align = rules.align.read.min(rules.align.write).max(1);
        Active {
            file,
            region,
            left: region,
            ways: Each {
                read: way(0, reads, rules.walk.read, &rules.sizes.read),
                write: way(1, own_writes, rules.walk.write, &rules.sizes.write),
            },
            together,
            next: Each::default(),
            scatter: (free(rules.walk.read) || free(rules.walk.write)).then(|| {
                Permutation::new(
                    (region / align).max(1),
                    &[rules.favourites, STREAM_SCATTER, file],
                )
            }),
        }
    }

    /// Whether this round has nothing left to do here.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// The next operation on the file.
    #[inline(always)]
    pub fn step(
        &mut self,
        rules: &Rules,
        write: bool,
        choice: &mut Choice,
        stream: &mut Stream,
        scratch: &mut Vec<u64>,
    ) -> Step {
        let way = match write && !self.together {
            true => &mut self.ways.write,
            false => &mut self.ways.read,
        };
        let (offset, length) = match way {
            Way::Blocks {
                order,
                count,
                next,
                bytes,
            } => {
                if next == count {
                    *next = 0;
                }
                let offset = order.at(*next) * *bytes;
                *next += 1;
                (offset, *bytes)
            }
            _ => self.place(rules, write, choice, stream, scratch),
        };
        let length = length.min(self.region - offset).min(self.left);
        self.left -= length;
        Step {
            write,
            file: self.file,
            offset: rules.start + offset * rules.spread,
            length,
            ends_file: self.left == 0,
            ends_pass: false,
        }
    }

    /// Offset and length, not cut to the region, where blocks have several sizes
    /// or do not come each once.
    fn place(
        &mut self,
        rules: &Rules,
        write: bool,
        choice: &mut Choice,
        stream: &mut Stream,
        scratch: &mut Vec<u64>,
    ) -> (u64, u64) {
        let region = self.region;
        let (sizes, align) = match write {
            true => (&rules.sizes.write, rules.align.write),
            false => (&rules.sizes.read, rules.align.read),
        };
        let way = match write && !self.together {
            true => &mut self.ways.write,
            false => &mut self.ways.read,
        };
        let random = match way {
            Way::Tiles(tiles) => return tiles.step(sizes, scratch),
            Way::Free(percent) => *percent >= 100 || stream.below(100) < u64::from(*percent),
            Way::Ascending | Way::Blocks { .. } => false,
        };
        let (at, length) = if random {
            let length = size(sizes, stream).min(region);
            let align = align.max(1);
            let places = (region - length) / align + 1;
            let scatter = self.scatter.as_ref();
            let place = choice.draw(region / align, scatter, stream);
            (place.min(places - 1) * align, length)
        } else {
            let next = match write && !rules.one_position {
                true => self.next.write,
                false => self.next.read,
            };
            let at = if next >= region { 0 } else { next };
            (at, size(sizes, stream))
        };
        let own = write && !rules.one_position;
        self.go_on_at(own, at + length.min(region - at).min(self.left));
        (at, length)
    }

    /// Where a direction goes on when it is not at random.
    fn go_on_at(&mut self, write: bool, at: u64) {
        if write {
            self.next.write = at;
        } else {
            self.next.read = at;
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
