//! What can be done with names and attributes.

use std::ffi::{CString, OsStr};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, RenameFlags, open, readlink, renameat2};
use nix::sys::stat::{Mode, fchmod, futimens, stat};
use nix::sys::statvfs::statvfs;
use nix::sys::time::TimeSpec;
use nix::unistd::{linkat, mkdir, mkfifo, symlinkat};

use super::attempt::{Ability, Ground, Refused, call, content, failed, is, prepared};
use crate::fs::Fs as _;
use crate::posix::PosixFs;

pub(super) const ABILITIES: &[Ability] = &[
    Ability {
        name: "exclusive",
        about: "a name is made once (O_EXCL)",
        attempt: exclusive,
    },
    Ability {
        name: "rename-over",
        about: "rename replaces a file",
        attempt: rename_over,
    },
    Ability {
        name: "rename-directory",
        about: "rename of a directory with something in it",
        attempt: rename_directory,
    },
    Ability {
        name: "rename-noreplace",
        about: "rename that replaces nothing (RENAME_NOREPLACE)",
        attempt: rename_noreplace,
    },
    Ability {
        name: "rename-exchange",
        about: "rename that exchanges two names (RENAME_EXCHANGE)",
        attempt: rename_exchange,
    },
    Ability {
        name: "link",
        about: "hard links",
        attempt: link,
    },
    Ability {
        name: "symlink",
        about: "symbolic links",
        attempt: symlink,
    },
    Ability {
        name: "fifo",
        about: "special files (named pipes)",
        attempt: fifo,
    },
    Ability {
        name: "xattr",
        about: "extended attributes (user.)",
        attempt: xattr,
    },
    Ability {
        name: "chmod",
        about: "permissions are kept",
        attempt: chmod,
    },
    Ability {
        name: "times",
        about: "times can be set, and how finely",
        attempt: times,
    },
    Ability {
        name: "entry-types",
        about: "directory entries have a type",
        attempt: entry_types,
    },
    Ability {
        name: "name-length",
        about: "names of 255 bytes",
        attempt: name_length,
    },
    Ability {
        name: "path-length",
        about: "paths of 4095 bytes",
        attempt: path_length,
    },
    Ability {
        name: "any-bytes",
        about: "names of any bytes",
        attempt: any_bytes,
    },
    Ability {
        name: "case-sensitive",
        about: "upper and lower case differ",
        attempt: case_sensitive,
    },
];

const DIRECTORY: Mode = Mode::from_bits_truncate(0o755);

fn create(path: &Path) -> Result<(), Errno> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    open(path, flags, Mode::from_bits_truncate(0o644)).map(drop)
}

fn whole(path: &Path) -> Result<Vec<u8>, Refused> {
    let fd = call("openat", open(path, OFlag::O_RDONLY, Mode::empty()))?;
    content(&fd, 0, 100)
}

/// Whether something has this name.
fn is_there(path: &Path) -> Result<bool, Refused> {
    match stat(path) {
        Ok(_) => Ok(true),
        Err(Errno::ENOENT) => Ok(false),
        Err(errno) => Err(failed("stat", errno, true)),
    }
}

fn rename(from: &Path, to: &Path, flags: RenameFlags) -> Result<(), Errno> {
    renameat2(AT_FDCWD, from, AT_FDCWD, to, flags)
}

fn exclusive(ground: &Ground) -> Result<String, Refused> {
    let path = ground.path();
    call("openat", create(&path))?;
    match create(&path) {
        Err(Errno::EEXIST) => Ok(String::new()),
        Ok(()) => Err(Refused::wrong("openat", "the same name is made twice")),
        Err(errno) => Err(failed("openat", errno, true)),
    }
}

fn rename_over(ground: &Ground) -> Result<String, Refused> {
    let (from, to) = (ground.written(b"new")?, ground.written(b"old")?);
    call("renameat2", rename(&from, &to, RenameFlags::empty()))?;
    is(
        "renameat2",
        whole(&to)? == b"new",
        "the old file is still there",
    )?;
    is(
        "renameat2",
        !is_there(&from)?,
        "the old name is still there",
    )?;
    Ok(String::new())
}

