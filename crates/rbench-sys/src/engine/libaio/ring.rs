//! The ring of completions that the kernel maps into the process with a
//! context: what is complete can be taken out of it without a system call.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::calls::IoEvent;

/// What the kernel's `aio_ring` begins with.
const MAGIC: u32 = 0xa10a_10a1;

/// The kernel's `aio_ring`; as many events as it has places follow.
#[repr(C)]
struct Header {
    id: u32,
    /// Number of places.
    places: u32,
    /// The next event to take out; the kernel reads it.
    head: u32,
    /// Behind the last event; the kernel writes it.
    tail: u32,
    magic: u32,
    compat_features: u32,
    incompat_features: u32,
    header_length: u32,
}

/// The ring of a context.
pub(super) struct Ring {
    header: *mut Header,
    places: u32,
}

impl Ring {
    /// The ring of `context`, whose number is its address; `None` where it has
    /// another form than is known here.
    pub(super) fn of(context: usize) -> Option<Ring> {
        let header = std::ptr::with_exposed_provenance_mut::<Header>(context);
        // SAFETY: the kernel has mapped the ring there, readable and writable,
        // until the context is destroyed; nobody writes these fields.
        let found = unsafe { (&raw const *header).read_volatile() };
        let known = found.magic == MAGIC
            && found.incompat_features == 0
            && found.header_length as usize == size_of::<Header>()
            && found.places > 0;
        known.then_some(Ring {
            header,
            places: found.places,
        })
    }

    /// Moves what is complete to `events`, as far as its capacity reaches.
    #[inline]
    pub(super) fn take(&self, events: &mut Vec<IoEvent>) {
        // SAFETY: as in `of`; both fields are written by one side only, each
        // whole.
        let (head, tail) = unsafe {
            let header = self.header;
            (
                AtomicU32::from_ptr(&raw mut (*header).head),
                AtomicU32::from_ptr(&raw mut (*header).tail),
            )
        };
        // SAFETY: the events follow the header.
        let first = unsafe { self.header.add(1) }.cast::<IoEvent>();
        let (before, end) = (head.load(Ordering::Relaxed), tail.load(Ordering::Acquire));
        let mut next = before;
        while next != end && events.len() < events.capacity() {
            // SAFETY: `next` is below the number of places, and the kernel has
            // written the event before it moved the tail past it.
            events.push(unsafe { first.add(next as usize).read_volatile() });
            next = (next + 1) % self.places;
        }
        if next != before {
            head.store(next, Ordering::Release);
        }
    }
}
