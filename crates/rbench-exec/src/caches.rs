//! Ranks that share a cache: those of one kernel that work on the same file system, on however many
//! hosts (containers) they are.

use std::path::PathBuf;

use rbench_comm::sharing;
use rbench_sys::identity::file_system;

use crate::group::{ExecError, Group};

/// Returns the number of each rank's cache, the same on every rank, for a run that works in `dirs`;
/// `kernel` identifies this rank's kernel. Ranks of a host share a cache if nothing is known.
pub async fn caches(
    group: &Group<'_>,
    kernel: &str,
    dirs: Vec<PathBuf>,
) -> Result<Vec<u32>, ExecError> {
    // Errors are reported later, by the code that needs the directory.
    let look = move || dirs.iter().flat_map(|dir| file_system(dir)).collect();
    let found = group.on_target(look, || 0).await?;
    let mut keys: Vec<String> = found.unwrap_or_default();
    keys.sort_unstable();
    keys.dedup();
    for key in &mut keys {
        *key = format!("{kernel} {key}");
    }
    if keys.is_empty() {
        keys.push(format!("host {}", group.host_number()));
    }
    group.quietly(sharing(group.world, &keys)).await
}

/// Drops the kernel's caches, by one rank on each host.
///
/// # Errors
/// One sentence, the same on every rank.
pub async fn drop_caches(group: &Group<'_>) -> Result<(), ExecError> {
    group.step("dropping caches");
    let dropped = match group.is_leader() {
        // It waits until the host's data is written.
        true => group.on_host(rbench_sys::caches::drop_caches).await?,
        false => Ok(Ok(())),
    };
    let dropped = dropped.and_then(|dropped| dropped.map_err(|e| e.to_string()));
    group.agree_on_calls(dropped).await
}
