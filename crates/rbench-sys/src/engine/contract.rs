//! The contract of I/O engines.
//!
//! An engine moves blocks between a worker's buffers and open files. It is described by
//! data as far as possible ([`EngineInfo`]): its abilities are known before it runs.

use std::os::fd::{OwnedFd, RawFd};
use std::path::Path;

use nix::errno::Errno;
use rbench_core::outcome::Retries;
use rbench_core::{EngineOptions, IoPriority, Nanos};

use crate::buffer::{AlignedBuffer, BlockMemory};
use crate::files::Advice;
use crate::limits::Usage;

/// The direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// From the file into the buffer.
    Read,
    /// From the buffer into the file.
    Write,
    /// Deallocates the blocks of the range, which then reads as zeros; the file keeps its
    /// length (`FALLOC_FL_PUNCH_HOLE`, `FALLOC_FL_KEEP_SIZE`). It has no buffer, and may
    /// have any length.
    ///
    /// Every engine performs it at submission, after handing over the queue, like fio's
    /// engines: a write of the same range that is submitted later comes later. Without
    /// support for holes it gives `EOPNOTSUPP`; a block device discards the range, or gives
    /// that too.
    Trim,
    /// Writes data and attributes of the file to stable storage; no buffer.
    Fsync,
    /// Writes data to stable storage, with the attributes needed to read it (fdatasync); no
    /// buffer.
    DataSync,
}

impl Transfer {
    /// True if it moves no bytes, but makes earlier writes durable.
    #[inline]
    pub fn is_sync(self) -> bool {
        matches!(self, Transfer::Fsync | Transfer::DataSync)
    }

    /// True if it moves bytes between the buffer and the file.
    #[inline]
    pub(super) fn has_buffer(self) -> bool {
        matches!(self, Transfer::Read | Transfer::Write)
    }
}

/// One block to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The kind of transfer.
    pub transfer: Transfer,
    /// The open file; with an engine of names the index of the name.
    pub fd: RawFd,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes; except for trims, `at` + `length` is at most the length of the
    /// slot's buffer.
    pub length: usize,
    /// Offset in the slot's buffer, in bytes.
    pub at: usize,
    /// Its I/O priority; the default is that of the thread. Only libaio and io_uring have it, for
    /// reads and writes.
    pub priority: IoPriority,
}

/// The completion of a request: its slot, and the number of bytes or the error.
///
/// Fewer bytes than requested mean that the file ended (read), or that the kernel accepted
/// no more (write). The engine has already continued a partial transfer, and repeated an
/// interrupted one. An error after part of the data has moved is the error of the request.
/// A sync moves 0 bytes.
///
/// With `O_DIRECT` a transfer may end off a block boundary, or the device may refuse its
/// rest as unaligned. It is then complete with the bytes moved until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The slot given to [`Engine::submit`].
    pub slot: usize,
    /// Number of bytes moved, or the error.
    pub result: Result<usize, Errno>,
}

/// Configuration of a worker's engine.
#[derive(Debug)]
pub struct EngineConfig {
    /// Most requests in flight at a time: the number of slots, at least 1.
    pub depth: usize,
    /// Length of each slot's buffer in bytes.
    pub block: usize,
    /// Further options; an engine uses its own.
    pub options: EngineOptions,
    /// Memory for all of the buffers; `None`: pages of the process, with each buffer at the
    /// start of a page.
    pub memory: Option<BlockMemory>,
    /// True if several threads use it, one after the other.
    pub goes_round: bool,
}

impl EngineConfig {
    /// Creates a configuration with `depth` slots and buffers of `block` bytes, without
    /// further options.
    pub fn new(depth: usize, block: usize) -> EngineConfig {
        EngineConfig {
            depth,
            block,
            options: EngineOptions::default(),
            memory: None,
            goes_round: false,
        }
    }
}

/// Counts of the requests per system call, in both directions, and of the calls in addition
/// to the first.
///
/// Calls are counted by their number of requests: none, up to 4, 8, 16, 32, 64, more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineCounts {
    /// System calls that handed over requests, including the rest of partial transfers.
    /// Calls that only wait do not count.
    pub submits: [u64; 7],
    /// Checks for completions while something was in flight: calls of the functions of
    /// [`Engine`] that wait and poll. They may find none.
    pub completes: [u64; 7],
    /// Calls after the first one of each request.
    pub again: RetriesByTransfer,
}

