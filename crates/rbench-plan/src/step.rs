//! What a step of a script does: one system call on a name or on an open file, or the short
//! script of calls that it names. Which step comes next, and on which file, others say
//! ([`crate::mix`]).

use rbench_core::OpenFlags;

/// A step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// `mkdirat`
    Mkdir,
    /// `unlinkat(AT_REMOVEDIR)`
    Rmdir,
    /// `mknodat` of a regular file.
    Mknod,
    /// `unlinkat`
    Unlink,
    /// `fstatat`
    Stat,
    /// `faccessat`
    Access,
    /// `fchmodat` to these permissions.
    Chmod(u32),
    /// `utimensat`: both times, in s since 1970.
    Utimes(i64),
    /// `renameat` to the second name, which may exist.
    Rename,
    /// `linkat`: the second name is the new one.
    Link,
    /// `symlinkat`: the second name is the target.
    Symlink,
    /// `readlinkat`
    Readlink,
    /// A listing: `openat`, `getdents64` up to the end, `close`.
    List,
    /// `openat`: the file is the slot's from then on.
    Open(OpenFlags),
    /// `close` of the slot's file.
    Close,
    /// On the slot's file.
    On(Held),
    /// `openat`, what is done with the file, `close`.
    Whole(OpenFlags, Held),
}

/// What is done with an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Nothing.
    Nothing,
    /// `pread` of so many bytes at an offset, or `read` at the file's position.
    Read {
        /// Bytes asked for.
        bytes: u64,
        /// Where; `None`: at the file's position.
        at: Option<u64>,
    },
    /// `read` of so many bytes again and again, until a call brings fewer.
    ReadWhole {
        /// Bytes of a call.
        chunk: u64,
    },
    /// `pwrite` of so many bytes at an offset, or `write` at the file's position, which
    /// is its end where it was opened so.
    Write {
        /// Bytes to write.
        bytes: u64,
        /// Where; `None`: at the file's position.
        at: Option<u64>,
    },
    /// `write` until so many bytes are written.
    WriteWhole {
        /// All of them.
        bytes: u64,
        /// Most bytes of a call.
        chunk: u64,
    },
    /// `fsync`
    Fsync,
    /// `fdatasync`
    Fdatasync,
    /// `ftruncate` to this length.
    Truncate(u64),
    /// `statx` of the descriptor.
    Getattr,
    /// `fsetxattr` of one attribute with a value of so many bytes.
    Setxattr(u64),
    /// `fgetxattr` of the same; that it is not there is an answer.
    Getxattr,
}

impl Held {
    /// Bytes that the buffer of a call has to hold, and whether they are written.
    fn buffer(self) -> (u64, bool) {
        match self {
            Held::Read { bytes, .. } | Held::ReadWhole { chunk: bytes } => (bytes, false),
            Held::Write { bytes, .. } | Held::Setxattr(bytes) => (bytes, true),
            Held::WriteWhole { bytes, chunk } => (bytes.min(chunk), true),
            Held::Getxattr => (XATTR_MAX, false),
            Held::Nothing | Held::Fsync | Held::Fdatasync | Held::Truncate(_) | Held::Getattr => {
                (0, false)
            }
        }
    }
}

/// Bytes of the longest value that is read of an attribute.
const XATTR_MAX: u64 = 4096;
/// Bytes of a buffer for entries of directories, and for targets of links.
const NAMES: u64 = 32 * 1024;

impl Action {
    /// Bytes that the buffer of a call has to hold.
    pub fn buffer_bytes(self) -> u64 {
        match self {
            Action::On(held) | Action::Whole(_, held) => held.buffer().0,
            Action::List | Action::Readlink => NAMES,
            _ => 0,
        }
    }

    /// Bytes of new data that have to be in the buffer before it.
    pub fn data_bytes(self) -> u64 {
        match self {
            Action::On(held) | Action::Whole(_, held) => match held.buffer() {
                (bytes, true) => bytes,
                (_, false) => 0,
            },
            _ => 0,
        }
    }

    /// Whether it works on the file that the slot holds open.
    pub fn needs_open(self) -> bool {
        matches!(self, Action::Close | Action::On(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_writes_needs_new_data() {
        let check = |held: Held, buffer: u64, data: u64| {
            for action in [Action::On(held), Action::Whole(OpenFlags::default(), held)] {
                assert_eq!(
                    (action.buffer_bytes(), action.data_bytes()),
                    (buffer, data),
                    "{action:?}"
                );
            }
        };
        check(Held::Nothing, 0, 0);
        check(Held::Fsync, 0, 0);
        check(Held::Read { bytes: 7, at: None }, 7, 0);
        check(Held::ReadWhole { chunk: 9 }, 9, 0);
        check(
            Held::Write {
                bytes: 7,
                at: Some(1),
            },
            7,
            7,
        );
        check(
            Held::WriteWhole {
                bytes: 100,
                chunk: 9,
            },
            9,
            9,
        );
        check(Held::WriteWhole { bytes: 5, chunk: 9 }, 5, 5);
    }
}
