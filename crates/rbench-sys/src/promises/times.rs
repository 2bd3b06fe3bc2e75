//! Times: the operations that change each of them, and the values that can be set.

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, OFlag, fallocate};
use nix::sys::stat::FileStat;
use nix::sys::time::TimeSpec;

use super::did::Kept;
use super::ground::{Ground, Promise, promise};

/// A time in s that no current clock shows.
const LONG_AGO: i64 = 1_000_000_000;

pub(super) const PROMISES: &[Promise] = &[
    promise("times.write.mtime")
        .says("a write changes the modification time")
        .test(|g| {
            changes_modified(g, |g| {
                let fd = g.reopened("a")?;
                g.write("a", &fd, b"y", 0).ready()
            })
        }),
    promise("times.write.ctime")
        .says("a write changes the change time")
        .test(|g| {
            changes_status(g, |g| {
                let fd = g.reopened("a")?;
                g.write("a", &fd, b"y", 0).ready()
            })
        }),
    promise("times.truncate.mtime")
        .says("a size change changes the modification time")
        .test(|g| changes_modified(g, |g| g.truncate("a", 0).ready())),
    promise("times.truncate.open")
        .says("ftruncate to another size changes the modification time")
        .test(|g| {
            changes_modified(g, |g| {
                let fd = g.reopened("a")?;
                g.ftruncate("a", &fd, 100).ready()
            })
        }),
    promise("times.truncate.ctime")
        .says("a size change changes the change time")
        .test(|g| changes_status(g, |g| g.truncate("a", 0).ready())),
    promise("times.open-truncate.mtime")
        .says("open with O_TRUNC changes the modification time")
        .test(|g| {
            changes_modified(g, |g| {
                g.open("a", OFlag::O_WRONLY | OFlag::O_TRUNC)
                    .ready()
                    .map(drop)
            })
        }),
    promise("times.fallocate.ctime")
        .says("fallocate that extends a file changes the change time")
        .test(|g| {
            changes_status(g, |g| {
                let fd = g.reopened("a")?;
                let done = fallocate(&fd, FallocateFlags::empty(), 0, 10_000);
                g.did("fallocate", "a", done).able(&[])
            })
        }),
    promise("times.chmod.ctime").says("chmod changes the change time").test(|g| {
        changes_status(g, |g| g.chmod("a", 0o600).ready())
    }),
    promise("times.chmod.keeps-mtime")
        .says("chmod keeps the modification time")
        .test(|g| keeps_modified(g, |g| g.chmod("a", 0o600).ready())),
    promise("times.chown.ctime").says("chown changes the change time").test(|g| {
        changes_status(g, |g| {
            let me = nix::unistd::geteuid().as_raw();
            g.chown("a", Some(me), None).ready()
        })
    }),
    promise("times.link.ctime")
        .says("link changes the file's change time")
        .test(|g| changes_status(g, |g| g.link("a", "b").able(&[Errno::EPERM]))),
    promise("times.link.keeps-mtime")
        .says("link keeps the file's modification time")
        .test(|g| keeps_modified(g, |g| g.link("a", "b").able(&[Errno::EPERM]))),
    promise("times.unlink.ctime")
        .says("unlink of one of two names changes the file's change time")
        .test(|g| {
            g.put("a", b"two")?;
            g.link("a", "b").able(&[Errno::EPERM])?;
            status_moves(g, "b", |g| g.unlink("a").ready())
        }),
    promise("times.rename.keeps-mtime")
        .says("rename keeps the file's modification time")
        .test(|g| {
            g.put("a", b"x")?;
            age(g, "a")?;
            g.rename("a", "b").ready()?;
            g.stat("b").modified(LONG_AGO)
        }),
    promise("times.read.keeps-mtime")
        .says("a read keeps the modification and change times")
        .test(|g| {
            g.put("a", b"x")?;
            age(g, "a")?;
            let times = |found: FileStat| (found.st_mtime, changed(&found));
            let before = times(g.stat("a").ready()?);
            g.tick()?;
            g.holds("a", b"x")?;
            g.stat("a").has("modified and changed", before, times)
        }),
    promise("times.stat.keeps").says("stat changes no times").test(|g| {
        g.put("a", b"x")?;
        let times = |found: FileStat| (found.st_atime, found.st_mtime, changed(&found));
        let before = times(g.stat("a").ready()?);
        g.tick()?;
        for _ in 0..3 {
            g.stat("a").ok()?;
        }
        g.stat("a")
            .has("accessed, modified, changed", before, times)
    }),
    promise("times.directory.create")
        .says("creating a file changes its directory's modification time")
        .test(|g| directory_modified(g, |g| g.put("d/new", b""))),
    promise("times.directory.mkdir")
        .says("mkdir changes the parent directory's modification time")
        .test(|g| directory_modified(g, |g| g.mkdir("d/new", 0o755).ready())),
    promise("times.directory.symlink")
        .says("symlink changes its directory's modification time")
        .test(|g| directory_modified(g, |g| g.symlink("x", "d/new").ready())),
    promise("times.directory.mkfifo")
        .says("mkfifo changes its directory's modification time")
        .test(|g| directory_modified(g, |g| g.mkfifo("d/new", 0o600).able(&[Errno::EPERM]))),
    promise("times.directory.link")
        .says("link changes the modification time of the new name's directory")
        .test(|g| {
            directory_modified(g, |g| {
                g.put("file", b"")?;
                g.link("file", "d/new").able(&[Errno::EPERM])
            })
        }),
    promise("times.directory.unlink")
        .says("unlink changes its directory's modification time")
        .test(|g| directory_modified(g, |g| g.unlink("d/file").ready())),
    promise("times.directory.rmdir")
        .says("rmdir changes the parent directory's modification time")
        .test(|g| directory_modified(g, |g| g.rmdir("d/below").ready())),
    promise("times.directory.rename-from")
        .says("rename changes the source directory's modification time")
        .test(|g| directory_modified(g, |g| g.rename("d/file", "elsewhere").ready())),
    promise("times.directory.rename-into")
        .says("rename changes the target directory's modification time")
        .test(|g| {
            directory_modified(g, |g| {
                g.put("file", b"")?;
                g.rename("file", "d/new").ready()
            })
        }),
    promise("times.directory.ctime")
        .says("creating a file changes its directory's change time")
        .test(|g| {
            g.dir("d")?;
            status_moves(g, "d", |g| g.put("d/new", b""))
        }),
    promise("times.directory.refused")
        .says("a failed operation keeps the directory's times")
        .test(|g| {
            g.dir("d")?;
            g.put("d/file", b"")?;
            age(g, "d")?;
            g.mkdir("d/file", 0o755).fails(Errno::EEXIST)?;
            g.unlink("d/missing").fails(Errno::ENOENT)?;
            g.stat("d").modified(LONG_AGO)
        }),
    promise("times.create.now")
        .says("a new file's three times are equal and current")
        .test(|g| {
            g.put("before", b"")?;
            g.tick()?;
            g.open("a", OFlag::O_CREAT | OFlag::O_RDWR).ready()?;
            let (before, found) = (g.stat("before").ok()?, g.stat("a").ok()?);
            let times = |found: FileStat| (found.st_atime, found.st_mtime, found.st_ctime);
            let three = (found.st_ctime, found.st_ctime, found.st_ctime);
            g.stat("a")
                .has("accessed, modified, changed", three, times)?;
            let words = ("later than a file created before", "not later");
            g.is("stat", "a", changed(&found) > changed(&before), words)
        }),
    promise("times.set.both")
        .says("utimensat sets the access and modification times")
        .test(|g| {
            g.put("a", b"")?;
            g.utimens("a", at(LONG_AGO), at(LONG_AGO + 5)).ok()?;
            has_times(g, LONG_AGO, LONG_AGO + 5)
        }),
    promise("times.set.ctime")
        .says("utimensat changes the change time")
        .test(|g| changes_status(g, |g| age(g, "a"))),
    promise("times.set.omit").says("UTIME_OMIT keeps a time unchanged").test(|g| {
        g.put("a", b"")?;
        age(g, "a")?;
        g.utimens("a", TimeSpec::UTIME_OMIT, at(LONG_AGO + 7))
            .ok()?;
        has_times(g, LONG_AGO, LONG_AGO + 7)?;
        g.utimens("a", at(LONG_AGO + 9), TimeSpec::UTIME_OMIT)
            .ok()?;
        has_times(g, LONG_AGO + 9, LONG_AGO + 7)
    }),
    promise("times.set.now")
        .says("UTIME_NOW sets a time to the current time")
        .test(|g| {
            g.put("a", b"")?;
            age(g, "a")?;
            g.utimens("a", TimeSpec::UTIME_NOW, TimeSpec::UTIME_NOW)
                .ok()?;
            let now = |all: FileStat| all.st_atime > LONG_AGO && all.st_mtime > LONG_AGO;
            g.stat("a").shows(now, ("current times", "earlier times"))
        }),
    promise("times.set.fraction")
        .says("a time that was set is read back, exactly or rounded down to the file system's granularity")
        .test(|g| {
            const NANOS: i64 = 123_456_789;
            g.put("a", b"")?;
            let time = TimeSpec::new(LONG_AGO + 1, NANOS);
            g.utimens("a", time, time).ok()?;
            let attributes = g.stat("a").ok()?;
            let kept = |step: i64| attributes.st_mtime_nsec == NANOS - NANOS % step;
            let steps = [1, 100, 1000, 1_000_000, 10_000_000, 1_000_000_000];
            let right = attributes.st_mtime == LONG_AGO + 1 && steps.into_iter().any(kept);
            let seen = format!("{}.{:09} s", attributes.st_mtime, attributes.st_mtime_nsec);
            g.is(
                "stat",
                "a",
                right,
                ("1000000001.123456789 s, or rounded down", &seen),
            )
        }),
    promise("times.set.before-1970").says("a time before 1970 is kept").test(|g| {
        set(g, -1_000_000)
    }),
    promise("times.set.after-2038").says("a time after 2038 is kept").test(|g| {
        set(g, 2_500_000_000)
    }),
    promise("times.set.symlink")
        .says("setting the times of a symbolic link keeps those of its target")
        .test(|g| {
            g.put("target", b"")?;
            age(g, "target")?;
            g.symlink("target", "link").ready()?;
            let time = at(LONG_AGO + 3);
            let how = nix::sys::stat::UtimensatFlags::NoFollowSymlink;
            let done =
                nix::sys::stat::utimensat(nix::fcntl::AT_FDCWD, &g.at("link"), &time, &time, how);
            g.did("utimensat", "link", done).able(&[])?;
            g.lstat("link").modified(LONG_AGO + 3)?;
            g.stat("target").modified(LONG_AGO)
        }),
    promise("times.set.survives-close")
        .says("times set while a file is open are kept when it is closed")
        .test(|g| {
            let fd = g.file("a")?;
            g.write("a", &fd, b"x", 0).ready()?;
            let done = nix::sys::stat::futimens(&fd, &at(LONG_AGO), &at(LONG_AGO));
            g.did("utimensat", "a", done).ok()?;
            drop(fd);
            g.stat("a").modified(LONG_AGO)
        }),
];

