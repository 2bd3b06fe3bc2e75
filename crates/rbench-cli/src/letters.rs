//! Command lines with letters and long names, like those of mdtest and IOR, read by a table of
//! options.
//!
//! Defines how options are written: letters, bundles, long names, values. The table of each command
//! lists its options and what each sets; the plan checks which go together.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use rbench_core::plain;
use rbench_plan::spec;
use rbench_plan::values;

use crate::{Mistake, Output, Start, Stop};

#[macro_use]
mod table;

mod help;
mod near;
mod own;

pub use help::help;
pub use own::Own;
pub use table::{Opt, Table, Takes, text};

/// rbench's own options, which every command with letters has.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shared {
    pub output: Output,
    pub common: spec::Common,
}

impl Shared {
    /// Splits the options into those of the plan and those of the output.
    pub fn split(mut self) -> (spec::Common, Output) {
        self.output.progress = self.output.progress.unless(self.output.quiet);
        (self.common, self.output)
    }
}

/// The options of a command, filled while its words are read.
pub trait Line: Default + 'static {
    /// The options of the command.
    const TABLE: Table<Self>;

    /// Returns the options that every command with letters has.
    fn shared(&mut self) -> &mut Shared;

    /// Returns the switch that prints the native report after the tool's own.
    fn report(&mut self) -> &mut bool;
}

/// The unread words.
type Words<'a> = std::slice::Iter<'a, OsString>;

/// Reads the words of a command line.
///
/// # Errors The text to print: help, or an error message.
pub fn read<L: Line>(words: &[OsString]) -> Result<L, Stop> {
    let mut line = L::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_bytes() {
            [b'-', b'-', body @ ..] if !body.is_empty() => long(&mut line, body, &mut words)?,
            [b'-', letters @ ..] if !letters.is_empty() && letters != b"-" => {
                bundle(&mut line, letters, &mut words)?;
            }
            _ => {
                let word = word.display();
                return Err(misuse::<L>(format!("unexpected word '{word}' found")));
            }
        }
    }
    Ok(line)
}

/// Returns the options of these words on how ranks join.
pub fn start<L: Line>(words: &[OsString]) -> Start {
    read::<L>(words).map_or(Start::default(), |mut line| line.shared().output.start)
}

/// `--name`, `--name value` or `--name=value`, without the dashes.
fn long<L: Line>(line: &mut L, body: &[u8], words: &mut Words) -> Result<(), Stop> {
    let (name, value) = match body.iter().position(|byte| *byte == b'=') {
        Some(at) => (&body[..at], Some(&body[at + 1..])),
        None => (body, None),
    };
    let name = String::from_utf8_lossy(name);
    let typed = format!("--{name}");
    let option = L::TABLE.long(&name);
    let option = option.ok_or_else(|| unknown::<L>(&typed, near::long(&L::TABLE, &name)))?;
    apply(line, option, &typed, value, words)
}

/// Reads letters after one dash: flags, up to one that takes a value.
fn bundle<L: Line>(line: &mut L, letters: &[u8], words: &mut Words) -> Result<(), Stop> {
    let mut rest = letters;
    while let [letter, after @ ..] = rest {
        let option = L::TABLE.letter(*letter);
        let option = option.ok_or_else(|| unknown_letter::<L>(letters, rest))?;
        let typed = format!("-{}", char::from(*letter));
        rest = after;
        let attached = option.takes.claims(rest).then(|| {
            let value = std::mem::take(&mut rest);
            value.strip_prefix(b"=").unwrap_or(value)
        });
        apply(line, option, &typed, attached, words)?;
    }
    Ok(())
}

/// Applies an option with its attached value or, where it needs one, with the next word.
fn apply<L: Line>(
    line: &mut L,
    option: &Opt<L>,
    typed: &str,
    attached: Option<&[u8]>,
    words: &mut Words,
) -> Result<(), Stop> {
    let attached = attached.map(OsStr::from_bytes);
    let (read, value) = match (option.takes, attached) {
        (Takes::Nothing(_) | Takes::Switch(_) | Takes::Count(_) | Takes::Text(_), Some(value)) => {
            let value = value.display();
            return Err(misuse::<L>(format!(
                "unexpected value '{value}' for '{typed}': it takes none"
            )));
        }
        (Takes::Nothing(set), None) | (Takes::Digits(set, _), None) => {
            set(line);
            return Ok(());
        }
        (Takes::Switch(set), None) => {
            set(line, true);
            return Ok(());
        }
        (Takes::Count(number), None) => {
            let number = number(line);
            *number = number.saturating_add(1);
            return Ok(());
        }
        (Takes::Text(text), None) => {
            return Err(Stop::print(text()));
        }
        (Takes::Digits(_, read) | Takes::Value(_, read), Some(value)) => (read, value),
        (Takes::Value(name, read), None) => (read, separate::<L>(typed, name, words)?),
    };
    read(line, value).map_err(|why| {
        let (value, name) = (value.display(), option.takes.value_name());
        misuse::<L>(format!(
            "invalid value '{value}' for '{typed} <{name}>': {why}"
        ))
    })
}

