//! The contract of I/O engines.
//!
//! An engine moves blocks between a worker's buffers and open files. It is
//! data as far as possible ([`EngineInfo`]): what it can do is known before
//! anything runs.

use std::os::fd::{OwnedFd, RawFd};
use std::path::Path;

use nix::errno::Errno;
use rbench_core::outcome::Retries;
use rbench_core::{EngineOptions, Nanos};

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
    /// The blocks of the range are given back, and it reads as zeros from then on; the
    /// file keeps its length (`FALLOC_FL_PUNCH_HOLE`, `FALLOC_FL_KEEP_SIZE`). No buffer:
    /// the length may be any.
    ///
    /// Every engine does it when it is submitted, after what was queued is handed
    /// over, as fio's engines do: a write of the same range that is submitted later comes
    /// later. What cannot punch holes gives `EOPNOTSUPP`; a block device discards the
    /// range, or gives that too.
    Trim,
    /// Written data and attributes of the file to stable storage; no buffer.
    Fsync,
    /// Written data to stable storage, with the attributes that are needed to
    /// read it (fdatasync); no buffer.
    DataSync,
}

impl Transfer {
    /// Whether it moves no bytes but makes sure of what was written.
    #[inline]
    pub fn is_sync(self) -> bool {
        matches!(self, Transfer::Fsync | Transfer::DataSync)
    }

    /// Whether bytes go between the buffer and the file.
    #[inline]
    pub(super) fn has_buffer(self) -> bool {
        matches!(self, Transfer::Read | Transfer::Write)
    }
}

/// One block to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub transfer: Transfer,
    /// The open file; with an engine of names the position of the name.
    pub fd: RawFd,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// How much, in bytes; together with `at` at most the length of the slot's
    /// buffer, but for trims.
    pub length: usize,
    /// Where in the slot's buffer, in bytes.
    pub at: usize,
}

/// The end of a request: which slot, and how many bytes or which error.
///
/// Fewer bytes than asked for means the end of the file was reached (read) or
/// the kernel would take no more (write): the engine has already continued a
/// partial transfer and repeated an interrupted one. An error after part of
/// the data has moved is the request's error. A sync moves 0 bytes.
///
/// With `O_DIRECT` a transfer that ended off a block boundary, or whose rest
/// the device refuses as unaligned, is complete with what was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The slot given to [`Engine::submit`].
    pub slot: usize,
    /// Bytes moved, or why not.
    pub result: Result<usize, Errno>,
}

/// What a worker asks of its engine.
#[derive(Debug)]
pub struct EngineConfig {
    /// Most requests under way at a time: the number of slots, at least 1.
    pub depth: usize,
    /// Length of each slot's buffer in bytes.
    pub block: usize,
    /// What else; an engine takes what belongs to it.
    pub options: EngineOptions,
    /// What the buffers lie in, with room for all of them; `None`: pages of the process,
    /// each buffer at the start of one.
    pub memory: Option<BlockMemory>,
    /// Whether several threads use it, one after the other.
    pub goes_round: bool,
}

impl EngineConfig {
    /// So many slots with buffers of `block` bytes, and nothing else.
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

/// How many requests went to the kernel and came back at a time, and what they
/// took beyond that.
///
/// Calls are counted by number of requests: none, up to 4, 8, 16, 32, 64, more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineCounts {
    /// System calls that handed requests over, the rest of partial transfers
    /// included. Calls that only wait are not among them.
    pub submits: [u64; 7],
    /// Looks at what is complete while something was under way: calls of the
    /// functions of [`Engine`] that wait and poll. They may find nothing.
    pub completes: [u64; 7],
    /// Calls beyond the first of each request.
    pub again: RetriesByTransfer,
}

/// Calls beyond the first of a request, by what the request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetriesByTransfer {
    /// Of reads.
    pub read: Retries,
    /// Of writes.
    pub write: Retries,
    /// Of trims.
    pub trim: Retries,
    /// Of fsync and fdatasync.
    pub sync: Retries,
}

impl RetriesByTransfer {
    /// Those of all requests.
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

    /// Those of requests that do `transfer`.
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
    /// The place of `requests` at a time in the arrays.
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

    /// What a synchronous engine counts: `requests` calls of one each.
    pub(crate) fn one_by_one(requests: u64, again: RetriesByTransfer) -> EngineCounts {
        let one = [0, requests, 0, 0, 0, 0, 0];
        EngineCounts {
            submits: one,
            completes: one,
            again,
        }
    }
}

/// Moves blocks. One engine belongs to one worker.
///
/// Each slot has a buffer of [`EngineConfig::block`] bytes, aligned to 4096 unless
/// [`EngineConfig::memory`] is aligned otherwise, that the worker fills before it submits a write and looks at after a read
/// has completed. Beside `attach` and `detach` no call allocates. Using a slot whose request is under way,
/// or a request longer than the buffer, is a mistake of the program: it
/// panics.
pub trait Engine: Send {
    /// The buffer of `slot`. Must not be called while a request of the slot is
    /// under way.
    fn buffer(&mut self, slot: usize) -> &mut [u8];

