//! SIGINT, SIGTERM and SIGHUP: the first asks the group to stop, the second ends
//! the process at once. Who watches may ask for a stop too, once. SIGUSR1 sets a mark.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use rbench_core::plain;
use rbench_exec::Interrupts;
use rbench_sys::senders::{Sender, Senders};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::live::{self, Stops};

const KINDS: [SignalKind; 3] = [
    SignalKind::interrupt(),
    SignalKind::terminate(),
    SignalKind::hangup(),
];

/// The signals of this process.
pub struct Signals {
    streams: RefCell<Vec<(i32, Signal)>>,
    /// Who sent them; `None` where that cannot be looked at.
    senders: Option<Senders>,
    seen: Cell<u32>,
    /// Who watches and asks for a stop.
    stops: RefCell<Option<Stops>>,
    /// Who has.
    asked: RefCell<Option<String>>,
    marks: RefCell<Option<Signal>>,
}

impl Signals {
    /// Installs the handlers; called within the runtime. A signal whose handler
    /// cannot be installed keeps its default: it ends this process. That for SIGUSR1 is
    /// there on every rank, since launchers pass it on to all.
    pub fn new() -> Signals {
        // Before the others, so that it is known when these are heard of.
        let senders = Senders::watch(&KINDS.map(|kind| kind.as_raw_value())).ok();
        let streams = KINDS
            .iter()
            .filter_map(|kind| Some((kind.as_raw_value(), signal(*kind).ok()?)));
        Signals {
            streams: RefCell::new(streams.collect()),
            senders,
            seen: Cell::new(0),
            stops: RefCell::default(),
            asked: RefCell::default(),
            marks: RefCell::new(signal(SignalKind::user_defined1()).ok()),
        }
    }

    /// Whoever asks for a stop there is heard like the first signal, as SIGINT.
    pub fn hear(&self, stops: Option<Stops>) {
        *self.stops.borrow_mut() = stops;
    }

    /// A stop that somebody who watches asks for: the first one.
    fn asked(&self, context: &mut Context<'_>) -> bool {
        let mut stops = self.stops.borrow_mut();
        let Some(Poll::Ready(Some(who))) = stops.as_mut().map(|stops| stops.poll_recv(context))
        else {
            return false;
        };
        *stops = None;
        let first = self.seen.get() == 0;
        if first {
            self.seen.set(1);
            *self.asked.borrow_mut() = Some(who);
        }
        first
    }
}

impl Interrupts for Signals {
    fn told(&self, signal: i32) -> String {
        if let Some(who) = self.asked.take() {
            return format!("A request of {}", plain(&who));
        }
        let name = match SignalKind::from_raw(signal) {
            kind if kind == SignalKind::interrupt() => "SIGINT".to_owned(),
            kind if kind == SignalKind::terminate() => "SIGTERM".to_owned(),
            kind if kind == SignalKind::hangup() => "SIGHUP".to_owned(),
            _ => format!("signal {signal}"),
        };
        match self.senders.as_ref().and_then(|all| all.of(signal)) {
            None => name,
            Some(Sender::Kernel) => format!("{name} from the terminal"),
            // A launcher in another PID namespace, say.
            Some(Sender::Process { pid: 0, uid, .. }) => {
                format!("{name} from a process of another PID namespace (user {uid})")
            }
            Some(Sender::Process {
                pid,
                uid,
                name: process,
            }) => {
                let process =
                    process.map_or_else(|| "ended".to_owned(), |p| plain(&p).into_owned());
                format!("{name} from process {pid} ({process}, user {uid})")
            }
        }
    }

    fn next(&self) -> Pin<Box<dyn Future<Output = i32> + '_>> {
        Box::pin(std::future::poll_fn(|context| {
            for (number, stream) in self.streams.borrow_mut().iter_mut() {
                if stream.poll_recv(context).is_ready() {
                    self.seen.set(self.seen.get() + 1);
                    if self.seen.get() > 1 {
                        live::restore();
                        std::process::exit(128 + *number);
                    }
                    return Poll::Ready(*number);
                }
            }
            match self.asked(context) {
                true => Poll::Ready(SignalKind::interrupt().as_raw_value()),
                false => Poll::Pending,
            }
        }))
    }

    fn mark(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(std::future::poll_fn(|context| {
            let mut marks = self.marks.borrow_mut();
            match marks.as_mut().map(|stream| stream.poll_recv(context)) {
                Some(Poll::Ready(Some(()))) => Poll::Ready(()),
                Some(_) | None => Poll::Pending,
            }
        }))
    }
}
