//! The ring of completions that the kernel maps into the process with a context.
//! Completions can be taken from it without a system call.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::calls::IoEvent;

/// Magic number of the kernel's `aio_ring`.
const MAGIC: u32 = 0xa10a_10a1;

/// The kernel's `aio_ring`, followed by its events.
#[repr(C)]
struct Header {
    id: u32,
    /// Number of events.
    places: u32,
    /// Index of the next event to take; the kernel reads it.
    head: u32,
    /// Index after the last event; the kernel writes it.
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
    /// The ring of `context`, whose number is its address; `None` if it has an
    /// unknown form.
    pub(super) fn of(context: usize) -> Option<Ring> {
        let header = std::ptr::with_exposed_provenance_mut::<Header>(context);
        // SAFETY: the kernel has mapped the ring there, readable and writable, until
        // the context is destroyed; nothing writes these fields.
        let ring = unsafe { (&raw const *header).read_volatile() };
        let known = ring.magic == MAGIC
            && ring.incompat_features == 0
            && ring.header_length as usize == size_of::<Header>()
            && ring.places > 0;
        known.then_some(Ring {
            header,
            places: ring.places,
        })
    }

    /// Moves completions to `events`, up to its capacity.
    #[inline]
    pub(super) fn take(&self, events: &mut Vec<IoEvent>) {
        // SAFETY: as in `of`; only one side writes each field, as a whole.
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
            // SAFETY: `next` is less than the number of events, and the kernel has
            // written the event before it moved the tail past it.
            events.push(unsafe { first.add(next as usize).read_volatile() });
            next = (next + 1) % self.places;
        }
        if next != before {
            head.store(next, Ordering::Release);
        }
    }
}
