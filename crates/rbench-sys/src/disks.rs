//! Block devices of files, and the kernel's counters of devices and processors. It only reads
//! /proc and /sys, and stats files without opening them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rbench_core::machine::{CpuIdle, DiskUse};

use crate::in_use::sysfs;

/// A block device.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Disk {
    name: String,
    /// Its directory below /sys.
    folder: PathBuf,
    /// Names of the devices that it consists of.
    parts: Vec<String>,
}

/// Block devices observed from an instant on.
#[derive(Debug)]
pub struct DiskWatch {
    begun: Instant,
    disks: Vec<(Disk, DiskUse)>,
}

impl DiskWatch {
    /// Starts with the devices of `paths`, and those that these consist of. Each path counts
    /// by its file system, or is itself a device. A missing path counts as its directory, a
    /// partition as its device. Some file systems have no device.
    pub fn begin<'p>(paths: impl IntoIterator<Item = &'p Path>) -> DiskWatch {
        let mut numbers: Vec<u64> = Vec::new();
        for number in paths.into_iter().filter_map(device_of) {
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        let mut disks = Vec::new();
        for number in numbers {
            if let Ok(folder) = fs::canonicalize(sysfs(number)) {
                add(&mut disks, folder);
            }
        }
        let counted = disks.into_iter().filter_map(|disk| {
            let counts = counts(&disk.folder)?;
            Some((disk, counts))
        });
        let disks = counted.collect();
        DiskWatch {
            begun: Instant::now(),
            disks,
        }
    }

    /// Activity of the devices since then.
    pub fn end(self) -> Vec<DiskUse> {
        let span_ms = self.begun.elapsed().as_millis() as u64;
        let since = |(disk, before): (Disk, DiskUse)| {
            let now = counts(&disk.folder)?;
            let less = |now: u64, before: u64| now.saturating_sub(before);
            let both =
                |now: [u64; 2], before: [u64; 2]| [0, 1].map(|way| less(now[way], before[way]));
            Some(DiskUse {
                name: disk.name,
                ios: both(now.ios, before.ios),
                sectors: both(now.sectors, before.sectors),
                merges: both(now.merges, before.merges),
                ticks_ms: both(now.ticks_ms, before.ticks_ms),
                in_queue_ms: less(now.in_queue_ms, before.in_queue_ms),
                busy_ms: less(now.busy_ms, before.busy_ms),
                span_ms,
                parts: disk.parts,
            })
        };
        self.disks.into_iter().filter_map(since).collect()
    }
}

/// The number of a path's device, or of the path if it is a device.
fn device_of(path: &Path) -> Option<u64> {
    let metadata = path.symlink_metadata();
    let metadata = metadata.or_else(|_| path.parent().unwrap_or(Path::new("/")).metadata());
    let metadata = metadata.ok()?;
    Some(match metadata.file_type() {
        kind if kind.is_block_device() || kind.is_char_device() => metadata.rdev(),
        _ => metadata.dev(),
    })
}

/// Adds the device of this directory, then those that it consists of.
fn add(disks: &mut Vec<Disk>, folder: PathBuf) {
    let Some((whole, name)) = whole(&folder) else {
        return;
    };
    if disks.iter().any(|known| known.name == name) {
        return;
    }
    let entries = fs::read_dir(whole.join("slaves")).into_iter().flatten();
    let below = entries.flatten().map(|entry| entry.path());
    let below: Vec<PathBuf> = below
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect();
    let names = below
        .iter()
        .filter_map(|folder| Some(self::whole(folder)?.1));
    let mut parts: Vec<String> = names.collect();
    parts.sort();
    parts.dedup();
    disks.push(Disk {
        name,
        folder: whole,
        parts,
    });
    below.into_iter().for_each(|folder| add(disks, folder));
}

/// The directory of the device itself, where `folder` may be that of a partition, and its name.
fn whole(folder: &Path) -> Option<(PathBuf, String)> {
    let whole = match folder.join("partition").exists() {
        true => folder.parent().unwrap_or(folder),
        false => folder,
    };
    let name = whole.file_name()?.to_string_lossy().into_owned();
    Some((whole.to_owned(), name))
}

/// The kernel's counters of the device of this directory; the rest is empty.
fn counts(folder: &Path) -> Option<DiskUse> {
    read_counts(&fs::read_to_string(folder.join("stat")).ok()?)
}

/// Parses a device's file `stat`: requests, merges, sectors and ms of reads, the same of
/// writes, requests in flight, ms with any, ms of all.
fn read_counts(text: &str) -> Option<DiskUse> {
    let fields: Vec<u64> = text
        .split_whitespace()
        .take(11)
        .map(|field| field.parse().ok())
        .collect::<Option<_>>()?;
    let [
        reads,
        read_merges,
        sectors_read,
        read_ms,
        writes,
        write_merges,
        sectors_written,
        write_ms,
        _,
        busy_ms,
        in_queue_ms,
    ] = *fields.as_array()?;
    Some(DiskUse {
        ios: [reads, writes],
        sectors: [sectors_read, sectors_written],
        merges: [read_merges, write_merges],
        ticks_ms: [read_ms, write_ms],
        busy_ms,
        in_queue_ms,
        ..DiskUse::default()
    })
}

