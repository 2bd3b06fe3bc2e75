//! Offsets of the operations on one file, and the directions of a mix.

use super::tiles::{Tiles, size};
use super::zones::Place as ZonePlace;
use super::{
    Drawing, Rules, STREAM_MIX, STREAM_ORDER, STREAM_SCATTER, Step, Turns, Walk, smallest,
};
use crate::jobs::{BlockSizes, Direction, Each, Sequel};
use crate::permutation::Permutation;

/// Number of operations over which the share of reads is exact.
const HUNDRED: u64 = 100;

/// Directions of a mix: exactly `mix_read` of every hundred operations read, in random
/// order.
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

    /// The direction of the operation with this number.
    #[inline]
    pub fn next(&mut self, number: u64, reads: u32) -> Direction {
        let hundred = number / HUNDRED;
        if hundred != self.hundred {
            self.hundred = hundred;
            self.order = Permutation::new(HUNDRED, &[self.seed, self.worker, STREAM_MIX, hundred]);
        }
        match self.order.at(number % HUNDRED) >= u64::from(reads) {
            true => Direction::Write,
            false => Direction::Read,
        }
    }
}

/// Order of a direction's offsets in a file.
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
    /// See [`Walk::Picks`]: the blocks, and the index of the next one.
    Picks(Permutation, u64),
    /// See [`Walk::Free`].
    Free(u32),
    /// See [`Walk::Zones`].
    Zones,
    /// Sequential.
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

