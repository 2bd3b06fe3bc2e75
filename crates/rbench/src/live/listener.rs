//! The address of `--serve`: opened before anything is made, loopback unless more was asked
//! for. A socket is for its owner only, and stands where there was nothing.

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

/// Connections that may wait to be taken.
const WAITING: i32 = 16;

/// An address that is open.
#[derive(Debug)]
pub enum Listener {
    /// Where, and whether others than programs of this host reach it.
    Tcp(TcpListener, SocketAddr),
    /// Where.
    Unix(UnixListener, PathBuf),
}

/// As `rbench watch` takes it.
impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listener::Tcp(_, address) => address.fmt(f),
            Listener::Unix(_, path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Listener {
    /// Opens it; `remote`: others than programs of this host may reach it.
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

    /// Whether others than programs of this host reach it.
    pub fn is_remote(&self) -> bool {
        match self {
            Listener::Tcp(_, address) => !address.ip().is_loopback(),
            Listener::Unix(..) => false,
        }
    }
}

/// What is there in the place of a socket. It is never replaced: what nobody listens at may
/// belong to a program that is about to.
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
    // Before it has a name: nobody else can ever connect.
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

/// The name of a socket in a file system, which goes with this.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and number.
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

/// Device and number of what is there.
fn inode(path: &Path) -> io::Result<(u64, u64)> {
    let found = path.symlink_metadata()?;
    Ok((found.dev(), found.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let same = inode(&self.path).is_ok_and(|found| found == self.inode);
        if same {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
