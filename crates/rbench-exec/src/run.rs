//! A whole run of the group: set up, workload, removal.

use std::path::PathBuf;

use rbench_core::Rank;
use rbench_core::outcome::PhaseOutcome;
use rbench_plan::{Plan, Work};

use crate::group::{ExecError, Group};
use crate::target::{Place, Target, in_thread};
use crate::{io, meta};

/// How a workload ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ending {
    /// Whether every phase ran to its end.
    pub complete: bool,
    /// Why it could not go on, as a sentence; finished phases keep their rows.
    pub trouble: Option<String>,
    /// At rank 0: what could not be removed, as sentences.
    pub left: Vec<String>,
    /// With `--keep`: the directory that was left.
    pub kept: Option<PathBuf>,
}

/// One pass over the phases of a workload, in a directory of its own.
pub(crate) trait Pass {
    /// The directory of the pass, relative to the run's own.
    fn prefix(&self) -> &str;

    /// Directories below it that belong to this rank alone.
    fn own_dirs(&self, rank: Rank) -> Vec<String>;

    /// Makes what the phases start from, then runs them; whether the group was
    /// stopped.
    async fn run(
        &mut self,
        group: &Group<'_>,
        target: &Target,
        row: &mut dyn FnMut(PhaseOutcome),
    ) -> Result<bool, ExecError>;
}

/// Carries out `plan` in the run's own directory. `begun` is told, once the
/// directory is there, whether all hosts share it; `row` takes the rows of
/// the report, both at rank 0.
///
/// # Errors
/// When nothing could be set up (one sentence, the same on every rank; what
/// was made is removed), or the ranks cannot talk.
pub async fn execute(
    group: &Group<'_>,
    plan: &Plan,
    place: &Place<'_>,
    run_key: u64,
    begun: &mut dyn FnMut(bool) -> Result<(), String>,
    row: &mut dyn FnMut(PhaseOutcome),
) -> Result<Ending, ExecError> {
    preflight(group, plan).await?;
    let target = Target::set_up(group, place).await?;
    let ready = if group.is_root() {
        begun(target.shared())
    } else {
        Ok(())
    };
    let mut ending = match group.agree(ready).await {
        Ok(()) => match &plan.work {
            Work::Meta(work) => {
                iterate(group, plan, &target, row, |i| meta::pass(plan, work, i)).await?
            }
            Work::Io(work) => {
                iterate(group, plan, &target, row, |i| {
                    io::pass(plan, work, run_key, i)
                })
                .await?
            }
        },
        Err(ExecError::SetUp(message)) => Ending {
            trouble: Some(message),
            ..Ending::default()
        },
        Err(error) => return Err(error),
    };
    if plan.keep {
        ending.kept = Some(target.path().to_owned());
    } else {
        ending.left.extend(target.remove(group).await?);
    }
    Ok(ending)
}

/// Runs pass after pass; each leaves nothing behind.
async fn iterate<P: Pass>(
    group: &Group<'_>,
    plan: &Plan,
    target: &Target,
    row: &mut dyn FnMut(PhaseOutcome),
    pass: impl Fn(u32) -> P,
) -> Result<Ending, ExecError> {
    let mut ending = Ending::default();
    for iteration in 0..plan.iterations {
        let mut pass = pass(iteration);
        let own = pass.own_dirs(group.rank());
        let result = pass.run(group, target, row).await;
        let stopped = match result {
            Ok(stopped) => stopped,
            Err(ExecError::SetUp(message)) => {
                ending.trouble = Some(message);
                true
            }
            Err(error) => return Err(error),
        };
        if !plan.keep {
            group.step("removing what is left");
            ending
                .left
                .extend(target.clear(group, pass.prefix(), own).await?);
        }
        if stopped {
            return Ok(ending);
        }
    }
    ending.complete = true;
    Ok(ending)
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
    } else if plan.drop_caches && !nix::unistd::geteuid().is_root() {
        Err("--drop-caches needs root on every host".to_owned())
    } else {
        Ok(())
    };
    group.agree(enough).await.map_err(|error| match error {
        ExecError::SetUp(message) => ExecError::Usage(message),
        other => other,
    })
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
        group.attend(dropped, || 0).await?.and_then(|result| result)
    } else {
        Ok(())
    };
    group.agree(result).await
}
