//! A mounted file system with the threads that serve it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fuser::{Session, SessionACL};

use crate::broken::effects::Broken;
use crate::config::{Backing, Config};
use crate::control::Control;
use crate::cut::{PowerCutError, Survivors, cut};
use crate::delay::DelayQueue;
use crate::fault::Action;
use crate::fault::log::{FaultLog, FaultRecord};
use crate::fault::table::{FaultTable, POWER_CUT, QUOTA};
use crate::memory::Memory;
use crate::mount::{
    Connection, KernelMount, MountError, Unmounted, can_open_device, require_free, resolve,
};
use crate::passthrough::Passthrough;
use crate::service::Service;
use crate::stats::Stats;
use crate::store::Store;

/// Time for which unmounting waits for the service threads to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time for which it waits for the last user, if it has to.
const PATIENCE_FOR_USERS: Duration = Duration::from_secs(60);

/// Threads that send late replies.
const DELAY_THREADS: usize = 2;

/// A mounted file system; dropping it unmounts.
///
/// A process that serves a mount and also uses it must not be killed while it waits
/// for itself. The kernel would wait for a reply that cannot come. So programs that
/// measure mount in a separate process ([`crate::serve()`]).
#[derive(Debug)]
pub struct Mounted {
    mount: KernelMount,
    session: Option<JoinHandle<io::Result<()>>>,
    /// At its end as soon as the service threads have ended.
    ended: io::PipeReader,
    control: Arc<Control>,
    /// The back end, if power cuts are simulated.
    memory: Option<Arc<Memory>>,
    /// True if unmounting waits until nobody uses it.
    waits_for_users: bool,
}

/// Mounts a file system at `mountpoint` and serves it with threads of this process.
/// On return the handshake with the kernel is complete.
///
/// # Errors
/// Fails if the folder is not suitable, or FUSE is not available to the user.
pub fn mount(config: Config, mountpoint: &Path) -> Result<Mounted, MountError> {
    let point = resolve(mountpoint)?;
    match &config.backing {
        Backing::Memory { cap } => {
            let memory = Arc::new(Memory::new(*cap, config.quota, config.power_cut));
            let mut mounted = match config.broken.is_empty() {
                true => start(Arc::clone(&memory), &config, &point)?,
                false => {
                    let broken = Broken::new(Arc::clone(&memory), &config.broken);
                    start(Arc::new(broken), &config, &point)?
                }
            };
            mounted.memory = config.power_cut.then_some(memory);
            Ok(mounted)
        }
        Backing::Passthrough(folder) => {
            let memory_only = [
                (config.quota.is_some(), "a quota"),
                (config.power_cut, "a power cut"),
                (!config.broken.is_empty(), "a broken promise"),
            ];
            if let Some((_, wanted)) = memory_only.into_iter().find(|(is_wanted, _)| *is_wanted) {
                return Err(MountError::MemoryOnly(wanted));
            }
            let failed = |source| MountError::Folder(folder.clone(), source);
            let full = folder.canonicalize().map_err(failed)?;
            if point != full && point.starts_with(&full) {
                let folder = folder.clone();
                return Err(MountError::Inside { point, folder });
            }
            let passthrough = Passthrough::new(&full).map_err(failed)?;
            start(Arc::new(passthrough), &config, &point)
        }
    }
}

/// Ensures that a mount at `mountpoint` hides nothing. The exception is a passthrough
/// of the folder itself, whose content stays visible.
///
/// # Errors
/// Fails if the folder is a mount point or not empty.
pub fn require_nothing_hidden(backing: &Backing, mountpoint: &Path) -> Result<(), MountError> {
    let point = resolve(mountpoint)?;
    match backing {
        Backing::Passthrough(folder) if folder.canonicalize().is_ok_and(|own| own == point) => {
            Ok(())
        }
        Backing::Passthrough(_) | Backing::Memory { .. } => require_free(&point),
    }
}

/// Creates empty statistics.
fn new_stats(config: &Config, threads: usize) -> Result<Stats, MountError> {
    let log = FaultLog::new(config.fault_log.as_deref()).map_err(|source| {
        let path = config.fault_log.clone().unwrap_or_default();
        MountError::FaultLog(path, source)
    })?;
    let mut faults = FaultTable::new(&config.faults, config.seed, log);
    if config.quota.is_some() {
        faults = faults.with(QUOTA);
    }
    if config.power_cut {
        faults = faults.with(POWER_CUT);
    }
    Ok(Stats::new(threads, faults))
}

fn start<S: Store>(store: Arc<S>, config: &Config, point: &Path) -> Result<Mounted, MountError> {
    let failed = |source| MountError::Service(point.to_owned(), source);
    let threads = config.threads.max(1);
    let stats = new_stats(config, threads + DELAY_THREADS)?;
    let (mount, device) = KernelMount::new(point, config)?;
    let control = Arc::new(Control::new(Arc::new(stats), mount.killer()));
    let serve = || {
        control.stats.faults().log().begin().map_err(|source| {
            let path = config.fault_log.clone().unwrap_or_default();
            MountError::FaultLog(path, source)
        })?;
        if config.injects(Action::Die) && !mount.killer().is_able() {
            return Err(MountError::CannotDie);
        }
        let delays = DelayQueue::new(DELAY_THREADS).map_err(failed)?;
        let service = Service::new(store, config.clone(), Arc::clone(&control), delays);
        let owned = (mount.connection(), Arc::clone(&control));
        serve_in_background(service, device, config, owned).map_err(failed)
    };
    match serve() {
        Ok((session, ended)) => Ok(Mounted {
            mount,
            session: Some(session),
            ended,
            control,
            memory: None,
            waits_for_users: false,
        }),
        Err(error) => {
            // The original error is returned. A mount that is left would be worse
            // than an unreported unmount error.
            let _ = mount.unmount();
            Err(error)
        }
    }
}

