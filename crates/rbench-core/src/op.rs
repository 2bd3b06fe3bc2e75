//! The kinds of operation that rbench issues and reports.

use std::fmt;

macro_rules! op_kinds {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// One kind of operation: what a phase repeats and a failure names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum OpKind { $($(#[$doc])* $variant,)* }

        impl OpKind {
            /// Every kind, in the order of definition.
            pub const ALL: &'static [OpKind] = &[$(OpKind::$variant,)*];

            /// The name in reports and result files.
            pub fn name(self) -> &'static str {
                match self { $(OpKind::$variant => $name,)* }
            }
        }
    };
}

op_kinds! {
    /// Make a directory: `mkdirat`.
    Mkdir => "mkdir",
    /// Remove an empty directory: `unlinkat(AT_REMOVEDIR)`.
    Rmdir => "rmdir",
    /// Read the attributes of a name: `fstatat`.
    Stat => "stat",
    /// Give a name another name in the same directory: `renameat`.
    Rename => "rename",
    /// Give a file another name beside its own: `linkat`.
    Link => "link",
    /// Open a directory, read all entries, close it.
    List => "list",
    /// Make a file that is not there yet, write what was asked for, close it.
    Create => "create",
    /// Make a file node: `mknodat`.
    Mknod => "mknod",
    /// Open a file, read what was asked for, close it.
    ReadFile => "read-file",
    /// Open a file that may exist, write all of it, close it.
    WriteFile => "write-file",
    /// Remove a file: `unlinkat`.
    Unlink => "unlink",
    /// Open a file (set-up of an I/O phase).
    Open => "open",
    /// Close a file.
    Close => "close",
    /// Read one block.
    Read => "read",
    /// Write one block.
    Write => "write",
    /// Give the blocks of a range of a file back, which reads as zeros from then on:
    /// `fallocate` with `FALLOC_FL_PUNCH_HOLE`.
    Trim => "trim",
    /// Bring written data to stable storage: `fsync`.
    Fsync => "fsync",
    /// Bring written data, and of the attributes only what reading it needs, to stable
    /// storage: `fdatasync`.
    Fdatasync => "fdatasync",
    /// Bring everything that the host has written to stable storage: `sync`.
    Sync => "sync",
    /// Run the user's command around a phase.
    Command => "command",
    /// Set the length of a file: `ftruncate`.
    Truncate => "truncate",
    /// Reserve blocks of a file: `fallocate`.
    Allocate => "fallocate",
    /// Make a symbolic link: `symlinkat`.
    Symlink => "symlink",
    /// Read the target of a symbolic link: `readlinkat`.
    Readlink => "readlink",
    /// Change the permissions of a name: `fchmodat`.
    Chmod => "chmod",
    /// Change the times of a name: `utimensat`.
    Utimes => "utimes",
    /// Ask whether a name may be read: `faccessat`.
    Access => "access",
    /// Find a name, with its attributes: `statx`.
    Lookup => "lookup",
    /// Read the attributes of an open file from where they are kept: `statx` with
    /// `AT_EMPTY_PATH | AT_STATX_FORCE_SYNC`.
    Getattr => "getattr",
    /// Read the totals of the file system: `fstatfs`.
    Statfs => "statfs",
    /// Set an extended attribute of an open file: `fsetxattr`.
    Setxattr => "setxattr",
    /// Read an extended attribute of an open file: `fgetxattr`.
    Getxattr => "getxattr",
    /// Read the names of the extended attributes of an open file: `flistxattr`.
    Listxattr => "listxattr",
    /// Remove an extended attribute of an open file: `fremovexattr`.
    Removexattr => "removexattr",
    /// Make what lies in a directory: `mknodat` or `mkdirat` of each.
    Fill => "fill",
    /// Remove what lies in a directory: `unlinkat` of each.
    Empty => "empty",
    /// Write to an open file and bring it to stable storage: `pwrite`, `fsync`.
    WriteSync => "write-sync",
    /// Read some entries of an open directory: `getdents64`.
    Readdir => "readdir",
    /// Move the position of an open file: `lseek`.
    Seek => "lseek",
    /// Change the owner of a name: `fchownat`.
    Chown => "chown",
    /// Write behind the end of an open file: `write` of a file that was opened with
    /// `O_APPEND`.
    Append => "append",
    /// All operations of a list, once: from the start of the first to the end of the last.
    Round => "round",
    /// Any operation of a mix.
    Mixed => "mixed",
}

impl OpKind {
    /// Whether it asks for what is there and changes nothing: memory of the client
    /// could answer.
    pub fn asks(self) -> bool {
        matches!(
            self,
            OpKind::Stat
                | OpKind::List
                | OpKind::Readdir
                | OpKind::ReadFile
                | OpKind::Read
                | OpKind::Readlink
                | OpKind::Access
                | OpKind::Lookup
                | OpKind::Getattr
                | OpKind::Statfs
                | OpKind::Getxattr
                | OpKind::Listxattr
        )
    }
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
