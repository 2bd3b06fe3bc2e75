//! The first messages of all ranks, before any collective operation. Every rank sends its host and
//! program to rank 0, rank 0 answers, and each rank greets the next one.
//!
//! MPI connects two ranks at the first message between them. On a network that does not carry it, a
//! collective operation waits forever and does not report the missing rank.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::rc::Rc;

use rbench_core::Rank;
use rbench_core::plain::plain;

use super::request::{Pauses, Pending};
use super::session::{self, Session};
use super::watch::{LAST_WORD, Stage, Watch};
use crate::CommError;
use crate::arrival::Arrival;

/// To rank 0: the sender's identity.
const HELLO: c_int = 2;
/// Rank 0's answer.
const ANSWER: c_int = 3;
/// To the next rank.
const GREETING: c_int = 4;

/// Maximum size of a message.
const BYTES: usize = 2048;
/// Maximum length of a name in a message.
const NAME_BYTES: usize = 512;

/// Rank 0's answers.
const WELCOME: u8 = 1;
const REFUSED: u8 = 2;

type Message = Pending<Vec<u8>>;

/// One rank's part of the roll call.
pub(super) struct RollCall<'a> {
    pub(super) session: &'a Rc<Session>,
    pub(super) me: Rank,
    pub(super) size: u32,
    pub(super) arrival: &'a Arrival,
    pub(super) watch: &'a Watch,
}

impl RollCall<'_> {
    /// Completes when this rank, rank 0 and both neighbours have received each other's messages.
    ///
    /// # Errors
    /// If ranks run different programs.
    pub(super) fn run(&self) -> Result<(), CommError> {
        if self.size == 1 {
            return Ok(());
        }
        let next = Rank((self.me.0 + 1) % self.size);
        let previous = Rank((self.me.0 + self.size - 1) % self.size);
        // A send completes when it was received; no rank has to wait for that.
        let greeting = self.send(next, GREETING, vec![WELCOME])?;
        let greeted = self.receive(Some(previous), GREETING)?;
        let mut sent = match self.me {
            Rank(0) => self.call(greeted)?,
            _ => self.answer(greeted, previous)?,
        };
        sent.push(greeting);
        let mut pauses = Pauses::default();
        for message in &mut sent {
            while !message.test()? {
                pauses.pause_blocking();
            }
        }
        Ok(())
    }

    /// Rank 0: receives all messages and answers them. Returns the pending sends.
    fn call(&self, mut greeted: Message) -> Result<Vec<Message>, CommError> {
        let mut heard = BTreeMap::new();
        let mut sent = Vec::new();
        let mut different = None;
        let mut incoming = self.receive(None, HELLO)?;
        let mut pauses = Pauses::default();
        let stage = |heard: &BTreeMap<u32, String>| Stage::Calling {
            size: self.size,
            heard: heard.clone(),
        };
        self.watch.at(stage(&heard));
        loop {
            if incoming.test()? {
                let hello = Hello::decode(&incoming.into_buffers());
                let hello = hello.filter(|hello| (1..self.size).contains(&hello.rank));
                let Some(Hello {
                    rank,
                    host,
                    program,
                }) = hello
                else {
                    let text = "a rank's first message arrived incomplete: check that all hosts have \
                                the same rbench (rbench version)";
                    return Err(CommError::Start(text.to_owned()));
                };
                let same = program == self.arrival.program;
                let verdict = if same { WELCOME } else { REFUSED };
                sent.push(self.send(Rank(rank), ANSWER, vec![verdict])?);
                if !same {
                    different.get_or_insert((rank, host.clone(), program));
                }
                heard.insert(rank, host);
                self.watch.at(stage(&heard));
                if heard.len() + 1 == self.size as usize {
                    break;
                }
                incoming = self.receive(None, HELLO)?;
                pauses = Pauses::default();
                continue;
            }
            pauses.pause_blocking();
        }
        if let Some((rank, host, program)) = different {
            return Err(CommError::Start(format!(
                "rank {rank} on host {} runs {}, but rank 0 runs {}: install the same version on all hosts",
                plain(&host),
                plain(&program),
                self.arrival.program
            )));
        }
        self.watch.at(Stage::Joining { size: self.size });
        let mut pauses = Pauses::default();
        while !greeted.test()? {
            pauses.pause_blocking();
        }
        Ok(sent)
    }

    /// Another rank: sends its identity, and receives from rank 0 and the previous rank. Returns
    /// the pending sends.
    fn answer(&self, mut greeted: Message, previous: Rank) -> Result<Vec<Message>, CommError> {
        let hello = Hello {
            rank: self.me.0,
            host: self.arrival.host.clone(),
            program: self.arrival.program.clone(),
        };
        let mut hello = self.send(Rank(0), HELLO, hello.encode())?;
        let mut answer = Some(self.receive(Some(Rank(0)), ANSWER)?);
        let mut unheard = true;
        let mut pauses = Pauses::default();
        while answer.is_some() || unheard {
            if let Some(mut message) = answer.take() {
                if !message.test()? {
                    answer = Some(message);
                } else if message.into_buffers().first() != Some(&WELCOME) {
                    std::thread::sleep(LAST_WORD);
                    return Err(CommError::Refused);
                }
            }
            unheard = unheard && !greeted.test()?;
            hello.test()?;
            let mut missing = Vec::new();
            missing.extend(answer.is_some().then_some(0));
            missing.extend((unheard && previous != Rank(0)).then_some(previous.0));
            self.watch.at(Stage::Answering {
                me: self.me,
                missing,
            });
            pauses.pause_blocking();
        }
        self.watch.at(Stage::Following);
        Ok(vec![hello])
    }

    fn send(&self, to: Rank, tag: c_int, message: Vec<u8>) -> Result<Message, CommError> {
        Pending::send(self.session, session::world(), (to, tag), message)
    }

    /// Receives from a rank, or from any rank.
    fn receive(&self, from: Option<Rank>, tag: c_int) -> Result<Message, CommError> {
        Pending::receive(self.session, session::world(), (from, tag), vec![0; BYTES])
    }
}

