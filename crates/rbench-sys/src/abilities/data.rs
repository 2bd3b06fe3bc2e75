//! What can be done with the data of files.

use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, OFlag, copy_file_range, fallocate, open};
use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, MsFlags, ProtFlags, mmap, msync, munmap};
use nix::sys::stat::{Mode, fstat};
use nix::sys::uio::{pread, pwrite};
use nix::unistd::{Whence, fdatasync, fsync, ftruncate, lseek, unlink, write};

use super::attempt::{
    Ability, Ground, Refused, call, content, failed, is, pattern, prepared, reopened,
};
use crate::buffer::AlignedBuffer;

pub(super) const ABILITIES: &[Ability] = &[
    Ability {
        name: "direct",
        about: "I/O past the page cache (O_DIRECT)",
        attempt: direct,
    },
    Ability {
        name: "mmap-shared",
        about: "writing through a shared memory mapping",
        attempt: mmap_shared,
    },
    Ability {
        name: "random-write",
        about: "writes at any offset, in any order",
        attempt: random_write,
    },
    Ability {
        name: "overwrite",
        about: "writes into a file that was closed",
        attempt: overwrite,
    },
    Ability {
        name: "append",
        about: "appending from two descriptors (O_APPEND)",
        attempt: append,
    },
    Ability {
        name: "truncate",
        about: "making files shorter and longer",
        attempt: truncate,
    },
    Ability {
        name: "fsync",
        about: "fsync and fdatasync of files, fsync of directories",
        attempt: syncs,
    },
    Ability {
        name: "fallocate",
        about: "reserving space",
        attempt: reserve,
    },
    Ability {
        name: "punch-hole",
        about: "taking space out of a file",
        attempt: punch,
    },
    Ability {
        name: "zero-range",
        about: "zeroing a range without writing it",
        attempt: zero,
    },
    Ability {
        name: "sparse",
        about: "holes take no space",
        attempt: sparse,
    },
    Ability {
        name: "seek-hole",
        about: "finding holes (SEEK_DATA, SEEK_HOLE)",
        attempt: seek_hole,
    },
    Ability {
        name: "copy-file-range",
        about: "copying within the file system",
        attempt: copy,
    },
    Ability {
        name: "unlinked-open",
        about: "use of an open file after its removal",
        attempt: unlinked_open,
    },
    Ability {
        name: "tmpfile",
        about: "files without a name (O_TMPFILE)",
        attempt: tmpfile,
    },
];

const KIB: usize = 1024;

/// Powers of two that `O_DIRECT` may ask for.
const ALIGNMENTS: [usize; 8] = [1, 512, 1024, 2048, 4096, 8192, 16384, 65536];

fn direct(ground: &Ground) -> Result<String, Refused> {
    let (path, fd) = ground.file()?;
    prepared("ftruncate", ftruncate(&fd, 256 * 1024))?;
    drop(fd);
    let flags = OFlag::O_RDWR | OFlag::O_DIRECT | OFlag::O_CLOEXEC;
    let fd = call("openat", open(&path, flags, Mode::empty()))?;
    let mut memory = prepared("mmap", AlignedBuffer::new(256 * KIB))?;
    let mut last = Errno::EINVAL;
    // First with memory that is right for everybody, then with less aligned memory.
    let transfers =
        ALIGNMENTS
            .into_iter()
            .find_map(|size| match transfer(&fd, &mut memory, size, 0) {
                Ok(right) => Some((size, right)),
                Err(errno) => {
                    last = errno;
                    None
                }
            });
    let Some((size, right)) = transfers else {
        return Err(failed("pwrite64", last, true));
    };
    is("pread64", right, "other data than was written comes back")?;
    let from = ALIGNMENTS
        .into_iter()
        .find(|at| transfer(&fd, &mut memory, size.max(512), *at) == Ok(true));
    let bytes = |n: usize| match n {
        1 => "of any length".to_owned(),
        n => format!("in steps of {n} bytes"),
    };
    Ok(match from {
        Some(1) => format!("{}, memory anywhere", bytes(size)),
        Some(at) => format!("{}, memory at multiples of {at}", bytes(size)),
        None => bytes(size),
    })
}

/// Writes and reads `size` bytes at offset `size`, from memory that starts `shift` bytes
/// after a multiple of 4096; whether they come back.
fn transfer(
    fd: &OwnedFd,
    memory: &mut AlignedBuffer,
    size: usize,
    shift: usize,
) -> Result<bool, Errno> {
    let place = &mut memory[shift..shift + size];
    let wanted = pattern(size);
    place.copy_from_slice(&wanted);
    let n = pwrite(fd, place, size as i64)?;
    place.fill(0);
    let m = pread(fd, place, size as i64)?;
    Ok(n == size && m == size && *place == *wanted)
}

