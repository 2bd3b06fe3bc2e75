//! Flags of an open.

use std::fmt;

/// The flags of an open; a file that is made has mode 0664.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenFlags {
    /// `O_RDONLY`, or with `writes` `O_RDWR`.
    pub reads: bool,
    /// `O_WRONLY`, or with `reads` `O_RDWR`.
    pub writes: bool,
    /// `O_CREAT`
    pub creates: bool,
    /// `O_EXCL`
    pub exclusive: bool,
    /// `O_TRUNC`
    pub truncates: bool,
    /// `O_APPEND`: every write goes to the end of the file.
    pub appends: bool,
    /// `O_DSYNC`: every write is on stable storage when it returns.
    pub data_synced: bool,
    /// `O_DIRECT`: data goes past the page cache.
    pub direct: bool,
}

impl OpenFlags {
    const NONE: OpenFlags = OpenFlags {
        reads: false,
        writes: false,
        creates: false,
        exclusive: false,
        truncates: false,
        appends: false,
        data_synced: false,
        direct: false,
    };
    /// `O_RDONLY`
    pub const READ: OpenFlags = OpenFlags {
        reads: true,
        ..OpenFlags::NONE
    };
    /// `O_WRONLY`: the file must exist and keeps its length.
    pub const WRITE_EXISTING: OpenFlags = OpenFlags {
        writes: true,
        ..OpenFlags::NONE
    };
    /// `O_WRONLY | O_CREAT`: it may exist and keeps its length.
    pub const WRITE: OpenFlags = OpenFlags {
        creates: true,
        ..OpenFlags::WRITE_EXISTING
    };
    /// `O_WRONLY | O_CREAT | O_EXCL`: it must not exist.
    pub const CREATE_NEW: OpenFlags = OpenFlags {
        exclusive: true,
        ..OpenFlags::WRITE
    };
    /// `O_RDWR | O_CREAT`
    pub const READ_WRITE: OpenFlags = OpenFlags {
        reads: true,
        ..OpenFlags::WRITE
    };

    /// Sets or clears `O_DIRECT`.
    #[must_use]
    pub const fn directly(self, direct: bool) -> OpenFlags {
        OpenFlags { direct, ..self }
    }
}

impl fmt::Display for OpenFlags {
    /// The name of a common combination, or the flags in the order of the fields:
    /// `create-new`, `read direct`, `writes creates appends`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = match self.directly(false) {
            OpenFlags::READ => Some("read"),
            OpenFlags::WRITE_EXISTING => Some("write-existing"),
            OpenFlags::WRITE => Some("write"),
            OpenFlags::CREATE_NEW => Some("create-new"),
            OpenFlags::READ_WRITE => Some("read-write"),
            _ => None,
        };
        let named = short.is_some();
        let all = [
            (named, short.unwrap_or_default()),
            (self.reads && !named, "reads"),
            (self.writes && !named, "writes"),
            (self.creates && !named, "creates"),
            (self.exclusive && !named, "exclusive"),
            (self.truncates, "truncates"),
            (self.appends, "appends"),
            (self.data_synced, "data-synced"),
            (self.direct, "direct"),
        ];
        let words = all.into_iter().filter(|(on, _)| *on);
        let words: Vec<&str> = words.map(|(_, word)| word).collect();
        f.write_str(&words.join(" "))
    }
}
