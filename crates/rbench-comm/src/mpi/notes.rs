//! Notes over MPI: messages of limited size on a communicator of their own.
//!
//! Owns the receive operation that is always posted, the pending sends, and the orderly end, after
//! which no note is in flight.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::rc::Rc;
use std::time::Duration;

use ::mpi::ffi;
use rbench_core::Rank;

use super::request::{Pauses, Pending};
use super::session::{self, Session, check, returns_errors};
use super::u64_type;
use crate::{CommError, NOTE_BYTES, Note};

/// Pause between two polls for a note.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Bytes at the start of a message: sender, length of the content.
const HEAD_BYTES: usize = 8;

/// Maximum length of a message.
const MESSAGE_BYTES: usize = HEAD_BYTES + NOTE_BYTES;

const TAG: c_int = 0;

/// The call that gives ranks the number of messages that they must still receive.
const TALLY_CALL: &str = "MPI_Ireduce_scatter_block";

/// A condition that the end waits for.
type Condition<'a> = Box<dyn FnMut(&mut Notes) -> Result<bool, CommError> + 'a>;

/// A pending message in one direction.
type Message = Pending<Vec<u8>>;

/// The pending tally: the numbers of messages sent to each rank and, at the end, the number sent to
/// this rank.
type Tally = Pending<(Vec<u64>, Vec<u64>)>;

/// This rank's notes.
pub(super) struct Notes {
    session: Rc<Session>,
    raw: ffi::MPI_Comm,
    me: Rank,
    /// `None` only after an error.
    incoming: Option<Message>,
    outgoing: Vec<Message>,
    /// Received notes that were not yet returned.
    arrived: VecDeque<Note>,
    /// Number of messages sent to each rank.
    sent: Vec<u64>,
    /// Number of messages received from others.
    received: u64,
    /// The first error, returned by the next call of [`Notes::next`].
    failed: Option<CommError>,
}

impl Notes {
    /// Opens the notes of all ranks; a collective call.
    pub(super) fn open(session: &Rc<Session>, me: Rank, size: u32) -> Result<Notes, CommError> {
        let mut raw = session::no_communicator();
        // SAFETY: MPI is live, and `raw` receives the new communicator.
        check("MPI_Comm_dup", unsafe {
            ffi::MPI_Comm_dup(session::world(), &raw mut raw)
        })?;
        let mut notes = Notes {
            session: Rc::clone(session),
            raw,
            me,
            incoming: None,
            outgoing: Vec::new(),
            arrived: VecDeque::new(),
            sent: vec![0; size as usize],
            received: 0,
            failed: None,
        };
        returns_errors(raw)?;
        notes.incoming = Some(notes.receive_into(vec![0; MESSAGE_BYTES])?);
        Ok(notes)
    }

    /// Sends a note without waiting; [`Notes::next`] completes pending sends.
    pub(super) fn post(&mut self, to: Rank, content: Vec<u8>) {
        if to == self.me {
            let from = self.me;
            self.arrived.push_back(Note { from, content });
            return;
        }
        let sending = self.send(to, &content);
        match sending {
            Ok(message) => {
                self.sent[to.0 as usize] += 1;
                self.outgoing.push(message);
            }
            Err(error) => self.fail(error),
        }
    }

    /// The next note, if one has arrived.
    pub(super) fn next(&mut self) -> Result<Option<Note>, CommError> {
        self.look();
        if let Some(note) = self.arrived.pop_front() {
            return Ok(Some(note));
        }
        self.failed.clone().map_or(Ok(None), Err)
    }

    /// Ends all notes; a collective call. Every rank receives all notes sent to it, so that no
    /// message is in flight when MPI ends. Without `patience` it waits for the other ranks without
    /// a limit.
    pub(super) fn close(mut self, patience: Option<Duration>) -> Result<(), CommError> {
        let mut pauses = Pauses::default();
        let mut wait = |notes: &mut Notes, mut done: Condition<'_>| -> Result<(), CommError> {
            while !done(notes)? {
                notes.look();
                notes.failed.clone().map_or(Ok(()), Err)?;
                if patience.is_some_and(|patience| pauses.waited() > patience) {
                    return Err(CommError::Mpi {
                        call: TALLY_CALL,
                        message: "the other ranks did not exit".to_owned(),
                    });
                }
                pauses.pause_blocking();
            }
            Ok(())
        };
        let mut tally = self.tally()?;
        wait(&mut self, Box::new(|_| tally.test()))?;
        let (_, expected) = tally.into_buffers();
        wait(
            &mut self,
            Box::new(|notes| Ok(notes.received >= expected[0] && notes.outgoing.is_empty())),
        )?;
        self.incoming.take().map_or(Ok(()), Message::cancel)?;
        self.session.free(self.raw);
        Ok(())
    }

    /// Starts to tell every rank the number of messages that were sent to it.
    fn tally(&self) -> Result<Tally, CommError> {
        let buffers = (self.sent.clone(), vec![0]);
        Pending::start(
            &self.session,
            TALLY_CALL,
            buffers,
            |(sent, all), request| {
                // SAFETY: `sent` holds a number for each rank and `all` one; the pending operation
                // keeps both in place.
                unsafe {
                    ffi::MPI_Ireduce_scatter_block(
                        sent.as_ptr().cast(),
                        all.as_mut_ptr().cast(),
                        1,
                        u64_type(),
                        ffi::RSMPI_SUM,
                        self.raw,
                        request,
                    )
                }
            },
        )
    }

    /// Receives arrived notes, and frees completed sends.
    fn look(&mut self) {
        if let Err(error) = self.take_in().and_then(|()| self.let_go()) {
            self.fail(error);
        }
    }

    fn take_in(&mut self) -> Result<(), CommError> {
        while let Some(mut incoming) = self.incoming.take() {
            if !incoming.test()? {
                self.incoming = Some(incoming);
                break;
            }
            let message = incoming.into_buffers();
            self.received += 1;
            let number = |at| u32::from_le_bytes(std::array::from_fn(|byte| message[at + byte]));
            let length = (number(4) as usize).min(NOTE_BYTES);
            self.arrived.push_back(Note {
                from: Rank(number(0)),
                content: message[HEAD_BYTES..HEAD_BYTES + length].to_vec(),
            });
            self.incoming = Some(self.receive_into(message)?);
        }
        Ok(())
    }

    fn let_go(&mut self) -> Result<(), CommError> {
        let mut result = Ok(());
        self.outgoing.retain_mut(|message| match message.test() {
            Ok(done) => !done,
            Err(error) => {
                result = Err(error);
                false
            }
        });
        result
    }

    /// Keeps the first error.
    fn fail(&mut self, error: CommError) {
        self.failed.get_or_insert(error);
    }

    /// Posts the receive operation for the next message, in the buffer of the previous one.
    fn receive_into(&self, buffer: Vec<u8>) -> Result<Message, CommError> {
        Pending::receive(&self.session, self.raw, (None, TAG), buffer)
    }

    fn send(&self, to: Rank, content: &[u8]) -> Result<Message, CommError> {
        let mut message = Vec::with_capacity(HEAD_BYTES + content.len());
        message.extend_from_slice(&self.me.0.to_le_bytes());
        message.extend_from_slice(&(content.len() as u32).to_le_bytes());
        message.extend_from_slice(content);
        Pending::send(&self.session, self.raw, (to, TAG), message)
    }
}