fn changed(found: &FileStat) -> (i64, i64) {
    (found.st_ctime, found.st_ctime_nsec)
}

fn at(seconds: i64) -> TimeSpec {
    TimeSpec::new(seconds, 0)
}

fn age(g: &Ground, name: &str) -> Kept {
    g.utimens(name, at(LONG_AGO), at(LONG_AGO)).ready()
}

fn set(g: &Ground, seconds: i64) -> Kept {
    g.put("a", b"")?;
    let time = at(seconds);
    g.utimens("a", time, time).able(&[Errno::EINVAL])?;
    has_times(g, seconds, seconds)
}

/// Expects these times of access and modification of `a` in s, by the promise.
fn has_times(g: &Ground, access: i64, change: i64) -> Kept {
    let times = |found: FileStat| (found.st_atime, found.st_mtime);
    g.stat("a")
        .has("accessed and modified", (access, change), times)
}

/// Expects a time of modification after [`LONG_AGO`], by the promise.
fn modified_now(g: &Ground, name: &str) -> Kept {
    let now = |found: FileStat| found.st_mtime > LONG_AGO;
    g.stat(name)
        .shows(now, ("modified now", "modified long ago"))
}

/// Expects `calls` on a new file `a` to change its modification time, by the promise.
fn changes_modified(g: &Ground, calls: fn(&Ground) -> Kept) -> Kept {
    g.put("a", b"x")?;
    age(g, "a")?;
    calls(g)?;
    modified_now(g, "a")
}

