//! Operations on names in flight: a ring performs the requests of many at a time.
//!
//! An operation is a few calls on one slot, whose paths,
//! data and open file the slot keeps until all of it is complete. They are the calls of
//! [`crate::PosixFs`], with the same flags, and follow each other: the next one goes to the
//! kernel when the one before is complete. As there, what the kernel says is what is
//! reported: nothing is retried, a read or write that moves less than all of the data ends the
//! operation, and a file that is open is closed in any case, where closing is part of it.
//!
//! Files are open in the worker's own table. A direct descriptor, which only the ring knows,
//! would let the kernel go from opening to closing by itself, but closing one tells the file
//! system nothing: FUSE gets no FLUSH, a client of NFS does not write back, and the row would
//! say that files are done which `close` would have had to wait for.
//!
//! Most of these requests may block, so threads of the kernel make them: as many as there are
//! slots are asked for. What of the kernel is needed can be asked before ([`lacking`]).

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use io_uring::{IoUring, Probe, squeue, types};
use nix::errno::Errno;
use nix::libc;
use rbench_core::engine::NAMES_IN_FLIGHT_MAX;
use rbench_core::operations::RingCall;
use rbench_core::{Call, EngineOptions, Nanos, Part, Progress, or_eio};

use super::contract::Completion;
use super::io_uring::{enter, enter_for, open_ring};
use crate::buffer::AlignedBuffer;
use crate::calls;
use crate::posix::{RingOperands, ring_entry};

/// Reasons why operations on names cannot be in flight here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// The kernel has no ring, or forbids it.
    Ring(Errno),
    /// A ring may not have as many threads of the kernel (`RLIMIT_NPROC`).
    Threads,
    /// The kernel's ring does not perform a request.
    Request {
        /// Its system call.
        call: &'static str,
        /// The Linux that has it first.
        since: &'static str,
    },
}

/// Finds requirements of `calls`, up to `depth` in flight, that this kernel does not have, or does
/// not permit. Calls that no ring performs are not checked.
///
/// # Errors
/// The first missing requirement.
pub fn lacking(calls: &[Call], depth: u32) -> Result<(), Lack> {
    let ring = open_ring(depth, &EngineOptions::default(), false).map_err(Lack::Ring)?;
    allow_threads(&ring, depth).map_err(|errno| match errno {
        Errno::EAGAIN => Lack::Threads,
        Errno::EINVAL => Lack::Request {
            call: "IORING_REGISTER_IOWQ_MAX_WORKERS",
            since: "5.15",
        },
        other => Lack::Ring(other),
    })?;
    let mut probe = Probe::new();
    let probed = ring.submitter().register_probe(&mut probe);
    probed.map_err(|error| Lack::Ring(or_eio(error)))?;
    first_lacking(calls, |code| probe.is_supported(code))
}

fn first_lacking(calls: &[Call], has: impl Fn(u8) -> bool) -> Result<(), Lack> {
    let mut performed = calls.iter().filter_map(|call| call.in_a_ring());
    match performed.find(|ring| !has(ring.code)) {
        Some(RingCall { name, since, .. }) => Err(Lack::Request { call: name, since }),
        None => Ok(()),
    }
}

/// The operands of one operation.
struct Slot {
    /// The first path with its NUL.
    path: Vec<u8>,
    /// The second one.
    other: Vec<u8>,
    data: AlignedBuffer,
    /// Bytes of a read or write.
    length: usize,
    /// Room for attributes from the kernel, which are not read.
    found: Box<UnsafeCell<MaybeUninit<libc::statx>>>,
    /// The calls; empty while the slot is free.
    parts: Vec<Part>,
    progress: Progress,
    /// Number of its file.
    file: usize,
}

/// Bytes for a path before it has to be moved.
const PATH: usize = 256;

impl Slot {
    fn new(block: usize, most: usize) -> Result<Slot, Errno> {
        Ok(Slot {
            path: Vec::with_capacity(PATH),
            other: Vec::with_capacity(PATH),
            data: AlignedBuffer::new(block)?,
            length: block,
            found: Box::new(UnsafeCell::new(MaybeUninit::uninit())),
            parts: Vec::with_capacity(most),
            progress: Progress::default(),
            file: 0,
        })
    }

    /// Takes in how the call under way has ended. `file` is the one that it works on.
    fn ended(&mut self, returned: i32, file: &mut Option<RawFd>) {
        let result = match u64::try_from(returned) {
            Ok(returned) => Ok(returned),
            Err(_) => Err(Errno::from_raw(-returned)),
        };
        if let Some(due) = self.progress.next(&self.parts, self.length) {
            self.progress.ended(&self.parts, &due, result, file);
        }
    }

