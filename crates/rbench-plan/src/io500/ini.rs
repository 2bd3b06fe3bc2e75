//! Parser of settings files. Anything unknown is an error with its line.

use std::collections::BTreeMap;

use rbench_core::Bytes;
use rbench_core::near::nearest;

use super::keys::{EXTENDED, Key, Takes, keys_of, sections};
use crate::document::DocumentError;

/// The settings, by section and key.
pub(super) type Given = BTreeMap<(&'static str, &'static str), String>;

/// Current section.
enum In {
    /// Before the first section.
    Nothing,
    Section(&'static str),
    /// A section that is ignored.
    Extended,
}

/// Reads the text: sections and keys in any letter case, and `#` and `;` for comments. If
/// a key is set twice, the last one counts.
pub(super) fn read(text: &str) -> Result<Given, DocumentError> {
    let mut given = Given::new();
    let mut at = In::Nothing;
    for (number, line) in (1..).zip(text.lines()) {
        let failed = |message: String| DocumentError {
            line: number,
            message,
        };
        let line = without_comment(line).trim();
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            at = section(name).map_err(failed)?;
            continue;
        }
        let (name, value) = line
            .split_once('=')
            .map(|(name, value)| (name.trim(), value.trim()))
            .ok_or_else(|| {
                failed(format!(
                    "'{line}' is not a section ([NAME]), a setting (KEY = VALUE) or a comment"
                ))
            })?;
        match at {
            In::Nothing => return Err(failed(format!("'{name}' is set outside of a section"))),
            In::Extended => {}
            In::Section(section) => {
                let key = find(section, name).map_err(failed)?;
                if !value.is_empty() {
                    check(key, value)
                        .map_err(|why| failed(format!("[{section}] {}: {why}", key.name)))?;
                    given.insert((section, key.name), value.to_owned());
                }
            }
        }
    }
    Ok(given)
}

/// Removes the comment, which starts at the beginning or after a blank.
fn without_comment(line: &str) -> &str {
    let begins = |(at, byte): (usize, u8)| {
        let alone = at == 0 || line.as_bytes()[at - 1].is_ascii_whitespace();
        (alone && matches!(byte, b'#' | b';')).then_some(at)
    };
    let comment = line.bytes().enumerate().find_map(begins);
    comment.map_or(line, |at| &line[..at])
}

fn section(rest: &str) -> Result<In, String> {
    let Some(name) = rest.strip_suffix(']') else {
        return Err(format!("'[{rest}' has no closing ]"));
    };
    let name = name.trim();
    let known = sections();
    if let Some(known) = known.iter().find(|known| known.eq_ignore_ascii_case(name)) {
        return Ok(In::Section(known));
    }
    // It has no keys.
    let mut passed = EXTENDED.split(' ').chain(["timestamp"]);
    if passed.any(|known| known.eq_ignore_ascii_case(name)) {
        return Ok(In::Extended);
    }
    let near = nearest(name, known.into_iter());
    Err(format!("unknown section [{name}]{}", meant(near)))
}

fn meant(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!(" (nearest: {near})"))
}

fn find(section: &'static str, name: &str) -> Result<&'static Key, String> {
    let keys = keys_of(section);
    let key = keys.iter().find(|key| key.name.eq_ignore_ascii_case(name));
    key.copied().ok_or_else(|| {
        let near = nearest(name, keys.iter().map(|key| key.name));
        format!("unknown key '{name}' in [{section}]{}", meant(near))
    })
}

/// Reads a truth value as IO500 does.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text {
        "1" => Some(true),
        "0" => Some(false),
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Checks the value of a key.
fn check(key: &Key, value: &str) -> Result<(), String> {
    let count = |value: &str| value.parse::<u64>().is_ok_and(|n| n > 0);
    let wrong = |what: &str| Err(format!("'{value}' is not {what}"));
    match key.takes {
        Takes::Switch if truth(value).is_none() => wrong("TRUE or FALSE"),
        Takes::Count | Takes::Seconds if !count(value) => wrong("a whole number of at least 1"),
        Takes::Size if !value.parse::<Bytes>().is_ok_and(|size| size.0 > 0) => {
            wrong("a size such as 2m")
        }
        Takes::Interface if !is_posix(value) => wrong(
            "POSIX, the only interface that rbench supports (expected POSIX or POSIX --posix.odirect)",
        ),
        Takes::Packet => {
            const TYPES: [&str; 5] = ["timestamp", "offset", "incompressible", "random", "unique"];
            match TYPES.contains(&value) {
                true => Ok(()),
                false => wrong(&format!("one of {}", TYPES.join(", "))),
            }
        }
        Takes::DropCommand if !value.contains("/proc/sys/vm/drop_caches") => Err(
            "rbench does not run commands: it writes to /proc/sys/vm/drop_caches itself".to_owned(),
        ),
        Takes::Only(why) if truth(value) != Some(false) && value != key.default => {
            Err(format!("'{value}' is not supported: {why}"))
        }
        _ => Ok(()),
    }
}

fn is_posix(value: &str) -> bool {
    let mut words = value.split_whitespace();
    words
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case("POSIX"))
        && words.all(|word| word == "--posix.odirect")
}
