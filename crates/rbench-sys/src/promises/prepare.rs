//! Preparations and checks.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::sys::prctl;
use nix::sys::uio::{pread, pwrite};
use nix::unistd::{Gid, Uid, setfsgid, setfsuid};

use super::did::{Breach, Did, Kept};
use super::ground::{Ground, NEW};

impl Ground<'_> {
    /// Creates a file, open for reading and writing.
    pub(super) fn file(&self, name: impl AsRef<Path>) -> Result<OwnedFd, Breach> {
        self.open(name, NEW).ready()
    }

    /// Opens a file for reading and writing.
    pub(super) fn reopened(&self, name: impl AsRef<Path>) -> Result<OwnedFd, Breach> {
        self.open(name, OFlag::O_RDWR).ready()
    }

    /// Creates a file with this content, and closes it.
    pub(super) fn put(&self, name: impl AsRef<Path>, content: &[u8]) -> Result<(), Breach> {
        let fd = self.file(&name)?;
        self.write(&name, &fd, content, 0).ready()
    }

    /// Creates a file with this content, and opens it for reading and writing.
    pub(super) fn filled(&self, name: &str, content: &[u8]) -> Result<OwnedFd, Breach> {
        self.put(name, content)?;
        self.reopened(name)
    }

    /// Creates a directory that its owner, group and others may use.
    pub(super) fn dir(&self, name: impl AsRef<Path>) -> Result<(), Breach> {
        self.mkdir(name, 0o755).ready()
    }

    /// Writes all bytes.
    pub(super) fn write(
        &self,
        name: impl AsRef<Path>,
        fd: impl AsFd,
        bytes: &[u8],
        offset: i64,
    ) -> Did<()> {
        let mut done = 0;
        let mut result = Ok(());
        while done < bytes.len() {
            match pwrite(&fd, &bytes[done..], offset + done as i64) {
                Ok(0) => result = Err(Errno::EIO),
                Ok(n) => {
                    done += n;
                    continue;
                }
                Err(errno) => result = Err(errno),
            }
            break;
        }
        self.did("pwrite64", name, result)
    }

    /// Reads up to `length` bytes from `offset` on.
    pub(super) fn read(
        &self,
        name: impl AsRef<Path>,
        fd: impl AsFd,
        length: usize,
        offset: i64,
    ) -> Did<Vec<u8>> {
        let mut buffer = vec![0; length];
        let mut done = 0;
        let mut result = Ok(());
        while done < length {
            match pread(&fd, &mut buffer[done..], offset + done as i64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(errno) => {
                    result = Err(errno);
                    break;
                }
            }
        }
        buffer.truncate(done);
        self.did("pread64", name, result.map(|()| buffer))
    }

    /// Reads up to `length` bytes from the file's position on.
    pub(super) fn next(&self, name: &str, fd: impl AsFd, length: usize) -> Did<Vec<u8>> {
        let mut buffer = vec![0; length];
        let read = nix::unistd::read(fd, &mut buffer);
        self.did("read", name, read)
            .map(|length| buffer[..length].to_vec())
    }

    /// Expects a file to have exactly this content, by the promise.
    pub(super) fn holds(&self, name: impl AsRef<Path>, content: &[u8]) -> Kept {
        let fd = self.open(&name, OFlag::O_RDONLY).ok()?;
        self.holds_open(name, fd, content)
    }

    /// Expects an open file to have exactly this content, by the promise.
    pub(super) fn holds_open(&self, name: impl AsRef<Path>, fd: impl AsFd, content: &[u8]) -> Kept {
        self.read(name, fd, content.len() + 1, 0).bytes(content)
    }

    /// Expects a name not to exist, by the promise.
    pub(super) fn gone(&self, name: impl AsRef<Path>) -> Kept {
        self.lstat(name).fails(Errno::ENOENT)
    }

    /// Expects a name to exist, by the promise.
    pub(super) fn there(&self, name: impl AsRef<Path>) -> Kept {
        self.lstat(name).ok().map(drop)
    }

    /// The mode bits that new files of this process lack.
    pub(super) fn umask(&self) -> Result<u32, Breach> {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let mask = crate::proc::field(&status, "Umask:");
        let mask = mask.and_then(|text| u32::from_str_radix(text, 8).ok());
        mask.ok_or_else(|| self.undecided("umask", "the umask is unknown"))
    }

    /// Runs calls as a user who is not root, in this group. Afterwards the thread is root again.
    pub(super) fn as_user(&self, user: u32, group: u32, calls: impl FnOnce() -> Kept) -> Kept {
        /// Number of threads that are another user, and whether the process could be traced and
        /// dumped before: the kernel disables that when a thread changes its user.
        static OTHERS: Mutex<(u32, bool)> = Mutex::new((0, false));
        struct Back;
        impl Drop for Back {
            fn drop(&mut self) {
                setfsuid(Uid::from_raw(0));
                setfsgid(Gid::from_raw(0));
                let mut others = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
                others.0 -= 1;
                if *others == (0, true) {
                    // A failure only affects tracing.
                    let _ = prctl::set_dumpable(true);
                }
            }
        }
        let back = {
            let mut others = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
            if others.0 == 0 {
                // SAFETY: the call takes no pointer. A process cannot set the value 2: it is then
                // left as it becomes.
                others.1 = unsafe { libc::prctl(libc::PR_GET_DUMPABLE) } == 1;
            }
            others.0 += 1;
            Back
        };
        setfsgid(Gid::from_raw(group));
        setfsuid(Uid::from_raw(user));
        // An invalid value changes nothing, and returns the current one.
        let is_user = setfsuid(Uid::from_raw(u32::MAX)).as_raw() == user;
        if !is_user || setfsgid(Gid::from_raw(u32::MAX)).as_raw() != group {
            return Err(self.undecided("setfsuid", "the thread cannot switch to another user"));
        }
        if self.stat(".").result.is_err() {
            return Err(self.undecided("stat", "another user cannot reach this directory"));
        }
        let kept = calls();
        drop(back);
        kept
    }

    /// Waits until the file system's clock has advanced, so that later changes get a different
    /// time than earlier ones.
    pub(super) fn tick(&self) -> Result<(), Breach> {
        const LONGEST: Duration = Duration::from_millis(2500);
        let start = Instant::now();
        let stamp = |number: u32| -> Result<_, Breach> {
            let name = format!(".tick-{number}");
            drop(self.file(&name)?);
            let attributes = self.stat(&name).ready()?;
            self.unlink(&name).ready()?;
            Ok((attributes.st_ctime, attributes.st_ctime_nsec))
        };
        let first = stamp(0)?;
        for number in 1.. {
            // The last look comes after the time is over, however long this process had to wait.
            let last = start.elapsed() > LONGEST;
            if stamp(number)? != first {
                break;
            }
            if last {
                return Err(self.undecided("stat", "the times of new files do not advance"));
            }
            std::thread::sleep(Duration::from_millis(3));
        }
        Ok(())
    }
}

/// Bytes that differ everywhere and are never zero.
pub(super) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + i / 251) as u8 | 1).collect()
}
