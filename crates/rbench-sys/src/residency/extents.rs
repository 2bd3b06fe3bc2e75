//! Parts of files that were never written: reading them fetches nothing.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::libc;
use serde::{Deserialize, Serialize};

use crate::mountinfo;

/// Number of extents per request to the kernel.
const EXTENTS: usize = 256;

/// Most requests for one file: extents after them are not examined.
const ROUNDS: usize = 256;

/// `FS_IOC_FIEMAP` and its flags (linux/fiemap.h).
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
const FLAG_SYNC: u32 = 1;
const EXTENT_LAST: u32 = 0x1;
const EXTENT_UNWRITTEN: u32 = 0x800;

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// The file.
    pub path: PathBuf,
    /// First byte.
    pub from: u64,
    /// End, exclusive; bytes after the end of the file do not belong to the part.
    pub to: u64,
}

/// The kinds of extents in parts of files, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extents {
    /// Number of examined parts.
    pub parts: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Reserved (fallocate) but never written bytes of these.
    pub unwritten: u64,
    /// Bytes of these in holes, without any block.
    pub holes: u64,
}

impl Extents {
    /// The sum of both.
    pub fn plus(self, other: Extents) -> Extents {
        let Extents {
            parts,
            bytes,
            unwritten,
            holes,
        } = other;
        Extents {
            parts: self.parts + parts,
            bytes: self.bytes + bytes,
            unwritten: self.unwritten + unwritten,
            holes: self.holes + holes,
        }
    }
}

/// Examines `parts`. Omits those that are not regular files, cannot be opened, or are
/// on a file system without this information. FIEMAP distinguishes reserved blocks
/// from holes; without it, SEEK_DATA counts both as holes. FUSE is not asked: opening
/// a file there drops its pages, and few servers support it.
///
/// If parts seem unwritten, the file's dirty pages are written back first, as they
/// may belong there.
pub fn extents<'p>(parts: impl IntoIterator<Item = &'p Part>) -> Extents {
    let mut asked: HashMap<&Path, bool> = HashMap::new();
    let mut sum = Extents::default();
    for part in parts {
        let folder = part.path.parent().unwrap_or(Path::new("/"));
        let says = *asked.entry(folder).or_insert_with(|| says(folder));
        if let Some(extents) = says.then(|| look(part)).flatten() {
            sum = sum.plus(extents);
        }
    }
    sum
}

fn says(folder: &Path) -> bool {
    let served = |fs_type: &str| fs_type.starts_with("fuse") || fs_type == "virtiofs";
    mountinfo::of(folder).is_ok_and(|mount| !served(&mount.fs_type))
}

fn look(part: &Part) -> Option<Extents> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_CLOEXEC | libc::O_NONBLOCK)
        .open(&part.path)
        .ok()?;
    let facts = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let to = part.to.min(facts.len());
    if part.from >= to {
        return None;
    }
    let range = (part.from, to);
    let result = match fiemap(&file, range, 0) {
        Ok(result) if result.unwritten + result.holes == 0 => Ok(result),
        Ok(_) => fiemap(&file, range, FLAG_SYNC),
        Err(Errno::EOPNOTSUPP | Errno::ENOTTY) => seek(&file, range),
        Err(errno) => Err(errno),
    };
    result.ok()
}