    /// Tells of an open file to which many requests will go, and how they will
    /// be spread (`None`: nothing is known). Until [`Engine::detach`] the file
    /// stays open, nobody else moves its position, and the engine may keep
    /// what serves it: a mapping, the position, a place in the kernel's table.
    /// What cannot be kept is done without. Requests to other files work, in
    /// some engines slower.
    fn attach(&mut self, fd: RawFd, advice: Option<Advice>) {
        let _ = (fd, advice);
    }

    /// Lets go of a file. Comes before an attached file is closed or attached
    /// again, when no request to it is under way; for others it does nothing.
    fn detach(&mut self, fd: RawFd) {
        let _ = fd;
    }

    /// Tells an engine of names which these are: [`Request::fd`] is then a position among
    /// them. Whatever a call needs is made here.
    ///
    /// # Errors
    /// `EINVAL` for a path with a byte 0.
    fn name_files(&mut self, paths: &mut dyn Iterator<Item = &Path>) -> Result<(), Errno> {
        let _ = paths;
        Ok(())
    }

    /// The file that the latest request of an engine of names has opened, if it has: the
    /// worker closes it.
    fn take_opened(&mut self) -> Option<OwnedFd> {
        None
    }

    /// Puts `buffer` in place of the only slot's buffer, which comes back in
    /// it, where the engine can do so and both have the same length. No request
    /// may be under way. Whether that was done.
    fn exchange(&mut self, buffer: &mut AlignedBuffer) -> bool {
        let _ = buffer;
        false
    }

    /// Starts `request` in `slot`, which must be free. Synchronous engines do
    /// all of it here. An asynchronous one may wait with telling the kernel
    /// until [`Engine::flush`] or [`Engine::wait`].
    fn submit(&mut self, slot: usize, request: Request);

    /// Tells the kernel of everything that was submitted, without waiting.
    fn flush(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// Waits until at least one submitted request is complete (at once when
    /// none is under way) and appends every complete one to `done`, whose
    /// capacity is at least the depth.
    fn wait(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno>;

    /// As [`Engine::wait`], but until `least` requests are complete, or all
    /// that are under way where these are fewer.
    fn wait_many(&mut self, least: usize, done: &mut Vec<Completion>) -> Result<(), Errno> {
        let _ = least;
        self.wait(done)
    }

    /// As [`Engine::wait`], but waits for `timeout` at most, and a signal may
    /// end it earlier: nothing may be appended. What a synchronous engine was
    /// given is always complete.
    fn wait_for(&mut self, done: &mut Vec<Completion>, timeout: Nanos) -> Result<(), Errno> {
        let _ = timeout;
        self.wait(done)
    }

    /// As [`Engine::wait`] without waiting: appends what is complete now.
    fn poll(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno>;

    /// Does `request` in slot 0 from beginning to end while nothing else is
    /// under way: submits it and waits for it. `room` is empty and has the
    /// capacity for one completion; it is empty again afterwards.
    ///
    /// # Errors
    /// When the engine itself fails, and nobody knows how the request ended.
    fn perform(
        &mut self,
        request: Request,
        room: &mut Vec<Completion>,
    ) -> Result<Result<usize, Errno>, Errno> {
        self.submit(0, request);
        self.wait(room)?;
        // Waiting without an error delivers what is under way.
        Ok(room.pop().map_or(Err(Errno::EIO), |done| done.result))
    }

    /// How requests were handed over and came back so far.
    fn counts(&self) -> EngineCounts;

    /// What threads of its own have used so far, up to the last request that each has made.
    fn usage(&self) -> Usage {
        Usage::default()
    }
}

/// What is known of an engine before it runs.
#[derive(Debug, Clone, Copy)]
pub struct EngineInfo {
    /// The name on the command line.
    pub name: &'static str,
    /// Most requests under way at a time; 1 for synchronous engines.
    pub depth_max: usize,
    /// Whether it moves data between buffers and files.
    pub moves_data: bool,
    /// Whether it works on files at all: the null engine measures the tool.
    pub uses_files: bool,
    /// Whether a request is one operation on a name ([`Engine::name_files`]): there are no
    /// buffers.
    pub of_names: bool,
    /// Whether it changes files where a job only reads.
    pub always_writes: bool,
    /// Whether threads that are not the worker's make its calls: then workers must
    /// not have tables of open files of their own.
    pub one_file_table: bool,
    /// Whether its requests move the position of the open file, which threads would share.
    pub moves_position: bool,
    /// Whether it reaches files through mappings of them. Such an engine makes
    /// no file longer (a request beyond the end is short), serves regular
    /// files only, writes only to those open for reading and writing, and
    /// takes the page cache even where a file is open with `O_DIRECT`.
    pub mapped: bool,
    /// Makes one for a worker, in the thread of that worker: an engine may be
    /// bound to the thread that made it. `EINVAL` when the depth is 0 or above
    /// `depth_max` or the block is 0, `ENOMEM` when buffers or queues do not
    /// fit, `EAGAIN` when the host's requests of libaio are used up, `ENOSYS` or
    /// `EPERM` when the system has no such engine or forbids it, and what the
    /// kernel says of options.
    pub make: Make,
}

/// Makes an engine.
pub(super) type Make = fn(EngineConfig) -> Result<Box<dyn Engine>, Errno>;

impl EngineInfo {
    /// An engine that moves data one request after the other, by system calls; it has
    /// no name yet.
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
