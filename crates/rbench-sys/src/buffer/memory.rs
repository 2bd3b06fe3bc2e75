//! Buffers in special memory: System V segments, huge pages, mapped files, unaligned
//! starts. Also locked memory.

use std::fs;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, OFlag, fallocate, open};
use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mlock, mmap};
use nix::sys::stat::Mode;
use nix::sys::statfs::{FsType, fstatfs};
use nix::unistd::{ftruncate, unlink};
use rbench_core::Bytes;
use rbench_core::memory::{Memory, MemoryKind};

use super::{AlignedBuffer, Origin};
use crate::limits::available_memory;

/// Bytes that are left to other programs when memory is locked, like in fio.
const LEFT: u64 = 128 << 20;

/// `HUGETLBFS_MAGIC` of the kernel.
const HUGETLBFS: FsType = FsType(0x9584_58f6);

/// The reason why memory is refused: the kernel's errno, and an explanation if known.
pub type Refusal = (Errno, String);

/// The memory of all buffers of a worker.
#[derive(Debug)]
pub struct BlockMemory {
    pub(crate) bytes: AlignedBuffer,
    /// Distance between two buffers in bytes.
    pub(crate) stride: usize,
}

impl BlockMemory {
    /// Allocates pages of the process, with each buffer at the start of a page. `ENOMEM`
    /// if they do not fit.
    pub(crate) fn of_pages(depth: usize, block: usize) -> Result<BlockMemory, Errno> {
        BlockMemory::new(&Memory::default(), depth, block).map_err(|(errno, _)| errno)
    }

    /// Allocates `depth` buffers of `block` bytes in the requested memory. Its pages are
    /// populated from the start.
    ///
    /// # Errors
    /// The reason why it cannot be allocated.
    pub fn new(asked: &Memory, depth: usize, block: usize) -> Result<BlockMemory, Refusal> {
        let none = || plain(Errno::ENOMEM);
        let align = asked.align.map(usize::try_from).transpose();
        let align = align.map_err(|_| none())?;
        let stride = match align {
            Some(_) => Some(block),
            None => block.checked_next_multiple_of(AlignedBuffer::ALIGNMENT),
        };
        let stride = stride.ok_or_else(none)?;
        let length = stride.checked_mul(depth).ok_or_else(none)?;
        // One more page than the buffers need would cost a huge page.
        let needed = length.checked_add(align.unwrap_or(0));
        let whole = match asked.kind.is_huge() {
            true => usize::try_from(asked.huge_page).map_err(|_| none())?.max(1),
            false => AlignedBuffer::ALIGNMENT,
        };
        let needed = needed.and_then(|needed| needed.max(1).checked_next_multiple_of(whole));
        let needed = NonZeroUsize::new(needed.ok_or_else(none)?).ok_or_else(none)?;
        let origin = match asked.kind {
            MemoryKind::Shm | MemoryKind::ShmHuge => segment(asked.kind, needed)?,
            kind => match &asked.file {
                Some(path) if kind != MemoryKind::Malloc => mapped_file(kind, path, needed)?,
                // Like in fio, only mappings of a file are shared.
                _ => Origin::mapping(needed, MapFlags::MAP_POPULATE).map_err(plain)?,
            },
        };
        Ok(BlockMemory {
            bytes: AlignedBuffer::within(origin, ahead(origin.start(), align), length),
            stride,
        })
    }
}

/// Bytes from the start of a mapping to the first buffer.
fn ahead(start: NonNull<u8>, align: Option<usize>) -> usize {
    match align {
        None | Some(0) => 0,
        Some(align) if align < AlignedBuffer::ALIGNMENT => align,
        Some(align) => start.addr().get().next_multiple_of(align) - start.addr().get(),
    }
}

fn plain(errno: Errno) -> Refusal {
    (errno, String::new())
}

/// Allocates a System V segment, which ends with the process: no other process can attach
/// it.
fn segment(kind: MemoryKind, length: NonZeroUsize) -> Result<Origin, Refusal> {
    let huge = if kind.is_huge() { libc::SHM_HUGETLB } else { 0 };
    let flags = libc::IPC_CREAT | 0o600 | huge;
    let refused = |errno| refused(errno, kind);
    // SAFETY: the call has no pointers.
    let id = unsafe { libc::shmget(libc::IPC_PRIVATE, length.get(), flags) };
    let id = Errno::result(id).map_err(refused)?;
    // SAFETY: a new segment, at an address chosen by the kernel.
    let start = unsafe { libc::shmat(id, std::ptr::null(), 0) };
    let failed = (start.addr() == usize::MAX).then(Errno::last);
    // SAFETY: the removal takes no argument; the segment exists while it is attached.
    unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
    if let Some(errno) = failed {
        return Err(refused(errno));
    }
    let start = NonNull::new(start.cast::<u8>()).ok_or_else(|| plain(Errno::ENOMEM))?;
    for at in (0..length.get()).step_by(AlignedBuffer::ALIGNMENT) {
        // SAFETY: `at` lies in the segment, which nothing else uses; it contains zeros.
        unsafe { start.add(at).write_volatile(0) };
    }
    Ok(Origin::Segment(start))
}

