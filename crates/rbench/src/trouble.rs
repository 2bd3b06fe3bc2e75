//! Messages about outputs that could not be written.

use crate::console::complain;
use crate::exit::{FAILED, SUCCESS};

/// Prints the messages, if any, and returns the exit code.
pub fn tell(trouble: Option<&str>) -> u8 {
    let Some(all) = trouble else {
        return SUCCESS;
    };
    all.lines().for_each(complain);
    FAILED
}

/// Adds the message of a failure, on a line of its own.
pub fn note_trouble(all: &mut Option<String>, result: Result<(), String>) {
    let Err(message) = result else { return };
    match all {
        Some(all) if all.lines().any(|line| line == message) => {}
        Some(all) => {
            all.push('\n');
            all.push_str(&message);
        }
        None => *all = Some(message),
    }
}

/// Collects the messages of all failures.
///
/// # Errors
/// All messages, one per line.
pub fn all_of(results: impl IntoIterator<Item = Result<(), String>>) -> Result<(), String> {
    let mut all = None;
    for result in results {
        note_trouble(&mut all, result);
    }
    all.map_or(Ok(()), Err)
}
