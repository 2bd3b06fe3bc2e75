//! The run's target: the user's directory or the built-in file system.

use std::path::{Path, PathBuf};

use rbench_core::{Bytes, Rank};
use rbench_exec::Group;
use rbench_plan::Plan;
use rbench_sys::limits::available_memory;

use crate::embedded::Embedded;
use crate::launch::Launch;
use crate::refusal::Refusal;

/// The directory to test: the user's, or this host's built-in file system. Dropping the second
/// value unmounts it.
pub async fn directory(
    group: &Group<'_>,
    plan: &Plan,
    launch: &Launch,
) -> Result<(PathBuf, Option<Embedded>), Refusal> {
    if !plan.embedded() {
        let dir = plan.first_dir().map_or(Path::new("."), PathBuf::as_path);
        return Ok((Path::new(&launch.cwd).join(dir), None));
    }
    let mounted = if group.is_leader() {
        let here = plan.data_bytes() / u64::from(plan.ranks) * u64::from(group.host.size());
        room_for(here).and_then(Embedded::mount).map(Some)
    } else {
        Ok(None)
    };
    let mounted = group.agree(mounted).await?;
    let path = mounted.as_ref().map(|m| m.path().as_os_str().to_owned());
    let path = group.host.broadcast_value(Rank(0), &path);
    let path = group.quietly(path).await?.unwrap_or_default();
    Ok((PathBuf::from(path), mounted))
}

/// Absolute paths of all directories that the run uses. With the built-in file system, that is
/// `parent`.
pub fn places(plan: &Plan, launch: &Launch, parent: &Path) -> Vec<PathBuf> {
    if plan.embedded() {
        return vec![parent.to_owned()];
    }
    let cwd = Path::new(&launch.cwd);
    plan.places().iter().map(|place| cwd.join(place)).collect()
}

/// Memory for the built-in file system: half of the available memory.
pub fn room_for(data: u64) -> Result<Bytes, String> {
    let half = available_memory().map_or(1 << 30, |all| all.0 / 2);
    if data > half {
        return Err(format!(
            "the run needs {} MiB, but the built-in file system has only {} MiB of memory: give a directory with --dir",
            data >> 20,
            half >> 20
        ));
    }
    Ok(Bytes(half))
}