/// The kernel gives no memory of this kind: what is known of huge pages.
fn refused(errno: Errno, kind: MemoryKind) -> Refusal {
    let why = match errno {
        _ if !kind.is_huge() => "",
        Errno::ENOMEM => "no huge pages are free: /proc/sys/vm/nr_hugepages sets their number",
        Errno::EPERM => {
            "only root and the group in /proc/sys/vm/hugetlb_shm_group may use huge pages for shared memory segments"
        }
        Errno::EINVAL => "check that huge pages are free and that hugepage-size matches their size",
        Errno::ENOSYS => "the system has no huge pages",
        _ => "",
    };
    (errno, why.to_owned())
}

/// Maps a new file that is unlinked after it was mapped. Each worker has its own, and none
/// is left.
fn mapped_file(kind: MemoryKind, path: &Path, length: NonZeroUsize) -> Result<Origin, Refusal> {
    if fs::symlink_metadata(path).is_ok() {
        let message = format!(
            "{} already exists; buffers do not overwrite it",
            path.display()
        );
        return Err((Errno::EEXIST, message));
    }
    let own = own_name(path);
    let with_path = |errno| (errno, path.display().to_string());
    let flags =
        OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = open(&own, flags, Mode::from_bits_truncate(0o600)).map_err(with_path)?;
    let mapped = map(kind, &file, length).map_err(|(errno, message)| {
        let colon = if message.is_empty() { "" } else { ": " };
        (errno, format!("{}{colon}{message}", path.display()))
    });
    let removed = unlink(&own).map_err(with_path);
    let origin = mapped?;
    removed.map(|()| origin)
}

/// The name of this worker's file: workers and ranks may have the same path.
fn own_name(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.{number}", std::process::id()));
    PathBuf::from(name)
}

fn map(kind: MemoryKind, file: &OwnedFd, length: NonZeroUsize) -> Result<Origin, Refusal> {
    let bytes = i64::try_from(length.get()).map_err(|_| plain(Errno::EFBIG))?;
    let huge = kind.is_huge();
    if huge && fstatfs(file).map_err(plain)?.filesystem_type() != HUGETLBFS {
        let message = "it is not on a file system of huge pages (hugetlbfs)";
        return Err((Errno::EINVAL, message.to_owned()));
    }
    ftruncate(file, bytes).map_err(plain)?;
    let shared = huge || kind == MemoryKind::MmapShared;
    if shared && !huge {
        // A page without space in the file system would end the process.
        fallocate(file, FallocateFlags::empty(), 0, bytes).map_err(plain)?;
    }
    let flags = match shared {
        true => MapFlags::MAP_SHARED,
        false => MapFlags::MAP_PRIVATE,
    };
    // SAFETY: a new mapping at an address chosen by the kernel touches no memory in use.
    // Nothing else uses the file, and it keeps its length.
    let start = unsafe {
        mmap(
            None,
            length,
            ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
            flags | MapFlags::MAP_POPULATE,
            file,
            0,
        )
    };
    let start = start.map_err(|errno| refused(errno, kind))?;
    Ok(Origin::Mapping(start.cast(), length))
}

/// Memory that is locked, so that nothing else can use it; freed when it is dropped.
#[derive(Debug)]
pub struct LockedMemory {
    _bytes: AlignedBuffer,
}

