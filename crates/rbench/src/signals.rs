//! SIGINT, SIGTERM and SIGHUP: the first asks the group to stop, the second ends the process at
//! once. Viewers may also ask for a stop, once. SIGUSR1 sets a mark.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use nix::sys::signal::SigSet;
use rbench_core::plain;
use rbench_exec::Interrupts;
use rbench_sys::senders::{Sender, Senders};
use rbench_sys::thread::exit_at_once;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::console::complain;
use crate::live::{self, Stops};

const KINDS: [SignalKind; 3] = [
    SignalKind::interrupt(),
    SignalKind::terminate(),
    SignalKind::hangup(),
];

/// Signals within this time of the first count as the same one: the terminal and the launcher may
/// both send it.
const SAME: Duration = Duration::from_millis(100);

/// Signal numbers and their streams. Must be called within a runtime.
fn streams() -> Vec<(i32, Signal)> {
    let heard = |kind: &SignalKind| Some((kind.as_raw_value(), signal(*kind).ok()?));
    KINDS.iter().filter_map(heard).collect()
}

/// The number of a signal that has arrived.
fn poll(streams: &mut [(i32, Signal)], context: &mut Context<'_>) -> Poll<i32> {
    for (number, stream) in streams {
        if stream.poll_recv(context).is_ready() {
            return Poll::Ready(*number);
        }
    }
    Poll::Pending
}

/// Ends the process at the second signal, from a thread of its own: the main thread may hang in a
/// file system call. The main thread blocks these signals: otherwise the kernel would queue them
/// there until its call returns.
fn end_at_second(stopping: Arc<AtomicBool>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let hears = async move {
        let mut streams = streams();
        let mut first: Option<Instant> = None;
        loop {
            let number = std::future::poll_fn(|context| poll(&mut streams, context)).await;
            let again = stopping.swap(true, Ordering::Relaxed);
            if again && first.is_none_or(|first| first.elapsed() >= SAME) {
                live::leave();
                exit_at_once(128 + number as u8);
            }
            first.get_or_insert_with(Instant::now);
        }
    };
    let thread = std::thread::Builder::new().name("rbench-signals".to_owned());
    thread.spawn(move || runtime.block_on(hears))?;
    let mut signals = SigSet::empty();
    for kind in KINDS {
        signals.add(nix::sys::signal::Signal::try_from(kind.as_raw_value())?);
    }
    Ok(signals.thread_block()?)
}

/// The signals of this process.
pub struct Signals {
    streams: RefCell<Vec<(i32, Signal)>>,
    /// Records the senders of signals, if possible.
    senders: Option<Senders>,
    /// True once the first signal was reported.
    told: Cell<bool>,
    /// True once a signal or a viewer has asked for a stop.
    stopping: Arc<AtomicBool>,
    /// The viewers' stop requests.
    stops: RefCell<Option<Stops>>,
    /// The viewer that asked.
    asked: RefCell<Option<String>>,
    marks: RefCell<Option<Signal>>,
}

impl Signals {
    /// Installs the handlers; must be called within the runtime. A signal whose handler cannot be
    /// installed keeps its default, which ends this process. Every rank handles SIGUSR1, since
    /// launchers forward it to all.
    pub fn new() -> Signals {
        // Before the other handlers, so that the sender is known when they run.
        let senders = Senders::watch(&KINDS.map(|kind| kind.as_raw_value())).ok();
        let stopping = Arc::<AtomicBool>::default();
        if let Err(e) = end_at_second(Arc::clone(&stopping)) {
            complain(&format!("a second Ctrl-C will not end this at once: {e}"));
        }
        Signals {
            streams: RefCell::new(streams()),
            senders,
            told: Cell::new(false),
            stopping,
            stops: RefCell::default(),
            asked: RefCell::default(),
            marks: RefCell::new(signal(SignalKind::user_defined1()).ok()),
        }
    }

    /// Treats stop requests of viewers like the first SIGINT.
    pub fn hear(&self, stops: Option<Stops>) {
        *self.stops.borrow_mut() = stops;
    }

    /// Returns true once, for a viewer's first stop request.
    fn asked(&self, context: &mut Context<'_>) -> bool {
        let mut stops = self.stops.borrow_mut();
        let Some(Poll::Ready(Some(who))) = stops.as_mut().map(|stops| stops.poll_recv(context))
        else {
            return false;
        };
        *stops = None;
        let first = !self.stopping.swap(true, Ordering::Relaxed);
        if first {
            self.told.set(true);
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
            // For example, a launcher in another PID namespace.
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
            let came = poll(&mut self.streams.borrow_mut(), context);
            if came.is_ready() && !self.told.replace(true) {
                return came;
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
