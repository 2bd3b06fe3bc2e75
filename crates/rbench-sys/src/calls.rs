//! System calls of the timed path that bypass the C library. Its wrappers make other calls,
//! or are cancellation points. With threads, the library then marks the thread as cancellable
//! around each call, which rbench never uses.

use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc;
use syscalls::{Sysno, syscall1, syscall2, syscall3, syscall4, syscall5};

#[inline]
pub(crate) fn errno(error: syscalls::Errno) -> Errno {
    Errno::from_raw(error.into_raw())
}

/// `pread`; the kernel refuses a negative offset.
///
/// # Safety
/// `length` bytes from `start` on are valid, and nothing else uses them.
#[inline]
pub(crate) unsafe fn pread(
    fd: RawFd,
    start: *mut u8,
    length: usize,
    offset: libc::off_t,
) -> Result<usize, Errno> {
    let (fd, start, offset) = (fd as usize, start.expose_provenance(), offset as usize);
    // SAFETY: promised by the caller.
    unsafe { syscall4(Sysno::pread64, fd, start, length, offset) }.map_err(errno)
}

/// `pwrite`; the kernel refuses a negative offset.
///
/// # Safety
/// `length` bytes from `start` on are valid, and nothing writes to them.
#[inline]
pub(crate) unsafe fn pwrite(
    fd: RawFd,
    start: *const u8,
    length: usize,
    offset: libc::off_t,
) -> Result<usize, Errno> {
    let (fd, start, offset) = (fd as usize, start.expose_provenance(), offset as usize);
    // SAFETY: promised by the caller.
    unsafe { syscall4(Sysno::pwrite64, fd, start, length, offset) }.map_err(errno)
}

/// `close`.
///
/// # Safety
/// The descriptor belongs to the caller, which does not use it again.
#[inline]
pub(crate) unsafe fn close(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: promised by the caller.
    unsafe { syscall1(Sysno::close, fd as usize) }
        .map(drop)
        .map_err(errno)
}

/// `fsync`, or `fdatasync` with `data_only`.
#[inline]
pub(crate) fn fsync(fd: RawFd, data_only: bool) -> Result<(), Errno> {
    let number = if data_only {
        Sysno::fdatasync
    } else {
        Sysno::fsync
    };
    // SAFETY: no memory is involved; an invalid descriptor gives EBADF.
    unsafe { syscall1(number, fd as usize) }
        .map(drop)
        .map_err(errno)
}

/// `fallocate`; a negative offset is refused by the kernel.
#[inline]
pub(crate) fn fallocate(
    fd: RawFd,
    mode: libc::c_int,
    offset: libc::off_t,
    length: usize,
) -> Result<(), Errno> {
    let (fd, mode, offset) = (fd as usize, mode as usize, offset as usize);
    // SAFETY: no memory is involved; a number that is not a descriptor gives EBADF.
    unsafe { syscall4(Sysno::fallocate, fd, mode, offset, length) }
        .map(drop)
        .map_err(errno)
}

/// Completion of a request from [`io_getevents`]: the kernel's `io_event`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IoEvent {
    /// `aio_data` of the request.
    pub(crate) data: u64,
    /// Address of its control block.
    pub(crate) obj: u64,
    /// Number of bytes, or a negative errno.
    pub(crate) res: i64,
    pub(crate) res2: i64,
}

/// `io_setup`: creates a context for this number of requests in flight; its number is an
/// address of this process.
pub(crate) fn io_setup(requests: u32) -> Result<usize, Errno> {
    let mut context = 0_usize;
    let to = (&raw mut context).expose_provenance();
    // SAFETY: the kernel writes one number to `context`.
    unsafe { syscall2(Sysno::io_setup, requests as usize, to) }
        .map(|_| context)
        .map_err(errno)
}

/// `io_submit`: returns the number of requests, from the first on, that the kernel has
/// accepted.
///
/// # Safety
/// The control blocks and the memory that they name are valid until the requests are
/// complete, and nothing else uses them.
#[inline]
pub(crate) unsafe fn io_submit(context: usize, blocks: &[*mut libc::iocb]) -> Result<usize, Errno> {
    let from = blocks.as_ptr().expose_provenance();
    // SAFETY: promised by the caller.
    unsafe { syscall3(Sysno::io_submit, context, blocks.len(), from) }.map_err(errno)
}

/// `io_getevents`: appends completed requests to `events`, up to its capacity. Waits for
/// `least` of them, for at most `timeout`.
#[inline]
pub(crate) fn io_getevents(
    context: usize,
    least: usize,
    events: &mut Vec<IoEvent>,
    timeout: Option<&libc::timespec>,
) -> Result<(), Errno> {
    let room = events.spare_capacity_mut();
    let (most, to) = (room.len(), room.as_mut_ptr().expose_provenance());
    let timeout = timeout.map_or(0, |limit| std::ptr::from_ref(limit).expose_provenance());
    // SAFETY: the kernel writes at most `most` events after the existing ones, and reads the
    // timeout.
    let came = unsafe {
        syscall5(
            Sysno::io_getevents,
            context,
            least.min(most),
            most,
            to,
            timeout,
        )
    }
    .map_err(errno)?;
    // SAFETY: the kernel has written this number of events, and they fit.
    unsafe { events.set_len(events.len() + came) };
    Ok(())
}

/// `io_destroy`: waits for the requests in flight.
pub(crate) fn io_destroy(context: usize) {
    // SAFETY: an invalid context gives EINVAL, and nothing else refers to it.
    let _ = unsafe { syscall1(Sysno::io_destroy, context) };
}
