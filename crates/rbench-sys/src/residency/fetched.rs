//! Number of bytes that this process's reads fetched from storage.

use std::fs;

use crate::mountinfo::MountInfo;
use crate::proc;

/// Bytes fetched from storage until now; take the difference of two.
///
/// On some file systems, reads of this process fetch nothing from a disk of this host
/// themselves: those served by another process (FUSE), in memory (tmpfs) or on
/// another host. The value is `None` there, as a zero would be taken for an answer
/// from memory. [`crate::residency::RequestCounter`] may know more there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fetched {
    /// `read_bytes` of `/proc/self/io`: bytes requested from block devices because
    /// this process read (or read ahead), with all its threads, including programs
    /// and libraries. Measured on Linux 6.18: on ext4 the bytes of the first read,
    /// and 0 for one that the page cache answers. On tmpfs and FUSE always 0, so it
    /// is not given for them.
    pub process_bytes: Option<u64>,
}

/// Bytes fetched until now, as far as that is meaningful for `mount`.
pub fn fetched(mount: &MountInfo) -> Fetched {
    if !lies_on_a_disk_of_this_host(mount) {
        return Fetched::default();
    }
    Fetched {
        process_bytes: fs::read_to_string("/proc/self/io")
            .ok()
            .and_then(|text| read_bytes(&text)),
    }
}

/// True if the kernel of this host reads the mount's data from a block device.
fn lies_on_a_disk_of_this_host(mount: &MountInfo) -> bool {
    // fuseblk names a device, too, but another process reads it.
    let served = mount.fs_type.starts_with("fuse");
    !served && mount.source.starts_with("/dev/")
}

fn read_bytes(io: &str) -> Option<u64> {
    proc::field(io, "read_bytes:")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        assert_eq!(read_bytes("rchar: 9\nread_bytes: 4096\n"), Some(4096));
        assert_eq!(read_bytes("rchar: 9\n"), None);
    }

    #[test]
    fn file_systems_without_a_disk_of_their_own_say_nothing() {
        let mount = |fs_type: &str, source: &str| MountInfo {
            fs_type: fs_type.to_owned(),
            source: source.to_owned(),
            options: Vec::new(),
            mount_point: "/".into(),
        };
        assert_eq!(fetched(&mount("fuse.x", "/dev/null")), Fetched::default());
        assert_eq!(fetched(&mount("fuseblk", "/dev/null")), Fetched::default());
        assert_eq!(fetched(&mount("tmpfs", "tmpfs")), Fetched::default());
        assert_eq!(fetched(&mount("nfs4", "host:/a")), Fetched::default());
        assert!(fetched(&mount("ext4", "/dev/null")).process_bytes.is_some());
    }
}
