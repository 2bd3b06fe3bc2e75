//! Lists of steps as they are written: `create, append 16k, fsync, close, 5x (open, read
//! whole, close), delete, append 1k..16k@log`.

use rbench_core::near::nearest;
use rbench_core::{Bytes, Nanos, OpKind, OpenFlags};

use super::{CALL_MAX, CHUNK, Need, Place, Verb};

/// A step as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// What it does; opens have their flags when the whole list is known.
    pub verb: Verb,
    /// The set that it names.
    pub set: Option<String>,
    /// On the file that was used last.
    pub last: bool,
}

/// Most steps of a list.
const STEPS_MAX: usize = 10_000;
/// Bytes of an attribute where nothing is said.
const ATTRIBUTE: u64 = 64;
/// The longest attribute.
const ATTRIBUTE_MAX: u64 = 4096;

const WORDS: [&str; 24] = [
    "create",
    "open",
    "close",
    "read",
    "write",
    "append",
    "truncate",
    "fsync",
    "fdatasync",
    "fstat",
    "setxattr",
    "getxattr",
    "stat",
    "access",
    "chmod",
    "utimes",
    "delete",
    "rename",
    "replace",
    "mkdir",
    "rmdir",
    "symlink",
    "readlink",
    "list",
];

/// Splits at commas that are in no parentheses.
fn parts(text: &str) -> Result<Vec<&str>, String> {
    let (mut all, mut depth, mut from) = (Vec::new(), 0_u32, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => {
                depth = depth
                    .checked_sub(1)
                    .ok_or("there is a ')' without its '('")?;
            }
            ',' if depth == 0 => {
                all.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("there is a '(' without its ')'".to_owned());
    }
    all.push(&text[from..]);
    Ok(all)
}

/// Reads a list.
///
/// # Errors
/// What is wrong with it, as a sentence without a subject's end.
pub fn read(text: &str) -> Result<Vec<Written>, String> {
    let mut steps = Vec::new();
    for part in parts(text)? {
        let part = part.trim();
        match part.split_once('(') {
            Some((times, inner)) => {
                let inner = inner
                    .strip_suffix(')')
                    .ok_or_else(|| format!("'{part}' does not end with its ')'"))?;
                let times = times
                    .trim()
                    .strip_suffix('x')
                    .and_then(|times| times.trim().parse::<usize>().ok())
                    .filter(|times| *times > 0)
                    .ok_or_else(|| format!("'{part}' is not of the form 5x (open, close)"))?;
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
            return Err(format!("it has more than {STEPS_MAX} steps"));
        }
    }
    Ok(steps)
}

/// Reads a step.
///
/// # Errors
/// As [`read`].
pub fn step(text: &str) -> Result<Written, String> {
    let (words, set) = match text.split_once('@') {
        Some((words, set)) if set.trim().is_empty() || set.contains(char::is_whitespace) => {
            return Err(format!("'{text}' names no set behind its @: {words}@NAME"));
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
    let verb = verb_of(verb, given).map_err(|wrong| match wrong {
        Wrong::Unknown => {
            let near = nearest(verb, WORDS.into_iter().chain(["think"]));
            let near = near.map_or_else(String::new, |near| format!(" (nearest: {near})"));
            format!(
                "there is no step '{verb}'{near}, only {}, think",
                WORDS.join(", ")
            )
        }
        Wrong::Given(form) => format!("'{}' is not of the form {form}", text.trim()),
    })?;
    let may_be_last = matches!(verb.need(), Need::There | Need::OwnThere | Need::Move);
    if last && !may_be_last {
        return Err(format!("'{}' chooses no file, last or other", text.trim()));
    }
    // It is always the file that was used last.
    let last = last || verb == Verb::Replace;
    let set = set.or_else(|| implied(words[0]).map(str::to_owned));
    Ok(Written { verb, set, last })
}

/// The set of steps that are nothing for files.
fn implied(word: &str) -> Option<&'static str> {
    match word {
        "mkdir" | "rmdir" => Some("dirs"),
        "symlink" | "readlink" => Some("links"),
        _ => None,
    }
}

/// What is wrong with a step.
enum Wrong {
    Unknown,
    Given(&'static str),
}

/// A size of one call, from 1 on.
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

fn verb_of(verb: &str, given: &[&str]) -> Result<Verb, Wrong> {
    let none = OpenFlags::default();
    let synced = OpenFlags {
        data_synced: true,
        ..none
    };
    let found = match (verb, given) {
        ("create", []) => Some(Verb::Create(none)),
        ("create", ["dsync"]) => Some(Verb::Create(synced)),
        ("create", _) => return Err(Wrong::Given("create [dsync]")),
        ("open", []) => Some(Verb::Open(none)),
        ("open", ["dsync"]) => Some(Verb::Open(synced)),
        ("open", _) => return Err(Wrong::Given("open [dsync] [last]")),
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
        ("append", _) => None,
        ("truncate", [length]) => {
            let length: Option<Bytes> = length.parse().ok();
            length.map(|length| Verb::Truncate(length.0))
        }
        ("truncate", _) => None,
        ("setxattr", []) => Some(Verb::Setxattr(ATTRIBUTE)),
        ("setxattr", [length]) => size(length)
            .filter(|length| *length <= ATTRIBUTE_MAX)
            .map(Verb::Setxattr),
        ("setxattr", _) => None,
        ("think", [time]) => {
            let time: Option<Nanos> = time.parse().ok();
            time.map(Verb::Think)
        }
        ("think", _) => None,
        (_, given) => {
            let plain = match verb {
                "close" => Verb::Close,
                "fsync" => Verb::Fsync,
                "fdatasync" => Verb::Fdatasync,
                "fstat" => Verb::Fstat,
                "getxattr" => Verb::Getxattr,
                "stat" => Verb::Stat,
                "access" => Verb::Access,
                "chmod" => Verb::Chmod,
                "utimes" => Verb::Utimes,
                "delete" | "unlink" | "rmdir" => Verb::Delete,
                "rename" => Verb::Rename,
                "replace" => Verb::Replace,
                "mkdir" => Verb::Mkdir,
                "symlink" => Verb::Symlink,
                "readlink" => Verb::Readlink,
                "list" | "readdir" => Verb::List,
                _ => return Err(Wrong::Unknown),
            };
            return match given {
                [] => Ok(plain),
                _ => Err(Wrong::Given("VERB [last] [@SET]")),
            };
        }
    };
    found.ok_or(Wrong::Given(match verb {
        "read" => "read SIZE [random] or read whole [SIZE]",
        "write" => "write SIZE [random] or write whole [SIZE]",
        "append" => "append SIZE or append LEAST..MOST",
        "truncate" => "truncate SIZE",
        "setxattr" => "setxattr [SIZE], up to 4k",
        _ => "think TIME",
    }))
}

/// The row of a step in a list: kind, name and label.
pub fn row(verb: Verb, directories: bool) -> Option<(OpKind, &'static str, &'static str)> {
    Some(match verb {
        Verb::Create(_) => (OpKind::Create, "create", "Create"),
        Verb::Open(_) => (OpKind::Open, "open", "Open"),
        Verb::Close => (OpKind::Close, "close", "Close"),
        Verb::ReadWhole(_) | Verb::Read(..) => (OpKind::Read, "read", "Read"),
        Verb::WriteWhole(_) | Verb::Write(..) => (OpKind::Write, "write", "Write"),
        Verb::Append(..) => (OpKind::Append, "append", "Append"),
        Verb::Truncate(_) => (OpKind::Truncate, "truncate", "Truncate"),
        Verb::Fsync => (OpKind::Fsync, "fsync", "Fsync"),
        Verb::Fdatasync => (OpKind::Fdatasync, "fdatasync", "Fdatasync"),
        Verb::Fstat => (OpKind::Getattr, "fstat", "Fstat"),
        Verb::Setxattr(_) => (OpKind::Setxattr, "setxattr", "Setxattr"),
        Verb::Getxattr => (OpKind::Getxattr, "getxattr", "Getxattr"),
        Verb::Stat => (OpKind::Stat, "stat", "Stat"),
        Verb::Access => (OpKind::Access, "access", "Access"),
        Verb::Chmod => (OpKind::Chmod, "chmod", "Chmod"),
        Verb::Utimes => (OpKind::Utimes, "utimes", "Utimes"),
        Verb::Delete if directories => (OpKind::Rmdir, "rmdir", "Rmdir"),
        Verb::Delete => (OpKind::Unlink, "delete", "Delete"),
        Verb::Rename => (OpKind::Rename, "rename", "Rename"),
        Verb::Replace => (OpKind::Rename, "replace", "Replace"),
        Verb::Mkdir => (OpKind::Mkdir, "mkdir", "Mkdir"),
        Verb::Symlink => (OpKind::Symlink, "symlink", "Symlink"),
        Verb::Readlink => (OpKind::Readlink, "readlink", "Readlink"),
        Verb::List => (OpKind::List, "list", "List"),
        Verb::Think(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verbs(text: &str) -> Vec<Verb> {
        let steps = read(text).expect(text);
        steps.into_iter().map(|step| step.verb).collect()
    }

    #[test]
    fn a_list_has_steps_that_are_repeated_and_name_sets() {
        let none = OpenFlags::default();
        assert_eq!(
            verbs("create, append 1k..16k, 2x (open, read whole, close), think 5ms"),
            [
                Verb::Create(none),
                Verb::Append(1024, 16384),
                Verb::Open(none),
                Verb::ReadWhole(CHUNK),
                Verb::Close,
                Verb::Open(none),
                Verb::ReadWhole(CHUNK),
                Verb::Close,
                Verb::Think(Nanos(5_000_000)),
            ]
        );
        assert_eq!(
            verbs("read 2k random, write 4k, write whole 64k, read whole 256k"),
            [
                Verb::Read(2048, Place::Random),
                Verb::Write(4096, Place::Next),
                Verb::WriteWhole(65536),
                Verb::ReadWhole(1 << 18),
            ]
        );
        let steps =
            read("append 16k@log, stat last, open dsync last@log, replace").expect("a list");
        let of = |n: usize| (steps[n].set.as_deref(), steps[n].last);
        assert_eq!(
            [of(0), of(1), of(2), of(3)],
            [
                (Some("log"), false),
                (None, true),
                (Some("log"), true),
                (None, true)
            ]
        );
        assert_eq!(verbs("3x (2x (stat), list)").len(), 9);
    }

    #[test]
    fn what_is_wrong_with_a_list_is_named() {
        let check = |text: &str, part: &str| {
            let error = read(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        };
        check("opn, close", "nearest: open");
        check("open,, close", "empty");
        check("", "empty");
        check("read", "read SIZE");
        check("read 4k backwards", "read SIZE");
        check("read 0", "read SIZE");
        check("append 16k..1k", "LEAST..MOST");
        check("append", "append SIZE");
        check("stat 5", "[last]");
        check("create last", "chooses no file");
        check("fsync last", "chooses no file");
        check("stat@", "names no set");
        check("0x (stat)", "5x (open, close)");
        check("(stat)", "5x (open, close)");
        check("2x (stat", "without its ')'");
        check("stat)", "without its '('");
        check("2x (stat) open", "does not end");
        check("200x (200x (stat))", "more than 10000 steps");
        check("think", "think TIME");
        check("setxattr 5k", "up to 4k");
    }
}
