//! Tests of the back end alone, of behaviour that the kernel's own checks would hide.

use super::*;
use crate::store::at;

const ME: Caller = Caller { uid: 0, gid: 0 };

fn memory() -> Memory {
    Memory::new(Bytes(1 << 20), None, false)
}

fn mkdir(memory: &Memory, parent: u64, name: &str) -> u64 {
    let attr = memory.mkdir(ME, at(parent, name), 0o755);
    attr.expect("new").ino.0
}

/// The names after `offset` with their offsets, without `.` and `..`.
fn names(memory: &Memory, handle: u64, offset: u64) -> Vec<(String, u64)> {
    let mut names = Vec::new();
    let listed = memory.readdir(ROOT, handle, offset, &mut |entry| {
        names.push((entry.name.display().to_string(), entry.offset));
        false
    });
    listed.expect("a directory");
    names.retain(|(name, _)| name != "." && name != "..");
    names
}

#[test]
fn a_directory_that_was_removed_takes_nothing_in() {
    let memory = memory();
    let removed = mkdir(&memory, ROOT, "removed");
    memory.rmdir(at(ROOT, "removed")).expect("empty");
    let replaced = mkdir(&memory, ROOT, "replaced");
    mkdir(&memory, ROOT, "other");
    let (from, to) = (at(ROOT, "other"), at(ROOT, "replaced"));
    memory.rename(from, to, 0).expect("empty");
    let file = memory.create(ME, at(ROOT, "file"), 0o644, 0);
    let file = file.expect("new").0.ino.0;
    for gone in [removed, replaced] {
        let inside = at(gone, "x");
        assert_eq!(memory.getattr(gone).map(|attr| attr.nlink), Ok(0));
        assert_eq!(memory.mkdir(ME, inside, 0o755), Err(Errno::ENOENT));
        assert_eq!(memory.link(file, inside), Err(Errno::ENOENT));
        let moved = memory.rename(at(ROOT, "file"), inside, 0);
        assert_eq!(moved, Err(Errno::ENOENT));
    }
}

#[test]
fn what_a_power_cut_has_taken_away_is_not_opened_any_more() {
    let memory = Memory::new(Bytes(1 << 20), None, true);
    let make = |name| {
        let attr = memory.mknod(ME, at(ROOT, name), libc::S_IFREG | 0o644, 0);
        attr.expect("new").ino.0
    };
    let (kept, gone) = (make("kept"), make("gone"));
    let handle = memory.open(kept, libc::O_WRONLY).expect("there");
    memory.fsync(kept, handle, false).expect("synced");
    memory.cut_power(None).expect("cut");
    assert!(memory.open(kept, libc::O_WRONLY).is_ok());
    assert_eq!(memory.open(gone, libc::O_WRONLY), Err(Errno::ESTALE));
}

#[test]
fn directories_count_those_below_them_and_know_the_one_above() {
    let memory = memory();
    let (a, b) = (mkdir(&memory, ROOT, "a"), mkdir(&memory, ROOT, "b"));
    let moved = mkdir(&memory, a, "moved");
    let check = |expect: [(u64, u32); 3], above: u64| {
        for (ino, nlink) in expect {
            let got = memory.getattr(ino).map(|attr| attr.nlink);
            assert_eq!(got, Ok(nlink), "{ino}");
        }
        let handle = memory.opendir(moved).expect("a directory");
        let mut parent = None;
        let listed = memory.readdir(moved, handle, 0, &mut |entry| {
            parent = parent.or((entry.name == "..").then_some(entry.ino));
            false
        });
        assert_eq!((listed, parent), (Ok(()), Some(above)));
    };
    check([(ROOT, 4), (a, 3), (b, 2)], a);
    let rename = |from, to, flags| memory.rename(from, to, flags).expect("it can be done");
    rename(at(a, "moved"), at(b, "here"), 0);
    check([(ROOT, 4), (a, 2), (b, 3)], b);
    memory.mknod(ME, at(a, "file"), 0o644, 0).expect("new");
    rename(at(a, "file"), at(b, "here"), libc::RENAME_EXCHANGE);
    check([(ROOT, 4), (a, 3), (b, 2)], a);
    mkdir(&memory, ROOT, "empty");
    rename(at(a, "file"), at(ROOT, "empty"), 0);
    check([(ROOT, 5), (a, 2), (b, 2)], ROOT);
    memory.rmdir(at(ROOT, "empty")).expect("empty");
    assert_eq!(memory.getattr(ROOT).map(|attr| attr.nlink), Ok(4));
}

