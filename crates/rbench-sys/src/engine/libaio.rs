//! The engine `libaio`: the kernel's asynchronous I/O (`io_submit`, `io_getevents`),
//! without the library of that name. Many requests in flight.
//!
//! [`Engine::submit`] queues requests. [`Engine::flush`], [`Engine::wait`] and
//! [`Engine::poll`] hand over the whole queue in one `io_submit`. With `O_DIRECT` the
//! kernel works asynchronously; without, it moves the data within `io_submit`.
//!
//! Syncs are fsync and fdatasync, made at submission, after handing over the queue,
//! like in fio. The kernel's `IOCB_CMD_FSYNC` (Linux 4.18) calls fsync in its own
//! thread, and gives `EINVAL` for files without it. Trims are made in the same way.
//!
//! If the kernel refuses a request (`EBADF`, `EINVAL`, `EPERM` for a real-time priority), that is
//! the error of the request; the others continue. Files that only support plain read and write (some
//! of `/proc` and `/dev`) are refused with `EINVAL`.
//!
//! All contexts of a host together have at most `/proc/sys/fs/aio-max-nr` requests:
//! beyond that, creating an engine gives `EAGAIN`.

mod ring;

use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use rbench_core::{EngineOptions, IoPriority, Nanos};

use self::ring::Ring;
use super::buffers::Buffers;
use super::contract::{
    Completion, Engine, EngineConfig, EngineCounts, EngineInfo, Request, Transfer,
};
use super::progress::advance;
use super::synchronous::at_once;
use crate::calls::{self, IoEvent};

/// The line in [`super::ENGINES`].
pub const INFO: EngineInfo = EngineInfo {
    name: "libaio",
    depth_max: 16_384,
    ..EngineInfo::of(make)
};

/// `aio_lio_opcode` of the kernel.
const IOCB_CMD_PREAD: u16 = 0;
const IOCB_CMD_PWRITE: u16 = 1;
const IOCB_CMD_PREADV: u16 = 7;
const IOCB_CMD_PWRITEV: u16 = 8;

/// Flag in `aio_flags`: `aio_reqprio` counts.
const IOCB_FLAG_IOPRIO: u32 = 1 << 1;

/// Time for which the kernel may have no room for a request while none is in flight.
const ROOM_WITHIN: Duration = Duration::from_secs(30);

/// State of a slot.
#[derive(Clone, Copy)]
struct Slot {
    /// `None` while the slot is free.
    request: Option<Request>,
    /// Bytes moved until now.
    moved: usize,
}

struct Aio {
    context: usize,
    /// The ring, with `userspace_reap` and if it has the known form.
    ring: Option<Ring>,
    /// `RWF_…` flags of reads and of writes.
    flags: [i32; 2],
    /// Only freed when the kernel has finished with them.
    buffers: ManuallyDrop<Buffers>,
    slots: Vec<Slot>,
    /// The control block of each slot; they are not moved.
    blocks: Vec<libc::iocb>,
    /// With `libaio_vectored`: the vector of each slot, which stays where it is; else none.
    vectors: Vec<libc::iovec>,
    /// Control blocks that the kernel does not have yet.
    queued: Vec<*mut libc::iocb>,
    /// Number of requests that the kernel has.
    under_way: usize,
    /// Requests that completed without the kernel's queue.
    ready: Vec<Completion>,
    /// Completions from the kernel; empty in between.
    events: Vec<IoEvent>,
    counts: EngineCounts,
}

// SAFETY: the pointers lead to memory of this value only, and a context belongs to
// the process, not to a thread.
unsafe impl Send for Aio {}

fn make(config: EngineConfig) -> Result<Box<dyn Engine>, Errno> {
    Ok(Box::new(aio(config)?))
}

fn aio(mut config: EngineConfig) -> Result<Aio, Errno> {
    let buffers = Buffers::new(&mut config, INFO.depth_max)?;
    let depth = config.depth;
    let context = calls::io_setup(depth as u32)?;
    let free = Slot {
        request: None,
        moved: 0,
    };
    // SAFETY: all fields are numbers, and 0 is valid for each.
    let blank = || unsafe { std::mem::zeroed::<libc::iocb>() };
    let empty = || libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 0,
    };
    Ok(Aio {
        context,
        ring: match config.options.userspace_reap {
            true => Ring::of(context),
            false => None,
        },
        flags: flags(&config.options),
        buffers: ManuallyDrop::new(buffers),
        slots: vec![free; depth],
        blocks: (0..depth).map(|_| blank()).collect(),
        vectors: match config.options.libaio_vectored {
            true => (0..depth).map(|_| empty()).collect(),
            false => Vec::new(),
        },
        queued: Vec::with_capacity(depth),
        under_way: 0,
        ready: Vec::with_capacity(depth),
        events: Vec::with_capacity(depth),
        counts: EngineCounts::default(),
    })
}

/// `RWF_…` flags of reads and of writes.
fn flags(options: &EngineOptions) -> [i32; 2] {
    let flag = |on: bool, flag: i32| if on { flag } else { 0 };
    let both = flag(options.nowait, libc::RWF_NOWAIT);
    [both, both | flag(options.atomic, libc::RWF_ATOMIC)]
}

