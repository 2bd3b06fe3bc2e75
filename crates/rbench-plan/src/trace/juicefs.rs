//! JuiceFS's access log (`cat MOUNT/.accesslog`), in its old and new form, as a trace.
//! [`super::events`] interprets its requests.

use std::sync::Arc;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rbench_core::request::{Changes, Entry, Event, Place, What};
use rbench_core::{Nanos, linux};

use super::events::Events;
use super::order::Order;
use super::{Kind, Out, Reader, Reading, why};

/// True if it looks like a line of such a log.
pub fn is_line(text: &str) -> bool {
    split(text).is_ok()
}

/// Reader of such a log.
pub struct Juicefs {
    events: Events,
    order: Order,
}

impl Juicefs {
    /// Creates a reader before its first line.
    pub fn new(reading: &Reading) -> Juicefs {
        Juicefs {
            events: Events::new(&reading.names),
            order: Order::default(),
        }
    }

    fn hand_over(&mut self, found: Out, ended: bool, out: &mut Out) {
        out.left_out.merge(&found.left_out);
        out.gaps += found.gaps;
        for op in found.ops {
            self.order.push(op);
        }
        self.order.hand_over(ended, out);
    }
}

impl Reader for Juicefs {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Out) -> Result<(), String> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        // A second without requests.
        if text.is_empty() || text == "#" {
            return Ok(());
        }
        let event = event(text, number)?;
        let mut parsed = Out::default();
        self.events.take(event, &mut parsed)?;
        self.hand_over(parsed, false, out);
        Ok(())
    }

    fn end(&mut self, out: &mut Out) -> Result<(), String> {
        let mut parsed = Out::default();
        self.events.end(&mut parsed)?;
        self.hand_over(parsed, true, out);
        Ok(())
    }
}

/// Parts of a line.
struct Parts<'l> {
    end: Nanos,
    pid: u64,
    method: &'l str,
    args: &'l str,
    /// The text after the arguments, without the duration.
    rest: &'l str,
    took: Nanos,
}

fn split(text: &str) -> Result<Parts<'_>, String> {
    let wrong = || "not a line of JuiceFS's access log".to_owned();
    let (stamp, rest) = text.split_once(" [").ok_or_else(wrong)?;
    let end = stamped(stamp).ok_or_else(|| format!("'{stamp}' is not a time"))?;
    let (who, rest) = rest.split_once("] ").ok_or_else(wrong)?;
    let pid = who.split(',').find_map(|part| part.strip_prefix("pid:"));
    let pid = pid.and_then(|pid| pid.parse().ok()).ok_or_else(wrong)?;
    let cut = || "the line is cut off".to_owned();
    let (rest, took) = rest.rsplit_once(" <").ok_or_else(cut)?;
    let took = took.strip_suffix('>').and_then(super::seconds);
    let took = took.ok_or_else(cut)?;
    let (method, rest) = rest.split_once(" (").ok_or_else(cut)?;
    // Names may contain anything; a result starts with ':' or ' -'.
    let close = ["): ", "):", ") -", ")"]
        .iter()
        .find_map(|end| rest.find(end));
    let close = close.ok_or_else(cut)?;
    Ok(Parts {
        end,
        pid,
        method,
        args: &rest[..close],
        rest: &rest[close + 1..],
        took,
    })
}

/// Reads `2006.01.02 15:04:05.000000` as universal time.
fn stamped(text: &str) -> Option<Nanos> {
    let time = DateTime::strptime("%Y.%m.%d %H:%M:%S%.f", text).ok()?;
    let time = TimeZone::UTC.to_timestamp(time).ok()?;
    u64::try_from(time.as_nanosecond()).ok().map(Nanos)
}

/// Parts of a result.
struct Answer {
    result: Result<u64, i32>,
    found: Option<Entry>,
    handle: Option<u64>,
}

