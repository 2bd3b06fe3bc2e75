//! The thread that keeps what is known of the run: it takes news of the control plane, answers
//! whoever connects, and draws the view of `--progress live`.

use std::cell::{Cell, RefCell};
use std::io::Stderr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::body::Bytes;
use rbench_report::live::Live;
use rbench_report::schema::{LiveResult, LiveState};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

use super::News;
use super::answers;
use super::listener::Listener;
use super::terminal::{Key, Keys, Screen};
use super::view::Question;

/// How often those who look see something new.
const SHOWN_EVERY: Duration = Duration::from_millis(500);

/// So often a line is sent even if nothing is new: whoever watches knows that we are there.
const ALIVE_EVERY: Duration = Duration::from_millis(900);

/// Metrics are made anew when they are older.
const METRICS_FOR: Duration = Duration::from_millis(500);

/// How long the last line may take from here to the connection.
const SENT_WITHIN: Duration = Duration::from_millis(50);

/// How long `s` waits for its second key.
const ASKS_FOR: Duration = Duration::from_secs(5);

/// What the thread begins with.
pub struct Keeper {
    /// What the control plane tells.
    pub news: UnboundedReceiver<News>,
    /// Who asks for a stop.
    pub stop: UnboundedSender<String>,
    /// Where it listens, if anywhere.
    pub listener: Option<Listener>,
    /// Raised when the view is left; `None`: there is none.
    pub left: Option<Arc<AtomicBool>>,
    /// How long those who watch have to hear of the end.
    pub ends_within: Duration,
}

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
    fn new(stop: UnboundedSender<String>) -> Known {
        Known {
            live: RefCell::default(),
            news: Cell::new(false),
            published: Cell::new(Instant::now()),
            line: watch::Sender::new(Bytes::new()),
            metrics: RefCell::new(None),
            stop,
        }
    }

    fn change(&self, change: impl FnOnce(&mut Live)) {
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

    fn publish(&self) {
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
}

impl Keeper {
    /// Goes on until the run has ended.
    pub fn run(self) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        // Without it nobody can look; the run goes on.
        if let Ok(runtime) = runtime {
            tokio::task::LocalSet::new().block_on(&runtime, self.keep());
        }
    }

    async fn keep(mut self) {
        let known = Rc::new(Known::new(self.stop));
        if let Some(listener) = self.listener.take() {
            tokio::task::spawn_local(answers::serve(listener, Rc::clone(&known)));
        }
        let mut view = self.left.map(View::new);
        let mut tick = tokio::time::interval(SHOWN_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !known.has_ended() {
            tokio::select! {
                news = self.news.recv() => match news {
                    Some(News::Change(change)) => known.change(change),
                    Some(News::Show) => view.iter_mut().for_each(|view| view.show()),
                    Some(News::Hide(done)) => {
                        view.iter_mut().for_each(View::hide);
                        let _ = done.send(());
                    }
                    None => break,
                },
                key = key(&mut view) => {
                    view.iter_mut().for_each(|view| view.key(key, &known));
                }
                _ = tick.tick() => known.publish(),
            }
            view.iter_mut().for_each(|view| view.draw(&known));
        }
        drop(view);
        last_line(&known, self.ends_within).await;
    }
}

/// Those who watch hear of the end, as far as they listen.
async fn last_line(known: &Known, within: Duration) {
    if known.line.receiver_count() > 0 {
        known.publish();
        let _ = tokio::time::timeout(within, known.line.closed()).await;
        // The last bytes are on their way.
        tokio::time::sleep(SENT_WITHIN).await;
    }
}

/// The next key of the view; never ready without one.
async fn key(view: &mut Option<View>) -> Key {
    match view.as_mut().and_then(|view| view.keys.as_mut()) {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

/// The view of `--progress live`.
struct View {
    screen: Option<Screen<Stderr>>,
    keys: Option<Keys>,
    left: Arc<AtomicBool>,
    drawn: Option<Instant>,
    /// Since when it asks whether the run is to be stopped.
    asks: Option<Instant>,
}

impl View {
    fn new(left: Arc<AtomicBool>) -> View {
        View {
            screen: None,
            keys: None,
            left,
            drawn: None,
            asks: None,
        }
    }

    fn show(&mut self) {
        if self.screen.is_some() || self.left.load(Ordering::Relaxed) {
            return;
        }
        match Screen::enter(std::io::stderr(), true) {
            Ok(screen) => {
                self.screen = Some(screen);
                self.keys = Some(Keys::read());
            }
            // Plain lines then.
            Err(_) => self.left.store(true, Ordering::Relaxed),
        }
        self.drawn = None;
    }

    fn hide(&mut self) {
        self.keys = None;
        self.screen = None;
    }

    fn key(&mut self, key: Key, known: &Known) {
        self.drawn = None;
        match key {
            Key::Leave => {
                self.left.store(true, Ordering::Relaxed);
                self.hide();
            }
            Key::Stop => self.asks = Some(Instant::now()),
            Key::Yes if self.asks.take().is_some() => {
                known.ask_to_stop("the view of --progress live (key s)".to_owned());
            }
            Key::Interrupt => {
                // The run's own handler takes it.
                let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGINT);
            }
            Key::Yes | Key::Other => self.asks = None,
            Key::Resized => {}
        }
    }

    fn draw(&mut self, known: &Known) {
        if self.asks.is_some_and(|since| since.elapsed() > ASKS_FOR) {
            self.asks = None;
        }
        let due = self
            .drawn
            .is_none_or(|drawn| drawn.elapsed() >= SHOWN_EVERY);
        let Some(screen) = self.screen.as_mut().filter(|_| due) else {
            return;
        };
        self.drawn = Some(Instant::now());
        let question = match self.asks {
            Some(_) => Question::Stop,
            None => Question::None,
        };
        // Whatever is wrong with the terminal, the run goes on.
        let _ = screen.draw(&known.snapshot(), question);
    }
}
