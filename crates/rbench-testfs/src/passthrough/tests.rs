//! Tests of the back end alone: what it can reach, and what it keeps.

use super::*;
use crate::store::{Store as _, at};

struct Bench {
    store: Passthrough,
    folder: tempfile::TempDir,
}

fn bench() -> Bench {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Passthrough::new(folder.path()).expect("a folder");
    Bench { store, folder }
}

fn me() -> Caller {
    Caller {
        uid: geteuid().as_raw(),
        gid: getegid().as_raw(),
    }
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let Bench { store, .. } = bench();
    for name in ["", ".", "..", "a/b", "/etc", "../x"] {
        let refused = Err(Errno::EINVAL);
        assert_eq!(store.lookup(at(ROOT, name)), refused, "{name}");
        assert_eq!(store.mkdir(me(), at(ROOT, name), 0o755), refused);
        assert_eq!(store.unlink(at(ROOT, name)), refused.map(|_: FileAttr| ()));
        let create = store.create(me(), at(ROOT, name), 0o644, libc::O_WRONLY);
        assert_eq!(create.map(drop), Err(Errno::EINVAL));
    }
}

#[test]
fn symbolic_links_are_never_followed() {
    let Bench { store, folder } = bench();
    let outside = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(outside.path().join("secret"), "x").expect("room");
    std::os::unix::fs::symlink(outside.path(), folder.path().join("out")).expect("new");
    let out = store.lookup(at(ROOT, "out")).expect("there");
    assert_eq!(out.kind, FileType::Symlink);
    let through = store.lookup(at(out.ino.0, "secret"));
    assert_eq!(through, Err(Errno::ENOTDIR));
    let result = store.mkdir(me(), at(out.ino.0, "new"), 0o755);
    assert_eq!(result, Err(Errno::ENOTDIR));
    assert_eq!(store.opendir(out.ino.0), Err(Errno::ENOTDIR));
    assert_eq!(store.open(out.ino.0, libc::O_RDONLY), Err(Errno::ELOOP));
    let create = store.create(me(), at(ROOT, "out"), 0o644, libc::O_WRONLY);
    assert_eq!(create.map(drop), Err(Errno::ELOOP));
}

#[test]
fn a_directory_is_itself_even_when_a_link_takes_its_name() {
    let Bench { store, folder } = bench();
    let outside = tempfile::tempdir().expect("a temporary folder");
    let directory = store.mkdir(me(), at(ROOT, "d"), 0o755).expect("new");
    let path = |name: &str| folder.path().join(name);
    std::fs::rename(path("d"), path("elsewhere")).expect("there");
    std::os::unix::fs::symlink(outside.path(), path("d")).expect("new");
    store
        .mkdir(me(), at(directory.ino.0, "new"), 0o755)
        .expect("new");
    assert!(path("elsewhere/new").is_dir());
    assert_eq!(std::fs::read_dir(outside.path()).expect("there").count(), 0);
}

#[test]
fn an_inode_is_kept_as_long_as_the_kernel_knows_it() {
    let Bench { store, folder } = bench();
    std::fs::write(folder.path().join("f"), "x").expect("room");
    let first = store.lookup(at(ROOT, "f")).expect("there").ino.0;
    let again = store.lookup(at(ROOT, "f")).expect("there").ino.0;
    assert_eq!(first, again);
    std::fs::remove_file(folder.path().join("f")).expect("there");
    store.forget(first, 1);
    assert_eq!(store.getattr(first).map(|attr| attr.nlink), Ok(0));
    store.forget(first, 1);
    assert_eq!(store.getattr(first).map(drop), Err(Errno::ENOENT));
    store.forget(ROOT, 1);
    assert!(store.getattr(ROOT).is_ok());
}

#[test]
fn a_listing_that_was_full_goes_on_where_it_was() {
    let Bench { store, folder } = bench();
    (0..500).for_each(|i| {
        std::fs::write(folder.path().join(format!("f{i}")), "").expect("room");
    });
    let handle = store.opendir(ROOT).expect("a folder");
    let mut names = Vec::new();
    let mut offset = 0;
    loop {
        let before = names.len();
        let listed = store.readdirplus(ROOT, handle, offset, &mut |entry, attr| {
            if names.len() == before + 7 {
                return true;
            }
            if entry.name.len() > 2 {
                assert_eq!((attr.ino.0, attr.kind), (entry.ino, FileType::RegularFile));
            }
            names.push(entry.name.to_owned());
            offset = entry.offset;
            false
        });
        assert_eq!(listed, Ok(()));
        if names.len() == before {
            break;
        }
    }
    assert_eq!(names.len(), 502);
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 502);
    // The listing looked up each file exactly once.
    let one = store.lookup(at(ROOT, "f7")).expect("there").ino.0;
    store.forget(one, 2);
    assert_eq!(store.getattr(one).map(drop), Err(Errno::ENOENT));
    assert_eq!(store.releasedir(handle), Ok(()));
}
