//! The engine `mmap`: a mapping for each attached file. A read copies from it, a
//! write copies to it, a sync is `msync(MS_SYNC)` and then fsync or fdatasync. A file
//! that is not attached is mapped for one request.
//!
//! No file is extended: bytes beyond its end are not moved. The length is read when a
//! file is mapped, and when a request goes beyond it. A file that is truncated under
//! the mapping does not end the process. If pages are missing, such as those of a
//! hole on a full disk, `pread` or `pwrite` does the request instead. A truncation
//! within the last page is not noticed, as the kernel has that page: reads return
//! zeros there, and writes are lost.

use std::num::NonZeroUsize;
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr::NonNull;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::mman::{MapFlags, MmapAdvise, MsFlags, ProtFlags, madvise, mmap, msync, munmap};
use nix::sys::stat::{SFlag, fstat};

use super::contract::{Engine, EngineConfig, EngineInfo};
use super::faults;
use super::fd_table::FdTable;
use super::synchronous::{self, Calls, Rest, sync_file};
use crate::calls;
use crate::files::Advice;

/// The line in [`super::ENGINES`].
pub const INFO: EngineInfo = EngineInfo {
    name: "mmap",
    mapped: true,
    ..EngineInfo::of(make)
};

struct Mmap {
    files: FdTable<MappedFile>,
}

fn make(config: EngineConfig) -> Result<Box<dyn Engine>, Errno> {
    faults::install()?;
    let files = FdTable::new();
    synchronous::make(config, Mmap { files })
}

/// Direction of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Out,
    Into,
}

/// An open file and its mapping.
struct MappedFile {
    fd: RawFd,
    advice: Option<Advice>,
    /// The access mode of the open flags.
    access: OFlag,
    /// Length in bytes, when it was last read.
    length: u64,
    /// The mapping of the whole file; `None` if not mapped yet.
    mapping: Option<Mapping>,
}

impl MappedFile {
    /// Reads the properties of the file. `EBADF` for an invalid descriptor, `ENODEV`
    /// if it is not a regular file.
    fn new(fd: RawFd, advice: Option<Advice>) -> Result<MappedFile, Errno> {
        if fd < 0 {
            return Err(Errno::EBADF);
        }
        let flags = fcntl(borrowed(fd), FcntlArg::F_GETFL)?;
        let mut file = MappedFile {
            fd,
            advice,
            access: OFlag::from_bits_truncate(flags) & OFlag::O_ACCMODE,
            length: 0,
            mapping: None,
        };
        file.look_up_length()?;
        Ok(file)
    }

    /// Reads the length; a mapping of another length is dropped.
    fn look_up_length(&mut self) -> Result<(), Errno> {
        let attributes = fstat(borrowed(self.fd))?;
        let kind = SFlag::from_bits_truncate(attributes.st_mode) & SFlag::S_IFMT;
        if kind != SFlag::S_IFREG {
            return Err(Errno::ENODEV);
        }
        let length = u64::try_from(attributes.st_size).unwrap_or(0);
        if length != self.length {
            self.length = length;
            self.mapping = None;
        }
        Ok(())
    }

    /// Number of bytes of `rest` that lie in the file.
    fn within(&mut self, rest: &Rest) -> Result<usize, Errno> {
        let offset = u64::try_from(rest.offset).map_err(|_| Errno::EINVAL)?;
        if offset.saturating_add(rest.length as u64) > self.length {
            self.look_up_length()?;
        }
        let behind = self.length.saturating_sub(offset);
        Ok(rest
            .length
            .min(usize::try_from(behind).unwrap_or(usize::MAX)))
    }

    /// The mapping of the whole file, which is not empty.
    fn mapping(&mut self) -> Result<&Mapping, Errno> {
        if self.mapping.is_none() {
            let mapping = Mapping::new(self.fd, self.length, self.access)?;
            mapping.advise(self.advice);
            self.mapping = Some(mapping);
        }
        self.mapping.as_ref().ok_or(Errno::ENOMEM)
    }

    /// Copies the part of `rest` that lies in the file.
    #[inline]
    fn copy(&mut self, rest: &Rest, way: Way) -> Result<usize, Errno> {
        let forbidden = match way {
            Way::Out => OFlag::O_WRONLY,
            Way::Into => OFlag::O_RDONLY,
        };
        if self.access == forbidden {
            return Err(Errno::EBADF);
        }
        let length = self.within(rest)?;
        if length == 0 {
            return Ok(0);
        }
        let offset = rest.offset as usize;
        let mapped = self.mapping()?.start.as_ptr().wrapping_byte_add(offset);
        // SAFETY: `within` has ensured that `length` bytes at `mapped` lie in the
        // mapping, which belongs only to this engine and permits the access. The
        // memory of `rest` is valid, and nothing else uses it. `make` has installed
        // the handler.
        let copied = unsafe {
            match way {
                Way::Out => faults::copy(mapped, rest.start, length, mapped),
                Way::Into => faults::copy(rest.start, mapped, length, mapped),
            }
        };
        if copied {
            rbench_core::clock::settle();
            return Ok(length);
        }
        self.mapping = None;
        self.call(rest, way)
    }

