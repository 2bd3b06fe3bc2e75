//! Objects registered with a ring, so that the kernel need not look them up at each
//! request: the buffers and some files. If the kernel refuses them, the engine works
//! without.

use std::os::fd::RawFd;

use io_uring::IoUring;
use nix::errno::Errno;
use nix::libc;
use rbench_core::{EngineOptions, or_eio};

use super::super::buffers::Buffers;
use super::super::fd_table::FdTable;
use crate::limits::locks_memory_freely;

/// Length of a ring's table of files. Further files are used without it.
const FILES: usize = 64;

/// Objects registered with a ring.
pub(super) struct Registered {
    /// True if the buffers are registered, each under its slot's number.
    pub(super) buffers: bool,
    /// Indexes of files in the kernel's table.
    files: FdTable<u32>,
    /// Free indexes; empty without a table.
    free: Vec<u32>,
    /// True if the kernel was asked for a table of files.
    asked: bool,
}

impl Registered {
    /// Registers the buffers if possible: see [`super`] on locked memory. A refusal
    /// (such as for blocks above 1 GiB) leaves the ring unchanged. The buffers must
    /// not be unmapped while a request is in flight.
    ///
    /// # Errors
    /// The kernel's error, for objects that the options require.
    pub(super) fn new(
        ring: &IoUring,
        buffers: &Buffers,
        options: &EngineOptions,
    ) -> Result<Registered, Errno> {
        // Registered buffers are used without vectors.
        let may = options.nonvectored && locks_memory_freely();
        let mut registered = Registered {
            buffers: match options.fixedbufs {
                Some(false) => false,
                Some(true) => {
                    register_buffers(ring, buffers)?;
                    true
                }
                None => may && register_buffers(ring, buffers).is_ok(),
            },
            files: FdTable::new(),
            free: Vec::new(),
            asked: false,
        };
        match options.registerfiles {
            // Otherwise the kernel's thread would have to look up each file.
            _ if options.sqthread_poll => registered.make_table(ring)?,
            Some(true) => registered.make_table(ring)?,
            Some(false) => registered.asked = true,
            None => {}
        }
        Ok(registered)
    }

    /// Registers a table of files.
    fn make_table(&mut self, ring: &IoUring) -> Result<(), Errno> {
        self.asked = true;
        // -1 marks a free index.
        let table = ring.submitter().register_files(&[-1; FILES]);
        table.map_err(or_eio)?;
        self.free = (0..FILES as u32).rev().collect();
        Ok(())
    }

    /// The index of a file in the kernel's table.
    #[inline]
    pub(super) fn file(&self, fd: RawFd) -> Option<u32> {
        self.files.get(fd).copied()
    }

    /// Adds a file to the table while there are free indexes.
    pub(super) fn attach(&mut self, ring: &IoUring, fd: RawFd) {
        if !self.asked {
            // If there is no table, the engine works without.
            self.make_table(ring).ok();
        }
        self.detach(ring, fd);
        let Some(&place) = self.free.last() else {
            return;
        };
        if ring.submitter().register_files_update(place, &[fd]).is_ok() {
            self.free.pop();
            self.files.insert(fd, place);
        }
    }

    /// Removes a file from the table.
    pub(super) fn detach(&mut self, ring: &IoUring, fd: RawFd) {
        let Some(index) = self.files.remove(fd) else {
            return;
        };
        // An index that cannot be cleared is not used again.
        if ring.submitter().register_files_update(index, &[-1]).is_ok() {
            self.free.push(index);
        }
    }

    /// Releases all files. Closing the ring would release them, too, but only some
    /// time later, and keep a file system busy until then.
    pub(super) fn detach_all(&self, ring: &IoUring) {
        if self.asked {
            // Fails without a table.
            ring.submitter().unregister_files().ok();
        }
    }
}

fn register_buffers(ring: &IoUring, buffers: &Buffers) -> Result<(), Errno> {
    let slots: Vec<libc::iovec> = (0..buffers.depth())
        .map(|slot| libc::iovec {
            iov_base: buffers.pointer(slot, buffers.block()).cast(),
            iov_len: buffers.block(),
        })
        .collect();
    // SAFETY: the buffers are only unmapped when no request is in flight, and the
    // kernel itself keeps registered pages.
    unsafe { ring.submitter().register_buffers(&slots) }.map_err(or_eio)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::engine::contract::EngineConfig;

    #[test]
    fn places_in_the_table_are_given_out_again() {
        let buffers = Buffers::new(&mut EngineConfig::new(1, 4096), 1).expect("a page is there");
        // If rings are forbidden there is nothing to test.
        let Ok(ring) = IoUring::new(1) else {
            return;
        };
        let options = EngineOptions::default();
        let result = Registered::new(&ring, &buffers, &options);
        let mut registered = result.expect("nothing is asked for");
        let files: Vec<File> = (0..FILES + 6)
            .map(|_| tempfile::tempfile().expect("a temporary file"))
            .collect();
        let numbers: Vec<RawFd> = files.iter().map(AsRawFd::as_raw_fd).collect();
        let places = |registered: &Registered| {
            let indexes = numbers.iter().filter_map(|fd| registered.file(*fd));
            let mut indexes: Vec<u32> = indexes.collect();
            indexes.sort_unstable();
            indexes
        };
        let all: Vec<u32> = (0..FILES as u32).collect();

        numbers.iter().for_each(|fd| registered.attach(&ring, *fd));
        assert_eq!(places(&registered), all);
        assert_eq!(registered.file(numbers[FILES]), None, "no place was left");
        // Attaching again uses no second index.
        registered.attach(&ring, numbers[0]);
        assert_eq!(places(&registered), all);
        for fd in &numbers[..10] {
            registered.detach(&ring, *fd);
            registered.detach(&ring, *fd);
        }
        assert_eq!(places(&registered).len(), FILES - 10);
        registered.attach(&ring, -1);
        let last = &numbers[FILES..];
        last.iter().for_each(|fd| registered.attach(&ring, *fd));
        assert_eq!(places(&registered).len(), FILES - 4);
        assert!(last.iter().all(|fd| registered.file(*fd).is_some()));
    }
}
