//! What the kernel keeps with a ring, so that it need not look it up at each
//! request: the buffers and some files. Whatever is refused is done without.

use std::os::fd::RawFd;

use io_uring::IoUring;
use nix::libc;

use super::super::buffers::Buffers;
use super::super::fd_table::FdTable;
use crate::limits::locks_memory_freely;

/// Length of a ring's table of files. Files beyond it are used without.
const FILES: usize = 64;

/// What is registered with a ring.
pub(super) struct Registered {
    /// Whether the buffers are, each under its slot's number.
    pub(super) buffers: bool,
    /// Places of files in the kernel's table.
    files: FdTable<u32>,
    /// Places that are free; empty where there is no table.
    free: Vec<u32>,
    /// Whether the kernel was asked for a table of files.
    asked: bool,
}

impl Registered {
    /// Registers the buffers where that can be: see [`super`] on locked
    /// memory. A refusal (such as of blocks above 1 GiB) leaves the ring as it
    /// was. The buffers must not be unmapped while a request is under way.
    pub(super) fn new(ring: &IoUring, buffers: &Buffers) -> Registered {
        Registered {
            buffers: locks_memory_freely() && register_buffers(ring, buffers),
            files: FdTable::new(),
            free: Vec::new(),
            asked: false,
        }
    }

    /// The place of a file in the kernel's table.
    #[inline]
    pub(super) fn file(&self, fd: RawFd) -> Option<u32> {
        self.files.get(fd).copied()
    }

    /// Puts a file into the table, as long as there are free places.
    pub(super) fn attach(&mut self, ring: &IoUring, fd: RawFd) {
        if !self.asked {
            self.asked = true;
            // -1 marks a free place.
            if ring.submitter().register_files(&[-1; FILES]).is_ok() {
                self.free = (0..FILES as u32).rev().collect();
            }
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

    /// Takes a file out of the table.
    pub(super) fn detach(&mut self, ring: &IoUring, fd: RawFd) {
        let Some(place) = self.files.remove(fd) else {
            return;
        };
        // A place that cannot be cleared is not used again.
        if ring.submitter().register_files_update(place, &[-1]).is_ok() {
            self.free.push(place);
        }
    }

    /// Lets go of all files. With the ring they would go too, but only some
    /// time after it is closed, and keep a file system busy until then.
    pub(super) fn detach_all(&self, ring: &IoUring) {
        if self.asked {
            // Fails where there is no table.
            ring.submitter().unregister_files().ok();
        }
    }
}

fn register_buffers(ring: &IoUring, buffers: &Buffers) -> bool {
    let slots: Vec<libc::iovec> = (0..buffers.depth())
        .map(|slot| libc::iovec {
            iov_base: buffers.pointer(slot, buffers.block()).cast(),
            iov_len: buffers.block(),
        })
        .collect();
    // SAFETY: the buffers are unmapped only when no request is under way, and
    // the kernel holds on to registered pages by itself.
    unsafe { ring.submitter().register_buffers(&slots) }.is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::engine::contract::EngineConfig;

    #[test]
    fn places_in_the_table_are_given_out_again() {
        let config = EngineConfig {
            depth: 1,
            block: 4096,
        };
        let buffers = Buffers::new(config, 1).expect("a page is there");
        // Where a ring is forbidden there is nothing to see.
        let Ok(ring) = IoUring::new(1) else {
            return;
        };
        let mut registered = Registered::new(&ring, &buffers);
        let files: Vec<File> = (0..FILES + 6)
            .map(|_| tempfile::tempfile().expect("a temporary file"))
            .collect();
        let numbers: Vec<RawFd> = files.iter().map(AsRawFd::as_raw_fd).collect();
        let places = |registered: &Registered| {
            let found = numbers.iter().filter_map(|fd| registered.file(*fd));
            let mut found: Vec<u32> = found.collect();
            found.sort_unstable();
            found
        };
        let all: Vec<u32> = (0..FILES as u32).collect();

        numbers.iter().for_each(|fd| registered.attach(&ring, *fd));
        assert_eq!(places(&registered), all);
        assert_eq!(registered.file(numbers[FILES]), None, "no place was left");
        // Attaching again takes no second place.
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