/// Processors observed from an instant on.
#[derive(Debug)]
pub struct CpuWatch(BTreeMap<u32, CpuIdle>);

impl CpuWatch {
    /// Starts with the current counters.
    pub fn begin() -> CpuWatch {
        CpuWatch(all_cpus())
    }

    /// Idle time of each processor since then, to a hundredth of a second.
    pub fn end(&self) -> Vec<CpuIdle> {
        let since = |(cpu, now): (u32, CpuIdle)| {
            let before = self.0.get(&cpu)?;
            Some(CpuIdle {
                cpu,
                idle: now.idle.saturating_sub(before.idle),
                all: now.all.saturating_sub(before.all),
            })
        };
        all_cpus().into_iter().filter_map(since).collect()
    }
}

fn all_cpus() -> BTreeMap<u32, CpuIdle> {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let all = text.lines().filter_map(read_cpu);
    all.map(|idle| (idle.cpu, idle)).collect()
}

/// Parses `cpu3 user nice system idle iowait irq softirq steal …`; guests are included in the
/// first two. A processor whose tasks wait for I/O is idle.
fn read_cpu(line: &str) -> Option<CpuIdle> {
    let (name, fields) = line.split_once(' ')?;
    let cpu = name.strip_prefix("cpu")?.parse().ok()?;
    let times: Vec<u64> = fields
        .split_whitespace()
        .take(8)
        .map(|field| field.parse().ok())
        .collect::<Option<_>>()?;
    Some(CpuIdle {
        cpu,
        idle: times.get(3)? + times.get(4).unwrap_or(&0),
        all: times.iter().sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stand_in_the_order_of_the_kernel() {
        let text = " 654 3 13372 245 106 234 836 134 0 328 512 1 2 3 4 99 131\n";
        let expect = DiskUse {
            ios: [654, 106],
            sectors: [13372, 836],
            merges: [3, 234],
            ticks_ms: [245, 134],
            busy_ms: 328,
            in_queue_ms: 512,
            ..DiskUse::default()
        };
        assert_eq!(read_counts(text), Some(expect));
        assert_eq!(read_counts("1 2 3"), None);
        assert_eq!(read_counts("1 2 3 4 5 6 7 8 9 10 x"), None);
    }

    #[test]
    fn a_processor_that_waits_for_io_is_idle() {
        let idle = read_cpu("cpu12 10 20 30 400 50 6 7 8 9 9").expect("a line");
        assert_eq!((idle.cpu, idle.idle, idle.all), (12, 450, 531));
        for other in ["cpu  1 2 3 4", "intr 1 2", "cpu0 1 x 3 4", "cpu0 1 2"] {
            assert_eq!(read_cpu(other), None, "{other}");
        }
    }

    #[test]
    fn processors_of_this_host_pass_their_time() {
        let watch = CpuWatch::begin();
        assert!(!watch.0.is_empty(), "the kernel counts them");
        std::thread::sleep(std::time::Duration::from_millis(100));
        let passed = watch.end();
        assert_eq!(passed.len(), watch.0.len());
        assert!(passed.iter().any(|cpu| cpu.all > 0), "{passed:?}");
        assert!(passed.iter().all(|cpu| cpu.idle <= cpu.all), "{passed:?}");
    }

    #[test]
    fn what_stands_on_no_device_has_none() {
        let of = |path: &str| DiskWatch::begin([Path::new(path)]).end();
        assert_eq!(of("/proc/self/status"), []);
        assert_eq!(of("/dev/null"), []);
        assert_eq!(of("/proc/none/of/this"), []);
    }

    #[test]
    fn devices_of_directories_like_those_of_sysfs_are_found_with_their_parts() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let root = fs::canonicalize(dir.path()).expect("it is there");
        for folder in ["dm-0/slaves", "sda/sda1", "sda/slaves", "sdb"] {
            fs::create_dir_all(root.join(folder)).expect("made");
        }
        fs::write(root.join("sda/sda1/partition"), "1\n").expect("written");
        for (name, target) in [("sda1", "sda/sda1"), ("sdb", "sdb")] {
            let link = root.join("dm-0/slaves").join(name);
            std::os::unix::fs::symlink(root.join(target), link).expect("linked");
        }
        let mut disks = Vec::new();
        add(&mut disks, root.join("dm-0"));
        add(&mut disks, root.join("sda/sda1"));
        let mut names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!(
            (names.remove(0), &disks[0].parts[..]),
            ("dm-0", &["sda".to_owned(), "sdb".to_owned()][..])
        );
        names.sort_unstable();
        assert_eq!(names, ["sda", "sdb"], "each once");
    }
}
