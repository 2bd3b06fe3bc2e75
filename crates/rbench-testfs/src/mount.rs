//! Mounting and unmounting a file system at a folder: root uses system calls,
//! ordinary users fusermount3. Serving the requests belongs to other modules.
//!
//! fuser mounts, too, but it unmounts by path, even at its end, whatever is mounted
//! there by then. This module only unmounts its own mount. fuser also neither
//! distinguishes the reasons of a refusal nor reports that an ordinary user's unmount
//! has failed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IoSliceMut, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MntFlags, MsFlags, umount2};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nix::sys::stat::Mode;
use nix::sys::statvfs::statvfs;
use nix::unistd::{getegid, geteuid};
use parking_lot::Mutex;
use rbench_core::mountinfo::{Mount, mounts};

use crate::config::Config;

const DEVICE: &str = "/dev/fuse";

/// The mounts of this process; a poll for POLLPRI returns when they change.
pub(crate) const MOUNT_TABLE: &str = "/proc/self/mountinfo";

/// The file system type in the mount table, after `fuse.`.
pub const SUBTYPE: &str = "rbench-testfs";

/// The set-user-id helper, by its current and its former name.
const HELPERS: [&str; 2] = ["fusermount3", "fusermount"];

/// The reason why a file system could not be mounted or unmounted. Its texts are
/// whole clauses.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The folder does not exist.
    #[error("the mount point {} does not exist", .0.display())]
    Missing(PathBuf),
    /// The mount point is not a folder.
    #[error("the mount point {} is not a folder", .0.display())]
    NotAFolder(PathBuf),
    /// The process of the mount at this place has ended.
    #[error(
        "the mount point {path} holds a mount whose file system has ended \
         (remove it with: fusermount3 -u -z {path})",
        path = .0.display()
    )]
    Dead(PathBuf),
    /// Something is mounted there already.
    #[error("something is mounted at {} already: name an empty directory", .0.display())]
    Occupied(PathBuf),
    /// The mount would hide the folder's content.
    #[error(
        "the mount point {} is not empty, and what is in it would be hidden: name an empty \
         directory",
        .0.display()
    )]
    NotEmpty(PathBuf),
    /// The mount point cannot be examined.
    #[error("the mount point {} cannot be reached: {}", .0.display(), .1)]
    Unreachable(PathBuf, #[source] io::Error),
    /// The kernel has no FUSE, or a container no device.
    #[error(
        "/dev/fuse does not exist: load the kernel module (modprobe fuse) or, \
         in a container, pass the device on (--device /dev/fuse)"
    )]
    NoDevice,
    /// This process may not open the device.
    #[error("/dev/fuse cannot be opened: {}", .0.desc())]
    DeviceRefused(Errno),
    /// Not even root may mount.
    #[error(
        "mounting at {} is not permitted, not even as root: a container needs \
         the capability CAP_SYS_ADMIN for it",
        .0.display()
    )]
    NotPermitted(PathBuf),
    /// The program that mounts for ordinary users is missing.
    #[error(
        "mounting as an ordinary user needs the program fusermount3 \
         (package fuse3), which is not in PATH"
    )]
    NoHelper,
    /// The program that mounts for ordinary users refused.
    #[error("fusermount3 refuses to mount at {}: {}", .0.display(), .1)]
    Helper(PathBuf, String),
    /// The kernel refused.
    #[error("the kernel refuses to mount at {}: {}", .0.display(), .1.desc())]
    Refused(PathBuf, Errno),
    /// The folder of a passthrough cannot be used.
    #[error("the folder {} cannot be passed through: {}", .0.display(), .1)]
    Folder(PathBuf, #[source] io::Error),
    /// A folder would be passed through into itself, and wait for itself.
    #[error(
        "the mount point {} lies inside the folder {} that is passed through",
        .point.display(), .folder.display()
    )]
    Inside {
        /// The mount point.
        point: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// The file of the fault log cannot be created.
    #[error("the fault log {} cannot be written: {}", .0.display(), .1)]
    FaultLog(PathBuf, #[source] io::Error),
    /// A passthrough was asked for a feature of the memory back end.
    #[error("{0} is for a file system in memory, not for a folder that is passed through")]
    MemoryOnly(&'static str),
    /// The fault `die`, which this process could not carry out.
    #[error(
        "the fault 'die' needs root, or the kernel's list of FUSE connections \
         (mount -t fusectl none /sys/fs/fuse/connections)"
    )]
    CannotDie,
    /// The connection with the kernel could not start, or broke off.
    #[error("the file system at {} cannot be served: {}", .0.display(), .1)]
    Service(PathBuf, #[source] io::Error),
    /// The mount could not be removed.
    #[error("{} cannot be unmounted: {}", .0.display(), .1)]
    Unmount(PathBuf, String),
}

/// The folder of the mount point, without links and dots.
///
/// # Errors
/// Fails if it is missing, not a folder, or the mount of a dead process.
pub(crate) fn resolve(point: &Path) -> Result<PathBuf, MountError> {
    let path = || point.to_owned();
    let reached = point
        .canonicalize()
        .and_then(|full| Ok((full.metadata()?.is_dir(), full)));
    match reached {
        Ok((true, full)) => Ok(full),
        Ok((false, _)) => Err(MountError::NotAFolder(path())),
        Err(source) => Err(match source.kind() {
            io::ErrorKind::NotFound => MountError::Missing(path()),
            io::ErrorKind::NotADirectory => MountError::NotAFolder(path()),
            io::ErrorKind::NotConnected => MountError::Dead(path()),
            _ => MountError::Unreachable(path(), source),
        }),
    }
}

/// Ensures that a mount at `point` (see [`resolve`]) hides nothing.
///
/// # Errors
/// Fails if the folder is a mount point or not empty.
pub(crate) fn require_free(point: &Path) -> Result<(), MountError> {
    let failed = |source| MountError::Unreachable(point.to_owned(), source);
    // Checked first: a mount may be empty, or not answer.
    if topmost(&mount_table().map_err(failed)?, point).is_some() {
        return Err(MountError::Occupied(point.to_owned()));
    }
    let mut entries = std::fs::read_dir(point).map_err(failed)?;
    match entries.next().transpose().map_err(failed)? {
        Some(_) => Err(MountError::NotEmpty(point.to_owned())),
        None => Ok(()),
    }
}

/// A mounted file system.
#[derive(Debug)]
pub(crate) struct KernelMount {
    killer: Killer,
    connection: Connection,
}

/// Another descriptor of the kernel connection, to check whether it still exists. The
/// server of the requests drops it ([`Connection::close`]) at its end; otherwise
/// callers would wait forever for replies.
#[derive(Debug, Clone)]
pub(crate) struct Connection(Arc<Mutex<Option<OwnedFd>>>);

impl Connection {
    pub(crate) fn close(&self) {
        self.0.lock().take();
    }

    fn is_alive(&self) -> bool {
        let device = self.0.lock();
        let Some(device) = device.as_ref() else {
            return false;
        };
        // After the end of the file system the device reports an error.
        let mut asked = [PollFd::new(device.as_fd(), PollFlags::empty())];
        match poll(&mut asked, PollTimeout::ZERO) {
            Ok(_) => asked[0].revents().is_none_or(|events| events.is_empty()),
            Err(_) => true,
        }
    }
}

/// Result of an unmount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unmounted {
    /// The file system has ended.
    Ended,
    /// The file system was in use. No path leads to it any more, and it ends with its
    /// last user.
    Detached,
}

