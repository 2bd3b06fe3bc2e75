//! A user's command that runs beside the measurement, in a process group of its own that does
//! not outlive this process.
//!
//! `guarded` ends it.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::guarded::Guarded;
use crate::shell::{Process, Shell};

/// Time to wait for the last output of a failed command.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Most bytes of a line that are kept.
const LINE_MAX: usize = 200;

/// End of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEnd {
    /// Time from its start to its end.
    pub took: Duration,
    /// Its exit status; `None` if a signal ended it, or if it was never started.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The first line on its standard error if it failed, or the reason why it could not be
    /// started.
    pub said: Option<String>,
}

/// Options for the start of a command.
#[derive(Debug, Clone, Default)]
pub struct Start<'c> {
    /// The command for `sh -c`.
    pub command: &'c str,
    /// Additions to the environment.
    pub environment: &'c [(&'static str, OsString)],
    /// Prefix of each line that it prints.
    pub prefix: String,
}

/// A started command. Dropping it ends its whole process group.
#[derive(Debug)]
pub struct Background {
    guarded: Guarded,
    running: Arc<AtomicBool>,
}

impl Background {
    /// Starts `sh -c command` without further options: see [`Background::start_as`].
    ///
    /// # Errors
    /// The reason why it cannot be started.
    pub fn start(
        command: &str,
        when_ended: impl FnOnce(CommandEnd) + Send + 'static,
    ) -> io::Result<Background> {
        let start = Start {
            command,
            ..Start::default()
        };
        Background::start_as(&start, when_ended)
    }

    /// Starts `sh -c command`, and reports its end in a separate thread. Its standard input is
    /// empty. Its output goes through pipes to the standard error of this process. So a process
    /// that has left its group keeps nothing of this process open.
    ///
    /// # Errors
    /// The reason why it cannot be started.
    pub fn start_as(
        start: &Start<'_>,
        when_ended: impl FnOnce(CommandEnd) + Send + 'static,
    ) -> io::Result<Background> {
        let guarded = Guarded::new()?;
        let running = Arc::new(AtomicBool::new(true));
        let background = Background {
            guarded,
            running: Arc::clone(&running),
        };
        let began = Instant::now();
        let command = CString::new(start.command)?;
        let ((output, to_output), (errors, to_errors)) = (io::pipe()?, io::pipe()?);
        let empty = File::open("/dev/null")?;
        let shell = Shell {
            words: &[&command],
            environment: start.environment,
            group: Some(background.guarded.group()),
            streams: [empty.as_fd(), to_output.as_fd(), to_errors.as_fd()],
        };
        let child = shell.start()?;
        // The relays end with the last process that can write.
        drop((to_output, to_errors));
        let (sender, first_line) = channel();
        let (here, there) = (start.prefix.clone(), start.prefix.clone());
        in_thread(move || relay(output, &here, None))?;
        in_thread(move || relay(errors, &there, Some(&sender)))?;
        in_thread(move || {
            let end = wait(&child, began, &first_line);
            running.store(false, Ordering::Release);
            when_ended(end);
        })?;
        Ok(background)
    }

    /// True while the command itself runs.
    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    /// True if its process group is not empty.
    pub fn has_processes(&self) -> bool {
        let any = self.guarded.has_processes();
        any.unwrap_or_else(|| self.is_running())
    }

    /// Asks its process group to end (SIGTERM).
    pub fn ask_to_end(&self) {
        self.guarded.ask_to_end();
    }
}

fn in_thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("rbench-event".to_owned());
    thread.spawn(work).map(drop)
}

fn wait(child: &Process, began: Instant, first_line: &Receiver<String>) -> CommandEnd {
    let status = child.wait();
    let took = began.elapsed();
    let failed = !status.as_ref().is_ok_and(ExitStatus::success);
    CommandEnd {
        took,
        status: status.as_ref().ok().and_then(ExitStatus::code),
        signal: status.as_ref().ok().and_then(ExitStatusExt::signal),
        said: match status {
            Err(error) => Some(error.to_string()),
            Ok(_) if failed => first_line.recv_timeout(LAST_WORDS).ok(),
            Ok(_) => None,
        },
    }
}

/// Forwards data to standard error, with `prefix` before each line, and sends the first
/// non-empty line.
fn relay(mut from: impl Read, prefix: &str, mut first_line: Option<&Sender<String>>) {
    let (mut buffer, mut line) = ([0; 4096], Vec::new());
    let mut is_in_line = false;
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let bytes = &buffer[..length];
        // A closed standard error must not block the command.
        let _ = io::stderr().write_all(&prefixed(bytes, prefix, &mut is_in_line));
        if let Some(sender) = first_line {
            line.extend_from_slice(bytes);
            if tell(&mut line, false, sender) {
                first_line = None;
            }
        }
    }
    if let Some(sender) = first_line {
        tell(&mut line, true, sender);
    }
}