/// A file in use, for one round over the files.
#[derive(Debug, Clone)]
pub struct Active {
    file: u64,
    /// Start of the part in it.
    start: u64,
    region: u64,
    /// Bytes that this round still has to move.
    left: u64,
    ways: Each<Way>,
    /// True if writes share the order of reads: a mix that covers the file once.
    together: bool,
    /// The next offset of each direction.
    next: Each<u64>,
    /// Start of the latest operation of each direction, for runs that stay.
    latest: Each<u64>,
    /// Trimmed range that must still be written: from and to.
    trimmed: (u64, u64),
    /// Its position in the zones.
    zone: ZonePlace,
    /// Spreads the most frequent blocks of a skewed distribution over the file.
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
        let covers = rules.walk.read == Walk::Cover && rules.walk.write == Walk::Cover;
        let (reads, writes, trims) = match rules.turns {
            Turns::Only(direction) => (
                direction == Direction::Read,
                direction == Direction::Write,
                direction == Direction::Trim,
            ),
            Turns::Mix(_) => (true, true, false),
            Turns::TrimThenWrite => (false, false, true),
        };
        let together = reads && writes && rules.together && covers;
        let free = |walk| matches!(walk, Walk::Free(_));
        let (align, scatters) = match trims {
            true => (rules.align.trim, free(rules.walk.trim)),
            false => (
                rules.align.read.min(rules.align.write),
                free(rules.walk.read) || free(rules.walk.write),
            ),
        };
        Active {
            file,
            start: rules.start_in(file),
            region,
            left: rules.moves(region),
            ways: Each {
                read: way(0, reads, rules.walk.read, &rules.sizes.read),
                write: way(1, writes && !together, rules.walk.write, &rules.sizes.write),
                trim: way(2, trims, rules.walk.trim, &rules.sizes.trim),
            },
            together,
            next: Each::default(),
            latest: Each::default(),
            trimmed: (0, 0),
            zone: ZonePlace::default(),
            scatter: scatters.then(|| {
                Permutation::new(
                    (region / align.max(1)).max(1),
                    &[rules.favourites, STREAM_SCATTER, file],
                )
            }),
        }
    }

    /// True if this round has no more work here.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// True if a trimmed range must still be written.
    pub fn owes_a_write(&self) -> bool {
        self.trimmed.0 < self.trimmed.1
    }

    /// The order of a direction's offsets; a mix that covers the file once has a single
    /// one.
    #[inline(always)]
    fn way(&mut self, direction: Direction) -> &mut Way {
        match direction {
            Direction::Write if self.together => &mut self.ways.read,
            direction => self.ways.of_mut(direction),
        }
    }

    /// The next operation on a file whose ranges are trimmed and then written.
    #[inline(never)]
    pub fn trim_or_write(&mut self, rules: &Rules, drawing: &mut Drawing) -> Step {
        let (from, to) = self.trimmed;
        if !self.owes_a_write() {
            let step = self.step(rules, Direction::Trim, drawing);
            // The range is complete when it is written.
            self.left += step.length;
            self.trimmed = (step.offset, step.offset + step.length);
            return Step {
                ends_file: false,
                ..step
            };
        }
        let length = match rules.whole {
            true => to - from,
            false => size(&rules.sizes.write, &mut drawing.stream).min(to - from),
        };
        self.trimmed.0 += length;
        self.left -= length;
        Step {
            direction: Direction::Write,
            file: self.file,
            offset: from,
            length,
            ends_file: self.left == 0,
            ends_pass: false,
        }
    }

    /// The next operation on the file.
    #[inline(always)]
    pub fn step(&mut self, rules: &Rules, direction: Direction, drawing: &mut Drawing) -> Step {
        let way = self.way(direction);
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
            _ => self.place(rules, direction, drawing),
        };
        let length = length.min(self.region - offset).min(self.left);
        self.left -= length;
        Step {
            direction,
            file: self.file,
            offset: self.start + rules.spread(offset),
            length,
            ends_file: self.left == 0,
            ends_pass: false,
        }
    }

    /// Offset and length, not limited to the region, if blocks have several sizes or may
    /// repeat.
    fn place(&mut self, rules: &Rules, direction: Direction, drawing: &mut Drawing) -> (u64, u64) {
        let region = self.region;
        let (sizes, align) = (rules.sizes.of(direction), *rules.align.of(direction));
        let mut random = match self.way(direction) {
            Way::Tiles(tiles) => return tiles.step(sizes, &mut drawing.scratch),
            Way::Zones => return self.zone.step(rules, (direction, region), sizes, drawing),
            Way::Whole => return (0, region),
            Way::Free(percent) => {
                *percent >= 100 || drawing.stream.below(100) < u64::from(*percent)
            }
            Way::Picks(..) => true,
            Way::Ascending | Way::Blocks { .. } => false,
        };
        let own = match direction {
            Direction::Write if rules.one_position => Direction::Read,
            direction => direction,
        };
        let next = *self.next.of(own);
        let mut stays = false;
        if let Sequel::Run { length, identical } = rules.course.sequel {
            let begins = drawing.run_left == 0;
            drawing.run_left = if begins { length } else { drawing.run_left } - 1;
            if !begins && identical {
                (stays, random) = (true, false);
            } else if !begins {
                // At the end of the file a new offset is drawn.
                random &= next.saturating_add(smallest(sizes)) > region;
            }
        }
        let sizes = match (rules.course.sizes_by_order, random) {
            (false, _) => sizes,
            (true, true) => &rules.sizes.write,
            (true, false) => &rules.sizes.read,
        };
        let (at, length) = if stays {
            (*self.latest.of(direction), size(sizes, &mut drawing.stream))
        } else if random {
            self.random_place(direction, (sizes, align), drawing)
        } else {
            let at = if next >= region { 0 } else { next };
            (at, size(sizes, &mut drawing.stream))
        };
        *self.latest.of_mut(direction) = at;
        let end = at + length.min(region - at).min(self.left);
        *self.next.of_mut(own) = end;
        if let Sequel::Skip(bytes) = rules.course.sequel
            && !random
            && !self.leave_out(own, (end, bytes), sizes)
        {
            self.left = end - at;
        }
        (at, length)
    }

    /// A random offset, and a length that fits there.
    fn random_place(
        &mut self,
        direction: Direction,
        (sizes, align): (&BlockSizes, u64),
        drawing: &mut Drawing,
    ) -> (u64, u64) {
        let region = self.region;
        if let Way::Picks(order, next) = self.way(direction) {
            let bytes = smallest(sizes).max(1);
            if *next == (region / bytes).max(1) {
                *next = 0;
            }
            let block = order.at(*next);
            *next += 1;
            return (block * bytes, bytes);
        }
        let length = size(sizes, &mut drawing.stream).min(region);
        let align = align.max(1);
        let places = (region - length) / align + 1;
        let scatter = self.scatter.as_ref();
        let block = drawing
            .choice
            .draw((region / align, align), scatter, &mut drawing.stream);
        (block.min(places - 1) * align, length)
    }

    /// Leaves a gap after (or before) an operation that ended at `end`. Like in fio, an
    /// offset beyond the end becomes the start, and one before the start becomes the end.
    /// The pass over the file ends if the operation reached the end of the file, or no block fits
    /// after the gap. Returns true if it goes on.
    fn leave_out(&mut self, own: Direction, (end, bytes): (u64, i64), sizes: &BlockSizes) -> bool {
        let region = self.region;
        // fio counts from the job's offset, and compares with the length of the file.
        let length = region.saturating_add(self.start);
        let next = match end.checked_add_signed(bytes) {
            Some(next) if next < length => next,
            _ if bytes > 0 => self.start,
            _ => region.saturating_sub(bytes.unsigned_abs()),
        };
        *self.next.of_mut(own) = next;
        end < region && next.saturating_add(smallest(sizes)) <= region
    }
}
