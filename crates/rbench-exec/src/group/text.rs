//! Text in notes, which carry numbers.

use rbench_comm::NOTE_MORE;

/// The text as words: its length, then its bytes; what does not fit is left off.
pub(super) fn pack(text: &str) -> Vec<u64> {
    let bytes = text.as_bytes();
    let bytes = &bytes[..bytes.len().min((NOTE_MORE - 1) * 8)];
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    let words = bytes.chunks(8).map(word);
    std::iter::once(bytes.len() as u64).chain(words).collect()
}

/// The text that these words are; `None` where there are none.
pub(super) fn unpack(words: &[u64]) -> Option<String> {
    let (length, words) = words.split_first()?;
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.truncate(usize::try_from(*length).unwrap_or(usize::MAX));
    Some(String::from_utf8_lossy(&bytes).into_owned())
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
            assert_eq!(unpack(&pack(text)).as_deref(), Some(text));
        }
        assert_eq!(unpack(&[]), None);
        assert_eq!(unpack(&[100, 0x61]).as_deref(), Some("a\0\0\0\0\0\0\0"));
        assert_eq!(pack(&"x".repeat(1 << 20)).len(), NOTE_MORE);
    }
}