impl KernelMount {
    /// Mounts at `point` (see [`resolve`]). The server of the requests talks to the
    /// kernel through the returned descriptor.
    pub(crate) fn new(point: &Path, config: &Config) -> Result<(KernelMount, OwnedFd), MountError> {
        let path = || point.to_owned();
        let failed = |source| MountError::Unreachable(path(), source);
        // Without the mount table, a mount could not be removed.
        mount_table().map_err(failed)?;
        let root = geteuid().is_root();
        let device = File::options().read(true).write(true).open(DEVICE);
        let device = match device.map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(0))) {
            Err(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO) => return Err(MountError::NoDevice),
            // If only root can open the device, the helper opens it.
            Err(Errno::EACCES) if !root => mount_with_helper(point, config)?,
            Err(errno) => return Err(MountError::DeviceRefused(errno)),
            Ok(device) => match mount_directly(&device, point, config) {
                Ok(()) => device.into(),
                Err(Errno::EPERM) if !root => mount_with_helper(point, config)?,
                Err(Errno::EPERM) => return Err(MountError::NotPermitted(path())),
                Err(errno) => {
                    let path = path();
                    return Err(MountError::Refused(path, errno));
                }
            },
        };
        let further = device.try_clone().map_err(failed)?;
        let table = mount_table().map_err(failed)?;
        let mount = topmost(&table, point).ok_or_else(|| MountError::Missing(path()))?;
        let mount = KernelMount {
            killer: Killer {
                point: path(),
                device: mount.device,
            },
            connection: Connection(Arc::new(Mutex::new(Some(further)))),
        };
        Ok((mount, device))
    }

    pub(crate) fn point(&self) -> &Path {
        &self.killer.point
    }

    pub(crate) fn connection(&self) -> Connection {
        self.connection.clone()
    }

    pub(crate) fn killer(&self) -> Killer {
        self.killer.clone()
    }

    fn is_mine(&self, mount: &Mount) -> bool {
        mount.device == self.killer.device && mount.mount_point == self.point()
    }

    /// True if it is still in the mount table, alive or dead.
    ///
    /// # Errors
    /// Fails if the mount table cannot be read.
    pub(crate) fn is_there(&self) -> io::Result<bool> {
        Ok(mount_table()?.iter().any(|mount| self.is_mine(mount)))
    }

    /// Unmounts, even if in use. Succeeds if it is already unmounted.
    ///
    /// # Errors
    /// Fails if something else was mounted over it, or the kernel refuses.
    pub(crate) fn unmount(&self) -> Result<Unmounted, MountError> {
        let point = self.point();
        let failed = |message: String| MountError::Unmount(point.to_owned(), message);
        let table = mount_table().map_err(|e| failed(e.to_string()))?;
        let is_own = |mount: &Mount| self.is_mine(mount);
        if !table.iter().any(is_own) {
            return Ok(Unmounted::Ended);
        }
        // Another file system may have got the number since ours ended.
        if !self.connection.is_alive() && !is_dead(point) {
            return Ok(Unmounted::Ended);
        }
        if !topmost(&table, point).is_some_and(is_own) {
            return Err(failed("another file system is mounted over it".to_owned()));
        }
        let plain = MntFlags::UMOUNT_NOFOLLOW;
        match umount2(point, plain) {
            // EINVAL: another process has unmounted it.
            Ok(()) | Err(Errno::EINVAL) => Ok(Unmounted::Ended),
            Err(Errno::EBUSY) => umount2(point, plain | MntFlags::MNT_DETACH)
                .map(|()| Unmounted::Detached)
                .map_err(|e| failed(e.desc().to_owned())),
            Err(Errno::EPERM) => unmount_with_helper(point, &["-u"])
                .map(|()| Unmounted::Ended)
                .or_else(|_| {
                    unmount_with_helper(point, &["-u", "-z"]).map(|()| Unmounted::Detached)
                })
                .map_err(failed),
            Err(errno) => Err(failed(errno.desc().to_owned())),
        }
    }
}

