//! What written blocks hold: random, partly compressible, zeros or a pattern,
//! with duplicates where they were asked for.
//!
//! A block is a function of a 64-bit key, so that a reader can make it again
//! and a duplicate is the same key once more.

use rbench_core::random::{DataStream, Stream, key, mix};
use rbench_plan::jobs::{BufferContent, Buffers};

/// What the working set of all jobs derives from (`dedupe_global`).
const SHARED: u64 = 0xded0;

/// Each stretch of this length changes when a buffer is scrambled.
const SECTOR: usize = 512;

/// Fills `block` with the content that belongs to `block_key`.
pub fn fill(content: &BufferContent, block_key: u64, block: &mut [u8]) {
    match content {
        BufferContent::Zero => block.fill(0),
        BufferContent::Pattern(pattern) => repeat(pattern, block),
        BufferContent::Random { percent: 0, .. } => DataStream::for_block(block_key).fill(block),
        BufferContent::Random {
            percent,
            chunk,
            pattern,
        } => {
            let whole = block.len().max(1);
            let chunk = match usize::try_from(*chunk) {
                Ok(0) | Err(_) => whole,
                Ok(bytes) => bytes,
            };
            let kept = 100 - (*percent).min(100) as usize;
            let mut stream = DataStream::for_block(block_key);
            for piece in block.chunks_mut(chunk) {
                let random = piece.len() * kept / 100;
                let (hard, soft) = piece.split_at_mut(random);
                stream.fill(hard);
                repeat(pattern, soft);
            }
        }
    }
}

/// Fills `bytes` with `pattern` again and again; without one, with zeros.
pub fn repeat(pattern: &[u8], bytes: &mut [u8]) {
    match pattern {
        [] => bytes.fill(0),
        [one] => bytes.fill(*one),
        several => {
            for piece in bytes.chunks_mut(several.len()) {
                piece.copy_from_slice(&several[..piece.len()]);
            }
        }
    }
}

/// Fills the buffers of a worker's slots before they are written.
#[derive(Debug, Clone)]
pub struct Filler {
    plan: Buffers,
    key: u64,
    writes: u64,
    /// Blocks so far that are no duplicates.
    originals: u64,
    /// What keys of a working set derive from.
    set_key: u64,
    choice: Stream,
    /// Bytes of each slot's buffer that hold data from an earlier write.
    filled: Vec<usize>,
}

impl Filler {
    /// For a worker with so many slots; the data belongs to `parts`.
    pub fn new(plan: &Buffers, slots: usize, parts: &[u64]) -> Filler {
        Filler {
            plan: plan.clone(),
            key: key(parts),
            writes: 0,
            originals: 0,
            set_key: match plan.working_set {
                Some(set) if set.shared => key(&[SHARED]),
                _ => key(&[key(parts), SHARED]),
            },
            choice: Stream::new(parts),
            filled: vec![0; slots],
        }
    }

    /// Makes the buffer of `slot` ready for the next write, whose data it is.
    #[inline]
    pub fn ready(&mut self, slot: usize, block: &mut [u8]) {
        let number = self.writes;
        self.writes += 1;
        if self.plan.refill {
            let block_key = self.next_key(number);
            fill(&self.plan.content, block_key, block);
            return;
        }
        if self.filled[slot] < block.len() {
            fill(&self.plan.content, mix(self.key ^ mix(number)), block);
            self.filled[slot] = block.len();
        } else if self.plan.scramble {
            scramble(mix(self.key ^ number), block);
        }
    }

    /// Tells that something else was put into the buffer of `slot`.
    #[inline]
    pub fn spoil(&mut self, slot: usize) {
        self.filled[slot] = 0;
    }

    /// The key of the write with this number: of every hundred so many are
    /// that of the latest one, as in fio, or of the working set.
    fn next_key(&mut self, number: u64) -> u64 {
        let percent = u64::from(self.plan.dedupe_percent.min(100));
        let copies = |writes: u64| writes * percent / 100;
        let due = copies(number + 1) > copies(number);
        if let (Some(set), true) = (self.plan.working_set, due) {
            return mix(self.set_key ^ mix(self.choice.below(set.blocks)));
        }
        let original = if due && self.originals > 0 {
            self.originals - 1
        } else {
            self.originals += 1;
            self.originals - 1
        };
        mix(self.key ^ mix(original))
    }
}

