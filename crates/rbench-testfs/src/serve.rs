//! A file system in the foreground of its own process: mounts it, reports that it is
//! ready, ends on a signal or with its starter, and leaves no mount.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rbench_core::random::key;

use crate::config::Config;
use crate::cut::{PowerCutError, Survivors};
use crate::mount::{MOUNT_TABLE, MountError};
use crate::session::{Mounted, mount, require_nothing_hidden};

/// Options of a file system in the foreground.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServeOptions {
    /// File for the statistics, written at the start, on SIGUSR1 and at the end. It
    /// must not lie below the mount point.
    pub stats: Option<PathBuf>,
    /// True if the process belongs to a starter that holds the other end of its
    /// standard input. It then writes the line `ready` to its standard output. It
    /// ends at the end of its standard input, no matter how the starter ended. It
    /// leaves signals that a terminal sends to the whole group (SIGINT, SIGQUIT,
    /// SIGHUP) to the starter.
    pub parent_watch: bool,
    /// Changes that survive a power cut on SIGPWR, if the file system is mounted for
    /// power cuts ([`Config::power_cut`]). A seed applies to the first cut; later
    /// cuts derive theirs from it and their number.
    pub survivors: Survivors,
}

/// The reason why serving failed. Its texts are whole clauses.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Mounting or unmounting failed.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// The statistics could not be written.
    #[error("the statistics cannot be written to {}: {}", .0.display(), .1)]
    Stats(PathBuf, #[source] io::Error),
    /// The fault log could not be written.
    #[error("the fault log cannot be written to {}: {}", .0.display(), .1)]
    FaultLog(PathBuf, #[source] io::Error),
    /// The power could not be cut.
    #[error(transparent)]
    PowerCut(#[from] PowerCutError),
    /// The starter could not be notified that the mount is ready.
    #[error("cannot report to the parent process that the mount is ready: {0}")]
    Ready(io::Error),
    /// The mount table could not be watched.
    #[error("the mount table cannot be read: {0}")]
    MountTable(io::Error),
    /// Signals could not be received.
    #[error("signals cannot be received: {}", .0.desc())]
    Signals(Errno),
}

/// The handled signals. While this exists, they are blocked in this thread and in all
/// that it starts.
struct Signals {
    descriptor: SignalFd,
    before: SigSet,
}

impl Signals {
    fn new() -> Result<Signals, ServeError> {
        let mut set = SigSet::empty();
        for signal in [
            Signal::SIGINT,
            Signal::SIGQUIT,
            Signal::SIGHUP,
            Signal::SIGTERM,
            Signal::SIGUSR1,
            Signal::SIGUSR2,
            Signal::SIGPWR,
        ] {
            set.add(signal);
        }
        let make = || {
            let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
            let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
            let descriptor = SignalFd::with_flags(&set, flags)?;
            Ok(Signals { descriptor, before })
        };
        make().map_err(ServeError::Signals)
    }

    /// The next pending signal, if any.
    fn next(&self) -> Result<Option<Signal>, ServeError> {
        let info = self.descriptor.read_signal().map_err(ServeError::Signals)?;
        Ok(info.and_then(|info| Signal::try_from(info.ssi_signo as i32).ok()))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // The mask was in effect before, so it is valid.
        let _ = self.before.thread_set_mask();
    }
}

/// Mounts a file system and serves it until SIGTERM, SIGINT, SIGQUIT, SIGHUP, the end
/// of the starter (see [`ServeOptions::parent_watch`]) or an unmount from outside.
/// Then unmounts it. SIGUSR1 writes the statistics, SIGUSR2 releases held replies,
/// SIGPWR cuts the power if the file system is mounted for it. A file system that has
/// died stays mounted, and dead, until then. The mount point must be empty, unless it
/// is the folder of a passthrough.
///
/// Call it while the process has only one thread. It blocks the signals in this
/// thread; in others they would still end the process.
///
/// # Errors
/// Fails if it cannot be mounted, served or unmounted, the statistics or the fault
/// log cannot be written, or the power cannot be cut. No mount is left in any of
/// these cases, except if unmounting fails.
pub fn serve(config: Config, mountpoint: &Path, options: &ServeOptions) -> Result<(), ServeError> {
    let signals = Signals::new()?;
    let fault_log = config.fault_log.clone();
    require_nothing_hidden(&config.backing, mountpoint)?;
    let mounted = mount(config, mountpoint)?;
    let outcome = write_stats(mounted.stats(), options)
        .and_then(|()| tell_ready(options))
        .and_then(|()| wait(&mounted, &signals, options));
    // The statistics are complete when no more requests are possible.
    let stats = std::sync::Arc::clone(mounted.stats());
    let unmounted = mounted.unmount();
    let logged = match (stats.faults().log().take_failure(), fault_log) {
        (Some(source), Some(path)) => Err(ServeError::FaultLog(path, source)),
        _ => Ok(()),
    };
    let written = write_stats(&stats, options);
    outcome
        .and(unmounted.map_err(ServeError::from))
        .and(written)
        .and(logged)
}

/// Writes the statistics to their file, if there is one.
fn write_stats(stats: &crate::stats::Stats, options: &ServeOptions) -> Result<(), ServeError> {
    let Some(path) = &options.stats else {
        return Ok(());
    };
    let failed = |source| ServeError::Stats(path.clone(), source);
    stats.snapshot().to_file().write(path).map_err(failed)
}

fn tell_ready(options: &ServeOptions) -> Result<(), ServeError> {
    if !options.parent_watch {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(b"ready\n")
        .and_then(|()| out.flush())
        .map_err(ServeError::Ready)
}

/// Returns when it is time to end. An error while handling a signal does not end the
/// mount; the first such error is returned then.
fn wait(mounted: &Mounted, signals: &Signals, options: &ServeOptions) -> Result<(), ServeError> {
    let stdin = io::stdin();
    let table = File::open(MOUNT_TABLE).map_err(ServeError::MountTable)?;
    let mut done = Ok(());
    let mut cuts = 0;
    loop {
        let readable = |fd| PollFd::new(fd, PollFlags::POLLIN);
        // Sources that are not waited for get no events.
        let idle = |fd| PollFd::new(fd, PollFlags::empty());
        let died = mounted.has_died();
        // A file system that has died is kept until someone unmounts it, because its
        // mount shows its state.
        if died && !mounted.is_there().map_err(ServeError::MountTable)? {
            return done;
        }
        let mut sources = [
            readable(signals.descriptor.as_fd()),
            match died {
                true => PollFd::new(table.as_fd(), PollFlags::POLLPRI),
                false => readable(mounted.ended()),
            },
            match options.parent_watch {
                true => readable(stdin.as_fd()),
                false => idle(signals.descriptor.as_fd()),
            },
        ];
        match poll(&mut sources, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(ServeError::Signals(errno)),
        }
        let [_, ended, starter] = sources.map(|source| source.any().unwrap_or(false));
        if ended && !died && !mounted.has_died() {
            return done;
        }
        if starter && stdin_has_ended() {
            return done;
        }
        while let Some(signal) = signals.next()? {
            match signal {
                Signal::SIGUSR1 => done = done.and(write_stats(mounted.stats(), options)),
                Signal::SIGUSR2 => drop(mounted.release_hangs()),
                Signal::SIGPWR => {
                    done = done.and(cut_power(mounted, options, cuts));
                    cuts += 1;
                }
                Signal::SIGTERM => return done,
                _ if options.parent_watch => {}
                _ => return done,
            }
        }
    }
}

/// Cuts the power after `cuts` earlier cuts.
fn cut_power(mounted: &Mounted, options: &ServeOptions, cuts: u64) -> Result<(), ServeError> {
    let survivors = match options.survivors {
        Survivors::Seeded(seed) if cuts > 0 => Survivors::Seeded(key(&[seed, cuts])),
        survivors => survivors,
    };
    match mounted.power_cut(survivors) {
        // A file system without power cuts ignores the signal.
        Ok(_) | Err(PowerCutError::NotPrepared) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Reads the pending input. Returns true at its end.
fn stdin_has_ended() -> bool {
    let mut buffer = [0; 512];
    match nix::unistd::read(io::stdin(), &mut buffer) {
        Ok(n) => n == 0,
        Err(Errno::EINTR | Errno::EAGAIN) => false,
        // A standard input that cannot be read would never report its end.
        Err(_) => true,
    }
}
