//! What those hear who connect to `--serve`: metrics, lines as they come, and whether a stop
//! was taken. Whoever hangs, floods or talks of something else is bounded in number, size and
//! time, and holds up nobody.

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

/// Connections at a time; who comes while there are so many is turned away.
const CONNECTIONS: usize = 32;

/// Connections of these that may hold a stream: the others stay for requests that are soon over, as those
/// for metrics and for a stop are.
const STREAMS: usize = 24;

/// How long a request may take to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_secs(5);

/// Bytes of a request's head.
const HEAD: usize = 8 << 10;

/// Pause between two connections, and after one that cannot be taken.
const PAUSE: Duration = Duration::from_millis(5);
const TROUBLE: Duration = Duration::from_millis(200);

/// The media type of metrics.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What a request to stop has in its head: the run that is meant. A page in a browser
/// cannot send it to another address without being asked.
pub const RUN_HEADER: &str = "rbench-run";

type Body = Either<Full<Bytes>, Channel<Bytes>>;

/// What goes for all connections of an address.
#[derive(Clone)]
struct Answering {
    known: Rc<Known>,
    /// Streams that there may be beside those that there are.
    streams: Rc<Cell<usize>>,
    /// Other hosts reach it.
    remote: bool,
}

/// Either kind of listener.
enum Accepting {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// One of the connections that there may be at a time.
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

/// Answers whoever connects, for ever.
pub async fn serve(listener: Listener, known: Rc<Known>) {
    let remote = listener.is_remote();
    let accepting = match listener {
        Listener::Tcp(listener, _) => TcpListener::from_std(listener).map(Accepting::Tcp),
        Listener::Unix(listener, _) => UnixListener::from_std(listener).map(Accepting::Unix),
    };
    // It is open; only a runtime without I/O refuses it.
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
            // There is no room: it hears that by the end of its connection.
            (Ok(_), None) => PAUSE,
            (Err(_), _) => TROUBLE,
        };
        tokio::time::sleep(pause).await;
    }
}

/// One request of a connection.
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
    // Whatever is wrong with it, it is over.
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

/// Whether a request was made to this host by a name that no name server gives: what a page
/// in a browser asks for under a name of its own is refused.
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

/// Lines as they come; who reads slowly gets fewer.
fn stream(known: &Rc<Known>, seat: Seat) -> Response<Body> {
    let mut lines = known.lines();
    let first = known.line();
    let (mut sender, body) = Channel::new(1);
    let known = Rc::clone(known);
    tokio::task::spawn_local(async move {
        let _seat = seat;
        let mut line = first;
        loop {
            // That is the last line, if it was made after the end.
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
