//! Text that came from elsewhere, in a sentence: nothing of it may steer the
//! terminal or break the line.

use std::borrow::Cow;

/// `text` with its control characters written out (`\n`, `\u{1b}`).
pub fn plain(text: &str) -> Cow<'_, str> {
    written_out(text, char::is_control)
}

/// The same for text of several lines, which it keeps.
pub fn plain_lines(text: &str) -> Cow<'_, str> {
    written_out(text, |c| c.is_control() && c != '\n')
}

fn written_out(text: &str, steers: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if steers(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_out_and_nothing_else_changes() {
        let check = |text: &str, expect: &str| assert_eq!(plain(text), expect);
        check("", "");
        check("a 'b' \\ µ", "a 'b' \\ µ");
        check("\x1b[31mred\r\n\0", "\\u{1b}[31mred\\r\\n\\u{0}");
        check("\u{9b}2J\x7f", "\\u{9b}2J\\u{7f}");
        assert_eq!(plain_lines("a\tb\nc\x07\n"), "a\\tb\nc\\u{7}\n");
    }
}
