//! The kinds of FUSE requests, by the names of the protocol. Other modules handle the
//! requests.

use std::fmt;
use std::str::FromStr;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// A kind of FUSE request.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind { $($(#[$doc])* $variant,)* }

        impl Kind {
            /// Every kind, in the order of definition.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant,)*];

            /// The name of the request, in lower case.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$variant => $name,)* }
            }
        }
    };
}

kinds! {
    /// Find a name in a directory.
    Lookup => "lookup",
    /// Drop references to an inode; has no reply. In a batch, each inode counts.
    Forget => "forget",
    /// Read attributes.
    Getattr => "getattr",
    /// Change attributes, including the length of a file.
    Setattr => "setattr",
    /// Read the target of a symbolic link.
    Readlink => "readlink",
    /// Make a symbolic link.
    Symlink => "symlink",
    /// Make a file or special file without opening it.
    Mknod => "mknod",
    /// Make a directory.
    Mkdir => "mkdir",
    /// Remove a file.
    Unlink => "unlink",
    /// Remove a directory.
    Rmdir => "rmdir",
    /// Rename or exchange.
    Rename => "rename",
    /// Make a hard link.
    Link => "link",
    /// Open a file.
    Open => "open",
    /// Read data.
    Read => "read",
    /// Write data.
    Write => "write",
    /// Read the totals of the file system.
    Statfs => "statfs",
    /// The last close of an open file; the caller of `close` does not wait.
    Release => "release",
    /// Write a file to stable storage.
    Fsync => "fsync",
    /// Set an extended attribute.
    Setxattr => "setxattr",
    /// Read an extended attribute.
    Getxattr => "getxattr",
    /// List the extended attributes.
    Listxattr => "listxattr",
    /// Remove an extended attribute.
    Removexattr => "removexattr",
    /// Any close of an open file; the caller of `close` waits.
    Flush => "flush",
    /// Open a directory.
    Opendir => "opendir",
    /// Read entries of a directory, with attributes (readdirplus) or without.
    Readdir => "readdir",
    /// Close a directory.
    Releasedir => "releasedir",
    /// Write a directory to stable storage.
    Fsyncdir => "fsyncdir",
    /// Check a permission: `access`, `chdir`.
    Access => "access",
    /// Make and open a file.
    Create => "create",
    /// Control a device; always refused with ENOTTY.
    Ioctl => "ioctl",
    /// Poll for readiness; refused with ENOSYS, after which the kernel answers.
    Poll => "poll",
    /// Reserve or punch space of a file.
    Fallocate => "fallocate",
    /// Find data or a hole.
    Lseek => "lseek",
    /// Copy within the file system; refused with ENOSYS, after which the
    /// kernel copies by reading and writing.
    CopyFileRange => "copy_file_range",
}

impl Kind {
    /// Number of kinds.
    pub const COUNT: usize = Kind::ALL.len();

    /// True if the kernel waits for its reply.
    pub fn has_reply(self) -> bool {
        self != Kind::Forget
    }

    /// The index of the kind in [`Kind::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An unknown name of a request. Its text is a clause.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a FUSE request (such as lookup, getattr, create, read, write)")]
pub struct UnknownKind(pub(crate) String);

impl FromStr for Kind {
    type Err = UnknownKind;

    /// Reads a name of [`Kind::name`]; `readdirplus` is `readdir`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "readdirplus" {
            return Ok(Kind::Readdir);
        }
        Kind::ALL
            .iter()
            .copied()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_back_from_its_name() {
        for (index, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(kind.name().parse(), Ok(*kind));
            assert_eq!(kind.index(), index);
        }
    }

    #[test]
    fn an_unknown_name_is_told() {
        let error = "stat".parse::<Kind>().expect_err("no FUSE request");
        assert!(
            error
                .to_string()
                .starts_with("'stat' is not a FUSE request")
        );
    }
}