/// Reads `: OK (2,[-rw-r--r--:0100644,1,0,0,0,0,0,0]) [fh:3]`, or `: (…) [fh:3] - OK`.
fn answer(rest: &str) -> Result<Answer, String> {
    let rest = rest.trim_start_matches(':').trim();
    let (status, body) = match rest.rsplit_once("- ") {
        Some((body, status)) if !status.contains(['(', '[']) => (status.trim(), body),
        _ => {
            let end = rest.find([' ', '(', '[']).unwrap_or(rest.len());
            match rest.starts_with("OK") {
                true => ("OK", &rest[end..]),
                // A sentence, up to the parenthesis.
                false => {
                    let end = rest.find(['(', '[']).unwrap_or(rest.len());
                    (rest[..end].trim(), &rest[end..])
                }
            }
        }
    };
    let handle = body.split_once("[fh:").and_then(|(_, rest)| {
        let (number, _) = rest.split_once(']')?;
        number.parse().ok()
    });
    let found = entry(body);
    if status != "OK" {
        let errno = linux::errno_of_sentence(status)
            .ok_or_else(|| format!("'{status}' is not a result of JuiceFS"))?;
        return Ok(Answer {
            result: Err(errno),
            found: None,
            handle,
        });
    }
    let length = body.trim().strip_prefix('(').and_then(|rest| {
        let (number, _) = rest.split_once(')')?;
        number.parse().ok()
    });
    Ok(Answer {
        result: Ok(length.unwrap_or(0)),
        found,
        handle,
    })
}

/// Reads `(inode,[mode,nlink,uid,gid,atime,mtime,ctime,length])`.
fn entry(text: &str) -> Option<Entry> {
    let (before, rest) = text.split_once(",[")?;
    let ino = before.rsplit('(').next()?.trim().parse().ok()?;
    let (fields, _) = rest.split_once(']')?;
    let fields: Vec<&str> = fields.split(',').collect();
    let kind = match fields.first()?.chars().next()? {
        '-' => Some(Kind::File),
        'd' => Some(Kind::Directory),
        'l' | 'L' => Some(Kind::Link),
        _ => None,
    };
    let size = fields.last()?.trim().parse().ok()?;
    Some(Entry { ino, kind, size })
}

/// Arguments of a request, read from the left.
struct Args<'a> {
    method: &'a str,
    left: &'a str,
    over: bool,
}

impl<'a> Args<'a> {
    fn wrong(&self) -> String {
        format!(
            "the arguments of '{}' do not have JuiceFS's form",
            self.method
        )
    }

    fn word(&mut self) -> Option<&'a str> {
        if self.over {
            return None;
        }
        let (word, left) = match self.left.split_once(',') {
            Some((word, left)) => (word, left),
            None => {
                self.over = true;
                (self.left, "")
            }
        };
        self.left = left;
        Some(word.trim())
    }

    /// A number; a suffix in brackets, like the handle in `2[1]`, is ignored.
    fn try_number(&mut self) -> Option<u64> {
        let word = self.word()?;
        let word = match word.split_once('[') {
            Some((number, rest)) if rest.ends_with(']') => number,
            _ => word,
        };
        match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => word.parse().ok(),
        }
    }

    fn number(&mut self) -> Result<u64, String> {
        self.try_number().ok_or_else(|| self.wrong())
    }

    /// A directory, and a name in it: the rest except for `fields` words at the end.
    fn place(&mut self, fields: usize) -> Result<Place, String> {
        let parent = self.number()?;
        let (mut name, mut end) = (self.left, self.left.len());
        for _ in 0..fields {
            end = name.rfind(',').ok_or_else(|| self.wrong())?;
            name = &name[..end];
        }
        self.left = self.left.get(end + usize::from(fields > 0)..).unwrap_or("");
        self.over = fields == 0;
        if name.is_empty() || self.method.is_empty() {
            return Err(self.wrong());
        }
        Ok((parent, Arc::from(name.as_bytes())))
    }

    /// Reads `-rw-r--r--:0100644`.
    fn mode(&mut self) -> Result<u32, String> {
        let word = self.word().ok_or_else(|| self.wrong())?;
        let digits = word.rsplit(':').next().unwrap_or("");
        u32::from_str_radix(digits, 8).map_err(|_| self.wrong())
    }
}

fn event(text: &str, line: u64) -> Result<Event, String> {
    let parts = split(text)?;
    let Answer {
        result,
        found,
        handle,
    } = answer(parts.rest)?;
    let what = what(&parts, handle)?;
    let result = match (&what, result) {
        (What::Write(_, _, _, length, _), Ok(_)) => Ok(*length),
        (What::Read(..), result) => result,
        (_, result) => result.map(|_| 0),
    };
    Ok(Event {
        line,
        at: parts.end.since(parts.took),
        took: parts.took,
        process: parts.pid,
        result,
        found,
        what,
    })
}