/// True if `point` leads to a mount whose file system has ended. Attributes may still
/// be in the kernel's cache; statfs asks the file system each time.
fn is_dead(point: &Path) -> bool {
    matches!(statvfs(point), Err(Errno::ENOTCONN))
}

/// True if this process can open the device, which it must do to give each service
/// thread its own descriptor.
pub(crate) fn can_open_device() -> bool {
    File::options().read(true).write(true).open(DEVICE).is_ok()
}

fn mount_directly(device: &File, point: &Path, config: &Config) -> nix::Result<()> {
    let data = format!(
        "fd={},rootmode=40000,user_id={},group_id={}{}",
        device.as_raw_fd(),
        geteuid(),
        getegid(),
        config.access(),
    );
    nix::mount::mount(
        Some(config.source.as_str()),
        point,
        Some(format!("fuse.{SUBTYPE}").as_str()),
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
        Some(data.as_str()),
    )
}

/// Runs the helper with `arguments` and `stdin`; `None` if it is not installed.
fn run_helper<S: AsRef<OsStr>>(
    arguments: &[S],
    mut stdin: impl FnMut() -> io::Result<Stdio>,
) -> io::Result<Option<std::process::Child>> {
    for program in HELPERS {
        let mut command = Command::new(program);
        command
            .args(arguments)
            // The helper sends the descriptor to its standard input.
            .env("_FUSE_COMMFD", "0")
            .stdin(stdin()?)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            child => return child.map(Some),
        }
    }
    Ok(None)
}