fn rename_directory(ground: &Ground) -> Result<String, Refused> {
    let (from, to) = (ground.path(), ground.path());
    prepared("mkdir", mkdir(&from, DIRECTORY))?;
    prepared("openat", create(&from.join("file")))?;
    call("renameat2", rename(&from, &to, RenameFlags::empty()))?;
    is(
        "renameat2",
        is_there(&to.join("file"))?,
        "what was in it is gone",
    )?;
    Ok(String::new())
}

fn rename_noreplace(ground: &Ground) -> Result<String, Refused> {
    let (from, to) = (ground.written(b"new")?, ground.written(b"old")?);
    let how = RenameFlags::RENAME_NOREPLACE;
    match rename(&from, &to, how) {
        Err(Errno::EEXIST) => {}
        Ok(()) => {
            return Err(Refused::wrong(
                "renameat2",
                "a file is replaced all the same",
            ));
        }
        Err(errno) => return Err(failed("renameat2", errno, true)),
    }
    call("renameat2", rename(&from, &ground.path(), how))?;
    Ok(String::new())
}

fn rename_exchange(ground: &Ground) -> Result<String, Refused> {
    let (one, two) = (ground.written(b"one")?, ground.written(b"two")?);
    call(
        "renameat2",
        rename(&one, &two, RenameFlags::RENAME_EXCHANGE),
    )?;
    let right = whole(&one)? == b"two" && whole(&two)? == b"one";
    is("renameat2", right, "the names are not exchanged")?;
    Ok(String::new())
}

fn link(ground: &Ground) -> Result<String, Refused> {
    let (first, second) = (ground.written(b"x")?, ground.path());
    call(
        "linkat",
        linkat(AT_FDCWD, &first, AT_FDCWD, &second, AtFlags::empty()),
    )?;
    let (first, second) = (call("stat", stat(&first))?, call("stat", stat(&second))?);
    is(
        "linkat",
        first.st_ino == second.st_ino,
        "the two names have different inodes",
    )?;
    is(
        "linkat",
        first.st_nlink == 2,
        "the number of links stays as it was",
    )?;
    Ok(String::new())
}

fn symlink(ground: &Ground) -> Result<String, Refused> {
    let (target, path) = (ground.written(b"x")?, ground.path());
    call("symlinkat", symlinkat(&target, AT_FDCWD, &path))?;
    let found = call("readlink", readlink(&path))?;
    is(
        "readlink",
        found == target.as_os_str(),
        "another target comes back",
    )?;
    is("openat", whole(&path)? == b"x", "it leads to another file")?;
    Ok(String::new())
}

fn fifo(ground: &Ground) -> Result<String, Refused> {
    call(
        "mknodat",
        mkfifo(&ground.path(), Mode::from_bits_truncate(0o600)),
    )?;
    Ok(String::new())
}

fn xattr(ground: &Ground) -> Result<String, Refused> {
    const NAME: &std::ffi::CStr = c"user.rbench";
    let (_, file) = ground.file()?;
    let directory = prepared(
        "openat",
        open(&ground.directory, OFlag::O_PATH, Mode::empty()),
    )?;
    let fs = PosixFs::new(directory);
    let fd = file.as_raw_fd();
    call("fsetxattr", fs.setxattr(fd, NAME, b"value"))?;
    let mut buffer = [0; 256];
    let n = call("fgetxattr", fs.getxattr(fd, NAME, &mut buffer))?;
    is(
        "fgetxattr",
        &buffer[..n] == b"value",
        "another value comes back",
    )?;
    let n = call("flistxattr", fs.listxattr(fd, &mut buffer))?;
    let listed = buffer[..n]
        .split(|byte| *byte == 0)
        .any(|name| name == NAME.to_bytes());
    is("flistxattr", listed, "it is not listed")?;
    call("fremovexattr", fs.removexattr(fd, NAME))?;
    Ok(String::new())
}

fn chmod(ground: &Ground) -> Result<String, Refused> {
    let (path, fd) = ground.file()?;
    call("fchmod", fchmod(&fd, Mode::from_bits_truncate(0o600)))?;
    let mode = call("stat", stat(&path))?.st_mode & 0o777;
    is(
        "fchmod",
        mode == 0o600,
        &format!("0600 is set, and {mode:04o} comes back"),
    )?;
    Ok(String::new())
}

