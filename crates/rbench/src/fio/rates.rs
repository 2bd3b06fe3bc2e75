//! `--bandwidth-log`: the bandwidth of all workers together, over time.

use std::path::Path;

use rbench_core::job::JobOutcome;
use rbench_plan::Plan;
use rbench_plan::resolve::Work;
use rbench_report::fio::rates;

use super::known::is_log;
use super::logs::write_lines;
use crate::files;
use crate::front::Scope;
use crate::trouble::all_of;

/// Returns true if `--bandwidth-log` is given.
fn wanted(plan: &Plan) -> bool {
    matches!(&plan.work, Work::Jobs(jobs) if jobs.whole.rates)
}

/// Checks that the logs' paths are free or hold earlier logs.
///
/// # Errors
/// One sentence that names the file.
pub fn check(plan: &Plan, cwd: &Path) -> Result<(), String> {
    for name in rates::NAMES.iter().filter(|_| wanted(plan)) {
        let path = cwd.join(name);
        let place = files::find(&path, is_log);
        place.map_err(|why| format!("the log {} {why}", path.display()))?;
    }
    Ok(())
}

/// Writes the logs, in place of those of earlier runs.
///
/// # Errors
/// One sentence that names the file.
pub fn write(Scope { plan, launch }: Scope<'_>, jobs: &[JobOutcome]) -> Result<(), String> {
    if !wanted(plan) {
        return Ok(());
    }
    let lines = rates::lines(jobs);
    let each = rates::NAMES.iter().zip(lines);
    all_of(each.map(|(name, lines)| {
        write_lines(&Path::new(&launch.cwd).join(name), None, lines.into_iter())
    }))
}
