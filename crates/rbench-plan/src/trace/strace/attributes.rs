//! Calls in a trace of strace that read or change attributes of files.

use rbench_core::Call;

use super::State;
use super::calls::{Found, Made, Skip};
use super::text::flags;
use crate::trace::names::attribute;
use crate::trace::{Op, Other, Target, why};

impl State {
    pub(super) fn attributes(&mut self, made: &Made<'_>, name: &str) -> Found<Option<Op>> {
        let stat = |on: Target, n: usize| Op {
            told: made.told(n),
            ..on.op(Call::Stat)
        };
        Ok(Some(match name {
            "stat" | "stat64" => stat(Target::Path(self.path(made, None, 0)?), 1),
            "lstat" | "lstat64" => stat(Target::Link(self.path(made, None, 0)?), 1),
            "newfstatat" | "fstatat64" => stat(self.at(made, 0, 3)?, 2),
            "statx" => stat(self.at(made, 0, 2)?, 4),
            "fstat" | "fstat64" => stat(Target::File(self.file(made, 0)?.open), 1),
            "statfs" | "statfs64" | "fstatfs" | "fstatfs64" => {
                self.target(made, name)?.op(Call::Statfs)
            }
            "chmod" | "fchmod" => {
                let (on, mode) = (self.target(made, name)?, made.mode(1)?);
                on.op(|by| Call::Chmod(by, mode))
            }
            "fchmodat" | "fchmodat2" => {
                let (on, mode) = (self.at(made, 0, 3)?, made.mode(2)?);
                on.op(|by| Call::Chmod(by, mode))
            }
            "chown" | "lchown" | "fchown" | "fchownat" => {
                let (on, n) = match name {
                    "fchownat" => (self.at(made, 0, 4)?, 2),
                    _ => (self.target(made, name)?, 1),
                };
                let (uid, gid) = (made.number(n)? as u32, made.number(n + 1)? as u32);
                on.op(|by| Call::Chown(by, uid, gid))
            }
            "utimensat" => self.at(made, 0, 3)?.op(|by| Call::Utimes(by, None)),
            "utime" | "utimes" => self.target(made, name)?.op(|by| Call::Utimes(by, None)),
            _ if name.contains("xattr") => self.extended(made, name)?,
            _ => return Ok(None),
        }))
    }

    /// The object of the first argument: a descriptor (`f…`), a link itself (`l…`),
    /// or a name.
    fn target(&mut self, made: &Made<'_>, name: &str) -> Found<Target> {
        Ok(match name.as_bytes() {
            [b'f', ..] => Target::File(self.file(made, 0)?.open),
            // `listxattr` is the one whose own name begins so.
            [b'l', ..] if name != "listxattr" => Target::Link(self.path(made, None, 0)?),
            _ => Target::Path(self.path(made, None, 0)?),
        })
    }

    fn extended(&mut self, made: &Made<'_>, name: &str) -> Found<Op> {
        let on = self.target(made, name)?;
        if name.contains("list") {
            let length = made.length(2)?.min(1 << 16);
            return Ok(on.op(Call::Listxattr).moving(length));
        }
        if made.arg(1)?.ends_with("\"...") {
            return Err(Skip::LeftOut(why::CUT_OFF));
        }
        let attribute = Other::Bytes(attribute(&made.name(1)?)?);
        let op = match name.trim_start_matches(['f', 'l']) {
            "setxattr" => {
                let length = made.length(3)?.min(1 << 16);
                let flags = flags(made.arg(4)?);
                on.op(|by| Call::Setxattr(by, None, flags)).moving(length)
            }
            "getxattr" => {
                let length = made.length(3)?.min(1 << 16);
                on.op(|by| Call::Getxattr(by, None)).moving(length)
            }
            "removexattr" => on.op(|by| Call::Removexattr(by, None)),
            _ => return Err(Skip::Nothing),
        };
        Ok(op.with(attribute))
    }
}
