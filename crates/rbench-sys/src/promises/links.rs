//! Hard and symbolic links, and files that have lost their names.

use nix::errno::Errno;
use nix::fcntl::OFlag;

use super::Group;
use super::ground::{NEW, Promise, pattern, promise};

pub(super) const GROUP: Group = Group {
    name: "links",
    about: "hard links and link counts, symbolic links, unnamed files",
    promises: PROMISES,
};

const PROMISES: &[Promise] = &[
    promise(
        "links.hard.one-file",
        "two names of a file have the same inode and content",
        |g| {
            g.put("a", b"before")?;
            g.link("a", "b").able(&[Errno::EPERM])?;
            let fd = g.reopened("a")?;
            g.write("a", &fd, b"behind", 0).ready()?;
            drop(fd);
            g.holds("b", b"behind")?;
            g.stat("b").inode(g.stat("a").ok()?.st_ino)
        },
    ),
    promise(
        "links.hard.count",
        "link and unlink change the link count",
        |g| {
            g.put("a", b"two")?;
            g.stat("a").links(1)?;
            g.link("a", "b").able(&[Errno::EPERM])?;
            g.stat("a").links(2)?;
            g.unlink("a").ready()?;
            g.stat("b").links(1)
        },
    ),
    promise(
        "links.hard.rename-over",
        "rename over one of two names decrements the link count",
        |g| {
            g.put("a", b"x")?;
            g.link("a", "b").able(&[Errno::EPERM])?;
            g.put("c", b"y")?;
            g.rename("c", "b").ready()?;
            g.stat("a").links(1)?;
            g.holds("a", b"x")
        },
    ),
    promise(
        "links.hard.keeps-content",
        "the content stays until the last name is removed",
        |g| {
            g.put("a", b"x")?;
            g.link("a", "b").able(&[Errno::EPERM])?;
            g.unlink("a").ok()?;
            g.holds("b", b"x")
        },
    ),
    promise(
        "links.hard.mode",
        "a mode change is seen under every name",
        |g| {
            g.put("a", b"x")?;
            g.link("a", "b").able(&[Errno::EPERM])?;
            g.chmod("a", 0o640).ready()?;
            g.stat("b").mode(0o640)
        },
    ),
    promise("links.hard.many", "a file can have 100 names", |g| {
        g.put("a", b"x")?;
        for number in 1..100 {
            g.link("a", format!("a{number}"))
                .able(&[Errno::EPERM, Errno::EMLINK])?;
        }
        g.stat("a").links(100)
    }),
    promise(
        "links.hard.of-symlink",
        "link to a symbolic link links the symbolic link, not its target",
        |g| {
            g.put("target", b"x")?;
            g.symlink("target", "link").ready()?;
            g.link("link", "second").able(&[Errno::EPERM])?;
            g.lstat("second").kind(nix::libc::S_IFLNK)
        },
    ),
    promise(
        "links.symbolic.target",
        "readlink returns the target of a symbolic link",
        |g| {
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
        },
    ),
    promise(
        "links.symbolic.long-target",
        "readlink returns a target of 4095 bytes in full",
        |g| {
            let target = "t".repeat(4095);
            // Some keep it within one of their blocks.
            g.symlink(&target, "link")
                .able(&[Errno::EPERM, Errno::ENAMETOOLONG])?;
            let read = || g.readlink("link");
            read().has("length", 4095, |target| target.len())?;
            read().shows(|found| found == *target, ("the target", "another target"))
        },
    ),
    promise(
        "links.symbolic.size",
        "the size of a symbolic link is the length of its target",
        |g| {
            g.symlink("four", "link").able(&[Errno::EPERM])?;
            g.lstat("link").size(4)
        },
    ),
    promise(
        "links.symbolic.follows",
        "open, stat and chmod follow a symbolic link",
        |g| {
            g.put("target", b"x")?;
            g.symlink("target", "link").able(&[Errno::EPERM])?;
            g.holds("link", b"x")?;
            g.chmod("link", 0o640).ok()?;
            g.stat("target").mode(0o640)?;
            g.stat("link").kind(nix::libc::S_IFREG)
        },
    ),
    promise(
        "links.symbolic.directory",
        "a path through a symbolic link to a directory reaches its entries",
        |g| {
            g.dir("d")?;
            g.put("d/file", b"x")?;
            g.symlink("d", "link").able(&[Errno::EPERM])?;
            g.holds("link/file", b"x")?;
            g.put("link/more", b"y")?;
            g.holds("d/more", b"y")
        },
    ),
    promise(
        "links.symbolic.dangling",
        "a dangling symbolic link exists, and open of it fails with ENOENT",
        |g| {
            g.symlink("nowhere", "link").able(&[Errno::EPERM])?;
            g.there("link")?;
            g.open("link", OFlag::O_RDONLY).fails(Errno::ENOENT)
        },
    ),
    promise(
        "links.symbolic.create-through",
        "open with O_CREAT creates the missing target of a symbolic link",
        |g| {
            g.symlink("made", "link").able(&[Errno::EPERM])?;
            g.open("link", OFlag::O_CREAT | OFlag::O_RDWR).ok()?;
            g.there("made")
        },
    ),
    promise(
        "links.symbolic.exclusive",
        "open of a symbolic link with O_CREAT and O_EXCL fails with EEXIST",
        |g| {
            g.symlink("made", "link").able(&[Errno::EPERM])?;
            g.open("link", NEW).fails(Errno::EEXIST)?;
            g.gone("made")
        },
    ),
    promise(
        "links.symbolic.nofollow",
        "open of a symbolic link with O_NOFOLLOW fails with ELOOP",
        |g| {
            g.put("target", b"x")?;
            g.symlink("target", "link").able(&[Errno::EPERM])?;
            g.open("link", OFlag::O_RDONLY | OFlag::O_NOFOLLOW)
                .fails(Errno::ELOOP)
        },
    ),
    promise(
        "links.symbolic.unlink",
        "unlink removes the symbolic link, not its target",
        |g| {
            g.put("target", b"x")?;
            g.symlink("target", "link").able(&[Errno::EPERM])?;
            g.unlink("link").ok()?;
            g.gone("link")?;
            g.there("target")
        },
    ),
    promise(
        "links.symbolic.not-a-link",
        "readlink of a file or directory fails with EINVAL",
        |g| {
            g.put("file", b"x")?;
            g.dir("d")?;
            g.readlink("file").fails(Errno::EINVAL)?;
            g.readlink("d").fails(Errno::EINVAL)
        },
    ),
    promise(
        "links.unnamed.content",
        "an unlinked file keeps its content while it is open",
        |g| {
            let fd = g.file("a")?;
            g.write("a", &fd, &pattern(10_000), 0).ready()?;
            g.unlink("a").ready()?;
            g.gone("a")?;
            g.holds_open("a", &fd, &pattern(10_000))
        },
    ),
    promise(
        "links.unnamed.writes",
        "an unlinked open file can be written and truncated",
        |g| {
            let fd = g.file("a")?;
            g.write("a", &fd, b"before", 0).ready()?;
            g.unlink("a").ready()?;
            g.write("a", &fd, b"behind", 6).ok()?;
            g.holds_open("a", &fd, b"beforebehind")?;
            g.ftruncate("a", &fd, 3).ok()?;
            g.holds_open("a", &fd, b"bef")
        },
    ),
    promise(
        "links.unnamed.second-open",
        "an unlinked file stays readable through a read-only descriptor",
        |g| {
            g.put("a", &pattern(5000))?;
            let fd = g.open("a", OFlag::O_RDONLY).ready()?;
            g.unlink("a").ready()?;
            g.holds_open("a", &fd, &pattern(5000))
        },
    ),
    promise(
        "links.unnamed.stat",
        "fstat of an unlinked open file succeeds",
        |g| {
            let fd = g.file("a")?;
            g.write("a", &fd, b"12345", 0).ready()?;
            g.unlink("a").ready()?;
            g.fstat("a", &fd).size(5)
        },
    ),
    promise(
        "links.unnamed.count",
        "an unlinked open file has a link count of 0",
        |g| {
            let fd = g.file("a")?;
            g.unlink("a").ready()?;
            g.fstat("a", &fd).links(0)
        },
    ),
    promise(
        "links.unnamed.hidden",
        "an unlinked file is not listed, even while it is open",
        |g| {
            let _fd = g.file("a")?;
            g.unlink("a").ready()?;
            g.list(".").count(0)
        },
    ),
    promise(
        "links.unnamed.directory",
        "a directory whose files are all unlinked can be removed while they are open",
        |g| {
            g.dir("d")?;
            let _fd = g.file("d/a")?;
            g.unlink("d/a").ready()?;
            g.rmdir("d").ok()
        },
    ),
    promise(
        "links.unnamed.mode",
        "fchmod of an unlinked open file succeeds",
        |g| {
            let fd = g.file("a")?;
            g.unlink("a").ready()?;
            let mode = nix::sys::stat::Mode::from_bits_truncate(0o600);
            g.did("fchmod", "a", nix::sys::stat::fchmod(&fd, mode))
                .ok()?;
            g.fstat("a", &fd).mode(0o600)
        },
    ),
    promise(
        "links.unnamed.same-name",
        "a new file with the name of an unlinked one is a different file",
        |g| {
            let fd = g.file("a")?;
            g.write("a", &fd, b"old", 0).ready()?;
            g.unlink("a").ready()?;
            g.put("a", b"new!")?;
            g.holds_open("a", &fd, b"old")?;
            g.holds("a", b"new!")
        },
    ),
];