fn what(parts: &Parts<'_>, handle: Option<u64>) -> Result<What, String> {
    let mut args = Args {
        method: parts.method,
        left: parts.args,
        over: false,
    };
    let bytes = |word: Option<&str>| Arc::<[u8]>::from(word.unwrap_or("").as_bytes());
    Ok(match parts.method {
        "lookup" => What::Lookup(args.place(0)?),
        "getattr" => What::Getattr(args.number()?),
        "setattr" => What::Setattr(args.number()?, changes(parts.args)),
        "truncate" => What::Setattr(
            args.number()?,
            Changes {
                size: Some(args.number()?),
                ..Changes::default()
            },
        ),
        "mknod" => What::Mknod(args.place(2)?, args.mode()?),
        "mkdir" => What::Mkdir(args.place(1)?, args.mode()?),
        "create" => What::Create(args.place(1)?, args.mode()?, linux::RDWR, handle),
        "symlink" => What::Symlink(args.place(1)?, bytes(args.word())),
        "unlink" => What::Unlink(args.place(0)?),
        "rmdir" => What::Rmdir(args.place(0)?),
        "rename" => {
            let (from, old) = (args.number()?, bytes(args.word()));
            let (to, new) = (args.number()?, bytes(args.word()));
            let flags = args.try_number().unwrap_or(0) as u32;
            What::Rename((from, old), (to, new), flags)
        }
        "link" => What::Link(args.number()?, args.place(0)?),
        "open" => {
            let ino = args.number()?;
            // Old versions do not record the flags.
            let flags = args.try_number().map_or(linux::RDWR, |flags| flags as i32);
            What::Open(ino, flags, handle)
        }
        "opendir" => What::Opendir(args.number()?, handle),
        "readdir" | "readdirplus" => {
            let (ino, size, _offset) = (args.number()?, args.number()?, args.try_number());
            What::Readdir(ino, args.try_number().or(handle), size)
        }
        "release" | "releasedir" => What::Release(args.number()?, args.try_number().or(handle)),
        "flush" => What::Flush(args.number()?, args.try_number().or(handle)),
        "read" | "write" => {
            let (ino, size, offset) = (args.number()?, args.number()?, args.number()?);
            let handle = args.try_number().or(handle);
            match parts.method {
                "read" => What::Read(ino, handle, offset, size),
                _ => What::Write(ino, handle, offset, size, None),
            }
        }
        "fsync" => {
            let (ino, data_only) = (args.number()?, args.try_number().unwrap_or(0) != 0);
            What::Fsync(ino, handle, data_only)
        }
        "fallocate" => {
            let (ino, mode) = (args.number()?, args.number()? as i32);
            What::Fallocate(ino, handle, mode, args.number()?, args.number()?)
        }
        "readlink" => What::Readlink(args.number()?),
        "access" => What::Access(args.number()?, args.try_number().unwrap_or(0) as i32),
        "statfs" => What::Statfs(args.try_number().unwrap_or(1)),
        "setxattr" => {
            let (ino, name) = (args.number()?, bytes(args.word()));
            What::Setxattr(ino, name, args.number()?, args.number()? as i32)
        }
        "getxattr" => What::Getxattr(args.number()?, bytes(args.word()), args.number()?),
        "listxattr" => What::Listxattr(args.number()?, args.number()?),
        "removexattr" => What::Removexattr(args.number()?, bytes(args.word())),
        "flock" | "getlk" | "setlk" => What::Other(why::LOCK),
        _ => What::Other(why::OTHER),
    })
}

/// Reads `(4,0x18,[size=0;mtime=NOW;])`.
fn changes(args: &str) -> Changes {
    let mut changes = Changes::default();
    // The handle is in brackets, too.
    let list = args.rsplit_once('[').map_or("", |(_, list)| list);
    for part in list.split([';', ']']) {
        let Some((key, value)) = part.split_once('=') else {
            continue;
        };
        match key.trim() {
            "mode" => {
                let digits = value.rsplit(':').next().unwrap_or("");
                changes.mode = u32::from_str_radix(digits, 8).ok();
            }
            "uid" => changes.uid = value.parse().ok(),
            "gid" => changes.gid = value.parse().ok(),
            "size" => changes.size = value.parse().ok(),
            "atime" | "mtime" => changes.times = true,
            _ => {}
        }
    }
    changes
}
