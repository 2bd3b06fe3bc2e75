//! What is known of the run that is watched, and its forms for those who ask.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use hyper::body::Bytes;
use rbench_report::live::Live;
use rbench_report::schema::{LiveResult, LiveState};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::time::Instant;

/// So often a line is sent even if nothing is new: whoever watches knows that we are there.
const ALIVE_EVERY: Duration = Duration::from_millis(900);

/// Metrics are made anew when they are older.
const METRICS_FOR: Duration = Duration::from_millis(500);

/// How long the last line may take from here to the connection.
const SENT_WITHIN: Duration = Duration::from_millis(50);

/// What is known, for all who ask.
pub struct Known {
    live: RefCell<Live>,
    /// Something has changed since the last line.
    news: Cell<bool>,
    /// When that was made.
    published: Cell<Instant>,
    /// The last line of the stream.
    line: watch::Sender<Bytes>,
    /// The metrics that were made last, and when.
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

    /// What is known now.
    pub fn snapshot(&self) -> LiveResult {
        self.live.borrow().snapshot()
    }

    /// The same as a line of the stream.
    ///
    /// It is not older than half a second, and made after the end of a run that has ended.
    pub fn line(&self) -> Bytes {
        let last = self.line.borrow().clone();
        let fresh = self.published.get().elapsed() < METRICS_FOR;
        match fresh && !last.is_empty() && !self.has_ended() {
            true => last,
            false => self.publish_now(),
        }
    }

    fn made(&self) -> Bytes {
        // The types of the line have nothing that JSON has no form for.
        let mut line = serde_json::to_vec(&self.snapshot()).unwrap_or_default();
        line.push(b'\n');
        Bytes::from(line)
    }

    /// Lines as they come; each takes the place of the one before.
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

    /// The metrics, not older than half a second.
    pub fn metrics(&self) -> Bytes {
        let mut made = self.metrics.borrow_mut();
        match made.as_ref() {
            Some((at, text)) if at.elapsed() < METRICS_FOR => text.clone(),
            _ => {
                let text = Bytes::from(self.live.borrow().metrics());
                *made = Some((Instant::now(), text.clone()));
                text
            }
        }
    }

    /// The run that goes on.
    pub fn run_id(&self) -> String {
        self.live.borrow().run_id().to_owned()
    }

    /// Somebody asks for a stop.
    pub fn ask_to_stop(&self, who: String) {
        // If nobody hears it the run has ended.
        let _ = self.stop.send(who);
    }

    /// Whether nothing more will come.
    pub fn has_ended(&self) -> bool {
        self.live.borrow().state() == LiveState::Ended
    }

    /// Those who watch hear of the end, as far as they listen.
    pub async fn last_line(&self, within: Duration) {
        if self.line.receiver_count() > 0 {
            self.publish();
            let _ = tokio::time::timeout(within, self.line.closed()).await;
            // The last bytes are on their way.
            tokio::time::sleep(SENT_WITHIN).await;
        }
    }
}
