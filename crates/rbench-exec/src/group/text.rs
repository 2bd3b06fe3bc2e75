//! Values in notes, which carry numbers.

use rbench_comm::NOTE_MORE;
use rbench_core::message::{decode, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Most bytes of a text: a note has room for it, and for its length.
const TEXT_MAX: usize = (NOTE_MORE - 2) * 8;

/// The value as words: the length of its message, then that; one that does not fit is left out.
pub(super) fn pack<T: Serialize + ?Sized>(value: &T) -> Vec<u64> {
    let bytes = encode(value);
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    let words = bytes.chunks(8).map(word);
    let words: Vec<u64> = std::iter::once(bytes.len() as u64).chain(words).collect();
    match words.len() <= NOTE_MORE {
        true => words,
        false => Vec::new(),
    }
}

/// The text as words, or as much of it as a note has room for.
pub(super) fn pack_text(text: &str) -> Vec<u64> {
    pack(&text[..text.floor_char_boundary(TEXT_MAX)])
}

/// The value that these words are; `None` where there are none.
pub(super) fn unpack<T: DeserializeOwned>(words: &[u64]) -> Option<T> {
    let (length, words) = words.split_first()?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    decode(bytes.get(..usize::try_from(*length).ok()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_being_numbers() {
        for text in [
            "",
            "a",
            "12345678",
            "one more than that",
            "\u{20ac} and so on",
        ] {
            assert_eq!(unpack::<String>(&pack_text(text)).as_deref(), Some(text));
        }
        assert_eq!(unpack::<String>(&[]), None);
        assert_eq!(unpack::<String>(&[100, 0x61]), None);
        let long = pack_text(&"x".repeat(1 << 20));
        assert_eq!(long.len(), NOTE_MORE);
        assert_eq!(unpack(&long), Some("x".repeat(TEXT_MAX)));
        assert!(pack(&vec![u64::MAX; NOTE_MORE]).is_empty());
    }
}