impl LockedMemory {
    /// Locks this number of bytes, 1 or more.
    ///
    /// # Errors
    /// Fails if they cannot be allocated or locked, or would use almost all free memory.
    pub fn new(bytes: u64) -> Result<LockedMemory, Refusal> {
        // Free memory is read after earlier callers have locked theirs.
        static ONE_AFTER_THE_OTHER: Mutex<()> = Mutex::new(());
        let _turn = ONE_AFTER_THE_OTHER.lock();
        if let Ok(Bytes(free)) = available_memory()
            && bytes.saturating_add(LEFT) > free
        {
            let message = format!(
                "{bytes} bytes are more than the host can spare: {free} bytes are available, and {LEFT} of them \
                 stay reserved for others"
            );
            return Err((Errno::ENOMEM, message));
        }
        let length = usize::try_from(bytes).map_err(|_| plain(Errno::ENOMEM))?;
        let length = NonZeroUsize::new(length).unwrap_or(NonZeroUsize::MIN);
        // Not populated at creation: locking does that.
        let origin = Origin::mapping(length, MapFlags::empty()).map_err(plain)?;
        let bytes = AlignedBuffer::within(origin, 0, length.get());
        // SAFETY: the mapping exists, and unmapping it unlocks it.
        unsafe { mlock(origin.start().cast(), length.get()) }.map_err(|errno| {
            let message = match errno {
                Errno::ENOMEM | Errno::EPERM => "more than the limit for locked memory (ulimit -l)",
                _ => "",
            };
            (errno, message.to_owned())
        })?;
        Ok(LockedMemory { _bytes: bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc;

    fn of(kind: MemoryKind) -> Memory {
        Memory {
            kind,
            ..Memory::default()
        }
    }

    /// Checks that every byte of the buffers can be written and keeps its value.
    fn check(memory: &mut BlockMemory, length: usize) {
        assert_eq!(memory.bytes.len(), length);
        assert!(memory.bytes.iter().all(|byte| *byte == 0));
        memory.bytes.fill(7);
        assert!(memory.bytes.iter().all(|byte| *byte == 7));
    }

    #[test]
    fn buffers_lie_in_memory_of_each_kind() {
        for kind in [
            MemoryKind::Malloc,
            MemoryKind::Shm,
            MemoryKind::Mmap,
            MemoryKind::MmapShared,
        ] {
            let mut memory = BlockMemory::new(&of(kind), 3, 5000).expect("8 pages are there");
            assert_eq!(memory.stride, 8192);
            check(&mut memory, 3 * 8192);
        }
    }

    #[test]
    fn a_segment_is_gone_with_its_buffers() {
        // A length that no other test of this process has.
        const LENGTH: usize = 7 * 4096;
        let segments = || {
            let text = fs::read_to_string("/proc/sysvipc/shm").expect("the kernel has segments");
            let own = [LENGTH.to_string(), std::process::id().to_string()];
            let of_mine = |line: &&str| line.split_whitespace().skip(3).take(2).eq(&own);
            text.lines().filter(of_mine).count()
        };
        assert_eq!(segments(), 0);
        let memory = BlockMemory::new(&of(MemoryKind::Shm), 1, LENGTH).expect("memory is there");
        assert_eq!(segments(), 1);
        drop(memory);
        assert_eq!(segments(), 0);
    }

    #[test]
    fn a_mapped_file_is_made_and_gone_and_one_that_is_there_is_left_alone() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("m");
        for kind in [MemoryKind::Mmap, MemoryKind::MmapShared] {
            let asked = Memory {
                file: Some(path.clone()),
                ..of(kind)
            };
            let mut memory = BlockMemory::new(&asked, 2, 4096).expect("there is room");
            check(&mut memory, 8192);
            let left = fs::read_dir(folder.path()).expect("it is there").count();
            assert_eq!(left, 0, "{kind:?}");
            fs::write(&path, "of the user's").expect("written");
            let (errno, why) = BlockMemory::new(&asked, 2, 4096).expect_err("it is there");
            assert_eq!(errno, Errno::EEXIST);
            assert!(why.contains("already exists"), "{why}");
            assert_eq!(fs::read(&path).expect("there"), b"of the user's");
            fs::remove_file(&path).expect("removed");
        }
    }

    #[test]
    fn a_file_for_huge_pages_has_to_lie_where_these_are() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let asked = Memory {
            file: Some(folder.path().join("m")),
            ..of(MemoryKind::MmapHuge)
        };
        let (errno, why) = BlockMemory::new(&asked, 1, 4096).expect_err("no hugetlbfs");
        assert_eq!(errno, Errno::EINVAL);
        assert!(why.contains("hugetlbfs"), "{why}");
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 0);
    }

    #[test]
    fn starts_are_as_far_behind_a_page_as_asked_for_and_buffers_follow_without_gaps() {
        for (align, block) in [(512, 512), (512, 4096), (4096, 1000), (1 << 20, 4096)] {
            let asked = Memory {
                align: Some(align),
                ..Memory::default()
            };
            let mut memory = BlockMemory::new(&asked, 4, block).expect("some pages");
            let start = memory.bytes.as_ptr().addr() as u64;
            assert_eq!(start % align, 0, "{align}");
            assert_eq!(start % 4096, align % 4096);
            assert_eq!(memory.stride, block);
            check(&mut memory, 4 * block);
        }
    }

    #[test]
    fn memory_that_is_locked_counts_as_that_and_is_given_back() {
        let locked = || {
            let text = fs::read_to_string("/proc/self/status").expect("of this process");
            let locked = proc::kib(&text, "VmLck:");
            locked.expect("the kernel says it").0
        };
        let before = locked();
        let memory = LockedMemory::new(64 << 10).expect("that little may be locked");
        assert!(locked() >= before + (64 << 10));
        drop(memory);
        assert_eq!(locked(), before);
        let (errno, why) = LockedMemory::new(1 << 60).expect_err("nobody has that much");
        assert_eq!(errno, Errno::ENOMEM);
        assert!(why.contains("more than the host can spare"), "{why}");
    }
}
