//! Flags of an open.

use std::fmt;

use crate::linux;

/// Permissions of a new file, before the umask.
pub const NEW_FILE: u32 = 0o664;

/// The flags of an open, and the permissions of a file that it creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFlags {
    /// `O_…`; `O_CLOEXEC` is always set too.
    pub bits: i32,
    /// Permissions, before the umask.
    pub mode: u32,
}

impl OpenFlags {
    /// No access yet (access mode 3 of Linux); a symbolic link is not followed.
    pub const NONE: OpenFlags = OpenFlags {
        bits: linux::ACCESS | linux::NOFOLLOW,
        mode: NEW_FILE,
    };
    /// `O_RDONLY`
    pub const READ: OpenFlags = OpenFlags::NONE.access(true, false);
    /// `O_WRONLY`: the file must exist and keeps its length.
    pub const WRITE_EXISTING: OpenFlags = OpenFlags::NONE.access(false, true);
    /// `O_WRONLY | O_CREAT`: the file may exist, and keeps its length.
    pub const WRITE: OpenFlags = OpenFlags::WRITE_EXISTING.with(linux::CREAT);
    /// `O_WRONLY | O_CREAT | O_EXCL`: the file must not exist.
    pub const CREATE_NEW: OpenFlags = OpenFlags::WRITE.with(linux::EXCL);
    /// `O_RDWR | O_CREAT`
    pub const READ_WRITE: OpenFlags = OpenFlags::WRITE.access(true, true);

    /// Sets these flags.
    #[must_use]
    pub const fn with(self, bits: i32) -> OpenFlags {
        OpenFlags {
            bits: self.bits | bits,
            ..self
        }
    }

    /// Sets the access mode.
    #[must_use]
    pub const fn access(self, reads: bool, writes: bool) -> OpenFlags {
        let access = match (reads, writes) {
            (true, true) => linux::RDWR,
            (true, false) => linux::RDONLY,
            (false, true) => linux::WRONLY,
            (false, false) => linux::ACCESS,
        };
        OpenFlags {
            bits: self.bits & !linux::ACCESS | access,
            ..self
        }
    }

    /// Sets or clears `O_DIRECT`.
    #[must_use]
    pub const fn directly(self, direct: bool) -> OpenFlags {
        let bits = self.bits & !linux::DIRECT;
        OpenFlags { bits, ..self }.with(if direct { linux::DIRECT } else { 0 })
    }

    /// True if all of these flags are set.
    pub const fn has(self, bits: i32) -> bool {
        self.bits & bits == bits
    }

    /// True if it opens for reading.
    pub const fn reads(self) -> bool {
        matches!(self.bits & linux::ACCESS, linux::RDONLY | linux::RDWR)
    }

    /// True if it opens for writing.
    pub const fn writes(self) -> bool {
        matches!(self.bits & linux::ACCESS, linux::WRONLY | linux::RDWR)
    }

    /// True if it may create a file.
    pub const fn creates(self) -> bool {
        self.has(linux::CREAT)
    }
}

impl fmt::Display for OpenFlags {
    /// The name of a common combination, or the list of flags: `create-new`, `read
    /// direct`, `writes creates appends`.
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
            (self.reads() && !named, "reads"),
            (self.writes() && !named, "writes"),
            (self.creates() && !named, "creates"),
            (self.has(linux::EXCL) && !named, "exclusive"),
            (self.has(linux::TRUNC), "truncates"),
            (self.has(linux::APPEND), "appends"),
            (self.has(linux::DSYNC), "data-synced"),
            (self.has(linux::DIRECT), "direct"),
        ];
        let words = all.into_iter().filter(|(on, _)| *on);
        let words: Vec<&str> = words.map(|(_, word)| word).collect();
        f.write_str(&words.join(" "))
    }
}
