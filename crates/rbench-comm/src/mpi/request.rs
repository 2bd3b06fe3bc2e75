//! A pending MPI operation, and waiting for it.
//!
//! Owns the polling and its back-off. Which operation it is, the callers know.

use std::ffi::c_int;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ::mpi::ffi;
use rbench_core::Rank;

use super::session::{Session, check, test};
use crate::CommError;

/// Polls before the first pause.
const POLLS_AT_ONCE: u32 = 5;

/// The shortest pause.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);

/// A pause is this part of the wait so far, so that a wait lasts at most a
/// quarter longer than it must ...
const PART_OF_WAIT: u32 = 4;

/// ... up to this pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// After pauses of this sum ...
const LONG_WAIT: Duration = Duration::from_millis(500);

/// ... each is this long.
const LONG_WAIT_PAUSE: Duration = Duration::from_millis(5);

/// After pauses of this sum, as of ranks that take no part in a run of a series ...
const IDLE_WAIT: Duration = Duration::from_secs(2);

/// ... each is this long: a hundredth of the wait at most.
const IDLE_PAUSE: Duration = Duration::from_millis(20);

/// Tests in a row at each poll: an MPI library takes one step of a collective
/// at each, and on the way through all ranks every step counts.
const TESTS_PER_POLL: u32 = 3;

/// Shorter pauses block the thread: tokio's clock ticks in milliseconds.
const TIMER_TICK: Duration = Duration::from_millis(1);

/// The pauses between the polls of one wait: none at first, then growing, so
/// that a short wait is short and a long one costs next to no CPU.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    polls: u32,
    waited: Duration,
}

impl Pauses {
    /// The next pause; zero for a poll at once.
    fn next(&mut self) -> Duration {
        self.polls = self.polls.saturating_add(1);
        if self.polls <= POLLS_AT_ONCE {
            return Duration::ZERO;
        }
        let pause = match self.waited {
            idle if idle > IDLE_WAIT => IDLE_PAUSE,
            long if long > LONG_WAIT => LONG_WAIT_PAUSE,
            short => (short / PART_OF_WAIT).clamp(SHORTEST_PAUSE, LONGEST_PAUSE),
        };
        self.waited += pause;
        pause
    }

    /// The sum of all pauses.
    pub(super) fn waited(&self) -> Duration {
        self.waited
    }

    /// Pauses, and lets the other futures of this thread have their turn.
    pub(super) async fn pause(&mut self) {
        let pause = self.next();
        if pause >= TIMER_TICK {
            tokio::time::sleep(pause).await;
        } else {
            block(pause);
            tokio::task::yield_now().await;
        }
    }

    /// Pauses where no future can run.
    pub(super) fn pause_blocking(&mut self) {
        block(self.next());
    }
}

/// Blocks this thread. Who gives the core away without a time to wake up at may get it
/// back late: the first polls follow each other at once.
fn block(pause: Duration) {
    if !pause.is_zero() {
        std::thread::sleep(pause);
    }
}

/// A pending operation and the buffers that MPI reads and writes until it
/// is complete. If it is dropped before, the session keeps the buffers.
///
/// The buffers may be moved in here, so what MPI uses must lie on the heap:
/// `B` is made of vectors.
pub(super) struct Pending<B: 'static> {
    session: Rc<Session>,
    call: &'static str,
    request: ffi::MPI_Request,
    buffers: Option<B>,
}

