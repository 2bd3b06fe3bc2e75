//! System calls as data, without their operands: names, descriptor, buffer.

use std::ffi::CStr;

use crate::op::OpKind;
use crate::open::OpenFlags;

/// Opcode of a call in an io_uring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingCall {
    /// Its number in the kernel's interface (`IORING_OP_…` of `linux/io_uring.h`).
    pub code: u8,
    /// Its system call.
    pub name: &'static str,
    /// First Linux version that has it.
    pub since: &'static str,
}

/// One system call. Unless stated otherwise, paths are relative to one directory and a symbolic link
/// at their end is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `mkdirat`, mode 0775.
    Mkdir,
    /// `unlinkat` with `AT_REMOVEDIR`.
    Rmdir,
    /// `mknodat` of a regular file, mode 0664.
    Mknod,
    /// `unlinkat`.
    Unlink,
    /// `fstatat`; the size in bytes.
    Stat,
    /// `statx` of a name; the size in bytes.
    Lookup,
    /// `faccessat` for reading. Follows a link.
    Access,
    /// `fchmodat` to these permissions. Follows a link.
    Chmod(u32),
    /// `utimensat`: both times, in s since 1970.
    Utimes(i64),
    /// `renameat` to the second path, which may exist.
    Rename,
    /// `linkat`: the second path is the new name.
    Link,
    /// `symlinkat`: the second path is the target.
    Symlink,
    /// `readlinkat` into the data; the length of the target.
    Readlink,
    /// `openat` of a directory, `getdents64` to its end, `close`; entries besides `.` and `..`.
    List,
    /// `openat`, which does not follow a link; the descriptor.
    Open(OpenFlags),
    /// `close`.
    Close,
    /// `read` into the data, at the file's position; bytes.
    Read,
    /// `pread` from this offset on; bytes.
    ReadAt(u64),
    /// `write` of the data, at the file's position; bytes.
    Write,
    /// `pwrite` from this offset on; bytes.
    WriteAt(u64),
    /// `fsync`.
    Fsync,
    /// `fdatasync`.
    Fdatasync,
    /// `sync`: all that the host has written, to any file system.
    Sync,
    /// `ftruncate` to this length in bytes.
    Truncate(u64),
    /// `statx` of the descriptor with `AT_STATX_FORCE_SYNC`; the size in bytes.
    Getattr,
    /// `fstatfs`; the size of a block in bytes.
    Statfs,
    /// `fsetxattr` of the data under that name, which may exist.
    Setxattr(&'static CStr),
    /// `fgetxattr` of that name into the data; the length of the value.
    Getxattr(&'static CStr),
    /// `flistxattr` into the data; the length of the list, in which each name ends with a NUL.
    Listxattr,
    /// `fremovexattr` of that name.
    Removexattr(&'static CStr),
}

impl Call {
    /// Kind of operation.
    pub const fn op(self) -> OpKind {
        match self {
            Call::Mkdir => OpKind::Mkdir,
            Call::Rmdir => OpKind::Rmdir,
            Call::Mknod => OpKind::Mknod,
            Call::Unlink => OpKind::Unlink,
            Call::Stat => OpKind::Stat,
            Call::Lookup => OpKind::Lookup,
            Call::Access => OpKind::Access,
            Call::Chmod(_) => OpKind::Chmod,
            Call::Utimes(_) => OpKind::Utimes,
            Call::Rename => OpKind::Rename,
            Call::Link => OpKind::Link,
            Call::Symlink => OpKind::Symlink,
            Call::Readlink => OpKind::Readlink,
            Call::List => OpKind::List,
            Call::Open(_) => OpKind::Open,
            Call::Close => OpKind::Close,
            Call::Read | Call::ReadAt(_) => OpKind::Read,
            Call::Write | Call::WriteAt(_) => OpKind::Write,
            Call::Fsync => OpKind::Fsync,
            Call::Fdatasync => OpKind::Fdatasync,
            Call::Sync => OpKind::Sync,
            Call::Truncate(_) => OpKind::Truncate,
            Call::Getattr => OpKind::Getattr,
            Call::Statfs => OpKind::Statfs,
            Call::Setxattr(_) => OpKind::Setxattr,
            Call::Getxattr(_) => OpKind::Getxattr,
            Call::Listxattr => OpKind::Listxattr,
            Call::Removexattr(_) => OpKind::Removexattr,
        }
    }

    /// Opcode of the call in an io_uring; `None` if a ring does not perform it. This covers calls on
    /// names and on whole files; blocks of files have engines of their own.
    pub const fn in_a_ring(self) -> Option<RingCall> {
        let (code, name, since) = match self {
            Call::Open(_) => (18, "openat", "5.6"),
            Call::Read | Call::ReadAt(_) => (22, "read", "5.6"),
            Call::Write | Call::WriteAt(_) => (23, "write", "5.6"),
            Call::Fsync | Call::Fdatasync => (3, "fsync", "5.1"),
            Call::Close => (19, "close", "5.6"),
            Call::Stat | Call::Lookup | Call::Getattr => (21, "statx", "5.6"),
            Call::Mkdir => (37, "mkdirat", "5.15"),
            Call::Unlink | Call::Rmdir => (36, "unlinkat", "5.11"),
            Call::Rename => (35, "renameat", "5.11"),
            Call::Link => (39, "linkat", "5.15"),
            Call::Symlink => (38, "symlinkat", "5.15"),
            Call::Setxattr(_) => (41, "fsetxattr", "5.19"),
            Call::Getxattr(_) => (43, "fgetxattr", "5.19"),
            Call::Truncate(_) => (55, "ftruncate", "6.9"),
            _ => return None,
        };
        Some(RingCall { code, name, since })
    }

    /// True if it works on an open file.
    pub const fn needs_open(self) -> bool {
        use Call::*;
        matches!(
            self,
            Close
                | Read
                | ReadAt(_)
                | Write
                | WriteAt(_)
                | Fsync
                | Fdatasync
                | Truncate(_)
                | Getattr
                | Statfs
                | Setxattr(_)
                | Getxattr(_)
                | Listxattr
                | Removexattr(_)
        )
    }
}
