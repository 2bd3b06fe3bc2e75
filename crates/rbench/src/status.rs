//! The file that keeps what a stonewall left each rank with, for a later run: a number, and a line
//! that says whose it is.

use std::path::Path;

use rbench_comm::Communicator;
use rbench_core::Rank;

use crate::files;
use crate::refusal::Refusal;

/// The content of the file that `option` names, read by rank 0 for all; `None` if it
/// does not exist.
///
/// # Errors
/// When it cannot be read, or the ranks cannot communicate.
pub async fn read(
    comm: &dyn Communicator,
    option: &str,
    path: &Path,
) -> Result<Option<u64>, Refusal> {
    let mine = match comm.rank() {
        Rank(0) => content(option, path),
        _ => Ok(None),
    };
    comm.broadcast_value(Rank(0), &mine)
        .await?
        .map_err(Refusal::Failed)
}

fn content(option: &str, path: &Path) -> Result<Option<u64>, String> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(format!("{option} {} cannot be read: {e}", path.display())),
    };
    let number = text.trim_end().strip_suffix(SIGNED.trim_end());
    let items = number
        .unwrap_or(&text)
        .trim()
        .parse()
        .map_err(|_| format!("{option} {}: not a number of items", path.display()))?;
    Ok(Some(items))
}

/// That the file can be written: it is not there, or was written by such a run.
///
/// # Errors
/// One sentence that names option and file.
pub fn check(option: &str, path: &Path) -> Result<(), String> {
    let found = files::find(path, is_status);
    found
        .map(drop)
        .map_err(|why| format!("{option} {} {why}", path.display()))
}

/// Writes it, in one step.
///
/// # Errors
/// One sentence that names option and file.
pub fn write(option: &str, path: &Path, items: u64) -> Result<(), String> {
    let written = files::write_over(path, is_status, |file| write!(file, "{items}\n{SIGNED}"));
    written
        .and_then(|written| written.moved.map_or(Ok(()), Err))
        .map_err(|why| format!("{option} {} {why}", path.display()))
}

/// The line below the number. mdtest and IOR read the number alone, and write nothing else: a file
/// that holds a number may be anybody's.
const SIGNED: &str = "# items of each rank, written by rbench\n";

/// Whether a file is a status file of rbench.
fn is_status(content: &[u8]) -> bool {
    let text = std::str::from_utf8(content).unwrap_or_default();
    let number = text.strip_suffix(SIGNED);
    number.is_some_and(|number| number.trim_end().parse::<u64>().is_ok())
}
