//! What calls in a trace of strace ask and change of a file's attributes.

use super::State;
use super::calls::{Found, Made, Skip};
use super::text::flags;
use crate::trace::names::attribute;
use crate::trace::{Call, Target, Told};

impl State {
    pub(super) fn attributes(
        &mut self,
        made: &Made<'_>,
        name: &str,
    ) -> Found<Option<(Call, Told)>> {
        let plain = |call: Call| Ok(Some((call, Told::default())));
        match name {
            "stat" | "stat64" | "lstat" | "lstat64" => {
                let what = Target::Path(self.path(made, None, 0)?, !name.starts_with('l'));
                Ok(Some((Call::Stat { what }, made.told(1))))
            }
            "newfstatat" | "fstatat64" => {
                let what = self.at(made, 0, 3)?;
                Ok(Some((Call::Stat { what }, made.told(2))))
            }
            "statx" => {
                let what = self.at(made, 0, 2)?;
                Ok(Some((Call::Stat { what }, made.told(4))))
            }
            "fstat" | "fstat64" => {
                let what = Target::Open(self.file(made, 0)?.open);
                Ok(Some((Call::Stat { what }, made.told(1))))
            }
            "statfs" | "statfs64" => plain(Call::Statfs {
                what: Target::Path(self.path(made, None, 0)?, true),
            }),
            "fstatfs" | "fstatfs64" => plain(Call::Statfs {
                what: Target::Open(self.file(made, 0)?.open),
            }),
            "chmod" | "fchmod" => plain(Call::Chmod {
                what: self.named_or_open(made, name == "fchmod", true)?,
                mode: made.mode(1)?,
            }),
            "fchmodat" | "fchmodat2" => plain(Call::Chmod {
                what: self.at(made, 0, 3)?,
                mode: made.mode(2)?,
            }),
            "chown" | "lchown" | "fchown" => plain(Call::Chown {
                what: self.named_or_open(made, name == "fchown", name == "chown")?,
                uid: made.number(1)? as u32,
                gid: made.number(2)? as u32,
            }),
            "fchownat" => plain(Call::Chown {
                what: self.at(made, 0, 4)?,
                uid: made.number(2)? as u32,
                gid: made.number(3)? as u32,
            }),
            "utimensat" => plain(Call::Utimes {
                what: self.at(made, 0, 3)?,
            }),
            "utime" | "utimes" => plain(Call::Utimes {
                what: Target::Path(self.path(made, None, 0)?, true),
            }),
            _ => match name.contains("xattr") {
                true => Ok(Some((self.extended(made, name)?, Told::default()))),
                false => Ok(None),
            },
        }
    }

    fn named_or_open(&mut self, made: &Made<'_>, open: bool, follows: bool) -> Found<Target> {
        match open {
            true => Ok(Target::Open(self.file(made, 0)?.open)),
            false => Ok(Target::Path(self.path(made, None, 0)?, follows)),
        }
    }

    fn extended(&mut self, made: &Made<'_>, name: &str) -> Found<Call> {
        let what = self.named_or_open(made, name.starts_with('f'), !name.starts_with('l'))?;
        let plain = name.trim_start_matches(['f', 'l']);
        if name.contains("list") {
            let length = made.length(2)?.min(1 << 16);
            return Ok(Call::Listxattr { what, length });
        }
        let attribute = attribute(&made.name(1)?)?;
        match plain {
            "setxattr" => Ok(Call::Setxattr {
                what,
                name: attribute,
                length: made.length(3)?.min(1 << 16),
                flags: flags(made.arg(4)?, |word| match word {
                    "XATTR_CREATE" => 1,
                    "XATTR_REPLACE" => 2,
                    _ => 0,
                }),
            }),
            "getxattr" => Ok(Call::Getxattr {
                what,
                name: attribute,
                length: made.length(3)?.min(1 << 16),
            }),
            "removexattr" => Ok(Call::Removexattr {
                what,
                name: attribute,
            }),
            _ => Err(Skip::Nothing),
        }
    }
}