/// Calls after the first one of a request, by its kind of transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetriesByTransfer {
    /// Calls for reads.
    pub read: Retries,
    /// Calls for writes.
    pub write: Retries,
    /// Calls for trims.
    pub trim: Retries,
    /// Calls for fsync and fdatasync.
    pub sync: Retries,
}

impl RetriesByTransfer {
    /// The sum over all kinds.
    pub fn all(self) -> Retries {
        let RetriesByTransfer {
            read,
            write,
            trim,
            sync,
        } = self;
        let mut all = read;
        all.add(write);
        all.add(trim);
        all.add(sync);
        all
    }

    /// The calls for `transfer`.
    pub fn of(&mut self, transfer: Transfer) -> &mut Retries {
        match transfer {
            Transfer::Read => &mut self.read,
            Transfer::Write => &mut self.write,
            Transfer::Trim => &mut self.trim,
            Transfer::Fsync | Transfer::DataSync => &mut self.sync,
        }
    }
}

impl EngineCounts {
    /// The index in the arrays for `requests` at a time.
    #[inline]
    pub fn bucket(requests: usize) -> usize {
        match requests {
            0 => 0,
            1..=4 => 1,
            5..=8 => 2,
            9..=16 => 3,
            17..=32 => 4,
            33..=64 => 5,
            _ => 6,
        }
    }

    /// The counts of a synchronous engine: `requests` calls with one request each.
    pub(crate) fn one_by_one(requests: u64, again: RetriesByTransfer) -> EngineCounts {
        let one = [0, requests, 0, 0, 0, 0, 0];
        EngineCounts {
            submits: one,
            completes: one,
            again,
        }
    }
}

/// An engine that moves blocks. It belongs to one worker.
///
/// Each slot has a buffer of [`EngineConfig::block`] bytes, aligned to 4096 unless
/// [`EngineConfig::memory`] has another alignment. The worker fills it before it submits a
/// write, and reads it after a read has completed. No call except `attach` and `detach`
/// allocates. Using a slot whose request is in flight, or a request longer than the buffer,
/// is a programming error: it panics.
pub trait Engine: Send {
    /// The buffer of `slot`. It must not be called while a request of the slot is in
    /// flight.
    fn buffer(&mut self, slot: usize) -> &mut [u8];

    /// Announces an open file with many requests, and their distribution (`None` if
    /// unknown). Until [`Engine::detach`] the file stays open, and nothing else moves its
    /// position. The engine may keep state for it: a mapping, the position, a place in the
    /// kernel's table. If that is not possible, it works without. Requests to other files
    /// work, too, but may be slower in some engines.
    fn attach(&mut self, fd: RawFd, advice: Option<Advice>) {
        let _ = (fd, advice);
    }

    /// Releases a file. It is called before an attached file is closed or attached again,
    /// when no request to it is in flight. For other files it has no effect.
    fn detach(&mut self, fd: RawFd) {
        let _ = fd;
    }

    /// Sets the names of an engine of names: [`Request::fd`] is then an index into them.
    /// Anything that a call needs is created here.
    ///
    /// # Errors
    /// `EINVAL` for a path with a zero byte.
    fn name_files(&mut self, paths: &mut dyn Iterator<Item = &Path>) -> Result<(), Errno> {
        let _ = paths;
        Ok(())
    }

    /// The file that the latest request of an engine of names has opened, if any; the
    /// worker closes it.
    fn take_opened(&mut self) -> Option<OwnedFd> {
        None
    }

    /// Swaps `buffer` with the only slot's buffer, if the engine supports it and both have
    /// the same length. No request may be in flight. Returns true if they were swapped.
    fn exchange(&mut self, buffer: &mut AlignedBuffer) -> bool {
        let _ = buffer;
        false
    }

    /// Starts `request` in `slot`, which must be free. A synchronous engine performs it
    /// completely. An asynchronous one may delay it until [`Engine::flush`] or
    /// [`Engine::wait`].
    fn submit(&mut self, slot: usize, request: Request);

