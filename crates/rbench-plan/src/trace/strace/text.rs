//! Parser of strace's lines, without interpretation.

use rbench_core::{Nanos, linux};

use crate::trace::{Outcome, seconds, why};

/// A call with its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// `openat`
    pub name: String,
    /// Its arguments, as written.
    pub args: Vec<String>,
    /// Its result.
    pub result: Outcome,
    /// Its duration.
    pub took: Option<Nanos>,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'l> {
    /// The process; 0 if the line has none.
    pub pid: u64,
    /// The time.
    pub at: Nanos,
    /// True if `at` is a time of day (`-tt`), not since 1970.
    pub of_day: bool,
    /// The content.
    pub what: What<'l>,
}

/// Content of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What<'l> {
    /// A complete call: its text.
    Call(&'l str),
    /// The start of a call.
    Begun(&'l str),
    /// The end of a call: its name, and its text.
    Resumed(&'l str, &'l str),
    /// The end of a process.
    Exited,
    /// The end of the thread with this process's number: the given thread has called `exec`,
    /// and takes over the number.
    Superseded(u64),
    /// A signal.
    Other,
}

/// Parses a line; `None` for a message of strace, or an empty line.
///
/// # Errors
/// Fails if it is not a line of strace.
pub fn line(text: &str) -> Result<Option<Line<'_>>, String> {
    let text = text.trim_end();
    if text.is_empty() || text.starts_with("strace: ") {
        return Ok(None);
    }
    let (pid, rest) = process(text);
    let (stamp, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let of_day = stamp.contains(':');
    let at = match of_day {
        true => time_of_day(stamp),
        false => stamp.contains('.').then(|| seconds(stamp)).flatten(),
    };
    let Some(at) = at else {
        return Err(match of_day {
            true => "its time of day has no fraction of a second: use 'strace -f -y -ttt -T -s 0'"
                .to_owned(),
            false => "the line has no time in seconds: use 'strace -f -y -ttt -T -s 0'".to_owned(),
        });
    };
    let rest = rest.trim_start();
    let superseded = rest.strip_prefix("+++ superseded by execve in pid ");
    let superseded = superseded.and_then(|rest| rest.split(' ').next()?.parse().ok());
    let what = if let Some(by) = superseded {
        What::Superseded(by)
    } else if rest.starts_with("+++ ") {
        What::Exited
    } else if rest.starts_with("--- ") {
        What::Other
    } else if let Some(resumed) = rest.strip_prefix("<... ") {
        let (name, rest) = resumed
            .split_once(" resumed>")
            .ok_or("the end of a call is cut off")?;
        What::Resumed(name, rest)
    } else if let Some(start) = rest.strip_suffix("<unfinished ...>") {
        What::Begun(start)
    } else {
        What::Call(rest)
    };
    Ok(Some(Line {
        pid,
        at,
        of_day,
        what,
    }))
}

/// Reads `15:04:05.000000`.
fn time_of_day(text: &str) -> Option<Nanos> {
    let mut parts = text.splitn(3, ':');
    let mut whole = |below: u64| {
        let digits = parts.next().filter(|digits| digits.len() == 2)?;
        digits.parse().ok().filter(|value: &u64| *value < below)
    };
    let (hours, minutes) = (whole(24)?, whole(60)?);
    let rest = parts.next().filter(|rest| rest.contains('.'))?;
    let within = seconds(rest).filter(|within| within.0 < 61_000_000_000)?;
    Some(Nanos((hours * 60 + minutes) * 60_000_000_000 + within.0))
}

/// The process of a line, and the rest of the line.
fn process(text: &str) -> (u64, &str) {
    let bare = text.strip_prefix("[pid ").unwrap_or(text).trim_start();
    let Some((word, rest)) = bare.split_once([' ', ']']) else {
        return (0, text);
    };
    match word.parse() {
        Ok(pid) => (pid, rest.trim_start_matches([']', ' '])),
        Err(_) => (0, text),
    }
}

/// Parses a call.
///
/// # Errors
/// The error.
pub fn call(text: &str) -> Result<Finished, String> {
    let cut = || "a call is cut off".to_owned();
    let (name, rest) = text.split_once('(').ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        format!("'{shown}' is not a call")
    })?;
    let known = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(known) {
        return Err("not a call".to_owned());
    }
    let (args, rest) = arguments(rest).ok_or_else(cut)?;
    let rest = rest.trim_start().strip_prefix('=').ok_or_else(cut)?.trim();
    let (rest, took) = match rest
        .strip_suffix('>')
        .and_then(|rest| rest.rsplit_once('<'))
    {
        Some((rest, took)) if took.contains('.') => (rest.trim(), seconds(took)),
        _ => (rest, None),
    };
    Ok(Finished {
        name: name.to_owned(),
        args,
        result: returned(rest)?,
        took,
    })
}

