//! Requests that reach a FUSE file system, as seen by an observer.

use std::sync::Arc;

use crate::units::Nanos;

/// Kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
}

/// Attributes of an inode in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub ino: u64,
    /// Its kind; `None` for kinds that are not replayed.
    pub kind: Option<Kind>,
    /// Its size in bytes.
    pub size: u64,
}

/// A request with its reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Line of the trace.
    pub line: u64,
    /// Time of the request.
    pub at: Nanos,
    /// Its duration.
    pub took: Nanos,
    /// The process that caused it.
    pub process: u64,
    /// The returned length or 0, or the errno of a failure.
    pub result: Result<u64, i32>,
    /// The inode in the reply.
    pub found: Option<Entry>,
    /// The request itself.
    pub what: What,
}

/// A name in a directory.
pub type Place = (u64, Arc<[u8]>);

/// A request to a FUSE file system. Inodes come first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Looks up a name.
    Lookup(Place),
    /// Reads attributes.
    Getattr(u64),
    /// Changes attributes: permissions, owner and group, length, times.
    Setattr(u64, Changes),
    /// Creates a node: its type.
    Mknod(Place, u32),
    /// Creates a directory.
    Mkdir(Place, u32),
    /// Creates a file, which is then open: permissions, flags, handle.
    Create(Place, u32, i32, Option<u64>),
    /// Creates a symbolic link: its target.
    Symlink(Place, Arc<[u8]>),
    /// Creates another name.
    Link(u64, Place),
    /// Removes a name.
    Unlink(Place),
    /// Removes a directory.
    Rmdir(Place),
    /// Renames a name: flags.
    Rename(Place, Place, u32),
    /// Opens a file: flags, handle.
    Open(u64, i32, Option<u64>),
    /// Opens a directory: handle.
    Opendir(u64, Option<u64>),
    /// Reads: handle, offset, bytes.
    Read(u64, Option<u64>, u64, u64),
    /// Writes: handle, offset, bytes, and the data if the trace has it.
    Write(u64, Option<u64>, u64, u64, Option<Arc<[u8]>>),
    /// Reads entries of a directory: handle, room.
    Readdir(u64, Option<u64>, u64),
    /// Closes a descriptor: handle.
    Flush(u64, Option<u64>),
    /// Closes the last descriptor: handle.
    Release(u64, Option<u64>),
    /// Syncs a file: handle, true for data only.
    Fsync(u64, Option<u64>, bool),
    /// Reserves or deallocates blocks: handle, mode, offset, bytes.
    Fallocate(u64, Option<u64>, i32, u64, u64),
    /// Reads the target of a link.
    Readlink(u64),
    /// Checks access: `R_OK` and so on.
    Access(u64, i32),
    /// Reads the totals of the file system.
    Statfs(u64),
    /// Sets an attribute: name, bytes of the value, flags.
    Setxattr(u64, Arc<[u8]>, u64, i32),
    /// Reads an attribute: name, room.
    Getxattr(u64, Arc<[u8]>, u64),
    /// Lists the attributes: room.
    Listxattr(u64, u64),
    /// Removes an attribute: name.
    Removexattr(u64, Arc<[u8]>),
    /// Another request, which is not replayed: the reason.
    Other(&'static str),
}

/// Attributes that `setattr` changes.
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
    /// True if times change.
    pub times: bool,
}
