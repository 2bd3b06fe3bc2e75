//! The engine `psync`: `pread`, `pwrite` and `fsync`, one request at a time.

use nix::errno::Errno;
use nix::libc;

use super::buffers::Buffers;
use super::progress::advance;
use crate::engine::{Completion, Engine, EngineConfig, EngineInfo, Request, Transfer};

/// The line in [`crate::engine::ENGINES`].
pub const INFO: EngineInfo = EngineInfo {
    name: "psync",
    about: "pread and pwrite, one at a time",
    depth_max: 1,
    moves_data: true,
    make,
};

struct Psync {
    buffers: Buffers,
    /// The last request's end, until it is collected.
    done: Option<Completion>,
}

fn make(config: EngineConfig) -> Result<Box<dyn Engine>, Errno> {
    Ok(Box::new(Psync {
        buffers: Buffers::new(config, INFO.depth_max)?,
        done: None,
    }))
}

/// One system call for what is left of `request` after `moved` bytes.
#[inline]
fn call(request: &Request, buffer: *mut u8, moved: usize) -> Result<usize, Errno> {
    let length = request.length - moved;
    // An offset above i64::MAX turns negative, which the kernel refuses.
    let offset = request.offset.wrapping_add(moved as u64) as libc::off_t;
    // SAFETY: the caller gives a buffer of at least `request.length` bytes
    // that nothing else uses, and `moved` is at most that.
    let returned = unsafe {
        let rest = buffer.add(moved);
        match request.transfer {
            Transfer::Read => libc::pread(request.fd, rest.cast(), length, offset),
            Transfer::Write => libc::pwrite(request.fd, rest.cast(), length, offset),
            Transfer::Fsync => libc::fsync(request.fd) as isize,
        }
    };
    Errno::result(returned).map(|n| n as usize)
}

impl Engine for Psync {
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.buffers.slice(slot)
    }

    #[inline]
    fn submit(&mut self, slot: usize, request: Request) {
        assert!(self.done.is_none(), "slot {slot} is in use");
        let whole = self.buffers.pointer(slot, request.at + request.length);
        let buffer = whole.wrapping_byte_add(request.at);
        let mut moved = 0;
        let result = loop {
            let returned = call(&request, buffer, moved);
            if let Some(result) = advance(&request, &mut moved, returned) {
                break result;
            }
        };
        self.done = Some(Completion { slot, result });
    }

    fn wait(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        done.extend(self.done.take());
        Ok(())
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        self.wait(done)
    }
}
