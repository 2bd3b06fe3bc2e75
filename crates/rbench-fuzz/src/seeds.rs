//! The initial inputs of every target, and the words that its inputs consist of: readable files of
//! the project (docs/dev/fuzzing.md), not a corpus.

/// Format of a file of seeds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// One seed per line; a blank means an end of line, `#` starts a comment.
    Lines,
    /// A line `@@@ NAME` starts a seed, which ends before the last end of line before the next one.
    Sections,
}

/// The seeds of a file, with names.
pub(crate) fn read(text: &str, form: Form) -> Vec<(String, Vec<u8>)> {
    match form {
        Form::Lines => text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.starts_with('#'))
            .map(|(at, line)| {
                (
                    format!("line{:03}", at + 1),
                    unescape(&line.replace(' ', "\n")),
                )
            })
            .collect(),
        Form::Sections => format!("\n{}", text.strip_suffix('\n').unwrap_or(text))
            .split("\n@@@ ")
            .skip(1)
            .map(|section| {
                let (name, seed) = section.split_once('\n').expect("a line below the name");
                (name.to_owned(), unescape(seed))
            })
            .collect(),
    }
}

/// The words of a dictionary in libFuzzer's format: `"word"`, one per line.
pub(crate) fn words(dictionary: &str) -> Vec<Vec<u8>> {
    dictionary
        .lines()
        .filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'))
        .map(unescape)
        .collect()
}

/// Decodes escapes: `\xHH` is a byte, a backslash before any other character means that character.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        let (byte, used) = match (byte, rest) {
            (b'\\', [b'x', high, low, ..]) => (digit(*high) << 4 | digit(*low), 3),
            (b'\\', [next, ..]) => (*next, 1),
            _ => (byte, 0),
        };
        bytes.push(byte);
        rest = &rest[used..];
    }
    bytes
}

fn digit(character: u8) -> u8 {
    let value = char::from(character).to_digit(16);
    value
        .and_then(|v| u8::try_from(v).ok())
        .expect("two hexadecimal digits after \\x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_can_be_written() {
        assert_eq!(unescape(r"a\\x41\x00\xff\"), b"a\\x41\x00\xff\\");
    }

    #[test]
    fn seeds_are_lines_or_sections() {
        let lines = read("# why\n-n 5\n\\x20\n", Form::Lines);
        assert_eq!(
            lines,
            [
                ("line002".to_owned(), b"-n\n5".to_vec()),
                ("line003".to_owned(), b" ".to_vec()),
            ]
        );
        let sections = read("# why\n@@@ a\nx\n\n@@@ b\n\n@@@ c\ny\n", Form::Sections);
        let seeds: Vec<&[u8]> = sections.iter().map(|(_, seed)| seed.as_slice()).collect();
        assert_eq!(seeds, [b"x\n".as_slice(), b"", b"y"]);
    }
}