/// A rank's message about itself: a little-endian word, and texts after their lengths. Ranks of
/// other versions read it too: it must stay as it is.
#[derive(Debug, PartialEq)]
struct Hello {
    rank: u32,
    host: String,
    program: String,
}

impl Hello {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = u64::from(self.rank).to_le_bytes().to_vec();
        for text in [start_of(&self.host), start_of(&self.program)] {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes
    }

    fn decode(mut bytes: &[u8]) -> Option<Hello> {
        let word = |bytes: &mut &[u8]| {
            let word = bytes.split_off(..8)?.try_into().ok()?;
            Some(u64::from_le_bytes(word))
        };
        let text = |bytes: &mut &[u8]| {
            let length = usize::try_from(word(bytes)?).ok()?;
            let text = bytes.split_off(..length)?;
            Some(String::from_utf8_lossy(text).into_owned())
        };
        Some(Hello {
            rank: u32::try_from(word(&mut bytes)?).ok()?,
            host: text(&mut bytes)?,
            program: text(&mut bytes)?,
        })
    }
}

/// The start of the text that fits into a message.
fn start_of(text: &str) -> &str {
    &text[..text.floor_char_boundary(NAME_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_arrives_as_it_was_sent_and_fits() {
        let hello = Hello {
            rank: 7,
            host: "b".to_owned(),
            program: "rbench 1".to_owned(),
        };
        let mut bytes = hello.encode();
        let old = b"\x07\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0b\x08\0\0\0\0\0\0\0rbench 1";
        assert_eq!(bytes, old, "other versions read it");
        bytes.resize(BYTES, 0);
        assert_eq!(Hello::decode(&bytes), Some(hello));
        assert_eq!(Hello::decode(&[1, 2, 3]), None);
        let long = Hello {
            rank: u32::MAX,
            host: "\u{e4}".repeat(1000),
            program: "x".repeat(5000),
        };
        assert!(long.encode().len() <= BYTES);
    }
}
