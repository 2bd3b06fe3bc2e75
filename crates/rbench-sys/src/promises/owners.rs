//! Modes, owners, and permissions of other users.

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, mknod};

use super::did::Kept;
use super::ground::{GROUP as OTHERS, Ground, Promise, USER, promise};

/// A user who is neither the test user nor the owner.
const STRANGER: u32 = 54_323;

pub(super) const PROMISES: &[Promise] = &[
    promise("owners.mode.create")
        .says("a new file has the mode given to open, minus the umask")
        .test(|g| {
            let wanted = 0o667 & !g.umask()?;
            g.open_mode("a", OFlag::O_CREAT | OFlag::O_RDWR, 0o667)
                .ready()?;
            g.stat("a").mode(wanted)
        }),
    promise("owners.mode.mkdir")
        .says("a new directory has the mode given to mkdir, minus the umask")
        .test(|g| {
            let wanted = 0o751 & !g.umask()?;
            g.mkdir("d", 0o751).ready()?;
            g.stat("d").mode(wanted)
        }),
    promise("owners.mode.mkfifo")
        .says("a new pipe has the mode given to mkfifo, minus the umask")
        .test(|g| {
            let wanted = 0o640 & !g.umask()?;
            g.mkfifo("a", 0o640).able(&[Errno::EPERM])?;
            g.stat("a").mode(wanted)
        }),
    promise("owners.mode.read-only")
        .says("a file created with mode 0444 is open for writing in the call that creates it")
        .test(|g| {
            let fd = g
                .open_mode("a", OFlag::O_CREAT | OFlag::O_RDWR, 0o444)
                .ok()?;
            g.write("a", &fd, b"x", 0).ok()?;
            drop(fd);
            g.holds("a", b"x")
        }),
    promise("owners.chmod.file")
        .says("chmod sets every bit of a file's mode")
        .test(|g| {
            g.put("a", b"")?;
            for bits in [0o000, 0o777, 0o640, 0o007, 0o124] {
                g.chmod("a", bits).ok()?;
                g.stat("a").mode(bits)?;
            }
            Ok(())
        }),
    promise("owners.chmod.special")
        .says("chmod sets the set-user-ID, set-group-ID and sticky bits")
        .test(|g| {
            g.put("a", b"")?;
            g.dir("d")?;
            for bits in [0o4755, 0o2755, 0o6711] {
                g.chmod("a", bits).ok()?;
                g.stat("a").mode(bits)?;
            }
            g.chmod("d", 0o1777).ok()?;
            g.stat("d").mode(0o1777)
        }),
    promise("owners.chmod.open")
        .says("a mode set by fchmod is seen under the file's name")
        .test(|g| {
            let fd = g.file("a")?;
            g.did("fchmod", "a", fchmod(&fd, Mode::from_bits_truncate(0o601)))
                .ok()?;
            g.stat("a").mode(0o601)
        }),
    promise("owners.chmod.keeps")
        .says("chmod changes neither size nor content nor owner")
        .test(|g| {
            g.put("a", b"content")?;
            let part = |found: FileStat| (found.st_size, found.st_uid, found.st_gid);
            let before = part(g.stat("a").ready()?);
            g.chmod("a", 0o600).ready()?;
            g.stat("a").has("size, owner, group", before, part)?;
            g.holds("a", b"content")
        }),
    promise("owners.owner.create")
        .says("a new file belongs to its creator")
        .test(|g| {
            g.put("a", b"")?;
            let me = nix::unistd::geteuid().as_raw();
            g.stat("a").has("owner", me, |found| found.st_uid)
        }),
    promise("owners.chown.sets")
        .says("chown sets the owner, the group or both")
        .test_as_root(|g| {
            g.put("a", b"")?;
            g.chown("a", Some(USER), Some(OTHERS)).ok()?;
            g.stat("a").owners(USER, OTHERS)?;
            g.chown("a", Some(STRANGER), None).ok()?;
            g.stat("a").owners(STRANGER, OTHERS)?;
            g.chown("a", None, Some(USER)).ok()?;
            g.stat("a").owners(STRANGER, USER)
        }),
    promise("owners.chown.directory")
        .says("chown sets the owner and group of a directory")
        .test_as_root(|g| {
            g.dir("d")?;
            g.chown("d", Some(USER), Some(OTHERS)).ok()?;
            g.stat("d").owners(USER, OTHERS)
        }),
    promise("owners.chown.large-ids")
        .says("owner and group IDs above 65535 are kept")
        .test_as_root(|g| {
            g.put("a", b"")?;
            let changed = g.chown("a", Some(3_000_000_001), Some(70_000));
            match changed.result {
                // A user namespace may lack such an owner.
                Err(Errno::EINVAL) if !all_ids() => changed.ready()?,
                _ => changed.ok()?,
            }
            g.stat("a").owners(3_000_000_001, 70_000)
        }),
    promise("owners.chown.symlink")
        .says("lchown changes the symbolic link, not its target")
        .test_as_root(|g| {
            g.put("target", b"")?;
            g.symlink("target", "link").ready()?;
            let (user, group) = (
                nix::unistd::Uid::from_raw(USER),
                nix::unistd::Gid::from_raw(OTHERS),
            );
            let changed = nix::unistd::fchownat(
                nix::fcntl::AT_FDCWD,
                &g.at("link"),
                Some(user),
                Some(group),
                nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW,
            );
            g.did("fchownat", "link", changed).ok()?;
            g.lstat("link").has("owner", USER, |found| found.st_uid)?;
            g.stat("target").has("owner", 0, |found| found.st_uid)
        }),
    promise("owners.chown.drops-set-id")
        .says("chown of an executable clears its set-user-ID and set-group-ID bits")
        .test_as_root(|g| {
            g.put("a", b"")?;
            g.chmod("a", 0o6755).ready()?;
            g.chown("a", Some(USER), Some(OTHERS)).ready()?;
            g.stat("a").mode(0o755)
        }),
    promise("owners.write.drops-set-id")
        .says("a write by another user clears the set-user-ID and set-group-ID bits")
        .test_as_root(|g| {
            g.put("a", b"x")?;
            g.chmod("a", 0o6777).ready()?;
            g.as_user(USER, OTHERS, || {
                let fd = g.open("a", OFlag::O_RDWR).ready()?;
                g.write("a", &fd, b"y", 0).ready()
            })?;
            g.stat("a").mode(0o777)
        }),
    promise("owners.owner.user")
        .says("a file, directory and symbolic link belong to the user who creates them and to that user's group")
        .test_as_root(|g| {
            g.chmod(".", 0o777).ready()?;
            g.as_user(USER, OTHERS, || {
                g.open("a", OFlag::O_CREAT | OFlag::O_RDWR).ready()?;
                g.mkdir("d", 0o755).ready()?;
                g.symlink("x", "link").ready()
            })?;
            for name in ["a", "d", "link"] {
                g.lstat(name).owners(USER, OTHERS)?;
            }
            Ok(())
        }),
    promise("owners.set-group-id.file")
        .says("a new file in a directory with the set-group-ID bit gets its group")
        .test_as_root(|g| {
            set_group_directory(g)?;
            g.as_user(USER, USER, || {
                g.open("d/a", OFlag::O_CREAT | OFlag::O_RDWR)
                    .ready()
                    .map(drop)
            })?;
            g.stat("d/a").has("group", OTHERS, |found| found.st_gid)
        }),
    promise("owners.set-group-id.directory")
        .says("a new directory in one with the set-group-ID bit gets its group and the bit")
        .test_as_root(|g| {
            set_group_directory(g)?;
            g.as_user(USER, USER, || g.mkdir("d/e", 0o755).ready())?;
            g.stat("d/e").has("group", OTHERS, |found| found.st_gid)?;
            g.stat("d/e").mode_of(0o2000, 0o2000)
        }),
    promise("owners.denied.read")
        .says("open for reading without read permission fails with EACCES")
        .test_as_root(|g| {
            owned(g, "a", 0o600)?;
            g.as_user(STRANGER, STRANGER, || {
                g.open("a", OFlag::O_RDONLY).fails(Errno::EACCES)
            })
        }),
    promise("owners.denied.write")
        .says("open for writing with read permission only fails with EACCES")
        .test_as_root(|g| {
            owned(g, "a", 0o644)?;
            g.as_user(STRANGER, STRANGER, || {
                g.open("a", OFlag::O_RDONLY).ok()?;
                g.open("a", OFlag::O_RDWR).fails(Errno::EACCES)?;
                g.open("a", OFlag::O_WRONLY | OFlag::O_TRUNC)
                    .fails(Errno::EACCES)?;
                g.truncate("a", 0).fails(Errno::EACCES)
            })
        }),
    promise("owners.denied.own")
        .says("an owner without permission gets EACCES, even if others have permission")
        .test_as_root(|g| {
            owned(g, "a", 0o066)?;
            g.as_user(USER, STRANGER, || {
                g.open("a", OFlag::O_RDONLY).fails(Errno::EACCES)
            })
        }),
    promise("owners.granted.group")
        .says("a group member has the group's permissions")
        .test_as_root(|g| {
            owned(g, "a", 0o060)?;
            g.as_user(STRANGER, OTHERS, || {
                g.open("a", OFlag::O_RDWR).ok().map(drop)
            })
        }),
    promise("owners.denied.group")
        .says("a group member without permission gets EACCES, even if others have permission")
        .test_as_root(|g| {
            owned(g, "a", 0o606)?;
            g.as_user(STRANGER, OTHERS, || {
                g.open("a", OFlag::O_RDONLY).fails(Errno::EACCES)
            })
        }),
    promise("owners.denied.search")
        .says("access below a directory without search permission fails with EACCES")
        .test_as_root(|g| {
            g.dir("d")?;
            g.put("d/a", b"")?;
            g.chmod("d", 0o766).ready()?;
            g.as_user(STRANGER, STRANGER, || {
                g.stat("d/a").fails(Errno::EACCES)?;
                g.open("d/a", OFlag::O_RDONLY).fails(Errno::EACCES)?;
                g.list("d").ok().map(drop)
            })
        }),
    promise("owners.denied.list")
        .says("listing a directory without read permission fails with EACCES")
        .test_as_root(|g| {
            g.dir("d")?;
            g.put("d/a", b"")?;
            g.chmod("d", 0o711).ready()?;
            g.as_user(STRANGER, STRANGER, || {
                g.list("d").fails(Errno::EACCES)?;
                g.stat("d/a").ok().map(drop)
            })
        }),
    promise("owners.denied.make")
        .says("creating an entry in a directory without write permission fails with EACCES")
        .test_as_root(|g| {
            g.dir("d")?;
            g.put("a", b"")?;
            g.as_user(STRANGER, STRANGER, || {
                g.open("d/new", OFlag::O_CREAT | OFlag::O_RDWR)
                    .fails(Errno::EACCES)?;
                g.mkdir("d/new", 0o755).fails(Errno::EACCES)?;
                g.symlink("x", "d/new").fails(Errno::EACCES)?;
                g.mkfifo("d/new", 0o600).fails(Errno::EACCES)
            })
        }),
    promise("owners.denied.remove")
        .says("removing or renaming in a directory without write permission fails with EACCES")
        .test_as_root(|g| {
            g.dir("d")?;
            g.put("d/a", b"")?;
            g.dir("d/e")?;
            g.as_user(STRANGER, STRANGER, || {
                g.unlink("d/a").fails(Errno::EACCES)?;
                g.rmdir("d/e").fails(Errno::EACCES)?;
                g.rename("d/a", "d/b").fails(Errno::EACCES)
            })
        }),
    promise("owners.denied.chmod")
        .says("chmod by a user who is not the owner fails with EPERM")
        .test_as_root(|g| {
            owned(g, "a", 0o666)?;
            g.as_user(STRANGER, STRANGER, || {
                g.chmod("a", 0o777).fails(Errno::EPERM)
            })?;
            g.as_user(USER, STRANGER, || g.chmod("a", 0o600).ok())
        }),
    promise("owners.denied.chown")
        .says("chown by an ordinary user to another owner fails with EPERM")
        .test_as_root(|g| {
            owned(g, "a", 0o666)?;
            g.as_user(USER, OTHERS, || {
                g.chown("a", Some(STRANGER), None).fails(Errno::EPERM)?;
                g.chown("a", None, Some(STRANGER)).fails(Errno::EPERM)
            })?;
            g.as_user(STRANGER, STRANGER, || {
                g.chown("a", Some(STRANGER), None).fails(Errno::EPERM)
            })
        }),
    promise("owners.denied.times")
        .says("setting times as another user fails with EPERM; with write permission, setting them to now succeeds")
        .test_as_root(|g| {
            owned(g, "a", 0o644)?;
            let time = nix::sys::time::TimeSpec::new(1_000_000_000, 0);
            g.as_user(STRANGER, STRANGER, || {
                g.utimens("a", time, time).fails(Errno::EPERM)?;
                let now = nix::sys::time::TimeSpec::UTIME_NOW;
                g.utimens("a", now, now).fails(Errno::EACCES)
            })?;
            g.as_user(USER, STRANGER, || g.utimens("a", time, time).ok())
        }),
    promise("owners.sticky.unlink")
        .says("in a sticky directory, removing or renaming others' files fails with EPERM")
        .test_as_root(|g| {
            sticky_directory(g)?;
            owned(g, "d/a", 0o666)?;
            g.as_user(STRANGER, STRANGER, || {
                g.unlink("d/a").fails_with(&DENIED)?;
                g.rename("d/a", "d/b").fails_with(&DENIED)
            })?;
            g.as_user(USER, STRANGER, || g.unlink("d/a").ok())
        }),
    promise("owners.sticky.rmdir")
        .says("in a sticky directory, removing others' directories fails with EPERM")
        .test_as_root(|g| {
            sticky_directory(g)?;
            g.dir("d/e")?;
            g.chown("d/e", Some(USER), Some(OTHERS)).ready()?;
            g.as_user(STRANGER, STRANGER, || g.rmdir("d/e").fails_with(&DENIED))?;
            g.as_user(USER, STRANGER, || g.rmdir("d/e").ok())
        }),
    promise("owners.sticky.rename-over")
        .says("in a sticky directory, renaming over others' files fails with EPERM")
        .test_as_root(|g| {
            sticky_directory(g)?;
            owned(g, "d/a", 0o666)?;
            g.as_user(STRANGER, STRANGER, || {
                g.open("d/mine", OFlag::O_CREAT | OFlag::O_RDWR).ready()?;
                g.rename("d/mine", "d/a").fails_with(&DENIED)
            })
        }),
    promise("owners.open-keeps-right")
        .says("an open file stays usable after its permissions are removed")
        .test_as_root(|g| {
            owned(g, "a", 0o600)?;
            g.as_user(USER, OTHERS, || {
                let fd = g.open("a", OFlag::O_RDWR).ready()?;
                g.chmod("a", 0).ready()?;
                g.write("a", &fd, b"y", 0).ok()?;
                g.read("a", &fd, 1, 0).ok().map(drop)
            })
        }),
    promise("owners.device")
        .says("a device file keeps its number and type")
        .test_as_root(|g| {
            let number = nix::sys::stat::makedev(1, 3);
            let result = mknod(
                &g.at("null"),
                SFlag::S_IFCHR,
                Mode::from_bits_truncate(0o600),
                number,
            );
            g.did("mknodat", "null", result).able(&[Errno::EPERM])?;
            g.lstat("null").kind(nix::libc::S_IFCHR)?;
            g.lstat("null").has("number", number, |found| found.st_rdev)
        }),
];

/// True if this user namespace has all users and groups.
fn all_ids() -> bool {
    let whole = |map: &str| {
        let text = std::fs::read_to_string(format!("/proc/self/{map}")).unwrap_or_default();
        let line: Vec<&str> = text.split_whitespace().collect();
        line == ["0", "0", "4294967295"]
    };
    whole("uid_map") && whole("gid_map")
}

/// Creates a file of the test user and the group of others.
fn owned(g: &Ground, name: &str, bits: u32) -> Kept {
    g.put(name, b"x")?;
    g.chown(name, Some(USER), Some(OTHERS)).ready()?;
    g.chmod(name, bits).ready()
}

/// Errors with which a sticky directory refuses others.
const DENIED: [Errno; 2] = [Errno::EPERM, Errno::EACCES];

fn sticky_directory(g: &Ground) -> Kept {
    g.mkdir("d", 0o777).ready()?;
    g.chmod("d", 0o1777).ready()
}

fn set_group_directory(g: &Ground) -> Kept {
    g.dir("d")?;
    g.chown("d", Some(0), Some(OTHERS)).ready()?;
    g.chmod("d", 0o2777).ready()
}