impl Aio {
    /// Queues the rest of the request of `slot`, which reads or writes.
    #[inline]
    fn queue(&mut self, slot: usize, request: &Request, moved: usize) {
        let start = self.buffers.pointer(slot, request.at + request.length);
        let start = start.wrapping_byte_add(request.at + moved);
        let block = &mut self.blocks[slot];
        block.aio_data = slot as u64;
        (block.aio_lio_opcode, block.aio_rw_flags) = match request.transfer {
            Transfer::Write => (IOCB_CMD_PWRITE, self.flags[1]),
            Transfer::Read | Transfer::Trim | Transfer::Fsync | Transfer::DataSync => {
                (IOCB_CMD_PREAD, self.flags[0])
            }
        };
        block.aio_fildes = request.fd.cast_unsigned();
        block.aio_buf = start.expose_provenance() as u64;
        block.aio_nbytes = (request.length - moved) as u64;
        // The kernel copies the vector when the request is submitted.
        if let Some(vector) = self.vectors.get_mut(slot) {
            vector.iov_base = start.cast();
            vector.iov_len = request.length - moved;
            block.aio_lio_opcode = match request.transfer {
                Transfer::Write => IOCB_CMD_PWRITEV,
                _ => IOCB_CMD_PREADV,
            };
            block.aio_buf = std::ptr::from_ref(&*vector).expose_provenance() as u64;
            block.aio_nbytes = 1;
        }
        // Without the flag the kernel takes the priority of the thread.
        (block.aio_reqprio, block.aio_flags) = match request.priority {
            IoPriority(0) => (0, 0),
            IoPriority(priority) => (priority.cast_signed(), IOCB_FLAG_IOPRIO),
        };
        // A value above i64::MAX turns negative, which the kernel refuses.
        block.aio_offset = request.offset.wrapping_add(moved as u64).cast_signed();
        let block: *mut libc::iocb = block;
        self.queued.push(block);
    }

    /// The slot of the `nth` queued request.
    fn queued_slot(&self, nth: usize) -> usize {
        let first = self.blocks.as_ptr().addr();
        (self.queued[nth].addr() - first) / size_of::<libc::iocb>()
    }

    /// Hands over the queue, except for requests without room.
    fn hand_over(&mut self) -> Result<(), Errno> {
        let mut taken = 0;
        let result = self.hand_over_from(&mut taken);
        self.queued.drain(..taken);
        result
    }

    /// Like [`Aio::hand_over`]; `taken` counts the requests that are no longer
    /// queued.
    fn hand_over_from(&mut self, taken: &mut usize) -> Result<(), Errno> {
        let mut full_since = None;
        while *taken < self.queued.len() {
            // SAFETY: the control blocks lie in `blocks`, whose memory is not moved.
            // The buffers outlive the requests, because dropping the engine waits for
            // them, and `buffer` refuses a slot in use.
            match unsafe { calls::io_submit(self.context, &self.queued[*taken..]) } {
                Ok(requests) => {
                    self.counts.submits[EngineCounts::bucket(requests)] += 1;
                    self.under_way += requests;
                    *taken += requests;
                }
                Err(Errno::EINTR) => {}
                // There is room again after others are collected.
                Err(Errno::EAGAIN) if self.under_way > 0 || !self.ready.is_empty() => break,
                Err(Errno::EAGAIN) => {
                    let since = *full_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > ROOM_WITHIN {
                        return Err(Errno::EAGAIN);
                    }
                    std::thread::sleep(Duration::from_micros(1));
                }
                Err(errno) => {
                    // The error concerns the first of them.
                    let slot = self.queued_slot(*taken);
                    *taken += 1;
                    let result = Err(errno);
                    self.ready.push(Completion { slot, result });
                }
            }
        }
        Ok(())
    }

    /// True if all submitted requests were collected.
    fn is_idle(&self) -> bool {
        self.under_way == 0 && self.queued.is_empty() && self.ready.is_empty()
    }

    /// Takes events from the kernel, and waits until there are `least`.
    fn ask(&mut self, least: usize, timeout: Option<&libc::timespec>) -> Result<(), Errno> {
        if let Some(ring) = &self.ring {
            ring.take(&mut self.events);
            if self.events.len() >= least.max(1) {
                return Ok(());
            }
        }
        if self.under_way == self.events.len() {
            return Ok(());
        }
        let least = least.saturating_sub(self.events.len());
        calls::io_getevents(self.context, least, &mut self.events, timeout)
    }

    /// Appends completions, and queues the rest of partial transfers.
    fn reap(&mut self, done: &mut Vec<Completion>) {
        for completion in &self.ready {
            self.slots[completion.slot].request = None;
        }
        done.append(&mut self.ready);
        self.under_way -= self.events.len();
        for at in 0..self.events.len() {
            let IoEvent { data, res, .. } = self.events[at];
            let number = data as usize;
            let slot = &mut self.slots[number];
            let Some(request) = slot.request else {
                unreachable!("slot {number} completed twice");
            };
            let returned = usize::try_from(res).map_err(|_| Errno::from_raw(-res as i32));
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
                    self.queue(number, &request, moved);
                }
            }
        }
        self.events.clear();
    }

    /// Ends a call that completed `requests`: counts it, and hands over the rest of
    /// partial transfers.
    fn collected(&mut self, requests: usize) -> Result<(), Errno> {
        self.counts.completes[EngineCounts::bucket(requests)] += 1;
        self.hand_over()
    }
}