/// `struct fiemap_extent`
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` with room for extents.
#[repr(C)]
struct Map {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; EXTENTS],
}

fn fiemap(file: &File, (from, to): (u64, u64), flags: u32) -> Result<Extents, Errno> {
    let mut total = Extents {
        parts: 1,
        ..Extents::default()
    };
    let mut at = from;
    for _ in 0..ROUNDS {
        let mut map = Map {
            start: at,
            length: to - at,
            flags,
            mapped: 0,
            count: EXTENTS as u32,
            reserved: 0,
            extents: [Extent::default(); EXTENTS],
        };
        // SAFETY: the structure has the kernel's layout, and room for the number of
        // extents that it states.
        let code = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut map) };
        Errno::result(code)?;
        let extents = &map.extents[..(map.mapped as usize).min(EXTENTS)];
        let mut last = extents.is_empty();
        for extent in extents {
            let start = extent.logical.clamp(at, to);
            let end = extent
                .logical
                .saturating_add(extent.length)
                .clamp(start, to);
            total.holes += start - at;
            if extent.flags & EXTENT_UNWRITTEN != 0 {
                total.unwritten += end - start;
            }
            at = end;
            last |= extent.flags & EXTENT_LAST != 0;
        }
        if last {
            total.holes += to - at;
            at = to;
        }
        if at >= to {
            break;
        }
    }
    total.bytes = at - from;
    Ok(total)
}

fn seek(file: &File, (from, to): (u64, u64)) -> Result<Extents, Errno> {
    let find = |at: u64, whence| {
        let at = libc::off_t::try_from(at).map_err(|_| Errno::EOVERFLOW)?;
        // SAFETY: no memory is involved.
        let position = Errno::result(unsafe { libc::lseek(file.as_raw_fd(), at, whence) });
        match position {
            Ok(at) => Ok(u64::try_from(at).unwrap_or(to).min(to)),
            // There is none up to the end.
            Err(Errno::ENXIO) => Ok(to),
            Err(errno) => Err(errno),
        }
    };
    let mut extents = Extents {
        parts: 1,
        ..Extents::default()
    };
    let mut at = from;
    for _ in 0..ROUNDS * EXTENTS {
        if at >= to {
            break;
        }
        let data = find(at, libc::SEEK_DATA)?;
        extents.holes += data.saturating_sub(at);
        at = match data < to {
            true => find(data, libc::SEEK_HOLE)?.max(data + 1),
            false => to,
        };
    }
    extents.bytes = at - from;
    Ok(extents)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use nix::fcntl::{FallocateFlags, fallocate};

    use super::*;

    const MIB: u64 = 1 << 20;

    fn part(path: &Path) -> Part {
        Part {
            path: path.to_owned(),
            from: 0,
            to: u64::MAX,
        }
    }

    /// A file of 8 MiB: 2 written, 2 reserved, 2 in a hole, 2 reserved with 1 written
    /// but dirty; `None` if blocks cannot be reserved.
    fn mixed(path: &Path) -> Option<File> {
        let file = File::create_new(path).expect("new");
        let reserve = |at: u64, length: u64| {
            let whole = FallocateFlags::empty();
            fallocate(&file, whole, at as i64, length as i64)
        };
        reserve(2 * MIB, 2 * MIB).ok()?;
        reserve(6 * MIB, 2 * MIB).ok()?;
        file.write_all_at(&vec![7; 2 << 20], 0).expect("room");
        file.sync_all().expect("the disk takes it");
        file.write_all_at(&vec![7; 1 << 20], 6 * MIB).expect("room");
        Some(file)
    }

    #[test]
    fn reserved_blocks_and_holes_are_told_from_data_that_is_only_dirty() {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let path = folder.path().join("f");
        let Some(file) = mixed(&path) else { return };
        let all = Extents {
            parts: 1,
            bytes: 8 * MIB,
            unwritten: 3 * MIB,
            holes: 2 * MIB,
        };
        let counted = extents(&[part(&path)]);
        if fiemap(&file, (0, 8 * MIB), 0).is_err() {
            let holes = all.holes + all.unwritten;
            let all = Extents {
                unwritten: 0,
                holes,
                ..all
            };
            assert_eq!(counted, all);
            return;
        }
        assert_eq!(counted, all);
        // Pages of zeros that were read are not data.
        std::fs::read(&path).expect("there");
        assert_eq!(extents(&[part(&path)]), all);
        let inner = Part {
            from: 3 * MIB,
            to: 5 * MIB,
            ..part(&path)
        };
        let counted = extents(&[inner, part(&path)]);
        let expect = all.plus(Extents {
            parts: 1,
            bytes: 2 * MIB,
            unwritten: MIB,
            holes: MIB,
        });
        assert_eq!(counted, expect);
    }

    #[test]
    fn seeking_finds_what_the_map_finds() {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let path = folder.path().join("f");
        let Some(file) = mixed(&path) else { return };
        let Ok(map) = fiemap(&file, (MIB, 8 * MIB), FLAG_SYNC) else {
            return;
        };
        let counted = seek(&file, (MIB, 8 * MIB)).expect("the file system seeks");
        assert_eq!(counted.holes, map.holes + map.unwritten);
        assert_eq!((counted.bytes, counted.unwritten), (map.bytes, 0));
    }

    #[test]
    fn many_extents_are_counted_over_several_rounds() {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let path = folder.path().join("f");
        let file = File::create_new(&path).expect("new");
        let count = 3 * EXTENTS as u64;
        (0..count).for_each(|i| file.write_all_at(&[7; 4096], i * 8192).expect("room"));
        file.sync_all().expect("the disk takes it");
        let counted = extents(&[part(&path)]);
        assert_eq!(counted.bytes, count * 8192 - 4096);
        assert_eq!(counted.holes, (count - 1) * 4096);
    }

    #[test]
    fn what_is_no_file_or_has_nothing_there_is_left_out() {
        let folder = tempfile::tempdir().expect("a directory");
        let empty = folder.path().join("empty");
        File::create_new(&empty).expect("new");
        let parts = [
            part(folder.path()),
            part(&folder.path().join("missing")),
            part(&empty),
            part(Path::new("/dev/null")),
        ];
        assert_eq!(extents(&parts), Extents::default());
    }
}
