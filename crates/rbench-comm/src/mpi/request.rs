//! A pending MPI operation, and waiting for it.
//!
//! Owns the polling and its back-off. The callers define the operations.

use std::ffi::c_int;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ::mpi::ffi;
use rbench_core::Rank;

use super::session::{Session, check, test};
use super::{count, u8_type, u64_type};
use crate::CommError;

/// Polls before the first pause.
const POLLS_AT_ONCE: u32 = 5;

/// The shortest pause.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);

/// Each pause is this part of the time waited until then, so that a wait is at most a quarter
/// longer than necessary ...
const PART_OF_WAIT: u32 = 4;

/// ... up to this pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// After pauses of this total ...
const LONG_WAIT: Duration = Duration::from_millis(500);

/// ... each pause has this length.
const LONG_WAIT_PAUSE: Duration = Duration::from_millis(5);

/// After pauses of this total, e.g. at ranks that take no part in a run of a series ...
const IDLE_WAIT: Duration = Duration::from_secs(2);

/// ... each pause has this length: at most a hundredth of the wait.
const IDLE_PAUSE: Duration = Duration::from_millis(20);

/// Consecutive tests per poll: an MPI library advances a collective by one step per test, and each
/// step delays all ranks.
const TESTS_PER_POLL: u32 = 3;

/// Shorter pauses block the thread: tokio's timer has a resolution of 1 ms.
const TIMER_TICK: Duration = Duration::from_millis(1);

/// Pauses between the polls of a wait: none at first, then growing. Short waits stay short, and
/// long waits use little CPU.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    polls: u32,
    waited: Duration,
}

impl Pauses {
    /// The next pause; zero means to poll again at once.
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

    /// Pauses, and lets other futures of this thread run.
    pub(super) async fn pause(&mut self) {
        let pause = self.next();
        if pause >= TIMER_TICK {
            tokio::time::sleep(pause).await;
        } else {
            block(pause);
            tokio::task::yield_now().await;
        }
    }

    /// Pauses where no other future can run.
    pub(super) fn pause_blocking(&mut self) {
        block(self.next());
    }
}

/// Blocks this thread. A thread that yields without a wake-up time may be scheduled late, so the
/// first polls follow each other at once.
fn block(pause: Duration) {
    if !pause.is_zero() {
        std::thread::sleep(pause);
    }
}

/// A pending operation and the buffers that MPI uses until it is complete. If dropped earlier, the
/// session keeps the buffers.
///
/// The buffers may be moved, so MPI's data must be on the heap: `B` consists of vectors.
pub(super) struct Pending<B: 'static> {
    session: Rc<Session>,
    call: &'static str,
    request: ffi::MPI_Request,
    buffers: Option<B>,
}

impl<B: 'static> Pending<B> {
    /// Starts an operation by calling `operation`.
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

    /// Returns true if the operation is complete.
    pub(super) fn test(&mut self) -> Result<bool, CommError> {
        self.session.check_live(self.call)?;
        test(&mut self.request)
    }

    /// Tests whether the operation is complete; this also drives it.
    fn poll(&mut self) -> Result<bool, CommError> {
        for _ in 0..TESTS_PER_POLL {
            if self.test()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The buffers of an operation that [`Pending::test`] reported complete.
    pub(super) fn into_buffers(mut self) -> B {
        self.buffers.take().expect("only taken here and on drop")
    }

    /// Waits with back-off.
    pub(super) async fn complete(mut self) -> Result<B, CommError> {
        let mut pauses = Pauses::default();
        while !self.poll()? {
            pauses.pause().await;
        }
        Ok(self.into_buffers())
    }

    /// Waits for an exchange with `other` by busy-polling, for at most `patience`.
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

    /// Cancels a receive operation.
    pub(super) fn cancel(mut self) -> Result<(), CommError> {
        self.session.check_live("MPI_Cancel")?;
        // SAFETY: the request is pending.
        check("MPI_Cancel", unsafe {
            ffi::MPI_Cancel(&raw mut self.request)
        })?;
        // SAFETY: as above; a cancelled receive operation completes without action of another rank.
        check("MPI_Wait", unsafe {
            ffi::MPI_Wait(&raw mut self.request, ffi::RSMPI_STATUS_IGNORE)
        })
    }
}

/// A type of numbers that messages consist of.
pub(super) trait Number: 'static {
    /// The MPI type.
    fn mpi_type() -> ffi::MPI_Datatype;
}

impl Number for u8 {
    fn mpi_type() -> ffi::MPI_Datatype {
        u8_type()
    }
}

impl Number for u64 {
    fn mpi_type() -> ffi::MPI_Datatype {
        u64_type()
    }
}

impl<T: Number> Pending<Vec<T>> {
    /// Starts to send `message` to the rank `to` of `group`.
    pub(super) fn send(
        session: &Rc<Session>,
        group: ffi::MPI_Comm,
        (to, tag): (Rank, c_int),
        message: Vec<T>,
    ) -> Result<Pending<Vec<T>>, CommError> {
        const CALL: &str = "MPI_Isend";
        let (length, to) = (count(message.len(), CALL)?, to.0 as c_int);
        Pending::start(session, CALL, message, |message, request| {
            let message = message.as_ptr().cast();
            // SAFETY: `message` holds `length` numbers, and the pending operation keeps it in
            // place.
            unsafe { ffi::MPI_Isend(message, length, T::mpi_type(), to, tag, group, request) }
        })
    }

    /// Starts to receive a message, at most as long as `room`, from a rank of `group` or from any.
    pub(super) fn receive(
        session: &Rc<Session>,
        group: ffi::MPI_Comm,
        (from, tag): (Option<Rank>, c_int),
        room: Vec<T>,
    ) -> Result<Pending<Vec<T>>, CommError> {
        const CALL: &str = "MPI_Irecv";
        let length = count(room.len(), CALL)?;
        // SAFETY: a constant of the MPI library.
        let from = from.map_or(unsafe { ffi::RSMPI_ANY_SOURCE }, |rank| rank.0 as c_int);
        Pending::start(session, CALL, room, |room, request| {
            let room = room.as_mut_ptr().cast();
            // SAFETY: `room` holds `length` numbers, and the pending operation keeps it in place.
            unsafe { ffi::MPI_Irecv(room, length, T::mpi_type(), from, tag, group, request) }
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
