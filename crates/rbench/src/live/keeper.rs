//! The thread that keeps a run's live state: it receives changes from the control plane, answers
//! connections, and draws the view of `--progress live`.

use std::io::Stderr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, MissedTickBehavior};

use super::News;
use super::answers;
use super::known::Known;
use super::listener::Listener;
use super::terminal::{Key, Keys, Screen};
use super::view::Question;

/// Update interval of views and streams.
const SHOWN_EVERY: Duration = Duration::from_millis(500);

/// Time limit for the second key of a stop (`s`, then `y`).
const ASKS_FOR: Duration = Duration::from_secs(5);

/// Initial state of the thread.
pub struct Keeper {
    /// Messages of the control plane.
    pub news: UnboundedReceiver<News>,
    /// Receives requests to stop.
    pub stop: UnboundedSender<String>,
    /// The listener of `--serve`.
    pub listener: Option<Listener>,
    /// Set when the user leaves the view; `None` without a view.
    pub left: Option<Arc<AtomicBool>>,
    /// Time limit for viewers to receive the last line.
    pub ends_within: Duration,
}

impl Keeper {
    /// Runs until the run has ended.
    pub fn run(self) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        // Without a runtime there are no viewers; the run goes on.
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
        known.last_line(self.ends_within).await;
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
    /// Start of the question whether to stop the run.
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
            // Falls back to plain lines.
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
                // The run's own handler handles it.
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
        // Errors of the terminal do not stop the run.
        let _ = screen.draw(&known.snapshot(), question);
    }
}
