//! Names: errors of operations, the lengths of names and paths, and their bytes.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::{OFlag, RenameFlags};
use nix::libc;
use nix::sys::stat::SFlag;

use super::did::{Breach, Did, Kept};
use super::ground::{Ground, NEW, Promise, promise};

pub(super) const PROMISES: &[Promise] = &[
    promise("names.missing.open")
        .says("open of a missing name fails with ENOENT")
        .test(|g| g.open("missing", OFlag::O_RDONLY).fails(Errno::ENOENT)),
    promise("names.missing.stat")
        .says("stat of a missing name fails with ENOENT")
        .test(|g| g.stat("missing").fails(Errno::ENOENT)),
    promise("names.missing.unlink")
        .says("unlink of a missing name fails with ENOENT")
        .test(|g| g.unlink("missing").fails(Errno::ENOENT)),
    promise("names.missing.rmdir")
        .says("rmdir of a missing name fails with ENOENT")
        .test(|g| g.rmdir("missing").fails(Errno::ENOENT)),
    promise("names.missing.readlink")
        .says("readlink of a missing name fails with ENOENT")
        .test(|g| g.readlink("missing").fails(Errno::ENOENT)),
    promise("names.missing.chmod")
        .says("chmod of a missing name fails with ENOENT")
        .test(|g| g.chmod("missing", 0o600).fails(Errno::ENOENT)),
    promise("names.missing.chown")
        .says("chown of a missing name fails with ENOENT")
        .test(|g| g.chown("missing", None, None).fails(Errno::ENOENT)),
    promise("names.missing.truncate")
        .says("truncate of a missing name fails with ENOENT")
        .test(|g| g.truncate("missing", 0).fails(Errno::ENOENT)),
    promise("names.missing.rename")
        .says("rename of a missing name fails with ENOENT")
        .test(|g| g.rename("missing", "new").fails(Errno::ENOENT)),
    promise("names.missing.link")
        .says("link of a missing name fails with ENOENT")
        .test(|g| g.link("missing", "new").fails(Errno::ENOENT)),
    promise("names.missing.parent")
        .says("creating an entry in a missing directory fails with ENOENT")
        .test(|g| {
            g.put("file", b"")?;
            making(g, "missing/new", |did| did.fails(Errno::ENOENT))
        }),
    promise("names.removed.parent")
        .says("creating an entry in a removed directory fails with ENOENT")
        .test(|g| {
            g.dir("d")?;
            let fd = g.open("d", OFlag::O_RDONLY | OFlag::O_DIRECTORY).ready()?;
            g.rmdir("d").ready()?;
            let flags = OFlag::O_CREAT | OFlag::O_RDWR | OFlag::O_CLOEXEC;
            let mode = nix::sys::stat::Mode::from_bits_truncate(0o644);
            let result = nix::fcntl::openat(&fd, "new", flags, mode);
            g.did("openat", "d/new", result).fails(Errno::ENOENT)
        }),
    promise("names.empty")
        .says("an empty name fails with ENOENT")
        .test(|g| {
            let nowhere = |did: Did<()>| did.fails(Errno::ENOENT);
            nowhere(g.did("mkdir", "", nix::unistd::mkdir("", MODE)))?;
            nowhere(g.did("unlink", "", nix::unistd::unlink("")))?;
            nowhere(g.did("stat", "", nix::sys::stat::stat("").map(drop)))
        }),
    promise("names.below-file.open")
        .says("open of a name below a file fails with ENOTDIR")
        .test(|g| {
            g.put("file", b"")?;
            g.open("file/x", OFlag::O_RDONLY).fails(Errno::ENOTDIR)
        }),
    promise("names.below-file.make")
        .says("creating an entry below a file fails with ENOTDIR")
        .test(|g| {
            g.put("file", b"")?;
            making(g, "file/new", |did| did.fails(Errno::ENOTDIR))
        }),
    promise("names.below-file.change")
        .says("changing or removing a name below a file fails with ENOTDIR")
        .test(|g| {
            g.put("file", b"")?;
            g.stat("file/x").fails(Errno::ENOTDIR)?;
            g.unlink("file/x").fails(Errno::ENOTDIR)?;
            g.rmdir("file/x").fails(Errno::ENOTDIR)?;
            g.chmod("file/x", 0o600).fails(Errno::ENOTDIR)?;
            g.truncate("file/x", 0).fails(Errno::ENOTDIR)?;
            g.rename("file/x", "new").fails(Errno::ENOTDIR)
        }),
    promise("names.slash.file")
        .says("a file's name with a trailing slash fails with ENOTDIR")
        .test(|g| {
            g.put("file", b"")?;
            g.stat("file/").fails(Errno::ENOTDIR)?;
            g.unlink("file/").fails(Errno::ENOTDIR)
        }),
    promise("names.slash.directory")
        .says("a directory's name may have trailing slashes")
        .test(|g| {
            g.dir("d")?;
            g.stat("d///").ok()?;
            g.mkdir("e/", 0o755).ok()?;
            g.rmdir("e/").ok()
        }),
    promise("names.exists.mkdir")
        .says("mkdir of an existing name fails with EEXIST")
        .test(|g| {
            g.put("file", b"")?;
            g.dir("d")?;
            g.symlink("nowhere", "link").ready()?;
            for name in ["file", "d", "link"] {
                g.mkdir(name, 0o755).fails(Errno::EEXIST)?;
            }
            Ok(())
        }),
    promise("names.exists.create")
        .says("open of an existing name with O_EXCL fails with EEXIST")
        .test(|g| {
            g.put("file", b"")?;
            g.dir("d")?;
            g.open("file", NEW).fails(Errno::EEXIST)?;
            g.open("d", NEW).fails(Errno::EEXIST)
        }),
    promise("names.exists.link")
        .says("link to an existing name fails with EEXIST")
        .test(|g| {
            g.put("file", b"")?;
            g.put("other", b"")?;
            g.dir("d")?;
            g.link("file", "other").fails_with(&[Errno::EEXIST])?;
            g.link("file", "d").fails(Errno::EEXIST)
        }),
    promise("names.exists.symlink")
        .says("symlink at an existing name fails with EEXIST")
        .test(|g| {
            g.put("file", b"")?;
            g.dir("d")?;
            g.symlink("x", "file").fails(Errno::EEXIST)?;
            g.symlink("x", "d").fails(Errno::EEXIST)
        }),
    promise("names.exists.mkfifo")
        .says("mkfifo of an existing name fails with EEXIST")
        .test(|g| {
            g.put("file", b"")?;
            g.mkfifo("file", 0o600).fails(Errno::EEXIST)
        }),
    promise("names.directory.unlink")
        .says("unlink of a directory fails with EISDIR")
        .test(|g| {
            g.dir("d")?;
            g.unlink("d").fails(Errno::EISDIR)?;
            g.there("d")
        }),
    promise("names.directory.write")
        .says("open of a directory for writing fails with EISDIR")
        .test(|g| {
            g.dir("d")?;
            g.open("d", OFlag::O_WRONLY).fails(Errno::EISDIR)?;
            g.open("d", OFlag::O_RDWR).fails(Errno::EISDIR)?;
            g.open("d", OFlag::O_WRONLY | OFlag::O_TRUNC)
                .fails(Errno::EISDIR)
        }),
    promise("names.directory.create")
        .says("open with O_CREAT of a directory fails with EISDIR")
        .test(|g| {
            g.dir("d")?;
            g.open("d", OFlag::O_RDONLY | OFlag::O_CREAT)
                .fails(Errno::EISDIR)
        }),
    promise("names.directory.truncate")
        .says("truncate of a directory fails with EISDIR")
        .test(|g| {
            g.dir("d")?;
            g.truncate("d", 0).fails(Errno::EISDIR)
        }),
    promise("names.directory.read")
        .says("read of a directory fails with EISDIR")
        .test(|g| {
            g.dir("d")?;
            let fd = g.open("d", OFlag::O_RDONLY).ready()?;
            g.next("d", &fd, 10).fails(Errno::EISDIR)
        }),
    promise("names.directory.link")
        .says("a hard link to a directory fails with EPERM")
        .test(|g| {
            g.dir("d")?;
            g.link("d", "e").fails(Errno::EPERM)?;
            g.gone("e")
        }),
    promise("names.not-directory.rmdir")
        .says("rmdir of a file or symbolic link fails with ENOTDIR")
        .test(|g| {
            g.put("file", b"")?;
            g.dir("d")?;
            g.symlink("d", "link").ready()?;
            g.rmdir("file").fails(Errno::ENOTDIR)?;
            g.rmdir("link").fails(Errno::ENOTDIR)?;
            g.there("file")
        }),
    promise("names.not-directory.open")
        .says("open of a file with O_DIRECTORY fails with ENOTDIR")
        .test(|g| {
            g.put("file", b"")?;
            g.open("file", OFlag::O_RDONLY | OFlag::O_DIRECTORY)
                .fails(Errno::ENOTDIR)
        }),
    promise("names.rmdir.not-empty")
        .says("rmdir of a non-empty directory fails with ENOTEMPTY")
        .test(|g| {
            g.dir("d")?;
            g.put("d/file", b"")?;
            g.rmdir("d")
                .fails_with(&[Errno::ENOTEMPTY, Errno::EEXIST])?;
            g.there("d/file")
        }),
    promise("names.rmdir.removes")
        .says("a directory is gone after rmdir")
        .test(|g| {
            g.dir("d")?;
            g.rmdir("d").ok()?;
            g.gone("d")
        }),
    promise("names.rmdir.dot")
        .says("rmdir of '.' fails with EINVAL")
        .test(|g| {
            g.dir("d")?;
            g.rmdir("d/.").fails(Errno::EINVAL)
        }),
    promise("names.rmdir.dot-dot")
        .says("rmdir of '..' fails with ENOTEMPTY")
        .test(|g| {
            g.dir("d")?;
            g.rmdir("d/..")
                .fails_with(&[Errno::ENOTEMPTY, Errno::EEXIST, Errno::EBUSY])
        }),
    promise("names.unlink.removes")
        .says("a file is gone after unlink")
        .test(|g| {
            g.put("file", b"x")?;
            g.unlink("file").ok()?;
            g.gone("file")
        }),
    promise("names.unlink.again")
        .says("a removed name can be created again, as an empty file")
        .test(|g| {
            g.put("file", b"old content")?;
            g.unlink("file").ready()?;
            let fd = g.open("file", NEW).ok()?;
            g.fstat("file", &fd).size(0)
        }),
    promise("names.mkdir.makes")
        .says("mkdir creates an empty directory")
        .test(|g| {
            g.mkdir("d", 0o755).ok()?;
            g.stat("d").kind(libc::S_IFDIR)?;
            g.list("d").count(0)
        }),
    promise("names.mkfifo.makes")
        .says("mkfifo creates a named pipe")
        .test(|g| {
            g.mkfifo("pipe", 0o600).able(&[Errno::EPERM])?;
            g.lstat("pipe").kind(libc::S_IFIFO)
        }),
    promise("names.socket.makes")
        .says("mknod creates a socket, and open of it fails with ENXIO")
        .test(|g| {
            let result = nix::sys::stat::mknod(&g.at("socket"), SFlag::S_IFSOCK, MODE, 0);
            g.did("mknodat", "socket", result)
                .able(&[Errno::EPERM, Errno::EINVAL])?;
            g.lstat("socket").kind(libc::S_IFSOCK)?;
            g.open("socket", OFlag::O_RDWR).fails(Errno::ENXIO)
        }),
    promise("names.other-file-system")
        .says("rename into another file system fails with EXDEV")
        .test(|g| {
            g.put("file", b"")?;
            g.rename("file", "/proc/self/file").fails(Errno::EXDEV)?;
            g.there("file")
        }),
    promise("names.loop")
        .says("paths through a loop of symbolic links fail with ELOOP")
        .test(|g| {
            g.symlink("b", "a").ready()?;
            g.symlink("a", "b").ready()?;
            g.open("a", OFlag::O_RDONLY).fails(Errno::ELOOP)?;
            g.stat("a").fails(Errno::ELOOP)?;
            g.chmod("a", 0o600).fails(Errno::ELOOP)?;
            g.truncate("a", 0).fails(Errno::ELOOP)?;
            making(g, "a/new", |did| did.fails(Errno::ELOOP))
        }),
    promise("names.length.255")
        .says("a name may have 255 bytes, or the maximum that statvfs reports")
        .test(|g| {
            let most = longest(g)?;
            let name = "n".repeat(most);
            g.open(&name, NEW).ok()?;
            g.there(&name)?;
            let names_listed = g.entries(".").ok()?.contains(name.as_bytes());
            g.is(
                "getdents64",
                &name,
                names_listed,
                ("the name is listed", "the name is not listed"),
            )?;
            g.unlink(&name).ok()
        }),
    promise("names.length.256")
        .says("a name longer than statvfs reports fails with ENAMETOOLONG")
        .test(|g| {
            let name = "n".repeat(longest(g)? + 1);
            g.put("file", b"")?;
            making(g, &name, |did| did.fails(Errno::ENAMETOOLONG))?;
            g.stat(&name).fails(Errno::ENAMETOOLONG)?;
            g.unlink(&name).fails(Errno::ENAMETOOLONG)?;
            g.rmdir(&name).fails(Errno::ENAMETOOLONG)
        }),
    promise("names.length.whole")
        .says("long names that differ only in the last byte are distinct")
        .test(|g| {
            let (one, two) = ("n".repeat(longest(g)? - 1), "a");
            g.put(format!("{one}1"), b"one")?;
            g.put(format!("{one}2"), b"two")?;
            g.put(two, b"")?;
            g.holds(format!("{one}1"), b"one")?;
            g.holds(format!("{one}2"), b"two")
        }),
    promise("names.path.4096")
        .says("a path of 4096 bytes fails with ENAMETOOLONG")
        .test(|g| {
            let path = "./".repeat(2048);
            g.did("stat", ".", nix::sys::stat::stat(path.as_str()))
                .fails(Errno::ENAMETOOLONG)
        }),
    promise("names.path.deep")
        .says("directories can be nested 100 deep")
        .test(|g| {
            let mut path = PathBuf::new();
            for _ in 0..100 {
                path.push("directory");
                g.mkdir(&path, 0o755).ok()?;
            }
            g.put(path.join("file"), b"deep")?;
            g.holds(path.join("file"), b"deep")
        }),
    promise("names.bytes.any")
        .says("a name may hold any bytes but zero and '/', and is listed unchanged")
        .test(|g| {
            // Upper and lower case belong to another promise.
            let bytes = || (1..=255_u8).filter(|byte| *byte != b'/' && !byte.is_ascii_uppercase());
            for byte in bytes() {
                let bytes = [b'a', byte, b'z'];
                let name = OsStr::from_bytes(&bytes);
                g.open(name, NEW).ok()?;
            }
            let missing = |listed: BTreeSet<Vec<u8>>| -> Vec<u8> {
                let missing = |byte: &u8| !listed.contains(&[b'a', *byte, b'z'][..]);
                bytes().filter(missing).collect()
            };
            let what = "bytes missing in listed names";
            g.entries(".").has(what, Vec::new(), missing)
        }),
    promise("names.bytes.spaces")
        .says("names may start and end with spaces and dots")
        .test(|g| {
            for name in [
                " ", "  ", " a", "a ", "...", ".a", "a.", "a..", "-", "~", "\n",
            ] {
                g.open(name, NEW).ok()?;
            }
            g.entries(".").has("entries", 11, |all| all.len())
        }),
    promise("names.bytes.composed")
        .says("names that differ only in their Unicode form are distinct")
        .test(|g| {
            // é as one character, and as e with a combining accent.
            g.put("\u{e9}", b"one")?;
            g.open("e\u{301}", OFlag::O_RDONLY).fails(Errno::ENOENT)?;
            let listed = g.entries(".").ok()?;
            let right = listed.iter().all(|name| name == "\u{e9}".as_bytes());
            g.is(
                "getdents64",
                "\u{e9}",
                right,
                ("the bytes it was created with", "other bytes"),
            )
        }),
    promise("names.case")
        .says("names that differ only in case are distinct")
        .test(|g| {
            g.put("Case", b"")?;
            g.gone("cASE")?;
            g.open("case", NEW).ok()?;
            g.entries(".").has("entries", 2, |all| all.len())
        }),
    promise("names.dot-dot")
        .says("'..' leads to the parent directory, even after a rename")
        .test(|g| {
            g.dir("a")?;
            g.dir("b")?;
            g.dir("a/d")?;
            g.put("a/in-a", b"")?;
            g.put("b/in-b", b"")?;
            g.there("a/d/../in-a")?;
            g.rename("a/d", "b/d").ready()?;
            g.there("b/d/../in-b")?;
            g.stat("b/d/..").inode(g.stat("b").ok()?.st_ino)
        }),
];

