//! What a directory stands on, found without changing anything: which file
//! system is mounted there, and how much room it has.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::mountinfo::{self, MountInfo};
use crate::space::{Space, space};

/// What lies below a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The nearest directory that is there: the path itself, or one above it.
    pub at: PathBuf,
    /// What is mounted there; `None` where the kernel does not tell.
    pub mount: Option<MountInfo>,
    /// Its device number: the same for directories of one file system of one
    /// host, and different on each host.
    pub device: u64,
    /// What the file system holds; `None` where it does not tell.
    pub space: Option<Space>,
}

/// Looks at `path`, which is absolute; it need not be there.
///
/// # Errors
/// What the kernel said of the nearest directory that is there.
pub fn standing(path: &Path) -> io::Result<Standing> {
    let mut at = path;
    let found = loop {
        match (std::fs::metadata(at), at.parent()) {
            (Ok(found), _) if found.is_dir() => break found,
            (Ok(_), Some(above)) => at = above,
            (Err(e), Some(above)) if is_missing(&e) => at = above,
            (Err(e), _) => return Err(e),
            (Ok(_), None) => return Err(io::ErrorKind::NotADirectory.into()),
        }
    };
    Ok(Standing {
        at: at.to_owned(),
        mount: mountinfo::of(at).ok(),
        device: found.dev(),
        space: space(at).ok(),
    })
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// A regular file of so many bytes.
    File(u64),
    /// Something else, such as a device, or what cannot be looked at.
    Other,
    /// Nothing.
    Missing,
}

/// What `path` leads to, at the end of symbolic links.
pub fn entry(path: &Path) -> Entry {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => Entry::File(found.len()),
        Err(e) if is_missing(&e) => Entry::Missing,
        Ok(_) | Err(_) => Entry::Other,
    }
}

/// Bytes of the regular file `path`; `None` when there is none.
pub fn file_length(path: &Path) -> Option<u64> {
    match entry(path) {
        Entry::File(length) => Some(length),
        Entry::Other | Entry::Missing => None,
    }
}

impl MountInfo {
    /// Whether the file system lies on other machines, or may: what is local
    /// is known by its name.
    pub fn may_be_remote(&self) -> bool {
        const LOCAL: &[&str] = &[
            "bcachefs",
            "btrfs",
            "devtmpfs",
            "erofs",
            "ext2",
            "ext3",
            "ext4",
            "exfat",
            "f2fs",
            "fuseblk",
            "hugetlbfs",
            "jfs",
            "nilfs2",
            "ntfs3",
            "overlay",
            "ramfs",
            "reiserfs",
            "rootfs",
            "squashfs",
            "tmpfs",
            "vfat",
            "xfs",
            "zfs",
        ];
        !LOCAL.contains(&self.fs_type.as_str())
    }

    /// Whether a file of so many bytes takes as many of its room, whatever is
    /// in it: neither compressed nor shared with others.
    pub fn stores_as_it_is(&self) -> bool {
        const AS_IT_IS: &[&str] = &[
            "ext2", "ext3", "ext4", "tmpfs", "ramfs", "vfat", "exfat", "xfs", "fuse.mfs",
        ];
        // MooseFS does not always tell its type.
        AS_IT_IS.contains(&self.fs_type.as_str()) || self.source.starts_with("mfs#")
    }

    /// Its type as far as hosts with the same file system have it in common:
    /// versions of NFS are one, and FUSE clients do not always tell theirs.
    pub fn family(&self) -> &str {
        match self.fs_type.as_str() {
            "nfs4" => "nfs",
            other => other,
        }
    }

    /// Whether `other` can be the same file system as far as the types tell.
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
            let found = standing(&below).expect("something is above");
            assert_eq!(
                (found.at.as_path(), found.device),
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
