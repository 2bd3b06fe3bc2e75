//! Sizes: truncate, holes, and space that is reserved or deallocated.

use std::ops::Range;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, OFlag, fallocate};
use nix::unistd::{Whence, lseek};

use super::did::{Did, Kept};
use super::ground::{Ground, Promise, promise};
use super::prepare::pattern;

const KIB: usize = 1024;
const GIB: i64 = 1 << 30;

pub(super) const SIZES: &[Promise] = &[
    promise("size.truncate.shorter")
        .says("truncate shortens a file")
        .test(|g| {
            g.put("a", b"0123456789")?;
            g.truncate("a", 4).ok()?;
            g.stat("a").size(4)?;
            g.holds("a", b"0123")
        }),
    promise("size.truncate.longer")
        .says("truncate extends a file with zeros")
        .test(|g| {
            g.put("a", b"0123")?;
            g.truncate("a", 8).ok()?;
            g.holds("a", b"0123\0\0\0\0")
        }),
    promise("size.truncate.cut-is-gone")
        .says("data removed by truncate does not reappear when the file grows")
        .test(|g| {
            g.put("a", &pattern(10_000))?;
            g.truncate("a", 100).ready()?;
            g.truncate("a", 10_000).ok()?;
            let mut wanted = pattern(10_000);
            wanted[100..].fill(0);
            g.holds("a", &wanted)
        }),
    promise("size.truncate.same")
        .says("truncate to the current size keeps the content")
        .test(|g| {
            g.put("a", b"0123")?;
            g.truncate("a", 4).ok()?;
            g.holds("a", b"0123")
        }),
    promise("size.truncate.negative")
        .says("truncate to a negative size fails with EINVAL")
        .test(|g| {
            let fd = g.file("a")?;
            g.truncate("a", -1).fails(Errno::EINVAL)?;
            g.ftruncate("a", &fd, -1).fails(Errno::EINVAL)
        }),
    promise("size.truncate.open")
        .says("other descriptors and stat see the size set by ftruncate")
        .test(|g| {
            let one = g.file("a")?;
            let two = g.reopened("a")?;
            g.write("a", &one, b"0123456789", 0).ready()?;
            g.ftruncate("a", &one, 5).ok()?;
            g.fstat("a", &two).size(5)?;
            g.holds_open("a", &two, b"01234")
        }),
    promise("size.truncate.read-only")
        .says("ftruncate of a file open only for reading fails")
        .test(|g| {
            g.put("a", b"x")?;
            let fd = g.open("a", OFlag::O_RDONLY).ready()?;
            g.ftruncate("a", &fd, 0)
                .fails_with(&[Errno::EINVAL, Errno::EBADF])?;
            g.holds("a", b"x")
        }),
    promise("size.write.extends")
        .says("a write beyond the end extends the file to the end of the write")
        .test(|g| {
            let fd = g.file("a")?;
            g.write("a", &fd, b"x", 9999).ready()?;
            g.stat("a").size(10_000)
        }),
    promise("size.write.inside")
        .says("a write inside a file keeps its size")
        .test(|g| {
            let fd = g.filled("a", &pattern(10_000))?;
            g.write("a", &fd, b"x", 5000).ready()?;
            g.stat("a").size(10_000)
        }),
    promise("size.write.follows")
        .says("the size is right after each of many writes")
        .test(|g| {
            let fd = g.file("a")?;
            for number in 0..50 {
                g.write("a", &fd, &[7; 777], number * 777).ready()?;
                g.fstat("a", &fd).size((number + 1) * 777)?;
            }
            drop(fd);
            g.stat("a").size(50 * 777)
        }),
    promise("size.hole.zeros")
        .says("ranges that were never written read as zeros")
        .test(|g| {
            let fd = g.file("a")?;
            g.write("a", &fd, b"x", 90_000).ready()?;
            drop(fd);
            let mut wanted = vec![0; 90_001];
            wanted[90_000] = b'x';
            g.holds("a", &wanted)
        }),
    promise("size.hole.behind-data")
        .says("the gap between the old end and a later write reads as zeros")
        .test(|g| {
            let fd = g.file("a")?;
            g.write("a", &fd, b"begin", 0).ready()?;
            g.write("a", &fd, b"end", 9000).ready()?;
            drop(fd);
            let mut wanted = vec![0; 9003];
            wanted[..5].copy_from_slice(b"begin");
            wanted[9000..].copy_from_slice(b"end");
            g.holds("a", &wanted)
        }),
    promise("size.read.at-end")
        .says("a read at or beyond the end returns nothing")
        .test(|g| {
            g.put("a", b"0123")?;
            let fd = g.open("a", OFlag::O_RDONLY).ready()?;
            g.read("a", &fd, 10, 4).bytes(b"")?;
            g.read("a", &fd, 10, 1 << 20).bytes(b"")?;
            g.read("a", &fd, 10, 2).bytes(b"23")
        }),
    promise("size.seek.end")
        .says("lseek to the end returns the current size")
        .test(|g| {
            let fd = g.file("a")?;
            g.write("a", &fd, &[1; 1234], 0).ready()?;
            seek(g, &fd, 0, Whence::SeekEnd).has("offset", 1234, |at| at)
        }),
    promise("size.seek.negative")
        .says("lseek to a negative offset fails with EINVAL")
        .test(|g| {
            let fd = g.file("a")?;
            seek(g, &fd, -1, Whence::SeekSet).fails(Errno::EINVAL)
        }),
    promise("size.seek.data")
        .says("SEEK_DATA inside data returns the given offset")
        .test(|g| {
            let fd = g.file("a")?;
            g.write("a", &fd, &pattern(10_000), 0).ready()?;
            let offset = seek(g, &fd, 5000, Whence::SeekData).able(&[Errno::EINVAL])?;
            g.same("lseek", "a", "offset of data", (5000, offset))
        }),
    promise("size.seek.data-behind-hole")
        .says("SEEK_DATA never skips data after a hole")
        .test(|g| {
            let fd = g.file("a")?;
            g.write("a", &fd, b"x", 1 << 20).ready()?;
            let offset = seek(g, &fd, 0, Whence::SeekData).able(&[Errno::EINVAL])?;
            g.is(
                "lseek",
                "a",
                (0..=1 << 20).contains(&offset),
                ("an offset up to 1048576", &offset.to_string()),
            )
        }),
    promise("size.seek.hole")
        .says("SEEK_HOLE in a file without holes returns its end")
        .test(|g| {
            let fd = g.file("a")?;
            g.write("a", &fd, &pattern(10_000), 0).ready()?;
            let offset = seek(g, &fd, 0, Whence::SeekHole).able(&[Errno::EINVAL])?;
            g.same("lseek", "a", "offset of a hole", (10_000, offset))
        }),
    promise("size.seek.behind-end")
        .says("SEEK_DATA and SEEK_HOLE beyond the end fail with ENXIO")
        .test(|g| {
            let fd = g.file("a")?;
            g.write("a", &fd, b"x", 0).ready()?;
            seek(g, &fd, 100, Whence::SeekData).fails_if_able(Errno::ENXIO, &[Errno::EINVAL])?;
            seek(g, &fd, 100, Whence::SeekHole).fails(Errno::ENXIO)
        }),
    promise("size.large.offset")
        .says("data written beyond 4 GiB is there and nowhere else")
        .test(|g| {
            let fd = g.file("a")?;
            g.write("a", &fd, b"near", 0).ready()?;
            g.write("a", &fd, b"far", 4 * GIB).able(&[Errno::EFBIG])?;
            g.stat("a").size(4 * GIB + 3)?;
            drop(fd);
            let fd = g.open("a", OFlag::O_RDONLY).ok()?;
            g.read("a", &fd, 5, 0).bytes(b"near\0")?;
            g.read("a", &fd, 10, 4 * GIB - 1).bytes(b"\0far")
        }),
    promise("size.large.terabyte")
        .says("a file can have a size of 1 TiB, if the file system supports such files")
        .test(|g| {
            let fd = g.file("a")?;
            g.ftruncate("a", &fd, 1024 * GIB)
                .able(&[Errno::EFBIG, Errno::EINVAL])?;
            g.stat("a").size(1024 * GIB)?;
            g.read("a", &fd, 10, 512 * GIB).bytes(&[0; 10])
        }),
    promise("size.large.cut")
        .says("a file truncated from above 4 GiB to below has the lower size")
        .test(|g| {
            let fd = g.file("a")?;
            g.ftruncate("a", &fd, 5 * GIB)
                .able(&[Errno::EFBIG, Errno::EINVAL])?;
            g.ftruncate("a", &fd, 10).ok()?;
            g.stat("a").size(10)
        }),
];

