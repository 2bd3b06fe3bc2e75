//! Running the user's command, around a phase. What it does is the user's
//! business; what it prints must not get among the results.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use nix::sys::signal::Signal;

/// Runs `sh -c command` and waits for its end. Its standard input is empty,
/// its standard output goes to our standard error.
///
/// # Errors
/// A sentence that names the command: when it cannot be started, exits with
/// another status than 0, or is ended by a signal.
pub fn run(command: &str) -> Result<(), String> {
    let status = status(command)
        .map_err(|error| format!("the command '{command}' cannot be run: {error}"))?;
    match ending(status) {
        None => Ok(()),
        Some(ending) => Err(format!("the command '{command}' {ending}")),
    }
}

fn status(command: &str) -> io::Result<ExitStatus> {
    let stderr = io::stderr().as_fd().try_clone_to_owned()?;
    Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(stderr)
        .status()
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