    /// Hands all submitted requests to the kernel, without waiting.
    fn flush(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// Waits until at least one submitted request is complete; returns at once if none is
    /// in flight. Appends every completion to `done`, whose capacity is at least the depth.
    fn wait(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno>;

    /// Like [`Engine::wait`], but until `least` requests are complete, or all that are in
    /// flight if these are fewer.
    fn wait_many(&mut self, least: usize, done: &mut Vec<Completion>) -> Result<(), Errno> {
        let _ = least;
        self.wait(done)
    }

    /// Like [`Engine::wait`], but for at most `timeout`; a signal may end it earlier. It
    /// may append nothing. Requests of a synchronous engine are always complete.
    fn wait_for(&mut self, done: &mut Vec<Completion>, timeout: Nanos) -> Result<(), Errno> {
        let _ = timeout;
        self.wait(done)
    }

    /// Like [`Engine::wait`], without waiting: appends what is complete now.
    fn poll(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno>;

    /// Performs `request` in slot 0 while nothing else is in flight: submits it and waits
    /// for it. `room` is empty and has the capacity for one completion; it is empty again
    /// afterwards.
    ///
    /// # Errors
    /// Fails if the engine itself fails, and the result of the request is unknown.
    fn perform(
        &mut self,
        request: Request,
        room: &mut Vec<Completion>,
    ) -> Result<Result<usize, Errno>, Errno> {
        self.submit(0, request);
        self.wait(room)?;
        // A successful wait delivers the request in flight.
        Ok(room.pop().map_or(Err(Errno::EIO), |done| done.result))
    }

    /// Counts of the system calls until now.
    fn counts(&self) -> EngineCounts;

    /// Resources that the engine's own threads have used, up to the last request of each.
    fn usage(&self) -> Usage {
        Usage::default()
    }
}

/// Properties of an engine that are known before it runs.
#[derive(Debug, Clone, Copy)]
pub struct EngineInfo {
    /// The name on the command line.
    pub name: &'static str,
    /// Most requests in flight at a time; 1 for synchronous engines.
    pub depth_max: usize,
    /// True if it moves data between buffers and files.
    pub moves_data: bool,
    /// True if it uses files: the null engine measures the tool.
    pub uses_files: bool,
    /// True if a request is one operation on a name ([`Engine::name_files`]), without
    /// buffers.
    pub of_names: bool,
    /// True if it changes files even if a job only reads.
    pub always_writes: bool,
    /// True if threads other than the worker's make its calls. Workers must then share one
    /// table of open files.
    pub one_file_table: bool,
    /// True if its requests move the position of the open file, which threads would share.
    pub moves_position: bool,
    /// True if it uses mappings of files. Such an engine never extends a file (a request
    /// beyond the end is short). It only supports regular files, and only writes to files
    /// open for reading and writing. It uses the page cache even with `O_DIRECT`.
    pub mapped: bool,
    /// Creates an engine for a worker, in the worker's thread: an engine may be bound to
    /// the thread that created it. It gives `EINVAL` if the depth is 0 or above
    /// `depth_max`, or the block is 0. It gives `ENOMEM` if buffers or queues do not fit,
    /// and `EAGAIN` if the host's requests of libaio are used up. It gives `ENOSYS` or
    /// `EPERM` if the system does not have or forbids the engine, and the kernel's errors
    /// for options.
    pub make: Make,
}

/// Function that creates an engine.
pub(super) type Make = fn(EngineConfig) -> Result<Box<dyn Engine>, Errno>;

impl EngineInfo {
    /// A synchronous engine that moves data by system calls; it has no name yet.
    pub(super) const fn of(make: Make) -> EngineInfo {
        EngineInfo {
            name: "",
            depth_max: 1,
            moves_data: true,
            uses_files: true,
            of_names: false,
            always_writes: false,
            one_file_table: false,
            moves_position: false,
            mapped: false,
            make,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_four_words_with_its_priority() {
        // The loops copy each request.
        assert_eq!(size_of::<Request>(), 4 * size_of::<u64>());
    }

    #[test]
    fn requests_at_a_time_are_counted_up_to_powers_of_two() {
        let check = |requests, bucket| assert_eq!(EngineCounts::bucket(requests), bucket);
        check(0, 0);
        for (i, bound) in [4, 8, 16, 32, 64].into_iter().enumerate() {
            check(bound, i + 1);
            check(bound + 1, i + 2);
        }
        check(1, 1);
        check(usize::MAX, 6);
    }
}
