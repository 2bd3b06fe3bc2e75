//! Sentences on outputs that could not be written.

use crate::console::complain;
use crate::exit::{FAILED, SUCCESS};

/// Prints them, if there are any; returns the exit code.
pub fn tell(trouble: Option<&str>) -> u8 {
    let Some(all) = trouble else {
        return SUCCESS;
    };
    all.lines().for_each(complain);
    FAILED
}

/// Adds a sentence on an output that failed to those that there are, each on a line of its own.
pub fn note_trouble(all: &mut Option<String>, message: String) {
    match all {
        Some(all) if all.lines().any(|line| line == message) => {}
        Some(all) => {
            all.push('\n');
            all.push_str(&message);
        }
        None => *all = Some(message),
    }
}

/// One sentence for each that failed.
///
/// # Errors
/// All of them, each on a line of its own.
pub fn all_of(results: impl IntoIterator<Item = Result<(), String>>) -> Result<(), String> {
    let mut all = None;
    for message in results.into_iter().filter_map(Result::err) {
        note_trouble(&mut all, message);
    }
    all.map_or(Ok(()), Err)
}