/// The helper's message, without its own name.
fn helper_message(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim();
    let bare = HELPERS
        .iter()
        .find_map(|name| text.strip_prefix(name)?.strip_prefix(": "));
    match bare.unwrap_or(text) {
        "" => "it does not say why".to_owned(),
        bare => bare.to_owned(),
    }
}

fn mount_with_helper(point: &Path, config: &Config) -> Result<OwnedFd, MountError> {
    let failed = |message: String| MountError::Helper(point.to_owned(), message);
    let source = config.source.replace('\\', "\\\\").replace(',', "\\,");
    let list = format!(
        "fsname={source},subtype={SUBTYPE},nosuid,nodev{}",
        config.access()
    );
    let arguments = [
        OsStr::new("-o"),
        OsStr::new(&list),
        OsStr::new("--"),
        point.as_os_str(),
    ];
    let (receiver, sender) = UnixStream::pair().map_err(|e| failed(e.to_string()))?;
    let stdin = || Ok(OwnedFd::from(sender.try_clone()?).into());
    let child = run_helper(&arguments, stdin)
        .map_err(|e| failed(e.to_string()))?
        .ok_or(MountError::NoHelper)?;
    // When the last descriptor of the other end is closed, receiving ends.
    drop(sender);
    let received = receive_descriptor(&receiver);
    let output = child
        .wait_with_output()
        .map_err(|e| failed(e.to_string()))?;
    match received {
        Ok(Some(device)) => Ok(device),
        Ok(None) => Err(failed(helper_message(&output.stderr))),
        Err(errno) => Err(failed(errno.desc().to_owned())),
    }
}

fn unmount_with_helper(point: &Path, flags: &[&str]) -> Result<(), String> {
    let mut arguments: Vec<&OsStr> = flags.iter().map(OsStr::new).collect();
    arguments.extend([OsStr::new("--"), point.as_os_str()]);
    let child = run_helper(&arguments, || Ok(Stdio::null())).map_err(|e| e.to_string())?;
    let child = child.ok_or_else(|| MountError::NoHelper.to_string())?;
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(helper_message(&output.stderr)),
    }
}

/// Receives a descriptor through `socket`; `None` if it is closed without one.
fn receive_descriptor(socket: &UnixStream) -> nix::Result<Option<OwnedFd>> {
    let mut byte = [0_u8];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let mut space = nix::cmsg_space!(RawFd);
    let message = loop {
        match recvmsg::<()>(
            socket.as_raw_fd(),
            &mut parts,
            Some(&mut space),
            MsgFlags::MSG_CMSG_CLOEXEC,
        ) {
            Err(Errno::EINTR) => {}
            received => break received?,
        }
    };
    for part in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(descriptors) = part
            && let [descriptor] = descriptors[..]
        {
            // SAFETY: the kernel has just created this descriptor for us, and nothing
            // else uses it.
            return Ok(Some(unsafe { OwnedFd::from_raw_fd(descriptor) }));
        }
    }
    Ok(None)
}

fn mount_table() -> io::Result<Vec<Mount>> {
    let text = std::fs::read(MOUNT_TABLE)?;
    Ok(mounts(&text).collect())
}

/// True if a path to `point` leads to the file system with these numbers.
fn is_topmost(point: &Path, device: (u64, u64)) -> io::Result<bool> {
    let table = mount_table()?;
    Ok(topmost(&table, point).is_some_and(|mount| mount.device == device))
}

