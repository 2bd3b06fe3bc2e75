//! Content: written data is read back, by every method of the kernel.

use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{OFlag, copy_file_range};
use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, MsFlags, ProtFlags, mmap, msync, munmap};
use nix::unistd::{Whence, lseek};

use super::did::{Breach, Did, Kept, undecides};
use super::ground::{Ground, Promise, promise};
use super::prepare::pattern;

const KIB: usize = 1024;

pub(super) const PROMISES: &[Promise] = &[
    promise("content.sizes")
        .says("blocks of any size at any offset are read back unchanged")
        .test(|g| {
            let fd = g.file("a")?;
            let mut offset = 0;
            let sizes = [
                1, 2, 511, 512, 513, 4095, 4096, 4097, 65_535, 65_537, 131_073,
            ];
            for size in sizes {
                g.write("a", &fd, &pattern(size), offset).ok()?;
                offset += size as i64 + 3;
            }
            drop(fd);
            let fd = g.open("a", OFlag::O_RDONLY).ok()?;
            let mut offset = 0;
            for size in sizes {
                g.read("a", &fd, size, offset).bytes(&pattern(size))?;
                offset += size as i64 + 3;
            }
            Ok(())
        }),
    promise("content.whole-write")
        .says("a write is complete while the file system has space")
        .test(|g| {
            let fd = g.file("a")?;
            let bytes = pattern(300_000);
            let n = nix::sys::uio::pwrite(&fd, &bytes, 0);
            let n = g.did("pwrite64", "a", n).ok()?;
            let rest = nix::sys::uio::pwrite(&fd, &bytes[n..], n as i64);
            if rest.is_err_and(undecides) {
                // Only a part fitted, or a limit of file sizes ends there.
                g.did("pwrite64", "a", rest).ok()?;
            }
            g.same("pwrite64", "a", "bytes written", (300_000, n))
        }),
    promise("content.whole-read")
        .says("a read inside a file is complete")
        .test(|g| {
            g.put("a", &pattern(300_000))?;
            let fd = g.open("a", OFlag::O_RDONLY).ok()?;
            let mut bytes = vec![0; 200_000];
            let n = nix::sys::uio::pread(&fd, &mut bytes, 50_000);
            g.did("pread64", "a", n).has("bytes read", 200_000, |n| n)?;
            g.did("pread64", "a", Ok(bytes))
                .bytes(&pattern(300_000)[50_000..250_000])
        }),
    promise("content.overwrite")
        .says("a write inside a file changes only the written bytes")
        .test(|g| {
            let mut wanted = pattern(50_000);
            let fd = g.filled("a", &wanted)?;
            for (offset, bytes) in [(0, b"first"), (20_001, b"inner"), (49_995, b"last!")] {
                g.write("a", &fd, bytes, offset as i64).ok()?;
                wanted[offset..offset + 5].copy_from_slice(bytes);
            }
            drop(fd);
            g.holds("a", &wanted)
        }),
    promise("content.backwards")
        .says("a file written backwards is complete")
        .test(|g| {
            let wanted = pattern(64 * KIB);
            let fd = g.file("a")?;
            for number in (0..64).rev() {
                let at = number * KIB;
                g.write("a", &fd, &wanted[at..at + KIB], at as i64).ok()?;
            }
            drop(fd);
            g.holds("a", &wanted)
        }),
    promise("content.zero-bytes")
        .says("a write of zero bytes changes nothing")
        .test(|g| {
            let fd = g.file("a")?;
            g.did("pwrite64", "a", nix::sys::uio::pwrite(&fd, b"", 1000))
                .ok()?;
            g.stat("a").size(0)
        }),
    promise("content.vectors")
        .says("writev and readv transfer buffers in order")
        .test(|g| {
            let fd = g.file("a")?;
            let pieces = [&b"one"[..], &b""[..], &b"two"[..], &b"three"[..]];
            let pieces = pieces.map(std::io::IoSlice::new);
            let n = nix::sys::uio::writev(&fd, &pieces);
            g.did("writev", "a", n).has("bytes", 11, |n| n)?;
            g.did("lseek", "a", lseek(&fd, 0, Whence::SeekSet))
                .ready()?;
            let (mut one, mut two) = ([0; 6], [0; 5]);
            let mut into = [
                std::io::IoSliceMut::new(&mut one),
                std::io::IoSliceMut::new(&mut two),
            ];
            let n = nix::sys::uio::readv(&fd, &mut into);
            g.did("readv", "a", n).has("bytes", 11, |n| n)?;
            let content = [&one[..], &two[..]].concat();
            g.did("readv", "a", Ok(content)).bytes(b"onetwothree")
        }),
    promise("content.many-files")
        .says("each of 50 files keeps its own content")
        .test(|g| {
            for number in 0..50 {
                g.put(format!("file-{number}"), &[number; 3000])?;
            }
            for number in 0..50 {
                g.holds(format!("file-{number}"), &[number; 3000])?;
            }
            Ok(())
        }),
    promise("content.mmap.read")
        .says("a mapping shows data written before it")
        .test(|g| {
            let (_fd, map) = mapped(g, MapFlags::MAP_SHARED)?;
            map.read(g, 0, LENGTH).bytes(&pattern(LENGTH))
        }),
    promise("content.mmap.sees-write")
        .says("a mapping shows data written while it exists")
        .test(|g| {
            let (fd, map) = mapped(g, MapFlags::MAP_SHARED)?;
            map.read(g, 0, LENGTH).ok()?;
            g.write("a", &fd, b"written", 5000).ready()?;
            map.read(g, 5000, 7).bytes(b"written")
        }),
    promise("content.mmap.read-sees")
        .says("read returns data stored through a mapping")
        .test(|g| {
            let (fd, map) = mapped(g, MapFlags::MAP_SHARED)?;
            map.store(g, 5000, b"stored")?;
            g.read("a", &fd, 6, 5000).bytes(b"stored")
        }),
    promise("content.mmap.synced")
        .says("data stored through a mapping and synced is read after reopening the file")
        .test(|g| {
            let (fd, map) = mapped(g, MapFlags::MAP_SHARED)?;
            map.store(g, 5000, b"stored")?;
            map.sync(g)?;
            drop(map);
            drop(fd);
            let mut wanted = pattern(LENGTH);
            wanted[5000..5006].copy_from_slice(b"stored");
            g.holds("a", &wanted)
        }),
    promise("content.mmap.closed")
        .says("data stored through a mapping is read after munmap")
        .test(|g| {
            let (fd, map) = mapped(g, MapFlags::MAP_SHARED)?;
            drop(fd);
            map.store(g, 9000, b"stored")?;
            drop(map);
            let mut wanted = pattern(LENGTH);
            wanted[9000..9006].copy_from_slice(b"stored");
            g.holds("a", &wanted)
        }),
    promise("content.mmap.two")
        .says("two mappings of one file see each other's stores")
        .test(|g| {
            let (_fd, one) = mapped(g, MapFlags::MAP_SHARED)?;
            // Both files stay open: closing one may flush it.
            let other = g.reopened("a")?;
            let two = Mapping::new(g, &other, LENGTH)?;
            one.store(g, 100, b"stored")?;
            two.read(g, 100, 6).bytes(b"stored")
        }),
    promise("content.mmap.private")
        .says("a store through a private mapping does not reach the file")
        .test(|g| {
            let (_fd, map) = mapped(g, MapFlags::MAP_PRIVATE)?;
            map.store(g, 100, b"stored")?;
            drop(map);
            g.holds("a", &pattern(LENGTH))
        }),
    promise("content.mmap.behind-end")
        .says("the last page of a mapping is zero after the end of the file")
        .test(|g| {
            let fd = g.filled("a", &pattern(1000))?;
            let map = Mapping::new(g, &fd, 4 * KIB)?;
            map.read(g, 1000, 3000).bytes(&[0; 3000])
        }),
    promise("content.mmap.cut")
        .says("after truncate shrinks and extends a file, a mapping reads zeros there")
        .test(|g| {
            let (fd, map) = mapped(g, MapFlags::MAP_SHARED)?;
            map.read(g, 0, LENGTH).ok()?;
            g.ftruncate("a", &fd, 1000).ready()?;
            g.ftruncate("a", &fd, LENGTH as i64).ready()?;
            map.read(g, 4 * KIB, 8 * KIB).bytes(&[0; 8 * KIB])
        }),
    promise("content.copy.whole")
        .says("copy_file_range copies a file")
        .test(|g| {
            g.put("a", &pattern(200_000))?;
            let (from, to) = (g.reopened("a")?, g.file("b")?);
            copy(g, (&from, 0), (&to, 0), 200_000)?;
            drop(to);
            g.holds("b", &pattern(200_000))
        }),
    promise("content.copy.part")
        .says("copy_file_range copies a part to another offset and changes nothing else")
        .test(|g| {
            g.put("a", &pattern(50_000))?;
            g.put("b", &[9; 50_000])?;
            let (from, to) = (g.reopened("a")?, g.reopened("b")?);
            copy(g, (&from, 1001), (&to, 20_003), 10_000)?;
            drop(to);
            let mut wanted = vec![9; 50_000];
            wanted[20_003..30_003].copy_from_slice(&pattern(50_000)[1001..11_001]);
            g.holds("b", &wanted)
        }),
    promise("content.copy.at-end")
        .says("copy_file_range beyond the end of a file copies nothing")
        .test(|g| {
            g.put("a", b"0123")?;
            let (from, to) = (g.reopened("a")?, g.file("b")?);
            let (mut at, mut into) = (4, 0);
            let n = copy_file_range(&from, Some(&mut at), &to, Some(&mut into), 100);
            let copied = g.did("copy_file_range", "b", n).able(&[Errno::EXDEV])?;
            g.same("copy_file_range", "b", "bytes", (0, copied))
        }),
    promise("content.copy.fresh")
        .says("copy_file_range copies data that has just been written")
        .test(|g| {
            let (from, to) = (g.file("a")?, g.file("b")?);
            g.write("a", &from, &pattern(70_000), 0).ready()?;
            g.write("a", &from, b"changed", 30_000).ready()?;
            copy(g, (&from, 0), (&to, 0), 70_000)?;
            let mut wanted = pattern(70_000);
            wanted[30_000..30_007].copy_from_slice(b"changed");
            g.holds_open("b", &to, &wanted)
        }),
    promise("content.sendfile")
        .says("sendfile copies a file")
        .test(|g| {
            g.put("a", &pattern(100_000))?;
            let (from, to) = (g.reopened("a")?, g.file("b")?);
            let mut done = 0;
            while done < 100_000 {
                let mut at = done as i64;
                let n = nix::sys::sendfile::sendfile(&to, &from, Some(&mut at), 100_000 - done);
                match g.did("sendfile", "b", n).able(&[Errno::EINVAL])? {
                    0 => break,
                    n => done += n,
                }
            }
            drop(to);
            g.holds("b", &pattern(100_000))
        }),
];

