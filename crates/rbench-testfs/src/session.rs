//! A mounted file system with the threads that serve it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fuser::{Session, SessionACL};

use crate::config::{Backing, Config};
use crate::delay::DelayQueue;
use crate::fault::FaultTable;
use crate::memory::Memory;
use crate::mount::{
    Connection, KernelMount, MountError, Options, Unmounted, can_open_device, resolve,
};
use crate::passthrough::Passthrough;
use crate::service::Service;
use crate::stats::Stats;
use crate::store::Store;

/// For how long unmounting waits for the service threads to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Threads that send late replies.
const DELAY_THREADS: usize = 2;

/// A mounted file system. Dropping it unmounts.
///
/// A process that serves a mount and also uses it must not be killed while
/// it waits for itself: the kernel then waits for a reply that cannot come.
/// Programs that measure mount in a process of its own ([`crate::serve()`]).
#[derive(Debug)]
pub struct Mounted {
    mount: KernelMount,
    session: Option<JoinHandle<io::Result<()>>>,
    /// Reads as at its end as soon as the service threads have ended.
    ended: io::PipeReader,
    stats: Arc<Stats>,
}

/// Mounts a file system at `mountpoint` and serves it with threads of this
/// process. On return the kernel and the file system have shaken hands.
///
/// # Errors
/// When the folder is not fit for it or FUSE is not available to the user.
pub fn mount(config: Config, mountpoint: &Path) -> Result<Mounted, MountError> {
    let point = resolve(mountpoint)?;
    match &config.backing {
        Backing::Memory { cap } => {
            let memory = Memory::new(*cap);
            start(memory, &config, &point)
        }
        Backing::Passthrough(folder) => {
            let failed = |source| MountError::Folder {
                path: folder.clone(),
                source,
            };
            let full = folder.canonicalize().map_err(failed)?;
            if point != full && point.starts_with(&full) {
                let folder = folder.clone();
                return Err(MountError::Inside { point, folder });
            }
            let passthrough = Passthrough::new(&full).map_err(failed)?;
            start(passthrough, &config, &point)
        }
    }
}

fn start<S: Store>(store: S, config: &Config, point: &Path) -> Result<Mounted, MountError> {
    let failed = |source| MountError::Service {
        path: point.to_owned(),
        source,
    };
    let threads = config.threads.max(1);
    let faults = FaultTable::new(&config.faults, config.seed);
    let stats = Arc::new(Stats::new(threads + DELAY_THREADS, faults));
    let delays = DelayQueue::new(DELAY_THREADS).map_err(failed)?;
    let service = Service::new(store, config, Arc::clone(&stats), delays);

    let options = Options {
        source: &config.source,
        allow_other: config.allow_other,
    };
    let (mount, device) = KernelMount::new(point, options)?;
    let connection = mount.connection();
    match serve_in_background(service, device, config, threads, connection) {
        Ok((session, ended)) => Ok(Mounted {
            mount,
            session: Some(session),
            ended,
            stats,
        }),
        Err(error) => {
            // The reason is told; a mount that is left behind would be worse
            // than an error of unmounting that is not.
            let _ = mount.unmount();
            Err(failed(error))
        }
    }
}

/// Shakes hands with the kernel and starts the threads. The reader ends with
/// them.
fn serve_in_background<S: Store>(
    service: Service<S>,
    device: OwnedFd,
    config: &Config,
    threads: usize,
    connection: Connection,
) -> io::Result<(JoinHandle<io::Result<()>>, io::PipeReader)> {
    let (ended, alive) = io::pipe()?;
    let acl = match config.allow_other {
        true => SessionACL::All,
        false => SessionACL::Owner,
    };
    let mut how = fuser::Config::default();
    how.acl = acl;
    how.n_threads = Some(threads);
    how.clone_fd = can_open_device();
    let session = Session::from_fd(service, device, acl, how)?;
    let thread = std::thread::Builder::new()
        .name("testfs-session".to_owned())
        .spawn(move || {
            let outcome = session.run();
            connection.close();
            drop(alive);
            outcome
        })?;
    Ok((thread, ended))
}

impl Mounted {
    /// The folder at which it is mounted, without links and dots.
    pub fn mountpoint(&self) -> &Path {
        self.mount.point()
    }

    /// The statistics, which outlive the mount.
    pub fn stats(&self) -> &Arc<Stats> {
        &self.stats
    }

    /// Unmounts. When files of it are in use it is detached instead: no path
    /// leads to it any more, and threads of this process serve its users
    /// until the last one is gone. Takes a few seconds at most.
    ///
    /// # Errors
    /// When the mount cannot be removed or a service thread failed.
    pub fn unmount(mut self) -> Result<(), MountError> {
        self.end()
    }

    /// A descriptor that becomes readable when the service has ended, as it
    /// does when someone else unmounts.
    pub(crate) fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    fn end(&mut self) -> Result<(), MountError> {
        if self.session.is_none() {
            return Ok(());
        }
        let unmounted = self.mount.unmount()?;
        let Some(session) = self.session.take() else {
            return Ok(());
        };
        if unmounted == Unmounted::Detached {
            return Ok(());
        }
        let failed = |source| MountError::Service {
            path: PathBuf::from(self.mount.point()),
            source,
        };
        let deadline = Instant::now() + PATIENCE;
        while !session.is_finished() {
            if Instant::now() > deadline {
                // Freeing the memory of a large file system takes its time;
                // the mount is gone.
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        match session.join() {
            Ok(outcome) => outcome.map_err(failed),
            Err(_) => Err(failed(io::Error::other("a thread failed"))),
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Whoever wants to know of errors calls `unmount`.
        let _ = self.end();
    }
}
