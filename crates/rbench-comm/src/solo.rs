//! The communicator of a single rank: every collective completes at once.
//!
//! It makes no MPI calls and needs no MPI library.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Ready, ready};

use rbench_core::Rank;
use tokio::sync::Notify;

use crate::communicator::{assert_fits, assert_member};
use crate::{Combine, CommError, Communicator, NOTE_WORDS, Note, Wait};

const SELF: Rank = Rank(0);

/// A group of one rank.
#[derive(Debug, Default)]
pub struct Solo {
    notes: RefCell<VecDeque<Note>>,
    posted: Notify,
    sent: RefCell<VecDeque<[u64; 2]>>,
}

impl Solo {
    /// A group of one rank.
    pub fn new() -> Solo {
        Solo::default()
    }
}

/// A future that is ready at once.
fn at_once<'a, T: 'a>(value: T) -> Wait<'a, T> {
    let value: Ready<Result<T, CommError>> = ready(Ok(value));
    Box::pin(value)
}

impl Communicator for Solo {
    fn rank(&self) -> Rank {
        SELF
    }

    fn size(&self) -> u32 {
        1
    }

    fn kind(&self) -> &'static str {
        "solo"
    }

    fn barrier(&self) -> Wait<'_, ()> {
        at_once(())
    }

    fn broadcast(&self, root: Rank, bytes: Vec<u8>) -> Wait<'_, Vec<u8>> {
        assert_member(root, 1);
        at_once(bytes)
    }

    fn gather(&self, root: Rank, bytes: Vec<u8>) -> Wait<'_, Option<Vec<Vec<u8>>>> {
        assert_member(root, 1);
        at_once(Some(vec![bytes]))
    }

    fn reduce(
        &self,
        root: Rank,
        _combine: Combine,
        numbers: Vec<u64>,
    ) -> Wait<'_, Option<Vec<u64>>> {
        assert_member(root, 1);
        at_once(Some(numbers))
    }

    fn all_reduce(&self, _combine: Combine, numbers: Vec<u64>) -> Wait<'_, Vec<u64>> {
        at_once(numbers)
    }

    fn split(&self, _color: u32) -> Wait<'_, Box<dyn Communicator>> {
        at_once(Box::new(Solo::new()))
    }

    fn post_with(&self, to: Rank, kind: u64, words: [u64; NOTE_WORDS], more: Vec<u64>) {
        assert_member(to, 1);
        assert_fits(&more);
        self.notes.borrow_mut().push_back(Note {
            from: SELF,
            kind,
            words,
            more,
        });
        self.posted.notify_one();
    }

    fn next_note(&self) -> Wait<'_, Note> {
        Box::pin(async move {
            loop {
                if let Some(note) = self.notes.borrow_mut().pop_front() {
                    return Ok(note);
                }
                self.posted.notified().await;
            }
        })
    }

    fn send(&self, to: Rank, numbers: [u64; 2]) -> Result<(), CommError> {
        assert_member(to, 1);
        self.sent.borrow_mut().push_back(numbers);
        Ok(())
    }

    fn receive(&self, from: Rank) -> Result<[u64; 2], CommError> {
        assert_member(from, 1);
        // No other rank could send it later.
        self.sent
            .borrow_mut()
            .pop_front()
            .ok_or(CommError::Gone(from))
    }
}
