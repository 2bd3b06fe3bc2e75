//! What a block that was read is, by what it may be.
//!
//! Content is a function of run, file, offset and generation
//! ([`crate::verify`]), so what a block should be can be made again. A block
//! may be torn: each sector of 512 bytes must then be that of a permitted
//! content, or change from one permitted content to another at one place, as
//! when the kernel writes a page out while it is filled.

use super::history::Block;
use crate::verify::{self, Identity};

const SECTOR: u64 = 512;
/// Contents that damage is compared with.
const NEAR_MAX: usize = 8;

/// What a block is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// No write of it had begun, and nothing is there.
    Untouched,
    /// The write that was acknowledged last.
    Current,
    /// What a crash may leave: a write that was in flight, or an older one
    /// because the last was never synced, or parts of both.
    Allowed,
    /// A durable write is gone: an older one is there, or nothing. What is
    /// there, in words.
    Lost(String),
    /// What no write has put there, in words.
    Corrupt(String),
}

/// Judges blocks; keeps its buffers.
#[derive(Debug, Default)]
pub struct Judge {
    right: Vec<u8>,
    reach: Vec<Reach>,
}

/// How far from either end a sector is that of some content.
#[derive(Debug, Clone, Copy, Default)]
struct Reach {
    length: usize,
    head: usize,
    tail: usize,
}

/// Lengths of the sectors that a block at `offset` touches.
fn sectors(offset: u64, length: usize) -> impl Iterator<Item = usize> {
    let mut left = length;
    let mut next = (SECTOR - offset % SECTOR) as usize;
    std::iter::from_fn(move || {
        let this = next.min(left);
        (left, next) = (left - this, SECTOR as usize);
        (this > 0).then_some(this)
    })
}

impl Judge {
    /// Judges `found`, which lies where `place` says (its generation is not
    /// used) and is zero where the file has ended.
    pub fn judge(&mut self, found: &[u8], place: Identity, block: Option<&Block>) -> Verdict {
        let empty = found.iter().all(|b| *b == 0);
        let Some(block) = block else {
            return match (empty, verify::whole(found)) {
                (true, _) => Verdict::Untouched,
                (_, Some(other)) => Verdict::Corrupt(foreign(other, place)),
                (_, None) => Verdict::Corrupt("data, though nothing was written there".to_owned()),
            };
        };
        if empty {
            return match block.durable() {
                Some(_) => Verdict::Lost("zeros, or the file has ended".to_owned()),
                None => Verdict::Allowed,
            };
        }
        if let Some(is) = verify::whole(found) {
            return whole(is, place, block);
        }
        self.start(found, place);
        for generation in block.permitted() {
            self.compare(found, place, generation);
        }
        if block.durable().is_none() {
            self.compare_with_zeros(found);
        }
        if self.is_mixed() {
            return Verdict::Allowed;
        }
        self.compare_with_zeros(found);
        let claimed = verify::claimed(found);
        let old = Some(claimed.generation).filter(|g| *g < block.newest());
        for generation in old.into_iter().chain(block.old().iter().copied()) {
            self.compare(found, place, generation);
        }
        if self.is_mixed() {
            return Verdict::Lost("parts of an older write, or zeros in between".to_owned());
        }
        Verdict::Corrupt(self.diagnose(found, place, block))
    }

    fn start(&mut self, found: &[u8], place: Identity) {
        self.reach.clear();
        let blank = |length| Reach {
            length,
            ..Reach::default()
        };
        self.reach
            .extend(sectors(place.offset, found.len()).map(blank));
        self.right.resize(found.len(), 0);
    }

    fn compare(&mut self, found: &[u8], place: Identity, generation: u64) {
        let identity = Identity {
            generation,
            ..place
        };
        verify::stamp(&mut self.right, &identity);
        self.compare_with_right(found);
    }

    fn compare_with_zeros(&mut self, found: &[u8]) {
        self.right.fill(0);
        self.compare_with_right(found);
    }

    fn compare_with_right(&mut self, found: &[u8]) {
        let mut at = 0;
        for reach in &mut self.reach {
            let range = at..at + reach.length;
            at = range.end;
            let (found, right) = (&found[range.clone()], &self.right[range]);
            let same = |(a, b): &(&u8, &u8)| a == b;
            let head = found.iter().zip(right).take_while(same).count();
            reach.head = reach.head.max(head);
            let tail = found.iter().zip(right).rev().take_while(same).count();
            reach.tail = reach.tail.max(tail);
        }
    }

    /// Whether each sector is made of what it was compared with.
    fn is_mixed(&self) -> bool {
        self.reach.iter().all(|r| r.head + r.tail >= r.length)
    }

    /// What happened to a block that is none of what it should be.
    fn diagnose(&mut self, found: &[u8], place: Identity, block: &Block) -> String {
        let right = &mut self.right;
        let near = block.permitted().rev().take(NEAR_MAX);
        let best = near
            .map(|generation| {
                let identity = Identity {
                    generation,
                    ..place
                };
                verify::stamp(right, &identity);
                verify::compare(found, right)
            })
            .min_by_key(|difference| difference.bits);
        best.map_or_else(
            || "foreign".to_owned(),
            |difference| difference.damage().to_string(),
        )
    }
}

/// A block that is right in itself.
fn whole(is: Identity, place: Identity, block: &Block) -> Verdict {
    let Identity { generation, .. } = is;
    if (Identity {
        generation,
        ..place
    }) != is
    {
        return Verdict::Corrupt(foreign(is, place));
    }
    if block.permitted().any(|permitted| permitted == generation) {
        return if block.is_current(generation) {
            Verdict::Current
        } else {
            Verdict::Allowed
        };
    }
    if generation < block.newest() {
        Verdict::Lost(format!("generation {generation:#x}, an older write"))
    } else {
        Verdict::Corrupt(format!(
            "generation {generation:#x}, of which the journal knows nothing"
        ))
    }
}

/// What a whole block is that belongs elsewhere.
fn foreign(is: Identity, place: Identity) -> String {
    let damage = if is.run != place.run {
        verify::Damage::OtherRun(is.run)
    } else if (is.file, is.offset) != (place.file, place.offset) {
        let Identity { file, offset, .. } = is;
        verify::Damage::Misplaced { file, offset }
    } else {
        return format!(
            "generation {:#x}, of which the journal knows nothing",
            is.generation
        );
    };
    damage.to_string()
}

/// What a block may be, in words.
pub fn expected(block: Option<&Block>) -> String {
    let Some(block) = block else {
        return "nothing".to_owned();
    };
    let others = block.permitted().count() - usize::from(block.durable().is_some());
    match (block.durable(), others) {
        (Some(durable), 0) => format!("generation {durable:#x}, which was synced"),
        (Some(durable), 1) => {
            format!("generation {durable:#x}, which was synced, or one other")
        }
        (Some(durable), n) => {
            format!("generation {durable:#x}, which was synced, or one of {n} others")
        }
        (None, 1) => format!("generation {:#x}, or nothing", block.newest()),
        (None, n) => format!("one of {n} generations, or nothing"),
    }
}

#[cfg(test)]
mod tests;
