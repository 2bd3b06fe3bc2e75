//! Memory that can hold data read on this host.

use std::fs;
use std::path::Path;

use rbench_core::Bytes;

/// The memory of this host or, if smaller, the limit of a control group for this
/// process and its page cache. `None` if the kernel does not report it.
pub fn memory() -> Option<Bytes> {
    let all = total(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let unified = group_of(&groups, "").map(|g| lowest("/sys/fs/cgroup", g, "memory.max"));
    let single = group_of(&groups, "memory")
        .map(|group| lowest("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
    let limits = [unified, single].into_iter().flatten().flatten();
    Some(Bytes(limits.fold(all, u64::min)))
}

/// `MemTotal` in bytes.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The lowest of the numbers in `file` of `group` and of its parent groups, below
/// `root`; `max` is not a number.
fn lowest(root: &str, group: &str, file: &str) -> Option<u64> {
    let inside = Path::new(group.trim_start_matches('/'));
    let groups = inside.ancestors().map(|group| Path::new(root).join(group));
    let number = |group: std::path::PathBuf| -> Option<u64> {
        let text = fs::read_to_string(group.join(file)).ok()?;
        text.trim().parse().ok()
    };
    groups.filter_map(number).min()
}

/// The group of `controller` (empty for version 2), from the lines of
/// `/proc/self/cgroup`.
fn group_of<'t>(groups: &'t str, controller: &str) -> Option<&'t str> {
    groups.lines().find_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        controllers
            .split(',')
            .any(|name| name == controller)
            .then_some(group)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_in_kibibytes() {
        assert_eq!(total("MemTotal:  2048 kB\nMemFree: 1 kB\n"), Some(2 << 20));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        let here = memory().expect("/proc is mounted");
        assert!(here.0 > 1 << 20, "{here}");
    }

    #[test]
    fn the_tightest_group_counts() {
        let root = tempfile::tempdir().expect("a directory");
        let put = |group: &str, text: &str| {
            let folder = root.path().join(group);
            std::fs::create_dir_all(&folder).expect("new");
            std::fs::write(folder.join("memory.max"), text).expect("room");
        };
        put("a/b/c", "max\n");
        put("a/b", "4096\n");
        put("a", "8192\n");
        let root = root.path().to_str().expect("text");
        let of = |group| lowest(root, group, "memory.max");
        assert_eq!(of("/a/b/c"), Some(4096));
        assert_eq!(of("/a"), Some(8192));
        assert_eq!(of("/"), None);
        assert_eq!(of("/missing"), None);
    }

    #[test]
    fn the_group_is_found_in_both_versions() {
        let mixed = "7:blkio,x:/a:b\n4:memory:/\n0::/user/me\n";
        assert_eq!(group_of(mixed, "blkio"), Some("/a:b"));
        assert_eq!(group_of(mixed, "memory"), Some("/"));
        assert_eq!(group_of(mixed, ""), Some("/user/me"));
        assert_eq!(group_of(mixed, "cpu"), None);
    }
}