/// Applies `name=value`, a directive of IOR; the name is a long one in any case. A switch takes 1
/// or 0.
///
/// # Errors A clause that describes the error.
pub fn directive<L: Line>(line: &mut L, word: &OsStr) -> Result<(), String> {
    let Some((name, value)) = text(word)?.split_once('=') else {
        return Err("it is not of the form name=value".to_owned());
    };
    let name = name.trim();
    let mut known = L::TABLE.options();
    let option = known.find(|option| option.long.is_some_and(|l| l.eq_ignore_ascii_case(name)));
    let Some(option) = option else {
        return Err(match L::TABLE.refusal(name) {
            Some(why) => format!("'{name}' is not supported: {why}"),
            None => match near::long(&L::TABLE, name) {
                Some(near) => format!(
                    "unknown option '{name}' (nearest: {})",
                    near.trim_matches('-')
                ),
                None => format!("unknown option '{name}'"),
            },
        });
    };
    match (option.takes, value.trim()) {
        (Takes::Value(_, read), value) => read(line, OsStr::new(value)),
        (Takes::Count(number), value) => {
            *number(line) = values::count(value)?;
            Ok(())
        }
        (Takes::Switch(set), "1") => {
            set(line, true);
            Ok(())
        }
        (Takes::Switch(set), "0") => {
            set(line, false);
            Ok(())
        }
        (Takes::Switch(_), _) => Err(format!("{name} must be 1 or 0")),
        (Takes::Nothing(_) | Takes::Digits(..) | Takes::Text(_), _) => {
            Err(format!("'{name}' takes no value"))
        }
    }
}

/// Returns the next word as a value. A word that looks like an option is refused: the value was
/// forgotten. A negative number goes to the reader, which reports its error.
fn separate<'a, L: Line>(
    typed: &str,
    name: &str,
    words: &mut Words<'a>,
) -> Result<&'a OsStr, Stop> {
    let missing = format!("a value is required for '{typed} <{name}>' but none was supplied");
    let Some(next) = words.as_slice().first() else {
        return Err(misuse::<L>(missing));
    };
    if let [b'-', second, ..] = next.as_bytes()
        && !second.is_ascii_digit()
    {
        let next = next.display();
        let tip = format!("to give '{next}' as the value, write '{typed}={next}'");
        return Err(misuse_with_tip::<L>(missing, Some(tip)));
    }
    words.next();
    Ok(next)
}

fn unknown_letter<L: Line>(letters: &[u8], rest: &[u8]) -> Stop {
    let bundle = String::from_utf8_lossy(letters);
    let letter: String = String::from_utf8_lossy(rest).chars().take(1).collect();
    let table = &L::TABLE;
    let similar = near::long(table, &bundle).or_else(|| near::letter(table, rest[0]));
    match table.refusal(&format!("-{letter}")) {
        None if letters.len() > letter.len() => misuse_with_tip::<L>(
            format!("unexpected option '-{letter}' found in '-{bundle}'"),
            similar.map(tip),
        ),
        _ => unknown::<L>(&format!("-{letter}"), similar),
    }
}

fn unknown<L: Line>(typed: &str, similar: Option<String>) -> Stop {
    match L::TABLE.refusal(typed) {
        Some(why) => misuse::<L>(format!("option '{typed}' is not supported: {why}")),
        None => Stop {
            mistake: Some(Mistake::Option {
                typed: typed.to_owned(),
                near: similar.clone(),
            }),
            ..misuse_with_tip::<L>(
                format!("unexpected option '{typed}' found"),
                similar.map(tip),
            )
        },
    }
}

fn tip(similar: String) -> String {
    format!("a similar option exists: '{similar}'")
}

/// Formats an error like the native commands do.
fn misuse<L: Line>(what: String) -> Stop {
    misuse_with_tip::<L>(what, None)
}

fn misuse_with_tip<L: Line>(what: String, tip: Option<String>) -> Stop {
    let what = plain(&what);
    let tip = tip.map_or(String::new(), |tip| format!("  tip: {}\n\n", plain(&tip)));
    let command = L::TABLE.command;
    Stop::misuse(format!(
        "error: {what}\n\n{tip}For more information, try 'rbench {command} --help'.\n"
    ))
}

/// Helpers for the tests of each command with letters.
#[cfg(test)]
pub mod tests {
    use std::fmt::Debug;

    use super::*;
    use crate::tests::words;

    /// An option, and the change that it makes.
    pub type Sample<L> = (&'static str, fn(&mut L));

    /// Checks that these words make this change and no other.
    pub fn check<L: Line + Debug + PartialEq>(text: &str, change: impl FnOnce(&mut L)) {
        let mut expect = L::default();
        change(&mut expect);
        assert_eq!(read(&words(text)), Ok(expect), "{text}");
    }

    pub fn check_all<L: Line + Debug + PartialEq>(samples: &[Sample<L>]) {
        samples
            .iter()
            .for_each(|(text, change)| check(text, change));
    }

    /// The names of an option, with their dashes.
    pub fn names_of<L>(option: &Opt<L>) -> impl Iterator<Item = String> + use<L> {
        let letter = option.letter.map(|letter| format!("-{letter}"));
        let long = option.long.map(|long| format!("--{long}"));
        letter.into_iter().chain(long)
    }
}
