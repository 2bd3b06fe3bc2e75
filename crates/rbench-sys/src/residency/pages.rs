//! Pages of a file in this host's page cache.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use nix::errno::Errno;
use nix::libc;
use syscalls::{Sysno, syscall4};

use crate::files::known;
use crate::limits::page_size;

/// Number of pages per call of mincore: one byte each.
const WINDOW_PAGES: u64 = 1 << 20;

/// Pages of a file in the page cache at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resident {
    /// Pages of the whole file by its length; 0 for an empty file.
    pub pages: u64,
    /// Number of these pages that are in the page cache, including dirty ones and ones under
    /// writeback. At most `pages`.
    pub cached: u64,
}

/// The pages of the open file `fd` in the page cache, by cachestat(2) (Linux 6.5),
/// else by mmap and mincore. It reads nothing, loads and drops no page, and sends no
/// request to a FUSE file system. The descriptor may have been opened with O_DIRECT:
/// the page cache of the file may have been filled by others.
///
/// # Errors
/// EBADF for an O_PATH descriptor. EPERM if the kernel refuses the information
/// (neither owner of the file nor allowed to write to it). EOPNOTSUPP for file
/// systems without a page cache. EACCES of mmap, before Linux 6.5, for a descriptor
/// that cannot read.
pub fn resident(fd: BorrowedFd<'_>) -> Result<Resident, Errno> {
    match by_cachestat(fd) {
        Err(Errno::ENOSYS) => by_mincore(fd),
        other => other,
    }
}

/// The length of an open file, and its owner.
fn length_and_owner(fd: BorrowedFd<'_>) -> Result<(u64, u32), Errno> {
    let found = known(fd, libc::STATX_SIZE | libc::STATX_UID)?;
    Ok((found.stx_size, found.stx_uid))
}

