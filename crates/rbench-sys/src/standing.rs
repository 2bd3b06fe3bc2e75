//! File system at a path: its mount and its free space, found without changing
//! anything.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::mountinfo::{self, MountInfo};
use crate::space::{Space, space};

/// File system below a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The nearest existing directory: the path itself, or one above it.
    pub at: PathBuf,
    /// Its mount; `None` if the kernel does not report it.
    pub mount: Option<MountInfo>,
    /// Device number: the same for directories of one file system on one host,
    /// different on each host.
    pub device: u64,
    /// Capacity of the file system; `None` if it is not reported.
    pub space: Option<Space>,
}

/// Inspects `path`, which is absolute and need not exist.
///
/// # Errors
/// The kernel's error for the nearest existing directory.
pub fn standing(path: &Path) -> io::Result<Standing> {
    let mut at = path;
    let directory = loop {
        match (std::fs::metadata(at), at.parent()) {
            (Ok(directory), _) if directory.is_dir() => break directory,
            (Ok(_), Some(above)) => at = above,
            (Err(e), Some(above)) if is_missing(&e) => at = above,
            (Err(e), _) => return Err(e),
            (Ok(_), None) => return Err(io::ErrorKind::NotADirectory.into()),
        }
    };
    Ok(Standing {
        at: at.to_owned(),
        mount: mountinfo::of(at).ok(),
        device: directory.dev(),
        space: space(at).ok(),
    })
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Target of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// A regular file of this many bytes.
    File(u64),
    /// Something else, such as a device, or unreadable.
    Other,
    /// Does not exist.
    Missing,
}

/// Target of `path`, after following symbolic links.
pub fn entry(path: &Path) -> Entry {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => Entry::File(found.len()),
        Err(e) if is_missing(&e) => Entry::Missing,
        Ok(_) | Err(_) => Entry::Other,
    }
}

/// Bytes of the regular file `path`; `None` if it is not one.
pub fn file_length(path: &Path) -> Option<u64> {
    match entry(path) {
        Entry::File(length) => Some(length),
        Entry::Other | Entry::Missing => None,
    }
}

impl MountInfo {
    /// True if the file system is, or may be, on other machines. Local ones are known
    /// by name.
    pub fn may_be_remote(&self) -> bool {
        const LOCAL: &str = "bcachefs btrfs devtmpfs erofs ext2 ext3 ext4 exfat f2fs fuseblk hugetlbfs jfs \
            nilfs2 ntfs3 overlay ramfs reiserfs rootfs squashfs tmpfs vfat xfs zfs";
        LOCAL.split_whitespace().all(|local| local != self.fs_type)
    }

    /// True if a file of N bytes takes N bytes of space, whatever its content:
    /// without compression and deduplication.
    pub fn stores_as_it_is(&self) -> bool {
        const AS_IT_IS: &[&str] = &[
            "ext2", "ext3", "ext4", "tmpfs", "ramfs", "vfat", "exfat", "xfs", "fuse.mfs",
        ];
        // MooseFS does not always report its type.
        AS_IT_IS.contains(&self.fs_type.as_str()) || self.source.starts_with("mfs#")
    }

    /// Type that hosts with the same file system have in common: all versions of NFS
    /// are one. FUSE clients do not always report their type.
    pub fn family(&self) -> &str {
        match self.fs_type.as_str() {
            "nfs4" => "nfs",
            other => other,
        }
    }

    /// True if the types permit that `other` is the same file system.
    pub fn is_of_the_type_of(&self, other: &MountInfo) -> bool {
        let (a, b) = (self.family(), other.family());
        let unnamed = |one: &str, two: &str| one == "fuse" && two.starts_with("fuse.");
        a == b || unnamed(a, b) || unnamed(b, a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(fs_type: &str) -> MountInfo {
        MountInfo {
            fs_type: fs_type.to_owned(),
            source: String::new(),
            options: Vec::new(),
            mount_point: PathBuf::from("/"),
        }
    }

    #[test]
    fn the_nearest_directory_that_is_there_is_looked_at() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let here = standing(dir.path()).expect("it is there");
        assert_eq!(here.at, dir.path());
        assert!(here.mount.is_some() && here.space.is_some());
        let file = dir.path().join("file");
        std::fs::write(&file, b"12345").expect("written");
        for below in [dir.path().join("a/b/c"), file.join("x"), file.clone()] {
            let standing = standing(&below).expect("something is above");
            assert_eq!(
                (standing.at.as_path(), standing.device),
                (dir.path(), here.device)
            );
        }
        assert_eq!(file_length(&file), Some(5));
        assert_eq!(file_length(dir.path()), None);
        assert_eq!(file_length(&dir.path().join("none")), None);
    }

    #[test]
    fn types_that_hosts_of_one_file_system_may_have_are_one() {
        let check = |a: &str, b: &str, same: bool| {
            assert_eq!(mount(a).is_of_the_type_of(&mount(b)), same, "{a} {b}");
            assert_eq!(mount(b).is_of_the_type_of(&mount(a)), same, "{b} {a}");
        };
        check("ext4", "ext4", true);
        check("nfs", "nfs4", true);
        check("fuse", "fuse.juicefs", true);
        check("fuse.mfs", "fuse.juicefs", false);
        check("ext4", "fuse.mfs", false);
        check("ext4", "xfs", false);
    }

    #[test]
    fn what_is_local_is_known_by_name() {
        for (fs_type, remote) in [("ext4", false), ("fuse.mfs", true), ("ceph", true)] {
            assert_eq!(mount(fs_type).may_be_remote(), remote, "{fs_type}");
        }
    }
}