/// The mount that a path to `point` leads to, if any: of the mounts at this place,
/// the one that no other covers.
fn topmost<'a>(table: &'a [Mount], point: &Path) -> Option<&'a Mount> {
    let here = || {
        table.iter().filter(|mount| {
            mount.mount_point.as_os_str().as_bytes() == point.as_os_str().as_bytes()
        })
    };
    here().find(|mount| here().all(|other| other.parent != mount.id))
}

/// Cuts the kernel's connection to a file system. Every call on its mount then fails
/// with ENOTCONN, while the mount stays.
#[derive(Debug, Clone)]
pub(crate) struct Killer {
    point: PathBuf,
    /// Major and minor number of the file system, unique while it exists.
    device: (u64, u64),
}

impl Killer {
    /// The file that cuts the connection when it is written. It only exists where the
    /// kernel's file system of FUSE connections is mounted.
    fn switch(&self) -> io::Result<File> {
        let path = Path::new("/sys/fs/fuse/connections").join(self.device.1.to_string());
        File::options().write(true).open(path.join("abort"))
    }

    /// True if this process can cut the connection.
    pub(crate) fn is_able(&self) -> bool {
        geteuid().is_root() || self.switch().is_ok()
    }

    pub(crate) fn kill(&self) -> io::Result<()> {
        if let Ok(mut switch) = self.switch() {
            return switch.write_all(b"1");
        }
        // The path only reaches the mount if nothing covers it.
        if !is_topmost(&self.point, self.device)? {
            return Err(Errno::EBUSY.into());
        }
        // A forced unmount cuts the connection and then fails, because this
        // descriptor uses the mount.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Vec<Mount> {
        mounts(text.as_bytes()).collect()
    }

    #[test]
    fn the_topmost_mount_is_the_one_that_nothing_lies_on() {
        let table = table(
            "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
             90 22 0:40 / /mnt/a\\040b\\134c rw - fuse.x one rw\n\
             30 90 0:41 / /mnt/a\\040b\\134c rw - fuse.x two rw\n\
             91 30 0:42 / /mnt/a\\040b\\134c/sub rw - tmpfs t rw\n",
        );
        let top = |point: &str| topmost(&table, Path::new(point)).map(|mount| mount.id);
        assert_eq!(top("/mnt/a b\\c"), Some(30));
        assert_eq!(top("/"), Some(22));
        assert_eq!(top("/mnt"), None);
    }

    #[test]
    fn the_real_mount_table_has_a_root() {
        let table = mount_table().expect("readable");
        assert!(topmost(&table, Path::new("/")).is_some());
    }

    #[test]
    fn a_bad_mount_point_is_told_apart() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("writable");
        let check = |path: &Path, part: &str| {
            let error = resolve(path).expect_err("bad").to_string();
            assert!(error.contains(part), "{error}");
        };
        check(&folder.path().join("none"), "does not exist");
        check(&file, "is not a folder");
        check(&file.join("below"), "is not a folder");
    }

    #[test]
    fn a_mount_point_is_free_when_nothing_is_there() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        require_free(folder.path()).expect("empty");
        std::fs::write(folder.path().join(".hidden"), "").expect("writable");
        let error = require_free(folder.path()).expect_err("not empty");
        assert!(matches!(error, MountError::NotEmpty(_)), "{error}");
        let error = require_free(Path::new("/")).expect_err("a mount");
        assert!(matches!(error, MountError::Occupied(_)), "{error}");
    }

    #[test]
    fn a_descriptor_that_does_not_come_is_no_descriptor() {
        let (receiver, sender) = UnixStream::pair().expect("a pair");
        drop(sender);
        assert!(matches!(receive_descriptor(&receiver), Ok(None)));
    }

    #[test]
    fn the_helper_is_quoted_without_its_name() {
        let check = |text: &str, expect: &str| assert_eq!(helper_message(text.as_bytes()), expect);
        check(
            "fusermount3: user has no write access to mountpoint /x\n",
            "user has no write access to mountpoint /x",
        );
        check("", "it does not say why");
    }
}
