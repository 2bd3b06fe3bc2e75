//! The engine `io_uring`: one ring per worker, with many requests in flight.
//!
//! [`Engine::submit`] queues requests. [`Engine::flush`], [`Engine::wait`] and
//! [`Engine::poll`] hand the whole queue to the kernel in one system call. The buffers
//! are registered with the kernel if locked memory is not limited (`RLIMIT_MEMLOCK`).
//! With a limit they are used without, because it applies to all processes of a user
//! together. From Linux 6.14 on, the rings themselves need a few pages of it. So the
//! registered buffers of the first workers would leave later ones without a ring.
//!
//! From Linux 6.1 on the ring has a single issuer: the engine must be created and used in
//! the same thread, the worker's. A call from another thread gives `EEXIST`. Linux 5.6 is
//! the oldest supported version. Before it, or if the ring is forbidden, creating one
//! gives `ENOSYS` or `EPERM`. If it exceeds the limit of locked memory, it gives
//! `ENOMEM`.
//!
//! Up to 64 attached files are kept in the ring's table of files, if the kernel permits
//! it: that saves a tenth of the time of a cached read. The kernel may keep a file open
//! for a moment after it was detached.
//!
//! Trims are made at submission, after handing over the queue, like in fio. In the ring a
//! kernel thread would make each, and a write of the same range could come before it.
//!
//! Requests in flight may complete in any order: an fsync covers the writes that were
//! complete when it was submitted.

mod entries;
mod registered;

use std::mem::ManuallyDrop;
use std::os::fd::RawFd;
use std::time::Duration;

use io_uring::{Builder, IoUring, SubmissionQueue, squeue, types};
use nix::errno::Errno;
use rbench_core::{EngineOptions, Nanos, or_eio};

use self::entries::Entries;
use self::registered::Registered;
use super::buffers::Buffers;
use super::contract::{
    Completion, Engine, EngineConfig, EngineCounts, EngineInfo, Request, Transfer,
};
use super::progress::advance;
use super::synchronous::at_once;
use crate::files::Advice;