/// The kernel moves the bytes between the mapping and a file in memory: where a mapping
/// cannot be used, it returns an error, whereas a processor's access would end the
/// program.
fn mmap_shared(ground: &Ground) -> Result<String, Refused> {
    const LENGTH: usize = 16 * KIB;
    let length = NonZeroUsize::new(LENGTH).unwrap_or(NonZeroUsize::MIN);
    let (path, fd) = ground.file()?;
    prepared("pwrite64", pwrite(&fd, &vec![0; LENGTH], 0))?;
    let wanted = pattern(LENGTH);
    let source = prepared(
        "memfd_create",
        memfd_create(c"probe", MFdFlags::MFD_CLOEXEC),
    )?;
    prepared("pwrite64", pwrite(&source, &wanted, 0))?;
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let mapped = unsafe { mmap(None, length, access, MapFlags::MAP_SHARED, &fd, 0) };
    let start = call("mmap", mapped)?;
    // SAFETY: the kernel writes `LENGTH` bytes to the mapping, which is as long.
    let n = unsafe { libc::pread(source.as_raw_fd(), start.as_ptr(), LENGTH, 0) };
    let filled = Errno::result(n).map(|n| n as usize);
    // SAFETY: the mapping is there and as long.
    let synced = unsafe { msync(start, LENGTH, MsFlags::MS_SYNC) };
    // SAFETY: nobody uses it after this.
    let unmapped = unsafe { munmap(start, LENGTH) };
    call("mmap", filled)?;
    call("msync", synced)?;
    call("munmap", unmapped)?;
    is(
        "pread64",
        content(&fd, 0, LENGTH)? == wanted,
        "what was written through the mapping is not read",
    )?;
    drop(fd);
    let again = reopened(&path, OFlag::empty())?;
    is(
        "pread64",
        content(&again, 0, LENGTH)? == wanted,
        "what was written through the mapping is gone after close",
    )?;
    Ok(String::new())
}

fn random_write(ground: &Ground) -> Result<String, Refused> {
    let (path, fd) = ground.file()?;
    let piece = pattern(64 * KIB);
    for offset in [1024 * 1024, 0, 512 * 1024 + 1] {
        let n = call("pwrite64", pwrite(&fd, &piece, offset))?;
        is("pwrite64", n == piece.len(), "wrote less")?;
    }
    call("close", nix::unistd::close(fd))?;
    let fd = reopened(&path, OFlag::empty())?;
    for offset in [1024 * 1024, 0, 512 * 1024 + 1] {
        let found = content(&fd, offset, piece.len())?;
        is(
            "pread64",
            found == piece,
            "other data than was written comes back",
        )?;
    }
    let gap = content(&fd, 128 * 1024, 4096)?;
    is(
        "pread64",
        gap == vec![0; 4096],
        "what was never written is not zero",
    )?;
    Ok(String::new())
}

fn overwrite(ground: &Ground) -> Result<String, Refused> {
    let mut wanted = pattern(64 * KIB);
    let path = ground.written(&wanted)?;
    let flags = OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    let fd = call("openat", open(&path, flags, Mode::empty()))?;
    let n = call("pwrite64", pwrite(&fd, b"changed", 30_000))?;
    is("pwrite64", n == 7, "wrote less")?;
    call("close", nix::unistd::close(fd))?;
    wanted[30_000..30_007].copy_from_slice(b"changed");
    let fd = prepared("openat", open(&path, OFlag::O_RDONLY, Mode::empty()))?;
    let found = content(&fd, 0, wanted.len() + 1)?;
    is(
        "pread64",
        found == wanted,
        "other data than was written comes back",
    )?;
    Ok(String::new())
}

fn append(ground: &Ground) -> Result<String, Refused> {
    let path = ground.written(b"a")?;
    let flags = OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_CLOEXEC;
    let first = call("openat", open(&path, flags, Mode::empty()))?;
    let second = call("openat", open(&path, flags, Mode::empty()))?;
    for (fd, bytes) in [(&first, b"b"), (&second, b"c"), (&first, b"d")] {
        call("write", write(fd, bytes))?;
    }
    call("close", nix::unistd::close(first))?;
    call("close", nix::unistd::close(second))?;
    let fd = prepared("openat", open(&path, OFlag::O_RDONLY, Mode::empty()))?;
    let found = content(&fd, 0, 10)?;
    is(
        "write",
        found == b"abcd",
        "appended data overwrote other data",
    )?;
    Ok(String::new())
}

fn truncate(ground: &Ground) -> Result<String, Refused> {
    let path = ground.written(&pattern(64 * KIB))?;
    let fd = reopened(&path, OFlag::empty())?;
    call("ftruncate", ftruncate(&fd, 100))?;
    call("ftruncate", ftruncate(&fd, 64 * 1024))?;
    let length = prepared("fstat", fstat(&fd))?.st_size;
    is(
        "ftruncate",
        length == 64 * 1024,
        "the length is not the one that was set",
    )?;
    let rest = content(&fd, 100, 4096)?;
    is(
        "pread64",
        rest == vec![0; 4096],
        "what was cut off comes back",
    )?;
    Ok(String::new())
}

fn syncs(ground: &Ground) -> Result<String, Refused> {
    let (_, fd) = ground.file()?;
    prepared("pwrite64", pwrite(&fd, b"x", 0))?;
    call("fsync", fsync(&fd))?;
    call("fdatasync", fdatasync(&fd))?;
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let directory = prepared("openat", open(&ground.directory, flags, Mode::empty()))?;
    match fsync(&directory) {
        Ok(()) => Ok(String::new()),
        Err(errno) => Ok(format!(
            "files only: fsync of a directory fails with {errno:?}"
        )),
    }
}

