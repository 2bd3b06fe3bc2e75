//! The connection to a viewer. It is closed if it accepts no data for a while. It is shut down
//! before it is closed: workers with their own file tables (`rbench-sys`, `own_files`) have copies
//! of it, which would keep it open.

use std::future::Future as _;
use std::io;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use nix::sys::socket::{Shutdown, getsockopt, shutdown, sockopt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Sleep, sleep};

/// Time limit of a write that makes no progress.
const STALLED: Duration = Duration::from_secs(5);

/// A connection to a viewer.
pub struct Peer {
    stream: Box<dyn Connection>,
    /// Timeout of the current write, once it is blocked.
    stalled: Option<Pin<Box<Sleep>>>,
}

/// A connection of either kind.
pub trait Connection: AsyncRead + AsyncWrite + AsRawFd + Send + Unpin {
    /// Describes the peer.
    fn name(&self) -> String;

    /// Returns true for a TCP connection.
    fn is_tcp(&self) -> bool;
}

impl Connection for TcpStream {
    fn name(&self) -> String {
        match self.peer_addr() {
            Ok(address) => address.to_string(),
            Err(_) => "an unknown address".to_owned(),
        }
    }

    fn is_tcp(&self) -> bool {
        true
    }
}

impl Connection for UnixStream {
    fn name(&self) -> String {
        match getsockopt(self, sockopt::PeerCredentials) {
            Ok(peer) => format!("process {} (user {})", peer.pid(), peer.uid()),
            Err(_) => "an unknown process".to_owned(),
        }
    }

    fn is_tcp(&self) -> bool {
        false
    }
}

impl<C: Connection + 'static> From<C> for Peer {
    fn from(stream: C) -> Peer {
        Peer {
            stream: Box::new(stream),
            stalled: None,
        }
    }
}

impl Peer {
    /// Describes the peer.
    pub fn name(&self) -> String {
        self.stream.name()
    }

    /// Returns true for a TCP connection.
    pub fn is_tcp(&self) -> bool {
        self.stream.is_tcp()
    }

    /// Applies the time limit to a write that is pending.
    fn waited<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(STALLED)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The peer may have shut it down already.
        let _ = shutdown(self.stream.as_raw_fd(), Shutdown::Both);
    }
}

impl AsyncRead for Peer {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Peer {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.waited(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.waited(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