impl<B: 'static> Pending<B> {
    /// Starts the operation that `operation` calls.
    pub(super) fn start(
        session: &Rc<Session>,
        call: &'static str,
        mut buffers: B,
        operation: impl FnOnce(&mut B, *mut ffi::MPI_Request) -> c_int,
    ) -> Result<Pending<B>, CommError> {
        session.check_live(call)?;
        // SAFETY: a constant of the MPI library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        check(call, operation(&mut buffers, &raw mut request))?;
        Ok(Pending {
            session: Rc::clone(session),
            call,
            request,
            buffers: Some(buffers),
        })
    }

    /// Whether the operation is complete.
    pub(super) fn test(&mut self) -> Result<bool, CommError> {
        self.session.check_live(self.call)?;
        test(&mut self.request)
    }

    /// Polls whether the operation is complete, which also drives it.
    fn poll(&mut self) -> Result<bool, CommError> {
        for _ in 0..TESTS_PER_POLL {
            if self.test()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The buffers of an operation that [`Pending::test`] found complete.
    pub(super) fn into_buffers(mut self) -> B {
        self.buffers.take().expect("only taken here and on drop")
    }

    /// Waits quietly.
    pub(super) async fn complete(mut self) -> Result<B, CommError> {
        let mut pauses = Pauses::default();
        while !self.poll()? {
            pauses.pause().await;
        }
        Ok(self.into_buffers())
    }

    /// Waits without pause for an exchange with `other`, but not longer than
    /// `patience`.
    pub(super) fn complete_busily(
        mut self,
        patience: Duration,
        other: Rank,
    ) -> Result<B, CommError> {
        let start = Instant::now();
        while !self.test()? {
            if start.elapsed() > patience {
                return Err(CommError::Mpi {
                    call: self.call,
                    message: format!("rank {other} does not answer"),
                });
            }
            // Two ranks that share a core take turns.
            std::thread::yield_now();
        }
        Ok(self.into_buffers())
    }

    /// Takes back a receive operation.
    pub(super) fn cancel(mut self) -> Result<(), CommError> {
        self.session.check_live("MPI_Cancel")?;
        // SAFETY: the request is pending.
        check("MPI_Cancel", unsafe {
            ffi::MPI_Cancel(&raw mut self.request)
        })?;
        // SAFETY: as above; a cancelled receive operation is complete without
        // any other rank's doing.
        check("MPI_Wait", unsafe {
            ffi::MPI_Wait(&raw mut self.request, ffi::RSMPI_STATUS_IGNORE)
        })
    }
}

impl<B: 'static> Drop for Pending<B> {
    fn drop(&mut self) {
        // SAFETY: a constant of the MPI library.
        let none = unsafe { ffi::RSMPI_REQUEST_NULL };
        if self.request != none
            && let Some(buffers) = self.buffers.take()
        {
            self.session
                .abandon(self.call, self.request, Box::new(buffers));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_wait_is_polled_without_pause() {
        let mut pauses = Pauses::default();
        for _ in 0..POLLS_AT_ONCE {
            assert_eq!(pauses.next(), Duration::ZERO);
        }
        assert_eq!(pauses.next(), SHORTEST_PAUSE);
    }

    #[test]
    fn a_pause_is_at_most_a_quarter_of_the_wait_so_far() {
        let mut pauses = Pauses::default();
        for _ in 0..200 {
            let waited = pauses.waited();
            let pause = pauses.next();
            assert!(pause <= (waited / 4).max(SHORTEST_PAUSE), "{pause:?}");
        }
    }

    #[test]
    fn pauses_grow_to_two_milliseconds_and_after_half_a_second_to_five() {
        let mut pauses = Pauses::default();
        let all: Vec<u128> = (0..700).map(|_| pauses.next().as_micros()).collect();
        let grown = all.iter().position(|&pause| pause == 2000);
        let grown: u128 = all[..grown.expect("a pause of 2 ms")].iter().sum();
        assert!((8_000..11_000).contains(&grown), "{grown}");
        let long = all.iter().position(|&pause| pause == 5000);
        let long: u128 = all[..long.expect("a pause of 5 ms")].iter().sum();
        assert!((500_000..503_000).contains(&long), "{long}");
        assert!(all.is_sorted());
    }

    #[test]
    fn a_wait_of_ten_seconds_is_polled_some_hundred_times_a_second() {
        let mut pauses = Pauses::default();
        let mut polls = 0;
        while pauses.waited() < Duration::from_secs(10) {
            pauses.next();
            polls += 1;
        }
        assert!(polls < 2300, "{polls}");
    }
}