impl Engine for Aio {
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        assert!(
            self.slots[slot].request.is_none(),
            "the buffer of slot {slot} is in use"
        );
        self.buffers.slice(slot)
    }

    #[inline]
    fn submit(&mut self, slot: usize, request: Request) {
        assert!(self.slots[slot].request.is_none(), "slot {slot} is in use");
        if request.transfer.has_buffer() {
            self.queue(slot, &request, 0);
        } else {
            let handed_over = self.hand_over();
            let trims = request.transfer == Transfer::Trim;
            self.counts.submits[EngineCounts::bucket(1)] += u64::from(trims);
            let result = handed_over.and_then(|()| at_once(&request, &mut self.counts.again));
            self.ready.push(Completion { slot, result });
        }
        self.slots[slot] = Slot {
            request: Some(request),
            moved: 0,
        };
    }

    fn flush(&mut self) -> Result<(), Errno> {
        self.hand_over()
    }

    fn wait(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        self.wait_many(1, done)
    }

    fn wait_many(&mut self, least: usize, done: &mut Vec<Completion>) -> Result<(), Errno> {
        if self.is_idle() {
            return Ok(());
        }
        let before = done.len();
        let all = self.under_way + self.queued.len() + self.ready.len();
        let enough = before + least.clamp(1, all);
        loop {
            self.hand_over()?;
            let missing = enough.saturating_sub(done.len() + self.ready.len());
            match self.ask(missing.min(self.under_way), None) {
                Ok(()) | Err(Errno::EINTR) => {}
                Err(other) => return Err(other),
            }
            self.reap(done);
            if done.len() >= enough {
                return self.collected(done.len() - before);
            }
        }
    }

    fn wait_for(&mut self, done: &mut Vec<Completion>, timeout: Nanos) -> Result<(), Errno> {
        if self.is_idle() {
            return Ok(());
        }
        let before = done.len();
        self.hand_over()?;
        let limit = libc::timespec {
            tv_sec: (timeout.0 / Nanos::SECOND.0) as libc::time_t,
            tv_nsec: (timeout.0 % Nanos::SECOND.0) as libc::c_long,
        };
        let least = usize::from(self.ready.is_empty());
        match self.ask(least, Some(&limit)) {
            Ok(()) | Err(Errno::EINTR) => {}
            Err(other) => return Err(other),
        }
        self.reap(done);
        self.collected(done.len() - before)
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        if self.is_idle() {
            return Ok(());
        }
        let before = done.len();
        self.hand_over()?;
        match self.ask(0, None) {
            Ok(()) | Err(Errno::EINTR) => {}
            Err(other) => return Err(other),
        }
        self.reap(done);
        self.collected(done.len() - before)
    }

    fn counts(&self) -> EngineCounts {
        self.counts
    }
}

impl Drop for Aio {
    /// Waits for the requests in flight: the kernel may still write to the buffers.
    /// If waiting is impossible, they are leaked until the process ends.
    fn drop(&mut self) {
        let mut done = Vec::with_capacity(self.slots.len());
        while !self.is_idle() {
            if self.wait(&mut done).is_err() {
                return;
            }
            done.clear();
        }
        calls::io_destroy(self.context);
        // SAFETY: no request is in flight, and the field is not used again.
        unsafe { ManuallyDrop::drop(&mut self.buffers) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn the_control_block_of_a_request_has_its_priority() {
        let mut aio = match aio(EngineConfig::new(1, 4096)) {
            Ok(aio) => aio,
            // If it is forbidden or used up there is nothing to test.
            Err(Errno::ENOSYS | Errno::EPERM | Errno::EAGAIN) => return,
            Err(other) => panic!("{other}"),
        };
        let file = tempfile::tempfile().expect("a temporary file");
        // A slot is used again: nothing is left of the request before.
        for priority in [(2, 5, 0), (0, 0, 0), (3, 7, 9)] {
            let (class, level, hint) = priority;
            let priority = IoPriority::new(class, level, hint);
            let request = Request {
                transfer: Transfer::Write,
                fd: file.as_raw_fd(),
                offset: 0,
                length: 4096,
                at: 0,
                priority,
            };
            let mut done = Vec::with_capacity(1);
            aio.submit(0, request);
            let block = &aio.blocks[0];
            let flags = if class > 0 { IOCB_FLAG_IOPRIO } else { 0 };
            let found = (block.aio_reqprio.cast_unsigned(), block.aio_flags);
            assert_eq!(found, (priority.0, flags));
            aio.wait(&mut done).expect("waiting works");
            assert_eq!(done[0].result, Ok(4096), "{priority:?}");
        }
    }
}