fn keeps_modified(g: &Ground, calls: fn(&Ground) -> Kept) -> Kept {
    g.put("a", b"x")?;
    age(g, "a")?;
    calls(g)?;
    g.stat("a").modified(LONG_AGO)
}

fn changes_status(g: &Ground, calls: fn(&Ground) -> Kept) -> Kept {
    g.put("a", b"x")?;
    status_moves(g, "a", calls)
}

/// Expects `calls` to change the status-change time of `name`, by the promise.
fn status_moves(g: &Ground, name: &str, calls: fn(&Ground) -> Kept) -> Kept {
    let before = changed(&g.stat(name).ready()?);
    g.tick()?;
    calls(g)?;
    let behind = changed(&g.stat(name).ok()?);
    let seen = format!("{}.{:09} s as before", behind.0, behind.1);
    let words = ("a later change time", seen.as_str());
    g.is("stat", name, behind > before, words)
}

/// Expects `calls` to change the modification time of the directory `d`, which contains
/// `file` and the directory `below`, by the promise.
fn directory_modified(g: &Ground, calls: fn(&Ground) -> Kept) -> Kept {
    g.dir("d")?;
    g.put("d/file", b"")?;
    g.dir("d/below")?;
    age(g, "d")?;
    calls(g)?;
    modified_now(g, "d")
}