/// Length of the file of [`mapped`].
const LENGTH: usize = 16 * KIB;

/// Creates a file with a pattern, opens it and maps it.
fn mapped(g: &Ground, how: MapFlags) -> Result<(OwnedFd, Mapping), Breach> {
    let fd = g.filled("a", &pattern(LENGTH))?;
    let map = Mapping::with(g, &fd, LENGTH, how)?;
    Ok((fd, map))
}

fn copy(g: &Ground, from: (&OwnedFd, i64), to: (&OwnedFd, i64), length: usize) -> Kept {
    let (mut at, mut into) = (from.1, to.1);
    let mut left = length;
    while left > 0 {
        let n = copy_file_range(from.0, Some(&mut at), to.0, Some(&mut into), left);
        match g
            .did("copy_file_range", "b", n)
            .able(&[Errno::EXDEV, Errno::EINVAL])?
        {
            0 => {
                let words = [length, length - left].map(|bytes| format!("{bytes} bytes"));
                return g.is("copy_file_range", "b", false, (&words[0], &words[1]));
            }
            n => left -= n,
        }
    }
    Ok(())
}

/// A mapping of a file. The kernel copies bytes between it and a file in memory: it returns
/// an error for a missing page, whereas an access by the processor would end the program.
pub(super) struct Mapping {
    start: std::ptr::NonNull<libc::c_void>,
    length: usize,
    memory: OwnedFd,
}

