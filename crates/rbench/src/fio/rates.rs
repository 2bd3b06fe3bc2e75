//! What all workers move together, over time: `--bandwidth-log`.

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

/// Whether such logs are asked for.
fn wanted(plan: &Plan) -> bool {
    matches!(&plan.work, Work::Jobs(jobs) if jobs.whole.rates)
}

/// Checks that nothing but logs is where they will go.
///
/// # Errors
/// One sentence that names the file.
pub fn check(plan: &Plan, cwd: &Path) -> Result<(), String> {
    for name in rates::NAMES.iter().filter(|_| wanted(plan)) {
        let path = cwd.join(name);
        let found = files::find(&path, is_log);
        found.map_err(|why| format!("the log {} {why}", path.display()))?;
    }
    Ok(())
}

/// Writes them, in place of those of earlier runs.
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
