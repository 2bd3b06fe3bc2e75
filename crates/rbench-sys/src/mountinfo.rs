//! Mounts of this thread, from `/proc/thread-self/mountinfo` (proc(5)).

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::sys::stat::Mode;
use rbench_core::mountinfo::{Mount, mounts};
use serde::{Deserialize, Serialize};

use crate::files::known;
use crate::proc::field;

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountInfo {
    /// Its type: `ext4`, `fuse.juicefs` …
    pub fs_type: String,
    /// Its source: a device, `host:/export`, a name …
    pub source: String,
    /// `ro` or `rw` as in effect, then the options of the mount, then those of the file
    /// system.
    pub options: Vec<String>,
    /// Directory at which it is mounted.
    #[serde(with = "rbench_core::message::path")]
    pub mount_point: PathBuf,
}

impl From<Mount> for MountInfo {
    fn from(mount: Mount) -> MountInfo {
        MountInfo {
            fs_type: mount.fs_type,
            source: mount.source,
            options: mount.options,
            mount_point: mount.mount_point,
        }
    }
}

/// True if a mount of that type and source is still at its place, by the kernel's table: the
/// file system itself is not asked.
pub fn is_mounted(mount: &MountInfo) -> io::Result<bool> {
    let same = |found: Mount| {
        (found.mount_point == mount.mount_point)
            && (found.fs_type == mount.fs_type)
            && found.source == mount.source
    };
    Ok(mounts(&table()?).any(same))
}

/// The mount of `path`: the one with the longest mount point, and of several at the same
/// place the last. `path` is absolute, without symbolic links.
fn find(table: &[u8], path: &Path) -> Option<MountInfo> {
    mounts(table)
        .filter(|mount| path.starts_with(&mount.mount_point))
        // The last of equally long ones: the topmost.
        .max_by_key(|mount| mount.mount_point.components().count())
        .map(MountInfo::from)
}

/// The mount of `path`. If the kernel reports its number, that is used, as it finds mounts
/// hidden below others.
pub fn of(path: &Path) -> io::Result<MountInfo> {
    let table = table()?;
    let file = open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?;
    let id = mount_id(&file)?;
    let mount_of_id = mounts(&table).find(|mount| mount.id == id);
    match mount_of_id {
        Some(mount) => Ok(mount.into()),
        None => find(&table, &fs::canonicalize(path)?).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("no mount is known for {}", path.display()),
            )
        }),
    }
}

/// The table of this thread, which may have its own mounts and open files.
fn table() -> io::Result<Vec<u8>> {
    fs::read("/proc/thread-self/mountinfo")
}

/// The number of the mount through which `file` was opened. Unlike the device number it
/// distinguishes bind mounts of the same file system.
pub fn mount_id(file: impl AsFd) -> io::Result<u64> {
    let fd = file.as_fd();
    let path = format!("/proc/thread-self/fdinfo/{}", fd.as_raw_fd());
    let facts = match fs::read_to_string(&path) {
        // A bare root directory lacks /proc.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return by_statx(fd),
        facts => facts?,
    };
    let number = field(&facts, "mnt_id:").and_then(|number| number.parse().ok());
    number.ok_or_else(|| io::Error::other(format!("{path} names no mount")))
}

/// The mount's number from the kernel (Linux 5.8 and later), without a request to the file system.
fn by_statx(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let attributes = known(fd, libc::STATX_MNT_ID)?;
    match attributes.stx_mask & libc::STATX_MNT_ID {
        0 => Err(io::Error::other(
            "the kernel names no mount, and /proc is not mounted",
        )),
        _ => Ok(attributes.stx_mnt_id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
23 22 0:21 / /proc rw,nosuid - proc proc rw
24 22 0:40 / /mnt/jfs rw,relatime shared:7 master:2 - fuse.juicefs JuiceFS:prod\\040one rw,user_id=0,default_permissions,allow_other
25 22 0:41 / /mnt/jfs rw - tmpfs over rw
26 22 0:42 /sub /mnt/with\\040blank\\134\\011\\012end ro,noatime - nfs4 host:/export rw,vers=4.2
27 22 0:43 / /mnt/jfs2 rw - tmpfs empty-options 
28 22 0:44 / /srv rw,noatime - xfs /dev/vdb ro,noatime
broken line
29 x 0:44
";

    fn check(path: &str, mount_point: &str, fs_type: &str, source: &str, options: &str) {
        let mount = find(TABLE.as_bytes(), Path::new(path)).expect("everything lies on /");
        assert_eq!(mount.mount_point, Path::new(mount_point), "{path}");
        assert_eq!(mount.fs_type, fs_type, "{path}");
        assert_eq!(mount.source, source, "{path}");
        assert_eq!(mount.options.join(","), options, "{path}");
    }

    #[test]
    fn the_mount_of_a_file_is_the_same_without_proc() {
        for path in ["/", "/proc", "/dev"] {
            let file = fs::File::open(path).expect("it exists");
            let id = mount_id(&file).expect("proc(5)");
            assert_eq!(by_statx(file.as_fd()).expect("statx"), id, "{path}");
        }
    }

    #[test]
    fn the_longest_mount_point_counts_component_by_component() {
        check("/", "/", "ext4", "/dev/vda", "rw,relatime,discard");
        check("/mnt/jf", "/", "ext4", "/dev/vda", "rw,relatime,discard");
        check("/proc/self", "/proc", "proc", "proc", "rw,nosuid");
        check("/mnt/jfs2/a", "/mnt/jfs2", "tmpfs", "empty-options", "rw");
    }

    #[test]
    fn the_last_of_stacked_mounts_is_on_top() {
        check("/mnt/jfs/a/b", "/mnt/jfs", "tmpfs", "over", "rw");
        let lower: Vec<&str> = TABLE.lines().filter(|l| !l.starts_with("25 ")).collect();
        let mount = find(lower.join("\n").as_bytes(), Path::new("/mnt/jfs")).expect("a mount");
        assert_eq!(mount.fs_type, "fuse.juicefs");
        assert_eq!(mount.source, "JuiceFS:prod one");
        assert_eq!(
            mount.options.join(","),
            "rw,relatime,user_id=0,default_permissions,allow_other"
        );
    }

    #[test]
    fn octal_escapes_are_undone() {
        let expected_point = "/mnt/with blank\\\t\nend";
        let inside = format!("{expected_point}/x");
        check(
            &inside,
            expected_point,
            "nfs4",
            "host:/export",
            "ro,noatime,vers=4.2",
        );
    }

    #[test]
    fn nothing_is_found_in_an_empty_table() {
        assert_eq!(find(b"", Path::new("/")), None);
    }

    #[test]
    fn the_running_system_agrees_with_the_kernel() {
        let proc = of(Path::new("/proc/self")).expect("/proc is mounted");
        assert_eq!(proc.fs_type, "proc");
        assert_eq!(proc.mount_point, Path::new("/proc"));

        // Both ways lead to the same mount if none is hidden.
        let here = fs::canonicalize(std::env::temp_dir()).expect("it exists");
        assert_eq!(
            Some(of(&here).expect("it lies on a mount")),
            find(&table().expect("/proc is mounted"), &here)
        );
    }
}
