//! The memory of a worker: what its blocks lie in, and what it keeps from others. By
//! fio's names.

use std::path::PathBuf;

/// Where buffers come from (`mem`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryKind {
    /// Pages of the process.
    #[default]
    Malloc,
    /// A System V segment (shmget(2)).
    Shm,
    /// A segment of huge pages.
    ShmHuge,
    /// A mapping, of a file where one is named.
    Mmap,
    /// A shared mapping of a file of huge pages.
    MmapHuge,
    /// A shared mapping, of a file where one is named.
    MmapShared,
}

impl MemoryKind {
    /// The word behind `mem=`.
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

    /// Whether it is made of huge pages.
    pub fn is_huge(self) -> bool {
        matches!(self, MemoryKind::ShmHuge | MemoryKind::MmapHuge)
    }
}

/// What is asked for; the default is ordinary memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Where buffers come from.
    pub kind: MemoryKind,
    /// The file that is mapped: it is made, and has no name any more when it is in use.
    pub file: Option<PathBuf>,
    /// `iomem_align`, bytes: the first buffer starts there behind a page, or, from a page
    /// on, at a multiple of it; the others follow it without gaps. `None`: each starts at
    /// a page.
    pub align: Option<u64>,
    /// `hugepage-size`, bytes: what huge pages are taken in multiples of.
    pub huge_page: u64,
    /// `lockmem`, bytes: so much is kept from everybody else.
    pub locked: u64,
}

impl Memory {
    /// Bytes of a huge page where nothing else is said.
    pub const HUGE_PAGE: u64 = 2 << 20;

    /// Whether buffers are what they are without any option.
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
