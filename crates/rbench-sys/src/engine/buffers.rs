//! The memory of a worker's blocks: one mapping, with a page-aligned slot for each
//! request. Engines decide who may use a slot at which time.

use nix::errno::Errno;

use super::contract::EngineConfig;
use crate::buffer::{AlignedBuffer, BlockMemory};

/// The buffers of all slots.
pub(super) struct Buffers {
    memory: AlignedBuffer,
    /// True if no option changes it.
    ordinary: bool,
    stride: usize,
    depth: usize,
    block: usize,
}

impl Buffers {
    /// Takes the memory from `config`, or maps the buffers. `EINVAL` if depth or
    /// block is 0, or depth exceeds `depth_max`; `ENOMEM` if they do not fit.
    pub(super) fn new(config: &mut EngineConfig, depth_max: usize) -> Result<Buffers, Errno> {
        let EngineConfig { depth, block, .. } = *config;
        if depth == 0 || depth > depth_max || block == 0 {
            return Err(Errno::EINVAL);
        }
        let given = config.memory.take();
        let ordinary = given.is_none();
        let BlockMemory {
            bytes: memory,
            stride,
        } = match given {
            Some(given) => given,
            None => BlockMemory::of_pages(depth, block)?,
        };
        if stride < block || memory.len() / stride < depth {
            return Err(Errno::EINVAL);
        }
        Ok(Buffers {
            memory,
            ordinary,
            stride,
            depth,
            block,
        })
    }

    /// Number of slots.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// See [`crate::Engine::exchange`].
    pub(super) fn exchange(&mut self, buffer: &mut AlignedBuffer) -> bool {
        let fits = self.ordinary && self.depth == 1 && buffer.len() == self.memory.len();
        if fits {
            std::mem::swap(&mut self.memory, buffer);
        }
        fits
    }

    /// Length of a slot's buffer in bytes.
    pub(super) fn block(&self) -> usize {
        self.block
    }

    /// The start of a slot's buffer, for the kernel. Panics if the slot does not
    /// exist, or `length` bytes do not fit.
    #[inline]
    pub(super) fn pointer(&self, slot: usize, length: usize) -> *mut u8 {
        assert!(slot < self.depth, "there is no slot {slot}");
        assert!(length <= self.block, "{length} bytes exceed the buffer");
        // SAFETY: `slot` is less than the depth, so the address is within the memory
        // of depth * stride bytes.
        unsafe { self.memory.start().add(slot * self.stride) }
    }

    /// The buffer of a slot, for the worker.
    #[inline]
    pub(super) fn slice(&mut self, slot: usize) -> &mut [u8] {
        let start = self.pointer(slot, self.block);
        // Not through a reference to all the memory: the kernel may use other slots.
        // SAFETY: the memory has `block` initialised (zeroed) bytes from `start` on,
        // and `&mut self` excludes other references.
        unsafe { std::slice::from_raw_parts_mut(start, self.block) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_is_aligned_zeroed_and_its_own() {
        let mut config = EngineConfig::new(5, 5000);
        let mut buffers = Buffers::new(&mut config, 8).expect("20 pages are there");
        for slot in 0..5 {
            let bytes = buffers.slice(slot);
            assert_eq!(bytes.as_ptr().addr() % AlignedBuffer::ALIGNMENT, 0);
            assert_eq!(bytes, &[0; 5000]);
            bytes.fill(slot as u8 + 1);
        }
        for slot in 0..5 {
            assert_eq!(buffers.slice(slot), &[slot as u8 + 1; 5000]);
        }
    }

    #[test]
    fn impossible_configurations_are_refused() {
        let check = |depth, block, expect| {
            let result = Buffers::new(&mut EngineConfig::new(depth, block), 8);
            assert_eq!(result.err(), Some(expect), "{depth} x {block}");
        };
        check(0, 4096, Errno::EINVAL);
        check(9, 4096, Errno::EINVAL);
        check(1, 0, Errno::EINVAL);
        check(1, usize::MAX, Errno::ENOMEM);
        check(8, usize::MAX / 4, Errno::ENOMEM);
        check(1, 1 << 50, Errno::ENOMEM);
    }
}
