//! Operations as data: their kinds ([`OpKind`]), system calls without their operands ([`Call`]),
//! and the table [`OPERATIONS`]. The phases of `rbench meta`, the rows of `rbench ops` and the
//! words of mixes follow from this table.

use std::ffi::CStr;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::open::{NEW_FILE, OpenFlags};

mod calls;
mod named;
mod rows;

pub use calls::{Attribute, By, Call, RingCall};
pub use named::{NAME_ENGINES, NameEngine};
use rows::{ANY, dir, file, ops_row, tree, word};
pub use rows::{ItemKind, Need, Operation, OpsRow, SetKind, Takes, Word};

macro_rules! op_kinds {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// One kind of operation: what a phase repeats and a failure names.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
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
    /// Rename a name within its directory: `renameat`.
    Rename => "rename",
    /// Give a file a second name in its directory: `linkat`.
    Link => "link",
    /// Open a directory, read all entries, close it.
    List => "list",
    /// Create a new file, write the requested data, close it.
    Create => "create",
    /// Make a file node: `mknodat`.
    Mknod => "mknod",
    /// Open a file, read the requested data, close it.
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
    /// Deallocate blocks in a range of a file, which then reads as zeros: `fallocate` with
    /// `FALLOC_FL_PUNCH_HOLE`.
    Trim => "trim",
    /// Write a file to stable storage: `fsync`.
    Fsync => "fsync",
    /// Write data, and the attributes needed to read it, to stable storage: `fdatasync`.
    Fdatasync => "fdatasync",
    /// Write everything that the host has written to stable storage: `sync`.
    Sync => "sync",
    /// Run a user's command around a phase.
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
    /// Check that a name may be read: `faccessat`.
    Access => "access",
    /// Look up a name, with its attributes: `statx`.
    Lookup => "lookup",
    /// Read the attributes of an open file past the caches: `statx` with
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
    /// Create the entries of a directory: `mknodat` or `mkdirat` for each.
    Fill => "fill",
    /// Remove the entries of a directory: `unlinkat` for each.
    Empty => "empty",
    /// Write to an open file and sync it to stable storage: `pwrite`, `fsync`.
    WriteSync => "write-sync",
    /// Read some entries of an open directory: `getdents64`.
    Readdir => "readdir",
    /// Move the position of an open file: `lseek`.
    Seek => "lseek",
    /// Change the owner of a name: `fchownat`.
    Chown => "chown",
    /// Write to the end of an open file: `write` to a file that was opened with `O_APPEND`.
    Append => "append",
    /// All operations of a list, once: from the start of the first to the end of the last one.
    Round => "round",
    /// Any operation of a mix.
    Mixed => "mixed",
    /// Create a file with the content of another: `copy_file_range`.
    Copy => "copy",
}

