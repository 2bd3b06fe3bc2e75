//! Memory for blocks of files, also with `O_DIRECT`.

mod memory;

use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use nix::errno::Errno;
use nix::libc::{self, c_void};
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

pub use memory::{BlockMemory, LockedMemory};

/// Bytes in their own mapping, zeros at first, aligned to [`AlignedBuffer::ALIGNMENT`]. The
/// pages are populated from the start, so that no page fault occurs in a timed call.
#[derive(Debug)]
pub struct AlignedBuffer {
    base: NonNull<u8>,
    length: usize,
    origin: Origin,
}

/// Memory that must be given back.
#[derive(Debug, Clone, Copy)]
enum Origin {
    /// A mapping with its length.
    Mapping(NonNull<u8>, NonZeroUsize),
    /// A System V segment.
    Segment(NonNull<u8>),
}

impl Origin {
    /// Maps memory of this process, zeros at first.
    fn mapping(length: NonZeroUsize, more: MapFlags) -> Result<Origin, Errno> {
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new private mapping at an address chosen by the kernel touches no memory
        // in use.
        let start = unsafe { mmap_anonymous(None, length, access, MapFlags::MAP_PRIVATE | more) }?;
        Ok(Origin::Mapping(start.cast(), length))
    }

    fn start(self) -> NonNull<u8> {
        match self {
            Origin::Mapping(start, _) | Origin::Segment(start) => start,
        }
    }
}

// SAFETY: the mapping belongs only to this value, and to no thread.
unsafe impl Send for AlignedBuffer {}

impl AlignedBuffer {
    /// Alignment that `O_DIRECT` needs on every common device, in bytes. Mappings start at
    /// pages of the kernel, which are multiples of it.
    pub const ALIGNMENT: usize = 4096;

    /// Creates a buffer of `length` bytes, which may be 0. `ENOMEM` if they do not fit.
    pub fn new(length: usize) -> Result<AlignedBuffer, Errno> {
        // A mapping cannot be empty.
        let mapped = NonZeroUsize::new(length).unwrap_or(NonZeroUsize::MIN);
        let origin = Origin::mapping(mapped, MapFlags::MAP_POPULATE)?;
        Ok(AlignedBuffer::within(origin, 0, length))
    }

    /// A buffer of `length` bytes, at offset `ahead` in `origin`, which it owns.
    fn within(origin: Origin, ahead: usize, length: usize) -> AlignedBuffer {
        AlignedBuffer {
            // SAFETY: the mapping has this number of bytes.
            base: unsafe { origin.start().add(ahead) },
            length,
            origin,
        }
    }

    /// Its start, for the kernel. Writing there while a reference to its bytes exists breaks
    /// Rust's rules.
    #[inline]
    pub(crate) fn start(&self) -> *mut u8 {
        self.base.as_ptr()
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping has `length` initialised (zeroed) bytes from `base` on, and
        // `&self` excludes writers.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.length) }
    }
}

impl DerefMut for AlignedBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` excludes other references.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.length) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        let given_back = match self.origin {
            Origin::Mapping(start, length) => {
                // SAFETY: the mapping as it was created; no reference into it outlives
                // `self`.
                unsafe { munmap(start.cast::<c_void>(), length.get()) }
            }
            Origin::Segment(start) => {
                // SAFETY: as above, for a segment.
                let detached = unsafe { libc::shmdt(start.as_ptr().cast()) };
                Errno::result(detached).map(drop)
            }
        };
        debug_assert_eq!(given_back, Ok(()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_zeroed_and_as_long_as_asked() {
        for length in [0, 1, 4095, 4096, 4097, 3_000_000] {
            let mut buffer = AlignedBuffer::new(length).expect("3 MB are there");
            assert_eq!(buffer.as_ptr().addr() % AlignedBuffer::ALIGNMENT, 0);
            assert_eq!(buffer.len(), length);
            assert!(buffer.iter().all(|byte| *byte == 0), "{length}");
            buffer.fill(7);
            assert!(buffer.iter().all(|byte| *byte == 7), "{length}");
        }
    }

    #[test]
    fn a_buffer_that_cannot_be_had_gives_enomem() {
        for length in [1 << 50, usize::MAX] {
            assert_eq!(AlignedBuffer::new(length).err(), Some(Errno::ENOMEM));
        }
    }
}
