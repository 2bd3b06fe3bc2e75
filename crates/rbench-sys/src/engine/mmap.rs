//! The engine `mmap`: a mapping for each attached file. A read copies out of
//! it, a write copies into it, a sync is `msync(MS_SYNC)` and then fsync or
//! fdatasync. A file that is not attached is mapped for one request.
//!
//! No file is made longer: what lies beyond the end of the file is not moved.
//! The length is looked up when a file is mapped and when a request goes
//! beyond it. A file that is truncated under the mapping does not end the
//! process: where pages are missing (or cannot be had, such as those of a hole
//! on a full disk) the request is done by `pread` or `pwrite` instead and ends
//! as that does. Only within the last page of a shortened file is it not
//! noticed, as the kernel has that page: reads find zeros there and writes are
//! lost.

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

/// The two ways of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Out,
    Into,
}

/// An open file and its mapping.
struct MappedFile {
    fd: RawFd,
    advice: Option<Advice>,
    /// The part of the open flags that says what is permitted.
    access: OFlag,
    /// In bytes, when it was last looked up.
    length: u64,
    /// All of the file; `None`: not yet mapped.
    mapping: Option<Mapping>,
}

impl MappedFile {
    /// Looks at the file. `EBADF` for what is no descriptor, `ENODEV` for what
    /// is no regular file.
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

    /// Asks for the length; a mapping of another length is dropped.
    fn look_up_length(&mut self) -> Result<(), Errno> {
        let found = fstat(borrowed(self.fd))?;
        let kind = SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT;
        if kind != SFlag::S_IFREG {
            return Err(Errno::ENODEV);
        }
        let length = u64::try_from(found.st_size).unwrap_or(0);
        if length != self.length {
            self.length = length;
            self.mapping = None;
        }
        Ok(())
    }

    /// How many bytes of `rest` lie in the file.
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

    /// The mapping of all of the file, which is not empty.
    fn mapping(&mut self) -> Result<&Mapping, Errno> {
        if self.mapping.is_none() {
            let made = Mapping::new(self.fd, self.length, self.access)?;
            made.advise(self.advice);
            self.mapping = Some(made);
        }
        self.mapping.as_ref().ok_or(Errno::ENOMEM)
    }

    /// Copies what there is of `rest`.
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
        // SAFETY: `within` has seen to it that `length` bytes at `mapped` lie
        // in the mapping, which is this engine's alone and permits the way;
        // the memory of `rest` is valid and in nobody else's use. The handler
        // was set up in `make`.
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

    /// The plain system call, for a request that met a missing page.
    #[cold]
    fn call(&mut self, rest: &Rest, way: Way) -> Result<usize, Errno> {
        self.look_up_length()?;
        let length = self.within(rest)?;
        // SAFETY: the memory of `rest` is valid and in nobody else's use.
        unsafe {
            match way {
                Way::Out => calls::pread(rest.fd, rest.start, length, rest.offset),
                Way::Into => calls::pwrite(rest.fd, rest.start, length, rest.offset),
            }
        }
    }
}

/// The file of a descriptor for one call.
fn borrowed<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // SAFETY: it is not -1, as `MappedFile::new` looks to, and passed to calls
    // only, which refuse what is not open.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// A shared mapping of a whole file.
struct Mapping {
    start: NonNull<u8>,
    length: NonZeroUsize,
}

// SAFETY: the mapping belongs to this value alone and to no thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `length` bytes, for what `access` permits.
    fn new(fd: RawFd, length: u64, access: OFlag) -> Result<Mapping, Errno> {
        let length = usize::try_from(length).map_err(|_| Errno::ENOMEM)?;
        let length = NonZeroUsize::new(length).ok_or(Errno::EINVAL)?;
        let protection = if access == OFlag::O_RDONLY {
            ProtFlags::PROT_READ
        } else {
            ProtFlags::PROT_READ | ProtFlags::PROT_WRITE
        };
        // SAFETY: a new mapping at an address of the kernel's choice touches
        // no memory that is in use.
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

    /// Passes on how the accesses will be spread: for a mapping the kernel does
    /// not heed what was said of the file. It is a wish: a refusal changes
    /// nothing but the speed.
    fn advise(&self, advice: Option<Advice>) {
        let advice = match advice {
            Some(Advice::Sequential) => MmapAdvise::MADV_SEQUENTIAL,
            Some(Advice::Random) => MmapAdvise::MADV_RANDOM,
            Some(Advice::DontNeed) | None => return,
        };
        // SAFETY: the range is that of the mapping, and the advice leaves its
        // content as it is.
        unsafe { madvise(self.start.cast(), self.length.get(), advice) }.ok();
    }

    /// Writes what was changed to the file and waits for it.
    fn sync(&self) -> Result<(), Errno> {
        // SAFETY: the range is that of the mapping.
        unsafe { msync(self.start.cast(), self.length.get(), MsFlags::MS_SYNC) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is that of the mapping, into which no reference
        // was ever made.
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
        // What is refused here is refused, with its errno, at each request.
        if let Ok(file) = MappedFile::new(fd, advice) {
            self.files.insert(fd, file);
        }
    }

    fn detach(&mut self, fd: RawFd) {
        self.files.remove(fd);
    }
}
