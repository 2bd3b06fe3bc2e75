//! A command of the user's that runs beside the measuring, in a process group of its own
//! that does not outlive us.
//!
//! What ends it is in `guarded`.

use std::ffi::OsString;
use std::io::{self, Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::guarded::{Guarded, unblocked};

/// How long it is waited for what a command that has failed said last.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Most of a line that is kept, bytes.
const LINE_MAX: usize = 200;

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEnd {
    /// From its start to its end.
    pub took: Duration,
    /// Its exit status; `None` if a signal ended it, or if it was never started.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// If it failed: the first line on its standard error, or why it could not be started.
    pub said: Option<String>,
}

/// How a command is started.
#[derive(Debug, Clone, Default)]
pub struct Start<'c> {
    /// What `sh -c` gets.
    pub command: &'c str,
    /// Added to the environment.
    pub environment: &'c [(&'static str, OsString)],
    /// Put before each line that it prints.
    pub prefix: String,
}

/// A command that was started. When it is dropped, nothing of its group is left.
#[derive(Debug)]
pub struct Background {
    guarded: Guarded,
    running: Arc<AtomicBool>,
}

impl Background {
    /// Starts `sh -c command` as it is: see [`Background::start_as`].
    ///
    /// # Errors
    /// Why it cannot be started.
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

    /// Starts `sh -c command` and tells of its end in a thread of its own. Its standard
    /// input is empty; what it prints goes to our standard error by way of pipes, so that
    /// what outlives it, because it has left its group, holds nothing of ours open.
    ///
    /// # Errors
    /// Why it cannot be started.
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
        let mut child = unblocked(&mut Command::new("sh"))
            .args(["-c", start.command])
            .envs(start.environment.iter().map(|(name, value)| (name, value)))
            .process_group(background.guarded.group().as_raw())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (sender, first_line) = channel();
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let (here, there) = (start.prefix.clone(), start.prefix.clone());
        in_thread(move || relay(output, &here, None))?;
        in_thread(move || relay(errors, &there, Some(&sender)))?;
        in_thread(move || {
            let end = wait(&mut child, began, &first_line);
            running.store(false, Ordering::Release);
            when_ended(end);
        })?;
        Ok(background)
    }

    /// Whether the command itself has not ended.
    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    /// Whether anything of its group is left.
    pub fn has_processes(&self) -> bool {
        let any = self.guarded.has_processes();
        any.unwrap_or_else(|| self.is_running())
    }

    /// Asks all of its group to end (SIGTERM).
    pub fn ask_to_end(&self) {
        self.guarded.ask_to_end();
    }
}

fn in_thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("rbench-event".to_owned());
    thread.spawn(work).map(drop)
}

fn wait(child: &mut Child, began: Instant, first_line: &Receiver<String>) -> CommandEnd {
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

/// Passes on what comes to our standard error, with `prefix` before each line, and tells of
/// the first line that is not empty.
fn relay(from: Option<impl Read>, prefix: &str, mut first_line: Option<&Sender<String>>) {
    let Some(mut from) = from else {
        return;
    };
    let (mut buffer, mut line) = ([0; 4096], Vec::new());
    let mut begun = false;
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let bytes = &buffer[..length];
        // A standard error that is closed is no reason to hold the command up.
        let _ = io::stderr().write_all(&prefixed(bytes, prefix, &mut begun));
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

/// `bytes` with `prefix` before each line; `begun`: whether the last line has begun before, and
/// is not over.
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

/// Tells of the first line of `text` that is not empty, if it is whole; whether it did.
fn tell(text: &mut Vec<u8>, over: bool, to: &Sender<String>) -> bool {
    let begin = text.iter().position(|byte| !byte.is_ascii_whitespace());
    text.drain(..begin.unwrap_or(text.len()));
    let end = text.iter().position(|byte| *byte == b'\n');
    let over = over || text.len() >= LINE_MAX;
    match end.or((over && !text.is_empty()).then_some(text.len())) {
        Some(end) => {
            let line = String::from_utf8_lossy(&text[..end.min(LINE_MAX)]);
            // Nobody may wait for it.
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
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < PATIENCE, "{what}");
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
        let mut begun = false;
        let mut all = Vec::new();
        for part in ["a", "b\nc\n\nd", "e", "\n", "f"] {
            all.extend(prefixed(part.as_bytes(), "h: ", &mut begun));
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
            let entries = fs::read_dir("/proc").expect("/proc").flatten();
            let numbers = entries.filter_map(|e| e.file_name().to_str()?.parse().ok());
            numbers.filter(|number: &u32| group_of(*number) == Some(group))
        };
        let sleeps = |number: u32| {
            let name = fs::read_to_string(format!("/proc/{number}/comm"));
            name.is_ok_and(|name| name.trim() == "sleep")
        };
        // Before that the shell may not have come to its trap.
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
        // As when we are killed.
        background.guarded.leave_to_the_guard();
        let end = ended.recv_timeout(PATIENCE).expect("it ends");
        assert_eq!(end.signal, Some(15));
        wait_until("nothing is left", || !background.has_processes());
    }
}
