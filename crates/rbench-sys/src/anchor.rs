//! A directory whose content several processes remove together. One process lists it, and
//! each removes its share.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::libc;

use crate::dirents::{self, Records};
use crate::remove::{self, Entry, MARKER, Part, Removal, RemoveError};

/// Approximate number of entries listed at a time, which are sent to all others.
const LISTED: usize = 1 << 16;

/// Most levels of directories that are listed.
const LEVELS: usize = 16;

/// Bytes of a directory's listing that are read at a time.
const BATCH: usize = 32 << 10;

/// An open directory; operations on it do not leave its mount.
#[derive(Debug)]
pub struct Anchor {
    directory: OwnedFd,
    path: PathBuf,
    mount: u64,
    /// True if its marker file is kept.
    marked: bool,
}

impl Anchor {
    /// The directory at `path`, open as `directory`, in `parent` and on the same mount.
    pub(crate) fn new(
        parent: BorrowedFd<'_>,
        directory: BorrowedFd<'_>,
        path: &Path,
        marked: bool,
    ) -> Result<Anchor, Errno> {
        let mount = remove::within_one_mount(parent, directory)?;
        Ok(Anchor {
            directory: remove::enter(directory, c".", mount)?,
            path: path.to_owned(),
            mount,
            marked,
        })
    }

    /// Lists the entries to remove, in parts that can be dealt out. Returns true with them if
    /// they are all. The parts are files and, as soon as a level has `enough` directories,
    /// these with their whole content. Unreadable directories are skipped.
    pub fn survey(&self, enough: usize) -> (Vec<Part>, bool) {
        let (mut parts, mut listed) = (Vec::new(), 0);
        let mut level: Vec<Vec<CString>> = vec![Vec::new()];
        for depth in 0.. {
            let mut below: Vec<Part> = Vec::new();
            for way in level {
                let Ok(entries) = self.entries(&way, LISTED.saturating_sub(listed)) else {
                    continue;
                };
                listed += entries.len();
                let is_directory = |entry: &Entry| entry.1 == libc::DT_DIR;
                let (directories, files): (Vec<Entry>, Vec<Entry>) =
                    entries.into_iter().partition(is_directory);
                let of = |entries: Vec<Entry>, way: Vec<CString>| Part { way, entries };
                parts.extend((!files.is_empty()).then(|| of(files, way.clone())));
                below.extend((!directories.is_empty()).then(|| of(directories, way)));
            }
            let full = listed >= LISTED;
            let directories_below: usize = below.iter().map(|part| part.entries.len()).sum();
            if directories_below == 0 || directories_below >= enough || full || depth >= LEVELS {
                let whole = directories_below == 0 && !full;
                parts.append(&mut below);
                return (parts, whole);
            }
            level = below.into_iter().flat_map(ways).collect();
        }
        (parts, false)
    }

    /// Approximately at most `most` entries of the directory that `way` leads to.
    fn entries(&self, way: &[CString], most: usize) -> Result<Vec<Entry>, Errno> {
        let mut at = remove::enter(self.directory.as_fd(), c".", self.mount)?;
        for name in way {
            at = remove::enter(at.as_fd(), name, self.mount)?;
        }
        let spare = (self.marked && way.is_empty()).then_some(MARKER);
        let (mut entries, mut buffer) = (Vec::new(), vec![0; BATCH]);
        while entries.len() < most {
            let records = dirents::read(at.as_raw_fd(), &mut buffer)?;
            if records.is_empty() {
                break;
            }
            for record in Records(records) {
                let record = record?;
                let name = record.name()?;
                if !record.is_dots() && Some(name) != spare {
                    entries.push((name.to_owned(), record.kind));
                }
            }
        }
        Ok(entries)
    }

    /// Removes `parts` of the content as carefully as [`crate::WorkDir::remove`]. Returns the
    /// number of entries removed.
    ///
    /// # Errors
    /// The entries that remain, and the reason.
    pub fn remove(&self, parts: &[Part], how: Removal<'_>) -> Result<u64, RemoveError> {
        remove::remove_parts(self.directory.as_fd(), &self.path, self.mount, parts, how)
    }
}

/// The ways to the directories of a part.
fn ways(part: Part) -> impl Iterator<Item = Vec<CString>> {
    let Part { way, entries } = part;
    entries.into_iter().map(move |(name, _)| {
        let mut way = way.clone();
        way.push(name);
        way
    })
}

/// The share `nth` of `of` of `parts`: a range of the files, and one of the directories, so
/// that few processes work in the same directory.
pub fn deal(parts: &[Part], nth: usize, of: usize) -> Vec<Part> {
    let mut dealt = Vec::new();
    for directories in [true, false] {
        let fits = |entry: &&Entry| (entry.1 == libc::DT_DIR) == directories;
        let count = |part: &Part| part.entries.iter().filter(fits).count();
        let all: usize = parts.iter().map(count).sum();
        // 128 bits, because neither factor is bounded.
        let bound = |nth: usize| (all as u128 * nth as u128 / of.max(1) as u128) as usize;
        let (from, to) = (bound(nth), bound(nth + 1));
        let mut passed = 0;
        for part in parts {
            let here = part.entries.iter().filter(fits);
            let own = here.skip(from.saturating_sub(passed));
            let start = passed.max(from);
            let entries: Vec<Entry> = own.take(to.saturating_sub(start)).cloned().collect();
            passed += count(part);
            if !entries.is_empty() {
                dealt.push(Part {
                    way: part.way.clone(),
                    entries,
                });
            }
        }
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_dealt_to_one_and_the_stretches_are_equal() {
        let part = |way: &str, kinds: &[u8]| Part {
            way: vec![CString::new(way).expect("no NUL in it")],
            entries: kinds
                .iter()
                .enumerate()
                .map(|(n, kind)| (CString::new(format!("{n}")).expect("no NUL"), *kind))
                .collect(),
        };
        let (d, f) = (libc::DT_DIR, libc::DT_REG);
        let parts = [
            part("a", &[f; 10]),
            part("b", &[d, d, f, libc::DT_UNKNOWN]),
            part("c", &[d; 7]),
            part("e", &[]),
        ];
        let flat = |parts: &[Part]| -> Vec<(Vec<CString>, Entry)> {
            let of = |part: &Part| {
                let way = part.way.clone();
                let entries = part.entries.clone().into_iter();
                entries
                    .map(move |entry| (way.clone(), entry))
                    .collect::<Vec<_>>()
            };
            parts.iter().flat_map(of).collect()
        };
        let mut whole = flat(&parts);
        whole.sort();
        for of in [1, 2, 3, 5, 40] {
            let each: Vec<Vec<_>> = (0..of).map(|nth| flat(&deal(&parts, nth, of))).collect();
            for kind in [true, false] {
                let sizes = each.iter().map(|own| {
                    let fits = |entry: &&(Vec<CString>, Entry)| (entry.1.1 == d) == kind;
                    own.iter().filter(fits).count()
                });
                let (least, most) = (sizes.clone().min(), sizes.max());
                assert!(
                    most <= least.map(|least| least + 1),
                    "{of}: {least:?} {most:?}"
                );
            }
            let mut all: Vec<_> = each.into_iter().flatten().collect();
            all.sort();
            assert_eq!(all, whole, "{of}");
        }
    }
}
