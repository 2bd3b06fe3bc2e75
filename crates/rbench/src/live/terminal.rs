//! The terminal: taken for a view and always restored, even if the program aborts.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::termios::{LocalFlags, SetArg, SpecialCharacterIndices, tcgetattr, tcsetattr};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, is_raw_mode_enabled,
};
use rbench_report::schema::LiveResult;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::view::{Question, draw};

/// Poll interval of the thread that reads keys.
const KEYS_FOR: Duration = Duration::from_millis(500);

/// Initial buffer for a frame, bytes.
const FRAME: usize = 64 << 10;

/// Byte value that disables a control character (`_POSIX_VDISABLE` of Linux).
const NO_BYTE: u8 = 0;

/// A terminal that shows a view.
pub struct Screen<W: Write> {
    terminal: Terminal<CrosstermBackend<BufWriter<W>>>,
}

/// A key that was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// `q`
    Leave,
    /// `s`
    Stop,
    /// `y`
    Yes,
    /// Ctrl-C, if the terminal does not turn it into a signal.
    Interrupt,
    /// Any other key.
    Other,
    /// Not a key: the terminal was resized.
    Resized,
}

/// Returns true if keys can be read.
pub fn has_keys() -> bool {
    std::fs::File::options().read(true).open("/dev/tty").is_ok()
}

impl<W: Write> Screen<W> {
    /// Takes the terminal. `signals`: Ctrl-C remains a signal.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn enter(out: W, signals: bool) -> io::Result<Screen<W>> {
        enable_raw_mode()?;
        // A frame is usually one write.
        let mut out = BufWriter::with_capacity(FRAME, out);
        let entered = (|| {
            if signals {
                keep_signals()?;
            }
            give_back_after_panics();
            // Does not query the terminal: some do not answer.
            execute!(out, EnterAlternateScreen, Clear(ClearType::All))?;
            let terminal = Terminal::new(CrosstermBackend::new(out))?;
            Ok(Screen { terminal })
        })();
        if entered.is_err() {
            restore();
        }
        entered
    }

    /// Draws a frame in the terminal's current size.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn draw(&mut self, known: &LiveResult, question: Question) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame, known, question))?;
        Ok(())
    }
}

impl<W: Write> Drop for Screen<W> {
    fn drop(&mut self) {
        let _ = execute!(self.terminal.backend_mut(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// Restores the terminal, if a view has it.
pub fn restore() {
    if is_raw_mode_enabled().unwrap_or(false) {
        let _ = execute!(io::stderr(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

fn give_back_after_panics() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore();
        hook(panic);
    }));
}

/// Keeps Ctrl-C as a signal to the run. Disables Ctrl-Z, which would leave the view on the
/// terminal.
fn keep_signals() -> io::Result<()> {
    let terminal = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/tty")?;
    let mut settings = tcgetattr(&terminal)?;
    settings.local_flags.insert(LocalFlags::ISIG);
    settings.control_chars[SpecialCharacterIndices::VSUSP as usize] = NO_BYTE;
    Ok(tcsetattr(&terminal, SetArg::TCSANOW, &settings)?)
}

/// The keys that are pressed. Dropping it stops reading.
pub struct Keys {
    keys: UnboundedReceiver<Key>,
    unwanted: Arc<AtomicBool>,
}

impl Keys {
    /// Starts a thread that reads keys.
    pub fn read() -> Keys {
        let (sender, keys) = unbounded_channel();
        let unwanted = Arc::new(AtomicBool::new(false));
        let gone = Arc::clone(&unwanted);
        let read = move || {
            while !gone.load(Ordering::Relaxed) {
                let event = match event::poll(KEYS_FOR) {
                    Ok(true) => event::read(),
                    Ok(false) => continue,
                    Err(error) => Err(error),
                };
                let key = event.map(key_of);
                let Ok(key) = key else { break };
                if key.is_some_and(|key| sender.send(key).is_err()) {
                    break;
                }
            }
        };
        // Without the thread there are no keys; Ctrl-C still works as a signal.
        let _ = std::thread::Builder::new()
            .name("rbench-keys".to_owned())
            .spawn(read);
        Keys { keys, unwanted }
    }

    /// The next key; never ready after the last one.
    pub async fn next(&mut self) -> Key {
        match self.keys.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.unwanted.store(true, Ordering::Relaxed);
    }
}

fn key_of(event: Event) -> Option<Key> {
    match event {
        Event::Key(key) if key.kind == KeyEventKind::Release => None,
        Event::Key(key) => Some(match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Key::Interrupt,
            KeyCode::Char('q') => Key::Leave,
            KeyCode::Char('s') => Key::Stop,
            KeyCode::Char('y') => Key::Yes,
            _ => Key::Other,
        }),
        Event::Resize(..) => Some(Key::Resized),
        _ => None,
    }
}