/// Arguments up to the closing parenthesis, and the text after it.
fn arguments(text: &str) -> Option<(Vec<String>, &str)> {
    let (mut args, mut depth, mut quoted, mut escaped, mut from) =
        (Vec::new(), 0_u32, false, false, 0);
    // With -y: a path after a descriptor, a number or AT_FDCWD.
    let behind_descriptor = |c: char| c.is_ascii_digit() || c == 'D';
    let mut path = false;
    // A socket's arrow is in brackets: strace writes a > of a name as \76.
    let arrow = |at: usize| {
        let before = &text[..at];
        before.ends_with('-') && before.rfind('[') > before.rfind(']')
    };
    for (at, c) in text.char_indices() {
        match c {
            '>' if path => path = arrow(at),
            '<' if path => path = !text[..at].ends_with('<'),
            _ if path => {}
            '<' if !quoted => path = text[..at].ends_with(behind_descriptor),
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => {
                let last = text[from..at].trim();
                if !(args.is_empty() && last.is_empty()) {
                    args.push(last.to_owned());
                }
                return Some((args, &text[at + 1..]));
            }
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                args.push(text[from..at].trim().to_owned());
                from = at + 1;
            }
            _ => {}
        }
    }
    None
}

fn returned(text: &str) -> Result<Outcome, String> {
    let word = text.split([' ', '<']).next().unwrap_or("");
    if word == "?" || word.is_empty() {
        return match word {
            "?" => Ok(Outcome::Unknown),
            _ => Err("the result of a call is cut off".to_owned()),
        };
    }
    if word == "-1" {
        let name = text.split(' ').nth(1).unwrap_or("");
        return match linux::errno(name) {
            Some(errno) => Ok(Outcome::Failed(errno)),
            None if name.is_empty() => Ok(Outcome::Unknown),
            None => Err(format!("'{name}' is not a Linux error")),
        };
    }
    number(word)
        .map(|value| Outcome::Done(value as u64))
        .ok_or_else(|| format!("'{word}' is not a result of a call"))
}