const PUNCH: FallocateFlags =
    FallocateFlags::FALLOC_FL_PUNCH_HOLE.union(FallocateFlags::FALLOC_FL_KEEP_SIZE);

pub(super) const SPACES: &[Promise] = &[
    promise("space.reserve.size")
        .says("fallocate extends a file with zeros to the end of the reserved range")
        .test(|g| {
            let fd = g.file("a")?;
            allocate(g, &fd, FallocateFlags::empty(), 0, 10_000).able(&[])?;
            g.stat("a").size(10_000)?;
            g.holds("a", &[0; 10_000])
        }),
    promise("space.reserve.keeps-data")
        .says("fallocate over data keeps the data")
        .test(|g| {
            let fd = g.filled("a", &pattern(10_000))?;
            allocate(g, &fd, FallocateFlags::empty(), 0, 10_000).able(&[])?;
            drop(fd);
            g.holds("a", &pattern(10_000))
        }),
    promise("space.reserve.inside")
        .says("fallocate inside a file keeps its size")
        .test(|g| {
            let fd = g.filled("a", &pattern(10_000))?;
            allocate(g, &fd, FallocateFlags::empty(), 0, 100).able(&[])?;
            g.stat("a").size(10_000)
        }),
    promise("space.keep-size")
        .says("fallocate with FALLOC_FL_KEEP_SIZE keeps the size")
        .test(|g| {
            let fd = g.filled("a", b"0123")?;
            allocate(g, &fd, FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, 100_000).able(&[])?;
            g.stat("a").size(4)?;
            g.holds("a", b"0123")
        }),
    promise("space.refused.nothing")
        .says("fallocate of zero bytes fails with EINVAL")
        .test(|g| {
            let fd = g.file("a")?;
            allocate(g, &fd, FallocateFlags::empty(), 0, 0).fails(Errno::EINVAL)?;
            allocate(g, &fd, FallocateFlags::empty(), -1, 10).fails(Errno::EINVAL)
        }),
    promise("space.refused.read-only")
        .says("fallocate of a file open only for reading fails with EBADF")
        .test(|g| {
            g.put("a", b"x")?;
            let fd = g.open("a", OFlag::O_RDONLY).ready()?;
            allocate(g, &fd, FallocateFlags::empty(), 0, 10).fails(Errno::EBADF)
        }),
    promise("space.refused.huge")
        .says("fallocate beyond the largest file size fails with EFBIG")
        .test(|g| {
            let fd = g.file("a")?;
            allocate(g, &fd, FallocateFlags::empty(), i64::MAX - 10, 100).fails(Errno::EFBIG)
        }),
    promise("space.refused.punch-alone")
        .says("punching a hole without FALLOC_FL_KEEP_SIZE fails with EOPNOTSUPP")
        .test(|g| {
            let fd = g.file("a")?;
            let done = allocate(g, &fd, FallocateFlags::FALLOC_FL_PUNCH_HOLE, 0, 10);
            done.fails_with(&[Errno::EOPNOTSUPP, Errno::EINVAL])
        }),
    promise("space.punch.zeros")
        .says("a punched hole reads as zeros, and the data around it stays")
        .test(|g| zeroes(g, 64 * KIB, PUNCH, 16 * KIB..32 * KIB)),
    promise("space.punch.bytes")
        .says("a hole may start and end at any byte")
        .test(|g| zeroes(g, 20_000, PUNCH, 101..10_100)),
    promise("space.punch.size")
        .says("a hole punched across the end keeps the size")
        .test(|g| {
            let fd = g.filled("a", &pattern(10_000))?;
            allocate(g, &fd, PUNCH, 5_000, 100_000).able(&[])?;
            g.stat("a").size(10_000)?;
            let mut wanted = pattern(10_000);
            wanted[5_000..].fill(0);
            g.holds("a", &wanted)
        }),
    promise("space.punch.open")
        .says("a descriptor that has read the data before sees the hole")
        .test(|g| {
            g.put("a", &pattern(64 * KIB))?;
            let (one, two) = (g.reopened("a")?, g.reopened("a")?);
            g.holds_open("a", &two, &pattern(64 * KIB))?;
            allocate(g, &one, PUNCH, 0, 32 * 1024).able(&[])?;
            g.read("a", &two, 32 * KIB, 0).bytes(&[0; 32 * KIB])
        }),
    promise("space.punch.again")
        .says("a punched hole can be written again")
        .test(|g| {
            let fd = g.filled("a", &pattern(16 * KIB))?;
            allocate(g, &fd, PUNCH, 0, 8 * 1024).able(&[])?;
            g.write("a", &fd, b"written again", 100).ok()?;
            let mut wanted = pattern(16 * KIB);
            wanted[..8 * KIB].fill(0);
            wanted[100..113].copy_from_slice(b"written again");
            drop(fd);
            g.holds("a", &wanted)
        }),
    promise("space.zero.zeros")
        .says("FALLOC_FL_ZERO_RANGE zeroes a range")
        .test(|g| {
            zeroes(
                g,
                64 * KIB,
                FallocateFlags::FALLOC_FL_ZERO_RANGE,
                1000..31_000,
            )
        }),
    promise("space.collapse")
        .says("FALLOC_FL_COLLAPSE_RANGE removes a range")
        .test(|g| {
            let content = pattern(256 * KIB);
            let left = [&content[..64 * KIB], &content[128 * KIB..]].concat();
            shifts(g, &content, FallocateFlags::FALLOC_FL_COLLAPSE_RANGE, &left)
        }),
    promise("space.insert")
        .says("FALLOC_FL_INSERT_RANGE inserts a hole")
        .test(|g| {
            let content = pattern(128 * KIB);
            let left = [&content[..64 * KIB], &[0; 64 * KIB], &content[64 * KIB..]].concat();
            shifts(g, &content, FallocateFlags::FALLOC_FL_INSERT_RANGE, &left)
        }),
    promise("space.reserved.writes")
        .says("reserved space can be written")
        .test(|g| {
            let fd = g.file("a")?;
            allocate(g, &fd, FallocateFlags::empty(), 0, 1 << 20).able(&[])?;
            g.write("a", &fd, &pattern(10_000), 500_000).ok()?;
            g.read("a", &fd, 10_000, 500_000).bytes(&pattern(10_000))
        }),
];

