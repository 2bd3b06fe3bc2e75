//! Common part of the engines that make one request after the other: everything except
//! the system calls themselves ([`Calls`]).

use std::os::fd::{OwnedFd, RawFd};
use std::path::Path;

use nix::errno::Errno;
use nix::libc;

use super::buffers::Buffers;
use super::contract::{
    Completion, Engine, EngineConfig, EngineCounts, Request, RetriesByTransfer, Transfer,
};
use super::progress::advance;
use crate::buffer::AlignedBuffer;
use crate::calls;
use crate::files::Advice;

/// The rest of a request: `length` bytes of memory from `start` on, which are valid and
/// which nothing else uses, and the offset in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest {
    pub(super) fd: RawFd,
    pub(super) start: *mut u8,
    pub(super) length: usize,
    /// The offset; negative for an impossible one, which the kernel refuses.
    pub(super) offset: libc::off_t,
}

impl Rest {
    /// The rest as the one element of a vector.
    pub(super) fn vector(&self) -> libc::iovec {
        libc::iovec {
            iov_base: self.start.cast(),
            iov_len: self.length,
        }
    }
}

/// The system calls of an engine. Each may make a part of the rest, or be interrupted:
/// it is called again.
pub(super) trait Calls: Send {
    /// True if requests are of names: each is one call, whose transfer does not matter, and there is no
    /// memory.
    const OF_NAMES: bool = false;

    /// From the file into the memory; the number of bytes.
    fn read(&mut self, rest: &Rest) -> Result<usize, Errno>;

    /// Writes to the file; returns the number of bytes.
    fn write(&mut self, rest: &Rest) -> Result<usize, Errno>;

    /// Deallocates the blocks of the range.
    fn trim(&mut self, rest: &Rest) -> Result<usize, Errno> {
        trim_file(rest.fd, rest.offset, rest.length)
    }

    /// Writes data to stable storage, with all of the file's attributes unless
    /// `data_only`.
    fn sync(&mut self, fd: RawFd, data_only: bool) -> Result<(), Errno> {
        sync_file(fd, data_only)
    }

    /// See [`Engine::attach`].
    fn attach(&mut self, fd: RawFd, advice: Option<Advice>) {
        let _ = (fd, advice);
    }

    /// See [`Engine::detach`].
    fn detach(&mut self, fd: RawFd) {
        let _ = fd;
    }

    /// See [`Engine::name_files`].
    fn name_files(&mut self, paths: &mut dyn Iterator<Item = &Path>) -> Result<(), Errno> {
        let _ = paths;
        Ok(())
    }

    /// See [`Engine::take_opened`].
    fn take_opened(&mut self) -> Option<OwnedFd> {
        None
    }
}

/// Calls fdatasync or fsync.
pub(super) fn sync_file(fd: RawFd, data_only: bool) -> Result<(), Errno> {
    calls::fsync(fd, data_only)
}

/// Punches a hole in the file; returns the number of bytes.
#[cold]
pub(super) fn trim_file(fd: RawFd, offset: libc::off_t, length: usize) -> Result<usize, Errno> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    calls::fallocate(fd, mode, offset, length).map(|()| length)
}

/// Performs a request without a buffer (a trim or a sync), in an engine that has other
/// requests in flight.
#[cold]
pub(super) fn at_once(request: &Request, again: &mut RetriesByTransfer) -> Result<usize, Errno> {
    let mut moved = 0;
    loop {
        let returned = match request.transfer {
            Transfer::Trim => {
                // An offset above i64::MAX becomes negative.
                trim_file(request.fd, request.offset.cast_signed(), request.length)
            }
            sync => sync_file(request.fd, sync == Transfer::DataSync).map(|()| 0),
        };
        if let Some(result) = advance(request, &mut moved, returned, again) {
            return result;
        }
    }
}

/// The number of bytes that a system call returned, or its error.
#[inline]
pub(super) fn bytes(returned: isize) -> Result<usize, Errno> {
    Errno::result(returned).map(|n| n as usize)
}

