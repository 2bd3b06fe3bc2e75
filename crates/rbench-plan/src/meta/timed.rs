//! Timed system calls of each metadata operation.

use std::ffi::CStr;

use rbench_core::{Call, OpKind, OpenFlags};

/// Permissions that differ from those of every new file.
const MODE: u32 = 0o600;
/// A time long before any run, in s since 1970.
const TIME: i64 = 1_000_000_000;
/// Number of bytes by which a truncate extends a file.
pub(super) const LONGER: u64 = 4096;
/// Names of the extended attributes; the first one is set, read and removed on its own.
pub const ATTRIBUTES: [&CStr; 10] = [
    c"user.rbench",
    c"user.rbench.1",
    c"user.rbench.2",
    c"user.rbench.3",
    c"user.rbench.4",
    c"user.rbench.5",
    c"user.rbench.6",
    c"user.rbench.7",
    c"user.rbench.8",
    c"user.rbench.9",
];

/// Timed calls of an operation on one item; none for operations that make many calls on generated
/// names.
pub const fn timed(op: OpKind) -> &'static [Call] {
    match op {
        OpKind::Mkdir => &[Call::Mkdir],
        OpKind::Rmdir => &[Call::Rmdir],
        OpKind::Stat => &[Call::Stat],
        OpKind::Rename => &[Call::Rename],
        OpKind::Link => &[Call::Link],
        OpKind::List => &[Call::List],
        OpKind::Create => &[
            Call::Open(OpenFlags::CREATE_NEW),
            Call::Write,
            Call::Fsync,
            Call::Close,
        ],
        OpKind::WriteFile => &[
            Call::Open(OpenFlags::WRITE_EXISTING),
            Call::Write,
            Call::Fsync,
            Call::Close,
        ],
        OpKind::ReadFile => &[Call::Open(OpenFlags::READ), Call::Read, Call::Close],
        OpKind::Mknod => &[Call::Mknod],
        OpKind::Unlink => &[Call::Unlink],
        OpKind::Symlink => &[Call::Symlink],
        OpKind::Readlink => &[Call::Readlink],
        OpKind::Chmod => &[Call::Chmod(MODE)],
        OpKind::Utimes => &[Call::Utimes(TIME)],
        OpKind::Access => &[Call::Access],
        OpKind::Lookup => &[Call::Lookup],
        OpKind::Getattr => &[Call::Getattr],
        OpKind::Truncate => &[Call::Truncate(LONGER)],
        OpKind::Statfs => &[Call::Statfs],
        OpKind::Setxattr => &[Call::Setxattr(ATTRIBUTES[0])],
        OpKind::Getxattr => &[Call::Getxattr(ATTRIBUTES[0])],
        OpKind::Listxattr => &[Call::Listxattr],
        OpKind::Removexattr => &[Call::Removexattr(ATTRIBUTES[0])],
        OpKind::WriteSync => &[Call::WriteAt(0), Call::Fsync],
        OpKind::Read => &[Call::ReadAt(0)],
        _ => &[],
    }
}
