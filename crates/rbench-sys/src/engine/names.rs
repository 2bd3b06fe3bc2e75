//! The engines of names ([`NAME_ENGINES`]): a request is one call on the name that stands at the
//! position [`Request::fd`](super::Request::fd) of [`Engine::name_files`](super::Engine::name_files);
//! what it says of data is counted and not moved, and there are no buffers.
//!
//! No call follows a symbolic link that would be made or removed.

use std::ffi::CString;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::errno::Errno;
use rbench_core::operations::{NAME_ENGINES, NameEngine};
use rbench_core::{Call, OpKind};

use super::contract::{Engine, EngineConfig, EngineInfo};
use super::synchronous::{self, Calls, Rest};
use crate::fs::{Fs as _, Operands};
use crate::posix::PosixFs;

/// The line of the engine with this number in [`super::ENGINES`].
pub const fn info<const N: usize>() -> EngineInfo {
    EngineInfo {
        name: NAME_ENGINES[N].name,
        moves_data: false,
        of_names: true,
        ..EngineInfo::of(|config| make(config, &NAME_ENGINES[N]))
    }
}

struct Names {
    /// Paths are relative to the working directory.
    fs: PosixFs,
    call: Call,
    paths: Vec<CString>,
    opened: Option<OwnedFd>,
}

fn make(config: EngineConfig, engine: &NameEngine) -> Result<Box<dyn Engine>, Errno> {
    let stat = config
        .options
        .stat_type
        .filter(|_| engine.op == OpKind::Stat);
    let names = Names {
        fs: PosixFs::here(),
        call: stat.unwrap_or(engine.call),
        paths: Vec::new(),
        opened: None,
    };
    synchronous::make(config, names)
}

impl Calls for Names {
    const OF_NAMES: bool = true;

    #[inline]
    fn read(&mut self, rest: &Rest) -> Result<usize, Errno> {
        let on = Operands::path(&self.paths[rest.fd as usize]);
        let answer = self.fs.call(&self.call, on)?;
        if let Call::Open(_) = self.call {
            // SAFETY: the call has just opened it, and nobody else has it.
            self.opened = Some(unsafe { OwnedFd::from_raw_fd(answer as RawFd) });
        }
        Ok(rest.length)
    }

    #[inline]
    fn write(&mut self, rest: &Rest) -> Result<usize, Errno> {
        self.read(rest)
    }

    fn trim(&mut self, rest: &Rest) -> Result<usize, Errno> {
        self.read(rest)
    }

    fn sync(&mut self, _fd: RawFd, _data_only: bool) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn name_files(&mut self, paths: &mut dyn Iterator<Item = &Path>) -> Result<(), Errno> {
        let path = |path: &Path| CString::new(path.as_os_str().as_bytes());
        let all: Result<_, _> = paths.map(path).collect();
        self.paths = all.map_err(|_| Errno::EINVAL)?;
        Ok(())
    }

    fn take_opened(&mut self) -> Option<OwnedFd> {
        self.opened.take()
    }
}
