//! What a communicator is: the collective operations and notes of a group of ranks.

use std::future::Future;
use std::pin::Pin;

use rbench_core::Rank;
use rbench_core::message::{decode, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A future of the control plane; it lives on the main thread.
pub type Wait<'a, T> = Pin<Box<dyn Future<Output = Result<T, CommError>> + 'a>>;

/// Why ranks could not communicate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommError {
    /// The MPI library reported an error.
    #[error("MPI {call} failed: {message}")]
    Mpi {
        /// The MPI call.
        call: &'static str,
        /// What the library said.
        message: String,
    },
    /// Another rank has ended (threads communicator).
    #[error("rank {0} has exited")]
    Gone(Rank),
    /// A message between ranks is damaged: both ends are the same program.
    #[error("a message from rank {0} arrived incomplete")]
    Garbled(Rank),
    /// MPI could not be started as this program needs it.
    #[error("{0}")]
    Start(String),
    /// As [`CommError::Start`]; another rank says why.
    #[error("another rank aborted the start")]
    Refused,
}

/// How a reduction combines two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combine {
    /// The sum (wrapping).
    Sum,
    /// The smaller.
    Min,
    /// The larger.
    Max,
}

/// Words that a note carries besides its kind.
pub const NOTE_WORDS: usize = 6;

/// Most words that a note may carry beyond those.
pub const NOTE_MORE: usize = 4608;

/// A short message outside the collectives, sent without waiting: progress,
/// a request to abort, what was done in the last second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The sender.
    pub from: Rank,
    /// What it is about; its meaning is the caller's.
    pub kind: u64,
    /// The content; its meaning is the caller's.
    pub words: [u64; NOTE_WORDS],
    /// More of it; mostly empty, at most [`NOTE_MORE`].
    pub more: Vec<u64>,
}

/// A group of ranks.
///
/// Every rank must make the same collective calls in the same order. A future
/// that is dropped before it is ready leaves its collective pending: the group
/// cannot be used after that except for [`Communicator::post`] and
/// [`Communicator::next_note`].
pub trait Communicator {
    /// This rank's number in the group.
    fn rank(&self) -> Rank;

    /// The number of ranks in the group, at least 1.
    fn size(&self) -> u32;

    /// The name for reports: `solo`, `threads`, `mpi`.
    fn kind(&self) -> &'static str;

    /// Ready when every rank has entered.
    fn barrier(&self) -> Wait<'_, ()>;

    /// Rank `root`'s bytes, at every rank; what the others pass is ignored.
    fn broadcast(&self, root: Rank, bytes: Vec<u8>) -> Wait<'_, Vec<u8>>;

    /// Every rank's bytes (of any length, also none) in the order of ranks,
    /// at `root`; `None` at the others.
    fn gather(&self, root: Rank, bytes: Vec<u8>) -> Wait<'_, Option<Vec<Vec<u8>>>>;

    /// Element by element combination of every rank's numbers (the same
    /// length everywhere), at `root`; `None` at the others.
    fn reduce(&self, root: Rank, combine: Combine, numbers: Vec<u64>)
    -> Wait<'_, Option<Vec<u64>>>;

    /// As [`Communicator::reduce`], at every rank.
    fn all_reduce(&self, combine: Combine, numbers: Vec<u64>) -> Wait<'_, Vec<u64>>;

    /// The sub-group of the ranks that pass the same `color` (below 2^31),
    /// ordered as in this group. Notes are not available in sub-groups.
    fn split(&self, color: u32) -> Wait<'_, Box<dyn Communicator>>;

    /// The sub-group of the ranks that belong to it; each of the others gets one of its own, which
    /// costs it nothing.
    fn part(&self, belongs: bool) -> Wait<'_, Box<dyn Communicator>> {
        self.split(match belongs {
            true => 0,
            false => self.rank().0 + 1,
        })
    }

    /// Sends a note to `to` (also to itself) without waiting. A note to a
    /// rank that has gone is lost. Those of one rank to another arrive in order.
    fn post(&self, to: Rank, kind: u64, words: [u64; NOTE_WORDS]) {
        self.post_with(to, kind, words, Vec::new());
    }

    /// The same with `more` words, at most [`NOTE_MORE`].
    fn post_with(&self, to: Rank, kind: u64, words: [u64; NOTE_WORDS], more: Vec<u64>);

    /// The next note for this rank, in the order of arrival. May be dropped
    /// and called again without losing any.
    fn next_note(&self) -> Wait<'_, Note>;

    /// Sends numbers to `to` for its [`Communicator::receive`]: polled without
    /// pause, for comparing clocks only, while nothing is timed.
    fn send(&self, to: Rank, numbers: [u64; 2]) -> Result<(), CommError>;

    /// Receives what `from` sent with [`Communicator::send`], polling without
    /// pause.
    fn receive(&self, from: Rank) -> Result<[u64; 2], CommError>;
}

/// Collectives of values: these are written into their messages at once, so that they need not
/// live on.
impl<'c> dyn Communicator + 'c {
    /// As [`Communicator::broadcast`], of a value.
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

    /// As [`Communicator::gather`], of values, at rank 0.
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
pub fn assert_fits(more: &[u64]) {
    let words = more.len();
    assert!(words <= NOTE_MORE, "a note of {words} more words");
}

/// Stops the program when it names a rank that is not in the group.
#[track_caller]
pub fn assert_member(rank: Rank, size: u32) {
    assert!(
        rank.0 < size,
        "rank {rank} is not in this group of {size} ranks"
    );
}
