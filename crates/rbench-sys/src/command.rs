//! Running the user's command, around a phase. What it does is the user's
//! business; what it prints must not get among the results, and it does not outlive us: what it leaves in the background goes on
//! until we end.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use nix::libc;
use nix::sys::signal::Signal;

use crate::guarded::Guarded;
pub use crate::guarded::unblocked;

/// How often it is looked whether the command is to be ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Runs `sh -c command` and waits for its end. Its standard input is empty,
/// its standard output goes to our standard error. When `stopped`, it is ended (SIGTERM, and
/// SIGKILL 2 s later).
///
/// # Errors
/// A sentence that names the command: when it cannot be started, exits with
/// another status than 0, or is ended by a signal.
pub fn run(command: &str, stopped: &dyn Fn() -> bool) -> Result<(), String> {
    let mut shell = Command::new("sh");
    let stderr = io::stderr().as_fd().try_clone_to_owned();
    let done = stderr.and_then(|fd| status(shell.stdout(fd), command, stopped));
    ended(command, done)
}

/// The same in the directory `place`; what it prints goes to the end of the
/// file `output`.
///
/// # Errors
/// As [`run`].
pub fn run_in(
    place: &Path,
    command: &str,
    output: &Path,
    stopped: &dyn Fn() -> bool,
) -> Result<(), String> {
    let mut options = OpenOptions::new();
    // Of the user's files the one that has this name is not known: it is not changed but
    // at its end, and no link is followed.
    options
        .append(true)
        .create(true)
        .custom_flags(libc::O_NOFOLLOW);
    let file = options.open(output);
    let output =
        file.map_err(|error| format!("{} cannot be written: {error}", output.display()))?;
    let mut shell = Command::new("sh");
    let done = output.try_clone().and_then(|errors| {
        let shell = shell.current_dir(place).stdout(output).stderr(errors);
        status(shell, command, stopped)
    });
    ended(command, done)
}

fn ended(command: &str, status: io::Result<ExitStatus>) -> Result<(), String> {
    let status =
        status.map_err(|error| format!("the command '{command}' cannot be run: {error}"))?;
    match ending(status) {
        None => Ok(()),
        Some(ending) => Err(format!("the command '{command}' {ending}")),
    }
}

fn status(
    shell: &mut Command,
    command: &str,
    stopped: &dyn Fn() -> bool,
) -> io::Result<ExitStatus> {
    let mut guarded = Guarded::new()?;
    let mut child = unblocked(shell)
        .args(["-c", command])
        .process_group(guarded.group().as_raw())
        .stdin(Stdio::null())
        .spawn()?;
    let (sender, ended) = channel();
    let wait = move || {
        // It is waited for until it has come.
        let _ = sender.send(child.wait());
    };
    let thread = std::thread::Builder::new().name("rbench-command".to_owned());
    thread.spawn(wait)?;
    let mut asked = false;
    let status = loop {
        match ended.recv_timeout(LOOK_EVERY) {
            Ok(status) => break status?,
            Err(RecvTimeoutError::Timeout) => {
                if !asked && stopped() {
                    asked = true;
                    guarded.end_soon();
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("nobody waits for it"));
            }
        }
    };
    if !asked && guarded.has_processes() == Some(true) {
        // Whatever it has put in the background goes on, but not longer than we do: what the guard waits for is open until then.
        std::mem::forget(guarded);
    }
    Ok(status)
}

/// How it ended, if not well.
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