/// Expects that only this range of a file of `length` bytes reads as zeros after fallocate, by the
/// promise.
fn zeroes(g: &Ground, length: usize, how: FallocateFlags, range: Range<usize>) -> Kept {
    let mut wanted = pattern(length);
    let fd = g.filled("a", &wanted)?;
    allocate(g, &fd, how, range.start as i64, range.len() as i64).able(&[])?;
    drop(fd);
    wanted[range].fill(0);
    g.holds("a", &wanted)
}

/// Expects fallocate of 64 KiB at 64 KiB to change the content of a file to `left`, by the promise.
fn shifts(g: &Ground, content: &[u8], how: FallocateFlags, left: &[u8]) -> Kept {
    let fd = g.filled("a", content)?;
    allocate(g, &fd, how, 64 * 1024, 64 * 1024).able(&[Errno::EINVAL])?;
    drop(fd);
    g.holds("a", left)
}

fn seek(g: &Ground, fd: &OwnedFd, offset: i64, whence: Whence) -> Did<i64> {
    g.did("lseek", "a", lseek(fd, offset, whence))
}

fn allocate(g: &Ground, fd: &OwnedFd, how: FallocateFlags, offset: i64, length: i64) -> Did<()> {
    g.did("fallocate", "a", fallocate(fd, how, offset, length))
}
