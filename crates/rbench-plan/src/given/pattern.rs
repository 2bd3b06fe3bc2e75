//! Patterns of data as fio writes them: hexadecimal, decimal, texts, contents of
//! files and the offset, one after the other without separators.
//!
//! Reads `buffer_pattern` and `verify_pattern`. The files are read by the caller,
//! who asks [`quoted_files`] for them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::jobs::VerifyPattern;

/// Bytes of a pattern at most, as in fio from 3.35 on.
const MOST: usize = 128 << 10;

/// Bytes of an offset in a pattern: little-endian.
pub const OFFSET_BYTES: usize = 8;

/// Contents of files by their names in patterns.
pub type Contents = BTreeMap<PathBuf, Vec<u8>>;

/// A part of a pattern.
enum Part<'a> {
    Hex(&'a str),
    Number(u32),
    Text(&'a str),
    File(&'a str),
    Offset,
}

/// The files that a pattern names, as far as it can be read.
pub fn quoted_files(text: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        match part(rest) {
            Ok((Part::File(name), after)) => {
                files.push(path(name));
                rest = after.trim_start();
            }
            Ok((_, after)) => rest = after.trim_start(),
            Err(_) => break,
        }
    }
    files
}

/// Reads a pattern.
///
/// # Errors
/// A clause that says what is wrong with it.
pub fn read(text: &str, files: Option<&Contents>) -> Result<VerifyPattern, String> {
    let mut pattern = VerifyPattern::default();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (part, after) = part(rest)?;
        pattern.take(part, files)?;
        rest = after.trim_start();
    }
    match pattern.bytes.len() {
        0 => Err("a pattern needs at least 1 byte".to_owned()),
        1..=MOST => Ok(pattern),
        _ => Err(format!("the pattern has more than {MOST} bytes")),
    }
}

impl VerifyPattern {
    fn take(&mut self, part: Part<'_>, files: Option<&Contents>) -> Result<(), String> {
        match part {
            Part::Hex(digits) => {
                let odd = digits.len() % 2;
                let whole = if odd == 1 { &digits[..1] } else { "" };
                let rest = (odd..digits.len()).step_by(2).map(|at| &digits[at..at + 2]);
                for pair in Some(whole)
                    .filter(|one| !one.is_empty())
                    .into_iter()
                    .chain(rest)
                {
                    let byte = u8::from_str_radix(pair, 16);
                    self.bytes
                        .push(byte.map_err(|_| format!("'{pair}' is not hexadecimal"))?);
                }
            }
            Part::Number(bits) => {
                let little = bits.to_le_bytes();
                let used = little.iter().rposition(|b| *b != 0).map_or(1, |at| at + 1);
                self.bytes.extend_from_slice(&little[..used]);
            }
            Part::Text(text) => self.bytes.extend_from_slice(text.as_bytes()),
            Part::File(name) => {
                let content = files.and_then(|files| files.get(&path(name)));
                let content = content.ok_or_else(|| format!("the file '{name}' was not read"))?;
                // One byte more than there may be is enough to be refused.
                let room = (MOST + 1).saturating_sub(self.bytes.len());
                self.bytes
                    .extend_from_slice(&content[..content.len().min(room)]);
            }
            Part::Offset => {
                self.offsets.push(self.bytes.len());
                self.bytes.extend_from_slice(&[0; OFFSET_BYTES]);
            }
        }
        Ok(())
    }
}

/// Standard input has no name in a pattern.
fn path(name: &str) -> PathBuf {
    match name {
        "-" => PathBuf::from("./-"),
        name => PathBuf::from(name),
    }
}

