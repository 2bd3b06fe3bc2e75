//! Copies to and from mappings of files that survive missing pages. A page is missing
//! if the file was truncated meanwhile, the device has an error, or a hole cannot be
//! filled. The kernel then sends SIGBUS to the thread.
//!
//! The handler replaces the mapped pages of the copy by anonymous memory, so that the
//! copy can end, and records it for the caller. A SIGBUS from anywhere else is
//! handled as before.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// The pages of this thread's current copy.
struct Guard {
    /// Address of the first byte, a multiple of the page size.
    start: Cell<usize>,
    /// Length in bytes, a multiple of the page size; 0 if there is no copy.
    length: Cell<usize>,
    /// True if the handler replaced them.
    replaced: Cell<bool>,
}

thread_local! {
    // Neither created nor dropped at run time, so that the handler may use it.
    static GUARD: Guard = const {
        Guard {
            start: Cell::new(0),
            length: Cell::new(0),
            replaced: Cell::new(false),
        }
    };
}

/// Previous action of SIGBUS.
static BEFORE: OnceLock<Result<SigAction, Errno>> = OnceLock::new();

/// Installs the handler, once for the process.
pub(super) fn install() -> Result<(), Errno> {
    let before = BEFORE.get_or_init(|| {
        let action = SigAction::new(
            SigHandler::SigAction(on_bus_error),
            // On the thread's alternate stack, like the standard library's handler of
            // stack overflows.
            SaFlags::SA_SIGINFO | SaFlags::SA_ONSTACK,
            SigSet::empty(),
        );
        // SAFETY: the handler only does what is permitted in one: it reads and writes
        // plain cells of its thread, and makes two system calls.
        unsafe { sigaction(Signal::SIGBUS, &action) }
    });
    before.map(drop)
}

extern "C" fn on_bus_error(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid description of the signal.
    let address = unsafe { (*info).si_addr() }.addr();
    if GUARD.try_with(|guard| guard.replace(address)) == Ok(true) {
        return;
    }
    // Another access: it is repeated with the previous action.
    match BEFORE.get() {
        // SAFETY: restores a handler that was in place.
        Some(Ok(before)) => drop(unsafe { sigaction(Signal::SIGBUS, before) }),
        // SAFETY: the default action of a signal is always permitted.
        _ => drop(unsafe { libc::signal(signal, libc::SIG_DFL) }),
    }
}

impl Guard {
    /// Replaces the guarded pages by anonymous memory if `address` is among them.
    /// Returns true if it did.
    fn replace(&self, address: usize) -> bool {
        let (start, length) = (self.start.get(), self.length.get());
        if address.wrapping_sub(start) >= length {
            return false;
        }
        let errno = Errno::last_raw();
        // SAFETY: the pages belong to a mapping that only the engine of this thread
        // uses, which drops it when it sees `replaced`.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::without_provenance_mut(start),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        Errno::set_raw(errno);
        self.replaced.set(mapped != libc::MAP_FAILED);
        self.replaced.get()
    }
}

/// Copies `length` bytes; either `from` or `to`, at `mapped`, lies in a mapping of a
/// file. Returns `false` if a page was missing. The copied data is then invalid, and
/// the mapping must be dropped without another access.
///
/// # Safety
/// [`install`] has been called. `from` is valid for reading and `to` for writing
/// `length` bytes, except for missing pages of the mapping; they do not overlap.
/// Nothing else uses the mapping, which starts at a page, or the other memory.
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, length: usize, mapped: *const u8) -> bool {
    let page = crate::limits::page_size() as usize;
    let start = mapped.addr() / page * page;
    let end = (mapped.addr() + length).next_multiple_of(page);
    GUARD.with(|guard| {
        guard.start.set(start);
        guard.length.set(end - start);
        // The handler runs in this thread, between any two instructions. Its inputs
        // must be written before the copy, and its outputs read after it.
        compiler_fence(Ordering::SeqCst);
        // SAFETY: promised by the caller.
        unsafe { std::ptr::copy_nonoverlapping(from, to, length) };
        compiler_fence(Ordering::SeqCst);
        guard.length.set(0);
        !guard.replaced.replace(false)
    })
}
