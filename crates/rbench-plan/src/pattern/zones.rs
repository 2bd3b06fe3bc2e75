//! Zones of a file, one after the other (`zonemode=strided`).

use super::tiles::size;
use super::{Drawing, Rules, STREAM_ORDER, smallest};
use crate::jobs::{BlockSizes, Direction, Each};
use crate::permutation::Permutation;

/// Position of a worker in the zones of a file.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// Start of the zone.
    start: u64,
    /// Bytes moved in it.
    moved: u64,
    /// The next offset of each direction in it.
    next: Each<u64>,
    /// Number of zones until now, and of rounds over the blocks of this one.
    visits: u64,
    rounds: u64,
    /// The order of its blocks, and the index of the next one.
    order: Option<(Permutation, u64)>,
}

impl Place {
    /// Offset and length of the next operation, not limited to the part of `region` bytes.
    pub fn step(
        &mut self,
        rules: &Rules,
        (direction, region): (Direction, u64),
        sizes: &BlockSizes,
        drawing: &mut Drawing,
    ) -> (u64, u64) {
        let Some(zones) = rules.course.zones else {
            return (0, size(sizes, &mut drawing.stream));
        };
        let unit = smallest(sizes).max(1);
        if self.moved >= zones.bytes {
            self.leave(zones.range.saturating_add(zones.skip), unit, region);
        }
        let range = zones.range.min(region - self.start);
        let length = size(sizes, &mut drawing.stream);
        let at = match rules.random {
            true => self.random(rules, (range / unit).max(1), drawing) * unit,
            false => {
                let next = self.next.of_mut(direction);
                // Like in fio, the last block of a zone may extend beyond it, but not beyond the
                // file.
                let full = *next >= range || self.start + *next + unit > region;
                let at = if full { 0 } else { *next };
                *next = at + length;
                at
            }
        };
        self.moved = self.moved.saturating_add(length);
        (self.start + at, length)
    }

    /// Moves on to the next zone, at a distance of `stride`, or to the first.
    fn leave(&mut self, stride: u64, unit: u64, region: u64) {
        let next = self.start.saturating_add(stride);
        *self = Place {
            start: if next.saturating_add(unit) > region {
                0
            } else {
                next
            },
            visits: self.visits + 1,
            ..Place::default()
        };
    }

    /// A random block of the zone.
    fn random(&mut self, rules: &Rules, count: u64, drawing: &mut Drawing) -> u64 {
        if !rules.course.covers {
            return drawing.choice.draw((count, 1), None, &mut drawing.stream);
        }
        if self.order.as_ref().is_none_or(|(_, next)| *next == count) {
            let parts = [
                rules.seed,
                rules.worker,
                STREAM_ORDER,
                self.start,
                self.visits,
                self.rounds,
            ];
            self.rounds += 1;
            self.order = Some((Permutation::new(count, &parts), 0));
        }
        match &mut self.order {
            Some((order, next)) => {
                *next += 1;
                order.at(*next - 1)
            }
            None => 0,
        }
    }
}