    /// Makes the plain system call for a request that met a missing page.
    #[cold]
    fn call(&mut self, rest: &Rest, way: Way) -> Result<usize, Errno> {
        self.look_up_length()?;
        let length = self.within(rest)?;
        // SAFETY: the memory of `rest` is valid, and nothing else uses it.
        unsafe {
            match way {
                Way::Out => calls::pread(rest.fd, rest.start, length, rest.offset),
                Way::Into => calls::pwrite(rest.fd, rest.start, length, rest.offset),
            }
        }
    }
}

/// Borrows a descriptor for one call.
fn borrowed<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // SAFETY: it is not -1, as `MappedFile::new` ensures, and is only passed to
    // calls, which refuse a closed one.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// A shared mapping of a whole file.
struct Mapping {
    start: NonNull<u8>,
    length: NonZeroUsize,
}

// SAFETY: the mapping belongs only to this value, and to no thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `length` bytes with the permissions of `access`.
    fn new(fd: RawFd, length: u64, access: OFlag) -> Result<Mapping, Errno> {
        let length = usize::try_from(length).map_err(|_| Errno::ENOMEM)?;
        let length = NonZeroUsize::new(length).ok_or(Errno::EINVAL)?;
        let protection = if access == OFlag::O_RDONLY {
            ProtFlags::PROT_READ
        } else {
            ProtFlags::PROT_READ | ProtFlags::PROT_WRITE
        };
        // SAFETY: a new mapping at an address chosen by the kernel touches no memory
        // in use.
        let start = unsafe {
            mmap(
                None,
                length,
                protection,
                MapFlags::MAP_SHARED,
                borrowed(fd),
                0,
            )
        }?;
        Ok(Mapping {
            start: start.cast(),
            length,
        })
    }

    /// Passes on the access pattern: for a mapping the kernel ignores the file's own
    /// advice. It is a hint: a refusal only affects the speed.
    fn advise(&self, advice: Option<Advice>) {
        let advice = match advice {
            Some(Advice::Sequential) => MmapAdvise::MADV_SEQUENTIAL,
            Some(Advice::Random) => MmapAdvise::MADV_RANDOM,
            Some(Advice::DontNeed) | None => return,
        };
        // SAFETY: the range is that of the mapping, and the advice does not change
        // its content.
        unsafe { madvise(self.start.cast(), self.length.get(), advice) }.ok();
    }

    /// Writes changes to the file, and waits for them.
    fn sync(&self) -> Result<(), Errno> {
        // SAFETY: the range is that of the mapping.
        unsafe { msync(self.start.cast(), self.length.get(), MsFlags::MS_SYNC) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is that of the mapping; no reference into it was ever
        // created.
        let unmapped = unsafe { munmap(self.start.cast(), self.length.get()) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

impl Mmap {
    #[inline]
    fn copy(&mut self, rest: &Rest, way: Way) -> Result<usize, Errno> {
        match self.files.get_mut(rest.fd) {
            Some(file) => file.copy(rest, way),
            None => MappedFile::new(rest.fd, None)?.copy(rest, way),
        }
    }
}

impl Calls for Mmap {
    #[inline]
    fn read(&mut self, rest: &Rest) -> Result<usize, Errno> {
        self.copy(rest, Way::Out)
    }

    #[inline]
    fn write(&mut self, rest: &Rest) -> Result<usize, Errno> {
        self.copy(rest, Way::Into)
    }

    fn sync(&mut self, fd: RawFd, data_only: bool) -> Result<(), Errno> {
        let file = self.files.get(fd);
        if let Some(mapping) = file.and_then(|file| file.mapping.as_ref()) {
            mapping.sync()?;
        }
        sync_file(fd, data_only)
    }

    fn attach(&mut self, fd: RawFd, advice: Option<Advice>) {
        // A file that is refused here is refused again, with its errno, at each
        // request.
        if let Ok(file) = MappedFile::new(fd, advice) {
            self.files.insert(fd, file);
        }
    }

    fn detach(&mut self, fd: RawFd) {
        self.files.remove(fd);
    }
}
