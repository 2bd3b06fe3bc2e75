//! Extended attributes.

use std::ffi::CString;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::stat::FileStat;
use rbench_core::{By, Call};

use super::did::{Breach, Did, Kept};
use super::ground::{Ground, Promise, promise};
use super::prepare::pattern;
use crate::fs::{Data, Fs as _, Operands};
use crate::posix::PosixFs;

pub(super) const PROMISES: &[Promise] = &[
    promise("xattr.set")
        .says("an attribute that was set is read back")
        .test(|g| {
            let fd = able(g)?;
            set(g, &fd, "user.name", b"value", 0).ok()?;
            value(g, &fd, "user.name", b"value")
        }),
    promise("xattr.bytes")
        .says("a value may hold any bytes")
        .test(|g| {
            let fd = able(g)?;
            let bytes: Vec<u8> = (0..=255).collect();
            set(g, &fd, "user.name", &bytes, 0).ok()?;
            value(g, &fd, "user.name", &bytes)
        }),
    promise("xattr.empty")
        .says("an empty value is kept")
        .test(|g| {
            let fd = able(g)?;
            set(g, &fd, "user.name", b"", 0).ok()?;
            value(g, &fd, "user.name", b"")?;
            names(g, &fd, &["user.name"])
        }),
    promise("xattr.replaces")
        .says("setting an attribute again replaces its value")
        .test(|g| {
            let fd = able(g)?;
            set(g, &fd, "user.name", b"a longer value", 0).ok()?;
            set(g, &fd, "user.name", b"short", 0).ok()?;
            value(g, &fd, "user.name", b"short")
        }),
    promise("xattr.several")
        .says("several attributes keep their own values, and all are listed")
        .test(|g| {
            let fd = able(g)?;
            let all: Vec<String> = (0..8).map(|number| format!("user.{number}")).collect();
            for name in &all {
                set(g, &fd, name, format!("value of {name}").as_bytes(), 0).ok()?;
            }
            for name in &all {
                value(g, &fd, name, format!("value of {name}").as_bytes())?;
            }
            names(g, &fd, &all)
        }),
    promise("xattr.create.exists")
        .says("XATTR_CREATE of an existing attribute fails with EEXIST")
        .test(|g| {
            let fd = able(g)?;
            set(g, &fd, "user.name", b"old", libc::XATTR_CREATE).ok()?;
            set(g, &fd, "user.name", b"new", libc::XATTR_CREATE).fails(Errno::EEXIST)?;
            value(g, &fd, "user.name", b"old")
        }),
    promise("xattr.replace.missing")
        .says("XATTR_REPLACE of a missing attribute fails with ENODATA")
        .test(|g| {
            let fd = able(g)?;
            set(g, &fd, "user.name", b"new", libc::XATTR_REPLACE).fails(Errno::ENODATA)?;
            names(g, &fd, &[""; 0])
        }),
    promise("xattr.missing")
        .says("reading or removing a missing attribute fails with ENODATA")
        .test(|g| {
            let fd = able(g)?;
            get(g, &fd, "user.name", 100).fails(Errno::ENODATA)?;
            remove(g, &fd, "user.name").fails(Errno::ENODATA)
        }),
    promise("xattr.remove")
        .says("a removed attribute is gone, and the others stay")
        .test(|g| {
            let fd = able(g)?;
            set(g, &fd, "user.a", b"a", 0).ready()?;
            set(g, &fd, "user.b", b"b", 0).ready()?;
            remove(g, &fd, "user.a").ok()?;
            get(g, &fd, "user.a", 100).fails(Errno::ENODATA)?;
            value(g, &fd, "user.b", b"b")?;
            names(g, &fd, &["user.b"])
        }),
    promise("xattr.small-buffer")
        .says("a buffer that is too small fails with ERANGE")
        .test(|g| {
            let fd = able(g)?;
            set(g, &fd, "user.name", b"0123456789", 0).ready()?;
            get(g, &fd, "user.name", 5).fails(Errno::ERANGE)
        }),
    promise("xattr.size")
        .says("without a buffer, getxattr returns the length of the value")
        .test(|g| {
            let fd = able(g)?;
            set(g, &fd, "user.name", b"0123456789", 0).ready()?;
            let length = on(g, GET, &fd, "user.name", Data::Into(&mut []));
            length.has("length", 10, |length| length)
        }),
    promise("xattr.name-length")
        .says("a name of 255 bytes is kept, and a longer one fails with ERANGE")
        .test(|g| {
            let fd = able(g)?;
            let name = format!("user.{}", "n".repeat(250));
            set(g, &fd, &name, b"value", 0).able(&[
                Errno::ENOSPC,
                Errno::E2BIG,
                Errno::ENAMETOOLONG,
            ])?;
            value(g, &fd, &name, b"value")?;
            set(g, &fd, &format!("{name}n"), b"value", 0)
                .fails_with(&[Errno::ERANGE, Errno::ENAMETOOLONG])
        }),
    promise("xattr.value-1000")
        .says("a value of 1000 bytes is kept")
        .test(|g| {
            let fd = able(g)?;
            set(g, &fd, "user.name", &pattern(1000), 0).able(&[Errno::ENOSPC, Errno::E2BIG])?;
            value(g, &fd, "user.name", &pattern(1000))
        }),
    promise("xattr.value-64k")
        .says("a value of 64 KiB is kept in full or refused")
        .test(|g| {
            let fd = able(g)?;
            let refused = [Errno::ENOSPC, Errno::E2BIG, Errno::ERANGE, Errno::EINVAL];
            let done = set(g, &fd, "user.name", &pattern(65_536), 0);
            if done.result.is_err_and(|errno| refused.contains(&errno)) {
                return Ok(());
            }
            done.able(&[Errno::EIO])?;
            value(g, &fd, "user.name", &pattern(65_536))
        }),
    promise("xattr.value-too-long")
        .says("a value above 64 KiB fails with E2BIG")
        .test(|g| {
            let fd = able(g)?;
            set(g, &fd, "user.name", &pattern(65_537), 0).fails(Errno::E2BIG)
        }),
    promise("xattr.unknown-space")
        .says("a name outside all namespaces fails with EOPNOTSUPP")
        .test(|g| {
            let fd = able(g)?;
            set(g, &fd, "nothing.name", b"value", 0).fails_with(&[Errno::EOPNOTSUPP, Errno::EINVAL])
        }),
    promise("xattr.directory")
        .says("directories can have attributes")
        .test(|g| {
            able(g)?;
            g.dir("d")?;
            let fd = g.open("d", nix::fcntl::OFlag::O_RDONLY).ready()?;
            set(g, &fd, "user.name", b"value", 0).ok()?;
            value(g, &fd, "user.name", b"value")
        }),
    promise("xattr.ctime")
        .says("setting an attribute changes the change time")
        .test(|g| {
            let fd = able(g)?;
            let time = |all: FileStat| (all.st_ctime, all.st_ctime_nsec);
            let before = time(g.stat("a").ok()?);
            g.tick()?;
            set(g, &fd, "user.name", b"value", 0).ready()?;
            let words = ("a later change time", "the previous one");
            g.stat("a").shows(|all| time(all) > before, words)
        }),
    promise("xattr.keeps-mtime")
        .says("setting an attribute keeps the modification time")
        .test(|g| {
            let fd = able(g)?;
            let time = nix::sys::time::TimeSpec::new(1_000_000_000, 0);
            g.utimens("a", time, time).ready()?;
            set(g, &fd, "user.name", b"value", 0).ready()?;
            g.stat("a").modified(1_000_000_000)
        }),
    promise("xattr.rename")
        .says("a renamed file keeps its attributes")
        .test(|g| {
            let fd = able(g)?;
            set(g, &fd, "user.name", b"value", 0).ready()?;
            drop(fd);
            g.rename("a", "b").ready()?;
            let fd = g.reopened("b")?;
            value(g, &fd, "user.name", b"value")
        }),
    promise("xattr.new-file")
        .says("a new file with a removed file's name has none of its attributes")
        .test(|g| {
            let fd = able(g)?;
            set(g, &fd, "user.name", b"value", 0).ready()?;
            drop(fd);
            g.unlink("a").ready()?;
            let fd = g.file("a")?;
            names(g, &fd, &[""; 0])
        }),
    promise("xattr.keeps-content")
        .says("setting attributes changes neither content nor size")
        .test(|g| {
            let fd = able(g)?;
            g.write("a", &fd, b"content", 0).ready()?;
            set(g, &fd, "user.name", &pattern(500), 0).ready()?;
            g.stat("a").size(7)?;
            g.holds("a", b"content")
        }),
    promise("xattr.trusted")
        .says("root can keep attributes in the namespace 'trusted.'")
        .test_as_root(|g| {
            let fd = able(g)?;
            set(g, &fd, "trusted.name", b"value", 0).able(&[Errno::EPERM])?;
            value(g, &fd, "trusted.name", b"value")
        }),
];

