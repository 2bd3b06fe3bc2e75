//! Standard output and standard error of all commands.

use std::io::{IsTerminal as _, Write as _};

use rbench_comm::launcher::first_of_all;
use rbench_core::plain::{for_terminal, plain_lines};

use crate::exit::{FAILED, SUCCESS};

/// Prints one sentence on standard error.
pub fn complain(message: &str) {
    // Names in the message may contain control characters.
    to_stderr(&format!("rbench: {}\n", plain_lines(message)));
}

/// Writes to standard error in one call. Errors (a full disk, a reader that has gone, a closed
/// terminal) do not end a run.
pub fn to_stderr(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Writes to standard output. A reader that has gone (as `head` does) is not a failure.
pub fn print(text: &str) -> u8 {
    let mut out = std::io::stdout().lock();
    // Names in the text may contain control characters; files and programs get them unchanged.
    let text = match out.is_terminal() {
        true => for_terminal(text),
        false => text.into(),
    };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => SUCCESS,
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => SUCCESS,
        Err(e) => {
            complain(&format!(
                "the report cannot be written to standard output: {e}"
            ));
            FAILED
        }
    }
}

/// Prints why a command failed, and returns the exit code.
pub fn fail(code: u8, message: impl AsRef<str>) -> u8 {
    complain(message.as_ref());
    code
}

/// Like `fail`, for processes of a launcher that do not know each other: the first prints the
/// message for all.
pub fn refuse(code: u8, message: impl AsRef<str>) -> u8 {
    match first_of_all(|name| std::env::var(name).ok()) {
        true => fail(code, message),
        false => code,
    }
}
