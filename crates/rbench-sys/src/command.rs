//! Runs a user's command around a phase. Its actions are up to the user. But its output must not
//! mix with the results, and it does not outlive this process. Processes that it has left in the
//! background at its end are released.

use std::ffi::{CStr, CString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::signal::Signal;

pub use crate::guarded::unblocked;
use crate::guarded::{Guarded, is_stopped};
use crate::shell::Shell;

/// Interval for checking whether the command must end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// Time after which a stopped command is ended, as nothing else would end it.
const STILL: Duration = Duration::from_secs(5);

/// Result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Time from its start to its end.
    pub took: Duration,
    /// A sentence that names the command, if it could not be started, exited with a status other
    /// than 0, or was ended by a signal.
    pub result: Result<(), String>,
}

/// Runs `sh -c command`, and waits for its end. Its standard input is empty, and it has no
/// terminal. Its standard output goes to the standard error of this process. When `stopped` returns
/// true, it gets SIGTERM, and SIGKILL 2 s later.
pub fn run(command: &str, stopped: &dyn Fn() -> bool) -> Ran {
    let output = io::stderr();
    let words = CString::new(command).map_err(io::Error::from);
    let done = words.and_then(|words| status(&[&words], output.as_fd(), stopped));
    ended(command, done)
}

/// Like [`run`], in the directory `place`; its output is appended to the file `output`.
///
/// # Errors
/// Fails as [`Ran::result`], or if the file cannot be written.
pub fn run_in(
    place: &Path,
    command: &str,
    output: &Path,
    stopped: &dyn Fn() -> bool,
) -> Result<(), String> {
    let mut options = OpenOptions::new();
    // The file may belong to the user: it is only appended to, and no link is followed.
    options
        .append(true)
        .create(true)
        .custom_flags(libc::O_NOFOLLOW);
    let file = options.open(output);
    let output =
        file.map_err(|error| format!("{} cannot be written: {error}", output.display()))?;
    // The shell changes the directory: `posix_spawn` has no portable way.
    let enter = c"cd -- \"$0\" && exec sh -c \"$1\"";
    let (place, text) = (
        CString::new(place.as_os_str().as_bytes()),
        CString::new(command),
    );
    let done = match (place, text) {
        (Ok(place), Ok(text)) => status(&[enter, &place, &text], output.as_fd(), stopped),
        (Err(error), _) | (_, Err(error)) => Err(error.into()),
    };
    ended(command, done).result
}

fn ended(command: &str, ended: io::Result<Ended>) -> Ran {
    let (took, status) = match ended {
        Ok(ended) => ended,
        Err(error) => (Duration::ZERO, Err(error)),
    };
    let result = match status {
        Err(error) => Err(format!("the command '{command}' cannot be run: {error}")),
        Ok(status) => match ending(status) {
            None => Ok(()),
            Some(ending) => Err(format!("the command '{command}' {ending}")),
        },
    };
    Ran { took, result }
}

/// Time from the start to the end of a command, and its status.
type Ended = (Duration, io::Result<ExitStatus>);

/// Runs `words`, a command for `sh -c` and its arguments, with both outputs to `output`.
fn status(
    words: &[&CStr],
    output: BorrowedFd<'_>,
    stopped: &dyn Fn() -> bool,
) -> io::Result<Ended> {
    let guarded = Guarded::new()?;
    let empty = File::open("/dev/null")?;
    let began = Instant::now();
    let shell = Shell {
        words,
        environment: &[],
        group: Some(guarded.group()),
        streams: [empty.as_fd(), output, output],
    };
    let child = shell.start()?;
    let number = child.number().as_raw() as u32;
    let (sender, ended) = channel();
    let wait = move || {
        let status = child.wait();
        // The receiver waits for it.
        let _ = sender.send((began.elapsed(), status));
    };
    let thread = std::thread::Builder::new().name("rbench-command".to_owned());
    thread.spawn(wait)?;
    let (mut asked, mut still_for, mut stood_still) = (None::<Instant>, Duration::ZERO, false);
    let mut ended = loop {
        match ended.recv_timeout(LOOK_EVERY) {
            Ok(ended) => break ended,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("no process waits for it"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        still_for = match is_stopped(number) {
            true => still_for + LOOK_EVERY,
            false => Duration::ZERO,
        };
        match asked {
            None if stopped() => {
                asked = Some(Instant::now());
                guarded.ask_to_end();
            }
            Some(at) if at.elapsed() >= GRACE => guarded.end(),
            _ if still_for >= STILL => {
                stood_still = true;
                guarded.end();
            }
            _ => {}
        }
    };
    // After its end it no longer counts as stopped.
    if stood_still {
        ended.1 = Err(io::Error::other(
            "it was stopped, probably because it reads from the terminal, which is not available to it",
        ));
    }
    match asked {
        // Its child processes may still clean up.
        Some(at) => {
            while guarded.has_processes() == Some(true) && at.elapsed() < GRACE {
                std::thread::sleep(LOOK_EVERY / 5);
            }
        }
        None => guarded.release(),
    }
    Ok(ended)
}

/// The failure of a command, if any.
fn ending(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("failed with exit status {code}")),
        (None, Some(number)) => Some(match Signal::try_from(number) {
            Ok(signal) => format!("was ended by {signal}"),
            Err(_) => format!("was ended by signal {number}"),
        }),
        (None, None) => Some(format!("ended with {status}")),
    }
}
