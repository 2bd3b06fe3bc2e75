//! A run that is watched while it goes on (`--serve`, `--progress live`): a thread of its own
//! at rank 0 keeps what is known and shows it, so that nobody who looks holds up the control
//! plane. The control plane only tells it what has changed.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rbench_cli::Progress;
use rbench_cli::live::{Serve, ServeAt};
use rbench_comm::Communicator;
use rbench_report::live::Live;
use rbench_report::schema::LiveState;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::console::complain;
use crate::refusal::{Refusal, checked_at_root};

mod answers;
mod feed;
mod keeper;
mod known;
mod listener;
mod peer;
mod terminal;
mod view;
mod watch;

pub use feed::{interval_of, progress};
pub use watch::watch;

use listener::{Listener, SocketFile};

/// Time for which the end of a run waits until observers have heard of it, and for the terminal.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// Messages of the control plane to the thread.
enum News {
    /// Something has changed.
    Change(Box<dyn FnOnce(&mut Live) + Send>),
    /// The view takes the terminal.
    Show,
    /// The view leaves the terminal; who waits for that.
    Hide(std::sync::mpsc::Sender<()>),
}

/// The way to the thread; without one nothing is reported.
#[derive(Clone, Default)]
pub struct Feed {
    news: Option<UnboundedSender<News>>,
    /// The view was left with `q`; `None`: there is no view.
    left: Option<Arc<AtomicBool>>,
}

impl Feed {
    /// Reports a change, which is made in the thread.
    pub fn tell(&self, change: impl FnOnce(&mut Live) + Send + 'static) {
        self.send(|| News::Change(Box::new(change)));
    }

    /// The view takes the terminal, if there is one that was not left.
    pub fn show(&self) {
        if self.has_view() {
            self.send(|| News::Show);
        }
    }

    /// The view leaves the terminal, which is as it was before when this returns.
    pub fn hide(&self) {
        let (done, wait) = std::sync::mpsc::channel();
        if self.left.is_some() {
            self.send(|| News::Hide(done));
            let _ = wait.recv_timeout(ENDS_WITHIN);
        }
    }

    /// Returns true if there is a view, or was until it was left.
    pub fn is_live(&self) -> bool {
        self.left.is_some()
    }

    /// Returns true if there is a view that was not left.
    pub fn has_view(&self) -> bool {
        let left = |left: &Arc<AtomicBool>| left.load(Ordering::Relaxed);
        self.left.as_ref().is_some_and(|view| !left(view))
    }

    /// Returns the same way, if it leads to the thread.
    pub fn if_heard(&self) -> Option<Feed> {
        self.news.is_some().then(|| self.clone())
    }

    fn send(&self, news: impl FnOnce() -> News) {
        if let Some(sender) = &self.news {
            // Without the thread nobody looks.
            let _ = sender.send(news());
        }
    }
}

/// The thread, at rank 0; at others, and where nobody may look, nothing.
#[derive(Default)]
pub struct Watched {
    feed: Feed,
    thread: Option<JoinHandle<()>>,
}

/// The name of the socket of `--serve`, here so that nothing is left of it when a second
/// signal ends the program at once.
static SOCKET: Mutex<Option<SocketFile>> = Mutex::new(None);

fn close_socket() {
    let mut socket = SOCKET.lock().unwrap_or_else(PoisonError::into_inner);
    drop(socket.take());
}

/// Gives back the terminal and the socket, for who ends the program at once.
pub fn leave() {
    terminal::restore();
    close_socket();
}

/// A stop that somebody who watches has asked for: who.
pub type Stops = UnboundedReceiver<String>;

impl Watched {
    /// Opens the address and starts the thread, all before anything is made; every rank
    /// calls this. With it comes who asks for a stop.
    ///
    /// # Errors
    /// When the address cannot be served at or there is no terminal, the same on every rank.
    pub async fn open(
        comm: &dyn Communicator,
        serve: &Serve,
        progress: Progress,
        quiet: bool,
    ) -> Result<(Watched, Option<Stops>), Refusal> {
        let live = progress == Progress::Live;
        if serve.at.is_none() && !live {
            return Ok((Watched::default(), None));
        }
        let mut begun = None;
        let begin = || begin(serve, live, comm.size(), quiet).map(|new| begun = Some(new));
        checked_at_root(comm, begin).await?;
        let (watched, stops) = begun.unzip();
        Ok((watched.unwrap_or_default(), stops))
    }

    /// The way to the thread.
    pub fn feed(&self) -> Feed {
        self.feed.clone()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.feed.hide();
        self.feed.tell(|live| live.turn(LiveState::Ended));
        if let Some(thread) = self.thread.take() {
            // It ends by itself, soon.
            let _ = thread.join();
        }
        close_socket();
    }
}

/// Starts the live view and the listener of rank 0 of `ranks`.
fn begin(serve: &Serve, live: bool, ranks: u32, quiet: bool) -> Result<(Watched, Stops), String> {
    if live {
        check_terminal(ranks)?;
    }
    let listener = match &serve.at {
        Some(at) => {
            let (listener, socket) = Listener::open(at, serve.remote)?;
            *SOCKET.lock().unwrap_or_else(PoisonError::into_inner) = socket;
            tell_address(at, &listener, serve, quiet);
            Some(listener)
        }
        None => None,
    };
    let (news, hears) = unbounded_channel();
    let (stop, stops) = unbounded_channel();
    let left = live.then(Arc::<AtomicBool>::default);
    let keeper = keeper::Keeper {
        news: hears,
        stop,
        listener,
        left: left.clone(),
        ends_within: ENDS_WITHIN,
    };
    let thread = std::thread::Builder::new()
        .name("rbench-watched".to_owned())
        .spawn(move || keeper.run())
        .map_err(|e| {
            close_socket();
            format!("the thread of --serve cannot be started: {e}")
        })?;
    let watched = Watched {
        feed: Feed {
            news: Some(news),
            left,
        },
        thread: Some(thread),
    };
    Ok((watched, stops))
}

fn check_terminal(ranks: u32) -> Result<(), String> {
    if ranks > 1 {
        return Err(
            "--progress live works only with one process: under mpirun use --serve 127.0.0.1:0, and rbench watch in \
             another terminal"
                .to_owned(),
        );
    }
    if !std::io::stderr().is_terminal() || !terminal::has_keys() {
        return Err(
            "--progress live needs a terminal on standard error: use --progress plain, or --serve and rbench watch"
                .to_owned(),
        );
    }
    Ok(())
}

/// Says where to look, and who can.
fn tell_address(at: &ServeAt, listener: &Listener, serve: &Serve, quiet: bool) {
    let any = matches!(at, ServeAt::Tcp(address) if address.port() == 0);
    if any || !quiet {
        complain(&format!("to watch this run: rbench watch {listener}"));
    }
    if serve.remote && listener.is_remote() {
        complain(&format!(
            "--serve-remote: anyone who can reach {listener} sees the command line, paths and host names of this run"
        ));
    }
}
