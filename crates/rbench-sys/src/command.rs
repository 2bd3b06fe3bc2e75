//! Running the user's command, around a phase. What it does is the user's
//! business; what it prints must not get among the results.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use nix::libc;
use nix::sys::signal::{SigSet, Signal};

/// Runs `sh -c command` and waits for its end. Its standard input is empty,
/// its standard output goes to our standard error.
///
/// # Errors
/// A sentence that names the command: when it cannot be started, exits with
/// another status than 0, or is ended by a signal.
pub fn run(command: &str) -> Result<(), String> {
    let stderr = io::stderr().as_fd().try_clone_to_owned();
    ended(
        command,
        stderr.and_then(|fd| status(Path::new("."), command, fd.into(), Stdio::inherit())),
    )
}

/// The same in the directory `place`; what it prints goes to the end of the
/// file `output`.
///
/// # Errors
/// As [`run`].
pub fn run_in(place: &Path, command: &str, output: &Path) -> Result<(), String> {
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
    let errors = output.try_clone();
    ended(
        command,
        errors.and_then(|errors| status(place, command, output.into(), errors.into())),
    )
}

/// The command, for which no signal is blocked: a thread of ours may have some blocked, which
/// programs would inherit.
pub fn unblocked(command: &mut Command) -> &mut Command {
    let unblock = || SigSet::empty().thread_set_mask().map_err(io::Error::from);
    // SAFETY: between fork and exec only sigprocmask is called, which may be called there.
    unsafe { command.pre_exec(unblock) }
}

fn ended(command: &str, status: io::Result<ExitStatus>) -> Result<(), String> {
    let status =
        status.map_err(|error| format!("the command '{command}' cannot be run: {error}"))?;
    match ending(status) {
        None => Ok(()),
        Some(ending) => Err(format!("the command '{command}' {ending}")),
    }
}

fn status(place: &Path, command: &str, output: Stdio, errors: Stdio) -> io::Result<ExitStatus> {
    unblocked(&mut Command::new("sh"))
        .args(["-c", command])
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
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
