//! Random reads of 4 KiB by io_uring, 32 under way: submit and reap. The ring
//! is set up, and buffers and file are registered, as by rbench's engine.

use std::os::fd::AsRawFd as _;
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};
use nix::libc;
use rbench_plan::io::Rw;
use rbench_sys::AlignedBuffer;
use rbench_sys::limits::locks_memory_freely;

use crate::block::{BLOCK, offsets, open};
use crate::{Failed, Figure, repeat};

const DEPTH: usize = 32;
/// Rounds of submitting and reaping between two looks at the clock.
const BATCH: u64 = 16;

/// The loop.
pub fn run(path: &str, size: u64, limit: Duration) -> Result<Figure, Failed> {
    let offsets = offsets(Rw::RandRead, size)?;
    let file = open(Rw::RandRead, path, size)?;
    let buffer = AlignedBuffer::new(DEPTH * BLOCK)?;
    let ring: IoUring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all()
        .build(DEPTH as u32)?;
    let mut reads = Reads {
        buffer,
        registered: false,
        free: (0..DEPTH).rev().collect(),
        offsets: offsets.iter().copied().cycle(),
        ring,
    };
    reads.ring.submitter().register_files(&[file.as_raw_fd()])?;
    reads.registered = locks_memory_freely() && reads.register_buffers();
    let figure = repeat("ring", limit, || {
        let mut done = 0;
        for _ in 0..BATCH {
            reads.submit();
            done += reads.reap(1)?;
        }
        Ok(done)
    });
    // The kernel may write to the buffers until then.
    let under_way = DEPTH - reads.free.len();
    reads.reap(under_way)?;
    figure
}

/// Reads that are under way, each in a slot with a part of the buffer.
struct Reads<O> {
    // Dropped first: from then on the kernel leaves the buffer alone.
    ring: IoUring,
    buffer: AlignedBuffer,
    registered: bool,
    free: Vec<usize>,
    offsets: O,
}

impl<O: Iterator<Item = i64>> Reads<O> {
    fn start(&mut self, slot: usize) -> *mut u8 {
        self.buffer[slot * BLOCK..][..BLOCK].as_mut_ptr()
    }

    fn register_buffers(&mut self) -> bool {
        let slots: Vec<libc::iovec> = (0..DEPTH)
            .map(|slot| libc::iovec {
                iov_base: self.start(slot).cast(),
                iov_len: BLOCK,
            })
            .collect();
        // SAFETY: the buffer is unmapped after the ring is closed.
        unsafe { self.ring.submitter().register_buffers(&slots) }.is_ok()
    }

    fn entry(&mut self, slot: usize, offset: u64) -> squeue::Entry {
        let (start, file) = (self.start(slot), types::Fixed(0));
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

    #[inline]
    fn submit(&mut self) {
        while let Some(slot) = self.free.pop() {
            let offset = self.offsets.next().unwrap_or_default() as u64;
            let entry = self.entry(slot, offset);
            // SAFETY: the part of the buffer is no other request's, and stays
            // until the request is complete.
            let pushed = unsafe { self.ring.submission().push(&entry) };
            assert!(pushed.is_ok(), "the queue has an entry for each slot");
        }
    }

    /// Hands over what was submitted, waits for `least` and takes in all that
    /// are complete; their number.
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
