//! Data for blocks that carry no stamp: incompressible, or as `--compress`
//! and `--dedupe` ask for.

use rbench_core::random::DataStream;
use rbench_plan::jobs::{BufferContent, Buffers};

use crate::jobs::Filler;

/// Fills blocks before they are written.
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
}