fn reserve(ground: &Ground) -> Result<String, Refused> {
    let (_, fd) = ground.file()?;
    call(
        "fallocate",
        fallocate(&fd, FallocateFlags::empty(), 0, 1 << 20),
    )?;
    let length = prepared("fstat", fstat(&fd))?.st_size;
    is(
        "fallocate",
        length == 1 << 20,
        "the file is not as long as what was reserved",
    )?;
    Ok(String::new())
}

/// Fills a file and applies fallocate(2) to a part of it, which has to be zero then.
fn zeroed(ground: &Ground, how: FallocateFlags) -> Result<String, Refused> {
    let wanted = pattern(256 * KIB);
    let path = ground.written(&wanted)?;
    let fd = reopened(&path, OFlag::empty())?;
    call("fallocate", fallocate(&fd, how, 64 * 1024, 64 * 1024))?;
    let found = content(&fd, 0, wanted.len() + 1)?;
    let range = 64 * KIB..128 * KIB;
    let right = found.len() == wanted.len()
        && found[..range.start] == wanted[..range.start]
        && found[range.clone()].iter().all(|byte| *byte == 0)
        && found[range.end..] == wanted[range.end..];
    is("fallocate", right, "the content is not the one expected")?;
    Ok(String::new())
}

fn punch(ground: &Ground) -> Result<String, Refused> {
    zeroed(
        ground,
        FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE,
    )
}

fn zero(ground: &Ground) -> Result<String, Refused> {
    zeroed(ground, FallocateFlags::FALLOC_FL_ZERO_RANGE)
}

/// A file of 16 MiB with data at its end only.
fn mostly_hole(ground: &Ground) -> Result<OwnedFd, Refused> {
    let (_, fd) = ground.file()?;
    prepared("pwrite64", pwrite(&fd, b"x", (16 << 20) - 1))?;
    prepared("fsync", fsync(&fd))?;
    Ok(fd)
}

fn sparse(ground: &Ground) -> Result<String, Refused> {
    let fd = mostly_hole(ground)?;
    let used = prepared("fstat", fstat(&fd))?.st_blocks * 512;
    is(
        "fstat",
        used < 8 << 20,
        "a file of 16 MiB with one byte in it takes all of that",
    )?;
    Ok(String::new())
}

fn seek_hole(ground: &Ground) -> Result<String, Refused> {
    let fd = mostly_hole(ground)?;
    let data = call("lseek", lseek(&fd, 0, Whence::SeekData))?;
    call("lseek", lseek(&fd, 0, Whence::SeekHole))?;
    is("lseek", data > 0, "everything counts as data")?;
    Ok(String::new())
}

fn copy(ground: &Ground) -> Result<String, Refused> {
    let wanted = pattern(64 * KIB);
    let source = reopened(&ground.written(&wanted)?, OFlag::empty())?;
    let (_, target) = ground.file()?;
    let (mut from, mut to) = (0, 0);
    let mut left = wanted.len();
    while left > 0 {
        let n = copy_file_range(&source, Some(&mut from), &target, Some(&mut to), left);
        let n = call("copy_file_range", n)?;
        is("copy_file_range", n > 0, "copies nothing")?;
        left -= n;
    }
    let found = content(&target, 0, wanted.len() + 1)?;
    is("copy_file_range", found == wanted, "the copy differs")?;
    Ok(String::new())
}

fn unlinked_open(ground: &Ground) -> Result<String, Refused> {
    let (path, fd) = ground.file()?;
    prepared("pwrite64", pwrite(&fd, b"before", 0))?;
    call("unlinkat", unlink(&path))?;
    call("pwrite64", pwrite(&fd, b"after!", 6))?;
    let found = content(&fd, 0, 20)?;
    is(
        "pread64",
        found == b"beforeafter!",
        "its content is not there",
    )?;
    let left = std::fs::read_dir(&ground.directory).map_or(0, Iterator::count);
    Ok(match left {
        0 => String::new(),
        _ => "under another name while it is open".to_owned(),
    })
}

fn tmpfile(ground: &Ground) -> Result<String, Refused> {
    let flags = OFlag::O_RDWR | OFlag::O_TMPFILE | OFlag::O_CLOEXEC;
    let mode = Mode::from_bits_truncate(0o600);
    let fd = call("openat", open(&ground.directory, flags, mode))?;
    call("pwrite64", pwrite(&fd, b"x", 0))?;
    let from = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let linked = nix::unistd::linkat(
        nix::fcntl::AT_FDCWD,
        from.as_str(),
        nix::fcntl::AT_FDCWD,
        &ground.path(),
        nix::fcntl::AtFlags::AT_SYMLINK_FOLLOW,
    );
    Ok(match linked {
        Ok(()) => String::new(),
        Err(errno) => format!("cannot get a name: linkat fails with {errno:?}"),
    })
}
