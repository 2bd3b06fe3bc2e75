//! Entries of a ring's queue, with the options of each request.

use io_uring::{opcode, squeue, types};
use nix::libc;
use rbench_core::{EngineOptions, IoPriority};

use super::super::buffers::Buffers;
use super::super::contract::{Request, Transfer};
use super::Registered;

/// Builder of the entries.
pub(super) struct Entries {
    /// `RWF_…` flags of reads and of writes.
    read_flags: i32,
    write_flags: i32,
    /// The vector of each slot, which is not moved; empty without vectors.
    vectors: Vec<libc::iovec>,
    /// One in this number of reads and writes goes straight to a kernel thread.
    async_every: u64,
    /// Reads and writes since the last one that did.
    since_async: u64,
}

// SAFETY: the owner of this value writes the vectors before the kernel reads them;
// they point to memory of the same engine.
unsafe impl Send for Entries {}

impl Entries {
    pub(super) fn new(options: &EngineOptions, depth: usize) -> Entries {
        let flag = |on: bool, flag: i32| if on { flag } else { 0 };
        let both =
            flag(options.uncached, libc::RWF_DONTCACHE) | flag(options.nowait, libc::RWF_NOWAIT);
        let empty = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        let vectors = match options.nonvectored {
            true => Vec::new(),
            false => vec![empty; depth],
        };
        Entries {
            read_flags: both,
            write_flags: both | flag(options.atomic, libc::RWF_ATOMIC),
            vectors,
            async_every: options.force_async,
            since_async: 0,
        }
    }

    /// The entry for the rest of a request, which is not a trim.
    #[inline]
    pub(super) fn entry(
        &mut self,
        (buffers, registered): (&Buffers, &Registered),
        slot: usize,
        request: &Request,
        moved: usize,
    ) -> squeue::Entry {
        // u64::MAX would mean the file's own position; one less is refused with
        // EINVAL, as pread does.
        let offset = request
            .offset
            .saturating_add(moved as u64)
            .min(u64::MAX - 1);
        // The kernel moves less than 2 GiB at a time: the rest follows.
        let length = u32::try_from(request.length - moved).unwrap_or(u32::MAX);
        let start = buffers
            .pointer(slot, request.at + request.length)
            .wrapping_byte_add(request.at + moved);
        let number = slot as u16;
        // 0: that of the thread.
        let IoPriority(priority) = request.priority;
        let vector = match self.vectors.get_mut(slot) {
            Some(vector) if !registered.buffers => {
                vector.iov_base = start.cast();
                vector.iov_len = request.length - moved;
                Some(std::ptr::from_ref(&*vector))
            }
            _ => None,
        };
        // The two kinds of files have no common type that could be named.
        macro_rules! entry_for {
            ($file:expr) => {
                match (request.transfer, vector) {
                    (Transfer::Read, _) if registered.buffers => {
                        opcode::ReadFixed::new($file, start, length, number)
                            .offset(offset)
                            .rw_flags(self.read_flags)
                            .ioprio(priority)
                            .build()
                    }
                    (Transfer::Read, None) => opcode::Read::new($file, start, length)
                        .offset(offset)
                        .rw_flags(self.read_flags)
                        .ioprio(priority)
                        .build(),
                    (Transfer::Read, Some(vector)) => opcode::Readv::new($file, vector, 1)
                        .offset(offset)
                        .rw_flags(self.read_flags)
                        .ioprio(priority)
                        .build(),
                    (Transfer::Write, _) if registered.buffers => {
                        opcode::WriteFixed::new($file, start, length, number)
                            .offset(offset)
                            .rw_flags(self.write_flags)
                            .ioprio(priority)
                            .build()
                    }
                    (Transfer::Write, None) => opcode::Write::new($file, start, length)
                        .offset(offset)
                        .rw_flags(self.write_flags)
                        .ioprio(priority)
                        .build(),
                    (Transfer::Write, Some(vector)) => opcode::Writev::new($file, vector, 1)
                        .offset(offset)
                        .rw_flags(self.write_flags)
                        .ioprio(priority)
                        .build(),
                    (Transfer::Fsync | Transfer::Trim, _) => opcode::Fsync::new($file).build(),
                    (Transfer::DataSync, _) => opcode::Fsync::new($file)
                        .flags(types::FsyncFlags::DATASYNC)
                        .build(),
                }
            };
        }
        let entry = match registered.file(request.fd) {
            Some(place) => entry_for!(types::Fixed(place)),
            None => entry_for!(types::Fd(request.fd)),
        };
        let entry = entry.user_data(slot as u64);
        match self.async_every > 0 && !request.transfer.is_sync() && self.is_async_due() {
            true => entry.flags(squeue::Flags::ASYNC),
            false => entry,
        }
    }

