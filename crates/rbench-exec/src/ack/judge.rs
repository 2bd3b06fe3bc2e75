//! Classification of a block that was read, by its permitted contents.
//!
//! Content is a function of run, file, offset and generation ([`crate::verify`]), so the expected
//! block can be made again. A block may be torn: each sector of 512 bytes must then be that of a
//! permitted content, or change from one permitted content to another at one place: the kernel may
//! write a page out while it is filled. That place lies between two cache lines and not within the
//! header, so that a single wrong bit is not taken for it.
//!
//! A write that failed, was never answered or met another one of the same block may have been
//! interrupted at any byte, and its bytes may have arrived in any order (a copy into a mapping
//! stores its first bytes last). Such a block is a patchwork of permitted contents, in pieces of at
//! least a word.

use super::history::Block;
use crate::verify::{self, BlockHeader, Headers, STEP_BITS, WRITE_BITS};

const SECTOR: u64 = 512;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Bytes of the smallest piece of a patchwork.
const PIECE_MIN: usize = 8;
/// Contents that damage is compared with.
const NEAR_MAX: usize = 8;

/// The classes of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The write that was acknowledged last.
    Acknowledged,
    /// Content that a crash may leave: a write that was in flight, or an older one because the last
    /// was never synced, or parts of both.
    Allowed,
    /// Never written, and nothing there.
    Untouched,
    /// A durable write is gone: an older one is there, or nothing.
    Lost,
    /// Content that no write has put there.
    Corrupt,
    /// It cannot be read.
    Unreadable,
}

impl Class {
    /// All of them, good ones first.
    pub const ALL: [Class; 6] = [
        Class::Acknowledged,
        Class::Allowed,
        Class::Untouched,
        Class::Lost,
        Class::Corrupt,
        Class::Unreadable,
    ];

    /// For machines and people.
    pub fn name(self) -> &'static str {
        match self {
            Class::Acknowledged => "as acknowledged",
            Class::Allowed => "allowed",
            Class::Untouched => "untouched",
            Class::Lost => "lost",
            Class::Corrupt => "corrupt",
            Class::Unreadable => "unreadable",
        }
    }

    /// Returns true if the file system is at fault.
    pub fn is_bad(self) -> bool {
        self >= Class::Lost
    }
}

/// Judges blocks; keeps its buffers.
#[derive(Debug)]
pub struct Judge {
    headers: Headers,
    right: Vec<u8>,
    reach: Vec<Reach>,
    /// For each byte whether it lies in a piece of some content; empty where
    /// the block can be no patchwork.
    covered: Vec<bool>,
}

impl Default for Judge {
    fn default() -> Judge {
        Judge {
            // Blocks are judged with one header each.
            headers: Headers::every(u64::MAX),
            right: Vec::new(),
            reach: Vec::new(),
            covered: Vec::new(),
        }
    }
}

/// Length from either end of a sector that matches some content.
#[derive(Debug, Clone, Copy, Default)]
struct Reach {
    /// Bytes from the beginning of the sector to that of the block.
    ahead: usize,
    /// Bytes at the beginning that are one piece.
    whole: usize,
    length: usize,
    head: usize,
    tail: usize,
}

/// The sectors that a block at `offset` touches, compared with nothing yet.
/// A header of `header` bytes is one piece.
fn sectors(offset: u64, length: usize, header: usize) -> impl Iterator<Item = Reach> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let ahead = ((offset + at as u64) % SECTOR) as usize;
        let this = Reach {
            ahead,
            whole: header.saturating_sub(at),
            length: (SECTOR as usize - ahead).min(length - at),
            ..Reach::default()
        };
        at += this.length;
        (this.length > 0).then_some(this)
    })
}

impl Reach {
    /// The first place at or after `at` where contents may change.
    fn place_from(&self, at: usize) -> usize {
        let line = |at: usize| (self.ahead + at).next_multiple_of(LINE) - self.ahead;
        match at {
            0 => 0,
            at => line(at.max(self.whole)).min(self.length),
        }
    }

    /// The last place at or before `at` where contents may change.
    fn place_upto(&self, at: usize) -> usize {
        let line = ((self.ahead + at) / LINE * LINE).saturating_sub(self.ahead);
        match line {
            _ if at == self.length => at,
            line if line < self.whole => 0,
            line => line,
        }
    }

    /// Notes how far `found` and `right` are the same.
    fn compare(&mut self, found: &[u8], right: &[u8]) {
        if found == right {
            (self.head, self.tail) = (self.length, self.length);
            return;
        }
        let same = |(a, b): &(&u8, &u8)| a == b;
        let head = found.iter().zip(right).take_while(same).count();
        self.head = self.head.max(self.place_upto(head));
        let tail = found.iter().zip(right).rev().take_while(same).count();
        let tail_from = self.place_from(self.length - tail);
        self.tail = self.tail.max(self.length - tail_from);
    }
}

/// Marks the pieces of `found` that are those of `right`.
fn cover(covered: &mut [bool], found: &[u8], right: &[u8]) {
    let mut start = 0;
    while start < covered.len() {
        let same = |(a, b): &(&u8, &u8)| a == b;
        let (found, right) = (&found[start..], &right[start..]);
        let length = found.iter().zip(right).take_while(same).count();
        if length >= PIECE_MIN || start + length == covered.len() {
            covered[start..start + length].fill(true);
        }
        start += length + 1;
    }
}