/// Completes the handshake with the kernel and starts the threads. At their end, the
/// reader ends and the kernel connection is closed.
fn serve_in_background<S: Store>(
    service: Service<S>,
    device: OwnedFd,
    config: &Config,
    (connection, control): (Connection, Arc<Control>),
) -> io::Result<(JoinHandle<io::Result<()>>, io::PipeReader)> {
    let (ended, alive) = io::pipe()?;
    let acl = match config.allow_other {
        true => SessionACL::All,
        false => SessionACL::Owner,
    };
    let mut how = fuser::Config::default();
    how.acl = acl;
    how.n_threads = Some(config.threads.max(1));
    how.clone_fd = can_open_device();
    let session = Session::from_fd(service, device, acl, how)?;
    *control.notifier.lock() = Some(session.notifier());
    let thread = std::thread::Builder::new()
        .name("testfs-session".to_owned())
        .spawn(move || {
            let outcome = session.run();
            control.notifier.lock().take();
            connection.close();
            drop(alive);
            outcome
        })?;
    Ok((thread, ended))
}

impl Mounted {
    /// The folder of the mount, without links and dots.
    pub fn mountpoint(&self) -> &Path {
        self.mount.point()
    }

    /// The statistics, which outlive the mount.
    pub fn stats(&self) -> &Arc<Stats> {
        &self.control.stats
    }

    /// Every fault that has fired, in this order. A client that has the reply to a
    /// request finds the request's faults here.
    pub fn faults(&self) -> Vec<FaultRecord> {
        self.control.stats.faults().log().records()
    }

    /// The number of replies that faults `hang` hold.
    pub fn hanging(&self) -> usize {
        self.control.hangs.count()
    }

    /// Releases all held replies. Returns their number. Later ones wait for the next
    /// release.
    pub fn release_hangs(&self) -> usize {
        self.control.hangs.release()
    }

    /// Ends the file system like a fault `die`. The mount stays; calls in flight fail
    /// with ECONNABORTED, later ones with ENOTCONN.
    ///
    /// # Errors
    /// Fails if another mount covers it, or if the process may not do it. It needs
    /// root, or the mounted list of FUSE connections.
    pub fn die(&self) -> io::Result<()> {
        self.control.die()
    }

    /// True if the file system has died.
    pub fn has_died(&self) -> bool {
        self.control.has_died()
    }

    /// Cuts the power. Each file returns to its last sync, except for changes that
    /// survive. New files are lost if neither they nor their directory were synced,
    /// except for names that survive. Removals, renames and attributes are durable at
    /// once. Survivors are durable from then on. Files and directories that were open
    /// at the cut can no longer be read, written or synced (EIO). So a successful
    /// sync covers everything that was written. Held replies are released first.
    /// Returns the fate of each change, which is also written to the fault log.
    ///
    /// # Errors
    /// Fails if the mount is not prepared for it ([`Config::power_cut`]), or if the
    /// kernel does not drop its caches. It also fails if durable data that was
    /// removed since no longer fits.
    pub fn power_cut(&self, survivors: Survivors) -> Result<Vec<FaultRecord>, PowerCutError> {
        let memory = self.memory.as_ref().ok_or(PowerCutError::NotPrepared)?;
        cut(memory, &self.control, survivors)
    }

    /// Unmounts. Held replies become errors (ECONNABORTED). If its files are in use,
    /// it is detached instead. No path leads to it any more, and threads of this
    /// process serve its users until the last one is gone. Takes at most a few
    /// seconds.
    ///
    /// # Errors
    /// Fails if the mount cannot be removed, or a service thread failed.
    pub fn unmount(mut self) -> Result<(), MountError> {
        self.end()
    }

    /// From now on unmounting waits until nobody uses the file system any more, and fails after a
    /// minute. A process that opens files of a file system that it serves itself needs this before
    /// it ends: otherwise the kernel may close such a file when no thread is left that could answer.
    #[must_use]
    pub fn waiting_for_users(mut self) -> Mounted {
        self.waits_for_users = true;
        self
    }

    /// A descriptor that becomes readable when the service has ended, for example by
    /// an unmount from outside.
    pub(crate) fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// True if it is still in the mount table, alive or dead.
    ///
    /// # Errors
    /// Fails if the mount table cannot be read.
    pub(crate) fn is_there(&self) -> io::Result<bool> {
        self.mount.is_there()
    }

    fn end(&mut self) -> Result<(), MountError> {
        if self.session.is_none() {
            return Ok(());
        }
        self.control.hangs.close();
        let unmounted = self.mount.unmount()?;
        let Some(session) = self.session.take() else {
            return Ok(());
        };
        let in_use = unmounted == Unmounted::Detached;
        if in_use && !self.waits_for_users {
            return Ok(());
        }
        let failed = |source| MountError::Service(PathBuf::from(self.mount.point()), source);
        let patience = if in_use { PATIENCE_FOR_USERS } else { PATIENCE };
        let deadline = Instant::now() + patience;
        while !session.is_finished() {
            if Instant::now() > deadline {
                if in_use {
                    return Err(failed(io::Error::other("it is still in use")));
                }
                // Freeing the memory of a large file system takes time; the mount is
                // gone.
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
        // Callers that need the error call `unmount`.
        let _ = self.end();
    }
}
