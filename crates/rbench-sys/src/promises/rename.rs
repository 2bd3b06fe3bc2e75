//! Renaming in all its forms.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nix::errno::Errno;
use nix::fcntl::{OFlag, RenameFlags};

use super::did::Kept;
use super::ground::{Ground, Promise, promise};

pub(super) const PROMISES: &[Promise] = &[
    promise("rename.plain")
        .says("a renamed file has only its new name and keeps its content")
        .test(|g| {
            g.put("old", b"content")?;
            g.rename("old", "new").ok()?;
            g.gone("old")?;
            g.holds("new", b"content")
        }),
    promise("rename.keeps-inode")
        .says("a renamed file keeps its inode")
        .test(|g| {
            g.put("old", b"x")?;
            let before = g.stat("old").ready()?.st_ino;
            g.rename("old", "new").ok()?;
            g.stat("new").inode(before)
        }),
    promise("rename.over-existing.keeps-one")
        .says("rename over a file leaves only the renamed file")
        .test(|g| {
            g.put("new", b"new")?;
            g.put("old", b"old!")?;
            g.rename("new", "old").ok()?;
            g.gone("new")?;
            g.holds("old", b"new")?;
            g.entries(".").has("entries", 1, |all| all.len())
        }),
    promise("rename.over-existing.open")
        .says("a replaced file stays readable while it is open")
        .test(|g| {
            g.put("new", b"new")?;
            g.put("old", b"old!")?;
            let fd = g.open("old", OFlag::O_RDONLY).ready()?;
            g.rename("new", "old").ready()?;
            g.holds_open("old", &fd, b"old!")
        }),
    promise("rename.over-existing.always-there")
        .says("a name exists at all times while files are renamed over it")
        .test(|g| {
            g.put("name", b"x")?;
            let path = super::opening::whole(g)?.join("name");
            // Number of checks, and of missing names.
            let (looks, missing) = (AtomicU64::new(0), AtomicU64::new(0));
            let ended = AtomicBool::new(false);
            let look = || {
                while !ended.load(Ordering::Relaxed) {
                    if nix::sys::stat::stat(&path).is_err() {
                        missing.fetch_add(1, Ordering::Relaxed);
                    }
                    looks.fetch_add(1, Ordering::Relaxed);
                }
            };
            std::thread::scope(|scope| {
                let began = std::thread::Builder::new().spawn_scoped(scope, look);
                began.map_err(|error| g.undecided("clone", error.to_string()))?;
                let kept = renamed_over(g, &looks);
                ended.store(true, Ordering::Relaxed);
                kept
            })?;
            let missing = missing.load(Ordering::Relaxed);
            g.same("stat", "name", "times missing", (0, missing))
        }),
    promise("rename.same-name")
        .says("rename of a name to itself changes nothing")
        .test(|g| {
            g.put("a", b"a")?;
            g.rename("a", "a").ok()?;
            g.holds("a", b"a")
        }),
    promise("rename.same-file")
        .says("rename of one name of a file to another name of it leaves both")
        .test(|g| {
            g.put("a", b"x")?;
            g.link("a", "b").able(&[Errno::EPERM])?;
            g.rename("a", "b").ok()?;
            g.there("a")?;
            g.there("b")
        }),
    promise("rename.other-directory")
        .says("a file can be renamed into another directory")
        .test(|g| {
            g.dir("d")?;
            g.put("a", b"x")?;
            g.rename("a", "d/b").ok()?;
            g.gone("a")?;
            g.holds("d/b", b"x")
        }),
    promise("rename.symlink")
        .says("rename of a symbolic link renames the link, not its target")
        .test(|g| {
            g.put("target", b"x")?;
            g.symlink("target", "link").ready()?;
            g.rename("link", "moved").ok()?;
            g.there("target")?;
            g.readlink("moved").target("target")
        }),
    promise("rename.over-symlink")
        .says("rename over a symbolic link replaces the link, not its target")
        .test(|g| {
            g.put("target", b"target")?;
            g.symlink("target", "link").ready()?;
            g.put("new", b"new")?;
            g.rename("new", "link").ok()?;
            g.holds("target", b"target")?;
            g.holds("link", b"new")
        }),
    promise("rename.directory.content")
        .says("a renamed directory keeps its entries")
        .test(|g| {
            g.dir("d")?;
            g.put("d/file", b"x")?;
            g.rename("d", "e").ok()?;
            g.gone("d")?;
            g.holds("e/file", b"x")
        }),
    promise("rename.directory.over-empty")
        .says("a directory can be renamed over an empty one")
        .test(|g| {
            g.dir("d")?;
            g.put("d/file", b"x")?;
            g.dir("e")?;
            g.rename("d", "e").ok()?;
            g.gone("d")?;
            g.holds("e/file", b"x")
        }),
    promise("rename.directory.over-full")
        .says("rename over a non-empty directory fails with ENOTEMPTY")
        .test(|g| {
            g.dir("d")?;
            g.dir("e")?;
            g.put("e/file", b"x")?;
            g.rename("d", "e")
                .fails_with(&[Errno::ENOTEMPTY, Errno::EEXIST])?;
            g.there("d")?;
            g.holds("e/file", b"x")
        }),
    promise("rename.directory.over-file")
        .says("rename of a directory over a file fails with ENOTDIR")
        .test(|g| {
            g.dir("d")?;
            g.put("file", b"x")?;
            g.rename("d", "file").fails(Errno::ENOTDIR)?;
            g.there("d")?;
            g.there("file")
        }),
    promise("rename.file.over-directory")
        .says("rename of a file over a directory fails with EISDIR")
        .test(|g| {
            g.dir("d")?;
            g.put("file", b"x")?;
            g.rename("file", "d").fails(Errno::EISDIR)?;
            g.there("d")?;
            g.there("file")
        }),
    promise("rename.directory.below-itself")
        .says("rename of a directory below itself fails with EINVAL")
        .test(|g| {
            g.dir("d")?;
            g.dir("d/e")?;
            g.rename("d", "d/new").fails(Errno::EINVAL)?;
            g.rename("d", "d/e/new").fails(Errno::EINVAL)?;
            g.there("d/e")
        }),
    promise("rename.dots")
        .says("rename of '.' or '..' fails")
        .test(|g| {
            g.dir("d")?;
            let errors = [Errno::EINVAL, Errno::EBUSY, Errno::EEXIST, Errno::ENOTEMPTY];
            g.rename("d/.", "new").fails_with(&errors)?;
            g.rename("d/..", "new").fails_with(&errors)
        }),
    promise("rename.noreplace.renames")
        .says("RENAME_NOREPLACE renames to a free name")
        .test(|g| {
            g.put("a", b"a")?;
            g.rename_with("a", "b", RenameFlags::RENAME_NOREPLACE)
                .able(&[Errno::EINVAL])?;
            g.gone("a")?;
            g.holds("b", b"a")
        }),
    promise("rename.noreplace.refuses")
        .says("RENAME_NOREPLACE to an existing name fails with EEXIST")
        .test(|g| {
            g.put("a", b"a")?;
            g.put("b", b"b")?;
            g.rename_with("a", "b", RenameFlags::RENAME_NOREPLACE)
                .fails_if_able(Errno::EEXIST, &[Errno::EINVAL])?;
            g.holds("a", b"a")?;
            g.holds("b", b"b")
        }),
    promise("rename.exchange.files")
        .says("RENAME_EXCHANGE exchanges two files")
        .test(|g| {
            g.put("a", b"a")?;
            g.put("b", b"b")?;
            g.rename_with("a", "b", RenameFlags::RENAME_EXCHANGE)
                .able(&[Errno::EINVAL])?;
            g.holds("a", b"b")?;
            g.holds("b", b"a")
        }),
    promise("rename.exchange.kinds")
        .says("RENAME_EXCHANGE exchanges a file and a non-empty directory")
        .test(|g| {
            g.put("a", b"a")?;
            g.dir("d")?;
            g.put("d/file", b"x")?;
            g.rename_with("a", "d", RenameFlags::RENAME_EXCHANGE)
                .able(&[Errno::EINVAL])?;
            g.holds("a/file", b"x")?;
            g.holds("d", b"a")
        }),
    promise("rename.exchange.missing")
        .says("RENAME_EXCHANGE with a missing name fails with ENOENT")
        .test(|g| {
            g.put("a", b"a")?;
            g.rename_with("a", "b", RenameFlags::RENAME_EXCHANGE)
                .fails_if_able(Errno::ENOENT, &[Errno::EINVAL])?;
            g.holds("a", b"a")
        }),
    promise("rename.open-directory")
        .says("an open directory can be listed after its rename")
        .test(|g| {
            g.dir("d")?;
            g.put("d/file", b"x")?;
            let fd = g.open("d", OFlag::O_RDONLY | OFlag::O_DIRECTORY).ready()?;
            g.rename("d", "e").ready()?;
            let mode = nix::sys::stat::Mode::empty();
            let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
            let opened = nix::fcntl::openat(&fd, "file", flags, mode);
            let file = g.did("openat", "e/file", opened).ok()?;
            g.holds_open("e/file", file, b"x")
        }),
];

/// Renames files over a name, until it was checked often enough meanwhile.
fn renamed_over(g: &Ground, looks: &AtomicU64) -> Kept {
    const RENAMES: usize = 100;
    const LOOKS: u64 = 100;
    let mut number = 0;
    loop {
        let looked = looks.load(Ordering::Relaxed);
        if number >= RENAMES && looked >= LOOKS {
            return Ok(());
        }
        if g.is_late() {
            let seen = format!("too few lookups for a verdict: {looked} during {number} renames");
            return Err(g.undecided("stat", seen));
        }
        let from = format!("new-{number}");
        g.put(&from, b"y")?;
        g.rename(&from, "name").ok()?;
        number += 1;
    }
}
