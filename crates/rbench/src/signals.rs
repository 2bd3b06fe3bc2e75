//! SIGINT, SIGTERM and SIGHUP: the first asks the group to stop, the second ends
//! the process at once.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;

use rbench_exec::Interrupts;
use tokio::signal::unix::{Signal, SignalKind, signal};

const KINDS: [SignalKind; 3] = [
    SignalKind::interrupt(),
    SignalKind::terminate(),
    SignalKind::hangup(),
];

/// The signals of this process.
pub struct Signals {
    streams: RefCell<Vec<(i32, Signal)>>,
    seen: std::cell::Cell<u32>,
}

impl Signals {
    /// Installs the handlers; called within the runtime. A signal whose handler
    /// cannot be installed keeps its default: it ends this process.
    pub fn new() -> Signals {
        let streams = KINDS
            .iter()
            .filter_map(|kind| Some((kind.as_raw_value(), signal(*kind).ok()?)));
        Signals {
            streams: RefCell::new(streams.collect()),
            seen: std::cell::Cell::new(0),
        }
    }
}

impl Interrupts for Signals {
    fn next(&self) -> Pin<Box<dyn Future<Output = i32> + '_>> {
        Box::pin(std::future::poll_fn(|context| {
            for (number, stream) in self.streams.borrow_mut().iter_mut() {
                if stream.poll_recv(context).is_ready() {
                    self.seen.set(self.seen.get() + 1);
                    if self.seen.get() > 1 {
                        std::process::exit(128 + *number);
                    }
                    return std::task::Poll::Ready(*number);
                }
            }
            std::task::Poll::Pending
        }))
    }
}