const GET: Call = Call::Getxattr(By::File, None);

/// Makes a call on the attribute `name` of the open file `a`.
fn on(g: &Ground, call: Call, fd: &OwnedFd, name: &str, data: Data<'_>) -> Did<u64> {
    let name = CString::new(name).unwrap_or_default();
    let file = Operands::file(fd.as_raw_fd());
    let other = &name;
    let on = Operands {
        other,
        data,
        ..file
    };
    g.did(call.names(), "a", PosixFs::here().call(&call, on))
}

/// Creates a file `a`, if the file system supports user attributes: another file tests that.
fn able(g: &Ground) -> Result<OwnedFd, Breach> {
    let other = g.file("tried")?;
    let list = Call::Listxattr(By::File);
    let listed = PosixFs::here().receiving(list, other.as_raw_fd(), &mut []);
    g.did("flistxattr", "tried", listed).able(&[])?;
    let tried = set(g, &other, "user.tried", b"x", 0);
    if let Err(Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EPERM) = tried.result {
        tried.able(&[Errno::EPERM])?;
    }
    g.file("a")
}

fn set(g: &Ground, fd: &OwnedFd, name: &str, bytes: &[u8], flags: i32) -> Did<()> {
    let set = Call::Setxattr(By::File, None, flags);
    on(g, set, fd, name, Data::From(bytes)).map(drop)
}

