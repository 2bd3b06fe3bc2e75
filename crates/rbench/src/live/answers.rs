//! Answers to clients of `--serve`: metrics, a stream of status lines, and requests to stop. Clients that hang, flood
//! or send anything else are limited in number, size and time, and delay nobody.

use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use http_body_util::{Channel, Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, UnixListener};

use super::known::Known;
use super::listener::Listener;
use super::peer::Peer;

/// Maximum number of connections at a time; further ones are closed.
const CONNECTIONS: usize = 32;

/// Maximum number of streams among these connections. The rest is reserved for short requests (metrics, stop).
const STREAMS: usize = 24;

/// Time limit for a request to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_secs(5);

/// Maximum size of a request's head, bytes.
const HEAD: usize = 8 << 10;

/// Pause between two connections, and after a failed accept.
const PAUSE: Duration = Duration::from_millis(5);
const TROUBLE: Duration = Duration::from_millis(200);

/// The media type of metrics.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Header of a request to stop: the run's id. A browser page cannot send this header to another address without asking
/// first.
pub const RUN_HEADER: &str = "rbench-run";

type Body = Either<Full<Bytes>, Channel<Bytes>>;

/// Shared state of all connections of an address.
#[derive(Clone)]
struct Answering {
    known: Rc<Known>,
    /// Number of further streams that are allowed.
    streams: Rc<Cell<usize>>,
    /// True if other hosts can reach the address.
    remote: bool,
}

/// A listener of either kind.
enum Accepting {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A permit from a limited number; returned on drop.
struct Seat(Rc<Cell<usize>>);

impl Seat {
    fn take(free: &Rc<Cell<usize>>) -> Option<Seat> {
        free.set(free.get().checked_sub(1)?);
        Some(Seat(Rc::clone(free)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// Serves connections forever.
pub async fn serve(listener: Listener, known: Rc<Known>) {
    let remote = listener.is_remote();
    let accepting = match listener {
        Listener::Tcp(listener, _) => TcpListener::from_std(listener).map(Accepting::Tcp),
        Listener::Unix(listener, _) => UnixListener::from_std(listener).map(Accepting::Unix),
    };
    // Fails only in a runtime without I/O.
    let Ok(accepting) = accepting else { return };
    let answering = Answering {
        known,
        streams: Rc::new(Cell::new(STREAMS)),
        remote,
    };
    let seats = Rc::new(Cell::new(CONNECTIONS));
    loop {
        let peer = match &accepting {
            Accepting::Tcp(listener) => listener.accept().await.map(|(stream, _)| stream.into()),
            Accepting::Unix(listener) => listener.accept().await.map(|(stream, _)| stream.into()),
        };
        let pause = match (peer, Seat::take(&seats)) {
            (Ok(peer), Some(seat)) => {
                let answering = answering.clone();
                tokio::task::spawn_local(async move {
                    answer(peer, answering).await;
                    drop(seat);
                });
                PAUSE
            }
            // The limit is reached: the connection is closed.
            (Ok(_), None) => PAUSE,
            (Err(_), _) => TROUBLE,
        };
        tokio::time::sleep(pause).await;
    }
}

/// Answers one request of a connection.
async fn answer(peer: Peer, answering: Answering) {
    let (name, tcp) = (peer.name(), peer.is_tcp());
    let service = service_fn(move |request| {
        let response = respond(&request, &answering, &name, tcp);
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(ARRIVES_WITHIN)
        .keep_alive(false)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(peer), service);
    // After an error the connection is over, whatever the reason.
    let _ = connection.await;
}

fn respond(
    request: &Request<Incoming>,
    answering: &Answering,
    name: &str,
    tcp: bool,
) -> Response<Body> {
    let Answering {
        known,
        streams,
        remote,
    } = answering;
    let host = request.headers().get(HOST);
    if tcp && !remote && !host.is_some_and(is_local) {
        return text(
            StatusCode::FORBIDDEN,
            "request this address by its number or as localhost\n",
        );
    }
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => with_type(known.metrics(), OPENMETRICS),
        (&Method::GET, "/stream") => match Seat::take(streams) {
            Some(seat) => stream(known, seat),
            None => text(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many watchers already\n",
            ),
        },
        (&Method::POST, "/stop") if *remote => text(
            StatusCode::FORBIDDEN,
            "a run cannot be stopped from other hosts: press Ctrl-C where it was started\n",
        ),
        (&Method::POST, "/stop") => match request.headers().get(RUN_HEADER) {
            Some(run) if run.as_bytes() == known.run_id().as_bytes() => {
                known.ask_to_stop(format!("rbench watch from {name}"));
                text(StatusCode::ACCEPTED, "the run stops\n")
            }
            _ => text(StatusCode::CONFLICT, "a different run is active here\n"),
        },
        (_, "/metrics" | "/stream" | "/stop") => text(
            StatusCode::METHOD_NOT_ALLOWED,
            "GET /metrics, GET /stream, POST /stop\n",
        ),
        _ => text(
            StatusCode::NOT_FOUND,
            "GET /metrics, GET /stream, POST /stop\n",
        ),
    }
}

/// Returns true if the request names this host as an address or `localhost`. Refusing other names stops browser pages
/// that point a name of their own to this host.
fn is_local(host: &HeaderValue) -> bool {
    let Ok(host) = host.to_str() else {
        return false;
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) && !name.ends_with(':') => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok()
}

fn text(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = with_type(
        Bytes::from_static(text.as_bytes()),
        "text/plain; charset=utf-8",
    );
    *response.status_mut() = status;
    response
}

fn with_type(body: Bytes, media: &'static str) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(body)));
    let media = HeaderValue::from_static(media);
    response.headers_mut().insert(CONTENT_TYPE, media);
    response
}

/// Streams lines; a slow reader gets fewer.
fn stream(known: &Rc<Known>, seat: Seat) -> Response<Body> {
    let mut lines = known.lines();
    let first = known.line();
    let (mut sender, body) = Channel::new(1);
    let known = Rc::clone(known);
    tokio::task::spawn_local(async move {
        let _seat = seat;
        let mut line = first;
        loop {
            // A line made after the end is the last one.
            let over = known.has_ended();
            let sent = sender.send_data(line).await.is_ok();
            if !sent || over || lines.changed().await.is_err() {
                break;
            }
            line = lines.borrow_and_update().clone();
        }
    });
    let mut response = Response::new(Either::Right(body));
    let media = HeaderValue::from_static("application/jsonl; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, media);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_name_server_gives_is_not_this_host() {
        for local in [
            "localhost",
            "localhost:9180",
            "127.0.0.1:9180",
            "[::1]:9180",
            "::1",
        ] {
            assert!(is_local(&HeaderValue::from_static(local)), "{local}");
        }
        for other in [
            "",
            "rebound.example",
            "rebound.example:9180",
            "localhost.example:1",
        ] {
            assert!(!is_local(&HeaderValue::from_static(other)), "{other}");
        }
    }
}
