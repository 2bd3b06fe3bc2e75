//! Text for sentences: foreign text is escaped so that it cannot steer the terminal or
//! break the line, and numbers of ranks are combined.

use std::borrow::Cow;

/// Escapes the control characters of `text` (`\n`, `\u{1b}`).
pub fn plain(text: &str) -> Cow<'_, str> {
    written_out(text, char::is_control)
}

/// Like [`plain`], but keeps line ends.
pub fn plain_lines(text: &str) -> Cow<'_, str> {
    written_out(text, |c| c.is_control() && c != '\n')
}

/// Like [`plain`], for a cell of a table that a spreadsheet may open. Text that looks like
/// a formula gets an apostrophe in front, which spreadsheets do not show. Numbers stay
/// numbers.
pub fn cell(text: &str) -> Cow<'_, str> {
    let formula = text.starts_with(['=', '+', '-', '@']) && text.parse::<f64>().is_err();
    match formula {
        true => Cow::Owned(format!("'{}", plain(text))),
        false => plain(text),
    }
}

/// Text for a terminal: escapes all control characters but line ends, tabs and colours (`ESC [ … m`).
pub fn for_terminal(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = rest.strip_prefix("\u{1b}[").and_then(|after| {
            let end = after.find(|c: char| !c.is_ascii_digit() && c != ';')?;
            after[end..].starts_with('m').then_some(2 + end + 1)
        });
        let length = colour.unwrap_or(c.len_utf8());
        match colour {
            Some(_) => out.push_str(&rest[..length]),
            None if c.is_control() && c != '\n' && c != '\t' => out.extend(c.escape_default()),
            None => out.push(c),
        }
        rest = &rest[length..];
    }
    Cow::Owned(out)
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

/// A word of a command line, quoted for a shell.
pub fn shell_word(word: &str) -> String {
    let bare = |c: char| c.is_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(bare) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Ascending numbers with runs combined: `0-3,8`.
pub fn ranges(numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for n in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*n) => *last = *n,
            _ => runs.push((*n, *n)),
        }
    }
    let texts: Vec<String> = runs
        .iter()
        .map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        })
        .collect();
    texts.join(",")
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

    #[test]
    fn a_cell_is_no_formula_and_numbers_stay() {
        for (text, expect) in [
            ("=HYPERLINK(\"http://x\")", "'=HYPERLINK(\"http://x\")"),
            ("@SUM(1)", "'@SUM(1)"),
            ("-cmd|x", "'-cmd|x"),
            ("+1+2", "'+1+2"),
            ("-1.5e3", "-1.5e3"),
            ("+7", "+7"),
            ("file-create", "file-create"),
            ("", ""),
        ] {
            assert_eq!(cell(text), expect);
        }
    }

    #[test]
    fn colours_pass_to_a_terminal_and_nothing_else_that_steers_it() {
        let colours = "a\u{1b}[1;31mred\u{1b}[0m\tb\n";
        assert_eq!(for_terminal(colours), colours);
        let hostile = "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m\r\u{1b}[";
        let shown = "\\u{1b}]0;title\\u{7}\\u{1b}[2J\\u{9b}31m\\r\\u{1b}[";
        assert_eq!(for_terminal(hostile), shown);
    }

    #[test]
    fn runs_of_ranks_are_drawn_together() {
        let check = |list: &[u32], expect: &str| assert_eq!(ranges(list), expect);
        check(&[], "");
        check(&[5], "5");
        check(&[0, 1, 2, 3], "0-3");
        check(&[0, 1, 4, 6, 7], "0-1,4,6-7");
    }

    #[test]
    fn command_words_are_quoted_where_a_shell_needs_it() {
        let check = |word: &str, expect: &str| assert_eq!(shell_word(word), expect);
        check("--dir=/mnt/jfs", "--dir=/mnt/jfs");
        check("two words", "'two words'");
        check("", "''");
        check("it's", r"'it'\''s'");
    }
}
