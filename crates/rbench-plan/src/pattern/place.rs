//! Where the operations on one file go, and the directions of a mix.

use rbench_core::random::Stream;

use super::tiles::{self, Tiles};
use super::zones::Place as ZonePlace;
use super::{Drawing, Rules, STREAM_MIX, STREAM_ORDER, STREAM_SCATTER, Step, Walk, smallest};
use crate::jobs::{BlockSizes, Each, Sequel};
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
    /// See [`Walk::Picks`]: the blocks, and the next of them.
    Picks(Permutation, u64),
    /// See [`Walk::Free`].
    Free(u32),
    /// See [`Walk::Zones`].
    Zones,
    /// One behind the other.
    Ascending,
    /// See [`Walk::Whole`].
    Whole,
}

impl Way {
    fn new(walk: Walk, sizes: &BlockSizes, region: u64, parts: &[u64]) -> Way {
        match (walk, sizes) {
            (Walk::Ascending, _) => Way::Ascending,
            (Walk::Free(percent), _) => Way::Free(percent),
            (Walk::Zones, _) => Way::Zones,
            (Walk::Whole, _) => Way::Whole,
            (Walk::Picks, sizes) => {
                let count = (region / smallest(sizes).max(1)).max(1);
                Way::Picks(Permutation::new(count, parts), 0)
            }
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
    /// Where the latest operation of each began; with runs that stay.
    latest: Each<u64>,
    /// Where it is in its zones.
    zone: ZonePlace,
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
            left: rules.moves(region),
            ways: Each {
                read: way(0, reads, rules.walk.read, &rules.sizes.read),
                write: way(1, own_writes, rules.walk.write, &rules.sizes.write),
            },
            together,
            next: Each::default(),
            latest: Each::default(),
            zone: ZonePlace::default(),
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
    pub fn step(&mut self, rules: &Rules, write: bool, drawing: &mut Drawing) -> Step {
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
            _ => self.place(rules, write, drawing),
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
    fn place(&mut self, rules: &Rules, write: bool, drawing: &mut Drawing) -> (u64, u64) {
        let region = self.region;
        let (sizes, align) = match write {
            true => (&rules.sizes.write, rules.align.write),
            false => (&rules.sizes.read, rules.align.read),
        };
        let way = match write && !self.together {
            true => &mut self.ways.write,
            false => &mut self.ways.read,
        };
        let mut random = match way {
            Way::Tiles(tiles) => return tiles.step(sizes, &mut drawing.scratch),
            Way::Zones => return self.zone.step(rules, (write, region), sizes, drawing),
            Way::Whole => return (0, region),
            Way::Free(percent) => {
                *percent >= 100 || drawing.stream.below(100) < u64::from(*percent)
            }
            Way::Picks(..) => true,
            Way::Ascending | Way::Blocks { .. } => false,
        };
        let own = write && !rules.one_position;
        let next = if own { self.next.write } else { self.next.read };
        let mut stays = false;
        if let Sequel::Run { length, identical } = rules.course.sequel {
            let begins = drawing.run_left == 0;
            drawing.run_left = if begins { length } else { drawing.run_left } - 1;
            if !begins && identical {
                (stays, random) = (true, false);
            } else if !begins {
                // At the end of the file a new place is drawn.
                random &= next.saturating_add(smallest(sizes)) > region;
            }
        }
        let sizes = match (rules.course.sizes_by_order, random) {
            (false, _) => sizes,
            (true, true) => &rules.sizes.write,
            (true, false) => &rules.sizes.read,
        };
        let (at, length) = if stays {
            let latest = if write {
                self.latest.write
            } else {
                self.latest.read
            };
            (latest, size(sizes, &mut drawing.stream))
        } else if random {
            self.random_place(write, (sizes, align), drawing)
        } else {
            let at = if next >= region { 0 } else { next };
            (at, size(sizes, &mut drawing.stream))
        };
        match write {
            true => self.latest.write = at,
            false => self.latest.read = at,
        }
        let end = at + length.min(region - at).min(self.left);
        self.go_on_at(own, end);
        if let Sequel::Skip(bytes) = rules.course.sequel
            && !random
            && !self.leave_out(rules, own, (end, bytes), sizes)
        {
            self.left = end - at;
        }
        (at, length)
    }

    /// A random place and a length that it has room for.
    fn random_place(
        &mut self,
        write: bool,
        (sizes, align): (&BlockSizes, u64),
        drawing: &mut Drawing,
    ) -> (u64, u64) {
        let region = self.region;
        let way = match write && !self.together {
            true => &mut self.ways.write,
            false => &mut self.ways.read,
        };
        if let Way::Picks(order, next) = way {
            let bytes = smallest(sizes).max(1);
            if *next == (region / bytes).max(1) {
                *next = 0;
            }
            let place = order.at(*next);
            *next += 1;
            return (place * bytes, bytes);
        }
        let length = size(sizes, &mut drawing.stream).min(region);
        let align = align.max(1);
        let places = (region - length) / align + 1;
        let scatter = self.scatter.as_ref();
        let place = drawing
            .choice
            .draw((region / align, align), scatter, &mut drawing.stream);
        (place.min(places - 1) * align, length)
    }

    /// A gap behind (or before) an operation that ended at `end`. As in fio a place beyond
    /// the end is one at the beginning again, one before the beginning is one at the end,
    /// and where no block has room the file is at its end: whether there is room.
    fn leave_out(
        &mut self,
        rules: &Rules,
        own: bool,
        (end, bytes): (u64, i64),
        sizes: &BlockSizes,
    ) -> bool {
        let region = self.region;
        // fio counts from the job's offset, and compares with the length of the file.
        let length = region.saturating_add(rules.start);
        let next = match end.checked_add_signed(bytes) {
            Some(next) if next < length => next,
            _ if bytes > 0 => rules.start,
            _ => region.saturating_sub(bytes.unsigned_abs()),
        };
        self.go_on_at(own, next);
        next.saturating_add(smallest(sizes)) <= region
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
pub(super) fn size(sizes: &BlockSizes, stream: &mut Stream) -> u64 {
    match sizes {
        BlockSizes::Fixed(bytes) => *bytes,
        mixed => tiles::draw(mixed, stream.next_u64()),
    }
}
