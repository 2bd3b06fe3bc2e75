//! The order in which a worker visits the blocks of its part, and how large
//! they are. Skewed distributions and mixed sizes are those of the job
//! workload ([`crate::pattern`]).

use rbench_core::random::Stream;

use super::IoPlan;
use crate::jobs::{BlockSizes, Distribution};
use crate::pattern::draw::Choice;
use crate::pattern::tiles::{self, Tiles};
use crate::permutation::Permutation;

/// Words that tell the random streams of a worker apart.
const LENGTHS: u64 = 1;
const PLACES: u64 = 2;
const FAVOURITES: u64 = 3;

/// The order in which a worker visits its blocks, pass after pass.
#[derive(Debug, Clone)]
pub struct Order {
    /// Bytes of a block and of the part.
    block: u64,
    size: u64,
    /// Blocks of the part, and the next one of this pass.
    blocks: u64,
    next: u64,
    pass: u64,
    walk: Walk,
}

#[derive(Debug, Clone)]
enum Walk {
    /// One behind the other.
    Ascending,
    /// At random, each once, in another order in each pass.
    Cover(Permutation, [u64; 4]),
    /// Some more often than others.
    Drawn(Spots),
    /// Blocks of several sizes.
    Mixed(Box<Mixed>),
}

impl Order {
    /// The order of a phase, ascending or `random` as the plan has it. What is
    /// random derives from `parts` (seed, phase, worker); where the favourites
    /// of a skewed distribution lie from `common` (seed, iteration, owner),
    /// the same for all phases.
    pub fn new(plan: &IoPlan, random: bool, parts: [u64; 3], common: [u64; 3]) -> Order {
        let [a, b, c] = parts;
        let (block, size) = (plan.block(), plan.size.0);
        let spots = || {
            // Blocks of several sizes begin where whole ones of the smallest do.
            let places = match plan.sizes {
                BlockSizes::Fixed(_) => size.div_ceil(block),
                _ => size / block,
            };
            Spots::new(&plan.distribution, places, parts, common)
        };
        let skewed = plan.distribution != Distribution::Uniform;
        let walk = match (&plan.sizes, random, skewed) {
            (BlockSizes::Fixed(_), false, _) => Walk::Ascending,
            (BlockSizes::Fixed(_), true, false) => {
                let parts = [a, b, c, 0];
                Walk::Cover(Permutation::new(size.div_ceil(block), &parts), parts)
            }
            (BlockSizes::Fixed(_), true, true) => Walk::Drawn(spots()),
            (_, false, _) => Walk::Mixed(Box::new(Mixed::new(plan, parts, Way::Ascending))),
            (_, true, false) => {
                let tiles = Tiles::new(&plan.sizes, size, &[a, b, c, 0]);
                Walk::Mixed(Box::new(Mixed::new(plan, parts, Way::Cover(tiles))))
            }
            (_, true, true) => Walk::Mixed(Box::new(Mixed::new(plan, parts, Way::Drawn(spots())))),
        };
        Order {
            block,
            size,
            blocks: size.div_ceil(block),
            next: 0,
            pass: 0,
            walk,
        }
    }

    /// The next block: where it begins in the worker's part, and its length,
    /// in bytes.
    #[inline]
    pub fn step(&mut self) -> (u64, u64) {
        let index = match &mut self.walk {
            Walk::Drawn(spots) => spots.draw(),
            Walk::Mixed(mixed) => return mixed.step(&mut self.pass),
            Walk::Ascending | Walk::Cover(..) => self.next_index(),
        };
        let start = index * self.block;
        (start, self.block.min(self.size - start))
    }

    #[inline]
    fn next_index(&mut self) -> u64 {
        if self.next == self.blocks {
            self.next = 0;
            self.pass += 1;
            if let Walk::Cover(permutation, parts) = &mut self.walk {
                parts[3] = self.pass;
                *permutation = Permutation::new(self.blocks, parts);
            }
        }
        let index = self.next;
        self.next += 1;
        match &self.walk {
            Walk::Cover(permutation, _) => permutation.at(index),
            _ => index,
        }
    }

    /// The pass that the last block belonged to, from 0. With a skewed
    /// distribution there is but one: the same block may come at any time.
    #[inline]
    pub fn pass(&self) -> u64 {
        self.pass
    }