/// The line in [`super::ENGINES`].
pub const INFO: EngineInfo = EngineInfo {
    name: "io_uring",
    // The most buffers that the kernel registers with a ring.
    depth_max: 16_384,
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

struct Uring {
    ring: IoUring,
    /// Only freed when the kernel has finished with them.
    buffers: ManuallyDrop<Buffers>,
    registered: Registered,
    /// Like `buffers`: the kernel may read the vectors of requests in flight.
    entries: ManuallyDrop<Entries>,
    /// True if a kernel thread takes the requests.
    polled_queue: bool,
    /// True if completions are found by polling the device.
    polled_device: bool,
    /// Requests that are queued and not handed over.
    queued: usize,
    slots: Vec<Slot>,
    /// Number of slots that are not free, except those in `ready`.
    under_way: usize,
    /// Trims, which complete without the kernel's queue.
    ready: Vec<Completion>,
    counts: EngineCounts,
}

fn make(mut config: EngineConfig) -> Result<Box<dyn Engine>, Errno> {
    let buffers = Buffers::new(&mut config, INFO.depth_max)?;
    let options = &config.options;
    let ring = open_ring(config.depth as u32, options, config.goes_round)?;
    let registered = Registered::new(&ring, &buffers, options)?;
    let free = Slot {
        request: None,
        moved: 0,
    };
    Ok(Box::new(Uring {
        ring,
        buffers: ManuallyDrop::new(buffers),
        registered,
        entries: ManuallyDrop::new(Entries::new(options, config.depth)),
        polled_queue: options.sqthread_poll,
        polled_device: options.hipri,
        queued: 0,
        slots: vec![free; config.depth],
        under_way: 0,
        ready: Vec::with_capacity(config.depth),
        counts: EngineCounts::default(),
    }))
}

/// Creates a ring with room for `depth` requests, and the best flags that this kernel
/// supports. Completions are processed when the worker asks for them, without
/// interrupting it (6.1), at its next system call (5.19), or at once. With a kernel
/// thread that takes the requests, that thread processes them, too.
pub(super) fn open_ring(
    depth: u32,
    options: &EngineOptions,
    goes_round: bool,
) -> Result<IoUring, Errno> {
    let builders = match options.sqthread_poll {
        true => vec![polled_queue(options.sqthread_poll_cpu)],
        // The best one is bound to one thread.
        false => own_queues().split_off(usize::from(goes_round)),
    };
    let mut refused = Errno::EINVAL;
    for mut builder in builders {
        if options.hipri {
            builder.setup_iopoll();
        }
        match builder.build(depth).map_err(or_eio) {
            // This feature came with 5.6, like plain reads and writes.
            Ok(ring) if !ring.params().is_feature_rw_cur_pos() => return Err(Errno::ENOSYS),
            Ok(ring) => return Ok(ring),
            Err(Errno::EINVAL) => {}
            Err(other) => {
                refused = other;
                break;
            }
        }
    }
    Err(refused)
}

/// Hands the ring's queue to the kernel, and waits for `want` completions. Returns the
/// number of requests handed over.
pub(super) fn enter(ring: &IoUring, want: usize) -> Result<usize, Errno> {
    loop {
        match ring.submit_and_wait(want).map_err(or_eio) {
            Err(Errno::EINTR) => {}
            entered => return entered,
        }
    }
}

/// Like [`enter`] for one completion, for at most `timeout`; a signal may end it earlier.
pub(super) fn enter_for(ring: &IoUring, timeout: Nanos) -> Result<usize, Errno> {
    if !ring.params().is_feature_ext_arg() {
        // Before Linux 5.11 a ring cannot wait with a time limit.
        let requests = enter(ring, 0)?;
        std::thread::sleep(Duration::from(timeout.min(Nanos(50_000))));
        return Ok(requests + enter(ring, 0)?);
    }
    let limit = types::Timespec::from(Duration::from(timeout));
    let arguments = types::SubmitArgs::new().timespec(&limit);
    match ring
        .submitter()
        .submit_with_args(1, &arguments)
        .map_err(or_eio)
    {
        // The number of requests handed over before is not reported then.
        Err(Errno::ETIME | Errno::EINTR) => Ok(0),
        entered => entered,
    }
}

/// Rings to which the worker hands its requests, the best first.
fn own_queues() -> Vec<Builder> {
    let mut single_issuer = IoUring::builder();
    single_issuer
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all();
    let mut cooperative = IoUring::builder();
    cooperative
        .setup_coop_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all();
    vec![single_issuer, cooperative, IoUring::builder()]
}

/// A ring with a kernel thread on that processor, which sleeps after the kernel's default
/// idle time.
fn polled_queue(cpu: Option<u32>) -> Builder {
    let mut builder = IoUring::builder();
    builder.setup_sqpoll(0);
    if let Some(cpu) = cpu {
        builder.setup_sqpoll_cpu(cpu);
    }
    builder
}

/// Queues `entry`; its buffer stays in place until the request is complete.
#[inline]
fn push(queue: &mut SubmissionQueue<'_>, entry: &squeue::Entry) {
    // SAFETY: the buffer outlives the request, because dropping the engine waits for it,
    // and `buffer` refuses a slot in use.
    let pushed = unsafe { queue.push(entry) };
    // The queue has an entry for each slot, and a slot queues one at a time.
    assert!(pushed.is_ok(), "the submission queue is full");
}

impl Uring {
    /// Counts a system call that handed over `requests`.
    #[inline]
    fn handed_over(&mut self, requests: usize) {
        // The kernel's thread takes them at any time.
        let requests = match self.polled_queue {
            true => std::mem::take(&mut self.queued),
            false => requests,
        };
        if requests > 0 {
            self.counts.submits[EngineCounts::bucket(requests)] += 1;
        }
    }

    /// Hands the queue to the kernel and waits for `want` completions.
    fn enter(&mut self, want: usize) -> Result<(), Errno> {
        let requests = enter(&self.ring, want)?;
        self.handed_over(requests);
        Ok(())
    }

    /// Hands the queue to the kernel, and waits for a completion, for at most `timeout`;
    /// a signal may end it earlier.
    fn enter_for(&mut self, timeout: Nanos) -> Result<(), Errno> {
        let requests = enter_for(&self.ring, timeout)?;
        self.handed_over(requests);
        Ok(())
    }

    /// Performs a trim.
    #[cold]
    fn trim(&mut self, slot: usize, request: Request) {
        let handed_over = self.flush();
        self.counts.submits[EngineCounts::bucket(1)] += 1;
        let result = handed_over.and_then(|()| at_once(&request, &mut self.counts.again));
        self.slots[slot].request = Some(request);
        self.ready.push(Completion { slot, result });
    }

    /// Appends completed trims.
    #[cold]
    fn take_ready(&mut self, done: &mut Vec<Completion>) {
        for completion in &self.ready {
            self.slots[completion.slot].request = None;
        }
        done.append(&mut self.ready);
    }

    /// Like [`Uring::take_ready`] while the kernel has no requests in flight.
    fn take_only_ready(&mut self, done: &mut Vec<Completion>) {
        if !self.ready.is_empty() {
            self.counts.completes[EngineCounts::bucket(self.ready.len())] += 1;
            self.take_ready(done);
        }
    }

    /// Appends completions, and queues the rest of partial transfers.
    fn reap(&mut self, done: &mut Vec<Completion>) {
        if !self.ready.is_empty() {
            self.take_ready(done);
        }
        let (_, mut queue, completions) = self.ring.split();
        let again = &mut self.counts.again;
        for completion in completions {
            let number = completion.user_data() as usize;
            let slot = &mut self.slots[number];
            let Some(request) = slot.request else {
                unreachable!("slot {number} completed twice");
            };
            let returned = completion.result();
            let returned = usize::try_from(returned).map_err(|_| Errno::from_raw(-returned));
            match advance(&request, &mut slot.moved, returned, again) {
                Some(result) => {
                    slot.request = None;
                    self.under_way -= 1;
                    done.push(Completion {
                        slot: number,
                        result,
                    });
                }
                None => {
                    let memory = (&*self.buffers, &self.registered);
                    let rest = self.entries.entry(memory, number, &request, slot.moved);
                    push(&mut queue, &rest);
                    self.queued += 1;
                }
            }
        }
    }

    /// Ends a call that completed `requests`: counts it, and hands over the rest of
    /// partial transfers.
    fn collected(&mut self, requests: usize) -> Result<(), Errno> {
        self.counts.completes[EngineCounts::bucket(requests)] += 1;
        self.flush()
    }
}

impl Engine for Uring {
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        assert!(
            self.slots[slot].request.is_none(),
            "the buffer of slot {slot} is in use"
        );
        self.buffers.slice(slot)
    }

    fn attach(&mut self, fd: RawFd, _: Option<Advice>) {
        self.registered.attach(&self.ring, fd);
    }

    fn detach(&mut self, fd: RawFd) {
        self.registered.detach(&self.ring, fd);
    }

    #[inline]
    fn submit(&mut self, slot: usize, request: Request) {
        assert!(self.slots[slot].request.is_none(), "slot {slot} is in use");
        if request.transfer == Transfer::Trim {
            return self.trim(slot, request);
        }
        let memory = (&*self.buffers, &self.registered);
        let whole = self.entries.entry(memory, slot, &request, 0);
        push(&mut self.ring.submission(), &whole);
        self.queued += 1;
        self.slots[slot] = Slot {
            request: Some(request),
            moved: 0,
        };
        self.under_way += 1;
    }

    fn flush(&mut self) -> Result<(), Errno> {
        if self.polled_queue {
            return match self.queued {
                0 => Ok(()),
                _ => self.enter(0),
            };
        }
        while !self.ring.submission().is_empty() {
            self.enter(0)?;
        }
        Ok(())
    }

    fn wait(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        self.wait_many(1, done)
    }

    fn wait_many(&mut self, least: usize, done: &mut Vec<Completion>) -> Result<(), Errno> {
        if self.under_way == 0 {
            self.take_only_ready(done);
            return Ok(());
        }
        let before = done.len();
        let enough = before + least.clamp(1, self.under_way + self.ready.len());
        while self.polled_queue && done.len() < enough {
            // No system call while the kernel's thread is awake.
            self.enter(0)?;
            self.reap(done);
            std::hint::spin_loop();
        }
        if self.ring.submission().is_empty() || !self.ready.is_empty() {
            self.reap(done);
        }
        while done.len() < enough {
            self.enter(enough - done.len())?;
            self.reap(done);
        }
        self.collected(done.len() - before)
    }

    fn wait_for(&mut self, done: &mut Vec<Completion>, timeout: Nanos) -> Result<(), Errno> {
        if self.under_way == 0 {
            self.take_only_ready(done);
            return Ok(());
        }
        let before = done.len();
        if self.ring.submission().is_empty() || !self.ready.is_empty() {
            self.reap(done);
        }
        if done.len() == before {
            self.enter_for(timeout)?;
            self.reap(done);
        }
        self.collected(done.len() - before)
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        if self.under_way == 0 {
            self.take_only_ready(done);
            return Ok(());
        }
        let before = done.len();
        let queue = self.ring.submission();
        let must_enter = !queue.is_empty() || queue.taskrun() || self.polled_device;
        drop(queue);
        if must_enter {
            self.enter(0)?;
        }
        self.reap(done);
        self.collected(done.len() - before)
    }

    fn counts(&self) -> EngineCounts {
        self.counts
    }
}

impl Drop for Uring {
    /// Waits for the requests in flight: the kernel may still write to the buffers. If
    /// waiting is impossible, they are leaked until the process ends.
    fn drop(&mut self) {
        let mut done = Vec::with_capacity(self.slots.len());
        while self.under_way > 0 {
            if self.wait(&mut done).is_err() {
                return;
            }
            done.clear();
        }
        self.registered.detach_all(&self.ring);
        // SAFETY: no request is in flight, and neither field is used again.
        unsafe {
            ManuallyDrop::drop(&mut self.buffers);
            ManuallyDrop::drop(&mut self.entries);
        }
    }
}
