//! The live state of a run, and its formats for viewers.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use hyper::body::Bytes;
use rbench_report::live::Live;
use rbench_report::schema::{LiveResult, LiveState};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::time::Instant;

/// A line is sent at least this often, even without news, as a sign of life.
const ALIVE_EVERY: Duration = Duration::from_millis(900);

/// Maximum age of lines and metrics that are served again.
const METRICS_FOR: Duration = Duration::from_millis(500);

/// Time that the last line may take to reach the connection.
const SENT_WITHIN: Duration = Duration::from_millis(50);

/// The live state, shared by all connections.
pub struct Known {
    live: RefCell<Live>,
    /// True if something has changed since the last line.
    news: Cell<bool>,
    /// Time of the last line.
    published: Cell<Instant>,
    /// The last line of the stream.
    line: watch::Sender<Bytes>,
    /// The last metrics and their time.
    metrics: RefCell<Option<(Instant, Bytes)>>,
    stop: UnboundedSender<String>,
}

impl Known {
    pub fn new(stop: UnboundedSender<String>) -> Known {
        Known {
            live: RefCell::default(),
            news: Cell::new(false),
            published: Cell::new(Instant::now()),
            line: watch::Sender::new(Bytes::new()),
            metrics: RefCell::new(None),
            stop,
        }
    }

    pub fn change(&self, change: impl FnOnce(&mut Live)) {
        change(&mut self.live.borrow_mut());
        self.news.set(true);
    }

    /// The current state.
    pub fn snapshot(&self) -> LiveResult {
        self.live.borrow().snapshot()
    }

    /// The state as a line of the stream.
    ///
    /// At most half a second old. After the run's end, made after the end.
    pub fn line(&self) -> Bytes {
        let last = self.line.borrow().clone();
        let fresh = self.published.get().elapsed() < METRICS_FOR;
        match fresh && !last.is_empty() && !self.has_ended() {
            true => last,
            false => self.publish_now(),
        }
    }

    fn made(&self) -> Bytes {
        // All types of the line can be written as JSON.
        let mut line = serde_json::to_vec(&self.snapshot()).unwrap_or_default();
        line.push(b'\n');
        Bytes::from(line)
    }

    /// The stream of lines; each replaces the one before.
    pub fn lines(&self) -> watch::Receiver<Bytes> {
        self.line.subscribe()
    }

    pub fn publish(&self) {
        let due = self.news.get() || self.published.get().elapsed() > ALIVE_EVERY;
        if due && self.line.receiver_count() > 0 {
            self.news.set(false);
            self.publish_now();
        }
    }

    fn publish_now(&self) -> Bytes {
        let line = self.made();
        self.published.set(Instant::now());
        self.line.send_replace(line.clone());
        line
    }

    /// The metrics, at most half a second old.
    pub fn metrics(&self) -> Bytes {
        let mut cached = self.metrics.borrow_mut();
        match cached.as_ref() {
            Some((at, text)) if at.elapsed() < METRICS_FOR => text.clone(),
            _ => {
                let text = Bytes::from(self.live.borrow().metrics());
                *cached = Some((Instant::now(), text.clone()));
                text
            }
        }
    }

    /// Id of the run.
    pub fn run_id(&self) -> String {
        self.live.borrow().run_id().to_owned()
    }

    /// Forwards a request to stop.
    pub fn ask_to_stop(&self, who: String) {
        // Fails only if the run has ended.
        let _ = self.stop.send(who);
    }

    /// Returns true if no more lines will follow.
    pub fn has_ended(&self) -> bool {
        self.live.borrow().state() == LiveState::Ended
    }

    /// Sends the last line to the viewers that still listen.
    pub async fn last_line(&self, within: Duration) {
        if self.line.receiver_count() > 0 {
            self.publish();
            let _ = tokio::time::timeout(within, self.line.closed()).await;
            // Leaves time to send the last bytes.
            tokio::time::sleep(SENT_WITHIN).await;
        }
    }
}
