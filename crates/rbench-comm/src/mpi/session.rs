//! The start and the end of MPI, its errors, and the buffers of abandoned operations.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::ptr;
use std::rc::Rc;
use std::time::Duration;

use ::mpi::ffi;

use super::Pauses;
use crate::CommError;

/// At the end of MPI, time limit for operations whose futures were dropped.
const ABANDONED_PATIENCE: Duration = Duration::from_secs(20);

/// Variable that makes Open MPI yield the processor at each poll without news; mpirun sets it if
/// ranks outnumber processors.
const YIELD: &str = "OMPI_MCA_mpi_yield_when_idle";

/// Buffer for a text of the MPI library: above any MPI_MAX_ERROR_STRING.
const TEXT_BYTES: usize = 4096;

/// MPI between its start and its end.
pub(super) struct Session {
    live: Cell<bool>,
    /// Pending operations whose futures were dropped.
    abandoned: RefCell<Vec<Abandoned>>,
    /// Communicators that were dropped while such operations were pending.
    unfreed: RefCell<Vec<ffi::MPI_Comm>>,
}

/// An abandoned operation, and the buffers that MPI still uses.
struct Abandoned {
    call: &'static str,
    request: ffi::MPI_Request,
    _buffers: Box<dyn Any>,
}

/// Returns true if the operation of `request` is complete; the request is then null.
pub(super) fn test(request: &mut ffi::MPI_Request) -> Result<bool, CommError> {
    let mut done = 0;
    // SAFETY: `request` came from MPI and is null or pending; the caller has checked that MPI is
    // live. No status is requested.
    check("MPI_Test", unsafe {
        ffi::MPI_Test(request, &raw mut done, ffi::RSMPI_STATUS_IGNORE)
    })?;
    Ok(done != 0)
}

/// Turns the return code of an MPI function into a result.
pub(super) fn check(call: &'static str, code: c_int) -> Result<(), CommError> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut text = [0_u8; TEXT_BYTES];
    let mut length = 0;
    // SAFETY: `text` has room for any text of the library.
    let known = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &raw mut length) };
    let message = if known == ffi::MPI_SUCCESS as c_int {
        let text = text.get(..length as usize).unwrap_or(&text);
        String::from_utf8_lossy(text).trim_end().to_owned()
    } else {
        format!("error {code}")
    };
    Err(CommError::Mpi { call, message })
}

/// Buffer for the library's name: above any MPI_MAX_LIBRARY_VERSION_STRING.
const LIBRARY_BYTES: usize = 16 * 1024;

/// First line of the library's version string. MPI allows this call before its start and after its
/// end.
pub(crate) fn library() -> Option<String> {
    let mut text = vec![0_u8; LIBRARY_BYTES];
    let mut length = 0;
    // SAFETY: `text` has room for the name of any library, and both live until the call returns.
    let code = unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr().cast(), &raw mut length) };
    if code != ffi::MPI_SUCCESS as c_int {
        return None;
    }
    let text = String::from_utf8_lossy(text.get(..length as usize)?).into_owned();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.trim_end_matches('\0').to_owned())
}

/// Makes errors of `communicator` return codes instead of ending all ranks.
pub(super) fn returns_errors(communicator: ffi::MPI_Comm) -> Result<(), CommError> {
    // SAFETY: `communicator` is valid, and the handler is MPI's own.
    check("MPI_Comm_set_errhandler", unsafe {
        ffi::MPI_Comm_set_errhandler(communicator, ffi::RSMPI_ERRORS_RETURN)
    })
}

/// MPI_COMM_WORLD.
pub(super) fn world() -> ffi::MPI_Comm {
    // SAFETY: a constant of the MPI library.
    unsafe { ffi::RSMPI_COMM_WORLD }
}

/// MPI_COMM_NULL.
pub(super) fn no_communicator() -> ffi::MPI_Comm {
    // SAFETY: a constant of the MPI library.
    unsafe { ffi::RSMPI_COMM_NULL }
}

/// Ends all ranks.
pub(super) fn abort(code: i32) {
    // SAFETY: may be called at any time while MPI is started. The return value does not matter: the
    // caller exits in any case.
    unsafe { ffi::MPI_Abort(world(), code) };
}

/// Makes Open MPI keep the processor. Must run before MPI or any thread is started.
///
/// Ranks hardly ever wait within MPI: they sleep between two polls. A rank that also yields the
/// processor at each poll is scheduled again only after all other processes (Linux 6.18). Beside a
/// busy program, it is then silent for seconds.
pub(crate) fn keep_the_processor() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the kernel's list of our threads"
    )]
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        // Another thread may be reading the environment: without the variable the run is only less
        // responsive.
        return;
    }
    // SAFETY: this is the only thread of the process.
    unsafe { std::env::set_var(YIELD, "0") };
}

