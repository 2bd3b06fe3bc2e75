//! Memory for blocks that go to and come from files, `O_DIRECT` included.

mod memory;

use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use nix::errno::Errno;
use nix::libc::{self, c_void};
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

pub use memory::{BlockMemory, LockedMemory};

/// Bytes of a mapping of its own, zeros at first, that start at a multiple of
/// [`AlignedBuffer::ALIGNMENT`]. Its pages are there from the start, so that
/// no page fault falls into a timed call.
#[derive(Debug)]
pub struct AlignedBuffer {
    base: NonNull<u8>,
    length: usize,
    origin: Origin,
}

/// What has to be given back.
#[derive(Debug, Clone, Copy)]
enum Origin {
    /// A mapping of so many bytes.
    Mapping(NonNull<u8>, NonZeroUsize),
    /// A System V segment.
    Segment(NonNull<u8>),
}

impl Origin {
    fn start(self) -> NonNull<u8> {
        match self {
            Origin::Mapping(start, _) | Origin::Segment(start) => start,
        }
    }
}

// SAFETY: the mapping belongs to this value alone and to no thread.
unsafe impl Send for AlignedBuffer {}

impl AlignedBuffer {
    /// What `O_DIRECT` asks for on every common device, in bytes. The kernel's
    /// pages, at which mappings start, are multiples of it.
    pub const ALIGNMENT: usize = 4096;

    /// A buffer of `length` bytes, which may be 0. `ENOMEM` when they do not
    /// fit.
    pub fn new(length: usize) -> Result<AlignedBuffer, Errno> {
        // SAFETY: a new private mapping at an address of the kernel's choice
        // touches no memory that is in use.
        let base = unsafe {
            mmap_anonymous(
                None,
                mapped(length),
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_PRIVATE | MapFlags::MAP_POPULATE,
            )
        }?;
        let origin = Origin::Mapping(base.cast(), mapped(length));
        Ok(AlignedBuffer::within(origin, 0, length))
    }

    /// `length` bytes that lie `ahead` of the start of `origin`, in it, which becomes its
    /// own.
    fn within(origin: Origin, ahead: usize, length: usize) -> AlignedBuffer {
        AlignedBuffer {
            // SAFETY: so many bytes are in the mapping.
            base: unsafe { origin.start().add(ahead) },
            length,
            origin,
        }
    }

    /// Where it starts, for the kernel: who writes there while a reference to
    /// its bytes exists breaks Rust's rules.
    #[inline]
    pub(crate) fn start(&self) -> *mut u8 {
        self.base.as_ptr()
    }
}

/// The bytes to map for `length`: a mapping cannot be empty.
fn mapped(length: usize) -> NonZeroUsize {
    NonZeroUsize::new(length).unwrap_or(NonZeroUsize::MIN)
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `length` initialised (zeroed) bytes from `base` on lie in
        // the mapping, and `&self` keeps writers away.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.length) }
    }
}

impl DerefMut for AlignedBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` keeps other references away.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.length) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        let given_back = match self.origin {
            Origin::Mapping(start, length) => {
                // SAFETY: they are those of the mapping as it was made, and no reference into
                // it outlives `self`.
                unsafe { munmap(start.cast::<c_void>(), length.get()) }
            }
            Origin::Segment(start) => {
                // SAFETY: as above, of a segment.
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
