//! Warnings about targets that are probably a mistake: the host's own disk or memory.

use crate::schema::{RunResult, Warning};

/// Code: the target is on the root file system, where nothing is mounted.
const ROOT: &str = "root-file-system";
/// Code: the files of the target are in memory.
const MEMORY: &str = "target-in-memory";

/// Codes of these warnings.
pub(super) const CODES: [&str; 2] = [ROOT, MEMORY];

/// The warnings about the target.
pub(super) fn warnings(result: &RunResult) -> impl Iterator<Item = Warning> {
    let target = &result.target;
    let path = &target.path;
    let fs_type = target.fs_type.as_deref().unwrap_or("unknown type");
    let root = (target.mount_point.as_deref() == Some("/")).then(|| {
        let message = format!(
            "{path} is on the host's root file system ({fs_type}, mounted at /). If another file system was to be \
             measured, it is not mounted there."
        );
        Warning::new(ROOT, message)
    });
    let in_memory = matches!(fs_type, "tmpfs" | "ramfs");
    // The residency warnings of reads report it.
    let mut asked = result.phases.iter().filter_map(|p| p.residency.as_ref());
    let memory = (in_memory && asked.all(|residency| residency.ground != "memory")).then(|| {
        let message = format!(
            "{path} is in the host's memory ({fs_type}): these are figures of memory, not of storage."
        );
        Warning::new(MEMORY, message)
    });
    let measured = !target.embedded && !result.phases.is_empty();
    root.into_iter().chain(memory).filter(move |_| measured)
}