/// The first part of a text, and the rest.
fn part(text: &str) -> Result<(Part<'_>, &str), String> {
    let wrong = || {
        format!(
            "'{text}' is not a pattern: 0x and digits, a decimal number, \"text\" or 'file' in quotes"
        )
    };
    if let Some(quoted) = text.strip_prefix('"') {
        let (inside, rest) = quoted.split_once('"').ok_or_else(wrong)?;
        return Ok((Part::Text(inside), rest));
    }
    if let Some(quoted) = text.strip_prefix('\'') {
        return match quoted.split_once('\'') {
            Some((name, rest)) if !name.is_empty() => Ok((Part::File(name), rest)),
            _ => Err(wrong()),
        };
    }
    if let Some(rest) = text.strip_prefix('%') {
        let rest = rest
            .strip_prefix('o')
            .ok_or_else(|| format!("'{text}': only %o (the offset) may follow a %"))?;
        return Ok((Part::Offset, rest));
    }
    if let Some(hex) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        return hexadecimal(hex).ok_or_else(wrong);
    }
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    // `-120x11`: the 0 belongs to the next number.
    let end = match digits.as_bytes().get(end) {
        Some(b'x' | b'X') if end > 1 && digits.as_bytes()[end - 1] == b'0' => end - 1,
        _ => end,
    };
    let (digits, rest) = digits.split_at(end);
    let number = sign * digits.parse::<i64>().map_err(|_| wrong())?;
    let bits = match (i32::try_from(number), u32::try_from(number)) {
        (Ok(number), _) => number.cast_unsigned(),
        (_, Ok(number)) => number,
        _ => return Err(format!("'{text}': a number has at most 32 bits")),
    };
    Ok((Part::Number(bits), rest))
}

/// Digits after `0x`.
fn hexadecimal(text: &str) -> Option<(Part<'_>, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(text.len());
    // `0xff0xee`: the second 0 belongs to the next number.
    let end = match text.as_bytes().get(end) {
        Some(b'x' | b'X') if end > 1 => end - 1,
        _ => end,
    };
    let (digits, rest) = text.split_at(end);
    (end > 0).then_some((Part::Hex(digits), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_error;

    fn files() -> Contents {
        let long = (0..16_384_u32).map(|n| (n % 251) as u8).collect();
        Contents::from([
            ("pat".into(), b"hello".to_vec()),
            ("big".into(), long),
            ("empty".into(), Vec::new()),
            ("./-".into(), b"dash".to_vec()),
        ])
    }

    #[test]
    fn parts_of_every_form_stand_one_after_the_other() {
        // Content of a file that fio 3.33 wrote with verify_pattern=….
        let check = |text: &str, expect: &[u8]| {
            let got = read(text, Some(&files())).map(|pattern| pattern.bytes);
            assert_eq!(got.as_deref(), Ok(expect), "{text}");
        };
        check(
            "0xdeadface\"abcd\"-12'pat'0x23",
            b"\xde\xad\xfa\xceabcd\xf4\xff\xff\xffhello#",
        );
        check("0xabc", &[0x0a, 0xbc]);
        check("010", &[10]);
        check("+5", &[5]);
        check("-300", &[0xd4, 0xfe, 0xff, 0xff]);
        check("12 34", &[12, 34]);
        check("\"a\\nb\"", b"a\\nb");
        check("'-'", b"dash");
        check("\"pa%o\"", b"pa%o");
    }

    #[test]
    fn offsets_have_their_places() {
        let got = read("0x01%o'pat'%o", Some(&files())).expect("it is a pattern");
        assert_eq!(got.offsets, [1, 14]);
        assert_eq!(got.bytes.len(), 22);
        assert_eq!(&got.bytes[9..14], b"hello");
    }

    #[test]
    fn a_file_is_taken_whole_or_refused() {
        let got = read("0x01'big'", Some(&files())).expect("it is a pattern");
        assert_eq!(got.bytes.len(), 1 + 16_384);
        assert_eq!(got.bytes[..3], [1, 0, 1]);
        let larger = Contents::from([("big".into(), vec![7; MOST + 1])]);
        check_error(read("'big'", Some(&larger)), "more than 131072 bytes");
        let most = Contents::from([("big".into(), vec![7; MOST])]);
        assert!(read("'big'", Some(&most)).is_ok());
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in [
            "", "\"\"", "'empty'", "'none'", "'pat", "''", "abc", "0x", "%x", "%", "1,2", "\"a",
            "0x1122zz",
        ] {
            assert!(read(text, Some(&files())).is_err(), "{text}");
        }
        assert!(read("'pat'", None).is_err());
    }

    #[test]
    fn the_files_of_a_pattern_are_named() {
        let named = |text: &str| quoted_files(text);
        assert_eq!(
            named("0x01'a'\"'b'\"5'c'"),
            [PathBuf::from("a"), "c".into()]
        );
        assert_eq!(named("'-'"), [PathBuf::from("./-")]);
        assert!(named("zz'a'").is_empty());
    }
}
