//! Notes of a group: what ranks tell each other without waiting.

use rbench_comm::NOTE_BYTES;
use rbench_core::Nanos;
use rbench_core::message::encode;
use serde::{Deserialize, Serialize};

use super::StopReason;
use crate::intervals::Letter;
use crate::mounts::DeadMount;

/// Most bytes of a text: a note has room for it, and for the rest of the word.
const TEXT_MAX: usize = NOTE_BYTES - 64;

/// A note of a rank to another.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Word {
    /// Asks to stop; with the signal, its sender and rank if it was one.
    Stop(StopReason, Option<String>),
    /// "I was asked to stop and am still working": sent while a rank ends its own work, such as a
    /// long fsync or the removal of a large tree.
    Busy,
    /// Heartbeat: sent once a second while phases run.
    Alive,
    /// "This job has ended, and the jobs that end with it."
    End(u64),
    /// News of the phase with this number, which may be over.
    News(u64, News),
    /// CPU time that this rank has used, and the client of its host, for observers.
    Used { tool: Nanos, client: Option<Nanos> },
    /// "This is the first of my operations that failed."
    Failed(String),
    /// "My mount no longer answers."
    DeadMount(DeadMount),
    /// "All my operations fail, and my mount answers": one of them.
    AllFail(String),
}

/// News of a phase.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum News {
    /// Work done in an interval, or a part of it.
    Interval(Letter),
    /// "I have sent all that I know of this phase's intervals."
    IntervalsEnd,
    /// "I have sent all work done before this interval."
    Passed(u64),
    /// End of the phase, as time since the common start.
    PhaseEnd(Nanos),
    /// Items, failed operations and bytes of the phase, and ns since its start; with the failed
    /// operations of the whole run.
    Progress { counts: [u64; 4], failed: u64 },
}

/// The content of a note: the word, marked with the run. `None` if it is too long.
pub(super) fn content(run: u64, word: &Word) -> Option<Vec<u8>> {
    let content = encode(&(run, word));
    (content.len() <= NOTE_BYTES).then_some(content)
}

/// As much of the text as a note has room for.
pub(super) fn fitting(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use rbench_core::message::decode;

    use super::*;

    #[test]
    fn a_text_that_is_too_long_for_a_note_is_cut() {
        for text in ["", "one more than that", "\u{20ac} and so on"] {
            assert_eq!(fitting(text), text);
        }
        let long = fitting(&"x".repeat(1 << 20));
        assert_eq!(long, "x".repeat(TEXT_MAX));
        assert_eq!(fitting(&"\u{20ac}".repeat(1 << 20)).len(), TEXT_MAX / 3 * 3);
        let stop = Word::Stop(StopReason::Signal(15), Some(long.clone()));
        let note = content(u64::MAX, &stop).expect("it fits");
        let (run, word) = decode::<(u64, Word)>(&note).expect("one of ours");
        let Word::Stop(StopReason::Signal(15), Some(text)) = word else {
            panic!("{word:?}");
        };
        assert_eq!((run, text), (u64::MAX, long));
    }

    #[test]
    fn a_word_that_is_too_long_for_a_note_makes_none() {
        let failed = Word::Failed("x".repeat(NOTE_BYTES));
        assert_eq!(content(1, &failed), None);
    }
}
