//! The engine `posixaio`: POSIX asynchronous I/O (`aio_read`, `aio_write`,
//! `aio_fsync`), with many requests in flight.
//!
//! The C library makes the requests in its own threads, those to a file one after the
//! other: requests to one open file do not overlap, and wait for an fsync of it. Each
//! request is handed over at submission. The library has no trims: they are made at
//! that time.
//!
//! These threads serve all workers, and use the table of open files of the thread that
//! created them ([`EngineInfo::one_file_table`]).

use std::mem::ManuallyDrop;

use nix::errno::Errno;
use nix::libc;
use rbench_core::Nanos;

use super::buffers::Buffers;
use super::contract::{
    Completion, Engine, EngineConfig, EngineCounts, EngineInfo, Request, Transfer,
};
use super::progress::advance;
use super::synchronous::at_once;

/// The line in [`super::ENGINES`].
pub const INFO: EngineInfo = EngineInfo {
    name: "posixaio",
    depth_max: 16_384,
    one_file_table: true,
    ..EngineInfo::of(make)
};

/// State of a slot.
#[derive(Clone, Copy)]
struct Slot {
    /// `None` while the slot is free.
    request: Option<Request>,
    /// Bytes moved until now.
    moved: usize,
}

struct PosixAio {
    /// Only freed when the library has finished with them.
    buffers: ManuallyDrop<Buffers>,
    slots: Vec<Slot>,
    /// The control block of each slot; the library refers to those in flight.
    blocks: ManuallyDrop<Vec<libc::aiocb>>,
    /// Slots whose requests were handed to the library.
    under_way: Vec<usize>,
    /// Requests that completed without the library.
    ready: Vec<Completion>,
    /// Argument of `aio_suspend`; empty in between.
    awaited: Vec<*const libc::aiocb>,
    counts: EngineCounts,
}

// SAFETY: the pointers lead to memory of this value only, and the library's functions
// may be called from any thread.
unsafe impl Send for PosixAio {}

fn make(mut config: EngineConfig) -> Result<Box<dyn Engine>, Errno> {
    let buffers = Buffers::new(&mut config, INFO.depth_max)?;
    let depth = config.depth;
    let free = Slot {
        request: None,
        moved: 0,
    };
    // SAFETY: all fields are numbers and pointers, and 0 is valid for each.
    let blank = || unsafe { std::mem::zeroed::<libc::aiocb>() };
    Ok(Box::new(PosixAio {
        buffers: ManuallyDrop::new(buffers),
        slots: vec![free; depth],
        blocks: ManuallyDrop::new((0..depth).map(|_| blank()).collect()),
        under_way: Vec::with_capacity(depth),
        ready: Vec::with_capacity(depth),
        awaited: Vec::with_capacity(depth),
        counts: EngineCounts::default(),
    }))
}

impl PosixAio {
    /// Performs a trim.
    #[cold]
    fn trim(&mut self, slot: usize, request: &Request) {
        self.counts.submits[EngineCounts::bucket(1)] += 1;
        let result = at_once(request, &mut self.counts.again);
        self.ready.push(Completion { slot, result });
    }

    /// Hands over the rest of the request of `slot`, which is not a trim.
    fn start(&mut self, slot: usize, request: &Request, moved: usize) {
        let start = self.buffers.pointer(slot, request.at + request.length);
        let block = &mut self.blocks[slot];
        block.aio_fildes = request.fd;
        block.aio_buf = start.wrapping_byte_add(request.at + moved).cast();
        block.aio_nbytes = request.length - moved;
        // An offset above i64::MAX becomes negative, which the kernel refuses.
        block.aio_offset = request.offset.wrapping_add(moved as u64).cast_signed();
        block.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
        let block: *mut libc::aiocb = block;
        // SAFETY: the control block is not moved, and no other request uses it. Block
        // and buffer outlive the request, because dropping the engine waits for it, and
        // `buffer` refuses a slot in use.
        let taken = unsafe {
            match request.transfer {
                Transfer::Read => libc::aio_read(block),
                Transfer::Write => libc::aio_write(block),
                Transfer::DataSync => libc::aio_fsync(libc::O_DSYNC, block),
                Transfer::Fsync | Transfer::Trim => libc::aio_fsync(libc::O_SYNC, block),
            }
        };
        match Errno::result(taken) {
            Ok(_) => {
                self.counts.submits[EngineCounts::bucket(1)] += 1;
                self.under_way.push(slot);
            }
            Err(errno) => {
                let result = Err(errno);
                self.ready.push(Completion { slot, result });
            }
        }
    }