#[test]
fn a_name_that_is_replaced_keeps_its_place_in_a_listing() {
    let memory = memory();
    for name in ["a", "b", "c"] {
        mkdir(&memory, ROOT, name);
    }
    let handle = memory.opendir(ROOT).expect("a directory");
    let before = names(&memory, handle, 0);
    let b = before[1].clone();
    assert_eq!(b.0, "b");
    // The listing is past `b` when `c` takes its name.
    let renamed = memory.rename(at(ROOT, "c"), at(ROOT, "b"), 0);
    renamed.expect("empty");
    assert_eq!(names(&memory, handle, b.1), []);
    assert_eq!(names(&memory, handle, 0), before[..2]);
}

#[test]
fn an_inode_goes_with_its_last_name_and_its_last_lookup() {
    let memory = memory();
    let free = memory.space.free();
    let (attr, _) = memory.create(ME, at(ROOT, "f"), 0o644, 0).expect("new");
    let ino = attr.ino.0;
    memory.link(ino, at(ROOT, "g")).expect("new");
    memory.write(ino, 0, 0, &[1; 5000], false).expect("room");
    let set = memory.setxattr(ino, OsStr::new("user.x"), b"value", 0);
    set.expect("room");
    memory.unlink(at(ROOT, "f")).expect("there");
    memory.forget(ino, 2);
    assert!(memory.getattr(ino).is_ok(), "it has a name");
    memory.lookup(at(ROOT, "g")).expect("there");
    memory.unlink(at(ROOT, "g")).expect("there");
    assert_eq!(memory.getattr(ino).map(|attr| attr.nlink), Ok(0));
    assert_eq!(memory.link(ino, at(ROOT, "h")), Err(Errno::ENOENT));
    assert!(memory.space.free() < free);
    memory.forget(ino, 1);
    assert_eq!(memory.getattr(ino).map(drop), Err(Errno::ENOENT));
    assert_eq!(memory.space.free(), free);
    assert_eq!(memory.orphans.load(Ordering::Relaxed), 0);
}

#[test]
fn a_create_that_meets_a_file_opens_it_unless_it_must_be_new() {
    let memory = memory();
    let (first, _) = memory.create(ME, at(ROOT, "f"), 0o644, 0).expect("new");
    let written = memory.write(first.ino.0, 0, 0, b"text", false);
    written.expect("room");
    let new = memory.create(ME, at(ROOT, "f"), 0o644, libc::O_EXCL);
    assert_eq!(new.map(drop), Err(Errno::EEXIST));
    let (same, _) = memory.create(ME, at(ROOT, "f"), 0o644, 0).expect("there");
    assert_eq!((same.ino, same.size), (first.ino, 4));
    let cut = memory.create(ME, at(ROOT, "f"), 0o644, libc::O_TRUNC);
    assert_eq!(cut.expect("there").0.size, 0);
    mkdir(&memory, ROOT, "d");
    let directory = memory.create(ME, at(ROOT, "d"), 0o644, 0);
    assert_eq!(directory.map(drop), Err(Errno::EISDIR));
}

#[test]
fn names_and_links_count_against_the_budget() {
    let memory = Memory::new(Bytes(4 * INODE_COST), None, false);
    let link = |name: &str, target: &str| {
        let link = memory.symlink(ME, at(ROOT, name), Path::new(target));
        link.map(|attr| attr.size)
    };
    assert_eq!(link("a", &"x".repeat(1024)), Ok(1024));
    assert_eq!(link("b", &"x".repeat(1025)), Err(Errno::ENOSPC));
    let attribute = vec![0; 2 * INODE_COST as usize];
    let set = |value: &[u8]| memory.setxattr(ROOT, OsStr::new("user.x"), value, 0);
    assert_eq!(set(&attribute), Err(Errno::ENOSPC));
    assert_eq!(set(&attribute[..INODE_COST as usize]), Ok(()));
    assert_eq!(set(b""), Ok(()));
    assert_eq!(memory.space.free(), 2 * INODE_COST - 6);
}

#[test]
fn a_rename_that_must_not_replace_does_not() {
    let memory = memory();
    mkdir(&memory, ROOT, "a");
    let kept = mkdir(&memory, ROOT, "b");
    let (a, b) = (at(ROOT, "a"), at(ROOT, "b"));
    let rename = |flags| memory.rename(a, b, flags);
    assert_eq!(rename(libc::RENAME_NOREPLACE), Err(Errno::EEXIST));
    assert_eq!(rename(libc::RENAME_WHITEOUT), Err(Errno::EINVAL));
    let ino = memory.lookup(b).map(|attr| attr.ino.0);
    assert_eq!(ino, Ok(kept));
    assert_eq!(rename(0), Ok(()));
}
