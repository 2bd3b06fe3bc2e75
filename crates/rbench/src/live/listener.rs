//! The listener of `--serve`, opened before anything is created. Only loopback addresses, unless
//! others are allowed. Socket files are private to their owner and replace nothing.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket,
};
use nix::sys::stat::{Mode, fchmod};
use rbench_cli::live::ServeAt;

/// Maximum number of connections that wait to be accepted.
const WAITING: i32 = 16;

/// An open address.
#[derive(Debug)]
pub enum Listener {
    /// With its address.
    Tcp(TcpListener, SocketAddr),
    /// With its path.
    Unix(UnixListener, PathBuf),
}

/// In the syntax of `rbench watch`.
impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listener::Tcp(_, address) => address.fmt(f),
            Listener::Unix(_, path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Listener {
    /// Opens the address. `remote` allows other hosts to reach it.
    ///
    /// # Errors
    /// A sentence that names the address.
    pub fn open(at: &ServeAt, remote: bool) -> Result<(Listener, Option<SocketFile>), String> {
        match at {
            ServeAt::Tcp(address) => {
                if !address.ip().is_loopback() && !remote {
                    return Err(format!(
                        "--serve: other hosts can reach {address}: use 127.0.0.1:{}, or add --serve-remote",
                        address.port()
                    ));
                }
                let cannot = |e: io::Error| format!("--serve: {address} cannot be opened: {e}");
                let listener = TcpListener::bind(address).map_err(cannot)?;
                listener.set_nonblocking(true).map_err(cannot)?;
                let bound = listener.local_addr().map_err(cannot)?;
                Ok((Listener::Tcp(listener, bound), None))
            }
            ServeAt::Unix(path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                let cannot = |e: io::Error| {
                    let shown = path.display();
                    match e.kind() {
                        io::ErrorKind::AddrInUse => format!("--serve: {}", taken(&path)),
                        _ => format!("--serve: the socket {shown} cannot be created: {e}"),
                    }
                };
                let (listener, file) = open_socket(&path).map_err(cannot)?;
                Ok((Listener::Unix(listener, path), Some(file)))
            }
        }
    }

    /// Returns true if other hosts can reach it.
    pub fn is_remote(&self) -> bool {
        match self {
            Listener::Tcp(_, address) => !address.ip().is_loopback(),
            Listener::Unix(..) => false,
        }
    }
}

/// Describes an existing file at a socket's path. It is never replaced: an unused socket may belong
/// to a program that is just starting.
fn taken(path: &Path) -> String {
    let shown = path.display();
    let is_socket = path
        .symlink_metadata()
        .is_ok_and(|found| found.file_type().is_socket());
    match UnixStream::connect(path) {
        Ok(_) => format!("{shown} is the socket of a running program: name another path"),
        Err(e) if is_socket && e.kind() == io::ErrorKind::ConnectionRefused => format!(
            "no process listens at the socket {shown}, which a killed run may have left: remove it, or name another \
             path"
        ),
        Err(_) => format!("{shown} already exists: name another path"),
    }
}

fn open_socket(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    // Set before the socket has a name: no other user can ever connect.
    fchmod(&socket, Mode::S_IRUSR | Mode::S_IWUSR)?;
    let address = UnixAddr::new(path).map_err(|errno| match errno {
        Errno::ENAMETOOLONG => io::Error::other("its path is longer than 107 bytes"),
        errno => errno.into(),
    })?;
    bind(socket.as_raw_fd(), &address)?;
    let file = SocketFile::of(path)?;
    listen(&socket, Backlog::new(WAITING)?)?;
    Ok((UnixListener::from(socket), file))
}

/// A socket file, removed on drop.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode number.
    inode: (u64, u64),
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<SocketFile> {
        Ok(SocketFile {
            path: path.to_owned(),
            inode: inode(path)?,
        })
    }
}

/// Device and inode number of a path.
fn inode(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = path.symlink_metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let same = inode(&self.path).is_ok_and(|found| found == self.inode);
        if same {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
