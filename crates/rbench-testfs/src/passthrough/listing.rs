//! An open directory of the folder: its entries, in the order and with the offsets of
//! its file system.

use std::fs::File;
use std::os::fd::AsFd as _;

use nix::errno::Errno;
use nix::unistd::{Whence, lseek64};
use rbench_core::dirents::{Record, Records};

use super::sys::read_entries;
use crate::store::Answer;

/// Bytes of raw entries in one read.
const BUFFER: usize = 32 << 10;

/// A directory that is being listed.
#[derive(Debug)]
pub(crate) struct Listing {
    directory: File,
    /// Raw entries read ahead; those before `start` were already passed on.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The offset of the entry at `start`.
    next: u64,
}

impl Listing {
    pub(crate) fn new(directory: File) -> Listing {
        Listing {
            directory,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            next: 0,
        }
    }

    pub(crate) fn directory(&self) -> &File {
        &self.directory
    }

    /// Passes the entries from `offset` on to `add` until it returns true. The next
    /// call passes that entry again.
    pub(crate) fn read(
        &mut self,
        offset: u64,
        mut add: impl FnMut(&Record<'_>) -> Answer<bool>,
    ) -> Answer<()> {
        // A return to the beginning, too, reads the directory again.
        if offset != self.next {
            lseek64(&self.directory, offset.cast_signed(), Whence::SeekSet)?;
            (self.start, self.end, self.next) = (0, 0, offset);
        }
        loop {
            if self.start == self.end {
                self.start = 0;
                self.end = read_entries(self.directory.as_fd(), &mut self.buffer)?;
                if self.end == 0 {
                    return Ok(());
                }
            }
            let mut records = Records(&self.buffer[self.start..self.end]);
            let record = records.next().ok_or(Errno::EIO)??;
            if add(&record)? {
                return Ok(());
            }
            self.start = self.end - records.0.len();
            [_, self.next] = record.numbers();
        }
    }
}
