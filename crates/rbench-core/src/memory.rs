//! Memory of a worker: the source of its buffers, and the memory that it locks. The names
//! are fio's.

use std::path::PathBuf;

/// Source of buffers (`mem`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryKind {
    /// Anonymous pages of the process.
    #[default]
    Malloc,
    /// A System V segment (shmget(2)).
    Shm,
    /// A segment of huge pages.
    ShmHuge,
    /// A private mapping, of a file if one is named.
    Mmap,
    /// A shared mapping of a file of huge pages.
    MmapHuge,
    /// A shared mapping, of a file if one is named.
    MmapShared,
}

impl MemoryKind {
    /// The word of `mem=`.
    pub fn name(self) -> &'static str {
        match self {
            MemoryKind::Malloc => "malloc",
            MemoryKind::Shm => "shm",
            MemoryKind::ShmHuge => "shmhuge",
            MemoryKind::Mmap => "mmap",
            MemoryKind::MmapHuge => "mmaphuge",
            MemoryKind::MmapShared => "mmapshared",
        }
    }

    /// True if it consists of huge pages.
    pub fn is_huge(self) -> bool {
        matches!(self, MemoryKind::ShmHuge | MemoryKind::MmapHuge)
    }
}

/// Memory options of a worker; the default is ordinary memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// The source of buffers.
    pub kind: MemoryKind,
    /// The file to map. It is created, and unlinked before it is used.
    pub file: Option<PathBuf>,
    /// `iomem_align`, bytes. Below the size of a page, the first buffer starts at this
    /// offset after a page boundary; otherwise at a multiple of it. The others follow
    /// without gaps. `None`: each starts at a page.
    pub align: Option<u64>,
    /// `hugepage-size`, bytes: huge pages are allocated in multiples of it.
    pub huge_page: u64,
    /// `lockmem`, bytes: this much memory is locked, so that nobody else can use it.
    pub locked: u64,
}

impl Memory {
    /// Bytes of a huge page by default.
    pub const HUGE_PAGE: u64 = 2 << 20;

    /// True if no option changes the buffers.
    pub fn is_ordinary(&self) -> bool {
        self.kind == MemoryKind::Malloc && self.align.is_none()
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            kind: MemoryKind::Malloc,
            file: None,
            align: None,
            huge_page: Memory::HUGE_PAGE,
            locked: 0,
        }
    }
}