/// Puts `prefix` before each line of `bytes`. `begun` is true if the last line is incomplete.
fn prefixed(bytes: &[u8], prefix: &str, begun: &mut bool) -> Vec<u8> {
    let mut all = Vec::with_capacity(bytes.len() + prefix.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if !std::mem::replace(begun, !line.ends_with(b"\n")) {
            all.extend_from_slice(prefix.as_bytes());
        }
        all.extend_from_slice(line);
    }
    all
}

/// Sends the first non-empty line of `text` if it is complete. Returns true if it did.
fn tell(text: &mut Vec<u8>, over: bool, to: &Sender<String>) -> bool {
    let begin = text.iter().position(|byte| !byte.is_ascii_whitespace());
    text.drain(..begin.unwrap_or(text.len()));
    let end = text.iter().position(|byte| *byte == b'\n');
    let over = over || text.len() >= LINE_MAX;
    match end.or((over && !text.is_empty()).then_some(text.len())) {
        Some(end) => {
            let line = String::from_utf8_lossy(&text[..end.min(LINE_MAX)]);
            // The receiver may be gone.
            let _ = to.send(line.trim_end().to_owned());
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::guarded::group_of;

    const PATIENCE: Duration = Duration::from_secs(300);

    fn start(command: &str) -> (Background, Receiver<CommandEnd>) {
        let (sender, ended) = channel();
        let tell = move |end| drop(sender.send(end));
        (Background::start(command, tell).expect("sh"), ended)
    }

    fn wait_until(what: &str, holds: impl Fn() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < PATIENCE, "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn it_tells_how_the_command_ended() {
        let (background, ended) =
            start("sleep 0.2; echo; echo no such thing >&2; echo 2nd >&2; exit 3");
        let end = ended.recv_timeout(PATIENCE).expect("it ends");
        assert_eq!((end.status, end.signal), (Some(3), None));
        assert_eq!(end.said.as_deref(), Some("no such thing"));
        assert!(end.took >= Duration::from_millis(200));
        assert!(!background.is_running());
        let (_background, ended) = start("echo warning >&2");
        let end = ended.recv_timeout(PATIENCE).expect("it ends");
        assert_eq!((end.status, end.said), (Some(0), None));
        let (_background, ended) = start("kill -9 $$");
        let end = ended.recv_timeout(PATIENCE).expect("it ends");
        assert_eq!((end.status, end.signal), (None, Some(9)));
    }

    #[test]
    fn each_line_has_the_prefix_however_it_comes() {
        let mut is_in_line = false;
        let mut all = Vec::new();
        for part in ["a", "b\nc\n\nd", "e", "\n", "f"] {
            all.extend(prefixed(part.as_bytes(), "h: ", &mut is_in_line));
        }
        assert_eq!(all, b"h: ab\nh: c\nh: \nh: de\nh: f");
        let all = prefixed(b"a\nb", "", &mut false);
        assert_eq!(all, b"a\nb");
    }

    #[test]
    fn what_is_added_to_the_environment_reaches_the_command() {
        let (sender, ended) = channel();
        let start = Start {
            command: "test \"$RBENCH_PHASE\" = 'a b'",
            environment: &[("RBENCH_PHASE", "a b".into())],
            ..Start::default()
        };
        let tell = move |end| drop(sender.send(end));
        let _background = Background::start_as(&start, tell).expect("sh");
        let end = ended.recv_timeout(PATIENCE).expect("it ends");
        assert_eq!(end.status, Some(0));
    }

    #[test]
    fn nothing_of_its_group_outlives_it() {
        let (background, ended) = start("trap '' TERM; sleep 1000 & sleep 1000");
        let group = background.guarded.group().as_raw() as u32;
        let of_group = || {
            let numbers = crate::proc::numbers("/proc");
            numbers.filter(|number| group_of(*number) == Some(group))
        };
        let sleeps = |number: u32| {
            let name = fs::read_to_string(format!("/proc/{number}/comm"));
            name.is_ok_and(|name| name.trim() == "sleep")
        };
        // Before that, the shell may not have set its trap.
        wait_until("it runs", || of_group().any(sleeps));
        background.ask_to_end();
        assert!(background.is_running(), "it does not listen");
        drop(background);
        let end = ended.recv_timeout(PATIENCE).expect("it ends");
        assert_eq!(end.signal, Some(9));
        wait_until("nothing is left", || of_group().next().is_none());
    }

    #[test]
    fn what_listens_ends_by_itself() {
        let (background, ended) = start("sleep 1000 & echo started; exit 0");
        ended.recv_timeout(PATIENCE).expect("it ends");
        wait_until("the sleep is there", || background.has_processes());
        background.ask_to_end();
        wait_until("the sleep has ended", || !background.has_processes());
    }

    #[test]
    fn the_guard_ends_the_group_when_nobody_holds_it() {
        let (mut background, ended) = start("exec sleep 1000");
        // Like when this process is killed.
        background.guarded.leave_to_the_guard();
        let end = ended.recv_timeout(PATIENCE).expect("it ends");
        assert_eq!(end.signal, Some(15));
        wait_until("nothing is left", || !background.has_processes());
    }
}
