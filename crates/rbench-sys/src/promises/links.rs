//! Hard and symbolic links, and files that have lost their names.

use nix::errno::Errno;
use nix::fcntl::OFlag;

use super::ground::{NEW, Promise, promise};
use super::prepare::pattern;

pub(super) const PROMISES: &[Promise] = &[
    promise("links.hard.one-file")
        .says("two names of a file have the same inode and content")
        .test(|g| {
            g.put("a", b"before")?;
            g.link("a", "b").able(&[Errno::EPERM])?;
            let fd = g.reopened("a")?;
            g.write("a", &fd, b"behind", 0).ready()?;
            drop(fd);
            g.holds("b", b"behind")?;
            g.stat("b").inode(g.stat("a").ok()?.st_ino)
        }),
    promise("links.hard.count")
        .says("link and unlink change the link count")
        .test(|g| {
            g.put("a", b"two")?;
            g.stat("a").links(1)?;
            g.link("a", "b").able(&[Errno::EPERM])?;
            g.stat("a").links(2)?;
            g.unlink("a").ready()?;
            g.stat("b").links(1)
        }),
    promise("links.hard.rename-over")
        .says("rename over one of two names decrements the link count")
        .test(|g| {
            g.put("a", b"x")?;
            g.link("a", "b").able(&[Errno::EPERM])?;
            g.put("c", b"y")?;
            g.rename("c", "b").ready()?;
            g.stat("a").links(1)?;
            g.holds("a", b"x")
        }),
    promise("links.hard.keeps-content")
        .says("the content stays until the last name is removed")
        .test(|g| {
            g.put("a", b"x")?;
            g.link("a", "b").able(&[Errno::EPERM])?;
            g.unlink("a").ok()?;
            g.holds("b", b"x")
        }),
    promise("links.hard.mode")
        .says("a mode change is seen under every name")
        .test(|g| {
            g.put("a", b"x")?;
            g.link("a", "b").able(&[Errno::EPERM])?;
            g.chmod("a", 0o640).ready()?;
            g.stat("b").mode(0o640)
        }),
    promise("links.hard.many")
        .says("a file can have 100 names")
        .test(|g| {
            g.put("a", b"x")?;
            for number in 1..100 {
                g.link("a", format!("a{number}"))
                    .able(&[Errno::EPERM, Errno::EMLINK])?;
            }
            g.stat("a").links(100)
        }),
    promise("links.hard.of-symlink")
        .says("link to a symbolic link links the symbolic link, not its target")
        .test(|g| {
            g.put("target", b"x")?;
            g.symlink("target", "link").ready()?;
            g.link("link", "second").able(&[Errno::EPERM])?;
            g.lstat("second").kind(nix::libc::S_IFLNK)
        }),
    promise("links.symbolic.target")
        .says("readlink returns the target of a symbolic link")
        .test(|g| {
            for (name, target) in [
                ("a", "x"),
                ("b", "../else/where"),
                ("c", "/an/absolute/path"),
                ("d", " "),
            ] {
                g.symlink(target, name).able(&[Errno::EPERM])?;
                g.readlink(name).target(target)?;
            }
            Ok(())
        }),
    promise("links.symbolic.long-target")
        .says("readlink returns a target of 4095 bytes in full")
        .test(|g| {
            let target = "t".repeat(4095);
            // Some keep it within one of their blocks.
            g.symlink(&target, "link")
                .able(&[Errno::EPERM, Errno::ENAMETOOLONG])?;
            let read = || g.readlink("link");
            read().has("length", 4095, |target| target.len())?;
            read().shows(|found| found == *target, ("the target", "another target"))
        }),
    promise("links.symbolic.size")
        .says("the size of a symbolic link is the length of its target")
        .test(|g| {
            g.symlink("four", "link").able(&[Errno::EPERM])?;
            g.lstat("link").size(4)
        }),
    promise("links.symbolic.follows")
        .says("open, stat and chmod follow a symbolic link")
        .test(|g| {
            g.put("target", b"x")?;
            g.symlink("target", "link").able(&[Errno::EPERM])?;
            g.holds("link", b"x")?;
            g.chmod("link", 0o640).ok()?;
            g.stat("target").mode(0o640)?;
            g.stat("link").kind(nix::libc::S_IFREG)
        }),
    promise("links.symbolic.directory")
        .says("a path through a symbolic link to a directory reaches its entries")
        .test(|g| {
            g.dir("d")?;
            g.put("d/file", b"x")?;
            g.symlink("d", "link").able(&[Errno::EPERM])?;
            g.holds("link/file", b"x")?;
            g.put("link/more", b"y")?;
            g.holds("d/more", b"y")
        }),
    promise("links.symbolic.dangling")
        .says("a dangling symbolic link exists, and open of it fails with ENOENT")
        .test(|g| {
            g.symlink("nowhere", "link").able(&[Errno::EPERM])?;
            g.there("link")?;
            g.open("link", OFlag::O_RDONLY).fails(Errno::ENOENT)
        }),
    promise("links.symbolic.create-through")
        .says("open with O_CREAT creates the missing target of a symbolic link")
        .test(|g| {
            g.symlink("made", "link").able(&[Errno::EPERM])?;
            g.open("link", OFlag::O_CREAT | OFlag::O_RDWR).ok()?;
            g.there("made")
        }),
    promise("links.symbolic.exclusive")
        .says("open of a symbolic link with O_CREAT and O_EXCL fails with EEXIST")
        .test(|g| {
            g.symlink("made", "link").able(&[Errno::EPERM])?;
            g.open("link", NEW).fails(Errno::EEXIST)?;
            g.gone("made")
        }),
    promise("links.symbolic.nofollow")
        .says("open of a symbolic link with O_NOFOLLOW fails with ELOOP")
        .test(|g| {
            g.put("target", b"x")?;
            g.symlink("target", "link").able(&[Errno::EPERM])?;
            g.open("link", OFlag::O_RDONLY | OFlag::O_NOFOLLOW)
                .fails(Errno::ELOOP)
        }),
    promise("links.symbolic.unlink")
        .says("unlink removes the symbolic link, not its target")
        .test(|g| {
            g.put("target", b"x")?;
            g.symlink("target", "link").able(&[Errno::EPERM])?;
            g.unlink("link").ok()?;
            g.gone("link")?;
            g.there("target")
        }),
    promise("links.symbolic.not-a-link")
        .says("readlink of a file or directory fails with EINVAL")
        .test(|g| {
            g.put("file", b"x")?;
            g.dir("d")?;
            g.readlink("file").fails(Errno::EINVAL)?;
            g.readlink("d").fails(Errno::EINVAL)
        }),
    promise("links.unnamed.content")
        .says("an unlinked file keeps its content while it is open")
        .test(|g| {
            let fd = g.file("a")?;
            g.write("a", &fd, &pattern(10_000), 0).ready()?;
            g.unlink("a").ready()?;
            g.gone("a")?;
            g.holds_open("a", &fd, &pattern(10_000))
        }),
    promise("links.unnamed.writes")
        .says("an unlinked open file can be written and truncated")
        .test(|g| {
            let fd = g.file("a")?;
            g.write("a", &fd, b"before", 0).ready()?;
            g.unlink("a").ready()?;
            g.write("a", &fd, b"behind", 6).ok()?;
            g.holds_open("a", &fd, b"beforebehind")?;
            g.ftruncate("a", &fd, 3).ok()?;
            g.holds_open("a", &fd, b"bef")
        }),
    promise("links.unnamed.second-open")
        .says("an unlinked file stays readable through a read-only descriptor")
        .test(|g| {
            g.put("a", &pattern(5000))?;
            let fd = g.open("a", OFlag::O_RDONLY).ready()?;
            g.unlink("a").ready()?;
            g.holds_open("a", &fd, &pattern(5000))
        }),
    promise("links.unnamed.stat")
        .says("fstat of an unlinked open file succeeds")
        .test(|g| {
            let fd = g.file("a")?;
            g.write("a", &fd, b"12345", 0).ready()?;
            g.unlink("a").ready()?;
            g.fstat("a", &fd).size(5)
        }),
    promise("links.unnamed.count")
        .says("an unlinked open file has a link count of 0")
        .test(|g| {
            let fd = g.file("a")?;
            g.unlink("a").ready()?;
            g.fstat("a", &fd).links(0)
        }),
    promise("links.unnamed.hidden")
        .says("an unlinked file is not listed, even while it is open")
        .test(|g| {
            let _fd = g.file("a")?;
            g.unlink("a").ready()?;
            g.list(".").count(0)
        }),
    promise("links.unnamed.directory")
        .says("a directory whose files are all unlinked can be removed while they are open")
        .test(|g| {
            g.dir("d")?;
            let _fd = g.file("d/a")?;
            g.unlink("d/a").ready()?;
            g.rmdir("d").ok()
        }),
    promise("links.unnamed.mode")
        .says("fchmod of an unlinked open file succeeds")
        .test(|g| {
            let fd = g.file("a")?;
            g.unlink("a").ready()?;
            let mode = nix::sys::stat::Mode::from_bits_truncate(0o600);
            g.did("fchmod", "a", nix::sys::stat::fchmod(&fd, mode))
                .ok()?;
            g.fstat("a", &fd).mode(0o600)
        }),
    promise("links.unnamed.same-name")
        .says("a new file with the name of an unlinked one is a different file")
        .test(|g| {
            let fd = g.file("a")?;
            g.write("a", &fd, b"old", 0).ready()?;
            g.unlink("a").ready()?;
            g.put("a", b"new!")?;
            g.holds_open("a", &fd, b"old")?;
            g.holds("a", b"new!")
        }),
];
