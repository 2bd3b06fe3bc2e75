//! Addresses for watching a run.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

/// Address at which rank 0 lets a run be watched.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct Serve {
    /// Serve the state of the run at ADDRESS:PORT (port 0: any free port) or unix:PATH
    ///
    /// rbench watch shows it, and Prometheus can scrape it at /metrics
    /// (docs/reference/watch.md).
    #[arg(id = "serve", long = "serve", value_name = "ADDR", value_parser = serve_at)]
    pub at: Option<ServeAt>,
    /// Allow --serve at an address that other hosts can reach
    ///
    /// Everybody there can watch the run, and nobody can stop it.
    #[arg(id = "serve_remote", long = "serve-remote", requires = "serve")]
    pub remote: bool,
}

/// An address for watching a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At<T> {
    /// A host and a port.
    Tcp(T),
    /// A unix socket.
    Unix(PathBuf),
}

/// The address of `--serve`; port 0: any.
pub type ServeAt = At<SocketAddr>;

/// The address that `rbench watch` connects to, `HOST:PORT` or a socket.
pub type WatchAt = At<String>;

/// In the syntax of `rbench watch`.
impl<T: fmt::Display> fmt::Display for At<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Tcp(address) => address.fmt(f),
            At::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Returns the unix socket of `unix:PATH`, or of any text with a slash.
fn socket(text: &str) -> Option<PathBuf> {
    let path = text.strip_prefix("unix:");
    let path = path.or_else(|| text.contains('/').then_some(text));
    path.filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Reads the value of `--serve`.
pub fn serve_at(text: &str) -> Result<ServeAt, String> {
    if let Some(path) = socket(text) {
        return Ok(ServeAt::Unix(path));
    }
    let local = text
        .strip_prefix("localhost:")
        .and_then(|port| port.parse().ok());
    if let Some(port) = local {
        return Ok(ServeAt::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
    }
    let address = text.parse().map(ServeAt::Tcp);
    address.map_err(|_| {
        format!("'{text}' is not an address to serve at (expected e.g. 127.0.0.1:9180 or unix:/run/user/0/rbench)")
    })
}

/// Reads the address of `rbench watch`.
pub fn watch_at(text: &str) -> Result<WatchAt, String> {
    if let Some(path) = socket(text) {
        return Ok(WatchAt::Unix(path));
    }
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && is_port(port) => {
            Ok(WatchAt::Tcp(text.to_owned()))
        }
        _ => Err(format!(
            "'{text}' is not the address of a run (expected the address of its --serve, e.g. 127.0.0.1:9180 or unix:/run/user/0/rbench)"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port_or_a_path() {
        let path = |text: &str| ServeAt::Unix(PathBuf::from(text));
        assert_eq!(serve_at("unix:watch"), Ok(path("watch")));
        assert_eq!(serve_at("/tmp/watch"), Ok(path("/tmp/watch")));
        assert_eq!(serve_at("./watch"), Ok(path("./watch")));
        let tcp = |text: &str| ServeAt::Tcp(text.parse().expect("an address"));
        assert_eq!(serve_at("127.0.0.1:0"), Ok(tcp("127.0.0.1:0")));
        assert_eq!(serve_at("[::1]:9180"), Ok(tcp("[::1]:9180")));
        assert_eq!(serve_at("localhost:9180"), Ok(tcp("127.0.0.1:9180")));
        let words = "unix: 9180 127.0.0.1 node1:9180 1.2.3.4:70000";
        for wrong in words.split(' ').chain([""]) {
            let why = serve_at(wrong).expect_err(wrong);
            let expect = format!("'{wrong}' is not an address");
            assert!(why.starts_with(&expect), "{why}");
        }
        let tcp = WatchAt::Tcp("node1:9180".to_owned());
        assert_eq!(watch_at("node1:9180"), Ok(tcp));
        let path = WatchAt::Unix(PathBuf::from("watch"));
        assert_eq!(watch_at("unix:watch"), Ok(path));
        for wrong in ["", "node1", ":9180", "node1:0", "node1:http"] {
            assert!(watch_at(wrong).is_err(), "{wrong}");
        }
    }
}
