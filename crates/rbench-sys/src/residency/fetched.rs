//! How many bytes this process's reads made the storage deliver.

use std::fs;

use crate::mountinfo::MountInfo;

/// Bytes that came from the storage so far; take the difference of two.
///
/// Where the file system is served by another process (FUSE), lies in memory
/// (tmpfs) or at another host, reads of this process fetch nothing from a disk
/// of this host by themselves: both are `None`, as zeros would be taken for
/// "memory answered". [`crate::residency::RequestCounter`] may know more there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fetched {
    /// `read_bytes` of `/proc/self/io`: what the kernel asked block devices for
    /// because this process read (or read ahead), all its threads together,
    /// programs and libraries included. Measured on Linux 6.18: on ext4 the
    /// bytes of the first read and nothing for one that the page cache answers;
    /// on tmpfs and FUSE always 0, which is why it is not given for them.
    pub process_bytes: Option<u64>,
    /// What the control group of this process, of which others may be members,
    /// has read from all block devices: `rbytes` of `io.stat` (version 2) or
    /// `Read` of `blkio.throttle.io_service_bytes` (version 1). `None` in the
    /// root group, which counts for the whole host, and where there is none.
    pub cgroup_bytes: Option<u64>,
}

impl Fetched {
    /// What came since `earlier`; `None` for what either does not know.
    pub fn since(self, earlier: Fetched) -> Fetched {
        let Fetched {
            process_bytes,
            cgroup_bytes,
        } = earlier;
        let between = |now: Option<u64>, then| Some(now?.saturating_sub(then?));
        Fetched {
            process_bytes: between(self.process_bytes, process_bytes),
            cgroup_bytes: between(self.cgroup_bytes, cgroup_bytes),
        }
    }
}

/// What has been fetched up to now, as far as that says something of `mount`.
pub fn fetched(mount: &MountInfo) -> Fetched {
    if !lies_on_a_disk_of_this_host(mount) {
        return Fetched::default();
    }
    Fetched {
        process_bytes: fs::read_to_string("/proc/self/io")
            .ok()
            .and_then(|text| read_bytes(&text)),
        cgroup_bytes: cgroup_bytes(),
    }
}

/// Whether the kernel of this host reads the mount's data from a block device.
fn lies_on_a_disk_of_this_host(mount: &MountInfo) -> bool {
    // fuseblk names a device too, but another process reads it.
    let served = mount.fs_type.starts_with("fuse");
    !served && mount.source.starts_with("/dev/")
}

fn read_bytes(io: &str) -> Option<u64> {
    let line = io.lines().find_map(|l| l.strip_prefix("read_bytes:"))?;
    line.trim().parse().ok()
}

fn cgroup_bytes() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let of = |controller| group_of(&groups, controller).filter(|group| *group != "/");
    if let Some(group) = of("") {
        let file = format!("/sys/fs/cgroup{group}/io.stat");
        if let Some(bytes) = fs::read_to_string(file).ok().and_then(|t| rbytes(&t)) {
            return Some(bytes);
        }
    }
    let group = of("blkio")?;
    let file = format!("/sys/fs/cgroup/blkio{group}/blkio.throttle.io_service_bytes");
    fs::read_to_string(file).ok().and_then(|t| reads(&t))
}

/// The group of `controller` (version 2: the empty name) by the lines of
/// `/proc/self/cgroup`.
pub(super) fn group_of<'t>(groups: &'t str, controller: &str) -> Option<&'t str> {
    groups.lines().find_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        controllers
            .split(',')
            .any(|name| name == controller)
            .then_some(group)
    })
}

/// The sum over the devices of `8:0 rbytes=180224 wbytes=0 …`.
fn rbytes(stat: &str) -> Option<u64> {
    sum(stat.lines().flat_map(|line| {
        line.split(' ')
            .filter_map(|word| word.strip_prefix("rbytes="))
    }))
}

/// The sum over the devices of `8:0 Read 180224`.
fn reads(service: &str) -> Option<u64> {
    sum(service.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        (words.next() == Some("Read")).then(|| words.next())?
    }))
}

/// `None` when there is nothing to add up, or something that is no number.
fn sum<'t>(numbers: impl Iterator<Item = &'t str>) -> Option<u64> {
    let all: Vec<u64> = numbers.map(|n| n.parse().ok()).collect::<Option<_>>()?;
    (!all.is_empty()).then(|| all.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        assert_eq!(read_bytes("rchar: 9\nread_bytes: 4096\n"), Some(4096));
        assert_eq!(read_bytes("rchar: 9\n"), None);
        let stat = "8:0 rbytes=100 wbytes=5 rios=1\n8:16 rbytes=11 wbytes=0\n";
        assert_eq!(rbytes(stat), Some(111));
        assert_eq!(rbytes(""), None);
        assert_eq!(rbytes("8:0 rbytes=many\n"), None);
        let service = "8:0 Read 100\n8:0 Write 7\n8:16 Read 1\nTotal 108\n";
        assert_eq!(reads(service), Some(101));
    }

    #[test]
    fn the_group_is_found_in_both_versions() {
        let mixed = "7:blkio,x:/a:b\n4:memory:/\n0::/user/me\n";
        assert_eq!(group_of(mixed, "blkio"), Some("/a:b"));
        assert_eq!(group_of(mixed, "memory"), Some("/"));
        assert_eq!(group_of(mixed, ""), Some("/user/me"));
        assert_eq!(group_of(mixed, "cpu"), None);
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

    #[test]
    fn only_what_both_know_has_a_difference() {
        let at = |process_bytes, cgroup_bytes| Fetched {
            process_bytes,
            cgroup_bytes,
        };
        let (now, then) = (at(Some(30), Some(5)), at(Some(10), None));
        assert_eq!(now.since(then), at(Some(20), None));
    }
}