/// Creates an engine of `calls` with one slot.
pub(super) fn make<C: Calls + 'static>(
    mut config: EngineConfig,
    calls: C,
) -> Result<Box<dyn Engine>, Errno> {
    if C::OF_NAMES {
        (config.block, config.memory) = (config.block.min(1), None);
    }
    Ok(Box::new(Synchronous {
        buffers: Buffers::new(&mut config, 1)?,
        calls,
        done: None,
        requests: 0,
        again: RetriesByTransfer::default(),
    }))
}

struct Synchronous<C> {
    buffers: Buffers,
    calls: C,
    /// The last completion, until it is collected.
    done: Option<Completion>,
    /// Number of collected requests.
    requests: u64,
    again: RetriesByTransfer,
}

impl<C: Calls> Synchronous<C> {
    /// Makes one system call for the rest of `request` after `moved` bytes.
    #[inline]
    fn call(&mut self, request: &Request, start: *mut u8, moved: usize) -> Result<usize, Errno> {
        let rest = Rest {
            fd: request.fd,
            start: start.wrapping_byte_add(moved),
            length: request.length - moved,
            // An offset above i64::MAX becomes negative.
            offset: request.offset.wrapping_add(moved as u64) as libc::off_t,
        };
        match request.transfer {
            Transfer::Read => self.calls.read(&rest),
            Transfer::Write => self.calls.write(&rest),
            Transfer::Trim => self.calls.trim(&rest),
            Transfer::Fsync => self.calls.sync(request.fd, false).map(|()| 0),
            Transfer::DataSync => self.calls.sync(request.fd, true).map(|()| 0),
        }
    }
}

impl<C: Calls> Synchronous<C> {
    /// Performs all of `request`.
    #[inline]
    fn complete(&mut self, slot: usize, request: &Request) -> Result<usize, Errno> {
        if C::OF_NAMES {
            return self.call(request, std::ptr::null_mut(), 0);
        }
        let needed = match request.transfer {
            Transfer::Trim => 0,
            _ => request.at + request.length,
        };
        let whole = self.buffers.pointer(slot, needed);
        let start = whole.wrapping_byte_add(request.at);
        let mut moved = 0;
        loop {
            let returned = self.call(request, start, moved);
            if let Some(result) = advance(request, &mut moved, returned, &mut self.again) {
                return result;
            }
        }
    }
}

impl<C: Calls> Engine for Synchronous<C> {
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.buffers.slice(slot)
    }

    fn exchange(&mut self, buffer: &mut AlignedBuffer) -> bool {
        assert!(self.done.is_none(), "slot 0 is in use");
        self.buffers.exchange(buffer)
    }

    fn attach(&mut self, fd: RawFd, advice: Option<Advice>) {
        self.calls.attach(fd, advice);
    }

    fn detach(&mut self, fd: RawFd) {
        self.calls.detach(fd);
    }

    fn name_files(&mut self, paths: &mut dyn Iterator<Item = &Path>) -> Result<(), Errno> {
        self.calls.name_files(paths)
    }

    fn take_opened(&mut self) -> Option<OwnedFd> {
        self.calls.take_opened()
    }

    #[inline]
    fn submit(&mut self, slot: usize, request: Request) {
        assert!(self.done.is_none(), "slot {slot} is in use");
        let result = self.complete(slot, &request);
        self.done = Some(Completion { slot, result });
    }

    fn perform(
        &mut self,
        request: Request,
        _room: &mut Vec<Completion>,
    ) -> Result<Result<usize, Errno>, Errno> {
        assert!(self.done.is_none(), "slot 0 is in use");
        self.requests += 1;
        Ok(self.complete(0, &request))
    }

    fn wait(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        if let Some(completion) = self.done.take() {
            self.requests += 1;
            done.push(completion);
        }
        Ok(())
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        self.wait(done)
    }

    fn counts(&self) -> EngineCounts {
        EngineCounts::one_by_one(self.requests, self.again)
    }
}
