//! The interface of communicators: collective operations and notes of a group of ranks.

use std::future::Future;
use std::pin::Pin;

use rbench_core::Rank;
use rbench_core::message::{decode, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A future of the control plane; stays on the main thread.
pub type Wait<'a, T> = Pin<Box<dyn Future<Output = Result<T, CommError>> + 'a>>;

/// The reason why ranks could not communicate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommError {
    /// The MPI library reported an error.
    #[error("MPI {call} failed: {message}")]
    Mpi {
        /// The MPI call.
        call: &'static str,
        /// The library's error message.
        message: String,
    },
    /// Another rank has ended (threads communicator).
    #[error("rank {0} has exited")]
    Gone(Rank),
    /// A message from that rank of its group is damaged: both ends are the same program.
    #[error("a message from rank {0} of a group of ranks arrived incomplete")]
    Garbled(Rank),
    /// MPI could not be started as this program needs it.
    #[error("{0}")]
    Start(String),
    /// Like [`CommError::Start`]; another rank reports the reason.
    #[error("another rank aborted the start")]
    Refused,
}

/// The operation of a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combine {
    /// The sum (wrapping).
    Sum,
    /// The smaller.
    Min,
    /// The larger.
    Max,
}

/// Maximum number of bytes in a note.
pub const NOTE_BYTES: usize = 37_000;

/// A short message outside the collectives, sent without waiting: progress, a request to abort,
/// figures of an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The sender.
    pub from: Rank,
    /// Content, defined by the caller; at most [`NOTE_BYTES`].
    pub content: Vec<u8>,
}

/// A group of ranks.
///
/// Every rank must make the same collective calls in the same order. Dropping a future before it is
/// ready leaves its collective pending. After that, only [`Communicator::post`] and
/// [`Communicator::next_note`] may be used.
pub trait Communicator {
    /// This rank's number in the group, from 0.
    fn rank(&self) -> Rank;

    /// Number of ranks in the group, at least 1.
    fn size(&self) -> u32;

    /// Name for reports: `solo`, `threads`, `mpi`.
    fn kind(&self) -> &'static str;

    /// Completes when every rank has entered.
    fn barrier(&self) -> Wait<'_, ()>;

    /// Sends rank `root`'s bytes to every rank; the bytes of the others are ignored.
    fn broadcast(&self, root: Rank, bytes: Vec<u8>) -> Wait<'_, Vec<u8>>;

    /// Collects every rank's bytes (of any length, even 0) at `root`, in rank order; `None` at the
    /// others.
    fn gather(&self, root: Rank, bytes: Vec<u8>) -> Wait<'_, Option<Vec<Vec<u8>>>>;

    /// Combines every rank's numbers element by element (same length on all ranks), at `root`;
    /// `None` at the others.
    fn reduce(&self, root: Rank, combine: Combine, numbers: Vec<u64>)
    -> Wait<'_, Option<Vec<u64>>>;

    /// Like [`Communicator::reduce`], with the result at every rank.
    fn all_reduce(&self, combine: Combine, numbers: Vec<u64>) -> Wait<'_, Vec<u64>>;

    /// Creates the sub-group of the ranks with the same `color` (below 2^31), in the same order.
    /// Sub-groups have no notes.
    fn split(&self, color: u32) -> Wait<'_, Box<dyn Communicator>>;

    /// Creates the sub-group of the ranks with `belongs`. Each other rank gets a group of its own,
    /// at no cost.
    fn part(&self, belongs: bool) -> Wait<'_, Box<dyn Communicator>> {
        self.split(match belongs {
            true => 0,
            false => self.rank().0 + 1,
        })
    }

    /// Sends a note to `to` (even to itself) without waiting. Notes to a rank that has exited are
    /// lost. Notes between two ranks arrive in order.
    fn post(&self, to: Rank, content: Vec<u8>);

    /// The next note for this rank, in order of arrival. Dropping the future loses no note.
    fn next_note(&self) -> Wait<'_, Note>;

    /// Sends numbers to `to`, which calls [`Communicator::receive`]. Busy-polls: only for comparing
    /// clocks, while nothing is timed.
    fn send(&self, to: Rank, numbers: [u64; 2]) -> Result<(), CommError>;

    /// Receives the numbers that `from` sent with [`Communicator::send`]. Busy-polls.
    fn receive(&self, from: Rank) -> Result<[u64; 2], CommError>;
}

/// Collectives of values: these are written into their messages at once, so that they need not
/// live on.
impl<'c> dyn Communicator + 'c {
    /// Like [`Communicator::broadcast`], for a value.
    ///
    /// # Errors
    /// When the ranks cannot communicate, or the message is damaged.
    pub fn broadcast_value<'s, T: Serialize + DeserializeOwned>(
        &'s self,
        root: Rank,
        value: &T,
    ) -> impl Future<Output = Result<T, CommError>> + use<'s, 'c, T> {
        let mine = match self.rank() == root {
            true => encode(value),
            false => Vec::new(),
        };
        async move {
            let message = self.broadcast(root, mine).await?;
            decode(&message).ok_or(CommError::Garbled(root))
        }
    }

    /// Like [`Communicator::gather`], for values, at rank 0.
    ///
    /// # Errors
    /// When the ranks cannot communicate, or a message is damaged.
    pub fn gather_values<'s, T: Serialize + DeserializeOwned>(
        &'s self,
        value: &T,
    ) -> impl Future<Output = Result<Option<Vec<T>>, CommError>> + use<'s, 'c, T> {
        let mine = encode(value);
        async move {
            let Some(messages) = self.gather(Rank(0), mine).await? else {
                return Ok(None);
            };
            let read = |(message, from): (Vec<u8>, u32)| {
                decode(&message).ok_or(CommError::Garbled(Rank(from)))
            };
            // Named, since a list of options could be collected, too.
            let values: Result<Vec<T>, CommError> =
                messages.into_iter().zip(0..).map(read).collect();
            values.map(Some)
        }
    }

    /// Every rank's value in the order of ranks, at every rank.
    ///
    /// # Errors
    /// When the ranks cannot communicate, or a message is damaged.
    pub fn all_values<'s, T: Serialize + DeserializeOwned>(
        &'s self,
        value: &T,
    ) -> impl Future<Output = Result<Vec<T>, CommError>> + use<'s, 'c, T> {
        let gathered = self.gather_values(value);
        async move {
            let all = gathered.await?.unwrap_or_default();
            self.broadcast_value(Rank(0), &all).await
        }
    }
}

/// Stops the program when a note is too long.
#[track_caller]
pub fn assert_fits(content: &[u8]) {
    let bytes = content.len();
    assert!(bytes <= NOTE_BYTES, "a note of {bytes} bytes");
}

/// Panics if a rank is not in the group.
#[track_caller]
pub fn assert_member(rank: Rank, size: u32) {
    assert!(
        rank.0 < size,
        "rank {rank} is not in this group of {size} ranks"
    );
}
