//! The engines of names: `filecreate`, `filestat`, `filedelete`, `dircreate`,
//! `dirstat`, `dirdelete`. A request is one operation on the name that stands at
//! the position [`Request::fd`] of [`Engine::name_files`]; what it says of data is
//! counted and not moved, and there are no buffers.
//!
//! No call follows a symbolic link that would be made or removed.

use std::ffi::{CStr, CString};
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::errno::Errno;
use nix::libc;
use rbench_core::StatType;

use super::contract::{
    Completion, Engine, EngineConfig, EngineCounts, EngineInfo, Request, RetriesByTransfer,
};
use crate::calls;

/// The line of `filecreate` in [`super::ENGINES`].
pub const FILECREATE: EngineInfo = info("filecreate", |config| make(config, Call::CreateFile));
/// That of `filestat`.
pub const FILESTAT: EngineInfo = info("filestat", make_stat);
/// That of `filedelete`.
pub const FILEDELETE: EngineInfo = info("filedelete", |config| make(config, Call::DeleteFile));
/// That of `dircreate`.
pub const DIRCREATE: EngineInfo = info("dircreate", |config| make(config, Call::CreateDirectory));
/// That of `dirstat`.
pub const DIRSTAT: EngineInfo = info("dirstat", make_stat);
/// That of `dirdelete`.
pub const DIRDELETE: EngineInfo = info("dirdelete", |config| make(config, Call::DeleteDirectory));

const fn info(name: &'static str, make: super::contract::Make) -> EngineInfo {
    EngineInfo {
        name,
        moves_data: false,
        of_names: true,
        ..EngineInfo::of(make)
    }
}

/// Modes of what is made, less the umask.
const FILE_MODE: libc::mode_t = 0o600;
const DIRECTORY_MODE: libc::mode_t = 0o700;

/// What a request does.
#[derive(Debug, Clone, Copy)]
enum Call {
    /// open(2) with O_CREAT: an existing file is opened.
    CreateFile,
    /// stat(2)
    Stat,
    /// lstat(2)
    Lstat,
    /// statx(2)
    Statx,
    /// unlink(2)
    DeleteFile,
    /// mkdir(2)
    CreateDirectory,
    /// rmdir(2)
    DeleteDirectory,
}

struct Names {
    call: Call,
    paths: Vec<CString>,
    opened: Option<OwnedFd>,
    /// The last request's end, until it is collected.
    done: Option<Completion>,
    requests: u64,
}

fn make(config: EngineConfig, call: Call) -> Result<Box<dyn Engine>, Errno> {
    if config.depth != 1 || config.block == 0 {
        return Err(Errno::EINVAL);
    }
    Ok(Box::new(Names {
        call,
        paths: Vec::new(),
        opened: None,
        done: None,
        requests: 0,
    }))
}

fn make_stat(config: EngineConfig) -> Result<Box<dyn Engine>, Errno> {
    let call = match config.options.stat_type {
        StatType::Stat => Call::Stat,
        StatType::Lstat => Call::Lstat,
        StatType::Statx => Call::Statx,
    };
    make(config, call)
}

impl Names {
    /// All of `request`.
    #[inline]
    fn complete(&mut self, request: &Request) -> Result<usize, Errno> {
        if request.transfer.is_sync() {
            return Err(Errno::EINVAL);
        }
        let path = &self.paths[request.fd as usize];
        if let Some(opened) = perform(self.call, path)? {
            self.opened = Some(opened);
        }
        Ok(request.length)
    }
}

#[inline]
fn check(returned: libc::c_int) -> Result<Option<OwnedFd>, Errno> {
    Errno::result(returned).map(|_| None)
}

/// The system call; the file that it opened.
#[inline]
fn perform(call: Call, path: &CStr) -> Result<Option<OwnedFd>, Errno> {
    const HERE: libc::c_int = libc::AT_FDCWD;
    match call {
        Call::CreateFile => {
            let flags = libc::O_CREAT | libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW;
            let fd = calls::openat(HERE, path, flags, FILE_MODE)?;
            // SAFETY: the call has just opened it, and nobody else has it.
            Ok(Some(unsafe { OwnedFd::from_raw_fd(fd) }))
        }
        Call::Stat => stat(path, 0),
        Call::Lstat => stat(path, libc::AT_SYMLINK_NOFOLLOW),
        Call::Statx => {
            let mut found = std::mem::MaybeUninit::<libc::statx>::uninit();
            let (mask, to) = (libc::STATX_ALL, found.as_mut_ptr());
            // SAFETY: `path` is a C string, `found` a place for a statx.
            check(unsafe { libc::statx(HERE, path.as_ptr(), 0, mask, to) })
        }
        // SAFETY: `path` is a C string.
        Call::DeleteFile => check(unsafe { libc::unlink(path.as_ptr()) }),
        // SAFETY: `path` is a C string.
        Call::CreateDirectory => check(unsafe { libc::mkdir(path.as_ptr(), DIRECTORY_MODE) }),
        // SAFETY: `path` is a C string.
        Call::DeleteDirectory => check(unsafe { libc::rmdir(path.as_ptr()) }),
    }
}

#[inline]
fn stat(path: &CStr, flags: libc::c_int) -> Result<Option<OwnedFd>, Errno> {
    let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
    let to = found.as_mut_ptr();
    // SAFETY: `path` is a C string, `found` a place for a stat.
    check(unsafe { libc::fstatat(libc::AT_FDCWD, path.as_ptr(), to, flags) })
}

impl Engine for Names {
    fn buffer(&mut self, _slot: usize) -> &mut [u8] {
        &mut []
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

    fn submit(&mut self, slot: usize, request: Request) {
        assert!(self.done.is_none(), "slot {slot} is in use");
        let result = self.complete(&request);
        self.done = Some(Completion { slot, result });
    }

    fn perform(
        &mut self,
        request: Request,
        _room: &mut Vec<Completion>,
    ) -> Result<Result<usize, Errno>, Errno> {
        assert!(self.done.is_none(), "slot 0 is in use");
        self.requests += 1;
        Ok(self.complete(&request))
    }

    fn wait(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        if let Some(completion) = self.done.take() {
            self.requests += 1;
            done.push(completion);
        }
        Ok(())
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        self.wait(done)
    }

    fn counts(&self) -> EngineCounts {
        EngineCounts::one_by_one(self.requests, RetriesByTransfer::default())
    }
}
