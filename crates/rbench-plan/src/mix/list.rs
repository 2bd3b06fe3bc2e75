//! Parser of lists of steps: `create, append 16k, fsync, close, 5x (open, read whole,
//! close), delete, append 1k..16k@log`.

use rbench_core::near::nearest;
use rbench_core::operations::{Takes, WORDS};
use rbench_core::{Bytes, Nanos, OpenFlags, linux};

use super::{CALL_MAX, CHUNK, Need, Place, Verb, Word};

/// A step as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its operation; opens get their flags when the whole list is known.
    pub verb: Verb,
    /// The named set.
    pub set: Option<String>,
    /// True if it uses the last used file.
    pub last: bool,
}

/// Most steps of a list.
const STEPS_MAX: usize = 10_000;
/// Splits at commas outside of parentheses.
fn parts(text: &str) -> Result<Vec<&str>, String> {
    let (mut all, mut depth, mut from) = (Vec::new(), 0_u32, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => {
                depth = depth.checked_sub(1).ok_or("a ')' has no matching '('")?;
            }
            ',' if depth == 0 => {
                all.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("a '(' has no matching ')'".to_owned());
    }
    all.push(&text[from..]);
    Ok(all)
}

/// Reads a list.
///
/// # Errors
/// The error as a sentence without a subject's end.
pub fn read(text: &str) -> Result<Vec<Written>, String> {
    let mut steps = Vec::new();
    for part in parts(text)? {
        let part = part.trim();
        match part.split_once('(') {
            Some((times, inner)) => {
                let inner = inner
                    .strip_suffix(')')
                    .ok_or_else(|| format!("'{part}' has text after its ')'"))?;
                let times = times
                    .trim()
                    .strip_suffix('x')
                    .and_then(|times| times.trim().parse::<usize>().ok())
                    .filter(|times| *times > 0)
                    .ok_or_else(|| {
                        format!("'{part}' is not a repetition (expected e.g. 5x (open, close))")
                    })?;
                let inner = read(inner)?;
                if times.saturating_mul(inner.len()) > STEPS_MAX {
                    return Err(format!("'{part}' has more than {STEPS_MAX} steps"));
                }
                for _ in 0..times {
                    steps.extend_from_slice(&inner);
                }
            }
            None => steps.push(step(part)?),
        }
        if steps.len() > STEPS_MAX {
            return Err(format!("the list has more than {STEPS_MAX} steps"));
        }
    }
    Ok(steps)
}

/// Reads a step.
///
/// # Errors
/// Like [`read`].
pub fn step(text: &str) -> Result<Written, String> {
    let (words, set) = match text.split_once('@') {
        Some((words, set)) if set.trim().is_empty() || set.contains(char::is_whitespace) => {
            return Err(format!(
                "'{text}' names no set after its @ (expected {words}@NAME)"
            ));
        }
        Some((words, set)) => (words, Some(set.to_owned())),
        None => (text, None),
    };
    let mut words: Vec<&str> = words.split_whitespace().collect();
    let last = words.len() > 1 && words.last() == Some(&"last");
    if last {
        words.pop();
    }
    let Some((verb, given)) = words.split_first() else {
        return Err("a step is empty".to_owned());
    };
    if *verb == "think" {
        let time: Option<Nanos> = match given {
            [time] => time.parse().ok(),
            _ => None,
        };
        let verb = Verb::Think(time.ok_or_else(|| ill_formed(text, "think TIME"))?);
        return match last {
            true => Err(names_no_file(text)),
            false => Ok(Written { verb, set, last }),
        };
    }
    let mut all = WORDS.iter();
    let word = all.find(|word| word.name == *verb || word.aliases.contains(verb));
    let Some(word) = word else {
        let names = || WORDS.iter().map(|word| word.name).chain(["think"]);
        let near = nearest(verb, names());
        let near = near.map_or_else(String::new, |near| format!(" (nearest: {near})"));
        let all: Vec<&str> = names().collect();
        return Err(format!(
            "unknown step '{verb}'{near} (expected one of {})",
            all.join(", ")
        ));
    };
    let verb = verb_of(word, given).ok_or_else(|| ill_formed(text, word.form))?;
    let may_be_last = matches!(
        verb.need(),
        Need::There | Need::OwnThere | Need::Move | Need::Copy
    );
    if last && !may_be_last {
        return Err(names_no_file(text));
    }
    // It always uses the last used file.
    let last = last || verb.need() == Need::Over;
    let set = set.or_else(|| word.set.map(str::to_owned));
    Ok(Written { verb, set, last })
}

fn names_no_file(text: &str) -> String {
    format!(
        "'{}' does not choose a file, so it cannot have 'last'",
        text.trim()
    )
}

fn ill_formed(text: &str, form: &str) -> String {
    format!("'{}' is not a valid step (expected {form})", text.trim())
}

/// Size of one call, at least 1.
fn size(text: &str) -> Option<u64> {
    let Bytes(size) = text.parse().ok()?;
    (1..=CALL_MAX).contains(&size).then_some(size)
}

fn place(words: &[&str]) -> Option<(u64, Place)> {
    match words {
        [length] => Some((size(length)?, Place::Next)),
        [length, "random"] => Some((size(length)?, Place::Random)),
        _ => None,
    }
}

/// The step of a word with its arguments; `None` if they do not have the word's form.
fn verb_of(word: &'static Word, given: &[&str]) -> Option<Verb> {
    let none = OpenFlags::NONE;
    let synced = none.with(linux::DSYNC);
    match (word.name, given) {
        ("create", []) => Some(Verb::Create(none)),
        ("create", ["dsync"]) => Some(Verb::Create(synced)),
        ("open", []) => Some(Verb::Open(none)),
        ("open", ["dsync"]) => Some(Verb::Open(synced)),
        ("close", []) => Some(Verb::Close),
        ("read", ["whole"]) => Some(Verb::ReadWhole(CHUNK)),
        ("read", ["whole", chunk]) => size(chunk).map(Verb::ReadWhole),
        ("read", words) => place(words).map(|(bytes, place)| Verb::Read(bytes, place)),
        ("write", ["whole"]) => Some(Verb::WriteWhole(CHUNK)),
        ("write", ["whole", chunk]) => size(chunk).map(Verb::WriteWhole),
        ("write", words) => place(words).map(|(bytes, place)| Verb::Write(bytes, place)),
        ("append", [sizes]) => match sizes.split_once("..") {
            Some((least, most)) => size(least)
                .zip(size(most))
                .filter(|(least, most)| least <= most)
                .map(|(least, most)| Verb::Append(least, most)),
            None => size(sizes).map(|size| Verb::Append(size, size)),
        },
        ("delete" | "rmdir", []) => Some(Verb::Delete),
        ("create" | "open" | "close" | "append" | "delete" | "rmdir", _) => None,
        _ => plain(word, given).map(|size| Verb::Plain(word, size)),
    }
}

/// The size that a word takes; 0 if it takes none.
fn plain(word: &Word, given: &[&str]) -> Option<u64> {
    match (word.takes, given) {
        (Takes::Nothing, []) => Some(0),
        (Takes::Data(usual, _), []) => Some(usual),
        (Takes::Data(_, most), [length]) => size(length).filter(|length| *length <= most),
        (Takes::Length(least), [length]) => {
            let Bytes(length) = length.parse().ok()?;
            Some(length).filter(|length| *length >= least)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_error;

    fn verbs(text: &str) -> Vec<Verb> {
        let steps = read(text).expect(text);
        steps.into_iter().map(|step| step.verb).collect()
    }

    #[test]
    fn a_list_has_steps_that_are_repeated_and_name_sets() {
        let none = OpenFlags::NONE;
        let check = |text: &str, expect: &[Verb]| assert_eq!(verbs(text), expect);
        let twice = [Verb::Open(none), Verb::ReadWhole(CHUNK), Verb::Close].repeat(2);
        let first = [Verb::Create(none), Verb::Append(1024, 16384)];
        let all = [&first[..], &twice, &[Verb::Think(Nanos(5_000_000))]].concat();
        each! { check:
            "create, append 1k..16k, 2x (open, read whole, close), think 5ms" => &all;
            "read 2k random, write 4k" => &[Verb::Read(2048, Place::Random), Verb::Write(4096, Place::Next)];
            "write whole 64k, read whole 256k" => &[Verb::WriteWhole(65536), Verb::ReadWhole(1 << 18)];
        }
        let text = "append 16k@log, stat last, open dsync last@log, replace";
        let steps = read(text).expect("a list");
        let of: Vec<_> = steps
            .iter()
            .map(|step| (step.set.as_deref(), step.last))
            .collect();
        let log = Some("log");
        assert_eq!(of, [(log, false), (None, true), (log, true), (None, true)]);
        assert_eq!(verbs("3x (2x (stat), list)").len(), 9);
    }

    #[test]
    fn what_is_wrong_with_a_list_is_named() {
        let check = |text: &str, part: &str| check_error(read(text), part);
        check("opn, close", "nearest: open");
        check("open,, close", "empty");
        check("", "empty");
        check("read", "read SIZE");
        check("read 4k backwards", "read SIZE");
        check("read 0", "read SIZE");
        check("append 16k..1k", "LEAST..MOST");
        check("append", "append SIZE");
        check("stat 5", "[last]");
        check("create last", "does not choose a file");
        check("fsync last", "does not choose a file");
        check("stat@", "names no set");
        check("0x (stat)", "5x (open, close)");
        check("(stat)", "5x (open, close)");
        check("2x (stat", "no matching ')'");
        check("stat)", "no matching '('");
        check("2x (stat) open", "text after");
        check("200x (200x (stat))", "more than 10000 steps");
        check("think", "think TIME");
        check("setxattr 5k", "up to 4k");
    }
}