impl OpKind {
    /// True if it only reads, so that this host's memory could answer.
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

/// Permissions that differ from those of every new file.
const MODE: u32 = 0o600;
/// `R_OK`
pub const READABLE: i32 = 4;
/// A time long before any run, in s since 1970.
const TIME: i64 = 1_000_000_000;
/// Number of bytes by which a truncation extends a file.
const LONGER: u64 = 4096;
/// Bytes of a reservation.
const RESERVED: u64 = 64 << 10;
/// Bytes of one synced write.
const SYNCED_WRITE: u64 = 1 << 10;
/// Room for the entries of one `getdents64` in bytes: the size that libc uses.
const ENTRIES: u64 = 32 << 10;
/// Room for the target of a link, which is the name of an item.
const TARGET: u64 = 256;
/// Room for a list of names of attributes, including those of others.
const LIST: u64 = 4096;
/// Bytes of the value of an attribute.
pub const VALUE: usize = 16;
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
const ATTRIBUTE: Attribute = Some(ATTRIBUTES[0]);
/// Entries of the directories of `dir-list-10`.
const FEW: u64 = 10;
/// Entries of the directories of `dir-list-1k`.
const MANY: u64 = 1000;
/// The directories below an item that `dir-resolve` looks up, from the top down.
pub const STEPS_DOWN: &[&str] = &["/a", "/a/b", "/a/b/c", "/a/b/c/d"];

/// Calls that set all attributes but the first.
const SET_NINE: &[Call] = &{
    let mut all = [Call::Close; ATTRIBUTES.len() - 1];
    let mut i = 0;
    while i < all.len() {
        all[i] = Call::Setxattr(By::File, Some(ATTRIBUTES[i + 1]), 0);
        i += 1;
    }
    all
};

/// Ten synced writes, one after the other.
const WRITE_TEN: &[Call] = &{
    let mut all = [Call::Fsync; 20];
    let mut i = 0;
    while i < all.len() {
        all[i] = Call::WriteAt(i as u64 / 2 * SYNCED_WRITE);
        i += 2;
    }
    all
};

/// Reserves blocks of a file without changing its length (`FALLOC_FL_KEEP_SIZE`).
const fn reserve(length: u64) -> Call {
    Call::Allocate {
        mode: 1,
        offset: 0,
        length,
    }
}

/// Opens a file with these flags, writes it, syncs it and closes it.
const fn written(flags: OpenFlags) -> [Call; 4] {
    [Call::Open(flags), Call::Write, Call::Fsync, Call::Close]
}

impl Call {
    /// `mkdirat`, mode 0775.
    pub const MKDIR: Call = Call::Mkdir(0o775);
    /// `mknodat`, mode 0664.
    pub const MKNOD: Call = Call::Mknod(NEW_FILE);
    /// The attributes that `stat` returns too (`STATX_BASIC_STATS`).
    pub const STATX_BASIC: u32 = 0x7ff;
    /// All that `statx` had at first: the time of creation too (`STATX_ALL`).
    pub const STATX_ALL: u32 = 0xfff;
    /// `statx` of a name; a symbolic link is not followed.
    pub const LOOKUP: Call = Call::Lookup(By::Link, Call::STATX_BASIC);