    /// Whether a pass visits every byte.
    pub fn covers(&self) -> bool {
        match &self.walk {
            Walk::Ascending | Walk::Cover(..) => true,
            Walk::Drawn(_) => false,
            Walk::Mixed(mixed) => !matches!(mixed.way, Way::Drawn(_)),
        }
    }

    /// Operations that move as many bytes as the part has, at the beginning of
    /// the first pass.
    pub fn operations(&self) -> u64 {
        match &self.walk {
            Walk::Mixed(mixed) => mixed.operations(),
            Walk::Ascending | Walk::Cover(..) | Walk::Drawn(_) => self.blocks,
        }
    }
}

/// Places drawn from a skewed distribution.
#[derive(Debug, Clone)]
struct Spots {
    choice: Choice,
    /// Spreads the favourites over the part.
    scatter: Permutation,
    stream: Stream,
    count: u64,
}

impl Spots {
    fn new(
        distribution: &Distribution,
        count: u64,
        [a, b, c]: [u64; 3],
        [seed, iteration, owner]: [u64; 3],
    ) -> Spots {
        Spots {
            choice: Choice::new(distribution),
            scatter: Permutation::new(count, &[seed, iteration, owner, FAVOURITES]),
            stream: Stream::new(&[a, b, c, PLACES]),
            count,
        }
    }

    #[inline]
    fn draw(&mut self) -> u64 {
        self.choice
            .draw(self.count, Some(&self.scatter), &mut self.stream)
    }
}

/// Blocks of several sizes; a pass moves as many bytes as the part has.
#[derive(Debug, Clone)]
struct Mixed {
    sizes: BlockSizes,
    /// The smallest.
    unit: u64,
    size: u64,
    /// Bytes that this pass has still to move.
    left: u64,
    lengths: Stream,
    parts: [u64; 3],
    way: Way,
    /// Offsets within a group of tiles.
    scratch: Vec<u64>,
}

#[derive(Debug, Clone)]
enum Way {
    Ascending,
    Cover(Tiles),
    Drawn(Spots),
}

impl Mixed {
    fn new(plan: &IoPlan, parts: [u64; 3], way: Way) -> Mixed {
        let (unit, size) = (plan.block(), plan.size.0);
        let [a, b, c] = parts;
        let in_a_group = match way {
            Way::Cover(_) => tiles::group(&plan.sizes) / unit + 1,
            Way::Ascending | Way::Drawn(_) => 0,
        };
        Mixed {
            sizes: plan.sizes.clone(),
            unit,
            size,
            left: size,
            lengths: Stream::new(&[a, b, c, LENGTHS]),
            parts,
            way,
            scratch: Vec::with_capacity(in_a_group as usize),
        }
    }

    fn step(&mut self, pass: &mut u64) -> (u64, u64) {
        if self.left == 0 {
            self.left = self.size;
            match &mut self.way {
                Way::Ascending => *pass += 1,
                Way::Cover(tiles) => {
                    *pass += 1;
                    let [a, b, c] = self.parts;
                    *tiles = Tiles::new(&self.sizes, self.size, &[a, b, c, *pass]);
                }
                Way::Drawn(_) => {}
            }
        }
        let (start, length) = match &mut self.way {
            Way::Ascending => (
                self.size - self.left,
                tiles::draw(&self.sizes, self.lengths.next_u64()),
            ),
            Way::Cover(tiles) => tiles.step(&self.sizes, &mut self.scratch),
            Way::Drawn(spots) => {
                let length = tiles::draw(&self.sizes, self.lengths.next_u64());
                let last = (self.size - length) / self.unit;
                (spots.draw().min(last) * self.unit, length)
            }
        };
        let length = length.min(self.left);
        self.left -= length;
        (start, length)
    }

    fn operations(&self) -> u64 {
        if let Way::Cover(tiles) = &self.way {
            return tiles.count(&self.sizes, &mut self.scratch.clone());
        }
        let (mut lengths, mut left, mut count) = (self.lengths.clone(), self.size, 0);
        while left > 0 {
            left -= tiles::draw(&self.sizes, lengths.next_u64()).min(left);
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests;
