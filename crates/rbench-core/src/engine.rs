//! Options of particular I/O engines, under their names in fio.

use crate::operations::Call;

/// Most operations on names that one worker has in flight.
pub const NAMES_IN_FLIGHT_MAX: u32 = 4096;

/// Options of engines beyond their requests. An engine uses its own and ignores the
/// others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineOptions {
    /// `hipri`: completions are polled (io_uring: `IORING_SETUP_IOPOLL`, pvsync2:
    /// `RWF_HIPRI`).
    pub hipri: bool,
    /// `hipri_percentage`: the percentage of pvsync2's calls that poll.
    pub hipri_percentage: u32,
    /// `fixedbufs`: buffers are registered with io_uring; `None`: if possible.
    pub fixedbufs: Option<bool>,
    /// `registerfiles`: files are registered with io_uring; `None`: if possible.
    pub registerfiles: Option<bool>,
    /// `sqthread_poll`: a kernel thread takes requests from io_uring.
    pub sqthread_poll: bool,
    /// `sqthread_poll_cpu`: processor of that thread.
    pub sqthread_poll_cpu: Option<u32>,
    /// `nonvectored`: io_uring reads and writes without a vector.
    pub nonvectored: bool,
    /// `force_async`: one in this many requests of io_uring goes straight to a kernel
    /// thread; 0: none.
    pub force_async: u64,
    /// `uncached`: `RWF_DONTCACHE`
    pub uncached: bool,
    /// `nowait`: `RWF_NOWAIT`
    pub nowait: bool,
    /// `atomic`: `RWF_ATOMIC`, for writes.
    pub atomic: bool,
    /// `userspace_reap`: libaio's completions are read from memory.
    pub userspace_reap: bool,
    /// `libaio_vectored`: `IOCB_CMD_PREADV` and `IOCB_CMD_PWRITEV` with a vector of one buffer.
    pub libaio_vectored: bool,
    /// `stat_type`: the call of filestat and dirstat; `None`: that of the engine.
    pub stat_type: Option<Call>,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            hipri: false,
            hipri_percentage: 100,
            fixedbufs: None,
            registerfiles: None,
            sqthread_poll: false,
            sqthread_poll_cpu: None,
            nonvectored: true,
            force_async: 0,
            uncached: false,
            nowait: false,
            atomic: false,
            userspace_reap: false,
            libaio_vectored: false,
            stat_type: None,
        }
    }
}