impl Session {
    pub(super) fn start() -> Result<Rc<Session>, CommError> {
        let mut started = 0;
        // SAFETY: may be called at any time.
        check("MPI_Initialized", unsafe {
            ffi::MPI_Initialized(&raw mut started)
        })?;
        if started != 0 {
            let text = "MPI has already been started in this process";
            return Err(CommError::Start(text.to_owned()));
        }
        // SAFETY: a constant of the MPI library.
        let needed = unsafe { ffi::RSMPI_THREAD_FUNNELED };
        let mut provided = 0;
        // SAFETY: MPI allows null for the arguments of `main`.
        let code = unsafe {
            ffi::MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), needed, &raw mut provided)
        };
        if code != ffi::MPI_SUCCESS as c_int {
            // MPI_Error_string may not be used without MPI.
            return Err(CommError::Start(format!(
                "MPI could not be started: error {code}"
            )));
        }
        let session = Rc::new(Session {
            live: Cell::new(true),
            abandoned: RefCell::default(),
            unfreed: RefCell::default(),
        });
        returns_errors(world())?;
        if provided < needed {
            session.finalize()?;
            return Err(CommError::Start(
                "the MPI library does not support threads other than the one that calls it \
                 (MPI_THREAD_FUNNELED)"
                    .to_owned(),
            ));
        }
        Ok(session)
    }

    /// Returns an error once MPI has ended: no MPI function may be called then.
    pub(super) fn check_live(&self, call: &'static str) -> Result<(), CommError> {
        if self.live.get() {
            return Ok(());
        }
        Err(CommError::Mpi {
            call,
            message: "MPI is already finalized".to_owned(),
        })
    }

    /// Keeps the buffers of a pending operation that nobody waits for.
    pub(super) fn abandon(
        &self,
        call: &'static str,
        request: ffi::MPI_Request,
        buffers: Box<dyn Any>,
    ) {
        self.abandoned.borrow_mut().push(Abandoned {
            call,
            request,
            _buffers: buffers,
        });
    }

    /// Waits for the abandoned operations, with a time limit.
    pub(super) fn settle(&self) -> Result<(), CommError> {
        self.check_live("MPI_Test")?;
        let mut pauses = Pauses::default();
        loop {
            let mut abandoned = self.abandoned.borrow_mut();
            let mut result = Ok(());
            abandoned.retain_mut(|operation| match test(&mut operation.request) {
                Ok(done) => !done,
                Err(error) => {
                    result = Err(error);
                    true
                }
            });
            result?;
            let Some(operation) = abandoned.first() else {
                drop(abandoned);
                self.unfreed
                    .take()
                    .into_iter()
                    .for_each(|raw| self.free(raw));
                return Ok(());
            };
            if pauses.waited() > ABANDONED_PATIENCE {
                return Err(CommError::Mpi {
                    call: operation.call,
                    message: "abandoned here; the other ranks did not complete it".to_owned(),
                });
            }
            drop(abandoned);
            pauses.pause_blocking();
        }
    }

    /// Frees a communicator, unless MPI has ended. Frees it later if an abandoned operation is
    /// pending: it may belong to this communicator, and Open MPI 4.1 would continue it after the
    /// free.
    pub(super) fn free(&self, mut communicator: ffi::MPI_Comm) {
        if !self.abandoned.borrow().is_empty() {
            self.unfreed.borrow_mut().push(communicator);
        } else if self.live.get() {
            // SAFETY: MPI is live, and the communicator is freed only once, when its owner is
            // dropped. An error would have no consequence.
            unsafe { ffi::MPI_Comm_free(&raw mut communicator) };
        }
    }

    /// Ends MPI. All ranks must be about to do the same.
    pub(super) fn finalize(&self) -> Result<(), CommError> {
        self.check_live("MPI_Finalize")?;
        self.live.set(false);
        // SAFETY: MPI is live, and no MPI function is called afterwards.
        let code = unsafe { ffi::MPI_Finalize() };
        if code == ffi::MPI_SUCCESS as c_int {
            return Ok(());
        }
        Err(CommError::Mpi {
            call: "MPI_Finalize",
            message: format!("error {code}"),
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // MPI may still write into these buffers: they are never freed.
        std::mem::forget(self.abandoned.take());
    }
}
