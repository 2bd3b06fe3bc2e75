//! What the owner of a mount and its service share: the statistics, the
//! replies that are held, older data, and the means to end the file system
//! at once.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MntFlags, umount2};
use nix::sys::stat::Mode;
use nix::unistd::geteuid;

use crate::damage::History;
use crate::hang::Hangs;
use crate::mount::is_topmost;
use crate::stats::Stats;

/// The means of the owner and of the service.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) stats: Arc<Stats>,
    pub(crate) hangs: Hangs,
    /// What stale reads return.
    pub(crate) history: History,
    killer: OnceLock<Killer>,
    died: AtomicBool,
}

impl Control {
    pub(crate) fn new(stats: Arc<Stats>) -> Control {
        Control {
            stats,
            hangs: Hangs::default(),
            history: History::default(),
            killer: OnceLock::new(),
            died: AtomicBool::new(false),
        }
    }

    /// Says how the mount can be ended; before that, it cannot.
    pub(crate) fn set_killer(&self, killer: Killer) {
        // There is one mount, so this comes once.
        let _ = self.killer.set(killer);
    }

    /// Ends the file system at once, as if its process had been killed.
    ///
    /// # Errors
    /// When the kernel does not let it be.
    pub(crate) fn die(&self) -> io::Result<()> {
        let killer = self.killer.get();
        let killer = killer.ok_or_else(|| io::Error::from(Errno::ENOTCONN))?;
        // Said first: what waits for the end asks for the reason.
        self.died.store(true, Ordering::Release);
        let killed = killer.kill();
        if killed.is_err() {
            self.died.store(false, Ordering::Release);
        }
        killed
    }

    /// Whether the file system ended by [`Control::die`].
    pub(crate) fn has_died(&self) -> bool {
        self.died.load(Ordering::Acquire)
    }
}

/// Cuts the kernel's connection to a file system, so that every call on its
/// mount fails with ENOTCONN while the mount stays.
#[derive(Debug)]
pub(crate) struct Killer {
    point: PathBuf,
    /// Major and minor number of the file system.
    device: (u64, u64),
}

impl Killer {
    pub(crate) fn new(point: &Path, device: (u64, u64)) -> Killer {
        Killer {
            point: point.to_owned(),
            device,
        }
    }

    /// The file that cuts the connection when it is written to; only where
    /// the kernel's file system of FUSE connections is mounted.
    fn switch(&self) -> io::Result<File> {
        let path = Path::new("/sys/fs/fuse/connections").join(self.device.1.to_string());
        File::options().write(true).open(path.join("abort"))
    }

    /// Whether this process can do it.
    pub(crate) fn is_able(&self) -> bool {
        geteuid().is_root() || self.switch().is_ok()
    }

    fn kill(&self) -> io::Result<()> {
        if let Ok(mut switch) = self.switch() {
            return switch.write_all(b"1");
        }
        // By its path the mount can only be reached when nothing covers it.
        if !is_topmost(&self.point, self.device)? {
            return Err(Errno::EBUSY.into());
        }
        // A forced unmount cuts the connection first and then fails, because
        // this descriptor uses the mount.
        let user = open(&self.point, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?;
        let flags = MntFlags::MNT_FORCE | MntFlags::UMOUNT_NOFOLLOW;
        let outcome = umount2(&self.point, flags);
        drop(user);
        match outcome {
            Ok(()) | Err(Errno::EBUSY) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}
