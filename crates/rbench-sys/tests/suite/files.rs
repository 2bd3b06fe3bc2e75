//! Opening files by path and reserving their space.

use std::fs::{self, Permissions};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::{Uid, setuid};
use rbench_sys::files::{
    Advice, Allocation, OpenFlags, advise, allocate, length, open, set_length, unlink_file,
};

use crate::support::{disk, in_child, place, skip, this_test};

const READ: OpenFlags = OpenFlags {
    own: false,
    read: true,
    write: false,
    create: false,
    direct: false,
    sync: false,
    dsync: false,
    noatime: false,
};

const CREATE: OpenFlags = OpenFlags {
    write: true,
    create: true,
    ..READ
};

fn flags_of(file: &OwnedFd) -> OFlag {
    let flags = fcntl(file, FcntlArg::F_GETFL).expect("it is open");
    OFlag::from_bits_truncate(flags)
}

/// Length in bytes, and number of allocated blocks of 512 bytes.
fn size(path: &Path) -> (u64, u64) {
    let metadata = fs::metadata(path).expect("it is there");
    (metadata.len(), metadata.blocks())
}

#[test]
fn the_kernel_has_the_flags_that_were_asked_for() {
    let directory = disk();
    let path = directory.path().join("f");
    assert_eq!(open(&path, READ).err(), Some(Errno::ENOENT));
    let nothing = OpenFlags::default();
    assert_eq!(open(&path, nothing).err(), Some(Errno::EINVAL));
    drop(open(&path, CREATE).expect("a new name"));
    let mode = fs::metadata(&path).expect("it was made").mode();
    assert_eq!(mode & 0o777 & !0o644, 0, "{mode:o}");
    fs::write(&path, "content").expect("there is space");

    let check = |flags: OpenFlags, expect: OFlag| {
        let file = open(&path, flags).expect("it is there");
        let all =
            OFlag::O_ACCMODE | OFlag::O_SYNC | OFlag::O_DSYNC | OFlag::O_NOATIME | OFlag::O_DIRECT;
        assert_eq!(flags_of(&file) & all, expect, "{flags:?}");
        assert_eq!(length(&file), Ok(7), "nothing is cut off");
    };
    let write = OpenFlags {
        read: false,
        ..CREATE
    };
    check(READ, OFlag::O_RDONLY);
    check(write, OFlag::O_WRONLY);
    check(CREATE, OFlag::O_RDWR);
    let sync = OpenFlags {
        sync: true,
        ..write
    };
    check(sync, OFlag::O_WRONLY | OFlag::O_SYNC);
    let dsync = OpenFlags {
        dsync: true,
        ..CREATE
    };
    check(dsync, OFlag::O_RDWR | OFlag::O_DSYNC);
    let noatime = OpenFlags {
        noatime: true,
        ..READ
    };
    check(noatime, OFlag::O_NOATIME);
    let direct = OpenFlags {
        direct: true,
        ..READ
    };
    match open(&path, direct) {
        Err(Errno::EINVAL) => skip("the file system of the build directory has no O_DIRECT"),
        _ => check(direct, OFlag::O_DIRECT),
    }
    let refused = open(Path::new("/proc/self/status"), direct);
    assert_eq!(refused.err(), Some(Errno::EINVAL), "not with O_DIRECT");
    assert_eq!(unlink_file(&path), Ok(()));
    assert_eq!(unlink_file(&path), Err(Errno::ENOENT));
}

#[test]
fn space_is_reserved_with_and_without_the_length() {
    let directory = disk();
    let path = directory.path().join("f");
    let check = |how, expect_length| {
        let file = open(&path, CREATE).expect("the directory is ours");
        match allocate(&file, how, 0, 1 << 20) {
            Err(Errno::EOPNOTSUPP) => return skip("the build directory has no fallocate"),
            reserved => assert_eq!(reserved, Ok(()), "{how:?}"),
        }
        let (length, blocks) = size(&path);
        assert_eq!(length, expect_length, "{how:?}");
        assert!(blocks >= 2048, "{how:?}: {blocks}");
        assert_eq!(unlink_file(&path), Ok(()));
    };
    check(Allocation::Native, 1 << 20);
    check(Allocation::Posix, 1 << 20);
    check(Allocation::Keep, 0);

    let file = open(&path, CREATE).expect("the directory is ours");
    for how in [Allocation::Native, Allocation::Posix, Allocation::Keep] {
        assert_eq!(allocate(&file, how, 0, 0), Err(Errno::EINVAL), "{how:?}");
        let beyond = allocate(&file, how, 1 << 63, 1);
        assert_eq!(beyond, Err(Errno::EFBIG), "{how:?}");
    }
    let read_only = open(&path, READ).expect("it was made");
    let reserved = allocate(&read_only, Allocation::Native, 0, 1);
    assert_eq!(reserved, Err(Errno::EBADF));
}

#[test]
fn a_length_is_set_without_blocks() {
    let directory = disk();
    let path = directory.path().join("f");
    let file = open(&path, CREATE).expect("the directory is ours");
    assert_eq!(length(&file), Ok(0));
    assert_eq!(set_length(&file, 1 << 30), Ok(()));
    assert_eq!(length(&file), Ok(1 << 30));
    assert_eq!(size(&path), (1 << 30, 0));
    assert_eq!(set_length(&file, 10), Ok(()));
    assert_eq!(length(file.as_fd()), Ok(10));
    assert_eq!(set_length(&file, u64::MAX), Err(Errno::EFBIG));
}

#[test]
fn advice_is_taken_for_files_only() {
    let file = tempfile::tempfile().expect("a temporary file");
    let (pipe, _sender) = std::io::pipe().expect("a pipe");
    for advice in [Advice::DontNeed, Advice::Sequential, Advice::Random] {
        assert_eq!(advise(&file, advice), Ok(()));
        assert_eq!(advise(&pipe, advice), Err(Errno::ESPIPE));
    }
}

#[test]
fn only_a_regular_file_is_removed() {
    let directory = disk();
    let dir = directory.path();
    let (file, link) = (dir.join("file"), dir.join("link"));
    std::fs::write(&file, "precious").expect("the directory is ours");
    std::os::unix::fs::symlink("file", &link).expect("the directory is ours");
    assert_eq!(unlink_file(&link), Ok(()));
    assert_eq!(unlink_file(dir), Ok(()));
    assert!(
        link.symlink_metadata().is_ok() && file.exists(),
        "they stay"
    );
    assert_eq!(unlink_file(&file), Ok(()));
    assert!(!file.exists());
}

/// Only root can become another user.
mod needs_root {
    use super::*;

    #[test]
    fn who_may_not_leave_the_time_of_access_alone_opens_without() {
        if !in_child(this_test!(), &["env"]) {
            return;
        }
        if !Uid::effective().is_root() {
            return skip("only root can become another user");
        }
        let path = place().join("f");
        fs::write(&path, "content").expect("there is space");
        fs::set_permissions(place(), Permissions::from_mode(0o755)).expect("it is ours");
        setuid(Uid::from_raw(65534)).expect("root may become nobody");
        let noatime = OpenFlags {
            noatime: true,
            ..READ
        };
        match open(&path, noatime) {
            Err(Errno::EACCES) => skip("nobody may not enter the temporary directory"),
            opened => {
                let file = opened.expect("it may be read");
                assert!(!flags_of(&file).contains(OFlag::O_NOATIME));
            }
        }
    }
}