const MODE: nix::sys::stat::Mode = nix::sys::stat::Mode::from_bits_truncate(0o644);

/// The longest name in bytes, as reported by the file system.
fn longest(g: &Ground) -> Result<usize, Breach> {
    let name_max = nix::sys::statvfs::statvfs(&g.at("."));
    let name_max = g.did("statvfs", ".", name_max).ready()?.name_max() as usize;
    match name_max {
        2..=1023 => Ok(name_max),
        _ => Err(g.undecided(
            "statvfs",
            format!("statvfs reports names of up to {name_max} bytes"),
        )),
    }
}

/// Every way to create a name; `file` exists, to be linked and renamed.
fn making(g: &Ground, name: &str, judge: impl Fn(Did<()>) -> Kept) -> Kept {
    if g.lstat("file").result.is_err() {
        g.put("file", b"")?;
    }
    let opened = g.open(name, OFlag::O_CREAT | OFlag::O_RDWR);
    judge(g.did("openat", name, opened.result.map(drop)))?;
    judge(g.mkdir(name, 0o755))?;
    judge(g.mkfifo(name, 0o600))?;
    judge(g.symlink("target", name))?;
    judge(g.link("file", name))?;
    judge(g.rename("file", name))?;
    judge(g.rename_with("file", name, RenameFlags::RENAME_NOREPLACE))
}
