//! Copies to and from mappings of files that survive it when the file has no
//! page there: it was truncated meanwhile, the device has an error, or a hole
//! cannot be filled. The kernel then sends SIGBUS to the thread.
//!
//! The handler puts anonymous memory in place of the mapped pages that the
//! copy works on, so that it comes to its end, and notes it for the caller. A
//! SIGBUS from anywhere else goes the way it went before.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// The pages that this thread is copying to or from.
struct Guard {
    /// Address of the first byte, a multiple of the page size.
    start: Cell<usize>,
    /// In bytes, a multiple of the page size; 0: no copy is under way.
    length: Cell<usize>,
    /// Whether the handler replaced them.
    replaced: Cell<bool>,
}

thread_local! {
    // Neither made nor dropped at run time, so that the handler may use it.
    static GUARD: Guard = const {
        Guard {
            start: Cell::new(0),
            length: Cell::new(0),
            replaced: Cell::new(false),
        }
    };
}

/// What SIGBUS did before.
static BEFORE: OnceLock<Result<SigAction, Errno>> = OnceLock::new();

/// Sets the handler up, once for the process.
pub(super) fn install() -> Result<(), Errno> {
    let before = BEFORE.get_or_init(|| {
        let action = SigAction::new(
            SigHandler::SigAction(on_bus_error),
            // On the thread's alternate stack, as the handler of the standard
            // library for stacks that overflow.
            SaFlags::SA_SIGINFO | SaFlags::SA_ONSTACK,
            SigSet::empty(),
        );
        // SAFETY: the handler does what is permitted in one: it reads and
        // writes plain cells of its thread and makes two system calls.
        unsafe { sigaction(Signal::SIGBUS, &action) }
    });
    before.map(drop)
}

extern "C" fn on_bus_error(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: the kernel hands a valid description of the signal over.
    let address = unsafe { (*info).si_addr() }.addr();
    if GUARD.try_with(|guard| guard.replace(address)) == Ok(true) {
        return;
    }
    // Not ours: the access is tried again and meets what was there before.
    match BEFORE.get() {
        // SAFETY: a handler that was in place is put back.
        Some(Ok(before)) => drop(unsafe { sigaction(Signal::SIGBUS, before) }),
        // SAFETY: the default action of a signal is always permitted.
        _ => drop(unsafe { libc::signal(signal, libc::SIG_DFL) }),
    }
}

impl Guard {
    /// Puts anonymous memory in place of the guarded pages if `address` is
    /// among them; whether it did.
    fn replace(&self, address: usize) -> bool {
        let (start, length) = (self.start.get(), self.length.get());
        if address.wrapping_sub(start) >= length {
            return false;
        }
        let errno = Errno::last_raw();
        // SAFETY: the pages belong to a mapping that only the engine of this
        // thread uses, which drops it when it finds `replaced`.
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

/// Copies `length` bytes of which either `from` or `to`, at `mapped`, lies in
/// a mapping of a file. `false`: a page was missing. What was copied is then
/// worth nothing, and the mapping has to be dropped without another access.
///
/// # Safety
/// [`install`] has been called. `from` is valid for reading and `to` for
/// writing `length` bytes, but for missing pages of the mapping; both do not
/// overlap. Nobody else uses the mapping, which begins at a page, nor the
/// other memory.
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, length: usize, mapped: *const u8) -> bool {
    let page = crate::limits::page_size() as usize;
    let start = mapped.addr() / page * page;
    let end = (mapped.addr() + length).next_multiple_of(page);
    GUARD.with(|guard| {
        guard.start.set(start);
        guard.length.set(end - start);
        // The handler runs in this thread, between any two instructions: what
        // it reads is written before the copy, what it writes read after it.
        compiler_fence(Ordering::SeqCst);
        // SAFETY: as promised by the caller.
        unsafe { std::ptr::copy_nonoverlapping(from, to, length) };
        compiler_fence(Ordering::SeqCst);
        guard.length.set(0);
        !guard.replaced.replace(false)
    })
}
