//! `rbench watch`: draws the live state of a run of another process.

use std::io::{IsTerminal as _, stdout};
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HOST, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use rbench_cli::live::WatchAt;
use rbench_report::schema::{LiveResult, LiveState};
use tokio::net::{TcpStream, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, timeout};

use super::answers::RUN_HEADER;
use super::peer::Peer;
use super::terminal::{Key, Keys, Screen, has_keys};
use super::view::Question;
use crate::console::{complain, fail};
use crate::exit::{FAILED, SUCCESS, USAGE};

/// Time limit of a connection and of each answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// A run sends a line at least every second; after this time its silence is reported.
const SILENT: Duration = Duration::from_secs(3);

/// Time limit for the second key of a stop (`s`, then `y`).
const ASKS_FOR: Duration = Duration::from_secs(5);

/// Maximum length of a line, bytes.
const LINE_MAX: usize = 8 << 20;

/// Runs `rbench watch`.
pub fn watch(at: &WatchAt) -> u8 {
    if !stdout().is_terminal() || !has_keys() {
        complain(
            "rbench watch needs a terminal; programs can use GET /metrics (OpenMetrics) and GET /stream (a JSON line \
             twice a second) of the address",
        );
        return USAGE;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            return fail(FAILED, format!("rbench watch cannot be started: {error}"));
        }
    };
    let code = match runtime.block_on(look(at)) {
        Ok(told) => {
            told.iter().for_each(|told| complain(told));
            SUCCESS
        }
        Err(message) => fail(FAILED, message),
    };
    // A name lookup may still be running.
    runtime.shutdown_background();
    code
}

async fn connect(at: &WatchAt) -> Result<SendRequest<Empty<Bytes>>, String> {
    let connected = async {
        Ok::<Peer, std::io::Error>(match at {
            WatchAt::Tcp(address) => TcpStream::connect(address).await?.into(),
            WatchAt::Unix(path) => UnixStream::connect(path).await?.into(),
        })
    };
    let peer = match timeout(ANSWERS_WITHIN, connected).await {
        Ok(Ok(peer)) => peer,
        Ok(Err(error)) => {
            return Err(format!("cannot watch {at}: {error}"));
        }
        Err(_) => return Err(format!("nobody answers at {at}")),
    };
    let (sender, connection) = http1::handshake(TokioIo::new(peer))
        .await
        .map_err(|_| format!("nobody answers at {at}"))?;
    tokio::spawn(connection);
    Ok(sender)
}

/// Sends a request. `run`: id of the run that is meant.
async fn ask(
    at: &WatchAt,
    method: Method,
    path: &'static str,
    run: Option<&str>,
) -> Result<hyper::Response<Incoming>, String> {
    let mut sender = connect(at).await?;
    let mut request = Request::new(Empty::new());
    *request.method_mut() = method;
    *request.uri_mut() = hyper::Uri::from_static(path);
    let host = match at {
        WatchAt::Tcp(address) => HeaderValue::from_str(address),
        WatchAt::Unix(_) => Ok(HeaderValue::from_static("localhost")),
    };
    let garbled = |_| format!("{at} is not the address of a run");
    request.headers_mut().insert(HOST, host.map_err(garbled)?);
    if let Some(run) = run {
        let run = HeaderValue::from_str(run).map_err(garbled)?;
        request.headers_mut().insert(RUN_HEADER, run);
    }
    let answer = timeout(ANSWERS_WITHIN, sender.send_request(request)).await;
    match answer {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) | Err(_) => Err(format!("{at} is not a run of rbench, or does not answer")),
    }
}

/// The lines that a run sends.
struct Lines {
    body: Incoming,
    rest: Vec<u8>,
}

impl Lines {
    async fn of(at: &WatchAt) -> Result<Lines, String> {
        let answer = ask(at, Method::GET, "/stream", None).await?;
        match answer.status() {
            StatusCode::OK => Ok(Lines {
                body: answer.into_body(),
                rest: Vec::new(),
            }),
            status => Err(format!("{at} is not a run of rbench: it answers {status}")),
        }
    }