/// Reads a number of strace: decimal, hexadecimal with 0x, octal with 0.
pub fn number(text: &str) -> Option<i64> {
    let text = text.split(['<', ' ']).next().unwrap_or("");
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = if let Some(hex) = digits.strip_prefix("0x") {
        u64::from_str_radix(hex, 16).ok()? as i64
    } else if digits.len() > 1 && digits.starts_with('0') {
        i64::from_str_radix(digits, 8).ok()?
    } else {
        digits.parse::<u64>().ok()? as i64
    };
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// The value of words joined by `|`: flags of `open`, words of [`WORDS`] or numbers.
pub fn flags(text: &str) -> i32 {
    text.split('|').map(str::trim).fold(0, |all, word| {
        let known = || WORDS.iter().find(|(name, _)| *name == word);
        let value = number(word).map(|value| value as i32);
        let value = value.or_else(|| known().map(|(_, value)| *value));
        all | value.unwrap_or_else(|| linux::open_flag(word))
    })
}

/// Words of other calls' flags, with their values.
const WORDS: [(&str, i32); 13] = [
    ("R_OK", 4),
    ("W_OK", 2),
    ("X_OK", 1),
    ("RENAME_NOREPLACE", 1),
    ("RENAME_EXCHANGE", 2),
    ("RENAME_WHITEOUT", 4),
    ("FALLOC_FL_KEEP_SIZE", 1),
    ("FALLOC_FL_PUNCH_HOLE", 2),
    ("FALLOC_FL_COLLAPSE_RANGE", 8),
    ("FALLOC_FL_ZERO_RANGE", 16),
    ("FALLOC_FL_INSERT_RANGE", 32),
    ("XATTR_CREATE", 1),
    ("XATTR_REPLACE", 2),
];

/// The words of `lseek`, in the order of their values.
pub const WHENCE: [&str; 5] = ["SEEK_SET", "SEEK_CUR", "SEEK_END", "SEEK_DATA", "SEEK_HOLE"];

/// Reads a string in quotes with its escapes; `None` if it is not one, or is cut off.
pub fn string(arg: &str) -> Option<Vec<u8>> {
    let inner = arg.strip_prefix('"')?.strip_suffix('"')?;
    let bytes = inner.as_bytes();
    let (mut unescaped, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        if *byte != b'\\' {
            unescaped.push(*byte);
            continue;
        }
        let escape = *bytes.get(at)?;
        at += 1;
        let digits = |radix: u32, most: usize, from: usize| {
            let digits = bytes[from..].iter().take(most);
            let digits = digits.map_while(|b| char::from(*b).to_digit(radix));
            digits.fold((0, 0), |(value, count), digit| {
                (value * radix + digit, count + 1)
            })
        };
        match escape {
            b'n' => unescaped.push(b'\n'),
            b't' => unescaped.push(b'\t'),
            b'r' => unescaped.push(b'\r'),
            b'v' => unescaped.push(0x0b),
            b'f' => unescaped.push(0x0c),
            b'a' => unescaped.push(0x07),
            b'b' => unescaped.push(0x08),
            b'e' => unescaped.push(0x1b),
            b'x' => {
                let (value, count) = digits(16, 2, at);
                unescaped.push(u8::try_from(value).ok()?);
                at += count;
            }
            b'0'..=b'7' => {
                let (value, count) = digits(8, 3, at - 1);
                unescaped.push(u8::try_from(value).ok()?);
                at += count - 1;
            }
            other => unescaped.push(other),
        }
    }
    Some(unescaped)
}

/// Calls that return a descriptor, but not of a file.
pub(super) const OTHERS: [&str; 26] = [
    "bpf",
    "fanotify_init",
    "fsmount",
    "fsopen",
    "fspick",
    "io_uring_setup",
    "landlock_create_ruleset",
    "memfd_secret",
    "open_by_handle_at",
    "open_tree",
    "socket",
    "accept",
    "accept4",
    "eventfd",
    "eventfd2",
    "epoll_create",
    "epoll_create1",
    "timerfd_create",
    "signalfd",
    "signalfd4",
    "inotify_init",
    "inotify_init1",
    "memfd_create",
    "perf_event_open",
    "pidfd_open",
    "userfaultfd",
];

/// Other calls on descriptors of files, with the reasons why they are left out.
pub(super) const LEFT_OUT: [(&str, &str); 13] = [
    ("flock", why::LOCK),
    ("ioctl", why::OTHER),
    ("fadvise64", why::OTHER),
    ("readahead", why::OTHER),
    ("sync_file_range", why::OTHER),
    ("syncfs", why::OTHER),
    ("copy_file_range", why::OTHER),
    ("sendfile", why::OTHER),
    ("splice", why::OTHER),
    ("vmsplice", why::OTHER),
    ("tee", why::OTHER),
    ("preadv2", why::OTHER),
    ("pwritev2", why::OTHER),
];
