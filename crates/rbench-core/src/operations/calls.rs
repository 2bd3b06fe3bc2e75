//! System calls without their operands ([`Call`]).

use std::ffi::CStr;

use super::OpKind;
use crate::open::OpenFlags;

/// Form in which a call names the object that it works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A path; a symbolic link at its end is followed.
    Path,
    /// A path; a symbolic link at its end is not followed.
    Link,
    /// An open file.
    File,
}

impl By {
    /// Name for this one, of those for a path, a link and a file.
    const fn of(self, names: [&'static str; 3]) -> &'static str {
        names[self as usize]
    }
}

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

const fn ring(code: u8, name: &'static str, since: &'static str) -> Option<RingCall> {
    Some(RingCall { code, name, since })
}

/// The opcode if `alike`: the call has the same parameters in the ring.
const fn only_if(alike: bool, ring: Option<RingCall>) -> Option<RingCall> {
    if alike { ring } else { None }
}

/// Name of an extended attribute; `None`: the second path is the name.
pub type Attribute = Option<&'static CStr>;

macro_rules! calls {
    ($($(#[$doc:meta])* $call:ident $(($($arg:ident: $of:ty),*))? $({ $($(#[$about:meta])* $field:ident: $kind:ty,)* })?
        => $op:ident, $names:expr, $by:expr, $ring:expr;)*) => {
        /// A system call. Unless stated otherwise, paths are relative to one directory and a
        /// symbolic link at their end is not followed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Call { $($(#[$doc])* $call $(($($of),*))? $({ $($(#[$about])* $field: $kind,)* })?,)* }

        #[allow(unused_variables, reason = "most calls are the same whatever their parameters are")]
        impl Call {
            /// Kind of its operation.
            pub const fn op(self) -> OpKind {
                match self { $(Call::$call { .. } => OpKind::$op,)* }
            }

            /// Names of the system calls that it makes, separated by spaces.
            pub const fn names(self) -> &'static str {
                match self { $(Call::$call $(($($arg),*))? $({ $($field),* })? => $names,)* }
            }

            /// Form in which it names its object; `None` if it has only paths, or nothing.
            pub const fn by(self) -> Option<By> {
                match self { $(Call::$call $(($($arg),*))? $({ $($field),* })? => $by,)* }
            }

            /// True if it works on an open file.
            pub const fn needs_open(self) -> bool {
                matches!(self.by(), Some(By::File))
            }

            /// Opcode of the call in an io_uring; `None` if a ring cannot perform it. This covers
            /// calls on names and on whole files; blocks of files have engines of their own.
            pub const fn in_a_ring(self) -> Option<RingCall> {
                match self { $(Call::$call $(($($arg),*))? $({ $($field),* })? => $ring,)* }
            }
        }
    };
}

use By::{File, Link};

// Parameters => kind, names of the system calls, how it names its object, opcode in a ring.
calls! {
    /// `mkdirat` with these permissions.
    Mkdir(mode: u32) => Mkdir, "mkdirat", None, ring(37, "mkdirat", "5.15");
    /// `unlinkat` with `AT_REMOVEDIR`.
    Rmdir => Rmdir, "unlinkat", None, ring(36, "unlinkat", "5.11");
    /// `mknodat` of a regular file with these permissions.
    Mknod(mode: u32) => Mknod, "mknodat", None, None;
    /// `unlinkat`.
    Unlink => Unlink, "unlinkat", None, ring(36, "unlinkat", "5.11");
    /// `fstatat` or `fstat`; the size in bytes.
    Stat(by: By) => Stat, by.of(["newfstatat", "newfstatat", "fstat"]), Some(by),
        only_if(matches!(by, Link), ring(21, "statx", "5.6"));
    /// `statx` of a name, for these fields (`STATX_…`); the size in bytes.
    Lookup(by: By, fields: u32) => Lookup, "statx", Some(by),
        only_if(matches!((by, fields), (Link, Call::STATX_BASIC)), ring(21, "statx", "5.6"));
    /// `faccessat` for this (`R_OK` and so on). Follows a link.
    Access(mode: i32) => Access, "faccessat", None, None;
    /// `fchmodat` or `fchmod` to these permissions. Always follows a link.
    Chmod(by: By, mode: u32) => Chmod, by.of(["fchmodat", "fchmodat", "fchmod"]), Some(by), None;
    /// `fchownat` or `fchown`; an owner or group of `u32::MAX` stays.
    Chown(by: By, uid: u32, gid: u32) => Chown, by.of(["fchownat", "fchownat", "fchown"]), Some(by), None;
    /// `utimensat`: both times, in s since 1970; `None`: the present.
    Utimes(by: By, seconds: Option<i64>) => Utimes, "utimensat", Some(by), None;
    /// `renameat` to the second path, with flags (`RENAME_NOREPLACE` and so on) `renameat2`. Without
    /// flags the second path may exist.
    Rename(flags: u32) => Rename, if flags == 0 { "renameat" } else { "renameat2" }, None,
        only_if(flags == 0, ring(35, "renameat", "5.11"));
    /// `linkat`: the second path is the new name.
    Link => Link, "linkat", None, ring(39, "linkat", "5.15");
    /// `symlinkat`: the second path is the target.
    Symlink => Symlink, "symlinkat", None, ring(38, "symlinkat", "5.15");
    /// `readlinkat` into the data; the length of the target.
    Readlink => Readlink, "readlinkat", None, None;
    /// `openat` of a directory, `getdents64` to its end, `close`; entries besides `.` and `..`.
    List => List, "openat getdents64 close", None, None;
    /// `openat` of a file and of the second path, which is new, `copy_file_range` until nothing is
    /// left, and a `close` of each; bytes.
    Copy => Copy, "openat openat copy_file_range close close", None, None;
    /// `openat`; the descriptor.
    Open(flags: OpenFlags) => Open, "openat", None, ring(18, "openat", "5.6");
    /// `close`.
    Close => Close, "close", Some(File), ring(19, "close", "5.6");
    /// `read` into the data, at the file's position; bytes.
    Read => Read, "read", Some(File), ring(22, "read", "5.6");
    /// `pread` from this offset on; bytes.
    ReadAt(offset: u64) => Read, "pread64", Some(File), ring(22, "read", "5.6");
    /// `write` of the data, at the file's position; bytes.
    Write => Write, "write", Some(File), ring(23, "write", "5.6");
    /// `pwrite` from this offset on; bytes.
    WriteAt(offset: u64) => Write, "pwrite64", Some(File), ring(23, "write", "5.6");
    /// `lseek` by this offset from there (`SEEK_SET` and so on); the position.
    Seek(offset: i64, whence: i32) => Seek, "lseek", Some(File), None;
    /// `getdents64` of an open directory into the data; bytes.
    Readdir => Readdir, "getdents64", Some(File), None;
    /// `fsync`.
    Fsync => Fsync, "fsync", Some(File), ring(3, "fsync", "5.1");
    /// `fdatasync`.
    Fdatasync => Fdatasync, "fdatasync", Some(File), ring(3, "fsync", "5.1");
    /// `sync`: all that the host has written, to any file system.
    Sync => Sync, "sync", None, None;
    /// `truncate` or `ftruncate` to this length in bytes. Always follows a link.
    Truncate(by: By, length: u64) => Truncate, by.of(["truncate", "truncate", "ftruncate"]), Some(by),
        only_if(matches!(by, File), ring(55, "ftruncate", "6.9"));
    /// `fallocate`.
    Allocate {
        /// `FALLOC_FL_…`, or 0.
        mode: i32,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    } => Allocate, "fallocate", Some(File), ring(17, "fallocate", "5.1");
    /// `statx` of the descriptor with `AT_STATX_FORCE_SYNC`; the size in bytes.
    Getattr => Getattr, "statx", Some(File), ring(21, "statx", "5.6");
    /// `statfs` or `fstatfs`; the size of a block in bytes. Always follows a link.
    Statfs(by: By) => Statfs, by.of(["statfs", "statfs", "fstatfs"]), Some(by), None;
    /// `setxattr`, `lsetxattr` or `fsetxattr` of the data under that name, with flags (`XATTR_CREATE`
    /// and so on); without flags the name may exist.
    Setxattr(by: By, name: Attribute, flags: i32) => Setxattr, by.of(["setxattr", "lsetxattr", "fsetxattr"]), Some(by),
        only_if(matches!((by, name, flags), (File, Some(_), 0)), ring(41, "fsetxattr", "5.19"));
    /// `getxattr`, `lgetxattr` or `fgetxattr` of that name into the data; the length of the value.
    Getxattr(by: By, name: Attribute) => Getxattr, by.of(["getxattr", "lgetxattr", "fgetxattr"]), Some(by),
        only_if(matches!((by, name), (File, Some(_))), ring(43, "fgetxattr", "5.19"));
    /// `listxattr`, `llistxattr` or `flistxattr` into the data; the length of the list, in which each
    /// name ends with a NUL.
    Listxattr(by: By) => Listxattr, by.of(["listxattr", "llistxattr", "flistxattr"]), Some(by), None;
    /// `removexattr`, `lremovexattr` or `fremovexattr` of that name.
    Removexattr(by: By, name: Attribute) => Removexattr, by.of(["removexattr", "lremovexattr", "fremovexattr"]),
        Some(by), None;
}