    /// Next entry, with paths relative to `at`, on that file; `None` after the last call. A call
    /// that no ring performs fails with `ENOSYS`.
    fn next_entry(&mut self, at: RawFd, file: &mut Option<RawFd>) -> Option<squeue::Entry> {
        loop {
            let due = self.progress.next(&self.parts, self.length)?;
            if let Some(entry) = self.entry(*due.call, (due.from, due.bytes), at, *file) {
                return Some(entry);
            }
            let refused = Err(Errno::ENOSYS);
            self.progress.ended(&self.parts, &due, refused, file);
        }
    }

    /// Entry for a call that moves this part of the data; `None` if no ring performs it.
    fn entry(
        &self,
        call: Call,
        (from, length): (usize, usize),
        at: RawFd,
        file: Option<RawFd>,
    ) -> Option<squeue::Entry> {
        let on = RingOperands {
            at: types::Fd(at),
            // A request on a file comes after the one that has opened it; the kernel refuses -1.
            file: types::Fd(file.unwrap_or(-1)),
            path: self.path.as_ptr().cast(),
            other: self.other.as_ptr().cast(),
            data: self.data.start(),
            room: short(self.data.len()),
            piece: self.data.get(from..from + length)?.as_ptr(),
            length: short(length),
            found: self.found.get().cast(),
        };
        ring_entry(call, &on)
    }
}

