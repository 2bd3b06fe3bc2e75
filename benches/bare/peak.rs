//! Measures the peak memory of a command. This program is small, because a process inherits the
//! peak of its parent.

use std::process::{Command, ExitCode};

use nix::sys::resource::{UsageWho, getrusage};

use crate::Failed;

/// Runs the command, and writes its peak resident memory in bytes to `out`, with the number of this
/// MPI rank appended (0 without MPI).
pub fn run(out: &str, command: &str, words: &[&str]) -> Result<ExitCode, Failed> {
    let status = Command::new(command)
        .args(words)
        .status()
        .map_err(|error| format!("{command}: {error}"))?;
    let rank = ["OMPI_COMM_WORLD_RANK", "PMI_RANK"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok())
        .unwrap_or_else(|| "0".to_owned());
    let peak_kib = getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss();
    std::fs::write(format!("{out}.{rank}"), (peak_kib * 1024).to_string())?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