impl Mapping {
    pub(super) fn new(g: &Ground, fd: &OwnedFd, length: usize) -> Result<Mapping, Breach> {
        Mapping::with(g, fd, length, MapFlags::MAP_SHARED)
    }

    fn with(g: &Ground, fd: &OwnedFd, length: usize, how: MapFlags) -> Result<Mapping, Breach> {
        let memory = memfd_create(c"check", MFdFlags::MFD_CLOEXEC);
        let memory = g.did("memfd_create", "a", memory).ready()?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let size = NonZeroUsize::new(length).unwrap_or(NonZeroUsize::MIN);
        // SAFETY: a new mapping at an address chosen by the kernel.
        let mapped = unsafe { mmap(None, size, access, how, fd, 0) };
        Ok(Mapping {
            start: g.did("mmap", "a", mapped).able(&[Errno::ENODEV])?,
            length: size.get(),
            memory,
        })
    }

    fn read(&self, g: &Ground, offset: usize, length: usize) -> Did<Vec<u8>> {
        let length = length.min(self.length.saturating_sub(offset));
        // SAFETY: `offset` and `length` lie inside the mapping, which the kernel reads.
        let n = unsafe {
            let from = self.start.as_ptr().byte_add(offset);
            libc::pwrite(self.memory.as_raw_fd(), from, length, 0)
        };
        let bytes = || g.read("a", &self.memory, length, 0).result;
        g.did("mmap", "a", Errno::result(n).and_then(|_| bytes()))
    }

    pub(super) fn store(&self, g: &Ground, offset: usize, bytes: &[u8]) -> Kept {
        let length = bytes.len().min(self.length.saturating_sub(offset));
        g.write("a", &self.memory, bytes, 0).ready()?;
        // SAFETY: `offset` and `length` lie inside the mapping, to which the kernel writes;
        // there is no reference into it.
        let n = unsafe {
            let to = self.start.as_ptr().byte_add(offset);
            libc::pread(self.memory.as_raw_fd(), to, length, 0)
        };
        g.did("mmap", "a", Errno::result(n)).ok().map(drop)
    }

    fn sync(&self, g: &Ground) -> Kept {
        // SAFETY: the mapping exists and has this length.
        let synced = unsafe { msync(self.start, self.length, MsFlags::MS_SYNC) };
        g.did("msync", "a", synced).ok()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: only this value uses the mapping, and not after this. The result of
        // unmapping changes nothing.
        let _ = unsafe { munmap(self.start, self.length) };
    }
}
