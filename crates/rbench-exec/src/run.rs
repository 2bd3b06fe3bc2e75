//! A whole run of the group: set up, workload, removal.

use rbench_core::outcome::PhaseOutcome;
use rbench_plan::{Plan, Work};

use crate::group::{ExecError, Group};
use crate::target::{Place, Target, in_thread};
use crate::{io, meta};

/// How a workload ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Whether every phase ran to its end.
    pub complete: bool,
    /// At rank 0: what could not be removed, as sentences.
    pub left: Vec<String>,
}

/// What a run tells beside its rows.
#[derive(Debug)]
pub struct Finished {
    /// How the workload ended.
    pub ending: Ending,
    /// With `--keep`: the directory that was left.
    pub kept: Option<std::path::PathBuf>,
}

/// Carries out `plan` in the run's own directory. `begun` is told, once the
/// directory is there, whether all hosts share it; `row` takes the rows of
/// the report, both at rank 0.
///
/// # Errors
/// When something could not be set up (one sentence, the same on every rank),
/// or the ranks cannot talk. What was made is removed in the first case.
pub async fn execute(
    group: &Group<'_>,
    plan: &Plan,
    place: &Place<'_>,
    run_key: u64,
    begun: &mut dyn FnMut(bool) -> Result<(), String>,
    row: &mut dyn FnMut(PhaseOutcome),
) -> Result<Finished, ExecError> {
    preflight(group, plan).await?;
    let target = Target::set_up(group, place).await?;
    let ready = if group.is_root() {
        begun(target.shared())
    } else {
        Ok(())
    };
    let result = match group.agree(ready).await {
        Ok(()) => match &plan.work {
            Work::Meta(work) => meta::run(group, plan, work, &target, row).await,
            Work::Io(work) => io::run(group, plan, work, &target, run_key, row).await,
        },
        Err(error) => Err(error),
    };
    match result {
        Ok(mut ending) => {
            if plan.keep {
                return Ok(Finished {
                    ending,
                    kept: Some(target.path().to_owned()),
                });
            }
            ending.left.extend(target.remove(group).await?);
            Ok(Finished { ending, kept: None })
        }
        Err(error @ ExecError::SetUp(_)) => {
            target.remove(group).await?;
            Err(error)
        }
        Err(error) => Err(error),
    }
}

/// Checks what the plan needs of every host, before anything is made.
async fn preflight(group: &Group<'_>, plan: &Plan) -> Result<(), ExecError> {
    let limit = rbench_sys::limits::raise_open_files()
        .map_err(|e| format!("cannot read the limit of open files: {e}"));
    let limit = group.agree(limit).await?;
    let needed = u64::from(plan.threads) * u64::from(open_files_each(plan)) + 64;
    let enough = if needed > limit {
        Err(format!(
            "--threads {} needs {needed} open files in each rank, and the limit is {limit} (ulimit -n)",
            plan.threads
        ))
    } else {
        Ok(())
    };
    group.agree(enough).await?;
    let root = !plan.drop_caches || nix::unistd::geteuid().is_root();
    group
        .agree(if root {
            Ok(())
        } else {
            Err("--drop-caches needs root on every host".to_owned())
        })
        .await
}

/// Descriptors that one worker holds at a time: its file, and a ring.
fn open_files_each(plan: &Plan) -> u32 {
    match &plan.work {
        Work::Meta(_) => 1,
        Work::Io(_) => 2,
    }
}

/// Drops the kernel's caches on every host, by one rank each.
///
/// # Errors
/// One sentence, the same on every rank.
pub async fn drop_caches(group: &Group<'_>) -> Result<(), ExecError> {
    group.step("dropping caches");
    let result = if group.is_leader() {
        let dropped = in_thread(|| rbench_sys::caches::drop_caches().map_err(|e| e.to_string()));
        group.quietly(dropped).await?
    } else {
        Ok(())
    };
    group.agree(result).await
}
