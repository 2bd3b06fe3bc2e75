//! Detection of objects that must not be written to: a block device that is mounted, used as
//! swap or by another device, and a file that backs a device.
//!
//! An exclusive open asks the kernel: O_EXCL of a block device fails while a file system,
//! swap, device mapper or md holds it, in any mount namespace. Other kinds of use, and
//! descriptions, come from /proc and /sys. Nothing is written.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::sys::stat::{Mode, major, makedev, minor, stat};
use rbench_core::mountinfo;

use crate::files::known;
use crate::proc;

/// Number of attempts to open a device exclusively: other ranks of a host do the same at the
/// same time.
const TRIES: u32 = 100;

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// A loop device with a backing file or device.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Loop {
    name: String,
    /// Device and inode number of the backing file.
    file: (u64, u64),
    /// Device number, if it is a device.
    device: Option<u64>,
}

/// Object of a path, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thing {
    /// A block device with its number.
    Device(u64),
    /// A regular file: device and inode number.
    File(u64, u64),
    Other,
}

/// The loop devices and swap areas of this machine, at one moment.
#[derive(Debug, Clone, Default)]
pub struct InUse {
    loops: Vec<Loop>,
    /// Files and devices that are used as swap.
    swaps: Vec<Thing>,
}

impl InUse {
    /// Collects them. Objects that the system does not report count as unused.
    pub fn look() -> InUse {
        let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
        InUse {
            loops: loops(),
            swaps: swap_areas(&swaps)
                .filter_map(|area| thing(&area).ok())
                .collect(),
        }
    }

    /// The user of the object at `path` (following symbolic links) that a write would harm:
    /// words that follow "it is". `None` if no user is known, or if the object does not exist.
    ///
    /// # Errors
    /// Fails if it cannot be examined.
    pub fn user_of(&self, path: &Path) -> Result<Option<String>, Errno> {
        let thing = match thing(path) {
            Err(Errno::ENOENT) => return Ok(None),
            found => found?,
        };
        match (self.named(thing), thing) {
            (None, Thing::Device(_)) => claimed(path),
            (named, _) => Ok(named),
        }
    }

    /// Like [`InUse::user_of`], for an open file. For a regular one, the file system is not
    /// asked.
    ///
    /// # Errors
    /// Fails if it cannot be examined.
    pub fn user_of_open(&self, fd: impl AsFd) -> Result<Option<String>, Errno> {
        let fd = fd.as_fd();
        let thing = thing_open(fd)?;
        match (self.named(thing), thing) {
            // Not by a name, which may lead elsewhere by now. Workers have their own tables of
            // descriptors.
            (None, Thing::Device(_)) => claimed(Path::new(&format!(
                "/proc/thread-self/fd/{}",
                fd.as_raw_fd()
            ))),
            (named, _) => Ok(named),
        }
    }

    fn named(&self, thing: Thing) -> Option<String> {
        if self.swaps.contains(&thing) && thing != Thing::Other {
            return Some("used as swap".to_owned());
        }
        match thing {
            Thing::Other => None,
            Thing::File(device, inode) => {
                let behind = |l: &&Loop| l.device.is_none() && l.file == (device, inode);
                self.loops.iter().find(behind).map(behind_loop)
            }
            Thing::Device(number) => self.device_named(number, &mount_tables()),
        }
    }

    /// The user of a device or of one of its partitions.
    fn device_named(&self, number: u64, tables: &[Vec<u8>]) -> Option<String> {
        let mounted = tables.iter().find_map(|table| mounted_on(table, number));
        let mounted = mounted.map(|place| format!("mounted on {place}"));
        let behind = |l: &&Loop| l.device == Some(number);
        mounted
            .or_else(|| self.loops.iter().find(behind).map(behind_loop))
            .or_else(|| {
                let name = entries(&sysfs(number).join("holders")).next()?;
                Some(format!("held by the device {name}"))
            })
            .or_else(|| {
                partitions(number).find_map(|(name, part)| {
                    let swap = self.swaps.contains(&Thing::Device(part));
                    let swap = swap.then(|| "used as swap".to_owned());
                    let user = swap.or_else(|| self.device_named(part, tables))?;
                    Some(format!("in use: its partition {name} is {user}"))
                })
            })
    }
}

fn behind_loop(of: &Loop) -> String {
    format!("backing the loop device /dev/{}", of.name)
}