/// Changes eight bytes of every sector.
fn scramble(seed: u64, block: &mut [u8]) {
    let mut word = seed | 1;
    for sector in block.chunks_exact_mut(SECTOR) {
        // A step of xorshift64 (Marsaglia 2003) for each sector.
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        let at = (word as usize & 63) * 8;
        sector[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
}

/// Data of blocks that carry no stamp, by the shortest way.
pub enum Data {
    /// Nothing but random bytes.
    Random(DataStream),
    /// Compressible, or with duplicates: as jobs make it.
    Shaped(Box<Filler>),
}

impl Data {
    /// For a worker with so many slots; the data belongs to `parts`.
    pub fn new(buffers: &Buffers, slots: usize, parts: &[u64]) -> Data {
        let random = matches!(buffers.content, BufferContent::Random { percent: 0, .. });
        if random && buffers.refill && buffers.dedupe_percent == 0 {
            Data::Random(DataStream::new(parts))
        } else {
            Data::Shaped(Box::new(Filler::new(buffers, slots, parts)))
        }
    }

    /// Fills the block of `slot` that is to be written next.
    #[inline]
    pub fn fill(&mut self, slot: usize, block: &mut [u8]) {
        match self {
            Data::Random(stream) => stream.fill(block),
            Data::Shaped(filler) => filler.ready(slot, block),
        }
    }

    /// Tells that something else was put into the buffer of `slot`.
    #[inline]
    pub fn spoil(&mut self, slot: usize) {
        if let Data::Shaped(filler) = self {
            filler.spoil(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn random(percent: u32, chunk: u64) -> BufferContent {
        BufferContent::Random {
            percent,
            chunk,
            pattern: Vec::new(),
        }
    }

    fn written(plan: &Buffers, block: usize, blocks: usize) -> Vec<u8> {
        let mut filler = Filler::new(plan, 1, &[1, 2]);
        let mut buffer = vec![0; block];
        let mut all = Vec::new();
        for _ in 0..blocks {
            filler.ready(0, &mut buffer);
            all.extend_from_slice(&buffer);
        }
        all
    }

    fn refilled(content: BufferContent, dedupe_percent: u32) -> Buffers {
        Buffers {
            refill: true,
            scramble: false,
            content,
            dedupe_percent,
            working_set: None,
        }
    }

    #[test]
    fn zstd_finds_the_percentage_that_was_asked_for() {
        for (block, chunk) in [
            (4096, 512),
            (4096, 0),
            (1 << 20, 512),
            (1 << 20, 0),
            (65536, 4096),
        ] {
            for percent in [0, 10, 25, 50, 75, 90, 100] {
                let blocks = (8 << 20) / block;
                let data = written(&refilled(random(percent, chunk), 0), block, blocks);
                let packed = zstd::bulk::compress(&data, 3).expect("compresses");
                let got = 100.0 * (1.0 - packed.len() as f64 / data.len() as f64);
                assert!(
                    (got - f64::from(percent)).abs() <= 3.0,
                    "{got} for {percent} of {block} by {chunk}"
                );
            }
        }
    }

    #[test]
    fn so_many_blocks_of_a_hundred_are_copies() {
        for percent in [0, 20, 50, 80] {
            let data = written(&refilled(random(0, 0), percent), 4096, 1000);
            let mut seen = BTreeMap::new();
            data.chunks(4096)
                .for_each(|block| *seen.entry(block).or_insert(0) += 1);
            let copies = 1000 - seen.len();
            assert!(
                copies.abs_diff(percent as usize * 10) <= 1,
                "{copies} for {percent}"
            );
        }
    }

    #[test]
    fn a_buffer_that_is_not_refilled_changes_a_little_in_every_sector_when_scrambled() {
        let mut plan = refilled(random(0, 0), 0);
        plan.refill = false;
        let same = written(&plan, 4096, 2);
        assert_eq!(same[..4096], same[4096..]);
        plan.scramble = true;
        let data = written(&plan, 4096, 2);
        let (first, second) = data.split_at(4096);
        for (a, b) in first.chunks(512).zip(second.chunks(512)) {
            let changed = a.iter().zip(b).filter(|(x, y)| x != y).count();
            assert!((1..=8).contains(&changed), "{changed}");
        }
    }

    #[test]
    fn a_buffer_that_a_read_went_through_is_filled_again() {
        let mut plan = refilled(BufferContent::Pattern(b"abc".to_vec()), 0);
        plan.refill = false;
        let mut filler = Filler::new(&plan, 1, &[1]);
        let mut buffer = vec![0; 7];
        filler.ready(0, &mut buffer);
        assert_eq!(buffer, b"abcabca");
        buffer.fill(9);
        filler.spoil(0);
        filler.ready(0, &mut buffer);
        assert_eq!(buffer, b"abcabca");
    }

    #[test]
    fn the_compressible_part_holds_the_pattern() {
        let mut block = vec![1; 1024];
        let content = BufferContent::Random {
            percent: 50,
            chunk: 512,
            pattern: b"xy".to_vec(),
        };
        fill(&content, 5, &mut block);
        for chunk in block.chunks(512) {
            assert_eq!(chunk[256..260], *b"xyxy");
            assert_ne!(chunk[..16], [0; 16]);
        }
    }
}
