//! Requests that reach a FUSE file system, as whoever looks on hears of them.

use std::sync::Arc;

use crate::units::Nanos;

/// What kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
}

/// What a reply tells of an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub ino: u64,
    /// What it is; `None`: something that is not replayed.
    pub kind: Option<Kind>,
    /// Bytes.
    pub size: u64,
}

/// A request that has been answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The line that it stands in.
    pub line: u64,
    /// When it came.
    pub at: Nanos,
    /// How long it took.
    pub took: Nanos,
    /// Who caused it.
    pub process: u64,
    /// The errno of what failed; else what it returned, as a length or 0.
    pub result: Result<u64, i32>,
    /// What of an inode the reply says.
    pub found: Option<Entry>,
    /// What.
    pub what: What,
}

/// A name in a directory.
pub type Place = (u64, Arc<[u8]>);

/// What is asked of a FUSE file system. Inodes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Of a name.
    Lookup(Place),
    /// Attributes.
    Getattr(u64),
    /// Attributes are changed: permissions, owner and group, length, times.
    Setattr(u64, Changes),
    /// A node; with its type.
    Mknod(Place, u32),
    /// A directory.
    Mkdir(Place, u32),
    /// A file, which is open then: permissions, flags, handle.
    Create(Place, u32, i32, Option<u64>),
    /// A symbolic link: its target.
    Symlink(Place, Arc<[u8]>),
    /// A further name.
    Link(u64, Place),
    /// A name goes.
    Unlink(Place),
    /// A directory goes.
    Rmdir(Place),
    /// A name changes: flags.
    Rename(Place, Place, u32),
    /// A file: flags, handle.
    Open(u64, i32, Option<u64>),
    /// A directory: handle.
    Opendir(u64, Option<u64>),
    /// Handle, offset, bytes.
    Read(u64, Option<u64>, u64, u64),
    /// Handle, offset, bytes; and the data, where there is any.
    Write(u64, Option<u64>, u64, u64, Option<Arc<[u8]>>),
    /// Handle, room.
    Readdir(u64, Option<u64>, u64),
    /// A descriptor is closed: handle.
    Flush(u64, Option<u64>),
    /// The last descriptor is gone: handle.
    Release(u64, Option<u64>),
    /// Handle; whether of data only.
    Fsync(u64, Option<u64>, bool),
    /// Handle, mode, offset, bytes.
    Fallocate(u64, Option<u64>, i32, u64, u64),
    /// The target of a link.
    Readlink(u64),
    /// `R_OK` and so on.
    Access(u64, i32),
    /// Totals.
    Statfs(u64),
    /// Name, bytes of the value, flags.
    Setxattr(u64, Arc<[u8]>, u64, i32),
    /// Name, room.
    Getxattr(u64, Arc<[u8]>, u64),
    /// Room.
    Listxattr(u64, u64),
    /// Name.
    Removexattr(u64, Arc<[u8]>),
    /// Something that is not replayed, and why.
    Other(&'static str),
}

/// What `setattr` changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes {
    /// Permissions.
    pub mode: Option<u32>,
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// The length.
    pub size: Option<u64>,
    /// Times.
    pub times: bool,
}
