//! A subset of a group's ranks as a group of its own, with notes: for runs with fewer ranks than
//! were started.

use rbench_core::Rank;

use crate::{Combine, CommError, Communicator, Note, Wait};

/// Selected ranks of a group, renumbered from 0 in ascending order. Notes and clock comparisons go
/// through the whole group.
pub struct Chosen<'w> {
    whole: &'w dyn Communicator,
    part: Box<dyn Communicator>,
    /// Each rank's number in the whole group, ascending.
    members: Vec<Rank>,
}

impl<'w> Chosen<'w> {
    /// The group of these ranks of `whole`, in ascending order. Every rank of `whole` must call
    /// this with the same ranks. `None` at ranks that are not selected.
    ///
    /// # Errors
    /// When the ranks cannot communicate.
    pub async fn of(
        whole: &'w dyn Communicator,
        members: Vec<Rank>,
    ) -> Result<Option<Chosen<'w>>, CommError> {
        let inside = members.binary_search(&whole.rank()).is_ok();
        let part = whole.part(inside).await?;
        Ok(inside.then_some(Chosen {
            whole,
            part,
            members,
        }))
    }

    /// Rank `rank`'s number in the whole group.
    fn outer(&self, rank: Rank) -> Rank {
        self.members[rank.0 as usize]
    }
}

impl Communicator for Chosen<'_> {
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

    fn post(&self, to: Rank, content: Vec<u8>) {
        self.whole.post(self.outer(to), content);
    }

    fn next_note(&self) -> Wait<'_, Note> {
        Box::pin(async move {
            loop {
                let note = self.whole.next_note().await?;
                // Notes from other ranks are left over from another run and have no receiver.
                if let Ok(from) = self.members.binary_search(&note.from) {
                    return Ok(Note {
                        from: Rank(from as u32),
                        ..note
                    });
                }
            }
        })
    }

    fn send(&self, to: Rank, numbers: [u64; 2]) -> Result<(), CommError> {
        self.whole.send(self.outer(to), numbers)
    }

    fn receive(&self, from: Rank) -> Result<[u64; 2], CommError> {
        self.whole.receive(self.outer(from))
    }
}
