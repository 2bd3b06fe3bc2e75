//! fio's engines of names: one call on the name of each file, which moves no data.

use super::{By, Call, ItemKind, OpKind};
use crate::linux;
use crate::open::OpenFlags;

/// An engine of fio that makes one call on the name of each file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameEngine {
    /// Its name in fio.
    pub name: &'static str,
    /// Kind of operation; its name ends those of rows.
    pub op: OpKind,
    /// Kind of the objects with these names.
    pub items: ItemKind,
    /// The call; of those that read attributes the one without the option `stat_type`.
    pub call: Call,
    /// Its operations, for people.
    pub words: &'static str,
}

macro_rules! name_engines {
    ($($name:literal => $op:ident, $items:ident, $call:expr, $words:literal;)*) => {
        /// Every such engine.
        pub const NAME_ENGINES: &[NameEngine] = &[$(NameEngine {
            name: $name,
            op: OpKind::$op,
            items: ItemKind::$items,
            call: $call,
            words: $words,
        },)*];
    };
}

name_engines! {
    "filecreate" => Create, File, Call::Open(CREATE), "file creations";
    "filestat" => Stat, File, Call::Stat(By::Path), "file stats";
    "filedelete" => Unlink, File, Call::Unlink, "file removals";
    "dircreate" => Mkdir, Dir, Call::Mkdir(0o700), "directory creations";
    "dirstat" => Stat, Dir, Call::Stat(By::Path), "directory stats";
    "dirdelete" => Rmdir, Dir, Call::Rmdir, "directory removals";
}

/// An existing file is opened.
const CREATE: OpenFlags = OpenFlags {
    bits: linux::RDWR | linux::CREAT | linux::NOFOLLOW,
    mode: 0o600,
};

impl NameEngine {
    /// The engine of that name; `None`: it is not one of names.
    pub fn named(name: &str) -> Option<&'static NameEngine> {
        NAME_ENGINES.iter().find(|engine| engine.name == name)
    }

    /// True if it makes names.
    pub fn makes(&self) -> bool {
        matches!(self.op, OpKind::Create | OpKind::Mkdir)
    }

    /// True if it removes names.
    pub fn removes(&self) -> bool {
        matches!(self.op, OpKind::Unlink | OpKind::Rmdir)
    }

    /// True if the names are those of directories.
    pub fn of_directories(&self) -> bool {
        self.items == ItemKind::Dir
    }
}