    /// The next line; `None` at the end.
    async fn next(&mut self) -> Option<Result<LiveResult, String>> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                let read = serde_json::from_slice(&line);
                return Some(read.map_err(|error| error.to_string()));
            }
            if self.rest.len() > LINE_MAX {
                return Some(Err("a line is too long".to_owned()));
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                self.rest.extend_from_slice(&data);
            }
        }
    }
}

/// The signals that end `rbench watch`.
struct Ends([Option<Signal>; 3]);

impl Ends {
    fn new() -> Ends {
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        Ends(kinds.map(|kind| signal(kind).ok()))
    }

    async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let mut all = self.0.iter_mut().flatten();
            match all.any(|signal| signal.poll_recv(context).is_ready()) {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            }
        })
        .await;
    }
}

/// Draws until the run has ended or the user leaves. Returns a closing message.
async fn look(at: &WatchAt) -> Result<Option<String>, String> {
    let mut lines = Lines::of(at).await?;
    let garbled = |why: String| format!("{at} is not a run of this version of rbench: {why}");
    let first = match timeout(ANSWERS_WITHIN, lines.next()).await {
        Ok(Some(first)) => first.map_err(garbled)?,
        Ok(None) => return Err(format!("the run at {at} has ended")),
        Err(_) => return Err(format!("nobody answers at {at}")),
    };
    let mut ends = Ends::new();
    let screen = Screen::enter(stdout(), false);
    let mut looks = Looks {
        screen: screen.map_err(|e| format!("the terminal cannot be used: {e}"))?,
        known: first,
        heard: Instant::now(),
        asks: None,
        answer: None,
    };
    let mut keys = Keys::read();
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    loop {
        looks.draw()?;
        tokio::select! {
            line = lines.next() => match line {
                Some(Ok(known)) => looks.hear(known),
                Some(Err(why)) => return Err(garbled(why)),
                None => return Ok(Some(match looks.known.state {
                    LiveState::Ended => match &looks.known.failed {
                        None => format!("the run at {at} has ended"),
                        Some(why) => format!("the run at {at} has ended early: {why}"),
                    },
                    _ => format!("the run at {at} no longer answers: it ended, or the connection was lost"),
                })),
            },
            key = keys.next() => match key {
                Key::Leave | Key::Interrupt => return Ok(None),
                Key::Stop => looks.asks = Some(Instant::now()),
                Key::Yes if looks.asks.take().is_some() => {
                    let asked = ask(at, Method::POST, "/stop", Some(&looks.known.run)).await;
                    looks.answer = Some(asked.map(|answer| answer.status()));
                }
                Key::Yes | Key::Other => looks.asks = None,
                Key::Resized => {}
            },
            () = ends.next() => return Ok(None),
            _ = tick.tick() => {}
        }
    }
}

/// The state of the view.
struct Looks {
    screen: Screen<std::io::Stdout>,
    known: LiveResult,
    heard: Instant,
    /// Start of the question whether to stop the run.
    asks: Option<Instant>,
    /// Answer to the request to stop.
    answer: Option<Result<StatusCode, String>>,
}

impl Looks {
    fn hear(&mut self, known: LiveResult) {
        if known.run != self.known.run {
            (self.asks, self.answer) = (None, None);
        }
        self.known = known;
        self.heard = Instant::now();
    }

    fn draw(&mut self) -> Result<(), String> {
        if self.asks.is_some_and(|since| since.elapsed() > ASKS_FOR) {
            self.asks = None;
        }
        let silent = self.heard.elapsed();
        let question = match (&self.asks, &self.answer) {
            (Some(_), _) => Question::Stop,
            (None, Some(Ok(StatusCode::FORBIDDEN))) => Question::Refused,
            (None, Some(Ok(StatusCode::CONFLICT))) => Question::Another,
            (None, Some(Err(_))) => Question::Unheard,
            _ if silent > SILENT => Question::Silent(silent.as_secs()),
            _ => Question::None,
        };
        let drawn = self.screen.draw(&self.known, question);
        drawn.map_err(|e| format!("the terminal cannot be used: {e}"))
    }
}
