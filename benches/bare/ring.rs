//! Random reads of 4 KiB with io_uring: submit and reap. The ring, the registered buffers and the
//! registered files are set up like in rbench's engine.

use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};
use nix::libc;
use rbench_plan::io::Rw;
use rbench_sys::AlignedBuffer;
use rbench_sys::limits::locks_memory_freely;

use crate::block::{BLOCK, Files, offsets};
use crate::{Failed, Figure, repeat};

/// Rounds of submitting and reaping between two clock readings.
const BATCH: u64 = 16;

/// Number of requests per system call.
#[derive(Clone, Copy)]
pub enum Calls {
    /// Submits all free requests and waits for one, like `rbench io`.
    All,
    /// Submits one request, and waits only if none is free, like fio by default.
    One,
}

/// Runs the loop.
pub fn run(
    paths: &str,
    size: u64,
    limit: Duration,
    depth: usize,
    calls: Calls,
) -> Result<Figure, Failed> {
    let files = Files::open(Rw::RandRead, paths, size)?;
    let places = files.places(&offsets(Rw::RandRead, size)?);
    let buffer = AlignedBuffer::new(depth * BLOCK)?;
    let ring: IoUring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all()
        .build(u32::try_from(depth)?)?;
    let mut reads = Reads {
        buffer,
        registered: false,
        depth,
        free: (0..depth).rev().collect(),
        places: places.iter().copied().cycle(),
        ring,
    };
    reads
        .ring
        .submitter()
        .register_files(&files.descriptors())?;
    reads.registered = locks_memory_freely() && reads.register_buffers();
    let figure = match calls {
        Calls::All => repeat("ring", limit, || {
            let mut done = 0;
            for _ in 0..BATCH {
                while reads.submit() {}
                done += reads.reap(1)?;
            }
            Ok(done)
        }),
        Calls::One => repeat("ring", limit, || {
            let mut done = 0;
            for _ in 0..BATCH * 16 {
                reads.submit();
                done += reads.reap(usize::from(reads.free.is_empty()))?;
            }
            Ok(done)
        }),
    };
    // The kernel may write to the buffers until then.
    let under_way = depth - reads.free.len();
    reads.reap(under_way)?;
    figure
}

/// Reads in flight, each in a slot with a part of the buffer.
struct Reads<P> {
    // Dropped first: afterwards the kernel no longer uses the buffer.
    ring: IoUring,
    buffer: AlignedBuffer,
    registered: bool,
    depth: usize,
    free: Vec<usize>,
    places: P,
}

impl<P: Iterator<Item = (usize, i64)>> Reads<P> {
    fn start(&mut self, slot: usize) -> *mut u8 {
        self.buffer[slot * BLOCK..][..BLOCK].as_mut_ptr()
    }

    fn register_buffers(&mut self) -> bool {
        let slots: Vec<libc::iovec> = (0..self.depth)
            .map(|slot| libc::iovec {
                iov_base: self.start(slot).cast(),
                iov_len: BLOCK,
            })
            .collect();
        // SAFETY: the buffer is unmapped after the ring is closed.
        unsafe { self.ring.submitter().register_buffers(&slots) }.is_ok()
    }

    fn entry(&mut self, slot: usize, file: usize, offset: u64) -> squeue::Entry {
        let (start, file) = (self.start(slot), types::Fixed(file as u32));
        let entry = if self.registered {
            opcode::ReadFixed::new(file, start, BLOCK as u32, slot as u16)
                .offset(offset)
                .build()
        } else {
            opcode::Read::new(file, start, BLOCK as u32)
                .offset(offset)
                .build()
        };
        entry.user_data(slot as u64)
    }

    /// Adds one request; returns false if none is free.
    #[inline]
    fn submit(&mut self) -> bool {
        let Some(slot) = self.free.pop() else {
            return false;
        };
        let (file, offset) = self.places.next().unwrap_or_default();
        let entry = self.entry(slot, file, offset as u64);
        // SAFETY: no other request uses this part of the buffer, and it stays until the request is
        // complete.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        assert!(pushed.is_ok(), "the queue has an entry for each slot");
        true
    }

    /// Submits the added requests, waits for `least`, and reaps all complete ones. Returns their
    /// number.
    #[inline]
    fn reap(&mut self, least: usize) -> Result<u64, Failed> {
        self.ring.submit_and_wait(least)?;
        let before = self.free.len();
        for completion in self.ring.completion() {
            if completion.result() != BLOCK as i32 {
                return Err(format!("a read returned {}", completion.result()).into());
            }
            self.free.push(completion.user_data() as usize);
        }
        Ok((self.free.len() - before) as u64)
    }
}