fn thing(path: &Path) -> Result<Thing, Errno> {
    let attributes = stat(path)?;
    Ok(of_mode(
        attributes.st_mode,
        attributes.st_rdev,
        (attributes.st_dev, attributes.st_ino),
    ))
}

fn of_mode(mode: u32, number: u64, file: (u64, u64)) -> Thing {
    match mode & libc::S_IFMT {
        libc::S_IFBLK => Thing::Device(number),
        libc::S_IFREG => Thing::File(file.0, file.1),
        _ => Thing::Other,
    }
}

/// Kind and number of an open file never change, so the file system is not asked.
fn thing_open(fd: impl AsFd) -> Result<Thing, Errno> {
    let attributes = known(fd, libc::STATX_TYPE | libc::STATX_INO)?;
    let number = |major: u32, minor: u32| makedev(u64::from(major), u64::from(minor));
    Ok(of_mode(
        u32::from(attributes.stx_mode),
        number(attributes.stx_rdev_major, attributes.stx_rdev_minor),
        (
            number(attributes.stx_dev_major, attributes.stx_dev_minor),
            attributes.stx_ino,
        ),
    ))
}

/// Checks whether the kernel refuses exclusive use of the device.
fn claimed(path: &Path) -> Result<Option<String>, Errno> {
    for _ in 0..TRIES {
        match open(
            path,
            OFlag::O_RDONLY | OFlag::O_EXCL | OFlag::O_CLOEXEC,
            Mode::empty(),
        ) {
            Err(Errno::EBUSY) => std::thread::sleep(PAUSE),
            // Without a medium or permission, nothing will be written.
            Ok(_) | Err(Errno::ENOMEDIUM | Errno::ENXIO | Errno::EACCES | Errno::EPERM) => {
                return Ok(None);
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(Some(
        "in use: the kernel refuses to open it exclusively".to_owned(),
    ))
}

/// The directory of a block device in /sys.
pub(crate) fn sysfs(number: u64) -> PathBuf {
    PathBuf::from(format!(
        "/sys/dev/block/{}:{}",
        major(number),
        minor(number)
    ))
}

/// Names in a directory; none if it does not exist.
fn entries(dir: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// Names and numbers of the partitions of a device.
fn partitions(number: u64) -> impl Iterator<Item = (String, u64)> {
    let dir = sysfs(number);
    entries(&dir).filter_map(move |name| {
        let part = dir.join(&name);
        let is_one = part.join("partition").exists();
        let number = fs::read_to_string(part.join("dev"))
            .ok()
            .filter(|_| is_one)?;
        Some((name, parse_number(number.trim())?))
    })
}

/// Parses `259:3`.
fn parse_number(text: &str) -> Option<u64> {
    mountinfo::device(text).map(|(major, minor)| makedev(major, minor))
}

/// The mount tables of this process, and of one process of each other visible mount namespace.
fn mount_tables() -> Vec<Vec<u8>> {
    let mut spaces = BTreeSet::new();
    let numbers = proc::numbers("/proc").map(|number: u32| number.to_string());
    let all = std::iter::once("self".to_owned()).chain(numbers);
    let table = |process: String| {
        let space = fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
        let new = space.is_none_or(|space| spaces.insert(space));
        let table = fs::read(format!("/proc/{process}/mountinfo"));
        table.ok().filter(|_| new || process == "self")
    };
    all.filter_map(table).collect()
}

/// The mount point of the device with that number, by a mount table. Some file systems have
/// their own number, and name the device as their source.
fn mounted_on(table: &[u8], number: u64) -> Option<String> {
    let by_source = |source: &str| {
        source.starts_with("/dev/") && thing(Path::new(source)) == Ok(Thing::Device(number))
    };
    mountinfo::mounts(table)
        .find(|mount| makedev(mount.device.0, mount.device.1) == number || by_source(&mount.source))
        .map(|mount| mount.mount_point.display().to_string())
}

/// The first column of /proc/swaps, after its heading.
fn swap_areas(table: &str) -> impl Iterator<Item = PathBuf> {
    let lines = table.lines().skip(1);
    lines.filter_map(|line| line.split_whitespace().next().map(PathBuf::from))
}

/// The loop devices that have a backing file.
fn loops() -> Vec<Loop> {
    let names = entries(Path::new("/sys/block")).filter(|name| name.starts_with("loop"));
    names.filter_map(|name| behind(name).ok()).collect()
}

fn behind(name: String) -> io::Result<Loop> {
    let shown = Path::new("/sys/block")
        .join(&name)
        .join("loop/backing_file");
    let path = fs::read_to_string(shown)?;
    let device = open(
        &Path::new("/dev").join(&name),
        OFlag::O_RDONLY | OFlag::O_CLOEXEC,
        Mode::empty(),
    );
    let loop_info = device.and_then(|device| told_by(&device));
    let (file, device) = match loop_info {
        Ok(loop_info) => loop_info,
        // Its path only leads elsewhere if mounts differ.
        Err(_) => {
            let status = stat(Path::new(path.trim_end_matches('\n')))?;
            let device = status.st_mode & libc::S_IFMT == libc::S_IFBLK;
            (
                (status.st_dev, status.st_ino),
                device.then_some(status.st_rdev),
            )
        }
    };
    Ok(Loop { name, file, device })
}

/// The kernel's `struct loop_info64`, up to the fields used here.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    raw_device: u64,
    /// The rest of its 232 bytes.
    rest: [u64; 26],
}

mod request {
    use super::LoopInfo;
    nix::ioctl_read_bad!(loop_get_status64, 0x4c05, LoopInfo);
}

/// Device and inode number of the backing file of an open loop device, and its device number
/// if it is a device.
fn told_by(device: &OwnedFd) -> Result<((u64, u64), Option<u64>), Errno> {
    let mut info = LoopInfo {
        device: 0,
        inode: 0,
        raw_device: 0,
        rest: [0; 26],
    };
    // SAFETY: the descriptor is open, and the kernel writes at most the 232 bytes of the
    // struct.
    unsafe { request::loop_get_status64(device.as_raw_fd(), &mut info) }?;
    // For a regular file, kernels return 0, or the number of its file system again.
    let is_device = info.raw_device != 0 && info.raw_device != info.device;
    Ok((
        (info.device, info.inode),
        is_device.then_some(info.raw_device),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_by_its_number_and_where_it_is_mounted() {
        let table = b"22 1 0:20 / /proc rw - proc proc rw\n\
                     36 22 7:3 / /mnt/a rw,noatime shared:1 - ext4 /dev/none rw\n\
                     37 22 259:1 /sub /b rw - xfs /dev/none rw\n";
        let check = |number: &str, expect: Option<&str>| {
            let number = parse_number(number).expect("a number");
            assert_eq!(mounted_on(table, number).as_deref(), expect);
        };
        check("7:3", Some("/mnt/a"));
        check("259:1", Some("/b"));
        check("7:30", None);
        check("0:0", None);
    }

    #[test]
    fn swap_areas_stand_in_the_first_column() {
        let table =
            "Filename\t\t\t\tType\t\tSize\n/dev/sda2    partition 1 0 -2\n/swap file 1 0 -3\n";
        let areas: Vec<PathBuf> = swap_areas(table).collect();
        assert_eq!(areas, [Path::new("/dev/sda2"), Path::new("/swap")]);
        assert_eq!(swap_areas("").count(), 0);
    }

    #[test]
    fn a_file_that_nothing_uses_may_be_written() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        let in_use = InUse::look();
        assert_eq!(in_use.user_of(&path), Ok(None), "not there");
        let file = fs::File::create(&path).expect("made");
        assert_eq!(in_use.user_of(&path), Ok(None));
        assert_eq!(in_use.user_of_open(&file), Ok(None));
        assert_eq!(in_use.user_of(Path::new("/dev/null")), Ok(None));
    }

    #[test]
    fn a_file_that_is_swapped_to_or_behind_a_loop_device_is_in_use_whatever_its_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, link) = (dir.path().join("file"), dir.path().join("link"));
        let file = fs::File::create(&path).expect("made");
        std::os::unix::fs::symlink("file", &link).expect("made");
        let Ok(Thing::File(device, inode)) = thing(&path) else {
            panic!("it is a file");
        };
        let behind = InUse {
            loops: vec![Loop {
                name: "loop9".to_owned(),
                file: (device, inode),
                device: None,
            }],
            swaps: Vec::new(),
        };
        let words = "backing the loop device /dev/loop9";
        assert_eq!(behind.user_of(&link), Ok(Some(words.to_owned())));
        assert_eq!(behind.user_of_open(&file), Ok(Some(words.to_owned())));
        let swap = InUse {
            loops: Vec::new(),
            swaps: vec![Thing::File(device, inode)],
        };
        assert_eq!(swap.user_of(&link), Ok(Some("used as swap".to_owned())));
    }
}