/// The value, in a buffer of `most` bytes.
fn get(g: &Ground, fd: &OwnedFd, name: &str, most: usize) -> Did<Vec<u8>> {
    let mut buffer = vec![0; most];
    let length = on(g, GET, fd, name, Data::Into(&mut buffer));
    length.map(|length| {
        buffer.truncate(length as usize);
        buffer
    })
}

fn value(g: &Ground, fd: &OwnedFd, name: &str, wanted: &[u8]) -> Kept {
    get(g, fd, name, 70_000).bytes(wanted)
}

fn remove(g: &Ground, fd: &OwnedFd, name: &str) -> Did<()> {
    let remove = Call::Removexattr(By::File, None);
    on(g, remove, fd, name, Data::From(&[])).map(drop)
}

/// Expects the user attributes to have these names, in order, by the promise.
fn names(g: &Ground, fd: &OwnedFd, expected: &[impl AsRef<str>]) -> Kept {
    let mut buffer = vec![0; 10_000];
    let length = on(
        g,
        Call::Listxattr(By::File),
        fd,
        "",
        Data::Into(&mut buffer),
    );
    let names = |length| {
        let names = buffer[..length as usize].split(|byte| *byte == 0);
        let names = names.map(|name| String::from_utf8_lossy(name).into_owned());
        let mut names: Vec<String> = names.filter(|name| name.starts_with("user.")).collect();
        names.sort();
        names
    };
    let expected = expected.iter().map(|name| name.as_ref().to_owned());
    length.has("names", expected.collect(), names)
}
