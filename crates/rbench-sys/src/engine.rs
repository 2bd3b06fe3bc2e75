//! The contract of I/O engines, and the table of them.
//!
//! An engine moves blocks between a worker's buffers and open files. It is
//! data as far as possible ([`EngineInfo`]): what it can do is known before
//! anything runs, and the conformance suite loops over [`ENGINES`].

use std::os::fd::RawFd;

use nix::errno::Errno;
use rbench_core::Nanos;

use crate::engines;

/// The direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// From the file into the buffer.
    Read,
    /// From the buffer into the file.
    Write,
    /// Written data to stable storage; no buffer.
    Fsync,
}

/// One block to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub transfer: Transfer,
    /// The open file.
    pub fd: RawFd,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// How much, in bytes; together with `at` at most the length of the slot's
    /// buffer.
    pub length: usize,
    /// Where in the slot's buffer, in bytes.
    pub at: usize,
}

/// The end of a request: which slot, and how many bytes or which error.
///
/// Fewer bytes than asked for means the end of the file was reached (read) or
/// the kernel would take no more (write): the engine has already continued a
/// partial transfer and repeated an interrupted one. An error after part of
/// the data has moved is the request's error. An fsync moves 0 bytes.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineConfig {
    /// Most requests under way at a time: the number of slots, at least 1.
    pub depth: usize,
    /// Length of each slot's buffer in bytes.
    pub block: usize,
}

/// Moves blocks. One engine belongs to one worker.
///
/// Each slot has a buffer of [`EngineConfig::block`] bytes, aligned to 4096,
/// that the worker fills before it submits a write and looks at after a read
/// has completed. No call allocates. Using a slot whose request is under way,
/// or a request longer than the buffer, is a mistake of the program: it
/// panics.
pub trait Engine: Send {
    /// The buffer of `slot`. Must not be called while a request of the slot is
    /// under way.
    fn buffer(&mut self, slot: usize) -> &mut [u8];

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

    /// As [`Engine::wait`], but waits for `timeout` at most, and a signal may
    /// end it earlier: nothing may be appended. What a synchronous engine was
    /// given is always complete.
    fn wait_for(&mut self, done: &mut Vec<Completion>, timeout: Nanos) -> Result<(), Errno> {
        let _ = timeout;
        self.wait(done)
    }

    /// As [`Engine::wait`] without waiting: appends what is complete now.
    fn poll(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno>;
}

/// What is known of an engine before it runs.
#[derive(Debug, Clone, Copy)]
pub struct EngineInfo {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for `--help`.
    pub about: &'static str,
    /// Most requests under way at a time; 1 for synchronous engines.
    pub depth_max: usize,
    /// Whether it moves data at all: the null engine measures the tool.
    pub moves_data: bool,
    /// Makes one for a worker, in the thread of that worker: an engine may be
    /// bound to the thread that made it. `EINVAL` when the depth is 0 or above
    /// `depth_max` or the block is 0, `ENOMEM` when buffers or queues do not
    /// fit, `ENOSYS` or `EPERM` when the system has no such engine or forbids it.
    pub make: fn(EngineConfig) -> Result<Box<dyn Engine>, Errno>,
}

/// Every engine. A new one is a file under `engines/` and a line here.
pub const ENGINES: &[EngineInfo] = &[
    engines::psync::INFO,
    engines::io_uring::INFO,
    engines::null::INFO,
];

/// The engine of that name.
pub fn find(name: &str) -> Option<&'static EngineInfo> {
    ENGINES.iter().find(|engine| engine.name == name)
}