/// Steps in which a file system may keep times, ns, and their names.
const STEPS: [(i64, &str); 7] = [
    (1, "1 ns"),
    (100, "100 ns"),
    (1_000, "1 us"),
    (1_000_000, "1 ms"),
    (10_000_000, "10 ms"),
    (1_000_000_000, "1 s"),
    (2_000_000_000, "2 s"),
];

fn times(ground: &Ground) -> Result<String, Refused> {
    // No multiple of any step but the first.
    const SECONDS: i64 = 1_600_000_001;
    const NANOS: i64 = 123_456_789;
    let (path, fd) = ground.file()?;
    let time = TimeSpec::new(SECONDS, NANOS);
    call("utimensat", futimens(&fd, &time, &time))?;
    drop(fd);
    let found = call("stat", stat(&path))?;
    let (wanted, found) = (
        SECONDS * 1_000_000_000 + NANOS,
        found.st_mtime * 1_000_000_000 + found.st_mtime_nsec,
    );
    let kept = |step: i64| found == wanted - wanted % step;
    match STEPS.into_iter().find(|(step, _)| kept(*step)) {
        Some((_, name)) => Ok(name.to_owned()),
        None => Err(Refused::wrong("utimensat", "another time comes back")),
    }
}

fn entry_types(ground: &Ground) -> Result<String, Refused> {
    prepared("openat", create(&ground.path()))?;
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut directory = call(
        "getdents64",
        Dir::open(&ground.directory, flags, Mode::empty()),
    )?;
    let typed = directory
        .iter()
        .flatten()
        .all(|entry| entry.file_type().is_some());
    is(
        "getdents64",
        typed,
        "the type is unknown: who wants it has to stat every entry",
    )?;
    Ok(String::new())
}

fn name_length(ground: &Ground) -> Result<String, Refused> {
    let named = |length: usize| create(&ground.directory.join("n".repeat(length)));
    let told = statvfs(&ground.directory).map_or(0, |all| all.name_max());
    let Err(errno) = named(255) else {
        return match named(256) {
            Err(Errno::ENAMETOOLONG) => Ok(String::new()),
            _ => Ok("and longer".to_owned()),
        };
    };
    // The longest that can be made, between one that can and one that cannot.
    let (mut can, mut cannot) = (1, 255);
    while cannot - can > 1 {
        let middle = (can + cannot) / 2;
        match named(middle) {
            Ok(()) => can = middle,
            Err(_) => cannot = middle,
        }
    }
    let mut refused = failed("openat", errno, true);
    refused.answer.what = format!("up to {can} bytes, statvfs says {told}");
    Err(refused)
}

fn path_length(ground: &Ground) -> Result<String, Refused> {
    // With the byte at its end a path has at most 4096.
    const LONGEST: usize = 4095;
    let mut path = ground.directory.clone();
    let length = |path: &Path| path.as_os_str().len();
    let reached = |path: &Path| format!("at {} bytes", length(path));
    while length(&path) + 1 + 100 + 1 < LONGEST {
        path.push("d".repeat(100));
        mkdir(&path, DIRECTORY).map_err(|errno| {
            let mut refused = failed("mkdir", errno, true);
            refused.answer.what = reached(&path);
            refused
        })?;
    }
    path.push("f".repeat(LONGEST - length(&path) - 1));
    create(&path).map_err(|errno| {
        let mut refused = failed("openat", errno, true);
        refused.answer.what = reached(&path);
        refused
    })?;
    Ok(String::new())
}

fn any_bytes(ground: &Ground) -> Result<String, Refused> {
    const NAME: &[u8] = b"\x01\n \"*:<>?\\|\x7f\xff\xfe.";
    call(
        "openat",
        create(&ground.directory.join(OsStr::from_bytes(NAME))),
    )?;
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut directory = call(
        "getdents64",
        Dir::open(&ground.directory, flags, Mode::empty()),
    )?;
    let wanted = CString::new(NAME).unwrap_or_default();
    let listed = directory
        .iter()
        .flatten()
        .any(|entry| entry.file_name() == wanted.as_c_str());
    is("getdents64", listed, "the name is listed with other bytes")?;
    Ok(String::new())
}

fn case_sensitive(ground: &Ground) -> Result<String, Refused> {
    call("openat", create(&ground.directory.join("Case")))?;
    let other = is_there(&ground.directory.join("cASE"))?;
    is("stat", !other, "'Case' is found as 'cASE'")?;
    Ok(String::new())
}