    /// Returns the call for a file with this many bytes of data, which it keeps: it changes the
    /// file only after them.
    pub const fn beyond(self, data: u64) -> Call {
        match self {
            Call::Truncate(by, more) => Call::Truncate(by, data.saturating_add(more)),
            Call::Allocate {
                mode,
                offset,
                length,
            } => Call::Allocate {
                mode,
                offset: data.saturating_add(offset),
                length,
            },
            other => other,
        }
    }
}

macro_rules! operations {
    ($($(#[$doc:meta])* $kind:ident => $operation:expr,)*) => {
        /// The kinds of phases, in the order in which they run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum PhaseKind { $($(#[$doc])* $kind,)* }

        /// Every operation of a phase, in the order in which they run. Rows of `rbench ops` and
        /// words of mixes have orders of their own: their first number.
        pub const OPERATIONS: &[Operation] = &[$($operation.of(PhaseKind::$kind),)*];
    };
}

use Need as N;
use OpKind as Op;
use OpenFlags as Flags;
use PhaseKind::*;

operations! {
    /// Make the directories of the tree.
    TreeCreate => tree("tree-create", "Tree creation", &[Call::MKDIR]).by_default(),
    /// Make the directories that are items.
    DirCreate => dir("dir-create", "Directory creation", &[Call::MKDIR]).by_default().row(0, "mkdir").word(Word {
        sets: &[SetKind::Directories], set: Some("dirs"),
        ..word(19, ("mkdir", "Mkdir"), Op::Mkdir, N::OwnFree, |_| Call::MKDIR)
    }),
    /// Stat each.
    DirStat => dir("dir-stat", "Directory stat", &[Call::Stat(By::Link)]).by_default().step(1),
    /// Rename each within its directory.
    DirRename => dir("dir-rename", "Directory rename", &[Call::Rename(0)]).by_default().step(2).again().row(1, "mvdir"),
    /// List each tree directory that has items.
    DirList => dir("dir-list", "Directory listing", &[Call::List]).moving(ENTRIES).by_default().step(3).word(Word {
        sets: ANY, aliases: &["readdir"], room: ENTRIES,
        ..word(23, ("list", "List"), Op::List, N::Directory, |_| Call::List)
    }),
    /// Make 10 files in each.
    DirFill10 => dir("dir-fill-10", "Filling, 10 entries", &[]).entries(FEW).undone(FEW, DirEmpty10),
    /// List each, with 10 entries.
    DirList10 => dir("dir-list-10", "Listing, 10 entries", &[Call::List])
        .moving(ENTRIES).step(5).entries(FEW).needs(&[DirFill10]).row(3, "readdir_10"),
    /// Remove these 10 files.
    DirEmpty10 => dir("dir-empty-10", "Emptying, 10 entries", &[]).op(Op::Empty).entries(FEW).needs(&[DirFill10]),
    /// Make 1000 files in each.
    DirFill1k => dir("dir-fill-1k", "Filling, 1000 entries", &[]).entries(MANY).undone(MANY, DirEmpty1k),
    /// List each, with 1000 entries.
    DirList1k => dir("dir-list-1k", "Listing, 1000 entries", &[Call::List])
        .moving(ENTRIES).step(6).entries(MANY).needs(&[DirFill1k]).row(4, "readdir_1k"),
    /// Remove these 1000 files.
    DirEmpty1k => dir("dir-empty-1k", "Emptying, 1000 entries", &[]).op(Op::Empty).entries(MANY).needs(&[DirFill1k]),
    /// Make a chain of 4 directories in each.
    DirDeepen => dir("dir-deepen", "Deepening", &[]).undone(STEPS_DOWN.len() as u64, DirFlatten),
    /// Look up the lowest of these, by a path of 5 names.
    DirResolve => dir("dir-resolve", "Path resolution", &[Call::LOOKUP])
        .step(7).needs(&[DirDeepen]).row(14, "resolve"),
    /// Remove these directories.
    DirFlatten => dir("dir-flatten", "Flattening", &[]).op(Op::Empty).needs(&[DirDeepen]),
    /// Remove each.
    DirRemove => dir("dir-remove", "Directory removal", &[Call::Rmdir])
        .by_default().step(4).row(2, "rmdir").word(Word {
        sets: ANY, set: Some("dirs"),
        ..word(20, ("rmdir", "Rmdir"), Op::Rmdir, N::OwnThere, |_| Call::Rmdir)
    }),
    /// Make the files.
    FileCreate => Operation {
        rows: [
            ops_row(6, "create", &[Call::Open(Flags::CREATE_NEW)]),
            ops_row(7, "close", &[Call::Close]),
        ],
        ..file("file-create", "File creation", &written(Flags::CREATE_NEW)).by_default().op(Op::Create)
    }.word(Word {
        form: "create [dsync]",
        ..word(0, ("create", "Create"), Op::Create, N::OwnFree, |_| Call::Open(Flags::CREATE_NEW))
    }),
    /// Open each existing file, write and close it: used if one rank has created the files of
    /// all.
    FileWrite => file("file-write", "File write", &written(Flags::WRITE_EXISTING)).op(Op::WriteFile),
    /// Stat each.
    FileStat => file("file-stat", "File stat", &[Call::Stat(By::Link)]).by_default().step(1).word(Word {
        sets: ANY,
        ..word(12, ("stat", "Stat"), Op::Stat, N::There, |_| Call::Stat(By::Link))
    }),
    /// Open, read and close each.
    FileRead => file("file-read", "File read", &[Call::Open(Flags::READ), Call::Read, Call::Close])
        .by_default().op(Op::ReadFile).step(2),
    /// Rename each within its directory.
    FileRename => file("file-rename", "File rename", &[Call::Rename(0)])
        .by_default().step(3).again().row(8, "rename").word(Word {
        sets: ANY,
        ..word(17, ("rename", "Rename"), Op::Rename, N::Move, |_| Call::Rename(0))
    }),
    /// Give each a hard link within its directory.
    FileLink => file("file-link", "Hard link creation", &[Call::Link])
        .to(".l").step(5).undone(0, LinkRemove).row(10, "link"),
    /// Remove these links.
    LinkRemove => file("link-remove", "Hard link removal", &[Call::Unlink]).step(6).beside(".l").needs(&[FileLink]),
    /// Make a node beside each.
    FileMknod => file("file-mknod", "Node creation", &[Call::MKNOD])
        .beside(".n").undone(1, NodeRemove).row(5, "mknod"),
    /// Remove these nodes.
    NodeRemove => file("node-remove", "Node removal", &[Call::Unlink]).beside(".n").needs(&[FileMknod]),
    /// Give each a symbolic link within its directory.
    FileSymlink => file("file-symlink", "Symbolic link creation", &[Call::Symlink])
        .to("").beside(".s").undone(1, SymlinkRemove).row(11, "symlink").word(Word {
        sets: &[SetKind::Links], set: Some("links"),
        ..word(21, ("symlink", "Symlink"), Op::Symlink, N::OwnFree, |_| Call::Symlink)
    }),
    /// Read the targets of these links.
    FileReadlink => file("file-readlink", "Symbolic link read", &[Call::Readlink])
        .moving(TARGET).step(7).beside(".s").needs(&[FileSymlink]).row(12, "readlink").word(Word {
        sets: &[SetKind::Links], set: Some("links"), room: ENTRIES,
        ..word(22, ("readlink", "Readlink"), Op::Readlink, N::There, |_| Call::Readlink)
    }),
    /// Remove these links.
    SymlinkRemove => file("symlink-remove", "Symbolic link removal", &[Call::Unlink])
        .step(8).beside(".s").needs(&[FileSymlink]),
    /// Look up each.
    FileLookup => file("file-lookup", "File lookup", &[Call::LOOKUP]).step(9).row(13, "lookup"),
    /// Open each, read its attributes past the caches.
    FileGetattr => file("file-getattr", "File getattr", &[Call::Getattr]).opened(Flags::READ, 0)
        .step(10).row(15, "getattr").word(word(9, ("fstat", "Fstat"), Op::Getattr, N::Open, |_| Call::Getattr)),
    /// Change the permissions of each.
    FileChmod => file("file-chmod", "File chmod", &[Call::Chmod(By::Path, MODE)])
        .step(11).again().row(16, "setattr").word(Word {
        sets: &[SetKind::Files, SetKind::Directories],
        ..word(14, ("chmod", "Chmod"), Op::Chmod, N::There, |_| Call::Chmod(By::Path, 0))
    }),
    /// Change the times of each.
    FileUtimes => file("file-utimes", "File utimes", &[Call::Utimes(By::Link, Some(TIME))])
        .step(12).again().row(17, "utimes").word(Word {
        sets: &[SetKind::Files, SetKind::Directories],
        ..word(15, ("utimes", "Utimes"), Op::Utimes, N::There, |_| Call::Utimes(By::Link, Some(0)))
    }),
    /// Open each, change its length.
    FileTruncate => file("file-truncate", "File truncate", &[Call::Truncate(By::File, LONGER)])
        .opened(Flags::WRITE_EXISTING, 0).step(13).again().row(18, "truncate").word(Word {
        takes: Takes::Length(0), form: "truncate SIZE", changes: true,
        ..word(6, ("truncate", "Truncate"), Op::Truncate, N::Open, |length| Call::Truncate(By::File, length))
    }),
    /// Ask whether each may be read.
    FileAccess => file("file-access", "File access", &[Call::Access(READABLE)]).step(14).row(19, "access").word(Word {
        sets: &[SetKind::Files, SetKind::Directories],
        ..word(13, ("access", "Access"), Op::Access, N::There, |_| Call::Access(READABLE))
    }),
    /// Open each, read the totals of the file system.
    FileStatfs => file("file-statfs", "File statfs", &[Call::Statfs(By::File)])
        .opened(Flags::READ, 0).step(15).row(25, "statfs"),
    /// Open each, set one extended attribute.
    FileSetxattr => file("file-setxattr", "Attribute set", &[Call::Setxattr(By::File, ATTRIBUTE, 0)])
        .opened(Flags::READ, VALUE as u64)
        .step(16).again().row(20, "setxattr").word(Word {
        takes: Takes::Data(64, 4096), form: "setxattr [SIZE], up to 4k",
        ..word(10, ("setxattr", "Setxattr"), Op::Setxattr, N::Open, |_| Call::Setxattr(By::File, ATTRIBUTE, 0))
    }),
    /// Open each, read this attribute. The buffer has one more byte, so that a longer value is
    /// detected.
    FileGetxattr => file("file-getxattr", "Attribute read", &[Call::Getxattr(By::File, ATTRIBUTE)])
        .opened(Flags::READ, VALUE as u64 + 1)
        .step(17).needs(&[FileSetxattr]).row(21, "getxattr").word(Word {
        room: ENTRIES,
        ..word(11, ("getxattr", "Getxattr"), Op::Getxattr, N::Open, |_| Call::Getxattr(By::File, ATTRIBUTE))
    }),
    /// Open each, list its attributes: one.
    FileListxattr1 => file("file-listxattr-1", "Attribute list, 1", &[Call::Listxattr(By::File)])
        .opened(Flags::READ, LIST).step(18).needs(&[FileSetxattr]).row(23, "listxattr_1"),
    /// Open each, set nine more.
    FileSetxattr9 => file("file-setxattr-9", "Attributes set, 9", SET_NINE).opened(Flags::READ, VALUE as u64).again(),
    /// Open each, list its attributes: ten.
    FileListxattr10 => file("file-listxattr-10", "Attribute list, 10", &[Call::Listxattr(By::File)])
        .opened(Flags::READ, LIST).step(19).needs(&[FileSetxattr, FileSetxattr9]).row(24, "listxattr_10"),
    /// Open each, remove the attribute that was set first.
    FileRemovexattr => file("file-removexattr", "Attribute removal", &[Call::Removexattr(By::File, ATTRIBUTE)])
        .opened(Flags::READ, 0)
        .step(20).needs(&[FileSetxattr]).row(22, "removexattr"),
    /// Open each, write 1 KiB at its beginning, sync it.
    FileWriteSync => file("file-write-sync", "Synced write, 1 KiB", &[Call::WriteAt(0), Call::Fsync])
        .opened(Flags::WRITE_EXISTING, SYNCED_WRITE)
        .op(Op::WriteSync).step(21).again().builds(SYNCED_WRITE).row(27, "write"),
    /// Open each, read this 1 KiB.
    FileRead1 => file("file-read-1", "Read, 1 KiB", &[Call::ReadAt(0)]).opened(Flags::READ, SYNCED_WRITE)
        .step(22).builds(SYNCED_WRITE).needs(&[FileWriteSync]).row(28, "read_1"),
    /// Open each, write 10 KiB in ten writes, each synced.
    FileBuild10 => file("file-build-10", "Building, 10 KiB", WRITE_TEN).opened(Flags::WRITE_EXISTING, SYNCED_WRITE)
        .op(Op::WriteSync).again().builds(10 * SYNCED_WRITE),
    /// Open each, read these 10 KiB.
    FileRead10 => file("file-read-10", "Read, 10 KiB", &[Call::ReadAt(0)]).opened(Flags::READ, 10 * SYNCED_WRITE)
        .step(23).builds(10 * SYNCED_WRITE).needs(&[FileBuild10]).row(29, "read_10"),
    /// Open each, reserve 64 KiB after the end of its data; its length stays.
    FileFallocate => Operation { reserves: RESERVED, ..file("file-fallocate", "File fallocate", &[reserve(RESERVED)]) }
        .opened(Flags::WRITE_EXISTING, 0).step(24).row(30, "fallocate").word(Word {
        takes: Takes::Length(1), form: "fallocate SIZE", changes: true,
        ..word(24, ("fallocate", "Fallocate"), Op::Allocate, N::Open, reserve)
    }),
    /// Copy each, which has at least 10 KiB, to a new file beside it.
    FileCopy => Operation { copies: true, ..file("file-copy", "File copy", &[Call::Copy]) }
        .to(".c").step(25).needs(&[FileBuild10]).undone(1, CopyRemove).row(31, "copy")
        .word(word(25, ("copy", "Copy"), Op::Copy, N::Copy, |_| Call::Copy)),
    /// Remove these copies.
    CopyRemove => file("copy-remove", "Copy removal", &[Call::Unlink])
        .step(26).beside(".c").needs(&[FileBuild10, FileCopy]),
    /// Remove each.
    FileRemove => file("file-remove", "File removal", &[Call::Unlink])
        .by_default().step(4).row(9, "unlink").word(Word {
        sets: ANY, aliases: &["unlink"],
        ..word(16, ("delete", "Delete"), Op::Unlink, N::OwnThere, |_| Call::Unlink)
    }),
    /// Remove the directories of the tree.
    TreeRemove => tree("tree-remove", "Tree removal", &[Call::Rmdir]).by_default(),
}

/// Words of mixes for operations without a phase.
const OTHER_WORDS: &[Word] = &[
    Word {
        form: "open [dsync] [last]",
        ..word(1, ("open", "Open"), Op::Open, N::There, |_| {
            Call::Open(Flags::READ)
        })
    },
    word(2, ("close", "Close"), Op::Close, N::Open, |_| Call::Close),
    Word {
        form: "read SIZE [random] or read whole [SIZE]",
        ..word(3, ("read", "Read"), Op::Read, N::Open, |_| Call::Read)
    },
    Word {
        form: "write SIZE [random] or write whole [SIZE]",
        ..word(4, ("write", "Write"), Op::Write, N::Open, |_| Call::Write)
    },
    Word {
        form: "append SIZE or append LEAST..MOST",
        ..word(5, ("append", "Append"), Op::Append, N::Open, |_| {
            Call::Write
        })
    },
    word(7, ("fsync", "Fsync"), Op::Fsync, N::Open, |_| Call::Fsync),
    word(
        8,
        ("fdatasync", "Fdatasync"),
        Op::Fdatasync,
        N::Open,
        |_| Call::Fdatasync,
    ),
    word(18, ("replace", "Replace"), Op::Rename, N::Over, |_| {
        Call::Rename(0)
    }),
];

/// The row of `rbench ops` without a phase.
const NEWCHUNK: OpsRow = OpsRow {
    place: 26,
    name: "newchunk",
    calls: &[],
    phase: None,
    out_of_reach: Some("chunks are allocated inside the client: no system call asks for one"),
};

/// Numbers of rows and of words.
const NUMBERS: (usize, usize) = {
    let (mut rows, mut words, mut i) = (1, OTHER_WORDS.len(), 0);
    while i < OPERATIONS.len() {
        let Operation {
            rows: [one, two],
            word,
            ..
        } = OPERATIONS[i];
        rows += one.is_some() as usize + two.is_some() as usize;
        words += word.is_some() as usize;
        i += 1;
    }
    (rows, words)
};

/// Every row of the per-operation table, in its order.
pub const OPS_ROWS: &[OpsRow] = &{
    let (mut all, mut i) = ([NEWCHUNK; NUMBERS.0], 0);
    while i < 2 * OPERATIONS.len() {
        let operation = &OPERATIONS[i / 2];
        if let Some(row) = operation.rows[i % 2] {
            all[row.place] = OpsRow {
                phase: Some(operation.kind),
                ..row
            };
        }
        i += 1;
    }
    all
};

/// Every word of mixes, in the order of messages.
pub const WORDS: &[Word] = &{
    let (mut all, mut i) = ([OTHER_WORDS[0]; NUMBERS.1], 0);
    while i < OPERATIONS.len() + OTHER_WORDS.len() {
        let word = match i < OPERATIONS.len() {
            true => OPERATIONS[i].word,
            false => Some(OTHER_WORDS[i - OPERATIONS.len()]),
        };
        if let Some(word) = word {
            all[word.place] = word;
        }
        i += 1;
    }
    all
};

impl PhaseKind {
    /// The operation of the phase.
    pub fn info(self) -> &'static Operation {
        &OPERATIONS[self as usize]
    }
}

/// The row of that name.
pub fn row(name: &str) -> Option<&'static OpsRow> {
    OPS_ROWS.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_needs_earlier_ones_and_a_later_one_undoes_it() {
        for operation in OPERATIONS {
            let kind = operation.kind;
            assert_eq!(kind.info().name, operation.name);
            assert!(
                operation.needs.iter().all(|needed| *needed < kind),
                "{kind:?}"
            );
            let undone = operation.undone_by;
            assert!(
                undone.is_none_or(|by| by > kind && by.info().needs.contains(&kind)),
                "{kind:?}"
            );
            let on_file = operation
                .timed
                .first()
                .is_some_and(|call| call.needs_open());
            assert_eq!(operation.opens_untimed(), on_file, "{kind:?}");
            // The executor of system calls opens before all others, and closes after them.
            for (place, call) in operation.timed.iter().enumerate() {
                let last = operation.timed.len() - 1;
                assert!(!matches!(call, Call::Open(_)) || place == 0, "{kind:?}");
                assert!(!matches!(call, Call::Close) || place == last, "{kind:?}");
            }
            let generates = matches!(operation.op, Op::Fill | Op::Empty);
            assert_eq!(operation.timed.is_empty(), generates, "{kind:?}");
        }
    }

    #[test]
    fn rows_and_words_have_each_a_place_of_their_own() {
        assert!(
            OPS_ROWS
                .iter()
                .enumerate()
                .all(|(place, row)| row.place == place)
        );
        assert!(
            WORDS
                .iter()
                .enumerate()
                .all(|(place, word)| word.place == place)
        );
        assert!(
            OPS_ROWS
                .iter()
                .all(|row| row.phase.is_none() == row.out_of_reach.is_some())
        );
    }
}