    /// True if this read or write goes straight to a kernel thread.
    fn is_async_due(&mut self) -> bool {
        self.since_async += 1;
        let due = self.since_async >= self.async_every;
        if due {
            self.since_async = 0;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use io_uring::IoUring;

    use super::*;
    use crate::engine::contract::EngineConfig;

    /// The entries of reads, a sync and a write, by the kernel's numbers: `22` reads
    /// without a vector, `+A` goes straight to a kernel thread.
    fn entries(options: EngineOptions) -> Option<String> {
        let buffers = Buffers::new(&mut EngineConfig::new(1, 4096), 1).expect("a page is there");
        // If rings are forbidden there is nothing to test.
        let ring = IoUring::new(1).ok()?;
        let registered = Registered::new(&ring, &buffers, &options).expect("it is permitted");
        let mut entries = Entries::new(&options, 1);
        let mut words = Vec::new();
        for transfer in [
            Transfer::Read,
            Transfer::Read,
            Transfer::Fsync,
            Transfer::Write,
        ] {
            let request = Request {
                transfer,
                fd: 0,
                offset: 0,
                length: 4096,
                at: 0,
                priority: IoPriority::default(),
            };
            let entry = entries.entry((&buffers, &registered), 0, &request, 0);
            let text = format!("{entry:?}");
            let number = |name: &str| -> u32 {
                let (_, rest) = text.split_once(name).expect("it is told");
                let digits = rest.trim_start_matches([':', ' ']);
                let end = digits
                    .find(|c: char| !c.is_ascii_digit())
                    .expect("more follows");
                digits[..end].parse().expect("a number")
            };
            let forced = match number("flags") & u32::from(squeue::Flags::ASYNC.bits()) {
                0 => "",
                _ => "+A",
            };
            words.push(format!("{}{forced}", number("op_code")));
        }
        Some(words.join(" "))
    }

    /// The priority in an entry.
    fn priority_of(entry: &squeue::Entry) -> u16 {
        const ENTRY: usize = 64;
        assert_eq!(size_of::<squeue::Entry>(), ENTRY);
        // SAFETY: it is the kernel's structure of this length, and holds only numbers.
        let bytes: [u8; ENTRY] = unsafe { std::mem::transmute_copy(entry) };
        u16::from_ne_bytes([bytes[2], bytes[3]])
    }

    #[test]
    fn an_entry_has_the_priority_of_its_request() {
        let buffers = Buffers::new(&mut EngineConfig::new(1, 4096), 1).expect("a page is there");
        let Ok(ring) = IoUring::new(1) else {
            return;
        };
        for (nonvectored, fixed) in [(true, false), (false, false), (true, true)] {
            let options = EngineOptions {
                nonvectored,
                fixedbufs: Some(fixed),
                ..EngineOptions::default()
            };
            let registered = Registered::new(&ring, &buffers, &options).expect("it is permitted");
            let mut entries = Entries::new(&options, 1);
            for transfer in [Transfer::Read, Transfer::Write] {
                for priority in [IoPriority::new(3, 7, 9), IoPriority::default()] {
                    let request = Request {
                        transfer,
                        fd: 0,
                        offset: 0,
                        length: 4096,
                        at: 0,
                        priority,
                    };
                    let entry = entries.entry((&buffers, &registered), 0, &request, 0);
                    let label = format!("{transfer:?} {nonvectored} {fixed}");
                    assert_eq!(priority_of(&entry), priority.0, "{label}");
                }
            }
        }
    }

    #[test]
    fn options_choose_the_kernels_operations() {
        let check = |change: fn(&mut EngineOptions), expect: &str| {
            let mut options = EngineOptions {
                fixedbufs: Some(false),
                ..EngineOptions::default()
            };
            change(&mut options);
            if let Some(entries_made) = entries(options) {
                assert_eq!(entries_made, expect, "{options:?}");
            }
        };
        check(|_| (), "22 22 3 23");
        check(|o| o.nonvectored = false, "1 1 3 2");
        check(|o| o.fixedbufs = Some(true), "4 4 3 5");
        check(
            |o| (o.nonvectored, o.fixedbufs) = (false, Some(true)),
            "4 4 3 5",
        );
        check(|o| o.force_async = 1, "22+A 22+A 3 23+A");
        check(|o| o.force_async = 2, "22 22+A 3 23");
        check(|o| o.force_async = 3, "22 22 3 23+A");
    }
}