impl Judge {
    /// Judges `found`, which lies where `place` says (of its generation only
    /// the pass is used) and is zero where the file has ended. Returns its class, and what is there in
    /// words where that is wrong.
    pub fn judge(
        &mut self,
        found: &[u8],
        place: BlockHeader,
        block: Option<&Block>,
    ) -> (Class, String) {
        let empty = found.iter().all(|b| *b == 0);
        let Some(block) = block else {
            return match (empty, self.headers.read(found)) {
                (true, _) => as_expected(Class::Untouched),
                (_, Some(other)) => (Class::Corrupt, foreign(other, place)),
                (_, None) => {
                    let text = "data, although nothing was written there";
                    (Class::Corrupt, text.to_owned())
                }
            };
        };
        if empty {
            return match block.durable {
                Some(_) => (Class::Lost, "zeros, or past the end of the file".to_owned()),
                None => as_expected(Class::Allowed),
            };
        }
        if let Some(is) = self.headers.read(found) {
            return whole(is, place, block);
        }
        self.start(found, place, block.in_parts());
        for generation in block.permitted() {
            self.compare(found, place, generation);
        }
        if block.durable.is_none() {
            self.compare_with_zeros(found);
        }
        if self.is_mixed() {
            return as_expected(Class::Allowed);
        }
        self.compare_with_zeros(found);
        let claimed = verify::claimed(found);
        let older = |g: &u64| *g < block.newest && pass(*g) == pass(place.generation);
        let old = Some(claimed.generation).filter(older);
        for generation in old.into_iter().chain(block.old.iter().copied()) {
            self.compare(found, place, generation);
        }
        if self.is_mixed() {
            let text = "parts of an older write, or zeros in between";
            return (Class::Lost, text.to_owned());
        }
        (Class::Corrupt, self.diagnose(found, place, block))
    }

    fn start(&mut self, found: &[u8], place: BlockHeader, patchwork: bool) {
        self.reach.clear();
        self.reach
            .extend(sectors(place.offset, found.len(), Headers::LENGTH));
        self.right.resize(found.len(), 0);
        self.covered.clear();
        self.covered
            .resize(if patchwork { found.len() } else { 0 }, false);
    }

    fn compare(&mut self, found: &[u8], place: BlockHeader, generation: u64) {
        let identity = BlockHeader {
            generation,
            ..place
        };
        self.headers.stamp(&mut self.right, &identity);
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
            reach.compare(&found[range.clone()], &self.right[range]);
        }
        cover(&mut self.covered, found, &self.right);
    }

    /// Returns true if it consists of pieces of the contents that it was compared with.
    fn is_mixed(&self) -> bool {
        let patchwork = !self.covered.is_empty() && self.covered.iter().all(|c| *c);
        patchwork || self.reach.iter().all(|r| r.head + r.tail >= r.length)
    }

    /// Describes the damage of a block that matches no permitted content.
    fn diagnose(&mut self, found: &[u8], place: BlockHeader, block: &Block) -> String {
        let (headers, right) = (&self.headers, &mut self.right);
        let near = block.permitted().rev().take(NEAR_MAX);
        let best = near
            .map(|generation| {
                let identity = BlockHeader {
                    generation,
                    ..place
                };
                headers.stamp(right, &identity);
                verify::compare(found, right)
            })
            .min_by_key(|difference| difference.bits);
        best.map_or_else(
            || "foreign".to_owned(),
            |difference| difference.damage().to_string(),
        )
    }
}

/// The pass that has written a generation; each has files of its own.
fn pass(generation: u64) -> u64 {
    generation >> (WRITE_BITS + STEP_BITS)
}

/// A block that is right in itself.
fn whole(is: BlockHeader, place: BlockHeader, block: &Block) -> (Class, String) {
    let BlockHeader { generation, .. } = is;
    let here = BlockHeader {
        generation,
        ..place
    };
    if here != is || pass(generation) != pass(place.generation) {
        return (Class::Corrupt, foreign(is, place));
    }
    if block.permitted().any(|permitted| permitted == generation) {
        return as_expected(match block.is_current(generation) {
            true => Class::Acknowledged,
            false => Class::Allowed,
        });
    }
    match generation < block.newest {
        true => {
            let text = format!("generation {generation:#x}, an older write");
            (Class::Lost, text)
        }
        false => (Class::Corrupt, unknown(generation)),
    }
}

fn as_expected(class: Class) -> (Class, String) {
    (class, String::new())
}

fn unknown(generation: u64) -> String {
    format!("generation {generation:#x}, which is not in the journal")
}

/// Describes a whole block that belongs elsewhere.
fn foreign(is: BlockHeader, place: BlockHeader) -> String {
    let damage = if is.run != place.run {
        verify::Damage::OtherRun(is.run)
    } else if (is.file, is.offset) != (place.file, place.offset) {
        let BlockHeader { file, offset, .. } = is;
        verify::Damage::Misplaced { file, offset }
    } else if pass(is.generation) != pass(place.generation) {
        return format!("misplaced: a block of pass {}", pass(is.generation));
    } else {
        return unknown(is.generation);
    };
    damage.to_string()
}

/// Permitted contents of a block, in words.
pub fn expected(block: Option<&Block>) -> String {
    let Some(block) = block else {
        return "nothing".to_owned();
    };
    let others = block.permitted().count() - usize::from(block.durable.is_some());
    match (block.durable, others) {
        (Some(durable), 0) => format!("generation {durable:#x}, which was synced"),
        (Some(durable), 1) => {
            format!("generation {durable:#x}, which was synced, or one other generation")
        }
        (Some(durable), n) => {
            format!("generation {durable:#x}, which was synced, or one of {n} other generations")
        }
        (None, 1) => format!("generation {:#x}, or nothing", block.newest),
        (None, n) => format!("one of {n} generations, or nothing"),
    }
}

#[cfg(test)]
mod tests;
