//! The first ranks of a group as a group of their own, with notes: a run with
//! fewer ranks than were started.

use rbench_core::Rank;

use crate::{Combine, CommError, Communicator, NOTE_WORDS, Note, Wait};

/// The ranks 0 … n − 1 of a group. Their numbers are the same in both, so
/// notes go through the whole group.
pub struct Leading<'w> {
    whole: &'w dyn Communicator,
    part: Box<dyn Communicator>,
}

impl<'w> Leading<'w> {
    /// The first `ranks` of `whole`; every rank of `whole` calls this. `None`
    /// at those that are left out.
    ///
    /// # Errors
    /// When the ranks cannot communicate.
    pub async fn of(
        whole: &'w dyn Communicator,
        ranks: u32,
    ) -> Result<Option<Leading<'w>>, CommError> {
        let outside = whole.rank().0 >= ranks;
        let part = whole.split(u32::from(outside)).await?;
        Ok((!outside).then_some(Leading { whole, part }))
    }
}

impl Communicator for Leading<'_> {
    fn rank(&self) -> Rank {
        self.part.rank()
    }

    fn size(&self) -> u32 {
        self.part.size()
    }

    fn kind(&self) -> &'static str {
        self.whole.kind()
    }

    fn barrier(&self) -> Wait<'_, ()> {
        self.part.barrier()
    }

    fn broadcast(&self, root: Rank, bytes: Vec<u8>) -> Wait<'_, Vec<u8>> {
        self.part.broadcast(root, bytes)
    }

    fn gather(&self, root: Rank, bytes: Vec<u8>) -> Wait<'_, Option<Vec<Vec<u8>>>> {
        self.part.gather(root, bytes)
    }

    fn reduce(
        &self,
        root: Rank,
        combine: Combine,
        numbers: Vec<u64>,
    ) -> Wait<'_, Option<Vec<u64>>> {
        self.part.reduce(root, combine, numbers)
    }

    fn all_reduce(&self, combine: Combine, numbers: Vec<u64>) -> Wait<'_, Vec<u64>> {
        self.part.all_reduce(combine, numbers)
    }

    fn split(&self, color: u32) -> Wait<'_, Box<dyn Communicator>> {
        self.part.split(color)
    }

    fn post_with(&self, to: Rank, kind: u64, words: [u64; NOTE_WORDS], more: Vec<u64>) {
        self.whole.post_with(to, kind, words, more);
    }

    fn next_note(&self) -> Wait<'_, Note> {
        self.whole.next_note()
    }

    fn send(&self, to: Rank, numbers: [u64; 2]) -> Result<(), CommError> {
        self.whole.send(to, numbers)
    }

    fn receive(&self, from: Rank) -> Result<[u64; 2], CommError> {
        self.whole.receive(from)
    }
}
