//! The engine `splice`: moves data through a pipe, one request at a time. A read is
//! `splice` from the file to the pipe, and `vmsplice` from the pipe to memory. A
//! write is `vmsplice` from memory to the pipe, and `splice` from the pipe to the
//! file. Each is repeated as often as the pipe requires.
//!
//! The kernel refuses files that cannot be spliced (a pipe, a file open for
//! appending, some files of /proc and /dev).

use std::io::{PipeReader, PipeWriter};
use std::os::fd::AsRawFd as _;

use nix::errno::Errno;
use nix::libc;
use rbench_core::errno_of;

use super::contract::EngineInfo;
use super::synchronous::{self, Calls, Rest, bytes};

/// The line in [`super::ENGINES`].
pub const INFO: EngineInfo = EngineInfo {
    name: "splice",
    ..EngineInfo::of(|config| {
        let pipe = Pipe::new()?;
        synchronous::make(config, Splice { pipe })
    })
};

/// Usual capacity of a pipe in bytes: no more is requested at a time.
const PIPE: usize = 64 << 10;

struct Splice {
    pipe: Pipe,
}

struct Pipe {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Pipe {
    fn new() -> Result<Pipe, Errno> {
        let (reader, writer) = std::io::pipe().map_err(|e| errno_of(&e, Errno::EMFILE))?;
        Ok(Pipe { reader, writer })
    }
}

impl Rest {
    /// The rest of it after the first `moved` bytes.
    fn behind(&self, moved: usize) -> Rest {
        Rest {
            fd: self.fd,
            start: self.start.wrapping_byte_add(moved),
            length: self.length - moved,
            offset: self.offset.wrapping_add(moved as libc::off_t),
        }
    }
}

impl Splice {
    /// Moves up to a pipe's capacity from the file to the memory.
    fn read_some(&mut self, rest: &Rest) -> Result<usize, Errno> {
        let length = rest.length.min(PIPE);
        let more = match length < rest.length {
            true => libc::SPLICE_F_MORE,
            false => 0,
        };
        let mut offset: libc::loff_t = rest.offset;
        let to = self.pipe.writer.as_raw_fd();
        // SAFETY: the kernel reads and writes the offset; a pipe has none.
        let filled = bytes(unsafe {
            libc::splice(
                rest.fd,
                &raw mut offset,
                to,
                std::ptr::null_mut(),
                length,
                more,
            )
        })?;
        let mut moved = 0;
        while moved < filled {
            let part = Rest {
                length: filled - moved,
                ..rest.behind(moved)
            };
            let from = self.pipe.reader.as_raw_fd();
            // SAFETY: the one element is memory of `rest`, which is valid, and
            // nothing else uses it.
            match bytes(unsafe { libc::vmsplice(from, &part.vector(), 1, 0) }) {
                Ok(taken) => moved += taken,
                Err(errno) => {
                    self.give_up_pipe()?;
                    return Err(errno);
                }
            }
        }
        Ok(moved)
    }

    /// Moves up to a pipe's capacity from the memory to the file. The pages stay in
    /// the pipe until the file has them.
    fn write_some(&mut self, rest: &Rest) -> Result<usize, Errno> {
        let part = Rest {
            length: rest.length.min(PIPE),
            ..*rest
        };
        let to = self.pipe.writer.as_raw_fd();
        // SAFETY: the one element is memory of `rest`; nothing writes to it while it
        // is in the pipe, which is emptied or replaced below.
        let filled =
            bytes(unsafe { libc::vmsplice(to, &part.vector(), 1, libc::SPLICE_F_NONBLOCK) })?;
        let mut offset: libc::loff_t = rest.offset;
        let from = self.pipe.reader.as_raw_fd();
        let mut moved = 0;
        let ended = loop {
            let left = filled - moved;
            if left == 0 {
                break Ok(moved);
            }
            // SAFETY: as in `read_some`.
            let took = bytes(unsafe {
                let no_offset = std::ptr::null_mut();
                libc::splice(from, no_offset, rest.fd, &raw mut offset, left, 0)
            });
            match took {
                Ok(0) => break Ok(moved),
                Ok(taken) => moved += taken,
                Err(_) if moved > 0 => break Ok(moved),
                Err(errno) => break Err(errno),
            }
        };
        if moved < filled {
            self.give_up_pipe()?;
        }
        ended
    }

    /// Replaces the pipe: data in the old one must not get into the next request.
    #[cold]
    fn give_up_pipe(&mut self) -> Result<(), Errno> {
        self.pipe = Pipe::new()?;
        Ok(())
    }

    /// Calls `some` until everything is moved, nothing more comes, or a call fails.
    /// If data was moved before, the error is left to the next request's call.
    #[inline]
    fn all(
        &mut self,
        rest: &Rest,
        some: fn(&mut Splice, &Rest) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let mut moved = 0;
        while moved < rest.length {
            match some(self, &rest.behind(moved)) {
                Ok(0) => break,
                Ok(more) => moved += more,
                Err(errno) if moved == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(moved)
    }
}

impl Calls for Splice {
    fn read(&mut self, rest: &Rest) -> Result<usize, Errno> {
        self.all(rest, Splice::read_some)
    }

    fn write(&mut self, rest: &Rest) -> Result<usize, Errno> {
        self.all(rest, Splice::write_some)
    }
}
