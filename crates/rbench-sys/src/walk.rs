//! Walking a tree: directories as a stream of entries, attributes of an entry, patterns of names.
//! No symbolic link is followed.

use std::ffi::CStr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, fstat, fstatat, lstat};

use crate::dirents::{self, Records};

/// Buffer size of one `getdents64`, as in libc.
pub const BUFFER: usize = 32 << 10;

/// Type of a directory entry, as reported by the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// Not a directory.
    Other,
    /// Not reported by the file system.
    Unknown,
}

/// Attributes of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// True for a directory.
    pub is_directory: bool,
    /// Length in bytes.
    pub size: u64,
    /// Time of modification: seconds since the epoch, and nanoseconds.
    pub modified: (i64, i64),
}

impl From<FileStat> for Attributes {
    fn from(found: FileStat) -> Attributes {
        Attributes {
            is_directory: found.st_mode & libc::S_IFMT == libc::S_IFDIR,
            size: u64::try_from(found.st_size).unwrap_or(0),
            modified: (found.st_mtime, found.st_mtime_nsec),
        }
    }
}

/// Reads the attributes of `path` and the number of its device.
///
/// # Errors
/// Like `lstat`.
pub fn attributes(path: &Path) -> Result<(Attributes, u64), Errno> {
    let status = lstat(path)?;
    Ok((status.into(), status.st_dev))
}

/// An open directory.
#[derive(Debug)]
pub struct Directory(OwnedFd);

impl Directory {
    /// Opens it. `ELOOP` or `ENOTDIR` for a symbolic link.
    ///
    /// # Errors
    /// Like `open`.
    pub fn open(path: &Path) -> Result<Directory, Errno> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        open(path, flags, Mode::empty()).map(Directory)
    }

    /// Device number of its file system.
    ///
    /// # Errors
    /// Like `fstat`.
    pub fn device(&self) -> Result<u64, Errno> {
        fstat(&self.0).map(|found| found.st_dev)
    }

    /// Reads the next entries into `buffer`, by one call. Returns their length in bytes, 0 at the
    /// end.
    ///
    /// # Errors
    /// Like `getdents64`.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
        dirents::read(self.0.as_raw_fd(), buffer).map(<[u8]>::len)
    }

    /// Reads the attributes of an entry.
    ///
    /// # Errors
    /// Like `fstatat`.
    pub fn stat(&self, name: &CStr) -> Result<Attributes, Errno> {
        fstatat(&self.0, name, AtFlags::AT_SYMLINK_NOFOLLOW).map(Attributes::from)
    }
}

/// Entries in the bytes that [`Directory::read`] has read, without `.` and `..`. An incomplete
/// entry is `EIO`, and the last one.
pub fn entries(bytes: &[u8]) -> impl Iterator<Item = Result<(&CStr, Kind), Errno>> {
    Records(bytes)
        .filter(|record| record.as_ref().map_or(true, |record| !record.is_dots()))
        .map(|record| {
            let record = record?;
            let kind = match record.kind {
                libc::DT_DIR => Kind::Directory,
                libc::DT_UNKNOWN => Kind::Unknown,
                _ => Kind::Other,
            };
            Ok((record.name()?, kind))
        })
}

/// True if a name matches a pattern with `*`, `?` and `[...]`, by the C library like in find(1).
pub fn fits(pattern: &CStr, name: &CStr) -> bool {
    // SAFETY: both are zero-terminated strings, and are only read.
    unsafe { libc::fnmatch(pattern.as_ptr(), name.as_ptr(), 0) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_find() {
        let check = |pattern: &CStr, name: &CStr, expect| {
            assert_eq!(fits(pattern, name), expect, "{pattern:?} {name:?}");
        };
        check(c"*01*", c"file.mdtest.3.4012", true);
        check(c"*01*", c"file.mdtest.3.4102", false);
        check(c"*", c".hidden", true);
        check(c"[!a]?", c"bc", true);
        check(c"a\\*", c"a*", true);
        check(c"a\\*", c"ab", false);
    }

    #[test]
    fn a_directory_is_read_to_its_end_and_links_are_not_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("file"), "four").expect("written");
        std::os::unix::fs::symlink(dir.path(), dir.path().join("link")).expect("linked");
        let mut open = Directory::open(dir.path()).expect("opened");
        let mut buffer = vec![0; BUFFER];
        let mut names = Vec::new();
        loop {
            let bytes = open.read(&mut buffer).expect("read");
            if bytes == 0 {
                break;
            }
            for entry in entries(&buffer[..bytes]) {
                let (name, kind) = entry.expect("an entry");
                assert_ne!(kind, Kind::Directory);
                let attributes = open.stat(name).expect("there");
                names.push((name.to_string_lossy().into_owned(), attributes.size));
            }
        }
        names.sort();
        assert_eq!(names[0], ("file".to_owned(), 4));
        assert_eq!(names.len(), 2);
        assert!(Directory::open(&dir.path().join("link")).is_err());
    }
}