/// The kernel moves less than 2 GiB in one call.
fn short(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Performs operations, many at a time. It belongs to one worker and is made and
/// used in that worker's thread.
///
/// But for paths that are longer than any before, no call allocates. Using a slot whose
/// requests are under way is a mistake of the program: it panics.
pub struct NamesInFlight {
    ring: IoUring,
    /// Paths are relative to it.
    directory: RawFd,
    /// Given back to the system only when the kernel is done with them.
    slots: ManuallyDrop<Vec<Slot>>,
    /// Open descriptors, by the number of the file.
    files: Vec<Option<RawFd>>,
    /// Slots with requests under way.
    under_way: usize,
}

impl NamesInFlight {
    /// Creates `depth` slots, each with `block` bytes of data and up to `most` calls at a time;
    /// paths are relative to `directory`, which has to stay open.
    ///
    /// # Errors
    /// `EINVAL` when `depth` is 0 or above [`NAMES_IN_FLIGHT_MAX`], `ENOMEM` when it does
    /// not fit, `EAGAIN` when the limit on processes (`RLIMIT_NPROC`) does not permit as many
    /// threads of the kernel, `ENOSYS` or `EPERM` when there is no ring.
    pub fn new(
        directory: &OwnedFd,
        depth: usize,
        block: usize,
        most: usize,
    ) -> Result<NamesInFlight, Errno> {
        if !(1..=NAMES_IN_FLIGHT_MAX as usize).contains(&depth) {
            return Err(Errno::EINVAL);
        }
        let ring = open_ring(depth as u32, &EngineOptions::default(), false)?;
        allow_threads(&ring, depth as u32)?;
        let slots: Result<Vec<Slot>, Errno> = (0..depth).map(|_| Slot::new(block, most)).collect();
        Ok(NamesInFlight {
            ring,
            directory: directory.as_raw_fd(),
            slots: ManuallyDrop::new(slots?),
            files: vec![None; depth],
            under_way: 0,
        })
    }

    /// Makes room for this many open files, where a slot has more than one: see
    /// [`NamesInFlight::submit_on`].
    pub fn with_files(mut self, files: usize) -> NamesInFlight {
        let most = files.max(self.files.len());
        self.files.resize(most, None);
        self
    }

    /// The slot, which must have nothing in flight.
    #[inline]
    fn free(&mut self, slot: usize) -> &mut Slot {
        let found = &mut self.slots[slot];
        assert!(found.parts.is_empty(), "slot {slot} is in use");
        found
    }

    /// Sets the first path of a slot.
    #[inline]
    pub fn set_path(&mut self, slot: usize, path: &CStr) {
        let to = &mut self.free(slot).path;
        to.clear();
        to.extend_from_slice(path.to_bytes_with_nul());
    }

    /// Sets the second one.
    #[inline]
    pub fn set_other(&mut self, slot: usize, path: &CStr) {
        let to = &mut self.free(slot).other;
        to.clear();
        to.extend_from_slice(path.to_bytes_with_nul());
    }

    /// The first path, as it was set last.
    pub fn path(&self, slot: usize) -> &CStr {
        CStr::from_bytes_until_nul(&self.slots[slot].path).unwrap_or(c"")
    }

    /// The data of a slot.
    #[inline]
    pub fn data(&mut self, slot: usize) -> &mut [u8] {
        &mut self.free(slot).data
    }

    /// Sets the number of bytes of a slot's data that reads and writes move in a call; all of it by
    /// default.
    #[inline]
    pub fn set_length(&mut self, slot: usize, bytes: usize) {
        let place = self.free(slot);
        assert!(bytes <= place.data.len(), "slot {slot} has less data");
        place.length = bytes;
    }

    /// Returns true if the file of that number is open. Files of slots have the numbers of these.
    pub fn has_file(&self, file: usize) -> bool {
        self.files[file].is_some()
    }

    /// Hands out the open file of that number, which is the caller's to close.
    pub fn take_file(&mut self, file: usize) -> Option<RawFd> {
        self.files[file].take()
    }

    /// Starts `parts` in `slot`, which must be free. The kernel receives them with the next call
    /// that waits or polls. Returns false, having started nothing, if there is nothing for a ring
    /// to do: [`NamesInFlight::progress`] has the result then.
    #[inline]
    #[must_use]
    pub fn submit(&mut self, slot: usize, parts: &[Part]) -> bool {
        self.submit_on(slot, slot, parts)
    }

    /// Same as [`NamesInFlight::submit`], on the file of that number, which others may use at the
    /// same time and none may close.
    #[inline]
    #[must_use]
    pub fn submit_on(&mut self, slot: usize, file: usize, parts: &[Part]) -> bool {
        let (directory, mut open) = (self.directory, self.files[file]);
        let place = self.free(slot);
        place.parts.extend_from_slice(parts);
        (place.file, place.progress) = (file, Progress::default());
        let Some(entry) = place.next_entry(directory, &mut open) else {
            place.parts.clear();
            self.files[file] = open;
            return false;
        };
        push(&mut self.ring.submission(), &entry.user_data(slot as u64));
        self.files[file] = open;
        self.under_way += 1;
        true
    }

    /// Progress of the operation that was started last in a slot.
    #[inline]
    pub fn progress(&self, slot: usize) -> Progress {
        self.slots[slot].progress
    }

    /// Waits until the requests of at least one slot are complete (at once when none are
    /// under way) and appends those that are to `done`, whose capacity is at least the depth:
    /// how many bytes were read or written, or the length of the attribute that was read, or
    /// the first error. The kernel hears of the requests that follow in other slots with
    /// [`NamesInFlight::hand_over`], and with the next wait at the latest.
    ///
    /// # Errors
    /// When the ring itself fails.
    pub fn wait(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        let before = done.len();
        while done.len() == before && self.under_way > 0 {
            if self.ring.submission().is_empty() && self.reap(done) {
                break;
            }
            enter(&self.ring, 1)?;
            self.reap(done);
        }
        Ok(())
    }

    /// Like [`NamesInFlight::wait`], for `timeout` at most, and a signal may end it earlier.
    ///
    /// # Errors
    /// When the ring itself fails.
    pub fn wait_for(&mut self, done: &mut Vec<Completion>, timeout: Nanos) -> Result<(), Errno> {
        if self.under_way > 0 {
            enter_for(&self.ring, timeout)?;
            self.reap(done);
        }
        Ok(())
    }

    /// Hands over what is queued. The kernel may perform some of it before this returns.
    ///
    /// # Errors
    /// When the ring itself fails.
    #[inline]
    pub fn hand_over(&mut self) -> Result<(), Errno> {
        while !self.ring.submission().is_empty() {
            enter(&self.ring, 0)?;
        }
        Ok(())
    }

    /// Appends what is complete and queues the requests that follow; whether anything was.
    fn reap(&mut self, done: &mut Vec<Completion>) -> bool {
        let before = done.len();
        let (_, mut queue, completions) = self.ring.split();
        for completion in completions {
            let slot = completion.user_data() as usize;
            let place = &mut self.slots[slot];
            let file = &mut self.files[place.file];
            place.ended(completion.result(), file);
            if let Some(entry) = place.next_entry(self.directory, file) {
                push(&mut queue, &entry.user_data(slot as u64));
                continue;
            }
            place.parts.clear();
            self.under_way -= 1;
            let result = place.progress.result().map(|moved| moved as usize);
            done.push(Completion { slot, result });
        }
        done.len() > before
    }
}

/// Queues `entry`, whose paths and data are a slot's.
#[inline]
fn push(queue: &mut io_uring::SubmissionQueue<'_>, entry: &squeue::Entry) {
    // SAFETY: paths, data and the place for attributes stay where they are until the request
    // is complete: `free` refuses a slot that is in use, and dropping the ring waits. The
    // names of attributes are there for good.
    let pushed = unsafe { queue.push(entry) };
    // The queue has an entry for each slot, and a slot queues one at a time.
    assert!(pushed.is_ok(), "the submission queue is full");
}

/// Lets the kernel have as many threads as there are slots, of each of its two kinds: by
/// itself it takes four for each processor for what works on files.
fn allow_threads(ring: &IoUring, threads: u32) -> Result<(), Errno> {
    let submitter = ring.submitter();
    let register = |limits: &mut [u32; 2]| submitter.register_iowq_max_workers(limits);
    register(&mut [threads; 2]).map_err(or_eio)?;
    // Zeros change nothing and return the present limits: the kernel cuts off what a user may not
    // have.
    let mut limits = [0; 2];
    register(&mut limits).map_err(or_eio)?;
    match limits.iter().all(|limit| *limit >= threads) {
        true => Ok(()),
        false => Err(Errno::EAGAIN),
    }
}

impl Drop for NamesInFlight {
    /// Waits for what is under way: the kernel may still write to the slots. If waiting is
    /// impossible they are left to the process's end. What is open is closed.
    fn drop(&mut self) {
        let mut done = Vec::with_capacity(self.slots.len());
        while self.under_way > 0 {
            if self.wait(&mut done).is_err() {
                return;
            }
            done.clear();
        }
        for file in self.files.iter_mut().filter_map(Option::take) {
            // SAFETY: a slot has opened it, and nobody else closes it. Nobody is left to
            // hear of an error.
            let _ = unsafe { calls::close(file) };
        }
        // SAFETY: no request is under way, and the field is not used again.
        unsafe { ManuallyDrop::drop(&mut self.slots) };
    }
}

#[cfg(test)]
mod tests {
    use io_uring::opcode;
    use rbench_core::By;
    use rbench_core::operations::{OPERATIONS, READABLE, WORDS};

    use super::*;

    /// Every call of the table, and those of mixes alone.
    fn all() -> Vec<Call> {
        let of_phases = OPERATIONS.iter().flat_map(|operation| operation.timed);
        let of_words = WORDS.iter().map(|word| (word.call)(1));
        of_phases.copied().chain(of_words).collect()
    }

    #[test]
    fn entries_have_the_opcodes_that_the_kernel_is_asked_about() {
        let mut slot = Slot::new(16, 1).expect("there is memory");
        for call in all() {
            let entry = slot.entry(call, (0, 1), 0, None);
            let expected = call
                .in_a_ring()
                .map(|ring| format!("op_code: {},", ring.code));
            assert_eq!(entry.is_some(), expected.is_some(), "{call:?}");
            if let (Some(entry), Some(code)) = (entry, expected) {
                let entry = format!("{entry:?}");
                assert!(entry.contains(&code), "{call:?}: {entry}");
                continue;
            }
            // A call in the middle that no ring performs is a failure, never skipped.
            slot.parts = vec![Part::once(call), Part::once(Call::Close)];
            slot.progress = Progress::default();
            assert!(slot.next_entry(0, &mut None).is_none());
            assert_eq!(slot.progress.result(), Err(Errno::ENOSYS), "{call:?}");
        }
    }

    #[test]
    fn of_what_a_kernel_lacks_the_first_that_is_needed_is_named() {
        let check = |calls: &[Call], last: u8, expect| {
            let found = first_lacking(calls, |code| code <= last);
            assert_eq!(found, expect, "{calls:?} up to {last}");
        };
        let lack = |call, since| Err(Lack::Request { call, since });
        let all = [
            Call::Stat(By::Link),
            Call::Access(READABLE),
            Call::MKDIR,
            Call::Truncate(By::File, 0),
        ];
        check(&all, opcode::Ftruncate::CODE, Ok(()));
        check(&all, opcode::FSetXattr::CODE, lack("ftruncate", "6.9"));
        check(&all, opcode::RenameAt::CODE, lack("mkdirat", "5.15"));
        check(&all[..1], opcode::RenameAt::CODE, Ok(()));
        check(&[], 0, Ok(()));
    }
}
