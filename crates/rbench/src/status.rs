//! The stonewall's status file for later runs: a number of items, and a line that says who wrote
//! the file.

use std::path::Path;

use rbench_comm::Communicator;
use rbench_core::Rank;

use crate::files;
use crate::refusal::Refusal;

/// The content of the file of `option`, read by rank 0 for all; `None` if it does not exist.
///
/// # Errors
/// If it cannot be read or the ranks cannot communicate.
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

/// Checks that the file can be written: it does not exist, or is a status file of rbench.
///
/// # Errors
/// One sentence that names option and file.
pub fn check(option: &str, path: &Path) -> Result<(), String> {
    let place = files::find(path, is_status);
    place
        .map(drop)
        .map_err(|why| format!("{option} {} {why}", path.display()))
}

/// Writes the file in one step.
///
/// # Errors
/// One sentence that names option and file.
pub fn write(option: &str, path: &Path, items: u64) -> Result<(), String> {
    let written = files::write_over(path, is_status, |file| write!(file, "{items}\n{SIGNED}"));
    written
        .and_then(|written| written.moved.map_or(Ok(()), Err))
        .map_err(|why| format!("{option} {} {why}", path.display()))
}

/// The line after the number. mdtest and IOR write the number only, but a file with a number could
/// belong to anyone.
const SIGNED: &str = "# items of each rank, written by rbench\n";

/// Returns true if a file is a status file of rbench.
fn is_status(content: &[u8]) -> bool {
    let text = std::str::from_utf8(content).unwrap_or_default();
    let number = text.strip_suffix(SIGNED);
    number.is_some_and(|number| number.trim_end().parse::<u64>().is_ok())
}