    /// Result of the library's request of `slot`; `None` if it is not complete.
    fn ended(&mut self, slot: usize) -> Option<Result<usize, Errno>> {
        let block: *mut libc::aiocb = &mut self.blocks[slot];
        // SAFETY: the control block belongs to a request that was handed over.
        match unsafe { libc::aio_error(block) } {
            libc::EINPROGRESS => None,
            error => {
                // SAFETY: as before; it is complete, and this is the only call for its
                // result.
                let returned = unsafe { libc::aio_return(block) };
                Some(match error {
                    0 => Ok(usize::try_from(returned).unwrap_or(0)),
                    error => Err(Errno::from_raw(error)),
                })
            }
        }
    }

    /// Appends completions, and hands over the rest of partial transfers.
    fn reap(&mut self, done: &mut Vec<Completion>) {
        for completion in &self.ready {
            self.slots[completion.slot].request = None;
        }
        done.append(&mut self.ready);
        let mut at = 0;
        while at < self.under_way.len() {
            let number = self.under_way[at];
            let Some(returned) = self.ended(number) else {
                at += 1;
                continue;
            };
            self.under_way.swap_remove(at);
            let slot = &mut self.slots[number];
            let Some(request) = slot.request else {
                unreachable!("slot {number} completed twice");
            };
            let again = &mut self.counts.again;
            match advance(&request, &mut slot.moved, returned, again) {
                Some(result) => {
                    slot.request = None;
                    done.push(Completion {
                        slot: number,
                        result,
                    });
                }
                None => {
                    let moved = slot.moved;
                    self.start(number, &request, moved);
                }
            }
        }
    }

    /// Waits until one of the library's requests is complete, for at most `timeout`; a
    /// signal may end it earlier.
    fn suspend(&mut self, timeout: Option<Nanos>) -> Result<(), Errno> {
        self.awaited.clear();
        for slot in &self.under_way {
            self.awaited.push(&raw const self.blocks[*slot]);
        }
        let limit = timeout.map(|timeout| libc::timespec {
            tv_sec: (timeout.0 / Nanos::SECOND.0) as libc::time_t,
            tv_nsec: (timeout.0 % Nanos::SECOND.0) as libc::c_long,
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the list has this number of control blocks of requests that were
        // handed over; the limit is only read.
        let woken = unsafe {
            libc::aio_suspend(
                self.awaited.as_ptr(),
                self.awaited.len() as libc::c_int,
                limit,
            )
        };
        match Errno::result(woken) {
            Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// True if all submitted requests were collected.
    fn is_idle(&self) -> bool {
        self.under_way.is_empty() && self.ready.is_empty()
    }
}

impl Engine for PosixAio {
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        assert!(
            self.slots[slot].request.is_none(),
            "the buffer of slot {slot} is in use"
        );
        self.buffers.slice(slot)
    }

    fn submit(&mut self, slot: usize, request: Request) {
        assert!(self.slots[slot].request.is_none(), "slot {slot} is in use");
        match request.transfer {
            Transfer::Trim => self.trim(slot, &request),
            _ => self.start(slot, &request, 0),
        }
        self.slots[slot] = Slot {
            request: Some(request),
            moved: 0,
        };
    }

    fn wait(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        self.wait_many(1, done)
    }

    fn wait_many(&mut self, least: usize, done: &mut Vec<Completion>) -> Result<(), Errno> {
        if self.is_idle() {
            return Ok(());
        }
        let before = done.len();
        let all = self.under_way.len() + self.ready.len();
        let enough = before + least.clamp(1, all);
        loop {
            self.reap(done);
            if done.len() >= enough {
                break;
            }
            if self.ready.is_empty() {
                self.suspend(None)?;
            }
        }
        self.counts.completes[EngineCounts::bucket(done.len() - before)] += 1;
        Ok(())
    }

    fn wait_for(&mut self, done: &mut Vec<Completion>, timeout: Nanos) -> Result<(), Errno> {
        if self.is_idle() {
            return Ok(());
        }
        let before = done.len();
        self.reap(done);
        if done.len() == before && self.ready.is_empty() {
            self.suspend(Some(timeout))?;
            self.reap(done);
        }
        self.counts.completes[EngineCounts::bucket(done.len() - before)] += 1;
        Ok(())
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        if self.is_idle() {
            return Ok(());
        }
        let before = done.len();
        self.reap(done);
        self.counts.completes[EngineCounts::bucket(done.len() - before)] += 1;
        Ok(())
    }

    fn counts(&self) -> EngineCounts {
        self.counts
    }
}

impl Drop for PosixAio {
    /// Waits for the requests in flight: the library may still write to the buffers and
    /// control blocks. If waiting is impossible, they are leaked until the process
    /// ends.
    fn drop(&mut self) {
        let mut done = Vec::with_capacity(self.slots.len());
        while !self.is_idle() {
            if self.wait(&mut done).is_err() {
                return;
            }
            done.clear();
        }
        // SAFETY: no request is in flight, and the fields are not used again.
        unsafe {
            ManuallyDrop::drop(&mut self.buffers);
            ManuallyDrop::drop(&mut self.blocks);
        }
    }
}