/// `struct cachestat_range`
#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// `struct cachestat`, all in pages.
#[repr(C)]
#[derive(Default)]
struct Counted {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

fn by_cachestat(fd: BorrowedFd<'_>) -> Result<Resident, Errno> {
    let (bytes, _) = length_and_owner(fd)?;
    let pages = bytes.div_ceil(page_size());
    // A length of 0 means the whole file, even if it grows meanwhile.
    let range = Range {
        offset: 0,
        length: bytes,
    };
    let mut counted = Counted::default();
    // SAFETY: the kernel reads `range` and writes `counted`; both have its layout,
    // and outlive the call.
    let asked = unsafe {
        syscall4(
            Sysno::cachestat,
            fd.as_raw_fd() as usize,
            (&raw const range).expose_provenance(),
            (&raw mut counted).expose_provenance(),
            0,
        )
    };
    asked.map_err(|error| Errno::from_raw(error.into_raw()))?;
    let Counted { cached, .. } = counted;
    Ok(Resident {
        pages,
        cached: cached.min(pages),
    })
}

fn by_mincore(fd: BorrowedFd<'_>) -> Result<Resident, Errno> {
    let (bytes, owner) = length_and_owner(fd)?;
    let page = page_size();
    let pages = bytes.div_ceil(page);
    if !may_ask(fd, owner) {
        // The kernel would report all pages as resident.
        return Err(Errno::EPERM);
    }
    let mut cached = 0;
    for first in (0..pages).step_by(WINDOW_PAGES as usize) {
        let count = (pages - first).min(WINDOW_PAGES);
        cached += cached_in(fd, first * page, count, page)?;
    }
    Ok(Resident { pages, cached })
}

/// The rule of mincore(2) since Linux 5.2.
fn may_ask(fd: BorrowedFd<'_>, owner: u32) -> bool {
    let me = nix::unistd::geteuid();
    // SAFETY: no memory is involved.
    let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
    let writes = flags >= 0 && flags & libc::O_ACCMODE != libc::O_RDONLY;
    me.is_root() || me.as_raw() == owner || writes
}

/// Number of pages in the page cache among `count` pages from the byte `offset` on.
fn cached_in(fd: BorrowedFd<'_>, offset: u64, count: u64, page: u64) -> Result<u64, Errno> {
    let length = usize::try_from(count * page).map_err(|_| Errno::EOVERFLOW)?;
    let offset = libc::off_t::try_from(offset).map_err(|_| Errno::EOVERFLOW)?;
    let how = (libc::PROT_READ, libc::MAP_SHARED);
    // SAFETY: a new mapping, which is never read: only its pages are counted.
    let map = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length,
            how.0,
            how.1,
            fd.as_raw_fd(),
            offset,
        )
    };
    if map == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    let mut residency = vec![0u8; count as usize];
    // SAFETY: the mapping is `length` bytes long, and the vector has a byte for each
    // of its pages.
    let asked = unsafe { libc::mincore(map, length, residency.as_mut_ptr()) };
    let asked = Errno::result(asked);
    // SAFETY: the mapping created above, which nothing else uses.
    unsafe { libc::munmap(map, length) };
    asked?;
    Ok(residency.iter().map(|byte| u64::from(byte & 1)).sum())
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::io::Write as _;
    use std::os::fd::AsFd as _;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    const PAGES: u64 = 300;

    /// A clean file of `PAGES` pages, the last one of a single byte, on a disk if the
    /// system's temporary directory is on one.
    fn file() -> (tempfile::TempDir, File) {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let path = folder.path().join("file");
        let bytes = vec![7; (PAGES as usize - 1) * page_size() as usize + 1];
        std::fs::write(&path, bytes).expect("there is space");
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.expect("it was made");
        file.sync_all().expect("the disk takes it");
        (folder, file)
    }

    fn fincore(path: &Path) -> Option<u64> {
        let mut command = Command::new("fincore");
        command
            .args(["--noheadings", "--output", "PAGES"])
            .arg(path);
        let run = command.output().ok()?;
        String::from_utf8_lossy(&run.stdout).trim().parse().ok()
    }

    #[test]
    fn cachestat_and_mincore_count_what_fincore_counts() {
        let (folder, file) = file();
        let path = folder.path().join("file");
        let counts = || {
            let mincore = by_mincore(file.as_fd()).expect("the file is ours");
            assert_eq!(mincore.pages, PAGES);
            let cachestat = resident(file.as_fd()).expect("it is open");
            let theirs = fincore(&path).unwrap_or(mincore.cached);
            [mincore.cached, cachestat.cached, theirs]
        };
        // An attempt fails if someone drops the caches of this host meanwhile.
        let agree = |prepare: &dyn Fn(), expect: &dyn Fn(u64) -> bool| {
            let mut tries = (0..20).map(|_| {
                prepare();
                counts()
            });
            let good = |all: &[u64; 3]| all.iter().all(|n| n == &all[0]) && expect(all[0]);
            assert!(tries.any(|all| good(&all)), "{:?}", counts());
        };
        let read = || drop(std::fs::read(&path).expect("there"));
        agree(&read, &|cached| cached == PAGES);
        let advise = |advice| {
            // SAFETY: no memory is involved.
            let code = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, advice) };
            assert_eq!(code, 0);
        };
        let evicted = || advise(libc::POSIX_FADV_DONTNEED);
        // A file system in memory keeps all its pages.
        agree(&evicted, &|cached| cached == 0 || cached == PAGES);
        let some = || {
            evicted();
            advise(libc::POSIX_FADV_RANDOM);
            let mut first = [0; 10 * 4096];
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut first, 0).expect("longer");
        };
        agree(&some, &|cached| cached >= 10 * 4096 / page_size());
    }

    #[test]
    fn an_empty_file_has_no_pages() {
        let mut file = tempfile::tempfile().expect("a temporary file");
        assert_eq!(resident(file.as_fd()), Ok(Resident::default()));
        assert_eq!(by_mincore(file.as_fd()), Ok(Resident::default()));
        file.write_all(b"x").expect("there is space");
        let one = Resident {
            pages: 1,
            cached: 1,
        };
        assert_eq!(resident(file.as_fd()), Ok(one));
    }

    #[test]
    fn a_path_descriptor_is_an_error() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = nix::fcntl::open(
            folder.path(),
            nix::fcntl::OFlag::O_PATH,
            nix::sys::stat::Mode::empty(),
        );
        let path = path.expect("the directory is there");
        assert!(resident(path.as_fd()).is_err());
    }
}
