//! mdtest's command line, read into a Spec.
//!
//! Owns how options are written: letters, bundles, long names, values. Which
//! options there are and what each sets is in [`table`]; which of them go
//! together is for the plan to say.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use rbench_core::plain;
use rbench_plan::spec::{self, Spec, Workload};

use crate::{Communicator, Invocation, MdtestView, Output, Stop, values};
use table::{Opt, Takes};

mod help;
mod near;
mod table;

pub use help::{definitions, help};

/// What the words read so far ask for.
#[derive(Debug, Clone, PartialEq, Default)]
struct Line {
    spec: spec::Mdtest,
    view: MdtestView,
    output: Output,
    limits: spec::LimitOptions,
    leave: spec::Leave,
}

/// The words that are still to be read.
type Words<'a> = std::slice::Iter<'a, OsString>;

/// Reads the words after `rbench mdtest`.
pub fn read(words: &[OsString], env_dir: Option<&OsStr>) -> Result<Invocation, Stop> {
    Ok(line(words)?.invocation(env_dir))
}

/// The communicator that these words ask for.
pub fn communicator(words: &[OsString]) -> Communicator {
    line(words).map_or(Communicator::Auto, |line| line.output.communicator)
}

fn line(words: &[OsString]) -> Result<Line, Stop> {
    let mut line = Line::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_bytes() {
            [b'-', b'-', body @ ..] if !body.is_empty() => line.long(body, &mut words)?,
            [b'-', letters @ ..] if !letters.is_empty() && letters != b"-" => {
                line.bundle(letters, &mut words)?;
            }
            _ => {
                let word = word.display();
                return Err(misuse(format!("unexpected word '{word}' found"), None));
            }
        }
    }
    Ok(line)
}

impl Line {
    /// `--name`, `--name value` or `--name=value`, without the dashes.
    fn long(&mut self, body: &[u8], words: &mut Words) -> Result<(), Stop> {
        let (name, value) = match body.iter().position(|byte| *byte == b'=') {
            Some(at) => (&body[..at], Some(&body[at + 1..])),
            None => (body, None),
        };
        let name = String::from_utf8_lossy(name);
        let typed = format!("--{name}");
        let option = table::long(&name).ok_or_else(|| unknown(&typed, near::long(&name)))?;
        self.apply(option, &typed, value, words)
    }

    /// Letters after one dash: flags, up to one that takes a value.
    fn bundle(&mut self, letters: &[u8], words: &mut Words) -> Result<(), Stop> {
        let mut rest = letters;
        while let [letter, after @ ..] = rest {
            let option = table::letter(*letter).ok_or_else(|| unknown_letter(letters, rest))?;
            let typed = format!("-{}", char::from(*letter));
            rest = after;
            let attached = option.takes.claims(rest).then(|| {
                let value = std::mem::take(&mut rest);
                value.strip_prefix(b"=").unwrap_or(value)
            });
            self.apply(option, &typed, attached, words)?;
        }
        Ok(())
    }

    /// Applies an option with the value that is attached to it or, where it
    /// needs one, with the next word.
    fn apply(
        &mut self,
        option: &Opt,
        typed: &str,
        attached: Option<&[u8]>,
        words: &mut Words,
    ) -> Result<(), Stop> {
        let attached = attached.map(OsStr::from_bytes);
        let (read, value) = match (option.takes, attached) {
            (Takes::Nothing(_) | Takes::Text(_), Some(value)) => {
                let value = value.display();
                return Err(misuse(
                    format!("unexpected value '{value}' for '{typed}': it takes none"),
                    None,
                ));
            }
            (Takes::Nothing(set), None) | (Takes::Digits(set, _), None) => {
                set(self);
                return Ok(());
            }
            (Takes::Text(text), None) => {
                return Err(Stop {
                    text: text(),
                    code: 0,
                });
            }
            (Takes::Digits(_, read) | Takes::Value(_, read), Some(value)) => (read, value),
            (Takes::Value(name, read), None) => (read, separate(typed, name, words)?),
        };
        read(self, value).map_err(|why| {
            let (value, name) = (value.display(), option.takes.value_name());
            misuse(
                format!("invalid value '{value}' for '{typed} <{name}>': {why}"),
                None,
            )
        })
    }

    fn invocation(self, env_dir: Option<&OsStr>) -> Invocation {
        let Line {
            spec: mut mdtest,
            view,
            mut output,
            limits,
            leave,
        } = self;
        if mdtest.dirs.is_empty() {
            mdtest.dirs.extend(values::env_dir(env_dir));
        }
        output.progress = output.progress.unless(output.quiet);
        output.mdtest = Some(view);
        let common = spec::Common {
            seed: mdtest.seed,
            iterations: mdtest.iterations,
            limits,
            leave,
            ..spec::Common::default()
        };
        let workload = Workload::Mdtest(Box::new(mdtest));
        Invocation::Run(Box::new(Spec { common, workload }), output)
    }
}

/// The next word as a value. A word that looks like an option is not one: the
/// value was forgotten. A negative number goes to the reader, which says what
/// is wrong with it.
fn separate<'a>(typed: &str, name: &str, words: &mut Words<'a>) -> Result<&'a OsStr, Stop> {
    let missing = |tip| {
        misuse(
            format!("a value is required for '{typed} <{name}>' but none was supplied"),
            tip,
        )
    };
    let Some(next) = words.as_slice().first() else {
        return Err(missing(None));
    };
    if let [b'-', second, ..] = next.as_bytes()
        && !second.is_ascii_digit()
    {
        let next = next.display();
        return Err(missing(Some(format!(
            "to give '{next}' as the value, write '{typed}={next}'"
        ))));
    }
    words.next();
    Ok(next)
}

fn unknown_letter(letters: &[u8], rest: &[u8]) -> Stop {
    let bundle = String::from_utf8_lossy(letters);
    let letter: String = String::from_utf8_lossy(rest).chars().take(1).collect();
    let similar = near::long(&bundle).or_else(|| near::letter(rest[0]));
    match table::refusal(&format!("-{letter}")) {
        None if letters.len() > letter.len() => misuse(
            format!("unexpected option '-{letter}' found in '-{bundle}'"),
            similar.map(tip),
        ),
        _ => unknown(&format!("-{letter}"), similar),
    }
}

fn unknown(typed: &str, similar: Option<String>) -> Stop {
    match table::refusal(typed) {
        Some(why) => misuse(format!("option '{typed}' is not supported: {why}"), None),
        None => misuse(
            format!("unexpected option '{typed}' found"),
            similar.map(tip),
        ),
    }
}

fn tip(similar: String) -> String {
    format!("a similar option exists: '{similar}'")
}

/// An error in the form of the native commands.
fn misuse(what: String, tip: Option<String>) -> Stop {
    let what = plain(&what);
    let tip = tip.map_or(String::new(), |tip| format!("  tip: {}\n\n", plain(&tip)));
    Stop {
        text: format!("error: {what}\n\n{tip}For more information, try 'rbench mdtest --help'.\n"),
        code: 2,
    }
}

#[cfg(test)]
mod tests;
