//! The rows of the per-operation table (`rbench ops`): what they are called, and the
//! system calls that stand for them. How they are prepared, and what the table looks
//! like, is told elsewhere.

/// One row.
#[derive(Debug, PartialEq, Eq)]
pub struct OpsRow {
    /// For people, machines and the command line.
    pub name: &'static str,
    /// The system calls that are timed.
    pub calls: &'static str,
    /// Why no system call reaches the operation; `None`: one does.
    pub out_of_reach: Option<&'static str>,
}

const fn row(name: &'static str, calls: &'static str) -> OpsRow {
    OpsRow {
        name,
        calls,
        out_of_reach: None,
    }
}

/// Every row, in the order of the table.
pub const OPS_ROWS: &[OpsRow] = &[
    row("mkdir", "mkdirat"),
    row("mvdir", "renameat"),
    row("rmdir", "unlinkat"),
    row("readdir_10", "openat getdents64 close"),
    row("readdir_1k", "openat getdents64 close"),
    row("mknod", "mknodat"),
    row("create", "openat"),
    row("close", "close"),
    row("rename", "renameat"),
    row("unlink", "unlinkat"),
    row("link", "linkat"),
    row("symlink", "symlinkat"),
    row("readlink", "readlinkat"),
    row("lookup", "statx"),
    row("resolve", "statx"),
    row("getattr", "statx"),
    row("setattr", "fchmodat"),
    row("utimes", "utimensat"),
    row("truncate", "ftruncate"),
    row("access", "faccessat"),
    row("setxattr", "fsetxattr"),
    row("getxattr", "fgetxattr"),
    row("removexattr", "fremovexattr"),
    row("listxattr_1", "flistxattr"),
    row("listxattr_10", "flistxattr"),
    row("statfs", "fstatfs"),
    OpsRow {
        name: "newchunk",
        calls: "",
        out_of_reach: Some("chunks are allocated inside the client: no system call asks for one"),
    },
    row("write", "pwrite64 fsync"),
    row("read_1", "pread64"),
    row("read_10", "pread64"),
];

/// The row of that name.
pub fn find(name: &str) -> Option<&'static OpsRow> {
    OPS_ROWS.iter().find(|row| row.name == name)
}
